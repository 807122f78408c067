//! The p99 of each 1,000 answers in a row.

/// Latencies of the last answers, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Thousand(Vec<u64>);

impl Thousand {
    const LEN: usize = 1000;

    /// Adds one. Every thousandth time, what 990 of the thousand did not exceed.
    pub(crate) fn p99_with(&mut self, took: u64) -> Option<u64> {
        self.0.push(took);
        if self.0.len() < Thousand::LEN {
            return None;
        }
        let (_, p99, _) = self.0.select_nth_unstable(Thousand::LEN * 99 / 100 - 1);
        let p99 = *p99;
        self.0.clear();
        Some(p99)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_in_the_thousand_in_which_it_falls() {
        let mut thousand = Thousand::default();
        // Ten slow ones are one in a hundred, which p99 does not see; eleven are more.
        let took = |index: u64| match index {
            1500..1510 | 2500..2511 => 1_000_000,
            _ => 100 + index % 7,
        };
        let p99s: Vec<u64> = (0..5999).filter_map(|index| thousand.p99_with(took(index))).collect();
        assert_eq!(p99s, [106, 106, 1_000_000, 106, 106]);
        assert_eq!(thousand.0.len(), 999);
    }
}
