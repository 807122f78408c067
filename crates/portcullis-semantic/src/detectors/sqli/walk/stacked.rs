//! Statements behind a semicolon that follows a number or a quote which the text did not open: what no table
//! of verbs needs to know.

use portcullis_lex::sql::{Comment, Operator, Token, TokenKind, Word};

use super::words::{Part, role};
use super::{Expect, Operand, Start, Walk};
use crate::detectors::sqli::*;

/// Words of a statement that has no sign, after its first one.
const WORDS_MAX: usize = 5;

/// Verbs of statements that are no words of the lexer.
const VERBS: &[&[u8]] = words!("sqli", "verbs");

/// Verbs that are a statement by themselves.
const ENDS: &[&[u8]] = &[
    b"abort",
    b"commit",
    b"rollback",
    b"begin",
    b"checkpoint",
    b"shutdown",
    b"vacuum",
    b"analyze",
    b"revert",
    b"reconfigure",
];

/// Tokens of a statement that a comment ends, after its first word.
const CUT_TOKENS_MAX: usize = 64;

/// Bytes of such a statement behind a quote that is not the first.
const CUT_BYTES_MAX: usize = 512;

/// Tokens that [`ORDERS`] look at, after the first word.
const ORDER_TOKENS_MAX: usize = 4;

impl Walk<'_, '_> {
    /// Takes a statement whose verb or arguments the grammar of statements does not know: one of [`ORDERS`],
    /// or any words that a comment ends. False if it is none. What follows, up to a semicolon, is its
    /// arguments.
    pub(super) fn foreign_statement(&mut self, token: Token) -> bool {
        let is_one =
            || self.is_of_orders(token) || self.is_cut_statement(token) || self.is_glued_statement(token);
        // `1;handler t open;handler t read first`: one more behind such a statement.
        let goes_on = self.start == Start::Raw && self.has(STACKED) && self.is_verb(token);
        if !goes_on && (!self.breaks_out() || !is_one()) {
            return false;
        }
        self.note(STACKED, self.span_to_next(token.span));
        self.expect = Expect::Arguments;
        self.last = Operand::Name;
        self.last_span = token.span;
        true
    }

    /// One token of the arguments of such a statement: any.
    pub(super) fn argument(&mut self, token: Token) -> bool {
        self.last_span = token.span;
        self.last = match token.kind {
            TokenKind::Semicolon => {
                self.expect = Expect::Statement;
                Operand::None
            }
            TokenKind::String { .. } => Operand::Text,
            TokenKind::Word(_) => {
                self.name(token.span);
                Operand::Name
            }
            TokenKind::Dot if !self.is_before_part() => return false,
            TokenKind::Number
            | TokenKind::QuotedName(_)
            | TokenKind::Variable
            | TokenKind::Operator(_)
            | TokenKind::Open
            | TokenKind::Close
            | TokenKind::Comma
            | TokenKind::Dot
            | TokenKind::OpenBrace
            | TokenKind::CloseBrace
            | TokenKind::Comment(_)
            | TokenKind::Other => Operand::Complex,
        };
        true
    }

    /// Nothing but a number stands before the semicolon that was read, or nothing but parentheses between it
    /// and a quote that the text did not open.
    pub(super) fn breaks_out(&self) -> bool {
        match self.start {
            Start::Quote(quote) => {
                let between = &self.text[self.begun..self.lexer.position()];
                let closes = between.iter().take_while(|b| b" )];\t\r\n".contains(b)).take(17).count();
                matches!(quote, b'\'' | b'"')
                    && !self.is_literal
                    && !self.is_opening
                    && closes <= 16
                    && between[..closes].contains(&b';')
            }
            Start::Raw => !self.is_inside && self.tokens == 2 && self.begins_with_number(),
        }
    }

    /// A statement of some dialect begins with it.
    fn is_verb(&self, token: Token) -> bool {
        let verb = self.word(token.span);
        matches!(token.kind, TokenKind::Word(word) if role(word) == Part::Statement)
            || VERBS.iter().any(|known| verb.eq_ignore_ascii_case(known))
    }

