//! What a schema says, in words.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

/// Members of an `enum` that are named.
const NAMED_MAX: usize = 6;
/// Bytes of a text of the document in a rule.
const TEXT_BYTES_MAX: usize = 80;

/// The rules that a value breaks; the steps are those from the value to what is reported.
#[expect(clippy::wildcard_enum_match_arm, reason = "the library's other kinds speak for themselves")]
pub(crate) fn of(error: &ValidationError<'_>) -> Vec<(Option<String>, String)> {
    use ValidationErrorKind as Kind;
    let value = error.instance();
    let rule = match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let each = unexpected.iter().map(|name| (Some(name.clone()), "is not declared".to_owned()));
            return each.collect();
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default().to_owned();
            return vec![(Some(name), "is required".to_owned())];
        }
        Kind::AdditionalItems { limit } => format!("must have at most {limit} items"),
        Kind::UnevaluatedItems { .. } => "has items that are not declared".to_owned(),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            format!("must have one of {} forms, and has none of them", context.len())
        }
        Kind::OneOfMultipleValid { .. } => "must have one form only, and has several".to_owned(),
        Kind::Constant { expected_value } => format!("must be {}", literal(expected_value)),
        Kind::Contains => "has not enough items of the kind that is required, or too many".to_owned(),
        Kind::Enum { options } => enumeration(options),
        Kind::Maximum { limit } => format!("must be at most {}, is {}", number(limit), number(value)),
        Kind::Minimum { limit } => format!("must be at least {}, is {}", number(limit), number(value)),
        Kind::ExclusiveMaximum { limit } => {
            format!("must be less than {}, is {}", number(limit), number(value))
        }
        Kind::ExclusiveMinimum { limit } => {
            format!("must be more than {}, is {}", number(limit), number(value))
        }
        Kind::MaxItems { limit } => format!("must have at most {limit} items, has {}", length(value)),
        Kind::MinItems { limit } => format!("must have at least {limit} items, has {}", length(value)),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters, has {}", length(value)),
        Kind::MinLength { limit } => format!("must have at least {limit} characters, has {}", length(value)),
        Kind::MaxProperties { limit } => format!("must have at most {limit} members, has {}", length(value)),
        Kind::MinProperties { limit } => format!("must have at least {limit} members, has {}", length(value)),
        Kind::MultipleOf { multiple_of } => {
            format!("must be a multiple of {multiple_of}, is {}", number(value))
        }
        Kind::Format { format } => format!("must be {}", of_format(format)),
        Kind::Pattern { pattern } => format!("must match the pattern `{}`", shortened(pattern)),
        Kind::PropertyNames { .. } => "has a member whose name is not allowed".to_owned(),
        Kind::Type { kind } => {
            let wanted: Vec<&str> = match kind {
                TypeKind::Single(kind) => vec![title(*kind)],
                TypeKind::Multiple(kinds) => kinds.iter().map(title).collect(),
            };
            format!("must be {}, is {}", wanted.join(" or "), title_of(value))
        }
        Kind::UniqueItems => "must not have an item twice".to_owned(),
        Kind::FalseSchema => "must not be there".to_owned(),
        Kind::Not { .. } => "has a form that is excluded".to_owned(),
        _ => format!("is not as `{}` says", error.kind().keyword()),
    };
    vec![(None, rule)]
}

/// The beginning of a text.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().find(|(at, c)| at + c.len_utf8() > TEXT_BYTES_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn enumeration(options: &Value) -> String {
    let members = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut named: Vec<String> = members.iter().take(NAMED_MAX).map(literal).collect();
    if members.len() > NAMED_MAX {
        named.push(format!("{} others", members.len() - NAMED_MAX));
    }
    format!("must be one of {}", named.join(", "))
}

/// A value of the document.
fn literal(value: &Value) -> String {
    shortened(&value.to_string())
}

/// A number with its thousands apart; anything else in kind only, since it may be a secret.
fn number(value: &Value) -> String {
    let Value::Number(number) = value else { return title_of(value).to_owned() };
    let text = number.to_string();
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return text;
    }
    let mut out = String::from(sign);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn of_format(format: &str) -> &str {
    match format {
        "date" => "a date like 2026-01-31",
        "date-time" => "a date and time like 2026-01-31T12:00:00Z",
        "uuid" => "a UUID",
        "ipv4" => "an IPv4 address",
        "ipv6" => "an IPv6 address",
        other => other,
    }
}

fn title(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Null => "null",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Number => "a number",
        JsonType::String => "a text",
        JsonType::Array => "a list",
        JsonType::Object => "an object",
    }
}

fn title_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
