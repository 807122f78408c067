//! XML bodies as a tree that XPath targets search. Built only where a rule has such a target.
//!
//! ```text
//! parser's events ──> Builder ──> Tree: nodes in document order, one text ──select──> spans of that text
//! ```
//!
//! The text of an element is the text between its tags, so every value is a piece of one text and costs no
//! copy. Nodes, namespaces in scope and the sum of all elements' texts are limited; a document beyond a limit
//! is an error of the body (`REQBODY_ERROR`), never half a tree that looks whole.

mod nodes;
mod path;
mod tree;

pub(crate) use nodes::XmlOrigin;
pub use path::{Name, NodeTest, Predicate, Step, XPath};
pub(crate) use tree::{Builder, Tree};
