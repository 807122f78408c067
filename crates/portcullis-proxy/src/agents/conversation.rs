//! One exchange as one agent sees it.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_agent::wire::{Body, RequestHead, ResponseHead, To, ToAgent};
use portcullis_agent::{Checked, PIECE_BYTES_MAX, Verdict};
use portcullis_config::{OpenOrClosed, ResponseShown};

use super::link::{Link, Links};
use super::{Agent, AgentPermit, AgentUse, Failed};

/// The conversation with one agent about one exchange.
pub(super) struct Conversation {
    pub(super) agent: Arc<Agent>,
    pub(super) failure: OpenOrClosed,
    /// The connection, until the agent needs to hear no more.
    at: Option<(Rc<Link>, u64)>,
    /// Held while a decision is awaited.
    permit: Option<AgentPermit>,
    /// The decision on the request, or then on the response.
    pub(super) result: Option<Result<Checked, Failed>>,
    /// The time for which the exchange may still wait.
    left: Duration,
    pub(super) began: Instant,
    pub(super) took: Duration,
    waited: Duration,
    /// Body bytes shown.
    shown: u64,
    wants_body: bool,
    cut: bool,
}

impl Conversation {
    /// Tells the agent of a request. `has_body`: more comes than its head.
    pub(super) async fn begin(links: &Links, of: &AgentUse, mut head: RequestHead, has_body: bool) -> Self {
        let agent = Arc::clone(&of.agent);
        let wants_body = has_body && agent.settings.request_body;
        head.end = !wants_body;
        let mut conversation = Conversation {
            left: agent.settings.timeout,
            agent,
            failure: of.failure,
            at: None,
            permit: None,
            result: None,
            began: Instant::now(),
            took: Duration::ZERO,
            waited: Duration::ZERO,
            shown: 0,
            wants_body,
            cut: false,
        };
        if conversation.enter().await {
            let link = links.to(&conversation.agent);
            match conversation.within(link.opened()).await {
                Ok(()) => {
                    let exchange = link.begin();
                    conversation.at = Some((link, exchange));
                    conversation.send_head(To::RequestHead(head));
                }
                Err(why) => conversation.fail(why, ""),
            }
        }
        conversation
    }

    /// Shows a piece of the request body.
    pub(super) async fn body(&mut self, data: &[u8]) {
        self.show(data, To::RequestBody).await;
    }

    /// The decision on the request. `truncated`: there is more body than was shown.
    pub(super) async fn request_end(&mut self, truncated: bool) {
        self.end(truncated, To::RequestBody);
        self.decide().await;
        let is_over = match &self.result {
            Some(Ok(decision)) => decision.done || self.agent.settings.response == ResponseShown::Nothing,
            _ => true,
        };
        if is_over && let Some((link, exchange)) = self.at.take() {
            let told = matches!(&self.result, Some(Ok(decision)) if decision.done);
            link.end(exchange, told, false);
        }
    }

    /// The agent is to hear of the response, too.
    pub(super) fn wants_response(&self) -> bool {
        self.at.is_some()
    }

    /// The agent is to see its body.
    pub(super) fn wants_response_body(&self) -> bool {
        self.wants_response() && self.agent.settings.response == ResponseShown::Body
    }

    /// The decision on the response, of whose body `held` is there.
    pub(super) async fn response(&mut self, mut head: ResponseHead, held: &[u8], truncated: bool) {
        (self.result, self.shown, self.cut) = (None, 0, false);
        self.began = Instant::now();
        (self.left, self.waited) = (self.agent.settings.timeout, Duration::ZERO);
        self.wants_body = self.wants_response_body() && (truncated || !held.is_empty());
        head.end = !self.wants_body;
        if !self.enter().await {
            return;
        }
        if let Some((link, exchange)) = &self.at {
            link.begin_response(*exchange);
        }
        self.send_head(To::ResponseHead(head));
        self.show(held, To::ResponseBody).await;
        self.end(truncated, To::ResponseBody);
        self.decide().await;
        let told = matches!(&self.result, Some(Ok(decision)) if decision.done);
        if let Some((link, exchange)) = self.at.take() {
            link.end(exchange, told, false);
        }
    }

