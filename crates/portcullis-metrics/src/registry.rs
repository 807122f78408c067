use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{
    Counter, EnumCounters, ExclusionTrial, Gauge, Histogram, Kind, Metric, OTHER, RequestCounters, catalogue,
    exposition::Writer,
};

/// Series of one family, at most. A family with all CRS rules has below a thousand.
pub const SERIES_MAX: usize = 10_000;

/// All series of one process (or of one test). Locks are taken at load and scrape time only.
#[derive(Debug, Default)]
pub struct Registry {
    families: Mutex<BTreeMap<&'static str, Family>>,
    overflow: Counter,
}

#[derive(Debug)]
struct Family {
    metric: &'static Metric,
    series: BTreeMap<Vec<String>, Series>,
}

#[derive(Clone, Debug)]
enum Series {
    Counter(Counter),
    Gauge(Gauge),
    Histogram(Histogram),
    Enum(EnumCounters),
    Trial(ExclusionTrial),
    Requests(RequestCounters),
}

impl Series {
    /// True if nothing was counted.
    fn is_zero(&self) -> bool {
        match self {
            Series::Counter(counter) => counter.value() == 0,
            Series::Gauge(gauge) => gauge.value() == 0,
            Series::Histogram(histogram) => histogram.count() == 0,
            Series::Enum(counters) => counters.values().all(|(_, value)| value == 0),
            Series::Trial(trial) => trial.counters().values().all(|(_, value)| value == 0),
            Series::Requests(counters) => counters.values().next().is_none(),
        }
    }
}

/// The sites that have had a request.
fn busy_sites(families: &BTreeMap<&'static str, Family>) -> BTreeSet<String> {
    let requests = families.get(catalogue::REQUESTS.name).into_iter().flat_map(|family| &family.series);
    requests
        .filter(|(_, series)| !series.is_zero())
        .filter_map(|(labels, _)| labels.first().cloned())
        .collect()
}

impl Registry {
    /// An empty registry. Every metric of the [`catalogue`] without labels is exposed from the start, as 0.
    pub fn new() -> Arc<Registry> {
        let registry = Registry::default();
        for metric in catalogue::ALL.iter().filter(|metric| metric.labels.is_empty()) {
            match metric.kind {
                Kind::Counter => drop(registry.counter(metric, &[])),
                Kind::Gauge => drop(registry.gauge(metric, &[])),
                Kind::Histogram => drop(registry.histogram(metric, &[])),
            }
        }
        let overflow = registry.counter(&catalogue::SERIES_OVERFLOW, &[]);
        Arc::new(Registry { overflow, ..registry })
    }

    /// The counter with these label values, in the order of the metric's labels.
    pub fn counter(&self, metric: &'static Metric, labels: &[&str]) -> Counter {
        debug_assert_eq!(
            (metric.kind, metric.labels.len()),
            (Kind::Counter, labels.len()),
            "{}",
            metric.name
        );
        match self.series(metric, labels, || Series::Counter(Counter::default())) {
            Series::Counter(counter) => counter,
            Series::Gauge(_)
            | Series::Histogram(_)
            | Series::Enum(_)
            | Series::Trial(_)
            | Series::Requests(_) => Counter::default(),
        }
    }

    /// The gauge with these label values.
    pub fn gauge(&self, metric: &'static Metric, labels: &[&str]) -> Gauge {
        debug_assert_eq!((metric.kind, metric.labels.len()), (Kind::Gauge, labels.len()), "{}", metric.name);
        match self.series(metric, labels, || Series::Gauge(Gauge::default())) {
            Series::Gauge(gauge) => gauge,
            Series::Counter(_)
            | Series::Histogram(_)
            | Series::Enum(_)
            | Series::Trial(_)
            | Series::Requests(_) => Gauge::default(),
        }
    }

    /// The histogram with these label values.
    pub fn histogram(&self, metric: &'static Metric, labels: &[&str]) -> Histogram {
        debug_assert_eq!(
            (metric.kind, metric.labels.len()),
            (Kind::Histogram, labels.len()),
            "{}",
            metric.name
        );
        match self.series(metric, labels, || Series::Histogram(Histogram::default())) {
            Series::Histogram(histogram) => histogram,
            Series::Counter(_)
            | Series::Gauge(_)
            | Series::Enum(_)
            | Series::Trial(_)
            | Series::Requests(_) => Histogram::default(),
        }
    }

