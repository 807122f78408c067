//! Tokens where an operator is expected: signs, strings and aliases. Words are in `clause`.

use portcullis_lex::sql::{Operator, Token, TokenKind, Word};
use portcullis_types::Span;

use super::{Clause, Expect, Operand, Start, Walk};
use crate::detectors::sqli::*;

/// No type that stands before a string has more.
const TYPE_BYTES_MAX: usize = 16;

impl Walk<'_, '_> {
    pub(super) fn operator(&mut self, token: Token) -> bool {
        match token.kind {
            TokenKind::Operator(operator) => self.sign(operator, token.span),
            TokenKind::Dot => {
                self.expect = Expect::Operand;
                self.last = Operand::None;
                self.is_before_part()
            }
            TokenKind::Open => self.open_after_operand(token.span),
            TokenKind::CloseBrace => {
                self.close_brace(token.span);
                true
            }
            TokenKind::Close => {
                self.close(token.span);
                true
            }
            TokenKind::Other if self.word(token.span) == b"]" => {
                self.close(token.span);
                true
            }
            TokenKind::Comma => {
                self.boundary();
                self.expect = Expect::Operand;
                self.aliased = false;
                self.last = Operand::None;
                self.computes = false;
                self.only_words = false;
                true
            }
            TokenKind::Semicolon => {
                self.boundary();
                self.depth = 0;
                self.clause = Clause::Expression;
                self.joined = false;
                self.expect = Expect::Statement;
                true
            }
            TokenKind::Word(word) => self.operator_word(word, token.span),
            TokenKind::Number => self.clause == Clause::Free && self.take(Operand::Number, token.span),
            TokenKind::String { closed, .. } => self.string_after_operand(closed, token.span),
            // `array[1]`
            TokenKind::QuotedName(_)
                if self.last == Operand::Name
                    && self.word(token.span).starts_with(b"[")
                    && self.word(self.last_span).eq_ignore_ascii_case(b"array") =>
            {
                self.last = Operand::Complex;
                true
            }
            TokenKind::QuotedName(_) => {
                self.name(token.span);
                self.last_span = token.span;
                self.alias()
            }
            TokenKind::Variable => {
                let text = self.word(token.span);
                if text == b"?" {
                    // PostgreSQL's JSON operator, or an appended URL.
                    self.expect = Expect::Operand;
                    // `'{..}'::jsonb ? 'a'`
                    let is_key =
                        || self.peek().is_some_and(|next| matches!(next.kind, TokenKind::String { .. }));
                    return self.depth == 0 && (self.start != Start::Raw || self.joined && is_key());
                }
                if self.is_system_variable(text) {
                    self.note(SYSTEM_VARIABLE, token.span);
                }
                self.alias()
            }
            TokenKind::OpenBrace | TokenKind::Comment(_) | TokenKind::Other => false,
        }
    }

    /// Behind a dot stands a part of a name: a name, `*`, or what the text leaves to a variable. A sentence
    /// ends in dots: `Where cat select e.g..`
    pub(super) fn is_before_part(&self) -> bool {
        let is_part = |token: Option<Token>| {
            matches!(
                token.map(|token| token.kind),
                Some(
                    TokenKind::Word(_)
                        | TokenKind::QuotedName(_)
                        | TokenKind::Variable
                        | TokenKind::Number
                        | TokenKind::String { quote: b'"', .. }
                        | TokenKind::Operator(Operator::Star)
                )
            )
        };
        match self.peeks() {
            // `master..xp_cmdshell`
            [Some(Token { kind: TokenKind::Dot, .. }), second] => is_part(second),
            [first, _] => is_part(first),
        }
    }

    fn sign(&mut self, operator: Operator, span: Span) -> bool {
        self.only_words = false;
        self.computes_secret(operator);
        match operator {
            Operator::Cast => {
                self.converts();
                self.expect = Expect::Operand;
            }
            Operator::Ampersands => self.join(span),
            Operator::Pipes => {
                self.joins_number = self.is_after_number();
                self.does.joins = true;
                // Concatenation in most dialects, OR in MySQL: a condition if a comparison follows.
                self.boundary();
                self.joined = true;
                self.compared = false;
                self.joined_at = span.start;
                self.expect = Expect::Operand;
                self.quote_sign(span);
            }
            _ if operator.is_comparison() || operator == Operator::Match => {
                self.comparing = Some((self.last, self.last_span));
                (self.compares_by_word, self.tells_apart) = (false, false);
                self.expect = Expect::Operand;
                self.quote_sign(span);
            }
            Operator::Json => {
                self.note(JSON_OPERATOR, span);
                if self.joined {
                    self.note(CONDITION, span);
                }
                self.expect = Expect::Operand;
                self.last = Operand::Complex;
            }
            Operator::Not => {
                return self.peek().is_some_and(|next| next.kind == TokenKind::Operator(Operator::Equal));
            }
            // A label among statements.
            Operator::Colon if self.clause == Clause::Free => self.expect = Expect::Statement,
            Operator::Colon => return false,
            Operator::Equal
            | Operator::NotEqual
            | Operator::Less
            | Operator::Greater
            | Operator::Plus
            | Operator::Minus
            | Operator::Star
            | Operator::Divide
            | Operator::Bit
            | Operator::Tilde
            | Operator::Match
            | Operator::Assign => {
                // `2-(password like 'a%')`
                self.joins_number |= self.is_after_number() && self.is_before_open();
                self.computes = self.last != Operand::None && !self.last.is_constant();
                self.expect = Expect::Operand;
                self.quote_sign(span);
            }
        }
        true
    }

