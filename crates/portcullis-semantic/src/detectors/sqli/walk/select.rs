//! SELECT: as a statement, as the second half of a UNION, in parentheses, and the words of English that look
//! like one.

use portcullis_lex::sql::{Operator, Token, TokenKind, Word};
use portcullis_types::Span;

use super::grammar::Following;
use super::words::{Part, role};
use super::{Clause, DEPTH_MAX, Expect, Operand, Start, Walk};
use crate::KindId;
use crate::detectors::sqli::*;

impl Walk<'_, '_> {
    /// Reads a SELECT that begins a statement, and notes it as `kind`, or as a plain one if its words may be
    /// English. False if nothing is selected.
    pub(super) fn select_statement(&mut self, next: &Following, span: Span, kind: KindId) -> bool {
        self.depth = 0;
        self.union_at = None;
        self.select(span);
        let is_empty = self.selects_nothing(next);
        if !is_empty && !is_prose(next) {
            let is_plain = self.is_plain_select(next);
            let is_sentence = self.is_spoken_case(next);
            let is_plain = is_plain && (!next.is_stacked || is_sentence || is_listless(next));
            self.note(if is_plain { STATEMENT_PLAIN } else { kind }, self.span_to_next(span));
        }
        !is_empty
    }

    /// `Then select.`: a sentence ends there; a column does not begin so.
    fn selects_nothing(&self, next: &Following) -> bool {
        let [first, second] = next.tokens;
        // A dash with spaces around it is not the sign of a number.
        let is_dash = matches!(next.first, Some(TokenKind::Operator(Operator::Minus | Operator::Not)))
            && (second.is_none()
                || matches!(next.second, Some(TokenKind::Word(word)) if role(word) != Part::Constant)
                    && is_apart(next));
        // `select not -`: no operand follows.
        let is_cut = next.word == Some(Word::Not)
            && !self
                .lexer
                .clone()
                .take(4)
                .any(|token| !matches!(token.kind, TokenKind::Operator(_) | TokenKind::Word(Word::Not)));
        // `Select null select?`
        let is_asked = second.is_none() && first.is_some_and(|token| self.word(token.span) == b"?");
        matches!(next.first, None | Some(TokenKind::Dot)) || is_dash || is_cut || is_asked
    }

    /// The words of the SELECT may be English.
    fn is_plain_select(&self, next: &Following) -> bool {
        let Following { first, second, word, .. } = *next;
        let is_keyword = word.is_some_and(|word| role(word) != Part::Constant);
        // `Then select (really)`, `select not (really)`, `select table (really)`, with a space
        let is_aside = first == Some(TokenKind::Open) && second == Some(TokenKind::Word(Word::Name))
            || word == Some(Word::Not) && second == Some(TokenKind::Open)
            || is_keyword && second == Some(TokenKind::Open) && is_apart(next) && self.is_remark();
        // `Then select table;`, `then select table -`
        let is_order = is_keyword
            && (matches!(second, None | Some(TokenKind::Semicolon))
                || matches!(second, Some(TokenKind::Operator(_))) && self.lexer.clone().nth(2).is_none());
        let is_of_names = word == Some(Word::Name)
            || begins_spoken_case(next)
            || is_aside
            || word.is_some() && second == Some(TokenKind::Dot);
        let has_columns = !is_aside && matches!(second, Some(TokenKind::Open | TokenKind::Comma));
        is_order || is_listless(next) || is_of_names && !has_columns && !self.joins_names(next.tokens[1])
    }

    /// `1.001; Select case the. When`, `Select case the; Like`: a CASE of SQL goes on with WHEN.
    fn is_spoken_case(&self, next: &Following) -> bool {
        let third = self.lexer.clone().nth(2);
        let goes_on = third.is_some_and(|token| {
            matches!(token.kind, TokenKind::Word(Word::When) | TokenKind::Operator(_) | TokenKind::Open)
                || token.kind == TokenKind::Dot && self.joins_names(third)
        });
        begins_spoken_case(next) && !goes_on
    }

    /// After the next word stands another one in parentheses, and nothing else.
    fn is_remark(&self) -> bool {
        let mut ahead = self.lexer.clone().skip(2).map(|token| token.kind);
        ahead.next() == Some(TokenKind::Word(Word::Name)) && ahead.next() == Some(TokenKind::Close)
    }

