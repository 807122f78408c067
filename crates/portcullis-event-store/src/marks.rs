//! The index of a block: bit sets that say which values and which pieces of text cannot be in it, so that
//! most blocks are never opened.
//!
//! A value sets two bits of the set of terms, a window of four bytes of text one bit of the set of text. A
//! missing bit is proof that a block has no such event; a set bit proves nothing.

use std::net::IpAddr;

use portcullis_query::{Comparison, Field, Filter, Network, Operator, Value};

use crate::codec::Damaged;
use crate::fields::is_late;

/// Bits for the values of a block of 1,024 events: an eighth of them is set when each event has its own
/// client, id and path.
pub(crate) const TERM_BITS: usize = 1 << 16;
/// Bits for its text.
pub(crate) const TEXT_BITS: usize = 1 << 19;
/// Bytes of text that are looked up together.
const WINDOW: usize = 4;
/// Leading bits of the networks that are marked with each address.
const PREFIXES_V4: [u8; 3] = [16, 24, 32];
const PREFIXES_V6: [u8; 4] = [32, 48, 64, 128];

/// Part of the JSON of each event that has trials.
pub(crate) const TRIALS: &[u8] = br#""trials":["#;
/// Part of the JSON of each event with findings or scores of the semantic detector.
pub(crate) const PLACES: &[u8] = br#""place":""#;

/// A set of bits; a power of two.
#[derive(Clone, Debug)]
pub(crate) struct Marks(Box<[u64]>);

