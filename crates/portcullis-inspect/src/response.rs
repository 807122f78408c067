//! Phases 3 and 4: what is looked at of a response, and how long its body waits for that.

use std::time::Duration;

use portcullis_engine::{BodyLimitAction, BodyPlan, RuleEngine, Transaction};
use portcullis_event::NotInspected;
use portcullis_http::coding::CodingError;
use portcullis_http::message::ResponseHead;
use portcullis_types::Phase;

use crate::coded::CodedBody;
use crate::exchange::Step;
use crate::inspection::Inspection;
use crate::semantic::SemanticRun;

/// The response as far as it was shown.
#[derive(Debug)]
pub(crate) struct Response {
    /// Body bytes shown, content codings not undone.
    pub seen: u64,
    /// The same with them undone.
    pub shown: u64,
    pub coded: CodedBody,
    /// The reason why the bytes that were not shown, if there were any, were not.
    pub skip: NotInspected,
    /// The body is shown to the rules, and to the semantic detector.
    to_rules: bool,
    to_semantic: bool,
    limit_bytes: u64,
}

impl Default for Response {
    fn default() -> Self {
        Response {
            seen: 0,
            shown: 0,
            coded: CodedBody::default(),
            skip: NotInspected::BodyAccessOff,
            to_rules: false,
            to_semantic: false,
            limit_bytes: 0,
        }
    }
}

impl Inspection {
    /// Phase 3.
    pub fn response_head(&mut self, head: &ResponseHead) -> Step {
        if self.interruption.is_some() {
            return Step::Continue;
        }
        self.phase = Phase::ResponseHeaders;
        self.head_bytes += head.received_len() as u64;
        self.response.coded = CodedBody::response(head.header("content-encoding"));
        if let Some(semantic) = &mut self.semantic {
            semantic.response_head(head);
        }
        if let Some(issued) = &self.issued {
            issued.note_answer(head, self.connection.client, self.connection.epoch_millis);
        }
        let length = head.received_len() as u64;
        self.transaction.renew_work();
        self.transaction.allow_work(length, length);
        let version = head.version().as_str().as_bytes();
        let progress = self.transaction.response_head(version, head.status(), head.fields());
        self.step(progress)
    }

    /// Decides whether the response body must be shown, and held back until phase 4 has run.
    pub fn response_body_plan(&mut self) -> BodyPlan {
        let Inspection { response, transaction, semantic, inspector, .. } = self;
        if self.interruption.is_some() {
            response.skip = NotInspected::AfterVerdict;
            return BodyPlan::Skip;
        }
        let settings = &inspector.plan.settings;
        let of_rules = transaction.response_body_plan();
        response.limit_bytes = match of_rules {
            BodyPlan::Hold { limit_bytes, .. } => limit_bytes,
            BodyPlan::Skip => settings.response_body_limit,
        };
        let is_off =
            transaction.rule_engine() == RuleEngine::Off || transaction.is_allowed(Phase::ResponseBody);
        let wish = match semantic {
            Some(semantic) if !is_off => semantic.wants_response_body(response.limit_bytes),
            _ => Err(NotInspected::BodyAccessOff),
        };
        response.to_rules = of_rules != BodyPlan::Skip;
        response.to_semantic = wish.is_ok();
        response.skip = match (wish, transaction.rule_engine()) {
            (_, RuleEngine::Off) => NotInspected::EngineOff,
            (Ok(()), _) => NotInspected::OverLimit,
            _ if response.to_rules => NotInspected::OverLimit,
            (Err(NotInspected::BodyAccessOff), _) if settings.response_body_access => NotInspected::MediaType,
            (Err(reason), _) => reason,
        };
        match (of_rules, response.to_semantic) {
            (BodyPlan::Skip, true) => BodyPlan::Hold {
                limit_bytes: response.limit_bytes,
                over_limit: BodyLimitAction::ProcessPartial,
            },
            (of_rules, _) => of_rules,
        }
    }

    /// The longest time for which the body may wait for its upstream in all; `None`: as long as the upstream
    /// may take. A body that may not wait long is let go, too, where there is no memory to hold it; neither
    /// that nor the limit is an exception. A page that is sent in pieces is not to appear later than that
    /// because the semantic detector looks at it; what comes afterwards is not looked at.
    pub fn response_wait_max(&self) -> Option<Duration> {
        let wait = self.semantic.as_ref()?.response_wait();
        (!self.response.to_rules).then_some(wait)
    }

    /// A piece of the response body, within the plan's limit, transfer coding removed. It is seen with its
    /// content codings undone, as far as that goes under the same limit.
    pub fn response_body(&mut self, chunk: &[u8]) {
        let Inspection { response, transaction, semantic, .. } = self;
        response.seen += chunk.len() as u64;
        let (to_rules, to_semantic, limit) = (response.to_rules, response.to_semantic, response.limit_bytes);
        let shown = &mut response.shown;
        let take = &mut |data: &[u8]| {
            *shown += data.len() as u64;
            show(transaction, to_rules, semantic, to_semantic, data);
        };
        response.coded.feed(chunk, limit, take);
    }

    /// The number of bytes that each byte of the response body which is shown may take.
    pub fn response_copies(&self) -> usize {
        usize::from(self.response.to_rules) + usize::from(self.response.to_semantic)
    }

    /// Phase 4. `truncated`: there is more body than was shown.
    pub fn response_end(&mut self, truncated: bool) -> Step {
        if self.interruption.is_some() {
            return Step::Continue;
        }
        let Inspection { response, transaction, semantic, .. } = self;
        let (to_rules, to_semantic) = (response.to_rules, response.to_semantic);
        let take = &mut |data: &[u8]| show(transaction, to_rules, semantic, to_semantic, data);
        match truncated {
            true => response.coded.cut(take),
            false => response.coded.finish(take),
        }
        if truncated && response.seen < response.limit_bytes {
            response.skip = NotInspected::Released;
        }
        self.phase = Phase::ResponseBody;
        // The upstream is not the adversary: what a body decodes to brings as much as what comes.
        let shown = response.shown.max(response.seen);
        transaction.allow_work(shown, shown);
        if let Some(semantic) = semantic.as_mut().filter(|_| to_semantic) {
            let is_whole = !truncated && response.coded.error().is_none();
            semantic.response_end(is_whole, response.limit_bytes);
        }
        let over = matches!(response.coded.error(), Some(CodingError::TooLarge | CodingError::Bomb));
        let progress = transaction.response_end(to_rules && (truncated || over));
        self.step(progress)
    }
}

fn show(
    transaction: &mut Transaction,
    to_rules: bool,
    semantic: &mut Option<Box<SemanticRun>>,
    to_semantic: bool,
    data: &[u8],
) {
    if to_rules {
        transaction.response_body(data);
    }
    if let Some(semantic) = semantic.as_mut().filter(|_| to_semantic) {
        semantic.response_body(data);
    }
}
