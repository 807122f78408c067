//! Statements: at the beginning of a value, behind a semicolon, or glued on.

use portcullis_lex::sql::{Lexer, Operator, Token, TokenKind, Word};
use portcullis_types::Span;

use super::words::{Part, role};
use super::{Clause, Expect, Operand, Start, Walk};
use crate::KindId;
use crate::detectors::sqli::*;

impl Walk<'_, '_> {
    /// A statement word where an operator is expected: a second statement without a semicolon.
    pub(super) fn statement_word(&mut self, word: Word, span: Span) -> bool {
        if word == Word::Set && matches!(self.clause, Clause::Tables | Clause::Free) {
            self.expect = Expect::Operand;
            self.clause = Clause::Expression;
            return true;
        }
        if self.clause == Clause::Free && word != Word::Select {
            return true;
        }
        if word == Word::Select && self.clause == Clause::Tables {
            // `insert into t select`
            self.select(span);
            return true;
        }
        if matches!(word, Word::With | Word::Lock | Word::Use | Word::Do | Word::If | Word::Set | Word::Show)
        {
            return self.alias();
        }
        self.boundary();
        // Behind text nothing else tells that a statement stood before it.
        let is_first = self.is_inside && self.tokens == 0;
        self.statement(word, span, if is_first { STATEMENT } else { JUXTAPOSED })
    }

    /// Behind a semicolon.
    pub(super) fn statement_or_end(&mut self, token: Token) -> bool {
        match token.kind {
            TokenKind::Semicolon => true,
            TokenKind::Word(_) if self.is_order(token) => {
                self.note(STACKED, self.span_to_next(token.span));
                self.skip();
                self.expect = Expect::Operator;
                self.last = Operand::Name;
                self.clause = Clause::Free;
                true
            }
            TokenKind::Word(word) if role(word) == Part::Statement => {
                self.statement(word, token.span, STACKED)
            }
            // A label, where GOTO leads to.
            TokenKind::Word(Word::Name)
                if self.peek().is_some_and(|next| next.kind == TokenKind::Operator(Operator::Colon)) =>
            {
                self.skip();
                true
            }
            // A statement is over: nothing is joined to it, but to the semicolon that a list of tricks begins
            // with.
            TokenKind::Word(word) if role(word) == Part::Join && self.tokens > 1 => false,
            TokenKind::Word(_) | TokenKind::Operator(_) => {
                // PL/SQL blocks and MySQL's delimiters are not told from prose here.
                self.expect = Expect::Start;
                self.begin(token)
            }
            TokenKind::Open => {
                self.expect = Expect::Operand;
                self.operand(token)
            }
            _ => false,
        }
    }

    /// `;flush privileges`, `;table users`: a statement that is no more than two words or three, behind a
    /// number or a quote, with the word that belongs to it, and nothing but another statement, an assignment
    /// or a comment behind.
    fn is_order(&self, token: Token) -> bool {
        let is_behind =
            self.start != Start::Raw || !self.is_inside && self.tokens == 2 && self.begins_with_number();
        if !is_behind {
            return false;
        }
        let first = self.word(token.span);
        let Some((_, seconds)) = ORDERS.iter().find(|(known, _)| first.eq_ignore_ascii_case(known)) else {
            return false;
        };
        let [second, third] = self.peeks();
        let ends = |token: Option<Token>| token.is_none_or(|token| token.kind == TokenKind::Semicolon);
        let Some(second) = second else { return seconds.is_empty() };
        let is_any = matches!(second.kind, TokenKind::Word(_) | TokenKind::QuotedName(_));
        match seconds.is_empty() {
            true => is_any && ends(third),
            false => {
                let word = self.word(second.span);
                seconds.iter().any(|known| word.eq_ignore_ascii_case(known))
            }
        }
    }

    /// The text begins with a number.
    fn begins_with_number(&self) -> bool {
        let first = Lexer::new(self.text, 0).next();
        first.is_some_and(|token| token.kind == TokenKind::Number)
    }

