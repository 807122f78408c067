//! Answers of the proxy itself: block pages, redirects, refusals, gateway errors.
//!
//! An [`Answer`] is data. Whatever finds that a request does not go on returns one as an error, with `?`, and
//! [`send`] is the only place that writes it to the client and notes in the transaction why there is one.

mod send;

use std::borrow::Cow;

use portcullis_event::{Action, UpstreamError};
use portcullis_exchange::{Page, REDIRECTED};
use portcullis_inspect::Interruption;

use crate::access::Denial;
use crate::transaction::Transaction;

pub(crate) use send::send;

/// An answer of the proxy itself to a request.
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
    /// The request cannot be forwarded, whatever it asks for; the transaction knows its refusal, if it has
    /// one.
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

    /// The verdict of rules, the detector or an agent.
    pub(crate) fn verdict(what: Interruption) -> Answer {
        match what {
            Interruption::Drop => Answer::silence(Cause::Verdict(Action::Drop)),
            Interruption::Deny { status } => {
                Answer::new(status, Content::Blocked, Cause::Verdict(Action::Deny))
            }
            // The compiler lets no rule divert a request that is on its way already; if one did, it is a
            // fault in our code.
            Interruption::Proxy { .. } => Answer::new(500, Content::Blocked, Cause::Verdict(Action::Deny)),
            Interruption::Redirect { status, location } => {
                let cause = Cause::Verdict(Action::Redirect);
                Answer::new(status, Content::Message(REDIRECTED.into()), cause).with("Location", location)
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
            UpstreamError::Dns
            | UpstreamError::Connect
            | UpstreamError::Tls
            | UpstreamError::Closed
            | UpstreamError::Write
            | UpstreamError::BodyTruncated => (502, "The application cannot be reached."),
        };
        Answer::new(status, Content::Message(text.into()), Cause::Upstream(error))
    }

    /// The redirect of a route or site.
    pub(crate) fn redirect(status: u16, to: Vec<u8>) -> Answer {
        let content = Content::Message("The resource has moved.".into());
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
        transaction.life.outcome.status = self.status;
        if !matches!(self.cause, Cause::Route) {
            // What the route changes of headers is for its own answers.
            transaction.response_headers = None;
        }
        match &self.cause {
            Cause::Protocol | Cause::Route => {}
            Cause::Rejected { reason } => {
                transaction.life.reject(self.status.unwrap_or(0), &**reason, Action::Deny);
            }
            Cause::Verdict(action) => transaction.life.action = *action,
            Cause::Upstream(error) => transaction.life.outcome.upstream_error = Some(*error),
            Cause::ClientGone => transaction.client_aborted = true,
        }
    }
}
