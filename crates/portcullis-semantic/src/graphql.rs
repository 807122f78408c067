//! Documents of GraphQL by their grammar, in the places where clients send them.
//!
//! Outside of its strings and comments such a document has nothing but names, numbers and punctuation: what
//! looks like a command or a word of SQL there is the name of a field. Only its texts are read as values, and
//! the document as a whole for what it costs.

use portcullis_lex::graphql::{Reader, Sink};
use portcullis_types::Span;

use crate::{Location, Place};

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
    Reader::new(text, Texts::default()).document().ok().map(|texts| texts.0)
}

#[derive(Default)]
struct Texts(Vec<Span>);

impl Sink<'_> for Texts {
    fn text(&mut self, span: Span) {
        self.0.push(span);
    }
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
