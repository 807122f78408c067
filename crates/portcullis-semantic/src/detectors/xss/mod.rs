//! Cross-site scripting.
//!
//! What it does: reads a value as the piece of a page that it would be if an application pasted it into one:
//! between tags, in a tag after each quote, in a script after each quote, as an address, as a whole script.
//! Markup goes through the tokenizer that browsers have; what elements, attributes, addresses and scripts
//! would do decides. Markup that only says how text looks is nothing; scripts are read as code, not searched
//! for words.
//!
//! Why it is dangerous: the script runs in the visitor's browser with the visitor's rights on the site.
//!
//! References: <https://owasp.org/www-community/attacks/xss/>,
//! <https://capec.mitre.org/data/definitions/63.html>.

mod code;
mod effects;
mod filtered;
mod markup;
mod names;
mod script;
mod style;
#[cfg(test)]
mod tests;
mod url;
mod words;

use portcullis_lex::html::{Lexer, Raw, Start, TokenKind, name_is};
use portcullis_types::Span;

use self::effects::Effects;
use self::filtered::seven_bits;
use self::markup::{Reader, is_popup, script_url};
use self::names::Names;
use self::script::walk_code;
use self::style::{STYLE_BYTES_MAX, style_breaks_out};
use self::url::{Scheme, scheme};
use self::words::event_name;
use crate::detectors::linked::Links;
use crate::detectors::purpose;
use crate::detectors::scan::{is_one_of, skip_space};
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, KindId, Place, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-community/attacks/xss/";
    SCRIPT_SINK "xss.script-sink" Critical Active
        "a script element whose code shows, sends, loads or hides something";
    SCRIPT_CODE "xss.script-code" Critical Quotable "a script element with code";
    SCRIPT_SOURCE "xss.script-source" Critical Active "a script element that loads its code from elsewhere";
    SCRIPT_LOCAL "xss.script-local" Error Quotable "a script element that loads its code from the same site";
    SCRIPT_EMPTY "xss.script-empty" Error Quotable
        "a script element without code, or with what cannot be read as code or text";
    SCRIPT_ENDED "xss.script-ended" Warning Quotable "the script element ends in the value";
    SCRIPT_TAG "xss.script-tag" Notice Quotable "a script tag before text that is not code";
    EVENT_SINK "xss.event-sink" Critical Active
        "an event handler whose code shows, sends, loads or hides something";
    EVENT_CODE "xss.event-code" Critical Quotable "an event handler with code";
    EVENT_ATTRIBUTE "xss.event-attribute" Critical Active "an attribute named like an event handler";
    EVENT_ODD "xss.event-odd" Error Quotable "something like an event handler after a quote, without code";
    SCRIPT_URL "xss.script-url" Critical Active
        "an address that is a script, which shows, sends, loads or hides something";
    SCRIPT_URL_CALL "xss.script-url-call" Critical Active "an address that is a script";
    HIDDEN_SCHEME "xss.hidden-scheme" Critical Active
        "the address is a script, and references, white space or comments hide it";
    SCRIPT_URL_INERT "xss.script-url-inert" Notice Quotable "an address that is a script which does nothing";
    DATA_URL "xss.data-url" Critical Active "an address that is a document of its own";
    SRCDOC "xss.srcdoc" Critical Active "a frame whose document stands in an attribute";
    STYLE_RUNS "xss.style-runs" Critical Active "a style that runs a script";
    STYLE_HIDDEN "xss.style-hidden" Critical Active "a style whose letters are written as numbers";
    STYLE_BREAK_OUT "xss.style-break-out" Critical Quotable
        "ends a rule of the page's style and goes on with one that loads from another host";
    STYLE_IMPORT "xss.style-import" Error Quotable "a style that loads another one";
    PLUGIN "xss.plugin" Critical Active "an element that loads a plug-in";
    FRAME "xss.frame" Warning Quotable "an element that loads a document";
    DIALOG "xss.dialog" Critical Quotable
        "a dialog that shows a number stands at a quote or a bracket of markup: the end of a probe";
    FRAME_FOREIGN "xss.frame-foreign" Error Quotable
        "a frame of another host without TLS, in a field that is for no texts or markup";
    STYLESHEET "xss.stylesheet" Error Quotable
        "an instruction of XML loads a stylesheet, which may hold scripts";
    FRAME_BARE "xss.frame-bare" Error Quotable
        "a frame with another site's document and without the attributes of one that is to be seen";
    VIEW_SOURCE "xss.view-source" Critical Quotable
        "an element that shows the source of a page, which only the address bar may";
    DATA_BINDING "xss.data-binding" Critical Active
        "an element that shows what another element holds, as markup";
    CHARSET "xss.charset" Critical Active
        "a character set in which the signs of markup are written with other bytes";
    ALONE "xss.alone" Warning Quotable "the element is all of the value";
    BASE "xss.base" Critical Active "changes what relative addresses of the page mean";
    REFRESH "xss.refresh" Critical Active "sends the page's visitor elsewhere";
    LINK "xss.link" Error Quotable "loads a style or a document";
    FORM "xss.form" Warning Quotable "sends a form to another site";
    FORM_ASKS "xss.form-asks" Critical Active
        "a form or button of another site that asks for something, or takes what the page's own form asks";
    SENDS "xss.sends" Critical Active
        "an attribute of a framework that sends a request as soon as it is shown, or shows what another site answers";
    SHOWS_INPUT "xss.shows-input" Critical Active
        "an attribute of a framework that shows the page's address or data as markup";
    BOUND_HANDLER "xss.bound-handler" Critical Active "an event handler that a framework sets";
    FOREIGN "xss.foreign" Notice Quotable "an element of SVG or MathML";
    PAGE_ELEMENT "xss.page-element" Notice Quotable "an element that text does not have";
    HIDDEN_MARKUP "xss.hidden-markup" Warning Active
        "something that runs shows itself only to a parser that reads the markup differently";
    DANGLING "xss.dangling" Error Quotable
        "an address of another site whose quote does not end, which takes the page's text with it";
    BREAK_OUT "xss.break-out" Warning Quotable
        "ends a quote, a tag, a comment or an element of the page before the first tag";
    ENDS_ELEMENTS "xss.ends-elements" Error Quotable "ends several elements of the page that have text";
    QUOTE_BREAK_OUT "xss.quote-break-out" Warning Quotable
        "ends a quote of the page and goes on with an attribute";
    SLASH "xss.slash" Warning Quotable "a slash in place of white space before an attribute";
    HALF_OPEN "xss.half-open" Warning Quotable "a tag that does not end";
    UNQUOTED_ADDRESS "xss.unquoted-address" Error Active
        "an element that loads from another site, the address without quotes";
    JS_BREAK_OUT "xss.js-break-out" Critical Active
        "ends a string of a script and goes on with code that shows, sends, loads or hides something";
    JS_BREAK_OUT_CALL "xss.js-break-out-call" Critical Active
        "ends a string of a script and goes on with a call";
    JS_DIALOG "xss.js-dialog" Error Quotable "code that opens a dialog";
    JS_EXECUTE "xss.js-execute" Error Quotable "code that runs text as code";
    JS_WRITE "xss.js-write" Error Quotable "code that writes markup";
    JS_SEND "xss.js-send" Notice Quotable "code that sends something";
    JS_DECODE "xss.js-decode" Notice Quotable "code that makes text of numbers or of encoded text";
    JS_DATA "xss.js-data" Warning Quotable "code that reads what the browser keeps for the site";
    JS_TAKES "xss.js-takes" Error Quotable
        "code that reads what the browser keeps for the site, and sends something";
    JS_NAVIGATE "xss.js-navigate" Warning Quotable "code that leads elsewhere";
    JS_COMPUTED "xss.js-computed" Critical Quotable "code that calls a global function by a computed name";
    JS_REFLECT "xss.js-reflect" Warning Quotable "code that reaches constructors or prototypes";
    JS_INDIRECT "xss.js-indirect" Error Quotable "code that calls a telling function in a roundabout way";
    JS_OBFUSCATED "xss.js-obfuscated" Critical Quotable "code of brackets and signs alone";
    JS_WHOLE "xss.js-whole" Warning Quotable "all of the value holds as code";
    JS_COMMENT_END "xss.js-comment-end" Warning Quotable
        "code that ends with a comment or a tag's end, which what follows cannot harm";
    JS_CLOSES "xss.js-closes" Warning Quotable "code that closes brackets which it did not open";
    JS_ENTITY "xss.js-entity" Critical Active "code in an ampersand and braces, as Netscape ran it";
    SPACED_TAG "xss.spaced-tag" Critical Active
        "a script tag with white space or a sign before its name, and code after it that shows or runs something";
    CLIENT_TEMPLATE "xss.client-template" Critical Active
        "an expression of a client-side template that leaves its scope";
}

