//! Calls and statements that run code, by their shape alone: Groovy's annotations, `require('fs')`, `%x(id)`.

use memchr::memmem;
use portcullis_types::Span;

use super::{BLOCK_BYTES_MAX, Marks, add, starts};
use crate::Found;
use crate::detectors::code::{
    CONCATENATED, ENDLESS, EVAL, EXECUTE, FILE, FILE_ARGUMENT, IMPORT, INPUT, MODULE, NESTED, NODE, PROBE,
    SHELL_ARGUMENT, TEXT_CALL, WHOLE,
};
use crate::detectors::command;

impl Marks<'_> {
    /// `echo 98989*443131;`: a probe for code execution has the code compute.
    pub(super) fn products(&self, found: &mut Found<'_>) {
        let text = self.text;
        for at in memmem::find_iter(text, b"echo ").chain(memmem::find_iter(text, b"print ")) {
            if is_product(&text[at..]) {
                found.add(PROBE, Span::new(at, text.len().min(at + 24)));
            }
        }
    }

    /// `@Grab('group:module:1')`, `@GrabResolver(name='x', root='http://..')`: Groovy loads a package while
    /// it compiles.
    pub(super) fn annotations(&self, found: &mut Found<'_>) {
        const NAMES: &[&[u8]] = &[b"Grab(", b"Grapes(", b"GrabResolver(", b"GrabConfig(", b"ASTTest("];
        let text = self.text;
        for at in memchr::memchr_iter(b'@', text).take(32) {
            let rest = &text[at + 1..];
            let rest = rest
                .strip_prefix(b"groovy.lang.")
                .or(rest.strip_prefix(b"groovy.transform."))
                .unwrap_or(rest);
            let Some(name) = NAMES.iter().find(|name| rest.starts_with(name)) else { continue };
            let argument = rest[name.len()..].trim_ascii_start();
            let word = argument.iter().take(32).take_while(|b| b.is_ascii_alphanumeric()).count();
            let is_named = word > 0 && argument[word..].trim_ascii_start().starts_with(b"=");
            if is_named || matches!(argument.first(), Some(b'\'' | b'"' | b'@' | b'[')) {
                let span = Span::new(at, text.len().min(at + 24));
                add(found, IMPORT, span, self.takes_code);
            }
        }
    }

    /// A call is all of the value.
    pub(super) fn whole_calls(&self, found: &mut Found<'_>) {
        let text = self.text;
        if concatenated(text) {
            found.add(CONCATENATED, Span::new(0, text.len()));
        }
        if calls_itself(text) {
            let span = Span::new(0, text.len().min(60));
            for kind in [NODE, WHOLE] {
                add(found, kind, span, self.takes_code);
            }
        }
    }

    /// `include 'http://..'`
    pub(super) fn inclusions(&self, found: &mut Found<'_>) {
        for at in memmem::find_iter(self.text, b"://").take(64) {
            if let Some(start) = includes(&self.text[..at]) {
                let span = Span::new(start, at + 3);
                let is_shown = self.is_shown(at);
                for kind in [FILE, FILE_ARGUMENT] {
                    add(found, kind, span, is_shown);
                }
            }
        }
    }

    /// `require('fs').readdirSync('.')`
    pub(super) fn modules(&self, found: &mut Found<'_>) {
        let text = self.text;
        for at in memmem::find_iter(text, b"require(") {
            if uses_module(&text[at + 8..]) {
                let span = Span::new(at, text.len().min(at + 40));
                add(found, MODULE, span, self.is_shown(at) || is_followed_by_word(&text[at..]));
            }
        }
    }

    /// `{${system(id)}}`
    pub(super) fn interpolated_calls(&self, found: &mut Found<'_>) {
        for at in memmem::find_iter(self.text, b"{${") {
            if let Some(len) = interpolated_call(&self.text[at + 3..]) {
                found.add(TEXT_CALL, Span::new(at, at + 3 + len));
            }
        }
    }

    /// `while(1){}`
    pub(super) fn endless_loops(&self, found: &mut Found<'_>) {
        let text = self.text;
        for at in memmem::find_iter(text, b"while(").chain(memmem::find_iter(text, b"for(;;)")) {
            if is_endless(&text[at..]) {
                found.add(ENDLESS, Span::new(at, text.len().min(at + 12)));
            }
        }
    }

    /// `%x(id)` of Ruby and `qx/id/` of Perl: the text between the delimiters is a command.
    pub(super) fn quoted_commands(&self, shell: &command::Names, found: &mut Found<'_>) {
        let text = self.text;
        for at in memchr::memchr_iter(b'x', text) {
            let Some(before) = at.checked_sub(1).filter(|before| matches!(text[*before], b'%' | b'q')) else {
                continue;
            };
            let is_mark = match text[before] {
                b'%' => true,
                b'q' => before.checked_sub(1).is_none_or(|i| !text[i].is_ascii_alphanumeric()),
                _ => false,
            };
            let close = match text.get(at + 1) {
                Some(b'(') => b')',
                Some(b'{') => b'}',
                Some(b'[') => b']',
                Some(&sign @ (b'/' | b'|' | b'!')) => sign,
                _ => continue,
            };
            let rest = &text[at + 2..];
            let Some(end) = memchr::memchr(close, &rest[..rest.len().min(200)]) else { continue };
            if is_mark && found.may_read(end) && shell.is_command_line(&rest[..end]) {
                found.add(EXECUTE, Span::new(before, at + 3 + end));
                found.add(SHELL_ARGUMENT, Span::new(at + 2, at + 2 + end));
            }
        }
    }

    /// A request parameter of ASP in code: `eval(request("x"))`, `Execute Request("x")`.
    pub(super) fn request_parameters(&self, found: &mut Found<'_>) {
        const CALLS: [&[u8]; 5] =
            [b"(request(", b"(request[", b"(request.item[", b" request(\"", b"request.form("];
        const NAMES: [&[u8]; 3] = [b"eval", b"execute", b"executeglobal"];
        let text = self.text;
        if !has_request(text) {
            return;
        }
        for call in CALLS {
            let Some(at) = find_any_case(text, call) else { continue };
            let before = text[..at].trim_ascii_end();
            if NAMES.iter().any(|name| ends_any_case(before, name)) {
                for kind in [INPUT, NESTED, EVAL] {
                    found.add(kind, Span::new(at, at + call.len()));
                }
            }
        }
    }
}

