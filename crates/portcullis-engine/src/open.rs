//! Persistent collections while a transaction has them open: `initcol`, `setvar`, `expirevar`,
//! `deprecatevar`.

use std::sync::Arc;

use portcullis_types::{Span, Variable};

use crate::actions::Operand;
use crate::collect::Item;
use crate::collections::{Change, EXPIRE_PREFIX, IS_NEW, RecordId, Sum, Value, VariableChange, new_record};
use crate::execution::Execution;
use crate::plan::{Act, KeyFilter, Open, Plan, SetVar};
use crate::template::Template;
use crate::transaction::Transaction;
use crate::tx::{TxValue, to_int};
use portcullis_values::Values;

/// A record that is open.
#[derive(Debug)]
pub(crate) struct OpenCollection {
    pub(crate) collection: Variable,
    name: Span,
    pub(crate) key: Span,
    entries: Vec<Entry>,
    /// `LAST_UPDATE_TIME` as it was read.
    last_update: i64,
    /// Variables that were there and are gone.
    unset: Vec<Span>,
    changed: bool,
    /// Others may have changed it since it was read.
    stale: bool,
    /// It was stored by this transaction already, which counts as one update all the same.
    stored: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    name: Span,
    value: TxValue,
    touched: Touched,
}

/// The kind of change that the transaction made to a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touched {
    No,
    /// Its value does not depend on the stored one.
    Set,
    /// It was counted from `base` on; `decay` is what `deprecatevar` took off.
    Counted {
        base: i64,
        decay: i64,
    },
}

impl OpenCollection {
    fn find(&self, bytes: &[u8], name: &[u8]) -> Option<usize> {
        self.entries.iter().position(|entry| entry.name.of(bytes).eq_ignore_ascii_case(name))
    }

    fn set(&mut self, bytes: &[u8], name: Span, value: TxValue) {
        let entry = Entry { name, value, touched: Touched::Set };
        match self.find(bytes, name.of(bytes)) {
            Some(at) => self.entries[at] = entry,
            None => self.push(entry),
        }
    }

    fn push(&mut self, entry: Entry) {
        if self.entries.len() < Transaction::TX_DYNAMIC_MAX {
            self.entries.push(entry);
        }
    }

    fn unset(&mut self, bytes: &[u8], name: Span) {
        if let Some(at) = self.find(bytes, name.of(bytes)) {
            self.entries.remove(at);
            if self.unset.len() < Transaction::TX_DYNAMIC_MAX {
                self.unset.push(name);
            }
        }
    }

    fn add(&mut self, store: &Values, name: Span, delta: i64) {
        match self.find(store.bytes(), name.of(store.bytes())) {
            None => {
                let gone = self
                    .unset
                    .iter()
                    .any(|gone| gone.of(store.bytes()).eq_ignore_ascii_case(name.of(store.bytes())));
                let touched = if gone { Touched::Set } else { Touched::Counted { base: 0, decay: 0 } };
                self.push(Entry { name, value: TxValue::Int(delta.max(0)), touched });
            }
            Some(at) => {
                let entry = &mut self.entries[at];
                let before = number(store, entry.value);
                if entry.touched == Touched::No {
                    entry.touched = Touched::Counted { base: before, decay: 0 };
                }
                entry.value = TxValue::Int(before.saturating_add(delta).max(0));
            }
        }
    }

    fn updates<'s>(&self, store: &'s Values) -> Vec<VariableChange<'s>> {
        let seen = self.last_update;
        let again = self.stored.then_some(VariableChange {
            variable: b"UPDATE_COUNTER",
            change: Change::Add(Sum { delta: -1, decay: 0, seen, value: 0 }),
        });
        let unset = self
            .unset
            .iter()
            .map(|name| VariableChange { variable: store.text(*name), change: Change::Unset });
        let kept = self.entries.iter().filter_map(|entry| {
            let change = match entry.touched {
                Touched::No => return None,
                Touched::Set => Change::Set(match entry.value {
                    TxValue::Unset => return None,
                    TxValue::Int(number) => Value::Int(number),
                    TxValue::Text(span) => Value::of(store.text(span)),
                }),
                Touched::Counted { base, decay } => {
                    let value = number(store, entry.value);
                    let delta = value.saturating_sub(base).saturating_add(decay);
                    Change::Add(Sum { delta, decay, seen, value })
                }
            };
            Some(VariableChange { variable: store.text(entry.name), change })
        });
        again.into_iter().chain(unset).chain(kept).collect()
    }
}

fn number(store: &Values, value: TxValue) -> i64 {
    match value {
        TxValue::Unset => 0,
        TxValue::Int(number) => number,
        TxValue::Text(span) => to_int(store.text(span)),
    }
}

