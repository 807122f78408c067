//! Failure policies: conditions under which inspection is incomplete, and the answers to them.

use portcullis_config::OpenOrClosed;
use portcullis_event::{Action, Exception, ExceptionCause, ExceptionPolicy};
use portcullis_http::coding::CodingError;
use portcullis_inspect::{Answer, BodyPlan, Inspection, Interruption, Question, QuestionId, Rejection, Step};

use super::Lifecycle;

/// The answer to a body over its limit. ModSecurity 2 answers the same to both of its limits.
pub const TOO_LARGE: (u16, &str) = (413, "The request body is larger than this site accepts.");

/// The answer where a body cannot be held.
pub const NO_MEMORY: (u16, &str) = (503, "Too many large bodies at this moment.");

/// The page of a redirect that rules ask for.
pub const REDIRECTED: &str = "The request was redirected by the web application firewall.";

/// The answer to a body whose content coding hides it.
fn coding_answer(error: CodingError) -> (u16, &'static str) {
    match error {
        CodingError::Unsupported => (
            415,
            "The content coding of the request body is not supported (request_body.uninspected_codings).",
        ),
        CodingError::Malformed | CodingError::Truncated => {
            (400, "The request body is not in its content coding.")
        }
        CodingError::TooLarge => TOO_LARGE,
        CodingError::Bomb => (
            413,
            "The request body grows more when it is decoded than this site accepts \
             (request_body.decoded_ratio).",
        ),
    }
}

/// The answer to a bug, if the policy is to refuse.
pub(super) fn broken() -> Step {
    Step::Interrupt(Interruption::Deny { status: 500 })
}

