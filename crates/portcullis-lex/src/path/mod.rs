//! Paths of files, in whatever encoding, brought to one form.
//!
//! [`Path::read`] goes over a path once: it resolves `.` and `..`, takes `/`, `\` and all their writings for
//! separators, and says how far the path climbs, what it names in the end, and how odd it was written.

mod unit;

#[cfg(test)]
mod tests;

use portcullis_types::Span;

pub use unit::{Unit, Writing, unit};

/// Names that are kept of a path; of a longer one the last ones.
const NAMES_MAX: usize = 12;

/// A path that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// The bytes it was read from.
    pub span: Span,
    /// Its root.
    pub root: Root,
    /// Separators.
    pub separators: u32,
    /// `..` segments.
    pub ups: u32,
    /// Number of levels that it climbs above its root.
    pub climb: u32,
    /// `.` segments.
    pub dots: u32,
    /// Segments of three and more dots: filters that remove `../` once leave a `..` of them.
    pub dot_runs: u32,
    /// `..` segments, or separators beside them, that were encoded.
    pub ups_encoded: u32,
    /// The same, encoded as no client would.
    pub ups_odd: u32,
    /// A `..` with something in it that is dropped later: controls, quotes, `;parameter`.
    pub ups_broken: u32,
    /// Both `/` and `\` separate.
    pub is_mixed: bool,
    /// Several separators follow a `..` or `.`.
    pub is_doubled: bool,
    /// Behind a name stands NUL, where C ends the text.
    pub is_cut: bool,
    /// Length of the longest name.
    pub longest_name: u32,
    /// Spaces in it.
    pub spaces: u32,
    names: [Span; NAMES_MAX],
    depth: usize,
}

/// The root of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Root {
    /// Nothing: it is relative.
    #[default]
    None,
    /// A separator.
    Slash,
    /// Two backslashes and a name: a share on another machine.
    Share,
    /// A drive's letter.
    Drive,
}

impl Root {
    /// True if the path does not depend on where one stands.
    pub fn is_absolute(self) -> bool {
        self != Root::None
    }
}

/// The segment that is being read.
#[derive(Default)]
struct Segment {
    start: usize,
    dots: u32,
    writing: Option<Writing>,
    has_junk: bool,
    has_parameter: bool,
    has_content: bool,
}

impl Path {
    /// Reads the path that begins at `start`, up to the end or a plain byte that `ends` it.
    pub fn read(text: &[u8], start: usize, ends: fn(u8) -> bool) -> Path {
        let mut path = Path::default();
        let mut segment = Segment { start, ..Segment::default() };
        let (mut slashes, mut backslashes) = (0u32, 0u32);
        let mut at = start;
        while at < text.len() {
            let mut unit = unit(&text[at..]);
            let is_plain = unit.writing == Writing::Plain;
            if is_plain && ends(unit.byte) {
                break;
            }
            if segment.is_up() {
                if let Some(len) = bare_separator(&text[at..]) {
                    unit = Unit { byte: b'/', len, writing: Writing::Odd };
                } else if let Some(len) = never_utf8(&text[at..]) {
                    unit = Unit { byte: b'/', len, writing: Writing::Broken };
                }
            }
            let is_separator = matches!(unit.byte, b'/' | b'\\') || unit.writing == Writing::Broken;
            if is_separator {
                let is_backslash = unit.byte == b'\\';
                backslashes += u32::from(is_backslash);
                slashes += u32::from(!is_backslash);
                path.close(text, &mut segment, at, Some(unit.writing));
                path.separators += 1;
                segment = Segment { start: at + unit.len, ..Segment::default() };
            } else {
                segment.take(text, at, unit);
                if unit.byte == 0 && segment.has_content {
                    path.is_cut = true;
                }
                path.spaces += u32::from(unit.byte == b' ');
            }
            at += unit.len;
        }
        path.close(text, &mut segment, at, None);
        path.span = Span::new(start, at);
        path.is_mixed = slashes > 0 && backslashes > 0;
        path
    }

