//! What a candidate costs: probes in the fields of the request, and requests that were stored.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use crate::probes::{Probe, Spot, probes};
use portcullis_event::Event;
use portcullis_inspect::Inspector;
use portcullis_replay::{Field, Trial};
use portcullis_types::Class;
use serde::Serialize;

use crate::advice::Case;
use crate::options::{Candidate, objecting};

/// Probes that are reported one by one.
const LOST_TOLD_MAX: usize = 20;
/// Clients and ids that are reported.
const STORED_TOLD_MAX: usize = 20;

/// An attack that would not be stopped any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostProbe {
    /// Its class.
    pub class: &'static str,
    /// The kind of the finding that had the most points before.
    pub kind: Cow<'static, str>,
    /// The change that was made to the text; empty: none.
    pub change: &'static str,
    /// The text; see [`text`](portcullis_event::text()).
    pub text: String,
}

/// Probes that were stopped before, and those of them that are not with the candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProbeCount {
    /// Stopped before.
    pub stopped: usize,
    /// Not stopped with the candidate.
    pub lost: usize,
}

/// The result of all probes in all fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Probed {
    /// Those stopped first of all by what is excluded by name: losing them is what the exclusion says.
    pub own: ProbeCount,
    /// All others.
    pub others: ProbeCount,
    /// The first of the others that are lost.
    pub lost: Vec<LostProbe>,
}

/// Stored requests that were stopped and would not have been.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stored {
    /// Requests that were looked at.
    pub requests: usize,
    /// Those that the policy stops as it is.
    pub stopped: usize,
    /// Those of them that it would let through.
    pub let_through: usize,
    /// The clients of these.
    pub clients: usize,
    /// Ids of the first of these.
    pub ids: Vec<String>,
}

/// A message with a probe in it that the policy stops as it is.
#[derive(Debug)]
pub(crate) struct Stopped {
    probe: Probe,
    message: Vec<u8>,
    /// The kind of the finding with the most points; of the probe itself if there is none.
    kind: (Cow<'static, str>, Class),
    /// All that was found: an exclusion of something else changes nothing.
    found: Found,
}

/// Kinds of findings with their classes, and rules.
#[derive(Debug, Default)]
struct Found {
    kinds: Vec<(Cow<'static, str>, Class)>,
    /// Rules that matched.
    rules: Vec<u32>,
    /// Those of them that object to a value: not those that compare the scores which these made.
    objecting: Vec<u32>,
    /// The event does not tell all of it.
    is_cut: bool,
}

impl Found {
    fn of(event: &Event) -> Found {
        let mut kinds: Vec<(Cow<'static, str>, Class)> =
            event.findings.iter().map(|found| (found.kind.clone(), found.class)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let logged = event.matches.iter().map(|found| found.rule.rule_id.0);
        let rules = logged.chain(event.verdict.rule_id.map(|rule| rule.0)).collect();
        let objecting = objecting(event).map(|(rule, _)| rule).collect();
        Found { kinds, rules, objecting, is_cut: event.findings_omitted > 0 || event.matches_omitted > 0 }
    }

    /// The candidate may change the verdict.
    fn concerns(&self, candidate: &Candidate) -> bool {
        self.is_cut
            || self.kinds.iter().any(|(kind, class)| candidate.touches(kind, *class))
            || self.rules.iter().any(|rule| candidate.names_rule(*rule))
    }
}

/// The probes for these fields that `before` stops, each in a request that passes without it.
pub(crate) fn stopped_probes(before: &mut Trial, case: &Case<'_>, fields: &[Field]) -> Vec<Stopped> {
    let mut stopped = Vec::new();
    for field in fields {
        let spot = match field {
            Field::Path => Spot::Path,
            Field::File(_) => Spot::File,
            Field::FileName => Spot::FileName,
            Field::Body => Spot::Body,
            Field::Query(_)
            | Field::Form(_)
            | Field::Argument(_)
            | Field::Json(_)
            | Field::Part(_)
            | Field::Header(_)
            | Field::Cookie(_) => Spot::Value,
        };
        for probe in probes(spot) {
            let Some(message) = field.replaced(case.request, &probe.text) else { continue };
            let tried = before.ask(&message, case.client, case.epoch_millis);
            if !tried.stopped {
                continue;
            }
            let event = tried.event.as_deref();
            let found = event.map(Found::of).unwrap_or_default();
            let findings = event.iter().flat_map(|event| &event.findings);
            let most = findings.max_by(|a, b| a.points.total_cmp(&b.points));
            let kind = most
                .map_or((probe.kind.into(), probe.class), |finding| (finding.kind.clone(), finding.class));
            stopped.push(Stopped { probe, message, kind, found });
        }
    }
    stopped
}

/// Which of them `after` lets through.
pub(crate) fn probe(
    after: &Arc<Inspector>,
    candidate: &Candidate,
    alarm: &[&str],
    case: &Case<'_>,
    stopped: &[Stopped],
) -> Probed {
    let mut trial = Trial::new(Arc::clone(after));
    let mut probed = Probed::default();
    for Stopped { probe, message, kind, found } in stopped {
        let by_rules = found.kinds.is_empty() && !found.objecting.is_empty();
        let is_own = match by_rules {
            true => found.objecting.iter().all(|rule| candidate.names_rule(*rule)),
            false => candidate.is_for(&kind.0, alarm),
        };
        let count = if is_own { &mut probed.own } else { &mut probed.others };
        count.stopped += 1;
        if !found.concerns(candidate) || trial.ask(message, case.client, case.epoch_millis).stopped {
            continue;
        }
        count.lost += 1;
        if !is_own && probed.lost.len() < LOST_TOLD_MAX {
            let text = portcullis_event::text(&probe.text, portcullis_event::limits::VALUE_BYTES_MAX);
            let (kind, class) = kind.clone();
            let (class, change) = (class.name(), probe.change);
            probed.lost.push(LostProbe { class, kind, change, text });
        }
    }
    probed
}

/// The stored requests that `before` stops.
#[derive(Debug)]
pub(crate) struct StoppedCases<'a> {
    requests: usize,
    cases: Vec<(Case<'a>, Found)>,
}

impl<'a> StoppedCases<'a> {
    pub(crate) fn of(before: &mut Trial, all: &[Case<'a>]) -> StoppedCases<'a> {
        let stopped = all.iter().filter_map(|case| {
            let tried = before.ask(case.request, case.client, case.epoch_millis);
            let found = || tried.event.as_deref().map(Found::of).unwrap_or_default();
            tried.stopped.then(|| (*case, found()))
        });
        StoppedCases { requests: all.len(), cases: stopped.collect() }
    }

    /// Which of them `after` lets through.
    pub(crate) fn let_through(&self, after: &Arc<Inspector>, candidate: &Candidate) -> Stored {
        let mut trial = Trial::new(Arc::clone(after));
        let mut clients = BTreeSet::<IpAddr>::new();
        let (requests, stopped) = (self.requests, self.cases.len());
        let mut stored = Stored { requests, stopped, ..Stored::default() };
        for (case, found) in &self.cases {
            if !found.concerns(candidate) || trial.ask(case.request, case.client, case.epoch_millis).stopped {
                continue;
            }
            stored.let_through += 1;
            clients.insert(case.client.ip());
            if stored.ids.len() < STORED_TOLD_MAX {
                stored.ids.push(case.id.to_owned());
            }
        }
        stored.clients = clients.len();
        stored
    }
}