    /// True if `word` begins a statement, as what follows shows; notes it as `kind`.
    pub(super) fn statement(&mut self, word: Word, span: Span, kind: KindId) -> bool {
        // A script of whole statements is not an injection behind one.
        let is_script = kind == STACKED && (self.has(STATEMENT) || self.has(STATEMENT_PLAIN));
        let kind = if is_script { SCRIPT } else { kind };
        let is_stacked = matches!(kind, STACKED | SCRIPT);
        let [first, second] = self.peeks();
        let first_kind = first.map(|token| token.kind);
        let second_kind = second.map(|token| token.kind);
        let first_word = match first_kind {
            Some(TokenKind::Word(word)) => Some(word),
            _ => None,
        };
        let is_name =
            |kind: Option<TokenKind>| matches!(kind, Some(TokenKind::Word(_) | TokenKind::QuotedName(_)));
        let object = |word: Option<Word>| {
            matches!(
                word,
                Some(
                    Word::Table
                        | Word::Database
                        | Word::View
                        | Word::Index
                        | Word::User
                        | Word::Login
                        | Word::Function
                        | Word::Procedure
                        | Word::Trigger
                        | Word::Schema
                        | Word::Role
                )
            )
        };
        self.aliased = false;
        let holds = match word {
            Word::Select => {
                self.depth = 0;
                self.union_at = None;
                self.select(span);
                let prose = matches!(first_word, Some(Word::Name))
                    && is_name(second_kind)
                    && !matches!(second_kind, Some(TokenKind::Word(Word::From | Word::As)));
                // `Then select.`: a sentence ends there; a column does not begin so.
                // Nor is a dash with spaces around it a sign before one.
                let is_dash = matches!(
                    first_kind,
                    Some(TokenKind::Operator(Operator::Minus | Operator::Not))
                ) && (second_kind.is_none()
                    || matches!(second_kind, Some(TokenKind::Word(word)) if role(word) != Part::Constant)
                        && first.zip(second).is_some_and(|(sign, name)| sign.span.end < name.span.start));
                // `select not -`: nothing is there to be selected.
                let is_cut = first_word == Some(Word::Not)
                    && !self.lexer.clone().take(4).any(|token| {
                        !matches!(token.kind, TokenKind::Operator(_) | TokenKind::Word(Word::Not))
                    });
                // `Select null select?`
                let is_asked = second.is_none() && first.is_some_and(|token| self.word(token.span) == b"?");
                let empty =
                    matches!(first_kind, None | Some(TokenKind::Dot)) || is_dash || is_cut || is_asked;
                if !prose && !empty {
                    let is_spoken_case = first_word == Some(Word::Case)
                        && matches!(second_kind, Some(TokenKind::Word(word)) if word != Word::When);
                    // `Then select (really)`, `select not (really)`, `select table (really)`, with a space
                    let is_aside = first_kind == Some(TokenKind::Open)
                        && second_kind == Some(TokenKind::Word(Word::Name))
                        || first_word == Some(Word::Not) && second_kind == Some(TokenKind::Open)
                        || matches!(first_word, Some(word) if role(word) != Part::Constant)
                            && second_kind == Some(TokenKind::Open)
                            && first.zip(second).is_some_and(|(word, open)| word.span.end < open.span.start)
                            && self.is_remark();
                    // `Then select table;`, `then select table -`
                    let is_order = matches!(first_word, Some(word) if role(word) != Part::Constant)
                        && (matches!(second_kind, None | Some(TokenKind::Semicolon))
                            || matches!(second_kind, Some(TokenKind::Operator(_)))
                                && self.lexer.clone().nth(2).is_none());
                    // `24/7 select order where.`: what ends a list of columns does not begin one.
                    let is_listless = matches!(first_word, Some(word) if word != Word::From
                            && matches!(role(word), Part::Clause | Part::Compare | Part::Join))
                        && matches!(second_kind, Some(TokenKind::Word(word)) if word != Word::From);
                    let plain = is_order
                        || is_listless
                        || (matches!(first_word, Some(Word::Name))
                            || is_spoken_case
                            || is_aside
                            || first_word.is_some() && second_kind == Some(TokenKind::Dot))
                            && (is_aside || !matches!(second_kind, Some(TokenKind::Open | TokenKind::Comma)))
                            && !self.joins_names(second);
                    // `1.001; Select case the. When`, `Select case the; Like`: what is chosen by goes on with
                    // WHEN.
                    let third = self.lexer.clone().nth(2);
                    let goes_on = third.is_some_and(|token| match token.kind {
                        TokenKind::Word(Word::When) | TokenKind::Operator(_) | TokenKind::Open => true,
                        TokenKind::Dot => self.joins_names(third),
                        _ => false,
                    });
                    let is_sentence = is_spoken_case && !goes_on;
                    let kind = if plain && (!is_stacked || is_sentence) { STATEMENT_PLAIN } else { kind };
                    self.note(kind, self.span_to_next(span));
                }
                return !empty;
            }
            Word::Drop | Word::Alter | Word::Create | Word::Truncate => {
                let or_replace = first_word == Some(Word::Or);
                let goes_on = matches!(
                    second_kind,
                    Some(TokenKind::Word(word))
                        if word == Word::Not
                            || object(Some(word))
                            || matches!(role(word), Part::Clause | Part::Compare | Part::Join)
                );
                object(first_word) && is_name(second_kind) && !goes_on
                    || or_replace
                    || word == Word::Truncate && is_name(first_kind) && second_kind.is_none()
                    || word == Word::Create
                        && matches!(second_kind, Some(TokenKind::Word(w)) if object(Some(w)))
            }
            Word::Insert | Word::Merge => first_word == Some(Word::Into) && is_name(second_kind),
            Word::Replace => first_word == Some(Word::Into) && is_name(second_kind),
            Word::Delete => first_word == Some(Word::From) && is_name(second_kind),
            Word::Update => {
                is_name(first_kind)
                    && (second_kind == Some(TokenKind::Word(Word::Set)) || self.joins_names(second))
            }
            Word::Exec | Word::Execute => {
                matches!(
                    first_kind,
                    Some(
                        TokenKind::Open
                            | TokenKind::String { .. }
                            | TokenKind::Variable
                            | TokenKind::QuotedName(_)
                    )
                ) || first.is_some_and(|token| self.is_procedure(token, second_kind))
            }
            Word::Declare => {
                matches!(first_kind, Some(TokenKind::Variable))
                    || is_name(first_kind) && matches!(second_kind, Some(TokenKind::Word(_))) && is_stacked
            }
            Word::Set => {
                matches!(first_kind, Some(TokenKind::Variable))
                    || is_name(first_kind)
                        && matches!(
                            second_kind,
                            Some(TokenKind::Operator(Operator::Equal | Operator::Assign))
                        )
            }
            Word::Waitfor => {
                matches!(first_word, Some(Word::Delay | Word::Time))
                    && matches!(
                        second_kind,
                        Some(TokenKind::String { .. } | TokenKind::Variable | TokenKind::Number)
                    )
                    // A list leaves out how long; two words alone are what somebody looks for.
                    || first_word == Some(Word::Delay) && second_kind.is_none() && self.tokens > 0
            }
            Word::Shutdown => {
                first_kind.is_none()
                    || matches!(first_kind, Some(TokenKind::Semicolon | TokenKind::Word(Word::With)))
                    || is_stacked
            }
            // PostgreSQL's `do $$ .. $$`
            Word::Do if matches!(first_kind, Some(TokenKind::String { .. })) => {
                is_stacked && first.is_some_and(|token| self.word(token.span).starts_with(b"$"))
            }
            Word::Call | Word::Do => {
                is_name(first_kind) && (second_kind == Some(TokenKind::Open) || self.joins_names(second))
            }
            Word::If | Word::While => {
                matches!(first_kind, Some(TokenKind::Open)) && self.is_sql_condition()
                    || matches!(
                        (first_kind, second_kind),
                        (Some(TokenKind::Number), Some(TokenKind::Operator(second))) if second.is_comparison()
                    ) && !self.is_spoken_condition()
                    || first_word == Some(Word::Not)
                    || matches!(first_word, Some(Word::Exists))
            }
            Word::Begin => match first_kind {
                None => is_stacked,
                Some(TokenKind::Word(Word::Name)) => {
                    matches!(second_kind, Some(TokenKind::Dot | TokenKind::Open))
                }
                Some(TokenKind::Word(Word::Declare | Word::Goto | Word::If | Word::Exec | Word::Execute)) => {
                    true
                }
                Some(TokenKind::Word(_)) => is_stacked,
                _ => false,
            },
            Word::Goto => is_name(first_kind) && (is_stacked || self.start != Start::Raw),
            Word::Load => {
                matches!(first.map(|t| self.word(t.span)), Some(w) if w.eq_ignore_ascii_case(b"data"))
            }
            Word::Grant | Word::Revoke => {
                is_name(first_kind)
                    && matches!(second_kind, Some(TokenKind::Word(Word::On)) | Some(TokenKind::Comma))
                    || matches!(first_word, Some(Word::All | Word::Select))
                    // `grant dba to scott`
                    || (is_stacked || self.start != Start::Raw)
                        && is_name(first_kind)
                        && second.is_some_and(|token| {
                            let word = self.word(token.span);
                            word.eq_ignore_ascii_case(b"to") || word.eq_ignore_ascii_case(b"from")
                        })
            }
            Word::Use => {
                let ends = match second_kind {
                    None | Some(TokenKind::Semicolon) => true,
                    Some(TokenKind::Word(next)) => role(next) == Part::Statement,
                    _ => false,
                };
                is_stacked && is_name(first_kind) && ends
            }
            Word::Show => {
                matches!(first.map(|t| self.word(t.span)), Some(w) if SHOWN.iter().any(|known| w.eq_ignore_ascii_case(known)))
            }
            Word::Handler => {
                matches!(second.map(|t| self.word(t.span)), Some(w) if w.eq_ignore_ascii_case(b"open"))
            }
            Word::Copy => {
                is_name(first_kind)
                    && matches!(second_kind, Some(TokenKind::Word(Word::From) | TokenKind::Open))
                    || matches!(first_kind, Some(TokenKind::Open))
            }
            Word::Backup | Word::Restore => matches!(first_word, Some(Word::Database)),
            Word::Attach => {
                matches!(first_word, Some(Word::Database))
                    || matches!(first_kind, Some(TokenKind::String { .. }))
            }
            Word::Pragma | Word::Dbcc => {
                is_name(first_kind)
                    && matches!(second_kind, Some(TokenKind::Open | TokenKind::Operator(_)) | None)
            }
            Word::Prepare => is_name(first_kind) && matches!(second_kind, Some(TokenKind::Word(Word::From))),
            Word::Print | Word::Kill | Word::Raiserror => {
                matches!(first_kind, Some(TokenKind::Variable | TokenKind::Number | TokenKind::Open))
                    && is_stacked
            }
            Word::Rename => {
                first_word == Some(Word::Table)
                    || matches!(first.map(|t| self.word(t.span)), Some(w) if w.eq_ignore_ascii_case(b"tables"))
                        && is_name(second_kind)
            }
            Word::With => is_name(first_kind) && matches!(second_kind, Some(TokenKind::Word(Word::As))),
            Word::Commit | Word::Rollback | Word::Vacuum => {
                is_stacked && matches!(first_kind, None | Some(TokenKind::Semicolon))
            }
            Word::Lock => matches!(first_word, Some(Word::Table)),
            _ => false,
        };
        if holds {
            if word == Word::Declare && matches!(first_kind, Some(TokenKind::Variable)) {
                self.note(DECLARE_VARIABLE, self.span_to_next(span));
            }
            self.note(kind, self.span_to_next(span));
            self.expect = Expect::Operand;
            self.last = Operand::None;
            self.clause = Clause::Free;
            if matches!(word, Word::If | Word::While) {
                self.clause = Clause::Expression;
                self.joined = true;
                self.compared = false;
            }
            if word == Word::Copy && self.copies_program() {
                self.note(EXECUTE_FUNCTION, span);
            }
            if word == Word::Waitfor {
                self.skip();
                self.note(TIME_FUNCTION, span);
            }
            if matches!(word, Word::Delete | Word::Insert | Word::Merge | Word::Replace) {
                self.skip();
                self.clause = Clause::Tables;
            }
            if word == Word::Update {
                self.clause = Clause::Tables;
            }
            if word == Word::Shutdown {
                self.expect = Expect::Operator;
            }
            if word == Word::Begin {
                self.expect = Expect::Statement;
            }
            if matches!(word, Word::Grant | Word::Revoke) {
                self.rights();
            }
        }
        holds
    }

