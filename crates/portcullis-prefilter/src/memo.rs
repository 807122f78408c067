//! Repeated values: what a browser says of itself, names of headers and arguments, methods,
//! paths without digits.
//!
//! The prefilter's results for a text depend only on the text and on the candidates that read it. So they are
//! remembered, for short values of kinds that repeat, as long as the plan lives. A result is used only for
//! exactly the same text.

use std::sync::{Arc, Mutex, MutexGuard, Weak};

use portcullis_types::{Recent, RecentKey, Sight, Variable, may_hold_secret};
use portcullis_values::Class;

use crate::Prefilter;
use crate::head_memo::{HEAD_BYTES_MAX, HEADS, HeadFound};

/// Places for texts, for one plan.
const ENTRIES: usize = 512;
/// More values of one message are not remembered: they would take the places of all others, and of each other
/// before they are repeated.
pub(crate) const VALUES_MAX: usize = ENTRIES / 2;
/// Longer texts are not remembered.
pub(crate) const TEXT_BYTES_MAX: usize = 255;
/// Longer paths are not either.
const PATH_BYTES_MAX: usize = 64;
/// Texts that more candidates match are not remembered.
const FOUND_MAX: usize = 7;
/// Plans whose values are remembered at one time, some 100 KB each.
const PLANS_MAX: usize = 64;

/// The results that transactions of one thread share; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Memo(Arc<Mutex<Vec<OfPrefilter>>>);

#[derive(Debug)]
struct OfPrefilter {
    /// Held, so that no other can have the same address.
    prefilter: Weak<Prefilter>,
    known: Known,
}

/// The remembered results under one prefilter.
#[derive(Debug)]
pub(crate) struct Known {
    texts: Recent<Found>,
    pub(crate) heads: Recent<HeadFound>,
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
        Known { texts: Recent::new(ENTRIES, TEXT_BYTES_MAX), heads: Recent::new(HEADS, HEAD_BYTES_MAX) }
    }
}

impl Known {
    /// Returns the remembered results for `text` and the reader of this number.
    pub(crate) fn find(&mut self, reader: u16, text: &[u8]) -> Sight<'_, Found> {
        self.texts.find(&key(reader, text))
    }

    /// Remembers that just these candidates match, if they are few.
    pub(crate) fn enter(&mut self, reader: u16, text: &[u8], candidates: impl Iterator<Item = usize>) {
        let mut found = Found::default();
        for candidate in candidates {
            let Ok(candidate) = u16::try_from(candidate) else { return };
            let Some(place) = found.candidates.get_mut(usize::from(found.count)) else { return };
            (*place, found.count) = (candidate, found.count + 1);
        }
        self.texts.enter(&key(reader, text), found);
    }
}

fn key(reader: u16, text: &[u8]) -> RecentKey<'_> {
    RecentKey { kind: reader.into(), name: b"", text }
}

impl Found {
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.candidates[..usize::from(self.count)].iter().map(|&candidate| usize::from(candidate))
    }
}

/// True for variables whose values repeat. A value that tells one client from another is not kept beyond its
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
    if matches!(variable, Variable::RequestFilename | Variable::RequestBasename) {
        value.len() <= PATH_BYTES_MAX && value.iter().all(is_plain)
    } else {
        value.is_empty() || repeats(variable)
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
        Class::ArgsGet
        | Class::ArgsPost
        | Class::ArgsGetReadings
        | Class::ArgsGetNamesReadings
        | Class::ArgsPostReadings
        | Class::ArgsPostNamesReadings
        | Class::RequestCookies
        | Class::Files
        | Class::FilesNames
        | Class::FilesSizes
        | Class::FilesTmpContent
        | Class::FilesTmpNames
        | Class::Geo
        | Class::MultipartFilename
        | Class::MultipartName
        | Class::MultipartPartHeaders
        | Class::XmlText
        | Class::XmlReadings
        | Class::XmlAttributes
        | Class::MatchedVars
        | Class::MatchedVarsNames => false,
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
