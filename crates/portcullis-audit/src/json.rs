//! JSON with the names of ModSecurity 2, one line a record.
//!
//! Headers are an object: of headers with the same name the last would win in most readers, so their values
//! are joined with a comma, as HTTP allows. Bytes that are not UTF-8 are shown as `\xHH`.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::show::{quoted, text};
use crate::{AuditRule, Record};

pub(crate) fn write(record: &Record, out: &mut Vec<u8>) {
    let mut top = Map::new();
    top.insert(
        "transaction".into(),
        json!({
            "time": record.time.common_log(),
            "transaction_id": record.unique_id,
            "remote_address": record.client.0,
            "remote_port": record.client.1,
            "local_address": record.server.0,
            "local_port": record.server.1,
        }),
    );
    top.insert("request".into(), request(record));
    top.insert("response".into(), response(record));
    top.insert("audit_data".into(), if record.has('H') { trailer(record) } else { json!({}) });
    if let Some(uploads) = record.uploads.as_ref().filter(|_| record.has('J')) {
        let unknown = b"<Unknown Content-Type>".as_slice();
        let info: Vec<Value> = uploads
            .iter()
            .map(|upload| {
                json!({
                    "file_size": upload.size,
                    "file_name": quoted(&upload.name),
                    "content_type": text(upload.content_type.as_deref().unwrap_or(unknown)),
                })
            })
            .collect();
        let total: u64 = uploads.iter().map(|upload| upload.size).sum();
        top.insert("uploads".into(), json!({ "info": info, "total": total }));
    }
    if record.has('K') {
        top.insert("matched_rules".into(), record.rules.iter().map(|rule| matched_rule(rule)).collect());
    }
    line(&top, out);
}

/// Appends `value` and a newline.
pub(crate) fn line(value: &impl Serialize, out: &mut Vec<u8>) {
    let before = out.len();
    // Writing to memory does not fail, and every key is a string.
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(before);
    }
    out.push(b'\n');
}

pub(crate) fn headers(pairs: &[(Vec<u8>, Vec<u8>)]) -> Value {
    let mut map = Map::new();
    for (name, value) in pairs {
        let value = text(value);
        match map.get_mut(&text(name)) {
            Some(Value::String(present)) => {
                present.push_str(", ");
                present.push_str(&value);
            }
            _ => drop(map.insert(text(name), Value::String(value))),
        }
    }
    Value::Object(map)
}

fn request(record: &Record) -> Value {
    let request = &record.request;
    let mut map = Map::new();
    if record.has('B') {
        map.insert("request_line".into(), text(&request.line).into());
        map.insert("headers".into(), headers(&request.headers));
    }
    let whole = record.has('C') || (record.has('I') && request.fake_body.is_none());
    if let Some(body) = request.body.as_ref().filter(|_| whole) {
        // A list, since ModSecurity writes it as it comes, in pieces.
        let pieces: Vec<Value> = if body.is_empty() { Vec::new() } else { vec![text(body).into()] };
        map.insert("body".into(), pieces.into());
    }
    if let Some(body) = request.fake_body.as_ref().filter(|_| record.has('I')) {
        map.insert("fake_body".into(), text(body).into());
    }
    Value::Object(map)
}

fn response(record: &Record) -> Value {
    let mut map = Map::new();
    if let Some(response) = &record.response {
        if record.has('F') {
            map.insert("protocol".into(), text(&response.protocol).into());
            map.insert("status".into(), response.status.into());
            map.insert("headers".into(), headers(&response.headers));
        }
        if let Some(body) = response.body.as_ref().filter(|_| record.has('E')) {
            map.insert("body".into(), text(body).into());
        }
    }
    Value::Object(map)
}

