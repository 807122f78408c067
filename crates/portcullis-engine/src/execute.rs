//! Rules in order: items, forms, operators, matches.

use std::sync::Arc;

use portcullis_types::{Phase, Span, Variable};

use crate::operator::Captures;
use crate::plan::{Disruption, KeyFilter, Link, Outcome, Plan, RuleIndex, Target, XmlPath};
use crate::record::{Match, target_name};
use crate::store::{Store, ValueId, classes_of};
use crate::transaction::{Interruption, Transaction};
use crate::tx_store::{TxValue, to_int};
use crate::{AllowScope, ChainId, Class, RuleEngine};

/// A value that a link looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) variable: Variable,
    pub(crate) count: bool,
    pub(crate) key: Span,
    pub(crate) value: ValueId,
}

/// The last match: `MATCHED_VAR`, `MATCHED_VAR_NAME`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Matched {
    pub(crate) variable: Option<Variable>,
    pub(crate) count: bool,
    pub(crate) key: Span,
    pub(crate) value: Span,
}

impl Matched {
    pub(crate) fn name(&self, store: &Store) -> Vec<u8> {
        self.variable
            .map_or_else(Vec::new, |variable| target_name(variable, self.count, store.text(self.key)))
    }
}

/// Forms of values longer than this are not kept once an operator has said no: memory stays near the body's size.
const KEPT_FORM_BYTES_MAX: usize = 64 * 1024;

impl Transaction {
    /// Runs the rules of `phase`; what it returns ends the transaction.
    pub(crate) fn run_phase(&mut self, phase: Phase) -> Option<Interruption> {
        let plan = Arc::clone(&self.plan);
        self.phase = phase;
        if self.rule_engine == RuleEngine::Off || self.allowed(phase) {
            return None;
        }
        let steps = &plan.steps[usize::from(phase.number()) - 1];
        let (mut at, mut skip) = (0, 0);
        while let Some(step) = steps.get(at) {
            at += 1;
            if skip > 0 {
                skip -= 1;
                continue;
            }
            if self.removed_rules.contains(step.rule.0) {
                continue;
            }
            if self.run_rule(&plan, step.rule) == Outcome::NoMatch {
                continue;
            }
            if self.interruption.is_some() && phase != Phase::Logging {
                return self.interruption.clone();
            }
            if self.rule_engine == RuleEngine::Off || self.allowed(phase) {
                return None;
            }
            if step.skip_to != u32::MAX {
                at = step.skip_to as usize;
            } else {
                skip = plan.rule(step.rule).skip;
            }
        }
        None
    }

    /// True if an `allow` lets the rest of `phase` through.
    fn allowed(&self, phase: Phase) -> bool {
        match self.allow {
            None => false,
            Some((AllowScope::Transaction, _)) => phase != Phase::Logging,
            Some((AllowScope::Phase, at)) => phase == at,
            Some((AllowScope::Request, _)) => phase <= Phase::RequestBody,
        }
    }

    fn run_rule(&mut self, plan: &Plan, index: RuleIndex) -> Outcome {
        let rule = plan.rule(index);
        self.current_rule = Some(index);
        self.rule_changes = self.changes.len() as u32;
        if rule.link_count > 1 {
            self.store.clear_class(Class::MatchedVars);
            self.store.clear_class(Class::MatchedVarsNames);
        }
        for (at, link) in plan.links_of(rule).iter().enumerate() {
            let last = at as u32 + 1 == rule.link_count;
            if !self.run_link(plan, index, link, at as u32, last) {
                return Outcome::NoMatch;
            }
        }
        Outcome::Match
    }

