//! The grammar of statements, as far as two tokens after the first word show it.
//!
//! Most of these words are English, too. A statement counts only where its object or its next keyword
//! follows.

use portcullis_lex::sql::{Operator, Token, TokenKind, Word};

use super::words::{Part, role};
use super::{Start, Walk};

/// The two tokens after the first word of a statement, and how it is joined to what stands before it.
#[derive(Clone, Copy)]
pub(super) struct Following {
    /// The tokens.
    pub(super) tokens: [Option<Token>; 2],
    /// Their kinds.
    pub(super) first: Option<TokenKind>,
    pub(super) second: Option<TokenKind>,
    /// The first one as a word.
    pub(super) word: Option<Word>,
    /// A semicolon stands before the statement.
    pub(super) is_stacked: bool,
}

impl Following {
    pub(super) fn new(tokens: [Option<Token>; 2], is_stacked: bool) -> Following {
        let [first, second] = tokens.map(|token| token.map(|token| token.kind));
        let word = match first {
            Some(TokenKind::Word(word)) => Some(word),
            _ => None,
        };
        Following { tokens, first, second, word, is_stacked }
    }

    /// Nothing follows, or a semicolon.
    fn ends(&self) -> bool {
        matches!(self.first, None | Some(TokenKind::Semicolon))
    }

    /// `drop table t`, `create or replace view`, `truncate t`
    fn is_definition(&self, word: Word) -> bool {
        let is_prose = matches!(
            self.second,
            Some(TokenKind::Word(word))
                if word == Word::Not
                    || is_object(word)
                    || matches!(role(word), Part::Clause | Part::Compare | Part::Join)
        );
        self.word.is_some_and(is_object) && is_name(self.second) && !is_prose
            || self.word == Some(Word::Or)
            || word == Word::Truncate && is_name(self.first) && self.second.is_none()
            || word == Word::Create && matches!(self.second, Some(TokenKind::Word(word)) if is_object(word))
    }

    /// `declare @a int`; `;declare a int`
    fn is_declaration(&self) -> bool {
        matches!(self.first, Some(TokenKind::Variable))
            || is_name(self.first) && matches!(self.second, Some(TokenKind::Word(_))) && self.is_stacked
    }

    /// `set @a = 1`, `set a := 1`
    fn is_assignment(&self) -> bool {
        let assigns = matches!(self.second, Some(TokenKind::Operator(Operator::Equal | Operator::Assign)));
        matches!(self.first, Some(TokenKind::Variable)) || is_name(self.first) && assigns
    }

    /// `begin declare`, `;begin`, `begin dbms_lock.sleep(5)`
    fn is_block(&self) -> bool {
        match self.first {
            None => self.is_stacked,
            Some(TokenKind::Word(Word::Name)) => {
                matches!(self.second, Some(TokenKind::Dot | TokenKind::Open))
            }
            Some(TokenKind::Word(Word::Declare | Word::Goto | Word::If | Word::Exec | Word::Execute)) => true,
            Some(TokenKind::Word(_)) => self.is_stacked,
            _ => false,
        }
    }

    /// `;use t`, and nothing but another statement after it.
    fn is_use(&self) -> bool {
        let ends = match self.second {
            None | Some(TokenKind::Semicolon) => true,
            Some(TokenKind::Word(next)) => role(next) == Part::Statement,
            _ => false,
        };
        self.is_stacked && is_name(self.first) && ends
    }

    /// `copy t from`, `copy t(a)`, `copy (select 1)`
    fn is_copy(&self) -> bool {
        is_name(self.first) && matches!(self.second, Some(TokenKind::Word(Word::From) | TokenKind::Open))
            || matches!(self.first, Some(TokenKind::Open))
    }
}

/// A word or a quoted name.
fn is_name(kind: Option<TokenKind>) -> bool {
    matches!(kind, Some(TokenKind::Word(_) | TokenKind::QuotedName(_)))
}

/// What double quotes hold.
fn is_double_quoted(kind: Option<TokenKind>) -> bool {
    matches!(kind, Some(TokenKind::String { quote: b'"', closed: true }))
}

