//! Back ends that crash, freeze, lie and come back.

use std::time::Duration;

use portcullis_testkit::TestkitError;

use super::case::{admin_status, app, until_metric};
use super::{Case, Scenario};
use crate::backend::{Backend, Behaviour};
use crate::load::{Kind, Plan, between, quantile};

const HEALTH: &str = "health = { path = \"/healthz\", interval = \"500ms\", timeout = \"300ms\" }";
const ALL: &[Kind] = &[Kind::Get, Kind::Get, Kind::Post, Kind::Attack];
const HEALTHY: &str = "portcullis_upstream_healthy_backends";
/// A health check interval, failed or passed twice, and the time that a busy machine takes.
const NOTICED: Duration = Duration::from_secs(4);

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "backend-crash",
        what: "the only back end is killed and comes back",
        quick: true,
        run: crash,
    },
    Scenario { name: "backend-failover", what: "one of two back ends is killed", quick: true, run: failover },
    Scenario {
        name: "failover-group",
        what: "the first choice is killed, backups take over",
        quick: false,
        run: group,
    },
    Scenario { name: "all-backends-down", what: "every back end is killed", quick: true, run: all_down },
    Scenario { name: "backend-5xx", what: "one of two back ends answers 503", quick: false, run: errors },
    Scenario {
        name: "backend-slow",
        what: "one application is slow, another is not",
        quick: false,
        run: slow,
    },
    Scenario {
        name: "backend-frozen",
        what: "one of two back ends accepts and says nothing",
        quick: false,
        run: frozen,
    },
    Scenario {
        name: "backend-half-closed",
        what: "one of two back ends reads and closes",
        quick: false,
        run: half_closed,
    },
    Scenario {
        name: "backend-garbage",
        what: "one of two back ends does not speak HTTP",
        quick: false,
        run: garbage,
    },
    Scenario {
        name: "reset-in-body",
        what: "answers break off in the middle",
        quick: true,
        run: reset_in_body,
    },
    Scenario {
        name: "health-recovery",
        what: "a back end is killed and restored three times",
        quick: false,
        run: recovery,
    },
    Scenario {
        name: "memory-stability",
        what: "twenty crashes under load; memory stays",
        quick: false,
        run: memory,
    },
];

fn crash(case: &mut Case) -> Result<(), TestkitError> {
    let backend = Backend::start()?;
    let proxy = case.proxy(&app(&[&backend], HEALTH))?;
    let load = Plan::new(proxy.address()).kinds(ALL).start();
    load.go_on(1.0);
    let crashed = load.now();
    backend.crash();
    until_metric(&proxy, HEALTHY, |healthy| healthy == 0.0)?;
    load.go_on(1.0);
    let restored = load.now();
    backend.restore()?;
    until_metric(&proxy, HEALTHY, |healthy| healthy == 1.0)?;
    load.go_on(1.0);
    let samples = load.stop();
    case.all("before", &samples, (Duration::ZERO, crashed - Duration::from_millis(100)), &[200]);
    // Requests that the back end had in hand when it died are answered 502 or break off.
    case.all("while down", &samples, (crashed + Duration::from_millis(100), restored), &[502, 503, 504]);
    case.within("while down", &samples, (crashed, restored), Duration::from_secs(2));
    case.recovered("recovery", &samples, restored, NOTICED);
    case.nothing_leaked(&samples, &[&backend]);
    Ok(())
}

fn failover(case: &mut Case) -> Result<(), TestkitError> {
    let (one, two) = (Backend::start()?, Backend::start()?);
    let proxy = case.proxy(&app(&[&one, &two], &format!("{HEALTH}\nretry = {{ on = [\"closed\"] }}")))?;
    let load = Plan::new(proxy.address()).kinds(ALL).start();
    load.go_on(1.0);
    let (crashed, before) = (load.now(), one.total());
    one.crash();
    load.go_on(2.5);
    let restored = load.now();
    one.restore()?;
    until_metric(&proxy, HEALTHY, |healthy| healthy == 2.0)?;
    load.go_on(1.0);
    let samples = load.stop();
    case.mostly("GET while one is down", &samples, (crashed, restored), Kind::Get, 0.99);
    case.mostly("POST", &samples, (crashed, restored), Kind::Post, 0.97);
    case.recovered("whole again", &samples, restored, NOTICED);
    case.check(one.total() > before, || "the restored back end gets no requests".to_owned());
    case.nothing_leaked(&samples, &[&one, &two]);
    Ok(())
}

