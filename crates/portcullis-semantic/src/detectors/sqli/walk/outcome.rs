//! What a piece comes to: comparisons, ends, and what is told of it.

use portcullis_lex::sql::{Comment, Lexer, TokenKind, Word};
use portcullis_types::Span;

use super::{Expect, Operand, Start, Walk};
use crate::KindId;
use crate::detectors::sqli::*;

impl Walk<'_, '_> {
    /// The right side of a comparison was read, if there is one.
    pub(super) fn compare(&mut self, right: Operand, right_span: Span) {
        let Some((left, left_span)) = self.comparing.take() else { return };
        let start = if self.joined { self.joined_at.max(self.from as u32) } else { left_span.start };
        let span = Span { start: start.min(right_span.start), end: right_span.end };
        self.compared = true;
        let same_name = left == right
            && matches!(left, Operand::Name | Operand::Variable)
            && self
                .word(left_span)
                .trim_ascii_start_matches(b'@')
                .eq_ignore_ascii_case(self.word(right_span).trim_ascii_start_matches(b'@'));
        let constants = left.is_constant() && right.is_constant();
        if constants || same_name {
            self.note(if self.joined { TAUTOLOGY } else { CONSTANT_COMPARISON }, span);
        } else if self.joined {
            self.note(CONDITION, span);
        }
    }

    /// The current condition ends: a constant or a call that nothing was compared with.
    pub(super) fn boundary(&mut self) {
        self.comparing = None;
        if self.joined && !self.compared && self.expect == Expect::Operator {
            let span = Span { start: self.joined_at.min(self.last_span.start), end: self.last_span.end };
            match self.last {
                Operand::Number | Operand::Literal => self.note(BOOLEAN_CONSTANT, span),
                Operand::Text => self.note(BOOLEAN_STRING, span),
                Operand::Call | Operand::Select => self.note(BOOLEAN_CALL, span),
                _ => {}
            }
        }
        self.compared = true;
    }

    pub(super) fn comment(&mut self, comment: Comment, span: Span) -> bool {
        match comment {
            Comment::VersionOpen => {
                self.note(VERSION_COMMENT, span);
                true
            }
            Comment::BlockClose => true,
            Comment::Block(true) => {
                let tight = |at: u32| self.text.get(at as usize).is_some_and(|b| !b.is_ascii_whitespace());
                if span.start as usize > self.from && tight(span.start.wrapping_sub(1)) && tight(span.end) {
                    self.note(COMMENT_SPLIT, span);
                }
                true
            }
            Comment::Dashes | Comment::Hash | Comment::Block(false) => {
                let rest = &self.text[span.end as usize..];
                if !rest.trim_ascii().is_empty() {
                    // A line of its own follows; `#` and a line end are a space to MySQL.
                    if span.len() <= 24 {
                        self.note(COMMENT_SPLIT, span);
                    }
                    return true;
                }
                self.end_comment(span);
                true
            }
        }
    }

    pub(super) fn end_comment(&mut self, span: Span) {
        self.boundary();
        let body = &self.word(span)[1..];
        let body = body.strip_prefix(b"-").or(body.strip_prefix(b"*")).unwrap_or(body);
        let letters = body.iter().filter(|b| b.is_ascii_alphanumeric()).count();
        // `-- x` and `--+`, but not `--1`, which is arithmetic to MySQL and a date to others.
        let short = letters == 0 || letters <= 12 && !body[0].is_ascii_alphanumeric();
        if !short {
            self.note(COMMENT_TAIL, span);
        } else if matches!(self.start, Start::Quote(_)) {
            let only_closes = self.tokens == 0 || self.has(UNBALANCED) || self.expect == Expect::Statement;
            let kind =
                if only_closes && self.expect != Expect::Operand { QUOTE_COMMENT } else { COMMENT_END };
            self.note(kind, Span { start: self.from.saturating_sub(1) as u32, end: span.end });
        } else {
            self.note(COMMENT_END, span);
        }
        if self.clean && self.expect != Expect::Start {
            self.whole();
        }
        self.ended = true;
    }

    pub(super) fn whole(&mut self) {
        if self.start == Start::Raw {
            self.note(WHOLE, Span::new(0, self.text.len()));
        }
    }

    /// The text ended.
    pub(super) fn finish(&mut self) {
        if !self.ended {
            self.boundary();
            let reopened = matches!(self.start, Start::Quote(quote) if self.ends_in_open(quote));
            if reopened && self.clean && self.tokens > 1 {
                self.note(REOPENED, Span::new(self.from.saturating_sub(1), self.text.len()));
            }
            if self.clean {
                self.whole();
            }
        }
    }

    /// The last token is a string of `quote` that the text does not close.
    pub(super) fn ends_in_open(&self, quote: u8) -> bool {
        let last = self.last_span.of(self.text);
        self.last == Operand::Text
            && last.first() == Some(&quote)
            && self.last_span.end as usize == self.text.len()
            && (last.len() == 1 || last.last() != Some(&quote))
    }

    /// Gives what was noted to `found`. A piece behind a quote counts only for what held.
    pub fn commit(&mut self, found: &mut Found<'_>) {
        if !self.clean_facts.iter().chain(&self.loose_facts).any(Option::is_some) {
            return;
        }
        let telling = self.clean_facts.iter().enumerate().any(|(kind, fact)| {
            fact.is_some()
                && !matches!(KindId(kind as u16), WHOLE | BARE_TAIL | UNBALANCED | LIMIT | COMMENT_TAIL)
        });
        if telling {
            let here = Span::new(self.from, self.text.len().min(self.from + 1));
            let first = Lexer::new(self.text, 0).next().map(|token| token.kind);
            match (self.start, first) {
                (Start::Quote(_), _) => self.clean_facts[usize::from(AFTER_QUOTE.0)] = Some(here),
                (Start::Backtick, _) => self.clean_facts[usize::from(AFTER_BACKTICK.0)] = Some(here),
                (Start::Raw, Some(TokenKind::Number)) => {
                    self.clean_facts[usize::from(AFTER_NUMBER.0)] = Some(here);
                }
                (Start::Raw, Some(TokenKind::Word(Word::Name))) => {
                    self.clean_facts[usize::from(AFTER_WORD.0)] = Some(here);
                }
                _ => {}
            }
        }
        for kind in 0..KINDS.len() {
            let id = KindId(kind as u16);
            if let Some(span) = self.clean_facts[kind]
                && (telling || self.start != Start::Raw)
            {
                found.add(id, span);
            } else if let Some(span) = self.loose_facts[kind]
                && self.start == Start::Raw
            {
                found.add_loose(id, span);
            }
        }
    }
}

trait TrimStart {
    fn trim_ascii_start_matches(&self, byte: u8) -> &[u8];
}

impl TrimStart for [u8] {
    fn trim_ascii_start_matches(&self, byte: u8) -> &[u8] {
        let skip = self.iter().take_while(|&&b| b == byte).count();
        &self[skip..]
    }
}
