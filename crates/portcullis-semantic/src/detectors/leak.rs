//! What a response should not tell: source code, stack traces, directory listings, messages of databases, keys, the page of a
//! web shell.
//!
//! What it does: looks for the marks that products write, most of them in pairs that stand near each other, and for source
//! code of a server's language that was sent instead of run. A page *about* them has the first mark; the second one, with the
//! numbers and paths of a real failure, is rarer there.
//!
//! Why it is dangerous: it tells an attacker the next step, or is what the attacker came for.
//!
//! References: <https://owasp.org/www-community/Improper_Error_Handling>, <https://cwe.mitre.org/data/definitions/200.html>.

use aho_corasick::{AhoCorasick, MatchKind};
use memchr::memmem;
use portcullis_types::Span;

use crate::{Class, Detector, Found, Input, KindId, Place, Profile, kinds};

kinds! {
    reference "https://cwe.mitre.org/data/definitions/200.html";
    SQL_ERROR "leak.sql-error" Critical "a database's error message";
    STACK_TRACE "leak.stack-trace" Critical "a stack trace, or an error message with paths of the server";
    LISTING "leak.listing" Critical "the listing of a directory";
    SECRET "leak.secret" Critical "a private key, or a file of the system or of its settings";
    WEB_SHELL "leak.web-shell" Critical "the page of a web shell, or the output of a command in it";
    SOURCE "leak.source" Critical "source code that the server should have run";
}

/// How far behind a mark the second one may stand.
const PAIR_BYTES_MAX: usize = 2_048;

/// Marks of one body that are looked at.
const MARKS_MAX: usize = 64;

/// Source code is looked for where a document begins; further on it is an example in a page.
const SOURCE_BYTES_MAX: usize = 512;

/// See the module.
#[derive(Debug)]
pub struct Leak {
    marks: AhoCorasick,
    about: Vec<(KindId, &'static [u8])>,
}

impl Leak {
    /// The detector with its data.
    pub fn new() -> Leak {
        let (mut marks, mut about) = (Vec::new(), Vec::new());
        let lines = include_str!("../../data/leak-marks.tsv").lines().filter(|line| !line.starts_with('#'));
        for line in lines {
            let mut fields = line.split('\t');
            let (Some(mark), Some(group), Some(second)) = (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let kind = match group {
                "sql" => SQL_ERROR,
                "trace" => STACK_TRACE,
                "listing" => LISTING,
                "secret" => SECRET,
                _ => WEB_SHELL,
            };
            marks.push(mark);
            about.push((kind, second.as_bytes()));
        }
        let marks = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(marks)
            .expect("the marks are few");
        Leak { marks, about }
    }
}

impl Default for Leak {
    fn default() -> Self {
        Leak::new()
    }
}

static PROFILE: Profile = Profile::new(Class::Leak, KINDS);

impl Detector for Leak {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads(&self, place: Place) -> bool {
        place == Place::ResponseBody
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        for hit in self.marks.find_iter(text).take(MARKS_MAX) {
            let (kind, second) = self.about[hit.pattern().as_usize()];
            let window = &text[hit.end()..text.len().min(hit.end() + PAIR_BYTES_MAX)];
            if memmem::find(window, second).is_some() {
                found.add(kind, Span::new(hit.start(), hit.end()));
            }
        }
        if let Some(at) = frames(text) {
            found.add(STACK_TRACE, Span::new(at, at));
        }
        if let Some(at) = source(&text[..text.len().min(SOURCE_BYTES_MAX)]) {
            found.add(SOURCE, Span::new(at, text.len().min(at + 64)));
        }
    }
}

/// Two lines in a row of a Java, .NET or Node stack: `at a.b.C(D.java:1)`, `at A.B() in C:\x.cs:line 1`, `at f (/x.js:1:2)`.
fn frames(text: &[u8]) -> Option<usize> {
    let mut before = None;
    for at in memmem::find_iter(text, b"at ") {
        let starts_line =
            text[..at].iter().rev().find(|b| !matches!(b, b' ' | b'\t')).is_none_or(|&b| b == b'\n');
        let line = &text[at..];
        let line = &line[..memchr::memchr(b'\n', line).unwrap_or(line.len()).min(400)];
        if !starts_line || !is_frame(line) {
            continue;
        }
        match before {
            Some(end) if at - end < 64 => return Some(at),
            _ => before = Some(at + line.len()),
        }
    }
    None
}

fn is_frame(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let has = |word: &[u8]| memmem::find(line, word).is_some();
    let ends_numbered = |end: &[u8]| {
        line.strip_suffix(end)
            .is_some_and(|rest| rest.ends_with(b":") || rest.last().is_some_and(u8::is_ascii_digit))
    };
    (line.ends_with(b")")
        && ends_numbered(b")")
        && (has(b".java:") || has(b".kt:") || has(b".scala:") || has(b".js:") || has(b".ts:")))
        || has(b":line ")
        || has(b"(Native Method)")
        || has(b"(Unknown Source)")
}

/// Where code of a server's language begins, if a document begins with it.
fn source(head: &[u8]) -> Option<usize> {
    let text = head.trim_ascii_start();
    let at = head.len() - text.len();
    let starts = |start: &[u8]| text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    let is_code = starts(b"<?php")
        || starts(b"<?= ")
        || starts(b"<%@ page")
        || starts(b"<%@page")
        || starts(b"<%@ language")
        || starts(b"<%@ import")
        || starts(b"<%@ taglib")
        || starts(b"#!/usr/bin/perl")
        || starts(b"#!/usr/bin/env python")
        || starts(b"#!/usr/bin/php");
    is_code.then_some(at)
}

#[cfg(test)]
mod tests {
    use crate::detectors::testing::{blocks_at, passes_at};
    use crate::{Class, Place};

