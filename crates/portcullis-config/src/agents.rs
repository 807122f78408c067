//! `agents`: inspection processes of the document, and which of them a site or route asks.

mod raw;

use std::path::PathBuf;
use std::time::Duration;

use portcullis_balance::BreakerSettings;

use crate::checked::policy::OpenOrClosed;
use crate::hint;
use crate::mistakes::Mistakes;
use crate::raw::policy::OpenOrClosed as RawOpenOrClosed;
use crate::raw::tls as raw_tls;
use crate::spanned::Spanned;
use crate::tls::{self, UpstreamTls};
use crate::upstream::check::breaker;
use crate::upstream::{Endpoint, parse_with_port};
use crate::values::number;

pub(crate) use raw::{Agent as Raw, Use};

/// An inspection process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its name in events and metrics.
    pub name: String,
    /// The address that it listens on.
    pub address: AgentAddress,
    /// The longest time for which a request waits for it in all, and a response.
    pub timeout: Duration,
    /// Connections of one worker.
    pub connections: u32,
    /// Exchanges at one time, of all workers together.
    pub concurrency: u32,
    /// Requests that wait for a place among them.
    pub queue_max: u32,
    /// Bodies of requests are shown.
    pub request_body: bool,
    /// The part of responses that it is shown.
    pub response: ResponseShown,
    /// Bytes of one body that are shown.
    pub body_bytes_max: u64,
    /// The policy where it gives no decision, at routes that do not set their own.
    pub failure: OpenOrClosed,
    /// Circuit breaker: when to stop asking it for a while.
    pub breaker: BreakerSettings,
}

/// The address of an agent and the protocol that it speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentAddress {
    /// The protocol as it is, over this Unix socket.
    Unix(PathBuf),
    /// gRPC over HTTP/2.
    Grpc(Endpoint, Option<UpstreamTls>),
}

/// The part of responses that an agent is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseShown {
    /// Nothing.
    Nothing,
    /// Status and headers.
    Head,
    /// Bodies, too.
    Body,
}

/// An agent that a route asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentUse {
    /// Index into [`Config::agents`](crate::Config::agents).
    pub agent: usize,
    /// The policy where it gives no decision.
    pub failure: OpenOrClosed,
}

const TIMEOUT: Duration = Duration::from_secs(1);
const CONCURRENCY: u32 = 256;
const QUEUE: u32 = 1024;
const BODY_BYTES_MAX: u64 = 1 << 20;

/// Checks the agents of the document.
pub(crate) fn check(
    mistakes: &mut Mistakes<'_>,
    raw: std::collections::BTreeMap<String, Spanned<Raw>>,
) -> Vec<Agent> {
    raw.into_iter().map(|(name, raw)| agent(mistakes, name, raw)).collect()
}

fn agent(mistakes: &mut Mistakes<'_>, name: String, raw: Spanned<Raw>) -> Agent {
    let Spanned { value: raw, span } = raw;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(fits) {
        let message = format!("`{name}` is not a name: 1 to 64 letters, digits, `-`, `_`, `.`");
        mistakes.wrong(span, message);
    }
    let address = address(mistakes, &raw.address, raw.tls);
    if let (Some(limit), false, true) = (
        &raw.body_limit,
        raw.request_body == Some(true),
        raw.response.is_none_or(|shown| shown != raw::Response::Body),
    ) {
        mistakes.wrong_with_hint(
            limit.span.clone(),
            "this agent is shown no bodies".to_string(),
            "add `request_body = true` or `response = \"body\"`".to_string(),
        );
    }
    Agent {
        name,
        address,
        timeout: raw.timeout.map_or(TIMEOUT, |time| time.0),
        connections: number(mistakes, raw.connections, 1..=64, "connections", 1),
        concurrency: number(mistakes, raw.concurrency, 1..=65_536, "concurrency", CONCURRENCY),
        queue_max: number(mistakes, raw.queue, 0..=1_000_000, "queue", QUEUE),
        request_body: raw.request_body.unwrap_or(false),
        response: match raw.response {
            None | Some(raw::Response::Off) => ResponseShown::Nothing,
            Some(raw::Response::Head) => ResponseShown::Head,
            Some(raw::Response::Body) => ResponseShown::Body,
        },
        body_bytes_max: raw.body_limit.map_or(BODY_BYTES_MAX, |size| size.value.0),
        failure: failure(raw.failure).unwrap_or(OpenOrClosed::Closed),
        breaker: breaker(mistakes, raw.breaker),
    }
}

fn address(
    mistakes: &mut Mistakes<'_>,
    raw: &Spanned<String>,
    tls: Option<Spanned<raw_tls::UpstreamTls>>,
) -> AgentAddress {
    let is_tls = raw.starts_with("grpcs://");
    if let (false, Some(settings)) = (is_tls, &tls) {
        mistakes.wrong_with_hint(
            settings.span.clone(),
            "this agent has TLS settings, but its address is without TLS".to_string(),
            "write `grpcs://` in its address or drop `tls`".to_string(),
        );
    }
    let url = raw.strip_prefix("grpc://").or_else(|| raw.strip_prefix("grpcs://"));
    let wrong = match (raw.strip_prefix("unix:").filter(|path| !path.is_empty()), url) {
        (Some(path), _) => {
            let socket = mistakes.path(path);
            // As sockaddr_un has it, the final zero counted.
            if socket.as_os_str().len() > 107 {
                let message = "the path of a Unix socket has 107 bytes at most".to_string();
                mistakes.wrong(raw.span.clone(), message);
            }
            return AgentAddress::Unix(socket);
        }
        (None, Some(rest)) => match parse_with_port(raw, rest) {
            Ok(endpoint) => {
                let settings = tls.map(|tls| tls.value).unwrap_or_default();
                return AgentAddress::Grpc(endpoint, is_tls.then(|| tls::upstream(mistakes, settings)));
            }
            Err(message) => message,
        },
        (None, None) => format!("`{}` is not the address of an agent", raw.value),
    };
    let hint =
        "write `unix:/run/portcullis/agent.sock`, `grpc://127.0.0.1:9100` or `grpcs://agent.internal:9100`";
    mistakes.wrong_with_hint(raw.span.clone(), wrong, hint.to_string());
    AgentAddress::Unix(PathBuf::new())
}

/// Checks which of `agents` a site or route asks.
pub(crate) fn uses(mistakes: &mut Mistakes<'_>, agents: &[Agent], raw: &[Spanned<Use>]) -> Vec<AgentUse> {
    let mut uses: Vec<AgentUse> = Vec::new();
    for given in raw {
        let Some(agent) = agents.iter().position(|agent| agent.name == given.name) else {
            let known: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
            let hint = match known.is_empty() {
                true => format!("add `[agents.{}]` with its `address`", given.name),
                false => hint::suggest(&given.name, &known),
            };
            mistakes.wrong_with_hint(given.span.clone(), format!("there is no agent `{}`", given.name), hint);
            continue;
        };
        if uses.iter().any(|other| other.agent == agent) {
            mistakes.wrong(given.span.clone(), format!("the agent `{}` is named twice", given.name));
        }
        let failure = failure(given.failure).unwrap_or(agents[agent].failure);
        uses.push(AgentUse { agent, failure });
    }
    uses
}

fn failure(raw: Option<RawOpenOrClosed>) -> Option<OpenOrClosed> {
    raw.map(|raw| match raw {
        RawOpenOrClosed::Open => OpenOrClosed::Open,
        RawOpenOrClosed::Closed => OpenOrClosed::Closed,
    })
}