/// A file that is no longer than this may be a field.
const FIELD_BYTES_MAX: usize = 96;

/// See the module.
#[derive(Debug)]
pub struct Xss {
    names: Names,
    /// Names of JavaScript without which code does nothing.
    telling: Vec<Hint>,
}

impl Xss {
    /// The detector with its data.
    pub fn new() -> Xss {
        Xss { names: Names::new(), telling: Names::telling().map(Hint::word).collect() }
    }
}

impl Default for Xss {
    fn default() -> Self {
        Xss::new()
    }
}

/// Code and markup have one of these.
static PROFILE: Profile = Profile::new(Class::Xss, KINDS)
    .needs(ByteGroups::of(b"<=(`:[}"))
    .hints(HINTS)
    .weights(include_str!("../../../weights/xss.tsv"));

impl Detector for Xss {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn telling_hints(&self) -> &[Hint] {
        &self.telling
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        if input.is_json {
            return;
        }
        let text = input.text;
        let is_file = input.location.place == Place::FileContent && text.len() > FIELD_BYTES_MAX;
        // A page has scripts of its own, loads others and listens to its reader.
        let is_own_page = input.document.is_page
            && input.layers.is_empty()
            && found.may_read(text.len())
            && !active(text, &self.names).attacks;
        if input.groups.has(b'<') {
            let mut reader = Reader::new(text, &self.names, found, is_file);
            reader.is_own_page = is_own_page;
            let is_hidden = reader.data();
            if reader.found.may_walk(text.len(), reader.tokens) && is_hidden {
                let before = reader.tokens;
                reader.seen_through();
                let tokens = reader.tokens - before;
                reader.found.may_walk(text.len(), tokens);
            }
            let runs = reader.runs;
            if !runs && input.groups.has(b'+') && !input.groups.has(b' ') {
                // A form's spaces, which nobody has decoded.
                let spaced: Vec<u8> = text.iter().map(|&b| if b == b'+' { b' ' } else { b }).collect();
                Reader::new(&spaced, &self.names, found, is_file).data();
            }
            if !runs {
                self.without_tags(text, found);
                self.spaced_tag(text, found);
            }
        }
        if let Some(plain) = seven_bits(text) {
            Reader::new(&plain, &self.names, found, is_file).data();
        }
        if is_file {
            return;
        }
        if input.groups.has(b'=') {
            self.attributes(input, found);
        }
        if input.groups.has(b':') {
            self.address(input, found);
        }
        self.code(input, found);
        if input.groups.has(b'(') {
            dialogs(input, found);
        }
        if input.groups.has(b'}') && style_breaks_out(text) {
            let span = Span::new(0, text.len().min(STYLE_BYTES_MAX));
            match purpose::takes_code(input.location) || purpose::takes_documents(input.location) {
                true => found.mention(STYLE_BREAK_OUT, span),
                false => found.add(STYLE_BREAK_OUT, span),
            }
        }
        if input.groups.has(b'{') {
            self.templates(text, found);
            if input.groups.has(b'&') {
                self.entity(text, found);
            }
        }
    }
}

