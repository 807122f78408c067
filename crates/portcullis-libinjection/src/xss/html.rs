//! Cuts an input into the tokens of HTML, as forgiving browsers do.
//!
//! The states are those of the HTML standard's tokenizer, fewer and with the habits of old browsers: NUL is a
//! blank, back-ticks quote values, `<% %>` is a comment. Each state reads forward only; comment ends are
//! searched from where the last candidate was, so reading all tokens is linear in the input.

use memchr::memchr;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HtmlTokenKind {
    /// Text between tags, and CDATA.
    Text,
    /// The name of a tag; of a closing one too, unless `>` follows at once.
    TagName,
    /// The `>` of a tag.
    TagEnd,
    /// The `/>` of a tag.
    TagSelfClose,
    /// The name of a closing tag.
    CloseTag,
    /// An attribute's name.
    AttributeName,
    /// An attribute's value, without quotes.
    AttributeValue,
    /// A comment, a processing instruction or another declaration.
    Comment,
    /// `DOCTYPE` and what follows it.
    Doctype,
}

/// A piece of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtmlToken<'a> {
    /// Its kind.
    pub kind: HtmlTokenKind,
    /// Its bytes.
    pub text: &'a [u8],
}

/// The state of the document where the input begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HtmlContext {
    /// Text.
    Text,
    /// A tag, before an attribute.
    Tag,
    /// An attribute's value in `'`.
    SingleQuotedValue,
    /// An attribute's value in `"`.
    DoubleQuotedValue,
    /// An attribute's value in `` ` ``.
    TickQuotedValue,
}

/// An iterator over the tokens of an input in one context.
#[derive(Clone, Debug)]
pub struct HtmlTokenizer<'a> {
    input: &'a [u8],
    /// Offset of the next byte to read.
    at: usize,
    state: State,
    /// Between `</` and the tag's end. It outlives some ends, as in the original.
    closing: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Text,
    TagOpen,
    CloseTagOpen,
    TagName,
    TagEnd,
    Declaration,
    BeforeAttributeName,
    AttributeName,
    AfterAttributeName,
    BeforeValue,
    /// The content of a value up to this quote.
    QuotedValue(u8),
    UnquotedValue,
    AfterQuotedValue,
    SelfClose,
    End,
}

/// The outcome of a state.
enum Step<'a> {
    Token(HtmlToken<'a>),
    Go(State),
}

use HtmlTokenKind as Kind;

impl<'a> HtmlTokenizer<'a> {
    /// Starts at the beginning of the input.
    pub fn new(input: &'a [u8], context: HtmlContext) -> Self {
        let state = match context {
            HtmlContext::Text => State::Text,
            HtmlContext::Tag => State::BeforeAttributeName,
            HtmlContext::SingleQuotedValue => State::QuotedValue(b'\''),
            HtmlContext::DoubleQuotedValue => State::QuotedValue(b'"'),
            HtmlContext::TickQuotedValue => State::QuotedValue(b'`'),
        };
        HtmlTokenizer { input, at: 0, state, closing: false }
    }

