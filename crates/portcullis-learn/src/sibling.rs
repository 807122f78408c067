//! Fields whose meaning stands beside them: `value` beside `key`, `content` beside `filename`. Where the one
//! beside is a list of few values, what a field carries is also kept by each of them, as a field of its own.
//!
//! Both are in the same object or array: their names are the same up to the last dot or bracket. Words in
//! front of the last one are those of both, or one has none: `meta_value` and `meta_key`, `content` and
//! `tree_path`.

use std::collections::BTreeMap;

use crate::key::FieldPlace;

/// The last word of the name of a field that says what the one beside it is.
const MEANINGS: [&[u8]; 7] = [b"key", b"name", b"type", b"kind", b"filename", b"path", b"field"];
/// The last word of the name of a field whose meaning may stand beside it.
const CONTENTS: [&[u8]; 5] = [b"value", b"content", b"data", b"text", b"body"];
/// What stands in the name of a field that is known by the value beside it. No sender can write it: names are
/// compared in lower case.
const MARK: &str = " IF ";
/// Fields beside a field by whose values it is known.
pub(crate) const SIBLINGS_MAX: usize = 2;

/// The name, in its one form, of `content` where the field `sibling` carries the value with this hash.
pub(crate) fn variant(content: &str, sibling: &str, option: u64) -> String {
    format!("{content}{MARK}{sibling}={option:016x}")
}

/// True if the meaning of fields of this name may stand beside them.
pub(crate) fn is_content(name: &[u8]) -> bool {
    CONTENTS.contains(&Parts::of(name).word)
}

/// True if `sibling` may say what `content` is.
pub(crate) fn may_tell(sibling: &[u8], content: &[u8]) -> bool {
    let (sibling, content) = (Parts::of(sibling), Parts::of(content));
    MEANINGS.contains(&sibling.word)
        && CONTENTS.contains(&content.word)
        && (sibling.above, sibling.end) == (content.above, content.end)
        && (sibling.stem == content.stem || sibling.stem.is_empty() || content.stem.is_empty())
}

/// A name, taken apart: `settings[meta_value]`.
struct Parts<'n> {
    /// `settings[`
    above: &'n [u8],
    /// `meta_`
    stem: &'n [u8],
    /// `value`
    word: &'n [u8],
    /// `]`
    end: &'n [u8],
}

impl Parts<'_> {
    fn of(name: &[u8]) -> Parts<'_> {
        let end = name.iter().rposition(|b| *b != b']').map_or(0, |at| at + 1);
        let behind = |is_in: fn(&u8) -> bool, from: usize| {
            name[from..end].iter().rposition(is_in).map_or(from, |at| from + at + 1)
        };
        let above = behind(|b| matches!(b, b'.' | b'['), 0);
        let stem = behind(|b| matches!(b, b'_' | b'-'), above);
        Parts { above: &name[..above], stem: &name[above..stem], word: &name[stem..end], end: &name[end..] }
    }
}

/// The fields of one request by place and name, to find those that stand beside one another.
#[derive(Default)]
pub(crate) struct Beside {
    by_name: BTreeMap<(FieldPlace, Vec<u8>), Vec<One>>,
}

#[derive(Clone, Copy)]
struct One {
    /// Which field of the request it is.
    at: usize,
    /// The hash of its value, see [`Carried`](crate::Carried).
    option: u64,
    /// It is one of an array.
    is_element: bool,
}

impl Beside {
    /// Adds field number `at` of the request, called `name` in the one form of names, and `sent` as sent.
    pub fn add(&mut self, at: usize, place: FieldPlace, name: &[u8], sent: &[u8], option: u64) {
        let is_element = place == FieldPlace::Json || sent.contains(&b'[');
        let one = One { at, option, is_element };
        self.by_name.entry((place, name.to_vec())).or_default().push(one);
    }

    /// The hash of the value of `sibling` that stands beside field number `at`, called `content`; none if
    /// there is not exactly one that an application could take for it. Those of arrays stand in the same
    /// order.
    pub fn option(&self, at: usize, place: FieldPlace, content: &[u8], sibling: &[u8]) -> Option<u64> {
        let of = |name: &[u8]| self.by_name.get(&(place, name.to_vec())).map_or(&[][..], Vec::as_slice);
        let (contents, siblings) = (of(content), of(sibling));
        let first = siblings.first()?;
        let are_paired = contents.len() == siblings.len()
            && (contents.len() == 1 || contents.iter().chain(siblings).all(|one| one.is_element));
        if are_paired {
            let number = contents.iter().position(|one| one.at == at)?;
            return siblings.get(number).map(|one| one.option);
        }
        siblings.iter().all(|one| one.option == first.option).then_some(first.option)
    }

    /// The names of fields that may say what `content` is.
    pub fn siblings<'b>(&'b self, place: FieldPlace, content: &'b [u8]) -> impl Iterator<Item = &'b [u8]> {
        let names = self.by_name.keys().filter(move |(of, name)| *of == place && may_tell(name, content));
        names.map(|(_, name)| name.as_slice())
    }
}
