//! Template attacks without delimiters of an expression.

use memchr::memmem;
use portcullis_types::Span;

use super::{
    CODE, COMMENT_PROBE, PHP_BLOCK, POLYGLOT, PREPROCESSING, SHELL_TEXT, SMARTY, TEX_FILE, Template,
};
use crate::detectors::code::scan::{Fact, Scan};
use crate::{Found, Input};

/// Who tries several engines at once writes them one after the other.
const POLYGLOT_BYTES_MAX: usize = 48;

pub(super) fn detect(detector: &Template, input: &Input<'_>, found: &mut Found<'_>) {
    let text = input.text;
    if let Some(at) = memmem::find(text, b"__${").or_else(|| memmem::find(text, b"__*{")) {
        found.add(PREPROCESSING, Span::new(at, text.len().min(at + 60)));
    }
    if let Some(at) = memmem::find(text, b"{php}").or_else(|| memmem::find(text, b"{php ")) {
        found.add(PHP_BLOCK, Span::new(at, at + 5));
    }
    if let Some(at) = memmem::find(text, b"{$smarty.") {
        let span = Span::new(at, text.len().min(at + 40));
        found.add(SMARTY, span);
        if memmem::find(text, b"{$smarty.get").is_none() {
            found.add(super::WHOLE, span);
            found.add(super::OBJECT, span);
        }
    }
    // Razor needs no delimiters where a name of .NET follows: `@System.IO.File.ReadAllText("x")`.
    for at in memmem::find_iter(text, b"System.").take(8) {
        let is_razor = text[..at].ends_with(b"@") || text[..at].ends_with(b"@(");
        let name = &text[at + 7..text.len().min(at + 7 + NAME_BYTES_MAX)];
        let len = name.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'.').count();
        if is_razor && name[..len].contains(&b'.') && name.get(len) == Some(&b'(') {
            found.add(CODE, Span::new(at - 1, at + 8 + len));
        }
    }
    if input.groups.has(b'[') {
        toolkit(text, found);
    }
    // `{.exec|calc.}`: macros of Rejetto's file server.
    for at in memmem::find_iter(text, b"{.").take(16) {
        let name = &text[at + 2..text.len().min(at + 2 + MACRO_BYTES_MAX)];
        let len = name.iter().take_while(|b| b.is_ascii_lowercase()).count();
        let is_one = matches!(&name[..len], b"exec" | b"save" | b"load" | b"cmd" | b"add" | b"append");
        if is_one && name.get(len) == Some(&b'|') {
            found.add(CODE, Span::new(at, at + 3 + len));
        }
    }
    comment_probe(text, found);
    polyglot(text, found);
    lines_of_python(text, found);
    // TeX runs a command of the system.
    if let Some(at) = memmem::find(text, b"\\write18{") {
        found.add(CODE, Span::new(at, text.len().min(at + 40)));
    }
    if input.groups.has(b'\\') {
        tex(text, found);
    }
    if input.groups.has(b'@') {
        perl(detector, text, found);
    }
    // `tal:content="python:open('x').read()"`: attributes of Zope and Chameleon with Python.
    for at in memmem::find_iter(text, b"tal:").take(16) {
        let attribute = &text[at..text.len().min(at + NAME_BYTES_MAX)];
        let value = memchr::memchr2(b'"', b'\'', attribute).map(|quote| &attribute[quote + 1..]);
        let code = value.and_then(|value| value.trim_ascii_start().strip_prefix(b"python:"));
        if code.is_some_and(|code| memchr::memchr(b'(', code).is_some()) {
            found.add(CODE, Span::new(at, at + attribute.len()));
        }
    }
    // Velocity has no delimiters: `$class.inspect("java.lang.Runtime")`, `$x.getClass()`.
    if !input.groups.has(b'$') {
        return;
    }
    let mut read = 0;
    for at in memmem::find_iter(text, b"#set").chain(memmem::find_iter(text, b"$class.")) {
        if at < read {
            continue;
        }
        read = text.len().min(at + STATEMENT_BYTES_MAX);
        if !found.may_read(read - at) {
            return;
        }
        let mut scan = Scan::new(&text[at..read], &detector.names, &detector.shell);
        while let Some((fact, span)) = scan.next_fact() {
            if matches!(fact, Fact::Reflection | Fact::Type | Fact::Execute) {
                found.add(CODE, Span::new(at + span.start as usize, at + span.end as usize));
            }
        }
    }
}

/// Bytes of a name of .NET that are read.
const NAME_BYTES_MAX: usize = 96;

/// Bytes of the name of a macro.
const MACRO_BYTES_MAX: usize = 12;

/// Bytes of a statement of Velocity that are read.
const STATEMENT_BYTES_MAX: usize = 1_024;

