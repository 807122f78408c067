//! Exclusions for a false positive, the narrowest first, and what each of them costs.
//!
//! ```text
//! request --the policy as it is--> alarm --options--> candidates
//!    each candidate: the policy with it  <-- the request       does it clear the alarm?
//!                                        <-- stored requests   which would it have let through?
//!                                        <-- probes            which attacks in these fields are lost?
//! ```
//!
//! Every answer is a verdict of the engine that serves, on this request with other values in its fields;
//! nothing is estimated. An exclusion of a kind loses probes of that kind in its field by construction: these
//! are counted apart. A candidate is recommended if it clears the alarm and loses no other probe.

#![warn(clippy::wildcard_enum_match_arm)]

mod advice;
mod cluster;
mod measure;
mod options;
mod path;
pub mod probes;

pub use advice::{Advice, Case, Measured, NoAdvice, Policies, advise, narrowest};
pub use cluster::{Cluster, clusters};
pub use measure::{LostProbe, ProbeCount, Probed, Stored};
pub use options::{Candidate, Reach};
pub use path::template;
