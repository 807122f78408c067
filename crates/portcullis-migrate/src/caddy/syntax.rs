//! The syntax of a Caddyfile: words, the first of a line is a directive, braces open blocks.

use crate::error::Error;
use crate::report::{Entry, Ledger};
use crate::sources::{FileId, Place, Sources};

/// Blocks inside each other.
const DEPTH_MAX: usize = 32;

/// A directive, a site or a snippet, with what is in its block.
#[derive(Clone, Debug)]
pub(crate) struct Directive {
    /// The words of the line.
    pub words: Vec<String>,
    pub entry: Entry,
    pub place: Place,
    pub block: Option<Vec<Directive>>,
}

impl Directive {
    /// The first word.
    pub fn name(&self) -> &str {
        self.words.first().map_or("", |word| word)
    }

    /// The words behind the first.
    pub fn args(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The argument at `index`, or an empty text.
    pub fn arg(&self, index: usize) -> &str {
        self.words.get(index + 1).map_or("", |word| word)
    }

    /// What is in its block.
    pub fn children(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }
}

struct Word {
    text: String,
    line: usize,
    /// The line in which it ends.
    end: usize,
    /// It was in quotes, so it is no brace.
    quoted: bool,
}

/// The words of a text. `{$NAME:default}` is the default: what the environment has is not known here.
fn words(text: &str) -> Result<Vec<Word>, (usize, String)> {
    let mut words = Vec::new();
    let mut rest = text;
    let mut line = 1;
    loop {
        let trimmed = rest.trim_start();
        line += newlines(&rest[..rest.len() - trimmed.len()]);
        rest = trimmed;
        let Some(first) = rest.chars().next() else { return Ok(words) };
        if first == '#' {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            continue;
        }
        if let Some(after) = rest.strip_prefix("\\\n") {
            // The line goes on.
            rest = after;
            continue;
        }
        let begun = line;
        if first == '`' || first == '"' {
            let (text, length) =
                quoted(rest, first).ok_or((begun, "this text in quotes has no end".to_owned()))?;
            line += newlines(&rest[..length]);
            words.push(Word { text, line: begun, end: line, quoted: true });
            rest = &rest[length..];
            continue;
        }
        if let Some(mark) =
            rest.strip_prefix("<<").filter(|mark| mark.starts_with(|c: char| c.is_ascii_alphanumeric()))
        {
            let (text, length) =
                heredoc(mark).ok_or((begun, "this text behind `<<` has no end".to_owned()))?;
            line += newlines(&rest[..length + 2]);
            words.push(Word { text, line: begun, end: line, quoted: true });
            rest = &rest[length + 2..];
            continue;
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        words.push(Word { text: environment(&rest[..end]), line, end: line, quoted: false });
        rest = &rest[end..];
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// A text in quotes and its length with them.
fn quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let mut word = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => return Some((word, at + 1)),
            '\\' if quote == '"' => match chars.next()?.1 {
                '"' => word.push('"'),
                other => word.extend(['\\', other]),
            },
            c => word.push(c),
        }
    }
    None
}

/// The lines behind `MARK`, up to one that is `MARK`, and their length.
fn heredoc(text: &str) -> Option<(String, usize)> {
    let (mark, _) = text.split_once('\n')?;
    let mut length = mark.len() + 1;
    let mark = mark.trim();
    if mark.is_empty() {
        return None;
    }
    let mut lines = Vec::new();
    for line in text.get(length..)?.split_inclusive('\n') {
        let behind = line.trim_start().strip_prefix(mark);
        if behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(char::is_whitespace)) {
            // Other words may follow the mark in its line.
            let indentation = &line[..line.len() - line.trim_start().len()];
            let lines: Vec<&str> =
                lines.iter().map(|line: &&str| line.strip_prefix(indentation).unwrap_or(line)).collect();
            return Some((
                lines.concat().trim_end_matches('\n').to_owned(),
                length + indentation.len() + mark.len(),
            ));
        }
        length += line.len();
        lines.push(line);
    }
    None
}

/// A word with `{$NAME}` and `{$NAME:default}` replaced.
fn environment(word: &str) -> String {
    let mut result = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once("{$") {
        let Some((inner, behind)) = after.split_once('}') else { break };
        result.push_str(before);
        match inner.split_once(':') {
            Some((_, default)) => result.push_str(default),
            None => {
                result.push_str("{$");
                result.push_str(inner);
                result.push('}');
            }
        }
        rest = behind;
    }
    result + rest
}

/// The directives of a file; `import` stays what it is.
pub(crate) fn parse(sources: &Sources, file: FileId, ledger: &mut Ledger) -> Result<Vec<Directive>, Error> {
    let text = sources.text(file).replace("\r\n", "\n");
    let words = words(&text).map_err(|(line, message)| sources.error(Place { file, line }, message))?;
    let mut open: Vec<(Directive, Vec<Directive>)> = Vec::new();
    let mut items: Vec<Directive> = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some(first) = words.next() {
        let place = Place { file, line: first.line };
        if first.text == "}" && !first.quoted {
            let Some((mut directive, before)) = open.pop() else {
                return Err(sources.error(place, "`}` without `{`"));
            };
            directive.block = Some(std::mem::replace(&mut items, before));
            items.push(directive);
            continue;
        }
        let mut line = first.line;
        let mut texts = Vec::new();
        let mut opens = first.text == "{" && !first.quoted;
        if !opens {
            line = first.end;
            texts.push(first.text);
        }
        // Sites may stand on several lines with commas between them.
        while !opens {
            let goes_on = texts.last().is_some_and(|text: &String| text.ends_with(','));
            let Some(word) = words.next_if(|word| word.line == line || goes_on) else { break };
            line = word.end;
            opens = word.text == "{" && !word.quoted;
            if !opens {
                if word.text == "}" && !word.quoted {
                    return Err(sources.error(Place { file, line: word.line }, "`}` has to begin its line"));
                }
                texts.push(word.text);
            }
        }
        let shown = texts.join(" ") + if opens { " {" } else { "" };
        let entry = ledger.enter(sources, place, &shown)?;
        let directive = Directive { words: texts, entry, place, block: None };
        if !opens {
            items.push(directive);
            continue;
        }
        if open.len() == DEPTH_MAX {
            return Err(sources.error(place, format!("more than {DEPTH_MAX} blocks inside each other")));
        }
        open.push((directive, std::mem::take(&mut items)));
    }
    match open.last() {
        Some((directive, _)) => {
            Err(sources.error(directive.place, format!("the block of `{}` is not closed", directive.name())))
        }
        None => Ok(items),
    }
}