impl Plan {
    /// True if some rule opens a persistent collection.
    pub fn opens_collections(&self) -> bool {
        self.links.iter().flat_map(|link| &link.acts).any(|act| matches!(act, Act::Open(_)))
    }
}

impl Transaction {
    /// Writes back what changed.
    pub(crate) fn save_collections(&self) {
        let now = self.message.now();
        for open in self.vars.open_collections.iter().filter(|open| open.changed) {
            let id =
                RecordId { name: self.message.store.text(open.name), key: self.message.store.text(open.key) };
            let updates = open.updates(&self.message.store);
            self.vars.collections.save(id, self.plan.settings.collection_timeout, now, &updates);
        }
    }
}

impl Execution<'_> {
    /// `initcol` and its kin: the first one of a collection counts.
    pub(crate) fn open(&mut self, open: &Open) {
        let key = self.expand_to_store(&open.key);
        match open.identity {
            Some(Variable::Sessionid) => self.vars.session_id = Some(key),
            Some(Variable::Userid) => self.vars.user_id = Some(key),
            _ => {}
        }
        if self.is_open(open.collection) {
            return;
        }
        let name = self.message.store.push(&open.name);
        let (mut entries, mut last_update, now) = (Vec::new(), 0, self.message.now());
        // A record is shown while its owner holds a lock on it, so nothing is looked up or allocated twice.
        let collections = Arc::clone(&self.vars.collections);
        let (key_text, store) = (self.message.store.text(key).to_vec(), &mut self.message.store);
        let id = RecordId { name: &open.name, key: &key_text };
        let mut keep = |name: &[u8], value: Value<'_>| {
            if name.eq_ignore_ascii_case(b"LAST_UPDATE_TIME") {
                last_update = value.to_int();
            }
            let name = store.push(name);
            let value = match value {
                Value::Int(number) => TxValue::Int(number),
                Value::Text(text) => TxValue::Text(store.push(text)),
            };
            entries.push(Entry { name, value, touched: Touched::No });
        };
        if !collections.load(id, now, &mut keep) {
            for (name, value) in new_record(id, self.plan.settings.collection_timeout, now) {
                keep(name, value);
            }
        }
        let collection = open.collection;
        let unset = Vec::new();
        let (changed, stale, stored) = (false, false, false);
        let open =
            OpenCollection { collection, name, key, entries, last_update, unset, changed, stale, stored };
        self.vars.open_collections.push(open);
    }

    /// Stores what changed, if other processes are to know it.
    pub(crate) fn share_collections(&mut self) {
        if self.vars.open_collections.iter().any(|open| open.changed) && self.vars.collections.is_shared() {
            (0..self.vars.open_collections.len()).for_each(|at| self.share(at));
        }
    }

    /// Records that an earlier phase has read are read again when a rule asks for them: others may have
    /// changed them while the client took its time.
    pub(crate) fn doubt_collections(&mut self) {
        if !self.vars.open_collections.is_empty() && self.vars.collections.is_shared() {
            self.vars.open_collections.iter_mut().for_each(|open| open.stale = true);
        }
    }

    /// Stores a collection that changed, and goes on with the record as it is then; or reads it again.
    fn share(&mut self, at: usize) {
        let open = &self.vars.open_collections[at];
        if !(open.changed || open.stale) || !self.vars.collections.is_shared() {
            return;
        }
        let collections = Arc::clone(&self.vars.collections);
        let (now, timeout) = (self.message.now(), self.plan.settings.collection_timeout);
        let (name, key) =
            (self.message.store.text(open.name).to_vec(), self.message.store.text(open.key).to_vec());
        let id = RecordId { name: &name, key: &key };
        let mut stored = Vec::new();
        let mut keep = |name: &[u8], value: Value<'_>| {
            let value = match value {
                Value::Int(number) => Ok(number),
                Value::Text(text) => Err(text.to_vec()),
            };
            stored.push((name.to_vec(), value));
        };
        let is_there = match open.changed {
            true => {
                collections.save_and_load(id, timeout, now, &open.updates(&self.message.store), &mut keep)
            }
            false => collections.load(id, now, &mut keep),
        };
        let store = &mut self.message.store;
        let open = &mut self.vars.open_collections[at];
        open.stored |= open.changed;
        (open.changed, open.stale) = (false, false);
        open.unset.clear();
        if !is_there {
            open.entries.iter_mut().for_each(|entry| entry.touched = Touched::No);
            return;
        }
        // For this transaction it stays a new one.
        open.entries.retain(|entry| entry.name.of(store.bytes()).eq_ignore_ascii_case(IS_NEW));
        for (name, value) in stored {
            if name.eq_ignore_ascii_case(b"LAST_UPDATE_TIME") {
                open.last_update = value.as_ref().map_or(0, |number| *number);
            }
            let name = store.push(&name);
            let value = match value {
                Ok(number) => TxValue::Int(number),
                Err(text) => TxValue::Text(store.push(&text)),
            };
            open.push(Entry { name, value, touched: Touched::No });
        }
    }

    pub(crate) fn is_open(&self, variable: Variable) -> bool {
        self.vars.open_collections.iter().any(|open| open.collection == variable)
    }

    pub(crate) fn collect_open(&mut self, variable: Variable, filter: &KeyFilter, items: &mut Vec<Item>) {
        let Some(at) = self.vars.open_collections.iter().position(|open| open.collection == variable) else {
            return;
        };
        self.share(at);
        for entry in 0..self.vars.open_collections[at].entries.len() {
            let Entry { name: key, value, .. } = self.vars.open_collections[at].entries[entry];
            if filter.accepts(self.message.store.text(key)) {
                let data = self.tx_text(value);
                let value = self.message.store.temporary(key, data);
                items.push(Item::new(variable, key, value));
            }
        }
    }

    /// The value of a variable of an open record, or its first one.
    pub(crate) fn open_value(&mut self, variable: Variable, key: Option<&[u8]>) -> TxValue {
        let Some(at) = self.vars.open_collections.iter().position(|open| open.collection == variable) else {
            return TxValue::Unset;
        };
        self.share(at);
        let open = &self.vars.open_collections[at];
        let place = key.map_or(Some(0), |key| open.find(self.message.store.bytes(), key));
        place.and_then(|place| open.entries.get(place)).map_or(TxValue::Unset, |entry| entry.value)
    }

    /// The open record and the bytes it speaks of. A collection that no `initcol` opened takes no values.
    fn change_open(&mut self, collection: Variable) -> Option<(&mut OpenCollection, &Values)> {
        let open = self.vars.open_collections.iter_mut().find(|open| open.collection == collection)?;
        open.changed = true;
        Some((open, &self.message.store))
    }

    pub(crate) fn set_open(&mut self, set: &SetVar, operand: Operand) {
        let key = self.run_time_key(&set.key);
        let Some((open, store)) = self.change_open(set.collection) else { return };
        match operand {
            Operand::Unset => open.unset(store.bytes(), key),
            Operand::Set(value) => open.set(store.bytes(), key, value),
            Operand::Add(delta) => open.add(store, key, delta),
        }
    }

    /// `expirevar` leaves a note beside the variable; who reads the record later heeds it.
    pub(crate) fn expire(&mut self, collection: Variable, key: &Template, seconds: &Template) {
        let key = self.run_time_key(key);
        let seconds = self.expand_to_store(seconds);
        let at = self.message.now().saturating_add(to_int(self.message.store.text(seconds)));
        let note = [EXPIRE_PREFIX, self.message.store.text(key)].concat();
        let note = self.message.store.push(&note);
        if let Some((open, store)) = self.change_open(collection) {
            open.set(store.bytes(), note, TxValue::Int(at));
        }
    }

    /// `deprecatevar=amount/seconds`: takes off `amount` for each full `seconds` since the record was last
    /// stored.
    pub(crate) fn deprecate(
        &mut self,
        (collection, key): (Variable, &Template),
        amount: &Template,
        seconds: &Template,
    ) {
        let key = self.run_time_key(key);
        let amount = self.expand_to_store(amount);
        let seconds = self.expand_to_store(seconds);
        let (amount, seconds) =
            (to_int(self.message.store.text(amount)), to_int(self.message.store.text(seconds)));
        let now = self.message.now();
        let Some(open) = self.vars.open_collections.iter_mut().find(|open| open.collection == collection)
        else {
            return;
        };
        let bytes = self.message.store.bytes();
        let Some(last) = open.find(bytes, b"LAST_UPDATE_TIME") else { return };
        let Some(at) = open.find(bytes, key.of(bytes)) else { return };
        let last = number(&self.message.store, open.entries[last].value);
        // ModSecurity divides by the zero. A request that is ahead of this one may have stored the record.
        let periods = now.saturating_sub(last).max(0).checked_div(seconds).unwrap_or(0);
        let entry = &mut open.entries[at];
        let before = number(&self.message.store, entry.value);
        let after = before.saturating_sub(amount.saturating_mul(periods)).max(0);
        if after == before {
            return;
        }
        entry.touched = match entry.touched {
            Touched::Set => Touched::Set,
            // A negative amount adds: that is counting, too.
            Touched::No => Touched::Counted { base: before, decay: before.saturating_sub(after).max(0) },
            Touched::Counted { base, decay } => {
                Touched::Counted { base, decay: decay.saturating_add(before.saturating_sub(after).max(0)) }
            }
        };
        entry.value = TxValue::Int(after);
        open.changed = true;
    }
}