fn trailer(record: &Record) -> Value {
    let mut map = Map::new();
    let mut set = |name: &str, value: Value| drop(map.insert(name.to_owned(), value));
    if record.body_error.is_some() || !record.messages.is_empty() {
        let remark = record.body_error.as_deref();
        let texts = remark.into_iter().chain(record.messages.iter().map(|message| &*message.text));
        set("messages", texts.map(Value::from).collect());
    }
    if let Some(action) = &record.action {
        set("action", json!({ "intercepted": true, "phase": action.phase, "message": action.message }));
    }
    if record.has('E') && record.response.as_ref().is_some_and(|response| response.body.is_some()) {
        set("response_body_dechunked", true.into());
    }
    let producer = Value::from(record.producer());
    match record.components.is_empty() {
        true => set("producer", producer),
        false => {
            let components = record.components.iter().map(|component| Value::from(&**component));
            set("producer", std::iter::once(producer).chain(components).collect());
        }
    }
    set("server", (&*record.server_software).into());
    let hidden = &record.hidden;
    let mut sanitized = Map::new();
    for (name, values) in [
        ("args", &hidden.args),
        ("request_headers", &hidden.request_headers),
        ("response_headers", &hidden.response_headers),
    ] {
        if !values.is_empty() {
            sanitized.insert(name.into(), values.iter().map(|v| quoted(v.as_bytes())).collect());
        }
    }
    if !sanitized.is_empty() {
        set("sanitized", sanitized.into());
    }
    if let Some(app) = &record.web_app {
        let mut info = Map::new();
        for (name, value) in [("id", &app.id), ("session", &app.session), ("user_id", &app.user)] {
            if let Some(value) = value {
                info.insert(name.into(), quoted(value.as_bytes()).into());
            }
        }
        set("webapp_info", info.into());
    }
    if let Some(sensor) = &record.sensor_id {
        set("sensor_id", quoted(sensor.as_bytes()).into());
    }
    if let Some(mode) = record.engine_mode() {
        set("engine_mode", mode.into());
    }
    Value::Object(map)
}

fn matched_rule(rule: &AuditRule) -> Value {
    let chain = rule.links.len() > 1;
    let links: Vec<Value> = rule
        .links
        .iter()
        .enumerate()
        .map(|(at, link)| {
            let mut set = Map::new();
            if at == 0 {
                set.insert("id".into(), rule.id.to_string().into());
                for (name, value) in [("rev", &rule.rev), ("version", &rule.ver)] {
                    if let Some(value) = value {
                        set.insert(name.into(), quoted(value.as_bytes()).into());
                    }
                }
                for (name, value) in
                    [("severity", rule.severity), ("accuracy", rule.accuracy), ("maturity", rule.maturity)]
                {
                    if let Some(value) = value {
                        set.insert(name.into(), value.into());
                    }
                }
            }
            set.insert("phase".into(), rule.phase.into());
            set.insert("is_chained".into(), chain.into());
            if at == 0 && chain {
                set.insert("chain_starter".into(), true.into());
            }
            if at == 0 && !rule.tags.is_empty() {
                set.insert("tags".into(), rule.tags.iter().map(|tag| quoted(tag.as_bytes())).collect());
            }
            json!({
                "actionset": set,
                "operator": {
                    "operator": link.operator,
                    "operator_param": link.argument,
                    "target": link.target(),
                    "negated": link.negated,
                },
                "config": { "filename": rule.file, "line_num": rule.line },
                "unparsed": link.text,
                "is_matched": true,
            })
        })
        .collect();
    let mut map = Map::new();
    map.insert("chain".into(), chain.into());
    map.insert("rules".into(), links.into());
    if chain {
        map.insert("full_chain_match".into(), true.into());
    }
    Value::Object(map)
}

impl crate::AuditLink {
    /// The targets, as the text of the rule has them.
    fn target(&self) -> &str {
        let Some(rest) = self.text.strip_prefix("SecRule ") else { return "REMOTE_ADDR" };
        match rest.strip_prefix('"') {
            Some(rest) => rest.split("\" \"").next().unwrap_or(rest),
            None => rest.split(' ').next().unwrap_or(rest),
        }
    }
}
