//! A request and its response through an inspection, without a server.

use std::net::{Ipv4Addr, SocketAddr};

use portcullis_exchange::{Shown, settle};
use portcullis_http::h1::{
    BodyDecoder, BodyFraming, Compat, Limits, Parsed, RequestHead, RequestParser, ResponseHead,
    ResponseParser,
};
use portcullis_http::message::Refusal;
use portcullis_inspect::{Answer, BodyLimitAction, BodyPlan, Connection, Inspection, Question, Step};

/// A connection from `client` at a time of which nothing but the clock is known.
pub fn connection(client: SocketAddr, epoch_millis: u64, utc_offset_seconds: i32) -> Connection {
    Connection {
        client,
        server: SocketAddr::from((Ipv4Addr::LOCALHOST, 80)),
        request_id: "offline".to_owned(),
        epoch_millis,
        utc_offset_seconds,
        tls: false,
        environment: Vec::new(),
        keep_request_bytes: 0,
        capture_share: 0.0,
    }
}

/// The head of a request, and why it is refused, if it is.
pub fn parse(bytes: &[u8]) -> (RequestHead, Option<Refusal>) {
    let mut parser = RequestParser::new(Limits::default(), Compat::Strict);
    let parsed = match parser.parse(bytes) {
        Parsed::NeedMore => parser.end(bytes),
        parsed @ (Parsed::Head(_) | Parsed::Refused { .. }) => Some(parsed),
    };
    match parsed {
        Some(Parsed::Head(head)) => (head, None),
        Some(Parsed::Refused { partial, refusal }) => (partial, Some(refusal)),
        Some(Parsed::NeedMore) | None => (RequestHead::default(), Some(Refusal::Incomplete)),
    }
}

