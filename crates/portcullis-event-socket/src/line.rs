//! The lines of a connection.

use std::collections::BTreeMap;

use portcullis_event::{Event, ReadError};
use serde::{Deserialize, Serialize};

/// Longest line. An event that is longer is sent without its long parts.
pub const LINE_BYTES_MAX: usize = 256 << 10;

/// How a report begins; no event does.
const REPORT: &[u8] = br#"{"lost":"#;

/// What a sender has lost since its last report, by reason.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Report {
    pub(crate) lost: BTreeMap<String, u64>,
}

/// A line that was read.
#[derive(Debug)]
pub(crate) enum Line {
    Event(Box<Event>),
    Report(Report),
}

impl Line {
    /// Reads a line without its end; the error is for people.
    pub(crate) fn read(line: &[u8]) -> Result<Line, String> {
        if line.starts_with(REPORT) {
            let report = serde_json::from_slice(line);
            return report.map(Line::Report).map_err(|error| format!("not a report: {error}"));
        }
        let event = Event::from_json(line).map_err(|error: ReadError| error.to_string())?;
        if event.integration.is_none() {
            return Err("an event without `integration`".to_owned());
        }
        if event.count != 1 {
            return Err("an event with a `count`".to_owned());
        }
        Ok(Line::Event(Box::new(event)))
    }
}

impl Report {
    /// Appends the report as a line.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        // Numbers by name, written to memory: this cannot fail.
        if serde_json::to_writer(&mut *out, self).is_ok() {
            out.push(b'\n');
        }
    }
}