impl Xss {
    /// In a tag of the page: handlers that stand where an attribute could begin. The first one is read with
    /// all that follows in the tag; of the others only those count that show, send, load or hide something,
    /// for what stands before them may be anything.
    fn attributes(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        let Some(first) = first_event(text) else {
            return self.other_attributes(input, found);
        };
        if begins_attribute(&text[..first]) && memchr::memchr(b'<', &text[..first]).is_none() {
            let is_quoted = is_after_quote(&text[..first]);
            if is_quoted {
                found.add(QUOTE_BREAK_OUT, Span::new(first.saturating_sub(2), first));
            }
            let mut reader = Reader::new(text, &self.names, found, false);
            reader.is_quoted = is_quoted;
            reader.in_tag(first);
        }
        let mut at = first;
        while let Some(name) = next_event(text, at) {
            let value = name + memchr::memchr(b'=', &text[name..]).unwrap_or(0) + 1;
            at = value;
            let before = &text[..name];
            if !begins_attribute(before) {
                continue;
            }
            let (from, end) = attribute_value(text, value);
            if input.document.is_page && is_popup(&text[from..end]) {
                found.suppress(EVENT_SINK, Span::new(name, end), "own-popups");
                continue;
            }
            let outcome = walk_code(&text[..end], from, &self.names);
            if !found.may_walk(outcome.bytes_read, outcome.tokens as usize) {
                return;
            }
            if outcome.effects.any(Effects::SINKS) {
                let span = Span::new(name, end);
                match is_after_quote(before) {
                    true => found.add(EVENT_SINK, span),
                    // Without a tag and without a quote that ends one of the page's it may be a sentence
                    // about handlers.
                    false => found.mention(EVENT_SINK, span),
                }
            }
        }
    }

