//! Rules in order: items, forms, operators, matches.

use std::sync::Arc;

use portcullis_types::{Phase, Span, Variable};
use portcullis_values::{ValueId, Values};

use crate::collect::Item;
use crate::operator::{Captures, Operator};
use crate::outside::{Place, Progress};
use crate::patterns::PatternError;
use crate::plan::{Link, Outcome, Plan, Rule, RuleIndex};
use crate::prefilter::Scan;
use crate::record::{Match, escape_key, target_name};
use crate::trace::NotRun;
use crate::transaction::Transaction;
use crate::tx_store::TxValue;
use crate::work::MATCH_UNITS;
use crate::{AllowScope, ChainId, Class, RuleEngine};

/// The last match: `MATCHED_VAR`, `MATCHED_VAR_NAME`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Matched {
    pub(crate) variable: Option<Variable>,
    pub(crate) count: bool,
    pub(crate) key: Span,
    pub(crate) value: Span,
}

impl Matched {
    pub(crate) fn name(&self, store: &Values) -> Vec<u8> {
        match self.variable {
            None => Vec::new(),
            // A count goes by the bare name of its collection (execute_operator).
            Some(variable) if self.count => variable.name().as_bytes().to_vec(),
            // The key of a matched variable is a name already.
            Some(Variable::MatchedVars | Variable::MatchedVarsNames) => store.text(self.key).to_vec(),
            Some(variable) => target_name(variable, false, &escape_key(store.text(self.key))),
        }
    }
}

/// Forms of values longer than this are not kept once an operator has said no: memory stays near the body's size.
const KEPT_FORM_BYTES_MAX: usize = 64 * 1024;

impl Transaction {
    /// Runs the rules of `phase`; an interruption ends the transaction.
    pub(crate) fn run_phase(&mut self, phase: Phase) -> Progress {
        self.abandon();
        self.phase = phase;
        if self.rule_engine == RuleEngine::Off || self.is_allowed(phase) {
            return Progress::Done(None);
        }
        // An explanation tells of the rules that did not match, too: it is given all of them.
        if self.trace.is_none() {
            let plan = self.take_plan();
            self.scan(&plan);
            self.put_back(plan);
        }
        self.run_steps(Place::default())
    }

    /// Finds out which rules of the phase the values that are new could match.
    fn scan(&mut self, plan: &Arc<Plan>) {
        let state = self.prefilter_state.get_or_insert_default();
        let memo = self.memo.get_or_insert_default();
        Scan::new(plan, &mut self.store, &mut self.patterns, state).run(self.phase, plan, memo);
        if let Some(error) = self.patterns.take_error() {
            self.note_pattern_error(error);
            self.patterns.work().reserve();
        }
    }

    /// Runs the steps of the phase from `place` on: its beginning, or a link that has its answers now.
    pub(crate) fn run_steps(&mut self, place: Place) -> Progress {
        let plan = self.take_plan();
        let progress = self.run_steps_of(&plan, place);
        self.put_back(plan);
        progress
    }

