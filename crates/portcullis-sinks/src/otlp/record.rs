//! Events as log records of OpenTelemetry. Attributes have the names of its semantic conventions where there
//! are any.

use portcullis_config::EventForm;
use portcullis_event::{Event, Lead};

use super::proto::*;
use crate::form::{self, VERSION};

/// Findings and matches in `portcullis.findings`, that of the lead included.
const FINDINGS_MAX: usize = 16;
/// The name of the kind of event (`event_name`).
const EVENT_NAME: &str = "portcullis.event";

/// The body of one request to `/v1/logs`.
pub(super) fn request<'e>(
    service: &str,
    form: EventForm,
    observed_nanos: u64,
    events: impl Iterator<Item = &'e Event>,
) -> ExportLogsServiceRequest {
    let mut resource = Attributes::default();
    resource.text("service.name", service);
    resource.text("service.version", VERSION);
    let scope = Scope { name: "portcullis".to_owned(), version: VERSION.to_owned() };
    let log_records = events.map(|event| record(event, form, observed_nanos)).collect();
    let scope_logs = vec![ScopeLogs { scope: Some(scope), log_records }];
    let resource = Some(Resource { attributes: resource.0 });
    ExportLogsServiceRequest { resource_logs: vec![ResourceLogs { resource, scope_logs }] }
}

fn record(event: &Event, form: EventForm, observed_nanos: u64) -> LogRecord {
    let (severity_number, severity_text) = event.gravity().otlp();
    LogRecord {
        time_unix_nano: event.time.epoch_millis().saturating_mul(1_000_000),
        severity_number,
        severity_text: severity_text.to_owned(),
        body: Some(AnyValueKind::Text(form::text(event, form)).into()),
        attributes: attributes(event),
        trace_id: event.trace_id.as_deref().and_then(trace_id).unwrap_or_default(),
        observed_time_unix_nano: observed_nanos,
        event_name: EVENT_NAME.to_owned(),
    }
}

fn attributes(event: &Event) -> Vec<KeyValue> {
    let Event { client, server, request, response, verdict, .. } = event;
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let agent = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("user-agent"));
    let control = verdict.control.as_ref().map(|control| format!("{}:{}", control.by.name(), control.name));
    let lead = event.lead();
    let mut out = Attributes::default();
    out.text("client.address", &client.addr);
    out.number("client.port", client.port.into());
    out.text("client.geo.country.iso_code", client.country.as_deref().unwrap_or_default());
    out.text("server.address", &server.host);
    out.number("server.port", server.port.into());
    out.text("http.request.method", &request.method);
    out.text("url.scheme", if server.tls { "https" } else { "http" });
    out.text("url.path", path);
    out.text("url.query", query);
    out.text("user_agent.original", agent.map_or("", |header| &header.value));
    if let Some(status) = response.status {
        out.number("http.response.status_code", status.into());
    }
    out.text("portcullis.request_id", &event.request_id);
    out.text("portcullis.site", &event.site);
    out.text("portcullis.route", &event.route);
    out.text("portcullis.verdict", verdict.action.name());
    out.text("portcullis.reason", &verdict.reason);
    out.text("portcullis.control", control.as_deref().unwrap_or_default());
    out.text("portcullis.summary", &event.summary());
    finding(&lead, "portcullis.finding.", &mut out);
    let others: Vec<AnyValue> = std::iter::once(lead)
        .filter(|lead| lead.rule.is_some() || !lead.kind.is_empty())
        .chain(event.others())
        .take(FINDINGS_MAX)
        .map(|lead| {
            let mut map = Attributes::default();
            finding(&lead, "", &mut map);
            AnyValueKind::Map(KeyValueList { values: map.0 }).into()
        })
        .collect();
    if !others.is_empty() {
        out.add("portcullis.findings", AnyValueKind::Array(ArrayValue { values: others }));
    }
    out.0
}

fn finding(lead: &Lead<'_>, prefix: &str, out: &mut Attributes) {
    for (name, value) in [
        ("class", &*lead.class),
        ("kind", lead.kind),
        ("title", &lead.title),
        ("evidence", &lead.evidence),
        ("location", &lead.location),
    ] {
        out.text(&format!("{prefix}{name}"), value);
    }
    if let Some(rule) = lead.rule {
        out.number(&format!("{prefix}rule"), rule.0.into());
    }
}

#[derive(Default)]
struct Attributes(Vec<KeyValue>);

impl Attributes {
    /// Nothing for an empty text.
    fn text(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.add(key, AnyValueKind::Text(value.to_owned()));
        }
    }

    fn number(&mut self, key: &str, value: i64) {
        self.add(key, AnyValueKind::Int(value));
    }

    fn add(&mut self, key: &str, value: AnyValueKind) {
        self.0.push(KeyValue { key: key.to_owned(), value: Some(value.into()) });
    }
}

/// Sixteen bytes from their digits.
fn trace_id(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if digits.len() != 32 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::trace_id;

    #[test]
    fn trace_ids_have_sixteen_bytes() {
        assert_eq!(
            trace_id("4bf92f3577b34da6a3ce929d0e0e4736").map(|id| (id.len(), id[0])),
            Some((16, 0x4b))
        );
        for wrong in ["", "4bf9", "4bf92f3577b34da6a3ce929d0e0e473g", "é4bf92f3577b34da6a3ce929d0e0e473"] {
            assert_eq!(trace_id(wrong), None, "{wrong}");
        }
    }
}
