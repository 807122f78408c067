//! The inspection of one transaction, as the proxy uses it: a panic inside stays inside, time is measured,
//! and a transaction without inspection looks the same.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::{Duration, Instant};

use portcullis_config::OpenOrClosed;
use portcullis_http::message::{Refusal, RequestHead, ResponseHead};
use portcullis_inspect::{
    Answer, BodyPlan, Charge, CodingError, Connection, Inspection, Interruption, Outcome, QuestionId, Report,
    ResponseEdits, Step,
};

use crate::beside::{Asker, Busy, Done, Weight};
use crate::budget::Full;
use crate::clock;
use crate::route::Route;
use crate::state::Worker;
use crate::trailers::Trailers;

/// An inspection that cannot take its worker down.
pub(crate) struct Guarded {
    state: State,
    /// Bytes of the buffers that the worker lent when it began.
    lent_bytes: usize,
    on_error: OpenOrClosed,
    spent: Duration,
    /// The processor time of that.
    cost: Duration,
    /// The end of the last step that was timed.
    last: Option<Instant>,
    /// The phases that have run, if they are wanted.
    phases: Option<Vec<Phase>>,
}

/// A phase, when it began, and how long it took.
pub(crate) type Phase = (&'static str, Instant, Duration);

enum State {
    Running(Box<Inspection>),
    /// There are no rules for this route.
    Off,
    /// A bug was caught.
    Broken,
}

/// The state of an inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// It does.
    Well,
    /// It is not wanted, or has come to its end.
    Off,
    /// A bug was caught.
    Broken,
}

impl Guarded {
    /// Begins an inspection, if there is a route with rules.
    pub(crate) fn begin(
        route: Option<&Route>,
        worker: &Rc<Worker>,
        connection: impl FnOnce() -> Connection,
    ) -> Self {
        let on_error = route.map_or(OpenOrClosed::Closed, |route| route.failure.engine_error);
        let mut guarded = Guarded {
            state: State::Off,
            lent_bytes: 0,
            on_error,
            spent: Duration::ZERO,
            cost: Duration::ZERO,
            last: None,
            phases: None,
        };
        if let Some((inspector, names)) =
            route.and_then(|route| route.inspector.as_ref().zip(Some(&route.names)))
        {
            let start = Instant::now();
            clock::begin_work(start);
            let scratch = worker.take_scratch();
            let begin = || {
                let mut inspection = inspector.begin(names, connection(), scratch);
                inspection.name_files(|| worker.request_ids.borrow_mut().secret());
                inspection
            };
            guarded.state = match catch_unwind(AssertUnwindSafe(begin)) {
                Ok(inspection) => State::Running(inspection),
                Err(_) => State::Broken,
            };
            guarded.lent_bytes = guarded.call(|inspection| inspection.held_bytes()).unwrap_or(0);
            guarded.count(start);
        }
        guarded
    }

    /// Phase 1.
    pub(crate) fn request_head(&mut self, head: &RequestHead, refusal: Option<Refusal>) -> Step {
        self.phase("inspection phase 1", |inspection| inspection.request_head(head, refusal))
    }

    /// The plan for the request body.
    pub(crate) fn request_body_plan(&mut self) -> BodyPlan {
        self.call(|inspection| inspection.request_body_plan()).unwrap_or(BodyPlan::Skip)
    }

    /// Bytes of the request body.
    pub(crate) fn request_body(&mut self, chunk: &[u8]) {
        self.timed(|inspection| inspection.request_body(chunk));
    }

