//! Rules that block by what other rules have found.

use portcullis_engine::{Disruption, Plan};
use portcullis_types::Variable;

/// True if a rule of this id looks at nothing but `TX`, where other rules keep scores, and blocks.
pub fn decides(plan: &Plan, id: u32) -> bool {
    plan.rules.iter().filter(|rule| rule.id.0 == id).any(|rule| {
        let ends = !matches!(rule.disruption, Disruption::Pass | Disruption::Allow(_));
        let links = plan.links_of(rule);
        let mut targets = links.iter().flat_map(|link| &link.targets.include);
        ends && links.iter().all(|link| !link.targets.include.is_empty())
            && targets.all(|target| target.variable == Variable::Tx)
    })
}
