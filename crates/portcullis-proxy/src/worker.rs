//! One worker: a thread with its own runtime, sockets, connections and pool.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::LocalSet;

#[cfg(feature = "http3")]
use crate::http3;
use crate::listener::{BACKLOG, WorkerSockets};
use crate::state::{Shared, Worker};
use crate::timer::TICK;
use crate::{affinity, clock, http1};

/// Old upstream connections are looked for every this many ticks.
const SWEEP_TICKS: u32 = 20;
/// The pause in accepting when the system is out of file descriptors or memory.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// The manner in which a worker ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    /// The time that requests in flight have.
    pub(crate) drain: Duration,
    /// Another process serves the same sockets.
    pub(crate) handed_over: bool,
}

/// Runs until told to stop through `stopped`, on `core` if there is one. `sockets` are by listener.
pub(crate) fn run(
    shared: Arc<Shared>,
    number: usize,
    core: Option<usize>,
    sockets: Vec<WorkerSockets>,
    stopped: watch::Receiver<Option<Stop>>,
) {
    if let Some(core) = core
        && let Err(error) = affinity::keep_to(core)
    {
        // It serves as well elsewhere.
        (shared.services.say)(&format!("worker {number} cannot be pinned to core {core}: {error}"));
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("portcullis: a worker cannot start: {error}");
            return;
        }
    };
    LocalSet::new().block_on(&runtime, serve(shared, number, sockets, stopped));
}

async fn serve(
    shared: Arc<Shared>,
    number: usize,
    sockets: Vec<WorkerSockets>,
    mut stopped: watch::Receiver<Option<Stop>>,
) {
    let worker = Worker::new(shared, number);
    tokio::task::spawn_local(tick(Rc::clone(&worker)));
    let mut accepting = Vec::new();
    let trouble = |error| eprintln!("portcullis: a worker cannot use its socket: {error}");
    for (index, own) in sockets.into_iter().enumerate() {
        for socket in own.tcp {
            match TcpListener::from_std(socket) {
                Ok(socket) => accepting.push(tokio::task::spawn_local(accept(
                    Rc::clone(&worker),
                    index,
                    socket,
                    stopped.clone(),
                ))),
                Err(error) => trouble(error),
            }
        }
        #[cfg(feature = "http3")]
        if let (Some(socket), Some(tls)) = (own.udp, &worker.shared.current.load().listeners[index].tls) {
            match http3::endpoint(socket, tls) {
                Ok(endpoint) => accepting.push(tokio::task::spawn_local(http3::accept(
                    Rc::clone(&worker),
                    index,
                    endpoint,
                    stopped.clone(),
                ))),
                Err(error) => trouble(error),
            }
        }
    }
    // An error means that the sender is gone: the proxy was dropped, and nobody can stop us any more.
    if stopped.wait_for(Option::is_some).await.is_err() {
        std::future::pending::<()>().await;
    }
    let Some(stop) = *stopped.borrow() else { return };
    for task in accepting {
        let _ = task.await;
    }
    worker.draining.set(true);
    worker.handed_over.set(stop.handed_over);
    if !stop.handed_over {
        worker.timers.expire_idle();
    }
    let drained = async {
        while worker.connections() > 0 {
            worker.ended.notified().await;
        }
    };
    let _ = tokio::time::timeout(stop.drain, drained).await;
    worker.end_repeats();
    worker.pool.borrow_mut().clear();
    worker.sessions.borrow_mut().clear();
}

async fn tick(worker: Rc<Worker>) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut count = 0u32;
    let mut worked = clock::of_thread();
    loop {
        let late = interval.tick().await.elapsed();
        let before = std::mem::replace(&mut worked, clock::of_thread());
        worker.came(own_part(late, worked.saturating_sub(before)));
        count = count.wrapping_add(1);
        worker.tick(clock::coarse(), count.is_multiple_of(SWEEP_TICKS));
    }
}

/// The part of a tick's delay that the worker itself caused, which `worked` for so long since the last one.
/// The rest is other programs' doing: sending clients away would not help.
fn own_part(late: Duration, worked: Duration) -> Duration {
    let share = worked.as_secs_f64() / (TICK + late).as_secs_f64();
    late.mul_f64(share.min(1.0))
}

/// Accepts until told to stop; then takes what already waits in the backlog, so that no client that was let
/// in by the kernel is turned away. What another process can accept is left to it.
async fn accept(
    worker: Rc<Worker>,
    listener: usize,
    socket: TcpListener,
    mut stopped: watch::Receiver<Option<Stop>>,
) {
    // Clients that come all the time would else keep us from stopping.
    let mut last = BACKLOG;
    loop {
        if let Some(stop) = *stopped.borrow() {
            if stop.handed_over || last == 0 {
                return;
            }
            last -= 1;
        }
        while worker.connections() >= worker.shared.current.load().caps.connections_max {
            if stopped.borrow().is_some() {
                return;
            }
            worker.make_room();
            let _ = tokio::time::timeout(ACCEPT_REST, worker.ended.notified()).await;
        }
        let accepted = tokio::select! {
            biased;
            accepted = socket.accept() => accepted,
            _ = stopped.wait_for(Option::is_some) => return,
        };
        match accepted {
            Ok((tcp, peer)) => {
                let network = worker.network_of(peer.ip());
                if !worker.admits(network) {
                    let plain = worker.shared.current.load().listeners[listener].tls.is_none();
                    turn_away(&tcp, plain);
                    continue;
                }
                // Counted here, since the task runs later and the limit is looked at before that.
                let counted = worker.count(network);
                tokio::task::spawn_local(http1::serve(Rc::clone(&worker), counted, listener, tcp, peer));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                worker.shared.descriptors.lack(&error, &*worker.shared.services.say);
                worker.make_room();
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
}

/// The answer to a client whose network has its share of connections, where there is no TLS to send it in.
const TURNED_AWAY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\
    Connection: close\r\n\r\n";

/// Closes a connection that is one too many for its client network. `plain`: it is not for TLS.
fn turn_away(tcp: &TcpStream, plain: bool) {
    if plain {
        // If it does not fit at once nobody waits for it.
        let _ = tcp.try_write(TURNED_AWAY);
    }
}

fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
