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

use portcullis_event::NotInspected;

use crate::codec::{Damaged, Packer, Reader, put_u64, unpack};

/// A property by which requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// What was done: `pass`, `detect`, `deny`, ...
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
}

impl Dimension {
    /// All of them; `ALL[d as usize] == d`.
    pub const ALL: [Dimension; 11] = [
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
        }
    }

    /// Labels that are kept in one roll-up. Dimensions of the configuration and of HTTP are exact up to it;
    /// clients and paths are heavy hitters.
    pub fn capacity(self) -> usize {
        match self {
            Dimension::Rule | Dimension::Country => 256,
            Dimension::Route | Dimension::Client | Dimension::Path => 128,
            _ => 64,
        }
    }
}

/// What the requests of a site in a stretch of time come to.
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
    counts: [Top; Dimension::ALL.len()],
}

const VERSION: u64 = 1;

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
        self.counts.iter().for_each(|top| top.write(&mut out));
        packer.pack(&out)
    }

    pub(crate) fn decode(stored: &[u8]) -> Result<Rollup, Damaged> {
        let bytes = unpack(stored)?;
        let mut reader = Reader(&bytes);
        if reader.u64()? != VERSION {
            return Err(Damaged);
        }
        let mut rollup = Rollup::default();
        for number in rollup.numbers() {
            *number = reader.u64()?;
        }
        rollup.latency = Latency::read(&mut reader)?;
        for top in &mut rollup.counts {
            *top = Top::read(&mut reader)?;
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
}
