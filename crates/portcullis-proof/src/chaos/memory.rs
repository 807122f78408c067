//! Client networks that send bodies which cost more memory than they have bytes, to a process that may have
//! as much memory as our examples give it. The kernel must not kill it, and others must not notice.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use portcullis_testkit::TestkitError;
use portcullis_testkit::cgroup::Cgroup;
use portcullis_testkit::proxy::Proxy;

use super::case::{app, document};
use super::floods::{HONEST, connect, judge};
use super::{Case, Scenario};
use crate::backend::Backend;
use crate::load::Plan;
use crate::metric;

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "flood-plain-bodies",
        what: "30 client networks send a form of 11 MB each, as a sidecar and as a gateway with little memory",
        quick: true,
        run: |case| flood(case, 30, &[b"a=".to_vec(), vec![b'x'; 11 << 20]].concat()),
    },
    Scenario {
        name: "flood-arguments",
        what: "40 client networks send a form of 900,000 arguments each, to the same two",
        quick: true,
        run: |case| flood(case, 40, &vec![b'&'; 900_000]),
    },
    Scenario {
        name: "flood-no-budget",
        what: "30 client networks send a form of 11 MB each; only the limit of the cgroup is known",
        quick: true,
        run: no_budget,
    },
];

/// A deployment, as those of `deploy/`.
struct Deployment {
    name: &'static str,
    limits: &'static str,
    memory_mib: u64,
    /// Resident memory, in MiB.
    resident_max: f64,
}

/// The budget is larger than the memory.
const NO_BUDGET: Deployment = Deployment {
    name: "without a budget",
    limits: "limits = { held_bodies = \"8GiB\" }\n",
    memory_mib: 256,
    resident_max: 256.0,
};

const DEPLOYMENTS: [Deployment; 2] = [
    Deployment {
        name: "sidecar",
        limits: "limits = { held_bodies = \"64MiB\" }\n",
        memory_mib: 384,
        resident_max: 300.0,
    },
    Deployment { name: "gateway", limits: "", memory_mib: 768, resident_max: 500.0 },
];

/// Floods at most until one has come near the limit.
const TRIES: usize = 5;

fn no_budget(case: &mut Case) -> Result<(), TestkitError> {
    match Cgroup::with_memory(1 << 30) {
        Ok(_) => {
            let body = [b"a=".to_vec(), vec![b'x'; 11 << 20]].concat().into();
            // On a busy machine bodies may come so slowly that those before them have gone.
            for _ in 0..TRIES {
                flooded(case, &NO_BUDGET, 30, &body)?;
                if case.figures().contains("by memory_part") {
                    break;
                }
            }
            case.check(case.figures().contains("by memory_part"), || {
                "nothing was refused for limits.memory_part".to_owned()
            });
        }
        // Whatever else there is to see needs a limit.
        Err(why) => case.figure("left out, no cgroup", why),
    }
    Ok(())
}

fn flood(case: &mut Case, networks: u8, body: &[u8]) -> Result<(), TestkitError> {
    let body: Arc<[u8]> = body.into();
    DEPLOYMENTS.iter().try_for_each(|deployment| flooded(case, deployment, networks, &body))
}

fn flooded(
    case: &mut Case,
    deployment: &Deployment,
    networks: u8,
    body: &Arc<[u8]>,
) -> Result<(), TestkitError> {
    let Deployment { name, limits, memory_mib, resident_max } = deployment;
    let backend = Backend::start()?;
    let rest = format!("{limits}{}", app(&[&backend], ""));
    let write = |address, admin| document(address, admin, &rest);
    let mut proxy = match Cgroup::with_memory(memory_mib << 20) {
        Ok(cgroup) => Proxy::confined(case.folder()?, write, cgroup)?,
        Err(why) => {
            case.figure(name, format!("without a cgroup ({why})"));
            Proxy::configured(case.folder()?, write, &[])?
        }
    };
    let load = Plan::new(proxy.address()).kinds(HONEST).start();
    load.go_on(0.5);
    let from = load.now();
    let ended = AtomicBool::new(false);
    let (most, answered) = thread::scope(|scope| {
        let watched = scope.spawn(|| watch(&proxy, &ended));
        let senders = Senders::start(&proxy, networks, body);
        load.go_on(3.0);
        // All of those that are left come to their end at once.
        let answered = senders.finish();
        load.go_on(0.5);
        ended.store(true, Ordering::Relaxed);
        (watched.join().unwrap_or(f64::INFINITY), answered)
    });
    let to = load.now();
    proxy.check_alive()?;
    case.figure(name, format!("{most:.0} MiB, {answered} bodies answered"));
    case.figure("refused", metric(&proxy, "portcullis_bodies_refused_total")?);
    let near_limit = metric(&proxy, "portcullis_bodies_refused_total{reason=\"memory\"}")?;
    if near_limit > 0.0 {
        case.figure("of these by memory_part", near_limit);
    }
    case.check(most <= *resident_max, || format!("{name}: {most:.0} MiB are resident"));
    let samples = load.stop();
    judge(case, &samples, (from, to), Duration::from_millis(100));
    case.nothing_leaked(&samples, &[&backend]);
    Ok(())
}

/// The most memory that is resident until `ended`, in MiB.
fn watch(proxy: &Proxy, ended: &AtomicBool) -> f64 {
    let mut most = 0.0_f64;
    while !ended.load(Ordering::Relaxed) {
        // One that is gone is found later.
        most = most.max(proxy.memory_kib().unwrap_or_default() / 1024.0);
        thread::sleep(Duration::from_millis(10));
    }
    most
}

/// Clients that send all of a body but its last byte.
struct Senders(Vec<JoinHandle<Option<TcpStream>>>);

impl Senders {
    fn start(proxy: &Proxy, networks: u8, body: &Arc<[u8]>) -> Senders {
        let address = proxy.address();
        let head = format!(
            "POST /form HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        let start = |number: u8| {
            let (head, body) = (head.clone(), Arc::clone(body));
            thread::spawn(move || {
                let mut stream = connect(address, Ipv4Addr::new(127, 70, number, 1)).ok()?;
                let _ = stream.set_write_timeout(Some(Duration::from_secs(4)));
                stream.write_all(head.as_bytes()).ok()?;
                stream.write_all(&body[..body.len() - 1]).ok()?;
                Some(stream)
            })
        };
        Senders((0..networks).map(start).collect())
    }

    /// Sends the last bytes, of those that could send the others. How many have an answer.
    fn finish(self) -> usize {
        let streams: Vec<TcpStream> =
            self.0.into_iter().filter_map(|sender| sender.join().ok().flatten()).collect();
        streams.iter().for_each(|mut stream| drop(stream.write_all(b"x")));
        let answered = streams.into_iter().filter(|mut stream| {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(3)));
            stream.read(&mut [0; 64]).is_ok_and(|length| length > 0)
        });
        answered.count()
    }
}
