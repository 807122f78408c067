//! Messages of syslog (RFC 5424).
//!
//! ```text
//! <132>1 2026-09-21T14:13:20.123Z host portcullis 4711 deny [portcullis@32473 request_id="..." class="sqli" ...] {"schema":1,...}
//! ```
//!
//! The message has no byte order mark, which the RFC asks for before UTF-8: readers of JSON and CEF stumble
//! over it. 32473 is the number that RFC 5612 sets aside for documents; we have none of our own.

use std::fmt::Write as _;

use portcullis_config::{EventForm, Syslog};
use portcullis_event::Event;

use crate::form;

/// The id of the structured data.
const SD_ID: &str = "portcullis@32473";
/// Bytes of the texts of brief events, in the order in which they are tried.
const BRIEF_TEXT_BYTES: [usize; 3] = [256, 96, 32];
/// Bytes of one parameter.
const PARAM_BYTES_MAX: usize = 256;

/// What all messages of a sink have in common.
#[derive(Clone, Debug)]
pub(super) struct Messages {
    form: EventForm,
    facility: u8,
    bytes_max: usize,
    host: String,
    process: String,
}

impl Messages {
    pub(super) fn new(settings: &Syslog) -> Messages {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Messages {
            form: settings.form,
            facility: settings.facility,
            bytes_max: settings.message_bytes_max,
            host: token(&host, 255),
            process: std::process::id().to_string(),
        }
    }

    /// The message of an event, without framing and without line breaks: the whole event or, where that is
    /// too long, a brief one. None if the shortest is too long as well.
    pub(super) fn message(&self, event: &Event) -> Option<String> {
        let whole = self.write(event);
        if whole.len() <= self.bytes_max {
            return Some(whole);
        }
        let mut brief = BRIEF_TEXT_BYTES.iter().map(|&bytes| self.write(&event.brief(bytes)));
        brief.find(|brief| brief.len() <= self.bytes_max)
    }

    fn write(&self, event: &Event) -> String {
        let priority = u32::from(self.facility) * 8 + u32::from(event.gravity().syslog());
        let mut out = format!(
            "<{priority}>1 {} {} portcullis {} {} ",
            event.time.rfc3339(),
            self.host,
            self.process,
            event.verdict.action.name(),
        );
        structured_data(event, &mut out);
        out.push(' ');
        out.push_str(&form::text(event, self.form));
        out
    }
}

fn structured_data(event: &Event, out: &mut String) {
    let lead = event.lead();
    let rule = lead.rule.or(event.verdict.rule_id).map(|rule| rule.to_string()).unwrap_or_default();
    let status = event.response.status.map(|status| status.to_string()).unwrap_or_default();
    let control = event.verdict.control.as_ref();
    let control =
        control.map(|control| format!("{}:{}", control.by.name(), control.name)).unwrap_or_default();
    let _ = write!(out, "[{SD_ID}");
    for (name, value) in [
        ("request_id", &*event.request_id),
        ("site", &event.site),
        ("route", &event.route),
        ("client", &event.client.addr),
        ("verdict", event.verdict.action.name()),
        ("status", &status),
        ("class", &lead.class),
        ("kind", lead.kind),
        ("rule", &rule),
        ("control", &control),
        ("location", &lead.location),
        ("evidence", &lead.evidence),
    ] {
        if !value.is_empty() {
            let _ = write!(out, " {name}=\"");
            parameter(value, out);
            out.push('"');
        }
    }
    out.push(']');
}

/// The value of a parameter: `"`, `\` and `]` are escaped (section 6.3.3). Control characters, which it may
/// have but which receivers drop or break lines at, are written as `\xHH`, as events write bytes that are no
/// text.
fn parameter(value: &str, out: &mut String) {
    let cut = &value[..value.floor_char_boundary(PARAM_BYTES_MAX)];
    for c in cut.chars() {
        match c {
            '"' | '\\' | ']' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(out, "\\\\x{byte:02x}");
                }
            }
            c => out.push(c),
        }
    }
    if cut.len() < value.len() {
        out.push_str("...");
    }
}

/// A field of the header: printable ASCII without spaces, `-` if there is none.
fn token(text: &str, length_max: usize) -> String {
    let fits = |c: &char| c.is_ascii_graphic();
    let token: String = text.chars().filter(fits).take(length_max).collect();
    if token.is_empty() { "-".to_owned() } else { token }
}
