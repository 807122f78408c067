//! Roll-ups: what requests come to, by minute and hour and site, so that charts never look at events.
//!
//! ```text
//!  worker ──> Tally ─┐ taken each commit      minute row ─┐                        kept in the archive
//!  worker ──> Tally ─┴─> Writer ──> segment <─┤           ├─> dropped segment ──> (hours for longer than minutes)
//!                        same transaction     hour row  ──┘
//!                        as the events
//! ```
//!
//! All requests count, not only those with an event, in the minute in which they ended.

mod archive;
mod latency;
mod read;
mod tally;
mod top;
mod write;

pub(crate) use archive::{Archive, Keep, NAME as ARCHIVE};
pub use latency::Latency;
pub use read::{Rollups, SiteRollup};
pub use tally::{Tallies, Tally};
pub use top::{Entry, Top};
pub(crate) use write::{HOUR, MINUTE, TABLE, add, prune};

use portcullis_event::{Action, NotInspected};
use portcullis_query::Outcome;

use crate::codec::{Damaged, Packer, Reader, put_u64, unpack};

/// A property by which requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Actions: `pass`, `detect`, `deny`, ...
    Verdict,
    /// Status code of the response; `none` if there was none.
    Status,
    /// Configured name of the route.
    Route,
    /// Attack class of what was found in events.
    Class,
    /// Rules that matched in events.
    Rule,
    /// Country of the client.
    Country,
    /// Endpoint of the upstream that was asked last.
    Upstream,
    /// Control that decided: `rate_limit:login`.
    Control,
    /// Reason for which bytes were not inspected; counts bytes, not requests.
    NotInspected,
    /// Client address.
    Client,
    /// Path template: variable parts of paths stand as `*`.
    Path,
    /// The outcomes of the requests: [`Outcome`](portcullis_query::Outcome).
    Outcome,
}

impl Dimension {
    /// All of them; `ALL[d as usize] == d`.
    pub const ALL: [Dimension; 12] = [
        Dimension::Verdict,
        Dimension::Status,
        Dimension::Route,
        Dimension::Class,
        Dimension::Rule,
        Dimension::Country,
        Dimension::Upstream,
        Dimension::Control,
        Dimension::NotInspected,
        Dimension::Client,
        Dimension::Path,
        Dimension::Outcome,
    ];

    /// The name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Dimension::Verdict => "verdict",
            Dimension::Status => "status",
            Dimension::Route => "route",
            Dimension::Class => "class",
            Dimension::Rule => "rule",
            Dimension::Country => "country",
            Dimension::Upstream => "upstream",
            Dimension::Control => "control",
            Dimension::NotInspected => "not_inspected",
            Dimension::Client => "client",
            Dimension::Path => "path",
            Dimension::Outcome => "outcome",
        }
    }

    /// Labels that are kept in one roll-up. Dimensions of the configuration and of HTTP are exact up to it;
    /// clients and paths are heavy hitters.
    pub fn capacity(self) -> usize {
        match self {
            Dimension::Rule | Dimension::Country => 256,
            Dimension::Route | Dimension::Client | Dimension::Path => 128,
            Dimension::Verdict
            | Dimension::Status
            | Dimension::Class
            | Dimension::Upstream
            | Dimension::Control
            | Dimension::NotInspected
            | Dimension::Outcome => 64,
        }
    }
}

/// Sums of the requests of a site in a period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollup {
    /// Requests.
    pub requests: u64,
    /// Events, each counted with the requests that it stands for.
    pub events: u64,
    /// Bytes of request bodies.
    pub request_bytes: u64,
    /// Bytes of response bodies.
    pub response_bytes: u64,
    /// Bytes that were inspected.
    pub bytes_inspected: u64,
    /// Durations of requests, from first byte to last.
    pub latency: Latency,
    /// The part of it that inspection took, of requests that were inspected.
    pub inspection: Latency,
    counts: [Top; Dimension::ALL.len()],
}

const VERSION: u64 = 3;
/// The version whose roll-ups do not have the time of the inspection.
const WITHOUT_INSPECTION: u64 = 2;
/// The version whose roll-ups do not have the outcome either.
const WITHOUT_OUTCOMES: u64 = 1;

