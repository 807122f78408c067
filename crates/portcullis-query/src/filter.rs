use std::fmt::{self, Display};

use portcullis_event::Timestamp;

use crate::field::{Field, Kind};
use crate::network::Network;

/// A condition on events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All of them hold; always true if there are none.
    All(Vec<Filter>),
    /// One of them holds.
    Any(Vec<Filter>),
    /// It does not hold.
    Not(Box<Filter>),
    /// One comparison.
    Is(Comparison),
}

/// A field compared with values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The field.
    pub field: Field,
    /// How.
    pub operator: Operator,
    /// With what: several values for [`Operator::In`], otherwise one.
    pub values: Vec<Value>,
}

/// How a field is compared. Texts are compared without regard to ASCII case, but for `id`, `site`, `route`
/// and `path`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `^=`: the text begins with it.
    Prefix,
    /// `~`: the text contains it.
    Contains,
    /// `in`: one of a list, or within a network.
    In,
}

/// What a field is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A whole number.
    Number(u64),
    /// A moment.
    Time(Timestamp),
    /// A text.
    Text(String),
    /// A network; an address is one of a single address.
    Network(Network),
}

impl Filter {
    /// The filter that every event passes.
    pub fn everything() -> Filter {
        Filter::All(Vec::new())
    }

    /// Calls `visit` with every comparison that must hold for the whole to hold.
    pub fn required(&self, visit: &mut impl FnMut(&Comparison)) {
        match self {
            Filter::All(parts) => parts.iter().for_each(|part| part.required(visit)),
            Filter::Is(comparison) => visit(comparison),
            Filter::Any(_) | Filter::Not(_) => {}
        }
    }

    /// The time in milliseconds before which, and after which, no event passes.
    pub fn time_range(&self) -> (u64, u64) {
        let (mut first, mut last) = (0, u64::MAX);
        self.required(&mut |comparison| {
            let (Field::Time, [Value::Time(time)]) = (comparison.field, &*comparison.values) else { return };
            let millis = time.epoch_millis();
            match comparison.operator {
                Operator::Equal => (first, last) = (first.max(millis), last.min(millis)),
                Operator::Less => last = last.min(millis.saturating_sub(1)),
                Operator::LessOrEqual => last = last.min(millis),
                Operator::Greater => first = first.max(millis + 1),
                Operator::GreaterOrEqual => first = first.max(millis),
                Operator::NotEqual | Operator::In | Operator::Prefix | Operator::Contains => {}
            }
        });
        (first, last)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, outer: u8) -> fmt::Result {
        let (parts, word, level) = match self {
            Filter::Is(comparison) => return comparison.fmt(f),
            Filter::Not(inner) => {
                f.write_str("not ")?;
                return inner.write(f, 3);
            }
            Filter::All(parts) => (parts, " and ", 2),
            Filter::Any(parts) => (parts, " or ", 1),
        };
        let grouped = level < outer;
        f.write_str(if grouped { "(" } else { "" })?;
        for (number, part) in parts.iter().enumerate() {
            f.write_str(if number > 0 { word } else { "" })?;
            part.write(f, level + 1)?;
        }
        f.write_str(if grouped { ")" } else { "" })
    }
}

/// As it would be typed: parsing it gives the same filter.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl Comparison {
    /// True if texts of this field are compared byte for byte.
    pub fn is_exact(&self) -> bool {
        matches!(self.field, Field::Id | Field::Site | Field::Route | Field::Path)
            || matches!(self.field.kind(), Kind::OneOf(_))
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.field.name(), self.operator.sign())?;
        match &*self.values {
            [value] => value.fmt(f),
            values => {
                f.write_str("(")?;
                for (number, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if number > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}

impl Operator {
    /// As it is typed.
    pub fn sign(self) -> &'static str {
        match self {
            Operator::Equal => "=",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::Prefix => "^=",
            Operator::Contains => "~",
            Operator::In => "in",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => number.fmt(f),
            Value::Time(time) => f.write_str(&time.rfc3339()),
            Value::Network(network) => network.fmt(f),
            Value::Text(text) => {
                f.write_str("\"")?;
                for c in text.chars() {
                    if matches!(c, '"' | '\\') {
                        f.write_str("\\")?;
                    }
                    fmt::Write::write_char(f, c)?;
                }
                f.write_str("\"")
            }
        }
    }
}
