//! OTLP logs, read by the official protocol buffers of OpenTelemetry (Python).

use serde_json::Value;

use crate::common::*;

const DECODE: &str = "
import sys
from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
request = ExportLogsServiceRequest.FromString(sys.stdin.buffer.read())
print(MessageToJson(request))
";

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
    let Some(name) =
        python_with("opentelemetry.proto.collector.logs.v1.logs_service_pb2", "opentelemetry-proto", true)
    else {
        return;
    };
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
    let document: Value = serde_json::from_str(&python(&name, DECODE, &requests[0].body)).unwrap();
    let resource = &document["resourceLogs"][0];
    assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "edge");
    let record = &resource["scopeLogs"][0]["logRecords"][0];
    assert_eq!(
        (&record["severityText"], &record["severityNumber"]),
        (&"WARN".into(), &"SEVERITY_NUMBER_WARN".into())
    );
    assert_eq!(record["timeUnixNano"], "1790000000123000000");
    // Sixteen bytes, in base 64.
    assert_eq!(record["traceId"], "S/kvNXezTaajzpKdDg5HNg==");
    let body: Value = serde_json::from_str(record["body"]["stringValue"].as_str().unwrap()).unwrap();
    assert_eq!((&body["request_id"], &body["findings"][0]["evidence"]), (&"r1".into(), &EVIDENCE.into()));
    let attribute = |name: &str| {
        let found =
            record["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == name);
        found.unwrap_or_else(|| panic!("{name} in {record:#}"))["value"].clone()
    };
    assert_eq!(attribute("portcullis.finding.class")["stringValue"], "sqli");
    assert_eq!(attribute("portcullis.finding.evidence")["stringValue"], EVIDENCE);
    assert_eq!(attribute("portcullis.finding.location")["stringValue"], "query:q");
    assert_eq!(attribute("client.address")["stringValue"], "192.0.2.7");
    assert_eq!(attribute("http.response.status_code")["intValue"], "403");
    assert_eq!(attribute("portcullis.findings")["arrayValue"]["values"].as_array().unwrap().len(), 2);
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
