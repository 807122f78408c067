//! Diagnostics: errors and warnings about a rule text, with a place and a hint how to mend it.

use crate::source::{SourceSpan, Sources};

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The text means what it says; a setting keeps a part of it from having an effect.
    Note,
    /// The text loads; it may not mean what its author thinks.
    Warning,
    /// The text does not load.
    Error,
}

/// One mistake, with its place and a way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Level,
    /// The message: one sentence without a full stop.
    pub message: String,
    /// The place.
    pub span: SourceSpan,
    /// The advice how to mend it.
    pub hint: Option<String>,
    /// Another place that has to do with it, and how.
    pub related: Option<(SourceSpan, String)>,
}

impl Diagnostic {
    /// An error.
    pub fn error(span: SourceSpan, message: impl Into<String>) -> Self {
        Diagnostic { severity: Level::Error, message: message.into(), span, hint: None, related: None }
    }

    /// A warning.
    pub fn warning(span: SourceSpan, message: impl Into<String>) -> Self {
        Diagnostic { severity: Level::Warning, ..Diagnostic::error(span, message) }
    }

    /// A note.
    pub fn note(span: SourceSpan, message: impl Into<String>) -> Self {
        Diagnostic { severity: Level::Note, ..Diagnostic::error(span, message) }
    }

    /// The same with a hint.
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Diagnostic { hint: Some(hint.into()), ..self }
    }

    /// The same with another place.
    pub fn with_related(self, span: SourceSpan, message: impl Into<String>) -> Self {
        Diagnostic { related: Some((span, message.into())), ..self }
    }

    /// For a terminal: file, line and column, message, the line itself with a caret under the place, and the
    /// hint.
    ///
    /// ```text
    /// rules.conf:3:9: error: unknown variable ARGZ
    ///   3 | SecRule ARGZ "@rx a" "id:1"
    ///     |         ^^^^
    ///     = hint: did you mean ARGS?
    /// ```
    pub fn render(&self, sources: &Sources) -> String {
        let level = match self.severity {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        };
        let mut out = format!("{}: {level}: {}\n", place(sources, self.span), self.message);
        excerpt(&mut out, sources, self.span);
        let gutter = " ".repeat(gutter_width(sources, self.span));
        if let Some(hint) = &self.hint {
            out.push_str(&format!("{gutter} = hint: {hint}\n"));
        }
        if let Some((span, message)) = &self.related {
            out.push_str(&format!("{}: note: {message}\n", place(sources, *span)));
            excerpt(&mut out, sources, *span);
        }
        let mut file = self.span.file;
        // A chain of includes is as long as the include depth allows, a small constant.
        while let Some(include) = sources.included_at(file) {
            out.push_str(&format!("{gutter} = included from {}\n", place(sources, include)));
            file = include.file;
        }
        out
    }
}

fn place(sources: &Sources, span: SourceSpan) -> String {
    let position = sources.position(span);
    format!("{}:{}:{}", sources.path(span.file).display(), position.line, position.column)
}

fn gutter_width(sources: &Sources, span: SourceSpan) -> usize {
    sources.position(span).line.to_string().len() + 2
}

/// Longest stretch of a line that is shown, in characters.
const EXCERPT_CHARS_MAX: usize = 110;
/// As many bytes hold that many characters, whatever they are.
const WINDOW_BYTES: usize = 4 * EXCERPT_CHARS_MAX;

/// The line of `span` and carets under the part of it that lies in the line.
fn excerpt(out: &mut String, sources: &Sources, span: SourceSpan) {
    let (line, line_start) = sources.line(span);
    let before = (span.span.start as usize - line_start).min(line.len());
    let until = (span.span.end as usize).saturating_sub(line_start).clamp(before, line.len());
    let (before, rest) = line.split_at(before);
    let (marked, after) = rest.split_at(until - before.len());
    // Only what may be shown is looked at: a line can be a megabyte long and have many mistakes in it.
    let before = &before[before.len().saturating_sub(WINDOW_BYTES)..];
    let (marked, after) =
        (&marked[..marked.len().min(WINDOW_BYTES)], &after[..after.len().min(WINDOW_BYTES)]);
    let (before, marked, after) = (printable(before), printable(marked), printable(after));
    // A long line is cut so that the marked place stays in view.
    let skipped =
        (before.len() + marked.len().min(40)).saturating_sub(EXCERPT_CHARS_MAX - 20).min(before.len());
    let lead = if skipped > 0 { "..." } else { "" };
    let shown: Vec<char> = before[skipped..].iter().chain(&marked).chain(&after).copied().collect();
    let cut = shown.len() > EXCERPT_CHARS_MAX;
    let text: String = shown.iter().take(EXCERPT_CHARS_MAX).collect();
    let tail = if cut { "..." } else { "" };
    let indent = before.len() - skipped + lead.len();
    let room = (EXCERPT_CHARS_MAX + lead.len()).saturating_sub(indent).max(1);
    let carets = "^".repeat(marked.len().clamp(1, room));
    let number = sources.position(span).line.to_string();
    let gutter = " ".repeat(number.len() + 2);
    out.push_str(&format!("  {number} | {lead}{text}{tail}\n"));
    out.push_str(&format!("{gutter} | {}{carets}\n", " ".repeat(indent)));
}

/// A rule text as characters of one column each: what is not printable is shown as `·`, what is not UTF-8 as
/// `\u{fffd}`.
fn printable(bytes: &[u8]) -> Vec<char> {
    let text = String::from_utf8_lossy(bytes);
    text.chars()
        .map(|c| {
            if c == '\t' {
                ' '
            } else if c.is_control() {
                '·'
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let mut sources = Sources::default();
        let text = format!("SecRule {}ARGZ|{}\n", "ARGS|".repeat(100), "ARGS|".repeat(100));
        let at = text.find("ARGZ").unwrap();
        let id = sources.add("a.conf".into(), text.into_bytes(), None).unwrap();
        let shown = Diagnostic::error(SourceSpan::new(id, at, at + 4), "x").render(&sources);
        let lines: Vec<&str> = shown.lines().collect();
        let column = lines[2].find("^^^^").unwrap();
        assert_eq!(&lines[1][column..column + 4], "ARGZ");
        assert!(lines[1].len() < 140 && lines[1].ends_with("..."));
    }

    #[test]
    fn any_span_renders() {
        let mut sources = Sources::default();
        let id = sources.add("a.conf".into(), b"a\xff\x00\n\tb".to_vec(), None).unwrap();
        for start in 0..9 {
            for end in start..9 {
                Diagnostic::error(SourceSpan::new(id, start, end), "x").render(&sources);
            }
        }
    }
}
