//! Markup: what its elements and attributes would run or load.

mod attribute;

pub(super) use self::attribute::is_popup;

use std::cell::OnceCell;

use portcullis_lex::html::{Lexer, Raw, Start, Token, TokenKind, name_is};
use portcullis_types::Span;

use crate::Found;
use crate::detectors::purpose;
use crate::detectors::shown::Shown;
use crate::detectors::xss::effects::{Effects, Outcome};
use crate::detectors::xss::names::{Markup, Names};
use crate::detectors::xss::script::{walk_code, walk_script};
use crate::detectors::xss::style::{Style, style};
use crate::detectors::xss::url::{Scheme, scheme_in_list};
use crate::detectors::xss::words::{begins_code, has_words, is_frame, is_sentence};
use crate::detectors::xss::*;

/// A value that is longer is more than one element.
const ALONE_BYTES_MAX: usize = 256;

/// In a longer text a quote that does not end is a mistake, or one that decoding made.
const DANGLING_BYTES_MAX: usize = 512;

/// Reads the markup of one text.
pub(in crate::detectors::xss) struct Reader<'a, 'f, 'x, 't> {
    text: &'t [u8],
    names: &'a Names,
    pub found: &'f mut Found<'x>,
    /// All is loose: a file, which nobody pastes into a page.
    is_mention: bool,
    /// Where the text shows code, once that was asked.
    shown: OnceCell<Shown>,
    /// Tokens that were read.
    pub tokens: usize,
    element: Element,
    /// Something that runs was found.
    pub runs: bool,
    /// A script in it reads what the browser keeps for the site, and sends it or leads elsewhere.
    reads_data: bool,
    /// A script in it opens a dialog, or hides what it calls.
    is_telling: bool,
    /// The form that is open is sent to another site.
    form: Option<Span>,
    /// In a tag of the page, after a quote.
    pub is_quoted: bool,
    /// All of the text is a page, in a field for pages, whose scripts do nothing that attacks do.
    pub is_own_page: bool,
}

/// The start tag that is read.
#[derive(Clone, Copy, Debug)]
struct Element {
    name: Span,
    kind: Option<Markup>,
    /// Inside a tag that began in the text, or in one of the page that the text is pasted into.
    in_page: bool,
    attribute: Span,
    attributes: u32,
    is_script_language: bool,
    /// Its type, the first one, says that a script element holds JSON: no browser runs it.
    is_data: bool,
    has_type: bool,
    has_source: bool,
    has_foreign_source: bool,
    /// The address is of HTTP without TLS.
    has_plain_source: bool,
    /// The address is quoted and leads to a path of the same site.
    is_local: bool,
    /// The address is quoted and another site's by HTTPS.
    is_secure: bool,
    /// The address is that of a script which counts or embeds, and runs nothing of its owner's.
    is_widget: bool,
    is_refresh: bool,
    has_style_relation: bool,
    slash: bool,
    /// What it asks for is not to be seen.
    is_password: bool,
    /// It asks for nothing.
    is_quiet: bool,
    submits_elsewhere: bool,
    /// A framework sends a request for it, perhaps without anybody's deed.
    sends: bool,
    sends_alone: bool,
}

impl Element {
    fn new(name: Span, kind: Option<Markup>) -> Element {
        Element {
            name,
            kind,
            in_page: false,
            attribute: name,
            attributes: 0,
            is_script_language: false,
            is_data: false,
            has_type: false,
            has_source: false,
            has_foreign_source: false,
            has_plain_source: false,
            is_local: false,
            is_secure: false,
            is_widget: false,
            is_refresh: false,
            has_style_relation: false,
            slash: false,
            is_password: false,
            is_quiet: false,
            submits_elsewhere: false,
            sends: false,
            sends_alone: false,
        }
    }
}

impl<'a, 'f, 'x, 't> Reader<'a, 'f, 'x, 't> {
    pub fn new(text: &'t [u8], names: &'a Names, found: &'f mut Found<'x>, is_mention: bool) -> Self {
        let element = Element::new(Span::new(0, 0), None);
        Reader {
            text,
            names,
            found,
            is_mention,
            shown: OnceCell::new(),
            tokens: 0,
            element,
            runs: false,
            form: None,
            reads_data: false,
            is_telling: false,
            is_quoted: false,
            is_own_page: false,
        }
    }

