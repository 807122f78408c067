//! Filters as conditions of SQL. They hold for a row exactly if the filter holds for the event of the row.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr};

use portcullis_query::{Comparison, Field, Filter, Kind, Network, Operator, Read, Value};

const FALSE: &str = "0";
const TRUE: &str = "1";

/// The outcome of a row. Members of a verdict have an order, and a quote within a text is escaped: a rule or
/// class that decided stands behind action and status.
const OUTCOME: &str = concat!(
    "multiIf(verdict = 'pass', '', verdict = 'refuse', 'refused', ",
    "verdict != 'detect' AND (startsWith(control, 'agent:') OR match(event, ",
    r#"'"verdict":[{]"action":"[a-z]+",("status":[0-9]+,)?("rule_id"|"class"):')), 'blocked', "#,
    "engine = 'detection_only' AND (startsWith(control, 'agent:') OR match(event, ",
    r#"'"verdict":[{]"action":"[a-z]+",("status":[0-9]+,)?("rule_id"|"class"):')), 'would_block', "#,
    "control != '' AND NOT startsWith(control, 'agent:'), 'control', verdict = 'detect', 'noted', 'blocked')",
);

/// The locations of findings and scores of a row.
const LOCATIONS: &str = concat!(
    "arrayMap(f -> concat(JSONExtractString(f, 'place'), ",
    "if(JSONExtractString(f, 'name') = '', '', concat(':', JSONExtractString(f, 'name')))), ",
    "arrayConcat(JSONExtractArrayRaw(event, 'findings'), JSONExtractArrayRaw(event, 'scores', 'semantic')))",
);

/// The condition that rows have to meet. Texts in it are literals of printable ASCII: quotes, backslashes and
/// all other bytes are written as `\xHH`.
pub fn condition(filter: &Filter) -> String {
    match filter {
        Filter::All(parts) => joined(parts.iter().map(condition), " AND ", TRUE),
        Filter::Any(parts) => joined(parts.iter().map(condition), " OR ", FALSE),
        Filter::Not(inner) => format!("NOT ({})", condition(inner)),
        Filter::Is(comparison) => {
            let holds = holds(comparison);
            // It holds where `=` does not: also where the event has no such value.
            match comparison.operator == Operator::NotEqual {
                true => format!("NOT ({holds})"),
                false => holds,
            }
        }
    }
}

/// Bytes as a literal.
pub(crate) fn literal(text: impl AsRef<[u8]>) -> String {
    let text = text.as_ref();
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for &byte in text {
        match byte {
            b' '..=b'~' if !matches!(byte, b'\'' | b'\\') => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02X}");
            }
        }
    }
    out.push('\'');
    out
}

/// The column of a field that has one.
pub(crate) fn column(field: Field) -> &'static str {
    match field.read() {
        Read::Json => "event",
        // The table has no column for it; `Outcome::of` is the same.
        Read::Word(_) if field == Field::Outcome => OUTCOME,
        Read::Number(_) if field == Field::Time => "time_ms",
        Read::Number(_) | Read::Word(_) | Read::List(_) => field.name(),
    }
}

fn joined(parts: impl Iterator<Item = String>, word: &str, none: &str) -> String {
    let parts: Vec<String> = parts.collect();
    match &*parts {
        [] => none.to_owned(),
        [one] => one.clone(),
        _ => format!("({})", parts.join(word)),
    }
}

fn holds(comparison: &Comparison) -> String {
    let field = comparison.field;
    match field.read() {
        Read::Json => match &*comparison.values {
            [Value::Text(text)] => is_in_json(text),
            [] | [_] | [_, _, ..] => FALSE.to_owned(),
        },
        Read::List(_) => in_list(comparison),
        // Absent numbers are 0 in the table; there is no status and no autonomous system 0.
        Read::Number(_) if is_absent_as_zero(field) => {
            format!("({} != 0 AND {})", column(field), numbers(comparison, column(field)))
        }
        Read::Number(_) => numbers(comparison, column(field)),
        Read::Word(_) if field.kind() == Kind::Address => joined(
            comparison.values.iter().map(|value| match value {
                Value::Network(network) => in_network(*network),
                Value::Number(_) | Value::Time(_) | Value::Text(_) => {
                    words(comparison, column(field), std::slice::from_ref(value))
                }
            }),
            " OR ",
            FALSE,
        ),
        Read::Word(_) => words(comparison, column(field), &comparison.values),
    }
}

/// True for numbers that an event need not have.
pub(crate) fn is_absent_as_zero(field: Field) -> bool {
    matches!(field, Field::Status | Field::Asn)
}

