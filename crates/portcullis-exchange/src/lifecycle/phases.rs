//! The phases of an inspection and what is asked of it between them. Without a (working) inspection nothing
//! is wanted, nothing is held back, and steps are settled by the failure policy.

use std::time::{Duration, Instant};

use portcullis_config::OpenOrClosed;
use portcullis_http::message::{Refusal, RequestHead, ResponseHead};
use portcullis_inspect::{BodyPlan, Charge, Inspection, ResponseEdits, Step};

use super::Lifecycle;

impl Lifecycle {
    /// Phase 1.
    pub fn request_head(&mut self, head: &RequestHead, refusal: Option<Refusal>) -> Step {
        self.phase("inspection phase 1", |inspection| inspection.request_head(head, refusal))
    }

    /// The plan for the request body.
    pub fn request_body_plan(&mut self) -> BodyPlan {
        self.call(|inspection| inspection.request_body_plan()).unwrap_or(BodyPlan::Skip)
    }

    /// Bytes of the request body.
    pub fn request_body(&mut self, chunk: &[u8]) {
        self.guard.timed(|inspection| inspection.request_body(chunk));
    }

    /// Fields behind the request body.
    pub fn request_trailers<'h>(&mut self, fields: impl Iterator<Item = (&'h [u8], &'h [u8])> + Clone) {
        self.guard.timed(|inspection| inspection.request_trailers(fields));
    }

    /// Duration of the exchange so far.
    pub fn set_elapsed(&mut self, elapsed: Duration) {
        self.call(|inspection| inspection.set_elapsed(elapsed));
    }

    /// Phase 2.
    pub fn request_end(&mut self, truncated: bool) -> Step {
        self.phase("inspection phase 2", |inspection| inspection.request_end(truncated))
    }

    /// Phase 3.
    pub fn response_head(&mut self, head: &ResponseHead) -> Step {
        self.phase("inspection phase 3", |inspection| inspection.response_head(head))
    }

    /// The plan for the response body.
    pub fn response_body_plan(&mut self) -> BodyPlan {
        self.call(|inspection| inspection.response_body_plan()).unwrap_or(BodyPlan::Skip)
    }

    /// Bytes of the response body.
    pub fn response_body(&mut self, chunk: &[u8]) {
        self.guard.timed(|inspection| inspection.response_body(chunk));
    }

    /// Phase 4.
    pub fn response_end(&mut self, truncated: bool) -> Step {
        self.phase("inspection phase 4", |inspection| inspection.response_end(truncated))
    }

    /// Phase 5, which may ask, too. `now` ends the exchange. The answer is on its way: nothing can be refused
    /// any more.
    pub fn logging(&mut self, now: Instant, duration: Duration) -> Step {
        self.failure.lookup = OpenOrClosed::Open;
        self.outcome.duration = duration;
        if let Some(rejection) = &self.outcome.rejection {
            let status = rejection.status;
            self.call(|inspection| inspection.answered(status));
        }
        let step = self.guard.timed_from(Some(now), |inspection| inspection.logging(duration));
        self.after(step)
    }

    /// Drops what has been shown of the request body, which is refused.
    pub fn forget_request_body(&mut self) {
        self.call(|inspection| inspection.forget_request_body());
    }

    /// Bytes of the request body that rules see.
    pub fn request_body_shown(&mut self) -> u64 {
        self.call(|inspection| inspection.request_body_shown()).unwrap_or(0)
    }

    /// The same of the response body.
    pub fn response_body_shown(&mut self) -> u64 {
        self.call(|inspection| inspection.response_body_shown()).unwrap_or(0)
    }

    /// The number of bytes that each byte of the request body may take, with the one that is held.
    pub fn request_copies(&mut self) -> usize {
        1 + self.call(|inspection| inspection.request_copies()).unwrap_or(0)
    }

    /// The same for the response body.
    pub fn response_copies(&mut self) -> usize {
        1 + self.call(|inspection| inspection.response_copies()).unwrap_or(0)
    }

    /// Bytes of memory that phase 2 may take beside what is held.
    pub fn request_end_bytes(&mut self) -> usize {
        self.call(|inspection| inspection.request_end_bytes()).unwrap_or(0)
    }

    /// Rules run, and disruptive actions are carried out.
    pub fn is_blocking(&mut self) -> bool {
        self.call(|inspection| inspection.is_blocking()).unwrap_or(false)
    }

    /// Rules have switched inspection off for this exchange, or let it pass.
    pub fn is_left_alone(&mut self) -> bool {
        self.call(|inspection| inspection.is_left_alone()).unwrap_or(false)
    }

    /// Something was found so far: a rule that is logged, or by the semantic detector.
    pub fn has_found(&mut self) -> bool {
        self.call(|inspection| inspection.has_found()).unwrap_or(false)
    }

    /// The longest upload that may go on while it is inspected, if the body may be one.
    pub fn upload_limit(&mut self) -> Option<u64> {
        self.call(|inspection| inspection.upload_limit()).flatten()
    }

    /// The held part is the beginning of an upload; false if nothing looks at the content of its rest.
    pub fn begin_upload(&mut self, held: &[u8]) -> bool {
        self.call(|inspection| inspection.begin_upload(held)).unwrap_or(false)
    }

    /// A piece of the upload behind phase 2, the last one or not.
    pub fn upload(&mut self, piece: &[u8], is_last: bool) -> Step {
        self.step(|inspection| upload(inspection, piece, is_last))
    }

    /// The longest wait of a response body for its upstream.
    pub fn response_wait_max(&mut self) -> Option<Duration> {
        self.call(|inspection| inspection.response_wait_max()).flatten()
    }

    /// Adds points of inspection agents.
    pub fn add_agent_score(&mut self, points: u32) {
        self.call(|inspection| inspection.add_agent_score(points));
    }

    /// The pause that the rules that have run want.
    pub fn take_pause(&mut self) -> Duration {
        self.call(|inspection| inspection.take_pause()).unwrap_or_default()
    }

    /// The charges to rate limits that rules want.
    pub fn take_charges(&mut self) -> Vec<Charge> {
        self.call(|inspection| inspection.take_charges()).unwrap_or_default()
    }

    /// The request body that rules made of the one that came.
    pub fn rewritten_request_body(&mut self) -> Option<Vec<u8>> {
        self.call(|inspection| inspection.rewritten_request_body()).flatten()
    }

    /// The edits of the response body.
    pub fn response_edits(&mut self) -> ResponseEdits {
        self.call(|inspection| inspection.response_edits()).unwrap_or_default()
    }

    /// True if a limit cut a substitution short.
    pub fn is_rewriting_incomplete(&mut self) -> bool {
        self.call(|inspection| inspection.is_rewriting_incomplete()).unwrap_or(false)
    }

    /// True if the request body is in a content coding.
    pub fn is_request_coded(&mut self) -> bool {
        self.call(|inspection| inspection.is_request_coded()).unwrap_or(false)
    }

    /// True if the upstream is to be kept from compressing.
    pub fn disables_compression(&mut self) -> bool {
        self.call(|inspection| inspection.disables_compression()).unwrap_or(false)
    }
}

/// Shows a piece of an upload, and its end behind it if it is the last.
pub fn upload(inspection: &mut Inspection, piece: &[u8], is_last: bool) -> Step {
    match inspection.upload(piece) {
        Step::Continue if is_last => inspection.end_upload(),
        step @ (Step::Continue | Step::Ask | Step::Interrupt(_)) => step,
    }
}
