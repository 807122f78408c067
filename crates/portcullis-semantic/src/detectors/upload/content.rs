//! Contents of uploaded files: code that a server would run, and what it would do.

use memchr::memmem;
use portcullis_types::Span;

use super::{
    IMAGE_COMMAND, OBEYED_CONTENT, PAGE_SCRIPT, PHAR, POLYGLOT, SERVER_CODE, SERVER_CODE_TAG, SVG_SCRIPT,
    WEB_SHELL,
};
use crate::detectors::scan::{has_at, skip_space};
use crate::detectors::xss::Scripts;
use crate::{ByteGroups, Found, decode};

/// Bytes of a block of code that are searched for what a web shell needs.
const CODE_BYTES_MAX: usize = 16 << 10;

/// Calls that run what they are given, in the languages of web servers; lower case, with the parenthesis or
/// space after.
const RUNS: &[&[u8]] = words!("upload", "runs");

/// Sources of a request's values.
const READS: &[&[u8]] = words!("upload", "reads");

/// Notes what is telling about `text`. With `is_application` it is a source of PHP that runs nothing a
/// request gives it.
pub(super) fn look(
    text: &[u8],
    groups: ByteGroups,
    is_application: bool,
    scripts: &Scripts,
    found: &mut Found<'_>,
) {
    let mut from = 0;
    while let Some(Code { start: at, end, is_php }) = code(text, from) {
        from = end;
        if !found.may_read(end - at) {
            return;
        }
        let block = text[at..end].to_ascii_lowercase();
        let has = |words: &[&[u8]]| words.iter().any(|word| memmem::find(&block, word).is_some());
        let span = Span::new(at, end);
        let runs = has(RUNS) || memchr::memchr(b'`', &block).is_some_and(|_| is_php);
        let is_shell = runs && has(READS);
        if is_shell {
            found.add_unless(WEB_SHELL, span, is_application.then_some("harmless-source"));
        }
        if is_shell && !is_application {
            // The code is that of the shell.
        } else if runs {
            found.add(SERVER_CODE, span);
        } else {
            found.add(SERVER_CODE_TAG, span);
        }
        if at > 0 && decode::is_of_shown(text) {
            found.add(POLYGLOT, span);
        }
    }
    if is_gateway_shell(text, groups) {
        found.add(WEB_SHELL, Span::new(0, text.len().min(CODE_BYTES_MAX)));
    }
    let head = &text[..text.len().min(1_024)];
    let whole = Span::new(0, head.len());
    if groups.has(b'_') && memmem::find(text, b"__HALT_COMPILER();").is_some() {
        found.add(PHAR, whole);
    }
    if may_be_active(text) && found.may_read(text.len()) {
        let active = scripts.of(text);
        // Text with a script in it is a page to those only who take it for one.
        let is_page =
            || text[skip_space(text, if text.starts_with(BOM) { 3 } else { 0 })..].starts_with(b"<");
        if active.runs && is_drawing(text) {
            found.add(SVG_SCRIPT, whole);
        } else if active.attacks && is_page() {
            found.add(PAGE_SCRIPT, whole);
        }
    }
    if runs_commands(text, head) {
        found.add(IMAGE_COMMAND, whole);
    }
    if is_obeyed(head) {
        found.add(OBEYED_CONTENT, whole);
    }
}

/// A piece of code that a server runs: where it begins and ends, and whether it is PHP's. It ends with the
/// text that it is part of: in the noise of a picture or an archive bytes follow that no text has.
#[derive(Clone, Copy, Debug)]
struct Code {
    start: usize,
    end: usize,
    is_php: bool,
}

/// The first piece of code from `from` on.
fn code(text: &[u8], from: usize) -> Option<Code> {
    memchr::memchr_iter(b'<', &text[from..]).map(|at| from + at).find_map(|start| {
        let rest = &text[start + 1..text.len().min(start + 64)];
        let starts = |word: &[u8]| rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
        let space = |at: usize| rest.get(at).is_none_or(|b| b.is_ascii_whitespace());
        let is_php = starts(b"?");
        let is_named = starts(b"?php") && space(4)
            || starts(b"jsp:")
            || starts(b"cfexecute")
            || starts(b"script") && server_script(rest);
        // Two signs are chance in noise: they need code after them.
        let may_be = is_named || starts(b"?=") || starts(b"? ") || starts(b"?\n") || starts(b"%");
        if !may_be {
            return None;
        }
        let len =
            text[start..text.len().min(start + CODE_BYTES_MAX)].iter().take_while(|b| is_text(**b)).count();
        let code = Code { start, end: start + len, is_php };
        (is_named || is_code(&text[start + 2..code.end])).then_some(code)
    })
}

/// Bytes of text in ASCII or UTF-8; of eight bytes of noise nearly always one is none.
fn is_text(b: u8) -> bool {
    b >= 0x20 && b != 0x7F || matches!(b, b'\t' | b'\n' | b'\r')
}

