//! GraphQL: executable documents by their grammar, and the tokens of all documents.
//!
//! Unlike the other languages a document is read as a whole or not at all: outside of its strings and
//! comments it has nothing but names, numbers and punctuation.

use portcullis_types::Span;

/// Containers within each other; a document that nests deeper is none.
const DEPTH_MAX: usize = 96;

/// Facts that are reported of a document.
pub trait Sink<'t> {
    /// A string or comment, without its delimiters.
    fn text(&mut self, _span: Span) {}

    /// A part of an executable document, with its name; empty if it has none.
    fn event(&mut self, _event: Event, _name: &'t [u8]) {}
}

/// Nothing of it.
impl Sink<'_> for () {}

/// Parts of an executable document, in the order of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An operation that reads.
    Query,
    /// An operation that writes.
    Mutation,
    /// An operation that listens.
    Subscription,
    /// The type of a variable.
    VariableType,
    /// A fragment.
    Fragment,
    /// The type that the fragment before is of.
    On,
    /// The other name of the field that follows.
    Alias,
    /// A field.
    Field,
    /// An argument of the field or directive before.
    Argument,
    /// A directive.
    Directive,
    /// The place of a fragment.
    Spread,
    /// Selections of a type, or with directives only.
    Inline,
    /// Selections begin.
    Open,
    /// They end.
    Close,
}

/// Reads a text of the language, token by token.
#[derive(Debug)]
pub struct Reader<'t, S> {
    text: &'t [u8],
    /// The next token.
    at: usize,
    depth: usize,
    sink: S,
}

