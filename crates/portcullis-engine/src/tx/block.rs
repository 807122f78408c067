//! Runs of rules on `TX` that come to the same in most transactions, worked out at load time.
//!
//! A rule set begins with settings, and between the rules that look at the message stand others that only
//! compare numbers in `TX` and set them. The effect of such a block depends on the keys that it reads
//! and on nothing else. It is run once, when the plan is made, on what these hold where no rule has found
//! anything; a transaction in which they hold the same takes over the result. In any other the rules of
//! the block run one by one.

use crate::expansion::Expansions;
use crate::plan::{Plan, Step};
use crate::record::ScoreChange;

use super::rule::TxRule;
use super::{TxMachine, TxRules, TxSlot, TxStore, TxValue};

/// The blocks of a plan.
#[derive(Debug, Default)]
pub struct TxBlocks {
    blocks: Vec<TxBlock>,
    /// The texts that their effects speak of. All transactions begin with them, so that their places are the
    /// same.
    texts: Vec<u8>,
}

/// Steps that follow each other.
#[derive(Debug)]
pub(crate) struct TxBlock {
    /// The step at which the phase continues.
    pub(crate) end: usize,
    /// Rules on the message that stand between those of the block, in one word of the steps: none of them may
    /// have to run.
    pub(crate) others: (usize, u64),
    guard: Guard,
    effect: Effect,
}

/// The condition on `TX` under which the effect is right.
#[derive(Debug)]
enum Guard {
    /// Nothing was ever set.
    Untouched,
    /// These keys hold just this.
    Holds(Box<[(TxSlot, TxValue)]>),
}

/// The combined effect of the rules of a block.
#[derive(Debug)]
struct Effect {
    /// All of `TX`, where nothing was set before.
    snapshot: Option<Box<TxStore>>,
    /// The values of keys afterwards, in the order in which the keys were first written.
    writes: Box<[(TxSlot, TxValue)]>,
    changes: Box<[ScoreChange]>,
}

impl TxBlocks {
    /// Fewer rules are not worth it.
    const RULES_MIN: usize = 2;

    /// The block with this number.
    #[inline]
    pub(crate) fn block(&self, number: u32) -> Option<&TxBlock> {
        self.blocks.get(number as usize)
    }

    /// The texts with which the bytes of every transaction begin.
    pub(crate) fn texts(&self) -> &[u8] {
        &self.texts
    }

    /// The number of blocks.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Those of `plan`, and the steps that they begin with: phase number - 1, step, number of the block.
    /// `always` has the steps that run whatever the message is, by phase.
    pub(crate) fn new(plan: &Plan, always: &[Vec<u64>; 5]) -> (TxBlocks, Vec<(usize, usize, u32)>) {
        let mut found = TxBlocks::default();
        let mut begins = Vec::new();
        let mut tx = TxStore::default();
        tx.reset(plan.tx_names.len());
        for (phase, steps) in plan.steps.iter().enumerate() {
            let runs = |step: usize| always[phase][step / 64] >> (step % 64) & 1 == 1;
            let mut at = 0;
            while at < steps.len() {
                let mut builder = Builder::new(&plan.tx_rules, &tx, at);
                builder.run(&mut tx, &mut found.texts, steps, runs);
                let begin = at;
                at = builder.end.max(at + 1);
                if builder.count >= TxBlocks::RULES_MIN {
                    begins.push((phase, begin, found.blocks.len() as u32));
                    found.blocks.push(builder.finish(&tx));
                }
            }
        }
        (found, begins)
    }
}

impl TxBlock {
    /// Does what the rules of the block would do, if `machine` is as it must be for that; false: nothing was
    /// done.
    pub(crate) fn run(&self, machine: &mut TxMachine<'_>) -> bool {
        let holds = match &self.guard {
            Guard::Untouched => machine.tx.is_untouched(),
            Guard::Holds(keys) => keys.iter().all(|&(slot, value)| machine.tx.slot(slot) == value),
        };
        if !holds {
            return false;
        }
        if let Some(snapshot) = &self.effect.snapshot {
            machine.tx.clone_from(snapshot);
        }
        for &(slot, value) in &self.effect.writes {
            machine.tx.set_slot(slot, value);
        }
        machine.changes.extend_from_slice(&self.effect.changes);
        true
    }
}

