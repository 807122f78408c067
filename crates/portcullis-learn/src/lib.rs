//! What the fields of a site carry, and which values are unlike them.
//!
//! ```text
//!  request ──Fields::note──> types and bytes of its values ──Site::observe──> Batch (bounded)
//!                 │                                                              │ Store::learn
//!                 │                                                              v
//!                 └──Knowledge::judge──> Unusual      Knowledge <──Knowledge::of── Store: a Profile for each Key
//! ```
//!
//! A [`Store`] holds a [`Profile`] for each field of a site: method, path template, place and name. It counts
//! values, networks of clients, sessions and days, by type and by class of bytes, and never keeps a value. A
//! field that has carried one plain type for long, from many networks, is [`Closed`]: a value of another type
//! is [`Unusual`], and the bytes of code in it that the field never had are what makes it suspicious.
//!
//! Kinds of findings that a field carries for many who have logged in are an [`Opening`] of it: proposed, on
//! trial, and then of no weight in this field.
//!
//! [`Knowledge`] is an immutable picture of the store for the threads that serve; [`Site`] is what they
//! share. Nothing here reads a clock or a file: days come in as numbers, state as text.
//!
//! ```
//! use portcullis_learn::{FieldPlace, Fields, Knowledge, Limits, Site, Source, Store};
//!
//! let site = Site::default();
//! let mut store = Store::new(Limits::default());
//! let mut fields = Fields::default();
//! for number in 0..400u32 {
//!     fields.clear();
//!     fields.note(FieldPlace::Query, b"id", number.to_string().as_bytes());
//!     let source = Source { network: number % 40, day: number % 14, ..Source::default() };
//!     site.observe(source, b"GET", b"/item", &fields);
//! }
//! store.learn(&site.take());
//! site.publish(Knowledge::of(&store));
//!
//! fields.clear();
//! fields.note(FieldPlace::Query, b"ID", b"1' or '1'='1");
//! let knowledge = site.knowledge();
//! let (field, name) = fields.iter().next().unwrap();
//! let unusual = knowledge.judge(&mut knowledge.page(b"GET", b"/item/"), field, name).unwrap();
//! assert_eq!(&*unusual.evidence, "whole numbers only: 400 values of 40 networks in 14 days");
//! assert_eq!(unusual.syntax.to_string(), "apostrophes, equals signs");
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod batch;
mod bytes;
mod decision;
mod declared;
mod field;
mod hash;
mod key;
mod knowledge;
mod opening;
mod pages;
mod path;
mod profile;
mod refused;
mod session;
mod sibling;
mod site;
mod sketch;
mod source;
mod state;
mod store;
mod value;

pub use batch::{
    BYTES_MAX, Batch, Fields, KindIn, KindNews, NETWORK_SHARE, REQUEST_FIELDS_MAX, REQUEST_KINDS_MAX,
    REQUESTS_MAX,
};
pub use bytes::Syntax;
pub use decision::DECISIONS_MAX;
pub use declared::{DeclaredField, DeclaredFields};
pub use field::Field;
pub use key::{FieldPlace, Key};
pub use knowledge::{Knowledge, Page};
pub use opening::{
    FIELD_KINDS_MAX, KIND_BYTES_MAX, KIND_IDLE_DAYS, KIND_SHARE, KIND_WINDOW_DAYS, Opening, OpeningState,
    TRUSTED_KIND_VALUES, Tried, TryResult, opening_id,
};
pub use path::{ANY, DEPTH_MAX, NAME_BYTES_MAX, placeholder, segments, spelled};
pub use profile::{
    Carried, Closed, Form, Missing, OPENING_NETWORKS_MIN, OPENING_SHARE, OPTION_VALUES, OPTIONS_MAX, Opened,
    Profile, Reopened, STRAY_SHARE, TRUSTED_OPENING_VALUES, TRUSTED_VALUES, Unusual,
};
pub use refused::{REFUSED_NETWORKS_MIN, REFUSED_WINDOW_DAYS, Refused};
pub use session::{
    SESSION_FIELDS_MAX, SESSION_SECONDS_MAX, SESSION_UNDECIDED_SECONDS, Session, Teacher, is_within,
};
pub use site::{Site, USUAL_SHARE, network, session};
pub use sketch::{Days, Distinct, Sightings};
pub use source::{OPENING_DAYS_MIN, Source, Standing, Thresholds};
pub use state::StateError;
pub use store::{
    Beyond, FIELD_BYTES_MAX, IDLE_DAYS_MAX, Limits, NEW_SHARE, Order, OrderError, PAGE_FIELDS_MAX,
    SEGMENTS_MAX, Store, TEMPLATE_BYTES_MAX,
};
pub use value::{Shape, TypeSet, ValueType, classify};
