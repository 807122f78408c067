//! HTML as a browser's tokenizer reads it (WHATWG HTML, section 13.2.5), started in any state.
//!
//! A value may be pasted into text, into an attribute behind any quote, into `<title>`, `<script>` or a
//! comment. [`Start`] says where. Attributes are tokens of their own, so that nothing has to be kept.
//!
//! Differences to the standard, more tolerant because some browser or some filter was:
//!
//! | text | reading |
//! |---|---|
//! | NUL behind `<` or in a name | passed over; names are compared without it ([`name_is`]) |
//! | 0x0B, and 0xA0 in Latin-1 | white space in a tag |
//! | `` =`x` `` | a quoted value (old Internet Explorer), if the back-tick closes |
//! | a tag or a quote that never ends | its attributes are tokens all the same |
//!
//! With [`Lexer::seeing_through`] a tag begins at each `<` and letter, also in comments, in raw text and in
//! quoted values: what a second parser, or the same one after a mutation, may see.
//!
//! ```
//! use portcullis_lex::html::{Lexer, Start, TokenKind};
//! let text = b"<svg/onload=alert(1)";
//! let tokens: Vec<_> = Lexer::new(text, Start::Data, 0).map(|t| (t.kind, t.span.of(text))).collect();
//! assert_eq!(tokens[0], (TokenKind::StartTag, &b"svg"[..]));
//! assert_eq!(tokens[1].0, TokenKind::Slash);
//! assert_eq!(tokens[2], (TokenKind::AttributeName, &b"onload"[..]));
//! assert_eq!(tokens[3].1, b"alert(1)");
//! ```

mod lexer;
#[cfg(test)]
mod tests;

use portcullis_types::Span;

pub use lexer::Lexer;

/// The place of a text in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Between tags.
    Data,
    /// In a tag, where an attribute may begin: behind a quote that the text closed.
    Tag,
    /// In an attribute's value, up to this quote.
    Quoted(u8),
    /// In an attribute's value without quotes.
    Unquoted,
    /// In `<title>`, `<textarea>`, `<style>` and the like, up to their end tag.
    Raw(Raw),
    /// In a comment.
    Comment,
}

/// Elements whose content is text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raw {
    /// `<script>`
    Script,
    /// `<style>`
    Style,
    /// `<title>`
    Title,
    /// `<textarea>`
    Textarea,
    /// `<xmp>`
    Xmp,
    /// `<iframe>`
    Iframe,
    /// `<noembed>`
    Noembed,
    /// `<noframes>`
    Noframes,
    /// `<noscript>`, where scripts run
    Noscript,
    /// `<plaintext>`, which never ends
    Plaintext,
}

impl Raw {
    /// The element of that name.
    pub fn of(name: &[u8]) -> Option<Raw> {
        const ALL: [Raw; 10] = [
            Raw::Script,
            Raw::Style,
            Raw::Title,
            Raw::Textarea,
            Raw::Xmp,
            Raw::Iframe,
            Raw::Noembed,
            Raw::Noframes,
            Raw::Noscript,
            Raw::Plaintext,
        ];
        ALL.into_iter().find(|raw| name_is(name, raw.name()))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Raw::Script => "script",
            Raw::Style => "style",
            Raw::Title => "title",
            Raw::Textarea => "textarea",
            Raw::Xmp => "xmp",
            Raw::Iframe => "iframe",
            Raw::Noembed => "noembed",
            Raw::Noframes => "noframes",
            Raw::Noscript => "noscript",
            Raw::Plaintext => "plaintext",
        }
    }
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its kind.
    pub kind: TokenKind,
    /// Its bytes; of tags and attributes the name, of values what stands between the quotes.
    pub span: Span,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Text between tags.
    Text,
    /// `<name`
    StartTag,
    /// `</name`
    EndTag,
    /// An attribute's name.
    AttributeName,
    /// An attribute's value.
    AttributeValue {
        /// `"`, `'`, `` ` ``, or 0 without quotes.
        quote: u8,
        /// False if the text ends first.
        closed: bool,
    },
    /// A `/` in a tag that does not close it: white space to a browser, and hardly ever written by people.
    Slash,
    /// `>` or `/>`, or the end of the text in a tag.
    TagEnd {
        /// False if the text ends first.
        closed: bool,
    },
    /// The content of an element of text.
    RawText(Raw),
    /// `<!-- ... -->`; the flag is false if the text ends first.
    Comment(bool),
    /// `<!x ... >`, `<?x ... >`, `</ ...>`: a bogus comment, and what XML makes of it.
    Declaration,
}

/// True if `name` is `wanted`, which is lower case, in any case and with NULs passed over.
pub fn name_is(name: &[u8], wanted: &str) -> bool {
    let mut rest = name.iter().filter(|&&b| b != 0);
    wanted.bytes().all(|w| rest.next().is_some_and(|b| b.to_ascii_lowercase() == w)) && rest.next().is_none()
}