    /// `all on t from x`: rights, what they are for and who has them stand side by side.
    fn rights(&mut self) {
        let (begun, mut says_whose) = (self.lexer.clone(), false);
        for _ in 0..CONDITION_TOKENS_MAX {
            let is_part = self.peek().is_some_and(|next| match next.kind {
                TokenKind::Word(word) => role(word) != Part::Statement || word == Word::Select,
                TokenKind::QuotedName(_) | TokenKind::String { .. } | TokenKind::Comma | TokenKind::Dot => {
                    true
                }
                TokenKind::Operator(Operator::Star) | TokenKind::Variable => true,
                _ => false,
            });
            if !is_part {
                break;
            }
            says_whose |= self.peek().is_some_and(|next| {
                let word = self.word(next.span);
                [&b"on"[..], b"to", b"from"].iter().any(|known| word.eq_ignore_ascii_case(known))
            });
            self.skip();
        }
        if says_whose {
            self.expect = Expect::Operator;
            self.last = Operand::Name;
        } else {
            self.lexer = begun;
        }
    }

    /// `copy t from program 'id'`, `copy (select 1) to program 'sh'`
    fn copies_program(&self) -> bool {
        let mut ahead = self
            .lexer
            .clone()
            .take(CONDITION_TOKENS_MAX)
            .filter(|token| !matches!(token.kind, TokenKind::Comment(_)));
        ahead.any(|token| self.word(token.span).eq_ignore_ascii_case(b"program"))
            && ahead.next().is_some_and(|token| matches!(token.kind, TokenKind::String { .. }))
    }

