//! Files, lines and `Include`: which directive comes next.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::section::Sections;
use super::{Parsed, Root, Sink, directive, start_of};
use crate::ast::Document;
use crate::diagnostic::Diagnostic;
use crate::files::{Files, tidied};
use crate::lexer;
use crate::remote::{FailAction, RemoteFile};
use crate::source::{FileId, SourceSpan, Sources};
use crate::{glob, limits};

/// The remaining work of the loader, innermost last. A stack of our own: depth is input.
enum Work {
    /// A file that is next in its turn.
    Waiting { path: PathBuf, included_at: Option<SourceSpan>, optional: bool },
    /// A file that is being read.
    Open(OpenFile),
}

struct OpenFile {
    id: FileId,
    path: PathBuf,
    text: Arc<[u8]>,
    at: usize,
    sections: Sections,
    /// The last directive has a quote that does not close: what follows may be the rest of it.
    in_unclosed: bool,
}

/// A directive's request to the loader.
pub(super) enum Next {
    Line,
    /// A quote is not closed.
    Unclosed,
    Include {
        pattern: PathBuf,
        span: SourceSpan,
        optional: bool,
    },
    Fetch {
        file: RemoteFile,
        span: SourceSpan,
    },
    FailAction(FailAction),
}

pub(super) struct Loader<'f> {
    files: &'f dyn Files,
    sources: Sources,
    sink: Sink,
    document: Document,
    stack: Vec<Work>,
    bytes_read: usize,
    fail_action: FailAction,
}

impl<'f> Loader<'f> {
    pub(super) fn new(files: &'f dyn Files) -> Self {
        Loader {
            files,
            sources: Sources::default(),
            sink: Sink::default(),
            document: Document::default(),
            stack: Vec::new(),
            bytes_read: 0,
            fail_action: FailAction::default(),
        }
    }

    pub(super) fn load(mut self, roots: &[Root]) -> Parsed {
        for root in roots {
            match root {
                Root::File(path) => self.wait_for(path, None, false),
                Root::Optional(path) => self.wait_for(path, None, true),
                Root::Text { name, text } => self.open(name.clone(), text.clone(), None),
            }
            while let Some(work) = self.stack.pop() {
                match work {
                    Work::Waiting { path, included_at, optional } => self.read(path, included_at, optional),
                    Work::Open(file) => self.next_line(file),
                }
                if self.sink.full {
                    break;
                }
            }
        }
        Parsed { document: self.document, sources: self.sources, diagnostics: self.sink.diagnostics }
    }

    /// Reads one line of the innermost file and puts the file back.
    fn next_line(&mut self, mut file: OpenFile) {
        if file.in_unclosed {
            skip_rest_of_directive(&mut file);
        }
        let Some(line) = lexer::line(&file.text, file.at) else {
            file.sections.end(&mut self.sink);
            return;
        };
        file.at = line.end;
        let view = line.text.view(file.id).trim();
        let next = match view.bytes.first() {
            None => Next::Line,
            Some(b'#') => {
                self.comment(&file, &line);
                Next::Line
            }
            Some(b'<') => {
                file.sections.line(view, &mut self.document, &mut self.sink);
                Next::Line
            }
            Some(_) if file.sections.leave_out() => Next::Line,
            Some(_) => {
                if let Some((start, end)) = line.blanks_after_backslash {
                    self.sink.error_hint(
                        SourceSpan::new(file.id, start, end),
                        "blanks after the backslash keep it from joining the next line",
                        "remove the blanks at the end of the line",
                    );
                }
                let before = self.document.directives.len();
                let next = directive::read(view, ends(&file), &mut self.document, &mut self.sink);
                file.sections.place(before, &mut self.document, &mut self.sink);
                next
            }
        };
        file.in_unclosed = matches!(next, Next::Unclosed);
        let folder = file.path.parent().map(Path::to_owned).unwrap_or_default();
        self.stack.push(Work::Open(file));
        match next {
            Next::Line | Next::Unclosed => {}
            Next::Include { pattern, span, optional } => {
                let place = self.place_of(&folder, pattern);
                self.wait_for(&place, Some(span), optional);
            }
            Next::Fetch { file, span } => self.fetch(&file, span),
            Next::FailAction(action) => self.fail_action = action,
        }
    }

    /// The file that an `Include` in `folder` names: beside the file that includes it, or else, as in
    /// libmodsecurity, from the working folder.
    fn place_of(&self, folder: &Path, pattern: PathBuf) -> PathBuf {
        let here = folder.join(&pattern);
        let is_there = |pattern: &Path| {
            let found = self.files.expand(pattern).unwrap_or_default();
            found.iter().any(|path| self.files.read(path).is_ok())
        };
        if pattern.is_relative() && !is_there(&here) && is_there(&pattern) { pattern } else { here }
    }

    fn fetch(&mut self, file: &RemoteFile, span: SourceSpan) {
        match self.files.fetch(file) {
            Ok(text) => self.open(PathBuf::from(&file.url), text, Some(span)),
            Err(error) if self.fail_action == FailAction::Warn => {
                self.sink.warn_hint(
                    span,
                    format!("remote rules are missing: {error}"),
                    "the other rules are loaded without them, as SecRemoteRulesFailAction Warn says",
                );
            }
            Err(error) => self.sink.error_hint(
                span,
                format!("remote rules cannot be had: {error}"),
                "SecRemoteRulesFailAction Warn, before it, would load the other rules all the same",
            ),
        }
    }

