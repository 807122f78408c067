//! The outcome of a piece: comparisons, ends, and the facts noted of it.

use portcullis_lex::sql::{Comment, Operator, TokenKind};
use portcullis_types::Span;

use super::{Expect, Operand, Start, Walk};
use crate::detectors::sqli::*;

/// No name of a column in a condition is longer.
const NAME_BYTES_MAX: usize = 128;

/// A string that the text leaves open is longer only where it is not meant to be one, or the quote is the
/// text's first.
const TAIL_BYTES_MAX: usize = 64;

/// Operators between two quotes are no longer.
const TIGHT_BYTES_MAX: usize = 3;

/// Brackets and spaces between a quote and the comma of a list.
const LIST_BYTES_MAX: usize = 16;

/// Signs of a row that parts a text.
const LINE_SIGNS_MIN: usize = 6;

impl Walk<'_, '_> {
    /// The right side of a comparison was read, if there is one.
    pub(super) fn compare(&mut self, right: Operand, right_span: Span) {
        let Some((left, left_span)) = self.comparing.take() else { return };
        self.compares_in_factor(left, right);
        self.compares_secret((left, left_span), (right, right_span));
        let start = if self.joined { self.joined_at.max(self.from as u32) } else { left_span.start };
        let span = Span { start: start.min(right_span.start), end: right_span.end };
        let is_chained = std::mem::replace(&mut self.compared, true);
        let same_name = left == right
            && matches!(left, Operand::Name | Operand::Variable)
            && !self.continues()
            && self
                .qualified(left_span)
                .trim_ascii_start_matches(b'@')
                .eq_ignore_ascii_case(self.qualified(right_span).trim_ascii_start_matches(b'@'))
            // `a cat like cat`, `the like cat like cat`, `table and image like image`
            && !(self.compares_by_word && (self.is_inside || is_chained || self.is_spoken_condition_of_words()));
        let is_column = matches!(left, Operand::Name | Operand::Call | Operand::Variable | Operand::Select)
            || left == Operand::Complex && self.joined;
        let is_told_apart = self.tells_apart && self.is_at_end();
        if self.joins_number
            && is_column
            && (right.is_constant() || right == Operand::Select || is_told_apart)
        {
            self.note(NUMBER_CONDITION, span);
        }
        let constants = left.is_constant()
            && right.is_constant()
            && !self.compares_quoted_column((left, left_span), (right, right_span));
        if constants && self.compares_number(left, left_span) {
            self.note(NUMBER_CONDITION, span);
        }
        if constants || same_name {
            self.note(if self.joined { TAUTOLOGY } else { CONSTANT_COMPARISON }, span);
        } else if self.joined && !self.has(STATEMENT) && !self.has(STATEMENT_PLAIN) {
            self.note(CONDITION, span);
        } else if self.joined && right.is_constant() && self.has(SUBSELECT) && self.has(STATEMENT_PLAIN) {
            // `(select name from users where id=1)`: words only, but no English.
            self.note(SELECT_FROM, span);
        }
    }

    /// `WHERE "id" = 5` in a statement, also behind a name of it that double quotes hold: the quotes hold a
    /// name, as in most databases, where a number or a truth value is compared with them.
    fn compares_quoted_column(&self, left: (Operand, Span), right: (Operand, Span)) -> bool {
        let is_statement = match self.start {
            Start::Raw => self.has(STATEMENT) || self.has(STATEMENT_PLAIN),
            Start::Quote(quote) => quote == b'"' && self.is_literal && !self.is_opening && self.has_statement,
        };
        let is_column = |(operand, span): (Operand, Span)| {
            operand == Operand::Text
                && matches!(self.word(span), [b'"', b'a'..=b'z' | b'A'..=b'Z' | b'_', .., b'"'])
        };
        let is_value = |(operand, _)| matches!(operand, Operand::Number | Operand::Literal);
        is_statement && (is_column(left) && is_value(right) || is_value(left) && is_column(right))
    }

    /// A condition of words that is joined to neither a number nor a quote, in no statement.
    fn is_spoken_condition_of_words(&self) -> bool {
        let is_statement = self.has(STATEMENT) || self.has(STACKED) || self.select_at.is_some();
        self.start == Start::Raw && !is_statement && !self.joins_number && !self.has(BARE_TAIL)
    }

