//! The semantic detector: findings from parsed fragments. No rules, no sockets, no clock.
//!
//! ```text
//! request ──message──> values with locations ──decode──> forms (bounded layers)
//!                                                          │ gate: byte groups, then one scan for hint words
//!                                                          v
//!                                detectors (lexer > fragment parser) ──> findings ──score──> verdict per value and class
//! ```
//!
//! Three nouns: a [`Value`] of the message (a parameter, a header, a JSON string, ...), a [`Finding`] in it,
//! and a [`Score`] for the findings of one detector in one value. [`Detectors`] is built once and shared; an
//! [`Analysis`] belongs to one message and is reused for the next.
//!
//! ```
//! use portcullis_semantic::{Analysis, Detectors, Level, Location, Place};
//!
//! let detectors = Detectors::new();
//! let mut analysis = Analysis::new();
//! analysis.value(&detectors, Location::new(Place::Query, b"id"), b"1' UNION SELECT user,password FROM users-- -");
//! let worst = analysis.worst(&detectors, Level::Balanced).unwrap();
//! assert!(worst.blocks(Level::Balanced));
//! assert_eq!(worst.class.name(), "sqli");
//!
//! analysis.clear();
//! analysis.value(&detectors, Location::new(Place::Query, b"q"), b"the union of O'Reilly's selected works");
//! assert!(!analysis.worst(&detectors, Level::Balanced).is_some_and(|worst| worst.blocks(Level::Strict)));
//! ```
//!
//! # Adding a detector
//!
//! 1. Make `src/detectors/NAME.rs` (or a folder): `kinds! { ... }` for what it can find, a type that
//!    implements [`Detector`], tests of the form "this text has these kinds". Tokenizers without knowledge of
//!    attacks belong into `portcullis-lex`. Lists of dangerous names are files under `data/` with their
//!    source; other lists of more than a dozen words are rows of `data/words/` (`src/detectors/words.rs`).
//! 2. Add its line to [`detectors::all`].
//! 3. [`Profile::needs`] (bytes of which one must be there) and [`Profile::hints`] (words of which one must
//!    be there) are its gate: a value that passes neither costs nothing. Hints that occur in every second
//!    value are no gate.
//! 4. Parse a *fragment*: an injection is the middle or the tail of a sentence of the language. What the
//!    fragment does is [`Found::add`], whatever stands around it; what its own neighbourhood shows to be
//!    named is [`Found::mention`], which weighs less where the site made the field for text, and in full
//!    elsewhere; what a text shows as code is [`Found::shown`], the same for kinds that harm nobody who
//!    stores a text, and nothing less than [`Found::add`] for those that are [`Activity::Active`].
//! 5. Each kind starts with the weight of its severity (Critical blocks alone; Error needs a Warning; Notice
//!    is context). When it finds what it should, train: `tools/semantic/train.py` writes `weights/CLASS.tsv`,
//!    which [`Profile::weights`] holds.
//!
//! It refuses to know what a payload list says: no whole payloads, no hashes of them; what the structure of a
//! fragment does not show is not reported.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod analysis;
mod decode;
mod detector;
pub mod detectors;
mod finding;
mod gate;
mod graphql;
mod hint_scan;
mod issued;
pub mod limits;
mod location;
mod memo;
mod message;
mod odd_name;
mod score;
mod shape;
mod work;

pub use analysis::{Analysis, Detectors, LEARNED_ROW, Triage};
pub use decode::Layer;
pub use detector::{Detector, Found, Hint, Input, Profile};
pub use detectors::exceptions;
pub use detectors::purpose::{is_made_for, names_redirect, takes_plain_value, takes_search};
pub use finding::{Activity, Finding, Kind, KindId, Layers, Value};
pub use issued::{CookieCounts, ISSUED_COOKIES_MAX, Issuer};
pub use location::Location;
pub use memo::Memo;
pub use message::{Arguments, MessageNames, Parsed, Unreadable, Upload};
pub use portcullis_types::{Class, Level, Place, Severity};
pub use score::{CONTEXTS, Model, Score, WeightsError};
pub use shape::ByteGroups;
