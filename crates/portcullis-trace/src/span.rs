use std::borrow::Cow;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::{Context, SpanId};

/// The kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Work inside.
    Internal = 1,
    /// A request that is answered.
    Server = 2,
    /// A request that is made.
    Client = 3,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text.
    Text(Cow<'static, str>),
    /// A number.
    Number(i64),
}

/// A piece of work.
#[derive(Clone, Debug)]
pub struct Span {
    /// Its name, of few.
    pub name: Cow<'static, str>,
    /// Its kind.
    pub kind: Kind,
    /// Its begin.
    pub begin: Instant,
    /// Its duration.
    pub duration: Duration,
    /// It failed.
    pub failed: bool,
    /// Its attributes.
    pub attributes: Vec<(&'static str, Value)>,
}

/// The spans of one exchange. The first is that of the exchange itself, and the parent of the others.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The trace, and the id of the first span.
    pub context: Context,
    /// The span of who asked.
    pub parent: Option<SpanId>,
    /// `tracestate` as it came.
    pub state: String,
    /// A moment in both clocks.
    pub at: (Instant, SystemTime),
    /// In the order of their beginning.
    pub spans: Vec<Span>,
}

impl Trace {
    /// Nanoseconds since 1970.
    pub(crate) fn unix_nanos(&self, at: Instant) -> u128 {
        let begin = self.at.1.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        match at.checked_duration_since(self.at.0) {
            Some(later) => begin + later.as_nanos(),
            None => begin.saturating_sub(self.at.0.duration_since(at).as_nanos()),
        }
    }

    /// The id of a span: the first has that of the context, the others follow from it.
    pub(crate) fn span_id(&self, number: usize) -> SpanId {
        let first = u64::from_be_bytes(self.context.span);
        // Odd factor: no two numbers below 2^64 give the same id. Zero is not allowed.
        let id = first ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if id == 0 { u64::MAX.to_be_bytes() } else { id.to_be_bytes() }
    }
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Value {
        Value::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(Cow::Owned(text))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Number(number)
    }
}
