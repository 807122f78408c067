//! SecLang AST to plan.
//!
//! ```text
//! Document --> drafts (chains closed, defaults merged, updates applied) --> lowered rules --> Plan
//! ```
//!
//! [`compile`] resolves everything that does not depend on a request: default actions, `block`, chains,
//! markers, removals and updates, macros, TX keys, data files, regexes, the rule sets of `ctl:` actions. It
//! reports every mistake it finds; a document with an error gives no plan, so a rule is never dropped
//! silently.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod audit;
mod collections;
mod ctl;
mod draft;
mod fold;
mod lint;
mod lower;
mod names;
mod operator;
mod patterns;
mod proxy_url;
mod rsub;
mod settings;
mod targets;
mod template;
mod xpath;

pub use lower::{Compiled, compile, compile_sharing};
pub use patterns::{Patterns, Remembered, Used};