    fn run_steps_of(&mut self, plan: &Plan, mut place: Place) -> Progress {
        let phase = self.phase;
        let steps = &plan.steps[usize::from(phase.number()) - 1];
        let mut at = place.step;
        loop {
            if self.trace.is_none() {
                let next = match place.resumed {
                    true => Some(at),
                    false => self.run_settings(plan, at),
                };
                let Some(next) = next else { break };
                at = next;
            }
            if let Some(end) = self.take_prelude(plan, at) {
                at = end;
                continue;
            }
            let Some(step) = steps.get(at) else { break };
            let begin = std::mem::take(&mut place);
            at += 1;
            if !begin.resumed && self.removed_rules.contains(step.rule.0) {
                self.trace_switched_off(plan, step.rule);
                continue;
            }
            if self.trace.is_none() && !begin.resumed {
                match self.run_short(plan, step.rule) {
                    Some(false) => continue,
                    Some(true) => {
                        if step.skip_to != u32::MAX {
                            at = step.skip_to as usize;
                        }
                        continue;
                    }
                    None => {}
                }
            }
            if self.run_sure(plan, at - 1, step.rule) {
                if step.skip_to != u32::MAX {
                    at = step.skip_to as usize;
                }
                continue;
            }
            if self.is_in_vain(plan, at - 1) {
                self.capture_last(plan, step.rule);
                continue;
            }
            match self.run_rule(plan, step.rule, begin) {
                Outcome::NoMatch => continue,
                Outcome::Match => {}
                Outcome::Ask { link } => return self.pause(Place { step: at - 1, link, resumed: true }),
            }
            if self.interruption.is_some() && phase != Phase::Logging {
                self.trace_not_run(&steps[at..], NotRun::Ended(step.rule));
                return Progress::Done(self.interruption.clone());
            }
            // Whatever its scope, an allow ends the phase it is given in.
            if self.rule_engine == RuleEngine::Off || self.rule_ended {
                self.trace_not_run(&steps[at..], NotRun::Ended(step.rule));
                return Progress::Done(None);
            }
            if step.skip_to != u32::MAX {
                self.trace_not_run(&steps[at..step.skip_to as usize], NotRun::Skipped(step.rule));
                at = step.skip_to as usize;
            }
        }
        Progress::Done(None)
    }

    /// True if an `allow` lets the rest of `phase` through.
    pub fn is_allowed(&self, phase: Phase) -> bool {
        match self.allow {
            None => false,
            Some((AllowScope::Transaction, _)) => phase != Phase::Logging,
            Some((AllowScope::Phase, at)) => phase == at,
            Some((AllowScope::Request, _)) => phase <= Phase::RequestBody,
        }
    }

    fn run_rule(&mut self, plan: &Plan, index: RuleIndex, from: Place) -> Outcome {
        let rule = plan.rule(index);
        if !from.resumed {
            self.current_rule = Some(index);
            self.rule_ended = false;
            self.rule_changes = self.changes.len() as u32;
            self.store.clear_class(Class::MatchedVars);
            self.store.clear_class(Class::MatchedVarsNames);
        }
        for (at, link) in (0..).zip(plan.links_of(rule)).skip(from.link as usize) {
            let has_asked = from.resumed && at == from.link;
            if link.operator.asks() && !has_asked && self.must_ask(plan, index, link, at) {
                return Outcome::Ask { link: at };
            }
            if !self.run_link(plan, index, link, at, at + 1 == rule.link_count) {
                return Outcome::NoMatch;
            }
        }
        Outcome::Match
    }

    /// True if at least one value matched. Every match runs the link's actions; those of the last link
    /// complete the rule, each of them.
    fn run_link(&mut self, plan: &Plan, rule: RuleIndex, link: &Link, at: u32, last: bool) -> bool {
        if self.trace.is_none()
            && let Some(matched) = self.run_shortcut(plan, rule, link, at, last)
        {
            return matched;
        }
        let mut argument = std::mem::take(&mut self.argument);
        self.expand_argument(plan, link, &mut argument);
        let matched = !(self.trace.is_none() && self.cannot_match(link, &argument))
            && self.test_items(plan, rule, link, at, last, &mut argument);
        self.argument = argument;
        matched
    }

    fn expand_argument(&mut self, plan: &Plan, link: &Link, argument: &mut Vec<u8>) {
        if let Some(template) = link.operator.argument() {
            argument.clear();
            self.expand(plan, template, argument);
        }
    }

    /// The quick no: a number of values compared with another number.
    fn cannot_match(&self, link: &Link, argument: &[u8]) -> bool {
        let [target] = link.targets.include.as_slice() else { return false };
        link.chain == ChainId::IDENTITY
            && link.operator.is_numeric()
            && self
                .count(target)
                .is_some_and(|count| link.operator.test_number(count, argument) == link.negated)
    }

