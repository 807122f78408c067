//! One exchange as another server or an application shows it: head in, body in, response in; verdict, answer
//! of ours, event and metrics out.
//!
//! ```text
//! Service (limits, outputs, counters) ── Settings (policy, failure policy, block page; replaced by a reload)
//!    └─ Conversation: begin ─> request_body* ─> request_end ─> response_head ─> response_body* ─> response_end
//!                       └──────── block(): the answer that the client is to get ────────┘   dropped: one event
//! ```
//!
//! A [`Conversation`] shows what comes to `portcullis-inspect`, contains panics, and holds bodies to the
//! limits of the policy and of the process. Block pages, request ids and the local time of rules are here,
//! too, since the proxy gives the same answers.
//!
//! The crate waits for nothing, forwards nothing and does not know SecLang. It reads the clock, and one file:
//! the operator's block page.

mod block_page;
mod conversation;
mod counters;
mod decide;
mod exclusions;
mod finish;
mod form;
mod grpc;
mod http_head;
mod inspected;
mod local_time;
mod metrics;
mod outputs;
mod request_id;
mod service;
mod settings;

pub use block_page::{BlockPage, Page, PageError, page};
pub use conversation::{Arrival, Conversation, Cut, Told};
pub use counters::data_plane;
pub use decide::{Block, TOO_LARGE, coding_answer};
pub use exclusions::Exclusions;
pub use form::Form;
pub use http_head::request_head;
pub use local_time::LocalTime;
pub use metrics::Unanswered;
pub use outputs::{Capture, OnRequest, Outputs, redactor};
pub use portcullis_event::IntegrationKind;
pub use request_id::RequestIds;
pub use service::{Limits, Service};
pub use settings::Settings;
