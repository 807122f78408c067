//! Operands: values, names, and the functions and variables that names are known for.

use portcullis_lex::sql::{Operator, Token, TokenKind, Word};
use portcullis_types::Span;

use super::words::{Part, role};
use super::{Clause, DEPTH_MAX, Expect, Operand, Walk};
use crate::detectors::sqli::names::{Group, Names};
use crate::detectors::sqli::*;

impl Walk<'_, '_> {
    /// The first token of a value as it stands.
    pub(super) fn begin(&mut self, token: Token) -> bool {
        self.expect = Expect::Operand;
        self.begins_with_word = matches!(token.kind, TokenKind::Word(Word::Name));
        match token.kind {
            TokenKind::Word(word) => match role(word) {
                Part::Statement if self.statement(word, token.span, STATEMENT) => true,
                Part::Name | Part::Constant | Part::Unary => self.operand(token),
                Part::Join if self.is_filter() => {
                    self.name_operand(token.span);
                    true
                }
                // `or 1=1`: the middle of an expression.
                _ if self.peek().is_some_and(|next| next.kind == TokenKind::Open)
                    && role(word) == Part::Filler =>
                {
                    self.operand(token)
                }
                Part::Statement => self.operand(token),
                Part::Join | Part::Compare | Part::Arithmetic | Part::Clause | Part::Filler => {
                    self.note_tail(token.span);
                    self.operator(token)
                }
            },
            // `*,(select a from b)`
            TokenKind::Operator(Operator::Star)
                if self.peek().is_some_and(|next| next.kind == TokenKind::Comma) =>
            {
                self.operand(token)
            }
            TokenKind::Close
            | TokenKind::Comma
            | TokenKind::CloseBrace
            | TokenKind::Operator(
                Operator::Equal
                | Operator::NotEqual
                | Operator::Less
                | Operator::Greater
                | Operator::Pipes
                | Operator::Ampersands
                | Operator::Divide
                | Operator::Star
                | Operator::Bit
                | Operator::Json,
            ) => {
                self.note_tail(token.span);
                self.operator(token)
            }
            TokenKind::Semicolon => self.operator(token),
            TokenKind::Other if self.word(token.span) == b"]" => self.operator(token),
            TokenKind::Number
            | TokenKind::String { .. }
            | TokenKind::QuotedName(_)
            | TokenKind::Variable
            | TokenKind::Operator(_)
            | TokenKind::Open
            | TokenKind::Dot
            | TokenKind::OpenBrace
            | TokenKind::Comment(_)
            | TokenKind::Other => self.operand(token),
        }
    }

    /// The text begins in the middle of an expression.
    fn note_tail(&mut self, span: Span) {
        if !self.is_inside {
            self.note(BARE_TAIL, span);
        }
    }