impl Marks {
    pub(crate) fn new(bits: usize) -> Marks {
        Marks(vec![0; bits / 64].into_boxed_slice())
    }

    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Halves as long as few bits are set: a block of few events needs few bits.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut words = self.0.to_vec();
        loop {
            let set: usize = words.iter().map(|word| word.count_ones() as usize).sum();
            if words.len() <= 8 || set * 8 > words.len() * 64 {
                break;
            }
            let upper = words.split_off(words.len() / 2);
            words.iter_mut().zip(upper).for_each(|(word, upper)| *word |= upper);
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Marks, Damaged> {
        let (words, rest) = bytes.as_chunks::<8>();
        if !words.len().is_power_of_two() || !rest.is_empty() {
            return Err(Damaged);
        }
        Ok(Marks(words.iter().map(|word| u64::from_le_bytes(*word)).collect()))
    }

    fn set(&mut self, hash: u32) {
        let bit = hash as usize & (self.0.len() * 64 - 1);
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    fn has(&self, hash: u32) -> bool {
        let bit = hash as usize & (self.0.len() * 64 - 1);
        self.0[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// Adds the bits of another of the same size.
    pub(crate) fn add(&mut self, other: &Marks) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    pub(crate) fn set_term(&mut self, term: Term) {
        self.set(term.0);
        self.set(term.1);
    }

    fn has_term(&self, term: Term) -> bool {
        self.has(term.0) && self.has(term.1)
    }

    /// Marks the windows of a text, which `lower` takes without regard to case.
    pub(crate) fn set_text(&mut self, text: &[u8], lower: &mut Vec<u8>) {
        lower.clear();
        lower.extend(text.iter().map(u8::to_ascii_lowercase));
        let mask = (self.0.len() * 64 - 1) as u32;
        for window in lower.array_windows::<WINDOW>() {
            let bit = window_hash(*window) & mask;
            self.0[bit as usize / 64] |= 1 << (bit % 64);
        }
    }

    /// False if no text has this piece.
    pub(crate) fn may_contain(&self, piece: &[u8]) -> bool {
        let lower = piece.to_ascii_lowercase();
        lower.array_windows::<WINDOW>().all(|window| self.has(window_hash(*window)))
    }
}

/// Two hashes of a value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Term(u32, u32);

impl Term {
    /// Texts that differ in case alone have the same.
    pub(crate) fn of(field: Field, value: &str) -> Term {
        Term::hashed(field as u8, value.as_bytes(), 0x20)
    }

    fn folder(path: &[u8]) -> Term {
        Term::hashed(0xFE, path, 0)
    }

    /// `fold`: bits that do not tell bytes apart.
    fn hashed(kind: u8, value: &[u8], fold: u8) -> Term {
        const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut hash = u64::from(kind) ^ (value.len() as u64) << 32;
        let (words, rest) = value.as_chunks::<8>();
        for word in words {
            let word = u64::from_le_bytes(*word) | u64::from_le_bytes([fold; 8]);
            hash = (hash.rotate_left(23) ^ word).wrapping_mul(FACTOR);
        }
        let rest = rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte | fold));
        hash = (hash.rotate_left(23) ^ rest).wrapping_mul(FACTOR);
        Term((hash >> 40) as u32, (hash >> 16) as u32)
    }

    fn network(network: Network) -> Term {
        let mut key = [0; 17];
        match network.address() {
            IpAddr::V4(address) => key[..4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => key[..16].copy_from_slice(&address.octets()),
        }
        key[16] = network.prefix();
        Term::hashed(0xFF, &key, 0)
    }
}

/// The terms of an address: its networks.
pub(crate) fn address_terms(address: &str, mut add: impl FnMut(Term)) {
    let Ok(address) = address.parse::<IpAddr>() else { return };
    let address = address.to_canonical();
    let prefixes: &[u8] = if address.is_ipv4() { &PREFIXES_V4 } else { &PREFIXES_V6 };
    for &prefix in prefixes {
        Network::new(address, prefix).map(Term::network).into_iter().for_each(&mut add);
    }
}

/// The terms of a path: itself, and the folders that it begins with.
pub(crate) fn path_terms(path: &str, mut add: impl FnMut(Term)) {
    for (at, _) in path.match_indices('/').skip(1).take(3) {
        add(Term::folder(&path.as_bytes()[..=at]));
    }
    add(Term::of(Field::Path, path));
}

fn window_hash(window: [u8; WINDOW]) -> u32 {
    u32::from_le_bytes(window).wrapping_mul(0x9E37_79B1).rotate_right(13)
}

/// Requirements on a block for one of its events to pass a filter: one of each list of terms, and each piece
/// of text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    pub(crate) terms: Vec<Vec<Term>>,
    pub(crate) texts: Vec<Vec<u8>>,
}

impl Needs {
    pub(crate) fn of(filter: &Filter) -> Needs {
        let mut needs = Needs::default();
        filter.required(&mut |comparison| needs.add(comparison));
        needs
    }

    fn add(&mut self, comparison: &Comparison) {
        let Comparison { field, operator, values } = comparison;
        if let (Field::Text, [Value::Text(text)]) = (field, &**values) {
            let piece = json_piece(text);
            if piece.len() >= WINDOW {
                self.texts.push(piece);
            }
            return;
        }
        if *field == Field::Trial {
            if *operator != Operator::NotEqual {
                self.texts.push(TRIALS.to_vec());
            }
            if let (Operator::Equal, [Value::Text(id)]) = (operator, &**values) {
                self.texts.push(json_piece(id));
            }
            return;
        }
        if *field == Field::Location {
            // Place and name stand apart.
            if *operator != Operator::NotEqual {
                self.texts.push(PLACES.to_vec());
            }
            if let (Operator::Equal, [Value::Text(wanted)]) = (operator, &**values) {
                let parts = wanted.split_once(':').map_or([wanted.as_str(), ""], <[&str; 2]>::from);
                let pieces = parts.into_iter().map(json_piece);
                self.texts.extend(pieces.filter(|piece| piece.len() >= WINDOW));
            }
            return;
        }
        if is_late(*field) {
            return;
        }
        let terms: Option<Vec<Term>> = match operator {
            Operator::Equal | Operator::In => values.iter().map(|value| term(*field, value)).collect(),
            Operator::Prefix if *field == Field::Path => values.iter().map(folder_term).collect(),
            Operator::NotEqual
            | Operator::Less
            | Operator::LessOrEqual
            | Operator::Greater
            | Operator::GreaterOrEqual
            | Operator::Prefix
            | Operator::Contains => None,
        };
        self.terms.extend(terms);
    }

    pub(crate) fn may_be_in(&self, terms: &Marks) -> bool {
        self.terms.iter().all(|any| any.iter().any(|term| terms.has_term(*term)))
    }
}

/// The term that an event with this value has; none if no term is needed for it.
fn term(field: Field, value: &Value) -> Option<Term> {
    match value {
        // An empty text stands for none, and is not marked.
        Value::Text(text) => (!text.is_empty()).then(|| Term::of(field, text)),
        Value::Number(number) => (field == Field::Rule).then(|| Term::of(field, &number.to_string())),
        Value::Time(_) => None,
        Value::Network(network) => {
            let prefixes: &[u8] = if network.address().is_ipv4() { &PREFIXES_V4 } else { &PREFIXES_V6 };
            let prefix = prefixes.iter().rev().find(|&&prefix| prefix <= network.prefix())?;
            Network::new(network.address(), *prefix).map(Term::network)
        }
    }
}

/// The term of the longest marked folder that is whole in this prefix.
fn folder_term(value: &Value) -> Option<Term> {
    let Value::Text(prefix) = value else { return None };
    let (at, _) = prefix.match_indices('/').skip(1).take(3).last()?;
    Some(Term::folder(&prefix.as_bytes()[..=at]))
}

/// A text as it stands in an event's JSON, in lower case, without the quotes.
pub(crate) fn json_piece(text: &str) -> Vec<u8> {
    let quoted = serde_json::to_string(&text.to_ascii_lowercase()).unwrap_or_default();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().as_bytes().to_vec()
}