/// Bytes of a directive of Template Toolkit that are read.
const DIRECTIVE_BYTES_MAX: usize = 160;

/// `[% INCLUDE /etc/passwd %]`, `[% PERL %]`: Template Toolkit takes in a file from the root of the system or
/// from folders above, or runs Perl.
fn toolkit(text: &[u8], found: &mut Found<'_>) {
    const FILES: &[&[u8]] = &[b"INCLUDE", b"PROCESS", b"INSERT", b"WRAPPER"];
    for at in memmem::find_iter(text, b"[%").take(64) {
        let window = &text[at + 2..text.len().min(at + 2 + DIRECTIVE_BYTES_MAX)];
        let Some(end) = memmem::find(window, b"%]") else { continue };
        let inner = window[..end].trim_ascii();
        let inner = inner.strip_prefix(b"-").unwrap_or(inner).trim_ascii();
        let word = inner.iter().take_while(|b| b.is_ascii_uppercase()).count();
        let (name, argument) = inner.split_at(word);
        let path = argument.trim_ascii_start();
        let path = path.strip_prefix(b"\"").or_else(|| path.strip_prefix(b"'")).unwrap_or(path);
        let is_file = path.len() < argument.len() && (path.starts_with(b"/") || path.starts_with(b"../"));
        let kind = match name {
            b"PERL" | b"RAWPERL" => CODE,
            _ if is_file && FILES.contains(&name) => SHELL_TEXT,
            _ => continue,
        };
        found.add(kind, Span::new(at, at + 4 + end));
    }
}

/// Bytes of an option, of the name of a stream and of a path behind a command of TeX.
const TEX_BYTES_MAX: usize = 160;
/// Bytes of blanks and comments between them, and of that.
const TEX_GAP_MAX: usize = 1024;

/// `\input{/etc/passwd}`, `\openin\f=/etc/passwd`, `\input|"id"`: TeX takes a file of the machine in, opens
/// it, or runs what stands behind a pipe. Documents take in pieces of their own, and TeX's files.
fn tex(text: &[u8], found: &mut Found<'_>) {
    const COMMANDS: &[&[u8]] = words!("template", "tex-commands");
    for at in memchr::memchr_iter(b'\\', text) {
        let all = &text[at + 1..];
        let Some(command) = COMMANDS.iter().find(|name| all.starts_with(name)) else { continue };
        let all = &all[command.len()..];
        if all.first().is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        let all = &all[..all.len().min(TEX_GAP_MAX)];
        if !found.may_read(all.len()) {
            return;
        }
        let all = behind_comments(all);
        let mut rest = &all[..all.len().min(TEX_BYTES_MAX)];
        // `[language=C]`, `\stream=`, `5=`
        if let Some(option) = rest.strip_prefix(b"[") {
            rest = memchr::memchr(b']', option).map_or(option, |end| &option[end + 1..]);
        } else if command.starts_with(b"open") {
            let stream = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'\\').count();
            rest = rest[stream..].trim_ascii_start();
            rest = rest.strip_prefix(b"=").unwrap_or(rest);
        }
        let rest = behind_comments(rest);
        let path = rest.strip_prefix(b"{").map_or(rest, behind_comments);
        let path = path.strip_prefix(b"\"").unwrap_or(path);
        let end = path.iter().position(|b| b.is_ascii_whitespace() || b"}\"\\%".contains(b));
        let path = &path[..end.unwrap_or(path.len())];
        if path.len() > 1 && path.starts_with(b"|") || path == b"|" || is_of_machine(path) {
            found.add(TEX_FILE, Span::new(at, text.len().min(at + 1 + TEX_BYTES_MAX)));
            return;
        }
    }
}

/// What stands behind blanks and comments, which end with their lines.
fn behind_comments(text: &[u8]) -> &[u8] {
    let mut text = text.trim_ascii_start();
    while let Some(comment) = text.strip_prefix(b"%") {
        text = memchr::memchr(b'\n', comment).map_or(&[][..], |end| comment[end..].trim_ascii_start());
    }
    text
}

/// The path leads from the root, or up, into a folder of the machine, and to no file of TeX.
fn is_of_machine(path: &[u8]) -> bool {
    const FOLDERS: &[&[u8]] = words!("code", "folders");
    const OWN: &[&[u8]] = words!("template", "tex-files");
    let mut inner = path;
    while let Some(rest) = inner.strip_prefix(b"../") {
        inner = rest;
    }
    let climbs = inner.len() < path.len();
    let inner = inner.strip_prefix(b"/").or(climbs.then_some(inner));
    let extension = memchr::memrchr(b'.', path).map_or(&path[..0], |dot| &path[dot + 1..]);
    inner.is_some_and(|inner| {
        let slash = memchr::memchr(b'/', inner);
        // What people write lies in their own folders.
        slash.is_some_and(|end| inner[..end] != *b"home" && FOLDERS.contains(&&inner[..end]))
            && !OWN.contains(&extension)
            && memmem::find(inner, b"tex").is_none()
    })
}