    /// `1;vacuum users`, `1;fetch c`: nothing but a number stands before the semicolon, no space behind it,
    /// and a verb of some dialect begins what is all of the rest: signs of SQL, or no more words than
    /// statements have that need no sign.
    fn is_glued_statement(&self, token: Token) -> bool {
        let is_glued = self.text[..token.span.start as usize].ends_with(b";");
        if self.start != Start::Raw || !is_glued {
            return false;
        }
        let verb = self.word(token.span);
        let (mut words, mut has_signs, mut count) = (0, false, 0);
        for next in self.lexer.clone().take(CUT_TOKENS_MAX) {
            count += 1;
            match next.kind {
                TokenKind::Word(_) | TokenKind::QuotedName(_) => words += 1,
                TokenKind::OpenBrace | TokenKind::CloseBrace | TokenKind::Other => return false,
                // `1;open=2`: pairs of a list.
                TokenKind::Operator(Operator::Equal | Operator::Colon) if count == 1 => return false,
                TokenKind::Comma if count == 1 => return false,
                TokenKind::Comment(_) | TokenKind::Number | TokenKind::Comma | TokenKind::Semicolon => {}
                TokenKind::String { .. }
                | TokenKind::Variable
                | TokenKind::Operator(_)
                | TokenKind::Open
                | TokenKind::Close
                | TokenKind::Dot => has_signs = true,
            }
        }
        let needs_nothing = ENDS.iter().any(|known| verb.eq_ignore_ascii_case(known));
        // `2;table for two`: words alone say it only where nobody writes words.
        let is_said = !has_signs && !self.pieces.field.takes_number;
        self.is_verb(token)
            && !is_said
            && (has_signs || (1..=WORDS_MAX).contains(&words) || needs_nothing && count == 0)
    }

    /// The tokens after `token` are those of one of [`ORDERS`].
    fn is_of_orders(&self, token: Token) -> bool {
        let first = self.word(token.span);
        let mut orders = ORDERS.iter().filter(|(known, _)| first.eq_ignore_ascii_case(known)).peekable();
        if orders.peek().is_none() {
            return false;
        }
        let mut ahead = [None; ORDER_TOKENS_MAX];
        let mut lexer = self.lexer.clone().take(2 * ORDER_TOKENS_MAX);
        for place in &mut ahead {
            *place = lexer.find(|token| !matches!(token.kind, TokenKind::Comment(_)));
        }
        let end = self.text.trim_ascii_end();
        // Words of two languages: nothing a sentence has between or behind them.
        let is_cut =
            end.ends_with(b"--") || [b'#', b';', b'+', b'-'].iter().any(|sign| end.ends_with(&[*sign]));
        let rest = &self.text[token.span.end as usize..];
        let holds = rest.iter().any(|b| matches!(b, b'\'' | b'@' | b'\\' | b'='));
        let is_glued = self.text[..token.span.start as usize].ends_with(b";");
        if !is_cut && !holds && !is_glued {
            return false;
        }
        orders.any(|(_, parts)| parts.iter().zip(ahead).all(|(part, token)| self.is_part(*part, token)))
    }

    fn is_part(&self, part: Next, token: Option<Token>) -> bool {
        let Some(token) = token else { return part == Next::End };
        match (part, token.kind) {
            (Next::Word(words), _) => {
                let text = self.word(token.span);
                words.iter().any(|known| text.eq_ignore_ascii_case(known))
            }
            (Next::Name, TokenKind::Word(_) | TokenKind::QuotedName(_)) => true,
            (Next::Text, TokenKind::String { .. }) | (Next::Open, TokenKind::Open) => true,
            (Next::Sign, TokenKind::Operator(_) | TokenKind::Open | TokenKind::Dot) => true,
            (Next::Number, TokenKind::Number) | (Next::End, TokenKind::Semicolon) => true,
            _ => false,
        }
    }

    /// A comment that says nothing ends the value: `--`, `-- -`, `#`; and no semicolon stands right before
    /// it. Behind a number a verb of SQL must begin it; another word behind a quote has signs of SQL behind
    /// it: sentences end so, too.
    fn is_cut_statement(&self, token: Token) -> bool {
        let end = self.text.trim_ascii_end();
        if !(end.ends_with(b"--") || end.ends_with(b"#") || end.ends_with(b"-- -") || end.ends_with(b"--+")) {
            return false;
        }
        let is_verb = matches!(token.kind, TokenKind::Word(word) if role(word) == Part::Statement);
        let is_raw = self.start == Start::Raw;
        // Of many quotes only the last ones are worth a look ahead of this length.
        let is_near = self.is_first || is_raw || end.len() - self.begun.min(end.len()) <= CUT_BYTES_MAX;
        if !is_near {
            return false;
        }
        // A random password may have all of these characters.
        if self.pieces.field.is_password && !is_verb {
            return false;
        }
        // `1; call John #`
        let is_said = is_raw && self.word(token.span).eq_ignore_ascii_case(b"call");
        if is_raw && !is_verb {
            return false;
        }
        let mut last = TokenKind::Word(Word::Name);
        let mut has_signs = false;
        for next in self.lexer.clone().take(CUT_TOKENS_MAX) {
            match next.kind {
                TokenKind::Comment(Comment::Dashes | Comment::Hash) => {
                    let says = self.word(next.span).iter().any(u8::is_ascii_alphanumeric);
                    let is_end = next.span.end as usize >= end.len();
                    let is_empty = is_raw && last == TokenKind::Semicolon;
                    return !says && is_end && !is_empty && (has_signs || is_verb && !is_said);
                }
                TokenKind::Comment(_) => continue,
                TokenKind::OpenBrace | TokenKind::CloseBrace | TokenKind::Other => return false,
                TokenKind::Open
                | TokenKind::Operator(_)
                | TokenKind::Dot
                | TokenKind::Variable
                | TokenKind::Semicolon
                | TokenKind::String { .. } => has_signs = true,
                TokenKind::Number
                | TokenKind::Word(_)
                | TokenKind::QuotedName(_)
                | TokenKind::Close
                | TokenKind::Comma => {}
            }
            last = next.kind;
        }
        false
    }
}

