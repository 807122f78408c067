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
    let plain = rest.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, 0 | b'-' | b':'));
    (letters >= 3 && plain).then_some(name)
}

/// What an attribute of a client-side framework is for: AngularJS, Angular, Vue, Alpine, Knockout, htmx,
/// Svelte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Directive {
    /// Its value is an expression.
    Code,
    /// Its value is JavaScript, as in a handler.
    Handler,
    /// Its value is what the element shows as markup.
    Markup,
    /// It sets the attribute of that name.
    Binds(usize),
    /// It sends a request to the address that is its value.
    Request,
    /// It says what sends that request.
    Trigger,
    /// Its value may be JavaScript after `js:`.
    Values,
}

/// What the attribute `name` is for; `None` if no framework has it.
pub(super) fn directive(name: &[u8]) -> Option<Directive> {
    let begins = |start: &[u8]| name.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    let is_one = |list: &[&str]| list.iter().any(|known| name_is(name, known));
    let htmx = name.get(..5).filter(|head| head.eq_ignore_ascii_case(b"data-")).map_or(name, |_| &name[5..]);
    if htmx.get(..3).is_some_and(|head| head.eq_ignore_ascii_case(b"hx-")) {
        return match htmx[3..].to_ascii_lowercase().as_slice() {
            b"get" | b"post" | b"put" | b"patch" | b"delete" => Some(Directive::Request),
            b"trigger" => Some(Directive::Trigger),
            b"vals" | b"vars" | b"headers" => Some(Directive::Values),
            rest if rest.starts_with(b"on") => Some(Directive::Handler),
            _ => None,
        };
    }
    if is_one(&[
        "x-html",
        "v-html",
        "ng-bind-html",
        "data-ng-bind-html",
        "[innerhtml]",
        "set:html",
        "[outerhtml]",
    ]) {
        return Some(Directive::Markup);
    }
    for start in [&b"x-bind:"[..], b"v-bind:", b"bind:", b":", b"["] {
        let rest = name.get(start.len()..).filter(|_| begins(start)).unwrap_or_default();
        if rest.len() > 4
            && rest[..2].eq_ignore_ascii_case(b"on")
            && rest[2..].iter().all(|b| b.is_ascii_alphabetic() || *b == b']')
        {
            return Some(Directive::Binds(start.len()));
        }
    }
    let is_bound = matches!(name, [b'@' | b':' | b'(', first, ..] if first.is_ascii_alphabetic());
    let is_code =
        is_bound || [&b"ng-"[..], b"data-ng-", b"v-", b"x-", b"data-bind"].iter().any(|start| begins(start));
    is_code.then_some(Directive::Code)
}

/// What makes an element of htmx send its request without anybody's deed.
pub(super) fn sends_alone(trigger: &[u8]) -> bool {
    trigger.split(|b| matches!(b, b',' | b' ')).any(|word| {
        ["load", "revealed", "intersect", "every", "mouseover", "mouseenter", "scroll"]
            .iter()
            .any(|known| name_is(word, known))
    })
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

/// True if at least two plain words in a row stand before: prose about something.
pub(super) fn is_sentence(before: &[u8]) -> bool {
    let head = &before[before.len().saturating_sub(120)..];
    let head = head.strip_suffix(b"<").unwrap_or(head).trim_ascii_end();
    let mut words = head.rsplit(|b| *b == b' ').take_while(|word| {
        word.len() >= 2 && word.len() <= 16 && word.iter().all(|b| b.is_ascii_alphabetic() || *b == b',')
    });
    words.nth(1).is_some()
}