    /// Counters for each of `names` as the value of the metric's last label; `labels` are the values of those
    /// before.
    pub fn enum_counters(
        &self,
        metric: &'static Metric,
        labels: &[&str],
        names: &[&'static str],
    ) -> EnumCounters {
        debug_assert_eq!(
            (metric.kind, metric.labels.len()),
            (Kind::Counter, labels.len() + 1),
            "{}",
            metric.name
        );
        match self.series(metric, labels, || Series::Enum(EnumCounters::new(names))) {
            Series::Enum(counters) => counters,
            Series::Counter(_)
            | Series::Gauge(_)
            | Series::Histogram(_)
            | Series::Trial(_)
            | Series::Requests(_) => EnumCounters::new(names),
        }
    }

    /// The request counters of a route; `verdicts` are the values of the label `verdict`.
    pub fn requests(&self, site: &str, route: &str, verdicts: &[&'static str]) -> RequestCounters {
        match self
            .series(&catalogue::REQUESTS, &[site, route], || Series::Requests(RequestCounters::new(verdicts)))
        {
            Series::Requests(counters) => counters,
            Series::Counter(_)
            | Series::Gauge(_)
            | Series::Histogram(_)
            | Series::Enum(_)
            | Series::Trial(_) => RequestCounters::new(verdicts),
        }
    }

    /// The trial of an exclusion; `since` is the gauge of its beginning.
    pub(crate) fn trial(&self, labels: &[&str; 2], since: Gauge) -> ExclusionTrial {
        let new = || ExclusionTrial::new(since.clone());
        match self.series(&catalogue::EXCLUSION_TRIALS, labels, || Series::Trial(new())) {
            Series::Trial(trial) => trial,
            Series::Counter(_)
            | Series::Gauge(_)
            | Series::Histogram(_)
            | Series::Enum(_)
            | Series::Requests(_) => new(),
        }
    }

    /// Everything in Prometheus text form, in the order of the [`catalogue`]. The series of a site appear
    /// with its traffic: of a thousand idle sites there is nothing to read.
    pub fn render(&self) -> String {
        let families = self.families();
        let busy = busy_sites(&families);
        let is_idle = |metric: &Metric, labels: &[&str]| {
            // That an exclusion is not used is what its series are for.
            let is_of_exclusion = metric.labels.contains(&"exclusion");
            let site = metric.labels.iter().position(|label| *label == "site" && !is_of_exclusion);
            site.and_then(|at| labels.get(at)).is_some_and(|site| !busy.contains(*site))
        };
        let mut writer = Writer::default();
        for metric in catalogue::ALL {
            let Some(family) = families.get(metric.name) else { continue };
            writer.head(metric);
            for (labels, series) in &family.series {
                let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
                if series.is_zero() && is_idle(metric, &labels) {
                    continue;
                }
                match series {
                    Series::Counter(counter) => writer.sample(metric, &labels, counter.value()),
                    Series::Gauge(gauge) => writer.sample(metric, &labels, gauge.value()),
                    Series::Histogram(histogram) => writer.histogram(metric, &labels, histogram),
                    Series::Enum(counters) => writer.words(metric, &labels, counters),
                    Series::Trial(trial) => writer.words(metric, &labels, trial.counters()),
                    Series::Requests(counters) => {
                        for (status, verdict, n) in counters.values() {
                            writer.sample(metric, &[&labels[..], &[&status, verdict]].concat(), n);
                        }
                    }
                }
            }
        }
        writer.finish()
    }

    fn series(&self, metric: &'static Metric, labels: &[&str], make: impl FnOnce() -> Series) -> Series {
        let mut families = self.families();
        let family =
            families.entry(metric.name).or_insert_with(|| Family { metric, series: BTreeMap::new() });
        debug_assert_eq!(family.metric, metric);
        let key = |labels: &[&str]| labels.iter().map(|&label| label.to_owned()).collect::<Vec<String>>();
        let mut wanted = key(labels);
        let is_full = family.series.len() >= SERIES_MAX && !family.series.contains_key(&wanted);
        if is_full {
            self.overflow.inc();
            wanted = key(&vec![OTHER; labels.len()]);
        }
        family.series.entry(wanted).or_insert_with(make).clone()
    }

    fn families(&self) -> MutexGuard<'_, BTreeMap<&'static str, Family>> {
        // Nothing here leaves a family half changed, so a poisoned lock holds good data.
        self.families.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
