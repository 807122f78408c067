//! Clients that hold connections by being slow (slowhttptest); other clients must not notice.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use portcullis_testkit::TestkitError;
use portcullis_testkit::process::Process;

use super::case::{app, until_metric};
use super::{Case, Scenario};
use crate::backend::{Backend, LARGE};
use crate::load::{Kind, Plan};
use crate::metric;

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "slow-heads",
        what: "600 clients send request heads drop by drop (slowloris)",
        quick: false,
        run: |case| slow(case, 600, "/", &["-H"]),
    },
    Scenario {
        name: "slow-bodies",
        what: "600 clients send request bodies drop by drop",
        quick: false,
        run: |case| slow(case, 600, "/", &["-B", "-s", "8192", "-t", "POST"]),
    },
    Scenario {
        name: "slow-readers",
        what: "150 clients read a large answer drop by drop",
        quick: false,
        run: |case| slow(case, 150, LARGE, &["-X", "-w", "512", "-y", "1024", "-n", "1", "-z", "32"]),
    },
];

const ACTIVE: &str = "portcullis_connections_active";
/// Duration of the attack, if it is not stopped.
const LENGTH: Duration = Duration::from_secs(25);
/// Of each setting that ends them.
const TIMEOUT: &str = "3s";

/// `clients` of them begin within a second.
fn slow(case: &mut Case, clients: u32, path: &str, how: &[&str]) -> Result<(), TestkitError> {
    let backend = Backend::start()?;
    let timeouts = format!(
        "[timeouts]\nheader = \"{TIMEOUT}\"\nbody = \"{TIMEOUT}\"\nbody_total = \"{TIMEOUT}\"\nidle = \"{TIMEOUT}\"\nwrite = \"{TIMEOUT}\"\n"
    );
    // All come from one address, the benign ones, too.
    let limits = "[limits]\nnetwork_bodies = 1024\n";
    let proxy = case.proxy(&format!("{limits}{timeouts}{}", app(&[&backend], "")))?;
    let load = Plan::new(proxy.address()).kinds(&[Kind::Get, Kind::Post, Kind::Get, Kind::Attack]).start();
    load.go_on(1.0);
    let (count, seconds) = (clients.to_string(), LENGTH.as_secs().to_string());
    let url = format!("http://{}{path}", proxy.address());
    let common = ["-c", &count, "-r", &count, "-i", "1", "-x", "4", "-l", &seconds, "-u", &url];
    let arguments: Vec<OsString> = how.iter().chain(&common).map(OsString::from).collect();
    let log = proxy.folder().file("slowhttptest.txt");
    let attack = Process::start(Path::new("slowhttptest"), &arguments, &log).map_err(|error| {
        TestkitError::Run(format!("slowhttptest is needed (apt-get install slowhttptest): {error}"))
    })?;
    until_metric(&proxy, ACTIVE, |active| active >= f64::from(clients) * 0.5)?;
    let mut most = metric(&proxy, ACTIVE)?;
    let began = load.now();
    // Long before they would go by themselves.
    let ended = loop {
        let active = metric(&proxy, ACTIVE)?;
        most = most.max(active);
        let after = load.now() - began;
        if active <= 40.0 || after > LENGTH {
            break after;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    load.go_on(0.5);
    let samples = load.stop();
    drop(attack);
    case.figure("slow connections", most);
    case.figure("ended within", format!("{:.1} s", ended.as_secs_f64()));
    case.check(ended < LENGTH * 2 / 3, || format!("slow clients were still connected after {ended:?}"));
    let always = (Duration::ZERO, Duration::MAX);
    case.all("all along", &samples, always, &[200]);
    case.within("all along", &samples, always, Duration::from_secs(1));
    case.nothing_leaked(&samples, &[&backend]);
    Ok(())
}
