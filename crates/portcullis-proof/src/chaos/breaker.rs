//! Circuit breakers of endpoints.

use std::time::Duration;

use portcullis_testkit::TestkitError;

use super::case::{app, until_metric};
use super::{Case, Scenario};
use crate::backend::{Backend, Behaviour};
use crate::load::{Plan, between, quantile};

const STATE: &str = "portcullis_upstream_circuit_breaker_state";
/// No ejection beside it: it would hide what the breaker does.
const BREAKER: &str = "breaker = { open = \"2s\" }\nejection = { failures = 0 }\nread_timeout = \"30s\"";

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "circuit-breaker",
        what: "it opens, fails fast, spares the back end, closes",
        quick: true,
        run: opens,
    },
    Scenario {
        name: "breaker-lost-probe",
        what: "probes that never end do not wedge it",
        quick: false,
        run: lost_probe,
    },
];

fn opens(case: &mut Case) -> Result<(), TestkitError> {
    let backend = Backend::start()?;
    let proxy = case.proxy(&app(&[&backend], BREAKER))?;
    let load = Plan::new(proxy.address()).start();
    load.go_on(0.5);
    backend.behave(Behaviour::Status(503));
    until_metric(&proxy, STATE, |state| state == 1.0)?;
    let (opened, arrived) = (load.now(), backend.total());
    std::thread::sleep(Duration::from_millis(1500)); // it stays open for two seconds
    let spared = backend.total() - arrived;
    let still = load.now();
    backend.behave(Behaviour::Well);
    until_metric(&proxy, STATE, |state| state == 0.0)?;
    load.go_on(1.0);
    let samples = load.stop();
    case.all("while open", &samples, (opened, still), &[503]);
    // Requests that were on their way when it opened may still arrive.
    case.check(spared <= 8, || format!("{spared} requests arrived while it was open"));
    let fast = quantile(between(&samples, opened, still).map(|sample| sample.took), 0.5);
    let p99 = quantile(between(&samples, opened, still).map(|sample| sample.took), 0.99);
    case.figure("fast fail p50", format!("{:.2} ms", fast.as_secs_f64() * 1e3));
    case.figure("p99", format!("{:.2} ms", p99.as_secs_f64() * 1e3));
    case.check_time(fast < Duration::from_millis(5), || format!("failing takes {fast:?}, 5 ms is too much"));
    case.recovered("closed again", &samples, still, Duration::from_secs(4));
    case.nothing_leaked(&samples, &[&backend]);
    Ok(())
}

fn lost_probe(case: &mut Case) -> Result<(), TestkitError> {
    let backend = Backend::start()?;
    let proxy = case.proxy(&app(&[&backend], BREAKER))?;
    // Clients that are used as probes give up.
    let load = Plan { patience: Duration::from_secs(4), ..Plan::new(proxy.address()) }.start();
    load.go_on(0.5);
    backend.behave(Behaviour::Status(503));
    until_metric(&proxy, STATE, |state| state == 1.0)?;
    // The probes that it lets through now get no answer for thirty seconds.
    backend.behave(Behaviour::Silent);
    until_metric(&proxy, STATE, |state| state == 2.0)?;
    load.go_on(1.0);
    let mended = load.now();
    backend.behave(Behaviour::Well);
    until_metric(&proxy, STATE, |state| state == 0.0)?;
    load.go_on(1.0);
    let served = load.now();
    load.go_on(0.5);
    let samples = load.stop();
    let good = between(&samples, served - Duration::from_millis(900), served).filter(|sample| sample.is(200));
    let count = good.count();
    case.figure("closed after", format!("{:.1} s", (served - mended).as_secs_f64() - 1.0));
    case.check_time(count >= 50, || format!("only {count} requests were served in the last second"));
    case.nothing_leaked(&samples, &[&backend]);
    Ok(())
}
