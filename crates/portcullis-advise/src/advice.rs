//! From a request that was stopped to candidates with their costs.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use portcullis_event::Event;
use portcullis_inspect::Inspector;
use portcullis_replay::{Field, Trial};
use portcullis_revisions::Exclusion;
use serde::{Serialize, Serializer};

use crate::measure::{Probed, StoppedCases, Stored, probe, stopped_probes};
use crate::options::{Candidate, Objections, Reach};

/// Rules of which it is tried whether the request passes without one of them excluded: each makes a policy.
const RULES_TRIED_MAX: usize = 8;
/// Rules and detectors that object one after the other.
const OBJECTORS_MAX: usize = 4;

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// Its id.
    pub id: &'a str,
    /// Head and body.
    pub request: &'a [u8],
    /// The address of its client.
    pub client: SocketAddr,
    /// The time, in milliseconds since 1970.
    pub epoch_millis: u64,
}

/// Makes policies with more exclusions than the one that serves.
pub trait Policies {
    /// The policy that serves with these exclusions, too; or why there is none.
    fn with(&self, exclusions: &[Exclusion]) -> Result<Arc<Inspector>, String>;
}

/// The reason why there are no candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAdvice {
    /// The policy lets the request through.
    Passes,
    /// It was stopped by something that no exclusion is for: the reason in words.
    NothingToExclude(String),
    /// No policy can be made with a candidate.
    Policy(String),
}

impl fmt::Display for NoAdvice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoAdvice::Passes => f.write_str("the policy that serves lets this request through"),
            NoAdvice::NothingToExclude(reason) => write!(f, "there is nothing to exclude: {reason}"),
            NoAdvice::Policy(reason) => write!(f, "a policy with an exclusion cannot be made: {reason}"),
        }
    }
}

impl std::error::Error for NoAdvice {}

/// A candidate, measured.
#[derive(Debug, Serialize)]
pub struct Measured {
    /// How far it reaches.
    pub reach: Reach,
    /// What is excluded.
    #[serde(serialize_with = "terms")]
    pub exclusions: Vec<Exclusion>,
    /// The request passes with it.
    pub clears: bool,
    /// Why it does not; empty if it does.
    pub still: String,
    /// Stored requests.
    pub stored: Stored,
    /// Attacks.
    pub probed: Probed,
    /// It clears the alarm and loses no attack but those of what it excludes by name.
    pub recommended: bool,
}

/// All candidates for a request.
#[derive(Debug, Serialize)]
pub struct Advice {
    /// Fields that the probes were put into.
    pub fields: Vec<String>,
    /// Probes that the policy stops there as it is. None if the request is stopped whatever stands there.
    pub probes: usize,
    /// Fields whose values cannot be replaced: there are no probes for them.
    pub fields_without_probes: usize,
    /// Candidates, the narrowest first.
    pub candidates: Vec<Measured>,
}

