//! The type of a text as a whole, in a field that the site made for files: a page, a source of PHP, a program
//! with strings in it.
//!
//! An editor, a wiki or an interface to a repository keeps such a text as it is. Nothing here says that a
//! text is harmless: each reader says what of the whole is no piece of something else.

#[cfg(test)]
mod padding_tests;
mod program;

use memchr::memmem;

use crate::detectors::purpose;
use crate::detectors::scan::has_at;
use crate::{Location, Place};

/// A text of several lines that is no longer may be a value, whatever the field is for.
const VALUE_BYTES_MAX: usize = 96;

/// See the module. Nothing of it holds in a field for anything else, and for a text of one line only that it
/// is a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Document {
    /// It has several lines or is a program on one line, and is an uploaded file or stands in a field for
    /// files.
    pub has_lines: bool,
    /// The site made the field for files, and the text has several lines or is a program on one line.
    pub is_file: bool,
    /// From its first sign on the text is a page or a program of PHP, in a field for pages.
    pub is_page: bool,
    /// From its first sign on the text is a program of PHP.
    pub is_php: bool,
    /// It is a script, and its first line says for which program.
    pub is_script: bool,
    /// It is an XML document that lists the objects of a program, as containers and loggers keep their
    /// settings.
    pub is_settings: bool,
}

impl Document {
    /// What `text` is at `location`.
    pub fn of(location: Location<'_>, text: &[u8]) -> Document {
        let begin = begin(text);
        let form = Form::of(begin);
        // A page on one line and settings show themselves by their first sign.
        if form == Form::Value && !(begin.starts_with(b"<") && text.len() > VALUE_BYTES_MAX) {
            return Document::default();
        }
        let is_upload = location.place == Place::FileContent;
        let is_file = is_upload || purpose::takes_file(location);
        // Of a whole body, too: programs that make objects of XML know no such elements.
        let is_body = location.place == Place::RawBody;
        if !is_file && !is_body {
            return Document::default();
        }
        let is_settings = begin.starts_with(b"<") && SETTINGS.contains(&root(begin));
        if !is_file {
            return Document { is_settings, ..Document::default() };
        }
        let is_php = begins_php(begin);
        let is_page = !is_upload && purpose::takes_page(location) && (is_page(begin) || is_php);
        let has_lines = form.is_of_file(begin);
        if !has_lines {
            return Document { is_page, is_file: is_page, ..Document::default() };
        }
        Document {
            has_lines,
            is_file: !is_upload,
            is_page,
            is_php,
            is_script: !is_upload
                && begin.strip_prefix(b"#!").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"/")),
            is_settings,
        }
    }
}

/// The form of a text, as far as its first and last bytes show it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Value,
    Lines,
    /// One line that begins and ends as a program does.
    MayBeProgram,
}

impl Form {
    /// The form of a text from its first sign on. Each value of a message is asked.
    fn of(text: &[u8]) -> Form {
        let text = text.trim_ascii_end();
        if text.len() > VALUE_BYTES_MAX && memchr::memchr(b'\n', text).is_some() {
            return Form::Lines;
        }
        match program::begins_and_ends(text) && memchr::memchr(b'\n', text).is_none() {
            true => Form::MayBeProgram,
            false => Form::Value,
        }
    }

    /// `text`, of this form, has several lines or is a program on one line, as files are and values seldom.
    /// The length of a line says nothing.
    fn is_of_file(self, text: &[u8]) -> bool {
        match self {
            Form::Value => false,
            Form::Lines => true,
            Form::MayBeProgram => program::is_program(text),
        }
    }
}

/// `text` has the form of a file, whatever it is.
pub(crate) fn has_form_of_file(text: &[u8]) -> bool {
    let text = begin(text);
    Form::of(text).is_of_file(text)
}

/// `text` is a page, a piece of one or a source of PHP from its first sign on: no document of XML, although
/// it has elements.
pub(crate) fn is_no_xml(text: &[u8]) -> bool {
    const PIECES: &[&[u8]] =
        &[b"div", b"ul", b"ol", b"nav", b"h1", b"h2", b"h3", b"script", b"style", b"template", b"fieldset"];
    let begin = begin(text);
    let name = begin.strip_prefix(b"<").unwrap_or_default();
    let name = &name[..name.iter().take(16).take_while(|b| b.is_ascii_alphanumeric()).count()];
    is_page(begin) || begins_php(begin) || PIECES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The text from its first sign on, without the mark of UTF-8.
fn begin(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text).trim_ascii_start()
}

