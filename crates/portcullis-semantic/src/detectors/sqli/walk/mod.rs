//! Walks a piece of SQL token by token and notes what it does.
//!
//! The walk knows two expectations, an operand or an operator, and a stack of parentheses. What does not fit is a
//! violation: a reading from a quote ends there; the reading of the value as it stands goes on, but what it notes from there
//! on is loose. No tree is built; each token is looked at once, with a look ahead of two.

mod clause;
mod outcome;
mod statement;
mod words;

use portcullis_lex::sql::{Lexer, Operator, Token, TokenKind, Word};
use portcullis_types::Span;

use self::words::{Part, role};
use super::names::{Group, Names};
use super::*;
use crate::KindId;

/// Parentheses that are told apart; deeper ones are all taken as groups.
const DEPTH_MAX: usize = 48;
/// Violations after which the rest of a value is not SQL enough to be walked further.
const VIOLATIONS_MAX: u32 = 400;

/// How the piece begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// The value as it stands.
    Raw,
    /// Behind a quote that ends a string, or a back-tick that ends a name.
    Quote(u8),
}

/// True if `rest`, which stands behind a quote, can go on as SQL: an operator, a parenthesis, a comment, or a word that
/// follows an operand.
pub(super) fn may_follow_quote(rest: &[u8]) -> bool {
    // The first token tells; how long it is does not matter.
    let rest = &rest[..rest.len().min(64)];
    let Some(token) = Lexer::new(rest, 0).next() else { return false };
    match token.kind {
        TokenKind::Operator(_) | TokenKind::Close | TokenKind::Comma | TokenKind::Semicolon => true,
        TokenKind::Comment(_) | TokenKind::CloseBrace => true,
        TokenKind::Word(word) => follows_operand(word),
        TokenKind::Other => token.span.of(rest) == b"]",
        // `'1'1`: no. `' 'or'`: strings stand side by side.
        TokenKind::String { closed, .. } => closed && token.span.start > 0,
        TokenKind::Variable => token.span.of(rest) == b"?",
        TokenKind::Open => {
            let inner = Lexer::new(rest, token.span.end as usize)
                .find(|token| !matches!(token.kind, TokenKind::Comment(_) | TokenKind::Open));
            inner.is_some_and(|inner| inner.kind == TokenKind::Word(Word::Select))
        }
        _ => false,
    }
}

