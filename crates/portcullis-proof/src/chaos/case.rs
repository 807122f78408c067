//! The state of a scenario: its proxy, its load, its findings.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use portcullis_testkit::TestkitError;
use portcullis_testkit::client::{self, Connection};
use portcullis_testkit::proxy::{Folder, Proxy};

use super::Options;
use crate::backend::Backend;
use crate::load::{Kind, Sample, between, quantile};

/// Failures that are reported one by one.
const TOLD_MAX: usize = 8;

/// A running scenario.
pub struct Case {
    name: &'static str,
    keep: Option<PathBuf>,
    /// True if times are judged: not where the other load of the machine is unknown.
    times: bool,
    requests: usize,
    figures: String,
    failures: Vec<String>,
}

impl Case {
    pub(super) fn new(name: &'static str, options: &Options) -> Self {
        let keep = options.keep.as_ref().map(|folder| folder.join(name));
        Case { name, keep, times: !options.quick, requests: 0, figures: String::new(), failures: Vec::new() }
    }

    /// A folder for its files.
    pub fn folder(&self) -> Result<Folder, TestkitError> {
        Folder::create(self.keep.as_deref())
    }

    /// A proxy with a listener, an admin listener, and what `rest` says.
    pub fn proxy(&self, rest: &str) -> Result<Proxy, TestkitError> {
        Proxy::configured(self.folder()?, |address, admin| document(address, admin, rest), &[])
    }

    /// An assertion.
    pub fn check(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.failures.push(what());
        }
    }

    /// An assertion about how long something took.
    pub fn check_time(&mut self, holds: bool, what: impl FnOnce() -> String) {
        self.check(holds || !self.times, what);
    }

    /// Something measured.
    pub fn figure(&mut self, name: &str, value: impl std::fmt::Display) {
        let comma = if self.figures.is_empty() { "" } else { ", " };
        let _ = write!(self.figures, "{comma}{name} {value}");
    }

    /// Checks what holds under any fault: attacks are stopped, and no request that may have had an effect is
    /// sent twice.
    pub fn nothing_leaked(&mut self, samples: &[Sample], backends: &[&Backend]) {
        self.requests += samples.len();
        self.check(samples.len() >= 100, || format!("only {} requests were sent", samples.len()));
        let arrivals =
            |sample: &Sample| backends.iter().map(|backend| backend.arrivals(sample.id)).sum::<u32>();
        let of = |kind: Kind| samples.iter().filter(move |sample| sample.kind == kind);
        let leaked =
            of(Kind::Attack).filter(|sample| arrivals(sample) > 0 || sample.answer == Ok(200)).count();
        self.check(leaked == 0, || format!("{leaked} attacks passed"));
        let twice = of(Kind::Post).filter(|sample| arrivals(sample) > 1).count();
        self.check(twice == 0, || format!("{twice} POST requests arrived more than once"));
    }

    /// Every sample of `span` has one of `statuses`, complete, as long as it is not an attack.
    pub fn all(
        &mut self,
        what: &str,
        samples: &[Sample],
        (from, to): (Duration, Duration),
        statuses: &[u16],
    ) {
        let honest = between(samples, from, to).filter(|sample| sample.kind != Kind::Attack);
        let count = honest.clone().count();
        self.check(count >= 20, || format!("{what}: only {count} requests"));
        let wrong: Vec<&Sample> =
            honest.filter(|sample| !statuses.iter().any(|&status| sample.is(status))).collect();
        for sample in wrong.iter().take(TOLD_MAX) {
            self.failures.push(format!(
                "{what}: {:?} at {:?} after {:?}: {:?}{}",
                sample.kind,
                sample.at,
                sample.took,
                sample.answer,
                if sample.whole { "" } else { ", not whole" }
            ));
        }
        let name = self.name;
        self.check(wrong.is_empty(), || {
            format!("{name}: {what}: {} of {count} not {statuses:?}", wrong.len())
        });
    }

    /// At least `share` (0 to 1) of the benign samples of `kind` in `span` are 200.
    pub fn mostly(
        &mut self,
        what: &str,
        samples: &[Sample],
        (from, to): (Duration, Duration),
        kind: Kind,
        share: f64,
    ) {
        let those = between(samples, from, to).filter(|sample| sample.kind == kind);
        let (count, good) = (those.clone().count(), those.filter(|sample| sample.is(200)).count());
        let found = good as f64 / count.max(1) as f64;
        self.figure(what, format!("{:.2} %", found * 100.0));
        self.check(count >= 20 && found >= share, || {
            format!("{what}: {good} of {count} answered 200, wanted {:.1} %", share * 100.0)
        });
    }

    /// No answer of the span took longer.
    pub fn within(
        &mut self,
        what: &str,
        samples: &[Sample],
        (from, to): (Duration, Duration),
        limit: Duration,
    ) {
        let worst = quantile(between(samples, from, to).map(|sample| sample.took), 1.0);
        self.figure(what, format!("{:.0} ms at most", worst.as_secs_f64() * 1e3));
        self.check_time(worst <= limit, || format!("{what}: an answer took {worst:?}, more than {limit:?}"));
    }

    /// Returns the time at which requests sent after `from` began to be answered 200 and stayed so; it must
    /// be within `limit`.
    pub fn recovered(&mut self, what: &str, samples: &[Sample], from: Duration, limit: Duration) -> Duration {
        let honest = || between(samples, from, Duration::MAX).filter(|sample| sample.kind != Kind::Attack);
        let last_bad = honest().filter(|sample| !sample.is(200)).map(|sample| sample.at).last();
        let first_good = honest().find(|sample| sample.is(200) && last_bad.is_none_or(|bad| sample.at > bad));
        let took = first_good.map(|sample| sample.at - from);
        self.figure(what, took.map_or("never".to_owned(), |took| format!("{:.1} s", took.as_secs_f64())));
        self.check(took.is_some(), || format!("{what}: never"));
        self.check_time(took.is_some_and(|took| took <= limit), || {
            format!("{what}: {took:?}, wanted within {limit:?}")
        });
        from + took.unwrap_or_default()
    }

    pub(super) fn failures(&self) -> &[String] {
        &self.failures
    }

    pub(super) fn figures(&self) -> &str {
        &self.figures
    }

    pub(super) fn requests(&self) -> usize {
        self.requests
    }
}

