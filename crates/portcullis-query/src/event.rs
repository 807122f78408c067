//! A filter over one event in memory.

use std::net::IpAddr;

use portcullis_event::Event;

use crate::field::{Field, Read};
use crate::filter::{Comparison, Filter, Operator, Value};

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
        let holds = match self.field.read() {
            Read::Json => self.is_in_json(event),
            Read::List(read) => {
                let mut holds = false;
                read(event, &mut |text| holds = holds || self.holds_for(text));
                holds
            }
            Read::Number(read) => read(event).is_some_and(|number| self.holds_for_number(number)),
            Read::Word(read) => self.holds_for(&read(event)),
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
            Operator::Equal
            | Operator::NotEqual
            | Operator::In
            | Operator::Less
            | Operator::LessOrEqual
            | Operator::Greater
            | Operator::GreaterOrEqual => match exact {
                true => text == wanted,
                false => text.eq_ignore_ascii_case(wanted),
            },
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
