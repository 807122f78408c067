//! Walks a piece of SQL token by token and notes what it does.
//!
//! The walk knows two expectations, an operand or an operator, and a stack of parentheses. What does not fit
//! ends the *piece*. A reading from a quote ends there, too. The reading of the value as it stands goes on
//! after it: the next word or sign that may follow an operand begins another piece, with the number, name or
//! string before it as its left side. So a piece that stands in foreign text is read as it would be alone. No
//! tree is built; each token is looked at once, with a look ahead of two.

mod ahead;
mod clause;
mod expression;
mod facts;
mod grammar;
mod operand;
mod operator;
mod outcome;
mod parentheses;
mod pieces;
mod select;
mod stacked;
mod statement;
mod words;

use std::cell::RefCell;
use std::rc::Rc;

use portcullis_lex::sql::{Lexer, Operator, Reads, Token, TokenKind, Word};
use portcullis_types::Span;

use self::ahead::Ahead;
use self::facts::Facts;
pub(super) use self::pieces::Field;
use self::pieces::Pieces;
use self::words::{Part, role};
use super::names::Names;
use super::quotes::{Place, escape_end};
use super::*;
use crate::KindId;

/// Parentheses that are distinguished; deeper ones are all taken as groups.
const DEPTH_MAX: usize = 48;
/// Tokens after a quote that may tell nothing before the reading ends.
const IDLE_TOKENS_MAX: u32 = 64;

/// The beginning of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// The value as it stands.
    Raw,
    /// After a quote that ends a string, or a back-tick that ends a name.
    Quote(u8),
}

/// True if `rest`, which stands after a quote, can go on as SQL: an operator, a parenthesis, a comment, or a
/// word that follows an operand.
pub(super) fn may_follow_quote(rest: &[u8]) -> bool {
    // The first token tells; how long it is does not matter.
    let rest = &rest[..rest.len().min(64)];
    let Some(token) = Lexer::new(rest, 0).next() else { return false };
    match token.kind {
        TokenKind::Operator(_) | TokenKind::Close | TokenKind::Comma | TokenKind::Semicolon => true,
        TokenKind::Comment(_) | TokenKind::CloseBrace => true,
        TokenKind::Word(word) => follows_operand(word) || is_option(rest, token),
        TokenKind::Other => token.span.of(rest) == b"]",
        // `'1'1`: no. `' 'or'`: strings stand side by side.
        TokenKind::String { closed, .. } => closed && token.span.start > 0,
        TokenKind::Variable => token.span.of(rest) == b"?",
        TokenKind::Open => {
            let inner = Lexer::new(rest, token.span.end as usize)
                .find(|token| !matches!(token.kind, TokenKind::Comment(_) | TokenKind::Open));
            inner.is_some_and(|inner| inner.kind == TokenKind::Word(Word::Select))
        }
        TokenKind::Number | TokenKind::QuotedName(_) | TokenKind::Dot | TokenKind::OpenBrace => false,
    }
}

