//! Generated rules and requests through our engine, the reference evaluator and two ModSecuritys, every
//! difference classified. Development only.
//!
//! ```text
//!   seed > grammar > RuleSet --------------+--> ours: engine and reference, in this process
//!        > requests > Request -------------+--> modsecurity3: libmodsecurity in a child (peer/modsecurity3.c)
//!                                          +--> modsecurity2: Apache, a virtual host for each rule set
//!                                                  |
//!   Seen: every match of every link, TX, interruption
//!                                                  v
//!   difference (the first) > classes: theirs, our choice > table; no class > minimised, printed, the run fails
//! ```
//!
//! `docs/differential.md` tells the method and what it found. Everything is on loopback and in temporary
//! folders; children are stopped by their own ids.
//!
//! ```
//! use portcullis_differential::{Random, engines::ours::Ours, request, rule_set};
//!
//! let mut random = Random::new(7);
//! let rules = rule_set(&mut random);
//! let ours = Ours::load(&rules.text())?;
//! let request = request(&mut random, None);
//! let seen = ours.engine(&request);
//! assert_eq!(Some(&seen.trace), ours.reference(&request, &seen).as_ref().map(|seen| &seen.trace));
//! # Ok::<(), String>(())
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod classes;
pub mod engines;
mod grammar;
mod minimise;
mod requests;
mod rule_set;
mod run;
mod seen;
mod summary;
mod words;

pub use grammar::rule_set;
pub use portcullis_testkit::random::Random;
pub use requests::{Corpora, request, wire};
pub use rule_set::{Item, Link, RuleSet};
pub use run::{Options, run};
pub use seen::{Difference, Entry, Interruption, Seen, difference};
pub use summary::{Count, Summary, Tally};
