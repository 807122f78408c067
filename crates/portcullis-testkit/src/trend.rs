//! Growth of a series of samples.

/// Pairs of samples that are compared; a longer series is thinned to medians of groups first.
const SAMPLES_MAX: usize = 2000;

/// The slope of a series in units per sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trend {
    /// Median of the slopes between all pairs (Theil-Sen): single peaks do not move it.
    pub slope: f64,
    /// Lower bound of the slope at 95 % confidence.
    pub low: f64,
    /// Upper bound of the slope at 95 % confidence.
    pub high: f64,
}

impl Trend {
    /// Returns true if the series rises beyond doubt, and by more than `tolerated` per sample.
    pub fn rises_by_more_than(&self, tolerated: f64) -> bool {
        self.low > 0.0 && self.slope > tolerated
    }
}

/// The trend of samples taken at equal distances; 0 for fewer than two.
///
/// The bounds are Sen's (1968): the slopes at ranks `(N -+ 1.96 * sqrt(variance of Kendall's S)) / 2` of all
/// `N`.
pub fn trend(samples: &[f64]) -> Trend {
    let group = samples.len().div_ceil(SAMPLES_MAX).max(1);
    let samples: Vec<f64> = samples.chunks(group).map(median).collect();
    let count = samples.len();
    if count < 2 {
        return Trend::default();
    }
    let mut slopes: Vec<f64> = (0..count)
        .flat_map(|a| (a + 1..count).map(move |b| (a, b)))
        .map(|(a, b)| (samples[b] - samples[a]) / ((b - a) * group) as f64)
        .collect();
    slopes.sort_unstable_by(f64::total_cmp);
    let n = count as f64;
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let all = slopes.len() as f64;
    let at = |rank: f64| slopes[(rank.max(0.0) as usize).min(slopes.len() - 1)];
    let (low, high) = (at((all - 1.96 * deviation) / 2.0), at((all + 1.96 * deviation) / 2.0));
    Trend { slope: slopes[slopes.len() / 2], low, high }
}

/// The middle one of some samples; 0 of none.
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_that_of_most_samples() {
        let rising: Vec<f64> = (0..50).map(|n| 100.0 + 3.0 * f64::from(n)).collect();
        let found = trend(&rising);
        assert!((found.slope - 3.0).abs() < 1e-9 && found.rises_by_more_than(2.9), "{found:?}");
        let peaks: Vec<f64> = (0..50).map(|n| if n % 7 == 0 { 900.0 } else { 100.0 }).collect();
        assert!(trend(&peaks).slope.abs() < 1e-9);
        assert_eq!(trend(&[]), Trend::default());
    }

    #[test]
    fn noise_is_not_growth_and_growth_under_noise_is() {
        // 0, 7, 14, ... modulo 23: as good as random here, and the same in each run.
        let noise = |n: u32| f64::from(n * 7 % 23);
        let flat: Vec<f64> = (0..200).map(noise).collect();
        let found = trend(&flat);
        assert!(found.low < 0.0 && found.high > 0.0 && !found.rises_by_more_than(0.0), "{found:?}");
        let growing: Vec<f64> = (0..200).map(|n| noise(n) + 0.2 * f64::from(n)).collect();
        let found = trend(&growing);
        assert!(found.rises_by_more_than(0.15) && found.low > 0.15 && found.high < 0.25, "{found:?}");
    }

    #[test]
    fn long_series_are_thinned_without_changing_the_unit() {
        let rising: Vec<f64> = (0..9000).map(|n| 5.0 + 0.5 * f64::from(n)).collect();
        assert!((trend(&rising).slope - 0.5).abs() < 0.01);
    }
}
