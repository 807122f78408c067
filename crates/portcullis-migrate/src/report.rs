//! The report: what became of each directive that was read.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::error::Error;
use crate::sources::{Place, Sources};

/// Directives of one configuration.
const ENTRIES_MAX: usize = 100_000;
/// Characters of a directive that are shown.
const TEXT_MAX: usize = 100;
/// Different things that are said of one directive; it may be used in many places.
const NOTES_MAX: usize = 4;

/// What became of a directive. Later ones win where it is used in several places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// The document says the same.
    Taken,
    /// The document says something that is not quite the same.
    Changed,
    /// The document has nothing of it.
    Left,
    /// It let only some requests through, and the document cannot say which: all of them are refused.
    Closed,
    /// It said where the requests of a site go, and nothing else does.
    Broken,
}

/// A directive of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Entry(usize);

#[derive(Debug)]
struct Line {
    place: Place,
    text: String,
    fate: Option<Fate>,
    notes: Vec<String>,
    /// It is taken over by something of the model that names this directive.
    promised: bool,
}

/// Every directive that was read, each once, and what became of it. One that nobody settles is left.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    lines: Vec<Line>,
}

impl Ledger {
    /// A directive that was read.
    pub fn enter(&mut self, sources: &Sources, place: Place, text: &str) -> Result<Entry, Error> {
        if self.lines.len() == ENTRIES_MAX {
            return Err(sources.error(place, format!("more than {ENTRIES_MAX} directives")));
        }
        self.lines.push(Line {
            place,
            text: shortened(text),
            fate: None,
            notes: Vec::new(),
            promised: false,
        });
        Ok(Entry(self.lines.len() - 1))
    }

    /// The document says the same, by `note`.
    pub fn taken(&mut self, entry: Entry, note: impl Into<String>) {
        self.settle(entry, Fate::Taken, note.into());
    }

    /// The document says something else, as `note` explains.
    pub fn changed(&mut self, entry: Entry, note: impl Into<String>) {
        self.settle(entry, Fate::Changed, note.into());
    }

    /// The document has nothing of it; `note` says why, and what to do.
    pub fn left(&mut self, entry: Entry, note: impl Into<String>) {
        self.settle(entry, Fate::Left, note.into());
    }

    /// What it kept out cannot be said in the document, which refuses all of its requests.
    pub fn closed(&mut self, entry: Entry, note: impl Into<String>) {
        self.settle(entry, Fate::Closed, note.into());
    }

    /// The site that it is of has nowhere to send requests.
    pub fn broken(&mut self, entry: Entry, note: impl Into<String>) {
        self.settle(entry, Fate::Broken, note.into());
    }

    /// The directive is taken over by a part of the model that carries its entry.
    pub fn promise(&mut self, entry: Entry) {
        if let Some(line) = self.lines.get_mut(entry.0) {
            line.promised = true;
        }
    }

    /// Holds what was said of each directive against the document that was written: one that should be there
    /// by an entry that the model does not carry, or by a key that the document does not have, is left.
    pub fn hold_against(&mut self, carried: &BTreeSet<Entry>, keys: &Keys) {
        for (at, line) in self.lines.iter_mut().enumerate() {
            if line.fate.is_none_or(|fate| fate > Fate::Changed) {
                continue;
            }
            let lost = line.promised && !carried.contains(&Entry(at));
            let missing = line.notes.iter().any(|note| key_of(note).is_some_and(|key| !keys.has(&key)));
            if lost || missing {
                line.fate = Some(Fate::Left);
                line.notes = vec![format!(
                    "the document has nothing of it ({}): no site or route that was taken over has such requests",
                    line.notes.join("; ")
                )];
            }
        }
    }

    /// True if something was said of it.
    pub fn is_settled(&self, entry: Entry) -> bool {
        self.lines.get(entry.0).is_some_and(|line| line.fate.is_some())
    }

    /// As `taken`, if nobody has said anything about it.
    pub fn taken_if_unsettled(&mut self, entry: Entry, note: &str) {
        if self.lines.get(entry.0).is_some_and(|line| line.fate.is_none()) {
            self.taken(entry, note);
        }
    }

    /// As `left`, if nobody has said anything about it.
    pub fn left_if_unsettled(&mut self, entry: Entry, note: &str) {
        if self.lines.get(entry.0).is_some_and(|line| line.fate.is_none()) {
            self.left(entry, note);
        }
    }

    fn settle(&mut self, entry: Entry, fate: Fate, note: String) {
        let Some(line) = self.lines.get_mut(entry.0) else { return };
        if line.fate.is_none_or(|old| fate > old) {
            // What is worse is said first; what was right elsewhere says nothing about it. Why it was left
            // does.
            if line.fate.is_some_and(|old| old <= Fate::Changed) {
                line.notes.clear();
            }
            line.fate = Some(fate);
            line.notes.insert(0, note);
            return;
        }
        if line.fate == Some(fate) && line.notes.len() < NOTES_MAX && !line.notes.contains(&note) {
            line.notes.push(note);
        }
    }

