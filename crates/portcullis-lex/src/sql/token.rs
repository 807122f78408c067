use portcullis_types::Span;

use super::Word;

/// A token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its kind.
    pub kind: TokenKind,
    /// Its bytes in the text.
    pub span: Span,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A number: decimal, with fraction or exponent, `0x...`, `0b...`.
    Number,
    /// A string with its quotes and its prefix (`N'..'`, `X'..'`, `_utf8'..'`, `q'[..]'`, `$$..$$`).
    String {
        /// The quote: `'`, `"` or `$`.
        quote: u8,
        /// False if the text ends first.
        closed: bool,
    },
    /// A keyword, or [`Word::Name`].
    Word(Word),
    /// A name in back-ticks or brackets; the flag is false if the text ends first.
    QuotedName(bool),
    /// `@x`, `@@x`, `:x`, `$1`, `?`.
    Variable,
    /// An operator sign.
    Operator(Operator),
    /// `(`
    Open,
    /// `)`
    Close,
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// `.`
    Dot,
    /// `{`
    OpenBrace,
    /// `}`
    CloseBrace,
    /// A comment, or the mark of a MySQL version comment.
    Comment(Comment),
    /// A byte that is nothing in SQL.
    Other,
}

/// Kinds of comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comment {
    /// `-- ...` to the end of the line.
    Dashes,
    /// `# ...` to the end of the line.
    Hash,
    /// `/* ... */`; the flag is false if the text ends first.
    Block(bool),
    /// `/*!50000`: what follows is SQL for MySQL.
    VersionOpen,
    /// A `*/` with no comment open; closes a version comment, or one that began before this text.
    BlockClose,
    /// `1.e`: an exponent without digits, which MySQL reads as nothing where a sign follows.
    Exponent,
}

/// Operator signs, by what they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`, `==`, `<=>`
    Equal,
    /// `!=`, `<>`, `^=`
    NotEqual,
    /// `<`, `<=`, `!>`
    Less,
    /// `>`, `>=`, `!<`
    Greater,
    /// `||`: concatenation or OR.
    Pipes,
    /// `&&`
    Ampersands,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`, `%`
    Divide,
    /// `|`, `&`, `^`, `<<`, `>>`
    Bit,
    /// `!`
    Not,
    /// `~`
    Tilde,
    /// `~*`, `!~`, `!~*`, `~~`, `@@`: matches of PostgreSQL.
    Match,
    /// `->`, `->>`, `#>`, `#>>`, `@>`, `<@`, `?|`, `?&`, `#-`: JSON and arrays.
    Json,
    /// `:=`
    Assign,
    /// `::`
    Cast,
    /// `?` as an operator is not told from a parameter: it is [`TokenKind::Variable`].
    Colon,
}

impl Operator {
    /// True for `=`, `<>`, `<`, `>` and their relatives.
    pub fn is_comparison(self) -> bool {
        matches!(self, Operator::Equal | Operator::NotEqual | Operator::Less | Operator::Greater)
    }
}
