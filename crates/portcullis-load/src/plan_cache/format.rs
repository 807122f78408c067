//! The bytes of the file.
//!
//! ```text
//! magic, CRC-32 of the rest, version
//! patterns:  count, then each: flags, text, groups, gates
//! lists:     count, then each: words, gates
//! ```
//!
//! Numbers are 32 bits, little endian; texts have their length in front. No count is believed before as many
//! bytes are there.

use std::sync::Arc;

use portcullis_compile::{Remembered, Used};
use portcullis_match::{FACTS_VERSION, Facts, Gate, Gates, RegexFlags};
use portcullis_types::ByteSet;

use super::PlanCacheError;

const SUM_BYTES: usize = 4;
/// The file's kind, and the version of what stands before the body.
const MAGIC: &[u8; 8] = b"PLANFCT2";

pub(super) fn encode(used: &Used) -> Vec<u8> {
    let mut regexes: Vec<_> = used.regexes.iter().filter_map(|regex| Some((regex, regex.facts()?))).collect();
    let flags = |flags: RegexFlags| {
        u32::from(flags.case_insensitive) | u32::from(flags.multi_line) << 1 | u32::from(flags.dot_all) << 2
    };
    regexes.sort_by(|(a, _), (b, _)| (a.pattern(), flags(a.flags())).cmp(&(b.pattern(), flags(b.flags()))));
    regexes.dedup_by(|(a, _), (b, _)| Arc::ptr_eq(a, b));
    let mut lists: Vec<_> = used.words.iter().map(|list| (list, list.facts())).collect();
    lists.sort_by(|(a, _), (b, _)| a.words().cmp(b.words()));
    lists.dedup_by(|(a, _), (b, _)| Arc::ptr_eq(a, b));

    let mut body = Writer::default();
    body.text(FACTS_VERSION.as_bytes());
    body.number(regexes.len());
    for (regex, facts) in regexes {
        body.number(flags(regex.flags()) as usize);
        body.text(regex.pattern());
        body.facts(&facts);
    }
    body.number(lists.len());
    for (list, facts) in lists {
        body.words(list.words());
        body.facts(&facts);
    }
    let sum = crc32fast::hash(&body.0).to_le_bytes();
    [MAGIC.as_slice(), &sum, &body.0].concat()
}

pub(super) fn decode(content: &[u8]) -> Result<Remembered, PlanCacheError> {
    let damaged = PlanCacheError::Damaged;
    let Some((head, body)) = content.split_at_checked(MAGIC.len() + SUM_BYTES) else {
        return Err(damaged("it ends too early"));
    };
    let Some(sum) = head.strip_prefix(MAGIC) else {
        let is_one = head.starts_with(&MAGIC[..MAGIC.len() - 1]);
        return Err(if is_one { PlanCacheError::OtherVersion } else { damaged("it is not a plan cache") });
    };
    if crc32fast::hash(body).to_le_bytes() != *sum {
        return Err(damaged("its checksum is wrong"));
    }
    let mut reader = Reader(body);
    if reader.text() != Some(FACTS_VERSION.as_bytes()) {
        return Err(PlanCacheError::OtherVersion);
    }
    let remembered = reader.remembered().filter(|_| reader.0.is_empty());
    remembered.ok_or(damaged("its contents cannot be read"))
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: usize) {
        // What is longer than this has been refused as a rule.
        self.0.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
    }

    fn text(&mut self, text: &[u8]) {
        self.number(text.len());
        self.0.extend_from_slice(text);
    }

    fn words(&mut self, words: &[Vec<u8>]) {
        self.number(words.len());
        words.iter().for_each(|word| self.text(word));
    }

    fn set(&mut self, set: &ByteSet) {
        set.words().iter().for_each(|word| self.0.extend_from_slice(&word.to_le_bytes()));
    }

    fn facts(&mut self, facts: &Facts) {
        self.0.push(facts.group_count);
        self.0.push(u8::from(facts.gates.is_some()));
        let Some((alphabet, gates)) = &facts.gates else { return };
        self.set(alphabet);
        self.gate(&gates.any);
        self.0.push(u8::from(gates.within.is_some()));
        if let Some(gate) = &gates.within {
            self.gate(gate);
        }
    }

    fn gate(&mut self, gate: &Gate) {
        self.number(gate.length_min);
        self.number(gate.bytes.len());
        gate.bytes.iter().for_each(|set| self.set(set));
        self.number(gate.words.len());
        gate.words.iter().for_each(|list| self.words(list));
    }
}

/// `None` from any of its methods: the bytes are not what they should be.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<usize> {
        self.take(4)?.try_into().ok().map(|bytes| u32::from_le_bytes(bytes) as usize)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(length)
    }

    /// As many items as a number says, each of at least `least` bytes.
    fn list<T>(&mut self, least: usize, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        if count.checked_mul(least)? > self.0.len() {
            return None;
        }
        (0..count).map(|_| item(self)).collect()
    }

    fn words(&mut self) -> Option<Vec<Vec<u8>>> {
        self.list(4, |reader| reader.text().map(<[u8]>::to_vec))
    }

    fn set(&mut self) -> Option<ByteSet> {
        let mut words = [0; 4];
        for word in &mut words {
            *word = u64::from_le_bytes(self.take(8)?.try_into().ok()?);
        }
        Some(ByteSet::from_words(words))
    }

    fn gate(&mut self) -> Option<Gate> {
        let length_min = self.number()?;
        let bytes = self.list(32, Self::set)?;
        let words = self.list(4, Self::words)?;
        // Requirements of the word finder for its words.
        let is_word = |word: &Vec<u8>| !word.is_empty() && !word.iter().any(u8::is_ascii_uppercase);
        words.iter().flatten().all(is_word).then_some(Gate { length_min, bytes, words })
    }

    fn facts(&mut self) -> Option<Facts> {
        let group_count = self.byte().filter(|count| *count <= 9)?;
        let gates = match self.flag()? {
            false => None,
            true => {
                let (alphabet, any) = (self.set()?, self.gate()?);
                let within = if self.flag()? { Some(self.gate()?) } else { None };
                Some((alphabet, Gates { any, within }))
            }
        };
        Some(Facts { group_count, gates })
    }

    fn remembered(&mut self) -> Option<Remembered> {
        let regexes = self.list(10, |reader| {
            let flags = reader.number().filter(|flags| *flags < 8)?;
            let flags = RegexFlags {
                case_insensitive: flags & 1 != 0,
                multi_line: flags & 2 != 0,
                dot_all: flags & 4 != 0,
            };
            let pattern = reader.text()?;
            Some(((pattern.into(), flags), reader.facts()?))
        })?;
        let lists = self.list(6, |reader| Some((reader.words()?.into(), reader.facts()?)))?;
        Some(Remembered { regexes: regexes.into_iter().collect(), words: lists.into_iter().collect() })
    }
}
