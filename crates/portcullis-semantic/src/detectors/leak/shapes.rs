//! Structures after the marks: keys, lists of users, the output of commands, lines of a stack, source code.

use memchr::memmem;
use portcullis_types::Span;

/// Characters of a key without which it is an example.
const KEY_CHARS_MIN: usize = 200;

/// Bytes of a line of a stack.
const LINE_BYTES_MAX: usize = 400;

/// True if `rest`, which follows `-----BEGIN `, names a private key and has one. Line ends may be written as
/// `\n`.
pub(super) fn is_key(rest: &[u8]) -> bool {
    let head = &rest[..rest.len().min(48)];
    let Some(label) = memmem::find(head, b"-----").map(|end| &head[..end]) else { return false };
    if !label.ends_with(b"PRIVATE KEY") && !label.ends_with(b"PRIVATE KEY BLOCK") {
        return false;
    }
    let mut chars = 0;
    let mut at = label.len() + 5;
    while let Some(&b) = rest.get(at) {
        at += match b {
            b'\\' if matches!(rest.get(at + 1), Some(b'n' | b'r' | b'/')) => 2,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'+' | b'/' | b'=' => {
                chars += 1;
                1
            }
            // `Proc-Type: 4,ENCRYPTED` and the like come before the key.
            b'\r' | b'\n' | b' ' | b'-' | b':' | b',' if chars < KEY_CHARS_MIN / 2 || b != b'-' => 1,
            _ => break,
        };
        if chars >= KEY_CHARS_MIN {
            return true;
        }
    }
    false
}

/// Lines in a row that are `name:password:number:number:`, from the beginning of `text`.
pub(super) fn passwd_lines(text: &[u8]) -> usize {
    let is_line = |line: &&[u8]| {
        let mut fields = line.split(|&b| b == b':');
        let is_number = |field: Option<&[u8]>| {
            field.is_some_and(|field| !field.is_empty() && field.iter().all(u8::is_ascii_digit))
        };
        let name = fields.next().unwrap_or_default();
        let name_fits = (1..=32).contains(&name.len()) && name.iter().all(|b| b.is_ascii_graphic());
        name_fits
            && fields.next().is_some()
            && is_number(fields.next())
            && is_number(fields.next())
            && fields.count() >= 2
    };
    text.split(|&b| b == b'\n').take(64).take_while(is_line).count()
}

/// True if the `) gid=` at `at` belongs to the output of `id`, at the beginning of a line or element.
pub(super) fn is_identity(text: &[u8], at: usize) -> bool {
    let from = at.saturating_sub(48);
    let Some(start) = memmem::rfind(&text[from..at], b"uid=").map(|start| from + start) else { return false };
    let named = &text[start + 4..at];
    let Some(open) = memchr::memchr(b'(', named) else { return false };
    let starts = start == 0 || matches!(text[start - 1], b'\n' | b'>');
    let follows = text.get(at + 6).is_some_and(u8::is_ascii_digit);
    starts && follows && open > 0 && named[..open].iter().all(u8::is_ascii_digit)
}

/// The line around `at`, without white space and quotes around it. Tags and `\n` as JSON writes it end lines,
/// too.
pub(super) fn line_around(text: &[u8], at: usize) -> Span {
    let from = at.saturating_sub(LINE_BYTES_MAX);
    let before = &text[from..at];
    let start = before.iter().rposition(|&b| matches!(b, b'\n' | b'>')).map_or(0, |end| end + 1);
    let start = start.max(memmem::rfind(before, b"\\n").map_or(0, |end| end + 2));
    let after = &text[at..text.len().min(at + LINE_BYTES_MAX)];
    let end = after.iter().position(|&b| matches!(b, b'\n' | b'<')).unwrap_or(after.len());
    let end = end.min(memmem::find(after, b"\\n").unwrap_or(after.len()));
    let (mut start, mut end) = (from + start, at + end);
    loop {
        let line = &text[start..end];
        start += match line {
            [b' ' | b'\t' | b'"' | b',', ..] => 1,
            _ if line.starts_with(b"\\t") => 2,
            _ if line.starts_with(b"&nbsp;") => 6,
            _ => break,
        };
    }
    while end > start && matches!(text[end - 1], b' ' | b'\t' | b'\r' | b'"' | b',' | b'}' | b']') {
        end -= 1;
    }
    Span::new(start, end)
}

/// A line of a Java, .NET or Node stack: `at a.b.C(D.java:1)`, `at A.B() in C:\x.cs:line 1`,
/// `at f (/x.js:1:2)`.
pub(super) fn is_frame(line: &[u8]) -> bool {
    let has = |word: &[u8]| memmem::find(line, word).is_some();
    let ends_numbered = || line.strip_suffix(b")").and_then(<[u8]>::last).is_some_and(u8::is_ascii_digit);
    let in_file = || [&b".java:"[..], b".kt:", b".scala:", b".js:", b".ts:"].iter().any(|file| has(file));
    line.starts_with(b"at ")
        && (ends_numbered() && in_file()
            || has(b":line ")
            || has(b"(Native Method)")
            || has(b"(Unknown Source)"))
}

/// Where code of a server's language begins, if a document begins with it.
pub(super) fn source(head: &[u8]) -> Option<usize> {
    const STARTS: [&[u8]; 10] = [
        b"<?php",
        b"<?= ",
        b"<%@ page",
        b"<%@page",
        b"<%@ language",
        b"<%@ import",
        b"<%@ taglib",
        b"#!/usr/bin/perl",
        b"#!/usr/bin/env python",
        b"#!/usr/bin/php",
    ];
    let text = head.trim_ascii_start();
    let starts = |start: &&[u8]| text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    STARTS.iter().any(starts).then_some(head.len() - text.len())
}

/// What a small web shell writes around the output of a command for its client.
pub(super) fn china_chopper(text: &[u8]) -> bool {
    text.starts_with(b"->|") && text.trim_ascii_end().ends_with(b"|<-")
}
