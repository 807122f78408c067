//! The actions of a rule that matched: macro expansion, variable assignments and `ctl` switches.

use std::borrow::Cow;

use portcullis_types::{Decimal, Span, Variable};

use crate::collect::Item;
use crate::execution::Execution;
use crate::plan::{Act, KeyFilter, SetVar, SetVarOperation, Target};
use crate::record::escape_key;
use crate::template::{Part, Template};
use crate::trace::Switch;
use crate::transaction::Transaction;
use crate::tx::{TxMachine, TxValue, addend, canonical_int};

/// The operation of a `setvar`, with its macros expanded.
pub(crate) enum Operand {
    Unset,
    Set(TxValue),
    Add(i64),
}

impl Transaction {
    /// Puts a variable into `ENV` before the first phase.
    pub fn add_environment(&mut self, name: &str, value: &[u8]) {
        let (name, value) = (self.message.store.push(name.as_bytes()), self.message.store.push(value));
        self.vars.env.push((name, value));
    }
}

impl Execution<'_> {
    pub(crate) fn run_acts(&mut self, acts: &[Act]) {
        for act in acts {
            match act {
                Act::SetVar(set) => self.set_var(set),
                Act::Open(open) => self.open(open),
                Act::Expire { collection, key, seconds } => self.expire(*collection, key, seconds),
                Act::Deprecate { collection, key, amount, seconds } => {
                    self.deprecate((*collection, key), amount, seconds);
                }
                Act::SetEnv { name, value } => self.set_env(name, value),
                Act::RemoveRules(at) => {
                    self.vars.ctl.removed_rules.extend(&self.plan.ctl_removals[*at as usize]);
                    self.choose_strategies();
                    self.trace_switch(*at, Switch::Rules);
                }
                Act::RemoveTarget(at) => {
                    self.vars.ctl.removed_targets.push(*at);
                    self.choose_strategies();
                    self.trace_switch(*at, Switch::Target);
                }
                Act::RuleEngine(engine) => self.vars.ctl.rule_engine = *engine,
                Act::BodyProcessor(processor) => self.message.body.set_processor(*processor),
                Act::ForceRequestBodyVariable(on) => self.message.body.force_variable(*on),
                Act::XmlArgs(args) => self.message.body.make_xml_args(*args),
                Act::RateLimit(limit) => self.charge(limit),
                Act::RequestBodyAccess(on) => self.vars.ctl.request_body_access = *on,
                Act::RequestBodyLimit(limit) => self.vars.ctl.request_body_limit = *limit,
                Act::ResponseBodyAccess(on) => self.vars.ctl.response_body_access = *on,
                Act::ResponseBodyLimit(limit) => self.vars.ctl.response_body_limit = *limit,
                Act::Append(text) => self.journal.rewrites.after = Some(self.expand_to_store(text)),
                Act::Prepend(text) => self.journal.rewrites.before = Some(self.expand_to_store(text)),
                Act::Audit(act) => self.run_audit_act(act),
            }
        }
    }

    /// `setenv`: follows `msre_action_setenv_execute`, with an environment of the transaction's own.
    fn set_env(&mut self, name: &Template, value: &Template) {
        let name = self.run_time_key(name);
        let text = self.message.store.text(name);
        let removed = text.starts_with(b"!");
        let wanted = if removed { text[1..].to_vec() } else { text.to_vec() };
        let place = self
            .vars
            .env
            .iter()
            .position(|(key, _)| self.message.store.text(*key).eq_ignore_ascii_case(&wanted));
        if removed {
            if let Some(at) = place {
                self.vars.env.remove(at);
            }
            return;
        }
        let value = self.expand_to_store(value);
        match place {
            Some(at) => self.vars.env[at] = (name, value),
            None if self.vars.env.len() < Transaction::TX_DYNAMIC_MAX => self.vars.env.push((name, value)),
            None => {}
        }
    }

    /// Appends `template` with its macros replaced. A macro without a value gives nothing.
    pub(crate) fn expand(&mut self, template: &Template, out: &mut Vec<u8>) {
        for part in &template.parts {
            match part {
                Part::Literal(text) => out.extend_from_slice(text),
                Part::Tx(slot) => self.append_tx(self.vars.tx.slot(*slot), out),
                Part::Variable { variable, key } => {
                    if let Some(value) = self.first_value(*variable, key.as_deref()) {
                        out.extend_from_slice(self.message.store.text(value));
                    }
                }
            }
        }
    }

    pub(crate) fn expand_to_store(&mut self, template: &Template) -> Span {
        if let Some(text) = template.as_literal() {
            return self.message.store.push(text);
        }
        let mut text = std::mem::take(&mut self.run.expansion);
        text.clear();
        self.expand(template, &mut text);
        let span = self.message.store.push(&text);
        self.run.expansion = text;
        span
    }

    fn append_tx(&self, value: TxValue, out: &mut Vec<u8>) {
        match value {
            TxValue::Unset => {}
            TxValue::Int(number) => out.extend_from_slice(&Decimal::new(number)),
            TxValue::Text(span) => out.extend_from_slice(self.message.store.text(span)),
        }
    }

    fn first_value(&mut self, variable: Variable, key: Option<&[u8]>) -> Option<Span> {
        match variable {
            Variable::MatchedVar => return Some(self.vars.matched.value),
            Variable::MatchedVarName => {
                let name = self.vars.matched.name(&self.message.store);
                return Some(self.message.store.push(&name));
            }
            _ => {}
        }
        let filter = key.map_or(KeyFilter::All, |key| KeyFilter::Key(key.into()));
        let slots = match (variable, key) {
            (Variable::Tx, Some(key)) => self.plan.tx_slot(key).into_iter().collect(),
            (Variable::Tx, None) => (0..self.plan.tx_names.len() as u32).map(crate::TxSlot).collect(),
            _ => Box::default(),
        };
        let target = Target { variable, filter, slot: None, slots, count: false };
        let mut items = Vec::new();
        self.collect(&target, &mut items);
        items.first().map(|item: &Item| self.message.store.data(item.value))
    }

    fn set_var(&mut self, set: &SetVar) {
        let operand = self.operand(&set.operation);
        if set.collection != Variable::Tx {
            return self.set_open(set, operand);
        }
        let value = match operand {
            Operand::Unset => TxValue::Unset,
            Operand::Set(value) => value,
            Operand::Add(delta) => self.sum(set, delta),
        };
        if let Some(slot) = set.slot {
            self.vars.tx.set_slot(slot, value);
        } else {
            self.set_dynamic(&set.key, value);
        }
    }

    fn operand(&mut self, operation: &SetVarOperation) -> Operand {
        match operation {
            SetVarOperation::Unset => Operand::Unset,
            SetVarOperation::SetNumber(number) => Operand::Set(TxValue::Int(*number)),
            SetVarOperation::Set(template) => {
                match template.parts.as_slice() {
                    // A number would have been told apart at load time.
                    [Part::Literal(text)] => {
                        return Operand::Set(TxValue::Text(self.message.store.push(text)));
                    }
                    [Part::Tx(slot)] => return Operand::Set(self.tx_machine().copied(*slot)),
                    _ => {}
                }
                let span = self.expand_to_store(template);
                Operand::Set(
                    canonical_int(self.message.store.text(span)).map_or(TxValue::Text(span), TxValue::Int),
                )
            }
            SetVarOperation::AddNumber(delta) => Operand::Add(*delta),
            SetVarOperation::Add(template) => Operand::Add(self.addend(template)),
            SetVarOperation::Subtract(template) => Operand::Add(self.addend(template).saturating_neg()),
        }
    }

    fn addend(&mut self, template: &Template) -> i64 {
        if let [Part::Tx(slot)] = template.parts.as_slice() {
            return self.tx_machine().addend(*slot);
        }
        let span = self.expand_to_store(template);
        addend(self.message.store.text(span))
    }

    /// The `TX` key's number plus `delta`.
    fn sum(&mut self, set: &SetVar, delta: i64) -> TxValue {
        if let Some(slot) = set.slot {
            return self.tx_machine().sum(slot, delta);
        }
        let key = self.run_time_key(&set.key);
        let (bytes, tx) = (self.message.store.bytes(), &self.vars.tx);
        let name = key.of(bytes);
        let current = match self.plan.tx_slot(name) {
            Some(slot) => tx.slot(slot),
            None => tx.find(bytes, name).map_or(TxValue::Unset, |at| tx.dynamic_at(at)),
        };
        TxMachine::added(current.number(bytes).unwrap_or(0), delta)
    }

    fn set_dynamic(&mut self, key: &Template, value: TxValue) {
        let key = self.run_time_key(key);
        self.set_tx_at(key, value);
    }

    /// Sets `TX:name`, as no `setvar` does.
    pub(crate) fn set_tx(&mut self, name: &[u8], value: TxValue) {
        let key = self.message.store.push(name);
        self.set_tx_at(key, value);
    }

    fn set_tx_at(&mut self, key: Span, value: TxValue) {
        let (bytes, tx) = (self.message.store.bytes(), &mut self.vars.tx);
        let name = key.of(bytes);
        if let Some(slot) = self.plan.tx_slot(name) {
            tx.set_slot(slot, value);
        } else if let Some(at) = tx.find(bytes, name) {
            tx.set_at(at, value);
        } else if tx.dynamic().len() < Transaction::TX_DYNAMIC_MAX {
            tx.push(key, value);
        }
    }

    /// The key as it is stored: expanded and escaped (msre_action_setvar_execute). Keys are compared without
    /// regard to case and keep the spelling that they were first set with.
    pub(crate) fn run_time_key(&mut self, key: &Template) -> Span {
        let span = self.expand_to_store(key);
        match escape_key(self.message.store.text(span)) {
            Cow::Borrowed(_) => span,
            Cow::Owned(escaped) => self.message.store.push(&escaped),
        }
    }
}