    /// `and(equals(status,'open'),lessThan(total,'5'))`, all of the value: the filters of an interface, with
    /// several conditions as arguments. To a database that is a row, which is no condition before something
    /// is compared with it.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "names, numbers and texts are all that such a list holds"
    )]
    fn is_filter(&self) -> bool {
        let (mut depth, mut has_comma) = (0u32, false);
        let mut ahead = self.lexer.clone().take(FILTER_TOKENS_MAX);
        while let Some(token) = ahead.next() {
            match token.kind {
                TokenKind::Open => depth += 1,
                TokenKind::Comma => has_comma |= depth == 1,
                TokenKind::Close if depth == 1 => return has_comma && ahead.next().is_none(),
                TokenKind::Close => depth = depth.saturating_sub(1),
                TokenKind::Word(word)
                    if depth > 0 && !matches!(role(word), Part::Statement | Part::Clause) => {}
                TokenKind::Number | TokenKind::String { closed: true, .. } if depth > 0 => {}
                _ => return false,
            }
        }
        false
    }

    pub(super) fn operand(&mut self, token: Token) -> bool {
        match token.kind {
            TokenKind::Number => self.take(Operand::Number, token.span),
            TokenKind::String { quote: b'"', closed: true } if self.touches_dot(token.span) => {
                self.name(token.span);
                self.take(Operand::Name, token.span)
            }
            TokenKind::String { .. } => self.take(Operand::Text, token.span),
            TokenKind::QuotedName(_) => {
                self.name(token.span);
                self.take(Operand::Name, token.span)
            }
            TokenKind::Variable => {
                let text = self.word(token.span);
                if text.starts_with(b"@") {
                    let is_known = self.is_system_variable(text);
                    self.note(if is_known { SYSTEM_VARIABLE } else { VARIABLE }, token.span);
                }
                self.take(Operand::Variable, token.span)
            }
            TokenKind::Operator(Operator::Star) => self.take(Operand::Complex, token.span),
            TokenKind::Operator(
                sign @ (Operator::Plus | Operator::Minus | Operator::Not | Operator::Tilde | Operator::Match),
            ) => {
                // `-(stock<5)`
                self.computes |= sign != Operator::Not && self.is_before_open();
                true
            }
            TokenKind::Open => {
                self.open(false);
                true
            }
            TokenKind::Close => {
                // `f()`, or `count(*)` without its star.
                let was_call = self.depth > 0 && self.stack[(self.depth - 1).min(DEPTH_MAX - 1)].is_call;
                was_call && self.last == Operand::None && {
                    self.close(token.span);
                    true
                }
            }
            TokenKind::Word(word) => self.operand_word(word, token.span),
            // `master..xp_cmdshell`: the schema between the dots may be left out.
            TokenKind::Dot => self.last == Operand::None,
            TokenKind::Operator(_)
            | TokenKind::Comma
            | TokenKind::Semicolon
            | TokenKind::OpenBrace
            | TokenKind::CloseBrace
            | TokenKind::Comment(_)
            | TokenKind::Other => false,
        }
    }

    /// `"users"."id"`: what double quotes hold is a name in every dialect if a dot stands right before or
    /// behind it. A digit behind the dot makes it a number.
    fn touches_dot(&self, span: Span) -> bool {
        let (start, end) = (span.start as usize, span.end as usize);
        let before = &self.text[..start];
        let is_number = |b: &u8| b.is_ascii_digit();
        let follows = before.last() == Some(&b'.') && !before.iter().rev().nth(1).is_some_and(is_number);
        follows || self.text.get(end) == Some(&b'.') && !self.text.get(end + 1).is_some_and(is_number)
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "few of the words differ from the others of their part"
    )]
    fn operand_word(&mut self, word: Word, span: Span) -> bool {
        match role(word) {
            Part::Constant => self.take(Operand::Literal, span),
            Part::Unary => {
                match word {
                    // `select top 5 x`: the number belongs to the word.
                    Word::Top if self.peek().is_some_and(|next| next.kind == TokenKind::Number) => {
                        self.skip();
                    }
                    Word::Case => {
                        if self.is_case() {
                            self.note(CASE_WHEN, span);
                        }
                        self.clause_keeps();
                    }
                    Word::Row | Word::Time | Word::Some | Word::Any if !self.is_before_open() => {
                        return self.take(Operand::Name, span);
                    }
                    _ => {}
                }
                true
            }
            Part::Name => {
                if word == Word::Table {
                    self.table_query(span);
                }
                self.name_operand(span);
                true
            }
            Part::Statement if word == Word::With && self.is_with_query() => {
                self.note(SUBSELECT, self.span_to_next(span));
                self.mark_query();
                self.clause = Clause::Free;
                true
            }
            Part::Statement if word == Word::Select => {
                self.select(span);
                true
            }
            // `if(...)`, `replace(...)`, `left(...)`, `insert(...)` are functions.
            _ if self.is_before_open()
                && (!matches!(role(word), Part::Join | Part::Clause | Part::Compare)
                    || matches!(word, Word::Like | Word::Glob | Word::Regexp)) =>
            {
                self.name_operand(span);
                true
            }
            Part::Clause => match word {
                Word::When => {
                    self.join(span);
                    true
                }
                Word::Values => {
                    if self.depth > 0 && self.last == Operand::None && self.is_before_open() {
                        self.note(SUBSELECT, self.span_to_next(span));
                        self.mark_query();
                        self.clause = Clause::Free;
                    }
                    true
                }
                // `trim(both from x)`, `select x, from`: let pass what databases report as late errors.
                Word::From if self.clause == Clause::Columns => {
                    self.operator(Token { kind: TokenKind::Word(word), span })
                }
                // A column named like a word.
                Word::Offset | Word::Limit | Word::Group | Word::Order
                    if matches!(self.clause, Clause::Columns | Clause::Tables) =>
                {
                    self.take(Operand::Name, span)
                }
                _ => false,
            },
            Part::Statement if self.clause == Clause::Free => self.take(Operand::Name, span),
            Part::Join | Part::Compare | Part::Arithmetic | Part::Filler | Part::Statement => false,
        }
    }

    /// `(table t)`: a query that is the name of its table, all of what the parentheses hold.
    fn table_query(&mut self, span: Span) {
        let [name, end] = self.peeks();
        let is_name = matches!(
            name.map(|token| token.kind),
            Some(TokenKind::Word(Word::Name | Word::User) | TokenKind::QuotedName(_))
        );
        let ends = match end.map(|token| token.kind) {
            Some(
                TokenKind::Close | TokenKind::Word(Word::Limit | Word::Offset | Word::Order | Word::Union),
            ) => true,
            _ => self.joins_names(end),
        };
        if self.depth > 0 && self.last == Operand::None && is_name && ends {
            self.note(SUBSELECT, self.span_to_next(span));
            self.mark_query();
            self.clause = Clause::Free;
        }
    }

    /// `(with a as(table t) ..)`
    fn is_with_query(&self) -> bool {
        let [name, next] = self.peeks();
        let is_name =
            matches!(name.map(|token| token.kind), Some(TokenKind::Word(_) | TokenKind::QuotedName(_)));
        let next = next.map(|token| token.kind);
        self.depth > 0 && is_name && matches!(next, Some(TokenKind::Word(Word::As) | TokenKind::Open))
    }

    /// What the innermost parentheses hold is a query. Behind something else, and as no argument, it is one
    /// in place of a value.
    fn mark_query(&mut self) {
        if let Some(frame) = self.depth.checked_sub(1).and_then(|depth| self.stack.get_mut(depth)) {
            frame.is_select = true;
            let is_first = self.text[..frame.at as usize].trim_ascii().is_empty();
            self.does.selects |= !frame.is_call && !is_first;
        }
    }

    /// An operand was read.
    pub(super) fn take(&mut self, operand: Operand, span: Span) -> bool {
        self.expect = Expect::Operator;
        // `price * 100`: the constant is a factor of what is no constant.
        let computes = std::mem::take(&mut self.computes);
        let is_factor = operand.is_constant() && (operand != Operand::Text || !self.ends_text(span));
        let operand = if computes && is_factor { Operand::Complex } else { operand };
        if operand == Operand::Name {
            self.reads_column(span);
        } else {
            self.only_words = false;
        }
        self.last = operand;
        self.last_span = span;
        // The name of a function or table is not what is compared.
        if self.comparing.is_some()
            && (operand != Operand::Name || !(self.is_before_open() || self.is_before_dot()))
        {
            self.compare(operand, span);
        }
        true
    }

    /// A string that the text may leave open for the statement's own quote.
    fn ends_text(&self, span: Span) -> bool {
        span.end as usize == self.text.len()
    }

    fn name_operand(&mut self, span: Span) {
        self.does.converts |= self.is_conversion(self.word(span));
        self.calls_for_rows(span);
        self.name(span);
        self.take(Operand::Name, span);
        self.only_words &= !self.is_before_open();
    }

    /// Notes what a name is known for. `span` is the last part of a qualified name.
    pub(super) fn name(&mut self, span: Span) {
        self.chooses = false;
        let text = bare(self.word(span));
        let group = self.names.get(text).filter(|group| match group {
            Group::Function(TEXT_FUNCTION | ANY_FUNCTION | CONDITIONAL_FUNCTION) if self.is_member(span) => {
                false
            }
            Group::Function(kind) => {
                self.is_before_open()
                    || matches!(*kind, EXECUTE_FUNCTION | OUT_OF_BAND_FUNCTION | TIME_FUNCTION)
                        && text.contains(&b'_')
                    // `system_user` needs no parentheses where something is compared with it.
                    || *kind == INFO_FUNCTION && self.comparing.is_some() && text.ends_with(b"_user")
            }
            Group::Schema | Group::Dual => !self.is_before_open(),
            Group::Variable => false,
        });
        let qualified = || {
            // Two parts, as in `mysql.user`, `sys.tables`, `dbms_pipe.receive_message`.
            if !self.is_before_dot() || !self.names.may_qualify(self.word(span)) {
                return None;
            }
            let second = self.peeks()[1]?;
            let whole = Span { start: span.start, end: second.span.end };
            self.names.get(self.word(whole)).map(|group| (group, whole))
        };
        match group.map(|group| (group, span)).or_else(qualified) {
            Some((Group::Function(kind), span)) => {
                self.chooses = kind == CONDITIONAL_FUNCTION;
                self.calls(kind, span);
                self.note(kind, span);
            }
            Some((group, span)) => {
                if let Some(kind) = Names::as_table(Some(group)) {
                    self.note(kind, span);
                }
            }
            None => {}
        }
    }

    /// `@@version` and its like; an at sign doubled by chance is none.
    pub(super) fn is_system_variable(&self, text: &[u8]) -> bool {
        let Some(name) = text.strip_prefix(b"@@") else { return false };
        matches!(self.names.get(bare(name)), Some(Group::Variable | Group::Function(INFO_FUNCTION)))
    }
}

/// A longer one is read as SQL.
const FILTER_TOKENS_MAX: usize = 96;

/// A name without its back-ticks, brackets or quotes.
pub(super) fn bare(name: &[u8]) -> &[u8] {
    match name {
        [b'`', inner @ .., b'`'] | [b'[', inner @ .., b']'] | [b'"', inner @ .., b'"'] => inner,
        other => other,
    }
}