/// Elements that such documents begin with: of Jetty, Spring, Aries, Tomcat, servlets, .NET, log4j and
/// Logback, JPA, Hibernate.
const SETTINGS: &[&[u8]] = &[
    b"Configure",
    b"beans",
    b"blueprint",
    b"Server",
    b"Context",
    b"web-app",
    b"configuration",
    b"log4j:configuration",
    b"persistence",
    b"hibernate-configuration",
];

/// The name of the first element.
fn root(mut text: &[u8]) -> &[u8] {
    loop {
        let end: &[u8] = match text {
            [b'<', b'?', ..] => b"?>",
            [b'<', b'!', b'-', b'-', ..] => b"-->",
            // One that declares entities has brackets, and its first `>` is not its end.
            [b'<', b'!', ..] => b">",
            [b'<', rest @ ..] => {
                let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b':');
                return &rest[..rest.iter().take(32).take_while(|b| is_part(b)).count()];
            }
            _ => return b"",
        };
        let Some(at) = memmem::find(text, end) else { return b"" };
        text = text[at + end.len()..].trim_ascii_start();
    }
}

/// A page from its document type or its first element on, after a declaration and comments.
fn is_page(mut text: &[u8]) -> bool {
    loop {
        let end: &[u8] = match text {
            [b'<', b'?', b'x', b'm', b'l', ..] => b"?>",
            [b'<', b'!', b'-', b'-', ..] => b"-->",
            // `<template>`: a component of Vue, with its script beside it.
            _ => {
                return has_at(text, 0, b"<!doctype html")
                    || has_at(text, 0, b"<html")
                    || text.starts_with(b"<template>") && memmem::find(text, b"</template>").is_some();
            }
        };
        let Some(at) = memmem::find(text, end) else { return false };
        text = text[at + end.len()..].trim_ascii_start();
    }
}

fn begins_php(text: &[u8]) -> bool {
    // A program for a terminal names its interpreter first.
    let text = match text.strip_prefix(b"#!").and_then(|rest| Some((rest, memchr::memchr(b'\n', rest)?))) {
        Some((rest, end)) => rest[end..].trim_ascii_start(),
        None => text,
    };
    text.strip_prefix(b"<?php").is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_whitespace))
}

/// Where the quotes of strings stand that begin and end on one line, as programs write them: in order. What
/// stands before and after a string is a sign, white space or the end of the line; the quotes within it are
/// part of it. A quote that fits nowhere takes those after it on its line out: a string of a statement may
/// end there.
pub(super) fn quotes(text: &[u8]) -> Vec<usize> {
    let mut quotes = Vec::new();
    let mut start = 0;
    let mut before = None;
    // Three quotes of a kind that nothing closes are looked for once.
    let mut is_open = [false; 2];
    while start < text.len() {
        let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |len| start + len);
        let line = &text[start..end];
        let long = strings(line, start, before, &mut quotes).map(|open| start + open);
        before = line.trim_ascii_end().last().copied().or(before);
        start = end + 1;
        let Some(open) = long else { continue };
        let is_open = &mut is_open[usize::from(text[open] == b'"')];
        if *is_open {
            continue;
        }
        match memmem::find(&text[open + 3..], &[text[open]; 3]) {
            Some(len) => {
                let close = open + 3 + len + 3;
                let inner = &text[open..close];
                quotes.extend(memchr::memchr3_iter(b'\'', b'"', b'`', inner).map(|at| open + at));
                start = close;
            }
            None => *is_open = true,
        }
    }
    quotes.sort_unstable();
    quotes
}