/// The document of a scenario.
pub fn document(address: SocketAddr, admin: SocketAddr, rest: &str) -> String {
    format!(
        "workers = 2\nadmin = {{ listen = \"{admin}\" }}\nevents = {{ file = \"events.jsonl\" }}\n{rest}\n\
         [[listeners]]\nname = \"http\"\naddress = \"{address}\"\n"
    )
}

/// A site for all hosts with the upstream `app` of `endpoints`, and more lines for the upstream.
pub fn app(endpoints: &[&Backend], more: &str) -> String {
    let urls: Vec<String> =
        endpoints.iter().map(|backend| format!("\"http://{}\"", backend.address())).collect();
    format!(
        "[[sites]]\nname = \"app\"\nhosts = [\"*\"]\nupstream = \"app\"\n\n\
         [upstreams.app]\nendpoints = [{}]\n{more}\n",
        urls.join(", ")
    )
}

/// Waits until a metric has a value; an error after ten seconds.
pub fn until_metric(
    proxy: &Proxy,
    begin: &str,
    wanted: impl Fn(f64) -> bool,
) -> Result<Duration, TestkitError> {
    let began = Instant::now();
    loop {
        let value = crate::metric(proxy, begin)?;
        if wanted(value) {
            return Ok(began.elapsed());
        }
        if began.elapsed() > Duration::from_secs(20) {
            return Err(TestkitError::Run(format!("{begin} is still {value}")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The status of a page of the admin listener.
pub fn admin_status(proxy: &Proxy, path: &str) -> Result<u16, TestkitError> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let limit = Duration::from_secs(5);
    let answer = Connection::open(proxy.admin(), None, limit)
        .and_then(|mut it| it.exchange(request.as_bytes(), limit));
    let answer: Result<client::Exchange, _> = answer;
    Ok(answer.map_err(|failure| TestkitError::Run(format!("admin: {failure}")))?.status)
}