/// Words that may stand where an operator is expected, aliases aside.
fn follows_operand(word: Word) -> bool {
    !matches!(role(word), Part::Constant | Part::Unary | Part::Name)
        || matches!(word, Word::Not | Word::Binary)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    /// The beginning: either.
    Start,
    Operand,
    Operator,
    /// Behind a semicolon.
    Statement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operand {
    None,
    Number,
    Text,
    Literal,
    Name,
    Call,
    Select,
    Variable,
    Complex,
}

impl Operand {
    fn is_constant(self) -> bool {
        matches!(self, Operand::Number | Operand::Text | Operand::Literal)
    }
}

/// Which part of a statement the walk is in, as far as aliases matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clause {
    Expression,
    Columns,
    Tables,
    Ordering,
    /// Statements that take operands side by side: `exec`, `declare`, `create`, ...
    Free,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    is_call: bool,
    is_select: bool,
    clause: Clause,
    joined: bool,
    compared: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Walk<'t, 'n> {
    text: &'t [u8],
    names: &'n Names,
    lexer: Lexer<'t>,
    start: Start,
    from: usize,
    expect: Expect,
    clause: Clause,
    stack: [Frame; DEPTH_MAX],
    depth: usize,
    /// An AND, OR, WHERE or the like stands before the current condition.
    joined: bool,
    /// The current condition has its comparison.
    compared: bool,
    joined_at: u32,
    last: Operand,
    last_span: Span,
    /// The left side of a comparison whose right side comes next.
    comparing: Option<(Operand, Span)>,
    aliased: bool,
    after_union: bool,
    /// Only words since the SELECT: English has that, too.
    only_words: bool,
    select_at: Option<Span>,
    union_at: Option<Span>,
    clean: bool,
    violations: u32,
    tokens: u32,
    ended: bool,
    begins_with_word: bool,
    /// The name before a parenthesis is a function that chooses by its first argument.
    chooses: bool,
    /// Where the comment that ended the piece begins.
    comment_at: u32,
    clean_facts: [Option<Span>; KINDS.len()],
    loose_facts: [Option<Span>; KINDS.len()],
}

const FRAME: Frame =
    Frame { is_call: false, is_select: false, clause: Clause::Expression, joined: false, compared: false };
impl<'t, 'n> Walk<'t, 'n> {
    pub fn new(text: &'t [u8], names: &'n Names) -> Walk<'t, 'n> {
        Walk {
            text,
            names,
            lexer: Lexer::new(text, 0),
            start: Start::Raw,
            from: 0,
            expect: Expect::Start,
            clause: Clause::Expression,
            stack: [FRAME; DEPTH_MAX],
            depth: 0,
            joined: false,
            compared: false,
            joined_at: 0,
            last: Operand::None,
            last_span: Span::default(),
            comparing: None,
            aliased: false,
            after_union: false,
            only_words: true,
            select_at: None,
            union_at: None,
            clean: true,
            violations: 0,
            tokens: 0,
            ended: false,
            begins_with_word: false,
            chooses: false,
            comment_at: 0,
            clean_facts: [None; KINDS.len()],
            loose_facts: [None; KINDS.len()],
        }
    }

    pub fn reset(&mut self) {
        *self = Walk::new(self.text, self.names);
    }

    /// Walks from byte `from`.
    pub fn run(&mut self, start: Start, from: usize) {
        self.start = start;
        self.from = from;
        self.lexer = Lexer::new(self.text, from);
        if start != Start::Raw {
            self.expect = Expect::Operator;
            self.last = Operand::Text;
            self.last_span = Span::new(from, from);
        }
        while let Some(token) = self.lexer.next() {
            let fits = self.step(token);
            self.tokens += u32::from(!matches!(token.kind, TokenKind::Comment(_)));
            if self.ended {
                break;
            }
            if !fits && !self.violation() {
                break;
            }
        }
        self.finish();
    }

    /// What does not fit. False if the walk ends here.
    fn violation(&mut self) -> bool {
        self.boundary();
        self.violations += 1;
        self.clean = false;
        if self.start != Start::Raw || self.violations > VIOLATIONS_MAX {
            return false;
        }
        self.expect = Expect::Operator;
        self.last = Operand::None;
        self.depth = 0;
        self.joined = false;
        self.compared = false;
        self.comparing = None;
        self.clause = Clause::Expression;
        self.after_union = false;
        self.select_at = None;
        true
    }

    fn note(&mut self, kind: KindId, span: Span) {
        let facts = if self.clean { &mut self.clean_facts } else { &mut self.loose_facts };
        facts[usize::from(kind.0)].get_or_insert(span);
    }

    fn has(&self, kind: KindId) -> bool {
        self.clean_facts[usize::from(kind.0)].is_some()
    }

    fn word(&self, span: Span) -> &'t [u8] {
        span.of(self.text)
    }

    /// The next significant token, not taken.
    fn peek(&self) -> Option<Token> {
        self.peeks()[0]
    }

    /// Takes the token that [`Walk::peek`] shows.
    fn skip(&mut self) {
        self.lexer.by_ref().find(|token| !matches!(token.kind, TokenKind::Comment(_)));
    }

    fn peeks(&self) -> [Option<Token>; 2] {
        let mut ahead = self.lexer.clone();
        let mut next = || ahead.by_ref().take(8).find(|token| !matches!(token.kind, TokenKind::Comment(_)));
        [next(), next()]
    }

    /// Takes one token. False if it does not fit.
    fn step(&mut self, token: Token) -> bool {
        match token.kind {
            TokenKind::Comment(comment) => return self.comment(comment, token.span),
            TokenKind::OpenBrace => {
                // `{fn x()}`, `{x !0}`: the word belongs to the brace.
                let is_odbc = matches!(
                    self.peek(),
                    Some(Token { kind: TokenKind::Word(_) | TokenKind::QuotedName(_), .. })
                );
                if is_odbc && self.expect != Expect::Operator {
                    self.skip();
                    self.note(BRACE, token.span);
                    self.expect = Expect::Operand;
                    return true;
                }
                return false;
            }
            _ => {}
        }
        match self.expect {
            Expect::Start => self.begin(token),
            Expect::Statement => self.statement_or_end(token),
            Expect::Operand => self.operand(token),
            Expect::Operator => self.operator(token),
        }
    }

    /// The first token of a value as it stands.
    fn begin(&mut self, token: Token) -> bool {
        self.expect = Expect::Operand;
        self.begins_with_word = matches!(token.kind, TokenKind::Word(Word::Name));
        match token.kind {
            TokenKind::Word(word) => match role(word) {
                Part::Statement if self.statement(word, token.span, STATEMENT) => true,
                Part::Name | Part::Constant | Part::Unary => self.operand(token),
                // `or 1=1`: the middle of an expression.
                _ if self.peek().is_some_and(|next| next.kind == TokenKind::Open)
                    && role(word) == Part::Filler =>
                {
                    self.operand(token)
                }
                Part::Statement => self.operand(token),
                _ => {
                    self.note(BARE_TAIL, token.span);
                    self.operator(token)
                }
            },
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
                self.note(BARE_TAIL, token.span);
                self.operator(token)
            }
            TokenKind::Semicolon => self.operator(token),
            TokenKind::Other if self.word(token.span) == b"]" => self.operator(token),
            _ => self.operand(token),
        }
    }

    fn operand(&mut self, token: Token) -> bool {
        match token.kind {
            TokenKind::Number => self.take(Operand::Number, token.span),
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
                Operator::Plus | Operator::Minus | Operator::Not | Operator::Tilde | Operator::Match,
            ) => true,
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
            _ => false,
        }
    }

    fn operand_word(&mut self, word: Word, span: Span) -> bool {
        let before_open = self.peek().is_some_and(|next| next.kind == TokenKind::Open);
        match role(word) {
            Part::Constant => self.take(Operand::Literal, span),
            Part::Unary => {
                match word {
                    // `select top 5 x`: the number belongs to the word.
                    Word::Top if self.peek().is_some_and(|next| next.kind == TokenKind::Number) => {
                        self.skip();
                    }
                    Word::Case => {
                        self.note(CASE_WHEN, span);
                        self.clause_keeps();
                    }
                    Word::Row | Word::Time | Word::Some | Word::Any if !before_open => {
                        return self.take(Operand::Name, span);
                    }
                    _ => {}
                }
                true
            }
            Part::Name => {
                self.name_operand(span);
                true
            }
            Part::Statement if word == Word::Select => {
                self.select(span);
                true
            }
            // `if(...)`, `replace(...)`, `left(...)`, `insert(...)` are functions.
            _ if before_open
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
                Word::Values => true,
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
            _ => false,
        }
    }

    fn operator(&mut self, token: Token) -> bool {
        match token.kind {
            TokenKind::Operator(operator) => self.sign(operator, token.span),
            TokenKind::Dot => {
                self.expect = Expect::Operand;
                self.last = Operand::None;
                true
            }
            TokenKind::Open => self.open_after_operand(token.span),
            TokenKind::Close | TokenKind::CloseBrace => {
                self.close(token.span);
                true
            }
            TokenKind::Other if self.word(token.span) == b"]" => {
                self.close(token.span);
                true
            }
            TokenKind::Comma => {
                self.boundary();
                self.expect = Expect::Operand;
                self.aliased = false;
                self.last = Operand::None;
                self.only_words = false;
                true
            }
            TokenKind::Semicolon => {
                self.boundary();
                self.depth = 0;
                self.clause = Clause::Expression;
                self.joined = false;
                self.expect = Expect::Statement;
                true
            }
            TokenKind::Word(word) => self.operator_word(word, token.span),
            TokenKind::Number => self.clause == Clause::Free && self.take(Operand::Number, token.span),
            TokenKind::String { closed, .. } => self.string_after_operand(closed, token.span),
            TokenKind::QuotedName(_) => {
                self.name(token.span);
                self.alias()
            }
            TokenKind::Variable => {
                let text = self.word(token.span);
                if text == b"?" {
                    // PostgreSQL's JSON operator, or a URL that was glued on.
                    self.expect = Expect::Operand;
                    return self.depth == 0 && self.start != Start::Raw;
                }
                if self.is_system_variable(text) {
                    self.note(SYSTEM_VARIABLE, token.span);
                }
                self.alias()
            }
            _ => false,
        }
    }

    fn sign(&mut self, operator: Operator, span: Span) -> bool {
        self.only_words = false;
        match operator {
            Operator::Ampersands => self.join(span),
            Operator::Pipes => {
                // Concatenation in most dialects, OR in MySQL: a condition if a comparison follows.
                self.boundary();
                self.joined = true;
                self.compared = false;
                self.joined_at = span.start;
                self.expect = Expect::Operand;
                self.quote_sign(span);
            }
            _ if operator.is_comparison() || operator == Operator::Match => {
                self.comparing = Some((self.last, self.last_span));
                self.expect = Expect::Operand;
                self.quote_sign(span);
            }
            Operator::Json => {
                self.note(JSON_OPERATOR, span);
                if self.joined {
                    self.note(CONDITION, span);
                }
                self.expect = Expect::Operand;
                self.last = Operand::Complex;
            }
            Operator::Not => {
                return self.peek().is_some_and(|next| next.kind == TokenKind::Operator(Operator::Equal));
            }
            // A label among statements.
            Operator::Colon if self.clause == Clause::Free => self.expect = Expect::Statement,
            Operator::Colon => return false,
            _ => {
                self.expect = Expect::Operand;
                self.quote_sign(span);
            }
        }
        true
    }

    /// An operator right behind the quote that began the piece.
    fn quote_sign(&mut self, span: Span) {
        if self.tokens == 0 && self.start != Start::Raw {
            self.note(QUOTE_SIGN, span);
        }
    }

    fn join(&mut self, span: Span) {
        self.boundary();
        self.joined = true;
        self.compared = false;
        self.joined_at = span.start;
        self.expect = Expect::Operand;
        self.last = Operand::None;
        if self.tokens == 0 && self.start != Start::Raw {
            self.note(QUOTE_WORD, span);
        }
    }

    fn open(&mut self, is_call: bool) {
        let frame = Frame {
            is_call,
            is_select: false,
            clause: self.clause,
            joined: self.joined,
            compared: self.compared,
        };
        if let Some(place) = self.stack.get_mut(self.depth) {
            *place = frame;
        }
        self.depth += 1;
        self.expect = Expect::Operand;
        self.last = Operand::None;
        if self.clause != Clause::Free {
            self.clause = Clause::Expression;
        }
        if is_call {
            self.joined = self.chooses;
            self.joined_at = self.last_span.start;
        }
        self.chooses = false;
        self.compared = false;
    }

    /// `(` where an operator is expected: behind a name it is a call; before SELECT it is a subselect that was glued on.
    fn open_after_operand(&mut self, span: Span) -> bool {
        let next = self.peek().map(|token| token.kind);
        match self.last {
            Operand::Name => {
                self.open(true);
                true
            }
            _ if matches!(next, Some(TokenKind::Word(Word::Select))) => {
                self.note(JUXTAPOSED, span);
                self.open(false);
                true
            }
            _ if self.clause == Clause::Free || self.clause == Clause::Tables => {
                self.open(false);
                true
            }
            _ => false,
        }
    }

    fn close(&mut self, span: Span) {
        self.boundary();
        if self.depth == 0 {
            self.note(UNBALANCED, span);
            self.expect = Expect::Operator;
            self.clause = Clause::Expression;
            self.joined = false;
            self.select_at = None;
            return;
        }
        self.depth -= 1;
        let frame = self.stack.get(self.depth).copied().unwrap_or(FRAME);
        self.clause = frame.clause;
        self.joined = frame.joined;
        self.compared = frame.compared || self.compared && !frame.is_call && !frame.is_select;
        self.expect = Expect::Operator;
        let inside = self.last;
        let operand = match () {
            () if frame.is_select => Operand::Select,
            () if frame.is_call => Operand::Call,
            () if inside.is_constant() => inside,
            () => Operand::Complex,
        };
        let span = if operand.is_constant() { self.last_span } else { span };
        self.last = Operand::None;
        self.take(operand, span);
    }

    /// An operand was read.
    fn take(&mut self, operand: Operand, span: Span) -> bool {
        self.expect = Expect::Operator;
        if operand != Operand::Name {
            self.only_words = false;
        }
        self.last = operand;
        self.last_span = span;
        if operand != Operand::Name
            || !self.peek().is_some_and(|next| matches!(next.kind, TokenKind::Open | TokenKind::Dot))
        {
            self.compare(operand, span);
        }
        true
    }

    fn name_operand(&mut self, span: Span) {
        let before_open = self.peek().is_some_and(|next| next.kind == TokenKind::Open);
        self.name(span);
        self.take(Operand::Name, span);
        if before_open {
            self.only_words = false;
        }
    }

    /// Notes what a name is known for. `span` is the last part of a qualified name.
    fn name(&mut self, span: Span) {
        self.chooses = false;
        let before_open = self.peek().is_some_and(|next| next.kind == TokenKind::Open);
        let text = bare(self.word(span));
        let group = self.names.get(text).filter(|group| match group {
            Group::Function(kind) => {
                before_open
                    || matches!(*kind, EXECUTE_FUNCTION | OUT_OF_BAND_FUNCTION | TIME_FUNCTION)
                        && text.contains(&b'_')
                    // `system_user` needs no parentheses where something is compared with it.
                    || *kind == INFO_FUNCTION && self.comparing.is_some() && text.ends_with(b"_user")
            }
            Group::Schema | Group::Dual => !before_open,
            Group::Variable => false,
        });
        let qualified = || {
            // Two parts, as in `mysql.user`, `sys.tables`, `dbms_pipe.receive_message`.
            let [dot, second] = self.peeks();
            let second = second.filter(|_| dot.is_some_and(|dot| dot.kind == TokenKind::Dot))?;
            let whole = Span { start: span.start, end: second.span.end };
            self.names.get(self.word(whole)).map(|group| (group, whole))
        };
        match group.map(|group| (group, span)).or_else(qualified) {
            Some((Group::Function(kind), span)) => {
                self.chooses = kind == CONDITIONAL_FUNCTION;
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
    fn is_system_variable(&self, text: &[u8]) -> bool {
        let Some(name) = text.strip_prefix(b"@@") else { return false };
        matches!(self.names.get(bare(name)), Some(Group::Variable | Group::Function(INFO_FUNCTION)))
    }

    /// A second operand in a row: an alias, where there may be one.
    fn alias(&mut self) -> bool {
        match self.clause {
            Clause::Free => {
                self.last = Operand::Name;
                true
            }
            Clause::Columns | Clause::Tables if !self.aliased => {
                self.aliased = true;
                self.last = Operand::Name;
                true
            }
            _ => false,
        }
    }

    fn string_after_operand(&mut self, closed: bool, span: Span) -> bool {
        if self.clause == Clause::Free {
            return self.take(Operand::Text, span);
        }
        match self.last {
            // `'a' 'b'` is one string; an opening quote at the end may be the statement's own.
            Operand::Text => true,
            Operand::Name if matches!(self.clause, Clause::Columns | Clause::Tables) => self.alias(),
            // `date '2024-01-01'`, `_utf8 'x'`
            Operand::Name => {
                self.last = Operand::Text;
                self.last_span = span;
                true
            }
            _ => !closed && self.start != Start::Raw,
        }
    }
}

/// A name without its back-ticks, brackets or quotes.
fn bare(name: &[u8]) -> &[u8] {
    match name {
        [b'`', inner @ .., b'`'] | [b'[', inner @ .., b']'] | [b'"', inner @ .., b'"'] => inner,
        other => other,
    }
}