    /// See [`Inspection::given_up`](portcullis_inspect::Inspection::given_up).
    pub(crate) fn given_up(&mut self) -> Option<&'static str> {
        self.call(|inspection| inspection.given_up()).flatten()
    }

    /// Bytes of memory, about, that it took for this exchange. What the worker lent is not the client's:
    /// buffers that a large body has left behind would make the next request, however small, one that holds a
    /// lot.
    pub(crate) fn held_bytes(&mut self) -> usize {
        let held = self.call(|inspection| inspection.held_bytes()).unwrap_or(0);
        held.saturating_sub(self.lent_bytes)
    }

    /// Drops what has been shown of the request body, which is refused.
    pub(crate) fn forget_request_body(&mut self) {
        self.call(|inspection| inspection.forget_request_body());
    }

    /// The number of bytes that each byte of the request body may take, with the one that is held.
    pub(crate) fn request_copies(&mut self) -> usize {
        1 + self.call(|inspection| inspection.request_copies()).unwrap_or(0)
    }

    /// The same for the response body.
    pub(crate) fn response_copies(&mut self) -> usize {
        1 + self.call(|inspection| inspection.response_copies()).unwrap_or(0)
    }

    /// Bytes of memory that phase 2 may take beside what is held.
    pub(crate) fn request_end_bytes(&mut self) -> usize {
        self.call(|inspection| inspection.request_end_bytes()).unwrap_or(0)
    }

    /// Why rules do not see what the request body says in its content coding.
    pub(crate) fn request_coding_error(&mut self, complete: bool) -> Option<CodingError> {
        self.timed(|inspection| inspection.request_coding_error(complete)).flatten()
    }

    /// The settings let the request body pass without inspection in the coding that it is in.
    pub(crate) fn passes_coding(&mut self) -> bool {
        self.call(|inspection| inspection.passes_coding()).unwrap_or(false)
    }

    /// Rules run, and disruptive actions are carried out.
    pub(crate) fn is_blocking(&mut self) -> bool {
        self.call(|inspection| inspection.is_blocking()).unwrap_or(false)
    }

    /// Fields behind the request body that are to go on.
    pub(crate) fn request_trailers(&mut self, trailers: &Trailers) {
        if !trailers.is_empty() {
            self.timed(|inspection| inspection.request_trailers(trailers.fields()));
        }
    }

    /// How long the exchange has taken so far.
    pub(crate) fn set_elapsed(&mut self, elapsed: Duration) {
        self.call(|inspection| inspection.set_elapsed(elapsed));
    }

    /// Phase 2.
    pub(crate) fn request_end(&mut self, truncated: bool) -> Step {
        self.phase("inspection phase 2", |inspection| inspection.request_end(truncated))
    }

    /// The longest upload that may go on while it is inspected, if the body may be one.
    pub(crate) fn upload_limit(&mut self) -> Option<u64> {
        self.call(|inspection| inspection.upload_limit()).flatten()
    }

    /// The held part is the beginning of an upload; false if nothing looks at the content of its rest.
    pub(crate) fn begin_upload(&mut self, held: &[u8]) -> bool {
        self.call(|inspection| inspection.begin_upload(held)).unwrap_or(false)
    }

    /// A piece of the upload behind phase 2, the last one or not.
    pub(crate) fn upload(&mut self, piece: &[u8], is_last: bool) -> Step {
        self.step(|inspection| upload(inspection, piece, is_last))
    }

    /// Phase 2, beside the worker if the body is large.
    pub(crate) async fn request_end_beside(&mut self, truncated: bool, by: Asker<'_>) -> Result<Step, Full> {
        let shown = self.call(|inspection| inspection.request_body_shown());
        let Some(bytes) = shown.filter(|shown| *shown >= by.large_from) else {
            return Ok(self.request_end(truncated));
        };
        let work = move |inspection: &mut Inspection| inspection.request_end(truncated);
        self.phase_beside(Some("inspection phase 2"), by, bytes, work).await
    }

    /// Phase 1 of a long head, beside the worker.
    pub(crate) async fn request_head_beside(
        &mut self,
        head: &RequestHead,
        by: Asker<'_>,
    ) -> Result<Step, Full> {
        let (head, bytes) = (head.clone(), head.received_len() as u64);
        let work = move |inspection: &mut Inspection| inspection.request_head(&head, None);
        self.phase_beside(Some("inspection phase 1"), by, bytes, work).await
    }

    /// Phase 4, beside the worker if the body is large and there is room.
    pub(crate) async fn response_end_beside(&mut self, truncated: bool, by: Asker<'_>) -> Step {
        let shown = self.call(|inspection| inspection.response_body_shown());
        if let Some(bytes) = shown.filter(|shown| *shown >= by.large_from) {
            let work = move |inspection: &mut Inspection| inspection.response_end(truncated);
            if let Ok(step) = self.phase_beside(Some("inspection phase 4"), by, bytes, work).await {
                return step;
            }
        }
        self.response_end(truncated)
    }

    /// A piece of an upload behind phase 2, the last one or not, beside the worker if there is room: with
    /// however little of it a long field may come to its end.
    pub(crate) async fn upload_beside(&mut self, piece: &[u8], is_last: bool, by: Asker<'_>) -> Step {
        let (copy, bytes) = (piece.to_vec(), piece.len() as u64);
        let work = move |inspection: &mut Inspection| upload(inspection, &copy, is_last);
        match self.phase_beside(None, by, bytes, work).await {
            Ok(step) => step,
            Err(_) => self.upload(piece, is_last),
        }
    }

    /// Does `work`, a phase or a part of one, on a thread beside the workers, and waits for it. An error
    /// leaves the inspection as it was.
    async fn phase_beside(
        &mut self,
        phase: Option<&'static str>,
        by: Asker<'_>,
        bytes: u64,
        work: impl FnOnce(&mut Inspection) -> Step + Send + 'static,
    ) -> Result<Step, Full> {
        let inspection = match std::mem::replace(&mut self.state, State::Broken) {
            State::Running(inspection) => inspection,
            other => {
                self.state = other;
                return Ok(self.after(None));
            }
        };
        let begin = Instant::now();
        let weight = Weight { bytes, account: by.account };
        match by.pool.run(inspection, by.member, weight, work).await {
            Err(Busy(inspection)) => {
                self.state = State::Running(inspection);
                Err(Full::Busy)
            }
            Ok(Done { ended, took, worked }) => {
                self.spent += took;
                self.cost += worked;
                self.last = None;
                if let (Some(name), Some(phases)) = (phase, &mut self.phases) {
                    phases.push((name, begin, took));
                }
                let step = ended.map(|(inspection, step)| {
                    self.state = State::Running(inspection);
                    step
                });
                Ok(self.after(step))
            }
        }
    }

    /// The longest wait of a response body for its upstream.
    pub(crate) fn response_wait_max(&mut self) -> Option<Duration> {
        self.call(|inspection| inspection.response_wait_max()).flatten()
    }

    /// Phase 3.
    pub(crate) fn response_head(&mut self, head: &ResponseHead) -> Step {
        self.phase("inspection phase 3", |inspection| inspection.response_head(head))
    }

    /// Rules have switched inspection off for this exchange, or let it pass.
    pub(crate) fn is_left_alone(&mut self) -> bool {
        self.call(|inspection| inspection.is_left_alone()).unwrap_or(false)
    }

    /// Adds points of inspection agents.
    pub(crate) fn add_agent_score(&mut self, points: u32) {
        self.call(|inspection| inspection.add_agent_score(points));
    }

    /// Something was found so far: a rule that is logged, or by the semantic detector.
    pub(crate) fn has_found(&mut self) -> bool {
        self.call(|inspection| inspection.has_found()).unwrap_or(false)
    }

    /// The pause that the rules that have run want.
    pub(crate) fn take_pause(&mut self) -> Duration {
        self.call(|inspection| inspection.take_pause()).unwrap_or_default()
    }

    /// The charges to rate limits that rules want.
    pub(crate) fn take_charges(&mut self) -> Vec<Charge> {
        self.call(|inspection| inspection.take_charges()).unwrap_or_default()
    }

    /// True if the request body is longer than may be inspected, and refused for it.
    pub(crate) fn refuses_request_body(&mut self) -> bool {
        self.call(|inspection| inspection.refuses_request_body()).unwrap_or(false)
    }

    /// The request body that rules made of the one that came.
    pub(crate) fn rewritten_request_body(&mut self) -> Option<Vec<u8>> {
        self.call(|inspection| inspection.rewritten_request_body()).flatten()
    }

    /// The edits of the response body.
    pub(crate) fn response_edits(&mut self) -> ResponseEdits {
        self.call(|inspection| inspection.response_edits()).unwrap_or_default()
    }

    /// True if a limit cut a substitution short.
    pub(crate) fn is_rewriting_incomplete(&mut self) -> bool {
        self.call(|inspection| inspection.is_rewriting_incomplete()).unwrap_or(false)
    }

    /// True if the request body is in a content coding.
    pub(crate) fn is_request_coded(&mut self) -> bool {
        self.call(|inspection| inspection.is_request_coded()).unwrap_or(false)
    }

    /// True if the upstream is to be kept from compressing.
    pub(crate) fn disables_compression(&mut self) -> bool {
        self.call(|inspection| inspection.disables_compression()).unwrap_or(false)
    }

    /// The plan for the response body.
    pub(crate) fn response_body_plan(&mut self) -> BodyPlan {
        self.call(|inspection| inspection.response_body_plan()).unwrap_or(BodyPlan::Skip)
    }

    /// Bytes of the response body.
    pub(crate) fn response_body(&mut self, chunk: &[u8]) {
        self.timed(|inspection| inspection.response_body(chunk));
    }

    /// Phase 4.
    pub(crate) fn response_end(&mut self, truncated: bool) -> Step {
        self.phase("inspection phase 4", |inspection| inspection.response_end(truncated))
    }

    /// The inspection, while there is one: to read the questions of a step that asks.
    pub(crate) fn running(&self) -> Option<&Inspection> {
        match &self.state {
            State::Running(inspection) => Some(inspection),
            State::Off | State::Broken => None,
        }
    }

    /// Answers questions.
    pub(crate) fn answer(&mut self, answers: Vec<(QuestionId, Answer)>) {
        self.call(|inspection| {
            for (question, answer) in answers {
                inspection.answer(question, answer);
            }
        });
    }

    /// Goes on with the phase that asked.
    pub(crate) fn resume(&mut self) -> Step {
        self.step(Inspection::resume)
    }

    /// The status of an answer of ours.
    pub(crate) fn answered(&mut self, status: u16) {
        self.call(|inspection| inspection.answered(status));
    }

    /// Phase 5, which may ask, too. `now` ends the exchange, which took `duration`.
    pub(crate) fn logging(&mut self, now: Instant, duration: Duration) -> Step {
        self.step_from(Some(now), |inspection| inspection.logging(duration))
    }

    /// Phase 5 unless it has run, and the report; none without a (working) inspection.
    pub(crate) fn finish(&mut self, outcome: &Outcome) -> Option<Report> {
        let State::Running(inspection) = std::mem::replace(&mut self.state, State::Off) else { return None };
        // Right behind phase 5.
        let start = self.last.unwrap_or_else(Instant::now);
        clock::begin_work(start);
        let report = catch_unwind(AssertUnwindSafe(|| inspection.finish(outcome)));
        self.count(start);
        if report.is_err() {
            self.state = State::Broken;
        }
        report.ok()
    }

    /// The state of the inspection.
    pub(crate) fn health(&self) -> Health {
        match self.state {
            State::Running(_) => Health::Well,
            State::Off => Health::Off,
            State::Broken => Health::Broken,
        }
    }

    /// Processor time that it has taken so far.
    pub(crate) fn cost(&self) -> Duration {
        self.cost
    }

    /// Bytes of the request body that rules see.
    pub(crate) fn request_body_shown(&mut self) -> u64 {
        self.call(|inspection| inspection.request_body_shown()).unwrap_or(0)
    }

    /// Time spent in it so far.
    pub(crate) fn spent(&self) -> Duration {
        self.spent
    }

    /// Keeps the times of the phases from now on.
    pub(crate) fn keep_phases(&mut self) {
        self.phases = Some(Vec::new());
    }

    /// The phases that have run.
    pub(crate) fn take_phases(&mut self) -> Vec<Phase> {
        self.phases.take().unwrap_or_default()
    }

    fn phase(&mut self, name: &'static str, work: impl FnOnce(&mut Inspection) -> Step) -> Step {
        if self.phases.is_none() || self.health() != Health::Well {
            return self.step(work);
        }
        let (begin, before) = (Instant::now(), self.spent);
        let step = self.step(work);
        if let Some(phases) = &mut self.phases {
            phases.push((name, begin, self.spent - before));
        }
        step
    }

    fn step(&mut self, work: impl FnOnce(&mut Inspection) -> Step) -> Step {
        self.step_from(None, work)
    }

    fn step_from(&mut self, start: Option<Instant>, work: impl FnOnce(&mut Inspection) -> Step) -> Step {
        let step = self.timed_from(start, work);
        self.after(step)
    }

    /// The consequence of a step; `step` is none where no inspection made one.
    fn after(&self, step: Option<Step>) -> Step {
        match step {
            Some(step) => step,
            None if self.health() == Health::Broken && self.on_error == OpenOrClosed::Closed => {
                // Also for a bug in `begin`, or in a step that returns nothing.
                Step::Interrupt(Interruption::Deny { status: 500 })
            }
            None => Step::Continue,
        }
    }

    /// Runs work whose time is counted.
    fn timed<T>(&mut self, work: impl FnOnce(&mut Inspection) -> T) -> Option<T> {
        self.timed_from(None, work)
    }

    /// The same; `start` is now, if the clock has just been read.
    fn timed_from<T>(
        &mut self,
        start: Option<Instant>,
        work: impl FnOnce(&mut Inspection) -> T,
    ) -> Option<T> {
        if !matches!(self.state, State::Running(_)) {
            return None;
        }
        let start = start.unwrap_or_else(Instant::now);
        clock::begin_work(start);
        let result = self.call(work);
        self.count(start);
        result
    }

    fn count(&mut self, start: Instant) {
        let now = Instant::now();
        self.spent += now - start;
        self.cost += clock::work_since(start, now);
        self.last = Some(now);
    }

    /// Runs work that only looks something up: reading the clock would cost more.
    fn call<T>(&mut self, work: impl FnOnce(&mut Inspection) -> T) -> Option<T> {
        let State::Running(inspection) = &mut self.state else { return None };
        let result = catch_unwind(AssertUnwindSafe(|| work(inspection)));
        match result {
            Ok(value) => Some(value),
            Err(_) => {
                // Dropping what is left may panic again; it may not unwind through the worker either.
                let broken = std::mem::replace(&mut self.state, State::Broken);
                let _ = catch_unwind(AssertUnwindSafe(|| drop(broken)));
                None
            }
        }
    }
}

/// Shows a piece of an upload, and its end behind it if it is the last.
fn upload(inspection: &mut Inspection, piece: &[u8], is_last: bool) -> Step {
    match inspection.upload(piece) {
        Step::Continue if is_last => inspection.end_upload(),
        step => step,
    }
}
