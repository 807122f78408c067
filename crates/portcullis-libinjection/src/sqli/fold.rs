//! Folds tokens to at most five, so that the many spellings of an attack share a few fingerprints.
//!
//! Rules look at two or three neighbouring tokens and take away what does not change a statement's shape:
//! `1 + 1` is a number, `a.b` a name, `- (` a parenthesis. A window of six tokens slides over the input and
//! mostly starts again from its left end after a rule applied. Each application takes a token away or changes
//! a kind for good, and the window is small, so the work is linear in the number of tokens.

use super::Context;
use super::token::{Token, TokenKind, TokenKind::*};
use super::tokenizer::{Seen, Tokenizer};
use super::words;

/// The most tokens that make up a fingerprint.
pub const TOKENS_MAX: usize = 5;

/// The folded beginning of an input.
#[derive(Clone, Debug)]
pub struct Folded<'a> {
    window: [Token<'a>; WINDOW],
    len: usize,
    pub(super) seen: Seen,
}

/// One more than count, since the kind of a token can depend on the next one.
const WINDOW: usize = TOKENS_MAX + 1;

impl<'a> Folded<'a> {
    /// The tokens left: at most [`TOKENS_MAX`], or one more if one of them is [`Evil`].
    pub fn tokens(&self) -> &[Token<'a>] {
        &self.window[..self.len]
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut Token<'a>> {
        self.window[..self.len].last_mut()
    }

    /// Returns the number of tokens that were read to get these, comments and skipped ones included.
    pub fn tokens_read(&self) -> usize {
        self.seen.tokens
    }
}

/// Tokenizes and folds an input.
pub fn fold(input: &[u8], context: Context) -> Folded<'_> {
    let mut folder = Folder {
        source: Tokenizer::new(input, context),
        source_ended: false,
        window: [Token::NONE; WINDOW],
        filled: 0,
        left: 0,
        comment: None,
    };
    let len = folder.run();
    Folded { window: folder.window, len, seen: folder.source.seen }
}

struct Folder<'a> {
    source: Tokenizer<'a>,
    source_ended: bool,
    window: [Token<'a>; WINDOW],
    /// Tokens in the window.
    filled: usize,
    /// The first token to which the rules apply: tokens before it are done. Never more than `filled`.
    left: usize,
    /// The comment read last, if no other token followed.
    comment: Option<Token<'a>>,
}

/// The next step after the rules for two tokens.
enum Pair {
    /// A rule applied: look again.
    Again,
    /// None did: look at three tokens.
    Triple,
    /// An attack, whatever follows.
    Evil,
}

impl<'a> Folder<'a> {
    /// Returns the number of tokens that count.
    fn run(&mut self) -> usize {
        if !self.skip_preamble() {
            return 0;
        }
        loop {
            if self.filled >= TOKENS_MAX && self.is_full_of_arithmetic() {
                // Start over with the first token, and the one not looked at yet.
                if self.filled > TOKENS_MAX {
                    self.window[1] = self.window[TOKENS_MAX];
                    self.filled = 2;
                } else {
                    self.filled = 1;
                }
                self.left = 0;
            }
            if self.source_ended || self.left >= TOKENS_MAX {
                break;
            }
            if !self.fill(2) {
                continue;
            }
            match self.fold_pair() {
                Pair::Again => continue,
                Pair::Evil => return self.left + 2,
                Pair::Triple => {}
            }
            if !self.fill(3) {
                continue;
            }
            if !self.fold_triple() {
                self.left += 1;
            }
        }
        let mut len = self.filled.min(TOKENS_MAX);
        if len < TOKENS_MAX
            && let Some(comment) = self.comment
        {
            self.window[len] = comment;
            len += 1;
        }
        len
    }

