//! Open Cybersecurity Schema Framework 1.4: class Detection Finding (2004) with the profile Security Control.
//!
//! That class has places for what was found, by which analytic, in which request, and what was done about it.
//! HTTP Activity (4002) is for logs of all requests, and has no place for evidence.

use std::net::IpAddr;

use portcullis_types::RuleId;
use serde_json::{Map, Value, json};

use crate::{Action, Event, Gravity, Lead};

/// The version of the schema.
const OCSF_VERSION: &str = "1.4.0";
/// Findings and matches that are evidence.
const EVIDENCES_MAX: usize = 16;
/// The methods that the schema lists.
const METHODS: [&str; 8] = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT", "TRACE"];
/// Create: each event is a finding of its own.
const ACTIVITY_CREATE: u32 = 1;
const CLASS: u32 = 2004;

impl Event {
    /// Appends the event as an OCSF object and a newline to `out`. `version` is that of the product.
    pub fn write_ocsf_line(&self, version: &str, out: &mut Vec<u8>) {
        // A tree of texts and numbers can always be written.
        out.extend_from_slice(ocsf(self, version).to_string().as_bytes());
        out.push(b'\n');
    }
}

fn ocsf(event: &Event, version: &str) -> Value {
    let lead = event.lead();
    let gravity = event.gravity();
    let (severity_id, severity) = gravity.ocsf();
    let (action_id, action, disposition_id, disposition) = outcome(event.verdict.action);
    let product = json!({ "name": "Portcullis", "vendor_name": "Portcullis", "version": version });
    let mut metadata = json!({
        "version": OCSF_VERSION,
        "product": product,
        "profiles": ["security_control"],
        "uid": event.request_id,
        "log_name": "events",
    });
    if let Some(trace) = &event.trace_id {
        metadata["correlation_uid"] = trace.as_str().into();
    }
    let mut out = json!({
        "activity_id": ACTIVITY_CREATE,
        "activity_name": "Create",
        "category_uid": 2,
        "category_name": "Findings",
        "class_uid": CLASS,
        "class_name": "Detection Finding",
        "type_uid": CLASS * 100 + ACTIVITY_CREATE,
        "type_name": "Detection Finding: Create",
        "time": event.time.epoch_millis(),
        "severity_id": severity_id,
        "severity": severity,
        "status_id": 1,
        "status": "New",
        "message": event.summary(),
        "action_id": action_id,
        "action": action,
        "disposition_id": disposition_id,
        "disposition": disposition,
        "metadata": metadata,
        "finding_info": finding_info(event, &lead),
        "evidences": evidences(event, &lead),
        "resources": [{ "type": "site", "name": &*event.site }],
        "unmapped": {
            "site": &*event.site,
            "route": &*event.route,
            "mode": event.mode.name(),
            "engine": event.engine.name(),
            "policy_generation": event.policy_generation,
            "method": event.request.method,
        },
    });
    if matches!(gravity, Gravity::Stopped | Gravity::Passed) {
        out["firewall_rule"] = firewall_rule(event, &lead);
    }
    if event.count > 1 {
        out["count"] = event.count.into();
    }
    if let Some(status) = event.response.status {
        out["status_code"] = status.to_string().into();
    }
    if !event.verdict.reason.is_empty() {
        out["status_detail"] = event.verdict.reason.as_str().into();
    }
    out
}

/// `action_id`, `disposition_id` and their captions.
fn outcome(action: Action) -> (u8, &'static str, u8, &'static str) {
    match action {
        Action::Pass => (1, "Allowed", 1, "Allowed"),
        Action::Detect => (1, "Allowed", 15, "Detected"),
        Action::Deny | Action::Redirect | Action::Proxy => (2, "Denied", 2, "Blocked"),
        Action::Drop => (2, "Denied", 6, "Dropped"),
        Action::Refuse => (2, "Denied", 25, "Rejected"),
    }
}

fn finding_info(event: &Event, lead: &Lead<'_>) -> Value {
    let title = if lead.title.is_empty() { event.verdict.action.name() } else { &*lead.title };
    let mut info = json!({
        "uid": event.request_id,
        "title": title,
        "created_time": event.time.epoch_millis(),
    });
    if !event.verdict.reason.is_empty() {
        info["desc"] = event.verdict.reason.as_str().into();
    }
    if !lead.class.is_empty() {
        info["types"] = json!([lead.class]);
    }
    if let Some(analytic) = analytic(lead) {
        info["analytic"] = analytic;
    }
    info
}

