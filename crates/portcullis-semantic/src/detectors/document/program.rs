//! A check that a text is one program of JavaScript on one line, as bundlers and minifiers write it.
//!
//! Lengths, line ends and first words are chosen by a sender and can be put beside any payload. A program
//! shows itself from its first token to its last: strings and brackets are closed, and no operand follows
//! another without an operator, which on one line is an error of syntax. A piece of SQL or of a sentence
//! breaks that rule at once (`1 union`, `x' or '`). This is no parser: what it refuses is read as a value,
//! which costs nothing but an allowance.

use portcullis_lex::js::{Lexer, Token, TokenKind};

/// Brackets that may be open at once. More than that is read as a value.
const NESTING_MAX: usize = 256;

/// First words of programs: declarations, and objects that bundles add themselves to.
const FIRST_WORDS: &[&[u8]] = words!("document", "first-words");

/// Keywords whose parentheses are followed by a statement.
const HEADS: &[&[u8]] = &[b"if", b"for", b"while", b"with"];

/// Words that stand between two operands.
const INFIX: &[&[u8]] = &[b"in", b"of", b"instanceof", b"as", b"extends"];

/// Words that an operand may follow.
const PREFIX: &[&[u8]] = words!("document", "prefix-words");

/// What the tokens up to here end with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// An operator or the beginning of a statement: an operand is missing.
    Operator,
    /// The same where a member of an object may begin, whose name may be a number or a string.
    Member,
    /// A keyword: anything may follow.
    Either,
    /// A closed block or pattern: the same, and words between operands.
    Block,
    /// `from` of a module, whose name follows.
    From,
    /// A keyword of [`HEADS`].
    Head,
    /// A dot: the name of a property follows.
    Dot,
    /// A number or a string, which nobody calls.
    Literal,
    /// Any other operand.
    Operand,
}

/// An open bracket.
#[derive(PartialEq, Eq)]
enum Bracket {
    /// `(`; true after a keyword of [`HEADS`].
    Parenthesis(bool),
    Square,
    Brace,
    /// `${` of a template.
    Template,
}

/// True if `text` begins as a program and its last statement ends as that of a bundle, a call or a block.
/// That is seen at once.
pub(super) fn begins_and_ends(text: &[u8]) -> bool {
    matches!(text.trim_ascii_end().last(), Some(b';' | b')' | b'}')) && {
        let mut tokens = tokens(text);
        tokens.next().is_some_and(|first| begins(text, &first, tokens.next().as_ref()))
    }
}

/// True if all of `text`, which is one line, is a program of JavaScript.
pub(super) fn is_program(text: &[u8]) -> bool {
    let mut reading = Reading { text, open: Vec::new(), before: Before::Operator, end: 0 };
    begins_and_ends(text) && tokens(text).all(|token| reading.take(&token)) && reading.open.is_empty()
}

fn tokens(text: &[u8]) -> impl Iterator<Item = Token> {
    let is_comment = |token: &Token| matches!(token.kind, TokenKind::Comment { line: false, closed: true });
    Lexer::new(text, 0).filter(move |token| !is_comment(token))
}

/// `"use strict"`, `var`, `!function`, `(function`, `(()=>`, `(self.x=...`.
#[expect(clippy::wildcard_enum_match_arm, reason = "scripts begin with few of the tokens")]
fn begins(text: &[u8], first: &Token, second: Option<&Token>) -> bool {
    let is_first_word = |token: &Token| FIRST_WORDS.contains(&token.span.of(text));
    match first.kind {
        TokenKind::Name => is_first_word(first),
        TokenKind::String { .. } => matches!(first.span.of(text), b"\"use strict\"" | b"'use strict'"),
        TokenKind::Prefix | TokenKind::Open | TokenKind::Semicolon => {
            second.is_some_and(|second| second.kind == TokenKind::Open || is_first_word(second))
        }
        _ => false,
    }
}

/// The reading of a text up to a token.
struct Reading<'t> {
    text: &'t [u8],
    open: Vec<Bracket>,
    before: Before,
    /// Where the token before ends.
    end: u32,
}

