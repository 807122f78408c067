//! The admin listener: metrics, health, bans and reloads, on an address of its own.
//!
//! ```text
//!  GET /metrics   Prometheus text of the registry
//!  GET /healthz   200 while this process answers at all (liveness)
//!  GET /readyz    200 when it should get traffic, 503 with the reason when not: starting, draining (readiness)
//!  GET /bans      JSON: who is banned; DELETE /bans?client=192.0.2.1[&ban=NAME] lets a client in again
//!  POST /reload   reads settings, rules and certificates again: 200, or 422 with what is wrong; the old ones stay then
//! ```
//!
//! Everything else is 404, another method than these (or HEAD) is 405. Heads go through the parser of
//! portcullis-http, so the admin listener is as strict as the data plane. Connections, head size and waiting
//! times are bounded ([`Limits`]); the pages say nothing about requests, but the listener has no
//! authentication and belongs on a loopback or management address.
//!
//! ```
//! use portcullis_admin::{Health, Pages, serve};
//! use portcullis_metrics::Registry;
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let address = listener.local_addr()?;
//! let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
//! let (registry, health) = (Registry::new(), Box::new(|| Health::Ready));
//! let pages = Pages { registry, health, bans: None, reloads: None, hosts: Vec::new() };
//! let server = tokio::spawn(serve(listener, pages, async {
//!     let _ = stopped.await;
//! }));
//!
//! let mut client = tokio::net::TcpStream::connect(address).await?;
//! client.write_all(b"GET /readyz HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n").await?;
//! let mut answer = String::new();
//! client.read_to_string(&mut answer).await?;
//! assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nready\n"));
//!
//! drop(stop);
//! server.await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::wildcard_enum_match_arm)]

mod connections;
mod pages;
mod reload;
mod server;

pub use connections::{Activity, Answering, Connections, Waiting};
pub use pages::{BAN_SECONDS, Bans, Health, NO_BAN, Pages};
pub use reload::{Candidate, Reload, Reloads, ask_to_load, ask_to_reload};
pub use server::{Limits, serve, serve_with};
