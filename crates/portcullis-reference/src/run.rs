//! Phases, chains, links, targets: loops inside loops.

use std::collections::HashSet;

use bstr::{BString, ByteSlice};
use portcullis_seclang::ast::{Action, AllowScope, TargetKind};
use portcullis_seclang::settings::RuleEngine;
use portcullis_types::{Phase, RuleId};

use crate::actions::{expand, perform};
use crate::collections::Database;
use crate::load::is_chosen;
use crate::operator::{Found, Test};
use crate::outside::{self, Told};
use crate::rules::{Chain, Disruptive, Item, Link, LoadedTarget, Select};
use crate::text::{atoi, escape_key};
use crate::transaction::{Chosen, Transaction, Value, set, unset};
use crate::variables::{second_readings, values, xml_nodes};
use crate::{Interruption, Match, Outcome, Reference, Request, body};

pub(crate) fn run(reference: &Reference, request: &Request, database: &mut Database) -> Outcome {
    let mut transaction = Transaction::new(request, &reference.settings);
    transaction.database = std::mem::take(database);
    let mut run = Run { reference, transaction, outcome: Outcome::default(), paused: HashSet::new() };
    for phase in Phase::ALL {
        run.phase(phase);
    }
    let Run { mut transaction, mut outcome, .. } = run;
    transaction.persist();
    *database = transaction.database;
    outcome.request_body = transaction.request_stream.filter(|_| transaction.streams_changed.0);
    if reference.settings.content_injection {
        outcome.response_body = transaction.response_stream.filter(|_| transaction.streams_changed.1);
        outcome.around_response = transaction.around_response;
    }
    // Of several values under one key, which only captures can make, the first counts.
    for (key, value) in transaction.tx {
        outcome.tx.entry(key.to_ascii_lowercase().into()).or_insert(value);
    }
    outcome
}

struct Run<'r> {
    reference: &'r Reference,
    transaction: Transaction<'r>,
    outcome: Outcome,
    /// Rules that have paused: each pauses one time, however many values it matches.
    paused: HashSet<RuleId>,
}

/// A target that was looked up: a value, or a count.
struct Candidate {
    /// As logs have it: `&ARGS:a` for a count.
    full_name: BString,
    /// As `MATCHED_VAR_NAME` has it: `ARGS` for a count.
    value: Value,
    /// Of a target of XML with a path: the node.
    node: Option<usize>,
}

/// The outcome of a link or a chain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    NoMatch,
    Match,
    /// The phase is over.
    Interrupted,
}

