//! Classes of bytes: which of them code in any language needs, and which identifiers have.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Sets of byte classes that a value is made of.
pub(crate) mod class {
    pub const DIGIT: u64 = 1;
    pub const HEX: u64 = 1 << 1;
    pub const LETTER: u64 = 1 << 2;
    pub const UNDERSCORE: u64 = 1 << 3;
    pub const HYPHEN: u64 = 1 << 4;
    pub const DOT: u64 = 1 << 5;
    pub const HIGH: u64 = 1 << 6;
    pub const SPACE: u64 = 1 << 7;
    pub const COLON: u64 = 1 << 8;
    pub const PLUS: u64 = 1 << 9;
    pub const COMMA: u64 = 1 << 10;
    pub const TILDE: u64 = 1 << 11;
    pub const AT: u64 = 1 << 12;
    pub const MARK: u64 = 1 << 13;
    pub const ALPHANUMERIC: u64 = DIGIT | HEX | LETTER | HIGH;
}

/// The first bit of a set of byte classes that stands for syntax.
const SYNTAX_BIT: u32 = 16;

macro_rules! syntax {
    ($($(#[$doc:meta])* $name:ident $bit:literal $title:literal;)*) => {
        /// Classes of bytes that code needs and plain values do not have.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct Syntax(u32);

        impl Syntax {
            $($(#[$doc])* pub const $name: Syntax = Syntax(1 << $bit);)*
            /// Each class, with what people call it.
            pub const ALL: &'static [(Syntax, &'static str)] = &[$((Syntax::$name, $title),)*];
        }
    };
}

syntax! {
    /// `'`
    QUOTE 0 "apostrophes";
    /// `"`
    DOUBLE_QUOTE 1 "double quotes";
    /// A grave accent.
    BACKTICK 2 "backticks";
    /// `(` and `)`
    PARENTHESIS 3 "parentheses";
    /// `[` and `]`
    SQUARE 4 "square brackets";
    /// `{` and `}`
    BRACE 5 "braces";
    /// `<` and `>`
    ANGLE 6 "angle brackets";
    /// `;`
    SEMICOLON 7 "semicolons";
    /// `|`
    PIPE 8 "vertical bars";
    /// `&`
    AMPERSAND 9 "ampersands";
    /// `$`
    DOLLAR 10 "dollar signs";
    /// `\`
    BACKSLASH 11 "backslashes";
    /// `=`
    EQUALS 12 "equals signs";
    /// `*`
    STAR 13 "asterisks";
    /// `%`
    PERCENT 14 "percent signs";
    /// `#`
    NUMBER_SIGN 15 "number signs";
    /// `/`
    SLASH 16 "slashes";
    /// Line ends, tabs and other control characters.
    CONTROL 17 "line ends or control characters";
    /// `..`
    DOTS 18 "two dots in a row";
    /// `--`
    DASHES 19 "two hyphens in a row";
    /// Full-width forms, which some readers take for the ASCII characters that they look like.
    FULL_WIDTH 20 "full-width characters";
}

impl Syntax {
    /// None of them.
    pub const NONE: Syntax = Syntax(0);

    /// Those of one bit of [`of`].
    pub(crate) fn of_classes(classes: u64) -> Syntax {
        Syntax((classes >> SYNTAX_BIT) as u32)
    }

    /// The classes as bits.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// True if there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those of both.
    pub fn with(self, other: Syntax) -> Syntax {
        Syntax(self.0 | other.0)
    }

    /// Those that are not in `other`.
    pub fn without(self, other: Syntax) -> Syntax {
        Syntax(self.0 & !other.0)
    }

    /// True if one of `other` is among them.
    pub fn intersects(self, other: Syntax) -> bool {
        self.0 & other.0 != 0
    }

    /// The number of classes.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The classes one by one.
    pub fn iter(self) -> impl Iterator<Item = Syntax> {
        Syntax::ALL.iter().map(|(class, _)| *class).filter(move |class| self.intersects(*class))
    }
}

impl fmt::Display for Syntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut titles = Syntax::ALL.iter().filter(|(class, _)| self.intersects(*class));
        let first = titles.next().map_or("", |(_, title)| title);
        f.write_str(first)?;
        titles.try_for_each(|(_, title)| write!(f, ", {title}"))
    }
}

/// The classes of each byte.
static TABLE: [u64; 256] = {
    let mut table = [class::HIGH; 256];
    let mut b = 0;
    while b < 128 {
        table[b] = match b as u8 {
            b'0'..=b'9' => class::DIGIT,
            b'a'..=b'f' | b'A'..=b'F' => class::HEX,
            b'g'..=b'z' | b'G'..=b'Z' => class::LETTER,
            b'_' => class::UNDERSCORE,
            b'-' => class::HYPHEN,
            b'.' => class::DOT,
            b' ' => class::SPACE,
            b':' => class::COLON,
            b'+' => class::PLUS,
            b',' => class::COMMA,
            b'~' => class::TILDE,
            b'@' => class::AT,
            b'!' | b'?' | b'^' => class::MARK,
            other => (syntax_of(other).0 as u64) << SYNTAX_BIT,
        };
        b += 1;
    }
    table
};

const fn syntax_of(byte: u8) -> Syntax {
    match byte {
        b'\'' => Syntax::QUOTE,
        b'"' => Syntax::DOUBLE_QUOTE,
        b'`' => Syntax::BACKTICK,
        b'(' | b')' => Syntax::PARENTHESIS,
        b'[' | b']' => Syntax::SQUARE,
        b'{' | b'}' => Syntax::BRACE,
        b'<' | b'>' => Syntax::ANGLE,
        b';' => Syntax::SEMICOLON,
        b'|' => Syntax::PIPE,
        b'&' => Syntax::AMPERSAND,
        b'$' => Syntax::DOLLAR,
        b'\\' => Syntax::BACKSLASH,
        b'=' => Syntax::EQUALS,
        b'*' => Syntax::STAR,
        b'%' => Syntax::PERCENT,
        b'#' => Syntax::NUMBER_SIGN,
        b'/' => Syntax::SLASH,
        _ => Syntax::CONTROL,
    }
}

/// The classes of all bytes of `value`, those of pairs among them.
#[inline]
pub(crate) fn of(value: &[u8]) -> u64 {
    let classes = value.iter().fold(0, |all, b| all | TABLE[usize::from(*b)]);
    if classes & (class::DOT | class::HYPHEN | class::HIGH) == 0 {
        classes
    } else {
        with_pairs(value, classes)
    }
}

#[inline(never)]
fn with_pairs(value: &[u8], mut classes: u64) -> u64 {
    let has_pair =
        |first: u8, second: &[u8]| value.windows(2).any(|pair| pair[0] == first && second.contains(&pair[1]));
    let pairs: [(u64, u8, &[u8], Syntax); 3] = [
        (class::DOT, b'.', b".", Syntax::DOTS),
        (class::HYPHEN, b'-', b"-", Syntax::DASHES),
        (class::HIGH, 0xEF, &[0xBC, 0xBD], Syntax::FULL_WIDTH),
    ];
    for (needs, first, second, syntax) in pairs {
        if classes & needs != 0 && has_pair(first, second) {
            classes |= u64::from(syntax.0) << SYNTAX_BIT;
        }
    }
    classes
}

/// `classes` has nothing but `allowed`.
pub(crate) fn is_within(classes: u64, allowed: u64) -> bool {
    classes & !allowed == 0
}

/// The class of syntax as a bit of a set of classes.
pub(crate) const fn bit(syntax: Syntax) -> u64 {
    (syntax.0 as u64) << SYNTAX_BIT
}