/// `option(recompile)`: the hints of Transact-SQL's queries.
fn is_option(rest: &[u8], token: Token) -> bool {
    let end = (token.span.end as usize).min(rest.len());
    token.span.of(rest).eq_ignore_ascii_case(b"option") && rest[end..].trim_ascii_start().starts_with(b"(")
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
    /// After a semicolon.
    Statement,
    /// In a statement of which only the first words are known.
    Arguments,
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

/// The part of a statement that the walk is in, as far as aliases matter.
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
    /// The function is one of an object.
    is_member: bool,
    is_select: bool,
    clause: Clause,
    joined: bool,
    compared: bool,
    computes: bool,
    /// Where it opens.
    at: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Walk<'t, 'n> {
    text: &'t [u8],
    names: &'n Names,
    lexer: Lexer<'t>,
    /// What looks ahead found and cost, with those of other readings of the text.
    reads: Rc<Reads>,
    /// What they may cost in this reading.
    reads_max: usize,
    /// What [`Walk::peek`] saw: it is asked several times at each name.
    ahead: RefCell<Option<Ahead<'t>>>,
    start: Start,
    /// Where the reading began, and where the piece.
    begun: usize,
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
    /// The condition is joined to the number that the text begins with.
    joins_number: bool,
    last: Operand,
    last_span: Span,
    /// An arithmetic sign stands before the next operand, and what is no constant before the sign.
    computes: bool,
    /// Braces of the text that are open and none of SQL's.
    braces: u32,
    /// The left side of a comparison whose right side comes next.
    comparing: Option<(Operand, Span)>,
    aliased: bool,
    after_union: bool,
    /// Only words since the SELECT: English has that, too.
    only_words: bool,
    select_at: Option<Span>,
    union_at: Option<Span>,
    /// The piece begins after something that did not fit: there is text before it.
    is_inside: bool,
    /// Nothing fitted since.
    is_astray: bool,
    /// Quotes, by their place in [`QUOTES`], after which the text has no end of a string.
    without_end: [bool; 2],
    tokens: u32,
    /// Tokens of the whole reading, with comments, but for those of foreign text, which cost no more than
    /// their bytes.
    read: u32,
    /// A token of the reading was a word.
    has_word: bool,
    /// The comment that was read last, while nothing after it fitted.
    cut: Option<Span>,
    ended: bool,
    begins_with_word: bool,
    /// What the piece would do as an expression in place of a name.
    does: expression::Does,
    /// A keyword of a clause was read.
    has_clause: bool,
    /// What the piece begins with, or stands before it.
    head: Operand,
    /// The name before a parenthesis is a function that chooses by its first argument.
    chooses: bool,
    /// The comparison is a word: `like`, `is`.
    compares_by_word: bool,
    /// It is `is distinct from`.
    tells_apart: bool,
    /// The quote that began the reading is one of a pair in the text.
    is_literal: bool,
    /// It looks like the first one of a pair.
    is_opening: bool,
    /// It is the first of its sort in the text.
    is_first: bool,
    /// The value as it stands has a statement.
    has_statement: bool,
    facts: Facts,
    /// Kinds of all pieces of the reading.
    all_kinds: u64,
    /// Those of the piece that the text begins with.
    first_kinds: u64,
    pieces: Pieces<'n>,
    /// Quotes after which a list goes on that this reading, or one before, has read: `"a","b","c"`. In
    /// order.
    listed: Vec<u32>,
}

/// See [`Walk::skip_loose_quotes`].
const QUOTES: [u8; 2] = [b'\'', b'"'];

const FRAME: Frame = Frame {
    is_call: false,
    is_member: false,
    is_select: false,
    clause: Clause::Expression,
    joined: false,
    compared: false,
    computes: false,
    at: 0,
};
impl<'t, 'n> Walk<'t, 'n> {
    pub fn new(text: &'t [u8], names: &'n Names, field: Field<'n>) -> Walk<'t, 'n> {
        let reads = Rc::default();
        Walk {
            text,
            names,
            lexer: Lexer::sharing(text, 0, &reads),
            reads,
            reads_max: usize::MAX,
            ahead: RefCell::new(None),
            start: Start::Raw,
            begun: 0,
            from: 0,
            expect: Expect::Start,
            clause: Clause::Expression,
            stack: [FRAME; DEPTH_MAX],
            depth: 0,
            joined: false,
            compared: false,
            joined_at: 0,
            joins_number: false,
            last: Operand::None,
            last_span: Span::default(),
            computes: false,
            braces: 0,
            comparing: None,
            aliased: false,
            after_union: false,
            only_words: true,
            select_at: None,
            union_at: None,
            is_inside: false,
            is_astray: false,
            without_end: [false; 2],
            tokens: 0,
            read: 0,
            has_word: false,
            cut: None,
            ended: false,
            begins_with_word: false,
            does: expression::Does::default(),
            has_clause: false,
            head: Operand::None,
            chooses: false,
            compares_by_word: false,
            tells_apart: false,
            is_literal: false,
            is_opening: false,
            is_first: false,
            has_statement: false,
            facts: Facts::new(),
            all_kinds: 0,
            first_kinds: 0,
            pieces: Pieces::new(field),
            listed: Vec::new(),
        }
    }

    /// Forgets the reading, but not what it was found to be worth.
    pub fn reset(&mut self) {
        self.read = 0;
        self.has_word = false;
        self.reads.forget_cost();
        self.all_kinds = 0;
        self.first_kinds = 0;
        self.is_inside = false;
        self.is_astray = false;
        self.braces = 0;
        self.without_end = [false; 2];
        self.ended = false;
        self.is_literal = false;
        self.is_opening = false;
        self.is_first = false;
        self.begin_piece();
    }

    /// Forgets the piece. Spans and frames need not be wiped: what is noted and open says which of them
    /// count.
    fn begin_piece(&mut self) {
        self.facts.kinds = 0;
        self.expect = Expect::Start;
        self.clause = Clause::Expression;
        self.depth = 0;
        self.joined = false;
        self.compared = false;
        self.joined_at = 0;
        self.joins_number = false;
        self.last = Operand::None;
        self.last_span = Span::default();
        self.computes = false;
        self.comparing = None;
        self.aliased = false;
        self.after_union = false;
        self.only_words = true;
        self.select_at = None;
        self.union_at = None;
        self.tokens = 0;
        self.cut = None;
        self.begins_with_word = false;
        self.has_clause = false;
        self.does = expression::Does::default();
        self.head = Operand::None;
        self.chooses = false;
        self.compares_by_word = false;
        self.tells_apart = false;
    }

    /// What looks ahead may cost in the readings that follow; one in which they cost more ends.
    pub fn may_read(&mut self, bytes: usize) {
        self.reads_max = bytes;
    }

    /// Walks after a quote.
    pub fn run_after_quote(&mut self, quote: u8, place: Place) {
        self.reset();
        self.is_literal = place.is_literal;
        self.is_opening = place.opens;
        self.is_first = place.is_first;
        self.walk(Start::Quote(quote), place.at + 1);
    }

    /// Walks the text as it stands.
    pub fn run(&mut self) {
        self.reset();
        self.walk(Start::Raw, 0);
        const STATEMENTS: u64 = 1 << STATEMENT.0 | 1 << STATEMENT_PLAIN.0;
        self.has_statement = self.all_kinds & STATEMENTS != 0;
    }

    fn walk(&mut self, start: Start, from: usize) {
        self.start = start;
        self.begun = from;
        self.from = from;
        self.lexer = Lexer::sharing(self.text, from, &self.reads);
        *self.ahead.get_mut() = None;
        if start != Start::Raw {
            self.expect = Expect::Operator;
            self.last = Operand::Text;
            self.last_span = Span::new(from, from);
        }
        loop {
            if self.is_astray {
                self.skip_loose_quotes();
            }
            let Some(token) = self.next() else { break };
            if self.is_astray {
                if self.is_stray(token) {
                    continue;
                }
                self.begin_inside(token);
            }
            self.read += 1;
            self.has_word |= matches!(token.kind, TokenKind::Word(_));
            let fits = self.step(token);
            if fits {
                self.note_list(token);
            }
            let is_comment = matches!(token.kind, TokenKind::Comment(_));
            self.tokens += u32::from(!is_comment);
            if fits && !is_comment {
                self.cut = None;
            }
            let is_spent = self.reads.cost() > self.reads_max;
            if self.ended || !fits && !self.violation(token) || self.is_idle() || is_spent {
                break;
            }
        }
        self.finish();
    }

    /// The quote at `at` ends an item of a list that was read, which told nothing so far: reading on after
    /// it tells the same.
    pub fn has_read(&self, at: usize) -> bool {
        self.listed.binary_search(&(at as u32)).is_ok()
    }

    /// Forgets the lists, for quotes of another sort.
    pub fn forget_lists(&mut self) {
        self.listed.clear();
    }

    /// A string ended whose quote a comma follows.
    fn note_list(&mut self, token: Token) {
        let end = token.span.end;
        let is_of_list = matches!(self.start, Start::Quote(start) if matches!(token.kind, TokenKind::String { quote, closed: true } if quote == start));
        let is_next = self.text.get(end as usize) == Some(&b',');
        let is_new = self.listed.last().is_none_or(|last| *last < end - 1);
        if is_of_list && is_next && is_new && !self.joined && !self.facts.is_telling() {
            self.listed.push(end - 1);
        }
    }

    /// Bytes that the walk has read, or that cost as much.
    pub fn bytes_read(&self) -> usize {
        (self.lexer.position() - self.begun).saturating_add(self.reads.cost())
    }

    /// Bytes between the quote that it began after and where it is.
    pub fn bytes_passed(&self) -> usize {
        self.lexer.position() - self.begun
    }

    /// One of its tokens was a word.
    pub fn has_met_word(&self) -> bool {
        self.has_word
    }

    /// Tokens that the walk has read.
    pub fn tokens_read(&self) -> usize {
        self.read as usize
    }

    /// What does not fit. False if the reading ends here.
    fn violation(&mut self, token: Token) -> bool {
        match self.cut {
            // What the comment cuts off need not hold, on whatever line it stands.
            Some(comment) if self.cuts_lines() => self.end_comment(comment),
            _ => self.boundary(),
        }
        self.close_piece();
        self.ended = false;
        self.is_astray = true;
        if self.start != Start::Raw {
            return false;
        }
        self.is_inside = true;
        if !self.is_stray(token) && !self.begin_again(token) {
            self.begin_piece();
        }
        true
    }

    /// Begins a piece with a token that did not end the one before as its operator. False if it does not fit
    /// there either.
    fn begin_again(&mut self, token: Token) -> bool {
        self.last = Operand::None;
        self.begin_inside(token);
        let fits = self.step(token) && !self.ended;
        self.is_astray = !fits;
        self.tokens += 1;
        fits
    }

    /// Begins a piece after foreign text, whose last token is its left side.
    fn begin_inside(&mut self, token: Token) {
        let (last, span) = (self.last, self.last_span);
        self.begin_piece();
        self.is_astray = false;
        self.from = token.span.start as usize;
        self.head = last;
        self.begins_with_word = last == Operand::Name;
        self.last = last;
        self.last_span = span;
        self.expect = Expect::Operator;
    }

    /// True for a token that is no more than the left side of what follows.
    fn is_stray(&mut self, token: Token) -> bool {
        let operand = match token.kind {
            TokenKind::Number => Operand::Number,
            TokenKind::String { .. } => Operand::Text,
            TokenKind::Word(word) if role(word) == Part::Constant => Operand::Literal,
            TokenKind::Word(word) if role(word) == Part::Name => Operand::Name,
            TokenKind::QuotedName(_) => Operand::Name,
            TokenKind::OpenBrace => {
                self.braces += 1;
                Operand::None
            }
            TokenKind::Other | TokenKind::Dot => Operand::None,
            TokenKind::Word(_)
            | TokenKind::Variable
            | TokenKind::Operator(_)
            | TokenKind::Open
            | TokenKind::Close
            | TokenKind::Comma
            | TokenKind::Semicolon
            | TokenKind::CloseBrace
            | TokenKind::Comment(_) => return false,
        };
        self.last = operand;
        self.last_span = token.span;
        true
    }

    /// In foreign text an apostrophe, and a quote that nothing closes, is a sign and no string.
    fn skip_loose_quotes(&mut self) {
        let mut at = self.lexer.position();
        loop {
            while self.text.get(at).is_some_and(|b| *b <= b' ') {
                at += 1;
            }
            let Some(number) = self.text.get(at).and_then(|b| QUOTES.iter().position(|quote| quote == b))
            else {
                return;
            };
            let is_apostrophe = at > 0 && self.text[at - 1].is_ascii_alphanumeric();
            if !is_apostrophe && !self.without_end[number] {
                let string = Lexer::sharing(self.text, at, &self.reads).next().map(|token| token.kind);
                self.without_end[number] = matches!(
                    string,
                    Some(TokenKind::String { closed: false, .. } | TokenKind::QuotedName(false))
                );
            }
            if !is_apostrophe && !self.without_end[number] {
                return;
            }
            at += 1;
            self.lexer = Lexer::sharing(self.text, at, &self.reads);
        }
    }

    /// After a quote there was no evidence for long.
    fn is_idle(&self) -> bool {
        self.start != Start::Raw && self.tokens >= IDLE_TOKENS_MAX && !self.facts.is_telling()
    }

    fn note(&mut self, kind: KindId, span: Span) {
        self.facts.note(kind, span);
    }

    fn has(&self, kind: KindId) -> bool {
        self.facts.has(kind)
    }

    /// The text begins with a number, and what was read since is this one token.
    fn is_after_number(&self) -> bool {
        let has_sign = self.tokens == 2 && matches!(self.text.first(), Some(b'-' | b'+'));
        let is_first = self.start == Start::Raw && !self.is_inside && (self.tokens == 1 || has_sign);
        is_first && self.last == Operand::Number
    }

    fn word(&self, span: Span) -> &'t [u8] {
        span.of(self.text)
    }

    /// Takes one token. False if it does not fit.
    fn step(&mut self, token: Token) -> bool {
        if self.pieces.field.is_encoded && self.is_escaped(token) {
            return false;
        }
        if let TokenKind::Comment(comment) = token.kind {
            return self.comment(comment, token.span);
        }
        if token.kind == TokenKind::OpenBrace {
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
            self.braces += 1;
            return false;
        }
        match self.expect {
            Expect::Start => self.begin(token),
            Expect::Statement => self.statement_or_end(token),
            Expect::Arguments => self.argument(token),
            Expect::Operand => self.operand(token),
            Expect::Operator => self.operator(token),
        }
    }

    /// The token is an escape of an encoded text, which is skipped, or a word before one: `SELECT%20a`.
    fn is_escaped(&mut self, token: Token) -> bool {
        let (start, end) = (token.span.start as usize, token.span.end as usize);
        if token.kind == TokenKind::Operator(Operator::Divide) {
            let Some(end) = escape_end(self.text, start) else { return false };
            self.lexer = Lexer::sharing(self.text, end, &self.reads);
            *self.ahead.get_mut() = None;
            return true;
        }
        matches!(token.kind, TokenKind::Word(_)) && escape_end(self.text, end).is_some()
    }
}
