//! Values that stand in place of a name: a column to sort by, a list of columns, a table. They need neither a
//! quote nor an operator to be an injection, only to hold as SQL from end to end.

use portcullis_lex::sql::{Lexer, Operator, Token, TokenKind, Word};
use portcullis_types::Span;

use super::operand::bare;
use super::words::{Part, role};
use super::{Frame, Operand, Start, Walk};
use crate::KindId;
use crate::detectors::purpose::names_secret;
use crate::detectors::sqli::*;

/// What a piece would do as an expression.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Does {
    /// Calls what waits, reads files, reaches other machines or runs commands.
    pub(super) calls: bool,
    /// Computes with a call that tells about the database.
    pub(super) asks: bool,
    /// A SELECT with columns and a table was read.
    pub(super) has_select: bool,
    /// Such a SELECT in parentheses is an item of a list, or has an alias.
    pub(super) selects: bool,
    /// A comparison by a word with a string is a factor: `id*(password like 'a%')`.
    pub(super) masks: bool,
    /// A CASE has its END.
    pub(super) ends_case: bool,
    /// A UNION follows a table that no SELECT names.
    pub(super) unites: bool,
    /// A column whose name says that it is secret is given to a function, converted or compared with a text.
    pub(super) reads_secret: bool,
    /// A column or an expression is converted to a number: the error tells what it holds.
    pub(super) converts: bool,
    /// Tables are joined that no SELECT names.
    pub(super) joins_tables: bool,
    /// A word or sign that joins conditions was read.
    pub(super) joins: bool,
    /// All of the value does one of these.
    pub(super) is_whole: bool,
}

impl Does {
    /// A table follows FROM. Words like `the` are none, and nothing selected is no SELECT.
    pub(super) fn selects_from(
        &mut self,
        text: &[u8],
        select: Option<Span>,
        from: Span,
        table: Option<Token>,
    ) {
        const ARTICLES: &[&[u8]] = words!("sqli", "articles");
        let has_columns = select.is_some_and(|select| {
            let columns = text.get(select.end as usize..from.start as usize).unwrap_or_default();
            !columns.trim_ascii().is_empty()
        });
        let is_table = table.is_some_and(|table| {
            let word = table.span.of(text);
            matches!(table.kind, TokenKind::Word(_) | TokenKind::QuotedName(_) | TokenKind::String { .. })
                && !ARTICLES.iter().any(|known| word.eq_ignore_ascii_case(known))
        });
        self.has_select |= has_columns && is_table;
    }
}

impl Walk<'_, '_> {
    /// A function of `kind` is called at `span`; a word and a parenthesis with a space between may be prose.
    pub(super) fn calls(&mut self, kind: KindId, span: Span) {
        const DANGERS: [KindId; 4] = [TIME_FUNCTION, FILE_FUNCTION, OUT_OF_BAND_FUNCTION, EXECUTE_FUNCTION];
        let end = span.end as usize;
        let opens = self.text.get(end) == Some(&b'(');
        let is_spaced = !opens && self.word(span).contains(&b'_') && self.is_before_open();
        // Rows and random bytes are what benign expressions have, too.
        let is_named = DANGERS.contains(&kind) && !self.word(span).eq_ignore_ascii_case(b"generate_series");
        self.does.calls |= is_named && (opens || is_spaced) && !self.is_member(span);
        self.does.asks |= kind == INFO_FUNCTION && opens && self.is_second_of_number();
    }

    /// A function that makes one text of rows is called at `span`, of something.
    pub(super) fn calls_for_rows(&mut self, span: Span) {
        let name = self.word(span);
        let is_one = ROWS.iter().any(|known| name.eq_ignore_ascii_case(known));
        self.does.calls |= is_one && self.text.get(span.end as usize) == Some(&b'(');
    }

    /// A number begins the value, and an arithmetic sign stands between it and what was read last.
    fn is_second_of_number(&self) -> bool {
        self.start == Start::Raw && !self.is_inside && self.tokens == 2 && self.begins_with_number()
    }

    /// A SELECT in parentheses is closed: a comma or an arithmetic sign before it makes it an item, so does a
    /// comma behind it.
    pub(super) fn closes_select(&mut self, frame: Frame) {
        if !frame.is_select || frame.is_call || !self.does.has_select {
            return;
        }
        let before = self.text.get(..frame.at as usize).unwrap_or_default().trim_ascii_end();
        let is_item = matches!(before.last(), Some(b',' | b'-' | b'+' | b'*' | b'/'));
        self.does.selects |= is_item || self.peek().is_some_and(|next| next.kind == TokenKind::Comma);
    }