    /// Behind the condition in parentheses stands a statement, or it is the function with several arguments.
    /// Code goes on with a brace, a call or a word of its own, and compares with `==`.
    fn is_sql_condition(&self) -> bool {
        let mut depth = 0u32;
        let mut ahead = self.lexer.clone().take(CONDITION_TOKENS_MAX);
        while let Some(token) = ahead.next() {
            match token.kind {
                TokenKind::Open => depth += 1,
                TokenKind::Comma if depth == 1 => return true,
                TokenKind::Operator(Operator::Equal) if self.word(token.span) == b"==" => return false,
                TokenKind::Close if depth <= 1 => {
                    let mut rest = ahead.map(|token| token.kind);
                    return match rest.find(|kind| !matches!(kind, TokenKind::Comment(_))) {
                        Some(TokenKind::Word(word)) => {
                            role(word) == Part::Statement
                                && !matches!(
                                    word,
                                    Word::If | Word::While | Word::Do | Word::Use | Word::Start
                                )
                                || word == Word::Then
                        }
                        // A list of attacks leaves out what follows.
                        None => self.start != Start::Raw || self.tokens > 0,
                        _ => false,
                    };
                }
                TokenKind::Close => depth -= 1,
                _ => {}
            }
        }
        false
    }

    /// `if 5 > 3 then 3 < 5`: what follows THEN is compared again, and is no statement.
    fn is_spoken_condition(&self) -> bool {
        let mut ahead = self.lexer.clone().take(CONDITION_TOKENS_MAX).map(|token| token.kind);
        ahead.any(|kind| kind == TokenKind::Word(Word::Then))
            && matches!(ahead.next(), Some(TokenKind::Number | TokenKind::Word(Word::Name)))
            && matches!(ahead.next(), Some(TokenKind::Operator(sign)) if sign.is_comparison())
    }

