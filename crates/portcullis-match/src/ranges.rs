//! Which of many ranges a value is in: a static search tree in arrays.

/// Values that are looked at in one step; a cache line of 32-bit ones.
const FAN: usize = 16;

/// Disjoint ranges of numbers.
///
/// The first values of the ranges are sorted; over them lies every sixteenth, over these every sixteenth of them, until sixteen are
/// left. A look-up goes down through one run of sixteen at each level, so that among a million ranges it reads five runs, of
/// which the upper three stay in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ranges<T> {
    /// The lowest has the first value of each range; each further one is a sixteenth of the one before.
    levels: Vec<Box<[T]>>,
    ends: Box<[T]>,
}

impl<T: Ord + Copy> Ranges<T> {
    /// Inclusive ranges, rising, with a gap between any two.
    pub(crate) fn new(ranges: impl Iterator<Item = (T, T)>) -> Ranges<T> {
        let (starts, ends): (Vec<T>, Vec<T>) = ranges.unzip();
        let mut levels = vec![starts.into_boxed_slice()];
        while let Some(below) = levels.last().filter(|level| level.len() > FAN) {
            let level = below.iter().copied().step_by(FAN).collect();
            levels.push(level);
        }
        Ranges { levels, ends: ends.into() }
    }

    pub(crate) fn contains(&self, value: T) -> bool {
        let mut run = 0;
        for level in self.levels.iter().rev() {
            let from = run * FAN;
            let some = &level[from..level.len().min(from + FAN)];
            // Counting all of them takes no branch that could be predicted wrongly.
            let count = some.iter().map(|start| usize::from(*start <= value)).sum::<usize>();
            let Some(last) = count.checked_sub(1) else { return false };
            run = from + last;
        }
        value <= self.ends[run]
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_walk_finds() {
        for count in [0u32, 1, 2, 15, 16, 17, 255, 256, 257, 4096, 5000] {
            // Ranges of one to three values, with gaps of two.
            let ranges: Vec<(u32, u32)> = (0..count).map(|n| (n * 5 + 3, n * 5 + 3 + n % 3)).collect();
            let tree = Ranges::new(ranges.iter().copied());
            assert_eq!(tree.len(), count as usize);
            for value in 0..count * 5 + 10 {
                let walked = ranges.iter().any(|(start, end)| (start..=end).contains(&&value));
                assert_eq!(tree.contains(value), walked, "{value} of {count}");
            }
            assert!(!tree.contains(u32::MAX));
        }
    }
}
