//! Errors of a document, with their places.

use std::ops::Range;

/// Everything wrong with one document, in the order of the text. Its `Display` is the report for a person:
/// for each mistake `file:line:column: message`, the line with a marker under the place, and a hint where
/// there is one.
#[derive(Debug)]
pub struct ConfigError {
    mistakes: Vec<Mistake>,
}

/// One mistake. Lines and columns count from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mistake {
    /// The document as the caller named it, or `command line`.
    pub file: String,
    /// Line and column; none for a flag or an unreadable file.
    pub place: Option<(usize, usize)>,
    /// The message.
    pub message: String,
    /// A guess at what was meant.
    pub hint: Option<String>,
    /// The value that it is about, or the table that lacks one, as a JSON Pointer (RFC 6901):
    /// `/sites/0/hosts`; none for a flag or an unreadable file.
    pub pointer: Option<String>,
    line_text: String,
    width: usize,
}

impl ConfigError {
    pub(crate) fn new(mut mistakes: Vec<Mistake>) -> Self {
        mistakes.sort_by_key(|mistake| mistake.place);
        ConfigError { mistakes }
    }

    /// An error without a place in a text.
    pub(crate) fn plain(file: &str, message: String, hint: Option<String>) -> Self {
        ConfigError { mistakes: vec![Mistake { hint, ..Mistake::plain(file, message) }] }
    }

    pub(crate) fn into_mistakes(self) -> Vec<Mistake> {
        self.mistakes
    }

    /// The mistakes, at least one.
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }
}

impl Mistake {
    /// Without a place in a text.
    pub(crate) fn plain(file: &str, message: String) -> Mistake {
        let (file, place, hint) = (file.to_string(), None, None);
        Mistake { file, place, message, hint, pointer: None, line_text: String::new(), width: 0 }
    }

    /// With the value that it is about.
    pub(crate) fn about(self, pointer: Option<String>) -> Mistake {
        Mistake { pointer, ..self }
    }

    pub(crate) fn at(
        file: &str,
        text: &str,
        span: Range<usize>,
        message: String,
        hint: Option<String>,
    ) -> Mistake {
        let start = floor_char(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let end = floor_char(text, span.end.clamp(start, line_end));
        Mistake {
            file: file.to_string(),
            place: Some((
                1 + text[..line_start].matches('\n').count(),
                1 + text[line_start..start].chars().count(),
            )),
            message,
            hint,
            pointer: None,
            line_text: text[line_start..line_end].trim_end_matches('\r').to_string(),
            width: text[start..end].chars().count().max(1),
        }
    }
}

fn floor_char(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            mistake.fmt(f)?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.place {
            Some((line, column)) => {
                write!(f, "{}:{line}:{column}: {}", self.file, self.message)?;
                let number = line.to_string();
                write!(f, "\n {number} | {}", self.line_text)?;
                let before: String = self
                    .line_text
                    .chars()
                    .take(column - 1)
                    .map(|c| if c == '\t' { '\t' } else { ' ' })
                    .collect();
                write!(f, "\n {:1$} | {before}{2}", "", number.len(), "^".repeat(self.width))?;
            }
            None => write!(f, "{}: {}", self.file, self.message)?,
        }
        match &self.hint {
            Some(hint) => write!(f, "\n   = {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ConfigError {}
