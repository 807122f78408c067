//! The resources of a process at a moment.

use std::time::Duration;

use portcullis_testkit::TestkitError;

use crate::load::quantile;

/// One look.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// Seconds since the begin.
    pub(super) at: f64,
    /// Resident memory in MiB.
    pub(super) memory: f64,
    /// Open descriptors.
    pub(super) descriptors: f64,
    /// Threads.
    pub(super) threads: f64,
    /// Milliseconds.
    pub(super) p50: f64,
    /// Milliseconds.
    pub(super) p99: f64,
}

pub(super) struct Sampler {
    id: u32,
    samples: Vec<Sample>,
}

impl Sampler {
    pub(super) fn new(id: u32) -> Sampler {
        Sampler { id, samples: Vec::new() }
    }

    /// Takes one; a line that tells it.
    pub(super) fn take(&mut self, at: f64, window: Vec<Duration>) -> Result<String, TestkitError> {
        let path = format!("/proc/{}/status", self.id);
        let trouble = |error: std::io::Error| TestkitError::Run(format!("the proxy has ended? {error}"));
        let status = std::fs::read_to_string(path).map_err(trouble)?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(f64::NAN)
        };
        let descriptors = std::fs::read_dir(format!("/proc/{}/fd", self.id)).map_err(trouble)?.count() as f64;
        let latency = |share| quantile(window.iter().copied(), share).as_secs_f64() * 1e3;
        let sample = Sample {
            at,
            memory: field("VmRSS") / 1024.0,
            descriptors,
            threads: field("Threads"),
            p50: latency(0.5),
            p99: latency(0.99),
        };
        let line = format!(
            "{:>7.0} s  {:>7.1} MiB  {:>5} descriptors  {:>3} threads  p50 {:>6.2} ms  p99 {:>7.2} ms",
            sample.at, sample.memory, sample.descriptors, sample.threads, sample.p50, sample.p99
        );
        self.samples.push(sample);
        Ok(line)
    }

    pub(super) fn samples(&self) -> &[Sample] {
        &self.samples
    }
}
