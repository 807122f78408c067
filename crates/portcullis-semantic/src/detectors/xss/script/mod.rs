//! A piece of JavaScript: does it hold as code, and what would it do?
//!
//! The walk keeps to the alternation of operands and operators and to what may stand beside what; two
//! operands side by side without a line end, as in any sentence, end it. Brackets are counted, with a mark
//! for those that matter; no tree.

mod names;
mod step;

use portcullis_lex::js::{Lexer, TokenKind};

use crate::detectors::xss::effects::{Effects, Outcome};
use crate::detectors::xss::names::{Group, Names};

/// Open brackets that are remembered; deeper ones only count.
const BRACKETS_MAX: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bracket {
    open: u8,
    /// Of a global object: `window[`.
    of_global: bool,
    /// It names the constructor: `x['constructor']`.
    is_constructor: bool,
    /// After `if`, `for`, `while`: a statement may follow it.
    is_control: bool,
    /// Strings are joined in it that could be one, or a pattern's text is taken: `['ale'+'rt']`.
    joins: bool,
    /// It stands after an operand.
    is_member: bool,
    /// It groups, or is a pattern to which values are assigned, and the page's address or markup is in it.
    target: Option<Group>,
}

/// The operand before the current token, which a parenthesis would call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Callee {
    None,
    Name(Group),
    /// A member of a global object that is computed.
    Computed,
    /// `if`, `while` and the like.
    Control,
    /// Any other operand.
    Operand,
}

struct Walk<'a> {
    names: &'a Names,
    out: Outcome,
    operand: bool,
    callee: Callee,
    after_dot: bool,
    /// The operand before may be followed by another one: `)` of `if`, `}`, a keyword.
    may_follow: bool,
    brackets: [Bracket; BRACKETS_MAX],
    depth: usize,
    /// Brackets, signs and quotes only.
    signs_only: bool,
    signs: u32,
    /// Empty arrays after a sign: `![]`, `+[]`.
    empty_arrays: u32,
    is_after_sign: bool,
    before: Option<TokenKind>,
    /// A string stands before, or a string and a sign after it.
    joint: Joint,
    /// Names of functions that show or run something, less the calls of them.
    mentions: i32,
    /// A call of a timer began: what the next token is tells whether it runs text.
    in_timer: bool,
    /// A call that makes an element began.
    in_make: bool,
    /// A string with code in it, or the parenthesis after it, is what was read last.
    is_code_text: bool,
    /// The name of a class was read: its body follows.
    in_class: bool,
    /// A call of a telling function began after white space, as a word in parentheses does.
    after_space: bool,
    end: usize,
}

/// A string before the current token, or a string and a sign, to which a string may be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joint {
    None,
    String,
    Sign,
}

/// The reaction of a walk where the text stops being code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// It ends.
    End,
    /// It goes on with the next statement.
    Statement,
    /// It goes on with the next token.
    Token,
}

/// Walks `text` from `from`, where an operand may begin.
pub(in crate::detectors::xss) fn walk(text: &[u8], from: usize, names: &Names) -> Outcome {
    run(text, from, Lexer::new(text, from), true, After::End, names)
}

/// The same for the body of a script element, which a browser's parser may take where this one does not.
pub(in crate::detectors::xss) fn walk_script(text: &[u8], from: usize, names: &Names) -> Outcome {
    run(text, from, Lexer::new(text, from), true, After::Statement, names)
}

/// The same where nothing but code can stand: in an event handler, or after `javascript:`.
pub(in crate::detectors::xss) fn walk_code(text: &[u8], from: usize, names: &Names) -> Outcome {
    run(text, from, Lexer::new(text, from), true, After::Token, names)
}

/// Walks `text` from `from`, which stands after an operand: after a quote that it closed.
pub(in crate::detectors::xss) fn walk_after(text: &[u8], from: usize, names: &Names) -> Outcome {
    run(text, from, Lexer::behind_operand(text, from), false, After::End, names)
}

fn run(text: &[u8], from: usize, lexer: Lexer<'_>, operand: bool, after: After, names: &Names) -> Outcome {
    let mut walk = Walk {
        names,
        out: Outcome { holds: true, is_demo: true, ..Outcome::default() },
        operand,
        callee: if operand { Callee::None } else { Callee::Operand },
        after_dot: false,
        may_follow: false,
        brackets: [Bracket::default(); BRACKETS_MAX],
        depth: 0,
        signs_only: true,
        signs: 0,
        empty_arrays: 0,
        is_after_sign: false,
        before: None,
        joint: Joint::None,
        mentions: 0,
        in_timer: false,
        in_make: false,
        is_code_text: false,
        in_class: false,
        after_space: false,
        end: from,
    };
    let mut skips = false;
    for token in lexer {
        let bytes = token.span.of(text);
        walk.out.bytes_read = token.span.end as usize - from;
        if skips && !token.newline && !matches!(token.kind, TokenKind::Semicolon | TokenKind::CloseBrace) {
            continue;
        }
        skips = false;
        let ends_tag = bytes[0] == b'>' || text[token.span.start as usize..].starts_with(b"</");
        let is_end = (token.kind == TokenKind::Binary && ends_tag)
            || (token.kind == TokenKind::Other && bytes[0] == b'#');
        if is_end && walk.ends_before_markup() {
            walk.out.ends_in_markup = true;
            break;
        }
        if !walk.step(token, bytes, token.span.end as usize == text.len()) {
            walk.out.holds = false;
            walk.operator();
            walk.after_dot = false;
            match after {
                After::End => break,
                After::Statement => skips = true,
                After::Token => {}
            }
            continue;
        }
        walk.out.end = token.span.end as usize;
        walk.end = walk.out.end;
    }
    walk.finish()
}

impl Walk<'_> {
    fn finish(mut self) -> Outcome {
        let effects = self.out.effects;
        if self.mentions > 0 && effects.any(Effects::RUNS) {
            self.out.effects.insert(Effects::INDIRECT);
        }
        if self.signs_only && self.signs >= 12 && self.empty_arrays >= 2 {
            self.out.effects.insert(Effects::OBFUSCATED);
        }
        self.out.holds &= self.out.tokens > 0;
        self.out
    }

    /// A whole statement, or a call, which a `>` ends as it does the tag of a page.
    fn ends_before_markup(&self) -> bool {
        let ends = matches!(self.before, Some(TokenKind::Semicolon | TokenKind::Close));
        self.depth == 0 && ends && self.out.effects.any(Effects::SINKS)
    }
}
