//! The data plane: listeners, routes, upstream pools.
//!
//! ```text
//!  worker thread (one for each core, nothing shared with the others but settings and counters)
//!
//!   listener ──> connection ──> exchange ──> request_body ──> forward ──> response ──> client
//!   SO_REUSEPORT  TLS, PROXY     route,        held up to       pool,        streamed, or
//!                 protocol,      verdicts      its limit        retry        held up to its limit
//!                 keep-alive        │              │                             │
//!                                   └── lifecycle (portcullis-exchange): inspection, policies ──> report
//! ```
//!
//! A connection is one task; with HTTP/2 (`http2/`) or HTTP/3 (`http3/`, a feature) it has one more for each
//! request, and a stream takes the place of the connection. Settings are a generation (`generation.rs`)
//! behind one atomic pointer: a reload builds a new one aside and swaps it in; requests in flight keep
//! theirs. Bytes are parsed and framed by `portcullis-http`; what goes upstream is written anew from what was
//! inspected, so nothing ambiguous is passed on.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::sync::Arc;
//! use portcullis_config::{Config, Flags, PolicyFlags};
//! use portcullis_event::{Action, NotInspected, UpstreamError};
//! use portcullis_metrics::{DataPlane, DataPlaneNames, Registry};
//! use portcullis_inspect::IssuedSites;
//! use portcullis_proxy::{Proxy, Services};
//!
//! // Nothing listens behind it, and nothing is inspected: the answer is a 502 of our own.
//! let (listen, upstream) = ("127.0.0.1:0".to_string(), "http://127.0.0.1:1".to_string());
//! let (listen, mode) = (Some(listen), Some("off".to_string()));
//! let policy = PolicyFlags { mode, ..PolicyFlags::default() };
//! let config = Config::from_flags(Flags { listen, upstream, policy, workers: Some(1), ..Flags::default() })?;
//! let registry = Registry::new();
//! let names = DataPlaneNames {
//!     verdicts: Action::NAMES,
//!     not_inspected: NotInspected::NAMES,
//!     upstream_errors: UpstreamError::NAMES,
//!     refusals: &[],
//!     ambiguities: &[],
//!     classes: &[],
//!     finding_outcomes: &[],
//! };
//! let metrics = DataPlane::new(&registry, "0", names);
//! // Nothing takes events or spans.
//! let (on_event, traces) = (None, None);
//! let say = Arc::new(|line: &str| eprintln!("{line}"));
//! let (on_file, on_access) = (Arc::new(|_| {}), Arc::new(|_, _| {}));
//! let (on_request, keep_request_bytes, access_logs, capture) = (None, 0, vec![], None);
//! let coalesce_above = 0;
//! let issued = IssuedSites::default();
//! let issued_cookies = Arc::new(move |site: &str| issued.site(site));
//! let services = Services {
//!     registry, metrics, on_event, coalesce_above, keep_request_bytes, capture, on_request, on_file,
//!     access_logs, on_access, issued_cookies, say, traces,
//! };
//! let proxy = Proxy::start(&config, &[], services)?;
//!
//! let mut client = std::net::TcpStream::connect(proxy.addresses()[0])?;
//! client.write_all(b"GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n")?;
//! let mut answer = String::new();
//! client.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"));
//! proxy.drain();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate does not know SecLang, does not decide, and writes no file but that of bans. It waits, and it
//! gives every wait a limit.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod abort;
mod access;
mod access_log;
mod affinity;
mod agents;
mod allocator;
mod answer;
mod ban_list;
mod beside;
mod budget;
mod buffer;
mod check;
mod client;
mod clock;
mod compress;
mod connection;
mod cookies;
mod descriptors;
mod divert;
mod exchange;
mod facts;
mod forward;
mod generation;
mod handle;
mod header_changes;
mod http1;
mod http2;
#[cfg(feature = "http3")]
mod http3;
mod https;
mod io;
mod linger;
mod listener;
mod lookups;
mod memory;
mod network;
mod offload;
mod overload;
mod path;
mod pause;
mod pump;
mod recognition;
mod report;
mod request_body;
mod response;
mod rewrite;
mod route;
mod server;
mod services;
mod sink;
mod site;
mod state;
mod status;
mod stream;
mod template;
mod timer;
mod trace;
mod trailers;
mod transaction;
mod tunnel;
mod upload;
mod upstream;
mod websocket;
mod worker;

pub use ban_list::{BanList, Banned};
pub use check::{check_certificates, check_files};
pub use listener::{Inherited, cannot_listen};
pub use portcullis_balance::BreakerState;
pub use portcullis_tls::{CertificateStatus, IssuedCertificate, StartError, Watch};
pub use server::Proxy;
pub use services::{FindCookies, Services};
pub use status::{
    AgentStatus, EndpointFailure, EndpointStatus, LimitStatus, RouteChoice, Serving, Status, UpstreamStatus,
};
