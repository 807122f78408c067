//! Faults of the host: a full disk, a clock that jumps, a Redis that is gone, reloads without end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use portcullis_testkit::TestkitError;
use portcullis_testkit::proxy::Proxy;
use portcullis_testkit::shared_store::{Kind, SharedStore};

use super::case::{app, document, until_metric};
use super::{Case, Scenario};
use crate::backend::Backend;
use crate::load::{self, Plan};
use crate::metric;

const ALL: &[load::Kind] = &[load::Kind::Get, load::Kind::Get, load::Kind::Post, load::Kind::Attack];
const ALWAYS: (Duration, Duration) = (Duration::ZERO, Duration::MAX);

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "disk-full",
        what: "events, access log and collections cannot be written",
        quick: true,
        run: disk_full,
    },
    Scenario {
        name: "clock-jump",
        what: "the clock of the host jumps by hours (libfaketime)",
        quick: false,
        run: clock_jump,
    },
    Scenario {
        name: "redis-down",
        what: "the Redis that nodes share is killed and comes back",
        quick: false,
        run: redis_down,
    },
    Scenario {
        name: "reload-storm",
        what: "forty reloads, every other one broken",
        quick: true,
        run: reload_storm,
    },
];

fn disk_full(case: &mut Case) -> Result<(), TestkitError> {
    let backend = Backend::start()?;
    let folder = case.folder()?;
    let rest = format!("access_log = {{ file = \"/dev/full\" }}\n{}", app(&[&backend], ""));
    let text = |address, admin| document(address, admin, &rest).replace("events.jsonl", "/dev/full");
    let proxy = Proxy::configured(folder, text, &[])?;
    let load = Plan::new(proxy.address()).kinds(ALL).start();
    load.go_on(3.0);
    let lost = until_metric(&proxy, "portcullis_events_dropped_total", |lost| lost > 0.0)
        .and_then(|_| metric(&proxy, "portcullis_events_dropped_total"))?;
    let lines = metric(&proxy, "portcullis_access_log_dropped_total")?;
    let samples = load.stop();
    case.figure("events and log lines lost and counted", format!("{lost} and {lines}"));
    case.check(lines > 0.0, || "lost lines of the access log are not counted".to_owned());
    case.all("all along", &samples, ALWAYS, &[200]);
    case.within("all along", &samples, ALWAYS, Duration::from_secs(1));
    case.nothing_leaked(&samples, &[&backend]);
    Ok(())
}

