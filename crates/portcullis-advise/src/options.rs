//! The exclusions that come into question for an alarm.

use std::borrow::Cow;
use std::collections::BTreeSet;

use portcullis_event::{Event, Finding, FindingOutcome, RuleMatch};
use portcullis_replay::Field;
use portcullis_revisions::{Exclusion, RuleExclusion, SemanticExclusion};
use portcullis_types::{Class, Place};
use serde::Serialize;

use crate::path::template;

/// How far a candidate reaches, the narrowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Single kinds of findings, in their fields, on one path.
    Kinds,
    /// Rules, in their targets, on one path.
    Rules,
    /// Classes, in their fields, on one path.
    Class,
    /// Classes, in their fields, on every path.
    Field,
    /// Rules, in their targets, on every path.
    RulesEverywhere,
}

/// Exclusions that belong together.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// How far it reaches.
    pub reach: Reach,
    /// What is excluded.
    pub exclusions: Vec<Exclusion>,
}

impl Candidate {
    /// True if findings of this kind are what it is for: it names the kind, or its class, and the kind is one
    /// of the alarm. What a class has beside is lost with it.
    pub(crate) fn is_for(&self, kind: &str, alarm: &[&str]) -> bool {
        self.exclusions.iter().any(|exclusion| match exclusion {
            Exclusion::Semantic(SemanticExclusion { kind: Some(own), .. }) => own == kind,
            Exclusion::Semantic(_) => alarm.contains(&kind),
            Exclusion::Rule(_) => false,
        })
    }

    /// True if it excludes some findings of this kind.
    pub(crate) fn touches(&self, kind: &str, class: Class) -> bool {
        self.exclusions.iter().any(|exclusion| match exclusion {
            Exclusion::Semantic(SemanticExclusion { kind: Some(own), .. }) => own == kind,
            Exclusion::Semantic(SemanticExclusion { class: Some(own), .. }) => own == class.name(),
            Exclusion::Semantic(_) => true,
            Exclusion::Rule(_) => false,
        })
    }

    /// True if it excludes this rule.
    pub(crate) fn names_rule(&self, rule: u32) -> bool {
        let is_it =
            |exclusion: &Exclusion| matches!(exclusion, Exclusion::Rule(term) if term.rule_id == rule);
        self.exclusions.iter().any(is_it)
    }
}

/// A field that something was found in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub(crate) class: Class,
    pub(crate) place: Place,
    pub(crate) name: String,
}

impl Spot {
    fn location(&self) -> String {
        match self.name.as_str() {
            "" => self.place.name().to_owned(),
            name => format!("{}:{name}", self.place.name()),
        }
    }
}

/// What an event objects to.
#[derive(Debug)]
pub(crate) struct Objections {
    /// Fields whose score of a class passes the threshold.
    pub(crate) spots: Vec<Spot>,
    /// Kinds found in each of them, those with the most points first.
    pub(crate) kinds: Vec<Vec<Cow<'static, str>>>,
    /// Rules that scored or decided, with their targets; empty: whatever the rule matches.
    pub(crate) rules: Vec<(u32, String)>,
    /// The path that exclusions can be for.
    pub(crate) path: Option<String>,
}

impl Objections {
    pub(crate) fn of(event: &Event) -> Objections {
        let over = event.scores.semantic.iter().filter(|score| score.outcome != FindingOutcome::Below);
        let spots: BTreeSet<Spot> = over
            .map(|score| Spot { class: score.class, place: score.place, name: score.name.clone() })
            .collect();
        let spots: Vec<Spot> = spots.into_iter().collect();
        let kinds = spots.iter().map(|spot| kinds(event, spot)).collect();
        let mut rules: Vec<(u32, String)> = Vec::new();
        for (rule, target) in objecting(event) {
            let pair = (rule, target.to_owned());
            if !rules.contains(&pair) {
                rules.push(pair);
            }
        }
        Objections { spots, kinds, rules, path: template(&event.request.target) }
    }

    /// All kinds that the alarm is made of.
    pub(crate) fn alarm(&self) -> Vec<&str> {
        self.kinds.iter().flatten().map(|kind| &**kind).collect()
    }

    /// Adds what the next in line objects to, once the first is silenced; true if that is anything new.
    pub(crate) fn add(&mut self, event: &Event) -> bool {
        let more = Objections::of(event);
        let before = (self.spots.len(), self.rules.len());
        for (spot, kinds) in more.spots.into_iter().zip(more.kinds) {
            if !self.spots.contains(&spot) {
                self.spots.push(spot);
                self.kinds.push(kinds);
            }
        }
        for rule in more.rules {
            if !self.rules.contains(&rule) {
                self.rules.push(rule);
            }
        }
        before != (self.spots.len(), self.rules.len())
    }

    /// The widest of what the detector found, and these rules.
    pub(crate) fn with_rules(&self, rules: &[(u32, String)]) -> Candidate {
        let parts = [self.classes(false), self.rules(rules, false)];
        let exclusions = parts.into_iter().flatten().flat_map(|part| part.exclusions).collect();
        Candidate { reach: Reach::Field, exclusions }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spots.is_empty() && self.rules.is_empty()
    }

