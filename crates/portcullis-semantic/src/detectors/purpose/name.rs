//! The name of a field: its parts, their words, and the places where a name is that of a field.

use crate::Place;

/// A named value of a body: a form, JSON, multipart or XML.
pub(super) fn is_of_body(place: Place) -> bool {
    matches!(place, Place::Form | Place::Json | Place::MultipartField | Place::XmlText | Place::XmlAttribute)
}

/// The same, or a parameter of the query string.
pub(super) fn is_of_field(place: Place) -> bool {
    is_of_body(place) || place == Place::Query
}

/// Bytes of the longest name that is looked at; longer ones have no known purpose, and no form has them.
pub(super) const NAME_BYTES_MAX: usize = 512;

/// True if every application takes all of it for the name. PHP ends names at a NUL (`id%00comment`) and
/// after brackets (`id[]comment`).
pub(super) fn is_plain_name(name: &[u8]) -> bool {
    let is_usual = |b: &u8| b.is_ascii_graphic() || *b >= 0x80;
    let is_glued = |pair: &[u8]| pair[0] == b']' && pair[1].is_ascii_alphanumeric();
    name.iter().all(is_usual) && !name.windows(2).any(is_glued)
}

/// The name up to the first bracket: `hook` of `hook[url]`. Applications that take `hook` as a list take the
/// values of all keys, and the sender chooses the keys.
pub(super) fn declared(name: &[u8]) -> &[u8] {
    match memchr::memchr(b'[', name) {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// The names of a path of names that are not numbers, the innermost first: `sql` and `panels` of
/// `panels.0.sql`, `hook` of `hook[url]`.
pub(super) fn parts(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = declared(name).rsplit(|b| matches!(b, b'.' | b'/'));
    parts.filter(|part| part.iter().any(|b| !b.is_ascii_digit()))
}

/// The first of [`parts`].
pub(super) fn last_part(name: &[u8]) -> &[u8] {
    parts(name).next().unwrap_or_default()
}

/// The innermost key, in brackets or not: what a name makes worse it makes worse there, too.
pub(super) fn innermost(name: &[u8]) -> &[u8] {
    keys(name).find(|part| part.iter().any(|b| !b.is_ascii_digit())).unwrap_or_default()
}

/// The innermost key of a record, in brackets or not: `bio` of `user[bio]`, `posts[0][bio]`. A key of a list
/// (`ids[bio]`) is none.
pub(super) fn key_of_record(name: &[u8]) -> Option<&[u8]> {
    let mut keys = keys(name);
    let last = keys.find(|key| key.iter().any(|b| !b.is_ascii_digit()))?;
    let is_list =
        |above: &[u8]| above.last().is_some_and(|b| b.eq_ignore_ascii_case(&b's')) || is_list(above);
    let is_bracketed = declared(name).len() < name.len();
    (!is_bracketed || !keys.next().is_some_and(is_list)).then_some(last)
}

fn keys(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    name.rsplit(|b| matches!(b, b'.' | b'[' | b']' | b'/')).filter(|key| !key.is_empty())
}

/// The name without its [`last_part`].
pub(super) fn above(name: &[u8]) -> &[u8] {
    let name = declared(name);
    name.strip_suffix(last_part(name)).unwrap_or_default()
}

/// True if the innermost name is only the key of an entry in a list of hosts, ids or the like, whose values
/// an application takes one by one: who sends `hosts[code]` chooses the key.
pub(super) fn is_key_of_list(name: &[u8]) -> bool {
    parts(name).nth(1).is_some_and(is_list)
}

/// The name is that of a list of hosts, ids or the like.
fn is_list(name: &[u8]) -> bool {
    const LISTS: &[&[u8]] = words!("purpose", "lists");
    has_last_word(name, LISTS)
}

/// True if one of the words of `name` is in `list`, in any case.
pub(super) fn has_word(name: &[u8], list: &[&[u8]]) -> bool {
    words(name).any(|word| list.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// True if the innermost name ends in a word of `list`, apart from a number.
pub(super) fn has_last_word(name: &[u8], list: &[&[u8]]) -> bool {
    let words = words(last_part(name)).filter(|word| !word.iter().all(u8::is_ascii_digit));
    words.last().is_some_and(|word| list.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// The words of a name, separated by punctuation or by a capital after a small letter.
pub(super) fn words(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_end = |pair: &[u8]| {
        !pair[1].is_ascii_alphanumeric() || pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()
    };
    let mut rest = name;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.windows(2).position(is_end).map_or(rest.len(), |at| at + 1);
        let (word, after) = rest.split_at(end);
        rest = after;
        // The separator before it: `_`, `-`, a dot, a bracket.
        Some(match word {
            [sign, word @ ..] if !sign.is_ascii_alphanumeric() => word,
            _ => word,
        })
    })
}