/// A block in the making.
struct Builder<'p> {
    rules: &'p TxRules,
    is_untouched: bool,
    end: usize,
    /// Rules that ran.
    count: usize,
    others: Option<(usize, u64)>,
    reads: Vec<(TxSlot, TxValue)>,
    writes: Vec<TxSlot>,
    changes: Vec<ScoreChange>,
}

impl<'p> Builder<'p> {
    fn new(rules: &'p TxRules, tx: &TxStore, begin: usize) -> Builder<'p> {
        Builder {
            rules,
            is_untouched: tx.is_untouched(),
            end: begin,
            count: 0,
            others: None,
            reads: Vec::new(),
            writes: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Runs rules from the step at [`end`](Self::end) on, up to one that takes more than `TX`, or leaves more
    /// behind.
    fn run(&mut self, tx: &mut TxStore, texts: &mut Vec<u8>, steps: &[Step], runs: impl Fn(usize) -> bool) {
        let (mut at, mut others) = (self.end, self.others);
        while let Some(step) = steps.get(at) {
            let rule = self.rules.of(step.rule);
            if !runs(at) {
                // The first step of a block has to be one that runs: the executor comes by.
                if self.count == 0 || rule.is_none() && !add_other(&mut others, at) {
                    break;
                }
                at += 1;
                continue;
            }
            let Some(rule) = rule else { break };
            let Some(matches) = self.step(rule, tx, texts) else { break };
            at = if matches && step.skip_to != u32::MAX { step.skip_to as usize } else { at + 1 };
            (self.end, self.others) = (at, others);
            self.count += 1;
        }
    }

    /// Runs a rule; whether it matches. `None` if it cannot be part of a block: nothing has been done then.
    fn step(&mut self, rule: &TxRule, tx: &mut TxStore, texts: &mut Vec<u8>) -> Option<bool> {
        let mut reads: Vec<TxSlot> = rule.test.reads().collect();
        let matches = tx.holds(&rule.test, texts)?;
        let ops = if matches { self.rules.ops_of(rule) } else { &[] };
        let mut written = self.writes.clone();
        for op in ops {
            let read = op.reads(self.rules.texts())?;
            // What an earlier assignment of this rule left is no condition.
            reads.extend(read.into_iter().filter(|slot| !written.contains(slot)));
            written.push(op.slot);
        }
        let (mut after, texts_before, changes_before) = (tx.clone(), texts.len(), self.changes.len());
        let mut expansions = Expansions::at_load(texts_before);
        let changes = &mut self.changes;
        let mut machine = TxMachine { tx: &mut after, bytes: texts, changes, expansions: &mut expansions };
        ops.iter().for_each(|op| machine.apply(op, self.rules.texts()));
        if expansions.cut > 0 {
            // Every transaction would begin with texts this long.
            texts.truncate(texts_before);
            self.changes.truncate(changes_before);
            return None;
        }
        for slot in reads {
            if !self.writes.contains(&slot) && !self.reads.iter().any(|(known, _)| *known == slot) {
                self.reads.push((slot, tx.slot(slot)));
            }
        }
        *tx = after;
        self.writes = written;
        Some(matches)
    }

    fn finish(self, tx: &TxStore) -> TxBlock {
        let mut writes: Vec<TxSlot> = Vec::new();
        for slot in self.writes {
            if !writes.contains(&slot) {
                writes.push(slot);
            }
        }
        let writes = writes.into_iter().map(|slot| (slot, tx.slot(slot)));
        // Keys that it leaves as they were need no writing.
        let writes = writes.filter(|write| !self.reads.contains(write));
        let effect = match self.is_untouched {
            true => Effect {
                snapshot: Some(Box::new(tx.clone())),
                writes: Box::default(),
                changes: self.changes.into(),
            },
            false => Effect { snapshot: None, writes: writes.collect(), changes: self.changes.into() },
        };
        let guard = match self.is_untouched {
            true => Guard::Untouched,
            false => Guard::Holds(self.reads.into()),
        };
        TxBlock { end: self.end, others: self.others.unwrap_or_default(), guard, effect }
    }
}

/// Adds a step to the mask; false if it lies in another word.
fn add_other(others: &mut Option<(usize, u64)>, step: usize) -> bool {
    let (word, mask) = others.get_or_insert((step / 64, 0));
    *mask |= if *word == step / 64 { 1 << (step % 64) } else { 0 };
    *word == step / 64
}
