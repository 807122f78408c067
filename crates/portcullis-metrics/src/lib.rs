//! Counters, gauges and histograms of the data plane, and their Prometheus text form.
//!
//! ```text
//!  load time:     Registry ──> handles (Counter, Gauge, Histogram, EnumCounters, RequestCounters, RuleCounters)
//!  request time:  handle.inc()                  one relaxed fetch_add, no lock, no lookup, no allocation
//!  scrape time:   Registry::render() ──> text   exposition format 0.0.4
//! ```
//!
//! All metrics stand in one table, [`catalogue`]. A [`Registry`] is a value: two of them in one process do
//! not notice each other. Handles are cheap to clone, stay valid for ever, and asking for the same series
//! again gives the same cells, so a reload loses no count.
//!
//! Label values come from configuration and closed tables, never from a request. The number of series of a
//! family is bounded all the same ([`SERIES_MAX`]): beyond it series share one whose labels are all `other`,
//! and `portcullis_series_overflow_total` counts how many were refused a place.
//!
//! ```
//! use portcullis_metrics::{Registry, catalogue};
//!
//! let registry = Registry::new();
//! let active = registry.gauge(&catalogue::CONNECTIONS_ACTIVE, &[]);
//! active.add(1);
//! assert!(registry.render().contains("\nportcullis_connections_active 1\n"));
//! ```
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests have threads"))]
#![warn(clippy::wildcard_enum_match_arm)]

pub mod catalogue;
mod cells;
mod data_plane;
mod exclusions;
mod exposition;
mod http2;
mod registry;
mod requests;
mod rules;

pub use catalogue::{Kind, Metric};
pub use cells::{Counter, EnumCounters, Gauge, Histogram};
pub use data_plane::{DataPlane, DataPlaneNames, Pause, RouteMetrics, StreamedUpload};
pub use exclusions::{ExclusionTrial, ExclusionUse, TrialCount};
pub use exposition::CONTENT_TYPE;
pub use http2::{Http2Limit, Http2Metrics, Protocol};
pub use registry::{Registry, SERIES_MAX};
pub use requests::RequestCounters;
pub use rules::RuleCounters;

/// Label value of everything that has no series of its own.
pub const OTHER: &str = "other";
