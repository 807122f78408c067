/// A half-open range of byte offsets, `start..end`, into a text that the context names.
///
/// Offsets are 32 bits: no text we index (rule file, message head, value) is allowed to reach 4 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte; never below `start`.
    pub end: u32,
}

impl Span {
    /// A span from `start` to `end`, clamped to 32 bits and to a non-negative length.
    pub fn new(start: usize, end: usize) -> Self {
        let start = u32::try_from(start).unwrap_or(u32::MAX);
        let end = u32::try_from(end).unwrap_or(u32::MAX);
        Span { start, end: end.max(start) }
    }

    /// Length in bytes.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// True if the span holds no byte.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// As a range for slicing.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The bytes of `text` that the span covers; empty if `text` is shorter than the span says.
    pub fn of(self, text: &[u8]) -> &[u8] {
        text.get(self.range()).unwrap_or_default()
    }
}