    /// Reads the first token that is not a comment, an opening parenthesis, a type or a unary operator.
    fn skip_preamble(&mut self) -> bool {
        let first = self
            .source
            .find(|token| !matches!(token.kind, Comment | LeftParen | SqlType) && !token.is_unary_operator());
        if let Some(token) = first {
            self.window[0] = token;
            self.filled = 1;
        }
        first.is_some()
    }

    /// Reads on until the rules have so many tokens from `left` on. Otherwise all tokens count as done.
    fn fill(&mut self, wanted: usize) -> bool {
        while self.filled - self.left < wanted {
            if self.source_ended || self.filled == WINDOW {
                self.left = self.filled;
                return false;
            }
            match self.source.next() {
                None => self.source_ended = true,
                Some(token) if token.kind == Comment => self.comment = Some(token),
                Some(token) => {
                    self.comment = None;
                    self.window[self.filled] = token;
                    self.filled += 1;
                }
            }
        }
        true
    }

    /// Returns true if the five tokens are really one value, so that they should not use up the fingerprint.
    fn is_full_of_arithmetic(&self) -> bool {
        let [a, b, c, d, e, _] = &self.window;
        matches!(
            (a.kind, b.kind, c.kind, d.kind, e.kind),
            (Number, Operator | Comma, LeftParen, Number, RightParen)
                | (Bareword, Operator, LeftParen, Bareword | Number, RightParen)
                | (Number, RightParen, Comma, LeftParen, Number)
                | (Bareword, RightParen, Operator, LeftParen, Bareword)
        )
    }

    /// Takes tokens from the window's end. Those are not always the ones a rule looked at, but so it is in
    /// the original.
    fn drop_last(&mut self, count: usize) {
        self.filled -= count;
    }

    fn drop_and_restart(&mut self, count: usize) -> Pair {
        self.drop_last(count);
        self.left = 0;
        Pair::Again
    }

    fn drop_and_step_back(&mut self) -> Pair {
        self.drop_last(1);
        self.left = self.left.saturating_sub(1);
        Pair::Again
    }

    fn set_kind(&mut self, at: usize, kind: TokenKind) -> Pair {
        self.window[at].kind = kind;
        Pair::Again
    }

    fn fold_pair(&mut self) -> Pair {
        let left = self.left;
        let (a, b) = (self.window[left], self.window[left + 1]);
        match (a.kind, b.kind) {
            // 'a' 'b' is one string, and the second `;` of two says nothing.
            (String, String) | (Semicolon, Semicolon) => {
                self.drop_last(1);
                return Pair::Again;
            }
            (Operator | Logic, _) if b.kind == SqlType || b.is_unary_operator() => {
                return self.drop_and_restart(1);
            }
            (LeftParen, _) if b.is_unary_operator() => return self.drop_and_step_back(),
            _ => {}
        }
        if let Some((value, kind)) = merge(&a, &b) {
            self.window[left] = Token { kind, value, ..a };
            return self.drop_and_step_back();
        }
        match (a.kind, b.kind) {
            // A function, but a statement in Transact-SQL.
            (Semicolon, Function)
                if b.value.get(..2).is_some_and(|head| head.eq_ignore_ascii_case(b"IF")) =>
            {
                return self.set_kind(left + 1, Tsql);
            }
            (Bareword | Variable, LeftParen) if a.is_one_of(&CALLABLE) => {
                return self.set_kind(left, Function);
            }
            (Keyword, _) if a.is_one_of(&["IN", "NOT IN"]) => {
                return self.set_kind(left, if b.kind == LeftParen { Operator } else { Bareword });
            }
            (Operator, _) if a.is_one_of(&["LIKE", "NOT LIKE"]) => {
                self.window[left].kind = if b.kind == LeftParen { Function } else { Operator };
            }
            (SqlType, Bareword | Number | SqlType | LeftParen | Function | Variable | String) => {
                self.window[left] = b;
                return self.drop_and_restart(1);
            }
            // Too many collations to list them, but they have an underscore. (The original's text ends at a
            // NUL.)
            (Collate, Bareword)
                if b.value.split(|&byte| byte == 0).next().is_some_and(|text| text.contains(&b'_')) =>
            {
                self.window[left + 1].kind = SqlType;
                self.left = 0;
            }
            // Transact-SQL reads \%1 as 0 % 1, and \1 as 1.
            (Backslash, _) if b.is_arithmetic_operator() => {
                self.left = 0;
                return self.set_kind(left, Number);
            }
            (Backslash, _) => {
                self.window[left] = b;
                return self.drop_and_restart(1);
            }
            (LeftParen, LeftParen) | (RightParen, RightParen) => return self.drop_and_restart(1),
            // MySQL takes {``.``.name} for a name: rare enough to be an attack.
            (LeftBrace, Bareword) if b.value.is_empty() => {
                self.window[left + 1].kind = Evil;
                return Pair::Evil;
            }
            // ODBC's {name expression} is the expression.
            (LeftBrace, Bareword) => return self.drop_and_restart(2),
            (_, RightBrace) => return self.drop_and_restart(1),
            _ => {}
        }
        Pair::Triple
    }

