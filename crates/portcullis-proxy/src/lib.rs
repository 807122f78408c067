//! The data plane: listeners, routes, upstream pools.
//!
//! ```text
//!  worker thread (one for each core, nothing shared with the others but settings and counters)
//!
//!   listener ──> connection ──> exchange ──> request_body ──> forward ──> response ──> client
//!   SO_REUSEPORT  TLS, PROXY     route,        held up to       pool,        streamed, or
//!                 protocol,      verdicts      its limit        retry        held up to its limit
//!                 keep-alive        │              │                             │
//!                                   └── guard: portcullis-inspect, panics contained ──> transaction: event, metrics
//! ```
//!
//! A connection is one task. Settings are a [`state::Generation`] behind one atomic pointer: a reload builds a new one
//! aside and swaps it in; requests in flight keep theirs. Bytes are parsed and framed by `portcullis-http`; what goes
//! upstream is written anew from what was inspected, so nothing ambiguous is passed on.
//!
//! The crate does not know SecLang, does not decide, and does not write files. It waits, and it gives every wait a limit.

mod answer;
mod block_page;
mod budget;
mod buffer;
mod client;
mod connection;
mod error;
mod exchange;
mod forward;
mod guard;
mod io;
mod listener;
mod request_body;
mod request_id;
mod response;
mod server;
mod site;
mod state;
mod stream;
mod timer;
mod tls;
mod transaction;
mod tunnel;
mod upload;
mod upstream;
mod worker;

pub use error::StartError;
pub use server::Proxy;
pub use state::{Services, redactor};
