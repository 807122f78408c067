//! The points that rules and inspection agents add to a score of the semantic detector: the detector's own
//! suspicion and rules about the same class that match in the same value add up to an attack.
//!
//! The numbers are measured (tools/crs/train.py has the features): of 41,000 attacks 34 that neither finds
//! alone are within this reach, of 64,600 benign requests 9.

/// Points for rules whose weights sum to [`FULL`], which is also the maximum for rules.
const RULES: f32 = 0.25;
/// From this sum of weights on they add all: a rule about an attack with less has hardly any evidence.
const FULL: f32 = 0.34;
/// Points for 5 points of agents, and the maximum for agents. They are about no value and no class.
const AGENT: f32 = 0.5;
const AGENTS_MOST: f32 = 1.0;

/// The points that rules with these weights in all and the points of inspection agents stand for.
pub(crate) fn points(weight: f32, agents: u32) -> f32 {
    let of_agents = (agents.min(1_000) as f32 / 5.0 * AGENT).min(AGENTS_MOST);
    let of_rules = (weight / FULL).clamp(0.0, 1.0) * RULES;
    of_rules + of_agents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_agents_add_only_so_much() {
        assert_eq!(points(0.0, 0), 0.0);
        assert_eq!(points(FULL, 0), RULES);
        assert!((0.1..RULES).contains(&points(0.2, 0)));
        assert_eq!(points(7.0, 0), RULES);
        assert_eq!(points(0.0, 5), AGENT);
        assert_eq!(points(1.0, u32::MAX), RULES + AGENTS_MOST);
    }
}