/// A kind of object of a database.
fn is_object(word: Word) -> bool {
    matches!(
        word,
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
}

impl Walk<'_, '_> {
    /// True if a statement that begins with `word`, other than SELECT, goes on as `next` says.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a statement begins with few of the words")]
    pub(super) fn is_statement(&self, word: Word, next: &Following) -> bool {
        use TokenKind as T;
        match word {
            Word::Drop | Word::Alter | Word::Create | Word::Truncate => next.is_definition(word),
            Word::Insert | Word::Merge | Word::Replace => {
                next.word == Some(Word::Into) && is_name(next.second)
            }
            Word::Delete => next.word == Some(Word::From) && is_name(next.second),
            Word::Update => {
                (is_name(next.first) || is_double_quoted(next.first))
                    && (next.second == Some(T::Word(Word::Set)) || self.joins_names(next.tokens[1]))
            }
            Word::Exec | Word::Execute => self.is_execution(next),
            Word::Declare => next.is_declaration(),
            Word::Set => next.is_assignment(),
            Word::Waitfor => self.is_wait(next),
            Word::Shutdown => next.ends() || next.word == Some(Word::With) || next.is_stacked,
            // PostgreSQL's `do $$ .. $$`
            Word::Do if matches!(next.first, Some(T::String { .. })) => {
                next.is_stacked && self.text_of(next.tokens[0]).starts_with(b"$")
            }
            Word::Call | Word::Do => {
                is_name(next.first) && (next.second == Some(T::Open) || self.joins_names(next.tokens[1]))
            }
            Word::If | Word::While => self.is_condition(next),
            Word::Begin => next.is_block(),
            Word::Goto => is_name(next.first) && (next.is_stacked || self.start != Start::Raw),
            Word::Load => self.text_of(next.tokens[0]).eq_ignore_ascii_case(b"data"),
            Word::Grant | Word::Revoke => self.is_grant(next),
            Word::Use => next.is_use(),
            Word::Show => {
                let shown = self.text_of(next.tokens[0]);
                SHOWN.iter().any(|known| shown.eq_ignore_ascii_case(known))
            }
            Word::Handler => self.text_of(next.tokens[1]).eq_ignore_ascii_case(b"open"),
            Word::Copy => next.is_copy(),
            Word::Backup | Word::Restore => next.word == Some(Word::Database),
            Word::Attach => next.word == Some(Word::Database) || matches!(next.first, Some(T::String { .. })),
            Word::Pragma | Word::Dbcc => {
                is_name(next.first) && matches!(next.second, Some(T::Open | T::Operator(_)) | None)
            }
            Word::Prepare => is_name(next.first) && next.second == Some(T::Word(Word::From)),
            Word::Print | Word::Kill | Word::Raiserror => {
                matches!(next.first, Some(T::Variable | T::Number | T::Open)) && next.is_stacked
            }
            Word::Rename => {
                next.word == Some(Word::Table)
                    || self.text_of(next.tokens[0]).eq_ignore_ascii_case(b"tables") && is_name(next.second)
            }
            Word::With => is_name(next.first) && next.second == Some(T::Word(Word::As)),
            Word::Commit | Word::Rollback | Word::Vacuum => next.is_stacked && next.ends(),
            Word::Lock => next.word == Some(Word::Table),
            _ => false,
        }
    }

    /// The text of a token, empty if there is none.
    fn text_of(&self, token: Option<Token>) -> &[u8] {
        token.map_or(&[], |token| self.word(token.span))
    }

    /// `exec('..')`, `exec @a`, `exec xp_cmdshell`
    fn is_execution(&self, next: &Following) -> bool {
        use TokenKind as T;
        matches!(next.first, Some(T::Open | T::String { .. } | T::Variable | T::QuotedName(_)))
            || next.tokens[0].is_some_and(|token| self.is_procedure(token, next.second))
    }

    /// `waitfor delay '0:0:5'`
    fn is_wait(&self, next: &Following) -> bool {
        use TokenKind as T;
        matches!(next.word, Some(Word::Delay | Word::Time))
            && matches!(next.second, Some(T::String { .. } | T::Variable | T::Number))
            // A list of attacks leaves out how long; two words alone are a search.
            || next.word == Some(Word::Delay) && next.second.is_none() && self.tokens > 0
    }

    /// `if (1=1) select`, `if 5 > 3`, `if not exists`
    fn is_condition(&self, next: &Following) -> bool {
        matches!(next.first, Some(TokenKind::Open)) && self.is_sql_condition()
            || matches!(
                (next.first, next.second),
                (Some(TokenKind::Number), Some(TokenKind::Operator(second))) if second.is_comparison()
            ) && !self.is_spoken_condition()
            || matches!(next.word, Some(Word::Not | Word::Exists))
    }

    /// `grant all`, `grant a, b`, `grant dba to scott`
    fn is_grant(&self, next: &Following) -> bool {
        is_name(next.first) && matches!(next.second, Some(TokenKind::Word(Word::On) | TokenKind::Comma))
            || matches!(next.word, Some(Word::All | Word::Select))
            || (next.is_stacked || self.start != Start::Raw) && is_name(next.first) && {
                let word = self.text_of(next.tokens[1]);
                word.eq_ignore_ascii_case(b"to") || word.eq_ignore_ascii_case(b"from")
            }
    }

    /// After the condition in parentheses stands a statement, or it is the function with several arguments.
    /// Code goes on with a brace, a call or a word of its own, and compares with `==`.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other tokens are passed over")]
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

    /// What EXEC takes without parentheses: a known procedure, or a name with dots.
    pub(super) fn is_procedure(&self, name: Token, next: Option<TokenKind>) -> bool {
        if !matches!(name.kind, TokenKind::Word(_)) {
            return false;
        }
        let text = self.word(name.span);
        let is_system = [&b"sp_"[..], b"xp_"]
            .iter()
            .any(|start| text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start)));
        let known = is_system || self.names.get(text).is_some();
        known || matches!(next, Some(TokenKind::Dot | TokenKind::String { .. } | TokenKind::Variable))
    }
}

/// Tokens of the condition after IF that are looked at.
pub(super) const CONDITION_TOKENS_MAX: usize = 48;

/// Second words of SHOW.
const SHOWN: &[&[u8]] = words!("sqli", "shown");
