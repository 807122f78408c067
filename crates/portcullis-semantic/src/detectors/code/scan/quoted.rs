//! Printed values and quoted texts: their contents, and calls of them.

use portcullis_lex::expr::{Lexer, Token, TokenKind};
use portcullis_types::Span;

use super::{Fact, Scan};
use crate::detectors::code::argument::{Argument, Constant};
use crate::detectors::code::names::Group;

impl<'t> Scan<'_, 't> {
    /// `print(md5(1))`, `var_dump(233*233)`, `Response.Write(9*9)`; the lexer stands after the parenthesis,
    /// if there is one.
    pub(super) fn print(&mut self, span: Span, mut lexer: Lexer<'t>, is_call: bool) {
        let Some(first) = lexer.next() else { return };
        let next = lexer.next();
        let is_sum = first.kind == TokenKind::Number
            && next.is_some_and(|next| {
                matches!(next.kind, TokenKind::Sign(b'*' | b'+' | b'-' | b'/' | b'%' | b'^'))
            })
            && lexer.next().is_some_and(|third| third.kind == TokenKind::Number);
        let is_hash = first.kind == TokenKind::Name
            && self.names.get(first.span.of(self.text)) == Some(Group::Hash)
            && next.is_some_and(|next| next.is(b'('));
        // `echo 24/7;` is said, too.
        let is_share = next.is_some_and(|next| next.is(b'/'));
        let is_statement = is_sum && !is_share && lexer.next().is_some_and(|next| next.is(b';'));
        if is_hash || is_sum && (is_call || is_statement) {
            self.note(Fact::Probe, span);
        }
        // `print_r(scandir('/'))`
        let group =
            (first.kind == TokenKind::Name).then(|| self.names.get(first.span.of(self.text))).flatten();
        let is_call_of = next.is_some_and(|next| next.is(b'('));
        if is_call_of && matches!(group, Some(Group::File | Group::Execute | Group::Eval | Group::Info)) {
            self.note(Fact::Nested, span);
        }
        let is_backtick = first.kind == TokenKind::Text && first.span.of(self.text).first() == Some(&b'`');
        if is_backtick && self.shell.is_command_line(first.inner(self.text)) {
            self.note(Fact::Backtick, span);
            self.note(Fact::ShellArgument, first.span);
        }
    }

    /// A quoted text: what is in it, and whether it is called.
    pub(super) fn quoted(&mut self, token: Token) {
        self.texts = self.texts.saturating_add(1);
        self.in_call = false;
        let inner = token.inner(self.text);
        let (start, end) = (token.span.start as usize, token.span.end as usize);
        if may_be_code(self.text, start, inner) {
            // What joins texts is no member's dot.
            let joins = inner.len() - inner.trim_ascii_start().len();
            let is_joint = inner[joins..].starts_with(b".");
            self.restart = Some(token.span.start as usize + 1 + if is_joint { joins + 1 } else { 0 });
            self.read_again += inner.len();
        } else if self.text[start] != b'`'
            && self.resume.is_none()
            && inner.len() >= CODE_BYTES_MIN
            && has_call(inner)
        {
            // Code in a text is code to what evaluates it.
            self.restart = Some(start + 1);
            self.resume = Some((end - 1, end));
            self.read_again += inner.len();
        }
        let next = self.peek();
        let is_callable = inner.len() <= 24
            && !inner.is_empty()
            && inner.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let is_called = next.is_some_and(|next| next.is(b'(') && next.span.start == token.span.end);
        if is_callable
            && is_called
            && match self.argument() {
                Argument::Text(_) | Argument::Variable | Argument::Call => true,
                Argument::None => self.names.get(inner) == Some(Group::Info),
                Argument::Number | Argument::Word(_) | Argument::Name | Argument::Other => false,
            }
        {
            self.note(Fact::TextCall, token.span);
        }
        // `getattr(os,'system')('id')`
        let mut ahead = self.lexer;
        let mut is_taken =
            || ahead.next().is_some_and(|t| t.is(b')')) && ahead.next().is_some_and(|t| t.is(b'('));
        if self.last_is(b',')
            && inner.len() <= 24
            && matches!(self.names.get(inner), Some(Group::Execute | Group::Eval))
            && is_taken()
        {
            self.note(Fact::TextCall, token.span);
        }
        if inner.starts_with(b"#_memberAccess") || inner.starts_with(b"#context[") {
            self.note(Fact::Ognl, token.span);
        }
        // PHP runs what stands in back-ticks; people write `code` so, after a word or in a fence.
        let start = token.span.start as usize;
        let is_backtick = self.text[start] == b'`';
        let after_word = self.last.is_some_and(|t| {
            t.kind == TokenKind::Name && self.names.get(t.span.of(self.text)) != Some(Group::Print)
        });
        let is_fence = start > 0 && self.text[start - 1] == b'`';
        if is_backtick && !after_word && !is_fence && memchr::memmem::find(inner, b"$_").is_some() {
            self.note(Fact::Backtick, token.span);
            self.note(Fact::Input, token.span);
        }
        // `''.`id`.''`: PHP joins what a command prints to the texts beside it.
        let is_joined = start >= 2
            && matches!(self.text[start - 2..start], [b'\'' | b'"', b'.'])
            && matches!(self.text[end..], [b'.', b'\'' | b'"', ..]);
        if is_backtick && is_joined && self.shell.is_command_line(inner) {
            self.note(Fact::Backtick, token.span);
            self.note(Fact::ShellArgument, token.span);
        }
        // Code in a text that a call runs: `exec("import os; ...")`, `create_function('', 'phpinfo();')`.
        let is_argument = self.last_is(b'(') || self.last_is(b',');
        if self.runs_text && is_argument && inner.contains(&b'(') && self.calls_in(inner) {
            self.note(Fact::Nested, token.span);
        }
        // `usort($a, 'system')`
        if self.runs_text
            && self.last_is(b',')
            && self.is_runner(&Constant::read(inner, self.lexer, self.text))
        {
            self.note(Fact::Callback, token.span);
            self.note(Fact::Nested, token.span);
        }
        let is_key = self.last_is(b'[') || self.last_is(b'(') || self.last_is(b',');
        if inner.len() > 80 || inner.is_empty() {
            return;
        }
        match self.names.get(inner) {
            Some(Group::Internal) if is_key => self.note(Fact::Internal, token.span),
            Some(Group::Dunder) if is_key => self.note(Fact::Dunder, token.span),
            Some(Group::Module) if self.last_is(b'(') => self.note(Fact::Module, token.span),
            Some(Group::Reflect | Group::Ognl) if is_key => self.note(Fact::Reflection, token.span),
            _ => {
                let is_type = inner.contains(&b'.') && self.names.path(inner) == Some(Group::Type);
                if is_type && (self.last_is(b'(') || next.is_some_and(|next| next.is(b'?'))) {
                    let loader = self.before_last.filter(|t| self.last_is(b'(') && t.kind == TokenKind::Name);
                    if loader.is_some_and(|t| self.names.get(t.span.of(self.text)) == Some(Group::Reflect)) {
                        self.note(Fact::Loaded, token.span);
                    }
                    self.note(Fact::Type, token.span);
                } else if inner == b"constructor" && self.last_is(b'[') {
                    self.note(Fact::Node, token.span);
                }
            }
        }
    }
}