impl<'t, S: Sink<'t>> Reader<'t, S> {
    /// A reader at the first token of `text`.
    pub fn new(text: &'t [u8], sink: S) -> Reader<'t, S> {
        let mut reader = Reader { text, at: 0, depth: 0, sink };
        reader.space();
        reader
    }

    /// Start of the next token.
    pub fn at(&self) -> usize {
        self.at
    }

    /// An executable document, all of it: the error is where it is none.
    pub fn document(mut self) -> Result<S, usize> {
        loop {
            if self.definition().is_none() {
                return Err(self.at.min(self.text.len()));
            }
            if self.at >= self.text.len() {
                return Ok(self.sink);
            }
        }
    }

    fn definition(&mut self) -> Option<()> {
        if self.peek() == Some(b'{') {
            self.sink.event(Event::Query, b"");
            return self.selections();
        }
        let keyword = self.name()?;
        match keyword {
            b"query" | b"mutation" | b"subscription" => {
                let event = match keyword {
                    b"query" => Event::Query,
                    b"mutation" => Event::Mutation,
                    _ => Event::Subscription,
                };
                let name = if self.peek().is_some_and(is_name_start) { self.name()? } else { b"" };
                self.sink.event(event, name);
                if self.next_if(b'(') {
                    self.variables()?;
                }
            }
            b"fragment" => {
                let name = self.name().filter(|name| *name != b"on")?;
                self.name().filter(|on| *on == b"on")?;
                let on = self.name()?;
                self.sink.event(Event::Fragment, name);
                self.sink.event(Event::On, on);
            }
            _ => return None,
        }
        self.directives()?;
        self.selections()
    }

    /// What follows the parenthesis of variables.
    fn variables(&mut self) -> Option<()> {
        while !self.next_if(b')') {
            self.expect(b'$')?;
            self.name()?;
            self.expect(b':')?;
            let of = self.reference()?;
            self.sink.event(Event::VariableType, of);
            if self.next_if(b'=') {
                self.value()?;
            }
            self.directives()?;
        }
        Some(())
    }

    /// A reference to a type, `[Name!]!`: the name in it.
    pub fn reference(&mut self) -> Option<&'t [u8]> {
        let mut open = 0;
        while self.next_if(b'[') {
            open += 1;
        }
        let name = self.name()?;
        self.next_if(b'!');
        for _ in 0..open {
            self.expect(b']')?;
            self.next_if(b'!');
        }
        Some(name)
    }

    /// Directives, if there are some.
    pub fn directives(&mut self) -> Option<()> {
        while self.next_if(b'@') {
            let name = self.name()?;
            self.sink.event(Event::Directive, name);
            self.arguments()?;
        }
        Some(())
    }

    fn arguments(&mut self) -> Option<()> {
        if self.next_if(b'(') {
            while !self.next_if(b')') {
                let name = self.pair()?;
                self.sink.event(Event::Argument, name);
            }
        }
        Some(())
    }

    /// `name: value`
    fn pair(&mut self) -> Option<&'t [u8]> {
        let name = self.name()?;
        self.expect(b':')?;
        self.value()?;
        Some(name)
    }

    fn selections(&mut self) -> Option<()> {
        self.deeper()?;
        self.expect(b'{')?;
        self.sink.event(Event::Open, b"");
        while !self.next_if(b'}') {
            self.selection()?;
        }
        self.sink.event(Event::Close, b"");
        self.depth -= 1;
        Some(())
    }

    fn selection(&mut self) -> Option<()> {
        if self.text[self.at..].starts_with(b"...") {
            self.at += 3;
            self.space();
            let mut is_inline = self.peek().is_none_or(|b| !is_name_start(b));
            let mut name: &[u8] = b"";
            if !is_inline {
                name = self.name()?;
                if name == b"on" {
                    name = self.name()?;
                    is_inline = true;
                }
            }
            self.sink.event(if is_inline { Event::Inline } else { Event::Spread }, name);
            self.directives()?;
            return if is_inline { self.selections() } else { Some(()) };
        }
        let mut name = self.name()?;
        if self.next_if(b':') {
            self.sink.event(Event::Alias, name);
            name = self.name()?;
        }
        self.sink.event(Event::Field, name);
        self.arguments()?;
        self.directives()?;
        match self.peek() {
            Some(b'{') => self.selections(),
            _ => Some(()),
        }
    }

    /// A value.
    pub fn value(&mut self) -> Option<()> {
        match self.peek()? {
            b'$' => {
                self.expect(b'$')?;
                self.name().map(drop)
            }
            b'"' => self.string(),
            b'[' => {
                self.deeper()?;
                self.expect(b'[')?;
                while !self.next_if(b']') {
                    self.value()?;
                }
                self.depth -= 1;
                Some(())
            }
            b'{' => {
                self.deeper()?;
                self.expect(b'{')?;
                while !self.next_if(b'}') {
                    self.pair()?;
                }
                self.depth -= 1;
                Some(())
            }
            b'-' | b'0'..=b'9' => self.number(),
            _ => self.name().map(drop),
        }
    }

    fn number(&mut self) -> Option<()> {
        self.at += usize::from(self.text[self.at] == b'-');
        let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
        let whole = digits(&self.text[self.at..]);
        self.at += whole;
        if self.text.get(self.at) == Some(&b'.') {
            let fraction = digits(&self.text[self.at + 1..]);
            self.at += 1 + fraction;
            (fraction > 0).then_some(())?;
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.text.get(self.at), Some(b'+' | b'-')));
            let exponent = digits(&self.text[self.at..]);
            self.at += exponent;
            (exponent > 0).then_some(())?;
        }
        let ends = self.peek().is_none_or(|b| !is_name_start(b) && b != b'.');
        self.space();
        (whole > 0 && ends).then_some(())
    }

    /// A string.
    pub fn string(&mut self) -> Option<()> {
        let (open, close) = match self.text[self.at..].starts_with(b"\"\"\"") {
            true => (3, &b"\"\"\""[..]),
            false => (1, &b"\""[..]),
        };
        let start = self.at + open;
        let mut end = start;
        while !self.text.get(end..)?.starts_with(close) {
            match self.text.get(end)? {
                b'\\' if open == 1 => end += 2,
                b'\\' if self.text[end + 1..].starts_with(close) => end += 4,
                b'\n' | b'\r' if open == 1 => return None,
                _ => end += 1,
            }
        }
        self.sink.text(Span::new(start, end));
        self.at = end + close.len();
        self.space();
        Some(())
    }

    /// A name.
    pub fn name(&mut self) -> Option<&'t [u8]> {
        let name = self.peek_name();
        if name.is_empty() {
            return None;
        }
        self.at += name.len();
        self.space();
        Some(name)
    }

    /// The name that is next, or nothing if it is none.
    pub fn peek_name(&self) -> &'t [u8] {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let len = rest.iter().take_while(|b| is_name_start(**b) || b.is_ascii_digit()).count();
        if rest.first().is_some_and(|b| is_name_start(*b)) { &rest[..len] } else { b"" }
    }

    /// The first byte of the next token.
    pub fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Passes the sign, if it is next.
    pub fn next_if(&mut self, sign: u8) -> bool {
        let is_next = self.peek() == Some(sign);
        if is_next {
            self.at += 1;
            self.space();
        }
        is_next
    }

    /// Passes the sign, which must be next.
    pub fn expect(&mut self, sign: u8) -> Option<()> {
        self.next_if(sign).then_some(())
    }

    fn deeper(&mut self) -> Option<()> {
        self.depth += 1;
        (self.depth <= DEPTH_MAX).then_some(())
    }

    /// Skips white space, commas and comments.
    fn space(&mut self) {
        while let Some(b) = self.peek() {
            match b {
                b' ' | b'\t' | b'\r' | b'\n' | b',' => self.at += 1,
                b'#' => {
                    let start = self.at + 1;
                    let rest = &self.text[start..];
                    let end = start + memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                    self.sink.text(Span::new(start, end));
                    self.at = end;
                }
                _ => break,
            }
        }
    }
}

/// True for the first byte of a name.
pub fn is_name_start(b: u8) -> bool {
    b == b'_' || b.is_ascii_alphabetic()
}
