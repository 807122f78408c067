use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Keeps hot cells of different handles out of each other's cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line<T>(T);

/// A number that only rises.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<Line<AtomicU64>>);

impl Counter {
    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `n`.
    pub fn add(&self, n: u64) {
        // A cell that other threads count in is not touched without need.
        if n > 0 {
            self.0.0.fetch_add(n, Relaxed);
        }
    }

    /// The present value.
    pub fn value(&self) -> u64 {
        self.0.0.load(Relaxed)
    }
}

/// A number that rises and falls.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Arc<Line<AtomicI64>>);

impl Gauge {
    /// Adds `n`, which may be negative.
    pub fn add(&self, n: i64) {
        self.0.0.fetch_add(n, Relaxed);
    }

    /// Replaces the value.
    pub fn set(&self, value: i64) {
        self.0.0.store(value, Relaxed);
    }

    /// The present value.
    pub fn value(&self) -> i64 {
        self.0.0.load(Relaxed)
    }
}

/// One counter for each word of a closed table, such as the reasons of a drop.
#[derive(Clone, Debug)]
pub struct EnumCounters(Arc<EnumCells>);

#[derive(Debug)]
struct EnumCells {
    names: Vec<&'static str>,
    /// One more than there are names: the last counts what is in no table.
    cells: Box<[AtomicU64]>,
}

impl EnumCounters {
    pub(crate) fn new(names: &[&'static str]) -> EnumCounters {
        let cells = std::iter::repeat_with(AtomicU64::default).take(names.len() + 1).collect();
        EnumCounters(Arc::new(EnumCells { names: names.to_vec(), cells }))
    }

    /// Adds `n` to the word at `index` of the table; an index beyond it counts as `other`.
    pub fn add(&self, index: usize, n: u64) {
        let cells = &self.0.cells;
        cells[index.min(cells.len() - 1)].fetch_add(n, Relaxed);
    }

    /// Adds one to the word at `index` of the table.
    pub fn inc(&self, index: usize) {
        self.add(index, 1);
    }

    /// The present value of the word at `index`.
    pub fn value(&self, index: usize) -> u64 {
        let cells = &self.0.cells;
        cells[index.min(cells.len() - 1)].load(Relaxed)
    }

    /// Words with their values; `other` only when it counted something.
    pub(crate) fn values(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let names = self.0.names.iter().copied().chain([crate::OTHER]);
        let last = self.0.names.len();
        let values = self.0.cells.iter().map(|cell| cell.load(Relaxed)).enumerate();
        names.zip(values).filter(move |(_, (i, n))| *i < last || *n > 0).map(|(name, (_, n))| (name, n))
    }
}

/// Upper bounds of the buckets, in microseconds, with the text of `le`. From a cached verdict to a timeout.
pub(crate) const BUCKETS: [(u64, &str); 20] = [
    (5, "0.000005"),
    (10, "0.00001"),
    (25, "0.000025"),
    (50, "0.00005"),
    (100, "0.0001"),
    (250, "0.00025"),
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (10_000_000, "10"),
    (60_000_000, "60"),
];

/// Durations by size.
#[derive(Clone, Debug, Default)]
pub struct Histogram(Arc<Line<HistogramCells>>);

#[derive(Debug, Default)]
struct HistogramCells {
    /// Not cumulative; the last is for what is above all bounds.
    buckets: [AtomicU64; BUCKETS.len() + 1],
    sum_ns: AtomicU64,
}

impl Histogram {
    /// Counts one duration. Bounds are inclusive, as Prometheus has them.
    pub fn observe(&self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let index = BUCKETS.partition_point(|&(bound, _)| bound * 1000 < ns);
        let cells = &self.0.0;
        cells.buckets[index].fetch_add(1, Relaxed);
        cells.sum_ns.fetch_add(ns, Relaxed);
    }

    /// Returns the number of durations that were counted.
    pub fn count(&self) -> u64 {
        self.0.0.buckets.iter().map(|cell| cell.load(Relaxed)).sum()
    }

    /// Bucket counts (not cumulative), then the sum in nanoseconds.
    pub(crate) fn read(&self) -> ([u64; BUCKETS.len() + 1], u64) {
        let cells = &self.0.0;
        let mut counts = [0; BUCKETS.len() + 1];
        for (count, cell) in counts.iter_mut().zip(&cells.buckets) {
            *count = cell.load(Relaxed);
        }
        (counts, cells.sum_ns.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_rise_and_their_texts_say_the_same() {
        assert!(BUCKETS.windows(2).all(|w| w[0].0 < w[1].0));
        for (us, text) in BUCKETS {
            assert_eq!(text.parse::<f64>().map(|s| (s * 1e6).round() as u64), Ok(us));
        }
    }

    #[test]
    fn bounds_are_inclusive() {
        let h = Histogram::default();
        h.observe(Duration::ZERO);
        h.observe(Duration::from_micros(5));
        h.observe(Duration::from_nanos(5_001));
        h.observe(Duration::from_secs(61));
        h.observe(Duration::MAX);
        let (counts, _) = h.read();
        assert_eq!((counts[0], counts[1], counts[BUCKETS.len()]), (2, 1, 2));
        assert_eq!(h.count(), 5);
    }

    #[test]
    fn an_index_beyond_the_table_counts_as_other() {
        let c = EnumCounters::new(&["a", "b"]);
        c.inc(1);
        assert_eq!(c.values().collect::<Vec<_>>(), [("a", 0), ("b", 1)]);
        c.add(7, 3);
        assert_eq!(c.values().last(), Some(("other", 3)));
    }

    #[test]
    fn threads_lose_nothing() {
        let counter = Counter::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| counter.inc()));
            }
        });
        assert_eq!(counter.value(), 40_000);
    }
}
