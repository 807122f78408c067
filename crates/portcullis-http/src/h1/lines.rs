//! Cuts a growing buffer into lines without looking at a byte twice.

/// One line of a head or trailer section; offsets into the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// First byte.
    pub start: usize,
    /// One past the last byte of the text, before CR LF or LF.
    pub end: usize,
    /// First byte of the next line.
    pub next: usize,
    /// The line ends in CR LF, not in LF alone.
    pub crlf: bool,
}

/// The result of [`Lines::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A whole line; the cursor is behind it.
    Line(Line),
    /// No line end yet, and the line may still become one within the limit.
    NeedMore,
    /// No line end within the limit. The cursor stays at the line's start.
    TooLong,
}

/// A cursor over a buffer that only grows at its end between calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lines {
    /// The start of the current line.
    pub start: usize,
    searched: usize,
}

impl Lines {
    /// The next line of `buf`, whose text and line end may take `bytes_max` bytes in all.
    pub fn next(&mut self, buf: &[u8], bytes_max: usize) -> Found {
        let horizon = buf.len().min(self.start.saturating_add(bytes_max));
        let from = self.searched.max(self.start);
        let window = buf.get(from..horizon).unwrap_or_default();
        let Some(at) = memchr::memchr(b'\n', window) else {
            self.searched = horizon;
            return if buf.len() - self.start.min(buf.len()) >= bytes_max {
                Found::TooLong
            } else {
                Found::NeedMore
            };
        };
        let feed = from + at;
        let crlf = feed > self.start && buf[feed - 1] == b'\r';
        let line = Line { start: self.start, end: feed - usize::from(crlf), next: feed + 1, crlf };
        self.start = line.next;
        self.searched = line.next;
        Found::Line(line)
    }
}
