//! Rules on `TX` alone as instructions: one comparison, then assignments.

use portcullis_types::Variable;

use crate::plan::{Act, Disruption, Link, Plan, Rule, RuleIndex, SetVar, SetVarOperation};
use crate::template::{Part, Template};

use super::TxSlot;
use super::test::{LinkTest, TxTest};

/// The rules of a plan that are instructions.
#[derive(Debug, Default)]
pub struct TxRules {
    /// By rule.
    rules: Vec<Option<TxRule>>,
    /// Of all rules, one behind the other.
    ops: Vec<TxOp>,
    /// The texts that [`Operation::Text`] refers to.
    texts: Vec<Template>,
}

/// A rule with one link, which compares a number in `TX`; a match assigns `TX` keys, and is not logged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TxRule {
    /// [`TxTest::Always`] also where it is known at load time that it matches each time.
    pub(crate) test: TxTest,
    /// The first of its assignments, and their number.
    ops: (u32, u32),
}

/// An assignment to a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TxOp {
    pub(crate) slot: TxSlot,
    pub(crate) operation: Operation,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Set(i64),
    /// A text of literals and keys, by its place in [`TxRules`].
    Text(u32),
    Copy(TxSlot),
    Add(i64),
    AddSlot(TxSlot),
    SubtractSlot(TxSlot),
    Unset,
}

impl TxRules {
    /// Those of `plan`, whose links have these tests.
    pub(crate) fn new(plan: &Plan, tests: &super::LinkTests) -> TxRules {
        let mut found = TxRules::default();
        let certain = plan.certain.iter().copied().chain(std::iter::repeat(false));
        for (rule, certain) in plan.rules.iter().zip(certain) {
            let known = match (plan.links_of(rule), tests.of(rule.first_link as usize)) {
                ([link], LinkTest::Tx(test)) if is_silent(rule) => {
                    found.enter(if certain { TxTest::Always } else { test }, link)
                }
                _ => None,
            };
            found.rules.push(known);
        }
        found
    }

    fn enter(&mut self, test: TxTest, link: &Link) -> Option<TxRule> {
        if !link.acts.iter().all(sets_tx_alone) {
            return None;
        }
        let from = self.ops.len();
        for act in &link.acts {
            let op = self.op(act)?;
            self.ops.push(op);
        }
        Some(TxRule { test, ops: (from as u32, (self.ops.len() - from) as u32) })
    }

    fn op(&mut self, act: &Act) -> Option<TxOp> {
        let Act::SetVar(SetVar { slot: Some(slot), operation, .. }) = act else { return None };
        let operation = match operation {
            SetVarOperation::SetNumber(number) => Operation::Set(*number),
            SetVarOperation::AddNumber(delta) => Operation::Add(*delta),
            SetVarOperation::Set(text) => match only_slot(text) {
                Some(from) => Operation::Copy(from),
                None => {
                    self.texts.push(text.clone());
                    Operation::Text(self.texts.len() as u32 - 1)
                }
            },
            SetVarOperation::Add(text) => Operation::AddSlot(only_slot(text)?),
            SetVarOperation::Subtract(text) => Operation::SubtractSlot(only_slot(text)?),
            SetVarOperation::Unset => Operation::Unset,
        };
        Some(TxOp { slot: *slot, operation })
    }

    /// The instructions of a rule, if it is of this kind.
    pub(crate) fn of(&self, rule: RuleIndex) -> Option<&TxRule> {
        self.rules.get(rule.0 as usize)?.as_ref()
    }

    /// The assignments of a rule.
    #[inline]
    pub(crate) fn ops_of(&self, rule: &TxRule) -> &[TxOp] {
        let (from, count) = (rule.ops.0 as usize, rule.ops.1 as usize);
        self.ops.get(from..from + count).unwrap_or_default()
    }

    /// The texts that text assignments refer to.
    pub(crate) fn texts(&self) -> &[Template] {
        &self.texts
    }

    /// True if nothing is different when the rule does not run, but that its match is not remembered.
    pub(crate) fn is_idle(&self, rule: RuleIndex) -> bool {
        self.of(rule).is_some_and(|rule| matches!(rule.test, TxTest::Always) && rule.ops.1 == 0)
    }
}

impl TxOp {
    /// The slots that the result depends on; `None` if more than their values matters.
    pub(crate) fn reads(&self, texts: &[Template]) -> Option<Vec<TxSlot>> {
        Some(match self.operation {
            Operation::Set(_) => Vec::new(),
            Operation::Copy(from) => vec![from],
            Operation::Add(_) => vec![self.slot],
            Operation::AddSlot(from) | Operation::SubtractSlot(from) => vec![self.slot, from],
            Operation::Text(text) => texts.get(text as usize)?.parts.iter().filter_map(Part::slot).collect(),
            // A key that is set anew takes another place among the keys.
            Operation::Unset => return None,
        })
    }
}

/// True if a match of the rule shows nowhere but in what its actions do.
pub(crate) fn is_silent(rule: &Rule) -> bool {
    !rule.log
        && !rule.audit_log
        && rule.pause.is_none()
        && rule.metadata.severity.is_none()
        && matches!(rule.disruption, Disruption::Pass)
}

/// True for `setvar` of `TX` keys that rules name, to what is made of literals and other such keys.
pub(crate) fn sets_tx_alone(act: &Act) -> bool {
    let Act::SetVar(set) = act else { return false };
    let is_of_tx =
        |text: &Template| text.parts.iter().all(|part| matches!(part, Part::Literal(_) | Part::Tx(_)));
    let operand = match &set.operation {
        SetVarOperation::Set(text) | SetVarOperation::Add(text) | SetVarOperation::Subtract(text) => {
            is_of_tx(text)
        }
        SetVarOperation::SetNumber(_) | SetVarOperation::AddNumber(_) | SetVarOperation::Unset => true,
    };
    set.collection == Variable::Tx && set.slot.is_some() && operand
}

fn only_slot(text: &Template) -> Option<TxSlot> {
    match text.parts.as_slice() {
        [Part::Tx(slot)] => Some(*slot),
        _ => None,
    }
}
