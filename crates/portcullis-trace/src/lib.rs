//! Traces: W3C trace context, spans, and the thread that sends them to an OpenTelemetry collector.
//!
//! ```text
//!  request ──> Context (traceparent of the client, or a new one) ──> traceparent to the upstream
//!     └── Trace: spans ──> Sender ──> bounded channel ──> thread: batches ──> OTLP over HTTP, JSON
//!                            full: dropped, counted                 taken back later: tried again
//! ```
//!
//! [`Sender::submit`] never waits, whatever the collector does. The crate knows spans, not requests.
//!
//! ```
//! use portcullis_trace::Context;
//!
//! let parent = Context::read(b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
//! let own = parent.child([1; 8]);
//! assert_eq!(&own.header(), b"00-0af7651916cd43dd8448eb211c80319c-0101010101010101-01");
//! ```

#![warn(clippy::wildcard_enum_match_arm)]

mod collector;
mod context;
mod export;
mod otlp;
mod span;

pub use collector::Settings;
pub use context::{Context, HEADER_BYTES, SpanId, TraceId};
pub use export::{Exporter, Sender};
pub use span::{Kind, Span, Trace, Value};
