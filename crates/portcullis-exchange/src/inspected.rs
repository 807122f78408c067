//! An inspection whose panics stay inside, and whose time is measured.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use portcullis_config::OpenOrClosed;
use portcullis_inspect::{Connection, Inspection, Interruption, Outcome, Report, Step};

use crate::service::Service;
use crate::settings::Settings;

/// The inspection of one exchange; none once a bug was caught, or it is over.
#[derive(Debug)]
pub(crate) struct Inspected {
    running: Option<Box<Inspection>>,
    is_broken: bool,
    on_error: OpenOrClosed,
    /// Bytes of the buffers that were lent when it began.
    lent_bytes: usize,
    spent: Duration,
}

impl Inspected {
    pub(crate) fn begin(service: &Service, settings: &Settings, connection: Connection) -> Inspected {
        let begin = Instant::now();
        let (scratch, secret) = (service.take_scratch(), || service.secret());
        let running = catch_unwind(AssertUnwindSafe(|| {
            let mut inspection = settings.inspector.begin(&settings.names, connection, scratch);
            inspection.name_files(secret);
            inspection
        }));
        let is_broken = running.is_err();
        let mut inspected = Inspected {
            running: running.ok(),
            is_broken,
            on_error: settings.failure.engine_error,
            lent_bytes: 0,
            spent: begin.elapsed(),
        };
        inspected.lent_bytes = inspected.call(|inspection| inspection.held_bytes()).unwrap_or(0);
        inspected
    }

    /// A bug was caught.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Time spent in it so far.
    pub(crate) fn spent(&self) -> Duration {
        self.spent
    }

    /// Bytes of memory that it took for this exchange, about.
    pub(crate) fn held_bytes(&mut self) -> usize {
        let held = self.call(|inspection| inspection.held_bytes()).unwrap_or(0);
        held.saturating_sub(self.lent_bytes)
    }

    /// Runs a phase. After a bug the failure policy decides.
    pub(crate) fn step(&mut self, work: impl FnOnce(&mut Inspection) -> Step) -> Step {
        match self.call(work) {
            Some(step) => step,
            None if self.is_broken && self.on_error == OpenOrClosed::Closed => {
                Step::Interrupt(Interruption::Deny { status: 500 })
            }
            None => Step::Continue,
        }
    }

    /// Runs other work; none without a working inspection.
    pub(crate) fn call<T>(&mut self, work: impl FnOnce(&mut Inspection) -> T) -> Option<T> {
        let inspection = self.running.as_mut()?;
        let begin = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| work(inspection)));
        self.spent += begin.elapsed();
        if result.is_err() {
            self.is_broken = true;
            // Dropping what is left may panic again.
            let broken = self.running.take();
            let _ = catch_unwind(AssertUnwindSafe(|| drop(broken)));
        }
        result.ok()
    }

    /// The report; none without a working inspection.
    pub(crate) fn finish(&mut self, outcome: &Outcome) -> Option<Report> {
        let inspection = self.running.take()?;
        let begin = Instant::now();
        let report = catch_unwind(AssertUnwindSafe(|| inspection.finish(outcome)));
        self.spent += begin.elapsed();
        self.is_broken |= report.is_err();
        report.ok()
    }
}
