//! Changes of the document, one at a time: proposed, checked, loaded, written, remembered.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use portcullis_config::{Config, ConfigError};

use crate::document::{DOCUMENT_BYTES_MAX, Document, Text};
use crate::edit::{self, Change};
use crate::error::RevisionError;
use crate::history::{History, NewRevision, Origin, Revision, RevisionHead};

/// Result of loading a text: what serves now, or why the old settings stay in use. None if the program is
/// ending.
pub type LiveResult = Option<Result<String, String>>;

/// The running program.
pub trait Live: Send + Sync {
    /// Has it serve by a text and then runs `write`, which puts the text into the file; if either fails, the
    /// old settings serve.
    fn load(&self, text: &str, write: Box<dyn FnOnce() -> Result<(), String> + Send>) -> LiveResult;
}

/// The author of a change, and the reason for it.
#[derive(Clone, Debug)]
pub struct Author {
    /// Name of the user or token.
    pub name: String,
    /// Reason for the change.
    pub reason: String,
}

/// The document as it is now.
#[derive(Clone, Debug)]
pub struct Current {
    /// Its text.
    pub text: Text,
    /// The revision that it is.
    pub revision: RevisionHead,
    /// The program serves by it.
    pub is_live: bool,
}

/// The texts before a change and after it.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The text as it is.
    pub before: Text,
    /// The text as it would be.
    pub after: Text,
}

/// A change that was made.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The texts before and after.
    pub proposal: Proposal,
    /// The revision that the document is now.
    pub revision: RevisionHead,
    /// The settings that serve now, in words; none if the change changed nothing.
    pub message: Option<String>,
}

/// The document, its history, and the program that serves by it.
pub struct Revisions {
    document: Document,
    history: History,
    live: Box<dyn Live>,
    read_only: bool,
    /// The entity tag of the text that the program serves by.
    live_etag: Mutex<String>,
    /// Held while a change is made.
    change: Mutex<()>,
}

impl Revisions {
    /// The revisions of a document that the program serves by, with the history in a data folder.
    pub fn open(
        folder: &Path,
        document: Document,
        live: Box<dyn Live>,
        read_only: bool,
    ) -> Result<Revisions, RevisionError> {
        let history = History::open(folder)?;
        let (live_etag, change) = (Mutex::default(), Mutex::default());
        Ok(Revisions { document, history, live, read_only, live_etag, change })
    }

    /// The document.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// True if changes are refused.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The program serves by this text, which it has read from the file.
    pub fn serves(&self, text: &Text, now: u64) -> Result<(), RevisionError> {
        *lock(&self.live_etag) = text.etag().to_owned();
        // A change that is being made waits for the program, which therefore must not wait for it.
        match self.change.try_lock() {
            Ok(_none) => self.found(text, now).map(drop),
            Err(_) => Ok(()),
        }
    }

    /// The document as it is now. A text that is new is remembered as a revision from outside. While a change
    /// is being made, which may take as long as the program loads, it is the text in the file.
    pub fn current(&self, now: u64) -> Result<Current, RevisionError> {
        match self.change.try_lock() {
            Ok(_none) => return self.look(now),
            Err(TryLockError::Poisoned(_)) => {}
            Err(TryLockError::WouldBlock) => {
                let text = self.document.read().map_err(RevisionError::Document)?;
                if let Some(revision) = self.history.of_text(&text)? {
                    return Ok(self.with_state(text, revision));
                }
            }
        }
        let _none = lock(&self.change);
        self.look(now)
    }

    fn look(&self, now: u64) -> Result<Current, RevisionError> {
        let text = self.document.read().map_err(RevisionError::Document)?;
        let revision = self.found(&text, now)?;
        Ok(self.with_state(text, revision))
    }

    fn with_state(&self, text: Text, revision: RevisionHead) -> Current {
        let is_live = *lock(&self.live_etag) == text.etag();
        Current { text, revision, is_live }
    }

    fn found(&self, text: &Text, now: u64) -> Result<RevisionHead, RevisionError> {
        let origin = Origin::Outside;
        self.history.add(&NewRevision { time: now, author: None, reason: "", origin, text })
    }

    /// Revisions, newest first; only those before a number, if one is given.
    pub fn list(&self, before: Option<i64>, limit: usize) -> Result<Vec<RevisionHead>, RevisionError> {
        self.history.list(before, limit)
    }

