//! The event store: events on disk without another service, and the queries on them.
//!
//! ```text
//!  events ──> Writer ──> block of up to 1,024 events ──> segment (SQLite file) ──> dropped whole when it is old
//!             commit       columns │ index │ JSON           one day at most           or all of them are too large
//!             each 0.5 s
//!  filter ──> Store ───> newest segment first: index says "not here" ──> columns of the filter ──> JSON of the hits
//! ```
//!
//! A row of SQLite for each event with an index for each filter does not reach the rate that a flood makes
//! (docs/adr/0015-event-store.md has the measurements). So events are gathered into blocks: SQLite keeps
//! blobs, one for each column of a block, with transactions, recovery and backup that are not ours to write.
//!
//! [`EventSource`] is what asks: a [`Store`], or another place of events.
//!
//! - A commit is one transaction. A crash of the process loses what came after the last commit, half a second
//!   at most.
//! - A segment that is damaged is set aside, told, and the others serve ([`Notice`]).
//! - A full disk costs the events of a commit, which the caller counts.
//! - One process writes to a folder ([`OpenError::InUse`]); after an upgrade, predecessor and successor write
//!   each to a segment of its own until the predecessor ends. Any process of the same user reads.

#![warn(clippy::wildcard_enum_match_arm)]

mod backup;
mod block;
mod coalesce;
mod codec;
mod column;
mod evaluate;
mod facets;
mod fields;
mod folder;
mod followups;
mod histogram;
mod marks;
mod outcomes;
mod paths;
mod query;
mod recorded;
mod recorder;
mod rollup;
mod rows;
mod segment;
mod settings;
mod source;
mod writer;

pub use backup::Copied;
pub use facets::{Facet, FacetRequest, Facets};
pub use histogram::{Histogram, HistogramRequest, HistogramStep, OutcomeCounts, Steps};
pub use query::{After, Page, PageRequest, QueryError, Store, StoredEvent};
pub use recorder::{Recorder, RecorderHandle, SampleHandle, Say};
pub use rollup::{Dimension, Entry, Latency, Rollup, Rollups, SiteRollup, Tallies, Tally, Top};
pub use segment::SegmentError;
pub use settings::StoreSettings;
pub use source::{EventSource, OldestRequest};
pub use writer::{Committed, Notice, OpenError, Writer};
