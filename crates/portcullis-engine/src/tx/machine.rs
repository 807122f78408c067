//! Runs instructions on `TX`: in a transaction, and at load time on what the keys hold where nothing was
//! found.

use portcullis_types::{Decimal, Span};

use crate::expansion::{Expansions, append};
use crate::record::ScoreChange;
use crate::template::{Part, Template};

use super::rule::{Operation, TxOp};
use super::test::{Compared, Comparison, Than, TxTest};
use super::{TxSlot, TxStore, TxValue, addend, canonical_int, to_int};

/// The state that instructions read and change.
pub(crate) struct TxMachine<'t> {
    pub(crate) tx: &'t mut TxStore,
    /// The texts that values of `TX` are spans of.
    pub(crate) bytes: &'t mut Vec<u8>,
    pub(crate) changes: &'t mut Vec<ScoreChange>,
    pub(crate) expansions: &'t mut Expansions,
}

impl TxMachine<'_> {
    /// Returns true if a link with this test matches; `None` if there is a text that its transformations
    /// could change.
    pub(crate) fn holds(&self, test: &TxTest) -> Option<bool> {
        self.tx.holds(test, self.bytes)
    }

    /// Carries out one assignment, as `setvar` does.
    #[inline]
    pub(crate) fn apply(&mut self, op: &TxOp, texts: &[Template]) {
        let value = match op.operation {
            Operation::Set(number) => TxValue::Int(number),
            Operation::Text(text) => self.expanded(texts.get(text as usize)),
            Operation::Copy(from) => self.copied(from),
            Operation::Add(delta) => self.sum(op.slot, delta),
            Operation::AddSlot(from) => self.sum(op.slot, self.addend(from)),
            Operation::SubtractSlot(from) => self.sum(op.slot, self.addend(from).saturating_neg()),
            Operation::Unset => TxValue::Unset,
        };
        self.tx.set_slot(op.slot, value);
    }

    /// The key's number plus `delta`. The change is remembered for explanations.
    pub(crate) fn sum(&mut self, slot: TxSlot, delta: i64) -> TxValue {
        if delta != 0 {
            self.changes.push(ScoreChange { slot, delta });
        }
        TxMachine::added(self.tx.number(slot, self.bytes).unwrap_or(0), delta)
    }

    /// Counters never go below zero (msre_action_setvar_execute).
    pub(crate) fn added(number: i64, delta: i64) -> TxValue {
        TxValue::Int(number.saturating_add(delta).max(0))
    }

    /// The value of a key under another one. A text that looks like a number is one from then on.
    pub(crate) fn copied(&self, from: TxSlot) -> TxValue {
        match self.tx.slot(from) {
            TxValue::Unset => TxValue::Text(Span::default()),
            number @ TxValue::Int(_) => number,
            text @ TxValue::Text(span) => canonical_int(span.of(self.bytes)).map_or(text, TxValue::Int),
        }
    }

    /// The amount that adding a key adds: a sign in front of digits adds nothing.
    pub(crate) fn addend(&self, from: TxSlot) -> i64 {
        match self.tx.slot(from) {
            TxValue::Unset => 0,
            TxValue::Int(number) => number.max(0),
            TxValue::Text(span) => addend(span.of(self.bytes)),
        }
    }

    /// A text of literals and keys.
    fn expanded(&mut self, text: Option<&Template>) -> TxValue {
        let start = self.bytes.len();
        let end = start.saturating_add(self.expansions.kept_max());
        let parts = text.map_or(&[][..], |text| &text.parts);
        let whole = parts.iter().all(|part| match part {
            Part::Literal(text) => append(self.bytes, end, text),
            Part::Tx(slot) => match self.tx.slot(*slot) {
                TxValue::Unset => true,
                TxValue::Int(number) => append(self.bytes, end, &Decimal::new(number)),
                TxValue::Text(span) => {
                    let fits = span.len().min(end - self.bytes.len());
                    let from = span.start as usize;
                    self.bytes.extend_from_within(from..from + fits);
                    fits == span.len()
                }
            },
            // No rule with one becomes an instruction.
            Part::Variable { .. } => true,
        });
        self.expansions.cut += u64::from(!whole);
        self.expansions.keep(self.bytes.len() - start);
        let span = Span::new(start, self.bytes.len());
        match parts {
            // A number would have been recognised at load time.
            [Part::Literal(_)] => TxValue::Text(span),
            _ => canonical_int(span.of(self.bytes)).map_or(TxValue::Text(span), TxValue::Int),
        }
    }
}

impl TxValue {
    /// The number that `atoi` makes of it; `None` if there is none.
    #[inline]
    pub(crate) fn number(self, bytes: &[u8]) -> Option<i64> {
        match self {
            TxValue::Unset => None,
            TxValue::Int(number) => Some(number),
            TxValue::Text(span) => Some(to_int(span.of(bytes))),
        }
    }
}

impl TxStore {
    /// The number that `atoi` makes of a key; `None` if it is not set.
    #[inline]
    pub(crate) fn number(&self, slot: TxSlot, bytes: &[u8]) -> Option<i64> {
        self.slot(slot).number(bytes)
    }

    /// See [`TxMachine::holds`].
    #[inline]
    pub(crate) fn holds(&self, test: &TxTest, bytes: &[u8]) -> Option<bool> {
        Some(match test {
            TxTest::Always => true,
            TxTest::WholeNumber(Comparison { slot, .. }) if matches!(self.slot(*slot), TxValue::Text(_)) => {
                return None;
            }
            TxTest::Number(comparison) | TxTest::WholeNumber(comparison) => self
                .number(comparison.slot, bytes)
                .is_some_and(|number| self.compares(&comparison.with, number, bytes)),
            TxTest::Count(comparison) => {
                let count = i64::from(self.slot(comparison.slot) != TxValue::Unset);
                self.compares(&comparison.with, count, bytes)
            }
        })
    }

    /// Compares `number` with a constant or with what a key holds.
    #[inline]
    pub(crate) fn compares(&self, with: &Compared, number: i64, bytes: &[u8]) -> bool {
        let than = match with.than {
            Than::Constant(number) => number,
            Than::Slot(slot) => self.number(slot, bytes).unwrap_or(0),
        };
        with.holds(number, than)
    }
}
