//! Statements: at the beginning of a value, after a semicolon, or appended.

use portcullis_lex::sql::{Lexer, Operator, Token, TokenKind, Word};
use portcullis_types::Span;

use super::grammar::{CONDITION_TOKENS_MAX, Following};
use super::words::{Part, role};
use super::{Clause, Expect, Operand, Start, Walk};
use crate::KindId;
use crate::detectors::sqli::*;

impl Walk<'_, '_> {
    /// A statement word where an operator is expected: a second statement without a semicolon.
    pub(super) fn statement_word(&mut self, word: Word, span: Span) -> bool {
        if word == Word::Set && matches!(self.clause, Clause::Tables | Clause::Free) {
            self.expect = Expect::Operand;
            self.clause = Clause::Expression;
            return true;
        }
        if self.clause == Clause::Free && word != Word::Select {
            return true;
        }
        if word == Word::Select && self.clause == Clause::Tables {
            // `insert into t select`
            self.select(span);
            return true;
        }
        if matches!(word, Word::With | Word::Lock | Word::Use | Word::Do | Word::If | Word::Set | Word::Show)
        {
            return self.alias();
        }
        self.boundary();
        // PostgreSQL, the only one with dollar quotes, takes no statement without a semicolon before it.
        if self.start == Start::Quote(b'$') {
            return false;
        }
        // After text nothing else tells that a statement stood before it.
        let is_first = self.is_inside && self.tokens == 0;
        self.statement(word, span, if is_first { STATEMENT } else { JUXTAPOSED })
    }

    /// After a semicolon.
    pub(super) fn statement_or_end(&mut self, token: Token) -> bool {
        match token.kind {
            TokenKind::Semicolon => true,
            TokenKind::Word(_) if self.is_order(token) => {
                self.note(STACKED, self.span_to_next(token.span));
                self.skip();
                self.expect = Expect::Operator;
                self.last = Operand::Name;
                self.clause = Clause::Free;
                true
            }
            TokenKind::Word(word) if role(word) == Part::Statement => {
                self.statement(word, token.span, STACKED) || self.foreign_statement(token)
            }
            TokenKind::Word(_) if self.foreign_statement(token) => true,
            // A label, where GOTO leads to.
            TokenKind::Word(Word::Name)
                if self.peek().is_some_and(|next| next.kind == TokenKind::Operator(Operator::Colon)) =>
            {
                self.skip();
                true
            }
            // A statement is over: nothing is joined to it, but to the semicolon that a list of tricks begins
            // with.
            TokenKind::Word(word) if role(word) == Part::Join && self.tokens > 1 => false,
            TokenKind::Word(_) | TokenKind::Operator(_) => {
                // PL/SQL blocks and MySQL's delimiters are not told from prose here.
                self.expect = Expect::Start;
                self.begin(token)
            }
            TokenKind::Open => {
                self.stacks_query(token.span);
                self.expect = Expect::Operand;
                self.operand(token)
            }
            TokenKind::Number
            | TokenKind::String { .. }
            | TokenKind::QuotedName(_)
            | TokenKind::Variable
            | TokenKind::Close
            | TokenKind::Comma
            | TokenKind::Dot
            | TokenKind::OpenBrace
            | TokenKind::CloseBrace
            | TokenKind::Comment(_)
            | TokenKind::Other => false,
        }
    }

    /// `;((table users))`, `;(values(1))`: parentheses directly behind the semicolon, and a query in them.
    fn stacks_query(&mut self, span: Span) {
        let is_glued = self.text[..span.start as usize].ends_with(b";");
        let inner = self.lexer.clone().take(CONDITION_TOKENS_MAX);
        let mut inner =
            inner.skip_while(|token| matches!(token.kind, TokenKind::Open | TokenKind::Comment(_)));
        let is_query = matches!(
            inner.next().map(|token| token.kind),
            Some(TokenKind::Word(Word::Select | Word::Table | Word::Values | Word::With))
        );
        if is_glued && is_query && self.breaks_out() {
            self.note(STACKED, self.span_to_next(span));
        }
    }

    /// `;flush privileges`, `;table users`: a statement that is no more than two words or three, after a
    /// number or a quote, with the word that belongs to it, and nothing but another statement, an assignment
    /// or a comment after.
    fn is_order(&self, token: Token) -> bool {
        let follows_value =
            self.start != Start::Raw || !self.is_inside && self.tokens == 2 && self.begins_with_number();
        if !follows_value {
            return false;
        }
        let first = self.word(token.span);
        let Some((_, seconds)) = ORDERS.iter().find(|(known, _)| first.eq_ignore_ascii_case(known)) else {
            return false;
        };
        let [second, third] = self.peeks();
        let ends = |token: Option<Token>| token.is_none_or(|token| token.kind == TokenKind::Semicolon);
        let Some(second) = second else { return seconds.is_empty() };
        let is_any = matches!(second.kind, TokenKind::Word(_) | TokenKind::QuotedName(_));
        match seconds.is_empty() {
            true => is_any && ends(third),
            false => {
                let word = self.word(second.span);
                seconds.iter().any(|known| word.eq_ignore_ascii_case(known))
            }
        }
    }