fn in_list(comparison: &Comparison) -> String {
    let list = match () {
        // The table has no columns for these: they are in the event.
        () if comparison.field == Field::Trial => "JSONExtract(event, 'trials', 'Array(String)')",
        () if comparison.field == Field::Location => LOCATIONS,
        () => column(comparison.field),
    };
    let test = match comparison.field.kind() {
        Kind::Number => numbers(comparison, "r"),
        // Words of a list are compared as they are, and an index of the array can answer.
        Kind::OneOf(_) => {
            let has = |value: &Value| match value {
                Value::Text(text) => Some(format!("has({list}, {})", literal(text))),
                Value::Number(_) | Value::Time(_) | Value::Network(_) => None,
            };
            return joined(comparison.values.iter().filter_map(has), " OR ", FALSE);
        }
        Kind::Time | Kind::Word | Kind::Address | Kind::Text => words(comparison, "r", &comparison.values),
    };
    match test == FALSE {
        true => test,
        false => format!("arrayExists(r -> {test}, {list})"),
    }
}

fn numbers(comparison: &Comparison, name: &str) -> String {
    let sign = match comparison.operator {
        Operator::Equal | Operator::NotEqual | Operator::In => "=",
        Operator::Less => "<",
        Operator::LessOrEqual => "<=",
        Operator::Greater => ">",
        Operator::GreaterOrEqual => ">=",
        Operator::Prefix | Operator::Contains => return FALSE.to_owned(),
    };
    let each = comparison.values.iter().filter_map(|value| match value {
        Value::Number(number) => Some(format!("{name} {sign} {number}")),
        Value::Time(time) => Some(format!("{name} {sign} {}", time.epoch_millis())),
        Value::Text(_) | Value::Network(_) => None,
    });
    joined(each, " OR ", FALSE)
}

/// Texts: bytes are compared, those of ASCII letters in one case where the filter language does so; `lower`
/// knows ASCII only.
fn words(comparison: &Comparison, column: &str, values: &[Value]) -> String {
    let (text, is_exact) = match comparison.is_exact() {
        true => (column.to_owned(), true),
        false => (format!("lower({column})"), false),
    };
    let wanted = values.iter().filter_map(|value| match value {
        Value::Text(wanted) if is_exact => Some(wanted.clone()),
        Value::Text(wanted) => Some(wanted.to_ascii_lowercase()),
        Value::Number(_) | Value::Time(_) | Value::Network(_) => None,
    });
    let wanted: Vec<String> = wanted.collect();
    match (comparison.operator, &*wanted) {
        (_, []) => FALSE.to_owned(),
        (Operator::Contains, _) => joined(wanted.iter().map(|wanted| contains(&text, wanted)), " OR ", FALSE),
        (Operator::Prefix, _) => {
            let begins = |wanted: &String| match wanted.len() {
                0 => TRUE.to_owned(),
                length => format!("substring({text}, 1, {length}) = {}", literal(wanted)),
            };
            joined(wanted.iter().map(begins), " OR ", FALSE)
        }
        (_, [one]) => format!("{text} = {}", literal(one)),
        _ => {
            let list: Vec<String> = wanted.iter().map(literal).collect();
            format!("{text} IN ({})", list.join(", "))
        }
    }
}

fn contains(text: &str, wanted: &str) -> String {
    match wanted {
        "" => TRUE.to_owned(),
        wanted => format!("position({text}, {}) > 0", literal(wanted)),
    }
}

/// The text as it stands in the JSON of an event, in any ASCII case.
fn is_in_json(text: &str) -> String {
    let quoted = serde_json::to_string(&text.to_ascii_lowercase()).unwrap_or_default();
    contains("lower(event)", quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default())
}

/// Addresses are stored as IPv6 in 32 digits, so that a network is a range of texts.
fn in_network(network: Network) -> String {
    let (first, bits) = match network.address() {
        IpAddr::V4(address) => (address.to_ipv6_mapped(), u32::from(network.prefix()) + 96),
        IpAddr::V6(address) => (address, u32::from(network.prefix())),
    };
    let last = first.to_bits() | u128::MAX.checked_shr(bits).unwrap_or(0);
    let range = between(first, Ipv6Addr::from_bits(last));
    match network.address() {
        IpAddr::V4(_) => range,
        // Addresses of IPv4 are in networks of IPv4 alone.
        IpAddr::V6(_) => {
            let mapped = Ipv6Addr::from_bits(0xffff << 32);
            format!("({range} AND NOT {})", between(mapped, Ipv6Addr::from_bits(0xffff_ffff_ffff)))
        }
    }
}

fn between(first: Ipv6Addr, last: Ipv6Addr) -> String {
    format!("(client_hex BETWEEN '{:032x}' AND '{:032x}')", first.to_bits(), last.to_bits())
}

#[cfg(test)]
mod tests {
    use portcullis_event::{Event, Timestamp};

    use super::*;

    /// What a new field of the filter language needs here shows itself.
    #[test]
    fn columns_and_absent_numbers_are_those_of_the_table() {
        let table = portcullis_sinks::table_definition("d", "t");
        let empty = Event::new("", Timestamp::from_epoch_millis(0));
        for &field in Field::ALL {
            if !matches!(field, Field::Outcome | Field::Trial | Field::Location) {
                assert!(table.contains(&format!("    {} ", column(field))), "{}", field.name());
            }
            if let Read::Number(read) = field.read() {
                assert_eq!(read(&empty).is_none(), is_absent_as_zero(field), "{}", field.name());
            }
        }
    }
}
