//! Counts by label in bounded memory.

use hashbrown::HashMap;

use crate::codec::{Damaged, Reader, put_bytes, put_u32, put_u64};

/// Bytes of a label; longer ones are cut.
pub(crate) const LABEL_BYTES_MAX: usize = 256;

/// Counts of the labels that are most frequent (the algorithm Space-Saving). Exact while there are no more
/// labels than its capacity. Beyond it a new label takes the place and count of the rarest one, so that a
/// count may be too high, by at most the total divided by the capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Top {
    places: HashMap<Box<str>, usize>,
    entries: Vec<Entry>,
}

/// A label and how often it was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The label.
    pub label: Box<str>,
    /// Its count.
    pub count: u64,
    /// Bound on the part of the count that belongs to labels whose place it took; 0: the count is exact.
    pub error: u64,
}

impl Top {
    /// The entries, most frequent first; entries of one count by label.
    pub fn sorted(&self) -> Vec<&Entry> {
        let mut sorted: Vec<&Entry> = self.entries.iter().collect();
        sorted.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.label.cmp(&b.label)));
        sorted
    }

    /// The count of a label; 0 if it is not among the most frequent.
    pub fn count(&self, label: &str) -> u64 {
        self.places.get(label).and_then(|&at| self.entries.get(at)).map_or(0, |entry| entry.count)
    }

    /// Counts a label.
    pub(crate) fn add(&mut self, label: &str, count: u64, capacity: usize) {
        self.add_entry(cut(label), count, 0, capacity);
    }

    /// Counts a label whose count may be too high by `error`.
    pub(crate) fn add_entry(&mut self, label: &str, count: u64, error: u64, capacity: usize) {
        if let Some(&at) = self.places.get(label) {
            let entry = &mut self.entries[at];
            entry.count = entry.count.saturating_add(count);
            entry.error = entry.error.saturating_add(error);
            return;
        }
        if self.entries.len() < capacity {
            self.places.insert(label.into(), self.entries.len());
            self.entries.push(Entry { label: label.into(), count, error });
            return;
        }
        let rarest = self.entries.iter().enumerate().min_by_key(|(_, entry)| entry.count);
        let Some((at, rarest)) = rarest.map(|(at, entry)| (at, entry.count)) else { return };
        let entry = &mut self.entries[at];
        self.places.remove(&entry.label);
        *entry = Entry {
            label: label.into(),
            count: rarest.saturating_add(count),
            error: rarest.saturating_add(error),
        };
        self.places.insert(label.into(), at);
    }

    /// Adds the counts of another. What does not fit is the rarest, so more frequent labels are added first.
    pub(crate) fn merge(&mut self, other: &Top, capacity: usize) {
        let both = self.entries.iter().chain(&other.entries);
        if self.entries.len() + other.entries.len() <= capacity {
            other.entries.iter().for_each(|e| self.add_entry(&e.label, e.count, e.error, capacity));
            return;
        }
        let mut sums: HashMap<&str, (u64, u64)> = HashMap::new();
        for entry in both {
            let sum = sums.entry(&entry.label).or_default();
            *sum = (sum.0.saturating_add(entry.count), sum.1.saturating_add(entry.error));
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by(|(a, (m, _)), (b, (n, _))| n.cmp(m).then_with(|| a.cmp(b)));
        let mut merged = Top::default();
        for (label, (count, error)) in sums.into_iter().take(capacity) {
            merged.add_entry(label, count, error, capacity);
        }
        *self = merged;
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_u32(out, self.entries.len() as u32);
        for entry in &self.entries {
            put_bytes(out, entry.label.as_bytes());
            put_u64(out, entry.count);
            put_u64(out, entry.error);
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Top, Damaged> {
        let mut top = Top::default();
        for _ in 0..reader.u32()? {
            let (label, count, error) = (reader.text()?, reader.u64()?, reader.u64()?);
            if top.places.insert(label.into(), top.entries.len()).is_some() {
                return Err(Damaged);
            }
            top.entries.push(Entry { label: label.into(), count, error });
        }
        Ok(top)
    }
}

fn cut(label: &str) -> &str {
    let end = (0..=LABEL_BYTES_MAX.min(label.len())).rev().find(|&at| label.is_char_boundary(at));
    &label[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    const CAPACITY: usize = 8;

    fn counted(labels: &[u8]) -> Top {
        let mut top = Top::default();
        labels.iter().for_each(|label| top.add(&label.to_string(), 1, CAPACITY));
        top
    }

    proptest! {
        #[test]
        fn counts_are_exact_within_capacity_and_bounded_beyond(labels in prop::collection::vec(0u8..20, 0..400)) {
            let mut exact: HashMap<String, u64> = HashMap::new();
            labels.iter().for_each(|label| *exact.entry(label.to_string()).or_default() += 1);
            let top = counted(&labels);
            let total = labels.len() as u64;
            prop_assert_eq!(top.entries.iter().map(|entry| entry.count).sum::<u64>(), total);
            for entry in &top.entries {
                let exact = exact[&*entry.label];
                prop_assert!(entry.count >= exact && entry.count - entry.error <= exact);
                prop_assert!(entry.error <= total / CAPACITY as u64);
            }
            // Nothing that is frequent is missing.
            for (label, count) in &exact {
                prop_assert!(*count <= total / CAPACITY as u64 || top.count(label) > 0, "{}", label);
            }
            if exact.len() <= CAPACITY {
                prop_assert!(top.entries.iter().all(|entry| entry.error == 0));
            }
        }

        #[test]
        fn merged_counts_are_those_of_all_within_capacity(
            a in prop::collection::vec(0u8..8, 0..100),
            b in prop::collection::vec(0u8..8, 0..100),
        ) {
            let mut merged = counted(&a);
            merged.merge(&counted(&b), CAPACITY);
            let whole = counted(&[a, b].concat());
            prop_assert_eq!(merged.sorted(), whole.sorted());
        }

        #[test]
        fn what_is_written_is_read(labels in prop::collection::vec(0u8..20, 0..100)) {
            let top = counted(&labels);
            let mut out = Vec::new();
            top.write(&mut out);
            let mut reader = Reader(&out);
            prop_assert_eq!(Top::read(&mut reader).unwrap(), top);
            prop_assert!(reader.end().is_ok());
        }
    }

    #[test]
    fn labels_are_cut_between_characters() {
        let mut top = Top::default();
        top.add(&"ä".repeat(200), 1, 1);
        assert_eq!(top.entries[0].label.len(), LABEL_BYTES_MAX);
        top.add(&format!("x{}", "ä".repeat(200)), 1, 2);
        assert_eq!(top.entries[1].label.len(), LABEL_BYTES_MAX - 1);
    }
}
