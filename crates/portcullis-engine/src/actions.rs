//! What a match does: macros, variables, control.

use std::borrow::Cow;

use portcullis_types::{Decimal, Span, Variable};

use crate::collect::Item;
use crate::plan::{Act, KeyFilter, Plan, SetVar, SetVarOperation, Target};
use crate::record::{ScoreChange, escape_key};
use crate::template::{Part, Template};
use crate::trace::Switch;
use crate::transaction::Transaction;
use crate::tx_store::{TxValue, addend, canonical_int, to_int};

/// What `setvar` does, its macros replaced.
pub(crate) enum Operand {
    Unset,
    Set(TxValue),
    Add(i64),
}

impl Transaction {
    pub(crate) fn run_acts(&mut self, plan: &Plan, acts: &[Act]) {
        for act in acts {
            match act {
                Act::SetVar(set) => self.set_var(plan, set),
                Act::Open(open) => self.open(plan, open),
                Act::Expire { collection, key, seconds } => self.expire(plan, *collection, key, seconds),
                Act::Deprecate { collection, key, amount, seconds } => {
                    self.deprecate(plan, (*collection, key), amount, seconds);
                }
                Act::SetEnv { name, value } => self.set_env(plan, name, value),
                Act::RemoveRules(at) => {
                    self.removed_rules.extend(&plan.ctl_removals[*at as usize]);
                    self.trace_switch(*at, Switch::Rules);
                }
                Act::RemoveTarget(at) => {
                    self.removed_targets.push(*at);
                    self.trace_switch(*at, Switch::Target);
                }
                Act::RuleEngine(engine) => self.rule_engine = *engine,
                Act::BodyProcessor(processor) => self.body.set_processor(*processor),
                Act::ForceRequestBodyVariable(on) => self.body.force_variable(*on),
                Act::XmlArgs(args) => self.body.make_xml_args(*args),
                Act::RateLimit(limit) => self.charge(plan, limit),
                Act::RequestBodyAccess(on) => self.request_body_access = *on,
                Act::RequestBodyLimit(limit) => self.request_body_limit = *limit,
                Act::ResponseBodyAccess(on) => self.response_body_access = *on,
                Act::ResponseBodyLimit(limit) => self.response_body_limit = *limit,
                Act::Append(text) => self.rewrites.after = Some(self.expand_to_store(plan, text)),
                Act::Prepend(text) => self.rewrites.before = Some(self.expand_to_store(plan, text)),
                Act::Audit(act) => self.run_audit_act(act),
            }
        }
    }

    /// `setenv`: follows `msre_action_setenv_execute`, with an environment of the transaction's own.
    fn set_env(&mut self, plan: &Plan, name: &Template, value: &Template) {
        let name = self.run_time_key(plan, name);
        let text = self.store.text(name);
        let removed = text.starts_with(b"!");
        let wanted = if removed { text[1..].to_vec() } else { text.to_vec() };
        let place = self.env.iter().position(|(key, _)| self.store.text(*key).eq_ignore_ascii_case(&wanted));
        if removed {
            if let Some(at) = place {
                self.env.remove(at);
            }
            return;
        }
        let value = self.expand_to_store(plan, value);
        match place {
            Some(at) => self.env[at] = (name, value),
            None if self.env.len() < Transaction::TX_DYNAMIC_MAX => self.env.push((name, value)),
            None => {}
        }
    }

    /// Puts a variable into `ENV` before the first phase.
    pub fn add_environment(&mut self, name: &str, value: &[u8]) {
        let (name, value) = (self.store.push(name.as_bytes()), self.store.push(value));
        self.env.push((name, value));
    }

    /// Appends `template` with its macros replaced. A macro without a value gives nothing.
    pub(crate) fn expand(&mut self, plan: &Plan, template: &Template, out: &mut Vec<u8>) {
        for part in &template.parts {
            match part {
                Part::Literal(text) => out.extend_from_slice(text),
                Part::Tx(slot) => self.append_tx(self.tx.slot(*slot), out),
                Part::Variable { variable, key } => {
                    if let Some(value) = self.first_value(plan, *variable, key.as_deref()) {
                        out.extend_from_slice(self.store.text(value));
                    }
                }
            }
        }
    }

    pub(crate) fn expand_to_store(&mut self, plan: &Plan, template: &Template) -> Span {
        if let Some(text) = template.as_literal() {
            return self.store.push(text);
        }
        let mut text = std::mem::take(&mut self.expansion);
        text.clear();
        self.expand(plan, template, &mut text);
        let span = self.store.push(&text);
        self.expansion = text;
        span
    }

    fn append_tx(&self, value: TxValue, out: &mut Vec<u8>) {
        match value {
            TxValue::Unset => {}
            TxValue::Int(number) => out.extend_from_slice(&Decimal::new(number)),
            TxValue::Text(span) => out.extend_from_slice(self.store.text(span)),
        }
    }

