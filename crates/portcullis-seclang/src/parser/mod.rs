//! Text to tree.
//!
//! One pass over all files. A mistake makes a diagnostic and reading continues with the next action, target
//! or directive, so that one run shows all of them. A directive with a mistake in it is left out of the tree.

mod action;
mod action_list;
mod ctl;
mod directive;
mod include;
mod section;
mod setting;
mod targets;
mod values;

use std::path::PathBuf;

use crate::ast::{Document, Operator, Spanned};
use crate::diagnostic::{Diagnostic, Level};
use crate::files::Files;
use crate::limits;
use crate::source::{SourceSpan, Sources};
use crate::{lexer, source::FileId};

pub use section::fits_a_place;

/// The starting point of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// A file, or a pattern of files.
    File(PathBuf),
    /// As [`Root::File`], but there may be none.
    Optional(PathBuf),
    /// A text that is at hand. Its `Include`s are relative to the folder of `name`.
    Text {
        /// The name in diagnostics.
        name: PathBuf,
        /// The text.
        text: Vec<u8>,
    },
}

/// The result of [`parse`].
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// Every directive without a mistake.
    pub document: Document,
    /// The texts.
    pub sources: Sources,
    /// The mistakes, in reading order.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// True if a diagnostic is an error: then the document is not whole and must not be used.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Level::Error)
    }
}

/// Reads all roots, one after the other, as if they were one file.
pub fn parse(roots: &[Root], files: &dyn Files) -> Parsed {
    include::Loader::new(files).load(roots)
}

/// The place of byte `offset` of an operator's argument, for mistakes inside a regular expression or a list.
///
/// The operator's own span has the quotes, escapes and continuation lines that the argument no longer has.
pub fn argument_span(sources: &Sources, operator: &Spanned<Operator>, offset: usize) -> SourceSpan {
    let SourceSpan { file, span } = operator.span;
    let text = sources.text(file).get(..span.end as usize).unwrap_or_default();
    let place = || {
        let line = lexer::line(text, span.start as usize)?;
        let word = lexer::words(line.text.view(file)).into_iter().next()?;
        let view = word.text.view(file);
        let argument = view.from(view.bytes.len().checked_sub(operator.node.argument.len())?);
        let at = offset.min(argument.bytes.len());
        Some(argument.slice(at, at + 1).span())
    };
    place().unwrap_or(operator.span)
}

/// Collects the mistakes.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    diagnostics: Vec<Diagnostic>,
    full: bool,
}

impl Sink {
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < limits::DIAGNOSTICS_MAX {
            self.diagnostics.push(diagnostic);
        } else if !self.full {
            self.full = true;
            let span = diagnostic.span;
            self.diagnostics.push(Diagnostic::error(span, "too many mistakes; the rest is not read"));
        }
    }

    pub(crate) fn error(&mut self, span: SourceSpan, message: impl Into<String>) {
        self.push(Diagnostic::error(span, message));
    }

    pub(crate) fn error_hint(
        &mut self,
        span: SourceSpan,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(Diagnostic::error(span, message).with_hint(hint));
    }

    /// An error with a hint if there is one.
    pub(crate) fn error_maybe(&mut self, span: SourceSpan, message: impl Into<String>, hint: Option<String>) {
        self.push(Diagnostic { hint, ..Diagnostic::error(span, message) });
    }

    pub(crate) fn warn_hint(
        &mut self,
        span: SourceSpan,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.push(Diagnostic::warning(span, message).with_hint(hint));
    }

    /// Reads what ModSecurity 2.9.7 loads though it cannot work: mistakes in it are warnings that end in
    /// `so`.
    pub(crate) fn leniently<T>(&mut self, so: &str, read: impl FnOnce(&mut Sink) -> T) -> T {
        let before = self.diagnostics.len();
        let out = read(self);
        let added = self.diagnostics.get_mut(before..).unwrap_or_default();
        for mistake in added.iter_mut().filter(|d| d.severity == Level::Error) {
            mistake.severity = Level::Warning;
            mistake.message.push_str("; ");
            mistake.message.push_str(so);
        }
        out
    }

    /// True if there is a diagnostic with this message.
    pub(crate) fn has_said(&self, message: &str) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.message == message)
    }

    /// Returns the number of diagnostics, to see later whether any was added.
    pub(crate) fn count(&self) -> usize {
        self.diagnostics.len()
    }

    /// True if an error was added after the first `count`.
    pub(crate) fn errors_since(&self, count: usize) -> bool {
        self.full || self.diagnostics.iter().skip(count).any(|d| d.severity == Level::Error)
    }
}

/// The first byte of a file.
pub(crate) fn start_of(file: FileId) -> SourceSpan {
    SourceSpan::new(file, 0, 0)
}
