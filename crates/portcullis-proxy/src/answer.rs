//! Answers of the proxy itself: block pages, redirects, refusals, gateway errors.
//!
//! An [`Answer`] is data. Whatever finds that a request does not go on returns one as an error, with `?`, and [`send`] is the only
//! place that writes it to the client and notes in the transaction why there is one.

use std::borrow::Cow;

use portcullis_event::{Action, UpstreamError};
use portcullis_http::h1::{ClientConnection, write_answer};
use portcullis_http::message::Version;
use portcullis_inspect::Interruption;

use crate::access::Denial;
use crate::block_page::{self, Form, Page};
use crate::exchange::{Exchange, Next};
use crate::https::Https;
use crate::route;
use crate::sink::Sink;
use crate::transaction::Transaction;

/// What the proxy itself says to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    /// None: the connection is closed without a word.
    status: Option<u16>,
    content: Content,
    /// Fields beside those of every answer.
    fields: Vec<(&'static str, Vec<u8>)>,
    /// The whole request has been read, so its connection may carry another one.
    reusable: bool,
    cause: Cause,
}

/// The body of an answer.
#[derive(Debug)]
enum Content {
    /// A page that says this.
    Message(Cow<'static, str>),
    /// The page for a blocked request.
    Blocked,
    /// The page for a client without access.
    Denied,
    /// A text of the configuration.
    Text(Box<Page>),
}

/// Why there is an answer of the proxy, for events and metrics.
#[derive(Debug)]
enum Cause {
    /// The request cannot be forwarded, whatever it asks for; the transaction knows its refusal, if it has one.
    Protocol,
    /// A limit or a policy of the proxy.
    Rejected { reason: Cow<'static, str> },
    /// The verdict of rules, the detector or an agent.
    Verdict(Action),
    /// The upstream failed.
    Upstream(UpstreamError),
    /// The route is a redirect or a text.
    Route,
    /// The client has gone away.
    ClientGone,
}

impl Answer {
    fn new(status: u16, content: Content, cause: Cause) -> Answer {
        Answer { status: Some(status), content, fields: Vec::new(), reusable: false, cause }
    }

    /// The connection is closed without a word.
    fn silence(cause: Cause) -> Answer {
        Answer { status: None, ..Answer::new(0, Content::Message("".into()), cause) }
    }

    /// A request that cannot be forwarded.
    pub(crate) fn protocol(status: u16, text: &'static str) -> Answer {
        Answer::new(status, Content::Message(text.into()), Cause::Protocol)
    }

    /// A limit or a policy of the proxy does not let the request go on.
    pub(crate) fn rejected(status: u16, text: &'static str) -> Answer {
        Answer::new(status, Content::Message(text.into()), Cause::Rejected { reason: text.into() })
    }

    /// A control refuses the client.
    pub(crate) fn denied(denial: Denial, reason: String) -> Answer {
        let content = match denial.text {
            Some(text) => Content::Message(text.into()),
            None => Content::Denied,
        };
        let fields = denial.fields.into_iter().map(|(name, value)| (name, value.into_bytes())).collect();
        let cause = Cause::Rejected { reason: reason.into() };
        Answer { fields, ..Answer::new(denial.status, content, cause) }
    }

    /// What rules, the detector or an agent ask for.
    pub(crate) fn verdict(what: Interruption) -> Answer {
        match what {
            Interruption::Drop => Answer::silence(Cause::Verdict(Action::Drop)),
            Interruption::Deny { status } => {
                Answer::new(status, Content::Blocked, Cause::Verdict(Action::Deny))
            }
            // The compiler lets no rule divert a request that is on its way already; if one did, it is a fault of ours.
            Interruption::Proxy { .. } => Answer::new(500, Content::Blocked, Cause::Verdict(Action::Deny)),
            Interruption::Redirect { status, location } => {
                let text = "The request was redirected by the web application firewall.";
                let cause = Cause::Verdict(Action::Redirect);
                Answer::new(status, Content::Message(text.into()), cause).with("Location", location)
            }
        }
    }

    /// The upstream failed before anything of its answer was passed on.
    pub(crate) fn upstream_failed(error: UpstreamError) -> Answer {
        let (status, text) = match error {
            UpstreamError::ConnectTimeout | UpstreamError::ResponseTimeout => {
                (504, "The application did not answer in time.")
            }
            UpstreamError::InvalidResponse => (502, "The application's answer is not valid."),
            UpstreamError::Overloaded => (503, "The application has too many requests at this moment."),
            UpstreamError::NoEndpoint => (503, "No server of the application is available."),
            _ => (502, "The application cannot be reached."),
        };
        Answer::new(status, Content::Message(text.into()), Cause::Upstream(error))
    }

    /// The redirect of a route or site.
    pub(crate) fn redirect(status: u16, to: Vec<u8>) -> Answer {
        let content = Content::Message("It is elsewhere.".into());
        Answer::new(status, content, Cause::Route).with("Location", to)
    }