    fn comment(&mut self, file: &OpenFile, line: &lexer::Line) {
        if let Some(at) = line.odd_continuation {
            let (_, start) = self.sources.line(SourceSpan::new(file.id, at, at));
            self.sink.warn_hint(
                SourceSpan::new(file.id, start, start + 3),
                "this line belongs to the comment above it, which ends in a backslash",
                "remove the backslash, or put # in front of this line, too",
            );
        }
    }

    /// Queues the files that a pattern names.
    fn wait_for(&mut self, pattern: &Path, included_at: Option<SourceSpan>, optional: bool) {
        let found = match self.files.expand(pattern) {
            Ok(found) => found,
            Err(error) => return self.cannot_read(pattern, included_at, &error.to_string()),
        };
        if found.is_empty() && !optional {
            return self.cannot_read(pattern, included_at, "no file fits the pattern");
        }
        let waiting = found.into_iter().rev().map(|path| Work::Waiting { path, included_at, optional });
        self.stack.extend(waiting);
    }

    fn read(&mut self, path: PathBuf, included_at: Option<SourceSpan>, optional: bool) {
        let open = || {
            self.stack.iter().filter_map(|work| if let Work::Open(file) = work { Some(file) } else { None })
        };
        if let Some(at) = included_at {
            let tidy = tidied(&path);
            if open().any(|file| tidied(&file.path) == tidy) {
                let chain: Vec<String> = open().map(|file| file.path.display().to_string()).collect();
                let message = format!("{} includes itself", path.display());
                return self.sink.error_hint(at, message, format!("the files are {}", chain.join(", then ")));
            }
            if open().count() >= limits::INCLUDE_DEPTH_MAX {
                let message = format!("more than {} files include each other", limits::INCLUDE_DEPTH_MAX);
                return self.sink.error(at, message);
            }
        }
        match self.files.read(&path) {
            Ok(text) => self.open(path, text, included_at),
            Err(error) if optional && error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let is_folder = error.kind() == ErrorKind::IsADirectory;
                let why = if is_folder { "it is a folder".to_owned() } else { error.to_string() };
                self.cannot_read(&path, included_at, &why);
            }
        }
    }

    fn open(&mut self, path: PathBuf, text: Vec<u8>, included_at: Option<SourceSpan>) {
        if text.len() > limits::FILE_BYTES_MAX {
            let why = format!("it is longer than {} bytes", limits::FILE_BYTES_MAX);
            return self.cannot_read(&path, included_at, &why);
        }
        self.bytes_read += text.len();
        let too_much =
            self.bytes_read > limits::TOTAL_BYTES_MAX || self.sources.files().count() >= limits::FILES_MAX;
        if too_much {
            let why = format!(
                "a load takes at most {} files and {} bytes",
                limits::FILES_MAX,
                limits::TOTAL_BYTES_MAX
            );
            return self.cannot_read(&path, included_at, &why);
        }
        let Some(id) = self.sources.add(path.clone(), text, included_at) else { return };
        let text = self.sources.shared_text(id);
        let at = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        self.stack.push(Work::Open(OpenFile {
            id,
            path,
            text,
            at,
            sections: Sections::default(),
            in_unclosed: false,
        }));
    }

    fn cannot_read(&mut self, path: &Path, included_at: Option<SourceSpan>, why: &str) {
        let message = format!("cannot read {}: {why}", path.display());
        let span = match included_at {
            Some(span) => span,
            // A root has no line to show: stand at the start of an empty text of its name.
            None => match self.sources.add(path.to_owned(), Vec::new(), None) {
                Some(id) => start_of(id),
                None => SourceSpan::default(),
            },
        };
        let hint = if why == "it is a folder" {
            Some(format!("to read all rule files in it, write {}", path.join("*.conf").display()))
        } else if included_at.is_some() && glob::is_pattern(&path.to_string_lossy()) {
            Some("IncludeOptional accepts that there is none".to_owned())
        } else {
            None
        };
        self.sink.push(Diagnostic { hint, ..Diagnostic::error(span, message) });
    }
}

/// True if what follows cannot be the rest of the directive before it: the end, a blank line, a directive.
fn ends(file: &OpenFile) -> bool {
    let rest = file.text.get(file.at..).unwrap_or_default();
    let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
    begins_anew(line.trim_ascii())
}

/// True for a line, without blanks around it, that begins as directives do.
fn begins_anew(line: &[u8]) -> bool {
    let begins = |word: &[u8]| line.get(..word.len()).is_some_and(|f| f.eq_ignore_ascii_case(word));
    line.is_empty() || begins(b"Sec") || begins(b"Include") || begins(b"#") || begins(b"<")
}

/// After a quote that does not close: leaves out the lines that are likely the rest of that directive.
fn skip_rest_of_directive(file: &mut OpenFile) {
    file.in_unclosed = false;
    loop {
        let rest = file.text.get(file.at..).unwrap_or_default();
        let length = rest.iter().position(|&b| b == b'\n').map_or(rest.len(), |end| end + 1);
        let line = &rest[..length];
        if begins_anew(line.trim_ascii()) {
            return;
        }
        file.at += length;
    }
}
