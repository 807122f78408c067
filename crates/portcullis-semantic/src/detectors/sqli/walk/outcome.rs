//! What a piece comes to: comparisons, ends, and what is told of it.

use portcullis_lex::sql::{Comment, Lexer, Operator, TokenKind, Word};
use portcullis_types::Span;

use super::{Expect, Operand, Start, Walk, kinds_in};
use crate::KindId;
use crate::detectors::sqli::*;

/// Signs of a row that parts a text.
const LINE_SIGNS_MIN: usize = 6;

impl Walk<'_, '_> {
    /// The right side of a comparison was read, if there is one.
    pub(super) fn compare(&mut self, right: Operand, right_span: Span) {
        let Some((left, left_span)) = self.comparing.take() else { return };
        let start = if self.joined { self.joined_at.max(self.from as u32) } else { left_span.start };
        let span = Span { start: start.min(right_span.start), end: right_span.end };
        self.compared = true;
        let same_name = left == right
            && matches!(left, Operand::Name | Operand::Variable)
            && !self.continues()
            && self
                .word(left_span)
                .trim_ascii_start_matches(b'@')
                .eq_ignore_ascii_case(self.word(right_span).trim_ascii_start_matches(b'@'))
            && !self.begins_as_sentence();
        let constants = left.is_constant() && right.is_constant();
        if constants || same_name {
            self.note(if self.joined { TAUTOLOGY } else { CONSTANT_COMPARISON }, span);
        } else if self.joined && !self.has(STATEMENT) && !self.has(STATEMENT_PLAIN) {
            self.note(CONDITION, span);
        } else if self.joined && right.is_constant() && self.has(SUBSELECT) && self.has(STATEMENT_PLAIN) {
            // `(select name from users where id=1)`: words only, but no English.
            self.note(SELECT_FROM, span);
        }
    }

    /// `When ... a cat like cat`: a thing is compared with itself among words of a sentence.
    fn begins_as_sentence(&self) -> bool {
        self.start == Start::Raw && self.begins_as_prose()
    }

    /// Asked at each comparison, and always of the same text.
    pub(super) fn begins_as_prose(&self) -> bool {
        *self.prose.get_or_init(|| begins_as_prose(self.text))
    }

    /// The operand that was just read is only a part: `a = a + 1`.
    fn continues(&self) -> bool {
        matches!(
            self.peek().map(|next| next.kind),
            Some(TokenKind::Operator(
                Operator::Plus
                    | Operator::Minus
                    | Operator::Star
                    | Operator::Divide
                    | Operator::Pipes
                    | Operator::Cast
            ))
        )
    }