    /// Begins a SELECT at `span`. After UNION or in parentheses it notes whether more than words of English
    /// follow.
    pub(super) fn select(&mut self, span: Span) {
        self.clause = Clause::Columns;
        self.expect = Expect::Operand;
        self.last = Operand::None;
        self.aliased = false;
        self.select_at = Some(span);
        self.only_words = true;
        let is_nested = self.depth > 0 && self.depth <= DEPTH_MAX;
        if is_nested {
            self.stack[self.depth - 1].is_select = true;
        }
        let ahead = self.peeks();
        let has_member = self.joins_names(ahead[1]);
        let [next, second] = ahead.map(|token| token.map(|token| token.kind));
        let in_earnest = match next {
            Some(TokenKind::Word(Word::Name)) => match second {
                Some(TokenKind::Dot) => has_member && !self.is_abbreviation(),
                // `Union select the (really).`
                Some(TokenKind::Open) if self.begins_with_union() && self.is_remark() => {
                    ahead[0].zip(ahead[1]).is_some_and(|(name, open)| name.span.end == open.span.start)
                }
                _ => matches!(second, Some(TokenKind::Open | TokenKind::Comma)),
            },
            // `Union select null?`, `Union select by;`: a question or a call ends there, and the value with
            // it.
            Some(TokenKind::Word(word))
                if matches!(role(word), Part::Constant | Part::Name | Part::Statement)
                    && self.begins_with_union()
                    && (self.ends_sentence(ahead[1]) || self.names_and_ends(second)) =>
            {
                false
            }
            // PostgreSQL has rows without columns; English has `select from` and `select order.`
            Some(TokenKind::Word(_)) if second == Some(TokenKind::Dot) => has_member,
            Some(TokenKind::Word(_)) if second == Some(TokenKind::Operator(Operator::Not)) => false,
            // Nor is BY, which is reserved, a column.
            Some(TokenKind::Word(word))
                if (word == Word::By
                    || matches!(
                        role(word),
                        Part::Clause | Part::Compare | Part::Join | Part::Arithmetic
                    ))
                    && second != Some(TokenKind::Open) =>
            {
                false
            }
            // `1 union select` is all there is of it; `the trade union select` is English.
            None => !self.begins_with_word,
            // `l'union (select) d'un ensemble`: nothing is selected.
            Some(TokenKind::Close) => false,
            Some(_) => true,
        };
        if let Some(union) = self.union_at.filter(|_| self.after_union) {
            // `1 union select id from users` has only words, too, but a trade union does not follow a number.
            // Nor does anybody but SQL open a parenthesis before the SELECT.
            // Nor does a value begin with `union select NAME from`; `Union select the best!` it may.
            // `Union select the from. Anne`
            let third = self.lexer.clone().nth(2);
            let is_from = second == Some(TokenKind::Word(Word::From)) && !self.is_full_stop(third);
            let begins = self.begins_with_word || self.begins_with_union() && !is_from;
            // `union select. The rest`: no column begins so.
            let ends_here = match next {
                Some(TokenKind::Dot) => !self.joins_names(ahead[0]),
                Some(TokenKind::Semicolon | TokenKind::Close) => true,
                Some(_) => ahead[0].is_some_and(|token| matches!(self.word(token.span), b"?" | b"!" | b":")),
                None => false,
            };
            let is_sentence = ends_here || self.ends_with_sentence(ahead[1]);
            let in_earnest =
                in_earnest && !ends_here || next.is_some() && (!begins || is_nested) && !is_sentence;
            let is_constant = match next {
                Some(TokenKind::Number | TokenKind::String { .. }) => true,
                Some(TokenKind::Word(word)) => role(word) == Part::Constant,
                _ => false,
            };
            if is_constant && second == Some(TokenKind::Comma) {
                self.note(UNION_COLUMNS, Span { start: union.start, end: span.end });
            }
            let span = Span { start: union.start, end: span.end };
            self.note(if in_earnest { UNION_SELECT } else { UNION_PLAIN }, span);
            self.only_words = !in_earnest;
            self.after_union = false;
        } else if is_nested && self.depth > 0 {
            self.note(SUBSELECT, span);
            self.only_words = !in_earnest;
        }
    }

    /// A dot that no name follows, or another sign with which a sentence ends: no table is named.
    fn is_full_stop(&self, token: Option<Token>) -> bool {
        token.is_some_and(|sign| match sign.kind {
            TokenKind::Dot => !self.joins_names(token),
            TokenKind::Semicolon | TokenKind::Comma => true,
            // A percent sign may be one of an escape: `from%20users`.
            TokenKind::Operator(_) => !self.pieces.field.is_encoded,
            TokenKind::Variable => self.word(sign.span) == b"?",
            TokenKind::Number
            | TokenKind::String { .. }
            | TokenKind::Word(_)
            | TokenKind::QuotedName(_)
            | TokenKind::Open
            | TokenKind::Close
            | TokenKind::OpenBrace
            | TokenKind::CloseBrace
            | TokenKind::Comment(_)
            | TokenKind::Other => false,
        })
    }

    /// `e.g.`: after the second dot no name follows, as in a column's it would.
    fn is_abbreviation(&self) -> bool {
        let third = self.lexer.clone().nth(3);
        third.is_some_and(|token| token.kind == TokenKind::Dot) && !self.joins_names(third)
    }

    /// Nothing stands before the UNION of the value, or words do.
    fn begins_with_union(&self) -> bool {
        let union = self.union_at.filter(|_| self.after_union && self.start == Start::Raw);
        let is_of_text = self.is_inside && self.head != Operand::Number;
        union.is_some_and(|at| is_of_text || self.text[..at.start as usize].trim_ascii().is_empty())
    }

