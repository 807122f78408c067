//! `setvar` of numbers in `TX`, as the sums and settings of the CRS are: in a few instructions where nothing but numbers is at hand.

use portcullis_types::Variable;

use crate::plan::{Act, SetVarOperation};
use crate::record::ScoreChange;
use crate::template::{Part, Template};
use crate::transaction::Transaction;
use crate::tx_store::{TxSlot, TxValue};

/// What becomes of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotAct {
    slot: TxSlot,
    operation: Operation,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Set(i64),
    Copy(TxSlot),
    Add(i64),
    AddSlot(TxSlot),
    SubtractSlot(TxSlot),
}

impl SlotAct {
    /// What `act` does, as long as the slots it looks at hold numbers.
    pub(crate) fn new(act: &Act) -> Option<SlotAct> {
        let Act::SetVar(set) = act else { return None };
        let slot = set.slot.filter(|_| set.collection == Variable::Tx)?;
        let operation = match &set.operation {
            SetVarOperation::SetNumber(number) => Operation::Set(*number),
            SetVarOperation::AddNumber(delta) => Operation::Add(*delta),
            SetVarOperation::Set(text) => Operation::Copy(only_slot(text)?),
            SetVarOperation::Add(text) => Operation::AddSlot(only_slot(text)?),
            SetVarOperation::Subtract(text) => Operation::SubtractSlot(only_slot(text)?),
            SetVarOperation::Unset => return None,
        };
        Some(SlotAct { slot, operation })
    }

    /// The slot that it sets.
    pub(crate) fn slot(&self) -> TxSlot {
        self.slot
    }

    /// The slots that what it sets depends on.
    pub(crate) fn reads(&self) -> impl Iterator<Item = TxSlot> {
        let (itself, other) = match self.operation {
            Operation::Set(_) => (None, None),
            Operation::Copy(from) => (None, Some(from)),
            Operation::Add(_) => (Some(self.slot), None),
            Operation::AddSlot(from) | Operation::SubtractSlot(from) => (Some(self.slot), Some(from)),
        };
        itself.into_iter().chain(other)
    }
}

fn only_slot(text: &Template) -> Option<TxSlot> {
    match text.parts.as_slice() {
        [Part::Tx(slot)] => Some(*slot),
        _ => None,
    }
}

impl Transaction {
    /// Does it, or nothing and says false: a slot has no number.
    pub(crate) fn run_slot_act(&mut self, act: &SlotAct) -> bool {
        let number = |slot| match self.tx.slot(slot) {
            TxValue::Int(number) => Some(number),
            TxValue::Unset | TxValue::Text(_) => None,
        };
        let result = match act.operation {
            Operation::Set(number) => Some(number),
            Operation::Copy(from) => number(from),
            Operation::Add(delta) => self.slot_sum(act.slot, Some(delta)),
            // As `addend` has it: a sign in front of digits adds nothing.
            Operation::AddSlot(from) => self.slot_sum(act.slot, number(from).map(|number| number.max(0))),
            Operation::SubtractSlot(from) => {
                self.slot_sum(act.slot, number(from).map(|number| -number.max(0)))
            }
        };
        let Some(result) = result else { return false };
        self.tx.set_slot(act.slot, TxValue::Int(result));
        true
    }

    fn slot_sum(&mut self, slot: TxSlot, delta: Option<i64>) -> Option<i64> {
        let delta = delta?;
        let before = match self.tx.slot(slot) {
            TxValue::Int(number) => number,
            TxValue::Unset => 0,
            TxValue::Text(_) => return None,
        };
        if delta != 0 {
            self.changes.push(ScoreChange { slot, delta });
        }
        Some(before.saturating_add(delta).max(0))
    }
}