    /// The text as it stands between tags. True if there is something in it that a second reading may see
    /// otherwise.
    pub fn data(&mut self) -> bool {
        let mut hidden = false;
        let mut first = true;
        let mut ended = 0;
        for token in Lexer::new(self.text, Start::Data, 0) {
            if token.kind == TokenKind::StartTag {
                ended = usize::MAX;
            } else if token.kind == TokenKind::EndTag && Raw::of(token.span.of(self.text)).is_some() {
                ended = ended.saturating_add(1);
                if ended == 2 {
                    self.add(ENDS_ELEMENTS, token.span, false);
                }
            }
            if first && matches!(token.kind, TokenKind::StartTag | TokenKind::EndTag) {
                first = false;
                self.break_out(token);
            }
            hidden |= !matches!(token.kind, TokenKind::Text | TokenKind::RawText(Raw::Script))
                && memchr::memchr(b'<', token.span.of(self.text)).is_some();
            self.token(token);
        }
        // What the page asks after the text goes along.
        if let Some(form) = self.form.take() {
            self.add(FORM_ASKS, form, false);
        }
        hidden
    }

    /// The text as a second parser may see it, tags in comments, quotes and raw text among it.
    pub fn seen_through(&mut self) {
        let had = self.runs;
        self.runs = false;
        // What only another parser sees is not the page's own.
        self.is_own_page = false;
        for token in Lexer::new(self.text, Start::Data, 0).seeing_through() {
            self.token(token);
        }
        if self.runs && !had {
            self.add(HIDDEN_MARKUP, self.element.name, false);
        }
        self.runs |= had;
    }

    /// The text from `at` on, in a tag of the page: after a quote that the text closes.
    pub fn in_tag(&mut self, at: usize) {
        let here = Span::new(at, at);
        self.element = Element { in_page: true, ..Element::new(here, Some(Markup::Text)) };
        for token in Lexer::new(self.text, Start::Tag, at) {
            self.token(token);
            if matches!(token.kind, TokenKind::TagEnd { .. }) {
                break;
            }
        }
    }

    fn token(&mut self, token: Token) {
        self.tokens += 1;
        let bytes = token.span.of(self.text);
        match token.kind {
            TokenKind::StartTag => {
                self.element = Element::new(token.span, self.names.element(bytes));
                self.glued(token.span);
            }
            TokenKind::Slash => self.element.slash = true,
            TokenKind::AttributeName => {
                if self.element.slash && self.element.attributes == 0 && !self.element.in_page {
                    self.add(SLASH, self.element.name, false);
                }
                self.element.attributes += 1;
                self.element.attribute = token.span;
            }
            TokenKind::AttributeValue { quote, closed } => {
                self.attribute(token.span, quote);
                let is_short = self.text.len() <= DANGLING_BYTES_MAX;
                if !closed && quote != 0 && is_short && self.element.has_foreign_source {
                    self.add(DANGLING, token.span, false);
                }
            }
            TokenKind::TagEnd { closed } => self.tag_end(closed),
            TokenKind::RawText(Raw::Script) => self.script(token.span),
            TokenKind::RawText(Raw::Style) if self.element.is_script_language => self.script(token.span),
            TokenKind::RawText(Raw::Style) => self.style(token.span),
            TokenKind::Declaration => self.declaration(token.span),
            TokenKind::EndTag if name_is(bytes, "form") => {
                self.form = None;
                self.element = Element::new(token.span, Some(Markup::Text));
            }
            TokenKind::EndTag => self.element = Element::new(token.span, Some(Markup::Text)),
            TokenKind::Text | TokenKind::Comment(_) | TokenKind::RawText(_) => {}
        }
    }

    /// What XML has: style sheets, and entities and attributes that are declared with a script.
    fn declaration(&mut self, span: Span) {
        let bytes = span.of(self.text);
        let starts =
            |start: &[u8]| bytes.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
        let is_style = starts(b"xml-stylesheet");
        let mut words = bytes.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let mut name: &[u8] = b"";
        // `<!ATTLIST img onerror CDATA "..">`: each element of that name has the handler.
        let declares =
            words.any(|word| event_name(std::mem::replace(&mut name, word)).is_some() && word == b"CDATA");
        if declares && memchr::memmem::find(bytes, b"ATTLIST").is_some() {
            self.run(EVENT_ATTRIBUTE, span, false);
        } else if starts(b"import ") && memchr::memmem::find(bytes, b"implementation").is_some() {
            self.run(PLUGIN, span, false);
        } else if style(bytes) == Some(Style::Runs)
            || matches!(scheme_in_list(bytes), Some((Scheme::Script, _)))
        {
            self.run(STYLE_RUNS, span, false);
        } else if is_style {
            self.add(LINK, span, false);
            let location = self.found.location;
            if location.place != Place::FileContent {
                match purpose::takes_documents(location) {
                    true => self.found.suppress(STYLESHEET, span, "embedded-documents"),
                    false => self.add(STYLESHEET, span, false),
                }
            }
        }
    }