impl Reading<'_> {
    /// Reads `token`; false if it cannot stand here.
    fn take(&mut self, token: &Token) -> bool {
        use TokenKind as T;
        let (before, word) = (self.before, token.span.of(self.text));
        let is_after_operand = matches!(before, Before::Operand | Before::Literal);
        let needs_operand = matches!(before, Before::Operator | Before::Member);
        let is_adjacent = std::mem::replace(&mut self.end, token.span.end) == token.span.start;
        if before == Before::From && !matches!(token.kind, T::String { .. }) {
            return false;
        }
        self.before = match token.kind {
            T::Name => match self.name(word) {
                Some(after) => after,
                None => return false,
            },
            T::Number if !is_number(word) => return false,
            // The lexer takes `1.5` for two.
            T::Number if before == Before::Literal && is_adjacent && word.starts_with(b".") => {
                Before::Literal
            }
            T::Number if is_after_operand => return false,
            T::String { closed, .. } if is_after_operand || !closed => return false,
            T::Number | T::String { .. } if before == Before::Member => Before::Operand,
            T::Number | T::String { .. } => Before::Literal,
            T::Regex if is_after_operand => return false,
            T::Regex => Before::Operand,
            T::Template { opens, closes } => {
                let fits = if opens { before != Before::Literal } else { self.close(&Bracket::Template) };
                if !fits || !closes && !self.open(Bracket::Template) {
                    return false;
                }
                if closes { Before::Operand } else { Before::Operator }
            }
            T::Open if before == Before::Literal => return false,
            T::Open if self.open(Bracket::Parenthesis(before == Before::Head)) => Before::Operator,
            T::OpenBracket if self.open(Bracket::Square) => Before::Operator,
            T::OpenBrace if self.open(Bracket::Brace) => Before::Member,
            T::Open | T::OpenBracket | T::OpenBrace => return false,
            T::Comma if self.open.last() == Some(&Bracket::Brace) => Before::Member,
            T::Close => match self.open.pop() {
                Some(Bracket::Parenthesis(true)) => Before::Either,
                Some(Bracket::Parenthesis(false)) => Before::Operand,
                _ => return false,
            },
            T::CloseBracket if self.close(&Bracket::Square) => Before::Operand,
            T::CloseBrace if self.close(&Bracket::Brace) => Before::Block,
            T::Dot | T::OptionalDot if !needs_operand => Before::Dot,
            T::Step if is_after_operand => before,
            T::Step => Before::Operator,
            T::Prefix if is_after_operand => return false,
            // `*` begins the name of a generator, too.
            T::Binary if needs_operand && word != b"*" => return false,
            T::Assign | T::Arrow | T::Question if needs_operand => return false,
            // `#x`: a private name.
            T::Other if word == b"#" && !is_after_operand => Before::Dot,
            T::Prefix
            | T::Sign
            | T::Binary
            | T::Assign
            | T::Arrow
            | T::Question
            | T::Colon
            | T::Comma
            | T::Semicolon
            | T::Spread => Before::Operator,
            T::CloseBracket | T::CloseBrace | T::Dot | T::OptionalDot | T::Other | T::Comment { .. } => {
                return false;
            }
        };
        true
    }

    /// The state after a name, if it can stand here.
    fn name(&self, name: &[u8]) -> Option<Before> {
        let is_after_operand = matches!(self.before, Before::Operand | Before::Literal);
        if self.before == Before::Dot {
            return Some(Before::Operand);
        }
        if is_after_operand || self.before == Before::Block {
            match name {
                b"from" => return Some(Before::From),
                _ if INFIX.contains(&name) => return Some(Before::Operator),
                _ => {}
            }
        }
        if is_after_operand {
            return None;
        }
        Some(match () {
            () if HEADS.contains(&name) => Before::Head,
            () if PREFIX.contains(&name) => Before::Either,
            () => Before::Operand,
        })
    }

    fn open(&mut self, bracket: Bracket) -> bool {
        self.open.push(bracket);
        self.open.len() <= NESTING_MAX
    }

    fn close(&mut self, bracket: &Bracket) -> bool {
        self.open.pop().is_some_and(|open| open == *bracket)
    }
}

/// `1`, `1.5e3`, `0xFF`, `10n`; not `1or`.
fn is_number(text: &[u8]) -> bool {
    match text {
        [b'0', b'x' | b'X' | b'o' | b'O' | b'b' | b'B', digits @ ..] => {
            digits.iter().all(|b| b.is_ascii_hexdigit() || matches!(b, b'n' | b'_'))
        }
        _ => text.iter().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'n' | b'_')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs() {
        for text in [
            "\"use strict\";(self.chunks=self.chunks||[]).push([[1],{2:(e,t,r)=>{r.d(t,{Z:()=>n});var n='a'+r(3)}}]);",
            "!function(e,t){\"object\"==typeof exports?module.exports=t():e.a=t()}(this,function(){return/['\"]/g.test(1)})",
            "/*! a 1.0 */(()=>{if(a)b=1;else for(let x of y)f(x);while(i--)g`a${b?`c`:'d'}`})();",
            "var a=0xFF,b=1.5e3,c=[...d],{e:f}=g;class H extends I{static#x=1;get y(){return this.#x}async*z(){}}",
            "import{a as b}from\"c\";export default function(){try{d?.e}catch(f){throw new G(f)}finally{}}",
            "for(const a in b)delete b[a],c++,!d&&(e=~f);",
        ] {
            assert!(is_program(text.as_bytes()), "{text}");
        }
    }

    /// Nothing that stands beside a program is one.
    #[test]
    fn pieces_are_no_programs() {
        const PROGRAM: &str = "var a=\"b\";function c(d){return d+1}";
        assert!(is_program(PROGRAM.as_bytes()));
        for piece in [
            "' or 1=1 -- ",
            "x' or '1'='1",
            "' or ''='",
            "1 union select a from b",
            "1 union/**/select(1)",
            "1or(1)",
            "1') or ('1'='1",
            "delete from users",
            "delete a from \"b\" where c",
            "; drop table a -- ",
            "|id",
            "&& cat x y",
            "};x' or 1=1 -- ",
            "// a",
            "/* a",
            "`a",
            "words of a sentence",
            "(select(1)from(a))",
            "{{7*7}",
            "\"(1)",
        ] {
            assert!(!is_program(format!("{PROGRAM}{piece}").as_bytes()), "{piece}");
            assert!(!is_program(format!("{piece}{PROGRAM}").as_bytes()), "{piece}");
        }
        for text in ["", "a", "1", "hello()", "x=1;y=2", "/* a */", "{\"a\":1}", "<p>x</p>"] {
            assert!(!is_program(text.as_bytes()), "{text}");
        }
        let deep = format!("var a={}{};", "[".repeat(NESTING_MAX + 1), "]".repeat(NESTING_MAX + 1));
        assert!(!is_program(deep.as_bytes()));
    }
}
