//! The protocol that inspection agents speak: messages, frames, and the state of one connection.
//!
//! ```text
//!   Portcullis                        agent
//!     Hello ───────────────────────────>
//!     <─────────────────────── Welcome        version and windows agreed
//!     RequestHead 1 ───────────────────>
//!     RequestHead 2 ───────────────────>      many exchanges on one connection
//!     RequestBody 1, 1, 1 ─────────────>      as far as the window goes
//!     <────────────────────── Credit 1
//!     <──────────────────── Decision 2        in any order
//!     RequestBody 1 end ───────────────>
//!     <──────────────────── Decision 1
//!     Done 2, ResponseHead 1, ... ─────>
//! ```
//!
//! [`wire`] is the schema of `proto/` in Rust, [`Frames`] takes a stream of bytes apart (of a Unix socket or
//! of gRPC), and a [`Session`] is what Portcullis knows of a connection: pure, so that what does the waiting
//! has nothing to decide. [`check`] turns a decision into one that can be carried out, or says why it cannot.
//!
//! ```
//! use portcullis_agent::{Framing, Session, Terms, frame, wire};
//!
//! let mut session = Session::default();
//! let welcome = wire::Welcome { version: 1, ..Default::default() };
//! session.receive(&frame(Framing::Length, &wire::FromAgent::of(0, welcome.into())), &mut Vec::new()).unwrap();
//! assert_eq!(session.terms().map(|terms| terms.window_bytes), Some(65536));
//! let exchange = session.begin();
//! let allow = wire::Decision::default();
//! let mut told = Vec::new();
//! session.receive(&frame(Framing::Length, &wire::FromAgent::of(exchange, allow.into())), &mut told).unwrap();
//! assert_eq!(told, [exchange]);
//! assert!(session.take_decision(exchange).is_some());
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod check;
mod frame;
mod session;
pub mod wire;

pub use check::{Change, Checked, Verdict, check};
pub use frame::{Frames, Framing, Unreadable, frame, write_frame};
pub use session::{Broken, Session, Terms};

/// The version of the protocol that this crate speaks.
pub const VERSION: u32 = 1;
/// The path of the call that carries the protocol over gRPC.
pub const GRPC_PATH: &str = "/portcullis.agent.v1.InspectionAgent/Converse";
/// Bytes of one message from an agent, at most.
pub const FROM_AGENT_BYTES_MAX: usize = 64 << 10;
/// Body bytes in one message to an agent, at most.
pub const PIECE_BYTES_MAX: usize = 32 << 10;
/// Bytes of one message that every agent has to accept.
pub const TO_AGENT_BYTES_MIN: usize = 128 << 10;
/// Limit on a message to an agent that does not state one.
pub const TO_AGENT_BYTES: usize = 1 << 20;
/// Body bytes before credit, for an agent that does not say.
pub const WINDOW_BYTES: u64 = 64 << 10;