impl Run<'_> {
    /// Follows `modsecurity_process_phase` and the functions it calls.
    fn phase(&mut self, phase: Phase) {
        if self.transaction.engine == RuleEngine::Off {
            return;
        }
        let has_response = self.transaction.request.response.is_some();
        let is_allowed = match self.transaction.allowed {
            Some(AllowScope::Transaction) => phase != Phase::Logging,
            Some(AllowScope::Request) => phase == Phase::RequestBody,
            Some(AllowScope::Phase) | None => false,
        };
        let needs_response = matches!(phase, Phase::ResponseHeaders | Phase::ResponseBody);
        let is_over = self.outcome.interruption.is_some() && phase != Phase::Logging;
        if is_over || (needs_response && !has_response) {
            return;
        }
        self.transaction.phase = phase;
        if let Phase::RequestBody = phase {
            body::read_request(&mut self.transaction, &self.reference.settings)
        } else if let Phase::ResponseBody = phase {
            body::read_response(&mut self.transaction, &self.reference.settings)
        }
        if !is_allowed {
            self.rules();
        }
    }

    /// Follows `msre_ruleset_process_phase`.
    fn rules(&mut self) {
        let mut skip = 0;
        let mut skip_after: Option<&BString> = None;
        for item in &self.reference.items {
            let chain = match item {
                Item::Marker(label) => {
                    if skip_after == Some(label) {
                        skip_after = None;
                    }
                    continue;
                }
                Item::Removed(id, phase) => {
                    if *phase == self.transaction.phase
                        && !self.transaction.modsecurity3
                        && skip_after.is_some_and(|label| *label == id.to_string())
                    {
                        skip_after = None;
                    }
                    continue;
                }
                Item::Chain(chain) if chain.phase != self.transaction.phase => continue,
                Item::Chain(chain) => chain,
            };
            if let Some(label) = skip_after {
                // A rule counts as a marker in version 2 only.
                if !self.transaction.modsecurity3 && *label == chain.id.to_string() {
                    skip_after = None;
                }
                continue;
            }
            if skip > 0 {
                skip -= 1;
                continue;
            }
            match self.chain(chain) {
                Step::NoMatch => {}
                Step::Interrupted => return,
                Step::Match => match chain.skip_after() {
                    Some(label) => skip_after = Some(label),
                    None => skip = chain.skip(),
                },
            }
        }
    }

    /// One rule: all links must match, one after the other.
    fn chain(&mut self, chain: &Chain) -> Step {
        self.transaction.matched_list.clear();
        for index in 0..chain.links.len() {
            // Each link can switch the engine off, or remove the rules that follow, its own chain included.
            if self.transaction.engine == RuleEngine::Off || self.is_removed(chain, &chain.links[index]) {
                return Step::NoMatch;
            }
            match self.link(chain, index) {
                Step::Match => {}
                other @ (Step::NoMatch | Step::Interrupted) => return other,
            }
        }
        Step::Match
    }

    fn is_removed(&self, chain: &Chain, link: &Link) -> bool {
        self.transaction.removed.iter().any(|removed| match removed {
            // Unlike elsewhere, macros in tags are replaced first.
            Chosen::Tag(regex) => {
                link.tags().any(|tag| regex.is_match(&expand(&self.transaction, chain, tag)))
            }
            Chosen::Ids(_) | Chosen::Msg(_) => is_chosen(removed, link),
        })
    }

    /// Follows `msre_rule_process_normal`.
    fn link(&mut self, chain: &Chain, index: usize) -> Step {
        let link = &chain.links[index];
        let transformations = link.transformations();
        let multi_match = link.has(&Action::MultiMatch) && !transformations.is_empty();
        let mut step = Step::NoMatch;
        for mut candidate in self.candidates(chain, link) {
            let mut changed = true;
            for transformation in &transformations {
                if multi_match && changed {
                    match self.test(chain, index, &candidate) {
                        Step::NoMatch => {}
                        Step::Match => step = Step::Match,
                        Step::Interrupted => return Step::Interrupted,
                    }
                }
                let mut out = Vec::new();
                let map = self.reference.settings.unicode_map.as_ref();
                changed = transformation.apply_with(&candidate.value.value, map, &mut out);
                if changed {
                    candidate.value.value = out.into();
                }
            }
            if !multi_match || changed {
                match self.test(chain, index, &candidate) {
                    Step::NoMatch => {}
                    Step::Match => step = Step::Match,
                    Step::Interrupted => return Step::Interrupted,
                }
            }
        }
        step
    }

    /// The values that the targets of a link stand for. An exclusion takes away what stands before it
    /// (apr_table_unset in msre_rule_process_normal), in libmodsecurity wherever it stands. One of XML with a
    /// path takes away the nodes that it selects, unlike in either, and so does one of `ctl`, as the link
    /// begins.
    fn candidates(&self, chain: &Chain, link: &Link) -> Vec<Candidate> {
        let mut out: Vec<Candidate> = Vec::new();
        let mut targets: Vec<&LoadedTarget> = link.targets.iter().collect();
        if self.transaction.modsecurity3 {
            targets.sort_by_key(|target| target.kind == TargetKind::Exclude);
        }
        for target in targets {
            let mut found =
                values(&self.transaction, target.variable, &target.select, chain).unwrap_or_default();
            if target.kind != TargetKind::Count {
                found.extend(second_readings(&self.transaction, target.variable, &target.select));
            }
            match target.kind {
                TargetKind::Values => {
                    let nodes = xml_nodes(&self.transaction, &target.select);
                    // Other readings of the text are those of the root element.
                    let node = |at: usize| {
                        if let Select::XmlText = target.select {
                            nodes.first().copied()
                        } else {
                            nodes.get(at).copied()
                        }
                    };
                    out.extend(found.into_iter().enumerate().map(|(at, value)| Candidate {
                        full_name: value.name.clone(),
                        node: node(at),
                        value,
                    }));
                }
                TargetKind::Count => {
                    let name: BString = target.variable.name().into();
                    let value = found.len().to_string().into();
                    let value = Value { name, value };
                    out.push(Candidate { full_name: count_name(target), node: None, value });
                }
                TargetKind::Exclude if is_path(&target.select) => self.take_away_nodes(target, &mut out),
                TargetKind::Exclude => {
                    let is_excluded = |c: &Candidate| {
                        found.iter().any(|value| value.name.eq_ignore_ascii_case(&c.value.name))
                    };
                    out.retain(|candidate| !is_excluded(candidate));
                }
            }
        }
        for (chosen, target) in &self.transaction.removed_targets {
            if is_path(&target.select) && is_chosen(chosen, link) {
                self.take_away_nodes(target, &mut out);
            }
        }
        out
    }

    fn take_away_nodes(&self, target: &LoadedTarget, candidates: &mut Vec<Candidate>) {
        let nodes = xml_nodes(&self.transaction, &target.select);
        candidates.retain(|candidate| candidate.node.is_none_or(|node| !nodes.contains(&node)));
    }

    /// Follows `execute_operator`.
    fn test(&mut self, chain: &Chain, index: usize, candidate: &Candidate) -> Step {
        let link = &chain.links[index];
        let name = &candidate.value.name;
        let is_taken_away =
            |(chosen, target): &(Chosen, LoadedTarget)| is_chosen(chosen, link) && takes_away(target, name);
        if self.transaction.removed_targets.iter().any(is_taken_away) {
            return Step::NoMatch;
        }
        let found = match outside::run(&mut self.transaction, self.reference, &link.test, &candidate.value) {
            Told::NotAsked => {
                link.test.run(&candidate.value.value, &|text| expand(&self.transaction, chain, text))
            }
            Told::Nothing => None,
            Told::Found(found) => Some(found),
            // Nothing is known: neither the operator nor its negation holds.
            Told::Unknown => return Step::NoMatch,
        };
        if let Some(found) = &found
            && link.has(&Action::Capture)
        {
            self.capture(found);
        }
        if found.is_some() == link.negated {
            return Step::NoMatch;
        }
        let is_last = index + 1 == chain.links.len();
        let changed = self.substitute(chain, link, candidate);
        let candidate = changed.as_ref().unwrap_or(candidate);
        self.transaction.matched = Some(candidate.value.clone());
        self.transaction.matched_list.push(candidate.value.clone());
        let severity =
            |a: &Action| if let Action::Severity(severity) = a { Some(severity.number()) } else { None };
        if let Some(severity) = chain.starter().last(severity)
            && is_last
            && severity > 0
        {
            self.transaction.highest_severity = self.transaction.highest_severity.min(severity);
        }
        for action in &link.actions {
            perform(&mut self.transaction, chain, action);
        }
        self.outcome.matches.push(Match {
            rule: chain.id,
            link: index,
            phase: self.transaction.phase,
            variable: candidate.full_name.clone(),
            value: candidate.value.value.clone(),
            complete: is_last,
            logged: is_last && chain.logged(),
        });
        if is_last && self.disrupt(chain) { Step::Interrupted } else { Step::Match }
    }

    /// `@rsub`: the body becomes what is made of the value.
    fn substitute(&mut self, chain: &Chain, link: &Link, candidate: &Candidate) -> Option<Candidate> {
        let Test::Rsub(rsub) = &link.test else { return None };
        let changed = rsub.apply(&candidate.value.value, &|text| expand(&self.transaction, chain, text));
        if candidate.value.name == "STREAM_INPUT_BODY" {
            self.transaction.request_stream = Some(changed.clone());
            self.transaction.streams_changed.0 = true;
        } else {
            self.transaction.response_stream = Some(changed.clone());
            self.transaction.streams_changed.1 = true;
        }
        let value = Value { name: candidate.value.name.clone(), value: changed };
        Some(Candidate { full_name: candidate.full_name.clone(), node: None, value })
    }

    /// `TX:0` to `TX:9`.
    fn capture(&mut self, found: &Found) {
        if found.captures.is_empty() {
            return;
        }
        let keeps = |digit: usize| digit >= found.captures.len() && !found.unsets;
        for digit in (0..10).filter(|&digit| !keeps(digit)) {
            unset(&mut self.transaction.tx, digit.to_string().as_bytes());
        }
        for (digit, text) in found.captures.iter().enumerate() {
            let key = digit.to_string().into();
            match digit {
                0..10 => self.transaction.tx.push((key, text.clone())),
                // Only `@rxGlobal` has so many, and it replaces what is there.
                _ => set(&mut self.transaction.tx, key, text.clone()),
            }
        }
    }

    /// Follows `msre_perform_disruptive_actions` and `perform_interception`; true if the phase is over.
    fn disrupt(&mut self, chain: &Chain) -> bool {
        let phase = self.transaction.phase;
        if phase == Phase::Logging || self.transaction.engine != RuleEngine::On {
            return false;
        }
        if let Some(time) = chain.pause()
            && self.paused.insert(chain.id)
        {
            let pause_ms = atoi(&expand(&self.transaction, chain, time)).max(0);
            self.outcome.pause_ms = self.outcome.pause_ms.saturating_add(pause_ms);
        }
        let interruption = |status| Interruption {
            phase,
            status,
            rule: chain.id,
            location: None,
            drop: false,
            proxy: false,
        };
        let interruption = match &chain.disruptive {
            Disruptive::Pass => return false,
            Disruptive::Allow(scope) => {
                self.transaction.allowed = Some(*scope);
                return true;
            }
            Disruptive::Deny => interruption(chain.status(self.transaction.modsecurity3)),
            Disruptive::Drop => Interruption { drop: true, ..interruption(403) },
            Disruptive::Redirect(to) => {
                let modsecurity3 = self.transaction.modsecurity3;
                let status = match chain.status(modsecurity3) {
                    status @ (301 | 302 | 303 | 307) => Some(status),
                    status @ 304..=306 if modsecurity3 => Some(status),
                    _ => None,
                };
                let location = Some(expand(&self.transaction, chain, to));
                Interruption { location, ..interruption(status.unwrap_or(302)) }
            }
            Disruptive::Proxy(to) => {
                let location = Some(expand(&self.transaction, chain, to));
                Interruption { location, proxy: true, ..interruption(200) }
            }
        };
        if phase < Phase::ResponseHeaders {
            self.transaction.no_response = true;
        }
        if !interruption.proxy {
            self.transaction.answered = Some(interruption.status);
        }
        self.outcome.interruption = Some(interruption);
        true
    }
}

/// The name of a counted target in logs.
fn count_name(target: &LoadedTarget) -> BString {
    let variable = target.variable.name();
    if let Select::Key(key) = &target.select {
        format!("&{variable}:{}", escape_key(key)).into()
    } else {
        format!("&{variable}").into()
    }
}

/// True for a path into an XML body.
fn is_path(select: &Select) -> bool {
    matches!(select, Select::XmlText | Select::XmlAttributes | Select::XPath(..))
}

/// True if a `ctl:ruleRemoveTarget...` means the variable called `name`. Follows `fetch_target_exception`.
fn takes_away(target: &LoadedTarget, name: &BString) -> bool {
    let (variable, key) = match name.split_once_str(b":") {
        Some((variable, key)) => (variable, Some(key)),
        None => (name.as_slice(), None),
    };
    variable.eq_ignore_ascii_case(target.variable.name().as_bytes())
        && match (&target.select, key) {
            (Select::All, _) => true,
            (Select::Key(wanted), Some(key)) => key.eq_ignore_ascii_case(wanted),
            (Select::Regex(regex), Some(key)) => regex.is_match(key),
            _ => false,
        }
}