    /// The report, in the order of the files.
    pub fn into_report(self, sources: &Sources) -> Report {
        let mut lines = self.lines;
        lines.sort_by_key(|line| line.place);
        let item = |line: Line| Item {
            place: sources.show(line.place),
            text: line.text,
            fate: line.fate.unwrap_or(Fate::Left),
            note: match line.fate {
                Some(_) => line.notes.join("; "),
                None => "nothing here stands for it".to_owned(),
            },
        };
        Report { items: lines.into_iter().map(item).collect() }
    }
}

/// The key of the document that a note begins with: `access.deny` of "access.deny, without ...".
fn key_of(note: &str) -> Option<Vec<String>> {
    /// What keys begin with; a note may begin with a host name, too.
    const FIRST: &[&str] = &[
        "access",
        "acme",
        "client_address",
        "compression",
        "connect_timeout",
        "ejection",
        "health",
        "https",
        "idle_connections",
        "idle_timeout",
        "limits",
        "lookups",
        "proxy_protocol",
        "rate_limits",
        "read_timeout",
        "redirect",
        "request_body",
        "request_headers",
        "respond",
        "response_headers",
        "sticky_cookie",
        "tls",
        "write_timeout",
    ];
    let end = note.find(|c: char| !(c.is_ascii_lowercase() || c == '_' || c == '.')).unwrap_or(note.len());
    let key: Vec<String> = note[..end].trim_end_matches('.').split('.').map(str::to_owned).collect();
    // `tls` alone is a word.
    let is_key = key.first().is_some_and(|first| FIRST.contains(&first.as_str()))
        && (key.len() > 1
            || key[0].contains('_')
            || ["access", "compression", "redirect", "respond"].contains(&&*key[0]));
    is_key.then_some(key)
}

/// Where keys stand in a document: from the outermost table to each key, without places in arrays.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    paths: BTreeSet<Vec<String>>,
}

impl Keys {
    /// Those of a document in TOML.
    pub fn of(document: &str) -> Keys {
        let mut keys = Keys::default();
        if let Ok(document) = document.parse::<toml_edit::DocumentMut>() {
            for (key, item) in document.iter() {
                keys.item(&mut vec![key.to_owned()], item);
            }
        }
        keys
    }

    fn item(&mut self, path: &mut Vec<String>, item: &toml_edit::Item) {
        self.paths.insert(path.clone());
        if let Some(tables) = item.as_array_of_tables() {
            tables.iter().for_each(|table| self.table(path, table));
        } else if let Some(table) = item.as_table_like() {
            self.table(path, table);
        } else if let Some(array) = item.as_array() {
            for table in array.iter().filter_map(toml_edit::Value::as_inline_table) {
                self.table(path, table);
            }
        }
    }

    fn table(&mut self, path: &mut Vec<String>, table: &dyn toml_edit::TableLike) {
        for (key, item) in table.iter() {
            path.push(key.to_owned());
            self.item(path, item);
            path.pop();
        }
    }

    fn has(&self, key: &[String]) -> bool {
        self.paths.iter().any(|path| path.ends_with(key))
    }
}

/// One line, not longer than fits a terminal.
fn shortened(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(TEXT_MAX).collect();
    let line = words.join(" ");
    match line.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// What became of a directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// `file:line`.
    pub place: String,
    /// The beginning of the directive.
    pub text: String,
    /// What became of it.
    pub fate: Fate,
    /// By what it was replaced, how it differs, or why there is nothing.
    pub note: String,
}

/// What became of all directives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// In the order of files and lines.
    pub items: Vec<Item>,
}

impl Report {
    /// How many directives there are of this fate.
    pub fn count(&self, fate: Fate) -> usize {
        self.items.iter().filter(|item| item.fate == fate).count()
    }

    /// The lists: first what keeps a site from serving, then what is taken over, changed and missing.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (fate, title) in [
            (Fate::Broken, "sites without an upstream"),
            (Fate::Closed, "answered 403 until you say who may"),
            (Fate::Taken, "taken over"),
            (Fate::Changed, "changed in meaning"),
            (Fate::Left, "not taken over"),
        ] {
            if fate >= Fate::Closed && self.count(fate) == 0 {
                continue;
            }
            // Writing to a text does not fail.
            let _ = writeln!(text, "{title}: {}", self.count(fate));
            for item in self.items.iter().filter(|item| item.fate == fate) {
                let _ = writeln!(text, "  {}: `{}`: {}", item.place, item.text, item.note);
            }
        }
        text
    }
}