/// Answers the questions of a step until it asks no more, for callers that have each answer at once and no
/// policy for one that is not known.
pub fn settle(
    inspection: &mut Inspection,
    mut step: Step,
    mut answer: impl FnMut(Question<'_>) -> Answer,
) -> Step {
    while step == Step::Ask {
        let answers: Vec<_> = inspection.questions().map(|(id, question)| (id, answer(question))).collect();
        answers.into_iter().for_each(|(id, answer)| inspection.answer(id, answer));
        step = inspection.resume();
    }
    step
}

impl Lifecycle {
    /// Answers the questions of a step, and resumes its phase. Where a question has no answer the policy
    /// decides; `refusal` is the reason if it refuses.
    pub fn resume(&mut self, answers: Vec<(QuestionId, Answer)>, refusal: &str) -> Step {
        let is_unknown = answers.iter().any(|(_, answer)| *answer == Answer::Unknown);
        self.call(|inspection| {
            answers.into_iter().for_each(|(id, answer)| inspection.answer(id, answer));
        });
        if is_unknown || self.running().is_some_and(|inspection| inspection.questions_not_asked() > 0) {
            if self.failure.lookup == OpenOrClosed::Closed {
                self.exception(ExceptionCause::LookupFailed, ExceptionPolicy::Closed);
                self.reject(503, refusal, Action::Deny);
                return Step::Interrupt(Interruption::Deny { status: 503 });
            }
            self.exception_once(ExceptionCause::LookupFailed, ExceptionPolicy::Open);
        }
        self.step(Inspection::resume)
    }

    /// A content coding hides the request body from the rules, as far as it has come: the answer, if the
    /// policy is to refuse. `complete`: the whole body has come.
    pub fn undecodable(&mut self, complete: bool) -> Option<(u16, &'static str)> {
        if self.request_body_plan() == BodyPlan::Skip {
            return None;
        }
        let error = self.guard.timed(|inspection| inspection.request_coding_error(complete)).flatten()?;
        let policy = match self.call(|inspection| inspection.passes_coding()).unwrap_or(false) {
            true => ExceptionPolicy::Open,
            false => self.policy(self.failure.undecodable),
        };
        self.exception_once(ExceptionCause::UndecodableBody, policy);
        (policy == ExceptionPolicy::Closed).then(|| coding_answer(error))
    }

    /// A pattern used up its steps, so that it is not known whether a rule matches: the answer, if the policy
    /// is to refuse (rule 200005 of the recommended ModSecurity configuration).
    pub fn exhausted(&mut self) -> Option<(u16, &'static str)> {
        let text = self.given_up()?;
        let policy = self.policy(self.failure.pattern_limit);
        self.exception_once(ExceptionCause::BudgetSpent, policy);
        (policy == ExceptionPolicy::Closed).then_some((403, text))
    }

    /// The request body is longer than may be inspected, and refused for it: the answer.
    pub fn oversized(&mut self) -> Option<(u16, &'static str)> {
        if !self.call(|inspection| inspection.refuses_request_body()).unwrap_or(false) {
            return None;
        }
        self.exception(ExceptionCause::RequestBodyOverLimit, ExceptionPolicy::Closed);
        Some(TOO_LARGE)
    }

    /// The conditions that are settled when nothing can be refused any more.
    pub(super) fn note_failures(&mut self) {
        if self.health() == super::Health::Broken {
            self.exception(ExceptionCause::EngineError, self.engine_error());
        }
        // In the response, or where a rule had refused the request by then.
        let is_known = self.outcome.exceptions.iter().any(|known| known.cause == ExceptionCause::BudgetSpent);
        if !is_known && self.given_up().is_some() {
            let policy = match self.action {
                Action::Pass | Action::Detect => ExceptionPolicy::Open,
                Action::Deny | Action::Redirect | Action::Drop | Action::Proxy | Action::Refuse => {
                    ExceptionPolicy::Closed
                }
            };
            self.exception(ExceptionCause::BudgetSpent, policy);
        }
    }

    pub(super) fn engine_error(&self) -> ExceptionPolicy {
        match self.failure.engine_error {
            OpenOrClosed::Open => ExceptionPolicy::Open,
            OpenOrClosed::Closed => ExceptionPolicy::Closed,
        }
    }

    fn given_up(&mut self) -> Option<&'static str> {
        self.call(|inspection| inspection.given_up()).flatten()
    }

    /// The policy for a failure of inspection where the settings say `setting`.
    fn policy(&mut self, setting: OpenOrClosed) -> ExceptionPolicy {
        match setting {
            OpenOrClosed::Open => ExceptionPolicy::Open,
            OpenOrClosed::Closed if self.is_blocking() => ExceptionPolicy::Closed,
            OpenOrClosed::Closed => ExceptionPolicy::DetectOnly,
        }
    }

    /// Notes that inspection could not do its full work, and what was done about it.
    pub fn exception(&mut self, cause: ExceptionCause, policy: ExceptionPolicy) {
        let limit_bytes = match (cause, self.request_body_plan()) {
            (ExceptionCause::RequestBodyOverLimit, BodyPlan::Hold { limit_bytes, .. }) => Some(limit_bytes),
            _ => None,
        };
        self.outcome.exceptions.push(Exception { cause, policy, limit_bytes });
    }

    /// As [`exception`](Lifecycle::exception), for what may happen several times.
    pub fn exception_once(&mut self, cause: ExceptionCause, policy: ExceptionPolicy) {
        if !self.is_noted(cause, policy) {
            self.exception(cause, policy);
        }
    }

    /// As [`exception_once`](Lifecycle::exception_once), for a limit that is not the one of the request body.
    pub fn exception_at(&mut self, cause: ExceptionCause, policy: ExceptionPolicy, limit_bytes: u64) {
        if !self.is_noted(cause, policy) {
            self.outcome.exceptions.push(Exception { cause, policy, limit_bytes: Some(limit_bytes) });
        }
    }

    fn is_noted(&self, cause: ExceptionCause, policy: ExceptionPolicy) -> bool {
        self.outcome.exceptions.iter().any(|known| known.cause == cause && known.policy == policy)
    }

    /// Notes that the exchange is answered for a limit, a policy or a control, and not by its inspection.
    pub fn reject(&mut self, status: u16, reason: impl Into<String>, action: Action) {
        self.outcome.rejection = Some(Rejection { status, reason: reason.into(), action });
    }
}
