//! Rule texts and places in them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_types::Span;

/// The number of a text in a [`Sources`] table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u16);

/// A stretch of one rule text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceSpan {
    /// The text.
    pub file: FileId,
    /// The bytes in it.
    pub span: Span,
}

impl SourceSpan {
    /// Bytes `start` to `end` of `file`.
    pub fn new(file: FileId, start: usize, end: usize) -> Self {
        SourceSpan { file, span: Span::new(start, end) }
    }
}

/// A place as people count: line and column from 1, columns in characters where the line is UTF-8, otherwise
/// in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line number, from 1.
    pub line: usize,
    /// Column number, from 1.
    pub column: usize,
}

/// Every text that was read, by [`FileId`].
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

#[derive(Clone, Debug)]
struct SourceFile {
    path: PathBuf,
    text: Arc<[u8]>,
    line_starts: Vec<u32>,
    included_at: Option<SourceSpan>,
}

impl Sources {
    /// Takes in a text. `None` if the table is full (65,536 texts).
    pub fn add(&mut self, path: PathBuf, text: Vec<u8>, included_at: Option<SourceSpan>) -> Option<FileId> {
        let id = FileId(u16::try_from(self.files.len()).ok()?);
        let line_ends = memchr::memchr_iter(b'\n', &text);
        let line_starts =
            std::iter::once(0).chain(line_ends.map(|at| Span::new(at + 1, at + 1).start)).collect();
        self.files.push(SourceFile { path, text: text.into(), line_starts, included_at });
        Some(id)
    }

    /// All ids, in reading order.
    pub fn files(&self) -> impl Iterator<Item = FileId> + '_ {
        (0..self.files.len()).filter_map(|i| u16::try_from(i).ok()).map(FileId)
    }

    /// Returns the path of the text; for inline texts the name they were given. Empty for an id of another
    /// table.
    pub fn path(&self, file: FileId) -> &Path {
        self.file(file).map_or(Path::new(""), |f| &f.path)
    }

    /// The whole text; empty for an id of another table.
    pub fn text(&self, file: FileId) -> &[u8] {
        self.file(file).map_or(b"", |f| &f.text)
    }

    /// The whole text, to keep.
    pub(crate) fn shared_text(&self, file: FileId) -> Arc<[u8]> {
        self.file(file).map_or_else(|| Arc::from(&b""[..]), |f| Arc::clone(&f.text))
    }

    /// The `Include` that brought the text in; `None` for a root.
    pub fn included_at(&self, file: FileId) -> Option<SourceSpan> {
        self.file(file)?.included_at
    }

    /// The bytes of a span.
    pub fn slice(&self, span: SourceSpan) -> &[u8] {
        span.span.of(self.text(span.file))
    }

    /// Line and column of a span's first byte.
    pub fn position(&self, span: SourceSpan) -> Position {
        let line = self.line_index(span);
        let start = self.line_start(span.file, line);
        let before = self.text(span.file).get(start..span.span.start as usize).unwrap_or_default();
        let column = std::str::from_utf8(before).map_or(before.len(), |text| text.chars().count());
        Position { line: line + 1, column: column + 1 }
    }

    /// The whole line that a span starts in, without its line end, and the byte offset of its start.
    pub fn line(&self, span: SourceSpan) -> (&[u8], usize) {
        let start = self.line_start(span.file, self.line_index(span));
        let rest = self.text(span.file).get(start..).unwrap_or_default();
        let line = rest.split(|&b| b == b'\n').next().unwrap_or_default();
        (line.strip_suffix(b"\r").unwrap_or(line), start)
    }

    fn file(&self, file: FileId) -> Option<&SourceFile> {
        self.files.get(usize::from(file.0))
    }

    /// Line number from 0.
    fn line_index(&self, span: SourceSpan) -> usize {
        let Some(file) = self.file(span.file) else { return 0 };
        file.line_starts.partition_point(|&start| start <= span.span.start).saturating_sub(1)
    }

    fn line_start(&self, file: FileId, line: usize) -> usize {
        self.file(file).and_then(|f| f.line_starts.get(line)).map_or(0, |&start| start as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one() {
        let mut sources = Sources::default();
        let id = sources.add("a.conf".into(), b"one\r\nzw\xc3\xb6lf x\n".to_vec(), None).unwrap();
        let at = |offset| sources.position(SourceSpan::new(id, offset, offset + 1));
        assert_eq!(at(0), Position { line: 1, column: 1 });
        assert_eq!(at(5), Position { line: 2, column: 1 });
        assert_eq!(at(12), Position { line: 2, column: 7 });
        assert_eq!(sources.line(SourceSpan::new(id, 1, 2)), (&b"one"[..], 0));
        assert_eq!(sources.line(SourceSpan::new(id, 8, 9)), ("zwölf x".as_bytes(), 5));
        assert_eq!(at(14), Position { line: 3, column: 1 }, "the end of the text has a place, too");
    }
}
