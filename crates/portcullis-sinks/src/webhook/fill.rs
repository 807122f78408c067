//! The body of a webhook from its template.

use portcullis_config::{JsonTemplate, Placeholder, TemplatePart};
use portcullis_event::Event;
use portcullis_query::Field;
use serde_json::{Map, Value, json};

/// Bytes of a value in a message for people.
const SHORT_BYTES_MAX: usize = 300;

/// The body of one message; `suppressed`: how many others were kept back before it.
pub(super) fn body(template: &JsonTemplate, event: &Event, suppressed: u64) -> Value {
    match template {
        JsonTemplate::Text(parts) => {
            parts.iter().map(|part| text(part, event, suppressed)).collect::<String>().into()
        }
        JsonTemplate::Event => serde_json::from_str(&event.json_line()).unwrap_or_default(),
        JsonTemplate::Suppressed => suppressed.into(),
        JsonTemplate::List(items) => items.iter().map(|item| body(item, event, suppressed)).collect(),
        JsonTemplate::Object(members) => {
            let members = members.iter().map(|(name, of)| (name.clone(), body(of, event, suppressed)));
            members.collect::<Map<_, _>>().into()
        }
        JsonTemplate::Plain(value) => value.clone(),
        JsonTemplate::Slack => slack(event, suppressed),
    }
}

fn text(part: &TemplatePart, event: &Event, suppressed: u64) -> String {
    match part {
        TemplatePart::Text(text) => text.clone(),
        TemplatePart::Value(value) => value_of(*value, event, suppressed),
    }
}

fn value_of(value: Placeholder, event: &Event, suppressed: u64) -> String {
    let word = |field: Field| field.word(event).into_owned();
    let lead = event.lead();
    match value {
        Placeholder::Summary => event.summary(),
        Placeholder::RequestId => event.request_id.clone(),
        Placeholder::Time => event.time.rfc3339(),
        Placeholder::Site => event.site.to_string(),
        Placeholder::Route => event.route.to_string(),
        Placeholder::Verdict => event.verdict.action.name().to_owned(),
        Placeholder::Status => event.response.status.map(|status| status.to_string()).unwrap_or_default(),
        Placeholder::Reason => event.verdict.reason.clone(),
        Placeholder::Class => lead.class.into_owned(),
        Placeholder::Kind => lead.kind.to_owned(),
        Placeholder::Rule => lead.rule.map(|rule| rule.to_string()).unwrap_or_default(),
        Placeholder::Title => lead.title.into_owned(),
        Placeholder::Evidence => lead.evidence.into_owned(),
        Placeholder::Location => lead.location.into_owned(),
        Placeholder::Client => event.client.addr.clone(),
        Placeholder::Country => word(Field::Country),
        Placeholder::Method => event.request.method.clone(),
        Placeholder::Host => event.server.host.clone(),
        Placeholder::Path => word(Field::Path),
        Placeholder::Target => event.request.target.clone(),
        Placeholder::UserAgent => word(Field::Agent),
        Placeholder::TraceId => event.trace_id.clone().unwrap_or_default(),
        Placeholder::Suppressed => suppressed.to_string(),
    }
}

/// Slack's incoming webhooks. Values are written as plain text: `&`, `<` and `>` would begin mentions of the
/// whole channel and links that show another address.
fn slack(event: &Event, suppressed: u64) -> Value {
    let lead = event.lead();
    let mut text = format!("*Portcullis* {}", plain(&event.summary()));
    if !lead.evidence.is_empty() {
        text.push_str(&format!("\n`{}`", plain(&lead.evidence).replace('`', "'")));
    }
    text.push_str(&format!("\nrequest {} at {}", plain(&event.request_id), event.time.rfc3339()));
    if suppressed > 0 {
        text.push_str(&format!("\n_{suppressed} more events since the last message_"));
    }
    json!({ "text": text })
}

fn plain(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let cut = &value[..value.floor_char_boundary(SHORT_BYTES_MAX)];
    for c in cut.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    if cut.len() < value.len() {
        out.push('…');
    }
    out
}
