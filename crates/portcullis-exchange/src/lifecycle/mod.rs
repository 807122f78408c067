//! The lifecycle of an exchange, for every kind of server: phases, failure policies, refusals, outcome,
//! report.
//!
//! ```text
//! begin ─> request_head ─> request_body* ─> request_end ─> response_head ─> response_body* ─> response_end
//!   each phase: Continue │ Ask ─> resume(answers) │ Interrupt; a caught bug is settled by the failure policy
//!   undecodable, exhausted, oversized: the refusal, if that is the policy
//! logging (phase 5) ─> finish(Facts) ─> Finished { action, event, coverage, report } ─> Counters::count
//! ```
//!
//! Nothing here waits, reads from a connection or writes to one. The caller moves the bytes, answers the
//! questions of rules, carries out what a step asks for, and notes in [`Lifecycle::outcome`] what it did.

mod end;
mod failures;
mod guard;
mod phases;
mod shown;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use portcullis_config::Failure;
use portcullis_event::{Action, ExceptionPolicy};
use portcullis_http::message::Refusal;
use portcullis_inspect::{Decision, Inspection, Outcome, Step};

pub use end::{Facts, Finished};
pub use failures::{NO_MEMORY, REDIRECTED, TOO_LARGE, settle};
pub use guard::{Borrowed, Health, Phase, WorkClock};
pub use phases::upload;
pub use shown::{Beyond, Shown};

use guard::Guard;

/// One exchange from its first phase to its report.
#[derive(Debug)]
pub struct Lifecycle {
    guard: Guard,
    failure: Failure,
    /// Why the request is no acceptable HTTP, if it is not.
    pub refusal: Option<Refusal>,
    /// The action of the verdict, where it was carried out.
    pub action: Action,
    /// Result of the exchange so far.
    pub outcome: Outcome,
}

impl Default for Lifecycle {
    /// An exchange that is not inspected.
    fn default() -> Lifecycle {
        Lifecycle {
            guard: Guard::off(),
            failure: Failure::default(),
            refusal: None,
            action: Action::Pass,
            outcome: Outcome::default(),
        }
    }
}

impl Lifecycle {
    /// Begins the inspection of an exchange. A bug in `begin` counts as one of the inspection.
    pub fn begin(failure: Failure, clock: WorkClock, begin: impl FnOnce() -> Box<Inspection>) -> Lifecycle {
        Lifecycle { guard: Guard::begin(clock, begin), failure, ..Lifecycle::default() }
    }

    /// The state of the inspection.
    pub fn health(&self) -> Health {
        self.guard.health()
    }

    /// The inspection, while there is one.
    pub fn running(&self) -> Option<&Inspection> {
        self.guard.running()
    }

    /// True if rules or the semantic detector decided, and not a limit or a bug.
    pub fn is_verdict(&self) -> bool {
        self.outcome.rejection.is_none() && self.health() != Health::Broken
    }

    /// The decision of the inspection, if it is all that there is to report of the exchange so far.
    pub fn decision(&mut self) -> Option<Decision> {
        let Lifecycle { guard, outcome, .. } = self;
        guard.call(|inspection| inspection.decision(outcome)).flatten()
    }

    /// Bytes of memory, about, that the inspection took for this exchange. What was lent to it is not the
    /// client's: buffers that a large body has left behind would make the next request, however small, one
    /// that holds a lot.
    pub fn held_bytes(&mut self) -> usize {
        self.guard.held_bytes()
    }

    /// Time spent in the inspection so far.
    pub fn spent(&self) -> Duration {
        self.guard.spent()
    }

    /// Processor time that it has taken so far.
    pub fn cost(&self) -> Duration {
        self.guard.cost()
    }

    /// Keeps the times of the phases from now on.
    pub fn keep_phases(&mut self) {
        self.guard.keep_phases();
    }

    /// The phases that have run.
    pub fn take_phases(&mut self) -> Vec<Phase> {
        self.guard.take_phases()
    }

    /// Ends the inspection, after a bug that was caught elsewhere.
    pub fn abandon(&mut self) {
        self.guard.abandon();
    }

    /// Lends the inspection to another thread, to be given back with [`give_back`](Lifecycle::give_back) or
    /// [`take_back`](Lifecycle::take_back). If it does not come back it counts as broken.
    pub fn lend(&mut self) -> Option<Box<Inspection>> {
        self.guard.lend()
    }

    /// Takes back an inspection with which nothing was done.
    pub fn take_back(&mut self, inspection: Box<Inspection>) {
        self.guard.take_back(inspection);
    }

    /// Takes back an inspection with what was done since `begin`: a whole phase, if `phase` names it.
    pub fn give_back(&mut self, phase: Option<&'static str>, begin: Instant, borrowed: Borrowed) -> Step {
        let step = self.guard.give_back(phase, begin, borrowed);
        self.after(step)
    }

    /// Runs a part of a phase.
    pub fn step(&mut self, work: impl FnOnce(&mut Inspection) -> Step) -> Step {
        let step = self.guard.timed(work);
        self.after(step)
    }

    /// Runs work that only looks something up; none without a working inspection.
    pub fn call<T>(&mut self, work: impl FnOnce(&mut Inspection) -> T) -> Option<T> {
        self.guard.call(work)
    }

    fn phase(&mut self, name: &'static str, work: impl FnOnce(&mut Inspection) -> Step) -> Step {
        let step = self.guard.phase(name, work);
        self.after(step)
    }

    /// The consequence of a step, which is none where no inspection made one. Also of a bug in `begin`, or in
    /// work that returns nothing.
    pub fn after(&self, step: Option<Step>) -> Step {
        match step {
            Some(step) => step,
            None if self.health() == Health::Broken && self.engine_error() == ExceptionPolicy::Closed => {
                failures::broken()
            }
            None => Step::Continue,
        }
    }
}
