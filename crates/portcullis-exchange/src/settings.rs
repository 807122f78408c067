//! The settings that a reload replaces as a whole.

use std::sync::Arc;

use portcullis_config::Failure;
use portcullis_event::{Action, Redactor};
use portcullis_inspect::{Inspector, PolicyNames};
use portcullis_metrics::{Registry, RouteMetrics, RuleCounters};

use crate::block_page::BlockPage;
use crate::exclusions::Exclusions;

/// The settings that a reload replaces as a whole.
#[derive(Debug)]
pub struct Settings {
    /// The policy.
    pub inspector: Arc<Inspector>,
    /// Its names in events and metrics.
    pub names: PolicyNames,
    /// The policy where inspection cannot be done.
    pub failure: Failure,
    /// The page of a blocked request.
    pub block_page: BlockPage,
    /// For the events that no inspection makes.
    pub redactor: Redactor,
    pub(crate) exclusions: Exclusions,
    rule_matches: RuleCounters,
    route: RouteMetrics,
}

impl Settings {
    /// Settings that count in `registry`.
    pub fn new(
        registry: &Registry,
        inspector: Arc<Inspector>,
        names: PolicyNames,
        failure: Failure,
        block_page: BlockPage,
        redactor: Redactor,
        exclusions: Exclusions,
    ) -> Settings {
        let rule_matches = RuleCounters::new(registry, inspector.rule_ids().map(|id| id.0));
        let route = RouteMetrics::new(registry, &names.site, &names.route, Action::NAMES);
        Settings { inspector, names, failure, block_page, redactor, exclusions, rule_matches, route }
    }

    pub(crate) fn rule_matches(&self) -> &RuleCounters {
        &self.rule_matches
    }

    pub(crate) fn route(&self) -> &RouteMetrics {
        &self.route
    }
}