    fn first_value(&mut self, plan: &Plan, variable: Variable, key: Option<&[u8]>) -> Option<Span> {
        match variable {
            Variable::MatchedVar => return Some(self.matched.value),
            Variable::MatchedVarName => {
                let name = self.matched.name(&self.store);
                return Some(self.store.push(&name));
            }
            _ => {}
        }
        let filter = key.map_or(KeyFilter::All, |key| KeyFilter::Key(key.into()));
        let slots = match (variable, key) {
            (Variable::Tx, Some(key)) => plan.tx_slot(key).into_iter().collect(),
            (Variable::Tx, None) => (0..plan.tx_names.len() as u32).map(crate::TxSlot).collect(),
            _ => Box::default(),
        };
        let target = Target { variable, filter, slot: None, slots, count: false };
        let mut items = Vec::new();
        self.collect(plan, &target, &mut items);
        items.first().map(|item: &Item| self.store.data(item.value))
    }

    fn set_var(&mut self, plan: &Plan, set: &SetVar) {
        let operand = self.operand(plan, &set.operation);
        if set.collection != Variable::Tx {
            return self.set_open(plan, set, operand);
        }
        let value = match operand {
            Operand::Unset => TxValue::Unset,
            Operand::Set(value) => value,
            Operand::Add(delta) => self.sum(plan, set, delta),
        };
        if let Some(slot) = set.slot {
            self.tx.set_slot(slot, value);
        } else {
            self.set_dynamic(plan, &set.key, value);
        }
    }

    fn operand(&mut self, plan: &Plan, operation: &SetVarOperation) -> Operand {
        match operation {
            SetVarOperation::Unset => Operand::Unset,
            SetVarOperation::SetNumber(number) => Operand::Set(TxValue::Int(*number)),
            SetVarOperation::Set(template) => {
                match template.parts.as_slice() {
                    // A number would have been told apart at load time.
                    [Part::Literal(text)] => return Operand::Set(TxValue::Text(self.store.push(text))),
                    [Part::Tx(slot)] if let value @ TxValue::Int(_) = self.tx.slot(*slot) => {
                        return Operand::Set(value);
                    }
                    _ => {}
                }
                let span = self.expand_to_store(plan, template);
                Operand::Set(canonical_int(self.store.text(span)).map_or(TxValue::Text(span), TxValue::Int))
            }
            SetVarOperation::AddNumber(delta) => Operand::Add(*delta),
            SetVarOperation::Add(template) => Operand::Add(self.addend(plan, template)),
            SetVarOperation::Subtract(template) => Operand::Add(self.addend(plan, template).saturating_neg()),
        }
    }

    fn addend(&mut self, plan: &Plan, template: &Template) -> i64 {
        if let [Part::Tx(slot)] = template.parts.as_slice()
            && let TxValue::Int(number) = self.tx.slot(*slot)
        {
            // A sign in front of digits adds nothing.
            return number.max(0);
        }
        let span = self.expand_to_store(plan, template);
        addend(self.store.text(span))
    }

    /// The `TX` key's number plus `delta`; remembers the change for explanations.
    fn sum(&mut self, plan: &Plan, set: &SetVar, delta: i64) -> TxValue {
        let current = if let Some(slot) = set.slot {
            if delta != 0 {
                self.changes.push(ScoreChange { slot, delta });
            }
            self.tx.slot(slot)
        } else {
            let key = self.run_time_key(plan, &set.key);
            let name = self.store.text(key);
            match plan.tx_slot(name) {
                Some(slot) => self.tx.slot(slot),
                None => {
                    self.tx.find(self.store.bytes(), name).map_or(TxValue::Unset, |at| self.tx.dynamic_at(at))
                }
            }
        };
        let number = match current {
            TxValue::Unset => 0,
            TxValue::Int(number) => number,
            TxValue::Text(span) => to_int(self.store.text(span)),
        };
        // Counters never go below zero (msre_action_setvar_execute).
        TxValue::Int(number.saturating_add(delta).max(0))
    }

    fn set_dynamic(&mut self, plan: &Plan, key: &Template, value: TxValue) {
        let key = self.run_time_key(plan, key);
        self.set_tx_at(plan, key, value);
    }

    /// Sets `TX:name`, as no `setvar` does.
    pub(crate) fn set_tx(&mut self, name: &[u8], value: TxValue) {
        let key = self.store.push(name);
        let plan = std::sync::Arc::clone(&self.plan);
        self.set_tx_at(&plan, key, value);
    }

    fn set_tx_at(&mut self, plan: &Plan, key: Span, value: TxValue) {
        let name = self.store.text(key);
        if let Some(slot) = plan.tx_slot(name) {
            self.tx.set_slot(slot, value);
        } else if let Some(at) = self.tx.find(self.store.bytes(), name) {
            self.tx.set_at(at, value);
        } else if self.tx.dynamic().len() < Transaction::TX_DYNAMIC_MAX {
            self.tx.push(key, value);
        }
    }

    /// The key as it is stored: expanded and escaped (msre_action_setvar_execute). Keys are compared without regard to
    /// case and keep the spelling that they were first set with.
    pub(crate) fn run_time_key(&mut self, plan: &Plan, key: &Template) -> Span {
        let span = self.expand_to_store(plan, key);
        match escape_key(self.store.text(span)) {
            Cow::Borrowed(_) => span,
            Cow::Owned(escaped) => self.store.push(&escaped),
        }
    }
}