    /// After a quote, attributes that are not events: `" style=...`, `' href=javascript:...`.
    fn other_attributes(&self, input: &Input<'_>, found: &mut Found<'_>) {
        for quote in [b'"', b'\''] {
            if !input.groups.has(quote) {
                continue;
            }
            let Some(at) = memchr::memchr(quote, input.text) else { continue };
            if memchr::memchr(b'<', &input.text[..at]).is_none() {
                Reader::new(input.text, &self.names, found, false).in_tag(at + 1);
            }
        }
    }

    /// The value is an address, or has some after `=`, a quote or white space.
    fn address(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        if let Some((kind, from)) = scheme(text) {
            self.note_address(text, (0, text.len()), (kind, from), true, found);
        }
        let mut links = Links::new(text);
        for colon in memchr::memchr_iter(b':', text) {
            let Some((at, scheme)) = inner_scheme(text, colon).filter(|(at, _)| *at > 0) else { continue };
            // What Markdown shows as code is no link of it.
            let target = links.link_target(at).filter(|_| !input.document.is_file);
            let is_link = target.is_some() && !links.is_shown(at);
            // An element of XML may be called `data:html`, too.
            if target.is_none() && matches!(text[at - 1], b'<' | b']') {
                continue;
            }
            let end = target.unwrap_or_else(|| address_end(text, at));
            if !self.note_address(text, (at, end), scheme, is_link, found) {
                return;
            }
        }
    }

    /// Notes the address in `text` from `at` to `end`; one that is followed is no quotation. False if no more
    /// may be read.
    fn note_address(
        &self,
        text: &[u8],
        (at, end): (usize, usize),
        (scheme, from): (Scheme, usize),
        is_followed: bool,
        found: &mut Found<'_>,
    ) -> bool {
        let span = Span::new(at, end);
        match scheme {
            Scheme::Image => {}
            Scheme::Data if memchr::memchr(b',', span.of(text)).is_none() && at > 0 => {}
            Scheme::Data if is_followed => found.add(DATA_URL, span),
            Scheme::Data => found.mention(DATA_URL, span),
            Scheme::Script => {
                let outcome = walk_code(&text[..end], (at + from).min(end), &self.names);
                let may_read = found.may_walk(outcome.bytes_read, outcome.tokens as usize);
                let kind = script_url(&outcome);
                let acts = outcome.holds && (at == 0 || outcome.effects.any(Effects::ACTS));
                if outcome.effects.any(Effects::SINKS) || acts {
                    // In a text about code it is quoted; as a value by itself or a link it is followed.
                    match is_followed {
                        true => found.add(kind, span),
                        false => found.mention(kind, span),
                    }
                }
                return may_read;
            }
        }
        true
    }
}

/// `"alert(1)">`: a dialog that shows a number stands at a quote or a bracket of markup, as the end of a
/// probe whose beginning is elsewhere. Documents and fields for code may have it.
fn dialogs(input: &Input<'_>, found: &mut Found<'_>) {
    const NAMES: &[&[u8]] = &[b"alert", b"prompt", b"confirm"];
    let text = input.text;
    for open in memchr::memchr_iter(b'(', text).take(DIALOGS_MAX) {
        let Some(name) = NAMES.iter().find(|name| text[..open].ends_with(name)) else { continue };
        let digits = text[open + 1..].iter().take(6).take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 || text.get(open + 1 + digits) != Some(&b')') {
            continue;
        }
        let (start, end) = (open - name.len(), open + 2 + digits);
        let (before, after) = (start.checked_sub(1).map(|at| text[at]), text.get(end).copied());
        let is_edge = |b: Option<u8>| matches!(b, Some(b'"' | b'\'' | b'<' | b'>'));
        let is_sign = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_punctuation());
        let is_probe = is_sign(before) && is_sign(after) && (is_edge(before) || is_edge(after));
        let takes = || {
            let location = input.location;
            purpose::takes_documents(location)
                || purpose::takes_code(location)
                || purpose::takes_markup(location)
        };
        if is_probe {
            let span = Span::new(start, end);
            return if takes() { found.mention(DIALOG, span) } else { found.add(DIALOG, span) };
        }
    }
}

