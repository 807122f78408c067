//! The syntax of nginx: words, `;`, and blocks in braces.

use std::iter::Peekable;
use std::str::CharIndices;

use crate::error::Error;
use crate::report::{Entry, Ledger};
use crate::sources::{FileId, Place, Sources};

/// Blocks inside each other.
const DEPTH_MAX: usize = 32;
/// Blocks of which the lines are data, not directives.
const DATA: &[&str] = &["types", "map", "geo", "split_clients", "match", "charset_map", "otel_exporter"];

/// A directive, with what is in its block.
#[derive(Clone, Debug)]
pub(crate) struct Directive {
    pub name: String,
    pub args: Vec<String>,
    pub entry: Entry,
    pub place: Place,
    /// What is between its braces, if it has some.
    pub block: Option<Vec<Directive>>,
}

impl Directive {
    /// The argument at `index`, or an empty text.
    pub fn arg(&self, index: usize) -> &str {
        self.args.get(index).map_or("", |arg| arg)
    }

    /// What is in its block.
    pub fn children(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }
}

enum Token {
    Word(String),
    Semicolon,
    Open,
    Close,
}

struct Lexer<'t> {
    chars: Peekable<CharIndices<'t>>,
    text: &'t str,
    line: usize,
}

impl Lexer<'_> {
    fn bump(&mut self) -> Option<char> {
        let (_, c) = self.chars.next()?;
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn peek(&mut self) -> Option<char> {
        self.chars.peek().map(|(_, c)| *c)
    }

    /// The next token and its line; `None` at the end.
    fn next(&mut self) -> Result<Option<(Token, usize)>, String> {
        loop {
            match self.peek() {
                None => return Ok(None),
                Some(c) if c.is_whitespace() => drop(self.bump()),
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.bump();
                    }
                }
                Some(_) => break,
            }
        }
        let line = self.line;
        let token = match self.peek() {
            Some(';') => Token::Semicolon,
            Some('{') => Token::Open,
            Some('}') => Token::Close,
            Some(quote @ ('"' | '\'')) => {
                self.bump();
                return Ok(Some((Token::Word(self.quoted(quote)?), line)));
            }
            _ => return Ok(Some((Token::Word(self.word()?), line))),
        };
        self.bump();
        Ok(Some((token, line)))
    }

    fn quoted(&mut self, quote: char) -> Result<String, String> {
        let begun = self.line;
        let mut word = String::new();
        loop {
            match self.bump() {
                None => return Err(format!("the text in quotes that begins in line {begun} has no end")),
                Some('\\') => self.escape(&mut word),
                Some(c) if c == quote => break,
                Some(c) => word.push(c),
            }
        }
        match self.peek() {
            Some(c) if !(c.is_whitespace() || ";{})".contains(c)) => {
                Err(format!("`{c}` right behind a closing quote"))
            }
            _ => Ok(word),
        }
    }

    fn word(&mut self) -> Result<String, String> {
        let mut word = String::new();
        while let Some(c) = self.peek() {
            if c.is_whitespace() || c == ';' || (c == '{' && !word.ends_with('$')) {
                break;
            }
            self.bump();
            match c {
                '\\' => self.escape(&mut word),
                '{' => {
                    word.push('{');
                    while let Some(c) = self.bump() {
                        word.push(c);
                        if c == '}' {
                            break;
                        }
                        if c.is_whitespace() {
                            return Err("`${` without `}`".to_owned());
                        }
                    }
                }
                c => word.push(c),
            }
        }
        Ok(word)
    }

    /// What follows a backslash: nginx itself only takes it away from quotes, backslashes and blanks.
    fn escape(&mut self, word: &mut String) {
        let escaped = self.bump();
        escape(escaped, word);
    }

    /// Passes over a block of another language, whose opening brace has been read.
    fn skip_block(&mut self) -> Result<(), String> {
        let begun = self.line;
        let mut depth = 1_usize;
        while let Some(c) = self.bump() {
            match c {
                '{' => depth += 1,
                '}' if depth == 1 => return Ok(()),
                '}' => depth -= 1,
                _ => {}
            }
        }
        Err(format!("the block that begins in line {begun} has no end ({} bytes)", self.text.len()))
    }
}