    /// Applies the rules for three tokens; returns true if one applied.
    fn fold_triple(&mut self) -> bool {
        let left = self.left;
        let (a, b, c) = (self.window[left], self.window[left + 1], self.window[left + 2]);
        match (a.kind, b.kind, c.kind) {
            // The first of them stands for all three.
            (Number, Operator, Number)
            | (Logic, _, Logic)
            | (Variable, Operator, Variable | Number | Bareword)
            | (Bareword | Number, Operator, Number | Bareword)
            | (Bareword | Number | String | Variable, Comma, Number | Bareword | String | Variable)
            | (Bareword, Dot, Bareword) => self.restart_without(2),
            (Operator, middle, Operator) if middle != LeftParen => self.restart_without(2),
            (Bareword | Number | Variable | String, Operator, SqlType) if b.value == b"::" => {
                self.restart_without(2)
            }
            // SELECT -1 is SELECT 1, and SELECT .a is SELECT a.
            (Expression | Group | Comma, _, LeftParen)
            | (Keyword | Expression | Group, _, Number | Bareword | Variable | String | Function)
            | (Comma, _, Function)
                if b.is_unary_operator() =>
            {
                self.restart_without_middle()
            }
            (Expression, Dot, Bareword) => self.restart_without_middle(),
            // 1,-1: go back to before the comma, as 1,1 folds to 1.
            (Comma, _, Number | Bareword | Variable | String) if b.is_unary_operator() => {
                self.restart_without(3)
            }
            // USER() takes no argument: this is something else.
            (Function, LeftParen, argument) if argument != RightParen && a.is("USER") => {
                self.window[left].kind = Bareword;
                false
            }
            _ => false,
        }
    }

    fn restart_without(&mut self, count: usize) -> bool {
        self.drop_last(count);
        self.left = 0;
        true
    }

    fn restart_without_middle(&mut self) -> bool {
        self.window[self.left + 1] = self.window[self.left + 2];
        self.restart_without(1)
    }
}

/// Names that are functions only when called.
const CALLABLE: [&str; 11] = [
    "USER_ID",
    "USER_NAME",
    "DATABASE",
    "PASSWORD",
    "USER",
    "CURRENT_USER",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "LOCALTIME",
    "LOCALTIMESTAMP",
];

/// `UNION` and `ALL` make `UNION ALL`.
fn merge(a: &Token<'_>, b: &Token<'_>) -> Option<(&'static [u8], TokenKind)> {
    let can_begin =
        matches!(a.kind, Keyword | Bareword | Operator | Union | Function | Expression | Tsql | SqlType);
    let can_follow = matches!(
        b.kind,
        Keyword | Bareword | Operator | Union | Function | Expression | Tsql | SqlType | Logic
    );
    if can_begin && can_follow { words::phrase_of(a.value, b.value) } else { None }
}