/// Parentheses that are looked at.
const DIALOGS_MAX: usize = 64;

/// A reader of the scripts in a document, such as an uploaded page or drawing.
#[derive(Debug)]
pub(super) struct Scripts(Names);

/// See [`Scripts::of`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Active {
    /// It has a script, an event handler or an address that is a script.
    pub runs: bool,
    /// One of them opens a dialog, or reads what the browser keeps for the site and sends, shows or leads
    /// somewhere.
    pub attacks: bool,
}

impl Scripts {
    pub fn new() -> Scripts {
        Scripts(Names::new())
    }

    /// The effects of the scripts in `document`.
    pub fn of(&self, document: &[u8]) -> Active {
        active(document, &self.0)
    }
}

/// The effects of the scripts in `document`.
fn active(document: &[u8], names: &Names) -> Active {
    let mut name: &[u8] = b"";
    let mut active = Active::default();
    let note = |from: usize, to: usize, is_attribute: bool| {
        let effects = walk_code(&document[..to], from, names).effects;
        let tells = Effects::SEND.or(Effects::NAVIGATE).or(Effects::WRITE);
        effects.any(Effects::DIALOG)
            || effects.any(Effects::DATA) && effects.any(tells)
            || is_attribute && effects.any(Effects::SEND)
    };
    for token in Lexer::new(document, Start::Data, 0) {
        let bytes = token.span.of(document);
        let (from, to) = (token.span.start as usize, token.span.end as usize);
        match token.kind {
            TokenKind::StartTag => active.runs |= name_is(bytes, "script"),
            TokenKind::RawText(Raw::Script) => active.attacks |= note(from, to, false),
            TokenKind::AttributeName => name = bytes,
            TokenKind::AttributeValue { .. } => {
                let script = match scheme(bytes) {
                    Some((Scheme::Script, at)) => Some(from + at),
                    _ => (event_name(name).is_some() && !bytes.is_empty()).then_some(from),
                };
                if let Some(from) = script {
                    active.runs = true;
                    active.attacks |= !is_popup(bytes) && note(from.min(to), to, true);
                }
            }
            TokenKind::Text
            | TokenKind::EndTag
            | TokenKind::Slash
            | TokenKind::TagEnd { .. }
            | TokenKind::RawText(_)
            | TokenKind::Comment(_)
            | TokenKind::Declaration => {}
        }
    }
    active
}

/// Where the first name of an event handler with a value stands.
fn first_event(text: &[u8]) -> Option<usize> {
    next_event(text, 0)
}

/// Where the first name of an event handler stands whose equals sign stands at `from` or after it.
fn next_event(text: &[u8], from: usize) -> Option<usize> {
    for at in memchr::memchr_iter(b'=', text.get(from..)?).map(|at| from + at) {
        let head = &text[..at];
        let name_end = head.iter().rposition(|b| !matches!(b, 0..=b' ')).map_or(0, |last| last + 1);
        let head = &head[head.len().min(name_end).saturating_sub(40)..name_end];
        let start = head.iter().rposition(|b| !b.is_ascii_alphanumeric()).map_or(0, |last| last + 1);
        // After a backslash, `n` and `t` are what is left of white space.
        let is_escape =
            start > 0 && head[start - 1] == b'\\' && matches!(head.get(start), Some(b'n' | b't' | b'r'));
        let start = start + usize::from(is_escape);
        if event_name(&head[start..]).is_some() {
            return Some(name_end - (head.len() - start));
        }
    }
    None
}

/// An attribute could begin after `before`.
fn begins_attribute(before: &[u8]) -> bool {
    before.last().is_none_or(|b| *b <= b' ' || matches!(b, b'/' | b'"' | b'\'' | b'`'))
}

