//! The semantic detector beside the rules: what it is shown, when it decides, what events say of it.

mod decision;
mod learning;
mod report;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use decision::Actions;
use portcullis_engine::BodyArguments;
use portcullis_event::NotInspected;
use portcullis_http::body::content_type::Processor;
use portcullis_http::message::{RequestHead, ResponseHead};
use portcullis_semantic::detectors::field;
use portcullis_semantic::{
    Analysis, Arguments, CookieCounts, Detectors, Issuer, Location, Memo, Parsed, Score, Unreadable, Upload,
};
use portcullis_types::{ByteBuf, Class, Level, Phase, Place};

use crate::declared::{DeclaredRun, SiteApi};
use crate::fields::{FieldsRun, SiteFields};
use crate::issued::{ForeignCookie, IssuedTo};
use crate::semantic_policy::SemanticPolicy;

pub use report::ScoredValue;

/// A body buffer that is kept for the next exchange.
const KEPT_BODY_BYTES_MAX: usize = 64 << 10;

/// The semantic detector of a policy.
#[derive(Clone, Debug)]
pub struct Semantic {
    /// The detectors; one for the process.
    pub detectors: Arc<Detectors>,
    /// The level, which sets the thresholds.
    pub level: Level,
    /// The actions for single classes, and the exclusions.
    pub policy: Arc<SemanticPolicy>,
    /// Bodies of responses are looked at, too.
    pub response_bodies: bool,
    /// The longest time for which a body that only the detector inspects is held for its upstream in all.
    pub response_wait: Duration,
}

/// Buffers of an analysis, for the next one.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) analysis: Analysis,
    content_type: Vec<u8>,
    /// The body of the request with the frame around it that another reading has taken off.
    as_sent: ByteBuf,
    /// The body of the response that is shown, content codings undone.
    body: ByteBuf,
}

impl Buffers {
    /// New buffers of a thread whose analyses remember header fields together.
    pub(crate) fn sharing(memo: &Memo) -> Buffers {
        Buffers { analysis: Analysis::sharing(memo), ..Buffers::default() }
    }
}

/// The analysis of one exchange.
#[derive(Debug)]
pub(crate) struct SemanticRun {
    pub(crate) semantic: Semantic,
    pub(crate) buffers: Box<Buffers>,
    /// Exclusions whose path is not that of the request.
    pub(crate) elsewhere: Vec<bool>,
    /// The host that is asked, without its port.
    host: Vec<u8>,
    /// The points that the rules, in mode `both`, and inspection agents add to the score of a class in a
    /// value.
    evidence: Vec<(Class, u32, f32)>,
    /// The score that passed the threshold, and when.
    verdict: Option<(Score, Phase)>,
    /// The verdict was carried out.
    blocked: bool,
    /// The answer expires the cookies that it is for.
    expires: bool,
    /// The body is a streamed upload.
    upload: Option<Box<Upload>>,
    /// The response is text, and how long it says it is.
    response: Option<(bool, u64)>,
    /// Learned fields of the site.
    fields: Option<Box<FieldsRun>>,
    /// The API that the site declares.
    declared: Option<Box<DeclaredRun>>,
}

impl SemanticRun {
    pub(crate) fn new(
        semantic: &Semantic,
        mut buffers: Box<Buffers>,
        fields: Option<&SiteFields>,
        api: Option<&SiteApi>,
    ) -> SemanticRun {
        buffers.analysis.clear();
        buffers.content_type.clear();
        buffers.body.clear(KEPT_BODY_BYTES_MAX);
        buffers.as_sent = ByteBuf::new();
        SemanticRun {
            semantic: semantic.clone(),
            buffers,
            elsewhere: Vec::new(),
            host: Vec::new(),
            evidence: Vec::new(),
            verdict: None,
            blocked: false,
            expires: false,
            upload: None,
            response: None,
            fields: fields.map(|fields| Box::new(FieldsRun::new(fields))),
            declared: api.map(|api| Box::new(DeclaredRun::new(api))),
        }
    }

