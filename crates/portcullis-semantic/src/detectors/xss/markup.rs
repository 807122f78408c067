//! Markup: what its elements and attributes would run or load.

use portcullis_lex::html::{Lexer, Raw, Start, Token, TokenKind, name_is};
use portcullis_types::Span;

use super::effects::{Effects, Outcome};
use super::names::{Markup, Names};
use super::script::{walk_code, walk_script};
use super::style::{Style, style};
use super::url::{Scheme, scheme, scheme_in_list};
use super::words::{begins_code, event_name, has_words, is_directive, is_english, is_frame, is_sentence};
use super::*;
use crate::{Found, decode};

/// Scripts, handlers and addresses of one text that are walked; with more of them one more tells nothing new.
const WALKS_MAX: usize = 48;

/// In a longer text a quote that does not end is a mistake, or one that decoding made.
const DANGLING_BYTES_MAX: usize = 512;

/// Bytes of an address that are cleaned as browsers do.
const ADDRESS_BYTES_MAX: usize = 1_024;

/// Reads the markup of one text.
pub(super) struct Reader<'a, 'f, 'x, 't> {
    text: &'t [u8],
    names: &'a Names,
    found: &'f mut Found<'x>,
    /// All is loose: a file, which nobody pastes into a page.
    is_loose: bool,
    walks: usize,
    element: Element,
    /// Something that runs was found.
    pub runs: bool,
    /// In a tag of the page, behind a quote.
    pub is_quoted: bool,
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
    has_source: bool,
    has_foreign_source: bool,
    /// The address is quoted and leads to a path of the same site.
    is_local: bool,
    is_refresh: bool,
    has_style_relation: bool,
    slash: bool,
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
            has_source: false,
            has_foreign_source: false,
            is_local: false,
            is_refresh: false,
            has_style_relation: false,
            slash: false,
        }
    }
}

impl<'a, 'f, 'x, 't> Reader<'a, 'f, 'x, 't> {
    pub fn new(text: &'t [u8], names: &'a Names, found: &'f mut Found<'x>, is_loose: bool) -> Self {
        let element = Element::new(Span::new(0, 0), None);
        Reader { text, names, found, is_loose, walks: 0, element, runs: false, is_quoted: false }
    }

