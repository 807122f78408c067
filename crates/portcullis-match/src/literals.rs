//! Literal sets: is one of some words in a text, in any ASCII case?
//!
//! | question | type | how |
//! |---|---|---|
//! | is one word of this set there? | [`LiteralSet`] | a packed search for what the words have in common |
//! | of which of many sets is a word there? | [`LiteralSets`] | one pass with a table, or one set after the other |
//!
//! Both are for ruling out: most texts have no word of most sets.

mod packed;
mod sets;
mod table;

pub use packed::{Folded, LiteralSet};
pub use sets::{LiteralSets, LiteralSetsBuilder};
pub use table::LiteralTable;