    fn close(&mut self, text: &[u8], segment: &mut Segment, end: usize, separator: Option<Writing>) {
        let is_first = self.separators == 0;
        if segment.is_up() {
            self.ups += 1;
            match self.depth {
                0 => self.climb += 1,
                depth => self.depth = depth - 1,
            }
            let writing = segment.writing.max(separator).unwrap_or(Writing::Plain);
            self.ups_encoded += u32::from(writing >= Writing::Encoded);
            self.ups_odd += u32::from(writing >= Writing::Odd);
            self.ups_broken += u32::from(segment.has_junk || segment.has_parameter);
        } else if segment.dots == 1 && !segment.has_content {
            self.dots += 1;
        } else if segment.dots > 2 && !segment.has_content {
            self.dot_runs += 1;
        } else if !segment.has_content {
            match (separator, is_first) {
                (Some(_), true) => self.root = Root::Slash,
                (Some(_), false)
                    if self.separators == 1
                        && self.root == Root::Slash
                        && text[..=end].ends_with(b"\\\\") =>
                {
                    self.root = Root::Share;
                }
                (Some(_), false) => self.is_doubled |= self.ups + self.dots + self.dot_runs > 0,
                _ => {}
            }
        } else if is_first && is_drive(&text[segment.start..end]) && separator.is_some() {
            self.root = Root::Drive;
        } else {
            self.longest_name = self.longest_name.max((end - segment.start) as u32);
            if self.depth == NAMES_MAX {
                self.names.copy_within(1.., 0);
                self.depth -= 1;
            }
            self.names[self.depth] = Span::new(segment.start, end);
            self.depth += 1;
        }
    }

    /// The names that remain, outermost first; of more than twelve the last ones.
    pub fn names(&self) -> &[Span] {
        &self.names[..self.depth]
    }

    /// Writes the names to `out`, lower case, decoded, joined by `/`, without quotes, controls, parameters
    /// and what follows a question mark or hash sign; as many of the last names as fit. Returns the length.
    pub fn target(&self, text: &[u8], out: &mut [u8]) -> usize {
        let mut first = self.depth;
        let mut room = out.len();
        while first > 0 {
            let len = kept_len(self.names[first - 1].of(text));
            if len >= room {
                break;
            }
            room -= len + 1;
            first -= 1;
        }
        let mut len = 0;
        for (index, name) in self.names[first..self.depth].iter().enumerate() {
            let mut rest = name.of(text);
            if index > 0 {
                out[len] = b'/';
                len += 1;
            }
            let begin = len;
            while !rest.is_empty() {
                let unit = unit(rest);
                rest = &rest[unit.len..];
                match unit.byte {
                    b';' | b'#' | 0 => break,
                    b'"' | b'\'' | b'`' | b'^' | 1..=0x1F => {}
                    b'{' | b'}' | b'$' => {}
                    byte => {
                        out[len] = byte.to_ascii_lowercase();
                        len += 1;
                    }
                }
            }
            while len > begin && matches!(out[len - 1], b' ') {
                len -= 1;
            }
        }
        len
    }
}

/// Returns the length of a name up to the byte that cuts it off: a NUL, a parameter, a fragment. The text
/// behind it may be long.
fn kept_len(name: &[u8]) -> usize {
    let sign = memchr::memchr3(0, b';', b'#', name).unwrap_or(name.len());
    memchr::memmem::find(&name[..sign], b"%00").unwrap_or(sign)
}

impl Segment {
    fn is_up(&self) -> bool {
        self.dots == 2 && !self.has_content
    }

    fn take(&mut self, text: &[u8], at: usize, unit: Unit) {
        if self.has_parameter {
            return;
        }
        self.writing = self.writing.max(Some(unit.writing));
        match unit.byte {
            b'.' => self.dots += 1,
            b';' if self.dots == 2 && !self.has_content => self.has_parameter = true,
            b'"' | b'\'' | 0..=0x1F | 0x7F => self.has_junk = true,
            b' ' if self.dots > 0 => self.has_junk = true,
            // A wildcard that stands for the second dot.
            b'?' if self.dots == 1 && !self.has_content => {
                self.dots += 1;
                self.has_junk = true;
            }
            // The first of two percent signs is dropped by those who take `%%c0` for an escape.
            b'%' if text.get(at + 1) == Some(&b'%') => self.has_junk = true,
            _ => self.has_content = true,
        }
    }
}

/// `2f` and its like where a filter took the percent sign away, before more of the path.
fn bare_separator(text: &[u8]) -> Option<usize> {
    match text {
        [b'2', b'f' | b'F', _, ..] | [b'5', b'c' | b'C', _, ..] => Some(2),
        [b'2', b'5', b'2', b'f' | b'F', _, ..] | [b'2', b'5', b'5', b'c' | b'C', _, ..] => Some(4),
        _ => None,
    }
}

/// Bytes that no UTF-8 has, behind `..`: some decoders make a separator of them, whatever they would stand
/// for.
fn never_utf8(text: &[u8]) -> Option<usize> {
    match text {
        [0xC0 | 0xC1, 0x80..=0xBF, ..] => Some(2),
        [0xC0 | 0xC1, b'%', a, b, ..] if a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric() => Some(4),
        [0xE0, 0x80..=0x9F, 0x80..=0xBF, ..] => Some(3),
        [0xF0, 0x80..=0x8F, 0x80..=0xBF, 0x80..=0xBF, ..] => Some(4),
        _ => None,
    }
}

fn is_drive(name: &[u8]) -> bool {
    matches!(name, [letter, b':' | b'|'] if letter.is_ascii_alphabetic())
}
