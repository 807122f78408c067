//! Decisions on a conversation: from the steps of its lifecycle, and the limits it met, to the answer that
//! its client is to get.

use std::sync::Arc;

use portcullis_event::Action;
use portcullis_inspect::{Answer, Interruption, Step};

use crate::block_page::{Page, page};
use crate::conversation::Conversation;
use crate::form::Form;
use crate::lifecycle::REDIRECTED;

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

impl Conversation {
    /// Does what a phase asks for.
    pub(crate) fn carry_out(&mut self, step: Step) {
        let step = self.settle(step);
        // Neither is done here; the documents say so.
        self.life.take_pause();
        self.life.take_charges();
        let Step::Interrupt(what) = step else { return };
        let block = match what {
            // A lookup that failed has made its own answer.
            Interruption::Deny { .. } if let Some(rejection) = &self.life.outcome.rejection => {
                let block = self.answer(Action::Deny, rejection.status, &rejection.reason);
                self.block.get_or_insert(block);
                return;
            }
            Interruption::Deny { status } => self.blocked(Action::Deny, status),
            Interruption::Drop => self.blocked(Action::Drop, 403),
            // There is no other server to send it to from here.
            Interruption::Proxy { .. } => self.blocked(Action::Deny, 500),
            Interruption::Redirect { status, location } => {
                Block { location: Some(location), ..self.answer(Action::Redirect, status, REDIRECTED) }
            }
        };
        self.life.action = block.action;
        self.block = Some(block);
    }

    /// Nothing is looked up for rules here: questions get no answer, and the failure policy decides.
    pub(crate) fn settle(&mut self, mut step: Step) -> Step {
        while step == Step::Ask {
            let asked = self.life.running().map(|inspection| inspection.questions());
            let answers = asked.into_iter().flatten().map(|(id, _)| (id, Answer::Unknown)).collect();
            step = self.life.resume(answers, "A lookup that the rules ask for is not done here.");
        }
        step
    }

    /// Refuses the exchange for a limit or a policy, unless it is blocked already.
    pub fn reject(&mut self, status: u16, reason: &'static str) {
        if self.block.is_none() {
            self.life.reject(status, reason, Action::Deny);
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
