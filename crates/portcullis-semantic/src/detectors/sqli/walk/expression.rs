//! Values that stand in place of a name: a column to sort by, a list of columns, a table. They need neither a
//! quote nor an operator to be an injection, only to hold as SQL from end to end.

use portcullis_lex::sql::{Token, TokenKind};
use portcullis_types::Span;

use super::{Frame, Operand, Start, Walk};
use crate::KindId;
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
        const ARTICLES: &[&[u8]] = &[
            b"the", b"a", b"an", b"this", b"that", b"these", b"those", b"our", b"your", b"my", b"his",
            b"her", b"its", b"their", b"each", b"any", b"all", b"some", b"one", b"which",
        ];
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
        // Rows and random bytes are what honest expressions have, too.
        let is_named = DANGERS.contains(&kind) && !self.word(span).eq_ignore_ascii_case(b"generate_series");
        self.does.calls |= is_named && (opens || is_spaced) && !self.is_member(span);
        self.does.asks |= kind == INFO_FUNCTION && opens && self.is_second_of_number();
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

    /// The right side of a comparison was read, which a word joins to the left one.
    pub(super) fn compares_in_factor(&mut self, right: Operand) {
        let frame = self.depth.checked_sub(1).and_then(|depth| self.stack.get(depth));
        let is_factor = frame.is_some_and(|frame| frame.computes && !frame.is_call);
        self.does.masks |= is_factor && self.compares_by_word && right == Operand::Text;
    }

    /// All of the value was read, and it does something.
    pub(super) fn is_expression(&self) -> bool {
        let compares =
            [CONDITION, TAUTOLOGY, CONSTANT_COMPARISON, NULL_TEST].iter().any(|kind| self.has(*kind));
        let is_case = self.has(CASE_WHEN) && self.does.ends_case && compares;
        let is_union = self.does.unites && self.does.has_select;
        self.does.calls || self.does.asks || self.does.selects || self.does.masks || is_case || is_union
    }

    /// The value as it stands is an expression that does something in place of a name. To be asked before a
    /// reading from a quote.
    pub(in crate::detectors::sqli) fn is_expression_whole(&self) -> bool {
        self.does.is_whole
    }
}