/// Rules are of type 1 (Rule); the semantic detector is of type 99 (Other), since the schema has no word for
/// parsers.
fn analytic(lead: &Lead<'_>) -> Option<Value> {
    match (lead.rule, lead.kind) {
        (Some(rule), _) => {
            Some(json!({ "type_id": 1, "type": "Rule", "uid": rule.to_string(), "name": lead.title }))
        }
        (None, "") => None,
        (None, kind) => Some(json!({ "type_id": 99, "type": "Parser", "uid": kind, "name": lead.title })),
    }
}

fn firewall_rule(event: &Event, lead: &Lead<'_>) -> Value {
    let uid = lead.rule.or(event.verdict.rule_id).map(|RuleId(id)| id.to_string());
    let mut rule = json!({ "uid": uid.as_deref().unwrap_or(lead.kind), "name": lead.title });
    for (key, value) in
        [("condition", &lead.class), ("match_location", &lead.location), ("match_details", &lead.evidence)]
    {
        match (key, &**value) {
            (_, "") => {}
            // A list of the texts that matched.
            ("match_details", text) => rule[key] = json!([text]),
            (key, text) => rule[key] = text.into(),
        }
    }
    rule
}

/// First the request with the finding that decided, then one entry for each other finding.
fn evidences(event: &Event, lead: &Lead<'_>) -> Vec<Value> {
    let mut first = request(event);
    first.insert("data".into(), data(lead));
    let others = event.others().take(EVIDENCES_MAX - 1).map(|other| json!({ "data": data(&other) }));
    std::iter::once(Value::Object(first)).chain(others).collect()
}

fn data(lead: &Lead<'_>) -> Value {
    let mut data = Map::new();
    let rule = lead.rule.map(|RuleId(id)| id.to_string());
    for (key, value) in [
        ("class", &*lead.class),
        ("kind", lead.kind),
        ("rule", rule.as_deref().unwrap_or_default()),
        ("title", &lead.title),
        ("location", &lead.location),
        ("evidence", &lead.evidence),
    ] {
        if !value.is_empty() {
            data.insert(key.into(), value.into());
        }
    }
    data.into()
}

fn request(event: &Event) -> Map<String, Value> {
    let Event { client, server, request, response, .. } = event;
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let header = |name: &str| request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
    let mut url = json!({ "path": path, "scheme": if server.tls { "https" } else { "http" } });
    if !query.is_empty() {
        url["query_string"] = query.into();
    }
    if !server.host.is_empty() {
        url["hostname"] = server.host.as_str().into();
    }
    let headers: Vec<Value> =
        request.headers.iter().map(|header| json!({ "name": header.name, "value": header.value })).collect();
    let mut http_request = json!({
        "uid": event.request_id,
        "version": request.protocol,
        "url": url,
        "http_headers": headers,
    });
    if METHODS.contains(&&*request.method) {
        http_request["http_method"] = request.method.as_str().into();
    }
    if let Some(agent) = header("user-agent") {
        http_request["user_agent"] = agent.value.as_str().into();
    }
    // Addresses alone: clients write other things there as well.
    let is_address = |text: &&String| text.parse::<IpAddr>().is_ok();
    let forwarded: Vec<&String> = client.forwarded_for.iter().filter(is_address).collect();
    if !forwarded.is_empty() {
        http_request["x_forwarded_for"] = json!(forwarded);
    }
    let mut out = Map::new();
    out.insert("http_request".into(), http_request);
    if let Some(status) = response.status {
        out.insert("http_response".into(), json!({ "code": status, "body_length": response.body_bytes }));
    }
    out.extend(endpoint(&client.addr, client.port, "").map(|mut source| {
        if let Some(country) = &client.country {
            source["location"] = json!({ "country": country });
        }
        if let Some(asn) = client.asn {
            source["autonomous_system"] = json!({ "number": asn });
        }
        ("src_endpoint".to_owned(), source)
    }));
    out.extend(endpoint(&server.addr, server.port, &server.host).map(|to| ("dst_endpoint".to_owned(), to)));
    out
}

/// Needs an address or a name (constraint `at_least_one`).
fn endpoint(address: &str, port: u16, host: &str) -> Option<Value> {
    let mut out = Map::new();
    if let Ok(address) = address.parse::<IpAddr>() {
        out.insert("ip".into(), address.to_string().into());
    }
    if !host.is_empty() {
        out.insert("hostname".into(), host.into());
    }
    if out.is_empty() {
        return None;
    }
    if port != 0 {
        out.insert("port".into(), port.into());
    }
    Some(out.into())
}
