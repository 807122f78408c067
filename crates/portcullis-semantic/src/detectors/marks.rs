//! Tables of texts that products write, and one search for all of them.

use aho_corasick::{AhoCorasick, MatchKind};

/// The rows of a table: lines of fields with tabs between them; `#` begins a comment. A field that is missing
/// is empty.
pub(super) fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
        let mut fields = line.split('\t');
        std::array::from_fn(|_| fields.next().unwrap_or_default())
    })
}

/// Texts to be found, and what is known about each.
#[derive(Debug)]
pub(super) struct Marks<T> {
    search: AhoCorasick,
    about: Vec<T>,
}

/// A mark that was found, and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit<'m, T> {
    pub about: &'m T,
    pub start: usize,
    pub end: usize,
}

impl<T> Marks<T> {
    /// A search for `marks`; case counts unless `ignore_case`.
    pub fn new(marks: impl Iterator<Item = (&'static str, T)>, ignore_case: bool) -> Marks<T> {
        let (texts, about): (Vec<&str>, Vec<T>) = marks.unzip();
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .ascii_case_insensitive(ignore_case)
            .build(texts)
            .expect("a table of marks is small");
        Marks { search, about }
    }

    /// The marks in `text`, from left to right; none within another.
    pub fn find<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = Hit<'a, T>> {
        self.search.find_iter(text).map(|hit| Hit {
            about: &self.about[hit.pattern().as_usize()],
            start: hit.start(),
            end: hit.end(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables() {
        let rows: Vec<[&str; 3]> = rows("# x\na\tb\n\nc\td\te\n").collect();
        assert_eq!(rows, [["a", "b", ""], ["c", "d", "e"]]);
    }

    #[test]
    fn marks() {
        let marks = Marks::new([("one", 1), ("two", 2)].into_iter(), true);
        let found: Vec<(i32, usize)> = marks.find(b"TWO one").map(|hit| (*hit.about, hit.start)).collect();
        assert_eq!(found, [(2, 0), (1, 4)]);
    }
}
