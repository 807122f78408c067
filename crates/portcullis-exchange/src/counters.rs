//! The metrics of exchanges, with the names of their labels.

use portcullis_event::{
    Action, Coverage, ExceptionCause, ExceptionPolicy, FindingOutcome, NotInspected, UpstreamError,
};
use portcullis_http::body::Ambiguity;
use portcullis_http::message::{Refusal, RequestHead, Version};
use portcullis_inspect::Report;
use portcullis_metrics::{
    DataPlane, DataPlaneNames, EnumCounters, Protocol, Registry, RouteMetrics, RuleCounters, catalogue,
};
use portcullis_types::Class;

use crate::lifecycle::Lifecycle;

/// The metrics that are not counted by route.
pub fn data_plane(registry: &Registry) -> DataPlane {
    let ambiguities = Ambiguity::ALL.map(|ambiguity| ambiguity.name());
    let refusals: Vec<&'static str> = Refusal::ALL.iter().map(|refusal| refusal.name()).collect();
    let names = DataPlaneNames {
        verdicts: Action::NAMES,
        not_inspected: NotInspected::NAMES,
        upstream_errors: UpstreamError::NAMES,
        refusals: &refusals,
        ambiguities: &ambiguities,
        classes: Class::NAMES,
        finding_outcomes: FindingOutcome::NAMES,
    };
    DataPlane::new(registry, env!("CARGO_PKG_VERSION"), names)
}

/// The counters of conditions under which inspection is incomplete, by cause.
pub fn exception_counters(registry: &Registry) -> Vec<EnumCounters> {
    let counters =
        |cause: &&str| registry.enum_counters(&catalogue::EXCEPTIONS, &[cause], ExceptionPolicy::NAMES);
    ExceptionCause::NAMES.iter().map(counters).collect()
}

/// The counters of the exchanges of a route.
#[derive(Clone, Copy, Debug)]
pub struct Counters<'a> {
    /// Those of the process.
    pub data_plane: &'a DataPlane,
    /// As [`exception_counters`] makes them.
    pub exceptions: &'a [EnumCounters],
    /// Those of the route.
    pub route: &'a RouteMetrics,
    /// Those of its rules.
    pub rules: &'a RuleCounters,
}

impl Counters<'_> {
    /// Counts what only the inspection knows.
    pub fn count_report(&self, report: &Report) {
        let counters = self.data_plane;
        counters.patterns_exhausted.add(report.patterns_exhausted);
        counters.patterns_unusable.add(report.patterns_unusable);
        counters.expansions_cut.add(report.expansions_cut);
        counters.scores_withheld.add(report.score_withheld.into());
        for ambiguity in report.ambiguities.iter() {
            counters.ambiguous_bodies.inc(ambiguity as usize);
        }
        for (class, outcome) in &report.findings {
            if let Some(of_class) = counters.semantic_findings.get(*class as usize) {
                of_class.inc(*outcome as usize);
            }
        }
        for rule in &report.matched_rules {
            self.rules.inc(rule.0);
        }
    }

    /// Counts an exchange that is over, with its action as it is reported. `is_inspected`: the time of its
    /// inspection counts.
    pub fn count(
        &self,
        lifecycle: &Lifecycle,
        head: &RequestHead,
        (action, coverage): (Action, &Coverage),
        is_inspected: bool,
    ) {
        let outcome = &lifecycle.outcome;
        self.route.requests.inc(outcome.status.unwrap_or(0), action as usize);
        self.route.request_duration.observe(outcome.duration);
        if is_inspected {
            self.route.inspection_duration.observe(lifecycle.spent());
        }
        for exception in &outcome.exceptions {
            if let Some(of_cause) = self.exceptions.get(exception.cause as usize) {
                of_cause.inc(exception.policy as usize);
            }
        }
        let counters = self.data_plane;
        let protocol = match head.version() {
            Version::Http3 => Protocol::Http3,
            Version::Http2 => Protocol::Http2,
            Version::Http11 => Protocol::Http11,
            Version::Http09 | Version::Http10 | Version::Other => Protocol::Http10,
        };
        counters.protocols.inc(protocol as usize);
        counters.bytes_inspected.add(coverage.bytes_inspected);
        for (reason, bytes) in coverage.bytes_not_inspected.iter() {
            counters.bytes_not_inspected.add(reason as usize, bytes);
            counters.exchanges_not_inspected.inc(reason as usize);
        }
        if let Some(refusal) = lifecycle.refusal {
            counters.refused_requests.inc(refusal as usize);
        }
    }
}
