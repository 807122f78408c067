//! One record in every format. The expected JSON has the members that ModSecurity 2.9.7 and libmodsecurity
//! 3.0.9 wrote for the same request and rule.

use std::sync::Arc;

use portcullis_audit::{
    Action, AuditLink, AuditRule, Format, Hidden, Message, Record, RequestPart, ResponsePart, file_name,
    index_line,
};
use portcullis_event::{EngineMode, RuleEffect, RuleInfo, RuleMatch, Timestamp, modsecurity_message};
use portcullis_types::{Phase, RuleId, Severity};
use serde_json::{Value, json};

fn record() -> Record {
    let found = RuleMatch {
        rule: Arc::new(RuleInfo {
            rule_id: RuleId(10),
            phase: Phase::RequestBody,
            severity: Some(Severity::Critical),
            operator: "rx".into(),
            argument: "attack".into(),
            transformations: [].into(),
            tags: ["attack-test".into()].into(),
            ver: Some("T/1.0".into()),
            rev: Some("2".into()),
            maturity: Some(3),
            accuracy: None,
            file: "rules.conf".into(),
            line: 9,
        }),
        message: "Attack found".into(),
        data: "Matched attack in ARGS:q".into(),
        target: "ARGS:q".into(),
        value: "attack one".into(),
        span: None,
        points: 0,
        effect: RuleEffect::None,
    };
    let rule = AuditRule {
        links: vec![AuditLink {
            text: "SecRule \"ARGS\" \"@rx attack\" \"id:10\"".into(),
            operator: "rx".into(),
            argument: "attack".into(),
            negated: false,
        }],
        id: 10,
        rev: Some("2".into()),
        ver: Some("T/1.0".into()),
        severity: Some(2),
        accuracy: None,
        maturity: Some(3),
        phase: 2,
        tags: vec!["attack-test".into()],
        file: "rules.conf".into(),
        line: 9,
    };
    let pair = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
    Record {
        parts: "ABCEFHK".into(),
        time: Timestamp::from_epoch_millis(1_790_000_000_123),
        duration_us: 77,
        unique_id: "id-one".into(),
        client: ("192.0.2.1".into(), 4711),
        server: ("192.0.2.2".into(), 80),
        host: "shop.example".into(),
        request: RequestPart {
            line: b"GET /get?q=attack+one HTTP/1.1".to_vec(),
            method: b"GET".to_vec(),
            target: b"/get?q=attack+one".to_vec(),
            protocol: b"HTTP/1.1".to_vec(),
            headers: vec![pair("Host", "shop.example"), pair("X", "1"), pair("X", "\"2\"")],
            body: None,
            fake_body: None,
        },
        response: Some(ResponsePart {
            protocol: b"HTTP/1.1".to_vec(),
            status: 403,
            headers: vec![pair("Content-Type", "text/plain")],
            body: Some(b"hello\xff".to_vec()),
        }),
        bytes_sent: 6,
        body_error: Some("JSON parsing error: unexpected 'x' (at byte 3)".into()),
        messages: vec![Message { text: modsecurity_message(None, false, &found), found }],
        action: Some(Action { phase: 2, message: "Pattern match \"attack\" at ARGS:q.".into() }),
        components: ["OWASP_CRS/4.25.0".to_owned()].into(),
        server_software: "S/1".into(),
        web_app: None,
        sensor_id: None,
        engine: EngineMode::Blocking,
        hidden: Hidden::default(),
        uploads: None,
        rules: vec![Arc::new(rule)],
    }
}

const PRODUCER: &str = concat!("Portcullis/", env!("CARGO_PKG_VERSION"));

fn written(format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    format.write(&record(), "0a1b2c3d", &mut out);
    out
}

#[test]
fn native() {
    let expected = format!(
        "--0a1b2c3d-A--\n[21/Sep/2026:14:13:20.123000 +0000] id-one 192.0.2.1 4711 192.0.2.2 80\n\
         --0a1b2c3d-B--\nGET /get?q=attack+one HTTP/1.1\nHost: shop.example\nX: 1\nX: \"2\"\n\n\
         --0a1b2c3d-F--\nHTTP/1.1 403 Forbidden\nContent-Type: text/plain\n\n\
         --0a1b2c3d-E--\nhello\\xff\n\
         --0a1b2c3d-H--\nMessage: JSON parsing error: unexpected 'x' (at byte 3)\nMessage: Pattern match \"attack\" at ARGS:q. [file \"rules.conf\"] [line \"9\"] [id \"10\"] [rev \"2\"] \
         [msg \"Attack found\"] [data \"Matched attack in ARGS:q\"] [severity \"CRITICAL\"] [ver \"T/1.0\"] [maturity \"3\"] \
         [tag \"attack-test\"]\nAction: Intercepted (phase 2)\nStopwatch: 1790000000123000 77 (- - -)\n\
         Response-Body-Transformed: Dechunked\nProducer: {PRODUCER}; OWASP_CRS/4.25.0.\nServer: S/1\n\
         Engine-Mode: \"ENABLED\"\n\n\
         --0a1b2c3d-K--\nSecRule \"ARGS\" \"@rx attack\" \"id:10\"\n\n\n--0a1b2c3d-Z--\n"
    );
    // The body goes out as it came.
    let shown = |format| {
        let bytes = written(format);
        let text = bytes.iter().map(|&b| if b == 0xff { "\\xff".into() } else { (b as char).to_string() });
        text.collect::<String>()
    };
    assert_eq!(shown(Format::Native), expected);
    assert_eq!(shown(Format::Native3), expected.replace("--0a1b2c3d-", "---0a1b2c3d---"));
}

