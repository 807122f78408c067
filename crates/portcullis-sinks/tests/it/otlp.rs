//! OTLP logs, read by the official protocol buffers of OpenTelemetry.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::logs::v1::SeverityNumber;
use prost::Message;

use crate::common::*;

/// The value of an attribute.
fn attribute(attributes: &[KeyValue], name: &str) -> Value {
    let found = attributes.iter().find(|attribute| attribute.key == name);
    found.and_then(|found| found.value.clone()?.value).unwrap_or_else(|| panic!("{name} in {attributes:#?}"))
}

fn text(text: &str) -> Value {
    Value::StringValue(text.to_owned())
}

/// What a collector answers that rejects some records (`partial_success`).
fn rejecting(count: u8) -> Vec<u8> {
    vec![0x0a, 0x02, 0x08, count]
}

fn sink(port: u16, more: &str) -> String {
    format!(
        "[[events.sinks]]\nkind = \"otlp\"\nurl = \"http://127.0.0.1:{port}\"\nbatch_time = \"20ms\"\n{more}\n"
    )
}

#[test]
fn records_are_those_of_opentelemetry() {
    let server = HttpServer::start(|_, _, stream| ok(stream));
    let mut sinks = start(&sink(server.port, "service = \"edge\"\nheaders = { X-Key = \"hunter2\" }"));
    sinks.submit(event("r1"));
    sinks.submit(event("r2"));
    assert_eq!((sinks.end(PATIENCE), sinks.sent("otlp")), (0, 2));
    let requests = server.requests();
    assert!(requests[0].head.starts_with("POST /v1/logs HTTP/1.1\r\n"), "{}", requests[0].head);
    let head = requests[0].head.to_ascii_lowercase();
    assert!(
        head.contains("content-type: application/x-protobuf") && head.contains("x-key: hunter2"),
        "{head}"
    );
    let request = ExportLogsServiceRequest::decode(&requests[0].body[..]).unwrap();
    let logs = &request.resource_logs[0];
    let resource = logs.resource.as_ref().unwrap();
    assert_eq!(attribute(&resource.attributes, "service.name"), text("edge"));
    let record = &logs.scope_logs[0].log_records[0];
    assert_eq!((&*record.severity_text, record.severity_number()), ("WARN", SeverityNumber::Warn));
    assert_eq!(record.time_unix_nano, 1_790_000_000_123_000_000);
    let trace: String = record.trace_id.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(trace, "4bf92f3577b34da6a3ce929d0e0e4736");
    let Some(Value::StringValue(body)) = record.body.clone().and_then(|body| body.value) else { panic!() };
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&body["request_id"], &body["findings"][0]["evidence"]), (&"r1".into(), &EVIDENCE.into()));
    let attribute = |name: &str| attribute(&record.attributes, name);
    assert_eq!(attribute("portcullis.finding.class"), text("sqli"));
    assert_eq!(attribute("portcullis.finding.evidence"), text(EVIDENCE));
    assert_eq!(attribute("portcullis.finding.location"), text("query:q"));
    assert_eq!(attribute("client.address"), text("192.0.2.7"));
    assert_eq!(attribute("http.response.status_code"), Value::IntValue(403));
    let Value::ArrayValue(findings) = attribute("portcullis.findings") else { panic!() };
    assert_eq!(findings.values.len(), 2);
}

#[test]
fn what_a_collector_rejects_is_counted() {
    let server = HttpServer::start(|number, _, stream| match number {
        0 => answer(stream, "503 Later", "Retry-After: 0\r\n", b""),
        1 => answer(stream, "200 OK", "", &rejecting(1)),
        _ => answer(stream, "400 No", "", b""),
    });
    let mut sinks = start(&sink(server.port, "batch = 3"));
    (0..3).for_each(|number| sinks.submit(event(&format!("r{number}"))));
    eventually("the first batch", || (sinks.sent("otlp") == 2).then_some(()));
    assert_eq!(sinks.dropped("otlp", "refused"), 1);
    (0..3).for_each(|number| sinks.submit(event(&format!("s{number}"))));
    assert_eq!(sinks.end(PATIENCE), 0);
    assert_eq!((sinks.dropped("otlp", "refused"), sinks.sent("otlp")), (4, 2));
}
