//! A set of rows of one block.

/// Rows of a block by number, as bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    words: Vec<u64>,
    count: usize,
}

impl Rows {
    pub(crate) fn none(count: usize) -> Rows {
        Rows { words: vec![0; count.div_ceil(64)], count }
    }

    pub(crate) fn all(count: usize) -> Rows {
        Rows::none(count).inverted()
    }

    /// The rows for which `test` holds.
    pub(crate) fn of(count: usize, mut test: impl FnMut(usize) -> bool) -> Rows {
        let mut rows = Rows::none(count);
        for row in 0..count {
            rows.words[row / 64] |= u64::from(test(row)) << (row % 64);
        }
        rows
    }

    /// Adds a row; nothing if the block has no such row.
    pub(crate) fn insert(&mut self, row: usize) {
        if row < self.count {
            self.words[row / 64] |= 1 << (row % 64);
        }
    }

    pub(crate) fn inverted(mut self) -> Rows {
        for (number, word) in self.words.iter_mut().enumerate() {
            let valid = self.count - number * 64;
            *word = !*word & if valid >= 64 { u64::MAX } else { (1 << valid) - 1 };
        }
        self
    }

    pub(crate) fn retain(&mut self, other: &Rows) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
    }

    pub(crate) fn add(&mut self, other: &Rows) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    pub(crate) fn contains(&self, row: usize) -> bool {
        self.words.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// The rows, first one first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        (0..self.count).filter(|&row| self.contains(row))
    }
}