fn group(case: &mut Case) -> Result<(), TestkitError> {
    let (first, backup) = (Backend::start()?, Backend::start()?);
    let proxy = case.proxy(&format!(
        "[[sites]]\nname = \"app\"\nhosts = [\"*\"]\nupstream = \"app\"\n\n[upstreams.app]\nendpoints = \
         [\"http://{}\", {{ url = \"http://{}\", priority = 1 }}]\n{HEALTH}\n",
        first.address(),
        backup.address()
    ))?;
    let load = Plan::new(proxy.address()).start();
    load.go_on(1.0);
    case.check(backup.total() == 0, || "the backup got requests while the first choice was well".to_owned());
    let crashed = load.now();
    first.crash();
    load.go_on(2.5);
    let restored = load.now();
    first.restore()?;
    until_metric(&proxy, HEALTHY, |healthy| healthy == 2.0)?;
    load.go_on(0.3);
    let at_backup = backup.total();
    load.go_on(1.0);
    let samples = load.stop();
    case.mostly("GET by the backup", &samples, (crashed, restored), Kind::Get, 0.99);
    case.check(at_backup > 0, || "the backup got nothing".to_owned());
    case.check(backup.total() == at_backup, || {
        "the backup goes on though the first choice is back".to_owned()
    });
    case.nothing_leaked(&samples, &[&first, &backup]);
    Ok(())
}

fn all_down(case: &mut Case) -> Result<(), TestkitError> {
    let (one, two) = (Backend::start()?, Backend::start()?);
    let proxy = case.proxy(&app(&[&one, &two], HEALTH))?;
    let load = Plan::new(proxy.address()).kinds(ALL).start();
    load.go_on(1.0);
    let crashed = load.now();
    one.crash();
    two.crash();
    until_metric(&proxy, HEALTHY, |healthy| healthy == 0.0)?;
    for path in ["/healthz", "/metrics"] {
        let status = admin_status(&proxy, path)?;
        case.check(status == 200, || format!("admin {path}: {status}"));
    }
    load.go_on(1.0);
    let restored = load.now();
    one.restore()?;
    two.restore()?;
    until_metric(&proxy, HEALTHY, |healthy| healthy == 2.0)?;
    load.go_on(1.0);
    let samples = load.stop();
    case.all("while down", &samples, (crashed + Duration::from_millis(100), restored), &[502, 503, 504]);
    case.within("while down", &samples, (crashed, restored), Duration::from_secs(2));
    case.recovered("recovery", &samples, restored, NOTICED);
    case.nothing_leaked(&samples, &[&one, &two]);
    Ok(())
}

/// One of two misbehaves; a GET is to be answered by the other one, and a POST never by both.
fn one_of_two(case: &mut Case, behaviour: Behaviour, retry: &str) -> Result<(), TestkitError> {
    let (one, two) = (Backend::start()?, Backend::start()?);
    let proxy = case.proxy(&app(&[&one, &two], &format!("try_timeout = \"400ms\"\nretry = {retry}")))?;
    let load = Plan::new(proxy.address()).kinds(ALL).start();
    load.go_on(1.0);
    let began = load.now();
    one.behave(behaviour);
    load.go_on(4.0);
    let mended = load.now();
    one.behave(Behaviour::Well);
    // An ejected endpoint is asked again after five seconds, later each time.
    let samples = load.stop();
    case.mostly("GET", &samples, (began, mended), Kind::Get, 0.99);
    case.within("GET and POST", &samples, (began, mended), Duration::from_secs(3));
    case.nothing_leaked(&samples, &[&one, &two]);
    Ok(())
}

fn errors(case: &mut Case) -> Result<(), TestkitError> {
    one_of_two(case, Behaviour::Status(503), "{ statuses = [503] }")
}

fn frozen(case: &mut Case) -> Result<(), TestkitError> {
    one_of_two(case, Behaviour::Silent, "{ on = [\"timeout\"] }")
}

fn half_closed(case: &mut Case) -> Result<(), TestkitError> {
    one_of_two(case, Behaviour::HalfClosed, "{ on = [\"closed\"] }")
}

fn garbage(case: &mut Case) -> Result<(), TestkitError> {
    one_of_two(case, Behaviour::Garbage, "{ on = [\"invalid\"] }")
}

