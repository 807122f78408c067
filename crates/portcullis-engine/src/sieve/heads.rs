//! Heads that come again and again: the headers that a client sends with each of its requests, an application with each answer.
//!
//! What the [memo](super::memo) says of single headers is put together here for those of a head that do not change from one message to the
//! next, so that one look does for all of them. Nothing is taken for known that is not the same in every byte.

use portcullis_types::may_hold_secret;

use crate::Plan;
use crate::store::{Class, ValueId};
use crate::transaction::Transaction;

use super::lanes::bits;
use super::memo::{self, Known};
use super::sift::{Sifted, settle};

/// Heads for one plan; a power of two.
const HEADS: usize = 64;
/// What does not fit is looked at header by header.
const HEAD_BYTES_MAX: usize = 1024;
/// Heads that more candidates match are not remembered.
const FOUND_MAX: usize = 64;

/// Names with their values; two classes whose values stand side by side.
type Pair = (Class, Class);

const PAIRS: [Pair; 2] = [
    (Class::RequestHeaders, Class::RequestHeadersNames),
    (Class::ResponseHeaders, Class::ResponseHeadersNames),
];

/// Heads, each at the place that its hash gives.
#[derive(Debug)]
pub(super) struct Heads(Box<[Head]>);

#[derive(Clone, Debug, Default)]
struct Head {
    /// Hash of the last one that was not known. It is remembered when it comes again, so that those which come once cost little.
    missed: u64,
    text: Box<[u8]>,
    /// Candidates that match a header of it.
    found: Box<[u16]>,
}

impl Default for Heads {
    fn default() -> Self {
        Heads(vec![Head::default(); HEADS].into_boxed_slice())
    }
}

impl Heads {
    /// The candidates for `text`, if it is known; if not, whether they are worth remembering.
    fn find(&mut self, text: &[u8]) -> Result<&[u16], bool> {
        let hash = memo::hash(0, text);
        let head = &mut self.0[hash as usize % HEADS];
        if *head.text == *text {
            return Ok(&head.found);
        }
        Err(std::mem::replace(&mut head.missed, hash) == hash)
    }

    fn enter(&mut self, text: &[u8], found: impl Iterator<Item = usize>) {
        let found: Option<Box<[u16]>> = found.map(|candidate| u16::try_from(candidate).ok()).collect();
        let Some(found) = found.filter(|found| found.len() <= FOUND_MAX) else { return };
        let hash = memo::hash(0, text);
        self.0[hash as usize % HEADS] = Head { missed: 0, text: text.into(), found };
    }
}

impl Transaction {
    /// Looks at the heads that are new, as far as they are worth remembering.
    pub(super) fn sift_heads(&mut self, plan: &Plan, sifted: &mut Sifted, known: &mut Known) {
        for (values, names) in PAIRS {
            let count = self.store.class_len(values);
            let is_new = sifted.seen(values) == 0 && sifted.seen(names) == 0;
            if is_new && count > 1 && self.store.class_len(names) == count {
                self.sift_head(plan, sifted, known, (values, names), count);
                sifted.see(values, count);
                sifted.see(names, count);
            }
        }
    }

    fn sift_head(&mut self, plan: &Plan, sifted: &mut Sifted, known: &mut Known, pair: Pair, count: usize) {
        let mut text = std::mem::take(&mut sifted.work.head);
        text.clear();
        text.push(pair.0 as u8);
        let mut others = 0;
        for at in 0..count {
            let value = self.store.class_value(pair.0, at);
            if !self.put(value, &mut text) {
                self.sift_header(plan, sifted, known, pair, at);
                others += 1;
            }
        }
        if others < count {
            match known.heads.find(&text) {
                Ok(found) => found.iter().for_each(|&candidate| {
                    settle(&mut sifted.run, &mut sifted.settled, &plan.sieve, candidate.into());
                }),
                Err(is_worth_it) => {
                    self.sift_steady(plan, sifted, known, pair, &text, is_worth_it);
                }
            }
        }
        sifted.work.head = text;
    }

    /// Looks at the headers that `text` is made of, and remembers what came of it.
    fn sift_steady(
        &mut self,
        plan: &Plan,
        sifted: &mut Sifted,
        known: &mut Known,
        pair: Pair,
        text: &[u8],
        remember: bool,
    ) {
        // All that match, not only those that did not match others before.
        let mut settled = std::mem::take(&mut sifted.settled);
        sifted.settled.resize(plan.sieve.width, 0);
        let mut length = 1;
        for at in 0..self.store.class_len(pair.0) {
            let value = self.store.class_value(pair.0, at);
            if let Some(size) = self.size(value, length) {
                length += size;
                self.sift_header(plan, sifted, known, pair, at);
            }
        }
        if remember {
            known.heads.enter(text, bits(&sifted.settled));
        }
        for candidate in bits(&sifted.settled) {
            settle(&mut sifted.run, &mut settled, &plan.sieve, candidate);
        }
        sifted.settled = settled;
    }

    fn sift_header(&mut self, plan: &Plan, sifted: &mut Sifted, known: &mut Known, pair: Pair, at: usize) {
        for class in [pair.0, pair.1] {
            let value = self.store.class_value(class, at);
            let key = self.store.text(self.store.key(value));
            let Some(source) = plan.sieve.lanes.of_class(class).source(key) else { continue };
            let known = Some(&mut *known).filter(|_| memo::repeats_in(class, key));
            self.sift_known(plan, sifted, known, source, self.store.data(value));
        }
    }

    /// Appends a header to `head`, if it is one of those that are the same each time and there is room.
    fn put(&self, value: ValueId, head: &mut Vec<u8>) -> bool {
        let Some(_) = self.size(value, head.len()) else { return false };
        for span in [self.store.key(value), self.store.data(value)] {
            let text = self.store.text(span);
            head.push(text.len() as u8);
            head.extend_from_slice(text);
        }
        true
    }

    /// The bytes that a header takes in a head of this length, if it is to be there.
    fn size(&self, value: ValueId, length: usize) -> Option<usize> {
        let (name, text) = (self.store.key(value), self.store.data(value));
        let size = 2 + name.len() + text.len();
        let fits = name.len().max(text.len()) <= memo::TEXT_BYTES_MAX && length + size <= HEAD_BYTES_MAX;
        (fits && is_steady(self.store.text(name))).then_some(size)
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
    fn heads_are_remembered_when_they_come_again() {
        let mut heads = Heads::default();
        assert_eq!(heads.find(b"one"), Err(false));
        assert_eq!(heads.find(b"one"), Err(true));
        heads.enter(b"one", [3, 700].into_iter());
        assert_eq!(heads.find(b"one"), Ok(&[3, 700][..]));
        assert_eq!(heads.find(b"two"), Err(false));
        heads.enter(b"two", 0..FOUND_MAX + 1);
        assert!(heads.find(b"two").is_err());
    }

    #[test]
    fn secrets_are_not_kept() {
        for name in ["Cookie", "AUTHORIZATION", "proxy-authorization", "Set-Cookie", "Date"] {
            assert!(!is_steady(name.as_bytes()), "{name}");
        }
        assert!(is_steady(b"User-Agent") && is_steady(b"Host"));
    }
}