/// The quotes of the strings of `line`, which begins at `start`; the last sign of the lines above is `above`.
/// Where a text of several lines begins, between three quotes, the line's reading ends.
fn strings(line: &[u8], start: usize, above: Option<u8>, quotes: &mut Vec<usize>) -> Option<usize> {
    let is_word =
        |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_' || !b.is_ascii());
    let first = line.len() - line.trim_ascii_start().len();
    let mut at = first;
    while let Some(skipped) = line.get(at..).and_then(|rest| rest.iter().position(|b| b"'\"`\\".contains(b)))
    {
        let open = at + skipped;
        let quote = line[open];
        at = open + 1;
        if quote == b'\\' {
            at += 1;
            continue;
        }
        let head = &line[..open];
        let word = head.iter().rev().take_while(|b| is_word(Some(b))).count();
        // `b'x'`, `L"x"`: letters of a prefix.
        let prefix = &head[head.len() - word..];
        let is_prefix = word <= PREFIX_MAX && prefix.iter().all(|b| b"bBrRuUfFLlxXnNeEqQ8".contains(b));
        // `1%' or`: what ends a pattern of a statement.
        if word == 0 && matches!(head.last(), Some(b'%' | b')' | b']' | b'}')) {
            return None;
        }
        if word > 0 && !is_prefix {
            if is_word(line.get(at)) {
                // An apostrophe.
                continue;
            }
            return None;
        }
        // Markdown's, in a sentence.
        let words = head.trim_ascii_end();
        if quote == b'`' && words.len() < head.len() && is_word(words.last()) && !words.ends_with(b"return") {
            return None;
        }
        if line[open..].starts_with(&[quote; 3]) {
            return (quote != b'`').then_some(open);
        }
        let close = string_end(line, at, quote)?;
        if is_word(line.get(close + 1)) {
            return None;
        }
        // A line that begins with a string is an item of a list or goes on with what stands above it.
        if open == first {
            let goes_on = above.is_some_and(|b| b"([{,=:+?|&.<>\\\"'".contains(&b));
            let is_item =
                line[close + 1..].trim_ascii_start().first().is_some_and(|b| b",:;)]}.".contains(b));
            if !(goes_on || is_item && above.is_some()) {
                return None;
            }
        }
        quotes
            .extend(memchr::memchr3_iter(b'\'', b'"', b'`', &line[open..=close]).map(|at| start + open + at));
        at = close + 1;
    }
    None
}

/// Letters before a string: `rb"x"`, `u8"x"`.
const PREFIX_MAX: usize = 2;

/// Where the string ends that began before `at`.
fn string_end(line: &[u8], mut at: usize, quote: u8) -> Option<usize> {
    loop {
        at += memchr::memchr2(quote, b'\\', line.get(at..)?)?;
        match (line[at], line.get(at + 1)) {
            (b'\\', _) => at += 2,
            (_, Some(next)) if *next == quote => at += 2,
            _ => return Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let have: String = quotes(text.as_bytes()).iter().map(|at| format!("{at} ")).collect();
        assert_eq!(have.trim(), want, "{text}");
    }

    #[test]
    fn strings_of_a_line() {
        check("x = 'a' + \"b'c\"", "4 6 10 12 14");
        check(r"if (c == '\'' || c == '\\')", "9 11 12 22 25");
        check("f(b'#!', L\"x\")", "3 6 10 12");
        check("it's 'a'", "5 7");
        check("x = 'it''s'", "4 7 8 10");
        // A quote after a word, or before one, ends something else.
        check("x' or '1'='1", "");
        check("a = 'b'; x' or '1'='1", "4 6");
        check("x ' or '1'='1", "");
        check("a' or 1=1 -- '", "");
        check("x = 1%' or 1=1 and '%'='", "");
        check("f(a)' or 'b' = '", "");
        check("' or 1=1 -- '", "");
        check("x\n' or 1=1 -- '", "");
        check("look at `1' or 1=1 -- ` now", "");
        check("return `it's`", "7 10 12");
        check("a = [\n  'b',\n  'c'\n]", "8 10 15 17");
    }

    #[test]
    fn documents() {
        let at = |name: &'static str| Location::new(Place::Json, name.as_bytes());
        let long = " ".repeat(VALUE_BYTES_MAX) + "x";
        assert!(!Document::of(at("content"), ("x".to_owned() + &long).as_bytes()).is_file);
        let is_page = |name, text: &str| Document::of(at(name), (text.to_owned() + &long).as_bytes()).is_page;
        assert!(
            is_page("content", "<!DOCTYPE html><html>") && is_page("html", "<?xml?>\n<!-- x -->\n<html>")
        );
        assert!(!is_page("content", "x <html>") && !is_page("content", "<p><html>"));
        assert!(!is_page("comment", "<!doctype html>") && !is_page("q", "<!doctype html>"));
        assert_eq!(Document::of(at("content"), b"<!doctype html>\n<p>"), Document::default());
    }
}
