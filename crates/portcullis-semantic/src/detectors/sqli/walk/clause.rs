//! Words where an operator is expected: conditions, clauses, UNION and SELECT.

use portcullis_lex::sql::{Operator, Token, TokenKind, Word};
use portcullis_types::Span;

use super::words::{Part, role};
use super::{Clause, Expect, Operand, Start, Walk};
use crate::detectors::sqli::*;

/// Tokens of what a CASE compares, before its WHEN.
const CASE_TOKENS_MAX: usize = 16;

impl Walk<'_, '_> {
    pub(super) fn operator_word(&mut self, word: Word, span: Span) -> bool {
        match role(word) {
            Part::Join => {
                self.join(span);
                true
            }
            Part::Compare => {
                self.does.joins = true;
                if self.tokens == 0 && self.start != Start::Raw {
                    self.note(QUOTE_WORD, span);
                }
                let mut is_distinct = false;
                match (word, self.peek().map(|next| next.kind)) {
                    (Word::Sounds, Some(TokenKind::Word(Word::Like)))
                    | (Word::Is, Some(TokenKind::Word(Word::Not | Word::Distinct))) => {
                        self.skip();
                        // `is distinct from`, `is not distinct from`
                        let [first, second] = self.peeks().map(|token| token.map(|token| token.kind));
                        if second == Some(TokenKind::Word(Word::From))
                            && first == Some(TokenKind::Word(Word::Distinct))
                        {
                            self.skip();
                        }
                        if self.peek().is_some_and(|next| next.kind == TokenKind::Word(Word::From)) {
                            self.skip();
                            is_distinct = true;
                        }
                    }
                    (Word::Sounds, _) => return self.alias(),
                    (Word::Similar, _) => {
                        self.skip();
                    }
                    // English: "the cat is on the mat". `IS` and `IN` ask for what SQL has after them.
                    (Word::Is, Some(TokenKind::Word(next))) if role(next) != Part::Constant => return false,
                    (Word::Is, Some(TokenKind::String { .. })) => {}
                    (Word::In, Some(TokenKind::Word(_))) => return self.word_in(),
                    _ => {}
                }
                if word == Word::Is {
                    self.null_test(span);
                }
                // "2 and 2 is 4": only SQLite compares numbers so.
                let is_spoken =
                    word == Word::Is && self.peek().is_some_and(|next| next.kind == TokenKind::Number);
                self.comparing = (!is_spoken).then_some((self.last, self.last_span));
                self.compares_by_word = true;
                self.tells_apart = is_distinct;
                self.expect = Expect::Operand;
                true
            }
            Part::Arithmetic => {
                self.does.joins = true;
                if self.tokens == 0 && self.start != Start::Raw {
                    self.note(QUOTE_WORD, span);
                }
                self.expect = Expect::Operand;
                true
            }
            Part::Clause => self.clause_word(word, span),
            // `x' for update-- `, `x' for xml path-- `
            Part::Filler if word == Word::For && self.start != Start::Raw && self.locks_rows() => {
                self.skip();
                self.note(LIMIT, self.span_to_next(span));
                let is_form = |next: Token| {
                    let word = self.word(next.span);
                    [&b"path"[..], b"auto", b"raw", b"explicit"]
                        .iter()
                        .any(|known| word.eq_ignore_ascii_case(known))
                };
                if self.peek().is_some_and(is_form) {
                    self.skip();
                }
                true
            }
            // `name notnull`: what `is not null` is elsewhere.
            Part::Filler if matches!(word, Word::Isnull | Word::Notnull) && self.joined && !self.compared => {
                let span_of_test = Span { start: self.joined_at.min(span.start), end: span.end };
                self.note(CONDITION, span_of_test);
                if self.joins_number {
                    self.note(NUMBER_CONDITION, span_of_test);
                }
                self.comparing = None;
                self.compared = true;
                true
            }
            Part::Filler => {
                self.does.ends_case |= word == Word::End;
                true
            }
            Part::Statement => self.statement_word(word, span),
            Part::Unary if word == Word::Not => {
                if self.tokens == 0 && self.start != Start::Raw {
                    self.note(QUOTE_WORD, span);
                }
                true
            }
            // `x' option(recompile)-- `
            Part::Name if self.tokens == 0 && self.start != Start::Raw && self.is_before_open() => {
                let is_option = self.word(span).eq_ignore_ascii_case(b"option");
                self.last = Operand::Name;
                self.last_span = span;
                self.has_clause |= is_option;
                is_option
            }
            Part::Constant | Part::Unary | Part::Name => {
                self.name(span);
                self.alias()
            }
        }
    }

