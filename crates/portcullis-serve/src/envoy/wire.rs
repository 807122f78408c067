//! The messages of Envoy's external authorization and processing that are used here, as far as they are read
//! or written: `envoy.service.auth.v3`, `envoy.service.ext_proc.v3`, `envoy.config.core.v3`, `envoy.type.v3`,
//! `google.rpc.Status`, `google.protobuf.Struct`. Field numbers are those of the public protocol; texts that
//! may not be UTF-8 are read as bytes, which have the same form.

use std::collections::HashMap;

use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CheckRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) attributes: Option<Attributes>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Attributes {
    #[prost(message, optional, tag = "1")]
    pub(crate) source: Option<Peer>,
    #[prost(message, optional, tag = "2")]
    pub(crate) destination: Option<Peer>,
    #[prost(message, optional, tag = "4")]
    pub(crate) request: Option<AttributeRequest>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Peer {
    #[prost(message, optional, tag = "1")]
    pub(crate) address: Option<Address>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Address {
    #[prost(message, optional, tag = "1")]
    pub(crate) socket_address: Option<SocketAddress>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SocketAddress {
    #[prost(string, tag = "2")]
    pub(crate) address: String,
    #[prost(uint32, tag = "3")]
    pub(crate) port: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AttributeRequest {
    #[prost(message, optional, tag = "2")]
    pub(crate) http: Option<HttpRequest>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HttpRequest {
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) method: Vec<u8>,
    #[prost(map = "string, bytes", tag = "3")]
    pub(crate) headers: HashMap<String, Vec<u8>>,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) path: Vec<u8>,
    #[prost(bytes = "vec", tag = "5")]
    pub(crate) host: Vec<u8>,
    #[prost(string, tag = "6")]
    pub(crate) scheme: String,
    #[prost(string, tag = "10")]
    pub(crate) protocol: String,
    #[prost(bytes = "vec", tag = "11")]
    pub(crate) body: Vec<u8>,
    #[prost(bytes = "vec", tag = "12")]
    pub(crate) raw_body: Vec<u8>,
    #[prost(message, optional, tag = "13")]
    pub(crate) header_map: Option<HeaderMap>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeaderMap {
    #[prost(message, repeated, tag = "1")]
    pub(crate) headers: Vec<HeaderValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeaderValue {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
    /// Used in place of `value` where Envoy does not make it UTF-8.
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) raw_value: Vec<u8>,
}

impl HeaderValue {
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.raw_value.is_empty() { &self.value } else { &self.raw_value }
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeaderValueOption {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<HeaderValue>,
    /// 2: in place of those of the name.
    #[prost(int32, tag = "3")]
    pub(crate) append_action: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HttpStatus {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CheckResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<RpcStatus>,
    #[prost(message, optional, tag = "2")]
    pub(crate) denied: Option<DeniedResponse>,
    #[prost(message, optional, tag = "3")]
    pub(crate) ok: Option<OkResponse>,
    #[prost(message, optional, tag = "4")]
    pub(crate) dynamic_metadata: Option<Struct>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OkResponse {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeniedResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<HttpStatus>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) headers: Vec<HeaderValueOption>,
    #[prost(string, tag = "3")]
    pub(crate) body: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProcessingRequest {
    #[prost(oneof = "Shown", tags = "2, 3, 4, 5, 6, 7")]
    pub(crate) shown: Option<Shown>,
    #[prost(map = "string, message", tag = "9")]
    pub(crate) attributes: HashMap<String, Struct>,
    #[prost(bool, tag = "10")]
    pub(crate) observability_mode: bool,
    #[prost(message, optional, tag = "11")]
    pub(crate) protocol: Option<ProtocolConfiguration>,
}

/// A part of an exchange that Envoy shows.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Shown {
    #[prost(message, tag = "2")]
    RequestHeaders(HttpHeaders),
    #[prost(message, tag = "3")]
    ResponseHeaders(HttpHeaders),
    #[prost(message, tag = "4")]
    RequestBody(HttpBody),
    #[prost(message, tag = "5")]
    ResponseBody(HttpBody),
    #[prost(message, tag = "6")]
    RequestTrailers(HttpTrailers),
    #[prost(message, tag = "7")]
    ResponseTrailers(HttpTrailers),
}

/// The modes in which Envoy sends bodies.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct ProtocolConfiguration {
    #[prost(int32, tag = "1")]
    pub(crate) request_body_mode: i32,
    #[prost(int32, tag = "2")]
    pub(crate) response_body_mode: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HttpHeaders {
    #[prost(message, optional, tag = "1")]
    pub(crate) headers: Option<HeaderMap>,
    #[prost(bool, tag = "3")]
    pub(crate) end_of_stream: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HttpBody {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) body: Vec<u8>,
    #[prost(bool, tag = "2")]
    pub(crate) end_of_stream: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HttpTrailers {
    #[prost(message, optional, tag = "1")]
    pub(crate) trailers: Option<HeaderMap>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProcessingResponse {
    #[prost(oneof = "Reply", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub(crate) reply: Option<Reply>,
    #[prost(message, optional, tag = "8")]
    pub(crate) dynamic_metadata: Option<Struct>,
}

/// The answer to what was shown. The empty ones let it go on.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Reply {
    #[prost(message, tag = "1")]
    RequestHeaders(Empty),
    #[prost(message, tag = "2")]
    ResponseHeaders(Empty),
    #[prost(message, tag = "3")]
    RequestBody(Empty),
    #[prost(message, tag = "4")]
    ResponseBody(Empty),
    #[prost(message, tag = "5")]
    RequestTrailers(Empty),
    #[prost(message, tag = "6")]
    ResponseTrailers(Empty),
    #[prost(message, tag = "7")]
    Immediate(ImmediateResponse),
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ImmediateResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<HttpStatus>,
    #[prost(message, optional, tag = "2")]
    pub(crate) headers: Option<HeaderMutation>,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) body: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(crate) details: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeaderMutation {
    #[prost(message, repeated, tag = "1")]
    pub(crate) set: Vec<HeaderValueOption>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Struct {
    #[prost(map = "string, message", tag = "1")]
    pub(crate) fields: HashMap<String, Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Value {
    #[prost(oneof = "Kind", tags = "2, 3, 5, 6")]
    pub(crate) kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Kind {
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    Text(String),
    #[prost(message, tag = "5")]
    Struct(Struct),
    #[prost(message, tag = "6")]
    List(ListValue),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListValue {
    #[prost(message, repeated, tag = "1")]
    pub(crate) values: Vec<Value>,
}

impl From<Kind> for Value {
    fn from(kind: Kind) -> Value {
        Value { kind: Some(kind) }
    }
}