    /// The name at `span` with what dots join to it.
    fn qualified(&self, span: Span) -> &[u8] {
        let before = &self.text[..span.start as usize];
        let is_part = |b: &&u8| b.is_ascii_alphanumeric() || b"_.`\"$[]".contains(*b);
        // Most names stand alone; to look for more before each of them would read a text many times.
        let more = match before.last() {
            Some(b'.') => before.iter().rev().take(NAME_BYTES_MAX).take_while(is_part).count(),
            _ => 0,
        };
        &self.text[before.len() - more..span.end as usize]
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
                // `or null` changes no condition.
                Operand::Literal if self.is_or_null() => {}
                Operand::Literal if self.joins_number => self.note(NUMBER_CONDITION, span),
                Operand::Number | Operand::Literal => {
                    // `1||1`: a number and signs that join conditions in one dialect and texts in the others;
                    // lists have more.
                    let is_sign = matches!(self.text.get(self.joined_at as usize), Some(b'|' | b'&'));
                    let is_one = is_sign && self.tokens <= 3 || self.joins_as_sql();
                    if self.joins_number && is_one && self.is_at_end() {
                        self.note(NUMBER_CONDITION, span);
                    }
                    self.note(BOOLEAN_CONSTANT, span);
                }
                Operand::Text if self.is_left_open() => {}
                Operand::Text => {
                    // `1 or b'1'`: a letter says how the string is written.
                    let is_prefixed =
                        self.last_span.of(self.text).first().is_some_and(u8::is_ascii_alphabetic);
                    if self.joins_number && is_prefixed && self.is_at_end() {
                        self.note(NUMBER_CONDITION, span);
                    }
                    self.note(BOOLEAN_STRING, span);
                }
                Operand::Call | Operand::Select => self.note(BOOLEAN_CALL, span),
                Operand::None | Operand::Name | Operand::Variable | Operand::Complex => {}
            }
        }
        self.compared = true;
    }

    /// `1 or 1`, the same number on both sides, `1 and(1)`, with no space before the parenthesis, `1 or !0`
    /// and `1 or 0x1`, a constant written as only programs do: nobody says so.
    fn joins_as_sql(&self) -> bool {
        let rest = &self.text[(self.joined_at as usize).min(self.text.len())..];
        let word = rest.iter().take(4).take_while(|b| b.is_ascii_alphabetic()).count();
        let is_or = rest[..word].eq_ignore_ascii_case(b"or");
        let before = self.text[..self.joined_at as usize].trim_ascii();
        let constant = self.last_span.of(self.text);
        let is_inverted = word > 0 && matches!(rest[word..].trim_ascii_start().first(), Some(b'!' | b'~'));
        let is_hex = |number: &[u8]| matches!(number, [b'0', b'x' | b'X', ..]);
        word > 0 && rest.get(word) == Some(&b'(')
            || is_or && before == constant
            || is_inverted
            || word > 0 && is_hex(constant) && !is_hex(before)
    }

    fn is_or_null(&self) -> bool {
        let joint = &self.text[self.joined_at as usize..];
        joint.first().is_some_and(|b| matches!(b, b'o' | b'O'))
            && self.last_span.of(self.text).eq_ignore_ascii_case(b"null")
    }

    /// `1 like 1`, `1 is not null`: a number, the word that compares, a constant, and that is all of the
    /// value.
    fn compares_number(&self, left: Operand, left_span: Span) -> bool {
        self.start == Start::Raw
            && !self.joined
            && !self.is_inside
            && self.compares_by_word
            && left == Operand::Number
            && self.text[..left_span.start as usize].trim_ascii().is_empty()
            && self.is_at_end()
    }

    /// `' or id-- `, `or id-- `: a column is joined as a condition, after a quote or at the beginning, and a
    /// comment follows.
    fn joined_name(&mut self) {
        let is_name = self.last == Operand::Name && self.expect == Expect::Operator;
        // Or at the beginning of the value, where the field before ends in a backslash that takes the quote
        // away.
        let is_tail = self.start == Start::Raw && self.has(BARE_TAIL) && self.tokens == 2;
        let is_quote = matches!(self.start, Start::Quote(b'\'' | b'"')) && !self.is_literal || is_tail;
        // No column is called nothing: ``or ``--option`` quotes words.
        let is_empty = self.last_span.of(self.text) == b"``";
        if is_quote && is_name && !is_empty && self.joined && !self.compared && self.comparing.is_none() {
            let span = Span { start: self.joined_at.min(self.last_span.start), end: self.last_span.end };
            self.note(BOOLEAN_NAME, span);
        }
    }

    pub(super) fn comment(&mut self, comment: Comment, span: Span) -> bool {
        match comment {
            Comment::VersionOpen => {
                // The banner of a script or a style sheet: lines that begin with a star.
                let rest = &self.text[span.end as usize..];
                let is_line_end = rest.first().is_some_and(|b| matches!(b, b'\r' | b'\n'));
                let is_banner = is_line_end && rest.trim_ascii_start().starts_with(b"* ");
                if !is_banner {
                    self.note(VERSION_COMMENT, span);
                }
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
                self.joined_name();
                let rest = &self.text[span.end as usize..];
                if !rest.trim_ascii().is_empty() {
                    // A line of its own follows; `#` and a line end are a space to MySQL.
                    if span.len() <= 24 {
                        self.note(COMMENT_SPLIT, span);
                    }
                    // `admin'-- ` needs nothing after it.
                    let is_quoted = matches!(self.start, Start::Quote(_)) && self.from == span.start as usize;
                    if !is_quoted || self.is_literal || self.is_opening || span.len() < 2 {
                        self.cut = Some(span);
                        return true;
                    }
                    self.end_comment(span);
                    if !self.has(QUOTE_COMMENT) {
                        self.ended = false;
                        self.facts.kinds = 0;
                    }
                    return true;
                }
                self.end_comment(span);
                true
            }
        }
    }

    /// A comment that ends with its line is worth noting: something was done before it, or it follows a quote
    /// that stands alone.
    pub(super) fn cuts_lines(&self) -> bool {
        self.tokens == 0 && !self.is_literal && !self.is_opening || self.facts.does_something()
    }

    pub(super) fn end_comment(&mut self, span: Span) {
        self.boundary();
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
        // Comments of HTML: `<!-- ... -->`.
        let is_markup = self.text[..span.start as usize].ends_with(b"<!")
            || self.word(span).starts_with(b"--") && body.first() == Some(&b'>');
        // A line of signs that parts a text, and the end of a raw string of Rust: `"#;`, `"#)`.
        let is_row = self.word(span).starts_with(b"#$")
            || self.word(span).starts_with(b"#") && matches!(body.first(), Some(b';' | b')' | b','))
            || is_markup && !self.facts.does_something()
            || body.len() >= LINE_SIGNS_MIN && body.iter().all(|b| *b == body[0]);
        let short = (letters == 0 || letters <= 12 && !touches(body[0])) && !is_row;
        // `abc'--xyz`, `"a"-–-b`: hyphens that join words of a token or an address.
        let is_joint = self.tokens == 0
            && self.word(span).starts_with(b"--")
            && body.iter().find(|b| **b != b'-').is_some_and(u8::is_ascii_alphabetic)
            && body.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-');
        // What it cuts off may be long: after a piece that does something any comment ends it.
        let is_statement = self.start == Start::Raw && (self.has(STATEMENT) || self.has(STATEMENT_PLAIN));
        let cuts = !is_joint && !is_row && !is_statement && self.facts.does_something();
        // `name'-- ...`: no space, and the quote is not one of a pair.
        // `'#` and a letter are a colour, a place in a page, or chance.
        let is_mark =
            self.word(span).starts_with(b"#") && body.first().is_some_and(|b| !b.is_ascii_whitespace());
        let is_tight = self.tokens == 0
            && self.from == span.start as usize
            && !(self.is_opening || self.is_literal || is_joint || is_row || is_mark);
        // After the second quote of a pair, or an operator without its operand, it cuts off nothing.
        let is_idle = !self.facts.does_something()
            && (self.tokens == 0 && self.is_literal && !self.is_opening
                || self.tokens > 0
                    && self.expect == Expect::Operand
                    && matches!(self.start, Start::Quote(_)));
        if !short && !cuts && !is_tight || is_joint || is_idle {
            self.note(COMMENT_TAIL, span);
        } else if matches!(self.start, Start::Quote(_)) {
            let only_closes = self.tokens == 0 || self.has(UNBALANCED) || self.expect == Expect::Statement;
            let kind =
                if only_closes && self.expect != Expect::Operand { QUOTE_COMMENT } else { COMMENT_END };
            let from_quote = Span { start: self.from.saturating_sub(1) as u32, end: span.end };
            self.note(kind, from_quote);
            // `x' limit 1-- `, `x'div 1#`, and nothing else stands in the value.
            let is_clause =
                self.has(LIMIT) || self.has(QUOTE_WORD) || self.has_clause && self.expect != Expect::Operand;
            let is_only = self.is_first && !self.is_literal && !self.is_opening && self.is_rest_blank(span);
            if is_clause && is_only && kind == COMMENT_END && letters <= 2 {
                self.note(QUOTE_CLAUSE, from_quote);
            }
        } else {
            // `1---` is what advertisers send of privacy, and tokens in Base64 have hyphens: what has neither
            // a space nor a sign before its comment changes no statement, nor does a comment alone.
            let before = &self.text[self.from..span.start as usize];
            let is_token = before.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
            // `@/*`, `src/**/*`: all files of a folder.
            let is_token = is_token
                || self.word(span).starts_with(b"/*")
                    && before.iter().all(|b| b.is_ascii_alphanumeric() || b"-_@./*~".contains(b));
            let is_number = self.tokens == 1 && self.last == Operand::Number;
            // After text a comment is a dash or a heading, unless a piece stands before it.
            let is_stray = self.is_inside && !self.facts.is_telling();
            self.note(if is_token || is_number || is_stray { COMMENT_TAIL } else { COMMENT_END }, span);
        }
        if self.expect != Expect::Start && self.is_rest_blank(span) {
            self.whole();
        }
        self.ended = true;
    }

    /// Nothing but a comment stands after what was read last.
    fn is_at_end(&self) -> bool {
        self.lexer.clone().all(|token| matches!(token.kind, TokenKind::Comment(_)))
    }

    fn is_rest_blank(&self, comment: Span) -> bool {
        self.text[comment.end as usize..].trim_ascii().is_empty()
    }

    fn whole(&mut self) {
        if self.start == Start::Raw && !self.is_inside {
            self.note(WHOLE, Span::new(0, self.text.len()));
            if self.joins_to_number() {
                self.note(NUMBER_CONDITION, Span::new(0, self.text.len()));
            }
            if self.is_expression() {
                self.does.is_whole = true;
            }
        }
    }

    /// The text ended, or the reading did.
    pub(super) fn finish(&mut self) {
        if self.is_astray {
            return;
        }
        if !self.ended {
            self.boundary();
            let goes_on = self.ends_in_words() || self.goes_on_in_list() || self.ends_in_comma();
            let reopened = matches!(self.start, Start::Quote(quote) if self.ends_in_open(quote))
                && !(self.is_literal && self.is_opening && !self.ends_in_pattern())
                && !goes_on;
            if reopened && self.tokens > 1 {
                self.note(REOPENED, Span::new(self.from.saturating_sub(1), self.text.len()));
            }
            self.whole();
        }
        self.close_piece();
    }

    /// A comma follows the second quote of a pair, also behind brackets, and nothing is done after it: the
    /// next item of a list that is cut off is no string of a statement. `[['a','b'],'`, `x='a', y='`
    fn goes_on_in_list(&self) -> bool {
        let rest = &self.text[self.begun.min(self.text.len())..];
        let sign = rest.iter().take(LIST_BYTES_MAX).find(|b| !b" )]}".contains(b));
        self.is_literal && !self.is_opening && sign == Some(&b',') && !self.facts.does_something()
    }

    /// `"/users",`: an item of a list, behind which the string that is left open has nothing.
    fn ends_in_comma(&self) -> bool {
        let last = self.last_span.of(self.text);
        last.len() > 1 && last[1..].iter().all(|b| matches!(b, b',' | b' ' | b'\t' | b'\r' | b'\n'))
    }

    /// The last token is a string of `quote` that the text does not close.
    pub(super) fn ends_in_open(&self, quote: u8) -> bool {
        let last = self.last_span.of(self.text);
        (self.last == Operand::Text || quote == b'`' && self.last == Operand::Name)
            && last.first() == Some(&quote)
            && self.last_span.end as usize == self.text.len()
            && (last.len() == 1 || last.last() != Some(&quote))
    }

    /// `'LIKE'%`: the string that is left open is a pattern.
    fn ends_in_pattern(&self) -> bool {
        self.last_span.of(self.text).get(1) == Some(&b'%')
    }

    /// After the last quote stand a space or a sign of a sentence and several words:
    /// `mke2fs " or " tune2fs is the one that ...`. Where an operator stands right between two quotes, words
    /// may follow: `x'='y and more`.
    fn ends_in_words(&self) -> bool {
        let last = self.last_span.of(self.text).get(1..).unwrap_or_default();
        let is_sentence = match last {
            [b' ', ..] => self.is_literal || memchr::memchr2(b')', b';', last).is_none(),
            [b',' | b'.' | b')' | b';' | b':' | b'?' | b'!', rest @ ..] => {
                rest.first().is_none_or(u8::is_ascii_whitespace)
            }
            _ => false,
        };
        let is_tight = !self.is_literal
            && self.has(QUOTE_SIGN)
            && self.last_span.start as usize - self.begun <= TIGHT_BYTES_MAX
            && !self.text[self.begun..self.last_span.start as usize].contains(&b' ');
        let is_text = !self.is_first && (last.len() > TAIL_BYTES_MAX || last.contains(&b'\n'));
        is_text
            || is_sentence
                && !is_tight
                && last.split(|b| *b == b' ').filter(|word| word.len() > 1).count() > 1
    }

    /// The last token is a string that does not end, and not of the quote that began the piece: the
    /// statement's own quote would be in it.
    fn is_left_open(&self) -> bool {
        let quote = self.last_span.of(self.text).first().copied().unwrap_or(0);
        matches!(quote, b'\'' | b'"') && self.start != Start::Quote(quote) && self.ends_in_open(quote)
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
