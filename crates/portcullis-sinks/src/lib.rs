//! Receivers of events beside files: syslog, OpenTelemetry logs, ClickHouse, webhooks.
//!
//! ```text
//!                       ┌─ filter ─> queue ─> thread: batches ─> Output ─> syslog (TCP, TLS, UDP, Unix)
//!  worker ─> Sender ────┼─ filter ─> queue ─> thread: batches ─> Output ─> OTLP collector
//!      Arc<Event>       └─ filter ─> queue ─> thread: batches ─> Output ─> ClickHouse, webhook
//!                           full: dropped, counted        away: tried again, with rests that grow
//! ```
//!
//! [`Sender::submit`] never waits, whatever a receiver does. Sinks share the event and nothing else: each has
//! a queue bounded by events and bytes, a thread, a time for which it tries again, and counters. What a sink
//! could not deliver is counted with its reason ([`REASONS`]).
//!
//! An event is one record at the receiver, whatever a client wrote into it: each form escapes what would end
//! a record or a field there. Events reach this crate redacted.
//!
//! A receiver is not trusted: redirects are not followed, answers are read up to a limit, connecting and
//! sending have time limits, and nothing that it says is more than a line on standard error.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use portcullis_config::{Config, Format};
//! use portcullis_event::{Event, Timestamp};
//! use portcullis_metrics::Registry;
//! use portcullis_sinks::Sinks;
//!
//! let receiver = std::net::UdpSocket::bind("127.0.0.1:0")?;
//! let document = format!(
//!     r#"
//!     listeners = [{{ address = "127.0.0.1:8080" }}]
//!     sites = [{{ name = "shop", hosts = ["*"], upstream = "app" }}]
//!     upstreams = {{ app = {{ endpoints = ["http://127.0.0.1:9000"] }} }}
//!     [[events.sinks]]
//!     kind = "syslog"
//!     address = "udp://{}"
//!     "#,
//!     receiver.local_addr()?
//! );
//! let config = Config::parse(&document, Format::Toml, "portcullis.toml").unwrap();
//! let sinks = Sinks::start(&config.event_sinks, &Registry::new(), |line: &str| eprintln!("{line}"))?;
//! sinks.sender().submit(&Arc::new(Event::new("r1", Timestamp::from_epoch_millis(0))));
//! assert_eq!(sinks.shutdown(Duration::from_secs(5)), 0);
//!
//! let mut message = [0; 2048];
//! let length = receiver.recv(&mut message)?;
//! let text = String::from_utf8_lossy(&message[..length]);
//! assert!(text.starts_with("<134>1 1970-01-01T00:00:00.000Z "), "{text}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::wildcard_enum_match_arm)]

mod clickhouse;
mod form;
mod metrics;
mod otlp;
mod output;
mod sender;
mod syslog;
mod webhook;
mod worker;

pub use clickhouse::table_definition;
pub use metrics::REASONS;
pub use sender::{Delivery, Sender, Sinks};

use std::io;

use portcullis_config::{EventSink, SinkTarget};

/// The receiver of a sink: a module above and an arm here for each kind.
fn output_of(sink: &EventSink) -> io::Result<Box<dyn output::Output>> {
    Ok(match &sink.to {
        SinkTarget::Syslog(to) => Box::new(syslog::Output::new(to, sink.timeout, &sink.name)?),
        SinkTarget::Otlp(to) => Box::new(otlp::Output::new(to, sink.timeout, &sink.name)?),
        SinkTarget::ClickHouse(to) => Box::new(clickhouse::Output::new(to, sink.timeout, &sink.name)?),
        SinkTarget::Webhook(to) => Box::new(webhook::Output::new(to, sink.timeout, &sink.name)?),
    })
}