    /// The document as it was at a time; the oldest text that is known if none is so old.
    pub fn text_at(&self, time: u64) -> Result<Option<Text>, RevisionError> {
        Ok(self.history.text_at(time)?.map(Text::new))
    }

    /// A revision with its text.
    pub fn get(&self, number: i64) -> Result<Revision, RevisionError> {
        self.history.get(number)
    }

    /// The effect that a change would have on the document that has this entity tag. Nothing changes.
    pub fn propose(&self, change: &Change, etag: &str, now: u64) -> Result<Proposal, RevisionError> {
        let _none = lock(&self.change);
        self.plan(change, etag, now)
    }

    fn plan(&self, change: &Change, etag: &str, now: u64) -> Result<Proposal, RevisionError> {
        let current = self.look(now)?;
        if current.text.etag() != etag {
            return Err(RevisionError::Changed(current.text.etag().to_owned()));
        }
        let after = match change {
            Change::Text(text) => Text::new(text.as_str()),
            Change::Restore(number) => Text::new(self.history.get(*number)?.text),
            Change::Edit(edit) => {
                Text::new(edit::edited(edit, current.text.as_str(), self.document.format())?)
            }
        };
        fits(&after)?;
        self.check(&after).map_err(RevisionError::Invalid)?;
        Ok(Proposal { before: current.text, after })
    }

    fn check(&self, text: &Text) -> Result<Config, ConfigError> {
        Config::parse(text.as_str(), self.document.format(), &self.document.name())
    }

    /// Makes a change of the document that has this entity tag: the program serves by the new text, and the
    /// file has it; or nothing changes.
    pub fn apply(
        &self,
        change: &Change,
        etag: &str,
        author: &Author,
        now: u64,
    ) -> Result<Applied, RevisionError> {
        if self.read_only {
            return Err(RevisionError::ReadOnly);
        }
        let _one = lock(&self.change);
        let proposal = self.plan(change, etag, now)?;
        if proposal.before == proposal.after {
            let revision = self.history.newest()?.ok_or(RevisionError::NotFound)?;
            return Ok(Applied { proposal, revision, message: None });
        }
        let origin = match change {
            Change::Restore(_) => Origin::Restore,
            Change::Text(_) | Change::Edit(_) => Origin::Change,
        };
        // Remembered first: what cannot be remembered is not done.
        let (author, reason) = (Some(author.name.as_str()), author.reason.as_str());
        let new = NewRevision { time: now, author, reason, origin, text: &proposal.after };
        let revision = self.history.add(&new)?;
        let write = {
            let (document, before, after) =
                (self.document.clone(), proposal.before.clone(), proposal.after.clone());
            move || write(&document, &before, &after)
        };
        match self.live.load(proposal.after.as_str(), Box::new(write)) {
            Some(Ok(message)) => {
                *lock(&self.live_etag) = proposal.after.etag().to_owned();
                Ok(Applied { proposal, revision, message: Some(message) })
            }
            Some(Err(why)) => {
                self.history.take_back(revision.number)?;
                Err(RevisionError::Refused(why))
            }
            None => {
                self.history.take_back(revision.number)?;
                Err(RevisionError::Ending)
            }
        }
    }
}

/// Refuses a text that would not be read again: nothing but an editor could then change the document.
fn fits(text: &Text) -> Result<(), RevisionError> {
    let bytes = text.as_str().len();
    if bytes <= DOCUMENT_BYTES_MAX {
        return Ok(());
    }
    Err(RevisionError::Unfit(format!(
        "the document would have {bytes} bytes, and it may have {DOCUMENT_BYTES_MAX}; remove exclusions that \
         have ended or are not used, and put rules and lists of clients into files of their own"
    )))
}

/// A lock whose holders do not panic in between.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the new text, unless another program has written to the file since it was read.
fn write(document: &Document, before: &Text, after: &Text) -> Result<(), String> {
    let name = document.name();
    let there = document.read().map_err(|error| format!("{name} cannot be read: {error}"))?;
    if there != *before {
        return Err(format!("{name} was changed in the meantime; nothing was written"));
    }
    document.write(after).map_err(|error| {
        format!(
            "{name} cannot be written: {error}; give the user of Portcullis the right to write to the file and its \
             folder, or set `admin.read_only`"
        )
    })
}
