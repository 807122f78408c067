//! Places between rows. They are those of the event, time and id, so that they mean the same whichever node
//! wrote the event and whichever console asks.

use std::fmt::{self, Write as _};

use portcullis_event_store::QueryError;

use crate::condition::literal;

/// Bytes of an id; our own are much shorter.
pub(crate) const ID_BYTES_MAX: usize = 256;

/// The key of an event, by which pages are sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Milliseconds since 1970.
    pub(crate) time_ms: u64,
    /// Bytes of its id; other programs that write to the table may write any.
    pub(crate) id: Vec<u8>,
}

/// The side of a key on which rows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

impl Key {
    /// The text of a cursor: the time, and the bytes of the id as hexadecimal digits.
    pub(crate) fn parse(text: &str) -> Result<Key, QueryError> {
        let wrong = || QueryError::Cursor(text.to_owned());
        let (time, id) = text.split_once('-').ok_or_else(wrong)?;
        let is_number =
            !time.is_empty() && time.len() <= 18 && time.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || id.len() > 2 * ID_BYTES_MAX {
            return Err(wrong());
        }
        let id = from_hex(id).ok_or_else(wrong)?;
        Ok(Key { time_ms: time.parse().map_err(|_| wrong())?, id })
    }

    /// The condition of rows on one side. Parts of the table are left out by `time`, which is whole seconds.
    pub(crate) fn condition(&self, side: Side) -> String {
        let (sign, edge) = match side {
            Side::Before => ("<", "<="),
            Side::After => (">", ">="),
        };
        let (time, id) = (self.time_ms, literal(&self.id));
        let exact = format!("(time_ms {sign} {time} OR (time_ms = {time} AND id {sign} {id}))");
        match u32::try_from(time / 1000) {
            Ok(second) => format!("(time {edge} toDateTime({second}) AND {exact})"),
            Err(_) => exact,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-", self.time_ms)?;
        self.id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Bytes that are written as pairs of hexadecimal digits; none if they are not.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    });
    pairs.collect()
}

/// The condition of the seconds between these milliseconds, both included; none if that are all.
pub(crate) fn seconds((first, last): (u64, u64)) -> Option<String> {
    let first = (first > 0).then(|| u32::try_from(first / 1000).unwrap_or(u32::MAX));
    let last = u32::try_from(last / 1000).ok();
    let mut text = String::new();
    if let Some(first) = first {
        let _ = write!(text, "time >= toDateTime({first})");
    }
    if let Some(last) = last {
        let _ = write!(text, "{}time <= toDateTime({last})", if text.is_empty() { "" } else { " AND " });
    }
    (!text.is_empty()).then_some(text)
}
