//! Latencies in logarithmic buckets, four to an octave: a value is known to within 19 %.

use crate::codec::{Damaged, Reader, put_u32, put_u64};

/// Buckets; the last one takes an hour and more.
const BUCKETS: usize = 124;

/// A histogram of durations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    buckets: Box<[u64; BUCKETS]>,
}

impl Default for Latency {
    fn default() -> Latency {
        Latency { buckets: Box::new([0; BUCKETS]) }
    }
}

impl Latency {
    /// Adds a duration in microseconds.
    pub(crate) fn add(&mut self, us: u64) {
        self.buckets[bucket(us)] += 1;
    }

    pub(crate) fn merge(&mut self, other: &Latency) {
        self.buckets
            .iter_mut()
            .zip(&*other.buckets)
            .for_each(|(own, theirs)| *own = own.saturating_add(*theirs));
    }

    /// Durations in it.
    pub fn count(&self) -> u64 {
        self.buckets.iter().copied().fold(0, u64::saturating_add)
    }

    /// The duration in microseconds that the given share (0 to 1) of requests did not exceed: the upper end
    /// of its bucket. None without requests.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let count = self.count();
        let wanted = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        let at = self.buckets.iter().position(|&of_bucket| {
            seen = of_bucket.saturating_add(seen);
            seen >= wanted
        });
        at.map(end)
    }

    /// The buckets that are not empty: upper end in microseconds (inclusive), count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets.iter().enumerate().filter(|(_, count)| **count > 0).map(|(at, count)| (end(at), *count))
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let filled = || self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        put_u32(out, filled().count() as u32);
        for (at, count) in filled() {
            put_u32(out, at as u32);
            put_u64(out, *count);
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Latency, Damaged> {
        let mut latency = Latency::default();
        for _ in 0..reader.u32()? {
            let (at, count) = (reader.u32()? as usize, reader.u64()?);
            *latency.buckets.get_mut(at).ok_or(Damaged)? = count;
        }
        Ok(latency)
    }
}

/// 0 to 3 have a bucket each, then each octave has four.
fn bucket(us: u64) -> usize {
    if us < 4 {
        return us as usize;
    }
    let octave = us.ilog2() as usize;
    let quarter = (us >> (octave - 2)) as usize & 3;
    ((octave - 1) * 4 + quarter).min(BUCKETS - 1)
}

/// The largest value of a bucket.
fn end(at: usize) -> u64 {
    match at {
        0..4 => at as u64,
        _ => ((5 + (at as u64 & 3)) << (at / 4 - 1)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let mut last = 0;
        for us in 0..100_000 {
            let at = bucket(us);
            assert!(at == last || at == last + 1, "{us}");
            assert!(us <= end(at) && (at == 0 || us > end(at - 1)), "{us}");
            last = at;
        }
        assert_eq!((bucket(u64::MAX), bucket(1 << 32)), (BUCKETS - 1, BUCKETS - 1));
    }

    #[test]
    fn quantiles_are_within_a_bucket() {
        let mut latency = Latency::default();
        assert_eq!(latency.quantile(0.5), None);
        (1..=1000).for_each(|us| latency.add(us));
        for (share, exact) in [(0.0, 1), (0.5, 500), (0.99, 990), (1.0, 1000)] {
            let found = latency.quantile(share).unwrap();
            assert!(found >= exact && found as f64 <= exact as f64 * 1.25, "{share}: {found}");
        }
    }
}
