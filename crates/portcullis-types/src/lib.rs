//! Names the whole product shares, without behaviour: ids, spans, phases, severities, variables, byte
//! classes, classes of attacks, places in a message; a table of results for repeated texts ([`Recent`]), and
//! the bytes of bodies ([`ByteBuf`]).
//!
//! Nothing here knows what a rule, a request or a socket is, and nothing but these two allocates. Every
//! other crate may use it.

#![warn(clippy::wildcard_enum_match_arm)]

mod byte_buf;
mod byte_set;
mod class;
mod decimal;
mod level;
mod names;
mod nearest;
mod outage;
mod passwords;
mod percent;
mod phase;
mod place;
mod recent;
mod secret;
mod severity;
mod span;
mod status;
mod text_hash;
mod variable;

pub use byte_buf::ByteBuf;
pub use byte_set::ByteSet;
pub use class::Class;
pub use decimal::Decimal;
pub use level::Level;
pub use names::NameTable;
pub use nearest::nearest;
pub use outage::Outage;
pub use passwords::{PASSWORD_NAMES, PASSWORD_WORDS, is_password_name};
pub use percent::percent_decode;
pub use phase::Phase;
pub use place::Place;
pub use recent::{Recent, RecentKey, Sight};
pub use secret::may_hold_secret;
pub use severity::Severity;
pub use span::Span;
pub use status::reason_phrase;
pub use text_hash::{TextHash, TextHasher};
pub use variable::{Shape, Variable};

/// A SecLang rule id (`id:942100`). Ids are 1 to 4,294,967,295 here; ModSecurity's reserved ranges are
/// policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(pub u32);

impl std::fmt::Display for RuleId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
