//! Failure policies when a service that inspection needs is gone: open lets traffic flow, closed lets none of
//! it leak.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use portcullis_testkit::TestkitError;

use super::case::app;
use super::{Case, Scenario};
use crate::backend::Backend;
use crate::load::{Kind, Plan, between};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "lookup-fail-closed",
        what: "DNS of a block list freezes; nothing may pass",
        quick: true,
        run: closed,
    },
    Scenario {
        name: "lookup-fail-open",
        what: "DNS of a block list freezes; all must pass",
        quick: true,
        run: open,
    },
];

const KINDS: &[Kind] = &[Kind::Get, Kind::Get, Kind::Post, Kind::Attack];

fn closed(case: &mut Case) -> Result<(), TestkitError> {
    let (samples, frozen, thawed, backend) = freeze(case, "closed")?;
    let settled = (frozen + Duration::from_millis(50), thawed);
    let leaked =
        between(&samples, settled.0, settled.1).filter(|sample| backend.arrivals(sample.id) > 0).count();
    case.check(leaked == 0, || format!("{leaked} requests reached the application"));
    let stopped = between(&samples, settled.0, settled.1).count();
    case.figure("leaked", format!("{leaked} of {stopped}"));
    case.all("while frozen", &samples, settled, &[503]);
    // After eight questions without an answer a worker rests for five seconds.
    case.recovered("recovery", &samples, thawed, Duration::from_secs(7));
    Ok(())
}

fn open(case: &mut Case) -> Result<(), TestkitError> {
    let (samples, frozen, thawed, _backend) = freeze(case, "open")?;
    case.mostly("GET", &samples, (frozen, thawed), Kind::Get, 0.99);
    case.mostly("POST", &samples, (frozen, thawed), Kind::Post, 0.99);
    Ok(())
}

type Frozen = (Vec<crate::load::Sample>, Duration, Duration, Backend);

fn freeze(case: &mut Case, policy: &str) -> Result<Frozen, TestkitError> {
    let (backend, dns) = (Backend::start()?, Dns::start()?);
    let site = "[[sites]]\nname = \"app\"\nhosts = [\"*\"]\nupstream = \"app\"\nmode = \"both\"\n\
        rules = { directives = '''\nSecRule ARGS:n \"@rbl blocked.test\" \"id:10,phase:2,deny,status:403\"\n''' }\n";
    let site = format!("{site}failure = {{ lookup = \"{policy}\" }}\n");
    let rest = app(&[&backend], "");
    let (_, upstream) = rest.split_at(rest.find("[upstreams").unwrap_or(0));
    let lookups = format!("[lookups]\nresolvers = [\"{}\"]\ndns_timeout = \"1s\"\n", dns.address);
    let proxy = case.proxy(&format!("{lookups}{site}{upstream}"))?;
    let mut plan = Plan::new(proxy.address()).kinds(KINDS);
    plan.clients = 16;
    let load = plan.start();
    load.go_on(2.0);
    let frozen = load.now();
    dns.silent.store(true, Ordering::Relaxed);
    load.go_on(3.0);
    let thawed = load.now();
    dns.silent.store(false, Ordering::Relaxed);
    load.go_on(8.0);
    let end = load.now();
    let samples = load.stop();
    case.all("before", &samples, (Duration::ZERO, frozen - Duration::from_millis(1100)), &[200]);
    case.all("at the end", &samples, (end - Duration::from_millis(500), end), &[200]);
    case.nothing_leaked(&samples, &[&backend]);
    Ok((samples, frozen, thawed, backend))
}

/// A DNS server that knows no name, and can fall silent.
struct Dns {
    address: SocketAddr,
    silent: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
}

impl Dns {
    fn start() -> Result<Dns, TestkitError> {
        let trouble = |error: std::io::Error| TestkitError::Run(format!("DNS server: {error}"));
        let socket = UdpSocket::bind("127.0.0.1:0").map_err(trouble)?;
        socket.set_read_timeout(Some(Duration::from_millis(100))).map_err(trouble)?;
        let address = socket.local_addr().map_err(trouble)?;
        let (silent, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (quiet, end) = (Arc::clone(&silent), Arc::clone(&stop));
        thread::spawn(move || {
            let mut packet = [0; 1500];
            while !end.load(Ordering::Relaxed) {
                let Ok((count, from)) = socket.recv_from(&mut packet) else { continue };
                if count < 12 || quiet.load(Ordering::Relaxed) {
                    continue;
                }
                // The question again, as an answer: recursion available, no such name (RFC 1035, 4.1.1).
                packet[2] = 0x81;
                packet[3] = 0x83;
                let _ = socket.send_to(&packet[..count], from);
            }
        });
        Ok(Dns { address, silent, stop })
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