/// Bytes of an expression of Perl in a text.
const PERL_BYTES_MAX: usize = 512;

/// `Total: @{[`id`]}`, `@{[readpipe 'id']}`: Perl puts what a list computes into a text. What runs commands
/// or opens files has no place there.
fn perl(detector: &Template, text: &[u8], found: &mut Found<'_>) {
    const WORDS: &[&[u8]] = words!("template", "perl-words");
    for at in memmem::find_iter(text, b"@{[").take(64) {
        let window = &text[at + 3..text.len().min(at + 3 + PERL_BYTES_MAX)];
        let Some(end) = memmem::find(window, b"]}").filter(|end| found.may_read(*end)) else { continue };
        let inner = &window[..end];
        let span = Span::new(at, at + end + 5);
        let is_command = memchr::memchr(b'`', inner)
            .and_then(|open| memchr::memchr(b'`', &inner[open + 1..]))
            .is_some_and(|len| len > 1);
        let is_named = || {
            let is_part = |b: u8| b.is_ascii_alphanumeric() || b"_$@%&>:".contains(&b);
            let mut words = inner.split(|b| !is_part(*b)).filter(|word| !word.is_empty());
            words.any(|word| WORDS.contains(&word))
        };
        let calls = || {
            let mut scan = Scan::new(inner, &detector.names, &detector.shell);
            std::iter::from_fn(|| scan.next_fact()).any(|(fact, _)| {
                matches!(fact, Fact::Execute | Fact::Eval | Fact::ShellArgument | Fact::FileArgument)
            })
        };
        if is_command || is_named() || calls() {
            found.add(CODE, span);
            return;
        }
    }
}

/// `%import os` on a line of its own, and an expression behind it: a line of Python to Bottle and Mako.
fn lines_of_python(text: &[u8], found: &mut Found<'_>) {
    const MODULES: &[&[u8]] =
        &[b"os", b"sys", b"subprocess", b"socket", b"pty", b"shutil", b"pathlib", b"glob"];
    for at in memchr::memchr_iter(b'%', text).take(64) {
        let begins = text[..at].last().is_none_or(|b| *b == b'\n');
        let line = text[at + 1..].trim_ascii_start();
        let Some(module) = line.strip_prefix(b"import ").or(line.strip_prefix(b"from ")) else { continue };
        let len = module.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        if begins && MODULES.contains(&&module[..len]) {
            found.add(CODE, Span::new(at, text.len().min(at + 40)));
        }
    }
}

/// `a{*comment*}b`: Smarty and Latte take it out of the word.
fn comment_probe(text: &[u8], found: &mut Found<'_>) {
    for at in memmem::find_iter(text, b"{*") {
        let rest = &text[at + 2..];
        let Some(end) = memmem::find(&rest[..rest.len().min(40)], b"*}") else { continue };
        let before = at.checked_sub(1).is_some_and(|i| text[i].is_ascii_alphanumeric());
        let after = rest.get(end + 2).is_some_and(u8::is_ascii_alphanumeric);
        if before && after && rest[..end].iter().all(u8::is_ascii_alphanumeric) {
            found.add(COMMENT_PROBE, Span::new(at, at + end + 4));
        }
    }
}

/// `${{<%[%'"}}%\`
fn polyglot(text: &[u8], found: &mut Found<'_>) {
    let mut read = 0;
    for at in memmem::find_iter(text, b"<%")
        .chain(memmem::find_iter(text, b"{{"))
        .chain(memmem::find_iter(text, b"{%"))
    {
        let window =
            Span::new(at.saturating_sub(POLYGLOT_BYTES_MAX / 2), text.len().min(at + POLYGLOT_BYTES_MAX / 2));
        if at >= read && is_polyglot(window.of(text)) {
            found.add(POLYGLOT, window);
            return;
        }
        read = at + 8;
    }
}

fn is_polyglot(text: &[u8]) -> bool {
    let openings = [&b"${"[..], b"{{", b"<%", b"#{", b"[%", b"{%", b"@(", b"[["];
    // `#{{ order.id }}`, `${{ github.ref }}`: a sign before the braces of one engine.
    let is_there = |mark: &&&[u8]| {
        memmem::find_iter(text, *mark)
            .any(|at| !matches!(mark, [b'$' | b'#', b'{']) || text.get(at + 2) != Some(&b'{'))
    };
    // `{{ .. }}` and `{% .. %}` are one engine's.
    let both = memmem::find(text, b"{{").is_some() && memmem::find(text, b"{%").is_some();
    openings.iter().filter(is_there).count() - usize::from(both) >= 3
}