/// `'.print(1).'`, `".system('id')."`, `` '.`id`.' ``: between the quotes and the dots that join texts a call
/// is all there is.
fn concatenated(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let Some((quote @ (b'\'' | b'"'), inner)) = text.split_first() else { return false };
    let inner = inner.trim_ascii_start().strip_prefix(b".").map(<[u8]>::trim_ascii);
    let inner = inner.and_then(|inner| inner.strip_suffix(&[*quote])).map(<[u8]>::trim_ascii);
    let Some(call) = inner.and_then(|inner| inner.strip_suffix(b".")).map(<[u8]>::trim_ascii) else {
        return false;
    };
    if let [b'`', line @ .., b'`'] = call {
        return !line.is_empty() && !line.contains(&b'`') && call.len() <= BLOCK_BYTES_MAX;
    }
    let name = call.iter().take(40).take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    call.len() <= BLOCK_BYTES_MAX && name > 1 && call.get(name) == Some(&b'(') && call.ends_with(b")")
}

/// `(function(){ .. process .. })()`: a function that is called at once is all of the value, and reaches what
/// Node keeps.
fn calls_itself(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let text = text.strip_suffix(b";").unwrap_or(text);
    let begins = [&b"(function("[..], b"(function ", b"(()=>", b"(() =>", b"(async"]
        .iter()
        .any(|start| text.starts_with(start));
    let ends = [&b"})()"[..], b"}())", b")()"].iter().any(|end| text.ends_with(end));
    let reaches = || {
        [&b"process."[..], b"require(", b"global.", b"globalThis"]
            .iter()
            .any(|name| memmem::find(text, name).is_some())
    };
    begins && ends && text.len() <= BLOCK_BYTES_MAX && reaches()
}

/// `include 'http`, `require_once("php`: where the statement begins that loads the address whose scheme ends
/// `before`.
fn includes(before: &[u8]) -> Option<usize> {
    const SCHEMES: &[&[u8]] =
        &[b"http", b"https", b"ftp", b"php", b"data", b"phar", b"expect", b"zip", b"file"];
    let scheme = before.iter().rev().take(8).take_while(|b| b.is_ascii_alphabetic()).count();
    let (rest, scheme) = before.split_at(before.len() - scheme);
    if !SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return None;
    }
    let rest = rest.strip_suffix(b"'").or(rest.strip_suffix(b"\""))?.trim_ascii_end();
    let rest = rest.strip_suffix(b"(").unwrap_or(rest).trim_ascii_end();
    let rest = rest.strip_suffix(b"_once").unwrap_or(rest);
    let start = [&b"include"[..], b"require"].iter().find_map(|word| rest.strip_suffix(*word))?;
    // A statement begins there: a sentence has a word before it (`prices include 'http://..'`), other
    // languages a sign of theirs.
    let before = start.trim_ascii_end();
    let is_word = before.last().is_none_or(|b| b";{}()?'\"@".contains(b)) || before.ends_with(b"php");
    is_word.then_some(start.len())
}