    /// True if at least one value matched. Every match runs the link's actions; those of the last link
    /// complete the rule, each of them.
    fn run_link(&mut self, plan: &Plan, rule: RuleIndex, link: &Link, at: u32, last: bool) -> bool {
        if link.unconditional {
            self.run_acts(plan, &link.acts);
            if last {
                self.complete(plan, rule, link, at, None);
            }
            return true;
        }
        let mut argument = std::mem::take(&mut self.argument);
        argument.clear();
        if let Some(template) = link.operator.argument() {
            self.expand(plan, template, &mut argument);
        }
        let matched =
            !self.cannot_match(link, &argument) && self.test_items(plan, rule, link, at, last, &argument);
        self.argument = argument;
        matched
    }

    /// The quick no: one number compared with another, as in nearly every rule on `TX`.
    fn cannot_match(&self, link: &Link, argument: &[u8]) -> bool {
        let [target] = link.targets.include.as_slice() else { return false };
        let Some(slot) = target.slot else { return false };
        if link.chain != ChainId::IDENTITY || !link.operator.is_numeric() {
            return false;
        }
        let value = self.tx.slot(slot);
        let number = match (target.count, value) {
            (true, value) => i64::from(value != TxValue::Unset),
            (false, TxValue::Unset) => return true,
            (false, TxValue::Int(number)) => number,
            (false, TxValue::Text(span)) => to_int(self.store.text(span)),
        };
        link.operator.test_number(number, argument) == link.negated
    }

