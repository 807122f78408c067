//! Rules on settings and scores that come to the same in most transactions, worked out at load time.
//!
//! Between the rules that look at the message stand stretches of rules that only compare numbers in `TX` and set numbers there. What such a
//! stretch does depends on the keys that it reads and on nothing else. It is run once, when the plan is made, on what these hold where no rule
//! has found anything; a transaction in which they hold the same takes over what came of it.

use portcullis_types::Phase;

use crate::plan::{Plan, Step};
use crate::prefilter::PrefilterState;
use crate::transaction::Transaction;
use crate::tx_store::{TxSlot, TxValue};

/// By phase.
#[derive(Debug, Default)]
pub struct Stretches([Vec<Stretch>; 5]);

/// Steps that follow each other, in one word of the bits that say which of them run.
#[derive(Debug)]
struct Stretch {
    begin: usize,
    /// Where to go on.
    end: usize,
    /// The bits of its steps, and those of them that run.
    steps: u64,
    run: u64,
    /// What `TX` must hold: numbers, or nothing.
    reads: Vec<(TxSlot, TxValue)>,
    /// What it holds afterwards, in the order in which it came there, as far as it is something else.
    writes: Vec<(TxSlot, TxValue)>,
}

impl Stretches {
    /// Fewer steps are not worth it.
    const STEPS_MIN: usize = 2;

    /// Of a plan that has all the rest.
    pub(crate) fn new(plan: &Plan) -> Stretches {
        let mut state = PrefilterState::default();
        state.reset(&plan.prefilter, false);
        let mut run = Transaction::of_nobody();
        run.tx.reset(plan.tx_names.len());
        let after_prelude = run.take_prelude(plan, plan.prelude.begin());
        let phases = [
            Phase::RequestHeaders,
            Phase::RequestBody,
            Phase::ResponseHeaders,
            Phase::ResponseBody,
            Phase::Logging,
        ];
        Stretches(phases.map(|phase| {
            let from = if phase == Phase::RequestHeaders { after_prelude.unwrap_or(0) } else { 0 };
            of_phase(plan, &state, &mut run, phase, from)
        }))
    }
}

fn of_phase(
    plan: &Plan,
    state: &PrefilterState,
    run: &mut Transaction,
    phase: Phase,
    from: usize,
) -> Vec<Stretch> {
    let steps = &plan.steps[usize::from(phase.number()) - 1];
    let mut found = Vec::new();
    let mut at = from;
    while let Some(begin) = state.next(phase, at) {
        let mut count = 0;
        let mut stretch =
            Stretch { begin, end: begin, steps: 0, run: 0, reads: Vec::new(), writes: Vec::new() };
        while let Some(step) = state.next(phase, stretch.end).filter(|step| step / 64 == begin / 64)
            && let Some(end) = stretch.add(plan, run, steps, step)
        {
            stretch.steps = u64::MAX << (begin % 64) & u64::MAX >> (63 - step % 64);
            stretch.end = end;
            count += 1;
        }
        at = stretch.end.max(begin + 1);
        if count >= Stretches::STEPS_MIN {
            stretch.run = state.runs(phase, begin / 64) & stretch.steps;
            stretch.leave_out_what_stays(run);
            found.push(stretch);
        }
    }
    found
}

impl Stretch {
    /// Runs a step; says where to go on. `None` if it takes more than numbers in `TX`, or leaves more behind: nothing has been done then.
    fn add(&mut self, plan: &Plan, run: &mut Transaction, steps: &[Step], at: usize) -> Option<usize> {
        let step = steps.get(at)?;
        let rule = plan.shortcuts.of(step.rule)?;
        let mut reads = Vec::new();
        if !rule.is_certain {
            reads.extend(rule.first.slots()?);
        }
        let (mut end, mut writes) = (at + 1, Vec::new());
        if rule.is_certain || run.decide(plan, &rule.first)? {
            if !rule.is_plain || !rule.is_all_numbers {
                return None;
            }
            let acts = plan.shortcuts.acts_of(rule);
            reads.extend(acts.iter().flat_map(|act| act.reads()));
            writes.extend(acts.iter().map(|act| act.slot()));
            if step.skip_to != u32::MAX {
                end = step.skip_to as usize;
            }
        }
        reads.retain(|&slot| !self.writes.iter().chain(&self.reads).any(|&(known, _)| known == slot));
        if reads.iter().any(|&slot| matches!(run.tx.slot(slot), TxValue::Text(_))) {
            return None;
        }
        let values: Vec<_> = reads.iter().map(|&slot| (slot, run.tx.slot(slot))).collect();
        if !writes.is_empty() {
            let (before, changes) = (run.tx.clone(), run.changes.len());
            if !plan.shortcuts.acts_of(rule).iter().all(|act| run.run_slot_act(act))
                || run.changes.len() > changes
            {
                run.tx = before;
                run.changes.truncate(changes);
                return None;
            }
        }
        self.reads.extend(values);
        for slot in writes {
            if !self.writes.iter().any(|&(known, _)| known == slot) {
                self.writes.push((slot, TxValue::Unset));
            }
        }
        Some(end)
    }

    /// What is written comes to be known with the last step: keys that it leaves as they were are not.
    fn leave_out_what_stays(&mut self, run: &Transaction) {
        let reads = &self.reads;
        self.writes.retain_mut(|write| {
            write.1 = run.tx.slot(write.0);
            !reads.contains(write)
        });
    }
}

impl Transaction {
    /// Takes over what the stretch that begins at this step of the phase comes to, if there is one and it holds here; says where to go on.
    pub(crate) fn take_stretch(&mut self, plan: &Plan, at: usize) -> Option<usize> {
        let stretches = &plan.stretches.0[usize::from(self.phase.number()) - 1];
        let stretch = stretches.iter().find(|stretch| stretch.begin == at)?;
        let runs = self.prefilter_state.as_deref()?.runs(self.phase, at / 64);
        if runs & stretch.steps != stretch.run
            || stretch.reads.iter().any(|&(slot, value)| self.tx.slot(slot) != value)
        {
            return None;
        }
        for &(slot, value) in &stretch.writes {
            self.tx.set_slot(slot, value);
        }
        Some(stretch.end)
    }
}
