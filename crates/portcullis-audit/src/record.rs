//! The record of a transaction in the audit log.

use std::sync::Arc;

use portcullis_event::{EngineMode, RuleMatch, Timestamp};

/// One transaction, as the audit log keeps it. Fields that its parts do not need are left empty.
#[derive(Clone, Debug)]
pub struct Record {
    /// Letters of the parts, A to K.
    pub parts: String,
    /// The start of the request.
    pub time: Timestamp,
    /// From its first byte to its last, in microseconds.
    pub duration_us: u64,
    /// Id of the transaction.
    pub unique_id: String,
    /// Client address and port.
    pub client: (String, u16),
    /// Address and port that it reached.
    pub server: (String, u16),
    /// The host that the client named, without its port.
    pub host: String,
    /// The request.
    pub request: RequestPart,
    /// The response, if one was sent.
    pub response: Option<ResponsePart>,
    /// Bytes of the response's body that were sent.
    pub bytes_sent: u64,
    /// The error of the request body's parser.
    pub body_error: Option<String>,
    /// Matches that asked for `log` or `auditlog`.
    pub messages: Vec<Message>,
    /// The action that interrupted the transaction.
    pub action: Option<Action>,
    /// Names and versions of the rule sets.
    pub components: Arc<[String]>,
    /// The text of `Server` in part H.
    pub server_software: Arc<str>,
    /// Application, session and user, where one is known.
    pub web_app: Option<WebApp>,
    /// `SecSensorId`.
    pub sensor_id: Option<Arc<str>>,
    /// The engine mode: whether verdicts were enforced.
    pub engine: EngineMode,
    /// The values that were hidden.
    pub hidden: Hidden,
    /// Files of a multipart request.
    pub uploads: Option<Vec<Upload>>,
    /// Rules that matched, in order.
    pub rules: Vec<Arc<AuditRule>>,
}

/// Parts B, C and I.
#[derive(Clone, Debug, Default)]
pub struct RequestPart {
    /// The request line.
    pub line: Vec<u8>,
    /// Its method.
    pub method: Vec<u8>,
    /// Its target.
    pub target: Vec<u8>,
    /// `HTTP/1.1`.
    pub protocol: Vec<u8>,
    /// Names and values in order.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// The body as it came.
    pub body: Option<Vec<u8>>,
    /// The fields of a multipart body as a form; part I.
    pub fake_body: Option<Vec<u8>>,
}

/// Parts E and F.
#[derive(Clone, Debug, Default)]
pub struct ResponsePart {
    /// `HTTP/1.1`.
    pub protocol: Vec<u8>,
    /// Its status.
    pub status: u16,
    /// Names and values in order.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// The body, where rules could see it.
    pub body: Option<Vec<u8>>,
}

/// A match worth a line.
#[derive(Clone, Debug)]
pub struct Message {
    /// The line as ModSecurity 2 words it.
    pub text: String,
    /// The match.
    pub found: RuleMatch,
}

/// The action that interrupted a transaction.
#[derive(Clone, Debug)]
pub struct Action {
    /// Phase.
    pub phase: u8,
    /// The message of the rule.
    pub message: String,
}

/// The application, session and user.
#[derive(Clone, Debug, Default)]
pub struct WebApp {
    /// `SecWebAppId`.
    pub id: Option<String>,
    /// `SESSIONID`.
    pub session: Option<String>,
    /// `USERID`.
    pub user: Option<String>,
}

/// Names of what was hidden.
#[derive(Clone, Debug, Default)]
pub struct Hidden {
    /// Arguments.
    pub args: Vec<String>,
    /// Request headers.
    pub request_headers: Vec<String>,
    /// Response headers.
    pub response_headers: Vec<String>,
}

/// A file of a multipart request.
#[derive(Clone, Debug)]
pub struct Upload {
    /// Number of its part, from 1.
    pub part: usize,
    /// Bytes.
    pub size: u64,
    /// Its name as sent.
    pub name: Vec<u8>,
    /// Its `Content-Type`.
    pub content_type: Option<Vec<u8>>,
}

/// A rule, for part K.
#[derive(Clone, Debug)]
pub struct AuditRule {
    /// Its links, at least one.
    pub links: Vec<AuditLink>,
    /// `id`.
    pub id: u32,
    /// `rev`.
    pub rev: Option<Box<str>>,
    /// `ver`.
    pub ver: Option<Box<str>>,
    /// `severity`, 0 to 7.
    pub severity: Option<u8>,
    /// `accuracy`.
    pub accuracy: Option<u8>,
    /// `maturity`.
    pub maturity: Option<u8>,
    /// Phase.
    pub phase: u8,
    /// Tags.
    pub tags: Vec<Box<str>>,
    /// File it stands in.
    pub file: Arc<str>,
    /// Line it begins on.
    pub line: u32,
}

/// A link of a rule.
#[derive(Clone, Debug)]
pub struct AuditLink {
    /// The rule as text.
    pub text: Box<str>,
    /// Operator name without `@`.
    pub operator: Box<str>,
    /// Its argument.
    pub argument: Box<str>,
    /// The operator is negated.
    pub negated: bool,
}

impl Record {
    /// True if the part of this letter is wanted.
    pub fn has(&self, part: char) -> bool {
        self.parts.contains(part)
    }

    /// Bytes it holds in memory, roughly: what a buffer bounded by bytes counts for it.
    pub fn size_estimate(&self) -> usize {
        let pairs = |headers: &[(Vec<u8>, Vec<u8>)]| -> usize {
            headers.iter().map(|(name, value)| 48 + name.len() + value.len()).sum()
        };
        let body = |body: &Option<Vec<u8>>| body.as_ref().map_or(0, Vec::len);
        let request = &self.request;
        let response = self.response.as_ref().map_or(0, |r| pairs(&r.headers) + body(&r.body));
        let messages: usize = self
            .messages
            .iter()
            .map(|m| 256 + m.text.len() + m.found.message.len() + m.found.data.len() + m.found.value.len())
            .sum();
        size_of::<Record>()
            + 2 * request.line.len()
            + pairs(&request.headers)
            + body(&request.body)
            + body(&request.fake_body)
            + response
            + messages
            + self.rules.len() * size_of::<usize>()
    }
}