    /// The fields that exclusions are for, as far as their values can be replaced.
    pub(crate) fn fields<'e>(&self, exclusions: impl Iterator<Item = &'e Exclusion>) -> Vec<Field> {
        let mut fields: Vec<Field> = Vec::new();
        let spots = self.spots.iter().filter_map(|spot| Field::at(spot.place, &spot.name));
        let targets = exclusions.filter_map(|exclusion| match exclusion {
            Exclusion::Rule(term) => Field::of_target(term.target.as_deref()?),
            Exclusion::Semantic(_) => None,
        });
        for field in spots.chain(targets) {
            let is_known = fields.iter().any(|known| match (&field, known) {
                // Rules do not say which of these it is.
                (Field::Argument(name), Field::Query(known) | Field::Form(known) | Field::Part(known)) => {
                    name == known
                }
                (Field::Argument(name), Field::Json(known)) => {
                    name.strip_prefix("json.").unwrap_or(name) == known
                }
                _ => field == *known,
            });
            if !is_known {
                fields.push(field);
            }
        }
        fields
    }

    /// Kinds of each field: so many of those with the most points.
    pub(crate) fn kinds(&self, most: usize) -> Option<Candidate> {
        self.path.as_ref()?;
        let mut exclusions = Vec::new();
        for (spot, kinds) in self.spots.iter().zip(&self.kinds) {
            exclusions.extend(kinds.iter().take(most).map(|kind| self.semantic(spot, Some(&**kind), true)));
        }
        (!exclusions.is_empty()).then_some(Candidate { reach: Reach::Kinds, exclusions })
    }

    /// A single kind of the only field.
    pub(crate) fn kind(&self, kind: usize) -> Option<Candidate> {
        let ([spot], [kinds], Some(_)) = (&self.spots[..], &self.kinds[..], &self.path) else { return None };
        let exclusions = vec![self.semantic(spot, Some(&**kinds.get(kind)?), true)];
        Some(Candidate { reach: Reach::Kinds, exclusions })
    }

    /// The most kinds that a field has.
    pub(crate) fn kinds_max(&self) -> usize {
        self.kinds.iter().map(Vec::len).max().unwrap_or_default()
    }

    /// The classes in their fields, on the path or on all.
    pub(crate) fn classes(&self, on_path: bool) -> Option<Candidate> {
        if self.spots.is_empty() || on_path && self.path.is_none() {
            return None;
        }
        let exclusions = self.spots.iter().map(|spot| self.semantic(spot, None, on_path)).collect();
        Some(Candidate { reach: if on_path { Reach::Class } else { Reach::Field }, exclusions })
    }

    /// These rules in their targets, on the path or on all.
    pub(crate) fn rules(&self, rules: &[(u32, String)], on_path: bool) -> Option<Candidate> {
        if on_path && self.path.is_none() {
            return None;
        }
        let exclusion = |(rule_id, target): &(u32, String)| {
            Exclusion::Rule(RuleExclusion {
                rule_id: *rule_id,
                target: Some(target.clone()).filter(|target| !target.is_empty()),
                path: self.path.clone().filter(|_| on_path),
                ..RuleExclusion::default()
            })
        };
        let exclusions: Vec<Exclusion> = rules.iter().map(exclusion).collect();
        let reach = if on_path { Reach::Rules } else { Reach::RulesEverywhere };
        (!exclusions.is_empty()).then_some(Candidate { reach, exclusions })
    }

    fn semantic(&self, spot: &Spot, kind: Option<&str>, on_path: bool) -> Exclusion {
        Exclusion::Semantic(SemanticExclusion {
            class: kind.is_none().then(|| spot.class.name().to_owned()),
            kind: kind.map(str::to_owned),
            location: Some(spot.location()),
            path: self.path.clone().filter(|_| on_path),
            ..SemanticExclusion::default()
        })
    }
}

/// Rules that object to a value, with their targets as exclusions have them; empty: all that a rule matches.
pub(crate) fn objecting(event: &Event) -> impl Iterator<Item = (u32, &str)> {
    event.matches.iter().filter_map(|RuleMatch { rule, target, points, .. }| {
        let counts = *points > 0 || event.verdict.rule_id == Some(rule.rule_id);
        let target = match target.starts_with("TX") {
            // It scores by what it has put into `TX` itself, so it is known by no value of the request.
            true if *points > 0 => "",
            // It only compares scores: what made them is excluded.
            true => return None,
            false if target.is_empty() => return None,
            false => target,
        };
        counts.then_some((rule.rule_id.0, target))
    })
}

/// The kinds found in a field, those with the most points first.
fn kinds(event: &Event, spot: &Spot) -> Vec<Cow<'static, str>> {
    let is_there =
        |found: &&Finding| found.class == spot.class && found.place == spot.place && found.name == spot.name;
    let mut found: Vec<&Finding> = event.findings.iter().filter(is_there).collect();
    found.sort_by(|a, b| b.points.total_cmp(&a.points));
    let mut kinds = Vec::new();
    for finding in found {
        if !kinds.contains(&finding.kind) {
            kinds.push(finding.kind.clone());
        }
    }
    kinds
}
