//! One exchange, for every kind of server: head in, body in, response in; verdict, refusals, event and
//! metrics out.
//!
//! ```text
//! Lifecycle: request_head ─> request_body* ─> request_end ─> response_head ─> response_body* ─> response_end
//!    │         ─> logging ─> finish            the proxy drives it over its own connections
//!    │
//! Service (limits, outputs, counters) ── Settings (policy, failure policy, block page; replaced by a reload)
//!    └─ Conversation: the same for servers and applications that show what they received
//!                       block(): the answer that the client is to get           dropped: one event
//! ```
//!
//! A [`Lifecycle`] shows what comes to `portcullis-inspect`, contains panics, applies the failure policies
//! and ends in one [`finish`](Lifecycle::finish). A [`Conversation`] holds bodies to the limits of the policy
//! and of the process. Block pages, request ids and the local time of rules are here, too, since all give the
//! same answers.
//!
//! The crate waits for nothing, forwards nothing and does not know SecLang. It reads the clock, and one file:
//! the operator's block page.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod block_page;
mod conversation;
mod counters;
mod decide;
mod exclusions;
mod finish;
mod form;
mod grpc;
mod http_head;
mod lifecycle;
mod local_time;
mod metrics;
mod outputs;
mod repeats;
mod request_id;
mod service;
mod settings;

pub use block_page::{BlockPage, Page, PageError, page};
pub use conversation::{Arrival, Conversation, Cut, Told};
pub use counters::{Counters, data_plane, exception_counters};
pub use decide::Block;
pub use exclusions::Exclusions;
pub use form::Form;
pub use http_head::request_head;
pub use lifecycle::{
    Beyond, Borrowed, Facts, Finished, Health, Lifecycle, NO_MEMORY, Phase, REDIRECTED, Shown, TOO_LARGE,
    WorkClock, settle, upload,
};
pub use local_time::LocalTime;
pub use metrics::Unanswered;
pub use outputs::{Capture, OnRequest, Outputs, redactor};
pub use portcullis_event::IntegrationKind;
pub use repeats::{Kind, Repeats, Turn};
pub use request_id::RequestIds;
pub use service::{Limits, Service};
pub use settings::Settings;
