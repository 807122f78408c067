//! Parameters: their texts to values, and these beside their schemas.

use std::borrow::Cow;
use std::sync::Arc;

use portcullis_types::{Place, percent_decode};
use serde_json::{Map, Number, Value};

use crate::json;
use crate::limits::PARTS_MAX;
use crate::schema::{Schema, Types, Violation};

/// A parameter of an operation.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub name: String,
    pub place: Place,
    pub required: bool,
    pub allows_empty: bool,
    /// Pointer of the parameter in the document.
    pub pointer: String,
    pub reading: Reading,
    pub schema: Option<Arc<Schema>>,
    /// A test that is fast, and only says that a text is right.
    pub quick: Option<Quick>,
}

/// How the texts of a parameter become a value.
#[derive(Debug)]
pub(crate) enum Reading {
    /// One text.
    One,
    /// A list: with a separator in one text, or a text for each.
    List { separator: Option<u8>, items: Types },
    /// An object.
    Object { style: ObjectStyle, members: Vec<(String, Types)>, others: Option<Types> },
    /// One text of JSON.
    Json,
    /// A style that is not read here.
    Unread,
}

/// How the members of an object are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectStyle {
    /// `k,v,k,v`.
    Pairs(u8),
    /// `k=v,k=v`.
    Equals(u8),
    /// A parameter for each member.
    Exploded,
    /// `name[k]=v`.
    Deep,
}

/// A test of a text that most parameters have.
#[derive(Debug)]
pub(crate) enum Quick {
    /// Digits between these numbers.
    Integer { min: i64, max: i64 },
    /// `true` or `false`.
    Boolean,
    /// ASCII of so many bytes.
    Text { min: usize, max: usize },
    /// One of these.
    Words(Vec<Vec<u8>>),
}

impl Quick {
    /// True if the text is surely right.
    fn accepts(&self, text: &[u8]) -> bool {
        match self {
            Quick::Integer { min, max } => {
                integer(text).is_some_and(|number| (*min..=*max).contains(&number))
            }
            Quick::Boolean => text == b"true" || text == b"false",
            Quick::Text { min, max } => (*min..=*max).contains(&text.len()) && text.is_ascii(),
            Quick::Words(words) => words.iter().any(|word| word == text),
        }
    }
}

fn integer(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut number = 0i64;
    for digit in digits {
        number = number * 10 + i64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
    }
    Some(if is_negative { -number } else { number })
}

/// A pair of a query or a form, as sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'q> {
    pub name: &'q [u8],
    pub value: &'q [u8],
}

/// The pairs of a query or a form.
pub(crate) fn pairs(text: &[u8]) -> impl Iterator<Item = Pair<'_>> {
    text.split(|b| *b == b'&').filter(|pair| !pair.is_empty()).map(|pair| {
        let at = pair.iter().position(|b| *b == b'=');
        let (name, value) = at.map_or((pair, &pair[pair.len()..]), |at| (&pair[..at], &pair[at + 1..]));
        Pair { name, value }
    })
}

/// A name or value of a query, decoded.
pub(crate) fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    match text.iter().any(|b| matches!(b, b'%' | b'+')) {
        true => Cow::Owned(percent_decode(text, true)),
        false => Cow::Borrowed(text),
    }
}

impl Parameter {
    /// True if a name of the query is one of this parameter's.
    pub fn has_name(&self, name: &[u8]) -> bool {
        match &self.reading {
            Reading::Object { style: ObjectStyle::Exploded, members, others } => {
                others.is_some() || members.iter().any(|(member, _)| member.as_bytes() == name)
            }
            Reading::Object { style: ObjectStyle::Deep, .. } => {
                name.strip_prefix(self.name.as_bytes()).is_some_and(|rest| rest.starts_with(b"["))
            }
            Reading::One
            | Reading::List { .. }
            | Reading::Object { .. }
            | Reading::Json
            | Reading::Unread => self.name.as_bytes() == name,
        }
    }

    /// True if it is an object: its members may have names of their own in the query.
    pub fn is_object(&self) -> bool {
        matches!(self.reading, Reading::Object { .. })
    }

    /// True if a text, decoded, is surely right.
    pub fn is_right(&self, text: &[u8]) -> bool {
        self.quick.as_ref().is_some_and(|quick| quick.accepts(text))
    }

    /// What is wrong with the parameter in a query; none if it is not there.
    pub fn of_query(&self, query: &[u8]) -> Option<Vec<Violation>> {
        let mut mine = pairs(query).filter(|pair| self.has_name(&decoded(pair.name))).take(PARTS_MAX);
        let first = mine.next()?;
        let second = mine.next();
        if second.is_none() && self.is_right(&decoded(first.value)) {
            return Some(Vec::new());
        }
        let texts: Vec<Pair<'_>> = std::iter::once(first).chain(second).chain(mine).collect();
        Some(self.of_pairs(&texts))
    }

