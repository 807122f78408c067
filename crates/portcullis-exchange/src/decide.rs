//! Decisions on an exchange: from the steps of its inspection, and the limits it met, to the answer that its
//! client is to get.

use std::sync::Arc;

use portcullis_config::OpenOrClosed;
use portcullis_event::{Action, Exception, ExceptionCause, ExceptionPolicy};
use portcullis_http::coding::CodingError;
use portcullis_inspect::{Answer, BodyPlan, Interruption, Rejection, Step};

use crate::block_page::{Page, page};
use crate::conversation::Conversation;
use crate::form::Form;

/// The answer that the client is to get in place of the application's.
#[derive(Clone, Debug)]
pub struct Block {
    /// The action.
    pub action: Action,
    /// Its status; 403 where the verdict is to close the connection, for servers that cannot.
    pub status: u16,
    /// The target of a redirect.
    pub location: Option<Vec<u8>>,
    /// The page.
    pub page: Arc<Page>,
}

/// The answer to a body over its limit. ModSecurity 2 answers the same to both of its limits.
pub const TOO_LARGE: (u16, &str) = (413, "The request body is larger than this site accepts.");

/// The answer to a body whose content coding hides it.
pub fn coding_answer(error: CodingError) -> (u16, &'static str) {
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

impl Conversation {
    /// Does what a phase asks for.
    pub(crate) fn carry_out(&mut self, step: Step) {
        let step = self.settle(step);
        self.inspected.call(|inspection| {
            // Neither is done here; the documents say so.
            inspection.take_pause();
            inspection.take_charges();
        });
        let Step::Interrupt(what) = step else { return };
        self.block = Some(match what {
            // A lookup that failed has made its own answer.
            Interruption::Deny { status } if self.rejection.is_none() => self.blocked(Action::Deny, status),
            Interruption::Deny { .. } => return,
            Interruption::Drop => self.blocked(Action::Drop, 403),
            // There is no other server to send it to from here.
            Interruption::Proxy { .. } => self.blocked(Action::Deny, 500),
            Interruption::Redirect { status, location } => {
                let text = "The request was redirected by the web application firewall.";
                Block { location: Some(location), ..self.answer(Action::Redirect, status, text) }
            }
        });
    }

    /// Nothing is looked up for rules here: questions get no answer, and the failure policy decides.
    fn settle(&mut self, mut step: Step) -> Step {
        while step == Step::Ask {
            if self.settings.failure.lookup == OpenOrClosed::Closed {
                self.exception(ExceptionCause::LookupFailed, ExceptionPolicy::Closed, None);
                self.reject(503, "A lookup that the rules ask for is not done here.");
                return Step::Interrupt(Interruption::Deny { status: 503 });
            }
            self.exception(ExceptionCause::LookupFailed, ExceptionPolicy::Open, None);
            step = self.inspected.step(|inspection| {
                let asked: Vec<_> = inspection.questions().map(|(id, _)| id).collect();
                asked.into_iter().for_each(|id| inspection.answer(id, Answer::Unknown));
                inspection.resume()
            });
        }
        step
    }

    /// The answer to a body whose content coding hides it, if that is the policy.
    pub(crate) fn undecodable(&mut self, complete: bool) -> Option<(u16, &'static str)> {
        let error = self.inspected.call(|inspection| match inspection.request_body_plan() {
            BodyPlan::Skip => None,
            BodyPlan::Hold { .. } => inspection.request_coding_error(complete),
        });
        let error = error.flatten()?;
        let passes = self.inspected.call(|inspection| inspection.passes_coding()).unwrap_or(false);
        let policy = match passes {
            true => ExceptionPolicy::Open,
            false => self.policy(self.settings.failure.undecodable),
        };
        self.exception(ExceptionCause::UndecodableBody, policy, None);
        (policy == ExceptionPolicy::Closed).then_some(coding_answer(error))
    }

    /// A pattern used up its steps, so that it is not known whether a rule matches.
    pub(crate) fn exhausted(&mut self) {
        let Some(text) = self.inspected.call(|inspection| inspection.given_up()).flatten() else { return };
        let policy = self.policy(self.settings.failure.pattern_limit);
        self.exception(ExceptionCause::BudgetSpent, policy, None);
        if policy == ExceptionPolicy::Closed {
            self.reject(403, text);
        }
    }

    /// The policy for a failure of inspection where the settings say `setting`.
    fn policy(&mut self, setting: OpenOrClosed) -> ExceptionPolicy {
        let is_blocking = self.inspected.call(|inspection| inspection.is_blocking()).unwrap_or(false);
        match setting {
            OpenOrClosed::Open => ExceptionPolicy::Open,
            OpenOrClosed::Closed if is_blocking => ExceptionPolicy::Closed,
            OpenOrClosed::Closed => ExceptionPolicy::DetectOnly,
        }
    }

    /// Notes a condition under which inspection is incomplete, each once.
    pub(crate) fn exception(
        &mut self,
        cause: ExceptionCause,
        policy: ExceptionPolicy,
        limit_bytes: Option<u64>,
    ) {
        if !self.exceptions.iter().any(|known| known.cause == cause && known.policy == policy) {
            self.exceptions.push(Exception { cause, policy, limit_bytes });
        }
    }

    /// Refuses the exchange for a limit or a policy, unless it is blocked already.
    pub fn reject(&mut self, status: u16, reason: &'static str) {
        if self.block.is_none() {
            self.rejection = Some(Rejection { status, reason: reason.to_owned(), action: Action::Deny });
            self.block = Some(self.answer(Action::Deny, status, reason));
        }
    }

    fn blocked(&self, action: Action, status: u16) -> Block {
        let form = Form::of(&self.head);
        let page = self.settings.block_page.blocked(status, &self.request_id, form);
        self.with_page(action, status, page)
    }

    pub(crate) fn answer(&self, action: Action, status: u16, text: &str) -> Block {
        self.with_page(action, status, page(status, text, &self.request_id, Form::of(&self.head)))
    }

    fn with_page(&self, action: Action, status: u16, page: Page) -> Block {
        Block { action, status, location: None, page: Arc::new(page) }
    }
}