    /// The right side of a comparison was read.
    pub(super) fn compares_in_factor(&mut self, left: Operand, right: Operand) {
        let frame = self.depth.checked_sub(1).and_then(|depth| self.stack.get(depth));
        let is_factor = frame.is_some_and(|frame| frame.computes && !frame.is_call);
        let is_of_text = self.compares_by_word && right == Operand::Text;
        // `id*(pin>5)`: the result of a comparison is no number, but in SQL.
        let is_of_column = matches!(left, Operand::Name | Operand::Call) && right.is_constant();
        self.does.masks |= is_factor && (is_of_text || is_of_column);
    }

    /// The name of a column at `span` that says that it is secret.
    fn is_secret(&self, span: Span) -> bool {
        names_secret(bare(self.word(span)))
    }

    /// A name was read as an operand.
    pub(super) fn reads_column(&mut self, span: Span) {
        let reads = |kind: TokenKind| matches!(kind, TokenKind::Open | TokenKind::Dot);
        if self.start != Start::Raw || self.is_inside || !self.is_secret(span) {
            return;
        }
        if self.peek().is_some_and(|next| reads(next.kind)) {
            return;
        }
        let frames = &self.stack[..self.depth.min(self.stack.len())];
        self.does.reads_secret |= frames.iter().any(|frame| frame.is_call && !frame.is_member);
    }

    /// Two operands were compared by the sign or word between them; one of them is a secret column, and the
    /// other a text, or the sign asks for an order. `password="x"` is a setting.
    pub(super) fn compares_secret(&mut self, left: (Operand, Span), right: (Operand, Span)) {
        if self.start != Start::Raw || self.is_inside {
            return;
        }
        let is_secret = |(operand, span): (Operand, Span)| operand == Operand::Name && self.is_secret(span);
        let is_constant = |(operand, _): (Operand, Span)| matches!(operand, Operand::Text | Operand::Number);
        let between = self.text.get(left.1.end as usize..right.1.start as usize).unwrap_or_default();
        let is_setting = matches!(between.trim_ascii(), b"=" | b"==");
        let reads = is_secret(left) && is_constant(right) || is_secret(right) && is_constant(left);
        self.does.reads_secret |= reads && !is_setting;
    }

    /// An operator that computes or joins texts stands at the end of what was read: `1+password`, `pwd||''`.
    pub(super) fn computes_secret(&mut self, operator: Operator) {
        if self.start != Start::Raw || self.is_inside {
            return;
        }
        let Some(next) = self.peek() else { return };
        let is_next_secret = matches!(next.kind, TokenKind::Word(word) if role(word) == Part::Name)
            && self.is_secret(next.span);
        self.does.reads_secret |= match operator {
            Operator::Pipes => {
                let is_text = |kind: TokenKind| matches!(kind, TokenKind::String { .. });
                self.last == Operand::Name && self.is_secret(self.last_span) && is_text(next.kind)
                    || self.last == Operand::Text && is_next_secret
            }
            // Hyphens and slashes join words.
            Operator::Plus | Operator::Star | Operator::Bit => {
                self.last == Operand::Number && self.begins_with_number() && is_next_secret
            }
            // `1/(pin-4)`
            Operator::Minus => {
                let is_secret = self.last == Operand::Name && self.is_secret(self.last_span);
                let is_divisor = self.depth > 0 && self.begins_with_number();
                is_divisor && is_secret && next.kind == TokenKind::Number
            }
            Operator::Equal
            | Operator::NotEqual
            | Operator::Less
            | Operator::Greater
            | Operator::Ampersands
            | Operator::Divide
            | Operator::Not
            | Operator::Tilde
            | Operator::Match
            | Operator::Json
            | Operator::Assign
            | Operator::Cast
            | Operator::Colon => false,
        };
    }

    /// `password::int`, `(a||b)::numeric`, `x::json`: what was read is converted to what it may not be. Names
    /// of modules have capitals, and none is called like a type of numbers.
    pub(super) fn converts(&mut self) {
        let Some(next) = self.peek() else { return };
        let name = self.word(next.span);
        let is_of = |list: &[&[u8]]| list.iter().any(|known| name.eq_ignore_ascii_case(known));
        let is_column = self.last == Operand::Name;
        let holds = match self.last {
            Operand::Name | Operand::Complex | Operand::Call | Operand::Select => {
                is_of(NUMBERS) || is_of(OTHERS) && (!is_column || self.is_secret(self.last_span))
            }
            Operand::None | Operand::Number | Operand::Text | Operand::Literal | Operand::Variable => false,
        };
        self.does.converts |= holds && self.start == Start::Raw && !self.is_inside;
    }