    /// The text begins with a number.
    pub(super) fn begins_with_number(&self) -> bool {
        let first = Lexer::new(self.text, 0).next();
        first.is_some_and(|token| token.kind == TokenKind::Number)
    }

    /// Reads a statement that begins with `word`. False if what follows does not fit it; otherwise notes the
    /// statement as `kind` and goes on in its grammar.
    pub(super) fn statement(&mut self, word: Word, span: Span, kind: KindId) -> bool {
        // A script of whole statements is not an injection after one.
        let is_script = kind == STACKED && (self.has(STATEMENT) || self.has(STATEMENT_PLAIN));
        let kind = if is_script { SCRIPT } else { kind };
        let next = Following::new(self.peeks(), matches!(kind, STACKED | SCRIPT));
        self.aliased = false;
        if word == Word::Select {
            return self.select_statement(&next, span, kind);
        }
        let holds = self.is_statement(word, &next);
        if holds {
            if word == Word::Declare && next.first == Some(TokenKind::Variable) {
                self.note(DECLARE_VARIABLE, self.span_to_next(span));
            }
            self.note(kind, self.span_to_next(span));
            self.enter_statement(word, span);
        }
        holds
    }

    /// Sets what the walk expects after the first word of a statement that fits.
    #[expect(clippy::wildcard_enum_match_arm, reason = "few of the words change what is expected")]
    fn enter_statement(&mut self, word: Word, span: Span) {
        self.expect = Expect::Operand;
        self.last = Operand::None;
        self.clause = Clause::Free;
        match word {
            Word::If | Word::While => {
                self.clause = Clause::Expression;
                self.joined = true;
                self.compared = false;
            }
            Word::Copy if self.copies_program() => self.note(EXECUTE_FUNCTION, span),
            Word::Waitfor => {
                self.skip();
                self.note(TIME_FUNCTION, span);
            }
            Word::Delete | Word::Insert | Word::Merge | Word::Replace => {
                self.skip();
                self.clause = Clause::Tables;
            }
            Word::Update => self.clause = Clause::Tables,
            Word::Shutdown => self.expect = Expect::Operator,
            Word::Begin => self.expect = Expect::Statement,
            Word::Grant | Word::Revoke => self.rights(),
            _ => {}
        }
    }

    /// `all on t from x`: rights, what they are for and who has them stand side by side.
    fn rights(&mut self) {
        let (begun, mut says_whose) = (self.lexer.clone(), false);
        for _ in 0..CONDITION_TOKENS_MAX {
            let is_part = self.peek().is_some_and(|next| {
                if let TokenKind::Word(word) = next.kind {
                    return role(word) != Part::Statement || word == Word::Select;
                }
                matches!(
                    next.kind,
                    TokenKind::QuotedName(_)
                        | TokenKind::String { .. }
                        | TokenKind::Comma
                        | TokenKind::Dot
                        | TokenKind::Variable
                        | TokenKind::Operator(Operator::Star)
                )
            });
            if !is_part {
                break;
            }
            says_whose |= self.peek().is_some_and(|next| {
                let word = self.word(next.span);
                [&b"on"[..], b"to", b"from"].iter().any(|known| word.eq_ignore_ascii_case(known))
            });
            self.skip();
        }
        if says_whose {
            self.expect = Expect::Operator;
            self.last = Operand::Name;
        } else {
            self.lexer = begun;
        }
    }

    /// `copy t from program 'id'`, `copy (select 1) to program 'sh'`
    fn copies_program(&self) -> bool {
        let mut ahead = self
            .lexer
            .clone()
            .take(CONDITION_TOKENS_MAX)
            .filter(|token| !matches!(token.kind, TokenKind::Comment(_)));
        ahead.any(|token| self.word(token.span).eq_ignore_ascii_case(b"program"))
            && ahead.next().is_some_and(|token| matches!(token.kind, TokenKind::String { .. }))
    }
}

/// Statements of few words, and the second words of those that have certain ones; of the others any name is
/// all there is.
const ORDERS: &[(&[u8], &[&[u8]])] = &[
    (b"table", &[]),
    (b"desc", &[]),
    (b"describe", &[]),
    (b"listen", &[]),
    (b"unlisten", &[]),
    (b"checkpoint", &[]),
    (b"explain", &[b"select", b"update", b"delete", b"insert", b"analyze", b"extended"]),
    (b"flush", &[b"privileges", b"tables", b"logs", b"status", b"hosts"]),
    (b"reset", &[b"master", b"slave", b"query", b"replica"]),
    (b"set", &[b"global", b"session", b"local", b"persist", b"role", b"names", b"password"]),
    (b"lock", &[b"tables", b"table"]),
    (b"unlock", &[b"tables"]),
    (b"optimize", &[b"table", b"local"]),
    (b"analyze", &[b"table", b"local"]),
    (b"repair", &[b"table"]),
    (b"check", &[b"table"]),
    (b"reindex", &[b"table", b"database", b"index", b"schema"]),
    (b"discard", &[b"all", b"plans", b"temp"]),
    (b"install", &[b"plugin"]),
    (b"purge", &[b"binary", b"master"]),
];