    /// The first tag ends what the page had open: a quote and a tag, a comment, an element of text.
    fn break_out(&mut self, token: Token) {
        let name = token.span.of(self.text);
        let before = &self.text[..token.span.start as usize];
        let before = before.strip_suffix(b"/").unwrap_or(before);
        let before = before.strip_suffix(b"<").unwrap_or(before).trim_ascii_end();
        // A document's declaration ends, or a comment of its own.
        if memchr::memchr(b'<', before).is_some() {
            return;
        }
        let closes = [&b"\">"[..], b"'>", b"`>", b"-->", b"]]>", b"*/", b"';", b"\";"];
        let ends_element = token.kind == TokenKind::EndTag && Raw::of(name).is_some();
        if ends_element || before == b">" || closes.iter().any(|end| before.ends_with(end)) {
            self.add(BREAK_OUT, Span::new(before.len().saturating_sub(2), token.span.end as usize), false);
        }
    }

    fn script(&mut self, body: Span) {
        let bytes = body.of(self.text);
        let whole = Span::new(self.element.name.start as usize, body.end as usize);
        if self.element.is_data {
            return;
        }
        let mut outcome = walk_script(&self.text[..body.end as usize], body.start as usize, self.names);
        if !self.found.may_walk(outcome.bytes_read, outcome.tokens as usize) {
            return;
        }
        if memchr::memmem::find(bytes, b"<![CDATA[").is_some() {
            // In a drawing the marks of a section are not part of the script.
            let plain = without_seams(bytes);
            let drawn = walk_script(&plain, 0, self.names);
            outcome.effects.insert(drawn.effects);
            outcome.is_demo &= drawn.is_demo;
        }
        let loads = self.element.has_source;
        self.note_data(&outcome);
        // Only a module has them, and this is none: a browser takes all of it for an error, and runs nothing.
        let is_component = !self.element.has_type && begins_module(bytes);
        let is_sink = outcome.effects.any(Effects::SINKS) && !is_component;
        if is_sink || self.element.is_script_language {
            let hides = Effects::COMPUTED.or(Effects::INDIRECT).or(Effects::OBFUSCATED);
            let is_own = self.is_own_page && !self.element.is_script_language && !outcome.effects.any(hides);
            self.run(SCRIPT_SINK, whole, is_own);
            return;
        }
        let is_said = is_sentence(&self.text[..self.element.name.start as usize]);
        let acts = outcome.effects.any(Effects::ACTS) && !is_component;
        // `<script> tag`: a word after it that nothing is done with.
        let is_word = bytes.starts_with(b" ") && bytes.iter().all(|b| b.is_ascii_alphabetic() || *b == b' ');
        let is_mere = outcome.holds
            && !is_said
            && !is_component
            && !is_word
            && memchr::memmem::find(bytes, b"</").is_none();
        if (acts || is_mere) && begins_code(bytes) {
            // It shows, sends, loads and reads nothing: the snippet of a counter.
            self.run(SCRIPT_CODE, whole, self.takes_page());
        } else if !loads {
            let is_text = is_said || is_component || has_words(bytes);
            self.add(if is_text { SCRIPT_TAG } else { SCRIPT_EMPTY }, whole, false);
            let after = self.text[body.end as usize..].strip_prefix(b"</").unwrap_or_default();
            if !is_text
                && !bytes.trim_ascii().is_empty()
                && after.get(..6).is_some_and(|name| name.eq_ignore_ascii_case(b"script"))
            {
                self.add(SCRIPT_ENDED, whole, false);
            }
        }
    }

    /// The field is for a page, or for code that writes one.
    fn takes_page(&self) -> bool {
        let location = self.found.location;
        purpose::takes_markup(location) || purpose::takes_code(location)
    }

