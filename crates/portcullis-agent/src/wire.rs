//! The messages of `proto/portcullis/agent/v1/agent.proto`, which says what they mean; `tests/it/schema.rs`
//! compares the two.
#![allow(missing_docs)] // said there, once

use prost::{Enumeration, Message, Oneof};

/// From Portcullis to an agent.
#[derive(Clone, PartialEq, Message)]
pub struct ToAgent {
    #[prost(uint64, tag = "1")]
    pub exchange: u64,
    #[prost(oneof = "To", tags = "2, 3, 4, 5, 6, 7")]
    pub message: Option<To>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum To {
    #[prost(message, tag = "2")]
    Hello(Hello),
    #[prost(message, tag = "3")]
    RequestHead(RequestHead),
    #[prost(message, tag = "4")]
    RequestBody(Body),
    #[prost(message, tag = "5")]
    ResponseHead(ResponseHead),
    #[prost(message, tag = "6")]
    ResponseBody(Body),
    #[prost(message, tag = "7")]
    Done(Done),
}

/// From an agent to Portcullis.
#[derive(Clone, PartialEq, Message)]
pub struct FromAgent {
    #[prost(uint64, tag = "1")]
    pub exchange: u64,
    #[prost(oneof = "From", tags = "2, 3, 4")]
    pub message: Option<From>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum From {
    #[prost(message, tag = "2")]
    Welcome(Welcome),
    #[prost(message, tag = "3")]
    Decision(Decision),
    #[prost(message, tag = "4")]
    Credit(Credit),
}

#[derive(Clone, PartialEq, Message)]
pub struct Hello {
    #[prost(uint32, tag = "1")]
    pub version_min: u32,
    #[prost(uint32, tag = "2")]
    pub version_max: u32,
    #[prost(string, tag = "3")]
    pub product: String,
    #[prost(string, tag = "4")]
    pub agent: String,
    #[prost(uint32, tag = "5")]
    pub message_bytes_max: u32,
    #[prost(bool, tag = "6")]
    pub request_body: bool,
    #[prost(bool, tag = "7")]
    pub response_head: bool,
    #[prost(bool, tag = "8")]
    pub response_body: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Welcome {
    #[prost(uint32, tag = "1")]
    pub version: u32,
    #[prost(string, tag = "2")]
    pub product: String,
    #[prost(uint64, tag = "3")]
    pub window_bytes: u64,
    #[prost(uint32, tag = "4")]
    pub message_bytes_max: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Header {
    #[prost(bytes = "vec", tag = "1")]
    pub name: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RequestHead {
    #[prost(string, tag = "1")]
    pub request_id: String,
    #[prost(string, tag = "2")]
    pub site: String,
    #[prost(string, tag = "3")]
    pub route: String,
    #[prost(string, tag = "4")]
    pub client_address: String,
    #[prost(uint32, tag = "5")]
    pub client_port: u32,
    #[prost(bool, tag = "6")]
    pub tls: bool,
    #[prost(bytes = "vec", tag = "7")]
    pub method: Vec<u8>,
    #[prost(bytes = "vec", tag = "8")]
    pub target: Vec<u8>,
    #[prost(bytes = "vec", tag = "9")]
    pub protocol: Vec<u8>,
    #[prost(message, repeated, tag = "10")]
    pub headers: Vec<Header>,
    #[prost(bool, tag = "11")]
    pub end: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Body {
    #[prost(bytes = "vec", tag = "1")]
    pub data: Vec<u8>,
    #[prost(bool, tag = "2")]
    pub end: bool,
    #[prost(bool, tag = "3")]
    pub truncated: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResponseHead {
    #[prost(uint32, tag = "1")]
    pub status: u32,
    #[prost(bytes = "vec", tag = "2")]
    pub protocol: Vec<u8>,
    #[prost(message, repeated, tag = "3")]
    pub headers: Vec<Header>,
    #[prost(bool, tag = "4")]
    pub end: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Done {
    #[prost(bool, tag = "1")]
    pub cancelled: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Credit {
    #[prost(uint64, tag = "1")]
    pub bytes: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Decision {
    #[prost(enumeration = "DecisionVerdict", tag = "1")]
    pub verdict: i32,
    #[prost(uint32, tag = "2")]
    pub status: u32,
    #[prost(string, tag = "3")]
    pub location: String,
    #[prost(string, tag = "4")]
    pub reason: String,
    #[prost(uint32, tag = "5")]
    pub score: u32,
    #[prost(string, repeated, tag = "6")]
    pub tags: Vec<String>,
    #[prost(message, repeated, tag = "7")]
    pub request_headers: Vec<HeaderChange>,
    #[prost(message, repeated, tag = "8")]
    pub response_headers: Vec<HeaderChange>,
    #[prost(bool, tag = "9")]
    pub done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum DecisionVerdict {
    Allow = 0,
    Block = 1,
    Redirect = 2,
}

#[derive(Clone, PartialEq, Message)]
pub struct HeaderChange {
    #[prost(enumeration = "HeaderChangeKind", tag = "1")]
    pub kind: i32,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(bytes = "vec", tag = "3")]
    pub value: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum HeaderChangeKind {
    Set = 0,
    Add = 1,
    Remove = 2,
}

impl ToAgent {
    /// A message about an exchange; 0 for the connection.
    pub fn of(exchange: u64, message: To) -> ToAgent {
        ToAgent { exchange, message: Some(message) }
    }

    /// Reads a message.
    pub fn read(bytes: &[u8]) -> Result<ToAgent, prost::DecodeError> {
        ToAgent::decode(bytes)
    }

    /// Its length when sent.
    pub fn wire_bytes(&self) -> usize {
        self.encoded_len()
    }
}

impl FromAgent {
    /// A message about an exchange; 0 for the connection.
    pub fn of(exchange: u64, message: From) -> FromAgent {
        FromAgent { exchange, message: Some(message) }
    }
}

impl std::convert::From<Welcome> for From {
    fn from(welcome: Welcome) -> Self {
        From::Welcome(welcome)
    }
}

impl std::convert::From<Decision> for From {
    fn from(decision: Decision) -> Self {
        From::Decision(decision)
    }
}

impl std::convert::From<Credit> for From {
    fn from(credit: Credit) -> Self {
        From::Credit(credit)
    }
}
