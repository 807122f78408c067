//! What is compared with a declared API, by what happens to each respect in which requests differ.

use std::sync::Arc;

use portcullis_declared::{Api, Settings};
use portcullis_event::{Action, DetectionMode};
use portcullis_inspect::{
    ClassAction, DeviationActions, Inspector, Outcome, Report, SemanticPolicy, SiteApi, Step,
};
use portcullis_semantic::{Detectors, detectors};

use crate::common::{begin, inspector, plan, request_head, semantic};
use crate::descriptors::{shop, whole};

const OPENAPI: &str = r#"{"openapi": "3.1.0",
    "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    "security": [{"token": []}],
    "paths": {"/a": {"post": {
        "parameters": [{"name": "n", "in": "query", "schema": {"type": "integer"}}],
        "requestBody": {"content": {"application/json": {"schema": {"type": "integer"}}}}}}}}"#;
const OPENRPC: &str = r#"{"openrpc": "1.2.6", "methods": [{"name": "add", "params": [
    {"name": "a", "schema": {"type": "integer"}}]}]}"#;
const TOOLS: &str = r#"{"tools": [{"name": "now"}]}"#;
const GRAPHQL: &str = "type Query { a: Int }";

const ACTIONS: [ClassAction; 3] = [ClassAction::Off, ClassAction::Log, ClassAction::Block];

fn with(description: &[u8], actions: DeviationActions) -> Arc<Inspector> {
    let api = Arc::new(Api::compile_file(description, &Settings::default()).unwrap());
    let detectors = Arc::new(Detectors::of(vec![Box::new(detectors::api::Api)]).unwrap());
    let inspector = inspector(plan("SecRuleEngine On\nSecRequestBodyAccess On"))
        .with_api(SiteApi::new(api, actions).without_fields());
    Arc::new(
        inspector.with_semantic(DetectionMode::Semantic, semantic(&detectors, SemanticPolicy::default())),
    )
}

fn send(inspector: &Arc<Inspector>, line: &str, content_type: &str, body: &[u8]) -> Report {
    let mut inspection = begin(inspector);
    let length = body.len();
    let text = format!(
        "{line} HTTP/1.1\r\nHost: h\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
    );
    if inspection.request_head(&request_head(&text), None) == Step::Continue {
        inspection.request_body(body);
        inspection.request_end(false);
    }
    inspection.finish(&Outcome::default())
}

fn of_kind(actions: &DeviationActions, kind: &str) -> ClassAction {
    match kind {
        "api.unknown-path" | "api.method" => actions.unknown_path,
        "api.unknown-parameter" => actions.unknown_parameter,
        "api.parameter" => actions.parameters,
        "api.body" => actions.body,
        "api.security" => actions.security,
        other => panic!("no request here has {other}"),
    }
}

/// A finding is there if and only if its aspect is on, and refuses if and only if that says so, in every kind
/// of description.
#[test]
fn found_if_and_only_if_on() {
    let call = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc": "2.0", "method": "{method}", "params": {params}}}"#)
    };
    let both = format!("[{}, {}]", call("add", r#"["x"]"#), call("drop", "[]"));
    let tools = format!("[{}, {}]", call("tools/call", r#"{"name": "none"}"#), call("drop", "[]"));
    let shop = shop();
    let message = [whole(1, 1), whole(99, 1)].concat();
    let frame = [&[0, 0, 0, 0, message.len() as u8][..], &message].concat();
    let json = "application/json";
    for (description, line, content_type, body, kinds) in [
        (
            OPENAPI.as_bytes(),
            "POST /a?n=x&m=1",
            json,
            &br#""text""#[..],
            &["api.parameter", "api.unknown-parameter", "api.security", "api.body"][..],
        ),
        (OPENAPI.as_bytes(), "POST /b", json, b"1", &["api.unknown-path"]),
        (OPENRPC.as_bytes(), "POST /", json, both.as_bytes(), &["api.body", "api.method"]),
        (TOOLS.as_bytes(), "POST /", json, tools.as_bytes(), &["api.body", "api.method"]),
        (
            GRAPHQL.as_bytes(),
            "POST /",
            json,
            br#"{"query": "mutation { a } query { b }"}"#,
            &["api.method", "api.body"],
        ),
        (&shop, "POST /shop.v1.Orders/None", "application/grpc", &frame, &["api.unknown-path"]),
        (
            &shop,
            "POST /shop.v1.Orders/Place",
            "application/grpc",
            &frame,
            &["api.body", "api.unknown-parameter"],
        ),
    ] {
        for number in 0..3usize.pow(5) {
            let action = |place: u32| ACTIONS[number / 3usize.pow(place) % 3];
            let actions = DeviationActions {
                unknown_path: action(0),
                unknown_parameter: action(1),
                parameters: action(2),
                body: action(3),
                security: action(4),
                responses: ClassAction::Off,
            };
            let report = send(&with(description, actions), line, content_type, body);
            let findings = report.event.iter().flat_map(|event| &event.findings);
            let mut found: Vec<&str> = findings.map(|finding| &*finding.kind).collect();
            // A request that its head has refused has no body.
            let is_head = |kind: &&str| {
                let of_message = *kind == "api.unknown-parameter" && content_type != json;
                !of_message && !matches!(*kind, "api.body" | "api.method")
            };
            let blocks = |kind: &&&str| of_kind(&actions, kind) == ClassAction::Block;
            let head_blocks = kinds.iter().filter(|kind| is_head(kind)).any(|kind| blocks(&kind));
            let is_on = |kind: &&&str| of_kind(&actions, kind) != ClassAction::Off;
            let is_seen = |kind: &&&str| is_head(kind) || !head_blocks;
            let mut expected: Vec<&str> = kinds.iter().filter(is_on).filter(is_seen).copied().collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{line} {actions:?}");
            let blocked = kinds.iter().any(|kind| blocks(&kind));
            assert_eq!(report.action == Action::Deny, blocked, "{line} {actions:?}");
        }
    }
}

/// However much a client adds of what is only reported, what is refused is refused.
#[test]
fn reports_hide_no_refusal() {
    let off = DeviationActions {
        unknown_path: ClassAction::Off,
        unknown_parameter: ClassAction::Off,
        parameters: ClassAction::Off,
        body: ClassAction::Off,
        security: ClassAction::Off,
        responses: ClassAction::Off,
    };
    let (log, block) = (ClassAction::Log, ClassAction::Block);
    let wrong = r#"{"jsonrpc": "2.0", "method": "add", "params": ["x"]}, "#;
    let shop = shop();
    for count in [0, 1, 40, 90] {
        let batch = format!("[{}{{\"jsonrpc\": \"2.0\", \"method\": \"drop\"}}]", wrong.repeat(count));
        let actions = DeviationActions { unknown_path: block, body: log, ..off };
        let inspector = with(OPENRPC.as_bytes(), actions);
        let report = send(&inspector, "POST /", "application/json", batch.as_bytes());
        assert_eq!(report.action, Action::Deny, "{count} wrong parameters");
        let message = [whole(1, 1).repeat(count), whole(99, 1)].concat();
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        let frame = [&[0][..], &length, &message].concat();
        let actions = DeviationActions { unknown_parameter: block, body: log, ..off };
        let report = send(&with(&shop, actions), "POST /shop.v1.Orders/Place", "application/grpc", &frame);
        assert_eq!(report.action, Action::Deny, "{count} wrong fields");
    }
}