    /// Behind the next word stands another one in parentheses, and nothing else.
    fn is_remark(&self) -> bool {
        let mut ahead = self.lexer.clone().skip(2).map(|token| token.kind);
        ahead.next() == Some(TokenKind::Word(Word::Name)) && ahead.next() == Some(TokenKind::Close)
    }

    /// What EXEC takes without parentheses: a known procedure, or a name with dots.
    pub(super) fn is_procedure(&self, name: Token, next: Option<TokenKind>) -> bool {
        if !matches!(name.kind, TokenKind::Word(_)) {
            return false;
        }
        let known = self.names.get(self.word(name.span)).is_some();
        known || matches!(next, Some(TokenKind::Dot | TokenKind::String { .. } | TokenKind::Variable))
    }
}

/// How far the condition behind IF is looked at.
const CONDITION_TOKENS_MAX: usize = 48;

/// Statements of few words, and the second words of those that have certain ones; of the others any name is
/// all there is.
const ORDERS: &[(&[u8], &[&[u8]])] = &[
    (b"table", &[]),
    (b"desc", &[]),
    (b"describe", &[]),
    (b"listen", &[]),
    (b"unlisten", &[]),
    (b"checkpoint", &[]),
    (b"explain", &[b"select", b"update", b"delete", b"insert", b"analyze", b"extended"]),
    (b"flush", &[b"privileges", b"tables", b"logs", b"status", b"hosts"]),
    (b"reset", &[b"master", b"slave", b"query", b"replica"]),
    (b"set", &[b"global", b"session", b"local", b"persist", b"role", b"names", b"password"]),
    (b"lock", &[b"tables", b"table"]),
    (b"unlock", &[b"tables"]),
    (b"optimize", &[b"table", b"local"]),
    (b"analyze", &[b"table", b"local"]),
    (b"repair", &[b"table"]),
    (b"check", &[b"table"]),
    (b"reindex", &[b"table", b"database", b"index", b"schema"]),
    (b"discard", &[b"all", b"plans", b"temp"]),
    (b"install", &[b"plugin"]),
    (b"purge", &[b"binary", b"master"]),
];

/// What SHOW shows.
const SHOWN: &[&[u8]] = &[
    b"tables",
    b"databases",
    b"schemas",
    b"columns",
    b"variables",
    b"grants",
    b"processlist",
    b"status",
    b"warnings",
    b"errors",
    b"create",
    b"full",
    b"global",
    b"session",
    b"fields",
    b"index",
    b"keys",
];
