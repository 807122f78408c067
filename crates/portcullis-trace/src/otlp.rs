//! Traces in the JSON form of OTLP 1: names in lower camel case, ids in hex, 64-bit numbers as texts.

use serde_json::{Value as Json, json};

use crate::context::digits;
use crate::{Trace, Value};

/// The body of one request to `/v1/traces`.
pub(crate) fn body(service: &str, version: &str, traces: &[Trace]) -> Vec<u8> {
    let spans: Vec<Json> = traces.iter().flat_map(spans).collect();
    let resource = attributes(&[
        ("service.name", Value::from(service.to_string())),
        ("service.version", Value::from(version.to_string())),
    ]);
    let document = json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{ "scope": { "name": "portcullis", "version": version }, "spans": spans }],
    }] });
    // A tree of texts and numbers can always be written.
    serde_json::to_vec(&document).unwrap_or_default()
}

fn spans(trace: &Trace) -> impl Iterator<Item = Json> + '_ {
    trace.spans.iter().enumerate().map(move |(number, span)| {
        let begin = trace.unix_nanos(span.begin);
        let mut json = json!({
            "traceId": digits(&trace.context.trace),
            "spanId": digits(&trace.span_id(number)),
            "name": span.name,
            "kind": span.kind as u8,
            "startTimeUnixNano": begin.to_string(),
            "endTimeUnixNano": (begin + span.duration.as_nanos()).to_string(),
            "attributes": attributes(&span.attributes),
            "status": if span.failed { json!({ "code": 2 }) } else { json!({}) },
        });
        let parent = if number == 0 { trace.parent } else { Some(trace.span_id(0)) };
        if let Some(parent) = parent {
            json["parentSpanId"] = digits(&parent).into();
        }
        if !trace.state.is_empty() {
            json["traceState"] = trace.state.as_str().into();
        }
        json
    })
}

fn attributes(attributes: &[(&'static str, Value)]) -> Vec<Json> {
    let value = |value: &Value| match value {
        Value::Text(text) => json!({ "stringValue": text }),
        Value::Number(number) => json!({ "intValue": number.to_string() }),
    };
    attributes.iter().map(|(key, of)| json!({ "key": key, "value": value(of) })).collect()
}
