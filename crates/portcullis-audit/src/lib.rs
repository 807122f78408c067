//! Audit records and their written forms.
//!
//! ```text
//!  portcullis-inspect ──> Record, secrets masked ──> native    parts between boundaries, as ModSecurity 2
//!                                                ├─> json      JSON with the names of ModSecurity 2
//!                                                ├─> json3     JSON with the names of ModSecurity 3
//!                                                └─> index     the line of a concurrent record, which mlogc reads
//! ```
//!
//! A [`Record`] owns its data, so it outlives the request; what belongs to a rule is shared. The parts it was
//! asked for decide what a format shows. Times are UTC. This crate does not know where records are stored,
//! and it reads no clock.

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod index;
mod json;
mod json3;
pub mod mask;
mod native;
mod record;
mod show;

pub use index::{file_name, folder, index_line};
pub use record::{
    Action, AuditLink, AuditRule, Hidden, Message, Record, RequestPart, ResponsePart, Upload, WebApp,
};

/// The format of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Parts between boundaries, as ModSecurity 2 writes them.
    Native,
    /// The same with the boundaries of ModSecurity 3, which have two more dashes on either side.
    Native3,
    /// One line of JSON with the names of ModSecurity 2.
    Json,
    /// One line of JSON with the names of ModSecurity 3.
    Json3,
}

impl Format {
    /// Records of this format end with an empty line where they stand in one file.
    pub fn is_native(self) -> bool {
        matches!(self, Format::Native | Format::Native3)
    }

    /// Appends `record` to `out`. `boundary` is eight hexadecimal digits that no other record near it has.
    pub fn write(self, record: &Record, boundary: &str, out: &mut Vec<u8>) {
        match self {
            Format::Native => native::write(record, ["--", "-"], boundary, out),
            Format::Native3 => native::write(record, ["---", "---"], boundary, out),
            Format::Json => json::write(record, out),
            Format::Json3 => json3::write(record, out),
        }
    }
}
