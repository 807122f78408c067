//! One request with its response, from its head to its report, and what every step of it needs.

use std::sync::Arc;

use h2::Reason;
use portcullis_event::{ExceptionCause, ExceptionPolicy};
use portcullis_exchange::NO_MEMORY;
use portcullis_http::message::RequestHead;
use portcullis_inspect::Step;
use portcullis_metrics::Pause;

use crate::access::Denial;
use crate::answer::Answer;
use crate::budget::Full;
use crate::connection::Connection;
use crate::generation::Generation;
use crate::lookups;
use crate::route::Route;
use crate::state::Shared;
use crate::transaction::Transaction;

/// The future of the client connection after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It may carry another request.
    Request,
    /// It is closed once the client has had time to read.
    Close,
    /// It is closed at once: broken, a tunnel that has ended, or dropped on purpose.
    Gone,
    /// The stream of HTTP/2 or 3 ends without an answer: the request has to come over HTTP/1.1.
    Http1,
}

impl Next {
    /// Why a stream of HTTP/2 is reset, if it is.
    pub(crate) fn reset(self) -> Option<Reason> {
        match self {
            Next::Request | Next::Close => None,
            Next::Gone => Some(Reason::INTERNAL_ERROR),
            Next::Http1 => Some(Reason::HTTP_1_1_REQUIRED),
        }
    }
}

/// One request that is being served.
pub(crate) struct Exchange<'a> {
    pub(crate) connection: &'a mut Connection,
    /// The settings that serve it, whatever is loaded meanwhile.
    pub(crate) generation: &'a Arc<Generation>,
    pub(crate) head: &'a RequestHead,
    /// The route that serves it, if there is one.
    pub(crate) route: Option<&'a Route>,
    pub(crate) transaction: Transaction,
}

/// Seconds after which a client may retry that was refused for lack of memory or room.
pub(crate) const RETRY_AFTER_SECONDS: u32 = 2;

impl Exchange<'_> {
    /// State that all workers share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.connection.worker.shared
    }

    /// Has the questions of a step answered, and goes on with the phase, until it asks no more.
    pub(crate) async fn settle(&mut self, step: Step) -> Step {
        let (worker, transaction) = (&self.connection.worker, &mut self.transaction);
        let settings = &self.generation.lookups;
        let mut step = step;
        while step == Step::Ask {
            let answers = match transaction.life.running() {
                Some(inspection) => {
                    let ask = |(id, question)| async move {
                        (id, worker.lookups.ask(&worker.shared.lookups, settings, question).await)
                    };
                    lookups::all(inspection.questions().map(ask).collect()).await
                }
                None => Vec::new(),
            };
            step = transaction.life.resume(answers, "A lookup that the rules ask for failed.");
        }
        step
    }

    /// Waits as long as the rules that have just run asked for.
    pub(crate) async fn pause(&mut self) {
        let asked = self.transaction.life.take_pause();
        if asked.is_zero() {
            return;
        }
        let (worker, generation) = (&self.connection.worker, self.generation);
        let counters = &worker.shared.services.metrics.pauses;
        let Some(_permit) = worker.pauses.take(generation.pauses_max) else {
            return counters.inc(Pause::Skipped as usize);
        };
        let kind = if asked > generation.pause_max { Pause::Shortened } else { Pause::Full };
        counters.inc(kind as usize);
        self.connection.timer.arm(asked.min(generation.pause_max));
        let _ = self.connection.timer.run(std::future::pending::<()>()).await;
    }

    /// A control refuses the request. `reusable`: nothing of it is left to read.
    pub(crate) fn denied(&self, denial: Denial, reusable: bool) -> Answer {
        let reason = self.transaction.decision.as_ref().map_or("", |decision| &decision.reason).to_string();
        Answer::denied(denial, reason).reusable(reusable)
    }

    /// The request, or its inspection, finds no room.
    pub(crate) fn no_room(&mut self, full: Full) -> Answer {
        self.transaction.life.exception(ExceptionCause::BudgetSpent, ExceptionPolicy::Closed);
        self.shared().budget.count_refused(full);
        let (status, text) = full.answer();
        let answer = Answer::rejected(status, text);
        if status == 503 { answer.retry_after(RETRY_AFTER_SECONDS) } else { answer }
    }

    /// A body that rules made is larger than what may be held at present.
    pub(crate) fn no_memory(&mut self) -> Answer {
        self.transaction.life.exception(ExceptionCause::BudgetSpent, ExceptionPolicy::Closed);
        Answer::rejected(NO_MEMORY.0, NO_MEMORY.1).retry_after(RETRY_AFTER_SECONDS)
    }
}
