//! The inventory of a site's interfaces, found in the exchanges that it has answered.
//!
//! ```text
//!  finished exchange ──Site::observe──> Batch (bounded) ──Inventory::learn──> tree of segments
//!                                                                               │ names that multiply: {name}
//!                                                   OpenAPI 3.1 <── openapi <───┴── Endpoint for each method
//!                                                        │
//!                                  another document ──> Interface ──> compare: new, gone, changed
//! ```
//!
//! An [`Endpoint`] is a method and a path in which values are placeholders. It counts requests, networks,
//! statuses, types of content, kinds of credentials, parameters with their types, kinds of sensitive data in
//! answers, and how long answers took. It never keeps a value. What nobody answers below 400 makes no
//! endpoint, and one network has a bounded part of the places.
//!
//! Nothing here reads a clock or a file: times come in as numbers, state as text.
//!
//! ```
//! use portcullis_discovery::{Details, Inventory, Limits, Observation, Site};
//!
//! let site = Site::default();
//! let mut inventory = Inventory::new(Limits::default());
//! for number in 0..50u32 {
//!     let path = format!("/users/{number}");
//!     let (method, at_s) = (&b"GET"[..], 1_700_000_000 + u64::from(number));
//!     let seen = Observation { network: number, at_s, method, path: path.as_bytes(), status: 200, ..Observation::default() };
//!     site.observe(&seen, Some(Details::default()));
//! }
//! inventory.learn(&site.take());
//! let found: Vec<_> = inventory.endpoints().map(|found| found.path).collect();
//! assert_eq!(found, ["/users/{number}"]);
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod batch;
mod compare;
mod endpoint;
mod inventory;
mod openapi;
mod segment;
mod sensitive;
mod state;
mod tree;

pub use batch::{
    BYTES_MAX, Batch, DETAILED_MAX, DETAILED_SHARE, Details, FAMILIAR_MIN, FAMILIAR_SHARE, NETWORK_SHARE,
    Observation, REQUESTS_MAX, SENSITIVE_MAX, Site,
};
pub use compare::{Change, Deviation, DeviationKind, Difference, Interface, compare, deviations};
pub use endpoint::{
    Authentication, Endpoint, LATENCY_MS, PARAMETERS_MAX, Parameter, ParameterPlace, TYPES_MAX,
};
pub use inventory::{
    Beyond, FOUNDER_SHARE, Found, IDLE_DROP_DAYS, Inventory, Limits, News, TEMPLATE_BYTES_MAX, endpoint_id,
};
pub use openapi::openapi;
pub use sensitive::{SCANNED_BYTES_MAX, Sensitive};
pub use state::StateError;
pub use tree::{LATE_MAX, RARE_MAX, SHARED_MAX, SLUGS_MAX, TWINS_MAX, WORDS_MAX};
