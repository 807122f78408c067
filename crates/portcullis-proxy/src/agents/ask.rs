//! A transaction's questions to its agents, and what their decisions change.

use std::sync::Arc;
use std::time::Duration;

use portcullis_agent::wire::{Header, RequestHead as ToldRequest, ResponseHead as ToldResponse};
use portcullis_agent::{Change, Checked, Verdict};
use portcullis_config::OpenOrClosed;
use portcullis_event::{
    Action, AgentOutcome, AgentWord, Control, ControlKind, ExceptionCause, ExceptionPolicy,
};
use portcullis_http::message::{BodyFraming, ResponseHead};
use portcullis_inspect::{BodyLimitAction, BodyPlan, Interruption};

use super::conversation::Conversation;
use super::failed::Failed;
use crate::access::ControlDecision;
use crate::exchange::Exchange;
use crate::header_changes::Changed;
use crate::lookups::all;
use crate::route::Route;
use crate::transaction::Transaction;

/// The longest wait for the upstream of a response body that only agents see.
const WAIT_MAX: Duration = Duration::from_millis(200);

/// The conversations of a transaction with its agents.
pub(crate) struct Asked {
    conversations: Vec<Conversation>,
    /// Their decisions are carried out.
    enforced: bool,
}

/// Changes of headers that agents asked for.
#[derive(Default)]
pub(crate) struct Headers {
    request: Vec<Change>,
    response: Vec<Change>,
}

/// Tells the agents of the route of a request that phase 1 has let through.
pub(crate) async fn begin(exchange: &mut Exchange<'_>, route: &Route) {
    let Exchange { connection, head, transaction, .. } = exchange;
    if route.agents.is_empty() || transaction.is_bypassed() || transaction.life.is_left_alone() {
        return;
    }
    let client = transaction.client();
    let message = ToldRequest {
        request_id: transaction.request_id.clone(),
        site: route.names.site.to_string(),
        route: route.names.route.to_string(),
        client_address: client.ip().to_string(),
        client_port: client.port().into(),
        tls: connection.tls,
        method: head.method().to_vec(),
        target: head.target().to_vec(),
        protocol: head.version_bytes().to_vec(),
        headers: fields(head.fields()),
        end: false,
    };
    let has_body = head.framing() != BodyFraming::None;
    let begin = |of| Conversation::begin(&connection.worker.agents, of, message.clone(), has_body);
    let conversations = all(route.agents.iter().map(begin).collect()).await;
    let enforced = transaction.life.running().is_none() || transaction.life.is_blocking();
    transaction.agents = Some(Box::new(Asked { conversations, enforced }));
}

/// The plan for the request body, where `plan` is that of the inspection.
pub(crate) fn request_plan(transaction: &Transaction, plan: BodyPlan) -> BodyPlan {
    match &transaction.agents {
        Some(asked) => asked.plan(plan, |agent| agent.request_body),
        None => plan,
    }
}

/// Shows a piece of the request body.
pub(crate) async fn body(transaction: &mut Transaction, data: &[u8]) {
    let Some(asked) = &mut transaction.agents else { return };
    if let [one] = &mut asked.conversations[..] {
        return one.body(data).await;
    }
    all(asked.conversations.iter_mut().map(|each| each.body(data)).collect()).await;
}

/// Waits for the decisions on the request; what is to be done instead of going on, if so. `truncated`: there
/// is more body than was shown.
pub(crate) async fn verdict(transaction: &mut Transaction, truncated: bool) -> Option<Interruption> {
    let mut asked = transaction.agents.take()?;
    all(asked.conversations.iter_mut().map(|each| each.request_end(truncated)).collect()).await;
    let interruption = asked.conclude(transaction);
    asked.conversations.retain(Conversation::wants_response);
    if !asked.conversations.is_empty() && interruption.is_none() {
        transaction.agents = Some(asked);
    }
    interruption
}

/// The plan for the response body, where `plan` is that of the inspection; and how long it may wait for its
/// upstream if only agents want it.
pub(crate) fn response_plan(transaction: &Transaction, plan: BodyPlan) -> (BodyPlan, Option<Duration>) {
    let Some(asked) = &transaction.agents else { return (plan, None) };
    let wants = asked.conversations.iter().any(Conversation::wants_response_body);
    match plan {
        BodyPlan::Skip if wants => (
            asked.plan(plan, |agent| agent.response == portcullis_config::ResponseShown::Body),
            Some(WAIT_MAX),
        ),
        plan @ (BodyPlan::Skip | BodyPlan::Hold { .. }) => (plan, None),
    }
}

/// Shows the response, of whose body `held` is there, and waits for the decisions on it.
pub(crate) async fn response(
    transaction: &mut Transaction,
    head: &ResponseHead,
    held: &[u8],
    truncated: bool,
) -> Option<Interruption> {
    let mut asked = transaction.agents.take()?;
    let message = ToldResponse {
        status: head.status().into(),
        protocol: head.version().as_str().as_bytes().to_vec(),
        headers: fields(head.fields()),
        end: false,
    };
    let show = |each| Conversation::response(each, message.clone(), held, truncated);
    all(asked.conversations.iter_mut().map(show).collect()).await;
    let interruption = asked.conclude(transaction);
    transaction.agent_headers.change_response(&mut transaction.response_headers);
    interruption
}

impl Asked {
    fn plan(&self, plan: BodyPlan, wants: fn(&portcullis_config::Agent) -> bool) -> BodyPlan {
        let settings = self.conversations.iter().map(|each| &each.agent.settings);
        match (plan, settings.filter(|agent| wants(agent)).map(|agent| agent.body_bytes_max).max()) {
            (BodyPlan::Skip, Some(limit_bytes)) => {
                BodyPlan::Hold { limit_bytes, over_limit: BodyLimitAction::ProcessPartial }
            }
            (plan, _) => plan,
        }
    }

