//! The piece of a text that counts: the one that weighs most. Others add nothing, so that a long text of many
//! harmless pieces is harmless, and a text around a piece takes nothing from it.

use portcullis_lex::sql::{Lexer, TokenKind, Word};
use portcullis_types::Span;

use super::facts::{Facts, kinds_in};
use super::{Operand, Start, Walk};
use crate::KindId;
use crate::detectors::sqli::*;

/// What the field that the text stands in is for, and what each kind weighs.
#[derive(Clone, Copy, Debug)]
pub(in crate::detectors::sqli) struct Field<'n> {
    pub weights: &'n [f32; KINDS.len()],
    /// What is quoted or named there is no attack.
    pub may_mention: bool,
    /// Signs may stand in any order.
    pub is_password: bool,
    /// Conditions of another language are what the field is for.
    pub takes_conditions: bool,
    /// It is for the cells of a sheet, and the value is a formula whose strings end none of a statement.
    pub is_of_cells: bool,
    /// The number of a record or a page belongs there.
    pub takes_number: bool,
    /// The field lists columns, by their names.
    pub takes_columns: bool,
    /// A file: all of it is only mentioned.
    pub is_file: bool,
    /// The value is what an encoder of addresses wrote: `%20` is no operator.
    pub is_encoded: bool,
    /// The site made the field for files, and the value is one.
    pub is_document: bool,
}

/// What weighs less has any text: `and 1 more`.
const INSIDE_WEIGHT_MIN: f32 = 2.5;

/// Signs of a password that is nothing but an operator between quotes.
const TIGHT_SIGNS_MAX: usize = 4;

