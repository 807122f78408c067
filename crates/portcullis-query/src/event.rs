//! The fields that filters ask for, as an event has them; the one place that every evaluation of filters
//! takes them from.

use std::borrow::Cow;
use std::net::IpAddr;

use portcullis_event::Event;

use crate::field::Field;
use crate::filter::{Comparison, Filter, Operator, Value};
use crate::outcome::Outcome;

impl Field {
    /// The number of an event, if it has one.
    pub fn number(self, event: &Event) -> Option<u64> {
        match self {
            Field::Time => Some(event.time.epoch_millis()),
            Field::Status => event.response.status.map(u64::from),
            Field::Asn => event.client.asn.map(u64::from),
            Field::Duration => Some(event.duration_us),
            Field::Count => Some(event.count),
            _ => None,
        }
    }

    /// The text of an event; empty if it has none.
    pub fn word(self, event: &Event) -> Cow<'_, str> {
        let text = match self {
            Field::Id => &event.request_id,
            Field::Site => &*event.site,
            Field::Route => &*event.route,
            Field::Verdict => event.verdict.action.name(),
            Field::Client => &event.client.addr,
            Field::Country => event.client.country.as_deref().unwrap_or(""),
            Field::Method => &event.request.method,
            Field::Host => &event.server.host,
            Field::Path => path(&event.request.target),
            Field::Agent => {
                let header = event.request.headers.iter().find(|h| h.name.eq_ignore_ascii_case("user-agent"));
                header.map_or("", |header| &header.value)
            }
            Field::Upstream => event.upstream.as_deref().unwrap_or(""),
            Field::Control => match &event.verdict.control {
                Some(control) => return Cow::Owned(format!("{}:{}", control.by.name(), control.name)),
                None => "",
            },
            Field::Refusal => event.refusal.as_deref().unwrap_or(""),
            Field::Mode => event.mode.name(),
            Field::Engine => event.engine.name(),
            Field::Outcome => Outcome::of(event).map_or("", Outcome::name),
            _ => "",
        };
        Cow::Borrowed(text)
    }

    /// Calls `add` with each text of an event where there can be several; a text may come more than once.
    pub fn list(self, event: &Event, mut add: impl FnMut(&str)) {
        match self {
            Field::Class => {
                event.verdict.class.iter().for_each(|class| add(class.name()));
                event.findings.iter().for_each(|finding| add(finding.class.name()));
                event.scores.by_class.keys().filter_map(|name| class_of_score(name)).for_each(add);
            }
            Field::Rule => {
                let mut last = None;
                for found in &event.matches {
                    let id = found.rule.rule_id.0;
                    if last.replace(id) != Some(id) {
                        add(&id.to_string());
                    }
                }
                event.verdict.rule_id.iter().for_each(|id| add(&id.0.to_string()));
            }
            Field::Trial => event.trials.iter().for_each(|id| add(id)),
            _ => {}
        }
    }
}

impl Filter {
    /// True if the event passes.
    pub fn matches(&self, event: &Event) -> bool {
        match self {
            Filter::All(parts) => parts.iter().all(|part| part.matches(event)),
            Filter::Any(parts) => parts.iter().any(|part| part.matches(event)),
            Filter::Not(inner) => !inner.matches(event),
            Filter::Is(comparison) => comparison.matches(event),
        }
    }

    /// True if a comparison of it looks at this field.
    pub fn asks_for(&self, field: Field) -> bool {
        match self {
            Filter::All(parts) | Filter::Any(parts) => parts.iter().any(|part| part.asks_for(field)),
            Filter::Not(inner) => inner.asks_for(field),
            Filter::Is(comparison) => comparison.field == field,
        }
    }
}

impl Comparison {
    /// `!=` holds where `=` does not: also where the event has no such value.
    fn matches(&self, event: &Event) -> bool {
        let holds = match self.field {
            Field::Text => self.is_in_json(event),
            Field::Class | Field::Rule | Field::Trial => {
                let mut holds = false;
                self.field.list(event, |text| holds = holds || self.holds_for(text));
                holds
            }
            Field::Time | Field::Status | Field::Asn | Field::Duration | Field::Count => {
                self.field.number(event).is_some_and(|number| self.holds_for_number(number))
            }
            field => self.holds_for(&field.word(event)),
        };
        holds != (self.operator == Operator::NotEqual)
    }

    fn holds_for_number(&self, number: u64) -> bool {
        self.values.iter().any(|value| {
            let wanted = match value {
                Value::Number(number) => *number,
                Value::Time(time) => time.epoch_millis(),
                Value::Text(_) | Value::Network(_) => return false,
            };
            match self.operator {
                Operator::Equal | Operator::NotEqual | Operator::In => number == wanted,
                Operator::Less => number < wanted,
                Operator::LessOrEqual => number <= wanted,
                Operator::Greater => number > wanted,
                Operator::GreaterOrEqual => number >= wanted,
                Operator::Prefix | Operator::Contains => false,
            }
        })
    }

    fn holds_for(&self, text: &str) -> bool {
        if self.field == Field::Rule {
            return text.parse().is_ok_and(|id| self.holds_for_number(id));
        }
        self.values.iter().any(|value| match value {
            Value::Text(wanted) => self.holds_for_text(text, wanted),
            Value::Network(network) => text.parse::<IpAddr>().is_ok_and(|address| network.contains(address)),
            Value::Number(_) | Value::Time(_) => false,
        })
    }

    fn holds_for_text(&self, text: &str, wanted: &str) -> bool {
        let exact = self.is_exact();
        match self.operator {
            Operator::Contains if exact => text.contains(wanted),
            Operator::Contains => text.to_ascii_lowercase().contains(&wanted.to_ascii_lowercase()),
            Operator::Prefix if exact => text.starts_with(wanted),
            Operator::Prefix => {
                text.get(..wanted.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(wanted))
            }
            _ if exact => text == wanted,
            _ => text.eq_ignore_ascii_case(wanted),
        }
    }

    /// True if the JSON of the event contains the text, without regard to ASCII case.
    fn is_in_json(&self, event: &Event) -> bool {
        let [Value::Text(text)] = &*self.values else { return false };
        let quoted = serde_json::to_string(&text.to_ascii_lowercase()).unwrap_or_default();
        let piece = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
        event.json_line().to_ascii_lowercase().contains(piece)
    }
}

/// The class of attack that a score of the CRS counts.
fn class_of_score(name: &str) -> Option<&'static str> {
    Some(match name {
        "sqli" => "sqli",
        "xss" => "xss",
        "rfi" => "remote-file",
        "lfi" => "path",
        "rce" => "command",
        "php" => "code",
        "http" => "protocol",
        _ => return None,
    })
}

/// The path of a request target, in origin or absolute form.
fn path(target: &str) -> &str {
    let target = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains(['/', '?']) => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    };
    target.split(['?', '#']).next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn a_path_has_no_query_and_no_host() {
        for (target, expected) in [
            ("/a/b?c=d", "/a/b"),
            ("http://shop.example/a?b", "/a"),
            ("http://shop.example", "/"),
            ("/login?next=http://x/y", "/login"),
            ("*", "*"),
            ("/a#b", "/a"),
        ] {
            assert_eq!(path(target), expected, "{target}");
        }
    }
}
