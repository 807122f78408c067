//! Walks a piece of SQL token by token and notes what it does.
//!
//! The walk knows two expectations, an operand or an operator, and a stack of parentheses. What does not fit is a
//! violation: a reading from a quote ends there; the reading of the value as it stands goes on, but what it notes from there
//! on is loose. No tree is built; each token is looked at once, with a look ahead of two.

mod ahead;
mod clause;
mod facts;
mod operand;
mod operator;
mod outcome;
mod parentheses;
mod statement;
mod words;

use std::cell::{OnceCell, RefCell};

use portcullis_lex::sql::{Lexer, Token, TokenKind, Word};
use portcullis_types::Span;

use self::ahead::Ahead;
use self::facts::{Facts, kinds_in};
use self::words::{Part, role};
use super::names::Names;
use super::*;
use crate::KindId;

/// Parentheses that are told apart; deeper ones are all taken as groups.
const DEPTH_MAX: usize = 48;
/// Violations after which the rest of a value is not SQL enough to be walked further.
const VIOLATIONS_MAX: u32 = 400;

/// How the piece begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// The value as it stands.
    Raw,
    /// Behind a quote that ends a string, or a back-tick that ends a name.
    Quote(u8),
}

/// True if `rest`, which stands behind a quote, can go on as SQL: an operator, a parenthesis, a comment, or a word that
/// follows an operand.
pub(super) fn may_follow_quote(rest: &[u8]) -> bool {
    // The first token tells; how long it is does not matter.
    let rest = &rest[..rest.len().min(64)];
    let Some(token) = Lexer::new(rest, 0).next() else { return false };
    match token.kind {
        TokenKind::Operator(_) | TokenKind::Close | TokenKind::Comma | TokenKind::Semicolon => true,
        TokenKind::Comment(_) | TokenKind::CloseBrace => true,
        TokenKind::Word(word) => follows_operand(word),
        TokenKind::Other => token.span.of(rest) == b"]",
        // `'1'1`: no. `' 'or'`: strings stand side by side.
        TokenKind::String { closed, .. } => closed && token.span.start > 0,
        TokenKind::Variable => token.span.of(rest) == b"?",
        TokenKind::Open => {
            let inner = Lexer::new(rest, token.span.end as usize)
                .find(|token| !matches!(token.kind, TokenKind::Comment(_) | TokenKind::Open));
            inner.is_some_and(|inner| inner.kind == TokenKind::Word(Word::Select))
        }
        _ => false,
    }
}

