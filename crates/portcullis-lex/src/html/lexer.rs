use memchr::{memchr, memchr2, memmem};
use portcullis_types::Span;

use super::{Raw, Start, Token, TokenKind, name_is};

/// The tokens of a text. See the module.
#[derive(Clone, Debug)]
pub struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
    state: State,
    /// Name of the start tag that is open, for what follows it.
    raw: Option<Raw>,
    is_end_tag: bool,
    sees_through: bool,
    /// No `-->` and no closing quote of that kind from here on: found once, not looked for again.
    no_comment_end: bool,
    no_quote: [bool; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Data,
    Tag,
    /// Behind an attribute's name.
    AfterName,
    Quoted(u8),
    Unquoted,
    Raw(Raw),
    Comment,
}

impl<'t> Lexer<'t> {
    /// The tokens of `text` from the byte `at`, which stands where `start` says.
    pub fn new(text: &'t [u8], start: Start, at: usize) -> Lexer<'t> {
        let state = match start {
            Start::Data => State::Data,
            Start::Tag => State::Tag,
            Start::Quoted(quote) => State::Quoted(quote),
            Start::Unquoted => State::Unquoted,
            Start::Raw(raw) => State::Raw(raw),
            Start::Comment => State::Comment,
        };
        Lexer {
            text,
            at: at.min(text.len()),
            state,
            raw: None,
            is_end_tag: false,
            sees_through: false,
            no_comment_end: false,
            no_quote: [false; 3],
        }
    }

    /// A tag begins at each `<` and letter, whatever stands around it.
    pub fn seeing_through(mut self) -> Lexer<'t> {
        self.sees_through = true;
        self
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn data(&mut self) -> Token {
        let from = self.at;
        if self.byte(0) == b'<'
            && let Some(token) = self.markup()
        {
            return token;
        }
        // Text up to the next sign that begins markup.
        let mut at = self.at + 1;
        while let Some(found) = memchr(b'<', &self.text[at..]) {
            at += found;
            if begins_markup(&self.text[at..]) {
                self.at = at;
                return Token { kind: TokenKind::Text, span: Span::new(from, at) };
            }
            at += 1;
        }
        self.at = self.text.len();
        Token { kind: TokenKind::Text, span: Span::new(from, self.at) }
    }

    /// The token that the `<` here begins, if it does.
    fn markup(&mut self) -> Option<Token> {
        let rest = &self.text[self.at..];
        if !begins_markup(rest) {
            return None;
        }
        let nuls = rest[1..].iter().take_while(|&&b| b == 0).count();
        match rest[1 + nuls..] {
            [b'/', ..] => {
                let letter = rest[2 + nuls..].iter().find(|&&b| b != 0).is_some_and(u8::is_ascii_alphabetic);
                if letter { Some(self.tag(2 + nuls, true)) } else { Some(self.declaration(2 + nuls)) }
            }
            [b'!', b'-', b'-', ..] => {
                self.at += 4 + nuls;
                self.state = State::Comment;
                Some(self.comment())
            }
            [b'!' | b'?', ..] => Some(self.declaration(2 + nuls)),
            _ => Some(self.tag(1 + nuls, false)),
        }
    }

    fn tag(&mut self, skip: usize, is_end: bool) -> Token {
        let from = self.at + skip;
        let name = &self.text[from..];
        let ends = |b: u8| is_space(b) || matches!(b, b'/' | b'>') || (b == b'<' && self.sees_through);
        let len = name.iter().position(|&b| ends(b)).unwrap_or(name.len());
        self.at = from + len;
        self.state = State::Tag;
        self.is_end_tag = is_end;
        self.raw = Raw::of(&name[..len]).filter(|_| !is_end);
        let kind = if is_end { TokenKind::EndTag } else { TokenKind::StartTag };
        Token { kind, span: Span::new(from, self.at) }
    }

    fn declaration(&mut self, skip: usize) -> Token {
        let from = self.at + skip;
        if self.sees_through {
            let close = self.end_or_tag(from, b'>');
            self.at = close + usize::from(self.text.get(close) == Some(&b'>'));
            return Token { kind: TokenKind::Declaration, span: Span::new(from, close) };
        }
        let end = memchr(b'>', &self.text[from..]).map(|found| from + found);
        self.at = end.map_or(self.text.len(), |end| end + 1);
        Token { kind: TokenKind::Declaration, span: Span::new(from, end.unwrap_or(self.text.len())) }
    }

    /// From inside a comment to its end.
    fn comment(&mut self) -> Token {
        let from = self.at;
        self.state = State::Data;
        // `<!-->` and `<!--->` are whole.
        for (short, len) in [(&b">"[..], 1), (b"->", 2)] {
            if self.text[from..].starts_with(short) && self.text[..from].ends_with(b"<!--") {
                self.at = from + len;
                return Token { kind: TokenKind::Comment(true), span: Span::new(from, from) };
            }
        }
        if self.sees_through {
            return Token { kind: TokenKind::Comment(false), span: Span::new(from, from) };
        }
        let end = match self.no_comment_end {
            true => None,
            false => self.comment_end(from),
        };
        self.no_comment_end |= end.is_none();
        let (close, next) = end.unwrap_or((self.text.len(), self.text.len()));
        self.at = next;
        Token { kind: TokenKind::Comment(end.is_some()), span: Span::new(from, close) }
    }

    /// `-->` or `--!>`.
    fn comment_end(&self, from: usize) -> Option<(usize, usize)> {
        let mut at = from;
        loop {
            let found = at + memmem::find(&self.text[at..], b"--")?;
            match &self.text[found + 2..] {
                [b'>', ..] => return Some((found, found + 3)),
                [b'!', b'>', ..] => return Some((found, found + 4)),
                _ => at = found + 1,
            }
        }
    }

    /// In a tag, before an attribute.
    fn in_tag(&mut self) -> Token {
        while is_space(self.byte(0)) && self.at < self.text.len() {
            self.at += 1;
        }
        let from = self.at;
        match self.byte(0) {
            _ if from >= self.text.len() => self.tag_end(from, false),
            b'>' => self.tag_end(from, true),
            b'/' => {
                self.at += 1;
                if self.byte(0) == b'>' {
                    return self.tag_end(self.at, true);
                }
                Token { kind: TokenKind::Slash, span: Span::new(from, from + 1) }
            }
            b'<' if self.sees_through && begins_markup(&self.text[from..]) => self.tag_end(from, false),
            _ => {
                // The first byte is part of the name even if it is `=`.
                let ends = |b: &u8| is_space(*b) || matches!(*b, b'/' | b'>' | b'=');
                let name = &self.text[from + 1..];
                self.at = from + 1 + name.iter().position(ends).unwrap_or(name.len());
                self.state = State::AfterName;
                Token { kind: TokenKind::AttributeName, span: Span::new(from, self.at) }
            }
        }
    }

    fn tag_end(&mut self, at: usize, closed: bool) -> Token {
        self.at = at + usize::from(closed);
        self.state = match self.raw.take() {
            Some(raw) if closed => State::Raw(raw),
            _ => State::Data,
        };
        Token { kind: TokenKind::TagEnd { closed }, span: Span::new(at, self.at) }
    }

    /// Behind an attribute's name: its value, if it has one.
    fn after_name(&mut self) -> Option<Token> {
        let mut at = self.at;
        while self.text.get(at).is_some_and(|&b| is_space(b)) {
            at += 1;
        }
        self.state = State::Tag;
        if self.text.get(at) != Some(&b'=') {
            return None;
        }
        at += 1;
        while self.text.get(at).is_some_and(|&b| is_space(b)) {
            at += 1;
        }
        self.at = at;
        match self.byte(0) {
            quote @ (b'"' | b'\'') => {
                self.at += 1;
                Some(self.quoted(quote))
            }
            // Without a closing one in the same tag it is a sign like others.
            b'`' if self.closes_backtick() => {
                self.at += 1;
                Some(self.quoted(b'`'))
            }
            _ => Some(self.unquoted()),
        }
    }

    fn closes_backtick(&self) -> bool {
        let rest = &self.text[self.at + 1..];
        let window = &rest[..rest.len().min(256)];
        memchr2(b'`', b'>', window).is_some_and(|found| window[found] == b'`')
    }

    fn quoted(&mut self, quote: u8) -> Token {
        let from = self.at;
        self.state = State::Tag;
        if self.sees_through {
            let close = self.end_or_tag(from, quote);
            let closed = self.text.get(close) == Some(&quote);
            self.at = close + usize::from(closed);
            return Token { kind: TokenKind::AttributeValue { quote, closed }, span: Span::new(from, close) };
        }
        let known = match quote {
            b'"' => 0,
            b'\'' => 1,
            _ => 2,
        };
        let end = match self.no_quote[known] {
            true => None,
            false => memchr(quote, &self.text[from..]).map(|found| from + found),
        };
        self.no_quote[known] |= end.is_none();
        let close = end.unwrap_or(self.text.len());
        self.at = end.map_or(close, |end| end + 1);
        let kind = TokenKind::AttributeValue { quote, closed: end.is_some() };
        Token { kind, span: Span::new(from, close) }
    }

    /// Returns the offset of the first `sign`, or of the first tag, from `from` on.
    fn end_or_tag(&self, from: usize, sign: u8) -> usize {
        let mut at = from;
        while let Some(found) = memchr2(sign, b'<', &self.text[at..]) {
            at += found;
            if self.text[at] == sign || begins_tag(&self.text[at..]) {
                return at;
            }
            at += 1;
        }
        self.text.len()
    }

    fn unquoted(&mut self) -> Token {
        let from = self.at;
        self.state = State::Tag;
        let rest = &self.text[from..];
        self.at = from + rest.iter().position(|&b| is_space(b) || b == b'>').unwrap_or(rest.len());
        let kind = TokenKind::AttributeValue { quote: 0, closed: true };
        Token { kind, span: Span::new(from, self.at) }
    }

    /// From inside an element of text to its end tag.
    fn raw(&mut self, raw: Raw) -> Token {
        let from = self.at;
        let mut at = from;
        self.state = State::Data;
        while let Some(found) = memchr(b'<', &self.text[at..]) {
            let here = at + found;
            at = here + 1;
            let is_tag = self.sees_through && raw != Raw::Script && begins_tag(&self.text[here..]);
            if is_tag || ends_raw(&self.text[here..], raw) {
                self.at = here;
                return Token { kind: TokenKind::RawText(raw), span: Span::new(from, here) };
            }
        }
        self.at = self.text.len();
        Token { kind: TokenKind::RawText(raw), span: Span::new(from, self.at) }
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            if self.at >= self.text.len() && !matches!(self.state, State::Tag | State::AfterName) {
                return None;
            }
            return Some(match self.state {
                State::Data => self.data(),
                State::Tag => self.in_tag(),
                State::AfterName => match self.after_name() {
                    Some(value) => value,
                    None => continue,
                },
                State::Quoted(quote) => self.quoted(quote),
                State::Unquoted => self.unquoted(),
                State::Raw(raw) => self.raw(raw),
                State::Comment => self.comment(),
            });
        }
    }
}

/// White space in a tag.
fn is_space(b: u8) -> bool {
    matches!(b, b'\t'..=b'\r' | b' ' | 0xA0)
}

/// True if the `<` that `text` begins with is markup and not text.
fn begins_markup(text: &[u8]) -> bool {
    let [b'<', rest @ ..] = text else { return false };
    let first = rest.iter().take(8).find(|&&b| b != 0);
    match first {
        Some(b'/') => rest.len() > 1,
        Some(b'!' | b'?') => true,
        Some(b) => b.is_ascii_alphabetic(),
        None => false,
    }
}

fn begins_tag(text: &[u8]) -> bool {
    matches!(text, [b'<', b'/', b, ..] | [b'<', b, ..] if b.is_ascii_alphabetic())
}

fn ends_raw(text: &[u8], raw: Raw) -> bool {
    if raw == Raw::Plaintext {
        return false;
    }
    let [b'<', b'/', rest @ ..] = text else { return false };
    let len = raw.name().len();
    let Some(name) = rest.get(..len) else { return false };
    name_is(name, raw.name()) && rest.get(len).is_none_or(|&b| is_space(b) || matches!(b, b'/' | b'>'))
}
