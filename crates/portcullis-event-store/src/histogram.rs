//! Events over time: how many of each outcome fall into each step, for the events that pass a filter.

use std::collections::BTreeMap;
use std::time::Duration;

use portcullis_query::{Field, Filter, Outcome};

use crate::block::Column;
use crate::query::{Look, QueryError, Store};
use crate::segment::{Segment, SegmentError};

/// Lengths of steps in milliseconds. Each is a multiple of the one before, so that steps can be joined.
const LENGTHS: [u64; 20] = {
    const S: u64 = 1000;
    const H: u64 = 3600 * S;
    const D: u64 = 24 * H;
    [
        S,
        5 * S,
        10 * S,
        30 * S,
        60 * S,
        300 * S,
        600 * S,
        1800 * S,
        H,
        3 * H,
        6 * H,
        12 * H,
        D,
        7 * D,
        28 * D,
        84 * D,
        336 * D,
        3360 * D,
        33_600 * D,
        u64::MAX,
    ]
};

/// The question.
#[derive(Clone, Copy, Debug)]
pub struct HistogramRequest<'a> {
    /// Filter that events have to pass. Its times are the edges.
    pub filter: &'a Filter,
    /// Steps at most, two at least.
    pub steps: usize,
    /// The end if the filter has none or a later one, in milliseconds since 1970; later events extend it.
    pub now_ms: u64,
    /// Longest time of looking.
    pub patience: Duration,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Beginning of the first step, in milliseconds since 1970; a multiple of the length.
    pub from_ms: u64,
    /// End of the last step.
    pub to_ms: u64,
    /// Length of a step: whole seconds.
    pub step_ms: u64,
    /// The steps that have events, oldest first.
    pub steps: Vec<HistogramStep>,
    /// False if the time ran out: only the newest events are counted.
    pub complete: bool,
    /// Segments that could not be read, and why.
    pub skipped: Vec<String>,
}

/// Requests of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramStep {
    /// Beginning in milliseconds since 1970.
    pub start_ms: u64,
    /// Requests by outcome, in the order of [`Outcome::NAMES`]; at the end those without one.
    pub counts: OutcomeCounts,
}

/// Requests by outcome, in the order of [`Outcome::NAMES`]; at the end those without one.
pub type OutcomeCounts = [u64; Outcome::NAMES.len() + 1];

/// The steps of a histogram as they are counted. They become longer when an event is beyond them.
#[derive(Clone, Debug)]
pub struct Steps {
    length: usize,
    most: u64,
    first_ms: u64,
    last_ms: u64,
    counts: BTreeMap<u64, OutcomeCounts>,
}

impl Steps {
    /// Steps for the times of the filter; without an earliest time they begin at the end.
    pub fn new(request: &HistogramRequest<'_>) -> Steps {
        let (first, last) = request.filter.time_range();
        let last_ms = last.min(request.now_ms.max(first));
        let first_ms = if first == 0 { last_ms } else { first.min(last_ms) };
        let most = (request.steps as u64).max(2);
        let mut steps = Steps { length: 0, most, first_ms, last_ms, counts: BTreeMap::new() };
        steps.lengthen();
        steps
    }

    /// Extends them to a time.
    pub fn reach(&mut self, time_ms: u64) {
        if time_ms < self.first_ms || time_ms > self.last_ms {
            self.first_ms = self.first_ms.min(time_ms);
            self.last_ms = self.last_ms.max(time_ms);
            self.lengthen();
        }
    }

    /// Length of a step in milliseconds.
    pub fn length_ms(&self) -> u64 {
        LENGTHS[self.length]
    }

    /// Adds requests at a time that is within reach. `outcome` is the name of one, or none.
    pub fn add(&mut self, time_ms: u64, outcome: &str, count: u64) {
        let place = Outcome::NAMES.iter().position(|name| *name == outcome).unwrap_or(Outcome::NAMES.len());
        let step = self.counts.entry(time_ms / self.length_ms()).or_default();
        step[place] = step[place].saturating_add(count);
    }

