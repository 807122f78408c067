//! Rules that did not run, values that rules were not shown, and the tests of one rule.

use std::collections::BTreeMap;

use portcullis_engine::{NotRun, Note, Plan, RuleIndex, Transaction};
use portcullis_event::{limits, text};
use serde::Serialize;

/// Rules that did not run for one reason.
#[derive(Debug, Serialize)]
pub struct Group {
    /// The reason: `skipped by rule 911012`.
    pub why: String,
    /// The rules.
    pub rules: Vec<u32>,
}

/// A value that rules were not shown, for one reason.
#[derive(Debug, Serialize)]
pub struct LeftOut {
    /// The value's name.
    pub target: String,
    /// The reason.
    pub why: String,
    /// The rules.
    pub rules: Vec<u32>,
}

/// The values that one rule saw.
#[derive(Debug, Serialize)]
pub struct Watched {
    /// Its id.
    pub rule_id: u32,
    /// The reason why it did not run; nothing if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_run: Option<String>,
    /// Each value that an operator of it looked at.
    pub tests: Vec<Test>,
}

/// One look of an operator at a value.
#[derive(Debug, Serialize)]
pub struct Test {
    /// Link of the rule's chain, from 0.
    pub link: u32,
    /// The value's name.
    pub target: String,
    /// The value after transformations.
    pub value: String,
    /// Transformations of the link.
    pub transformations: Vec<&'static str>,
    /// The operator as written.
    pub operator: String,
    /// True if the link matched.
    pub matched: bool,
}

/// The rules of `plan` that did not run, by reason; dead ones first.
pub fn groups(plan: &Plan, transaction: &Transaction) -> Vec<Group> {
    let mut by_reason: BTreeMap<NotRun, Vec<u32>> = BTreeMap::new();
    for note in notes(transaction) {
        if let Note::NotRun { rule, why, .. } = note {
            by_reason.entry(*why).or_default().push(plan.rule(*rule).id.0);
        }
    }
    let dead: Vec<u32> = plan.dead.iter().map(|dead| plan.rule(dead.rule).id.0).collect();
    let dead = (!dead.is_empty()).then(|| Group {
        why: "dead with these settings (see portcullis rules --state dead)".to_owned(),
        rules: dead,
    });
    let others = by_reason.into_iter().map(|(why, rules)| Group { why: reason(plan, why), rules });
    dead.into_iter().chain(others).collect()
}

/// Values kept from rules, in the order in which they were first kept from one.
pub fn left_out(plan: &Plan, transaction: &Transaction) -> Vec<LeftOut> {
    let mut all: Vec<LeftOut> = Vec::new();
    for note in notes(transaction) {
        let Note::Excluded { rule, target, by, .. } = note else { continue };
        let target = text(target, limits::TARGET_NAME_BYTES_MAX);
        let why = match by {
            Some(by) => format!("rule {} excludes it (ctl)", plan.rule(*by).id),
            None => "their own targets exclude it".to_owned(),
        };
        let rule = plan.rule(*rule).id.0;
        match all.iter_mut().find(|one| one.target == target && one.why == why) {
            Some(one) if one.rules.contains(&rule) => {}
            Some(one) => one.rules.push(rule),
            None => all.push(LeftOut { target, why, rules: vec![rule] }),
        }
    }
    all
}

/// Returns the trace of the rule with index `rule`.
pub fn watched(plan: &Plan, transaction: &Transaction, rule: RuleIndex) -> Watched {
    let dead = plan.dead.iter().find(|dead| dead.rule == rule);
    let passed_over = notes(transaction).iter().find_map(|note| {
        if let Note::NotRun { rule: other, why, .. } = note
            && *other == rule
        {
            Some(reason(plan, *why))
        } else {
            None
        }
    });
    let links = plan.links_of(plan.rule(rule));
    let test = |note: &Note| {
        if let Note::Tested { link, target, value, matched } = note {
            let at = &links[*link as usize];
            Some(Test {
                link: *link,
                target: text(target, limits::TARGET_NAME_BYTES_MAX),
                value: text(value, limits::VALUE_BYTES_MAX),
                transformations: plan.chains.transformations(at.chain).iter().map(|t| t.name()).collect(),
                operator: format!("{}{}", if at.negated { "!" } else { "" }, at.operator_text),
                matched: *matched,
            })
        } else {
            None
        }
    };
    Watched {
        rule_id: plan.rule(rule).id.0,
        not_run: dead.map(|dead| format!("dead: {}", plan.dead_cause(&dead.why))).or(passed_over),
        tests: notes(transaction).iter().filter_map(test).collect(),
    }
}

fn notes(transaction: &Transaction) -> &[Note] {
    transaction.trace().map_or(&[], |trace| &trace.notes)
}

fn reason(plan: &Plan, why: NotRun) -> String {
    let id = |rule: RuleIndex| plan.rule(rule).id;
    match why {
        NotRun::Skipped(by) => format!("skipped by rule {}", id(by)),
        NotRun::SwitchedOff(by) => format!("switched off by rule {} (ctl)", id(by)),
        NotRun::Ended(by) => format!("not reached: rule {} ended the phase", id(by)),
    }
}