    /// Takes all decisions. The first that stops the exchange counts; scores and words of all do.
    fn conclude(&mut self, transaction: &mut Transaction) -> Option<Interruption> {
        let mut stop = None;
        for conversation in &mut self.conversations {
            let name = Arc::clone(&conversation.agent.name);
            if let Some(trace) = &mut transaction.trace {
                let failed = matches!(conversation.result, Some(Err(_)));
                trace.asked_agent(&name, conversation.began, conversation.took, failed);
            }
            let found = match conversation.result.take() {
                Some(Ok(mut decision)) => {
                    let found = decided(transaction, &name, &decision);
                    conversation.result = Some(Ok(Checked { done: decision.done, ..Checked::default() }));
                    if self.enforced {
                        transaction.agent_headers.request.append(&mut decision.request_headers);
                        transaction.agent_headers.response.append(&mut decision.response_headers);
                    }
                    found
                }
                Some(Err(why)) => {
                    let passes = conversation.failure == OpenOrClosed::Open || !self.enforced;
                    conversation.agent.report.without(why, passes);
                    transaction.failed_agent = Some(Arc::clone(&conversation.agent));
                    let policy = match conversation.failure {
                        OpenOrClosed::Open => ExceptionPolicy::Open,
                        OpenOrClosed::Closed if self.enforced => ExceptionPolicy::Closed,
                        OpenOrClosed::Closed => ExceptionPolicy::DetectOnly,
                    };
                    failed(transaction, &name, why, policy)
                }
                None => None,
            };
            if stop.is_none()
                && let Some((interruption, reason)) = found
            {
                let control = Control { by: ControlKind::Agent, name };
                transaction.decision = Some(ControlDecision { control, reason, in_event: true });
                stop = Some(interruption).filter(|_| self.enforced);
            }
        }
        let (status, action) = match stop.as_ref()? {
            Interruption::Deny { status } => (*status, Action::Deny),
            Interruption::Redirect { status, .. } => (*status, Action::Redirect),
            Interruption::Proxy { .. } | Interruption::Drop => return stop,
        };
        let reason = transaction.decision.as_ref().map_or(String::new(), |decision| decision.reason.clone());
        transaction.life.reject(status, reason, action);
        stop
    }
}

fn decided(
    transaction: &mut Transaction,
    name: &Arc<str>,
    decision: &Checked,
) -> Option<(Interruption, String)> {
    if decision.score > 0 {
        transaction.life.add_agent_score(decision.score);
    }
    let (outcome, stop) = match &decision.verdict {
        Verdict::Allow => (AgentOutcome::Allow, None),
        Verdict::Block { status } => (AgentOutcome::Block, Some(Interruption::Deny { status: *status })),
        Verdict::Redirect { status, location } => {
            let location = location.clone().into_bytes();
            (AgentOutcome::Redirect, Some(Interruption::Redirect { status: *status, location }))
        }
    };
    let (score, tags, reason) = (decision.score, decision.tags.clone(), decision.reason.clone());
    let word = AgentWord { name: Arc::clone(name), outcome, score, tags, reason };
    if word.is_finding() || !word.reason.is_empty() {
        transaction.life.outcome.agents.push(word);
    }
    stop.map(|stop| {
        let reason = match decision.reason.as_str() {
            "" => format!("the agent {name} decided so"),
            reason => reason.to_string(),
        };
        (stop, reason)
    })
}

fn failed(
    transaction: &mut Transaction,
    name: &Arc<str>,
    why: Failed,
    policy: ExceptionPolicy,
) -> Option<(Interruption, String)> {
    let outcome = match why {
        Failed::Connect | Failed::Handshake | Failed::Closed | Failed::Invalid | Failed::Status => {
            AgentOutcome::Failed
        }
        Failed::Timeout => AgentOutcome::Timeout,
        Failed::CircuitOpen => AgentOutcome::CircuitOpen,
        Failed::Queue => AgentOutcome::Queue,
    };
    let (name, reason) = (Arc::clone(name), why.text().to_string());
    let text = format!("the agent {name} gave no decision: {reason}");
    transaction.life.outcome.agents.push(AgentWord { name, outcome, score: 0, tags: Vec::new(), reason });
    transaction.life.exception_once(ExceptionCause::AgentFailed, policy);
    (policy == ExceptionPolicy::Closed).then_some((Interruption::Deny { status: 503 }, text))
}

impl Headers {
    /// Changes what the route changes of a request's headers further.
    pub(crate) fn change_request(&mut self, changed: &mut Option<Box<Changed>>) {
        change(&mut self.request, changed);
    }

    /// The same for a response.
    pub(crate) fn change_response(&mut self, changed: &mut Option<Box<Changed>>) {
        change(&mut self.response, changed);
    }
}

fn change(changes: &mut Vec<Change>, changed: &mut Option<Box<Changed>>) {
    for change in changes.drain(..) {
        let Changed { remove, set, add } = &mut **changed.get_or_insert_default();
        let mut forget = |name: &str| {
            set.retain(|(other, _)| other != name);
            add.retain(|(other, _)| other != name);
        };
        match change {
            Change::Set(name, value) => {
                forget(&name);
                set.push((name, value));
            }
            Change::Remove(name) => {
                forget(&name);
                remove.push(name);
            }
            Change::Add(name, value) => add.push((name, value)),
        }
    }
}

fn fields<'h>(fields: impl Iterator<Item = (&'h [u8], &'h [u8])>) -> Vec<Header> {
    fields.map(|(name, value)| Header { name: name.to_vec(), value: value.to_vec() }).collect()
}
