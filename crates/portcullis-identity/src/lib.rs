//! Users, API tokens, sessions and the audit trail of the admin API, in one SQLite file.
//!
//! ```text
//!  Authorization: Bearer pct_... ──> SHA-256 ──> tokens ────┐
//!  cookie of a session ────────────> SHA-256 ──> sessions ──┼──> name, role (viewer < analyst < admin), sites
//!  name, password, TOTP code ──> Throttle ──> argon2id ─────┤
//!  user of a provider, verified by the caller ──────────────┘
//!  every change ──> audit trail, in the same transaction
//! ```
//!
//! The file is `identities.db` in the data folder, for its owner alone. The server and the command line open
//! it at the same time: a token that the command line creates or revokes counts at the server's next request,
//! since nothing is cached. Tokens and session ids have 256 bits of randomness and are stored as SHA-256;
//! passwords as argon2id.
//!
//! This crate knows nothing of HTTP, and no clock: times come in as seconds since 1970.
//!
//! ```
//! use portcullis_identity::{Actor, Identities, NewToken, Role, Sites};
//!
//! # let place = tempfile::tempdir()?;
//! # let folder = place.path().join("data");
//! let now = 1_790_000_000;
//! let identities = Identities::open(&folder)?;
//! let new = NewToken { name: "ci".to_owned(), role: Role::Viewer, sites: Sites::All, expires: None };
//! let (token, secret) = identities.create_token(&new, &Actor::new("command line"), now)?;
//! assert!(secret.starts_with("pct_"));
//! assert_eq!(identities.token_of(&secret, "192.0.2.1", now)?.map(|found| found.id), Some(token.id));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod audit;
mod error;
mod file;
mod origin;
mod password;
mod provided;
mod role;
mod secret;
mod sessions;
mod sites;
mod throttle;
mod tokens;
mod totp;
mod users;
mod views;

pub use audit::{AUDIT_CHANGE_MAX, AUDIT_TEXT_MAX, Actor, AuditEntry, AuditFilter, AuditLook, NewEntry};
pub use error::IdentityError;
pub use file::{FILE, Identities};
pub use origin::Origin;
pub use password::{PASSWORD_BYTES_MAX, PASSWORD_CHARACTERS_MIN, PasswordError, check_password};
pub use provided::Provided;
pub use role::Role;
pub use secret::{TOKEN_PREFIX, digest, is_same, random_secret};
pub use sessions::{Ending, SESSION_IDLE_S, SESSION_S, Session, SessionEntry, csrf_token};
pub use sites::Sites;
pub use throttle::{Decision, Throttle};
pub use tokens::{NewToken, Token};
pub use totp::{TotpSecret, code_of};
pub use users::{Change, Edition, NewUser, Proof, User};
pub use views::{VIEW_NAME_MAX, VIEW_PLACE_MAX, VIEWS_MAX, View};
