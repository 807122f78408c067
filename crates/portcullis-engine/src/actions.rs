//! The actions of a rule that matched: macro expansion, variable assignments and `ctl` switches.

use portcullis_types::{Decimal, Span, Variable};

use crate::collect::Item;
use crate::execution::Execution;
use crate::expansion::{Expansions, append};
use crate::patterns::PatternError;
use crate::plan::{Act, KeyFilter, SetVar, SetVarOperation, Target};
use crate::record::escape_key;
use crate::template::{Part, Template};
use crate::trace::Switch;
use crate::transaction::Transaction;
use crate::tx::{TxMachine, TxValue, addend, canonical_int};
use crate::work::expansion_units;
use portcullis_values::classes_of;

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

    /// Appends `template` with its macros replaced, for a text that is used at once. A macro without a value
    /// gives nothing.
    pub(crate) fn expand(&mut self, template: &Template, out: &mut Vec<u8>) {
        let room = self.run.expansions.text_max();
        if !self.expand_within(template, room, out) {
            self.note_cut();
        }
    }

    /// As [`expand`](Self::expand), with no more than `room` bytes; false if that cut the text.
    fn expand_within(&mut self, template: &Template, room: usize, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let end = start.saturating_add(room);
        let whole = template.parts.iter().all(|part| match part {
            Part::Literal(text) => append(out, end, text),
            Part::Tx(slot) => self.append_value(self.vars.tx.slot(*slot), out, end),
            Part::Variable { variable, key } => self.append_variable(*variable, key.as_deref(), out, end),
        });
        self.run.patterns.charge(expansion_units(out.len() - start));
        whole
    }

    pub(crate) fn expand_to_store(&mut self, template: &Template) -> Span {
        let room = self.run.expansions.kept_max();
        let (span, whole) = self.expand_and_push(template, room);
        self.run.expansions.keep(span.len());
        if !whole {
            self.note_cut();
        }
        span
    }

    /// `msg` or `logdata` of a match.
    pub(crate) fn expand_log_text(&mut self, template: &Template) -> Span {
        self.expand_and_push(template, Expansions::LOG_TEXT_BYTES_MAX).0
    }

    fn expand_and_push(&mut self, template: &Template, room: usize) -> (Span, bool) {
        let mut text = std::mem::take(&mut self.run.expansion);
        text.clear();
        let whole = self.expand_within(template, room, &mut text);
        let span = self.message.store.push(&text);
        self.run.expansion = text;
        (span, whole)
    }

    /// A text was cut: rules may have missed what was in the rest.
    pub(crate) fn note_cut(&mut self) {
        self.run.expansions.cut += 1;
        if self.run.expansions.cut == 1 {
            self.note_pattern_error(PatternError::Exhausted);
        }
    }

    fn append_value(&self, value: TxValue, out: &mut Vec<u8>, end: usize) -> bool {
        match value {
            TxValue::Unset => true,
            TxValue::Int(number) => append(out, end, &Decimal::new(number)),
            TxValue::Text(span) => append(out, end, self.message.store.text(span)),
        }
    }

    /// Appends the first value of `variable`, or of its `key`. What is worked out for it is not kept.
    fn append_variable(
        &mut self,
        variable: Variable,
        key: Option<&[u8]>,
        out: &mut Vec<u8>,
        end: usize,
    ) -> bool {
        let store = &self.message.store;
        if variable == Variable::MatchedVar {
            return append(out, end, store.text(self.vars.matched.value));
        }
        if variable == Variable::MatchedVarName {
            return append(out, end, &self.vars.matched.name(store));
        }
        if self.is_open(variable) {
            let value = self.open_value(variable, key);
            return self.append_value(value, out, end);
        }
        if classes_of(variable).is_empty()
            && store.scalar(variable).is_none()
            && let Some(text) = self.computed_scalar(variable)
        {
            return append(out, end, &text);
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
        let store = &self.message.store;
        items.first().is_none_or(|item: &Item| append(out, end, store.text(store.data(item.value))))
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
                    // A number would have been recognised at load time.
                    [Part::Literal(_)] => {
                        return Operand::Set(TxValue::Text(self.expand_to_store(template)));
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
        let current = current.number(bytes).unwrap_or(0);
        self.forget_key(key);
        TxMachine::added(current, delta)
    }

    fn set_dynamic(&mut self, key: &Template, value: TxValue) {
        let key = self.run_time_key(key);
        if !self.set_tx_at(key, value) {
            self.forget_key(key);
        }
    }

    /// Sets `TX:name`, as no `setvar` does.
    pub(crate) fn set_tx(&mut self, name: &[u8], value: TxValue) {
        let key = self.message.store.push(name);
        self.set_tx_at(key, value);
    }

    /// True if the key is kept.
    fn set_tx_at(&mut self, key: Span, value: TxValue) -> bool {
        let (bytes, tx) = (self.message.store.bytes(), &mut self.vars.tx);
        let name = key.of(bytes);
        if let Some(slot) = self.plan.tx_slot(name) {
            tx.set_slot(slot, value);
        } else if let Some(at) = tx.find(bytes, name) {
            tx.set_at(at, value);
        } else if tx.dynamic().len() < Transaction::TX_DYNAMIC_MAX {
            tx.push(key, value);
            return true;
        }
        false
    }

    /// The key as it is stored: expanded and escaped (msre_action_setvar_execute). Keys are compared without
    /// regard to case and keep the spelling that they were first set with.
    pub(crate) fn run_time_key(&mut self, key: &Template) -> Span {
        let room = self.run.expansions.kept_max();
        let mut text = std::mem::take(&mut self.run.expansion);
        text.clear();
        let whole = self.expand_within(key, room, &mut text);
        let span = self.keep_text(&escape_key(&text));
        self.run.expansion = text;
        if !whole {
            self.note_cut();
        }
        span
    }

    /// Takes back a key that was only looked for.
    fn forget_key(&mut self, key: Span) {
        let texts = self.message.store.texts_mut();
        if key.end as usize == texts.len() {
            texts.truncate(key.start as usize);
            self.run.expansions.give_back(key.len());
        }
    }

    /// A text that the transaction keeps, as far as it may.
    pub(crate) fn keep_text(&mut self, text: &[u8]) -> Span {
        let kept = text.len().min(self.run.expansions.kept_max());
        let span = self.message.store.push(&text[..kept]);
        self.run.expansions.keep(kept);
        if kept < text.len() {
            self.note_cut();
        }
        span
    }
}