    /// The current condition ends: a constant or a call that nothing was compared with.
    pub(super) fn boundary(&mut self) {
        self.comparing = None;
        if self.joined && !self.compared && self.expect == Expect::Operator {
            let span = Span { start: self.joined_at.min(self.last_span.start), end: self.last_span.end };
            match self.last {
                Operand::Number | Operand::Literal => self.note(BOOLEAN_CONSTANT, span),
                Operand::Text if self.is_left_open() => {}
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
            Comment::Exponent => {
                self.note(SCIENTIFIC, span);
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
        self.comment_at = span.start;
        let body = &self.word(span)[1..];
        let body = body.strip_prefix(b"-").or(body.strip_prefix(b"*")).unwrap_or(body);
        let letters = body.iter().filter(|b| b.is_ascii_alphanumeric()).count();
        // `-- x` and `--+`, but not `--1`, which is arithmetic to MySQL and a date to others, nor `#tag`.
        let touches = if self.word(span).starts_with(b"#") {
            |b: u8| !b.is_ascii_whitespace()
        } else {
            |b: u8| b.is_ascii_digit()
        };
        // `!"#$%&` is a row of keys.
        // A line of signs that parts a text, and the end of a raw string of Rust: `"#;`, `"#)`.
        let is_row = self.word(span).starts_with(b"#$")
            || self.word(span).starts_with(b"#") && matches!(body.first(), Some(b';' | b')' | b','))
            || body.len() >= LINE_SIGNS_MIN && body.iter().all(|b| *b == body[0]);
        let short = (letters == 0 || letters <= 12 && !touches(body[0])) && !is_row;
        // `abc'--xyz`, `"a"-–-b`: hyphens that join words of a token or an address.
        let is_joint = self.tokens == 0
            && self.word(span).starts_with(b"--")
            && body.iter().find(|b| **b != b'-').is_some_and(u8::is_ascii_alphabetic)
            && body.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-');
        if !short || is_joint {
            self.note(COMMENT_TAIL, span);
        } else if matches!(self.start, Start::Quote(_)) {
            let only_closes = self.tokens == 0 || self.has(UNBALANCED) || self.expect == Expect::Statement;
            let kind =
                if only_closes && self.expect != Expect::Operand { QUOTE_COMMENT } else { COMMENT_END };
            self.note(kind, Span { start: self.from.saturating_sub(1) as u32, end: span.end });
        } else {
            // `1---` is what advertisers send of privacy, and tokens in Base64 have hyphens: what has neither a space nor a sign
            // before its comment changes no statement, nor does a comment alone.
            let before = &self.text[self.from..span.start as usize];
            let is_token = before.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
            // `@/*`, `src/**/*`: all files of a folder.
            let is_token = is_token
                || self.word(span).starts_with(b"/*")
                    && before.iter().all(|b| b.is_ascii_alphanumeric() || b"-_@./*~".contains(b));
            let is_number = self.tokens == 1 && self.last == Operand::Number;
            self.note(if is_token || is_number { COMMENT_TAIL } else { COMMENT_END }, span);
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
            let reopened = matches!(self.start, Start::Quote(quote) if self.ends_in_open(quote))
                && !self.ends_in_words();
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

    /// Behind the last quote stand a space and several words: `mke2fs " or " tune2fs is the one that ...`
    fn ends_in_words(&self) -> bool {
        let last = self.last_span.of(self.text).get(1..).unwrap_or_default();
        last.starts_with(b" ")
            && memchr::memchr2(b')', b';', last).is_none()
            && last.split(|b| *b == b' ').filter(|word| !word.is_empty()).count() > 1
    }

    /// The last token is a string that does not end, and not of the quote that began the piece: the statement's own quote would be
    /// in it.
    fn is_left_open(&self) -> bool {
        let quote = self.last_span.of(self.text).first().copied().unwrap_or(0);
        matches!(quote, b'\'' | b'"') && self.start != Start::Quote(quote) && self.ends_in_open(quote)
    }

    /// Gives what was noted to `found`. A piece behind a quote counts only for what held; with `is_literal`, the quote is
    /// one of a pair in a text, and what held is loose.
    pub(in crate::detectors::sqli) fn commit(&mut self, found: &mut Found<'_>, is_literal: bool) {
        if self.clean_facts.kinds | self.loose_facts.kinds == 0 {
            return;
        }
        let is_mention = is_literal || self.is_quoted_example();
        let telling = kinds_in(self.clean_facts.kinds)
            .any(|kind| !matches!(kind, WHOLE | BARE_TAIL | UNBALANCED | LIMIT | COMMENT_TAIL));
        if telling {
            let here = Span::new(self.from, self.text.len().min(self.from + 1));
            let first = Lexer::new(self.text, 0).next().map(|token| token.kind);
            let after = match (self.start, first) {
                (Start::Quote(b'`'), _) => Some(AFTER_BACKTICK),
                (Start::Quote(_), _) => Some(AFTER_QUOTE),
                (Start::Raw, Some(TokenKind::Number)) => Some(AFTER_NUMBER),
                (Start::Raw, Some(TokenKind::Word(Word::Name))) => Some(AFTER_WORD),
                _ => None,
            };
            if let Some(after) = after {
                self.clean_facts.set(after, here);
            }
        }
        // Without a quote, an injection is SQL from its first word on: what a text speaks of further down is none.
        let is_statement = self.has(STATEMENT) || self.has(STATEMENT_PLAIN);
        let is_prose = self.start == Start::Raw && !is_statement && self.begins_as_prose();
        for id in kinds_in(self.clean_facts.kinds | self.loose_facts.kinds) {
            match (self.clean_facts.get(id), self.loose_facts.get(id)) {
                (Some(span), _) if is_mention => found.mention(id, span),
                (Some(span), _) if telling || self.start != Start::Raw => found.add(id, span),
                (_, Some(span)) if self.start == Start::Raw && !is_prose => found.mention(id, span),
                _ => {}
            }
        }
    }

    /// The value is a whole statement that reads or changes rows: what an application that takes statements is for. Commands,
    /// files, other machines and waiting are not.
    pub(in crate::detectors::sqli) fn is_ordinary_statement(&self) -> bool {
        let has = |kind: KindId| self.clean_facts.has(kind) || self.loose_facts.has(kind);
        const DANGERS: &[KindId] = &[
            EXECUTE_FUNCTION,
            FILE_FUNCTION,
            INTO_FILE,
            OUT_OF_BAND_FUNCTION,
            TIME_FUNCTION,
            ERROR_FUNCTION,
            PROCEDURE_ANALYSE,
            VERSION_COMMENT,
            SCIENTIFIC,
        ];
        (self.has(STATEMENT) || self.has(STATEMENT_PLAIN))
            && !self.has(UNBALANCED)
            && !DANGERS.iter().any(|kind| has(*kind))
    }

    /// The text begins with a whole statement, or with several.
    pub(in crate::detectors::sqli) fn is_script(&self) -> bool {
        [STATEMENT, STATEMENT_PLAIN, SCRIPT].iter().any(|kind| self.has(*kind))
    }

    /// A comment, parentheses and signs: no condition, no statement, no quote that opens again. In a password they cut off nothing
    /// that matters, and whoever draws one by lot may have them.
    pub(in crate::detectors::sqli) fn is_of_signs(&self) -> bool {
        let is_sign = |kind: KindId| {
            matches!(
                kind,
                VARIABLE
                    | WHOLE
                    | BARE_TAIL
                    | UNBALANCED
                    | COMMENT_END
                    | COMMENT_TAIL
                    | QUOTE_COMMENT
                    | BRACE
            ) || kind == QUOTE_SIGN && !self.has(REOPENED)
        };
        kinds_in(self.clean_facts.kinds).all(is_sign)
    }

    /// `what does ' or 1=1 -- mean`, ``the `' or '1'='1` of every book``: words, a quote that stands by itself or behind a sign
    /// that quotes, a bare condition, and words where the piece ends. Anything that would read data is not an example.
    fn is_quoted_example(&self) -> bool {
        let is_raw = self.start == Start::Raw;
        if !is_raw && self.from < 2 || is_raw && self.violations == 0 {
            return false;
        }
        let harmless = |kind: KindId| {
            matches!(
                kind,
                TAUTOLOGY
                    | CONSTANT_COMPARISON
                    | BOOLEAN_CONSTANT
                    | BOOLEAN_STRING
                    | COMMENT_END
                    | COMMENT_TAIL
                    | QUOTE_COMMENT
                    | QUOTE_WORD
                    | QUOTE_SIGN
                    | UNBALANCED
                    | REOPENED
                    | BARE_TAIL
            )
        };
        if !kinds_in(self.clean_facts.kinds).all(harmless) {
            return false;
        }
        if is_raw {
            // `OR 1=1 is what Bobby typed`: words that are none of SQL's where it breaks.
            let names = Lexer::new(self.text, self.broken_at as usize)
                .filter(|token| token.kind == TokenKind::Word(Word::Name))
                .take(2)
                .count();
            return names == 2 && kinds_in(self.loose_facts.kinds).all(harmless);
        }
        let before = &self.text[..self.from - 1];
        let words =
            |text: &[u8]| text.split(u8::is_ascii_whitespace).filter(|word| is_lower_word(word)).count();
        // Where it ends: the comment, what does not fit, or the string that is left open.
        let rest = &self.text[if self.ended { self.comment_at } else { self.last_span.start } as usize..];
        let words_before = before.split(u8::is_ascii_whitespace).filter(|word| is_prose_word(word)).count();
        let words_after = match self.ended {
            true => rest.split(u8::is_ascii_whitespace).any(|word| word.len() >= 3 && is_lower_word(word)),
            false => words(rest) >= 2,
        };
        matches!(before.last(), Some(b' ' | b'`' | b'(' | b'"')) && words_before >= 2 && words_after
    }
}

/// Of the first five words at least four are plain ones, and none of the first is a number.
fn begins_as_prose(text: &[u8]) -> bool {
    // No five words are longer, and a text may have no blank at all.
    const BYTES_MAX: usize = 256;
    let text = &text[..text.len().min(BYTES_MAX)];
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).take(5);
    let is_plain = |word: &[u8]| {
        let word =
            word.strip_suffix(b",").or(word.strip_suffix(b".")).or(word.strip_suffix(b":")).unwrap_or(word);
        word.iter().all(|b| b.is_ascii_alphabetic() || *b == b'\'') && word.iter().any(u8::is_ascii_lowercase)
    };
    words.clone().next().is_some_and(is_plain) && words.by_ref().filter(|word| is_plain(word)).count() >= 4
}

/// `this`, `Explain`, `injection:`
fn is_prose_word(word: &[u8]) -> bool {
    let word = word.strip_suffix(b":").or(word.strip_suffix(b",")).unwrap_or(word);
    word.len() >= 2 && word[0].is_ascii_alphabetic() && word[1..].iter().all(u8::is_ascii_lowercase)
}

fn is_lower_word(word: &[u8]) -> bool {
    word.len() >= 2 && word.iter().all(u8::is_ascii_lowercase)
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