    /// `cast(login as int)`, `convert(int, login)`: a call that converts, of something that is no constant.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other tokens are passed over")]
    pub(super) fn is_conversion(&self, name: &[u8]) -> bool {
        const CASTS: &[&[u8]] = &[b"cast", b"try_cast", b"safe_cast"];
        if name.eq_ignore_ascii_case(b"convert") || name.eq_ignore_ascii_case(b"try_convert") {
            let mut ahead = self.lexer.clone().map(|token| (token.kind, token.span));
            let is_open = matches!(ahead.next(), Some((TokenKind::Open, _)));
            let is_number = ahead.next().is_some_and(|(_, span)| {
                NUMBERS.iter().any(|known| self.word(span).eq_ignore_ascii_case(known))
            });
            let mut value = ahead.skip_while(|(kind, _)| *kind != TokenKind::Comma).skip(1);
            let is_value = matches!(value.next(), Some((TokenKind::Word(_) | TokenKind::Open, _)));
            return is_open && is_number && is_value;
        }
        if !CASTS.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            return false;
        }
        let mut depth = 0u32;
        let mut has_name = false;
        for token in self.lexer.clone().take(CONVERSION_TOKENS_MAX) {
            match token.kind {
                TokenKind::Open => depth += 1,
                TokenKind::Close if depth <= 1 => return false,
                TokenKind::Close => depth -= 1,
                TokenKind::Word(Word::As) if depth == 1 => return has_name,
                TokenKind::Word(word) => has_name |= matches!(role(word), Part::Name | Part::Statement),
                TokenKind::QuotedName(_) | TokenKind::Variable => has_name = true,
                _ => {}
            }
        }
        false
    }

    /// JOIN was read where no SELECT stands before it: `items left join users`, `a join(select ..)b`.
    pub(super) fn joins_tables(&mut self) {
        let before = self.last_span.end as usize;
        let is_raw = self.start == Start::Raw && !self.is_inside && self.select_at.is_none();
        if !is_raw || self.last != Operand::Name {
            return;
        }
        let is_kind = |word: Word| role(word) == Part::Filler;
        let has_kind = Lexer::new(self.text, before)
            .next()
            .is_some_and(|token| matches!(token.kind, TokenKind::Word(word) if is_kind(word)));
        let selects = || {
            let mut ahead = self.lexer.clone();
            ahead.next().is_some_and(|token| token.kind == TokenKind::Open)
                && ahead.next().is_some_and(|token| token.kind == TokenKind::Word(Word::Select))
        };
        self.does.joins_tables |= has_kind || selects();
    }

    /// All of the value was read, and it does something.
    pub(super) fn is_expression(&self) -> bool {
        let compares =
            [CONDITION, TAUTOLOGY, CONSTANT_COMPARISON, NULL_TEST].iter().any(|kind| self.has(*kind));
        let is_case = self.has(CASE_WHEN) && self.does.ends_case && compares;
        let is_union = self.does.unites && self.does.has_select;
        // Where names of columns belong, what asks the database or chooses among them is none.
        let asks = self.has(SYSTEM_VARIABLE)
            || self.has(INFO_FUNCTION) && memchr::memmem::find(self.text, b"()").is_some()
            || self.has(SUBSELECT) && !self.has(STATEMENT_PLAIN);
        let is_in_place_of_column =
            self.pieces.field.takes_columns && (asks || self.has(CASE_WHEN) && self.does.ends_case);
        let does = &self.does;
        does.calls
            || does.asks
            || does.selects
            || does.masks
            || does.reads_secret
            || does.converts
            || does.joins_tables
            || is_case
            || is_union
            || is_in_place_of_column
    }

    /// All of the value begins with a number and goes on with a condition, where only a number belongs.
    pub(super) fn joins_to_number(&self) -> bool {
        self.does.joins && self.pieces.field.takes_number && self.first_operand() == Some(TokenKind::Number)
    }

    /// The value as it stands is an expression that does something in place of a name. To be asked before a
    /// reading from a quote.
    pub(in crate::detectors::sqli) fn is_expression_whole(&self) -> bool {
        self.does.is_whole
    }
}

/// Tokens of a conversion that are looked at.
const CONVERSION_TOKENS_MAX: usize = 24;

/// Types of numbers, as conversions name them.
const NUMBERS: &[&[u8]] = words!("sqli", "number-types");

/// Other types that not every text can be read as.
const OTHERS: &[&[u8]] = &[b"json", b"jsonb", b"xml", b"uuid", b"inet", b"date", b"timestamp"];

/// Functions that make one text of whole rows or many.
const ROWS: &[&[u8]] = words!("sqli", "row-functions");