    fn style(&mut self, body: Span) {
        match style(body.of(self.text)) {
            Some(Style::Runs) => self.run(STYLE_RUNS, body, false),
            Some(Style::Hides) => self.add(STYLE_HIDDEN, body, false),
            Some(Style::Imports) => {
                self.add(STYLE_IMPORT, body, false);
                self.alone(body);
            }
            Some(Style::ImportsFont) => {}
            None => {}
        }
    }

    /// A short value has the element and nothing before it but what ends a tag of the page.
    fn alone(&mut self, element: Span) {
        let before = self.text[..self.element.name.start as usize].strip_suffix(b"<").unwrap_or_default();
        let is_end = |b: &u8| matches!(b, b'"' | b'\'' | b'>' | b' ' | b'-' | b'/');
        if self.text.len() <= ALONE_BYTES_MAX && before.iter().all(is_end) {
            self.add(ALONE, element, false);
        }
    }

    fn tag_end(&mut self, closed: bool) {
        let element = self.element;
        let name = element.name.of(self.text);
        if element.in_page {
            return;
        }
        if !closed && element.attributes > 0 && element.kind.is_some() {
            self.add(HALF_OPEN, element.name, false);
        }
        let is = |wanted: &str| name_is(name, wanted);
        if element.sends && element.sends_alone {
            self.run(SENDS, element.name, false);
        }
        self.form_part(name);
        if is("script") {
            if element.has_source && !element.is_local {
                let is_usual = element.is_widget && purpose::takes_markup(self.found.location);
                self.run(SCRIPT_SOURCE, element.name, is_usual || self.is_own_page && element.is_secure);
            } else if element.has_source {
                self.run(SCRIPT_LOCAL, element.name, false);
            } else if !closed || element.name.end as usize == self.text.len() {
                self.add(SCRIPT_EMPTY, element.name, false);
            }
        } else if is("base") && element.has_source {
            self.add(BASE, element.name, false);
        } else if is("meta") && element.is_refresh {
            self.add(REFRESH, element.name, false);
        } else if is("link") && element.has_style_relation {
            self.add(LINK, element.name, false);
            self.alone(element.name);
        } else if (is("form") || is("button") || is("input")) && element.has_foreign_source {
            self.add(FORM, element.name, false);
        } else if element.kind == Some(Markup::Frame) && element.has_source {
            // A document of the same site is shown, not run.
            let is_shown = is_frame(name) || is("object") && element.is_local;
            self.add(if is_shown { FRAME } else { PLUGIN }, element.name, false);
            if is_frame(name) && element.has_foreign_source {
                if element.attributes == 1 {
                    self.add(FRAME_BARE, element.name, false);
                }
                // Players and maps that people embed are loaded by HTTPS, and editors of articles take what
                // is old.
                if element.has_plain_source {
                    match purpose::takes_documents(self.found.location) {
                        true => self.found.suppress(FRAME_FOREIGN, element.name, "embedded-documents"),
                        false => self.add(FRAME_FOREIGN, element.name, false),
                    }
                }
            }
        } else if element.kind == Some(Markup::Frame) {
            self.add(PAGE_ELEMENT, element.name, false);
        } else if name.len() > 7
            && (name[name.len() - 7..].eq_ignore_ascii_case(b":script")
                || name[..6].eq_ignore_ascii_case(b"script") && name[6] == b'<' && name.contains(&b'('))
        {
            self.run(SCRIPT_CODE, element.name, false);
        } else if element.has_source && ["layer", "ilayer", "xml"].iter().any(|known| is(known)) {
            self.add(PLUGIN, element.name, false);
        } else if element.kind == Some(Markup::Page) {
            self.add(PAGE_ELEMENT, element.name, false);
        } else if element.kind == Some(Markup::Foreign) {
            self.add(FOREIGN, element.name, false);
        }
    }

    fn note_data(&mut self, outcome: &Outcome) {
        let takes = Effects::SEND.or(Effects::NAVIGATE).or(Effects::DIALOG);
        self.reads_data |= outcome.effects.any(Effects::DATA) && outcome.effects.any(takes);
        let hides = Effects::COMPUTED.or(Effects::INDIRECT).or(Effects::OBFUSCATED);
        self.is_telling |= outcome.effects.any(Effects::DIALOG.or(hides));
    }

