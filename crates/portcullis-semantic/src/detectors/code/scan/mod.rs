//! One walk over the tokens of an expression.

mod quoted;

use portcullis_lex::expr::{Lexer, Token, TokenKind};
use portcullis_types::Span;

use super::argument::{Argument, argument_at, is_trace_argument};
use super::names::{Group, Names};
use crate::detectors::command;

/// Something that an expression does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::detectors) enum Fact {
    Execute,
    ShellArgument,
    Eval,
    Info,
    Decode,
    Callback,
    File,
    /// The file is another server's, or the system's.
    FileArgument,
    Probe,
    Sleep,
    Reflection,
    /// Such a type is asked for by a text.
    Loaded,
    Type,
    /// An object of such a type is made, or a member of it is called.
    Made,
    Static,
    Ognl,
    OgnlAssign,
    Internal,
    Dunder,
    Import,
    Module,
    Node,
    Object,
    Input,
    Nested,
    VariableCall,
    TextCall,
    Backtick,
}

/// Bytes before a call in which the pieces of its name are looked for.
const PIECES_BYTES_MAX: usize = 80;

/// Bytes of a path of names that are looked up.
const PATH_BYTES_MAX: usize = 160;

/// Walks a text and gives what it does, in order.
#[derive(Debug)]
pub(in crate::detectors) struct Scan<'n, 't> {
    pub(in crate::detectors::code) text: &'t [u8],
    lexer: Lexer<'t>,
    pub(super) names: &'n Names,
    pub(super) shell: &'n command::Names,
    /// The last two tokens.
    last: Option<Token>,
    before_last: Option<Token>,
    /// Tokens in the parentheses that are open: only texts and what joins them.
    only_texts: bool,
    texts: u16,
    /// A tilde stands before the first of them: PHP takes the bits of `(~'...')('id')` the other way round.
    inverts: bool,
    /// A call of `Execute` or `Eval` just opened: what stands in it counts more.
    pub(super) in_call: bool,
    /// A call that runs code from text was seen.
    pub(super) runs_text: bool,
    pending: [Option<(Fact, Span)>; 3],
    has_pending: bool,
    tokens: usize,
    /// Where reading goes on, if not after the last token.
    pub(super) restart: Option<usize>,
    /// Where a text ends that is read as code, and where its quote does.
    pub(super) resume: Option<(usize, usize)>,
    /// Bytes of texts that were read as code, too.
    pub(super) read_again: usize,
}

impl<'n, 't> Scan<'n, 't> {
    pub fn new(text: &'t [u8], names: &'n Names, shell: &'n command::Names) -> Scan<'n, 't> {
        Scan {
            text,
            lexer: Lexer::new(text, 0),
            names,
            shell,
            last: None,
            before_last: None,
            only_texts: false,
            texts: 0,
            inverts: false,
            in_call: false,
            runs_text: false,
            pending: [None; 3],
            has_pending: false,
            tokens: 0,
            restart: None,
            resume: None,
            read_again: 0,
        }
    }

    /// The next thing that the expression does.
    pub fn next_fact(&mut self) -> Option<(Fact, Span)> {
        loop {
            if self.has_pending {
                match self.pending.iter_mut().find_map(Option::take) {
                    Some(fact) => return Some(fact),
                    None => self.has_pending = false,
                }
            }
            // After a text that was read as code the reading goes on.
            if let Some((_, after)) = self.resume.take_if(|(end, _)| self.lexer.position() >= *end) {
                self.lexer = self.lexer.go_on_at(after);
                (self.before_last, self.last) = (None, None);
            }
            let token = match self.lexer.next() {
                Some(token) => token,
                None if self.resume.is_some() => continue,
                None => return None,
            };
            self.tokens += 1;
            match token.kind {
                TokenKind::Name => self.name(token),
                TokenKind::Text => self.quoted(token),
                TokenKind::Sign(sign) => self.sign(sign, token),
                TokenKind::Number => self.only_texts = false,
            }
            match self.restart.take() {
                Some(at) => {
                    self.lexer = self.lexer.go_on_at(at);
                    (self.before_last, self.last) = (None, None);
                }
                None => (self.before_last, self.last) = (self.last, Some(token)),
            }
        }
    }

