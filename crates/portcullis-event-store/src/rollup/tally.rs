//! Counts of workers: one tally each, so that no request waits for another.

use std::cell::Cell;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;
use portcullis_event::{AccessRecord, Coverage, Event};
use portcullis_query::{Field, Outcome};

use super::{Dimension, Rollup};
use crate::fields;
use crate::paths;

/// A minute, in seconds.
const MINUTE: u64 = 60;

/// Roll-ups by minute (seconds since 1970) and site.
#[derive(Debug, Default)]
pub struct Tally {
    sites: HashMap<String, Vec<(u64, Rollup)>>,
    label: String,
}

impl Tally {
    /// Counts a request, with the time of its inspection if it was inspected.
    pub fn request(&mut self, request: &AccessRecord<'_>, coverage: &Coverage, inspection: Option<Duration>) {
        let ended = request.time.epoch_millis() + request.duration_us / 1000;
        let mut label = std::mem::take(&mut self.label);
        let rollup = self.of(ended, request.site);
        rollup.requests += 1;
        rollup.request_bytes += request.request_body_bytes;
        rollup.response_bytes += request.body_bytes;
        rollup.bytes_inspected += coverage.bytes_inspected;
        rollup.latency.add(request.duration_us);
        if let Some(inspection) = inspection {
            rollup.inspection.add(inspection.as_micros().try_into().unwrap_or(u64::MAX));
        }
        for (reason, bytes) in coverage.bytes_not_inspected.iter() {
            rollup.add(Dimension::NotInspected, reason.name(), bytes);
        }
        rollup.add(Dimension::Verdict, request.verdict.name(), 1);
        if let Some(outcome) = Outcome::of_request(request.verdict, request.control) {
            rollup.add(Dimension::Outcome, outcome.name(), 1);
        }
        rollup.add(Dimension::Route, request.route, 1);
        rollup.add(Dimension::Country, request.country.unwrap_or(""), 1);
        rollup.add(Dimension::Upstream, request.upstream.unwrap_or(""), 1);
        // Writing to memory cannot fail.
        match request.status {
            Some(status) => drop(fill(&mut label, status)),
            None => label.replace_range(.., "none"),
        }
        rollup.add(Dimension::Status, &label, 1);
        let _ = fill(&mut label, request.client);
        rollup.add(Dimension::Client, &label, 1);
        paths::template(request.target, &mut label);
        rollup.add(Dimension::Path, &label, 1);
        if let Some(control) = request.control {
            label.clear();
            let _ = write!(label, "{}:{}", control.by.name(), control.name);
            rollup.add(Dimension::Control, &label, 1);
        }
        self.label = label;
    }

    /// Counts an event: what was found, in addition to [`request`](Self::request), for each request that it
    /// stands for.
    pub fn event(&mut self, event: &Event) {
        let ended = event.time.epoch_millis() + event.duration_us / 1000;
        let rollup = self.of(ended, &event.site);
        rollup.events = rollup.events.saturating_add(event.count);
        // All others were counted with their request.
        if let Some(outcome @ (Outcome::WouldBlock | Outcome::Noted)) = Outcome::of(event) {
            rollup.add(Dimension::Outcome, outcome.name(), event.count);
        }
        for (field, dimension) in [(Field::Class, Dimension::Class), (Field::Rule, Dimension::Rule)] {
            let mut labels: Vec<String> = Vec::new();
            fields::list(event, field, |text| {
                if !labels.iter().any(|known| known == text) {
                    labels.push(text.to_owned());
                }
            });
            labels.iter().for_each(|label| rollup.add(dimension, label, event.count));
        }
    }

    /// True if nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// Adds another.
    pub fn merge(&mut self, other: Tally) {
        for (site, rollups) in other.sites {
            for (minute, rollup) in rollups {
                self.at(minute, &site).merge(&rollup);
            }
        }
    }

    /// The roll-ups, with the minute at which each begins, in seconds since 1970.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &str, &Rollup)> {
        self.sites.iter().flat_map(|(site, rollups)| {
            rollups.iter().map(move |(minute, rollup)| (*minute, site.as_str(), rollup))
        })
    }

    fn of(&mut self, ended_ms: u64, site: &str) -> &mut Rollup {
        let seconds = ended_ms / 1000;
        self.at(seconds - seconds % MINUTE, site)
    }

    fn at(&mut self, minute: u64, site: &str) -> &mut Rollup {
        let rollups = self.sites.entry_ref(site).or_default();
        let at = rollups.iter().rposition(|(of, _)| *of == minute);
        let at = at.unwrap_or_else(|| {
            rollups.push((minute, Rollup::default()));
            rollups.len() - 1
        });
        &mut rollups[at].1
    }
}

/// The tallies of all workers.
#[derive(Debug)]
pub struct Tallies(Box<[Mutex<Tally>]>);

/// Tallies that there are at most; more threads than that share them.
const TALLIES: usize = 64;

thread_local! {
    static OWN: Cell<usize> = const { Cell::new(usize::MAX) };
}

impl Default for Tallies {
    fn default() -> Tallies {
        Tallies((0..TALLIES).map(|_| Mutex::default()).collect())
    }
}

impl Tallies {
    /// The tally of this thread. Only the writer ever asks for it as well, for a moment.
    pub fn own(&self) -> MutexGuard<'_, Tally> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let own = OWN.with(|own| match own.get() {
            usize::MAX => {
                own.set(NEXT.fetch_add(1, Ordering::Relaxed) % TALLIES);
                own.get()
            }
            known => known,
        });
        self.0[own].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what was counted since the last time.
    pub fn take(&self) -> Tally {
        let mut all = Tally::default();
        for tally in &self.0 {
            let taken = std::mem::take(&mut *tally.lock().unwrap_or_else(PoisonError::into_inner));
            if !taken.is_empty() {
                all.merge(taken);
            }
        }
        all
    }
}

fn fill(label: &mut String, value: impl std::fmt::Display) -> std::fmt::Result {
    label.clear();
    write!(label, "{value}")
}