    /// A form that goes to another site, and what asks in it. In a text, a form of a newsletter or a shop has
    /// its field and its button; a password nobody gives to another site.
    fn form_part(&mut self, name: &[u8]) {
        let element = self.element;
        let is = |wanted: &str| name_is(name, wanted);
        if is("form") {
            self.form = element.has_foreign_source.then_some(element.name);
        } else if element.submits_elsewhere {
            self.add(FORM_ASKS, element.name, false);
        } else if self.form.is_some() && (is("textarea") || is("input") && !element.is_quiet) {
            self.add(FORM_ASKS, element.name, !element.is_password);
        }
    }

    /// Walks the code from `from` to `to`.
    fn walk(&mut self, from: usize, to: usize) -> Option<Outcome> {
        let outcome = walk_code(&self.text[..to], from, self.names);
        self.note_data(&outcome);
        self.found.may_walk(outcome.bytes_read, outcome.tokens as usize).then_some(outcome)
    }

    fn run(&mut self, kind: KindId, span: Span, loose: bool) {
        self.runs = true;
        self.add(kind, span, loose);
    }

    /// A field for text shows what stands at `span` as code.
    fn is_shown(&self, span: Span) -> bool {
        purpose::takes_text(self.found.location)
            && self.shown.get_or_init(|| Shown::of(self.text)).has(span.start as usize)
    }

    fn add(&mut self, kind: KindId, span: Span, loose: bool) {
        // There a site's own scripts are set; one that takes its visitors' data away is none of them, nor one
        // that opens dialogs or hides what it does.
        if !self.reads_data && !self.is_telling && purpose::takes_scripts(self.found.location) {
            return self.found.suppress(kind, span, "site-scripts");
        }
        // `<script` in a list of words that no text may have.
        let is_listed = || {
            matches!(kind, HALF_OPEN | SCRIPT_EMPTY | SCRIPT_TAG | PAGE_ELEMENT)
                && purpose::lists_words(self.found.location)
        };
        let is_own = self.is_own_page && is_of_page(kind);
        match loose || is_own || self.is_mention || is_listed() {
            true => self.found.mention(kind, span),
            false if self.is_shown(span) => self.found.shown(kind, span),
            false => self.found.add(kind, span),
        }
    }
}

/// What whole pages have: style sheets, scripts and forms. Addresses that are scripts, documents in
/// attributes, plug-ins, handlers that load or show something and what hides any of them are not.
fn is_of_page(kind: KindId) -> bool {
    matches!(
        kind,
        PAGE_ELEMENT
            | LINK
            | SCRIPT_LOCAL
            | SCRIPT_CODE
            | SCRIPT_TAG
            | EVENT_CODE
            | STYLE_IMPORT
            | FOREIGN
            | FRAME
            | FORM
            | HALF_OPEN
            | SLASH
            | BREAK_OUT
    )
}

/// `export default {`, `import { a } from 'b'`; a call of `import` may have a comment before its bracket.
fn begins_module(script: &[u8]) -> bool {
    let script = script.trim_ascii_start();
    let Some(rest) = script.strip_prefix(b"export").or_else(|| script.strip_prefix(b"import")) else {
        return false;
    };
    let names = rest.trim_ascii_start();
    let is_name = |b: &u8| b.is_ascii_alphabetic() || matches!(b, b'_' | b'$' | b'{' | b'*' | b'\'' | b'"');
    names.first().is_some_and(is_name) && (names.len() < rest.len() || rest.starts_with(b"{"))
}

/// The kind of an address that is a script.
pub(in crate::detectors::xss) fn script_url(outcome: &Outcome) -> KindId {
    if outcome.effects.any(Effects::SINKS) {
        SCRIPT_URL
    } else if outcome.tokens > 0 && !outcome.is_demo {
        SCRIPT_URL_CALL
    } else {
        SCRIPT_URL_INERT
    }
}

/// `text` as one who takes comments and the marks of sections out of it reads it: `javas<!-- -->cript`,
/// `javas]]><![CDATA[cript`.
pub(super) fn without_seams(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(b"<!--") {
            rest = memchr::memmem::find(after, b"-->").map_or(&[][..], |end| &after[end + 3..]);
        } else if rest.get(..9).is_some_and(|mark| mark.eq_ignore_ascii_case(b"<![CDATA[")) {
            rest = &rest[9..];
        } else if let Some(after) = rest.strip_prefix(b"]]>") {
            rest = after;
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}