fn escape(c: Option<char>, word: &mut String) {
    match c {
        Some(c @ ('"' | '\'' | '\\')) => word.push(c),
        Some('t') => word.push('\t'),
        Some('r') => word.push('\r'),
        Some('n') => word.push('\n'),
        Some(c) => word.extend(['\\', c]),
        None => word.push('\\'),
    }
}

/// A text as nginx reads it between quotes.
pub(crate) fn unquoted(text: &str) -> String {
    let (mut result, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => escape(chars.next(), &mut result),
            c => result.push(c),
        }
    }
    result
}

/// A block that is open: its directive, and what was in the block around it before.
struct Open {
    directive: Directive,
    before: Vec<Directive>,
}

/// The directives of a file. `include` stays what it is.
pub(crate) fn parse(sources: &Sources, file: FileId, ledger: &mut Ledger) -> Result<Vec<Directive>, Error> {
    let text = sources.text(file);
    let mut lexer = Lexer { chars: text.char_indices().peekable(), text: &text, line: 1 };
    let mut open: Vec<Open> = Vec::new();
    let mut items: Vec<Directive> = Vec::new();
    let mut words: Vec<(String, usize)> = Vec::new();
    loop {
        let here = Place { file, line: lexer.line };
        let Some((token, line)) = lexer.next().map_err(|message| sources.error(here, message))? else {
            break;
        };
        let wrong = |message: String| sources.error(Place { file, line }, message);
        match token {
            Token::Word(word) => words.push((word, line)),
            Token::Semicolon => {
                if let Some(directive) = directive(sources, file, ledger, &mut words, &open, false)? {
                    items.push(directive);
                } else {
                    return Err(wrong("`;` without a directive".to_owned()));
                }
            }
            Token::Open => {
                if open.len() == DEPTH_MAX {
                    return Err(wrong(format!("more than {DEPTH_MAX} blocks inside each other")));
                }
                let Some(directive) = directive(sources, file, ledger, &mut words, &open, true)? else {
                    return Err(wrong("`{` without a directive".to_owned()));
                };
                if directive.name.ends_with("_by_lua_block") {
                    lexer.skip_block().map_err(wrong)?;
                    items.push(directive);
                } else {
                    open.push(Open { directive, before: std::mem::take(&mut items) });
                }
            }
            Token::Close => {
                if let Some((word, line)) = words.first() {
                    let message = format!("`{word}` lacks its `;`");
                    return Err(sources.error(Place { file, line: *line }, message));
                }
                let Some(Open { mut directive, before }) = open.pop() else {
                    return Err(wrong("`}` without `{`".to_owned()));
                };
                directive.block = Some(std::mem::replace(&mut items, before));
                items.push(directive);
            }
        }
    }
    if let Some(Open { directive, .. }) = open.last() {
        return Err(
            sources.error(directive.place, format!("the block of `{}` is not closed", directive.name))
        );
    }
    if let Some((word, line)) = words.first() {
        return Err(sources.error(Place { file, line: *line }, format!("`{word}` lacks its `;`")));
    }
    Ok(items)
}

/// The directive of `words`, which are taken; what is in a block of data has the entry of the block.
fn directive(
    sources: &Sources,
    file: FileId,
    ledger: &mut Ledger,
    words: &mut Vec<(String, usize)>,
    open: &[Open],
    opens: bool,
) -> Result<Option<Directive>, Error> {
    let Some((_, line)) = words.first() else { return Ok(None) };
    let place = Place { file, line: *line };
    let mut texts = words.drain(..).map(|(word, _)| word);
    let name = texts.next().unwrap_or_default();
    let args: Vec<String> = texts.collect();
    let data = open.iter().find(|open| DATA.contains(&open.directive.name.as_str()));
    let entry = match data {
        Some(block) => block.directive.entry,
        None => {
            let shown = [&name[..]].into_iter().chain(args.iter().map(|arg| &arg[..])).collect::<Vec<_>>();
            let shown = shown.join(" ") + if opens { " {" } else { "" };
            ledger.enter(sources, place, &shown)?
        }
    };
    Ok(Some(Directive { name, args, entry, place, block: None }))
}
