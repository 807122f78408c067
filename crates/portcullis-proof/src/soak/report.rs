//! The report on the samples.

use std::fmt::Write as _;

use portcullis_testkit::trend::{median, trend};

use super::Options;
use super::client::Totals;
use super::sample::Sample;

/// Fewer samples say nothing about a trend.
const SAMPLES_MIN: usize = 20;

pub(super) struct Report<'a> {
    pub(super) options: &'a Options,
    pub(super) seconds: f64,
    pub(super) samples: &'a [Sample],
    pub(super) totals: Totals,
    /// Asked for, and the generation of the policy at the end.
    pub(super) reloads: (usize, usize),
    pub(super) panics: usize,
    pub(super) stopped: bool,
}

type Take = fn(&Sample) -> f64;

impl Report<'_> {
    /// The report in Markdown, and whether all is well.
    pub(super) fn write(&self) -> (String, bool) {
        let mut out = String::from("# Soak\n\n");
        let settled = &self.samples[self.samples.len() / 10..];
        let Totals { requests, refused, failed, wrong, connections, troubles } = &self.totals;
        let _ = writeln!(
            out,
            "{:.2} hours, {requests} requests ({:.0} a second) on {connections} connections; {refused} attacks refused; \
             {failed} failed, {wrong} answered otherwise than they deserve; {} reloads asked for, policy generation {} at the end; \
             {} panics; the process {} at SIGTERM.\n",
            self.seconds / 3600.0,
            *requests as f64 / self.seconds,
            self.reloads.0,
            self.reloads.1,
            self.panics,
            if self.stopped { "ended with 0" } else { "did not end well" },
        );
        for trouble in troubles {
            let _ = writeln!(out, "- {trouble}");
        }
        let mut good = *requests > 0 && failed + wrong == 0 && self.panics == 0 && self.stopped;
        good &= *refused > 0 && self.reloads.1 == self.reloads.0 + 1;
        let enough = settled.len() >= SAMPLES_MIN;
        let per_hour = 3600.0 / self.options.every;
        let _ = writeln!(
            out,
            "\nSamples every {} s, the first tenth left out ({} of {} count). Slopes are Theil-Sen with 95 % bounds.\n\n\
             | | begin | end | slope an hour | from | to | may grow | |\n|---|---:|---:|---:|---:|---:|---:|---|",
            self.options.every,
            settled.len(),
            self.samples.len(),
        );
        let rows: [(&str, Take, Option<f64>); 5] = [
            ("resident memory, MiB", |sample| sample.memory, Some(self.options.growth_max)),
            ("descriptors", |sample| sample.descriptors, Some(1.0)),
            ("threads", |sample| sample.threads, Some(0.0)),
            ("p50, ms", |sample| sample.p50, None),
            ("p99, ms", |sample| sample.p99, None),
        ];
        for (name, take, limit) in rows {
            let values: Vec<f64> = settled.iter().map(take).collect();
            let found = trend(&values);
            let tenth = (values.len() / 10).max(1);
            let (begin, end) = (
                median(&values[..tenth.min(values.len())]),
                median(&values[values.len().saturating_sub(tenth)..]),
            );
            let rises = limit.is_some_and(|limit| found.rises_by_more_than(limit / per_hour));
            good &= !rises;
            let verdict = match (enough, limit, rises) {
                (false, ..) => "too few samples",
                (_, None, _) => "told, not judged",
                (_, _, true) => "GROWS",
                (_, _, false) => "ok",
            };
            let limit = limit.map_or("-".to_owned(), |limit| limit.to_string());
            let _ = writeln!(
                out,
                "| {name} | {begin:.2} | {end:.2} | {:.3} | {:.3} | {:.3} | {limit} | {verdict} |",
                found.slope * per_hour,
                found.low * per_hour,
                found.high * per_hour,
            );
        }
        good &= enough;
        let _ = writeln!(
            out,
            "\n| minutes | MiB | descriptors | threads | p50, ms | p99, ms |\n|---:|---:|---:|---:|---:|---:|"
        );
        for part in self.samples.chunks(self.samples.len().div_ceil(12).max(1)) {
            let middle = |take: Take| median(&part.iter().map(take).collect::<Vec<_>>());
            let _ = writeln!(
                out,
                "| to {:.0} | {:.1} | {:.0} | {:.0} | {:.2} | {:.2} |",
                part.last().map_or(0.0, |sample| sample.at / 60.0),
                middle(|sample| sample.memory),
                middle(|sample| sample.descriptors),
                middle(|sample| sample.threads),
                middle(|sample| sample.p50),
                middle(|sample| sample.p99),
            );
        }
        let _ =
            writeln!(out, "\nVerdict: {}", if good { "nothing lost, nothing drifts" } else { "NOT well" });
        (out, good)
    }
}