impl Rollup {
    /// Counts by a property.
    pub fn by(&self, dimension: Dimension) -> &Top {
        &self.counts[dimension as usize]
    }

    /// Bytes that were not inspected, whatever the reason.
    pub fn bytes_not_inspected(&self) -> u64 {
        let of = |name: &&str| self.by(Dimension::NotInspected).count(name);
        NotInspected::NAMES.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Adds another. Sums stop at their largest value: a damaged file may hold any.
    pub fn merge(&mut self, other: &Rollup) {
        self.requests = self.requests.saturating_add(other.requests);
        self.events = self.events.saturating_add(other.events);
        self.request_bytes = self.request_bytes.saturating_add(other.request_bytes);
        self.response_bytes = self.response_bytes.saturating_add(other.response_bytes);
        self.bytes_inspected = self.bytes_inspected.saturating_add(other.bytes_inspected);
        self.latency.merge(&other.latency);
        self.inspection.merge(&other.inspection);
        for dimension in Dimension::ALL {
            let theirs = other.by(dimension);
            self.counts[dimension as usize].merge(theirs, dimension.capacity());
        }
    }

    fn add(&mut self, dimension: Dimension, label: &str, count: u64) {
        if !label.is_empty() {
            self.counts[dimension as usize].add(label, count, dimension.capacity());
        }
    }

    /// The most that outcomes may have been, from what an earlier version counted.
    fn bound_outcomes(&mut self) {
        let count = |dimension: Dimension, name: &str| self.counts[dimension as usize].count(name);
        let stopped = [Action::Deny, Action::Redirect, Action::Drop, Action::Proxy];
        let blocked = stopped.iter().map(|action| count(Dimension::Verdict, action.name()));
        let blocked = blocked.fold(0, u64::saturating_add);
        let controls = self.counts[Dimension::Control as usize].sorted();
        let controls = controls.iter().fold(0, |sum: u64, entry| sum.saturating_add(entry.count));
        let detected = count(Dimension::Verdict, Action::Detect.name());
        let refused = count(Dimension::Verdict, Action::Refuse.name());
        // Controls stopped as many as they count, but for those that only log.
        let bounds = [
            (Outcome::Blocked, blocked, blocked.min(controls)),
            (Outcome::WouldBlock, detected, detected),
            (Outcome::Refused, refused, 0),
            (Outcome::Control, controls, 0),
        ];
        let capacity = Dimension::Outcome.capacity();
        let top = &mut self.counts[Dimension::Outcome as usize];
        for (outcome, count, error) in bounds.into_iter().filter(|(_, count, _)| *count > 0) {
            top.add_entry(outcome.name(), count, error, capacity);
        }
    }

    fn numbers(&mut self) -> [&mut u64; 5] {
        [
            &mut self.requests,
            &mut self.events,
            &mut self.request_bytes,
            &mut self.response_bytes,
            &mut self.bytes_inspected,
        ]
    }

    pub(crate) fn encode(&mut self, packer: &mut Packer) -> Vec<u8> {
        let mut out = Vec::with_capacity(4096);
        put_u64(&mut out, VERSION);
        self.numbers().into_iter().for_each(|number| put_u64(&mut out, *number));
        self.latency.write(&mut out);
        self.inspection.write(&mut out);
        self.counts.iter().for_each(|top| top.write(&mut out));
        packer.pack(&out)
    }

    pub(crate) fn decode(stored: &[u8]) -> Result<Rollup, Damaged> {
        let bytes = unpack(stored)?;
        let mut reader = Reader(&bytes);
        let version = reader.u64()?;
        let dimensions = match version {
            VERSION | WITHOUT_INSPECTION => Dimension::ALL.len(),
            WITHOUT_OUTCOMES => Dimension::Outcome as usize,
            _ => return Err(Damaged),
        };
        let mut rollup = Rollup::default();
        for number in rollup.numbers() {
            *number = reader.u64()?;
        }
        rollup.latency = Latency::read(&mut reader)?;
        if version == VERSION {
            rollup.inspection = Latency::read(&mut reader)?;
        }
        for top in &mut rollup.counts[..dimensions] {
            *top = Top::read(&mut reader)?;
        }
        if dimensions < Dimension::ALL.len() {
            rollup.bound_outcomes();
        }
        reader.end()?;
        Ok(rollup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of a lying disk: sums stop at their largest value.
    #[test]
    fn sums_of_damaged_roll_ups_do_not_overflow() {
        let mut rollup = Rollup::default();
        rollup.numbers().into_iter().for_each(|number| *number = u64::MAX);
        rollup.latency.add(5);
        rollup.add(Dimension::Path, "/", u64::MAX);
        rollup.add(Dimension::NotInspected, NotInspected::NAMES[0], u64::MAX);
        rollup.add(Dimension::NotInspected, NotInspected::NAMES[1], u64::MAX);
        let other = Rollup::decode(&rollup.encode(&mut Packer::new())).unwrap();
        rollup.merge(&other);
        assert_eq!((rollup.requests, rollup.by(Dimension::Path).count("/")), (u64::MAX, u64::MAX));
        assert_eq!((rollup.bytes_not_inspected(), rollup.latency.quantile(1.0)), (u64::MAX, Some(5)));
    }

    /// Roll-ups of the version before have all but the time of the inspection, and can be added to.
    #[test]
    fn times_of_inspection_begin_with_this_version() {
        let mut rollup = Rollup::default();
        rollup.latency.add(900);
        rollup.add(Dimension::Outcome, "blocked", 3);
        let bytes = unpack(&rollup.encode(&mut Packer::new())).unwrap();
        let mut earlier = Vec::new();
        put_u64(&mut earlier, WITHOUT_INSPECTION);
        // One filled bucket of latency takes 12 bytes behind its number.
        let latency_ends = 8 + 5 * 8 + 4 + 12;
        earlier.extend_from_slice(&bytes[8..latency_ends]);
        earlier.extend_from_slice(&bytes[latency_ends + 4..]);
        let mut read = Rollup::decode(&Packer::new().pack(&earlier)).unwrap();
        assert_eq!(read, rollup);
        let mut newer = Rollup::default();
        newer.latency.add(900);
        newer.inspection.add(100);
        read.merge(&newer);
        let read = Rollup::decode(&read.encode(&mut Packer::new())).unwrap();
        assert_eq!((read.latency.count(), read.inspection.count()), (2, 1));
        assert!((100..=125).contains(&read.inspection.quantile(0.5).unwrap()));
    }

    #[test]
    fn outcomes_that_an_earlier_version_did_not_count_are_bounds() {
        let mut rollup = Rollup::default();
        for (verdict, count) in [("pass", 90), ("deny", 5), ("drop", 1), ("detect", 3), ("refuse", 2)] {
            rollup.add(Dimension::Verdict, verdict, count);
        }
        rollup.add(Dimension::Control, "ban:all", 4);
        let stored = rollup.encode(&mut Packer::new());
        let bytes = unpack(&stored).unwrap();
        let mut earlier = Vec::new();
        put_u64(&mut earlier, WITHOUT_OUTCOMES);
        // The last list is that of the outcomes, and empty, as that of the inspection behind the latency is.
        earlier.extend_from_slice(&bytes[8..8 + 5 * 8 + 4]);
        earlier.extend_from_slice(&bytes[8 + 5 * 8 + 4 + 4..bytes.len() - 4]);
        let read = Rollup::decode(&Packer::new().pack(&earlier)).unwrap();
        let outcomes = read.by(Dimension::Outcome).sorted();
        let outcomes: Vec<(&str, u64, u64)> =
            outcomes.iter().map(|entry| (&*entry.label, entry.count, entry.error)).collect();
        assert_eq!(
            outcomes,
            [("blocked", 6, 4), ("control", 4, 0), ("would_block", 3, 3), ("refused", 2, 0)]
        );
        assert_eq!(read.by(Dimension::Verdict), rollup.by(Dimension::Verdict));
    }
}