/// What stands at a place of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// One of these words.
    Word(&'static [&'static [u8]]),
    Name,
    Text,
    Open,
    Number,
    /// An operator, a parenthesis or a dot.
    Sign,
    /// A semicolon, or nothing.
    End,
}

/// Objects that CREATE, ALTER and DROP take, beside those of the grammar of statements.
const OBJECTS: Next = Next::Word(words!("sqli", "objects"));

/// Statements by their first words, where the grammar of statements is too narrow or knows nothing of them.
const ORDERS: &[(&[u8], &[Next])] = {
    use Next::*;
    &[
        (b"copy", &[Name, Word(&[b"to", b"from"]), Word(&[b"program"])]),
        (b"copy", &[Name, Word(&[b"to", b"from"]), Text]),
        (b"copy", &[Name, Word(&[b"to"]), Word(&[b"stdout"])]),
        (b"delete", &[Name, Word(&[b"where"]), Name, Sign]),
        (b"delete", &[Word(&[b"top"]), Open]),
        (b"insert", &[Name, Word(&[b"values"]), Open]),
        (b"insert", &[Name, Word(&[b"select"])]),
        (b"insert", &[Name, Open]),
        (b"insert", &[Word(&[b"or", b"ignore", b"low_priority", b"delayed", b"overwrite"]), Name]),
        (b"replace", &[Name, Word(&[b"values"]), Open]),
        (b"merge", &[Name, Word(&[b"using"])]),
        (b"vacuum", &[Word(&[b"into"]), Text]),
        (b"vacuum", &[Name, Word(&[b"into"]), Text]),
        (b"vacuum", &[Word(&[b"full", b"analyze", b"freeze"])]),
        (b"bulk", &[Word(&[b"insert"]), Name]),
        (
            b"restore",
            &[Word(&[b"headeronly", b"filelistonly", b"labelonly", b"verifyonly"]), Word(&[b"from"])],
        ),
        (b"restore", &[Word(&[b"log"]), Name, Word(&[b"from"])]),
        (b"backup", &[Word(&[b"log", b"certificate"]), Name, Word(&[b"to"])]),
        (b"backup", &[Word(&[b"master", b"service"]), Name]),
        (b"load", &[Text]),
        (b"create", &[OBJECTS, Name]),
        (
            b"create",
            &[Word(&[b"unique", b"temp", b"temporary", b"materialized", b"virtual", b"external"]), Name],
        ),
        (b"alter", &[OBJECTS, Name]),
        (b"alter", &[Word(&[b"system", b"session"]), Word(&[b"set", b"reset", b"kill"])]),
        (b"alter", &[Word(&[b"authorization"]), Word(&[b"on"])]),
        (b"drop", &[OBJECTS, Name]),
        (b"change", &[Word(&[b"master"]), Word(&[b"to"])]),
        (b"change", &[Word(&[b"replication"]), Word(&[b"source", b"filter"])]),
        (b"install", &[Word(&[b"component", b"soname"]), Text]),
        (b"uninstall", &[Word(&[b"component"]), Text]),
        (b"uninstall", &[Word(&[b"plugin"]), Name]),
        (b"deny", &[Name, Word(&[b"on", b"to"])]),
        (b"kill", &[Word(&[b"connection", b"query"]), Number]),
        (b"begin", &[Word(&[b"tran", b"transaction"])]),
        (b"start", &[Word(&[b"transaction", b"slave", b"replica"]), End]),
        (b"stop", &[Word(&[b"slave", b"replica"]), End]),
        (b"print", &[Text, End]),
        (b"refresh", &[Word(&[b"materialized"]), Word(&[b"view"])]),
        (b"import", &[Word(&[b"foreign"]), Word(&[b"schema"])]),
        (b"security", &[Word(&[b"label"]), Word(&[b"on", b"for"])]),
        (b"reassign", &[Word(&[b"owned"]), Word(&[b"by"])]),
        (b"binlog", &[Text]),
        (b"notify", &[Name, End]),
        (b"reconfigure", &[End]),
        (b"reconfigure", &[Word(&[b"with"])]),
        (b"revert", &[End]),
    ]
};
