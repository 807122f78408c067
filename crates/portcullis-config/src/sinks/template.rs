//! The JSON body of a webhook. The text is parsed as JSON before anything is filled in, so that no value of a
//! request can end a string: what comes of it is again one JSON value, whatever the values are.

use serde_json::{Map, Value};

use crate::hint;

/// A JSON value whose strings have placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonTemplate {
    /// A string in parts.
    Text(Vec<TemplatePart>),
    /// The event itself, as an object: a string that is `{event}` and nothing else.
    Event,
    /// A number: a string that is `{suppressed}` and nothing else.
    Suppressed,
    /// A list.
    List(Vec<JsonTemplate>),
    /// An object.
    Object(Vec<(String, JsonTemplate)>),
    /// A value without placeholders.
    Plain(Value),
    /// The body of Slack's incoming webhooks, with values that cannot be markup there.
    Slack,
}

/// A part of a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePart {
    /// As it is.
    Text(String),
    /// A value of the event.
    Value(Placeholder),
}

/// Declares placeholders with their names.
macro_rules! placeholders {
    ($($(#[$doc:meta])* $variant:ident $name:literal)*) => {
        /// A value of the event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Placeholder { $($(#[$doc])* $variant,)* }

        impl Placeholder {
            /// All of them.
            pub const ALL: &'static [Placeholder] = &[$(Placeholder::$variant,)*];
            /// Their names, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($name,)*];
        }
    };
}

placeholders! {
    /// One sentence: what was done, why, who asked for what.
    Summary "summary"
    /// The request id.
    RequestId "request_id"
    /// RFC 3339.
    Time "time"
    /// The site's name.
    Site "site"
    /// The route's name.
    Route "route"
    /// What was done.
    Verdict "verdict"
    /// The status that the client got.
    Status "status"
    /// Why, in a sentence.
    Reason "reason"
    /// The class of the finding.
    Class "class"
    /// The kind of the finding.
    Kind "kind"
    /// The rule that found it.
    Rule "rule"
    /// What the finding is.
    Title "title"
    /// The bytes that show it.
    Evidence "evidence"
    /// Where they stand.
    Location "location"
    /// The client's address.
    Client "client"
    /// The client's country.
    Country "country"
    /// The request's method.
    Method "method"
    /// The host that the client named.
    Host "host"
    /// The request's path.
    Path "path"
    /// The request's target.
    Target "target"
    /// The request's User-Agent.
    UserAgent "user_agent"
    /// The trace that the request belongs to.
    TraceId "trace_id"
    /// Messages that the rate limit kept back since the last one.
    Suppressed "suppressed"
}

/// What is wrong, and what would be right.
type Wrong = (String, Option<String>);

/// Levels of lists and objects.
const DEPTH_MAX: usize = 32;

impl JsonTemplate {
    /// `{"event": "{event}"}`, with the number of events that were kept back.
    pub(crate) fn default_template() -> JsonTemplate {
        JsonTemplate::Object(vec![
            ("event".to_string(), JsonTemplate::Event),
            ("suppressed".to_string(), JsonTemplate::Suppressed),
        ])
    }

    /// Errors say what is wrong, and what would be right where that is known.
    pub(crate) fn parse(text: &str) -> Result<JsonTemplate, Wrong> {
        if text.trim() == "slack" {
            return Ok(JsonTemplate::Slack);
        }
        let value: Value = serde_json::from_str(text).map_err(|error| {
            let hint = "write `slack`, or JSON with placeholders within strings: {\"text\": \"{summary}\"}";
            (format!("the template is not JSON: {error}"), Some(hint.to_string()))
        })?;
        JsonTemplate::of(value, DEPTH_MAX)
    }

    fn of(value: Value, depth: usize) -> Result<JsonTemplate, Wrong> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err((format!("the template has more than {DEPTH_MAX} levels"), None));
        };
        Ok(match value {
            Value::String(text) if text == "{event}" => JsonTemplate::Event,
            Value::String(text) if text == "{suppressed}" => JsonTemplate::Suppressed,
            Value::String(text) => JsonTemplate::Text(parts(&text)?),
            Value::Array(values) => {
                let values = values.into_iter().map(|value| JsonTemplate::of(value, depth));
                JsonTemplate::List(values.collect::<Result<_, _>>()?)
            }
            Value::Object(members) => JsonTemplate::Object(object(members, depth)?),
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => JsonTemplate::Plain(plain),
        })
    }
}

fn object(members: Map<String, Value>, depth: usize) -> Result<Vec<(String, JsonTemplate)>, Wrong> {
    members.into_iter().map(|(name, value)| Ok((name, JsonTemplate::of(value, depth)?))).collect()
}

/// Braces around anything but a word are text.
fn parts(text: &str) -> Result<Vec<TemplatePart>, Wrong> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut plain = String::new();
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        plain.push_str(before);
        let name = from[1..].split('}').next().unwrap_or_default();
        let is_word = !name.is_empty()
            && from.as_bytes().get(1 + name.len()) == Some(&b'}')
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if !is_word {
            plain.push('{');
            rest = &from[1..];
            continue;
        }
        let Some(number) = Placeholder::NAMES.iter().position(|known| *known == name) else {
            let hint = match name {
                "event" => "`{event}` is an object: let it be all of a string".to_string(),
                _ => hint::suggest(name, Placeholder::NAMES),
            };
            return Err((format!("unknown placeholder `{{{name}}}`"), Some(hint)));
        };
        if !plain.is_empty() {
            parts.push(TemplatePart::Text(std::mem::take(&mut plain)));
        }
        parts.push(TemplatePart::Value(Placeholder::ALL[number]));
        rest = &from[name.len() + 2..];
    }
    plain.push_str(rest);
    if !plain.is_empty() || parts.is_empty() {
        parts.push(TemplatePart::Text(plain));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_found_in_strings() {
        let text = |text: &str| TemplatePart::Text(text.to_string());
        let value = TemplatePart::Value;
        for (from, expected) in [
            ("", vec![text("")]),
            (
                "a {class} in {location}!",
                vec![
                    text("a "),
                    value(Placeholder::Class),
                    text(" in "),
                    value(Placeholder::Location),
                    text("!"),
                ],
            ),
            ("{{rule}", vec![text("{"), value(Placeholder::Rule)]),
            ("{ x } {} {unfinished", vec![text("{ x } {} {unfinished")]),
        ] {
            assert_eq!(parts(from), Ok(expected), "{from}");
        }
    }

    #[test]
    fn mistakes_have_hints() {
        for (from, message, hint) in [
            ("{\"text\": \"{sumary}\"}", "unknown placeholder `{sumary}`", "did you mean `summary`?"),
            (
                "[\"an {event}\"]",
                "unknown placeholder `{event}`",
                "`{event}` is an object: let it be all of a string",
            ),
        ] {
            assert_eq!(JsonTemplate::parse(from), Err((message.to_string(), Some(hint.to_string()))));
        }
        assert!(JsonTemplate::parse("{\"text\": {summary}}").is_err());
        assert!(JsonTemplate::parse(&"[".repeat(200)).is_err());
        assert!(JsonTemplate::parse(&format!("{}{}", "[".repeat(40), "]".repeat(40))).is_err());
    }
}
