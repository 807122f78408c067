//! Accepts connections of trusted peers and hands them to threads.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, LocalSet};

use crate::check::{self, HeaderFamily};
use crate::envoy;
use crate::service::Service;
use crate::spop::{self, Kept};
use portcullis_exchange::Unanswered;

/// The wait after an error of accept(2), which repeats at once where descriptors are short.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The protocol that connections speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Subrequests over HTTP/1.
    Check {
        /// The headers that tell of the request.
        headers: HeaderFamily,
    },
    /// HAProxy's Stream Processing Offload Protocol.
    Spop {
        /// Responses are sent, too: exchanges whose request passed wait for theirs.
        responses: bool,
    },
    /// Envoy's external authorization.
    ExtAuthz,
    /// Envoy's external processing.
    ExtProc,
}

/// A server at work.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

/// The protocol of connections, and the state that they share for it.
#[derive(Clone, Debug)]
struct Way {
    protocol: Protocol,
    kept: Option<Kept>,
}

/// A connection on its way to a thread. Dropped, it is no longer counted.
struct Accepted {
    stream: TcpStream,
    peer: SocketAddr,
    open: Open,
}

/// A place among the connections that there may be.
struct Open {
    count: Arc<AtomicUsize>,
    service: Arc<Service>,
}

impl Open {
    /// None if there are as many as there may be.
    fn take(count: &Arc<AtomicUsize>, service: &Arc<Service>) -> Option<Open> {
        let max = service.limits.connections_max;
        let more = |open: usize| (open < max).then_some(open + 1);
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        service.counters().connections_active.add(1);
        Some(Open { count: Arc::clone(count), service: Arc::clone(service) })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        self.service.counters().connections_active.add(-1);
    }
}

impl Server {
    /// Serves on `listener` with so many threads.
    pub fn start(
        listener: TcpListener,
        service: Arc<Service>,
        protocol: Protocol,
        threads: usize,
    ) -> io::Result<Server> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let (mut senders, mut handles) = (Vec::new(), Vec::new());
        let kept = matches!(protocol, Protocol::Spop { responses: true }).then(Kept::default);
        for number in 0..threads.max(1) {
            // Bounded by the number of connections.
            let (sender, receiver) = mpsc::unbounded_channel();
            let (service, stopped) = (Arc::clone(&service), stopped.clone());
            let way = Way { protocol, kept: kept.clone() };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let work = move || runtime.block_on(serve(receiver, service, way, stopped));
            handles.push(std::thread::Builder::new().name(format!("serve-{number}")).spawn(work)?);
            senders.push(sender);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let work = move || runtime.block_on(accept(listener, service, senders, stopped));
        handles.push(std::thread::Builder::new().name("accept".to_owned()).spawn(work)?);
        Ok(Server { address, stop, threads: handles })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts no more, lets what is in flight come to its end within the time for that, and returns.
    pub fn drain(self) {
        let _ = self.stop.send(true);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// Hands connections to the threads in turn: few peers hold few long connections, which the kernel would
/// leave with one thread.
async fn accept(
    listener: TcpListener,
    service: Arc<Service>,
    threads: Vec<mpsc::UnboundedSender<Accepted>>,
    mut stopped: watch::Receiver<bool>,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let open = Arc::new(AtomicUsize::new(0));
    let mut turns = (0..threads.len()).cycle();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        if !service.trusts(peer.ip()) {
            service.unanswered(Unanswered::UntrustedPeer);
            check::refuse_peer(&service, stream).await;
            continue;
        }
        let Some(open) = Open::take(&open, &service) else {
            service.unanswered(Unanswered::Connections);
            continue;
        };
        let _ = stream.set_nodelay(true);
        let Ok(stream) = stream.into_std() else { continue };
        if let Some(thread) = turns.next().and_then(|turn| threads.get(turn)) {
            let _ = thread.send(Accepted { stream, peer, open });
        }
    }
}

/// One thread: its connections, until there will be no more and they have ended.
async fn serve(
    mut connections: mpsc::UnboundedReceiver<Accepted>,
    service: Arc<Service>,
    way: Way,
    stopped: watch::Receiver<bool>,
) {
    let tasks = LocalSet::new();
    tasks
        .run_until(async {
            let mut set = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = connections.recv() => {
                        let Some(accepted) = accepted else { break };
                        set.spawn_local(converse(accepted, Arc::clone(&service), way.clone(), stopped.clone()));
                    }
                    Some(_) = set.join_next() => {}
                }
            }
            let rest = async { while set.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(service.limits.drain_timeout, rest).await;
        })
        .await;
}

async fn converse(accepted: Accepted, service: Arc<Service>, way: Way, stopped: watch::Receiver<bool>) {
    let Accepted { stream, peer, open } = accepted;
    let Ok(stream) = tokio::net::TcpStream::from_std(stream) else { return };
    match way.protocol {
        Protocol::Check { headers } => check::serve(stream, peer, &service, headers, stopped).await,
        Protocol::Spop { .. } => spop::serve(stream, peer, &service, way.kept.as_ref(), stopped).await,
        Protocol::ExtAuthz => envoy::serve_authz(stream, peer, &service, stopped).await,
        Protocol::ExtProc => envoy::serve_proc(stream, peer, &service, stopped).await,
    }
    drop(open);
}
