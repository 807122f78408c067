//! The result of an engine for a request, and the first difference between two results.

use std::collections::BTreeMap;
use std::fmt;

use bstr::{BStr, BString, ByteSlice};

use crate::rule_set::{ENDED, MARK};

/// The result that every engine can report.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Every match of every link, in order.
    pub trace: Vec<Entry>,
    /// The `TX` collection at the end without the trace; keys in lower case. `None`: the last phase did not
    /// run.
    pub tx: Option<BTreeMap<BString, BString>>,
    /// Status of the answer that a rule gave, or `drop`.
    pub interruption: Option<Interruption>,
    /// We could not read the request body. Not compared.
    pub body_error: bool,
    /// A body was over its limit, and cut or refused. Not compared.
    pub over_limit: bool,
}

/// A match of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Id of the rule and place in the chain.
    pub link: (u32, usize),
    /// `MATCHED_VAR_NAME`; empty for a `SecAction`.
    pub variable: BString,
    /// `MATCHED_VAR`.
    pub value: BString,
}

/// An end that a rule made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// An answer with that status.
    Status(u16),
    /// The connection was closed.
    Drop,
    /// Another upstream was to answer.
    Proxy,
}

/// The first difference: what we have, what the peer has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "ours, theirs")]
pub enum Difference {
    /// In the trace.
    Match { ours: Option<Entry>, theirs: Option<Entry> },
    /// In the interruption.
    Interruption { ours: Option<Interruption>, theirs: Option<Interruption> },
    /// In a `TX` key.
    Tx { key: BString, ours: Option<BString>, theirs: Option<BString> },
    /// The peer says nothing of `TX`, or says it where we do not.
    Dump { ours: bool, theirs: bool },
}

impl Difference {
    /// The link that the first difference is at, ours first.
    pub fn link(&self) -> Option<(u32, usize)> {
        if let Difference::Match { ours, theirs } = self {
            ours.as_ref().or(theirs.as_ref()).map(|entry| entry.link)
        } else {
            None
        }
    }

    /// True if another difference is probably the same one, seen in a smaller case.
    pub fn is_like(&self, other: &Difference) -> bool {
        let names = |entry: &Option<Entry>| entry.as_ref().map(|e| (e.link, e.variable.clone()));
        match (self, other) {
            (Difference::Match { ours: a, theirs: b }, Difference::Match { ours: c, theirs: d }) => {
                (names(a), names(b)) == (names(c), names(d))
            }
            (Difference::Interruption { .. }, Difference::Interruption { .. }) => true,
            (Difference::Tx { key: a, .. }, Difference::Tx { key: b, .. }) => a == b,
            (Difference::Dump { .. }, Difference::Dump { .. }) => true,
            _ => false,
        }
    }
}

impl Seen {
    /// Splits the trace from the rest of `TX`.
    pub fn new(tx: Option<BTreeMap<BString, BString>>, interruption: Option<Interruption>) -> Seen {
        // Reading a name out of the collection escapes it once more: how often that was done is not compared.
        let plain = |mut key: BString| {
            key.dedup_by(|next, before| (*next, *before) == (b'\\', b'\\'));
            key
        };
        let tx = tx.map(|tx| tx.into_iter().map(|(key, value)| (plain(key), value)));
        let mut tx: Option<BTreeMap<BString, BString>> = tx.map(Iterator::collect);
        let trace = tx.as_mut().and_then(|tx| tx.remove(b"trace".as_bstr())).unwrap_or_default();
        Seen { trace: entries(&trace), tx, interruption, body_error: false, over_limit: false }
    }
}

fn entries(trace: &[u8]) -> Vec<Entry> {
    let mut out = Vec::new();
    for piece in trace.split_str(MARK).skip(1) {
        match entry(piece) {
            Some(entry) => out.push(entry),
            // The mark came from a value.
            None => {
                if let Some(last) = out.last_mut() {
                    let last: &mut Entry = last;
                    last.value.extend_from_slice(MARK.as_bytes());
                    last.value.extend_from_slice(piece);
                }
            }
        }
    }
    out
}

fn entry(piece: &[u8]) -> Option<Entry> {
    let mut parts = piece.splitn(3, |&byte| byte == b'|');
    let (id, place) = parts.next()?.to_str().ok()?.split_once('.')?;
    let link = (id.parse().ok()?, place.parse().ok()?);
    let variable = parts.next().unwrap_or_default().into();
    Some(Entry { link, variable, value: parts.next().unwrap_or_default().into() })
}

/// The first difference, in the order in which things happen: matches, interruption, `TX`.
pub fn difference(ours: &Seen, theirs: &Seen) -> Option<Difference> {
    if ours.tx.is_some() && theirs.tx.is_some() {
        for at in 0..ours.trace.len().max(theirs.trace.len()) {
            let (ours, theirs) = (ours.trace.get(at), theirs.trace.get(at));
            if ours != theirs {
                return Some(Difference::Match { ours: ours.cloned(), theirs: theirs.cloned() });
            }
        }
    }
    if ours.interruption != theirs.interruption {
        return Some(Difference::Interruption { ours: ours.interruption, theirs: theirs.interruption });
    }
    let (Some(our_tx), Some(their_tx)) = (&ours.tx, &theirs.tx) else {
        let (ours, theirs) = (ours.tx.is_some(), theirs.tx.is_some());
        return (ours != theirs).then_some(Difference::Dump { ours, theirs });
    };
    let mut keys = our_tx.keys().chain(their_tx.keys());
    keys.find(|&key| our_tx.get(key) != their_tx.get(key)).map(|key| Difference::Tx {
        key: key.clone(),
        ours: our_tx.get(key).cloned(),
        theirs: their_tx.get(key).cloned(),
    })
}

/// `TX` as the last rules wrote it: hexadecimal of `|TX:name|hexadecimal` after each other.
pub fn read_dump(dump: &[u8]) -> Option<BTreeMap<BString, BString>> {
    let text = unhex(dump)?;
    let mut out = BTreeMap::new();
    let mut rest = text.as_slice();
    while let Some(start) = rest.find(b"|TX:") {
        rest = &rest[start + 4..];
        let end = rest.find(b"|TX:").unwrap_or(rest.len());
        let bar = rest[..end].rfind_byte(b'|')?;
        // Of several values under a key, the first counts.
        out.entry(rest[..bar].to_ascii_lowercase().into()).or_insert(unhex(&rest[bar + 1..end])?.into());
        rest = &rest[end..];
    }
    out.remove(ENDED.as_bytes().as_bstr());
    Some(out)
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    text.chunks(2).map(|pair| Some((digit(pair[0])? * 16 + digit(*pair.get(1)?)?) as u8)).collect()
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}.{} {}={:?}", self.link.0, self.link.1, self.variable, BStr::new(&self.value))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = |entry: &Option<Entry>| entry.as_ref().map_or("nothing".to_owned(), Entry::to_string);
        match self {
            Difference::Match { ours, theirs } => {
                write!(f, "match: ours {}, theirs {}", entry(ours), entry(theirs))
            }
            Difference::Interruption { ours, theirs } => {
                write!(f, "interruption: ours {ours:?}, theirs {theirs:?}")
            }
            Difference::Tx { key, ours, theirs } => write!(f, "tx.{key}: ours {ours:?}, theirs {theirs:?}"),
            Difference::Dump { ours, theirs } => write!(f, "last phase ran: ours {ours}, theirs {theirs}"),
        }
    }
}