    #[track_caller]
    fn tells(text: &str, wanted: &str) {
        blocks_at(Class::Leak, Place::ResponseBody, text, wanted);
    }

    #[track_caller]
    fn tells_nothing(text: &str) {
        passes_at(Class::Leak, Place::ResponseBody, "", text);
    }

    #[test]
    fn databases() {
        tells(
            "<p>You have an error in your SQL syntax; check the manual that corresponds to your MySQL server",
            "sql-error",
        );
        tells("SQLSTATE[42000]: Syntax error or access violation", "sql-error");
        tells("ORA-01756: quoted string not properly terminated", "sql-error");
    }

    #[test]
    fn traces() {
        tells(
            "Traceback (most recent call last):\n  File \"/srv/app.py\", line 3, in <module>",
            "stack-trace",
        );
        tells("<b>Fatal error</b>:  Uncaught Error in <b>/var/www/x.php</b> on line <b>3</b>", "stack-trace");
        tells("x\n\tat a.b.C.d(C.java:10)\n\tat a.b.E.f(E.java:20)\n", "stack-trace");
        tells("Error: x\n    at f (/srv/app.js:1:2)\n    at g (/srv/app.js:3:4)\n", "stack-trace");
        tells("  at A.B.C() in C:\\x\\D.cs:line 5\r\n  at A.B.E() in C:\\x\\D.cs:line 9\r\n", "stack-trace");
    }

    #[test]
    fn pages() {
        tells(
            "<html><head><title>Index of /backup</title></head><a href=\"/\">Parent Directory</a>",
            "listing",
        );
        tells("root:x:0:0:root:/root:/bin/bash\n", "secret");
        tells("<pre>uid=0(root) gid=0(root) groups=0(root)</pre>", "web-shell");
        tells("<?php\n$db = 'x';", "source");
        tells("\n<%@ page language=\"java\" %>", "source");
    }

    #[test]
    fn pages_that_pass() {
        tells_nothing("<html><body>Look at the index of the book at page 5.</body></html>");
        tells_nothing(
            "<p>A Python traceback begins with <code>Traceback (most recent call last):</code></p>",
        );
        tells_nothing("<p>Write <code>&lt;?php echo 1; ?&gt;</code> in your template.</p>");
        tells_nothing("{\"error\":\"not found\",\"at\":\"2026-01-01\"}");
        tells_nothing("Meet me at home.\nat noon\nat (a:1)\n");
    }
}