    pub(crate) fn into_buffers(self) -> Box<Buffers> {
        let mut buffers = self.buffers;
        buffers.body.clear(KEPT_BODY_BYTES_MAX);
        buffers.analysis.shrink();
        buffers
    }

    /// `arguments` are those of the query that the engine found, if nothing else is in it.
    pub(crate) fn request_head(
        &mut self,
        head: &RequestHead,
        (client, epoch_millis): (IpAddr, u64),
        issued: Option<&Arc<IssuedTo>>,
        arguments: Option<&mut Arguments<'_>>,
    ) {
        self.elsewhere = self.semantic.policy.elsewhere(head.path(), epoch_millis);
        let host = head.fields().find(|(name, _)| name.eq_ignore_ascii_case(b"host")).map(|(_, value)| value);
        let host = host.unwrap_or_default();
        let is_v6 = host.starts_with(b"[");
        let port = host.iter().rposition(|b| *b == b':').filter(|at| !is_v6 || host[..*at].ends_with(b"]"));
        self.host.clear();
        self.host.extend_from_slice(&host[..port.unwrap_or(host.len())]);
        if !self.semantic.policy.exclusions.is_empty() {
            let (policy, elsewhere) = (Arc::clone(&self.semantic.policy), self.elsewhere.clone());
            self.buffers.analysis.triage_by(Arc::new(Actions { policy, elsewhere }));
        }
        let Buffers { analysis, content_type, .. } = &mut *self.buffers;
        if let Some(issued) = issued {
            analysis.set_issuer(Arc::clone(issued) as Arc<dyn Issuer>);
        }
        if let Some(fields) = &mut self.fields {
            fields.request_head(head, client, issued, analysis);
        }
        if let Some(declared) = &mut self.declared {
            declared.request_head(head);
            if let Some(names) = declared.message_names() {
                analysis.name_messages(names);
            }
            if let Some(known) = declared.fields()
                && (self.fields.is_some() || declared.may_be_unusual())
            {
                analysis.note_fields();
                analysis.fields().declare(Arc::clone(known));
            }
        }
        let (method, target) = (head.method(), head.target());
        analysis.parsed_request_head(&self.semantic.detectors, method, target, arguments, head.fields());
        if let Some(fields) = &self.fields {
            fields.note_head(head, issued, analysis);
        }
        if let Some(declared) = &mut self.declared {
            declared.note_head(analysis, &self.semantic.detectors);
        }
        content_type.extend_from_slice(head.header("content-type").next().unwrap_or_default());
    }

    /// Notes cookies that were removed from the request.
    pub(crate) fn note_foreign_cookies(&mut self, cookies: &[ForeignCookie]) {
        let (analysis, detectors) = (&mut self.buffers.analysis, &*self.semantic.detectors);
        for cookie in cookies {
            let location = Location::new(Place::Cookie, &cookie.name);
            let evidence = cookie.check.explanation().as_bytes();
            analysis.note(detectors, location, field::KINDS, field::FOREIGN_COOKIE, evidence);
        }
    }

    /// The request's cookies with findings.
    pub(crate) fn cookie_counts(&self) -> CookieCounts {
        self.buffers.analysis.cookie_counts()
    }