/// Words that may stand where an operator is expected, aliases aside.
fn follows_operand(word: Word) -> bool {
    !matches!(role(word), Part::Constant | Part::Unary | Part::Name)
        || matches!(word, Word::Not | Word::Binary)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    /// The beginning: either.
    Start,
    Operand,
    Operator,
    /// Behind a semicolon.
    Statement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operand {
    None,
    Number,
    Text,
    Literal,
    Name,
    Call,
    Select,
    Variable,
    Complex,
}

impl Operand {
    fn is_constant(self) -> bool {
        matches!(self, Operand::Number | Operand::Text | Operand::Literal)
    }
}

/// Which part of a statement the walk is in, as far as aliases matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clause {
    Expression,
    Columns,
    Tables,
    Ordering,
    /// Statements that take operands side by side: `exec`, `declare`, `create`, ...
    Free,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    is_call: bool,
    is_select: bool,
    clause: Clause,
    joined: bool,
    compared: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Walk<'t, 'n> {
    text: &'t [u8],
    names: &'n Names,
    lexer: Lexer<'t>,
    /// What [`Walk::peek`] saw: it is asked several times at each name.
    ahead: RefCell<Option<Ahead<'t>>>,
    start: Start,
    from: usize,
    expect: Expect,
    clause: Clause,
    stack: [Frame; DEPTH_MAX],
    depth: usize,
    /// An AND, OR, WHERE or the like stands before the current condition.
    joined: bool,
    /// The current condition has its comparison.
    compared: bool,
    joined_at: u32,
    last: Operand,
    last_span: Span,
    /// The left side of a comparison whose right side comes next.
    comparing: Option<(Operand, Span)>,
    aliased: bool,
    after_union: bool,
    /// Only words since the SELECT: English has that, too.
    only_words: bool,
    select_at: Option<Span>,
    union_at: Option<Span>,
    clean: bool,
    violations: u32,
    /// Nothing fitted since the last violation.
    is_astray: bool,
    tokens: u32,
    /// The same with comments.
    read: u32,
    ended: bool,
    begins_with_word: bool,
    /// Whether the text begins as prose, once that was asked.
    prose: OnceCell<bool>,
    /// The name before a parenthesis is a function that chooses by its first argument.
    chooses: bool,
    /// Where the comment that ended the piece begins.
    comment_at: u32,
    /// Where the first token stands that did not fit.
    broken_at: u32,
    clean_facts: Facts,
    loose_facts: Facts,
}

const FRAME: Frame =
    Frame { is_call: false, is_select: false, clause: Clause::Expression, joined: false, compared: false };
impl<'t, 'n> Walk<'t, 'n> {
    pub fn new(text: &'t [u8], names: &'n Names) -> Walk<'t, 'n> {
        Walk {
            text,
            names,
            lexer: Lexer::new(text, 0),
            ahead: RefCell::new(None),
            start: Start::Raw,
            from: 0,
            expect: Expect::Start,
            clause: Clause::Expression,
            stack: [FRAME; DEPTH_MAX],
            depth: 0,
            joined: false,
            compared: false,
            joined_at: 0,
            last: Operand::None,
            last_span: Span::default(),
            comparing: None,
            aliased: false,
            after_union: false,
            only_words: true,
            select_at: None,
            union_at: None,
            clean: true,
            violations: 0,
            is_astray: false,
            tokens: 0,
            read: 0,
            ended: false,
            begins_with_word: false,
            prose: OnceCell::new(),
            chooses: false,
            comment_at: 0,
            broken_at: 0,
            clean_facts: Facts::new(),
            loose_facts: Facts::new(),
        }
    }

    pub fn reset(&mut self) {
        // Spans and frames need not be wiped: what is noted and open says which of them count.
        self.clean_facts.kinds = 0;
        self.loose_facts.kinds = 0;
        self.start = Start::Raw;
        self.from = 0;
        self.expect = Expect::Start;
        self.clause = Clause::Expression;
        self.depth = 0;
        self.joined = false;
        self.compared = false;
        self.joined_at = 0;
        self.last = Operand::None;
        self.last_span = Span::default();
        self.comparing = None;
        self.aliased = false;
        self.after_union = false;
        self.only_words = true;
        self.select_at = None;
        self.union_at = None;
        self.clean = true;
        self.violations = 0;
        self.is_astray = false;
        self.tokens = 0;
        self.read = 0;
        self.ended = false;
        self.begins_with_word = false;
        self.chooses = false;
        self.comment_at = 0;
        self.broken_at = 0;
    }

    /// Walks from byte `from`.
    pub fn run(&mut self, start: Start, from: usize) {
        self.start = start;
        self.from = from;
        self.lexer = Lexer::new(self.text, from);
        *self.ahead.get_mut() = None;
        if start != Start::Raw {
            self.expect = Expect::Operator;
            self.last = Operand::Text;
            self.last_span = Span::new(from, from);
        }
        while let Some(token) = self.next() {
            self.read += 1;
            if self.is_astray && self.is_stray(token) {
                self.tokens += 1;
                self.violations += 1;
                if self.violations > VIOLATIONS_MAX {
                    break;
                }
                continue;
            }
            self.is_astray = false;
            let fits = self.step(token);
            self.tokens += u32::from(!matches!(token.kind, TokenKind::Comment(_)));
            if self.ended {
                break;
            }
            if !fits && self.violations == 0 {
                self.broken_at = token.span.start;
            }
            if !fits && !self.violation() {
                break;
            }
        }
        self.finish();
    }

    /// Bytes that the walk has read.
    pub fn bytes_read(&self) -> usize {
        self.lexer.position() - self.from
    }

    /// Tokens that the walk has read.
    pub fn tokens_read(&self) -> usize {
        self.read as usize
    }

    /// What does not fit. False if the walk ends here.
    fn violation(&mut self) -> bool {
        self.boundary();
        self.violations += 1;
        self.clean = false;
        if self.start != Start::Raw || self.violations > VIOLATIONS_MAX || self.is_quiet_prose() {
            return false;
        }
        self.expect = Expect::Operator;
        self.last = Operand::None;
        self.depth = 0;
        self.joined = false;
        self.compared = false;
        self.comparing = None;
        self.clause = Clause::Expression;
        self.after_union = false;
        self.select_at = None;
        self.is_astray = true;
        true
    }

    /// True for a token that does not fit behind one that did not: a violation again, which leaves all as it was.
    fn is_stray(&mut self, token: Token) -> bool {
        match token.kind {
            TokenKind::Number | TokenKind::String { .. } | TokenKind::OpenBrace => true,
            TokenKind::Word(word) if matches!(role(word), Part::Name | Part::Constant) => {
                self.name(token.span);
                true
            }
            _ => false,
        }
    }

    /// Words that did not hold as SQL and told nothing so far: what they say further down is not told either.
    fn is_quiet_prose(&self) -> bool {
        self.violations == 1 && self.clean_facts.kinds == 0 && self.begins_as_prose()
    }

    fn note(&mut self, kind: KindId, span: Span) {
        let facts = if self.clean { &mut self.clean_facts } else { &mut self.loose_facts };
        facts.note(kind, span);
    }

    fn has(&self, kind: KindId) -> bool {
        self.clean_facts.has(kind)
    }

    fn word(&self, span: Span) -> &'t [u8] {
        span.of(self.text)
    }

    /// Takes one token. False if it does not fit.
    fn step(&mut self, token: Token) -> bool {
        match token.kind {
            TokenKind::Comment(comment) => return self.comment(comment, token.span),
            TokenKind::OpenBrace => {
                // `{fn x()}`, `{x !0}`: the word belongs to the brace.
                let is_odbc = matches!(
                    self.peek(),
                    Some(Token { kind: TokenKind::Word(_) | TokenKind::QuotedName(_), .. })
                );
                if is_odbc && self.expect != Expect::Operator {
                    self.skip();
                    self.note(BRACE, token.span);
                    self.expect = Expect::Operand;
                    return true;
                }
                return false;
            }
            _ => {}
        }
        match self.expect {
            Expect::Start => self.begin(token),
            Expect::Statement => self.statement_or_end(token),
            Expect::Operand => self.operand(token),
            Expect::Operator => self.operator(token),
        }
    }
}