    fn of_pairs(&self, pairs: &[Pair<'_>]) -> Vec<Violation> {
        if self.allows_empty && pairs.iter().all(|pair| pair.value.is_empty()) {
            return Vec::new();
        }
        match &self.reading {
            Reading::List { separator: None, items } => {
                let items = pairs.iter().map(|pair| guess(*items, &text(&decoded(pair.value)))).collect();
                self.check(&[Value::Array(items)])
            }
            Reading::Object {
                style: style @ (ObjectStyle::Exploded | ObjectStyle::Deep),
                members,
                others,
            } => {
                let mut object = Map::new();
                for pair in pairs {
                    let name = decoded(pair.name);
                    let key = match style {
                        ObjectStyle::Deep => {
                            let rest = &name[self.name.len()..];
                            match rest.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")) {
                                Some(key) => key,
                                None => return vec![broken("is not written as `name[member]`")],
                            }
                        }
                        ObjectStyle::Pairs(_) | ObjectStyle::Equals(_) | ObjectStyle::Exploded => &name[..],
                    };
                    let key = text(key);
                    let types = types_of(members, *others, &key);
                    let value = guess(types, &text(&decoded(pair.value)));
                    if object.insert(key, value).is_some() {
                        return vec![broken("has a member more than once")];
                    }
                }
                self.check(&[Value::Object(object)])
            }
            Reading::One
            | Reading::List { .. }
            | Reading::Object { .. }
            | Reading::Json
            | Reading::Unread => {
                if pairs.len() > 1 {
                    return vec![broken("is there more than once")];
                }
                self.of_text(pairs[0].value, |part| decoded(part))
            }
        }
    }

    /// What is wrong with one text of a path, header or cookie, decoded.
    pub fn of_value(&self, value: &[u8]) -> Vec<Violation> {
        if self.is_right(value) {
            return Vec::new();
        }
        self.of_text(value, Cow::Borrowed)
    }

    fn of_text<'v>(&self, raw: &'v [u8], decode: impl Fn(&'v [u8]) -> Cow<'v, [u8]>) -> Vec<Violation> {
        let Some(schema) = &self.schema else { return Vec::new() };
        let whole = decode(raw);
        match &self.reading {
            Reading::Unread => Vec::new(),
            Reading::Json => match json::read(&whole) {
                Ok(value) => self.check(&[value]),
                Err(_) => vec![broken("must be JSON")],
            },
            Reading::One | Reading::List { separator: None, .. } => {
                self.check(&candidates(schema.types, &text(&whole)))
            }
            // Commas may be percent-encoded or not: either reading may be the right one. Others must be.
            Reading::List { separator: Some(separator), items } => {
                let split = |parts: Vec<Cow<'_, [u8]>>| {
                    Value::Array(
                        parts.iter().take(PARTS_MAX).map(|part| guess(*items, &text(part))).collect(),
                    )
                };
                let as_sent = raw.split(|b| b == separator).map(&decode).collect();
                let decoded = split(whole.split(|b| b == separator).map(Cow::Borrowed).collect());
                match separator {
                    b',' => self.check(&[split(as_sent), decoded]),
                    _ => self.check(&[decoded]),
                }
            }
            Reading::Object { style, members, others } => {
                let (ObjectStyle::Pairs(separator) | ObjectStyle::Equals(separator)) = style else {
                    return vec![broken("is not written as its style says")];
                };
                let parts: Vec<&[u8]> = whole.split(|b| b == separator).take(PARTS_MAX).collect();
                let pairs: Option<Vec<(&[u8], &[u8])>> = if let ObjectStyle::Equals(_) = style {
                    let pairs = parts.iter().map(|part| {
                        let at = part.iter().position(|b| *b == b'=')?;
                        Some((&part[..at], &part[at + 1..]))
                    });
                    pairs.collect()
                } else {
                    let is_even = parts.len().is_multiple_of(2);
                    is_even.then(|| parts.chunks(2).map(|pair| (pair[0], pair[1])).collect())
                };
                let Some(pairs) = pairs else { return vec![broken("is not written as its style says")] };
                let member = |(name, value): (&[u8], &[u8])| {
                    let name = text(name);
                    let types = types_of(members, *others, &name);
                    let value = guess(types, &text(value));
                    (name, value)
                };
                self.check(&[Value::Object(pairs.into_iter().map(member).collect())])
            }
        }
    }

    /// What is wrong with the first of several readings, if none of them is right.
    fn check(&self, readings: &[Value]) -> Vec<Violation> {
        let Some(schema) = &self.schema else { return Vec::new() };
        match readings {
            [one] => schema.violations(one, 4),
            [first, ..] if !readings.iter().any(|value| schema.is_valid(value)) => {
                schema.violations(first, 4)
            }
            _ => Vec::new(),
        }
    }
}

fn types_of(members: &[(String, Types)], others: Option<Types>, name: &str) -> Types {
    let found = members.iter().find(|(member, _)| member == name).map(|(_, types)| *types);
    found.or(others).unwrap_or(Types { string: true, ..Types::default() })
}

fn broken(rule: &str) -> Violation {
    Violation { path: Vec::new(), rule: rule.to_owned(), pointer: String::new(), is_hidden: false }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The values that a text may stand for, the most specific first; the last is the text itself.
fn candidates(types: Types, text: &str) -> Vec<Value> {
    let mut values = Vec::new();
    if (types.number || types.integer)
        && let Some(number) = number(text)
    {
        values.push(Value::Number(number));
    }
    if types.boolean && (text == "true" || text == "false") {
        values.push(Value::Bool(text == "true"));
    }
    if types.null && (text.is_empty() || text == "null") {
        values.push(Value::Null);
    }
    values.push(Value::String(text.to_owned()));
    values
}

/// The first of the values that a text may stand for.
pub(crate) fn guess(types: Types, text: &str) -> Value {
    candidates(types, text).swap_remove(0)
}

/// A number as in JSON, but that zeros may stand before it.
fn number(text: &str) -> Option<Number> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let trimmed = digits.trim_start_matches('0');
    let digits = match trimmed.bytes().next() {
        Some(b'0'..=b'9') => trimmed,
        _ if digits.starts_with('0') => &digits[digits.len() - trimmed.len() - 1..],
        _ => return None,
    };
    serde_json::from_str(&format!("{sign}{digits}")).ok()
}
