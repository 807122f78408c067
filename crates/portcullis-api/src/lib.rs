//! The admin API: events, bans, identities and reloads over HTTP, at `/api/v1`.
//!
//! ```text
//!  connection (bounded, timed) ──> guard: Host, Origin, time, headers, counted
//!                                   └─> gate: who asks, which role, CSRF ──> route ──> JSON, or a problem (RFC 9457)
//!                                                                              │
//!                        identities.db ── threads that may block ── event store┘
//! ```
//!
//! - Routes and the OpenAPI document at `/api/v1/openapi.json` come from one registration, which also says
//!   who may ask.
//! - Nothing is reachable without a token or a session, but the document, `/health`, `/login`, `/login/...`
//!   for a provider, and `/setup`, which creates the first administrator with a code of the first start.
//! - Everything that a client can make the server hold or do has a bound: [`Limits`].
//! - What the running program knows comes through [`Supplies`]; this crate does not know the data plane.
//!
//! Heads that are not HTTP, or longer than 32 KiB, are refused by the HTTP library, without a problem
//! document.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod access;
mod changes;
pub mod console;
mod context;
mod counted;
mod extract;
pub mod fields;
mod guard;
mod if_match;
pub mod interfaces;
pub mod live;
mod message;
mod oidc;
mod pages;
mod patient;
mod problem;
mod queries;
mod router;
mod routes;
mod seat;
mod server;
mod settings;
mod setup;
mod stored;
mod supplies;
mod tls;
mod turn;

pub use oidc::OidcLogin;
pub use problem::{PROBLEM_JSON, Problem};
pub use server::{Api, listener};
pub use settings::{Limits, Supplies};
pub use setup::{SETUP_CODE_S, SetupCode};
pub use supplies::{
    AdviceOrder, Banned, Bans, CheckedDocument, CheckedRules, Explained, Health, Reload, ReloadResult,
    ReplayChange, ReplayError, ReplayOrder, ReplayRequest, Replayed, SinkOrder, SinkTestError, SinkTested,
    StoredRequest, Trial, TrialError, Trials,
};
pub use tls::{CertificateFiles, TlsError, acceptor, self_signed};
