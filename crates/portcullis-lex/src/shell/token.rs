use portcullis_types::Span;

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
    /// A word; [`Lexer::text`](super::Lexer::text) has what it expands to.
    Word(Marks),
    /// `;`, `;;`
    Semicolon,
    /// `|`, `|&`
    Pipe,
    /// `||`
    Or,
    /// `&&`
    And,
    /// `&`
    Background,
    /// A line end.
    Newline,
    /// `<`, `>`, `>>`, `<<`, `<<<`, `>&`, `<&`, `&>`, with a descriptor's number or without.
    Redirect,
    /// `(`, or `{` as a word.
    Open,
    /// `)`, `}` as a word, or the back-tick that ends what the lexer was started in.
    Close,
    /// `#` at the start of a word, to the end of the line.
    Comment,
}

impl TokenKind {
    /// A word's marks; none for others.
    pub fn marks(self) -> Marks {
        if let TokenKind::Word(marks) = self { marks } else { Marks::NONE }
    }

    /// True for what ends a command.
    pub fn ends_command(self) -> bool {
        !matches!(self, TokenKind::Word(_) | TokenKind::Redirect | TokenKind::Open)
    }
}

/// The features of a word as written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u32);

impl Marks {
    /// As it reads.
    pub const NONE: Marks = Marks(0);
    /// It has a quoted part.
    pub const QUOTED: Marks = Marks(1);
    /// Quotes stand inside the word: `c''at`, `c"a"t`.
    pub const SPLIT: Marks = Marks(1 << 1);
    /// A backslash before a letter or digit: `c\at`.
    pub const ESCAPED: Marks = Marks(1 << 2);
    /// `$'...'` with an escape in it.
    pub const ANSI: Marks = Marks(1 << 3);
    /// `?`, `*` or `[...]` outside quotes.
    pub const GLOB: Marks = Marks(1 << 4);
    /// A list in braces: `{a,b}`.
    pub const BRACE: Marks = Marks(1 << 5);
    /// A variable.
    pub const VARIABLE: Marks = Marks(1 << 6);
    /// A part of a variable's text: `${HOME:0:1}`, `%PATH:~0,1%`.
    pub const SLICE: Marks = Marks(1 << 7);
    /// Something that expands to nothing: `$@`, `$()`.
    pub const EMPTY: Marks = Marks(1 << 8);
    /// `$IFS` where white space would stand.
    pub const IFS: Marks = Marks(1 << 9);
    /// `$(...)`, back-ticks, `<(...)`.
    pub const SUBSTITUTION: Marks = Marks(1 << 10);
    /// `^` as cmd.exe's escape.
    pub const CARET: Marks = Marks(1 << 11);
    /// `%NAME%` of cmd.exe.
    pub const PERCENT: Marks = Marks(1 << 12);
    /// A quote that does not close.
    pub const UNCLOSED: Marks = Marks(1 << 13);
    /// Longer than what is kept of it.
    pub const LONG: Marks = Marks(1 << 14);
    /// Something stands in the word that is not a letter, digit or usual sign of a path, outside quotes.
    pub const ODD: Marks = Marks(1 << 15);

    /// True if it has one of `other`'s marks.
    pub const fn has(self, other: Marks) -> bool {
        self.0 & other.0 != 0
    }

    /// Both.
    pub const fn with(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }

    pub(super) fn add(&mut self, other: Marks) {
        self.0 |= other.0;
    }
}
