//! The syntax of Apache: a directive on each line, sections in angle brackets.

use crate::error::Error;
use crate::report::{Entry, Ledger};
use crate::sources::{FileId, Place, Sources};

/// Sections inside each other.
const DEPTH_MAX: usize = 32;

/// A directive, or a section with what is in it.
#[derive(Clone, Debug)]
pub(crate) struct Directive {
    /// In lower case.
    pub name: String,
    pub args: Vec<String>,
    /// As it is written, lines that go on joined.
    pub text: String,
    pub place: Place,
    /// `None` in files of rules, which are not part of the report.
    pub entry: Option<Entry>,
    /// What is in the section.
    pub block: Option<Vec<Directive>>,
}

impl Directive {
    /// The argument at `index`, or an empty text.
    pub fn arg(&self, index: usize) -> &str {
        self.args.get(index).map_or("", |arg| arg)
    }

    /// What is in its section.
    pub fn children(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }

    /// True for what ModSecurity reads.
    pub fn is_rule(&self) -> bool {
        self.name.starts_with("sec")
    }
}

/// The directives of a file.
pub(crate) fn parse(sources: &Sources, file: FileId) -> Result<Vec<Directive>, Error> {
    let text = sources.text(file);
    let mut lines = text.lines().enumerate();
    let mut open: Vec<(Directive, Vec<Directive>)> = Vec::new();
    let mut items = Vec::new();
    while let Some((number, first)) = lines.next() {
        let place = Place { file, line: number + 1 };
        let mut line = first.trim().to_owned();
        if line.starts_with('#') {
            continue;
        }
        // A backslash joins the next line; rules keep the break, which means nothing to them.
        while line.ends_with('\\') {
            line.pop();
            let Some((_, next)) = lines.next() else { break };
            line.push_str(next.trim());
        }
        if line.is_empty() {
            continue;
        }
        let wrong = |message: String| Err(sources.error(place, message));
        if let Some(name) = line.strip_prefix("</") {
            let name = name.trim_end_matches('>').trim().to_ascii_lowercase();
            let Some((mut section, before)) = open.pop() else {
                return wrong(format!("</{name}> without its opening"));
            };
            if section.name != name {
                return wrong(format!("</{name}> closes <{}> of line {}", section.name, section.place.line));
            }
            section.block = Some(std::mem::replace(&mut items, before));
            items.push(section);
        } else if let Some(inner) = line.strip_prefix('<') {
            let Some(inner) = inner.strip_suffix('>') else {
                return wrong("a section without `>`".to_owned());
            };
            if open.len() == DEPTH_MAX {
                return wrong(format!("more than {DEPTH_MAX} sections inside each other"));
            }
            let section = directive(inner, &line, place);
            open.push((section, std::mem::take(&mut items)));
        } else {
            items.push(directive(&line, &line, place));
        }
    }
    match open.last() {
        Some((section, _)) => Err(sources.error(section.place, format!("<{}> is not closed", section.name))),
        None => Ok(items),
    }
}

fn directive(line: &str, text: &str, place: Place) -> Directive {
    let mut words = words(line).into_iter();
    let name = words.next().unwrap_or_default().to_ascii_lowercase();
    Directive { name, args: words.collect(), text: text.to_owned(), place, entry: None, block: None }
}

/// A directive of the same place with another text, without what is in its section; `None` if the text of a
/// section is no longer one, or that of a line is.
pub(crate) fn reread(item: &Directive, text: &str) -> Option<Directive> {
    let line = match &item.block {
        Some(_) => text.strip_prefix('<').filter(|line| !line.starts_with('/'))?.strip_suffix('>')?,
        None => Some(text).filter(|text| !text.starts_with('<'))?,
    };
    Some(Directive { entry: item.entry, ..directive(line, text, item.place) })
}

/// The words of a line; those in quotes may have blanks, and a backslash before a quote.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut chars = line.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let Some(&first) = chars.peek() else { return words };
        let quote = (first == '"' || first == '\'').then_some(first);
        if quote.is_some() {
            chars.next();
        }
        let mut word = String::new();
        while let Some(c) = chars.next() {
            match (c, quote) {
                ('\\', Some(quote)) => match chars.next_if(|next| *next == quote || *next == '\\') {
                    Some(next) => word.push(next),
                    None => word.push('\\'),
                },
                (c, Some(quote)) if c == quote => break,
                (c, None) if c.is_whitespace() => break,
                (c, _) => word.push(c),
            }
        }
        words.push(word);
    }
}

/// Enters directives and what is in them into the ledger.
pub(crate) fn enter(items: &mut [Directive], sources: &Sources, ledger: &mut Ledger) -> Result<(), Error> {
    for item in items {
        item.entry = Some(ledger.enter(sources, item.place, &item.text)?);
        if let Some(block) = &mut item.block {
            enter(block, sources, ledger)?;
        }
    }
    Ok(())
}
