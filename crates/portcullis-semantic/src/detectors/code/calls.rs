//! Effects of a call, by the function's group and its first argument.

use portcullis_lex::expr::{Lexer, TokenKind};
use portcullis_types::Span;

use super::argument::{Argument, Constant};
use super::names::Group;
use super::scan::{Fact, Scan};

/// Tokens between the name of a function and a text that is its first argument: `!(@`.
const FIRST_TOKENS_MAX: usize = 4;

impl<'t> Scan<'_, 't> {
    /// Notes the call of a function of `group`, whose name stands at `span`.
    pub(super) fn called(
        &mut self,
        group: Group,
        span: Span,
        argument: Argument<'t>,
        is_member: bool,
        in_call: bool,
    ) {
        let is_given = matches!(argument, Argument::Text(_) | Argument::Variable | Argument::Call);
        match group {
            Group::Execute | Group::Eval => {
                let is_command = matches!(argument, Argument::Text(text) if self.shell.is_command_line(text));
                // `system(id)`: PHP 7 takes the name of no constant for a text, and templates do.
                let is_word = !is_member && self.text.get(span.end as usize) == Some(&b'(');
                let is_command = is_command
                    || matches!(argument, Argument::Word(word)
                        if is_word && group == Group::Execute && self.shell.asks_system(word))
                    || argument == Argument::Other && group == Group::Execute && self.runs_list(span);
                // `pattern.exec(text)` and `db.exec("...")` are usual.
                let counts = if is_member {
                    is_command || self.last_is(b'>') || self.last_is(b':') || self.is_after_close()
                } else {
                    is_given || argument == Argument::Other
                };
                if counts || is_command {
                    self.note(if group == Group::Execute { Fact::Execute } else { Fact::Eval }, span);
                }
                if is_command && group == Group::Execute {
                    self.note(Fact::ShellArgument, span);
                }
                if matches!(argument, Argument::Call) && !is_member || in_call {
                    self.note(Fact::Nested, span);
                }
                self.in_call = is_given;
                self.runs_text = true;
            }
            Group::Info
                if matches!(
                    argument,
                    Argument::None
                        | Argument::Number
                        | Argument::Text(_)
                        | Argument::Name
                        | Argument::Word(_)
                ) && !is_member =>
            {
                self.note(Fact::Info, span);
            }
            Group::Decode if (is_given || argument == Argument::Number) => {
                self.note(Fact::Decode, span);
                if in_call {
                    self.note(Fact::Nested, span);
                }
            }
            Group::Callback => {
                self.runs_text = true;
                if is_given || argument == Argument::Other {
                    self.note(Fact::Callback, span);
                }
                if let Argument::Text(first) = argument
                    && self.is_runner(&self.constant(first, span))
                {
                    self.note(Fact::Nested, span);
                }
            }
            Group::File if is_given => {
                self.note(Fact::File, span);
                let writes = || span.of(self.text).to_ascii_lowercase().starts_with(b"file_put");
                if matches!(argument, Argument::Text(text) if is_telling_file(text) || is_script(text) && writes())
                {
                    self.note(Fact::FileArgument, span);
                }
            }
            // A page opens a window: no file of the server.
            Group::Open if self.is_of_window(span) => {}
            // The module of the folder above.
            Group::Open if span.of(self.text) == b"require" && argument == Argument::Text(b"..") => {}
            Group::Open if matches!(argument, Argument::Text(text) if is_telling_file(text)) => {
                self.note(Fact::File, span);
                self.note(Fact::FileArgument, span);
            }
            Group::Object if is_given => {
                self.note(Fact::Object, span);
            }
            Group::Sleep if (argument == Argument::Number || argument == Argument::Call) => {
                self.note(Fact::Sleep, span);
            }
            Group::Info
            | Group::Decode
            | Group::File
            | Group::Open
            | Group::Print
            | Group::Hash
            | Group::Sleep
            | Group::Reflect
            | Group::Type
            | Group::Ognl
            | Group::Internal
            | Group::Dunder
            | Group::Module
            | Group::Node
            | Group::Object
            | Group::Superglobal => {}
        }
    }

    /// The text that begins with `first`, the first argument of the call whose name stands at `span`.
    fn constant(&self, first: &[u8], span: Span) -> Constant {
        let mut lexer = Lexer::new(self.text, span.end as usize);
        lexer.by_ref().take(FIRST_TOKENS_MAX).find(|token| token.kind == TokenKind::Text);
        Constant::read(first, lexer, self.text)
    }

    /// The name of a function that runs something or tells of the machine.
    pub(super) fn is_runner(&self, name: &Constant) -> bool {
        matches!(self.names.get(name.bytes()), Some(Group::Execute | Group::Eval | Group::Info))
    }

    /// `check_output(['sh', '-c', 'id'])`: the first of a list of texts is a program that asks something of
    /// the system.
    fn runs_list(&self, span: Span) -> bool {
        let mut tokens = Lexer::new(self.text, span.end as usize);
        let opens = tokens.next().is_some_and(|t| t.is(b'(')) && tokens.next().is_some_and(|t| t.is(b'['));
        let program = tokens.next().filter(|t| opens && t.kind == TokenKind::Text);
        program.is_some_and(|text| self.shell.asks_system(text.inner(self.text)))
    }

    /// The name that ends with `span` is a member of a browser's window.
    fn is_of_window(&self, span: Span) -> bool {
        let path = &self.text[..span.end as usize];
        let object = &path[..path.iter().rposition(|b| *b == b'.').unwrap_or(0)];
        [&b"window"[..], b"self", b"top", b"parent", b"opener"].iter().any(|name| {
            object.strip_suffix(*name).is_some_and(|before| {
                !before.last().is_some_and(|b| b.is_ascii_alphanumeric() || b"_$.".contains(b))
            })
        })
    }

    /// A known function is called in this text.
    pub(super) fn calls_in(&self, text: &[u8]) -> bool {
        let mut known = false;
        for token in Lexer::new(text, 0).take(48) {
            if known && token.is(b'(') {
                return true;
            }
            let is_name = token.kind == TokenKind::Name;
            let group = is_name.then(|| self.names.get(token.span.of(text))).flatten();
            known = matches!(
                group,
                Some(Group::Execute | Group::Eval | Group::Info | Group::Decode | Group::File)
            );
        }
        false
    }
}