/// A parenthesis follows a name of two letters at least, or another one: `[text](link)` and `f(x)` are no
/// calls that tell anything.
fn has_call(text: &[u8]) -> bool {
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    memchr::memchr_iter(b'(', text).any(|at| {
        let before = text[..at].trim_ascii_end();
        matches!(before, [.., first, last] if is_name(first) && is_name(last))
            || before.ends_with(b")")
            || before.ends_with(b"*/")
            || before.ends_with(b"]") && is_of_request(before)
    })
}

/// Bytes of the key of an element.
const KEY_BYTES_MAX: usize = 64;

/// `$_GET[0]`: an element of what a request sent to PHP ends `text`.
fn is_of_request(text: &[u8]) -> bool {
    const NAMES: &[&[u8]] = &[b"$_GET", b"$_POST", b"$_REQUEST", b"$_COOKIE"];
    let window = &text[text.len().saturating_sub(KEY_BYTES_MAX)..];
    memchr::memrchr(b'[', window).is_some_and(|open| NAMES.iter().any(|name| window[..open].ends_with(name)))
}

/// A shorter text has no call in it that tells anything.
const CODE_BYTES_MIN: usize = 6;

/// What stands between two quotes may be no text but code, if the first of them ends one: an operator follows
/// it, the second one begins an argument, or it is an apostrophe. `x'.system('id').'`,
/// `it's <?php system('id')`
fn may_be_code(text: &[u8], at: usize, inner: &[u8]) -> bool {
    if !has_call(inner) {
        return false;
    }
    let has_tag =
        || memchr::memchr_iter(b'<', inner).any(|tag| matches!(inner.get(tag + 1), Some(b'?' | b'%')));
    // A fence of Markdown: a server runs the tag in it.
    if text[at] == b'`' {
        return has_tag();
    }
    let is_sign = |b: &u8| b".;,)+|&}]-*^?".contains(b);
    let is_apostrophe = at.checked_sub(1).is_some_and(|before| text[before].is_ascii_alphanumeric());
    is_apostrophe
        || inner.trim_ascii_start().first().is_some_and(is_sign)
        || inner.trim_ascii_end().ends_with(b"(")
        || has_tag()
}