/// `require('fs').readdirSync('.')`: a module of Node that reaches files, other machines or the system, and
/// at once a call of it, is all of the value.
fn uses_module(inner: &[u8]) -> bool {
    const MODULES: &[&[u8]] = &[
        b"fs",
        b"net",
        b"os",
        b"vm",
        b"http",
        b"https",
        b"dgram",
        b"tls",
        b"dns",
        b"cluster",
        b"worker_threads",
    ];
    let [b'\'' | b'"' | b'`', inner @ ..] = inner else { return false };
    let name = inner.strip_prefix(b"node:").unwrap_or(inner);
    let len = name.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let rest = &name[len..];
    let called = match rest {
        [b'\'' | b'"' | b'`', b')', b'.', member @ ..] => member,
        _ => return false,
    };
    let member = called.iter().take(32).take_while(|b| b.is_ascii_alphanumeric()).count();
    MODULES.contains(&&name[..len])
        && called.first().is_some_and(u8::is_ascii_alphabetic)
        && called.get(member) == Some(&b'(')
}

/// After the call that begins `text` a sentence goes on.
fn is_followed_by_word(text: &[u8]) -> bool {
    let line = &text[..text.len().min(80)];
    memchr::memrchr(b')', line)
        .is_some_and(|end| matches!(line[end + 1..], [b' ', letter, ..] if letter.is_ascii_alphabetic()))
}

/// `{${system(id)}}`: PHP calls what stands so in a text. The length of what stands after `{${`.
fn interpolated_call(text: &[u8]) -> Option<usize> {
    let at = usize::from(text.first() == Some(&b'@'));
    let name = text[at..].iter().take(40).take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    if name < 2 || text.get(at + name) != Some(&b'(') {
        return None;
    }
    let end = memmem::find(&text[..text.len().min(BLOCK_BYTES_MAX)], b")}}")?;
    Some(end + 3)
}

/// `while(1){}`, `for(;;);//`: so that a server hangs where code is run. Nothing stands in it.
fn is_endless(text: &[u8]) -> bool {
    const LOOPS: &[&[u8]] = &[b"while(1)", b"while(true)", b"while(!0)", b"for(;;)"];
    let Some(rest) = LOOPS.iter().find_map(|head| text.strip_prefix(*head)) else { return false };
    match rest.trim_ascii_start() {
        [b';', ..] => true,
        [b'{', rest @ ..] => {
            let body = rest.iter().take(16).take_while(|b| b.is_ascii_whitespace() || **b == b';').count();
            rest.get(body) == Some(&b'}')
        }
        _ => false,
    }
}

/// `echo 98989*443131;`, `print 7777*8888//`: numbers that nobody multiplies, and the sign that ends a
/// statement.
fn is_product(text: &[u8]) -> bool {
    let Some(rest) =
        [&b"echo "[..], b"print "].iter().find(|word| starts(text, word)).map(|word| &text[word.len()..])
    else {
        return false;
    };
    let number = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let first = number(rest);
    let Some(rest) = rest[first..].trim_ascii_start().strip_prefix(b"*") else { return false };
    let rest = rest.trim_ascii_start();
    let second = number(rest);
    let rest = rest[second..].trim_ascii_start();
    first > 3 && second > 3 && (rest.first() == Some(&b';') || rest.starts_with(b"//"))
}

fn ends_any_case(text: &[u8], end: &[u8]) -> bool {
    text.len() >= end.len() && text[text.len() - end.len()..].eq_ignore_ascii_case(end)
}

/// `request`, in any case: its rarest letter is looked for.
fn has_request(text: &[u8]) -> bool {
    memchr::memchr2_iter(b'q', b'Q', text).any(|at| {
        at >= 2 && text[at - 2..].get(..7).is_some_and(|word| word.eq_ignore_ascii_case(b"request"))
    })
}

fn find_any_case(text: &[u8], part: &[u8]) -> Option<usize> {
    let first = part[0];
    memchr::memchr_iter(first, text).find(|&at| starts(&text[at..], part))
}
