//! Documents of GraphQL by their grammar, in the places where clients send them.
//!
//! Outside of its strings and comments such a document has nothing but names, numbers and punctuation: what
//! looks like a command or a word of SQL there is the name of a field. Only its texts are read as values, and
//! the document as a whole for what it costs.

use portcullis_types::Span;

use crate::{Location, Place};

/// Containers within each other; a document that nests deeper is read as any text.
const DEPTH_MAX: usize = 96;

/// The field or parameter takes a document: its innermost name is `query`.
pub(crate) fn takes_document(location: Location<'_>) -> bool {
    let is_field = matches!(
        location.place,
        Place::Query | Place::Form | Place::Json | Place::MultipartField | Place::Text
    );
    let name = location.name.rsplit(|b| matches!(b, b'.' | b'[' | b']')).find(|part| !part.is_empty());
    is_field && name == Some(b"query")
}

/// The media type of a body that is a document.
pub(crate) fn is_type(content_type: &[u8]) -> bool {
    let media_type = content_type.split(|b| *b == b';').next().unwrap_or_default();
    media_type.trim_ascii().eq_ignore_ascii_case(b"application/graphql")
}

/// The strings and comments of `text`, without their delimiters, if all of it is an executable document.
pub(crate) fn texts(text: &[u8]) -> Option<Vec<Span>> {
    let mut parser = Parser { text, at: 0, depth: 0, texts: Vec::new() };
    parser.space();
    parser.definition()?;
    while parser.at < text.len() {
        parser.definition()?;
    }
    Some(parser.texts)
}

struct Parser<'t> {
    text: &'t [u8],
    /// The next token.
    at: usize,
    depth: usize,
    texts: Vec<Span>,
}

impl<'t> Parser<'t> {
    fn definition(&mut self) -> Option<()> {
        if self.peek() == Some(b'{') {
            return self.selections();
        }
        match self.name()? {
            b"query" | b"mutation" | b"subscription" => {
                if self.peek().is_some_and(is_name_start) {
                    self.name()?;
                }
                if self.next_if(b'(') {
                    self.variables()?;
                }
            }
            b"fragment" => {
                self.name().filter(|name| *name != b"on")?;
                self.name().filter(|on| *on == b"on")?;
                self.name()?;
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
            self.variable_type()?;
            if self.next_if(b'=') {
                self.value()?;
            }
            self.directives()?;
        }
        Some(())
    }

    fn variable_type(&mut self) -> Option<()> {
        let mut open = 0;
        while self.next_if(b'[') {
            open += 1;
        }
        self.name()?;
        self.next_if(b'!');
        for _ in 0..open {
            self.expect(b']')?;
            self.next_if(b'!');
        }
        Some(())
    }

    fn directives(&mut self) -> Option<()> {
        while self.next_if(b'@') {
            self.name()?;
            self.arguments()?;
        }
        Some(())
    }

    fn arguments(&mut self) -> Option<()> {
        if self.next_if(b'(') {
            while !self.next_if(b')') {
                self.pair()?;
            }
        }
        Some(())
    }

    /// `name: value`
    fn pair(&mut self) -> Option<()> {
        self.name()?;
        self.expect(b':')?;
        self.value()
    }

    fn selections(&mut self) -> Option<()> {
        self.deeper()?;
        self.expect(b'{')?;
        while !self.next_if(b'}') {
            self.selection()?;
        }
        self.depth -= 1;
        Some(())
    }

    fn selection(&mut self) -> Option<()> {
        if self.text[self.at..].starts_with(b"...") {
            self.at += 3;
            self.space();
            let mut is_inline = self.peek().is_none_or(|b| !is_name_start(b));
            if !is_inline && self.name()? == b"on" {
                self.name()?;
                is_inline = true;
            }
            self.directives()?;
            return if is_inline { self.selections() } else { Some(()) };
        }
        self.name()?;
        if self.next_if(b':') {
            self.name()?;
        }
        self.arguments()?;
        self.directives()?;
        match self.peek() {
            Some(b'{') => self.selections(),
            _ => Some(()),
        }
    }

    fn value(&mut self) -> Option<()> {
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

    fn string(&mut self) -> Option<()> {
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
        self.texts.push(Span::new(start, end));
        self.at = end + close.len();
        self.space();
        Some(())
    }

    fn name(&mut self) -> Option<&'t [u8]> {
        let rest = &self.text[self.at..];
        let len = rest.iter().take_while(|b| is_name_start(**b) || b.is_ascii_digit()).count();
        let name = &rest[..len];
        if !name.first().is_some_and(|b| is_name_start(*b)) {
            return None;
        }
        self.at += len;
        self.space();
        Some(name)
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next_if(&mut self, sign: u8) -> bool {
        let is_next = self.peek() == Some(sign);
        if is_next {
            self.at += 1;
            self.space();
        }
        is_next
    }

    fn expect(&mut self, sign: u8) -> Option<()> {
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
                    self.texts.push(Span::new(start, end));
                    self.at = end;
                }
                _ => break,
            }
        }
    }
}

fn is_name_start(b: u8) -> bool {
    b == b'_' || b.is_ascii_alphabetic()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<Vec<String>> {
        let texts = texts(text.as_bytes())?;
        Some(
            texts.iter().map(|span| String::from_utf8_lossy(span.of(text.as_bytes())).into_owned()).collect(),
        )
    }

    #[test]
    fn documents() {
        for text in [
            "{ me { id name } }",
            "query {\n  id\n}",
            "query Q($id: ID!, $tags: [[String!]!]! = [[\"a\"]] @x(y: 1), $n: Float = -1.5e3) { user(id: $id) { ...F } }",
            "mutation { a: update(input: {name: NAME, n: 5, list: [1, 2], ok: true}) @include(if: $x) { id } }",
            "subscription S @live { x }",
            "query A { ... on User @skip(if: false) { id } ... { name } ...@x { y } ...F @y }\nfragment F on User { id, email, }",
            "\u{20}\n{a}\n{b}",
        ] {
            assert!(found(text).is_some(), "{text}");
        }
        for text in [
            "",
            " ",
            "#only a comment",
            "{",
            "{}}",
            "{ a } x",
            "query { a; id }",
            "{ cat /etc/passwd }",
            "{ a(b) }",
            "{ sleep 5 }",
            "{ a(b: 5x) }",
            "{ a | b }",
            "{{7*7}}",
            "${a}",
            "fragment on on A { b }",
            "{ a(b: \"c) }",
            "{ a(b: \"c\n\") }",
            "type A { b: C }",
            "1 { a }",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
        assert_eq!(found(&format!("{}a{}", "{a".repeat(200), "}".repeat(200))), None);
    }

    #[test]
    fn strings_and_comments() {
        let document = "{ a(b: \"c \\\" d\", e: \"\"\"f \\\"\"\" \"g\"\"\") # h\n}";
        assert_eq!(
            found(document),
            Some(vec!["c \\\" d".to_owned(), "f \\\"\"\" \"g".to_owned(), " h".to_owned()])
        );
    }
}