fn slow(case: &mut Case) -> Result<(), TestkitError> {
    let (slow, quick) = (Backend::start()?, Backend::start()?);
    let proxy = case.proxy(&format!(
        "[[sites]]\nname = \"app\"\nhosts = [\"*\"]\nupstream = \"quick\"\n[[sites.routes]]\npath = \"/slow/\"\n\
         upstream = \"slow\"\n\n[upstreams.quick]\nendpoints = [\"http://{}\"]\n[upstreams.slow]\nendpoints = \
         [\"http://{}\"]\ntry_timeout = \"500ms\"\n",
        quick.address(),
        slow.address()
    ))?;
    let mut plan = Plan::new(proxy.address()).paths(&["/quick/", "/slow/"]);
    plan.clients = 16;
    let load = plan.start();
    load.go_on(1.0);
    let began = load.now();
    slow.behave(Behaviour::Slow(Duration::from_secs(2)));
    let others = Plan::new(proxy.address()).paths(&["/quick/"]).start();
    load.go_on(4.0);
    let mended = load.now();
    let beside = others.stop();
    slow.behave(Behaviour::Well);
    load.go_on(1.0);
    let samples = load.stop();
    let settled = began + Duration::from_millis(100);
    let at = |path: usize| {
        let those = samples.iter().filter(move |sample| sample.path == path).cloned();
        those.collect::<Vec<_>>()
    };
    case.all("slow application", &at(1), (settled, mended), &[504, 503, 502]);
    case.within("slow application", &at(1), (settled, mended), Duration::from_millis(1500));
    case.all("the other one", &at(0), (settled, mended), &[200]);
    case.all("other clients", &beside, (Duration::ZERO, Duration::MAX), &[200]);
    let p99 = quantile(beside.iter().map(|sample| sample.took), 0.99);
    case.figure("p99 of other clients", format!("{:.1} ms", p99.as_secs_f64() * 1e3));
    case.check_time(p99 < Duration::from_millis(400), || format!("other clients wait, too: p99 {p99:?}"));
    case.nothing_leaked(&samples, &[&slow, &quick]);
    case.nothing_leaked(&beside, &[&slow, &quick]);
    Ok(())
}

fn reset_in_body(case: &mut Case) -> Result<(), TestkitError> {
    let backend = Backend::start()?;
    let proxy = case.proxy(&app(&[&backend], "ejection = { failures = 0 }"))?;
    let load = Plan::new(proxy.address()).kinds(ALL).start();
    load.go_on(0.5);
    let began = load.now();
    backend.behave(Behaviour::ResetInBody);
    load.go_on(2.0);
    let mended = load.now();
    backend.behave(Behaviour::Well);
    load.go_on(1.0);
    let samples = load.stop();
    // At either end a request may meet the other behaviour.
    let settled = (began + Duration::from_millis(100), mended - Duration::from_millis(100));
    let honest = || between(&samples, settled.0, settled.1).filter(|sample| sample.kind != Kind::Attack);
    let passed_off = honest().filter(|sample| sample.is(200)).count();
    case.check(passed_off == 0, || format!("{passed_off} broken answers looked complete"));
    case.figure("broken answers told", honest().count());
    case.check(honest().count() >= 20, || "too few requests".to_owned());
    case.recovered("recovery", &samples, mended, Duration::from_secs(1));
    case.nothing_leaked(&samples, &[&backend]);
    Ok(())
}

fn recovery(case: &mut Case) -> Result<(), TestkitError> {
    let backend = Backend::start()?;
    let proxy = case.proxy(&app(&[&backend], HEALTH))?;
    for round in 1..=3 {
        let load = Plan::new(proxy.address()).kinds(ALL).start();
        load.go_on(0.5);
        backend.crash();
        until_metric(&proxy, HEALTHY, |healthy| healthy == 0.0)?;
        load.go_on(0.5);
        let restored = load.now();
        backend.restore()?;
        until_metric(&proxy, HEALTHY, |healthy| healthy == 1.0)?;
        load.go_on(1.0);
        let end = load.now();
        let samples = load.stop();
        // Four intervals of half a second.
        let back = case.recovered(&format!("round {round}"), &samples, restored, Duration::from_millis(2500));
        case.all("after it", &samples, (back, end), &[200]);
        case.nothing_leaked(&samples, &[&backend]);
    }
    Ok(())
}

fn memory(case: &mut Case) -> Result<(), TestkitError> {
    let (one, two) = (Backend::start()?, Backend::start()?);
    let proxy = case.proxy(&app(
        &[&one, &two],
        &format!(
            "{HEALTH}\nretry = {{ on = [\"closed\"] }}\nejection = {{ time = \"1s\", time_max = \"1s\" }}"
        ),
    ))?;
    let load = Plan::new(proxy.address()).kinds(ALL).start();
    let mut sizes = Vec::new();
    for cycle in 0..20 {
        let victim = if cycle % 2 == 0 { &one } else { &two };
        victim.crash();
        load.go_on(0.7);
        victim.restore()?;
        until_metric(&proxy, HEALTHY, |healthy| healthy == 2.0)?;
        load.go_on(0.3);
        sizes.push(proxy.memory_kib()? / 1024.0);
    }
    let samples = load.stop();
    let (early, late) = (sizes[4], sizes[19]);
    case.figure("RSS after 5 and 20 cycles", format!("{early:.1} and {late:.1} MiB"));
    case.check(late <= early * 1.1 + 1.0, || format!("memory grew from {early:.1} to {late:.1} MiB"));
    case.mostly("GET", &samples, (Duration::ZERO, Duration::MAX), Kind::Get, 0.98);
    case.nothing_leaked(&samples, &[&one, &two]);
    Ok(())
}
