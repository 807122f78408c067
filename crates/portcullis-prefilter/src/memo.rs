//! Values that come again and again: what a browser says of itself, names of headers and arguments, methods,
//! paths without digits.
//!
//! What the prefilter finds of a text depends on the text and on who looks at it, and on nothing else. So it
//! is remembered, for short values of kinds that repeat, as long as the plan lives. Nothing is taken for
//! known that is not the same text.

use std::sync::{Arc, Mutex, MutexGuard, Weak};

use portcullis_types::{Variable, may_hold_secret};
use portcullis_values::Class;

use crate::Prefilter;
use crate::head_memo::Heads;

/// Entries for one plan; a power of two.
const ENTRIES: usize = 512;
/// More values of one message are not remembered: they would take the places of all others, and of each other
/// before they come again.
pub(crate) const VALUES_MAX: usize = ENTRIES / 2;
/// Longer texts are not remembered.
pub(crate) const TEXT_BYTES_MAX: usize = 255;
/// Longer paths are not either.
const PATH_BYTES_MAX: usize = 64;
/// Texts that more candidates match are not remembered.
const FOUND_MAX: usize = 7;
/// Plans whose values are remembered at one time, some 100 KB each.
const PLANS_MAX: usize = 64;

/// What transactions of one thread remember together; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Memo(Arc<Mutex<Vec<OfPrefilter>>>);

#[derive(Debug)]
struct OfPrefilter {
    /// Held, so that no other can have the same address.
    prefilter: Weak<Prefilter>,
    known: Known,
}

/// Texts, each at the place that its hash gives, and whole heads.
#[derive(Debug)]
pub(crate) struct Known {
    texts: Box<[Entry]>,
    pub(crate) heads: Heads,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    /// Who looks at it; 0 for an empty place.
    reader: u16,
    found: Found,
    text: Box<[u8]>,
}

/// Candidates that match a text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    count: u8,
    candidates: [u16; FOUND_MAX],
}

impl Memo {
    /// Calls `run` with what is known under `prefilter`; with nothing while another thread has it.
    pub(crate) fn with<T>(&self, prefilter: &Arc<Prefilter>, run: impl FnOnce(Option<&mut Known>) -> T) -> T {
        let Ok(mut plans) = self.0.try_lock() else { return run(None) };
        run(Some(Memo::of_prefilter(&mut plans, prefilter)))
    }

    fn of_prefilter<'a>(
        plans: &'a mut MutexGuard<'_, Vec<OfPrefilter>>,
        prefilter: &Arc<Prefilter>,
    ) -> &'a mut Known {
        let is_it = |known: &OfPrefilter| std::ptr::eq(known.prefilter.as_ptr(), Arc::as_ptr(prefilter));
        if plans.first().is_some_and(is_it) {
            return &mut plans[0].known;
        }
        let at = plans.iter().position(is_it).unwrap_or_else(|| {
            plans.retain(|known| known.prefilter.strong_count() > 0);
            plans.truncate(PLANS_MAX - 1);
            plans.push(OfPrefilter { prefilter: Arc::downgrade(prefilter), known: Known::default() });
            plans.len() - 1
        });
        // Those in use come to stand in front.
        plans.swap(at, at / 2);
        &mut plans[at / 2].known
    }
}

impl Default for Known {
    fn default() -> Self {
        Known { texts: vec![Entry::default(); ENTRIES].into_boxed_slice(), heads: Heads::default() }
    }
}

impl Known {
    /// What is known of `text` before `reader`.
    pub(crate) fn find(&self, reader: u16, text: &[u8]) -> Option<Found> {
        let entry = &self.texts[place(reader, text)];
        (reader != 0 && entry.reader == reader && *entry.text == *text).then_some(entry.found)
    }

    /// Remembers that just these candidates match; forgets what had the same place.
    pub(crate) fn enter(&mut self, reader: u16, text: &[u8], candidates: impl Iterator<Item = usize>) {
        let mut found = Found::default();
        for candidate in candidates {
            let Ok(candidate) = u16::try_from(candidate) else { return };
            let Some(place) = found.candidates.get_mut(usize::from(found.count)) else { return };
            (*place, found.count) = (candidate, found.count + 1);
        }
        self.texts[place(reader, text)] = Entry { reader, found, text: text.into() };
    }
}

impl Found {
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.candidates[..usize::from(self.count)].iter().map(|&candidate| usize::from(candidate))
    }
}

fn place(reader: u16, text: &[u8]) -> usize {
    hash(reader, text) as usize % ENTRIES
}

/// A bad one costs time, no more: texts are compared.
pub(crate) fn hash(reader: u16, text: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = text.as_chunks::<8>();
    let mut hash = u64::from(reader) ^ (text.len() as u64) << 16;
    for word in words {
        hash = (hash.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
    }
    let rest = rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
    hash = (hash.rotate_left(23) ^ rest).wrapping_mul(FACTOR);
    hash >> 32
}

/// True for variables whose values repeat. What tells one client from another is not kept beyond its
/// transaction.
pub fn repeats(variable: Variable) -> bool {
    use Variable::*;
    !matches!(
        variable,
        PathInfo
            | QueryString
            | RemotePort
            | RemoteUser
            | RequestBasename
            | RequestBody
            | RequestFilename
            | RequestLine
            | RequestUri
            | RequestUriRaw
            | ResponseBody
            | UniqueId
    )
}

/// The same for this value: paths repeat, too, if nothing in them can be an identifier, and so does nothing
/// at all.
pub(crate) fn repeats_as(variable: Variable, value: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b'/' | b'-' | b'_' | b'.');
    match variable {
        Variable::RequestFilename | Variable::RequestBasename => {
            value.len() <= PATH_BYTES_MAX && value.iter().all(is_plain)
        }
        variable => value.is_empty() || repeats(variable),
    }
}

/// The same for the values of a class under `key`.
pub(crate) fn repeats_in(class: Class, key: &[u8]) -> bool {
    match class {
        Class::ArgsGetNames
        | Class::ArgsPostNames
        | Class::RequestHeadersNames
        | Class::RequestCookiesNames
        | Class::ResponseHeadersNames => true,
        Class::RequestHeaders | Class::ResponseHeaders => !may_hold_secret(key),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_identifiers_are_not_kept() {
        let keeps = |path: &str| repeats_as(Variable::RequestFilename, path.as_bytes());
        assert!(keeps("/products/new-list.html") && keeps("/"));
        for path in ["/reset/x7", "/users/Ann", "/a%20b", "/a;b=c", &"/a".repeat(33)] {
            assert!(!keeps(path), "{path}");
        }
        assert!(!repeats_as(Variable::RequestUri, b"/products"));
        assert!(!repeats_as(Variable::ResponseBody, b"x") && repeats_as(Variable::ResponseBody, b""));
        assert!(repeats_as(Variable::RequestMethod, b"GET"));
    }
}
