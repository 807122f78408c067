//! JSON with the names of ModSecurity 3, one line a record.

use portcullis_event::{EngineMode, RuleMatch};
use serde_json::{Map, Number, Value, json};

use crate::Record;
use crate::json::{headers, line};
use crate::show::text;

pub(crate) fn write(record: &Record, out: &mut Vec<u8>) {
    let mut transaction = Map::new();
    let mut set = |name: &str, value: Value| drop(transaction.insert(name.to_owned(), value));
    set("client_ip", (&*record.client.0).into());
    set("time_stamp", record.time.asctime().into());
    set("server_id", record.sensor_id.as_deref().unwrap_or(&record.server_software).into());
    set("client_port", record.client.1.into());
    set("host_ip", (&*record.server.0).into());
    set("host_port", record.server.1.into());
    set("unique_id", (&*record.unique_id).into());
    set("request", request(record));
    set("response", response(record));
    if record.has('H') {
        set("producer", producer(record));
        set("messages", record.messages.iter().map(|message| details(&message.found)).collect());
    }
    line(&json!({ "transaction": transaction }), out);
}

fn request(record: &Record) -> Value {
    let request = &record.request;
    let version = request.protocol.strip_prefix(b"HTTP/").unwrap_or(&request.protocol);
    let version = text(version);
    let version =
        version.parse::<f64>().ok().and_then(Number::from_f64).map_or(Value::from(version), Value::Number);
    let mut map = Map::new();
    map.insert("method".into(), text(&request.method).into());
    map.insert("http_version".into(), version);
    map.insert("uri".into(), text(&request.target).into());
    if record.has('C') {
        map.insert("body".into(), text(request.body.as_deref().unwrap_or_default()).into());
    }
    if record.has('B') {
        map.insert("headers".into(), headers(&request.headers));
    }
    map.into()
}

fn response(record: &Record) -> Value {
    let empty = crate::ResponsePart::default();
    let response = record.response.as_ref().unwrap_or(&empty);
    let mut map = Map::new();
    if record.has('E') {
        map.insert("body".into(), text(response.body.as_deref().unwrap_or_default()).into());
    }
    map.insert("http_code".into(), response.status.into());
    if record.has('F') {
        map.insert("headers".into(), headers(&response.headers));
    }
    map.into()
}

fn producer(record: &Record) -> Value {
    let state = match record.engine {
        EngineMode::Blocking => "Enabled",
        EngineMode::DetectionOnly => "DetectionOnly",
        EngineMode::Off => "Disabled",
    };
    json!({
        "modsecurity": record.producer(),
        "connector": record.producer(),
        "secrules_engine": state,
        "components": &record.components[..],
    })
}

fn details(found: &RuleMatch) -> Value {
    let rule = &*found.rule;
    let number = |number: Option<u8>| number.unwrap_or(0).to_string();
    let (operator, argument, target, value) =
        (capital(&rule.operator), &rule.argument, &found.target, &found.value);
    let matched = match rule.operator.is_empty() {
        true => String::new(),
        false => format!(
            "Matched \"Operator `{operator}' with parameter `{argument}' against variable `{target}' (Value: `{value}' )"
        ),
    };
    json!({
        "message": found.message,
        "details": {
            "match": matched,
            "reference": "",
            "ruleId": rule.rule_id.to_string(),
            "file": rule.file,
            "lineNumber": rule.line.to_string(),
            "data": found.data,
            "severity": number(rule.severity.map(|severity| severity.number())),
            "ver": rule.ver.as_deref().unwrap_or_default(),
            "rev": rule.rev.as_deref().unwrap_or_default(),
            "tags": &rule.tags[..],
            "maturity": number(rule.maturity),
            "accuracy": number(rule.accuracy),
        },
    })
}

/// `rx` as ModSecurity 3 names its operators: `Rx`.
fn capital(name: &str) -> String {
    let (not, name) = name.strip_prefix('!').map_or(("", name), |name| ("!", name));
    let name = match name {
        "streq" => "strEq",
        "strmatch" => "strMatch",
        name => name,
    };
    let mut letters = name.chars();
    letters
        .next()
        .map_or_else(String::new, |first| format!("{not}{}{}", first.to_ascii_uppercase(), letters.as_str()))
}
