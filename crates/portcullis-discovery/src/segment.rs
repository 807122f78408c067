//! Segments of paths: names of the application, or values.

use std::borrow::Cow;

use portcullis_learn::{ANY, ValueType, classify, placeholder};

/// The placeholder of names that have multiplied.
pub(crate) const NAME: &str = "{name}";
/// The placeholder of files: images, fonts, style sheets, scripts.
pub(crate) const FILE: &str = "{file}";
/// The placeholder of row of letters and digits that nobody would choose as a name.
pub(crate) const TOKEN: &str = "{token}";
const EMAIL: &str = "{email}";
/// Letters and digits of the shortest token with so many changes between letters and digits.
const TOKEN_BYTES_MIN: usize = 12;
const TOKEN_CHANGES_MIN: usize = 3;
/// Letters and digits of the shortest token in which case changes, too, at one of so many.
const MIXED_BYTES_MIN: usize = 16;
const MIXED_CHANGES_SHARE: usize = 3;
/// Words that are joined by capitals have so many lower case letters on the average.
const WORD_BYTES: usize = 3;
/// A name with so many hyphens, underscores and dots is a title rather than a name.
const SLUG_JOINTS_MIN: usize = 2;
/// The shortest name with a digit that looks like one of many (`item-7`); `v2` and `oauth2` do not.
const NUMBERED_BYTES_MIN: usize = 7;
const SEGMENT_BYTES_MAX: usize = 64;

/// Representation of a segment in a template: a placeholder, one with an extension behind it, or the name
/// itself.
pub(crate) fn label(segment: &[u8]) -> Cow<'_, str> {
    if let Some(dot) = extension(segment)
        && let Ok(behind) = std::str::from_utf8(&segment[dot..])
    {
        // `7.json`
        let value = match placeholder(&segment[..dot]) {
            None if is_token(&segment[..dot]) => Some(TOKEN),
            Some(ANY) | None => None,
            Some(value) => Some(value),
        };
        if let Some(value) = value {
            return format!("{value}{behind}").into();
        }
    }
    match placeholder(segment) {
        None if is_token(segment) => TOKEN.into(),
        Some(ANY) => other(segment).into(),
        Some(known) => known.into(),
        None => std::str::from_utf8(segment).unwrap_or(ANY).into(),
    }
}

/// A segment with bytes that names rarely have: `items:search`, `@user`, `users(7)`.
fn other(segment: &[u8]) -> &str {
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"-_.~:@+,=$!()".contains(b);
    match std::str::from_utf8(segment) {
        Ok(_) if classify(segment, |_| false).kind == ValueType::Email => EMAIL,
        Ok(text) if segment.len() <= SEGMENT_BYTES_MAX && segment.iter().all(is_name) => text,
        _ => ANY,
    }
}

/// True for a row of letters and digits that alternate.
fn is_token(segment: &[u8]) -> bool {
    segment.split(|b| !b.is_ascii_alphanumeric()).any(|run| {
        let changes = run.windows(2).filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit());
        run.len() >= TOKEN_BYTES_MIN && changes.count() >= TOKEN_CHANGES_MIN
            || run.len() >= MIXED_BYTES_MIN && is_mixed(run)
    })
}

/// True if case changes often, and not as in words that are joined by capitals.
fn is_mixed(run: &[u8]) -> bool {
    let class = |b: u8| (b.is_ascii_digit(), b.is_ascii_uppercase());
    let changes = run.windows(2).filter(|pair| class(pair[0]) != class(pair[1])).count();
    let words = run.split(|b| !b.is_ascii_lowercase()).filter(|word| !word.is_empty()).map(<[u8]>::len);
    let (words, letters) = words.fold((0, 0), |(words, letters), length| (words + 1, letters + length));
    changes * MIXED_CHANGES_SHARE >= run.len() && letters < words * WORD_BYTES
}

/// True for a segment with the name of a file.
pub(crate) fn is_file(segment: &[u8]) -> bool {
    extension(segment).is_some()
}

/// Start of the extension of a file's name, at its dot.
fn extension(segment: &[u8]) -> Option<usize> {
    let dot = segment.iter().rposition(|b| *b == b'.').filter(|dot| *dot > 0)?;
    let extension = &segment[dot + 1..];
    let is_one = (1..=6).contains(&extension.len())
        && extension.iter().all(u8::is_ascii_alphanumeric)
        && extension.first().is_some_and(u8::is_ascii_alphabetic);
    is_one.then_some(dot)
}

/// True for content that pages load and nobody calls: images, fonts, style sheets, scripts, sound, film.
pub(crate) fn is_file_type(media_type: &str) -> bool {
    let begins = |kind: &str| media_type.starts_with(kind);
    ["image/", "font/", "audio/", "video/", "text/css", "text/javascript"].into_iter().any(begins)
        || media_type.ends_with("javascript")
        || begins("application/font")
        || begins("application/wasm")
}

/// True for a name as those are of which there are many: titles, and names with numbers.
pub(crate) fn is_slug(name: &str) -> bool {
    let joints = name.bytes().filter(|b| b"-_.".contains(b)).count();
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    joints >= SLUG_JOINTS_MIN || digits > 0 && name.len() >= NUMBERED_BYTES_MIN && digits < name.len()
}

pub(crate) fn is_placeholder(label: &str) -> bool {
    label.starts_with('{')
}

/// The kind of value that a placeholder stands for, and what is behind it in the segment.
pub(crate) fn parts(placeholder: &str) -> (&str, &str) {
    placeholder.strip_prefix('{').and_then(|rest| rest.split_once('}')).unwrap_or((placeholder, ""))
}