/// Measures the exclusions that come into question for a request which `policy` stops.
pub fn advise(
    policy: &Arc<Inspector>,
    policies: &dyn Policies,
    case: &Case<'_>,
    others: &[Case<'_>],
) -> Result<Advice, NoAdvice> {
    let mut before = Trial::new(Arc::clone(policy));
    let objections = all_objections(&mut before, policies, case)?;
    let candidates = candidates(&objections, policies, case)?;
    let excluded = candidates.iter().flat_map(|(candidate, ..)| &candidate.exclusions);
    let fields = objections.fields(excluded);
    let can_carry = |field: &&Field| field.replaced(case.request, b"1").is_some();
    let carrying: Vec<Field> = fields.iter().filter(can_carry).cloned().collect();
    // One probe at a time, and nothing else in the message that is stopped.
    let quiet =
        carrying.iter().try_fold(case.request.to_vec(), |message, field| field.replaced(&message, b"1"));
    let quiet = quiet.filter(|message| !before.ask(message, case.client, case.epoch_millis).stopped);
    let stopped = match &quiet {
        Some(request) => stopped_probes(&mut before, &Case { request, ..*case }, &carrying),
        None => Vec::new(),
    };
    let stopped_cases = StoppedCases::of(&mut before, others);
    let mut measured = Vec::new();
    for (candidate, after, still) in candidates {
        let stored = stopped_cases.let_through(&after, &candidate);
        let probed = probe(&after, &candidate, &objections.alarm(), case, &stopped);
        let clears = still.is_empty();
        let recommended = clears && probed.others.lost == 0 && probed.others.stopped > 0;
        let Candidate { reach, exclusions } = candidate;
        measured.push(Measured { reach, exclusions, clears, still, stored, probed, recommended });
    }
    Ok(Advice {
        probes: stopped.len(),
        fields: carrying.iter().map(|field| field.to_string()).collect(),
        fields_without_probes: fields.len() - carrying.len(),
        candidates: measured,
    })
}

/// The exclusions of the narrowest candidate with which a request passes that `policy` stops; none if there
/// is no such candidate. Nothing is measured.
pub fn narrowest(
    policy: &Arc<Inspector>,
    policies: &dyn Policies,
    case: &Case<'_>,
) -> Result<Option<Vec<Exclusion>>, NoAdvice> {
    let mut before = Trial::new(Arc::clone(policy));
    let objections = all_objections(&mut before, policies, case)?;
    let clears = candidates(&objections, policies, case)?.into_iter().find(|(.., still)| still.is_empty());
    Ok(clears.map(|(candidate, ..)| candidate.exclusions))
}

/// What objects to a request: rules may speak before the detector can, the detector before the rules, or one
/// rule before another.
fn all_objections(
    before: &mut Trial,
    policies: &dyn Policies,
    case: &Case<'_>,
) -> Result<Objections, NoAdvice> {
    let tried = before.ask(case.request, case.client, case.epoch_millis);
    if !tried.stopped {
        return Err(NoAdvice::Passes);
    }
    let Some(event) = tried.event else {
        return Err(NoAdvice::NothingToExclude("it is no acceptable HTTP".to_owned()));
    };
    let mut objections = Objections::of(&event);
    if objections.is_empty() {
        return Err(NoAdvice::NothingToExclude(reason(&event)));
    }
    for _ in 0..OBJECTORS_MAX {
        let after =
            policies.with(&objections.with_rules(&objections.rules).exclusions).map_err(NoAdvice::Policy)?;
        let tried = Trial::new(after).ask(case.request, case.client, case.epoch_millis);
        let more = tried.event.filter(|_| tried.stopped);
        if !more.is_some_and(|event| objections.add(&event)) {
            break;
        }
    }
    Ok(objections)
}

/// A candidate, the policy with it, and why the request is stopped all the same.
type Ready = (Candidate, Arc<Inspector>, String);

/// The candidates that clear the alarm, the narrowest first; where none does, the widest of each sort.
fn candidates(
    objections: &Objections,
    policies: &dyn Policies,
    case: &Case<'_>,
) -> Result<Vec<Ready>, NoAdvice> {
    let ready = |candidate: Candidate| -> Result<Ready, NoAdvice> {
        let after = policies.with(&candidate.exclusions).map_err(NoAdvice::Policy)?;
        let tried = Trial::new(Arc::clone(&after)).ask(case.request, case.client, case.epoch_millis);
        let still = match (tried.stopped, tried.event) {
            (false, _) => String::new(),
            (true, Some(event)) => reason(&event),
            (true, None) => "it is no acceptable HTTP".to_owned(),
        };
        Ok((candidate, after, still))
    };
    // The rules that must be excluded beside what the detector found, if it is not enough to exclude this.
    let rules = needed_rules(objections, &ready)?;
    let all_rules = |on_path: bool| objections.rules(&rules, on_path);
    let widest = objections.classes(false).map(&ready).transpose()?;
    let needs_rules = widest.is_some_and(|(.., still)| !still.is_empty());
    let with_rules = |mut candidate: Candidate| {
        // Where no exclusion can be for the path, rules are excluded on all.
        let on_path = candidate.reach < Reach::Field && objections.path.is_some();
        let beside = if needs_rules { all_rules(on_path) } else { None };
        candidate.exclusions.extend(beside.into_iter().flat_map(|rules| rules.exclusions));
        candidate
    };
    let mut found: Vec<Ready> = Vec::new();
    // A single kind, then the fewest of those with the most points.
    let kinds_max = objections.kinds_max();
    let single = (0..kinds_max).map(|kind| objections.kind(kind));
    let several = (1..=kinds_max).map(|most| objections.kinds(most));
    for candidate in single.chain(several).flatten() {
        let tried = ready(with_rules(candidate))?;
        if tried.2.is_empty() {
            found.push(least(tried, &ready)?);
            break;
        }
    }
    let wider = [objections.kinds(kinds_max), objections.classes(true), objections.classes(false)];
    for candidate in wider.into_iter().flatten() {
        let candidate = with_rules(candidate);
        if !found.iter().any(|(known, ..)| known.exclusions == candidate.exclusions) {
            found.push(ready(candidate)?);
        }
    }
    // By rules alone: one, then all; on the path, then on every path.
    for on_path in [true, false] {
        let single = rules.iter().map(|rule| objections.rules(std::slice::from_ref(rule), on_path));
        for candidate in single.flatten() {
            let candidate = ready(candidate)?;
            if candidate.2.is_empty() {
                found.push(candidate);
                break;
            }
        }
        if let Some(rules) = all_rules(on_path)
            && !found.iter().any(|(known, ..)| known.exclusions == rules.exclusions)
            && (objections.spots.is_empty() || !needs_rules)
        {
            found.push(ready(rules)?);
        }
    }
    found.retain(|(.., still)| still.is_empty() || objections.spots.is_empty());
    found.sort_by_key(|(candidate, ..)| (candidate.reach, candidate.exclusions.len()));
    Ok(found)
}

/// What is left of a candidate that clears the alarm without the exclusions that it does not need: one field
/// may need several kinds, and another one.
fn least(mut found: Ready, ready: &dyn Fn(Candidate) -> Result<Ready, NoAdvice>) -> Result<Ready, NoAdvice> {
    for at in (0..found.0.exclusions.len()).rev() {
        let mut fewer = found.0.clone();
        fewer.exclusions.remove(at);
        if fewer.exclusions.is_empty() {
            break;
        }
        let tried = ready(fewer)?;
        if tried.2.is_empty() {
            found = tried;
        }
    }
    Ok(found)
}

/// The rules without which the request is stopped even if all else is excluded: those that scored beside them
/// stay as they are.
fn needed_rules(
    objections: &Objections,
    ready: &dyn Fn(Candidate) -> Result<Ready, NoAdvice>,
) -> Result<Vec<(u32, String)>, NoAdvice> {
    let mut rules = objections.rules.clone();
    if rules.len() > RULES_TRIED_MAX || !ready(objections.with_rules(&rules))?.2.is_empty() {
        return Ok(rules);
    }
    for rule in &objections.rules {
        let fewer: Vec<(u32, String)> = rules.iter().filter(|known| *known != rule).cloned().collect();
        if ready(objections.with_rules(&fewer))?.2.is_empty() {
            rules = fewer;
        }
    }
    Ok(rules)
}

/// The exclusions as the admin API takes them.
fn terms<S: Serializer>(exclusions: &[Exclusion], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Term<'a> {
        Semantic {
            #[serde(skip_serializing_if = "Option::is_none")]
            class: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            kind: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            location: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            path: Option<&'a str>,
        },
        Rule {
            rule_id: u32,
            #[serde(skip_serializing_if = "Option::is_none")]
            target: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            path: Option<&'a str>,
        },
    }
    serializer.collect_seq(exclusions.iter().map(|exclusion| match exclusion {
        Exclusion::Semantic(term) => Term::Semantic {
            class: term.class.as_deref(),
            kind: term.kind.as_deref(),
            location: term.location.as_deref(),
            path: term.path.as_deref(),
        },
        Exclusion::Rule(term) => {
            Term::Rule { rule_id: term.rule_id, target: term.target.as_deref(), path: term.path.as_deref() }
        }
    }))
}

fn reason(event: &Event) -> String {
    let reason = event.verdict.reason.trim();
    if reason.is_empty() { "no rule and no finding says why".to_owned() } else { reason.to_owned() }
}