    fn step(&mut self) -> Step<'a> {
        match self.state {
            State::Text => self.text(),
            State::TagOpen => self.tag_open(),
            State::CloseTagOpen => self.close_tag_open(),
            State::TagName => self.tag_name(),
            State::TagEnd => {
                self.closing = false;
                let next = if self.at + 1 < self.input.len() { State::Text } else { State::End };
                self.token(Kind::TagEnd, 1, 0, next)
            }
            State::Declaration => self.declaration(),
            State::BeforeAttributeName => self.before_attribute_name(),
            State::AttributeName => self.attribute_name(),
            State::AfterAttributeName => match self.next_visible() {
                None => Step::Go(State::End),
                Some(b'/') => self.skip_to(1, State::SelfClose),
                Some(b'=') => self.skip_to(1, State::BeforeValue),
                Some(b'>') => Step::Go(State::TagEnd),
                Some(_) => Step::Go(State::AttributeName),
            },
            State::BeforeValue => match self.next_visible() {
                None => Step::Go(State::End),
                Some(quote @ (b'"' | b'\'' | b'`')) => self.skip_to(1, State::QuotedValue(quote)),
                Some(_) => Step::Go(State::UnquotedValue),
            },
            State::QuotedValue(quote) => match memchr(quote, self.rest()) {
                None => self.last_token(Kind::AttributeValue),
                Some(len) => self.token(Kind::AttributeValue, len, 1, State::AfterQuotedValue),
            },
            State::UnquotedValue => self.unquoted_value(),
            State::AfterQuotedValue => match self.peek() {
                None => Step::Go(State::End),
                Some(b'/') => self.skip_to(1, State::SelfClose),
                Some(_) => Step::Go(State::BeforeAttributeName),
            },
            State::SelfClose => match self.peek() {
                None => Step::Go(State::End),
                Some(b'>') => {
                    self.at -= 1;
                    self.token(Kind::TagSelfClose, 2, 0, State::Text)
                }
                Some(_) => Step::Go(State::BeforeAttributeName),
            },
            State::End => Step::Go(State::End),
        }
    }

    fn text(&mut self) -> Step<'a> {
        match memchr(b'<', self.rest()) {
            None if self.rest().is_empty() => Step::Go(State::End),
            None => self.last_token(Kind::Text),
            Some(0) => self.skip_to(1, State::TagOpen),
            Some(len) => self.token(Kind::Text, len, 1, State::TagOpen),
        }
    }

    /// After `<`.
    fn tag_open(&mut self) -> Step<'a> {
        match self.peek() {
            None => Step::Go(State::End),
            Some(b'!') => self.skip_to(1, State::Declaration),
            Some(b'/') => {
                self.closing = true;
                self.skip_to(1, State::CloseTagOpen)
            }
            Some(b'?') => {
                self.at += 1;
                self.comment_until_gt()
            }
            // Old Internet Explorers and Safaris.
            Some(b'%') => {
                self.at += 1;
                let end = memchr::memmem::find(self.rest(), b"%>");
                self.comment(end, 2)
            }
            // Internet Explorer skips NUL.
            Some(byte) if byte.is_ascii_alphabetic() || byte == 0 => Step::Go(State::TagName),
            // A `<` that opens nothing is text.
            Some(_) => {
                self.at -= 1;
                self.token(Kind::Text, 1, 0, State::Text)
            }
        }
    }

    /// After `</`.
    fn close_tag_open(&mut self) -> Step<'a> {
        match self.peek() {
            None => Step::Go(State::End),
            Some(b'>') => Step::Go(State::Text),
            Some(byte) if byte.is_ascii_alphabetic() => Step::Go(State::TagName),
            Some(_) => {
                self.closing = false;
                self.comment_until_gt()
            }
        }
    }

    fn tag_name(&mut self) -> Step<'a> {
        let rest = self.rest();
        let end = rest.iter().position(|&byte| byte != 0 && (is_blank(byte) || matches!(byte, b'/' | b'>')));
        match end.map(|len| (len, rest[len])) {
            None => self.last_token(Kind::TagName),
            Some((len, b'/')) => self.token(Kind::TagName, len, 1, State::SelfClose),
            Some((len, b'>')) if self.closing => {
                self.closing = false;
                self.token(Kind::CloseTag, len, 1, State::Text)
            }
            Some((len, b'>')) => self.token(Kind::TagName, len, 0, State::TagEnd),
            Some((len, _)) => self.token(Kind::TagName, len, 1, State::BeforeAttributeName),
        }
    }

    fn before_attribute_name(&mut self) -> Step<'a> {
        loop {
            match self.next_visible() {
                None => return Step::Go(State::End),
                Some(b'/') => {
                    self.at += 1;
                    if matches!(self.peek(), None | Some(b'>')) {
                        return Step::Go(State::SelfClose);
                    }
                }
                Some(b'>') => return self.token(Kind::TagEnd, 1, 0, State::Text),
                Some(_) => return Step::Go(State::AttributeName),
            }
        }
    }

    fn attribute_name(&mut self) -> Step<'a> {
        let rest = self.rest();
        // Whatever the first byte is, it belongs to the name.
        let end = rest.iter().skip(1).position(|&byte| is_blank(byte) || matches!(byte, b'/' | b'=' | b'>'));
        match end.map(|len| (len + 1, rest[len + 1])) {
            None => self.last_token(Kind::AttributeName),
            Some((len, b'/')) => self.token(Kind::AttributeName, len, 1, State::SelfClose),
            Some((len, b'=')) => self.token(Kind::AttributeName, len, 1, State::BeforeValue),
            Some((len, b'>')) => self.token(Kind::AttributeName, len, 0, State::TagEnd),
            Some((len, _)) => self.token(Kind::AttributeName, len, 1, State::AfterAttributeName),
        }
    }

    fn unquoted_value(&mut self) -> Step<'a> {
        let rest = self.rest();
        let end = rest.iter().position(|&byte| is_blank(byte) || byte == b'>');
        match end.map(|len| (len, rest[len])) {
            None => self.last_token(Kind::AttributeValue),
            Some((len, b'>')) => self.token(Kind::AttributeValue, len, 0, State::TagEnd),
            Some((len, _)) => self.token(Kind::AttributeValue, len, 1, State::BeforeAttributeName),
        }
    }

    /// After `<!`.
    fn declaration(&mut self) -> Step<'a> {
        let rest = self.rest();
        if rest.get(..7).is_some_and(|head| head.eq_ignore_ascii_case(b"DOCTYPE")) {
            match memchr(b'>', rest) {
                None => self.last_token(Kind::Doctype),
                Some(len) => self.token(Kind::Doctype, len, 1, State::Text),
            }
        } else if rest.starts_with(b"[CDATA[") {
            self.at += 7;
            match memchr::memmem::find(self.rest(), b"]]>") {
                None => self.last_token(Kind::Text),
                Some(len) => self.token(Kind::Text, len, 3, State::Text),
            }
        } else if rest.starts_with(b"--") {
            self.at += 2;
            match comment_end(self.rest()) {
                None => self.comment(None, 0),
                Some((len, closing)) => self.comment(Some(len), closing),
            }
        } else {
            self.comment_until_gt()
        }
    }

    fn comment_until_gt(&mut self) -> Step<'a> {
        let end = memchr(b'>', self.rest());
        self.comment(end, 1)
    }

    fn comment(&mut self, end: Option<usize>, closing: usize) -> Step<'a> {
        match end {
            None => self.last_token(Kind::Comment),
            Some(len) => self.token(Kind::Comment, len, closing, State::Text),
        }
    }

    /// The next `len` bytes as a token; so many bytes after it are skipped.
    fn token(&mut self, kind: Kind, len: usize, skipped: usize, next: State) -> Step<'a> {
        let (text, _) = self.rest().split_at(len);
        self.at += len + skipped;
        self.state = next;
        Step::Token(HtmlToken { kind, text })
    }

    /// All that is left as a token.
    fn last_token(&mut self, kind: Kind) -> Step<'a> {
        self.token(kind, self.rest().len(), 0, State::End)
    }

    fn skip_to(&mut self, len: usize, next: State) -> Step<'a> {
        self.at += len;
        Step::Go(next)
    }

    fn rest(&self) -> &'a [u8] {
        &self.input[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    /// Skips blanks. As in the original on machines where C's characters are signed, 0xff is the end of the
    /// input.
    fn next_visible(&mut self) -> Option<u8> {
        let rest = self.rest();
        self.at += rest.iter().position(|&byte| !is_blank(byte)).unwrap_or(rest.len());
        self.peek().filter(|&byte| byte != 0xff)
    }
}

impl<'a> Iterator for HtmlTokenizer<'a> {
    type Item = HtmlToken<'a>;

    fn next(&mut self) -> Option<HtmlToken<'a>> {
        // Each turn moves on in the input or to a state that does.
        loop {
            match self.step() {
                Step::Token(token) => return Some(token),
                Step::Go(State::End) => {
                    self.state = State::End;
                    return None;
                }
                Step::Go(next) => self.state = next,
            }
        }
    }
}

/// NUL too: the original asks C's `strchr`, which finds it in any set, and Internet Explorer skips it.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r' | 0)
}

/// Returns the start of a comment's closing `-->` or `--!>` and its length. NULs may stand after the first
/// dash.
fn comment_end(comment: &[u8]) -> Option<(usize, usize)> {
    memchr::memchr_iter(b'-', comment).find_map(|at| {
        let after = &comment[at + 1..];
        let nuls = after.iter().position(|&byte| byte != 0)?;
        match after[nuls..] {
            [b'-' | b'!', b'>', ..] => Some((at, nuls + 3)),
            _ => None,
        }
    })
}