fn clock_jump(case: &mut Case) -> Result<(), TestkitError> {
    let library = faketime()?;
    let backend = Backend::start()?;
    let folder = case.folder()?;
    let clock = folder.file("clock");
    let write = |offset: &str| {
        std::fs::write(&clock, offset)
            .map_err(|error| TestkitError::Run(format!("{}: {error}", clock.display())))
    };
    write("+0")?;
    let environment = [
        ("LD_PRELOAD", library.display().to_string()),
        ("FAKETIME_TIMESTAMP_FILE", clock.display().to_string()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        // A jump of the wall clock; the monotonic clock does not jump on a real host either.
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    let limits = "[[sites.rate_limits]]\nname = \"clients\"\nrate = 1000000\n";
    let rest = app(&[&backend], "health = { path = \"/\", interval = \"500ms\" }");
    let rest = rest.replace("\n[upstreams", &format!("{limits}\n[upstreams"));
    let proxy = Proxy::configured(folder, |address, admin| document(address, admin, &rest), &environment)?;
    let load = Plan::new(proxy.address()).kinds(ALL).start();
    load.go_on(1.0);
    for offset in ["+3600", "-7200", "+86400", "+0"] {
        write(offset)?;
        load.go_on(1.5);
        let healthy = metric(&proxy, "portcullis_upstream_healthy_backends")?;
        case.check(healthy == 1.0, || format!("the back end is down after a jump to {offset} s"));
    }
    let samples = load.stop();
    case.figure("jumps", 4);
    case.all("all along", &samples, ALWAYS, &[200]);
    case.within("all along", &samples, ALWAYS, Duration::from_secs(1));
    case.nothing_leaked(&samples, &[&backend]);
    Ok(())
}

fn faketime() -> Result<PathBuf, TestkitError> {
    let places =
        ["/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime", "/usr/lib/faketime"];
    let found =
        places.iter().map(|folder| Path::new(folder).join("libfaketime.so.1")).find(|path| path.is_file());
    found.ok_or_else(|| TestkitError::Run("libfaketime is missing: apt install faketime".to_owned()))
}

fn redis_down(case: &mut Case) -> Result<(), TestkitError> {
    const CONNECTED: &str = "portcullis_store_redis_connected";
    let backend = Backend::start()?;
    let folder = case.folder()?;
    let redis = SharedStore::start(Kind::Redis, None)?;
    let at = redis.address();
    let rules = "rules = { directives = '''\nSecAction \"id:10,phase:1,pass,nolog,initcol:ip=%{REMOTE_ADDR},setvar:ip.seen=+1\"\n''' }\n";
    let rest = app(&[&backend], "").replace("\n[upstreams", &format!("mode = \"both\"\n{rules}\n[upstreams"));
    let rest = format!("[store]\nredis = \"redis://{at}/0\"\n{rest}");
    let proxy = Proxy::configured(folder, |address, admin| document(address, admin, &rest), &[])?;
    until_metric(&proxy, CONNECTED, |connected| connected == 1.0)?;
    let load = Plan::new(proxy.address()).kinds(ALL).start();
    load.go_on(1.0);
    drop(redis); // killed
    let noticed = until_metric(&proxy, CONNECTED, |connected| connected == 0.0)?;
    load.go_on(2.0);
    let redis = SharedStore::start(Kind::Redis, Some(at))?;
    let back = until_metric(&proxy, CONNECTED, |connected| connected == 1.0)?;
    load.go_on(0.5);
    let samples = load.stop();
    case.figure("noticed", format!("{:.1} s", noticed.as_secs_f64()));
    case.figure("connected again", format!("{:.1} s", back.as_secs_f64()));
    case.all("all along", &samples, ALWAYS, &[200]);
    case.within("all along", &samples, ALWAYS, Duration::from_secs(1));
    case.nothing_leaked(&samples, &[&backend]);
    drop(redis);
    Ok(())
}

fn reload_storm(case: &mut Case) -> Result<(), TestkitError> {
    let backend = Backend::start()?;
    let proxy = case.proxy(&app(&[&backend], ""))?;
    let path = proxy.folder().configuration();
    let good = std::fs::read_to_string(&path).map_err(|error| TestkitError::Run(error.to_string()))?;
    let write = |text: &str| {
        let new = path.with_extension("new");
        std::fs::write(&new, text)
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(|error| TestkitError::Run(error.to_string()))
    };
    let load = Plan::new(proxy.address()).kinds(ALL).start();
    load.go_on(0.5);
    let (mut done, mut failed) = (0.0, 0.0);
    for round in 0..40 {
        let (text, result) = match round % 2 {
            0 => (good.clone(), "ok"),
            _ => (good.replace("[upstreams.app]", "[upstreams.app]\nnonsense = true"), "failed"),
        };
        write(&text)?;
        let name = format!("portcullis_reloads_total{{result=\"{result}\"}}");
        let before = metric(&proxy, &name)?;
        proxy.reload()?;
        until_metric(&proxy, &name, |count| count > before)?;
        *(if result == "ok" { &mut done } else { &mut failed }) += 1.0;
    }
    // As fast as signals go; some of them become one reload.
    write(&good)?;
    for _ in 0..40 {
        proxy.reload()?;
    }
    load.go_on(1.0);
    let samples = load.stop();
    case.figure("reloads", format!("{done} good and {failed} broken"));
    case.all("all along", &samples, ALWAYS, &[200]);
    case.within("all along", &samples, ALWAYS, Duration::from_secs(2));
    case.nothing_leaked(&samples, &[&backend]);
    Ok(())
}