    /// Bytes that were read.
    pub fn bytes_read(&self) -> usize {
        self.text.len() + self.read_again
    }

    /// Tokens that were read.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    pub(super) fn note(&mut self, fact: Fact, span: Span) {
        self.has_pending = true;
        if let Some(place) = self.pending.iter_mut().find(|place| place.is_none()) {
            *place = Some((fact, span));
        }
    }

    pub(super) fn last_is(&self, sign: u8) -> bool {
        self.last.is_some_and(|token| token.is(sign))
    }

    fn peek(&self) -> Option<Token> {
        self.lexer.clone().next()
    }

    /// A name: alone, and with the names that dots join to it.
    fn name(&mut self, token: Token) {
        let name = token.span.of(self.text);
        self.only_texts &= self.inverts && self.last_is(b'~') && name[0] >= 0x80;
        let in_call = std::mem::take(&mut self.in_call);
        let begins_path = self.text.get(token.span.end as usize) == Some(&b'.');
        // Most names are known for nothing.
        let is_unknown =
            name[0] != b'$' && !self.names.may_have(name) && !matches!(name, b"execute" | b"ProcessBuilder");
        if is_unknown && !begins_path {
            return;
        }
        let is_member = self.last_is(b'.')
            || self.last_is(b'>')
            || self.last_is(b':')
            || self.last_is(b'|')
            || self.last_is(b'?');
        if begins_path && !is_member {
            self.path(token);
        }
        if is_unknown {
            return;
        }
        // Groovy: a text, or a list of texts, is a command.
        let of_literal = self.before_last.is_some_and(|t| t.kind == TokenKind::Text || t.is(b']'));
        if name == b"execute"
            && self.last_is(b'.')
            && of_literal
            && self.peek().is_some_and(|next| next.is(b'('))
        {
            self.note(Fact::Execute, token.span);
            self.note(Fact::Nested, token.span);
            return;
        }
        let group = self.names.get(name);
        // Ruby: `send(:system, 'id')`
        let is_symbol = self.last_is(b':') && self.before_last.is_some_and(|t| t.is(b'('));
        if is_symbol && matches!(group, Some(Group::Execute | Group::Eval)) {
            self.note(Fact::Execute, token.span);
            self.note(Fact::Nested, token.span);
        }
        // `new ProcessBuilder(new String[]{"id"})`
        if name == b"ProcessBuilder" && self.last.is_some_and(|t| t.span.of(self.text) == b"new") {
            self.note(Fact::Type, token.span);
            self.note(Fact::Made, token.span);
        }
        let may_be_variable = name.len() > 1 && name[0] == b'$' && !is_member;
        if group.is_none() && !may_be_variable {
            return;
        }
        let next = self.peek();
        let is_call = next.is_some_and(|next| next.is(b'('));
        match group {
            Some(group) => self.known(group, token, next, is_member, in_call),
            None if is_call => self.variable_call(token),
            None => {}
        }
    }

    /// A variable of PHP that is called: `$f('id')`.
    fn variable_call(&mut self, token: Token) {
        let argument = self.argument();
        if matches!(argument, Argument::Text(_) | Argument::Variable) {
            self.note(Fact::VariableCall, token.span);
        }
        if matches!(argument, Argument::Text(text) if self.shell.is_command_line(text)) {
            self.note(Fact::ShellArgument, token.span);
        }
    }

    /// A name of a group, and the token behind it.
    fn known(&mut self, group: Group, token: Token, next: Option<Token>, is_member: bool, in_call: bool) {
        let is_call = next.is_some_and(|next| next.is(b'('));
        match group {
            Group::Superglobal => self.superglobal(token, next, in_call),
            Group::Internal => {
                let is_reached = is_member
                    || self.last_is(b'[')
                    || next.is_some_and(|next| next.is(b'.') || next.is(b'[') || next.is(b'('))
                    || self.last_is(b'(') && next.is_some_and(|next| next.is(b',') || next.is(b')'));
                let is_defined = self.last.is_some_and(|t| t.span.of(self.text) == b"def");
                if is_reached && !is_defined {
                    self.note(Fact::Internal, token.span);
                }
            }
            Group::Dunder
                if token.span.of(self.text) == b"__import__"
                    && is_call
                    && matches!(
                        self.argument(),
                        Argument::Text(_) | Argument::Name | Argument::Word(_) | Argument::Call
                    ) =>
            {
                self.note(Fact::Import, token.span);
            }
            Group::Dunder if is_member => {
                self.note(Fact::Dunder, token.span);
            }
            Group::Ognl => self.note(Fact::Ognl, token.span),
            Group::Reflect
                if is_call
                    && (is_member || matches!(self.argument(), Argument::Text(_)))
                    && !self.is_trace() =>
            {
                self.note(Fact::Reflection, token.span);
            }
            Group::Print => {
                let mut lexer = self.lexer;
                if is_call {
                    lexer.next();
                }
                self.print(token.span, lexer, is_call);
            }
            Group::Module | Group::Type | Group::Node => {}
            _ if is_call => self.call(group, token, is_member, in_call),
            // PHP: `(system)('id')`.
            Group::Execute | Group::Eval if self.last_is(b'(') && self.is_called_in_parentheses() => {
                self.note(Fact::Execute, token.span);
                self.note(Fact::TextCall, token.span);
            }
            // Perl and Ruby call without parentheses: `system "id"`.
            Group::Execute => {
                if let Some(text) =
                    next.filter(|next| next.kind == TokenKind::Text).map(|next| next.inner(self.text))
                    && self.shell.is_command_line(text)
                {
                    self.note(Fact::Execute, token.span);
                    self.note(Fact::ShellArgument, token.span);
                }
            }
            Group::Eval
            | Group::Info
            | Group::Decode
            | Group::Callback
            | Group::File
            | Group::Open
            | Group::Hash
            | Group::Sleep
            | Group::Reflect
            | Group::Dunder
            | Group::Object => {}
        }
    }

    /// What a request sent to PHP, `$_GET`: an element of it, and all of it where it is given to what makes
    /// variables, objects or a call of it.
    fn superglobal(&mut self, token: Token, next: Option<Token>, in_call: bool) {
        const TAKERS: &[&[u8]] = &[b"unserialize", b"extract", b"parse_str", b"mb_parse_str"];
        const REQUESTS: &[&[u8]] = &[b"$_GET", b"$_POST", b"$_REQUEST", b"$_COOKIE"];
        let is_element = next.is_some_and(|next| next.is(b'[') || next.is(b'{'));
        let is_request = REQUESTS.contains(&token.span.of(self.text));
        // What stands before it, or before the parenthesis that it is the first in.
        let is_first = self.last_is(b'(');
        let before = if is_first { self.before_last } else { self.last };
        let name = before.filter(|token| token.kind == TokenKind::Name).map(|token| token.span.of(self.text));
        let is_included = name.is_some_and(|name| {
            let includes = || {
                [&b"include"[..], b"require"]
                    .iter()
                    .any(|word| name.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)))
            };
            self.names.get(name) == Some(Group::Open) && (!is_first || includes())
        });
        let is_taken = is_first
            && is_request
            && name.is_some_and(|name| TAKERS.iter().any(|taker| name.eq_ignore_ascii_case(taker)));
        // `usort(...$_GET)`
        let is_spread = is_request && self.text[..token.span.start as usize].ends_with(b"(...");
        let is_called = is_element && is_request && self.is_element_called();
        if is_element || is_taken || is_spread {
            self.note(Fact::Input, token.span);
        }
        if is_element && (in_call || is_included || is_called) || is_taken || is_spread {
            self.note(Fact::Nested, token.span);
        }
    }

    /// `[0](`: the element that the lexer stands at is called.
    fn is_element_called(&self) -> bool {
        let mut tokens = self.lexer;
        let opens = tokens.next().is_some_and(|t| t.is(b'['));
        opens
            && tokens.next().is_some_and(|t| t.kind != TokenKind::Sign(b']'))
            && tokens.next().is_some_and(|t| t.is(b']'))
            && tokens.next().is_some_and(|t| t.is(b'('))
    }

    /// `java.lang.Runtime`, `process.mainModule.require`, `os.system`: names joined by dots from `token` on.
    fn path(&mut self, token: Token) {
        let mut end = token.span.end as usize;
        while self.text.get(end) == Some(&b'.')
            && let Some(name_end) = self.lexer.name_at(end + 1)
            && name_end - token.span.start as usize <= PATH_BYTES_MAX
        {
            end = name_end;
        }
        if end == token.span.end as usize {
            return;
        }
        let span = Span::new(token.span.start as usize, end);
        let in_type = self.last_is(b'(') && self.before_last.is_some_and(|t| t.span.of(self.text) == b"T");
        let group = self.names.path(span.of(self.text));
        if group.is_none() && !in_type {
            return;
        }
        let mut lexer = self.lexer.go_on_at(end);
        let next = lexer.next();
        // `T(a.b.C)` of SpEL is of whatever type.
        if in_type && group != Some(Group::Type) && next.is_some_and(|next| next.is(b')')) {
            self.note(Fact::Static, span);
        }
        let Some(group) = group else { return };
        let next = next.filter(|next| !next.is(b'!')).or_else(|| lexer.next());
        let is_call = next.is_some_and(|next| next.is(b'('));
        match group {
            Group::Type => {
                let is_static = self.last_is(b'(')
                    && self.before_last.is_some_and(|t| t.span.of(self.text) == b"T")
                    || self.last_is(b'@') && next.is_some_and(|next| next.is(b'@'));
                let is_new = self.last.is_some_and(|t| t.span.of(self.text) == b"new");
                // `at java.lang.Thread.run(Thread.java:750)` is a line of a stack trace.
                let is_trace = self.last.is_some_and(|t| t.span.of(self.text) == b"at")
                    || is_call && is_trace_argument(lexer, self.text);
                if is_static {
                    self.note(Fact::Static, span);
                } else if !is_trace {
                    let is_named = next.is_some_and(|next| next.is(b'@') || next.is(b'.'))
                        || self.last_is(b'\'')
                        || self.last_is(b'"');
                    if is_new || is_call {
                        self.note(Fact::Type, span);
                        self.note(Fact::Made, span);
                    } else if is_named {
                        self.note(Fact::Type, span);
                    }
                }
            }
            Group::Node => {
                self.note(Fact::Node, span);
                // `constructor.constructor('...')` makes a function of the text.
                if is_call && matches!(argument_at(lexer, self.text), Argument::Text(_)) {
                    self.note(Fact::Eval, span);
                }
            }
            Group::Print => self.print(span, lexer, is_call),
            Group::Execute
            | Group::Eval
            | Group::Info
            | Group::Decode
            | Group::Callback
            | Group::File
            | Group::Open
            | Group::Hash
            | Group::Sleep
            | Group::Reflect
            | Group::Ognl
            | Group::Internal
            | Group::Dunder
            | Group::Module
            | Group::Object
            | Group::Superglobal => {
                if is_call {
                    // The lexer stands after the path's first name; what is called is its last.
                    let argument = argument_at(lexer, self.text);
                    self.called(group, span, argument, false, false);
                }
            }
        }
    }

    fn is_trace(&self) -> bool {
        let mut lexer = self.lexer;
        lexer.next();
        is_trace_argument(lexer, self.text)
    }

    /// What stands after the parenthesis that comes next.
    fn argument(&self) -> Argument<'t> {
        let mut lexer = self.lexer;
        lexer.next();
        argument_at(lexer, self.text)
    }

    fn call(&mut self, group: Group, token: Token, is_member: bool, in_call: bool) {
        let argument = self.argument();
        self.called(group, token.span, argument, is_member, in_call);
    }

    /// The member is of a call's result or an element: `f().exec(`, `a[0].exec(`.
    pub(super) fn is_after_close(&self) -> bool {
        self.before_last.is_some_and(|token| token.is(b')') || token.is(b']'))
    }

    fn sign(&mut self, sign: u8, token: Token) {
        match sign {
            b'(' => {
                let is_made = self.only_texts && (self.texts >= 2 || self.inverts);
                let after_text_group = self.last_is(b')') && is_made && self.argument_now_is_text();
                if after_text_group {
                    self.note(Fact::TextCall, token.span);
                }
                // `("system")("id")`
                let runs = |token: Token| {
                    token.kind == TokenKind::Text
                        && matches!(
                            self.names.get(token.inner(self.text)),
                            Some(Group::Execute | Group::Eval)
                        )
                };
                if !after_text_group
                    && self.last_is(b')')
                    && self.before_last.is_some_and(runs)
                    && self.is_given_command(self.lexer)
                {
                    self.note(Fact::TextCall, token.span);
                }
                if self.last_is(b')') && self.joins_pieces(token.span.start as usize) {
                    self.note(Fact::TextCall, token.span);
                }
                if self.last_is(b']') && self.argument_now_is_text() {
                    self.note(Fact::VariableCall, token.span);
                }
                self.only_texts = !matches!(self.last, Some(Token { kind: TokenKind::Name, .. }));
                self.texts = 0;
                self.inverts = false;
            }
            b'~' => self.inverts |= self.last_is(b'('),
            b'.' | b'+' | b'^' | b')' | b',' => {}
            b'=' => {
                let assigns = self.last.is_some_and(|t| t.kind == TokenKind::Name)
                    && self.before_last.is_some_and(|t| t.is(b'#'));
                if assigns && self.opens_ognl() {
                    self.note(Fact::OgnlAssign, token.span);
                }
                self.only_texts = false;
            }
            _ => self.only_texts = false,
        }
    }

    /// The parenthesis around the name that was read ends, and the next one holds what it is called with.
    fn is_called_in_parentheses(&self) -> bool {
        let mut lexer = self.lexer;
        let ends = lexer.next().is_some_and(|next| next.is(b')'));
        ends && lexer.next().is_some_and(|next| next.is(b'(')) && self.is_given_command(lexer)
    }

    /// What stands at `lexer` is a text, a variable, or the name of a command that asks something of the
    /// system: PHP once took a bare word for a text.
    fn is_given_command(&self, mut lexer: Lexer<'t>) -> bool {
        match argument_at(lexer, self.text) {
            Argument::Text(_) | Argument::Variable => true,
            Argument::Word(word) => self.shell.asks_system(word),
            Argument::Name => lexer.next().is_some_and(|token| {
                token.kind == TokenKind::Name && self.shell.asks_system(token.span.of(self.text))
            }),
            Argument::None | Argument::Call | Argument::Number | Argument::Other => false,
        }
    }

    /// `(sy.(st).em)(id)`: PHP joins words to a name and calls it. The parenthesis that calls stands at
    /// `open`.
    fn joins_pieces(&self, open: usize) -> bool {
        let window = &self.text[open.saturating_sub(PIECES_BYTES_MAX)..open];
        let is_piece = |b: &u8| b.is_ascii_alphanumeric() || b"_.()'\"".contains(b);
        let from = window.iter().rposition(|b| !is_piece(b)).map_or(0, |at| at + 1);
        let pieces = &window[from..];
        let mut depth = 0usize;
        for at in (0..pieces.len()).rev() {
            match pieces[at] {
                b')' => depth += 1,
                b'(' if depth <= 1 => {
                    let group = &pieces[at..];
                    return memchr::memmem::find(group, b".(").is_some()
                        && memchr::memmem::find(group, b").").is_some();
                }
                b'(' => depth -= 1,
                _ => {}
            }
        }
        false
    }

    fn argument_now_is_text(&self) -> bool {
        matches!(argument_at(self.lexer, self.text), Argument::Text(_) | Argument::Variable)
    }

    /// The `#` before the last name follows a parenthesis: `(#x=`, `{#x=`, `,#x=`.
    fn opens_ognl(&self) -> bool {
        let at = self.before_last.map_or(0, |t| t.span.start as usize);
        matches!(self.text[..at].trim_ascii_end().last(), Some(b'(' | b'{' | b',' | b')'))
    }
}
