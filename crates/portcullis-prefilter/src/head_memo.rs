//! Repeated heads: the headers that a client sends with each of its requests, an application
//! with each answer.
//!
//! For the headers of a head that do not change from one message to the next, the entries of the
//! [memo](crate::memo) for single headers are combined here, so that one lookup serves all of them. An entry
//! is used only if every byte is the same.

use portcullis_types::{RecentKey, Sight, Variable, may_hold_secret};
use portcullis_values::{Class, ValueId};

use crate::memo::{self, Known};
use crate::readers::bits;
use crate::scan::{Scan, Verifier};

/// Places for heads, and lists of names, for one plan.
pub(crate) const HEADS: usize = 128;
/// Limit on the length of a remembered head; headers that do not fit are looked at one by one.
pub(crate) const HEAD_BYTES_MAX: usize = 1024;
/// Heads that more candidates match are not remembered.
const FOUND_MAX: usize = 64;

/// Names with their values; two classes whose values stand side by side.
type Pair = (Class, Class);

/// The variables before the headers of a request, which are remembered with them
pub(crate) const BEFORE: [Variable; 2] = [Variable::RequestMethod, Variable::RequestProtocol];
/// if it is no longer than this.
const BEFORE_BYTES_MAX: usize = 32;

/// Names of arguments, too, are repeated in the same order: up to so many are looked for as one text.
const ARGUMENTS_MAX: usize = 32;

const PAIRS: [Pair; 2] = [
    (Class::RequestHeaders, Class::RequestHeadersNames),
    (Class::ResponseHeaders, Class::ResponseHeadersNames),
];

/// Candidates that match something in a head.
pub(crate) type HeadFound = Box<[u16]>;