#[test]
fn json_of_modsecurity_2() {
    let value: Value = serde_json::from_slice(&written(Format::Json)).unwrap();
    let message = "Pattern match \"attack\" at ARGS:q. [file \"rules.conf\"] [line \"9\"] [id \"10\"] [rev \"2\"] \
        [msg \"Attack found\"] [data \"Matched attack in ARGS:q\"] [severity \"CRITICAL\"] [ver \"T/1.0\"] [maturity \"3\"] \
        [tag \"attack-test\"]";
    let expected = json!({
        "transaction": {
            "time": "21/Sep/2026:14:13:20.123000 +0000", "transaction_id": "id-one",
            "remote_address": "192.0.2.1", "remote_port": 4711, "local_address": "192.0.2.2", "local_port": 80,
        },
        "request": {
            "request_line": "GET /get?q=attack+one HTTP/1.1",
            "headers": { "Host": "shop.example", "X": "1, \"2\"" },
        },
        "response": {
            "protocol": "HTTP/1.1", "status": 403, "headers": { "Content-Type": "text/plain" }, "body": "hello\\xff",
        },
        "audit_data": {
            "messages": ["JSON parsing error: unexpected 'x' (at byte 3)", message],
            "action": { "intercepted": true, "phase": 2, "message": "Pattern match \"attack\" at ARGS:q." },
            "response_body_dechunked": true,
            "producer": [PRODUCER, "OWASP_CRS/4.25.0"], "server": "S/1", "engine_mode": "ENABLED",
        },
        "matched_rules": [{
            "chain": false,
            "rules": [{
                "actionset": {
                    "id": "10", "rev": "2", "version": "T/1.0", "severity": 2, "maturity": 3, "phase": 2,
                    "is_chained": false, "tags": ["attack-test"],
                },
                "operator": { "operator": "rx", "operator_param": "attack", "target": "ARGS", "negated": false },
                "config": { "filename": "rules.conf", "line_num": 9 },
                "unparsed": "SecRule \"ARGS\" \"@rx attack\" \"id:10\"",
                "is_matched": true,
            }],
        }],
    });
    assert_eq!(value, expected);
}

#[test]
fn json_of_modsecurity_3() {
    let value: Value = serde_json::from_slice(&written(Format::Json3)).unwrap();
    let expected = json!({ "transaction": {
        "client_ip": "192.0.2.1", "time_stamp": "Mon Sep 21 14:13:20 2026", "server_id": "S/1", "client_port": 4711,
        "host_ip": "192.0.2.2", "host_port": 80, "unique_id": "id-one",
        "request": {
            "method": "GET", "http_version": 1.1, "uri": "/get?q=attack+one", "body": "",
            "headers": { "Host": "shop.example", "X": "1, \"2\"" },
        },
        "response": { "body": "hello\\xff", "http_code": 403, "headers": { "Content-Type": "text/plain" } },
        "producer": {
            "modsecurity": PRODUCER, "connector": PRODUCER, "secrules_engine": "Enabled",
            "components": ["OWASP_CRS/4.25.0"],
        },
        "messages": [{ "message": "Attack found", "details": {
            "match": "Matched \"Operator `Rx' with parameter `attack' against variable `ARGS:q' (Value: `attack one' )",
            "reference": "", "ruleId": "10", "file": "rules.conf", "lineNumber": "9", "data": "Matched attack in ARGS:q",
            "severity": "2", "ver": "T/1.0", "rev": "2", "tags": ["attack-test"], "maturity": "3", "accuracy": "0",
        } }],
    } });
    assert_eq!(value, expected);
}

#[test]
fn index() {
    let mut record = record();
    let line = index_line(&record, &file_name(&record), 42, &[0xab; 16]);
    assert_eq!(
        line,
        "shop.example 192.0.2.1 - - [21/Sep/2026:14:13:20.123000 +0000] \"GET /get?q=attack+one HTTP/1.1\" 403 6 \"-\" \"-\" \
         id-one \"-\" /20260921/20260921-1413/20260921-141320-id-one 0 42 md5:abababababababababababababababab \n"
    );
    record.request.line = vec![b'x'; 9000];
    let line = index_line(&record, "/f", 42, &[0xab; 16]);
    assert!(line.len() <= 3980 && line.ends_with(" L\n"), "{} bytes", line.len());
    record.unique_id = "../../etc/x".into();
    assert!(file_name(&record).ends_with("20260921-141320-______etc_x"));
}
