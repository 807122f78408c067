//! The trace of one request: its context goes on to the upstream, its spans to the collector if it is
//! sampled.
//!
//! Names of spans and attributes are those of OpenTelemetry's semantic conventions for HTTP, version 1; ours
//! begin with `portcullis.`.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use portcullis_config::TraceParent;
use portcullis_event::{Action, limits, text};
use portcullis_exchange::Phase;
use portcullis_http::message::RequestHead;
use portcullis_trace::{Context, HEADER_BYTES, Kind, Sender, Span, Trace, Value};

use crate::connection::Connection;
use crate::generation::Generation;
use crate::route::Route;
use crate::upstream::Group;

/// Bytes of `tracestate` that go on to the collector: W3C Trace Context, section 3.3.1.5, asks for as many at
/// least.
const STATE_BYTES_MAX: usize = 512;
/// Spans of one request. Tries, phases and agents are fewer; this is for what nobody has thought of.
const SPANS_MAX: usize = 64;
/// Methods that spans are named after. What else clients send would make names without end.
const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/// The trace of one request.
pub(crate) struct Traced {
    trace: Trace,
    /// The try that is under way.
    asking: Option<Span>,
    /// `tracestate` has no `traceparent` that it belongs to.
    drops_state: bool,
    sender: Sender,
}

/// The attributes of the span of a finished request.
pub(crate) struct RequestSummary<'a> {
    pub(crate) head: &'a RequestHead,
    pub(crate) route: Option<&'a Route>,
    pub(crate) request_id: &'a str,
    pub(crate) client: IpAddr,
    pub(crate) tls: bool,
    pub(crate) status: Option<u16>,
    pub(crate) action: Action,
    pub(crate) phases: Vec<Phase>,
    pub(crate) duration: Duration,
}

impl Traced {
    /// Begins one, if traces are wanted.
    pub(crate) fn begin(
        connection: &Connection,
        generation: &Generation,
        head: &RequestHead,
    ) -> Option<Box<Traced>> {
        let settings = generation.tracing.as_ref()?;
        let sender = connection.worker.shared.services.traces.clone()?;
        let follows = match settings.parent {
            TraceParent::All => true,
            TraceParent::Trusted => generation.client_address.trusts(connection.peer.ip()),
            TraceParent::None => false,
        };
        let mut given = head.header("traceparent");
        // Two of them are none.
        let parent = match (given.next().filter(|_| follows), given.next()) {
            (Some(value), None) => Context::read(value),
            _ => None,
        };
        let mut ids = connection.worker.request_ids.borrow_mut();
        let context = match parent {
            Some(parent) => parent.child(ids.span()),
            None => Context::root(ids.secret(), ids.span(), settings.ratio),
        };
        drop(ids);
        let state = match parent {
            Some(_) if context.sampled => {
                let lines: Vec<_> = head.header("tracestate").map(String::from_utf8_lossy).collect();
                Some(lines.join(",")).filter(|state| state.len() <= STATE_BYTES_MAX).unwrap_or_default()
            }
            _ => String::new(),
        };
        let began = connection.began;
        let trace = Trace {
            context,
            parent: parent.map(|parent| parent.span),
            state,
            at: (began.instant, began.time),
            spans: Vec::new(),
        };
        Some(Box::new(Traced { trace, asking: None, drops_state: parent.is_none(), sender }))
    }

    /// The spans are kept.
    pub(crate) fn is_sampled(&self) -> bool {
        self.trace.context.sampled
    }

    /// The id of the trace, in hex digits.
    pub(crate) fn id(&self) -> String {
        self.trace.context.trace_id()
    }

    /// The `traceparent` that has the upstream go on with the trace.
    pub(crate) fn header(&self) -> [u8; HEADER_BYTES] {
        self.trace.context.header()
    }

    /// The client's `tracestate` is of a trace that is not followed, and does not go on.
    pub(crate) fn drops_state(&self) -> bool {
        self.drops_state
    }

    /// An endpoint is asked; what was asked before did not answer.
    pub(crate) fn asks(&mut self, group: &Group, endpoint: usize) {
        self.answered(None);
        if self.is_sampled() {
            let name = group.endpoints.members().get(endpoint).map_or("", |member| member.name.as_str());
            let mut attributes = vec![("portcullis.upstream", Value::from(group.settings.name.clone()))];
            attributes.extend(server(name));
            self.asking = Some(Span {
                name: "upstream".into(),
                kind: Kind::Client,
                begin: Instant::now(),
                duration: Duration::ZERO,
                failed: false,
                attributes,
            });
        }
    }

