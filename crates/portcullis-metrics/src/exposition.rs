//! Prometheus text exposition format 0.0.4.

use std::fmt::{Display, Write as _};

use crate::{EnumCounters, Histogram, Metric, cells::BUCKETS};

/// Media type of [`Registry::render`](crate::Registry::render).
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Writes families one after the other. Writing to a string cannot fail.
#[derive(Default)]
pub(crate) struct Writer(String);

impl Writer {
    pub(crate) fn head(&mut self, metric: &Metric) {
        let help = metric.help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(self.0, "# HELP {} {help}", metric.name);
        let _ = writeln!(self.0, "# TYPE {} {}", metric.name, metric.kind.name());
    }

    pub(crate) fn sample(&mut self, metric: &Metric, labels: &[&str], value: impl Display) {
        self.line(metric, "", labels, None, value);
    }

    /// A sample for each word of a table, as the value of the last label.
    pub(crate) fn words(&mut self, metric: &Metric, labels: &[&str], counters: &EnumCounters) {
        for (name, value) in counters.values() {
            self.sample(metric, &[labels, &[name]].concat(), value);
        }
    }

    pub(crate) fn histogram(&mut self, metric: &Metric, labels: &[&str], histogram: &Histogram) {
        let (counts, sum_ns) = histogram.read();
        let mut total = 0;
        let bounds = BUCKETS.iter().map(|&(_, le)| le).chain(["+Inf"]);
        for (count, le) in counts.iter().zip(bounds) {
            total += count;
            self.line(metric, "_bucket", labels, Some(le), total);
        }
        let sum = format_args!("{}.{:09}", sum_ns / 1_000_000_000, sum_ns % 1_000_000_000);
        self.line(metric, "_sum", labels, None, sum);
        self.line(metric, "_count", labels, None, total);
    }

    pub(crate) fn finish(self) -> String {
        self.0
    }

    fn line(
        &mut self,
        metric: &Metric,
        suffix: &str,
        labels: &[&str],
        le: Option<&str>,
        value: impl Display,
    ) {
        let out = &mut self.0;
        out.push_str(metric.name);
        out.push_str(suffix);
        let pairs = metric.labels.iter().copied().zip(labels.iter().copied()).chain(le.map(|le| ("le", le)));
        let mut separator = '{';
        for (name, value) in pairs {
            let _ = write!(out, "{separator}{name}=\"");
            escape(value, out);
            out.push('"');
            separator = ',';
        }
        if separator == ',' {
            out.push('}');
        }
        let _ = writeln!(out, " {value}");
    }
}

fn escape(value: &str, out: &mut String) {
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}