    /// Fields behind the body of the request.
    pub(crate) fn request_trailers<'h>(&mut self, fields: impl Iterator<Item = (&'h [u8], &'h [u8])>) {
        self.buffers.analysis.request_fields(&self.semantic.detectors, fields);
    }

    /// A piece of the body of the response.
    pub(crate) fn response_body(&mut self, chunk: &[u8]) {
        self.buffers.body.extend_from_slice(chunk);
    }

    /// A piece of the body as it came, with the frame that is not in the one that the engine keeps.
    pub(crate) fn body_as_sent(&mut self, chunk: &[u8]) {
        let content_type = &self.buffers.content_type;
        // Behind the size of its first chunk a body is neither JSON nor XML, and what is no text has no
        // values.
        let is_read = match Processor::by_media_type(content_type) {
            Some(Processor::Json | Processor::Xml) => false,
            Some(Processor::UrlEncoded | Processor::Multipart) => true,
            None => content_type.get(..5).is_none_or(|kind| kind.eq_ignore_ascii_case(b"text/")),
        };
        if is_read {
            self.buffers.as_sent.extend_from_slice(chunk);
        }
    }

    /// Declares `body`, the bytes shown so far, the beginning of a streamed upload.
    pub(crate) fn begin_upload(&mut self, body: &[u8], held: u64) {
        self.upload = Some(Box::new(Upload::new(&self.buffers.content_type, body, held)));
    }

    /// Drops what has come of the request body.
    pub(crate) fn forget_request_body(&mut self) {
        self.buffers.as_sent = ByteBuf::new();
    }

    /// The body is a streamed upload.
    pub(crate) fn is_upload(&self) -> bool {
        self.upload.is_some()
    }

    /// The next piece of it.
    pub(crate) fn upload(&mut self, piece: &[u8]) {
        if let Some(upload) = &mut self.upload {
            upload.feed(&mut self.buffers.analysis, &self.semantic.detectors, piece);
        }
    }

    /// It has come to its end.
    pub(crate) fn end_upload(&mut self) -> Result<(), Unreadable> {
        match self.upload.take() {
            Some(upload) => upload.end(&mut self.buffers.analysis, &self.semantic.detectors),
            None => Ok(()),
        }
    }

    /// Bytes of memory for the body of the response, and for what decoding makes of both bodies.
    pub(crate) fn held_bytes(&self) -> usize {
        self.buffers.body.held_bytes()
            + self.buffers.as_sent.held_bytes()
            + self.buffers.analysis.held_bytes()
    }

    /// The request body, `body`, has been shown. `truncated`: there is more of it. `arguments` are those that
    /// the engine found, if nothing else is in it.
    pub(crate) fn request_end(
        &mut self,
        body: &[u8],
        truncated: bool,
        wire_bytes: u64,
        arguments: Option<BodyArguments<'_>>,
    ) {
        let Buffers { analysis, content_type, as_sent, .. } = &mut *self.buffers;
        let detectors = &self.semantic.detectors;
        let as_sent = std::mem::take(as_sent);
        if let Some(upload) = &mut self.upload {
            upload.feed(analysis, detectors, body);
            return analysis.request_body_beginning(detectors, content_type, &as_sent);
        }
        analysis.set_wire_bytes(usize::try_from(wire_bytes).unwrap_or(usize::MAX));
        match truncated {
            false => match arguments {
                Some(found) => {
                    let mut arguments = found.iter();
                    let parsed = Parsed { processor: found.processor, arguments: &mut arguments };
                    analysis.parsed_request_body(detectors, content_type, body, parsed);
                }
                None => analysis.request_body(detectors, content_type, body),
            },
            true => analysis.request_body_beginning(detectors, content_type, body),
        }
        if !as_sent.is_empty() {
            analysis.set_wire_bytes(as_sent.len());
            match truncated {
                false => analysis.request_body(detectors, content_type, &as_sent),
                true => analysis.request_body_beginning(detectors, content_type, &as_sent),
            }
        }
        // The upstream may take long; what was found has its own copy.
        analysis.shrink();
    }

    /// Compares the body of the request with what the API declares: all of it, or none where it is not there
    /// as a whole.
    pub(crate) fn declared_body(&mut self, body: Option<&[u8]>) {
        if let Some(declared) = &mut self.declared {
            declared.request_end(body, &mut self.buffers.analysis, &self.semantic.detectors);
        }
    }

    pub(crate) fn response_head(&mut self, head: &ResponseHead) {
        if let Some(fields) = &mut self.fields {
            fields.response_head(head);
        }
        let Buffers { analysis, .. } = &mut *self.buffers;
        if let Some(declared) = &mut self.declared {
            declared.response_head(head, analysis, &self.semantic.detectors);
        }
        if self.semantic.policy.is_off(Class::Leak) {
            return;
        }
        analysis.response_head(&self.semantic.detectors, head.fields());
        let media_type = head.header("content-type").next().unwrap_or_default();
        self.response = Some((is_text(media_type), head.content_length().unwrap_or(0)));
    }

    /// Decides whether the body of the response is to be shown; the error is the reason why not.
    pub(crate) fn wants_response_body(&self, limit_bytes: u64) -> Result<(), NotInspected> {
        if self.declared.as_ref().is_some_and(|declared| declared.wants_answer()) {
            return Ok(());
        }
        self.looks_at_response(limit_bytes)
    }

    /// The same for the detectors alone.
    fn looks_at_response(&self, limit_bytes: u64) -> Result<(), NotInspected> {
        match self.response {
            _ if !self.semantic.response_bodies => Err(NotInspected::BodyAccessOff),
            None => Err(NotInspected::BodyAccessOff),
            Some((false, _)) => Err(NotInspected::MediaType),
            Some((true, length)) if length > limit_bytes => Err(NotInspected::OverLimit),
            Some((true, _)) => Ok(()),
        }
    }

    /// The body of the response, as far as it was shown.
    pub(crate) fn response_shown(&self) -> &[u8] {
        &self.buffers.body
    }

    pub(crate) fn response_wait(&self) -> Duration {
        self.semantic.response_wait
    }

    /// The response body has been shown, all of it if it `is_whole`.
    pub(crate) fn response_end(&mut self, is_whole: bool, limit_bytes: u64) {
        let is_looked_at = self.looks_at_response(limit_bytes).is_ok();
        let Buffers { analysis, body, .. } = &mut *self.buffers;
        if is_looked_at {
            analysis.value(&self.semantic.detectors, Location::of(Place::ResponseBody), body);
        }
        if let Some(declared) = &mut self.declared {
            let shown: &[u8] = body;
            declared.response_end(is_whole.then_some(shown), analysis, &self.semantic.detectors);
        }
    }

    /// True if there is anything that others could add to.
    pub(crate) fn has_findings(&self) -> bool {
        !self.buffers.analysis.findings().is_empty()
    }

    /// Bytes of uploaded texts that were searched for code only.
    pub(crate) fn bytes_left_out(&self) -> u64 {
        self.buffers.analysis.bytes_left_out()
    }

    /// Bytes of bodies that are files, and were searched for code only.
    pub(crate) fn bytes_of_files(&self) -> u64 {
        self.buffers.analysis.bytes_of_files()
    }

    /// Bytes of messages of gRPC whose coding is not undone.
    pub(crate) fn bytes_of_codings(&self) -> u64 {
        self.buffers.analysis.bytes_of_codings()
    }

    /// The work that the detectors did, and how much is allowed.
    pub(crate) fn work(&self) -> (u64, u64) {
        self.buffers.analysis.work()
    }

    /// Bytes of values for which the allowance of work did not suffice.
    pub(crate) fn bytes_cut(&self) -> u64 {
        self.buffers.analysis.bytes_cut()
    }
}

/// True for media types of documents and data that an application writes; nothing said is as good as text.
fn is_text(media_type: &[u8]) -> bool {
    let name = media_type.split(|&b| b == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
    let is_quiet =
        [&b"text/css"[..], b"text/javascript", b"text/event-stream", b"text/vcard", b"text/calendar"];
    let is_data = [
        &b"application/json"[..],
        b"application/xml",
        b"application/x-httpd-php",
        b"application/x-php",
        b"application/x-sh",
        b"application/x-pem-file",
        b"application/pkcs8",
        b"application/sql",
        b"application/yaml",
    ];
    let is_format = |end: &[u8]| name.starts_with(b"application/") && name.ends_with(end);
    name.is_empty()
        || name.starts_with(b"text/") && !is_quiet.contains(&name.as_slice())
        || is_data.contains(&name.as_slice())
        || is_format(b"+json")
        || is_format(b"+xml")
}
