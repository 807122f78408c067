//! A value alone, as it is pasted from a block page, a log or a report.

use crate::field::Field;
use crate::filter::{Comparison, Filter, Operator, Value};
use crate::network::Network;

/// The shortest word that is taken for a request id.
const ID_BYTES_MIN: usize = 16;

/// The filter that a value alone stands for: an address or network, a path, the number of a rule or a status,
/// a request id.
pub fn bare(word: &str) -> Option<Filter> {
    let is = |field, operator, value| Filter::Is(Comparison { field, operator, values: vec![value] });
    if let Some(network) = Network::parse(word) {
        return Some(is(Field::Client, Operator::In, Value::Network(network)));
    }
    if word.starts_with('/') {
        return Some(path(word));
    }
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        let number = word.parse().ok()?;
        let rule = is(Field::Rule, Operator::Equal, Value::Number(number));
        let status = || is(Field::Status, Operator::Equal, Value::Number(number));
        return Some(match number {
            100..=599 => Filter::Any(vec![status(), rule]),
            _ => rule,
        });
    }
    let of_id = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    let is_id = word.len() >= ID_BYTES_MIN
        && word.bytes().all(of_id)
        && word.bytes().any(|byte| byte.is_ascii_digit());
    is_id.then(|| is(Field::Id, Operator::Equal, Value::Text(word.to_owned())))
}

/// The path itself, without a query, and what is below it.
fn path(target: &str) -> Filter {
    let path = target.split(['?', '#']).next().unwrap_or(target);
    let is = |operator, text: String| {
        Filter::Is(Comparison { field: Field::Path, operator, values: vec![Value::Text(text)] })
    };
    let itself = is(Operator::Equal, path.to_owned());
    match path.trim_end_matches('/') {
        "" => itself,
        folder => Filter::Any(vec![itself, is(Operator::Prefix, format!("{folder}/"))]),
    }
}