/// Some signs and names in a row, as code has them: a variable, a call, a directive.
fn is_code(rest: &[u8]) -> bool {
    let head = &rest[..rest.len().min(CODE_HEAD_BYTES)];
    let ascii = head.iter().take_while(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()).count();
    let head = &head[..ascii];
    let has = |b: u8| memchr::memchr(b, head).is_some();
    ascii >= CODE_BYTES_MIN.min(rest.len())
        && head.len() >= 4
        && head.iter().any(u8::is_ascii_alphabetic)
        && (has(b'$')
            || has(b'(')
            || has(b'`')
            || has(b'=')
            || has(b'"')
            || has(b'@')
            || has(b'.')
            || has(b'%'))
}

/// Bytes after its mark in which code is looked for.
const CODE_HEAD_BYTES: usize = 64;

/// Bytes of ASCII that stand there at least, if the text is that long: in noise they come by chance once in
/// 10^10 bytes.
const CODE_BYTES_MIN: usize = 14;

/// An element stands in it, in which a script may.
fn may_be_active(text: &[u8]) -> bool {
    memchr::memchr_iter(b'<', text).any(|at| {
        let name = text[at + 1..].iter().take(3).take_while(|b| b.is_ascii_alphabetic()).count();
        name > 0 && text.get(at + 1 + name).is_some_and(|b| b.is_ascii_graphic() || b.is_ascii_whitespace())
    })
}

/// The mark of UTF-8 that some editors begin a file with.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// The first element is a drawing's, whatever declarations and comments stand before it.
fn is_drawing(text: &[u8]) -> bool {
    let mut at = if text.starts_with(BOM) { 3 } else { 0 };
    loop {
        at = skip_space(text, at);
        let end: &[u8] = match text.get(at..at + 2) {
            Some(b"<?") => b"?>",
            Some(b"<!") if text[at..].starts_with(b"<!--") => b"-->",
            // A document type may have declarations of its own.
            Some(b"<!")
                if memchr::memchr2(b'[', b'>', &text[at..]).is_some_and(|sign| text[at + sign] == b'[') =>
            {
                b"]>"
            }
            Some(b"<!") => b">",
            _ => break,
        };
        match memmem::find(&text[at..], end) {
            Some(len) => at += len + end.len(),
            None => return false,
        }
    }
    let name =
        text[at..].iter().skip(1).take(24).take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let local = if text.get(at + 1 + name) == Some(&b':') { at + 2 + name } else { at + 1 };
    text.get(at) == Some(&b'<') && has_at(text, local, b"svg")
}

/// A script for the common gateway interface, in Python or Perl, that runs what a request gives it.
fn is_gateway_shell(text: &[u8], groups: ByteGroups) -> bool {
    const READERS: [&[u8]; 2] = [b"use CGI", b"cgi.FieldStorage("];
    const RUNNERS: [&[u8]; 6] = [b"os.popen(", b"os.system(", b"subprocess.", b"system(", b"exec(", b"qx"];
    let text = &text[..text.len().min(CODE_BYTES_MAX)];
    let has = |words: &[&[u8]]| words.iter().any(|word| memmem::find(text, word).is_some());
    has(&READERS[..if groups.has(b'(') { 2 } else { 1 }]) && has(&RUNNERS)
}

/// `<script runat=server>`, `<script language=php>`.
fn server_script(tag: &[u8]) -> bool {
    let tag = tag.to_ascii_lowercase();
    let tag = tag.split(|&b| b == b'>').next().unwrap_or_default();
    memmem::find(tag, b"runat").is_some() || memmem::find(tag, b"php").is_some()
}

/// Formats whose readers run commands or read files: MVG and MSL of ImageMagick, PostScript of Ghostscript,
/// playlists of FFmpeg.
fn runs_commands(text: &[u8], head: &[u8]) -> bool {
    let has = |word: &[u8]| memmem::find(head, word).is_some();
    let is_drawing = has(b"push graphic-context") || has(b"viewbox 0 0");
    let is_list = text.starts_with(b"#EXTM3U");
    is_list && (has(b"\nfile:") || has(b"\nconcat:") || has(b"\nsubfile,") || has(b"URI=\"file:"))
        || (is_drawing
            && (has(b"url(") || has(b"|") || has(b"label:@") || has(b"ephemeral:") || has(b"msl:")))
        || (text.starts_with(b"%!PS") && (has(b"%pipe%") || has(b"OutputFile") || has(b".libfile")))
}

/// Directives for a web server or for PHP.
fn is_obeyed(head: &[u8]) -> bool {
    const DIRECTIVES: [(&[u8], &[u8]); 7] = [
        (b"addtype", b"php"),
        (b"addhandler", b""),
        (b"sethandler", b""),
        (b"php_value", b"auto_"),
        (b"php_flag", b"engine"),
        (b"auto_prepend_file", b"="),
        (b"auto_append_file", b"="),
    ];
    let is_directive = |line: &[u8]| {
        let line = line.trim_ascii();
        let has = |word: &[u8]| {
            word.is_empty() || line.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
        };
        DIRECTIVES.iter().any(|(start, needs)| {
            line.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start)) && has(needs)
        })
    };
    head.split(|&b| b == b'\n').any(is_directive)
        || (memmem::find(head, b"<handlers").is_some() && memmem::find(head, b"scriptProcessor").is_some())
}
