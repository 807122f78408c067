//! What rules and inspection agents add to a score of the semantic detector: a suspicion of its own, and
//! rules about the same kind of attack that matched in the same value, make an attack together.
//!
//! The numbers are measured (tools/crs/train.py has the features): honest requests that speak of attacks have
//! a suspicion and noisy rules as often as attacks that the detector just misses, so rules add little, and
//! only where they nearly decide.

/// What rules whose weights come to 1 add, more than which they never do.
const RULES: f32 = 0.25;
/// What 5 points of agents add, and the most that they do. They are about no value and no class.
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
