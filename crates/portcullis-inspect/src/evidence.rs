//! The points that rules and inspection agents add to a score of the semantic detector: the detector's own
//! suspicion and rules about the same class that match in the same value add up to an attack.
//!
//! The numbers are measured (tools/crs/train.py has the features): honest requests that speak of attacks have
//! a suspicion and noisy rules as often as attacks that the detector just misses, so rules add little, and
//! only where they nearly decide.

/// Points for rules whose weights sum to 1, which is also the maximum for rules.
const RULES: f32 = 0.25;
/// Points for 5 points of agents, and the maximum for agents. They are about no value and no class.
const AGENT: f32 = 0.5;
const AGENTS_MOST: f32 = 1.0;

/// The points that rules with these weights in all and the points of inspection agents stand for.
pub(crate) fn points(weight: f32, agents: u32) -> f32 {
    let of_agents = (agents.min(1_000) as f32 / 5.0 * AGENT).min(AGENTS_MOST);
    weight.clamp(0.0, 1.0).powi(4) * RULES + of_agents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_agents_add_only_so_much() {
        assert_eq!(points(0.0, 0), 0.0);
        assert!((0.1..0.2).contains(&points(0.9, 0)) && points(0.5, 0) < 0.02);
        assert_eq!(points(7.0, 0), RULES);
        assert_eq!(points(0.0, 5), AGENT);
        assert_eq!(points(1.0, u32::MAX), RULES + AGENTS_MOST);
    }
}