    /// `1.001 EUR, Union select the.`, `... the! Bob O'Brien`: a sign that ends a sentence, and nothing or
    /// words after it. A column's name would go on right after the dot, and a table of it stand after
    /// FROM.
    fn ends_with_sentence(&self, token: Option<Token>) -> bool {
        let Some(end) = token.filter(|token| matches!(self.word(token.span), b"." | b"!" | b"?")) else {
            return false;
        };
        let rest = &self.text[end.span.end as usize..];
        let is_of_words =
            |b: &u8| b.is_ascii_alphabetic() || !b.is_ascii() || b" \t\r\n'-.!?:;,()".contains(b);
        rest.first().is_none_or(u8::is_ascii_whitespace)
            && rest.len() <= SENTENCE_BYTES_MAX
            && rest.iter().all(is_of_words)
            && !names_table(rest)
    }

    /// `Union select the. C++ from the.`: the value begins with the UNION, and the table's name, which comes
    /// next, ends a sentence.
    fn says_union(&self) -> bool {
        let is_first = |at: Span| self.text[..at.start as usize].trim_ascii().is_empty();
        let dot = self.peeks()[1].filter(|token| token.kind == TokenKind::Dot);
        self.start == Start::Raw
            && self.union_at.is_some_and(is_first)
            && dot.is_some()
            && !self.joins_names(dot)
    }

    /// `Union select null the.`: a name comes second, and a sentence ends behind it.
    fn names_and_ends(&self, second: Option<TokenKind>) -> bool {
        second == Some(TokenKind::Word(Word::Name)) && self.ends_with_sentence(self.lexer.clone().nth(2))
    }

    /// A question mark or the like right after a word, with which a sentence ends.
    fn ends_sentence(&self, token: Option<Token>) -> bool {
        token.is_some_and(|token| {
            let (start, end) = (token.span.start as usize, token.span.end as usize);
            matches!(self.word(token.span), b"?" | b"!" | b";")
                && self.text[..start].last().is_some_and(u8::is_ascii_alphabetic)
                && self.text.get(end).is_none_or(|b| b.is_ascii_whitespace() || *b == b',')
        })
    }

    /// The table after FROM makes a SELECT one in earnest if more than words stand between.
    pub(super) fn selected_table(&mut self, span: Span, next: Option<Token>) {
        let start = self.select_at.map_or(span.start, |at| at.start);
        let whole = Span { start, end: next.map_or(span.end, |next| next.span.end) };
        if next.is_none() || self.is_full_stop(next) || self.says_union() {
            return;
        }
        self.does.selects_from(self.text, self.select_at, span, next);
        if self.only_words {
            self.note(STATEMENT_PLAIN, whole);
        } else {
            self.note(SELECT_FROM, whole);
            if let Some(union) = self.union_at {
                self.note(UNION_SELECT, Span { start: union.start, end: whole.end });
            }
        }
    }
}

/// FROM stands in `text`, and what follows is no word with which a sentence ends: `from the.`
fn names_table(text: &[u8]) -> bool {
    let is_from = |word: &[u8]| word.eq_ignore_ascii_case(b"from");
    (4..=text.len()).filter(|end| is_from(&text[end - 4..*end])).any(|end| {
        let rest = text[end..].trim_ascii_start();
        let word = rest.iter().take_while(|b| b.is_ascii_alphanumeric()).count();
        let ends = matches!(rest.get(word), Some(b'.' | b'!' | b'?'))
            && rest.get(word + 1).is_none_or(u8::is_ascii_whitespace);
        !ends
    })
}

/// `24/7 select order where.`: what ends a list of columns does not begin one.
fn is_listless(next: &Following) -> bool {
    let ends_list =
        |word: Word| word != Word::From && matches!(role(word), Part::Clause | Part::Compare | Part::Join);
    next.word.is_some_and(ends_list)
        && matches!(next.second, Some(TokenKind::Word(word)) if word != Word::From)
}

/// A name and another word that is not FROM or AS: `select the best`.
fn is_prose(next: &Following) -> bool {
    matches!(next.word, Some(Word::Name))
        && matches!(next.second, Some(TokenKind::Word(_) | TokenKind::QuotedName(_)))
        && !matches!(next.second, Some(TokenKind::Word(Word::From | Word::As)))
}

/// `case` and a word other than WHEN.
fn begins_spoken_case(next: &Following) -> bool {
    next.word == Some(Word::Case) && matches!(next.second, Some(TokenKind::Word(word)) if word != Word::When)
}

/// White space stands between the two tokens.
fn is_apart(next: &Following) -> bool {
    let [first, second] = next.tokens;
    first.zip(second).is_some_and(|(first, second)| first.span.end < second.span.start)
}

/// A longer text after a dot is no sentence's end.
const SENTENCE_BYTES_MAX: usize = 256;
