//! The panic guard: a bug in an inspection ends that inspection and nothing else. Time is measured here, too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use portcullis_inspect::{Inspection, Outcome, Report, Step};

/// A phase, when it began, and how long it took.
pub type Phase = (&'static str, Instant, Duration);

/// The state of an inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Well,
    /// It is not wanted, or has come to its end.
    Off,
    /// A bug was caught.
    Broken,
}

/// Measures the processor time of work on the thread that does it.
#[derive(Clone, Copy, Debug)]
pub struct WorkClock {
    /// Work begins now.
    pub begin: fn(Instant),
    /// The processor time of work between two moments, of which the second is now.
    pub since: fn(Instant, Instant) -> Duration,
}

impl WorkClock {
    /// Takes the time that passed for processor time.
    pub const WALL: WorkClock = WorkClock { begin: |_| {}, since: |start, now| now - start };
}

/// An inspection done on another thread, which has it until its owner gives it back.
#[derive(Debug)]
pub struct Borrowed {
    /// The inspection and its step; none if a bug was caught.
    pub ended: Option<(Box<Inspection>, Step)>,
    /// The time that it took.
    pub took: Duration,
    /// The processor time of that.
    pub worked: Duration,
}

#[derive(Debug)]
enum State {
    Running(Box<Inspection>),
    Off,
    Broken,
}

/// An inspection that cannot take its thread down.
#[derive(Debug)]
pub(super) struct Guard {
    state: State,
    clock: WorkClock,
    /// Bytes of the buffers that were lent when it began.
    lent_bytes: usize,
    spent: Duration,
    /// The processor time of that.
    cost: Duration,
    /// The end of the last step that was timed.
    last: Option<Instant>,
    /// The phases that have run, if they are wanted.
    phases: Option<Vec<Phase>>,
}

impl Guard {
    pub(super) fn off() -> Guard {
        Guard {
            state: State::Off,
            clock: WorkClock::WALL,
            lent_bytes: 0,
            spent: Duration::ZERO,
            cost: Duration::ZERO,
            last: None,
            phases: None,
        }
    }

    pub(super) fn begin(clock: WorkClock, begin: impl FnOnce() -> Box<Inspection>) -> Guard {
        let mut guard = Guard { clock, ..Guard::off() };
        let start = Instant::now();
        (clock.begin)(start);
        guard.state = match catch_unwind(AssertUnwindSafe(begin)) {
            Ok(inspection) => State::Running(inspection),
            Err(_) => State::Broken,
        };
        guard.lent_bytes = guard.call(|inspection| inspection.held_bytes()).unwrap_or(0);
        guard.count(start);
        guard
    }

    pub(super) fn health(&self) -> Health {
        match self.state {
            State::Running(_) => Health::Well,
            State::Off => Health::Off,
            State::Broken => Health::Broken,
        }
    }

    pub(super) fn running(&self) -> Option<&Inspection> {
        match &self.state {
            State::Running(inspection) => Some(inspection),
            State::Off | State::Broken => None,
        }
    }

    pub(super) fn held_bytes(&mut self) -> usize {
        let held = self.call(|inspection| inspection.held_bytes()).unwrap_or(0);
        held.saturating_sub(self.lent_bytes)
    }

    pub(super) fn spent(&self) -> Duration {
        self.spent
    }

    pub(super) fn cost(&self) -> Duration {
        self.cost
    }

    pub(super) fn keep_phases(&mut self) {
        self.phases = Some(Vec::new());
    }

    pub(super) fn take_phases(&mut self) -> Vec<Phase> {
        self.phases.take().unwrap_or_default()
    }

    /// A whole phase, whose time is kept if phases are wanted.
    pub(super) fn phase(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Inspection) -> Step,
    ) -> Option<Step> {
        if self.phases.is_none() || self.health() != Health::Well {
            return self.timed(work);
        }
        let (begin, before) = (Instant::now(), self.spent);
        let step = self.timed(work);
        if let Some(phases) = &mut self.phases {
            phases.push((name, begin, self.spent - before));
        }
        step
    }

    /// Runs work whose time is counted.
    pub(super) fn timed<T>(&mut self, work: impl FnOnce(&mut Inspection) -> T) -> Option<T> {
        self.timed_from(None, work)
    }

    /// The same; `start` is now, if the clock has just been read.
    pub(super) fn timed_from<T>(
        &mut self,
        start: Option<Instant>,
        work: impl FnOnce(&mut Inspection) -> T,
    ) -> Option<T> {
        if !matches!(self.state, State::Running(_)) {
            return None;
        }
        let start = start.unwrap_or_else(Instant::now);
        (self.clock.begin)(start);
        let result = self.call(work);
        self.count(start);
        result
    }

    /// Runs work that only looks something up: reading the clock would cost more.
    pub(super) fn call<T>(&mut self, work: impl FnOnce(&mut Inspection) -> T) -> Option<T> {
        let State::Running(inspection) = &mut self.state else { return None };
        let result = catch_unwind(AssertUnwindSafe(|| work(inspection)));
        if result.is_err() {
            self.abandon();
        }
        result.ok()
    }

    /// Ends the inspection as broken.
    pub(super) fn abandon(&mut self) {
        let broken = std::mem::replace(&mut self.state, State::Broken);
        // Dropping what is left may panic again; it may not unwind through the thread either.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(broken)));
    }

    /// Lends the inspection to another thread. If it does not come back it counts as broken.
    pub(super) fn lend(&mut self) -> Option<Box<Inspection>> {
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Running(inspection) => Some(inspection),
            other @ (State::Off | State::Broken) => {
                self.state = other;
                None
            }
        }
    }

    /// Takes back an inspection with which nothing was done.
    pub(super) fn take_back(&mut self, inspection: Box<Inspection>) {
        self.state = State::Running(inspection);
    }

    /// Takes back an inspection with what was done since `begin`: the phase, if it was a whole one.
    pub(super) fn give_back(
        &mut self,
        phase: Option<&'static str>,
        begin: Instant,
        borrowed: Borrowed,
    ) -> Option<Step> {
        let Borrowed { ended, took, worked } = borrowed;
        self.spent += took;
        self.cost += worked;
        self.last = None;
        if let (Some(name), Some(phases)) = (phase, &mut self.phases) {
            phases.push((name, begin, took));
        }
        let (inspection, step) = ended?;
        self.state = State::Running(inspection);
        Some(step)
    }

    /// Phase 5 unless it has run, and the report; none without a working inspection.
    pub(super) fn finish(&mut self, outcome: &Outcome) -> Option<Report> {
        let State::Running(inspection) = std::mem::replace(&mut self.state, State::Off) else { return None };
        // Right behind phase 5.
        let start = self.last.unwrap_or_else(Instant::now);
        (self.clock.begin)(start);
        let report = catch_unwind(AssertUnwindSafe(|| inspection.finish(outcome)));
        self.count(start);
        if report.is_err() {
            self.state = State::Broken;
        }
        report.ok()
    }

    fn count(&mut self, start: Instant) {
        let now = Instant::now();
        self.spent += now - start;
        self.cost += (self.clock.since)(start, now);
        self.last = Some(now);
    }
}
