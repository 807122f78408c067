//! A tower layer that inspects requests and responses in the application's process.
//!
//! ```text
//! request ──> head ──> body, held up to the policy's limit ──> the application (body unchanged, with trailers)
//!              └─ 403 ─────┴─ 403: our block page                     │
//! client  <── body, held up to its limit and then as it comes <── head of the response
//! ```
//!
//! ```no_run
//! use axum::{Router, extract::ConnectInfo, routing::get};
//! use portcullis_tower::WafLayer;
//! use portcullis_tower::embed::Builder;
//! use std::net::SocketAddr;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let waf = Builder::semantic().on_event(|event| println!("{}", event.json_line())).build()?;
//! let client = |parts: &http::request::Parts| parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|at| at.0.into());
//!
//! let app = Router::new().route("/", get(|| async { "hello" })).layer(WafLayer::new(waf).client(client));
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
//! axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
//! # Ok(()) }
//! ```
//!
//! The layer waits for request bodies that the policy inspects, within limits of size ([`Builder`], the
//! document) and of time ([`WafLayer::body_timeout`]). A call that is dropped ends its exchange: the event
//! says which parts were not seen. Long bodies are inspected on a thread for blocking work, where tokio runs.
//!
//! Not seen: bytes below HTTP, which the server of the application parses; frames after an upgrade; streams
//! in both directions at once, whose requests end only with their responses, have to be served by routes
//! without the layer. Not done: changes to bodies (`@rsub`, `append`), `pause`, lookups of rules.
//!
//! [`Builder`]: embed::Builder

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod beside;
mod flow;
mod layer;
mod read;
mod replay;
mod response_body;

pub use layer::{WafLayer, WafService};
pub use portcullis_embed as embed;
pub use replay::Replay;
pub use response_body::ResponseBody;