/// The pieces that weigh most, of all readings of a text.
#[derive(Debug)]
pub(super) struct Pieces<'n> {
    pub(super) field: Field<'n>,
    live: Best,
    /// Those that are quoted or named, in a field where that matters.
    mentioned: Best,
    /// Those that the field is for, with the exception that suppresses them.
    suppressed: [(&'static str, Best); 3],
}

#[derive(Debug)]
struct Best {
    weight: f32,
    facts: Facts,
}

impl Best {
    const NONE: Best = Best { weight: f32::NEG_INFINITY, facts: Facts::new() };
}

impl<'n> Pieces<'n> {
    pub fn new(field: Field<'n>) -> Pieces<'n> {
        let suppressed = ["password-signs", "conditions", "cells"].map(|row| (row, Best::NONE));
        Pieces { field, live: Best::NONE, mentioned: Best::NONE, suppressed }
    }
}

impl Walk<'_, '_> {
    /// The piece ends.
    pub(super) fn close_piece(&mut self) {
        let kinds = self.facts.kinds;
        self.all_kinds |= kinds;
        if !self.is_inside {
            self.first_kinds |= kinds;
        }
        if kinds == 0 {
            return;
        }
        if self.facts.is_telling() {
            self.note_context();
        } else if self.start == Start::Raw {
            return;
        }
        // `class="x">@name`: the end of an attribute.
        let is_markup = self.is_literal && matches!(self.text[self.begun..], [b'>', ..] | [b'/', b'>', ..]);
        if is_markup && !self.facts.does_something() {
            return;
        }
        // After the second quote of a pair a condition ends no string of a statement: `"a" and b > c`,
        // `x['a'] > 5 && y`.
        let is_after_pair = self.is_literal && !self.is_opening;
        let signs = 1 << QUOTE_SIGN.0
            | 1 << QUOTE_WORD.0
            | 1 << UNBALANCED.0
            | 1 << COMMENT_END.0
            | 1 << COMMENT_SPLIT.0
            | 1 << AFTER_QUOTE.0;
        if is_after_pair && !self.has(TAUTOLOGY) && is_of_conditions(self.facts.kinds & !signs) {
            return;
        }
        let field = self.pieces.field;
        let is_for = [
            field.is_password && self.is_of_signs(),
            field.takes_conditions && self.is_of_conditions(),
            field.is_of_cells && self.is_literal && !self.facts.reads_or_runs(),
        ];
        let row = is_for.iter().position(|is_for| *is_for);
        let weight: f32 = kinds_in(self.facts.kinds).map(|kind| field.weights[usize::from(kind.0)]).sum();
        if self.is_inside && weight < INSIDE_WEIGHT_MIN {
            return;
        }
        // Elsewhere all count alike.
        let is_mention = field.may_mention && (field.is_file || self.is_mention());
        let best = match row {
            Some(row) => &mut self.pieces.suppressed[row].1,
            None if is_mention => &mut self.pieces.mentioned,
            None => &mut self.pieces.live,
        };
        if weight > best.weight {
            best.weight = weight;
            best.facts = self.facts;
        }
    }

    /// Notes what the piece stands after.
    fn note_context(&mut self) {
        let here = Span::new(self.from, self.text.len().min(self.from + 1));
        let head = match self.start {
            Start::Quote(b'`') => return self.facts.set(AFTER_BACKTICK, here),
            Start::Quote(_) => return self.facts.set(AFTER_QUOTE, here),
            Start::Raw if self.is_inside => self.head,
            // `(1)or(id)`
            Start::Raw => match self.first_operand() {
                Some(TokenKind::Number) => Operand::Number,
                Some(TokenKind::Word(Word::Name)) => Operand::Name,
                _ => Operand::None,
            },
        };
        match head {
            Operand::Number => self.facts.set(AFTER_NUMBER, here),
            Operand::Name => self.facts.set(AFTER_WORD, here),
            Operand::None
            | Operand::Text
            | Operand::Literal
            | Operand::Call
            | Operand::Select
            | Operand::Variable
            | Operand::Complex => {}
        }
    }

    /// The first token of the text that is no parenthesis.
    pub(super) fn first_operand(&self) -> Option<TokenKind> {
        Lexer::new(self.text, 0).map(|token| token.kind).find(|kind| *kind != TokenKind::Open)
    }

    /// Gives the pieces that weigh most to `found`; with a `row`, that exception suppresses them.
    pub(in crate::detectors::sqli) fn commit(&self, found: &mut Found<'_>, row: Option<&'static str>) {
        for (best, is_mention) in [(&self.pieces.live, false), (&self.pieces.mentioned, true)] {
            for (id, span) in best.facts.spans() {
                match row {
                    Some(row) => found.suppress(id, span, row),
                    None if is_mention => found.mention(id, span),
                    None => found.add(id, span),
                }
            }
        }
        for (row, best) in &self.pieces.suppressed {
            best.facts.spans().for_each(|(id, span)| found.suppress(id, span, row));
        }
    }

    /// The piece is what a text speaks of: a statement that reads or changes rows, a piece after foreign
    /// text and no quote, where no application's statement would hold, or one after a quote of a pair.
    fn is_mention(&self) -> bool {
        let is_statement = || {
            const LIVE: u64 = 1 << TAUTOLOGY.0 | 1 << UNION_SELECT.0 | 1 << UNION_COLUMNS.0;
            // A dump of MySQL sets and restores variables in version comments.
            let is_ordinary = self.is_ordinary_statement() || self.is_dump();
            is_ordinary && self.facts.kinds & LIVE == 0
        };
        let is_after_text = self.start == Start::Raw && (self.is_inside || is_statement());
        self.is_literal && !self.joins_at_quote() || is_after_text || self.start == Start::Quote(b'`')
    }

    /// `see '||(select a from b)||'`: the first quote of a pair, an operator right behind it, and a query or
    /// a call that waits or tells: no string of a program begins so.
    fn joins_at_quote(&self) -> bool {
        const DOES: u64 = 1 << SUBSELECT.0
            | 1 << TIME_FUNCTION.0
            | 1 << ERROR_FUNCTION.0
            | 1 << FILE_FUNCTION.0
            | 1 << OUT_OF_BAND_FUNCTION.0
            | 1 << EXECUTE_FUNCTION.0;
        let is_tight = !self.text.get(self.begun).is_none_or(u8::is_ascii_whitespace);
        let is_quote = matches!(self.start, Start::Quote(b'\'' | b'"'));
        is_quote && self.is_opening && is_tight && self.has(QUOTE_SIGN) && self.facts.kinds & DOES != 0
    }

    /// The value is a whole statement that reads or changes rows: what an application that takes statements
    /// is for. Commands, files, other machines and waiting are not.
    pub(in crate::detectors::sqli) fn is_ordinary_statement(&self) -> bool {
        self.has_only_dangers(0)
    }

    /// The same, where the kinds of `allowed` are not among the dangers.
    fn has_only_dangers(&self, allowed: u64) -> bool {
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
        let first = self.first_kinds | if self.is_inside { 0 } else { self.facts.kinds };
        let has = |kinds: u64, kind: KindId| kinds >> kind.0 & 1 == 1;
        (has(first, STATEMENT) || has(first, STATEMENT_PLAIN))
            && !has(first, UNBALANCED)
            && !DANGERS.iter().any(|kind| has((self.all_kinds | first) & !allowed, *kind))
    }

    /// Statements from the first word on, with nothing of the dangers of
    /// [`is_ordinary_statement`](Self::is_ordinary_statement) but version comments as dumps have them:
    /// `/*!40101 SET ... */;`, `/*!40000 ENGINE=InnoDB */`.
    fn is_dump(&self) -> bool {
        const WORDS: &[&[u8]] =
            &[b"set ", b"engine", b"alter table ", b"default ", b"tablespace ", b"character set "];
        let sets = |at: usize| {
            let rest = &self.text[at + 3..];
            let rest =
                rest[rest.iter().take(6).take_while(|b| b.is_ascii_digit()).count()..].trim_ascii_start();
            WORDS
                .iter()
                .any(|word| rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)))
        };
        (self.first_kinds >> SCRIPT.0 & 1 == 1 || self.pieces.field.is_document && self.is_script())
            && self.has_only_dangers(1 << VERSION_COMMENT.0)
            && memchr::memmem::find_iter(self.text, b"/*!").all(sets)
    }

    /// The text begins with a whole statement, or with several.
    pub(in crate::detectors::sqli) fn is_script(&self) -> bool {
        [STATEMENT, STATEMENT_PLAIN, SCRIPT].iter().any(|kind| self.first_kinds >> kind.0 & 1 == 1)
    }

    /// A comment, parentheses and signs: no condition, no statement, no quote that opens again. In a password
    /// they cut off nothing that matters, and a random one may have them.
    fn is_of_signs(&self) -> bool {
        // `'='`, `x'-'y`: who draws by lot has more signs than these.
        let is_tight = self.has(QUOTE_SIGN)
            && self.last_span.start as usize <= self.begun + 2
            && self.text.iter().filter(|b| b.is_ascii_punctuation()).count() <= TIGHT_SIGNS_MAX;
        let is_sign = |kind: KindId| {
            matches!(
                kind,
                VARIABLE
                    | WHOLE
                    | BARE_TAIL
                    | UNBALANCED
                    | COMMENT_END
                    | COMMENT_TAIL
                    | COMMENT_SPLIT
                    | QUOTE_COMMENT
                    | BRACE
                    | AFTER_QUOTE
                    | AFTER_BACKTICK
                    | AFTER_NUMBER
                    | AFTER_WORD
            ) || matches!(kind, QUOTE_SIGN | REOPENED | CONSTANT_COMPARISON)
                && !(self.has(REOPENED) && is_tight)
        };
        kinds_in(self.facts.kinds).all(is_sign)
    }

    /// Conditions without a quote that ends a string.
    fn is_of_conditions(&self) -> bool {
        (self.start == Start::Raw || self.is_literal)
            && is_of_conditions(self.facts.kinds & !(1 << AFTER_QUOTE.0))
    }
}

/// No statement, and no call that waits or tells.
fn is_of_conditions(kinds: u64) -> bool {
    let is_condition = |kind: KindId| {
        matches!(
            kind,
            WHOLE
                | BARE_TAIL
                | TAUTOLOGY
                | CONSTANT_COMPARISON
                | CONDITION
                | BOOLEAN_CONSTANT
                | BOOLEAN_STRING
                | BOOLEAN_CALL
                | NULL_TEST
                | ANY_FUNCTION
                | TEXT_FUNCTION
                | CONDITIONAL_FUNCTION
                | CASE_WHEN
                | VARIABLE
                | HAVING
                | LIMIT
                | BRACE
                | ORDER_BY_NUMBER
                | COMMENT_TAIL
                | AFTER_NUMBER
                | AFTER_WORD
        )
    };
    kinds_in(kinds).all(is_condition)
}
