//! ArcSight Common Event Format, version 0 (Implementing ArcSight CEF, version 25): one event, one line.
//!
//! ```text
//! CEF:0|Portcullis|Portcullis WAF|0.1.0|sqli.union|UNION reads another table|8|rt=1790000000123 externalId=... act=deny ...
//! ```
//!
//! Values are cut at the lengths of the extension dictionary. `\`, `|` and `=` are escaped as it says, line
//! breaks are `\n` and `\r`. Other control characters, and characters that some readers take for the end of a
//! line, have no escape there; they are written as `\xHH` of each of their bytes, which no escaped text can
//! look like, since a backslash of the value is doubled.

use std::fmt::Write as _;
use std::net::IpAddr;

use crate::{Action, Event};

/// Bytes of the custom texts `cs1` to `cs6`.
const CUSTOM_BYTES_MAX: usize = 4000;

impl Event {
    /// Appends the event in CEF and a newline to `out`. `version` is that of the product.
    pub fn write_cef_line(&self, version: &str, out: &mut Vec<u8>) {
        let line = cef(self, version);
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
}

fn cef(event: &Event, version: &str) -> String {
    let lead = event.lead();
    let mut out = String::with_capacity(1024);
    out.push_str("CEF:0|Portcullis|Portcullis WAF|");
    let rule = lead.rule.map(|rule| rule.to_string());
    let signature = match (&rule, lead.kind, &event.verdict.control) {
        (Some(rule), ..) => rule.as_str(),
        (None, "", Some(control)) => control.by.name(),
        (None, "", None) => event.refusal.as_deref().unwrap_or(event.verdict.action.name()),
        (None, kind, _) => kind,
    };
    let name = if lead.title.is_empty() { event.verdict.action.name() } else { &*lead.title };
    for part in [version, signature, name] {
        escape(cut(part, 512), Where::Header, &mut out);
        out.push('|');
    }
    let _ = write!(out, "{}|", event.gravity().cef());
    let mut fields = Fields { out, any: false };
    let Event { client, server, request, response, verdict, .. } = event;
    fields.number("rt", event.time.epoch_millis());
    fields.text("externalId", &event.request_id, 255);
    if event.count > 1 {
        fields.number("cnt", event.count);
    }
    fields.text("act", verdict.action.name(), 63);
    fields.text("outcome", if is_stopped(verdict.action) { "blocked" } else { "allowed" }, 63);
    fields.text("cat", &lead.class, 1023);
    fields.text("reason", &verdict.reason, 1023);
    fields.text("msg", &lead.title, 1023);
    fields.address("src", "c6a2", "Source IPv6 Address", &client.addr);
    fields.number("spt", client.port.into());
    fields.address("dst", "c6a3", "Destination IPv6 Address", &server.addr);
    fields.number("dpt", server.port.into());
    fields.text("dhost", &server.host, 1023);
    fields.text("app", if server.tls { "https" } else { "http" }, 31);
    fields.text("requestMethod", &request.method, 1023);
    fields.text("request", &request.target, 1023);
    let agent = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("user-agent"));
    fields.text("requestClientApplication", agent.map_or("", |header| &header.value), 1023);
    fields.number("in", request.body_bytes);
    fields.number("out", response.body_bytes);
    fields.custom("cs1", "rule", rule.as_deref().unwrap_or_default());
    fields.custom("cs2", "evidence", &lead.evidence);
    fields.custom("cs3", "location", &lead.location);
    fields.custom("cs4", "site", &event.site);
    fields.custom("cs5", "route", &event.route);
    fields.custom("cs6", "other findings", &others(event));
    if let Some(status) = response.status {
        fields.number("cn1", status.into());
        fields.text("cn1Label", "status", 1023);
    }
    if let Some(score) = event.scores.inbound_blocking.and_then(|score| u64::try_from(score).ok()) {
        fields.number("cn2", score);
        fields.text("cn2Label", "inbound score", 1023);
    }
    fields.out
}

/// `sqli.union query:q; 942100 ARGS:q; ...`, as many as there is room for.
fn others(event: &Event) -> String {
    let mut out = String::new();
    for other in event.others() {
        let rule = other.rule.map(|rule| rule.to_string());
        let separator = if out.is_empty() { "" } else { "; " };
        let one = format!("{separator}{} {}", rule.as_deref().unwrap_or(other.kind), other.location);
        if out.len() + one.len() > CUSTOM_BYTES_MAX {
            break;
        }
        out.push_str(&one);
    }
    out
}

fn is_stopped(action: Action) -> bool {
    !matches!(action, Action::Pass | Action::Detect)
}

/// The extension as it grows.
struct Fields {
    out: String,
    any: bool,
}

impl Fields {
    /// Nothing for an empty value.
    fn text(&mut self, key: &str, value: &str, bytes_max: usize) {
        if value.is_empty() {
            return;
        }
        if self.any {
            self.out.push(' ');
        }
        self.any = true;
        self.out.push_str(key);
        self.out.push('=');
        escape(cut(value, bytes_max), Where::Extension, &mut self.out);
    }

    fn number(&mut self, key: &str, value: u64) {
        self.text(key, &value.to_string(), 20);
    }

    fn custom(&mut self, key: &str, label: &str, value: &str) {
        if !value.is_empty() {
            self.text(key, value, CUSTOM_BYTES_MAX);
            self.text(&format!("{key}Label"), label, 1023);
        }
    }

    /// `src` and `dst` hold IPv4 addresses alone; those of IPv6 have fields of their own.
    fn address(&mut self, v4: &str, v6: &str, label: &str, address: &str) {
        match address.parse::<IpAddr>().map(|address| address.to_canonical()) {
            Ok(IpAddr::V4(address)) => self.text(v4, &address.to_string(), 16),
            Ok(IpAddr::V6(address)) => self.custom(v6, label, &address.to_string()),
            Err(_) => {}
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Where {
    Header,
    Extension,
}

fn escape(text: &str, place: Where, out: &mut String) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '|' if place == Where::Header => out.push_str("\\|"),
            '=' if place == Where::Extension => out.push_str("\\="),
            '\n' if place == Where::Extension => out.push_str("\\n"),
            '\r' if place == Where::Extension => out.push_str("\\r"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(out, "\\x{byte:02x}");
                }
            }
            c => out.push(c),
        }
    }
}

/// At most so many bytes of a text, whole characters.
fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
