//! The report: what became of each directive that was read.

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
        self.lines.push(Line { place, text: shortened(text), fate: None, notes: Vec::new() });
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
            // What is worse is said first; what was right elsewhere says nothing about it.
            line.notes.clear();
            line.fate = Some(fate);
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

    /// The three lists, those that need attention last, where a terminal shows them.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (fate, title) in [
            (Fate::Taken, "taken over"),
            (Fate::Changed, "changed in meaning"),
            (Fate::Left, "not taken over"),
        ] {
            // Writing to a text does not fail.
            let _ = writeln!(text, "{title}: {}", self.count(fate));
            for item in self.items.iter().filter(|item| item.fate == fate) {
                let _ = writeln!(text, "  {}: `{}`: {}", item.place, item.text, item.note);
            }
        }
        text
    }
}