    fn test_items(
        &mut self,
        plan: &Plan,
        rule: RuleIndex,
        link: &Link,
        at: u32,
        last: bool,
        argument: &mut Vec<u8>,
    ) -> bool {
        let mut items = std::mem::take(&mut self.items);
        items.clear();
        self.collect_link(plan, rule, link, at, &mut items);
        let mut captures = Captures::default();
        let mut any = false;
        'items: for item in &items {
            if self.is_taken_away(plan, rule, at, item) {
                self.trace_excluded(plan, rule, at, item);
                continue;
            }
            let (mark, news) = (self.store.mark(item.value), self.store.news());
            let forms = self.forms_to_test(plan, link, item.value);
            let (mut hit, mut captured) = (false, false);
            for form in forms.iter() {
                captures.clear();
                let Some(found) = self.test_form(link, item, form, argument, &mut captures) else { continue };
                if found && link.capture {
                    // Also where the operator is negated and the link does not match.
                    self.set_captures(form, &captures);
                    captured = true;
                }
                self.trace_test(rule, at, item, form, found != link.negated);
                if found == link.negated {
                    continue;
                }
                (hit, any) = (true, true);
                self.on_match(plan, rule, link, at, last, item, form, argument, &captures);
                if self.rule_ended {
                    break 'items;
                }
                // Only a match can change what the macros of the argument stand for.
                self.expand_argument(plan, link, argument);
                // Or exclude the very value: its other forms are not looked at then.
                if self.is_taken_away(plan, rule, at, item) {
                    break;
                }
            }
            // Captures point into the form, and what a pattern's failure is told by lies behind it.
            let is_done = !hit && !captured && self.store.news() == news;
            if is_done && self.store.data(item.value).len() > KEPT_FORM_BYTES_MAX {
                self.store.rewind(mark);
            }
        }
        self.items = items;
        any
    }

    /// True if the operator finds something; `None` if it had to ask and nobody knew, or the transaction may do no more work.
    fn test_form(
        &mut self,
        link: &Link,
        item: &Item,
        form: Span,
        argument: &[u8],
        captures: &mut Captures,
    ) -> Option<bool> {
        if link.operator.asks() {
            return self.test_answer(link, item, form, captures);
        }
        if let crate::Operator::GeoLookup(database) = &link.operator {
            return Some(self.geo_lookup(database, form));
        }
        self.patterns.charge(self.store.take_transformed());
        let text = self.store.text(form);
        let found = link.operator.test(text, argument, link.capture, captures, &mut self.patterns);
        if let Some(error) = self.patterns.take_error() {
            self.note_pattern_error(error);
        }
        (!self.patterns.is_spent() || link.operator.is_numeric()).then_some(found)
    }

    pub(crate) fn forms_to_test(&mut self, plan: &Plan, link: &Link, value: ValueId) -> Forms {
        if !link.multi_match {
            return Forms::One(self.store.form(&plan.chains, value, link.chain));
        }
        // The value itself, then each form that a transformation changed.
        let mut forms = vec![self.store.data(value)];
        let mut path = Vec::new();
        let mut at = link.chain;
        while let Some(node) = plan.chains.node(at) {
            path.push(at);
            at = node.parent;
        }
        for &chain in path.iter().rev() {
            let form = self.store.form(&plan.chains, value, chain);
            if forms.last().is_none_or(|&before| self.store.text(before) != self.store.text(form)) {
                forms.push(form);
            }
        }
        Forms::Many(forms)
    }

    /// True if `ctl:ruleRemoveTarget...` keeps the value from the rule.
    pub(crate) fn is_taken_away(&self, plan: &Plan, rule: RuleIndex, at: u32, item: &Item) -> bool {
        // Only the link that has the id, tags and message (msre_ruleset_rule_matches_exception).
        at == 0
            && self.removed_targets.iter().any(|&index| {
                let removal = &plan.ctl_targets[index as usize];
                removal.rules.contains(rule.0) && self.is_named(item, removal.variable, &removal.filter)
            })
    }

    #[allow(clippy::too_many_arguments)]
    pub(crate) fn on_match(
        &mut self,
        plan: &Plan,
        rule: RuleIndex,
        link: &Link,
        at: u32,
        last: bool,
        item: &Item,
        form: Span,
        argument: &[u8],
        captures: &Captures,
    ) {
        self.patterns.charge(MATCH_UNITS);
        let form = match &link.operator {
            Operator::Rsub(substitution) => self.substitute(plan, substitution, item, form, argument),
            _ => form,
        };
        self.matched =
            Matched { variable: Some(item.variable), count: item.count, key: item.key, value: form };
        if plan.rule(rule).link_count > 1 {
            let name = self.matched.name(&self.store);
            let name = self.store.push(&name);
            self.store.add(Class::MatchedVars, name, form);
            self.store.add(Class::MatchedVarsNames, name, name);
        }
        let severity = plan.rule(rule).metadata.severity.map(|severity| severity.number());
        if let Some(severity) = severity.filter(|&s| last && s > 0 && s < self.highest_severity) {
            self.highest_severity = severity;
        }
        self.note_matched_bytes(link, form, argument, captures);
        self.run_acts(plan, &link.acts);
        if last {
            let found = captures.groups[0].or_else(|| {
                let wanted = plan.rule(rule).log && !link.negated;
                wanted.then(|| link.operator.locate(self.store.text(form), argument)).flatten()
            });
            self.complete(plan, rule, link, at, (item, form, found));
        }
    }

    /// True if the first link of the rule at this step matches, as far as it does, for nothing.
    fn is_in_vain(&self, plan: &Plan, step: usize) -> bool {
        let is_seen = self.trace.is_some() || self.keeps_quiet;
        !is_seen
            && self
                .prefilter_state
                .as_deref()
                .is_some_and(|prefilter_state| prefilter_state.is_in_vain(&plan.prefilter, self.phase, step))
    }

    /// All that is left of a rule whose first link matches in vain.
    fn capture_last(&mut self, plan: &Plan, rule: RuleIndex) {
        let link = &plan.links_of(plan.rule(rule))[0];
        if self.last_of_class(link).is_some_and(|item| self.capture(plan, rule, link, &item)) {
            return;
        }
        let mut items = std::mem::take(&mut self.items);
        items.clear();
        self.collect_link(plan, rule, link, 0, &mut items);
        items.iter().rev().find(|item| self.capture(plan, rule, link, item));
        self.items = items;
    }

    /// True if the first link of the rule matches the value; its captures are left behind then.
    fn capture(&mut self, plan: &Plan, rule: RuleIndex, link: &Link, item: &Item) -> bool {
        let form = self.store.form(&plan.chains, item.value, link.chain);
        let mut captures = Captures::default();
        let is_match = !self.is_taken_away(plan, rule, 0, item)
            && self.test_form(link, item, form, b"", &mut captures) == Some(true);
        if is_match {
            self.set_captures(form, &captures);
        }
        is_match
    }

    /// `TX:0` to `TX:9`. Groups before the last one that took part are set, if only to the empty text; those behind
    /// it vanish.
    fn set_captures(&mut self, form: Span, captures: &Captures) {
        let first = match &captures.text {
            Some(text) => Some(self.store.push(text)),
            None => captures.groups[0].map(|group| within(form, group)),
        };
        let Some(first) = first else { return };
        self.tx.renew_slot(crate::TxSlot(0), TxValue::Text(first));
        if captures.keeps_others {
            return;
        }
        let last = captures.groups.iter().rposition(Option::is_some).unwrap_or(0);
        for (at, group) in captures.groups.iter().enumerate().skip(1) {
            let value = match group {
                Some(group) => TxValue::Text(within(form, *group)),
                None if at < last => TxValue::Text(Span::default()),
                None => TxValue::Unset,
            };
            self.tx.renew_slot(crate::TxSlot(at as u32), value);
        }
        for (at, group) in (10..).zip(&captures.more) {
            self.set_tx(at.to_string().as_bytes(), TxValue::Text(within(form, *group)));
        }
    }

    /// What a rule can see of a pattern that was given up or could not be used: names of ModSecurity 2 and 3.
    pub(crate) fn note_pattern_error(&mut self, error: PatternError) {
        self.store.set_scalar(Variable::MscPcreError, b"1");
        if error == PatternError::Exhausted {
            self.store.set_scalar(Variable::MscPcreLimitsExceeded, b"1");
            self.set_tx(b"MSC_PCRE_LIMITS_EXCEEDED", TxValue::Int(1));
        }
    }

    /// A match of the last link: the rule as a whole matched.
    fn complete(
        &mut self,
        plan: &Plan,
        index: RuleIndex,
        link: &Link,
        at: u32,
        (item, form, found): (&Item, Span, Option<Span>),
    ) {
        let rule = plan.rule(index);
        self.audit.relevant |= rule.audit_log;
        let shown = rule.log || rule.audit_log;
        let mut expanded = |template: Option<&crate::Template>| {
            let template = template.filter(|_| shown && self.matches.len() < Transaction::MATCHES_MAX)?;
            Some(self.expand_to_store(plan, template))
        };
        let texts = (expanded(rule.metadata.msg.as_ref()), expanded(rule.metadata.log_data.as_ref()));
        let raw = self.store.data(item.value);
        self.remember(plan, index, link, at, (item, raw, form, found), texts);
        if !self.is_withheld(plan, index) {
            self.disrupt(plan, index);
        }
    }

    /// Notes that a rule matched: the item with its value as it came, as the operator saw it and what that found there; `msg`
    /// and `logdata`.
    pub(crate) fn remember(
        &mut self,
        plan: &Plan,
        rule: RuleIndex,
        link: &Link,
        at: u32,
        (item, raw, value, found): (&Item, Span, Span, Option<Span>),
        (msg, log_data): (Option<Span>, Option<Span>),
    ) {
        let first_change = self.rule_changes;
        self.rule_changes = self.changes.len() as u32;
        let Rule { log, audit_log, disruption, .. } = plan.rule(rule);
        let is_quiet = !log && !audit_log && !Match::is_disruptive(disruption);
        if is_quiet && !self.keeps_quiet {
            return;
        }
        if self.matches.len() >= Transaction::MATCHES_MAX {
            self.matches_dropped += 1;
            return;
        }
        // `SecAction` looks at nothing that is worth showing.
        let is_shown = !link.unconditional;
        let shown = |span: Span| if is_shown { span } else { Span::default() };
        self.matches.push(Match {
            rule,
            phase: self.phase,
            variable: is_shown.then_some(item.variable),
            count: is_shown && item.count,
            key: shown(item.key),
            raw: shown(raw),
            value: shown(value),
            found: found.filter(|_| is_shown),
            chain: link.chain,
            link: at,
            msg,
            log_data,
            log: *log,
            audit_log: *audit_log,
            disruptive: Match::is_disruptive(disruption),
            first_change,
            change_count: self.changes.len() as u32 - first_change,
        });
    }
}

/// `part` of `whole`, in the transaction's bytes.
fn within(whole: Span, part: Span) -> Span {
    Span { start: whole.start + part.start, end: whole.start + part.end }
}

/// The forms of one value that a link tests.
pub(crate) enum Forms {
    One(Span),
    Many(Vec<Span>),
}

impl Forms {
    pub(crate) fn iter(&self) -> impl Iterator<Item = Span> + '_ {
        match self {
            Forms::One(form) => std::slice::from_ref(form).iter().copied(),
            Forms::Many(forms) => forms.iter().copied(),
        }
    }
}