impl<V: Verifier> Scan<'_, V> {
    /// True if there is a head that [`scan_heads`](Self::scan_heads) looks at, with what stands before it.
    pub(crate) fn has_new_head(&self) -> bool {
        let is_short = |&variable: &Variable| {
            let value = self.values.scalar(variable);
            value.is_some_and(|value| self.values.data(value).len() <= BEFORE_BYTES_MAX)
        };
        self.new_head(PAIRS[0]).is_some() && BEFORE.iter().all(is_short)
    }

    /// The number of new headers of a head, if they are more than one.
    fn new_head(&self, (values, names): Pair) -> Option<usize> {
        let count = self.values.class_len(values);
        let is_new = self.state.seen(values) == 0 && self.state.seen(names) == 0;
        (is_new && count > 1 && self.values.class_len(names) == count).then_some(count)
    }

    /// Looks at the heads that are new, as far as they are worth remembering; `before`: at what stands before
    /// that of a request, too.
    pub(crate) fn scan_heads(&mut self, known: &mut Known, before: bool) {
        for pair in PAIRS {
            if let Some(count) = self.new_head(pair) {
                let before = if before && pair == PAIRS[0] { &BEFORE[..] } else { &[] };
                self.scan_head(known, (pair, before), count);
                self.state.see(pair.0, count);
                self.state.see(pair.1, count);
            }
        }
        self.scan_argument_names(known);
    }

    /// Looks at the names of the arguments of the query, if they are new and not too many.
    fn scan_argument_names(&mut self, known: &mut Known) {
        const NAMES: Class = Class::ArgsGetNames;
        let count = self.values.class_len(NAMES);
        if self.state.seen(NAMES) != 0 || !(2..=ARGUMENTS_MAX).contains(&count) {
            return;
        }
        let mut text = std::mem::take(&mut self.state.buffers.head);
        text.clear();
        text.push(NAMES as u8);
        let fits = (0..count).all(|at| {
            let name = self.values.text(self.values.data(self.values.class_value(NAMES, at)));
            let fits = name.len() <= memo::TEXT_BYTES_MAX && text.len() + 1 + name.len() <= HEAD_BYTES_MAX;
            if fits {
                text.push(name.len() as u8);
                text.extend_from_slice(name);
            }
            fits
        });
        if fits {
            self.scan_as_one(known, &text, |scan, known| {
                (0..count).for_each(|at| scan.scan_entry(known, NAMES, at));
            });
            self.state.see(NAMES, count);
        }
        self.state.buffers.head = text;
    }

    fn scan_head(&mut self, known: &mut Known, (pair, before): (Pair, &[Variable]), count: usize) {
        let mut text = std::mem::take(&mut self.state.buffers.head);
        text.clear();
        text.push(pair.0 as u8);
        for value in before.iter().filter_map(|&variable| self.values.scalar(variable)) {
            let value = self.values.text(self.values.data(value));
            text.push(value.len() as u8);
            text.extend_from_slice(value);
        }
        let headers_at = text.len();
        let mut others = 0;
        for at in 0..count {
            let value = self.values.class_value(pair.0, at);
            if !self.put(value, &mut text) {
                self.scan_header(known, pair, at);
                others += 1;
            }
        }
        if others < count || !before.is_empty() {
            self.scan_as_one(known, &text, |scan, known| {
                for read in
                    before.iter().filter_map(|&variable| scan.prefilter.readers.scalar(variable as usize))
                {
                    scan.scan_scalar(Some(known), read);
                }
                let mut length = headers_at;
                for at in 0..count {
                    let value = scan.values.class_value(pair.0, at);
                    if let Some(size) = scan.size(value, length) {
                        length += size;
                        scan.scan_header(known, pair, at);
                    }
                }
            });
        }
        self.state.buffers.head = text;
    }

    /// Settles what is known of a text; if nothing is, reads it, and remembers the result if the text has
    /// come before.
    fn scan_as_one(&mut self, known: &mut Known, text: &[u8], look: impl FnOnce(&mut Self, &mut Known)) {
        let key = RecentKey { kind: 0, name: b"", text };
        let remember = match known.heads.find(&key) {
            Sight::Known(found) => {
                return found.iter().for_each(|&candidate| self.state.set_matched(candidate.into()));
            }
            sight @ (Sight::Again | Sight::New) => sight == Sight::Again,
        };
        // All that match, not only those that did not match others before.
        let before = self.state.take_matched();
        look(self, known);
        if remember && !self.verifier.is_spent() {
            let found: Option<HeadFound> =
                bits(self.state.matched()).map(|at| u16::try_from(at).ok()).collect();
            if let Some(found) = found.filter(|found| found.len() <= FOUND_MAX) {
                known.heads.enter(&key, found);
            }
        }
        self.state.add_matched(before);
    }

    fn scan_header(&mut self, known: &mut Known, pair: Pair, at: usize) {
        for class in [pair.0, pair.1] {
            self.scan_entry(known, class, at);
        }
    }

    fn scan_entry(&mut self, known: &mut Known, class: Class, at: usize) {
        let value = self.values.class_value(class, at);
        let key = self.values.text(self.values.key(value));
        let Some(reader) = self.prefilter.readers.of_class(class).reader(key) else { return };
        let known = Some(known).filter(|_| memo::repeats_in(class, key));
        self.scan_remembered(known, reader, self.values.data(value));
    }

    /// Appends a header to `head`, if it is one of those that are the same each time and there is room.
    fn put(&self, value: ValueId, head: &mut Vec<u8>) -> bool {
        let Some(_) = self.size(value, head.len()) else { return false };
        for span in [self.values.key(value), self.values.data(value)] {
            let text = self.values.text(span);
            head.push(text.len() as u8);
            head.extend_from_slice(text);
        }
        true
    }

    /// The bytes that a header takes in a head of this length, if it is to be there.
    fn size(&self, value: ValueId, length: usize) -> Option<usize> {
        let (name, text) = (self.values.key(value), self.values.data(value));
        let size = 2 + name.len() + text.len();
        let fits = name.len().max(text.len()) <= memo::TEXT_BYTES_MAX && length + size <= HEAD_BYTES_MAX;
        (fits && is_steady(self.values.text(name))).then_some(size)
    }
}

/// False for headers whose values change from message to message, or must not be kept beyond it.
fn is_steady(name: &[u8]) -> bool {
    let changing: &[&[u8]] = match name.len() {
        3 => &[b"age"],
        4 => &[b"date", b"etag"],
        5 => &[b"range"],
        7 => &[b"expires", b"referer"],
        8 => &[b"if-match", b"location"],
        9 => &[b"forwarded", b"x-real-ip"],
        11 => &[b"traceparent"],
        12 => &[b"x-request-id"],
        13 => &[b"if-none-match", b"last-modified"],
        14 => &[b"content-length"],
        15 => &[b"x-forwarded-for"],
        17 => &[b"if-modified-since"],
        _ => &[],
    };
    let is_it = |other: &&[u8]| other[0] == name[0] | 0x20 && name.eq_ignore_ascii_case(other);
    !changing.iter().any(is_it) && !may_hold_secret(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_kept() {
        for name in ["Cookie", "AUTHORIZATION", "proxy-authorization", "Set-Cookie", "Date"] {
            assert!(!is_steady(name.as_bytes()), "{name}");
        }
        assert!(is_steady(b"User-Agent") && is_steady(b"Host"));
    }
}