/// A quote stands before, with nothing but white space and slashes after it, or with attributes.
fn is_after_quote(before: &[u8]) -> bool {
    const BARE: &[&[u8]] = &[
        b"autofocus",
        b"checked",
        b"disabled",
        b"hidden",
        b"readonly",
        b"required",
        b"controls",
        b"autoplay",
        b"open",
        b"selected",
        b"loop",
        b"muted",
        b"contenteditable",
        b"popover",
    ];
    let quote = before.iter().rposition(|b| matches!(b, b'"' | b'\'' | b'`'));
    let Some(quote) = quote else { return false };
    let mut parts = before[quote + 1..].split(|b| *b <= b' ' || *b == b'/').filter(|part| !part.is_empty());
    parts.all(|part| part.contains(&b'=') || is_one_of(part, BARE))
}

/// The value of an attribute whose equals sign stands before `at`: from where, and to where.
fn attribute_value(text: &[u8], at: usize) -> (usize, usize) {
    let from = skip_space(text, at);
    match text.get(from) {
        Some(quote @ (b'"' | b'\'')) => {
            let len = memchr::memchr(*quote, &text[from + 1..]).unwrap_or(text.len() - from - 1);
            (from + 1, from + 1 + len)
        }
        _ => {
            let ends = |b: &u8| b.is_ascii_whitespace() || *b == b'>';
            (from, text[from..].iter().position(ends).map_or(text.len(), |len| from + len))
        }
    }
}

/// The script or data address whose scheme ends at `colon`, in the middle of a text, and where it begins.
fn inner_scheme(text: &[u8], colon: usize) -> Option<(usize, (Scheme, usize))> {
    let head = &text[..colon];
    let letters = head.iter().rev().take(SCHEME_LETTERS_MAX).take_while(|b| b.is_ascii_alphabetic()).count();
    let start = colon - letters;
    let begins = start == 0
        || matches!(
            text[start - 1],
            b'=' | b'"' | b'\'' | b' ' | b'\t' | b'(' | b'<' | b'>' | b']' | b'\n' | b'/' | b'`' | b','
        );
    if !begins || letters < 4 {
        return None;
    }
    Some((start, scheme(&text[start..])?))
}

/// More letters than any scheme has that runs something.
const SCHEME_LETTERS_MAX: usize = 16;

/// Where an address ends that begins at `at`: at the quote that stands before it, else at the line's end or
/// at a tag.
fn address_end(text: &[u8], at: usize) -> usize {
    let rest = &text[at..];
    let len = match at.checked_sub(1).map(|before| text[before]) {
        Some(quote @ (b'"' | b'\'' | b'`')) => memchr::memchr(quote, rest),
        _ => memchr::memchr2(b'\n', b'<', rest),
    };
    at + len.unwrap_or(rest.len())
}

/// Signs and words of which an attack has at least one.
const HINTS: &[Hint] = &[
    Hint::text("<"),
    Hint::text("script"),
    Hint::word("alert"),
    Hint::word("confirm"),
    Hint::word("prompt"),
    Hint::word("eval"),
    Hint::text("script:"),
    Hint::text("data:"),
    Hint::text("mocha:"),
    Hint::text("constructor"),
    Hint::text("settimeout"),
    Hint::text("setinterval"),
    Hint::word("function"),
    Hint::word("fetch"),
    Hint::word("import"),
    Hint::word("document"),
    Hint::word("window"),
    Hint::word("location"),
    Hint::word("self"),
    Hint::word("top"),
    Hint::word("parent"),
    Hint::word("frames"),
    Hint::text("globalthis"),
    Hint::text("fromcharcode"),
    Hint::text("innerhtml"),
    Hint::text("atob"),
    Hint::text("unescape"),
    Hint::text("xmlhttprequest"),
    Hint::text("__proto__"),
    Hint::text("expression"),
    Hint::text("-moz-binding"),
    Hint::text("behavior"),
    Hint::text("${"),
    Hint::text("url(/"),
    Hint::text("url(h"),
    Hint::text("url('"),
    Hint::text("url(\""),
    Hint::text("@import"),
    Hint::text("image-set("),
    Hint::text("[]"),
    Hint::text("\"-"),
    Hint::text("'-"),
    Hint::text("\"+"),
    Hint::text("'+"),
    Hint::text("\";"),
    Hint::text("';"),
    Hint::text("="),
];