    /// NULL comes next, in a condition that was joined.
    fn null_test(&mut self, span: Span) {
        if self.joined && self.peek().is_some_and(|next| next.kind == TokenKind::Word(Word::Null)) {
            self.note(NULL_TEST, self.span_to_next(span));
        }
    }

    /// `update` or `share` comes next, or a form that the result takes.
    fn locks_rows(&self) -> bool {
        self.peek().is_some_and(|next| {
            let word = self.word(next.span);
            [&b"update"[..], b"share", b"xml", b"json"].iter().any(|known| word.eq_ignore_ascii_case(known))
        })
    }

    /// `in boolean mode`, or not SQL.
    pub(super) fn word_in(&mut self) -> bool {
        let [first, second] = self.peeks();
        let is = |token: Option<Token>, text: &[u8]| {
            token.is_some_and(|token| self.word(token.span).eq_ignore_ascii_case(text))
        };
        if is(first, b"boolean") && is(second, b"mode") {
            self.skip();
            self.skip();
            return true;
        }
        false
    }

    /// `on duplicate key update a = b`: true if that follows, which is then read.
    fn insert_tail(&mut self, next: Option<Token>, span: Span) -> bool {
        let is = |token: Option<Token>, word: &[u8]| {
            token.is_some_and(|token| self.word(token.span).eq_ignore_ascii_case(word))
        };
        let [_, second] = self.peeks();
        if !(is(next, b"duplicate") && is(second, b"key")) {
            return false;
        }
        self.skip();
        self.skip();
        self.skip();
        self.note(INSERT_TAIL, self.span_to_next(span));
        self.clause = Clause::Expression;
        true
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a clause begins with few of the words")]
    pub(super) fn clause_word(&mut self, word: Word, span: Span) -> bool {
        let is_after_number = self.is_after_number();
        self.boundary();
        self.has_clause = true;
        self.expect = Expect::Operand;
        self.aliased = false;
        let next = self.peek();
        let next_word = match next.map(|token| token.kind) {
            Some(TokenKind::Word(word)) => Some(word),
            _ => None,
        };
        match word {
            Word::Where | Word::Having | Word::On | Word::When => {
                if word == Word::Having {
                    self.note(HAVING, span);
                }
                if word == Word::On && self.insert_tail(next, span) {
                    return true;
                }
                // `create index i on t(c)`
                if word == Word::On && self.clause == Clause::Free {
                    return true;
                }
                self.join(span);
                self.clause = Clause::Expression;
            }
            Word::From | Word::Join | Word::Using => {
                if word == Word::From && (self.clause == Clause::Columns) {
                    self.selected_table(span, next);
                }
                if word == Word::Join {
                    self.joins_tables();
                }
                self.clause = Clause::Tables;
            }
            Word::Order | Word::Group => {
                if next_word != Some(Word::By) {
                    return false;
                }
                self.skip();
                self.clause = Clause::Ordering;
                match self.peek().map(|token| token.kind) {
                    // `round the clock, 24/7`: no column.
                    Some(TokenKind::Number) if self.peeks()[1].is_some_and(divides) => {}
                    Some(TokenKind::Number) => self.note(ORDER_BY_NUMBER, self.span_to_next(span)),
                    _ if word == Word::Group => self.note(HAVING, span),
                    _ => {}
                }
            }
            Word::Limit | Word::Offset | Word::Fetch => {
                self.note(LIMIT, span);
                let [rows, more] = self.peeks().map(|token| token.map(|token| token.kind));
                let has_more = matches!(more, Some(TokenKind::Comma | TokenKind::Word(Word::Offset)));
                if is_after_number && rows == Some(TokenKind::Number) && has_more {
                    self.note(NUMBER_CLAUSE, self.span_to_next(span));
                }
                self.clause = Clause::Expression;
            }
            Word::Union | Word::Except | Word::Intersect | Word::Minus => return self.union(word, span),
            Word::Into => match next_word {
                Some(Word::Outfile | Word::Dumpfile) => {
                    self.skip();
                    let names_file = |token: &Token| {
                        matches!(
                            token.kind,
                            TokenKind::String { .. } | TokenKind::Number | TokenKind::Variable
                        )
                    };
                    let Some(file) = self.peek().filter(names_file) else { return false };
                    // A path from a folder: where a server runs or reads it.
                    if memchr::memchr2(b'/', b'\\', self.word(file.span)).is_some() {
                        self.note(FILE_FUNCTION, file.span);
                    }
                    self.note(INTO_FILE, self.span_to_next(span));
                }
                _ => self.clause = Clause::Tables,
            },
            Word::Procedure => {
                let is_analyse = matches!(next_word, Some(Word::Analyse));
                if is_analyse {
                    self.note(PROCEDURE_ANALYSE, self.span_to_next(span));
                }
                return is_analyse;
            }
            Word::Then | Word::Else => self.clause = Clause::Expression,
            _ => {}
        }
        true
    }

    /// A WHEN comes soon after the CASE that was read.
    pub(super) fn is_case(&self) -> bool {
        self.lexer.clone().take(CASE_TOKENS_MAX).any(|token| token.kind == TokenKind::Word(Word::When))
    }

    /// A dot with a name right after it; with a space it ends a sentence.
    pub(super) fn joins_names(&self, token: Option<Token>) -> bool {
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || *b >= 0x80 || b"_`\"[*@$/".contains(b);
        token.is_some_and(|token| {
            token.kind == TokenKind::Dot && self.text.get(token.span.end as usize).is_some_and(is_name)
        })
    }

    /// From `span` to the end of the next token.
    pub(super) fn span_to_next(&self, span: Span) -> Span {
        self.peek().map_or(span, |next| Span { start: span.start, end: next.span.end })
    }

    pub(super) fn union(&mut self, word: Word, span: Span) -> bool {
        let mut ahead = self.lexer.clone();
        let mut words = ahead
            .by_ref()
            .take(24)
            .filter(|token| !matches!(token.kind, TokenKind::Comment(_) | TokenKind::Open));
        let mut next = words.next().map(|token| token.kind);
        if matches!(next, Some(TokenKind::Word(Word::All | Word::Distinct | Word::Distinctrow))) {
            next = words.next().map(|token| token.kind);
        }
        let selects =
            matches!(next, Some(TokenKind::Word(Word::Select | Word::Values | Word::With | Word::Table)));
        if !selects {
            // `Anne-Marie Union`
            let is_named = self.start == Start::Raw && self.last == Operand::Name;
            if word == Word::Union && next.is_none() && !self.only_words && !is_named {
                self.note(UNION, span);
            }
            return next.is_none();
        }
        let reads = match next {
            Some(TokenKind::Word(Word::Values)) => true,
            Some(TokenKind::Word(Word::With)) => {
                let (_, after_name) = (words.next(), words.next());
                after_name.is_some_and(|token| token.kind == TokenKind::Word(Word::As))
            }
            // After the table's name comes little: `the union table the members sit at` has more.
            Some(TokenKind::Word(Word::Table)) => {
                let (_, after_table) = (words.next(), words.next());
                let after_that = words.next().map(|token| token.kind);
                self.joins_names(after_table)
                    || after_table.is_none_or(|token| ends_table(token.kind, after_that))
            }
            _ => false,
        };
        if reads {
            self.note(UNION_SELECT, span);
        }
        self.does.unites |= self.clause == Clause::Tables && self.select_at.is_none();
        self.union_at = Some(span);
        self.after_union = true;
        self.only_words = true;
        true
    }

    pub(super) fn clause_keeps(&mut self) {
        self.only_words = false;
    }
}

/// What stands behind the name of a table ends it: a sign, or a word of a clause with what that one takes.
/// `Union table the into.` is English.
fn ends_table(kind: TokenKind, next: Option<TokenKind>) -> bool {
    use TokenKind as T;
    match (kind, next) {
        (T::Semicolon | T::Close, _) => true,
        (T::Word(Word::Limit | Word::Offset), next) => {
            matches!(next, Some(T::Number | T::Variable | T::Word(Word::All)))
        }
        (T::Word(Word::Order), next) => next == Some(T::Word(Word::By)),
        (T::Word(Word::Into), next) => {
            matches!(next, Some(T::Variable | T::Word(Word::Outfile | Word::Dumpfile)))
        }
        (T::Word(Word::Union), next) => matches!(
            next,
            Some(T::Word(
                Word::All | Word::Distinct | Word::Select | Word::Table | Word::Values | Word::With
            ))
        ),
        _ => false,
    }
}

fn divides(token: Token) -> bool {
    token.kind == TokenKind::Operator(Operator::Divide)
}
