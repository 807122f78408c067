//! Parentheses: groups, calls and subselects.

use portcullis_lex::sql::{TokenKind, Word};
use portcullis_types::Span;

use super::{Clause, Expect, FRAME, Frame, Operand, Start, Walk};
use crate::detectors::sqli::*;

/// Words of an instruction in parentheses.
const INSTRUCTION_TOKENS_MAX: usize = 12;

impl Walk<'_, '_> {
    pub(super) fn open(&mut self, is_call: bool) {
        let frame = Frame {
            is_call,
            is_member: is_call && self.is_member(self.last_span),
            is_select: false,
            clause: self.clause,
            joined: self.joined,
            compared: self.compared,
            computes: std::mem::take(&mut self.computes),
            at: self.lexer.position().saturating_sub(1) as u32,
        };
        if let Some(place) = self.stack.get_mut(self.depth) {
            *place = frame;
        }
        self.depth += 1;
        self.expect = Expect::Operand;
        self.last = Operand::None;
        if self.clause != Clause::Free {
            self.clause = Clause::Expression;
        }
        if is_call {
            self.joined = self.chooses;
            self.joined_at = self.last_span.start;
        }
        self.chooses = false;
        self.compared = false;
    }

    /// `(` where an operator is expected: after a name it is a call; before SELECT it is an appended
    /// subselect.
    pub(super) fn open_after_operand(&mut self, span: Span) -> bool {
        let next = self.peek().map(|token| token.kind);
        match self.last {
            Operand::Name if self.is_instruction(span) => false,
            Operand::Name => {
                self.open(true);
                true
            }
            // `Who is in? (select one)`: an aside.
            Operand::Variable | Operand::None if self.is_aside() || self.is_instruction(span) => false,
            _ if matches!(next, Some(TokenKind::Word(Word::Select))) && self.start != Start::Quote(b'$') => {
                self.note(JUXTAPOSED, span);
                self.open(false);
                true
            }
            _ if self.clause == Clause::Free || self.clause == Clause::Tables => {
                self.open(false);
                true
            }
            Operand::None
            | Operand::Number
            | Operand::Text
            | Operand::Literal
            | Operand::Call
            | Operand::Select
            | Operand::Variable
            | Operand::Complex => false,
        }
    }

    /// `Plan A or plan B (select all that apply)`: behind a space, words that are selected from nothing. A
    /// call whose argument is a query has it in parentheses of its own.
    fn is_instruction(&self, open: Span) -> bool {
        let is_spaced = self.text[..open.start as usize].last().is_some_and(u8::is_ascii_whitespace);
        let mut ahead = self.lexer.clone().map(|token| token.kind);
        if !is_spaced
            || takes_query(&self.text[..open.start as usize])
            || ahead.next() != Some(TokenKind::Word(Word::Select))
        {
            return false;
        }
        for (words, kind) in ahead.take(INSTRUCTION_TOKENS_MAX).enumerate() {
            let opens_query = matches!(
                kind,
                TokenKind::Word(Word::From | Word::Into | Word::Select | Word::Union | Word::Case)
            );
            if kind == TokenKind::Close {
                return words > 1;
            }
            if opens_query || !matches!(kind, TokenKind::Word(_) | TokenKind::Number) {
                return false;
            }
        }
        false
    }

    /// `(select one)`: of a parenthesis that was opened, one name that is selected from nothing is all.
    fn is_aside(&self) -> bool {
        let mut ahead = self.lexer.clone().map(|token| token.kind);
        let words = [Some(TokenKind::Word(Word::Select)), Some(TokenKind::Word(Word::Name))];
        words.into_iter().all(|word| ahead.next() == word) && ahead.next() == Some(TokenKind::Close)
    }

    pub(super) fn close(&mut self, span: Span) {
        self.boundary();
        if self.depth == 0 {
            // After text it closes what the text opened, and after a string of its own, too:
            // `f("a") || g("b")`.
            if !(self.is_inside && self.tokens == 0 || self.is_literal && self.is_open_before()) {
                self.note(UNBALANCED, span);
            }
            self.expect = Expect::Operator;
            self.clause = Clause::Expression;
            self.joined = false;
            self.select_at = None;
            return;
        }
        self.depth -= 1;
        let frame = self.stack.get(self.depth).copied().unwrap_or(FRAME);
        self.clause = frame.clause;
        self.joined = frame.joined;
        self.compared = frame.compared || self.compared && !frame.is_call && !frame.is_select;
        self.expect = Expect::Operator;
        self.closes_select(frame);
        let inside = self.last;
        let operand = match () {
            () if frame.is_select => Operand::Select,
            () if frame.is_call && frame.is_member => Operand::Complex,
            () if frame.is_call => Operand::Call,
            () if inside.is_constant() => inside,
            () => Operand::Complex,
        };
        let span = if operand.is_constant() { self.last_span } else { span };
        self.last = Operand::None;
        self.computes = frame.computes;
        self.take(operand, span);
    }

    /// `}`: what stands before one that opens in the text, and not in the piece, is no operand:
    /// `up{job='node'} == 0`.
    pub(super) fn close_brace(&mut self, span: Span) {
        let is_open = self.braces > 0 && self.depth == 0;
        self.braces = self.braces.saturating_sub(1);
        if self.depth > 0 {
            return self.close(span);
        }
        if is_open {
            self.boundary();
            self.expect = Expect::Operator;
        } else {
            self.close(span);
        }
        self.last = Operand::None;
    }

    /// A parenthesis opens before the piece, on its line.
    fn is_open_before(&self) -> bool {
        let before = &self.text[self.begun.saturating_sub(OPEN_BYTES_MAX)..self.begun];
        let line = &before[memchr::memrchr(b'\n', before).map_or(0, |at| at + 1)..];
        memchr::memchr(b'(', line).is_some()
    }

    /// The name at `span` is what a dot joins to an object that no database has: `text.substring`.
    pub(super) fn is_member(&self, span: Span) -> bool {
        let start = span.start as usize;
        start > 0 && self.text[start - 1] == b'.' && {
            let before = &self.text[..start - 1];
            let from = before.len()
                - before.iter().rev().take(NAME_BYTES_MAX).take_while(|b| is_of_name(**b)).count();
            self.names.get(&self.text[from..span.end as usize]).is_none()
        }
    }
}

/// Bytes before the piece in which its parenthesis is looked for.
const OPEN_BYTES_MAX: usize = 256;

/// No package of a database has a longer name.
const NAME_BYTES_MAX: usize = 64;

fn is_of_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$')
}

/// Names whose argument is a query without parentheses of its own: constructors of PostgreSQL, Oracle and
/// SQL/JSON.
fn takes_query(before: &[u8]) -> bool {
    const NAMES: [&[u8]; 6] = [b"array", b"multiset", b"cursor", b"json_array", b"table", b"lateral"];
    let before = before.trim_ascii_end();
    let start = before.iter().rposition(|b| !b.is_ascii_alphanumeric() && *b != b'_').map_or(0, |at| at + 1);
    NAMES.iter().any(|name| before[start..].eq_ignore_ascii_case(name))
}
