//! Names and text: what an attribute's name is, and whether text is prose.

use portcullis_lex::html::name_is;

/// The name of an event handler, without a namespace. Any `on...` is one: browsers get new ones every year.
pub(super) fn event_name(name: &[u8]) -> Option<&[u8]> {
    let name = name.strip_prefix(b"\"").or(name.strip_prefix(b"'")).unwrap_or(name);
    // `x:ontimer`; a framework's `v-on:only` has a hyphen in what stands before the colon.
    let name = match name.iter().rposition(|&b| b == b':') {
        Some(colon) if colon > 0 && name[..colon].iter().all(u8::is_ascii_alphanumeric) => &name[colon + 1..],
        _ => name,
    };
    let [b'o' | b'O', b'n' | b'N', rest @ ..] = name else { return None };
    let letters = rest.iter().filter(|&&b| b != 0).count();
    let plain = rest.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, 0 | b'-' | b'_' | b':'));
    (letters >= 3 && plain).then_some(name)
}

/// Attributes of AngularJS, Vue, Alpine, Knockout and htmx that are code.
pub(super) fn is_directive(name: &[u8]) -> bool {
    let starts = |start: &[u8]| name.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    let is_bound = matches!(name, [b'@' | b':' | b'(', first, ..] if first.is_ascii_alphabetic());
    is_bound
        || [&b"ng-"[..], b"data-ng-", b"v-", b"x-", b"hx-on", b"data-hx-on", b"data-bind"]
            .iter()
            .any(|start| starts(start))
}

pub(super) fn is_frame(name: &[u8]) -> bool {
    ["iframe", "frame", "frameset", "portal", "fencedframe"].iter().any(|known| name_is(name, known))
}

/// Words that begin with `on` and are not names of events.
pub(super) fn is_english(name: &[u8]) -> bool {
    ["online", "only", "once", "onset", "onto", "onward", "onboarding", "ongoing"]
        .iter()
        .any(|word| name_is(name, word))
}

/// False if the text begins with words, or with a sign that code does not begin with.
pub(super) fn begins_code(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let head = &text[..text.len().min(48)];
    !has_words(head) && !matches!(head.first(), Some(b':' | b'>' | b')' | b',' | b'.' | b'='))
}

/// True if there are three plain words in a row: no code.
pub(super) fn has_words(text: &[u8]) -> bool {
    let mut row = 0;
    text[..text.len().min(400)].split(|b| b.is_ascii_whitespace()).filter(|word| !word.is_empty()).any(
        |word| {
            row = if word.iter().all(u8::is_ascii_alphabetic) { row + 1 } else { 0 };
            row >= 3
        },
    )
}

/// True if at least two plain words in a row stand before: somebody writes about something.
pub(super) fn is_sentence(before: &[u8]) -> bool {
    let head = &before[before.len().saturating_sub(120)..];
    let head = head.strip_suffix(b"<").unwrap_or(head).trim_ascii_end();
    let mut words = head.rsplit(|b| *b == b' ').take_while(|word| {
        word.len() >= 2 && word.len() <= 16 && word.iter().all(|b| b.is_ascii_alphabetic() || *b == b',')
    });
    words.nth(1).is_some()
}
