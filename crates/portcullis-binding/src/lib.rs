//! The common part of the bindings for other languages: settings by name, messages in parts, a bounded queue
//! of events.
//!
//! ```text
//! Settings ──open──> (Waf, Events)        Events.take ──> JSON lines, for the application's sink
//!                      └──begin(Head)──> Exchange         dropped when full, and counted
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod events;
mod head;
mod settings;

pub use events::Events;
pub use head::{Answer, Head};
pub use portcullis_embed::{Broken, Exchange, Waf};
pub use settings::Settings;