    async fn enter(&mut self) -> bool {
        let agent = Arc::clone(&self.agent);
        let begin = Instant::now();
        let entered = agent.enter(self.left).await;
        self.spend(begin);
        match entered {
            Ok(permit) => {
                self.permit = Some(permit);
                true
            }
            Err(why) => {
                self.fail(why, "");
                false
            }
        }
    }

    fn send_head(&mut self, head: To) {
        let Some((link, exchange)) = &self.at else { return };
        let message = ToAgent::of(*exchange, head);
        if message.wire_bytes() > link.message_bytes_max() {
            return self.fail(Failed::Invalid, "a head is longer than it accepts");
        }
        if let Some(head) = message.message {
            link.send(*exchange, head);
        }
    }

    async fn show(&mut self, data: &[u8], wrap: fn(Body) -> To) {
        if !self.wants_body || self.result.is_some() {
            return;
        }
        let room = self.agent.settings.body_bytes_max.saturating_sub(self.shown);
        let fits = data.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        self.cut |= fits < data.len();
        let mut rest = &data[..fits];
        while !rest.is_empty() {
            let Some((link, exchange)) = self.at.clone() else { return };
            let wanted = rest.len().min(PIECE_BYTES_MAX);
            match self.within(link.credit(exchange, wanted)).await {
                // It has decided, and needs to see no more.
                Ok(0) => return,
                Ok(granted) => {
                    let (piece, more) = rest.split_at(granted);
                    link.send(exchange, wrap(Body { data: piece.to_vec(), end: false, truncated: false }));
                    self.shown += granted as u64;
                    rest = more;
                }
                Err(why) => return self.fail(why, ""),
            }
        }
    }

    fn end(&mut self, truncated: bool, wrap: fn(Body) -> To) {
        if let (true, None, Some((link, exchange))) = (self.wants_body, &self.result, &self.at) {
            let truncated = truncated || self.cut;
            link.send(*exchange, wrap(Body { data: Vec::new(), end: true, truncated }));
        }
    }

    async fn decide(&mut self) {
        if self.result.is_none()
            && let Some((link, exchange)) = self.at.clone()
        {
            match self.within(link.decision(exchange)).await.map(portcullis_agent::check) {
                Ok(Ok(decision)) => {
                    let verdict = match decision.verdict {
                        Verdict::Allow => 0,
                        Verdict::Block { .. } => 1,
                        Verdict::Redirect { .. } => 2,
                    };
                    self.agent.report.decided(verdict);
                    if let Some(permit) = self.permit.take() {
                        permit.succeeded();
                    }
                    self.result = Some(Ok(decision));
                }
                Ok(Err(invalid)) => {
                    let detail = format!("a decision that cannot be carried out: {invalid}");
                    self.agent.report.line(&detail);
                    self.fail(Failed::Invalid, &detail);
                }
                Err(why) => self.fail(why, ""),
            }
        }
        self.took = self.began.elapsed();
        self.agent.report.waited(self.waited);
    }

    fn fail(&mut self, why: Failed, detail: &str) {
        if let Some(permit) = self.permit.take() {
            permit.failed(why, detail);
        }
        if let Some((link, exchange)) = self.at.take() {
            // An agent that has said nothing since the exchange began may be gone for good; the next one
            // tries anew.
            let is_silent = link.heard().is_none_or(|heard| heard.elapsed() > self.waited);
            if why == Failed::Timeout && is_silent {
                link.retire();
            }
            link.end(exchange, false, true);
        }
        self.result = Some(Err(why));
    }

    /// Waits for `work`, as long as the exchange may.
    async fn within<T>(&mut self, work: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
        let begin = Instant::now();
        let result = tokio::time::timeout(self.left, work).await;
        self.spend(begin);
        result.unwrap_or(Err(Failed::Timeout))
    }

    fn spend(&mut self, begin: Instant) {
        let spent = begin.elapsed();
        self.waited += spent;
        self.left = self.left.saturating_sub(spent);
    }
}

/// An exchange that ends early, or whose response is never shown.
impl Drop for Conversation {
    fn drop(&mut self) {
        if let Some((link, exchange)) = self.at.take() {
            link.end(exchange, false, self.result.is_none());
        }
    }
}
