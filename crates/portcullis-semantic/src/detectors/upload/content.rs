//! Contents of uploaded files: code that a server would run, and what it would do.

use memchr::memmem;
use portcullis_types::Span;

use super::{
    IMAGE_COMMAND, OBEYED_CONTENT, PHAR, POLYGLOT, SERVER_CODE, SERVER_CODE_TAG, SVG_SCRIPT, WEB_SHELL,
};
use crate::detectors::xss::runs_script;
use crate::{Found, decode};

/// Bytes of a block of code that are searched for what a web shell needs.
const CODE_BYTES_MAX: usize = 16 << 10;

/// Calls that run what they are given, in the languages of web servers; lower case, with the parenthesis or space behind.
const RUNS: [&[u8]; 36] = [
    b"eval(",
    b"eval (",
    b"assert(",
    b"system(",
    b"exec(",
    b"passthru(",
    b"popen(",
    b"proc_open(",
    b"pcntl_exec(",
    b"create_function(",
    b"call_user_func",
    b"array_map(",
    b"array_filter(",
    b"usort(",
    b"preg_replace(",
    b"include(",
    b"include ",
    b"require(",
    b"file_put_contents(",
    b"fwrite(",
    b"move_uploaded_file(",
    b"base64_decode(",
    b"gzinflate(",
    b"str_rot13(",
    b"$_=",
    b"processbuilder",
    b"defineclass",
    b"scriptengine",
    b"eval request",
    b"execute(",
    b"execute request",
    b"executeglobal",
    b"wscript.shell",
    b"process.start",
    b"assembly.load",
    b"adodb.stream",
];

/// Where a request's values come from.
const READS: [&[u8]; 14] = [
    b"$_get",
    b"$_post",
    b"$_request",
    b"$_cookie",
    b"$_server",
    b"$_files",
    b"php://input",
    b"getallheaders",
    b"getparameter",
    b"getheader(",
    b"request(",
    b"request.",
    b"request[",
    b"params[",
];

/// Notes what is telling about `text`.
pub(super) fn look(text: &[u8], found: &mut Found<'_>) {
    if let Some((at, is_php)) = code(text) {
        let end = text.len().min(at + CODE_BYTES_MAX);
        let block = text[at..end].to_ascii_lowercase();
        let has = |words: &[&[u8]]| words.iter().any(|word| memmem::find(&block, word).is_some());
        let span = Span::new(at, end);
        let runs = has(&RUNS) || memchr::memchr(b'`', &block).is_some_and(|_| is_php);
        if runs && has(&READS) {
            found.add(WEB_SHELL, span);
        } else if runs {
            found.add(SERVER_CODE, span);
        } else {
            found.add(SERVER_CODE_TAG, span);
        }
        if at > 0 && decode::is_of_shown(text) {
            found.add(POLYGLOT, span);
        }
    }
    if is_gateway_shell(text) {
        found.add(WEB_SHELL, Span::new(0, text.len().min(CODE_BYTES_MAX)));
    }
    let head = &text[..text.len().min(1_024)];
    let whole = Span::new(0, head.len());
    if memmem::find(text, b"__HALT_COMPILER();").is_some() {
        found.add(PHAR, whole);
    }
    if memmem::find(head, b"<svg").is_some() && runs_script(text) {
        found.add(SVG_SCRIPT, whole);
    }
    if runs_commands(text, head) {
        found.add(IMAGE_COMMAND, whole);
    }
    if is_obeyed(head) {
        found.add(OBEYED_CONTENT, whole);
    }
}

/// Where code that a server runs begins, and whether it is PHP's.
fn code(text: &[u8]) -> Option<(usize, bool)> {
    let mut from = 0;
    while let Some(found) = memchr::memchr(b'<', &text[from..]) {
        let at = from + found;
        from = at + 1;
        let rest = &text[at + 1..text.len().min(at + 64)];
        let starts =
            |start: &[u8]| rest.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
        let space = |at: usize| rest.get(at).is_none_or(|b| b.is_ascii_whitespace());
        if (starts(b"?php") && space(4)) || starts(b"?=") {
            return Some((at, true));
        }
        // Three printable bytes behind it: in the noise of a compressed image it is chance.
        if starts(b"? ") && rest[2..].iter().take(3).all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace())
        {
            return Some((at, true));
        }
        if starts(b"%")
            && rest.len() > 5
            && rest[1..6].iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace())
        {
            return Some((at, false));
        }
        if starts(b"jsp:") || starts(b"cfexecute") || (starts(b"script") && server_script(rest)) {
            return Some((at, false));
        }
    }
    None
}

/// A script for the common gateway interface, in Python or Perl, that runs what a request gives it.
fn is_gateway_shell(text: &[u8]) -> bool {
    const READERS: [&[u8]; 2] = [b"cgi.FieldStorage(", b"use CGI"];
    const RUNNERS: [&[u8]; 6] = [b"os.popen(", b"os.system(", b"subprocess.", b"system(", b"exec(", b"qx"];
    let text = &text[..text.len().min(CODE_BYTES_MAX)];
    let has = |words: &[&[u8]]| words.iter().any(|word| memmem::find(text, word).is_some());
    has(&READERS) && has(&RUNNERS)
}

/// `<script runat=server>`, `<script language=php>`.
fn server_script(tag: &[u8]) -> bool {
    let tag = tag.to_ascii_lowercase();
    let tag = tag.split(|&b| b == b'>').next().unwrap_or_default();
    memmem::find(tag, b"runat").is_some() || memmem::find(tag, b"php").is_some()
}

/// Vector formats whose readers run commands or read files: MVG and MSL of ImageMagick, PostScript of Ghostscript.
fn runs_commands(text: &[u8], head: &[u8]) -> bool {
    let has = |word: &[u8]| memmem::find(head, word).is_some();
    let is_drawing = has(b"push graphic-context") || has(b"viewbox 0 0");
    (is_drawing && (has(b"url(") || has(b"|") || has(b"label:@") || has(b"ephemeral:") || has(b"msl:")))
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
