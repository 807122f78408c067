//! Heads from Envoy's headers, and answers and metadata for it.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use portcullis_http::forwarded;
use portcullis_http::h1::{Limits, Parsed, RequestParts, assemble_request};
use portcullis_http::message::{BodyFraming, Version};

use super::wire::{HeaderValue, HeaderValueOption, Kind, ListValue, Struct, Value};
use crate::service::Service;
use portcullis_exchange::Block;
use portcullis_exchange::Conversation;

/// The ids of rules that metadata names at most.
const RULES_MAX: usize = 64;
/// `OVERWRITE_IF_EXISTS_OR_ADD`.
const REPLACE: i32 = 2;

/// A field: name and value.
pub(super) type Field<'a> = (&'a [u8], &'a [u8]);

/// A request as Envoy tells of it.
pub(super) struct Told<'a> {
    pub(super) method: &'a [u8],
    pub(super) target: &'a [u8],
    pub(super) host: &'a [u8],
    pub(super) version: Version,
    /// Without pseudo-headers and `host`.
    pub(super) fields: Vec<Field<'a>>,
    /// It has a body, as far as Envoy knows.
    pub(super) has_body: Option<bool>,
}

impl Told<'_> {
    /// The head of the request.
    pub(super) fn head(mut self) -> Parsed {
        let of_connection = |(name, _): &Field<'_>| {
            matches!(
                *name,
                b"connection" | b"keep-alive" | b"proxy-connection" | b"upgrade" | b"http2-settings"
            )
        };
        let coded = self.fields.iter().any(|(name, _)| *name == b"transfer-encoding");
        if self.version >= Version::Http2 {
            // Envoy has checked and removed them; what a filter before this one added is not the client's.
            self.fields.retain(|field| !of_connection(field) && field.0 != b"transfer-encoding");
        }
        let length = self.fields.iter().find(|(name, _)| *name == b"content-length");
        let length = length.and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse::<u64>().ok());
        let framing = match (length, self.has_body) {
            (Some(length), _) => BodyFraming::Length(length),
            (None, Some(false)) => BodyFraming::None,
            (None, None) if !coded => BodyFraming::None,
            (None, _) => BodyFraming::Chunked,
        };
        if framing == BodyFraming::Chunked && self.version == Version::Http11 && !coded {
            self.fields.push((b"transfer-encoding", b"chunked"));
        }
        if !self.host.is_empty() {
            self.fields.insert(0, (b"host", self.host));
        }
        let Told { method, target, version, ref fields, .. } = self;
        let parts = RequestParts { method, target, version, framing, websocket: false, fields };
        assemble_request(&parts, &Limits::default())
    }
}

/// The version that Envoy names.
pub(super) fn version(text: &str) -> Version {
    match text {
        "HTTP/1.0" => Version::Http10,
        "HTTP/1.1" => Version::Http11,
        "HTTP/3" | "HTTP/3.0" => Version::Http3,
        _ => Version::Http2,
    }
}

/// The client, by `X-Forwarded-For` as far as Envoy and other trusted proxies wrote it.
pub(super) fn client(service: &Service, peer: SocketAddr, fields: &[Field<'_>]) -> SocketAddr {
    let values: Vec<&[u8]> =
        fields.iter().filter(|(name, _)| *name == b"x-forwarded-for").map(|(_, value)| *value).collect();
    let trusted = |address: IpAddr| service.trusts(address);
    let client = forwarded::x_forwarded_for(values, peer.ip(), trusted);
    if client == peer.ip().to_canonical() { peer } else { SocketAddr::new(client, 0) }
}

/// The headers of an answer in place of the application's.
pub(super) fn headers(block: &Block, request_id: &str) -> Vec<HeaderValueOption> {
    let mut fields: Vec<(String, Vec<u8>)> = vec![
        ("content-type".to_owned(), block.page.media_type.as_bytes().to_vec()),
        ("cache-control".to_owned(), b"no-store".to_vec()),
        ("x-request-id".to_owned(), request_id.as_bytes().to_vec()),
    ];
    fields.extend(block.location.iter().map(|to| ("location".to_owned(), to.clone())));
    let own = block.page.fields.iter();
    fields.extend(own.map(|(name, value)| (name.to_ascii_lowercase(), value.clone().into_bytes())));
    let option = |(key, value): (String, Vec<u8>)| HeaderValueOption {
        header: Some(HeaderValue { key, value: Vec::new(), raw_value: value }),
        append_action: REPLACE,
    };
    fields.into_iter().map(option).collect()
}

/// Verdict and scores, as dynamic metadata.
pub(super) fn metadata(conversation: &mut Conversation) -> Struct {
    let told = conversation.told();
    let action = conversation.block().map_or("pass", |block| block.action.name());
    let number = |number: f64| Value::from(Kind::Number(number));
    let rules = told.rules.iter().take(RULES_MAX).map(|id| number(f64::from(*id)));
    let mut fields = HashMap::new();
    fields.insert("action".to_owned(), Kind::Text(action.to_owned()).into());
    fields.insert("request_id".to_owned(), Kind::Text(conversation.request_id().to_owned()).into());
    fields.insert("anomaly_score".to_owned(), number(told.anomaly_score as f64));
    fields.insert("rules".to_owned(), Kind::List(ListValue { values: rules.collect() }).into());
    if let Some(block) = conversation.block() {
        fields.insert("status".to_owned(), number(block.status.into()));
    }
    Struct { fields }
}