/// The head of a response, or why there is none.
pub fn parse_response(bytes: &[u8]) -> Result<ResponseHead, String> {
    match ResponseParser::new(Limits::default()).parse(bytes) {
        Ok(Some(head)) => Ok(head),
        Ok(None) => Err("its head has no end".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// An inspection and what it is shown.
pub struct Run<'a> {
    /// The inspection.
    pub inspection: Box<Inspection>,
    /// Remarks on the request and on what was not asked.
    pub notes: Vec<String>,
    /// Answers to lookups.
    pub dns: &'a [(String, Ipv4Addr)],
    /// Bytes of the body, transfer coding removed.
    pub body_bytes: u64,
    /// Those of them that were shown.
    pub body_bytes_inspected: u64,
    /// The request's body is longer than the limits let through: the proxy answers 413, whatever the rules
    /// say but `drop`.
    pub refuses_body: bool,
    /// Bytes of the response's body.
    pub response_body_bytes: u64,
    /// Those of them that were shown.
    pub response_body_bytes_inspected: u64,
}

impl<'a> Run<'a> {
    /// Nothing shown yet.
    pub fn new(inspection: Box<Inspection>, dns: &'a [(String, Ipv4Addr)]) -> Run<'a> {
        Run {
            inspection,
            notes: Vec::new(),
            dns,
            body_bytes: 0,
            body_bytes_inspected: 0,
            refuses_body: false,
            response_body_bytes: 0,
            response_body_bytes_inspected: 0,
        }
    }

    /// The request phases over `head` and the bytes behind it; what they come to.
    pub fn phases(&mut self, head: &RequestHead, refusal: Option<Refusal>, body: &[u8]) -> Step {
        let step = self.inspection.request_head(head, refusal);
        let step = self.settle(step);
        if step != Step::Continue || refusal.is_some() {
            return step;
        }
        let body = self.decode(BodyDecoder::request(head.framing(), &Limits::default()), body);
        self.body_bytes = body.len() as u64;
        let mut truncated = false;
        let plan = self.inspection.request_body_plan();
        if let BodyPlan::Hold { limit_bytes, over_limit } = plan {
            // An upload of files is streamed beyond the limit, up to one of its own.
            let most = self.inspection.upload_limit().unwrap_or(limit_bytes);
            self.refuses_body = over_limit == BodyLimitAction::Reject && self.body_bytes > most;
            // A body whose stated length is longer is refused unread.
            let unread = self.refuses_body && matches!(head.framing(), BodyFraming::Length(_));
            let shown = if unread { 0 } else { Shown::default().take(body.len(), plan).0 };
            truncated = shown < body.len();
            if truncated && !unread {
                self.notes.push(format!("only {shown} of {} body bytes are within the limit", body.len()));
            }
            self.inspection.request_body(&body[..shown]);
            self.body_bytes_inspected = shown as u64;
        }
        let step = self.inspection.request_end(truncated);
        let step = self.settle(step);
        self.refuses_body |= self.inspection.refuses_request_body();
        if let Some(error) = self.inspection.request_body_error() {
            self.notes.push(format!("the body could not be read: {error}"));
        }
        step
    }

    /// The response phases over `head`, which answers a request of this method, and the bytes behind it.
    pub fn response_phases(&mut self, method: &[u8], head: &ResponseHead, body: &[u8]) -> Step {
        let step = self.inspection.response_head(head);
        let step = self.settle(step);
        if step != Step::Continue {
            return step;
        }
        let decoder = BodyDecoder::response(head.framing(method), &Limits::default());
        let body = self.decode(decoder, body);
        self.response_body_bytes = body.len() as u64;
        let mut truncated = false;
        let plan = self.inspection.response_body_plan();
        if plan != BodyPlan::Skip {
            let (shown, _) = Shown::default().take(body.len(), plan);
            truncated = shown < body.len();
            if truncated {
                let length = body.len();
                self.notes.push(format!(
                    "only {shown} of {length} bytes of the response's body are within the limit"
                ));
            }
            self.inspection.response_body(&body[..shown]);
            self.response_body_bytes_inspected = shown as u64;
        }
        let step = self.inspection.response_end(truncated);
        self.settle(step)
    }

    /// Answers what rules ask from what was given, and notes questions without an answer.
    pub fn settle(&mut self, step: Step) -> Step {
        let Run { inspection, notes, dns, .. } = self;
        let step = settle(inspection, step, |question| match question {
            Question::Address(name) => match dns.iter().find(|(known, _)| known == name) {
                Some((_, address)) => Answer::Address(*address),
                None => {
                    let note = "a rule looks up NAME in DNS: unanswered here, so it does not match; \
                                --dns NAME=ADDRESS answers it";
                    notes.push(note.replace("NAME", name));
                    Answer::Unknown
                }
            },
            Question::Scan { scanner, content } => {
                let size = content.len();
                notes.push(format!(
                    "a rule has {scanner} scan an upload of {size} bytes: not done here, so it does not match"
                ));
                Answer::Unknown
            }
        });
        for charge in self.inspection.take_charges() {
            let key = portcullis_event::text(&charge.key, portcullis_event::limits::VALUE_BYTES_MAX);
            self.notes.push(format!(
                "rule {} counts the request in the rate limit `{}` under `{key}`: not done here, so it is not refused",
                charge.rule, charge.limit
            ));
        }
        step
    }

    /// The body without its transfer coding.
    fn decode(&mut self, mut decoder: BodyDecoder, mut rest: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        while !decoder.is_done() && !rest.is_empty() {
            match decoder.decode(rest) {
                Ok(decoded) => {
                    body.extend_from_slice(decoded.data);
                    if decoded.consumed == 0 {
                        break;
                    }
                    rest = &rest[decoded.consumed..];
                }
                Err(error) => {
                    self.notes.push(format!("the body's framing is broken: {}", error.explanation()));
                    return body;
                }
            }
        }
        if !decoder.is_done() && decoder.close().is_err() {
            self.notes.push("the body is shorter than its framing says".to_owned());
        } else if !rest.is_empty() {
            self.notes.push(format!("{} bytes after the message were left alone", rest.len()));
        }
        body
    }
}
