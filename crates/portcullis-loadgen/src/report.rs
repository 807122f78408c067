//! The report of a study, for people (`table.rs`) and programs (JSON).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::load::Measured;

/// Of the JSON form; raised when a field changes its meaning or goes.
pub const SCHEMA_VERSION: u32 = 1;

/// All figures of a study.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema: u32,
    /// Of the program that measured, which is the one that was measured.
    pub version: String,
    /// The machine.
    pub machine: Machine,
    /// The traffic that was sent.
    pub traffic: &'static str,
    /// Client connections.
    pub connections: usize,
    /// Time for all of it.
    pub seconds: f64,
    /// Rounds in which all subjects were measured in turn.
    pub rounds: u32,
    /// The part of the slowest one's capacity that was offered; none if the rate was given.
    pub load: Option<f64>,
    /// By transport.
    pub groups: Vec<Group>,
    /// Caveats that a reader must know before relying on the figures.
    pub notes: Vec<String>,
}

impl Report {
    /// Every request got the answer that it should, in time.
    pub fn is_sound(&self) -> bool {
        let rows = self.groups.iter().flat_map(|group| &group.rows);
        rows.into_iter().all(|row| row.unexpected.is_empty() && row.broken == 0 && row.unsent == 0)
    }
}

/// The machine of a study.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Processors that may be used.
    pub cores: usize,
    /// Their name, where the system tells it.
    pub cpu: Option<String>,
    /// Processes that were running or waiting to, over the last minute, before the study.
    pub load_average: Option<f64>,
}

impl Machine {
    pub(crate) fn here() -> Machine {
        let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = cpus.lines().find(|line| line.starts_with("model name"));
        Machine {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: name.and_then(|line| Some(line.split_once(": ")?.1.to_owned())),
            load_average: load_average(),
        }
    }
}

fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// Subjects of one transport, all under the same rate.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// `plain` or `tls`.
    pub transport: &'static str,
    /// Requests a second that were offered.
    pub rate: f64,
    /// In the order of the study.
    pub rows: Vec<Row>,
}

/// One subject.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// `direct`, `off`, `inspecting` or `target`.
    pub role: &'static str,
    /// Answers a second when each connection sends as fast as it can; the best of two passes.
    pub capacity: f64,
    /// CPU microseconds per request then, all threads of its processes.
    pub capacity_cpu_us: Option<f64>,
    /// Answers at the rate offered.
    pub answered: u64,
    /// Answers a second then.
    pub achieved: f64,
    /// From the moment when a request was due.
    pub latency: Latency,
    /// By how much the generator sent late although a connection was free.
    pub generator_lag_p99_us: f64,
    /// CPU microseconds per request at the rate offered.
    pub cpu_us: Option<f64>,
    /// Compared with the application itself.
    pub added_by_proxy: Option<Added>,
    /// Compared with our proxy without inspection.
    pub added_by_inspection: Option<Added>,
    /// Answers that should have been others, by status.
    pub unexpected: BTreeMap<u16, u64>,
    /// Requests whose connection broke or could not be made.
    pub broken: u64,
    /// Requests that were due and could not be sent, or got no answer, in time.
    pub unsent: u64,
}

/// Microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Half of the answers took no longer.
    pub p50_us: f64,
    /// 95 in 100.
    pub p95_us: f64,
    /// 99 in 100.
    pub p99_us: f64,
    /// 999 in 1000.
    pub p999_us: f64,
    /// The median of the p99 of each 1,000 answers in a row, which moments in which the machine stands still
    /// do not change. None if there were fewer answers.
    pub p99_usual_us: Option<f64>,
}

impl Latency {
    pub(crate) fn of(measured: &Measured) -> Latency {
        let at = |quantile| measured.latency.value_at_quantile(quantile) as f64 / 1e3;
        Latency {
            p50_us: at(0.5),
            p95_us: at(0.95),
            p99_us: at(0.99),
            p999_us: at(0.999),
            p99_usual_us: (!measured.p99s.is_empty())
                .then(|| measured.p99s.value_at_quantile(0.5) as f64 / 1e3),
        }
    }

    pub(crate) fn minus(self, base: Latency) -> Latency {
        Latency {
            p50_us: self.p50_us - base.p50_us,
            p95_us: self.p95_us - base.p95_us,
            p99_us: self.p99_us - base.p99_us,
            p999_us: self.p999_us - base.p999_us,
            p99_usual_us: self.p99_usual_us.zip(base.p99_usual_us).map(|(own, base)| own - base),
        }
    }
}

/// A difference of percentiles. Percentiles of a sum are not sums of percentiles: this is how much later the
/// slowest one in a hundred came, not what one request waited longer.
#[derive(Clone, Debug, Serialize)]
pub struct Added {
    /// Over all rounds.
    #[serde(flatten)]
    pub all: Latency,
    /// The least and the most that a round gave for p99.
    pub p99_rounds_us: [f64; 2],
    /// The median of the rounds for p99, which a disturbance of some rounds does not change.
    pub p99_median_us: f64,
}