    /// The text as it stands between tags. True if there is something in it that a second reading may see otherwise.
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
        hidden
    }

    /// The text as a second parser may see it, tags in comments, quotes and raw text among it.
    pub fn seen_through(&mut self) {
        let had = self.runs;
        self.runs = false;
        for token in Lexer::new(self.text, Start::Data, 0).seeing_through() {
            self.token(token);
        }
        if self.runs && !had {
            self.add(HIDDEN_MARKUP, self.element.name, false);
        }
        self.runs |= had;
    }

    /// The text from `at` on, in a tag of the page: behind a quote that the text closes.
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
            TokenKind::EndTag => self.element = Element::new(token.span, Some(Markup::Text)),
            TokenKind::Text | TokenKind::Comment(_) | TokenKind::RawText(_) => {}
        }
    }

    /// What XML has: style sheets, and entities and attributes that are declared with a script.
    fn declaration(&mut self, span: Span) {
        let bytes = span.of(self.text);
        let starts =
            |start: &[u8]| bytes.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
        let is_style = starts(b"xml-stylesheet") || starts(b"import ");
        if style(bytes) == Some(Style::Runs) || matches!(scheme_in_list(bytes), Some((Scheme::Script, _))) {
            self.run(STYLE_RUNS, span, false);
        } else if is_style {
            self.add(LINK, span, false);
        }
    }

    /// The first tag ends what the page had open: a quote and a tag, a comment, an element of text.
    fn break_out(&mut self, token: Token) {
        let name = token.span.of(self.text);
        let before = &self.text[..token.span.start as usize];
        let before = before.strip_suffix(b"/").unwrap_or(before);
        let before = before.strip_suffix(b"<").unwrap_or(before).trim_ascii_end();
        let closes = [&b"\">"[..], b"'>", b"`>", b"-->", b"]]>", b"*/", b"';", b"\";"];
        let ends_element = token.kind == TokenKind::EndTag && Raw::of(name).is_some();
        if ends_element || before == b">" || closes.iter().any(|end| before.ends_with(end)) {
            self.add(BREAK_OUT, Span::new(before.len().saturating_sub(2), token.span.end as usize), false);
        }
    }

    fn attribute(&mut self, value: Span, quote: u8) {
        let name = self.element.attribute.of(self.text);
        let bytes = value.of(self.text);
        let whole = Span::new(self.element.attribute.start as usize, value.end as usize);
        if quote == 0 {
            self.glued(value);
        }
        if let Some(handler) = event_name(name) {
            self.handler(handler, value, whole);
        } else if name_is(name, "style") {
            match style(bytes) {
                Some(Style::Runs) => self.run(STYLE_RUNS, whole, false),
                Some(Style::Imports) => self.add(STYLE_IMPORT, whole, false),
                None => {}
            }
        } else if name_is(name, "srcdoc") {
            let is_markup = memchr::memchr2(b'<', b'&', bytes).is_some();
            self.add(if is_markup { SRCDOC } else { FRAME }, whole, false);
        } else if name_is(name, "language") || name_is(name, "type") || name_is(name, "contentscripttype") {
            let names = |word: &[u8]| bytes.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
            let in_style = name_is(self.element.name.of(self.text), "style");
            self.element.is_script_language |= names(b"vbs") || (in_style && names(b"script"));
        } else if name_is(name, "attributename") {
            if event_name(bytes).is_some() {
                self.run(EVENT_ATTRIBUTE, whole, false);
            }
        } else if is_directive(name) {
            self.directive(value, whole);
        } else if name_is(name, "http-equiv") {
            self.element.is_refresh |= bytes.eq_ignore_ascii_case(b"refresh");
        } else if name_is(name, "rel") {
            let style = |part: &[u8]| {
                part.eq_ignore_ascii_case(b"stylesheet") || part.eq_ignore_ascii_case(b"import")
            };
            self.element.has_style_relation |= bytes.split(u8::is_ascii_whitespace).any(style);
        } else {
            self.address(name, value, whole, quote);
        }
    }

    /// An attribute whose value a client-side framework evaluates.
    fn directive(&mut self, value: Span, whole: Span) {
        let Some(outcome) = self.walk(value.start as usize, value.end as usize) else { return };
        if outcome.leaves_scope() {
            self.run_if(CLIENT_TEMPLATE, whole, &outcome);
        }
    }

    /// A handler that is glued to a name or a value by a slash or a plus sign, which some filters read as white space.
    fn glued(&mut self, span: Span) {
        let bytes = span.of(self.text);
        let Some(at) = first_event(bytes).filter(|&at| at > 0) else { return };
        let Some(value) = memchr::memchr(b'=', &bytes[at..]) else { return };
        let from = span.start as usize + at + value + 1;
        if let Some(outcome) = self.walk(from, span.end as usize)
            && outcome.effects.any(Effects::SINKS)
        {
            self.run_if(EVENT_SINK, span, &outcome);
        }
    }

    fn address(&mut self, name: &[u8], value: Span, whole: Span, quote: u8) {
        let bytes = value.of(self.text);
        let is_address = self.names.is_url_attribute(name);
        if is_address && !self.element.in_page {
            self.element.has_source |= !name_is(name, "content") && !bytes.is_empty();
            let bytes = bytes.trim_ascii_start();
            let starts =
                |start: &[u8]| bytes.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
            self.element.has_foreign_source |= starts(b"http:")
                || starts(b"https:")
                || starts(b"//")
                || starts(b"\\\\")
                || starts(b"/\\")
                || starts(b"ftp:");
            self.element.is_local = quote != 0
                && !self.element.has_foreign_source
                && memchr::memchr(b':', bytes).is_none()
                && memchr::memchr(b'/', bytes).is_some();
            let loads = matches!(self.element.kind, None | Some(Markup::Frame | Markup::Page));
            if quote == 0 && loads && self.element.has_foreign_source {
                self.add(UNQUOTED_ADDRESS, whole, false);
            }
        }
        if is_address && bytes.iter().take(24).any(|b| matches!(b, b'&' | b'\t' | b'\n' | b'\r')) {
            // Browsers decode entities first and then take tabs and line ends out of an address. White space that is
            // written as an entity would end the value if the whole text were decoded.
            let mut plain = decode::entities(&bytes[..bytes.len().min(ADDRESS_BYTES_MAX)]);
            plain.retain(|b| !matches!(b, b'\t' | b'\n' | b'\r'));
            if let Some((Scheme::Script, at)) = scheme(&plain)
                && walk_code(&plain, at, self.names).effects.any(Effects::SINKS)
            {
                self.run(SCRIPT_URL, whole, false);
            }
        }
        let found = if is_address { scheme_in_list(bytes) } else { scheme(bytes) };
        match found {
            Some((Scheme::Script, at)) => {
                let outcome = self.walk(value.start as usize + at, value.end as usize);
                let Some(outcome) = outcome else { return };
                let kind = script_url(&outcome);
                if is_address || outcome.effects.any(Effects::SINKS) {
                    self.run_if(kind, whole, &outcome);
                }
            }
            Some((Scheme::Image, _)) if self.shows_images() => {}
            Some((Scheme::Data | Scheme::Image, _)) if is_address && !name_is(name, "content") => {
                self.run(DATA_URL, whole, false)
            }
            _ => {}
        }
    }

    /// True for elements that show an image and run nothing of it.
    fn shows_images(&self) -> bool {
        let name = self.element.name.of(self.text);
        self.element.in_page
            || ["img", "image", "source", "input", "video", "link", "td", "table", "body"]
                .iter()
                .any(|known| name_is(name, known))
    }

    fn handler(&mut self, name: &[u8], value: Span, whole: Span) {
        let bytes = value.of(self.text);
        let start = match scheme(bytes) {
            Some((Scheme::Script, at)) => value.start as usize + at,
            _ => value.start as usize,
        };
        let Some(outcome) = self.walk(start, value.end as usize) else { return };
        let kind = if outcome.effects.any(Effects::SINKS) {
            EVENT_SINK
        } else if self.element.in_page && !self.is_quoted {
            // Without a quote of the page before it, `once = f(x)` is an assignment.
            EVENT_ODD
        } else if outcome.effects.any(Effects::ACTS) && !bytes.starts_with(b"{") {
            EVENT_CODE
        } else if is_english(name) || bytes.is_empty() {
            return;
        } else if self.element.in_page || bytes.starts_with(b"{") {
            // In braces it is a component's property in many a code sample.
            EVENT_ODD
        } else {
            EVENT_ATTRIBUTE
        };
        self.run_if(kind, whole, &outcome);
    }

    fn script(&mut self, body: Span) {
        let bytes = body.of(self.text);
        let whole = Span::new(self.element.name.start as usize, body.end as usize);
        if !self.may_walk() {
            return;
        }
        let outcome = walk_script(&self.text[..body.end as usize], body.start as usize, self.names);
        let loads = self.element.has_source;
        if outcome.effects.any(Effects::SINKS) || self.element.is_script_language {
            self.run_if(SCRIPT_SINK, whole, &outcome);
        } else if (outcome.effects.any(Effects::ACTS) || outcome.holds) && begins_code(bytes) {
            self.run_if(SCRIPT_CODE, whole, &outcome);
        } else if !loads {
            let is_text = is_sentence(&self.text[..self.element.name.start as usize]) || has_words(bytes);
            self.add(if is_text { SCRIPT_TAG } else { SCRIPT_EMPTY }, whole, false);
        }
    }

    fn style(&mut self, body: Span) {
        match style(body.of(self.text)) {
            Some(Style::Runs) => self.run(STYLE_RUNS, body, false),
            Some(Style::Imports) => self.add(STYLE_IMPORT, body, false),
            None => {}
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
        if is("script") {
            if element.has_source && !element.is_local {
                self.run(SCRIPT_SOURCE, element.name, false);
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
        } else if (is("form") || is("button") || is("input")) && element.has_foreign_source {
            self.add(FORM, element.name, false);
        } else if element.kind == Some(Markup::Frame) && element.has_source {
            self.add(if is_frame(name) { FRAME } else { PLUGIN }, element.name, false);
        } else if element.kind == Some(Markup::Frame) {
            self.add(PAGE_ELEMENT, element.name, false);
        } else if name.len() > 7 && name[name.len() - 7..].eq_ignore_ascii_case(b":script") {
            self.run(SCRIPT_CODE, element.name, false);
        } else if element.has_source && ["layer", "ilayer", "xml"].iter().any(|known| is(known)) {
            self.add(PLUGIN, element.name, false);
        } else if element.kind == Some(Markup::Page) {
            self.add(PAGE_ELEMENT, element.name, false);
        } else if element.kind == Some(Markup::Foreign) {
            self.add(FOREIGN, element.name, false);
        }
    }

    /// Walks the code from `from` to `to`.
    fn walk(&mut self, from: usize, to: usize) -> Option<Outcome> {
        self.may_walk().then(|| walk_code(&self.text[..to], from, self.names))
    }

    fn may_walk(&mut self) -> bool {
        self.walks += 1;
        self.walks <= WALKS_MAX
    }

    /// An example of a script in a sentence about it is no script.
    fn run_if(&mut self, kind: KindId, span: Span, outcome: &Outcome) {
        let tag = if self.element.in_page { span.start } else { self.element.name.start };
        let is_mention = outcome.is_demo && is_sentence(&self.text[..tag as usize]);
        self.run(kind, span, is_mention);
    }

    fn run(&mut self, kind: KindId, span: Span, loose: bool) {
        self.runs = true;
        self.add(kind, span, loose);
    }

    fn add(&mut self, kind: KindId, span: Span, loose: bool) {
        match loose || self.is_loose {
            true => self.found.add_loose(kind, span),
            false => self.found.add(kind, span),
        }
    }
}

/// What a script in an address is.
pub(super) fn script_url(outcome: &Outcome) -> KindId {
    if outcome.effects.any(Effects::SINKS) {
        SCRIPT_URL
    } else if outcome.tokens > 0 && !outcome.is_demo {
        SCRIPT_URL_CALL
    } else {
        SCRIPT_URL_INERT
    }
}