    /// A text with its media type, or our page if there is none.
    pub(crate) fn text(status: u16, text: Option<(String, String)>) -> Answer {
        let content = match text {
            Some((body, media_type)) => Content::Text(Box::new(Page::new(media_type, body))),
            None => Content::Message("".into()),
        };
        Answer::new(status, content, Cause::Route)
    }

    /// Nobody is there to hear an answer.
    pub(crate) fn client_gone() -> Answer {
        Answer::silence(Cause::ClientGone)
    }

    /// The connection may carry another request, if `reusable`: nothing of this one is left to read.
    pub(crate) fn reusable(self, reusable: bool) -> Answer {
        Answer { reusable, ..self }
    }

    /// The client may try again after so many seconds.
    pub(crate) fn retry_after(self, seconds: u32) -> Answer {
        self.with("Retry-After", seconds.to_string().into_bytes())
    }

    fn with(mut self, name: &'static str, value: Vec<u8>) -> Answer {
        self.fields.push((name, value));
        self
    }

    /// Tells the transaction why it is answered so.
    fn note(&self, transaction: &mut Transaction) {
        transaction.status = self.status;
        if !matches!(self.cause, Cause::Route) {
            // What the route changes of headers is for its own answers.
            transaction.response_headers = None;
        }
        match &self.cause {
            Cause::Protocol | Cause::Route => {}
            Cause::Rejected { reason } => transaction.reject(self.status.unwrap_or(0), reason),
            Cause::Verdict(action) => transaction.action = *action,
            Cause::Upstream(error) => transaction.upstream_error = Some(*error),
            Cause::ClientGone => transaction.client_aborted = true,
        }
    }
}

impl Content {
    fn page(self, status: u16, exchange: &Exchange<'_>) -> Page {
        let (id, form) = (&exchange.transaction.request_id, Form::of(exchange.head));
        match self {
            Content::Message(text) => block_page::page(status, &text, id, form),
            Content::Blocked => exchange.generation.block_page.blocked(status, id, form),
            Content::Denied => exchange.generation.block_page.denied(status, id, form),
            Content::Text(page) => *page,
        }
    }
}

/// Sends an answer, and notes in the transaction what was sent and why.
pub(crate) async fn send(exchange: &mut Exchange<'_>, answer: Answer) -> Next {
    answer.note(&mut exchange.transaction);
    let Some(status) = answer.status else { return Next::Gone };
    let keep = answer.reusable && exchange.head.keep_alive() && !exchange.connection.worker.draining.get();
    let page = answer.content.page(status, exchange);
    let page = match answer.cause {
        Cause::Route => page,
        _ => page.told(exchange.head, status, &exchange.transaction.request_id),
    };
    write(exchange, status, &answer.fields, &page, keep);
    match Sink::new(exchange.connection, exchange.generation.timeouts.write, false).send_composed().await {
        Err(_) => Next::Gone,
        Ok(()) if keep => Next::Request,
        Ok(()) => Next::Close,
    }
}

/// Writes the whole answer into the connection's scratch buffer.
fn write(
    exchange: &mut Exchange<'_>,
    status: u16,
    more: &[(&'static str, Vec<u8>)],
    page: &Page,
    keep: bool,
) {
    let Exchange { connection, head, transaction, .. } = exchange;
    let (alt_svc, changed) = (transaction.alt_svc.take(), transaction.response_headers.take());
    let mut fields: Vec<(&str, &[u8])> = vec![
        ("Content-Type", page.media_type.as_bytes()),
        ("Cache-Control", b"no-store"),
        ("X-Request-Id", transaction.request_id.as_bytes()),
    ];
    let signature = transaction.server_signature().filter(|signature| !signature.is_empty());
    fields.extend(signature.map(|signature| ("Server", signature)));
    if status == 405 {
        fields.push(("Allow", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
    }
    fields.extend(transaction.hsts.as_deref().and_then(Https::field));
    fields.extend(alt_svc.as_ref().map(|value| ("Alt-Svc", value.as_bytes())));
    fields.extend(more.iter().map(|(name, value)| (*name, &value[..])));
    fields.extend(page.fields.iter().map(|(name, value)| (*name, value.as_bytes())));
    if let Some(changed) = &changed {
        fields.retain(|(field, _)| !changed.replaces(field));
        fields.extend(route::fields(&changed.set, ""));
        fields.extend(route::fields(&changed.add, ""));
    }
    let body = page.body.as_bytes();
    let output = &mut connection.output;
    output.clear();
    if head.version() == Version::Http09 && transaction.refusal.is_none() {
        // A simple request knows no head.
        output.extend_from_slice(body);
    } else {
        let client = ClientConnection::of(head.version(), keep);
        write_answer(status, &fields, body, client, head.method() == b"HEAD", output);
    }
    let recorded = transaction.is_recorded().then(|| {
        let length = body.len().to_string();
        let shown = fields.iter().copied().chain([("Content-Length", length.as_bytes())]);
        shown.map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec())).collect()
    });
    transaction.own_body_bytes = body.len() as u64;
    transaction.own_headers = recorded;
}