/// `require('../../lib/base.js')`: a program's own code, from where it stands in its folders.
fn is_own_module(name: &[u8]) -> bool {
    const ENDINGS: &[&[u8]] = &[b".js", b".mjs", b".cjs", b".ts", b".json", b".vue"];
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || b"./-_".contains(b);
    name.starts_with(b"../")
        && name.iter().all(is_part)
        && ENDINGS.iter().any(|ending| name.ends_with(ending))
        && memchr::memmem::find(name, b"/etc/").is_none()
        && memchr::memmem::find(name, b"/proc/").is_none()
}

/// True for the name of a file that a server runs.
fn is_script(name: &[u8]) -> bool {
    const ENDS: &[&[u8]] = &[b".php", b".phtml", b".php5", b".phar", b".jsp", b".asp", b".aspx", b".cgi"];
    ENDS.iter().any(|end| name.len() > end.len() && name[name.len() - end.len()..].eq_ignore_ascii_case(end))
}

/// Another server's file, or one outside the application.
fn is_telling_file(name: &[u8]) -> bool {
    const PARTS: &[&[u8]] = &[b"://", b"/etc/", b"/proc/", b"../../", b"C:\\"];
    matches!(name, b"/" | b"C:/" | b"..")
        || PARTS.iter().any(|part| memchr::memmem::find(name, part).is_some()) && !is_own_module(name)
}