    /// The histogram of what was added.
    pub fn finish(self, complete: bool, skipped: Vec<String>) -> Histogram {
        let step_ms = self.length_ms();
        let steps =
            self.counts.iter().map(|(at, counts)| HistogramStep { start_ms: at * step_ms, counts: *counts });
        Histogram {
            from_ms: self.first_ms / step_ms * step_ms,
            to_ms: (self.last_ms / step_ms).saturating_add(1).saturating_mul(step_ms),
            step_ms,
            steps: steps.collect(),
            complete,
            skipped,
        }
    }

    fn lengthen(&mut self) {
        let before = self.length;
        while self.last_ms / self.length_ms() - self.first_ms / self.length_ms() >= self.most {
            self.length += 1;
        }
        if self.length > before && !self.counts.is_empty() {
            let joined = self.length_ms() / LENGTHS[before];
            for (at, counts) in std::mem::take(&mut self.counts) {
                let sum = self.counts.entry(at / joined).or_default();
                sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
            }
        }
    }
}

impl Store {
    /// Counts the events that pass a filter by time and outcome, the newest first. What is damaged is left
    /// out and named.
    pub fn histogram(&self, request: &HistogramRequest<'_>) -> Result<Histogram, QueryError> {
        let look = Look::new(request.filter, request.patience);
        let (mut steps, mut complete, mut skipped) = (Steps::new(request), true, Vec::new());
        let segments = self.folder_of_segments().segments().map_err(QueryError::Folder)?;
        for file in segments.iter().rev() {
            match Segment::open(&file.path).and_then(|segment| count(&segment, &look, &mut steps)) {
                Ok(true) => {}
                Ok(false) => {
                    complete = false;
                    break;
                }
                // Dropped since the folder was listed.
                Err(_) if !file.path.exists() => {}
                Err(error) => skipped.push(format!("{}: {error}", file.path.display())),
            }
        }
        Ok(steps.finish(complete, skipped))
    }
}

/// Counts the events of a segment. False if the time is over.
fn count(segment: &Segment, look: &Look<'_>, steps: &mut Steps) -> Result<bool, SegmentError> {
    for head in segment.blocks(u64::MAX, look.times)? {
        if look.is_over() {
            return Ok(false);
        }
        let Some(rows) = look.rows(segment, &head)? else { continue };
        let counts = segment.column(&head, Field::Count)?;
        let Column::Words(outcomes) = segment.column(&head, Field::Outcome)? else { continue };
        let times = segment.column(&head, Field::Time)?;
        for row in rows.iter() {
            steps.reach(times.number(row));
            steps.add(times.number(row), outcomes.get(row), counts.number(row));
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_length_is_made_of_the_one_before() {
        assert!(LENGTHS[..19].windows(2).all(|pair| pair[1] % pair[0] == 0 && pair[1] / pair[0] <= 10));
    }

    proptest! {
        /// In whatever order times come: as many requests as were added, each in the step of its time, and
        /// never more steps than were asked for.
        #[test]
        fn steps_hold_what_was_added(
            times in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..5_000_000, 1_790_000_000_000u64..1_800_000_000_000], 1..40),
            steps in 2usize..100,
            now_ms in 1_790_000_000_000u64..1_800_000_000_000,
        ) {
            let filter = Filter::everything();
            let request = HistogramRequest { filter: &filter, steps, now_ms, patience: Duration::ZERO };
            let mut counted = Steps::new(&request);
            for &time in &times {
                counted.reach(time);
                counted.add(time, "blocked", 2);
            }
            let found = counted.finish(true, Vec::new());
            prop_assert!((found.to_ms - found.from_ms).div_ceil(found.step_ms) <= steps as u64);
            prop_assert!(found.steps.len() <= steps);
            for step in &found.steps {
                let within = times.iter().filter(|&&time| time / found.step_ms == step.start_ms / found.step_ms);
                prop_assert_eq!(step.counts[0], 2 * within.count() as u64);
            }
            prop_assert_eq!(found.steps.iter().map(|step| step.counts[0]).sum::<u64>(), 2 * times.len() as u64);
        }
    }
}