    /// An operator right after the quote that began the piece.
    fn quote_sign(&mut self, span: Span) {
        if self.tokens == 0 && self.start != Start::Raw {
            self.note(QUOTE_SIGN, span);
        }
    }

    pub(super) fn join(&mut self, span: Span) {
        self.does.joins = true;
        self.joins_number = self.is_after_number();
        self.boundary();
        self.joined = true;
        self.compared = false;
        self.joined_at = span.start;
        self.expect = Expect::Operand;
        self.last = Operand::None;
        if self.tokens == 0 && self.start != Start::Raw {
            self.note(QUOTE_WORD, span);
        }
    }

    /// A second operand in a row: an alias, where there may be one.
    pub(super) fn alias(&mut self) -> bool {
        match self.clause {
            Clause::Free => {
                self.last = Operand::Name;
                true
            }
            // `(select a from b)x`
            Clause::Expression
                if self.depth == 0
                    && self.start == Start::Raw
                    && !self.is_inside
                    && self.last == Operand::Select
                    && !self.aliased =>
            {
                self.aliased = true;
                self.last = Operand::Name;
                self.does.selects |= self.does.has_select;
                true
            }
            // `items a join(select * from users)b`
            Clause::Expression
                if self.depth == 0
                    && self.start == Start::Raw
                    && !self.is_inside
                    && self.tokens == 1
                    && self.last == Operand::Name
                    && self.peek().is_some_and(|next| next.kind == TokenKind::Word(Word::Join)) =>
            {
                true
            }
            Clause::Columns | Clause::Tables if !self.aliased => {
                self.aliased = true;
                self.last = Operand::Name;
                true
            }
            Clause::Expression | Clause::Columns | Clause::Tables | Clause::Ordering => false,
        }
    }

    /// What may stand right before a string that it says the type of: `date`, `_utf8`, `n`.
    fn is_type(&self, span: Span) -> bool {
        const TYPES: &[&[u8]] = &[b"date", b"time", b"timestamp", b"datetime", b"interval"];
        let name = self.word(span);
        matches!(name, [b'n' | b'N' | b'x' | b'X' | b'b' | b'B' | b'e' | b'E' | b'q' | b'Q'])
            || name.starts_with(b"_")
            || TYPES.iter().any(|known| name.eq_ignore_ascii_case(known))
    }

    /// A word that says no type touches the quote of the string at `span`.
    fn is_apostrophe(&self, span: Span) -> bool {
        let before = &self.text[..span.start as usize];
        let is_part = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'_';
        let word = before.iter().rev().take(TYPE_BYTES_MAX).take_while(is_part).count();
        word > 0 && !self.is_type(Span { start: span.start - word as u32, end: span.start })
    }

    fn string_after_operand(&mut self, closed: bool, span: Span) -> bool {
        // `drop table it's.`: an apostrophe begins no string.
        if !closed && self.start == Start::Raw && self.is_apostrophe(span) {
            return false;
        }
        if self.clause == Clause::Free {
            return self.take(Operand::Text, span);
        }
        match self.last {
            // `'a' 'b'` is one string; an opening quote at the end may be the statement's own.
            Operand::Text => true,
            Operand::Name if matches!(self.clause, Clause::Columns | Clause::Tables) => self.alias(),
            // `and dogs' food`: no type is called so, and no text ends.
            Operand::Name if !closed && self.start != Start::Raw && !self.is_type(self.last_span) => false,
            // `date '2024-01-01'`, `_utf8 'x'`
            Operand::Name => {
                self.last = Operand::Text;
                self.last_span = span;
                true
            }
            Operand::None
            | Operand::Number
            | Operand::Literal
            | Operand::Call
            | Operand::Select
            | Operand::Variable
            | Operand::Complex => !closed && self.start != Start::Raw,
        }
    }
}
