//! Membership test for many ranges: sorted ranges, with an index of where to begin to look.

/// Slots at most, 4 bytes each.
const SLOTS_MAX: usize = 1 << 17;
/// Ranges in a slot, if they were spread evenly.
const RANGES_IN_SLOT: usize = 4;

/// Disjoint ranges of numbers, rising, first and last value side by side.
///
/// The values from the first range to the last are cut into equal slots, of which each knows the first range
/// that begins in it or later. A look-up reads its slot and searches the ranges that begin there by halves:
/// among a million that are spread evenly in three steps, within a line of memory or two, and in twenty if
/// all of them begin in one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ranges<T> {
    ranges: Box<[(T, T)]>,
    /// One more than there are, with the number of ranges.
    slots: Box<[u32]>,
    /// A slot has two to the power of this values.
    shift: u32,
}

impl<T: Ord + Copy + Into<u128>> Ranges<T> {
    /// The ranges, rising.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (T, T)> + '_ {
        self.ranges.iter().copied()
    }

    /// Inclusive ranges, rising, with a gap between any two.
    pub(crate) fn new(ranges: impl Iterator<Item = (T, T)>) -> Ranges<T> {
        let ranges: Box<[(T, T)]> = ranges.collect();
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else {
            return Ranges { ranges, slots: Box::default(), shift: 0 };
        };
        let base: u128 = first.0.into();
        let span = last.0.into() - base;
        let wanted = (ranges.len() / RANGES_IN_SLOT).next_power_of_two().clamp(2, SLOTS_MAX);
        let shift = (u128::BITS - span.leading_zeros()).saturating_sub(wanted.trailing_zeros());
        let count = (span >> shift) as usize + 1;
        let mut slots = Vec::with_capacity(count + 1);
        for (at, range) in (0..).zip(&ranges) {
            let slot = ((range.0.into() - base) >> shift) as usize;
            while slots.len() <= slot {
                slots.push(at);
            }
        }
        slots.push(ranges.len() as u32);
        Ranges { ranges, slots: slots.into(), shift }
    }

    pub(crate) fn contains(&self, value: T) -> bool {
        let Some(first) = self.ranges.first() else { return false };
        let Some(above) = value.into().checked_sub(first.0.into()) else { return false };
        let last = self.slots.len() - 2;
        let slot = usize::try_from(above >> self.shift).map_or(last, |slot| slot.min(last));
        let (from, to) = (self.slots[slot] as usize, self.slots[slot + 1] as usize);
        // The one before may begin in an earlier slot. It is there, as the value is not below the first
        // range.
        let at = from + self.ranges[from..to].partition_point(|range| range.0 <= value);
        value <= self.ranges[at - 1].1
    }

    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
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
            let found = Ranges::new(ranges.iter().copied());
            assert_eq!(found.len(), count as usize);
            for value in 0..count * 5 + 10 {
                let walked = ranges.iter().any(|(start, end)| (start..=end).contains(&&value));
                assert_eq!(found.contains(value), walked, "{value} of {count}");
            }
            assert!(!found.contains(u32::MAX));
        }
    }

    #[test]
    fn ranges_need_not_be_spread_evenly() {
        // Most begin in one slot, and the outermost values are in it.
        let mut ranges: Vec<(u128, u128)> = vec![(0, 1)];
        ranges.extend((0..3000u128).map(|n| ((1 << 100) + n * 4, (1 << 100) + n * 4 + 1)));
        ranges.extend([(1 << 120, 1 << 121), (u128::MAX - 1, u128::MAX)]);
        let found = Ranges::new(ranges.iter().copied());
        for (start, end) in &ranges {
            assert!(found.contains(*start) && found.contains(*end), "{start:x}");
            assert!(*start == 0 || !found.contains(start - 1), "{start:x}");
            assert!(*end == u128::MAX || !found.contains(end + 1), "{end:x}");
        }
        assert!(found.contains(3 << 119) && !found.contains(1 << 127));
        let two = Ranges::new([(0u128, 0), (u128::MAX, u128::MAX)].into_iter());
        assert!(
            two.contains(0) && two.contains(u128::MAX) && !two.contains(1) && !two.contains(u128::MAX - 1)
        );
    }
}