    fn test_items(
        &mut self,
        plan: &Plan,
        rule: RuleIndex,
        link: &Link,
        at: u32,
        last: bool,
        argument: &[u8],
    ) -> bool {
        let mut items = std::mem::take(&mut self.items);
        items.clear();
        for target in &link.targets.include {
            self.collect(plan, target, &mut items);
        }
        let mut captures = Captures::default();
        let mut any = false;
        'items: for item in &items {
            if self.excluded(plan, rule, link, item) {
                continue;
            }
            let mark = self.store.mark(item.value);
            let forms = self.forms_to_test(plan, link, item.value);
            let mut hit = false;
            for form in forms.iter() {
                captures.clear();
                if link.operator.test(self.store.text(form), argument, link.capture, &mut captures)
                    == link.negated
                {
                    continue;
                }
                (hit, any) = (true, true);
                self.on_match(plan, rule, link, at, last, item, form, argument, &captures);
                if self.interruption.is_some() && self.phase != Phase::Logging {
                    break 'items;
                }
            }
            if !hit && self.store.data(item.value).len() > KEPT_FORM_BYTES_MAX {
                self.store.rewind(mark);
            }
        }
        self.items = items;
        any
    }

    fn forms_to_test(&mut self, plan: &Plan, link: &Link, value: ValueId) -> Forms {
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

    fn excluded(&self, plan: &Plan, rule: RuleIndex, link: &Link, item: &Item) -> bool {
        let key = self.store.text(item.key);
        let hits = |variable: Variable, filter: &KeyFilter| {
            variable == item.variable
                && !item.count
                && match filter {
                    KeyFilter::Xml(_) => true,
                    filter => filter.accepts(key),
                }
        };
        link.targets.exclude.iter().any(|(variable, filter)| hits(*variable, filter))
            || self.removed_targets.iter().any(|&index| {
                let removal = &plan.ctl_targets[index as usize];
                removal.rules.contains(rule.0) && hits(removal.variable, &removal.filter)
            })
    }

    /// Adds the values of `target` to `items`.
    pub(crate) fn collect(&mut self, plan: &Plan, target: &Target, items: &mut Vec<Item>) {
        let before = items.len();
        match target.variable {
            Variable::Tx => self.collect_tx(plan, target, items),
            Variable::Xml => self.collect_xml(&target.filter, items),
            Variable::Rule => self.collect_rule(plan, &target.filter, items),
            variable if !classes_of(variable).is_empty() => {
                for &class in classes_of(variable) {
                    for value in self.store.class(class) {
                        let key = self.store.key(value);
                        if matches!(target.filter, KeyFilter::All)
                            || target.filter.accepts(self.store.text(key))
                        {
                            items.push(Item { variable, count: false, key, value });
                        }
                    }
                }
            }
            variable => {
                if self.is_open(variable) {
                    self.collect_open(variable, &target.filter, items);
                } else if let Some(value) = self.scalar(variable) {
                    items.push(Item { variable, count: false, key: Span::default(), value });
                }
            }
        }
        if target.count {
            let count = items.len() - before;
            items.truncate(before);
            let key = match &target.filter {
                KeyFilter::Key(key) => self.store.push(key),
                _ => Span::default(),
            };
            let data = self.store.push(count.to_string().as_bytes());
            let value = self.store.temporary(key, data);
            items.push(Item { variable: target.variable, count: true, key, value });
        }
    }

    fn collect_tx(&mut self, plan: &Plan, target: &Target, items: &mut Vec<Item>) {
        if let Some(slot) = target.slot {
            self.push_tx(&plan.tx_names[slot.0 as usize], self.tx.slot(slot), items);
            return;
        }
        for (at, name) in plan.tx_names.iter().enumerate() {
            let value = self.tx.slot(crate::TxSlot(at as u32));
            if value != TxValue::Unset && target.filter.accepts(name) {
                self.push_tx(name, value, items);
            }
        }
        for at in 0..self.tx.dynamic().len() {
            let (key, value) = self.tx.dynamic()[at];
            if value != TxValue::Unset && target.filter.accepts(self.store.text(key)) {
                let data = self.tx_text(value);
                let value = self.store.temporary(key, data);
                items.push(Item { variable: Variable::Tx, count: false, key, value });
            }
        }
    }

    fn push_tx(&mut self, name: &[u8], value: TxValue, items: &mut Vec<Item>) {
        if value == TxValue::Unset {
            return;
        }
        let key = self.store.push(name);
        let data = self.tx_text(value);
        let value = self.store.temporary(key, data);
        items.push(Item { variable: Variable::Tx, count: false, key, value });
    }

    pub(crate) fn tx_text(&mut self, value: TxValue) -> Span {
        match value {
            TxValue::Unset => Span::default(),
            TxValue::Text(span) => span,
            TxValue::Int(number) => self.store.push(number.to_string().as_bytes()),
        }
    }

    fn collect_xml(&mut self, filter: &KeyFilter, items: &mut Vec<Item>) {
        let class = match filter {
            KeyFilter::Xml(XmlPath::Attributes) => Class::XmlAttributes,
            _ => Class::XmlText,
        };
        for value in self.store.class(class) {
            items.push(Item { variable: Variable::Xml, count: false, key: Span::default(), value });
        }
    }

    fn collect_rule(&mut self, plan: &Plan, filter: &KeyFilter, items: &mut Vec<Item>) {
        let (Some(index), KeyFilter::Key(key)) = (self.current_rule, filter) else { return };
        let rule = plan.rule(index);
        let text = match key.to_ascii_lowercase().as_slice() {
            b"id" => Some(rule.id.to_string().into_bytes()),
            b"severity" => rule.metadata.severity.map(|s| s.number().to_string().into_bytes()),
            b"rev" => rule.metadata.rev.as_ref().map(|rev| rev.as_bytes().to_vec()),
            b"msg" => rule.metadata.msg.as_ref().map(|msg| {
                let mut out = Vec::new();
                self.expand(plan, msg, &mut out);
                out
            }),
            _ => None,
        };
        if let Some(text) = text {
            let key = self.store.push(key);
            let data = self.store.push(&text);
            let value = self.store.temporary(key, data);
            items.push(Item { variable: Variable::Rule, count: false, key, value });
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn on_match(
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
        self.matched =
            Matched { variable: Some(item.variable), count: item.count, key: item.key, value: form };
        if plan.rule(rule).link_count > 1 {
            let name = self.matched.name(&self.store);
            let name = self.store.push(&name);
            self.store.add(Class::MatchedVars, name, form);
            self.store.add(Class::MatchedVarsNames, name, name);
        }
        if link.capture {
            self.set_captures(form, captures);
        }
        let severity = plan.rule(rule).metadata.severity.map(|severity| severity.number());
        if let Some(severity) = severity.filter(|&s| last && s > 0 && s < self.highest_severity) {
            self.highest_severity = severity;
        }
        self.run_acts(plan, &link.acts);
        if last {
            let found = captures.groups[0].or_else(|| {
                let wanted = plan.rule(rule).log && !link.negated;
                wanted.then(|| link.operator.locate(self.store.text(form), argument)).flatten()
            });
            self.complete(plan, rule, link, at, Some((item, form, found)));
        }
    }

    fn set_captures(&mut self, form: Span, captures: &Captures) {
        for (slot, group) in (0..).zip(captures.groups) {
            let value = group.map_or(TxValue::Unset, |group| {
                TxValue::Text(Span { start: form.start + group.start, end: form.start + group.end })
            });
            self.tx.set_slot(crate::TxSlot(slot), value);
        }
        if let Some(text) = &captures.text {
            let span = self.store.push(text);
            self.tx.set_slot(crate::TxSlot(0), TxValue::Text(span));
        }
    }

    /// A match of the last link: the rule as a whole matched.
    fn complete(
        &mut self,
        plan: &Plan,
        index: RuleIndex,
        link: &Link,
        at: u32,
        what: Option<(&Item, Span, Option<Span>)>,
    ) {
        let rule = plan.rule(index);
        let disruptive = !matches!(rule.disruption, Disruption::Pass | Disruption::Allow(_));
        let first_change = self.rule_changes;
        self.rule_changes = self.changes.len() as u32;
        if self.matches.len() < Transaction::MATCHES_MAX {
            let expanded = |this: &mut Self, template: Option<&crate::Template>| {
                template
                    .filter(|_| rule.log || rule.audit_log)
                    .map(|template| this.expand_to_store(plan, template))
            };
            let msg = expanded(self, rule.metadata.msg.as_ref());
            let log_data = expanded(self, rule.metadata.log_data.as_ref());
            let (item, value, found) = match what {
                Some((item, form, found)) => (Some(*item), form, found),
                None => (None, Span::default(), None),
            };
            self.matches.push(Match {
                rule: index,
                phase: self.phase,
                variable: item.map(|item| item.variable),
                count: item.is_some_and(|item| item.count),
                key: item.map_or(Span::default(), |item| item.key),
                raw: item.map_or(Span::default(), |item| self.store.data(item.value)),
                value,
                found,
                chain: link.chain,
                link: at,
                msg,
                log_data,
                log: rule.log,
                audit_log: rule.audit_log,
                disruptive,
                first_change,
                change_count: self.changes.len() as u32 - first_change,
            });
        } else {
            self.matches_dropped += 1;
        }
        self.disrupt(plan, index);
    }

    fn disrupt(&mut self, plan: &Plan, index: RuleIndex) {
        if self.phase == Phase::Logging || self.rule_engine != RuleEngine::On {
            return;
        }
        let interruption = match &plan.rule(index).disruption {
            Disruption::Pass => return,
            Disruption::Allow(scope) => {
                self.allow = Some((*scope, self.phase));
                return;
            }
            Disruption::Deny { status } => Interruption::Deny { status: *status },
            Disruption::Drop => Interruption::Drop,
            Disruption::Redirect { status, location } => {
                let mut target = Vec::new();
                self.expand(plan, location, &mut target);
                Interruption::Redirect { status: *status, location: target }
            }
        };
        self.interruption = Some(interruption);
        self.interrupted_by = Some((index, self.phase));
    }
}

/// The forms of one value that a link tests.
enum Forms {
    One(Span),
    Many(Vec<Span>),
}

impl Forms {
    fn iter(&self) -> impl Iterator<Item = Span> + '_ {
        match self {
            Forms::One(form) => std::slice::from_ref(form).iter().copied(),
            Forms::Many(forms) => forms.iter().copied(),
        }
    }
}
