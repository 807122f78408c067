//! Parentheses: groups, calls and subselects.

use portcullis_lex::sql::{TokenKind, Word};
use portcullis_types::Span;

use super::{Clause, Expect, FRAME, Frame, Operand, Walk};
use crate::detectors::sqli::*;

impl Walk<'_, '_> {
    pub(super) fn open(&mut self, is_call: bool) {
        let frame = Frame {
            is_call,
            is_select: false,
            clause: self.clause,
            joined: self.joined,
            compared: self.compared,
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

    /// `(` where an operator is expected: behind a name it is a call; before SELECT it is a subselect that was glued on.
    pub(super) fn open_after_operand(&mut self, span: Span) -> bool {
        let next = self.peek().map(|token| token.kind);
        match self.last {
            Operand::Name => {
                self.open(true);
                true
            }
            _ if matches!(next, Some(TokenKind::Word(Word::Select))) => {
                self.note(JUXTAPOSED, span);
                self.open(false);
                true
            }
            _ if self.clause == Clause::Free || self.clause == Clause::Tables => {
                self.open(false);
                true
            }
            _ => false,
        }
    }

    pub(super) fn close(&mut self, span: Span) {
        self.boundary();
        if self.depth == 0 {
            self.note(UNBALANCED, span);
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
        let inside = self.last;
        let operand = match () {
            () if frame.is_select => Operand::Select,
            () if frame.is_call => Operand::Call,
            () if inside.is_constant() => inside,
            () => Operand::Complex,
        };
        let span = if operand.is_constant() { self.last_span } else { span };
        self.last = Operand::None;
        self.take(operand, span);
    }
}