    /// The try that is under way is over, with a status if there is an answer.
    pub(crate) fn answered(&mut self, status: Option<u16>) {
        let Some(mut span) = self.asking.take() else { return };
        span.duration = span.begin.elapsed();
        span.failed = status.is_none_or(|status| status >= 400);
        if let Some(status) = status {
            span.attributes.push(("http.response.status_code", Value::from(i64::from(status))));
        }
        self.add(span);
    }

    /// Adds what an agent was asked.
    pub(crate) fn asked_agent(&mut self, agent: &str, begin: Instant, duration: Duration, failed: bool) {
        if self.is_sampled() {
            let attributes = vec![("portcullis.agent", Value::from(agent.to_string()))];
            self.add(Span { name: "agent".into(), kind: Kind::Client, begin, duration, failed, attributes });
        }
    }

    fn add(&mut self, span: Span) {
        if self.is_sampled() && self.trace.spans.len() < SPANS_MAX {
            self.trace.spans.push(span);
        }
    }

    /// The request is over: its own span, those of its phases, and off they go.
    pub(crate) fn finish(mut self: Box<Self>, summary: RequestSummary<'_>) {
        self.answered(None);
        if !self.is_sampled() {
            return;
        }
        for &(name, begin, duration) in &summary.phases {
            let (kind, failed, attributes) = (Kind::Internal, false, Vec::new());
            self.add(Span { name: name.into(), kind, begin, duration, failed, attributes });
        }
        self.trace.spans.sort_by_key(|span| span.begin);
        let whole = summary.span(self.trace.at.0);
        self.trace.spans.insert(0, whole);
        let Traced { trace, sender, .. } = *self;
        sender.submit(trace);
    }
}

/// The attributes of `host`, `host:port` or `[address]:port`.
fn server(text: &str) -> impl Iterator<Item = (&'static str, Value)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port.parse::<u16>().ok()),
        _ => (text, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
    let port = port.map(|port| ("server.port", Value::from(i64::from(port))));
    [("server.address", Value::from(host))].into_iter().chain(port)
}

impl RequestSummary<'_> {
    /// The span of the whole request.
    fn span(&self, begin: Instant) -> Span {
        let method = METHODS.iter().find(|method| method.as_bytes() == self.head.method());
        let mut attributes = vec![
            ("http.request.method", Value::from(*method.unwrap_or(&"_OTHER"))),
            ("url.scheme", Value::from(if self.tls { "https" } else { "http" })),
            ("client.address", Value::from(self.client.to_string())),
            ("portcullis.request_id", Value::from(self.request_id.to_string())),
            ("portcullis.verdict", Value::from(self.action.name())),
        ];
        attributes.extend(server(&text(self.head.host(), limits::REQUEST_TOKEN_BYTES_MAX)));
        if let Some(route) = self.route {
            attributes.push(("portcullis.site", Value::from(route.names.site.to_string())));
            attributes.push(("http.route", Value::from(route.names.route.to_string())));
        }
        if let Some(status) = self.status {
            attributes.push(("http.response.status_code", Value::from(i64::from(status))));
        }
        let method = method.unwrap_or(&"HTTP");
        let name = match self.route {
            Some(route) => format!("{method} {}", route.names.route).into(),
            None => (*method).into(),
        };
        let failed = self.status.is_none_or(|status| status >= 500);
        Span { name, kind: Kind::Server, begin, duration: self.duration, failed, attributes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports() {
        let both = |text: &str| server(text).map(|(_, value)| value).collect::<Vec<_>>();
        let expected = |host: &'static str, port: i64| vec![Value::from(host.to_string()), Value::from(port)];
        assert_eq!(both("a.example:80"), expected("a.example", 80));
        assert_eq!(both("[::1]:80"), expected("::1", 80));
        for (text, host) in [("a", "a"), ("[::1]", "::1"), ("::1", "::1"), ("", "")] {
            assert_eq!(both(text), [Value::from(host.to_string())], "{text}");
        }
    }
}
