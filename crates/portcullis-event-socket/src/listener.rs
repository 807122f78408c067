//! The end that takes events.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use nix::unistd::User;
use portcullis_event::{Event, Timestamp};
use portcullis_metrics::Registry;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use crate::Say;
use crate::client::{Client, Turn};
use crate::line::Line;
use crate::metrics::{LOST, Refused, Taken};
use crate::open::{OpenError, bind};

/// Connections at a time; more are closed at once.
pub const CLIENTS_MAX: usize = 256;
/// Names of sites that all peers together may use: the store counts by site and minute.
const SITES_MAX: usize = 64;
/// An event is taken up to this time after its request began.
const AGE_MAX: Duration = Duration::from_secs(3600);
/// By so much a request may have begun in the future.
const AHEAD_MAX: Duration = Duration::from_secs(60);
/// Between two complaints about peers.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(60);
/// After a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Between two looks for room, while peers wait.
const ROOM_PAUSE: Duration = Duration::from_millis(10);
/// Turns that connections have at the end, to be rid of what they sent.
const LAST_TURNS: usize = 16;

/// Takes an event. It is called by the listener's thread and must not wait.
pub type OnEvent = Arc<dyn Fn(Event) + Send + Sync>;

/// True while events may be taken. Those of this process come first: while they fill half of a queue, peers
/// wait.
pub type HasRoom = Arc<dyn Fn() -> bool + Send + Sync>;

/// Where events are taken, and from whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The socket.
    pub path: PathBuf,
    /// Users, by name or number, whose processes may send, beside root and the user of this process.
    pub users: Vec<String>,
}

/// A socket that is served by a thread of its own. Closed when it is dropped.
#[derive(Debug)]
pub struct Listener {
    wake: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Opens the socket. `takes_over`: the predecessor of an upgrade may still serve it.
    pub fn open(
        settings: &Settings,
        takes_over: bool,
        registry: &Registry,
        on_event: OnEvent,
        has_room: HasRoom,
        say: Say,
    ) -> Result<Listener, OpenError> {
        let mut users = vec![0, geteuid().as_raw()];
        for name in &settings.users {
            users.push(user(name).ok_or_else(|| OpenError::NoUser(name.clone()))?);
        }
        // Who may connect is decided by the user that the kernel names; the mode keeps others away early.
        let mode = if settings.users.is_empty() { 0o600 } else { 0o666 };
        let (listener, file) = bind(&settings.path, mode, takes_over)?;
        let explain = |error| OpenError::Io(settings.path.clone(), error);
        let (wake, woken) = UnixStream::pair().map_err(explain)?;
        let mut work = Work {
            listener,
            woken,
            users,
            clients: Vec::new(),
            sites: HashSet::new(),
            metrics: Taken::new(registry),
            on_event,
            has_room,
            say,
            complained: None,
            rest_until: None,
            first: 0,
        };
        let body = move || {
            work.run();
            drop(file);
        };
        let thread =
            std::thread::Builder::new().name("event socket".to_owned()).spawn(body).map_err(explain)?;
        Ok(Listener { wake, thread: Some(thread) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.wake.write_all(b"!").is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// The number of a user.
fn user(name: &str) -> Option<u32> {
    match name.parse() {
        Ok(number) => Some(number),
        Err(_) => User::from_name(name).ok().flatten().map(|user| user.uid.as_raw()),
    }
}

struct Work {
    listener: UnixListener,
    /// Readable when all is to end.
    woken: UnixStream,
    users: Vec<u32>,
    clients: Vec<Client>,
    sites: HashSet<Arc<str>>,
    metrics: Taken,
    on_event: OnEvent,
    has_room: HasRoom,
    say: Say,
    complained: Option<Instant>,
    /// No connection is accepted before.
    rest_until: Option<Instant>,
    /// The connection that is first in the next round.
    first: usize,
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("clients", &self.clients.len()).finish_non_exhaustive()
    }
}

impl Work {
    fn run(&mut self) {
        let (mut ready, mut piece) = (Vec::new(), Vec::new());
        loop {
            if self.wait(&mut ready).is_err() {
                // No memory for the kernel's own list: nothing else can be done about it here.
                std::thread::sleep(ACCEPT_PAUSE);
                continue;
            }
            let [ended, arrived, clients @ ..] = &ready[..] else { continue };
            self.turns(clients, &mut piece);
            if *arrived {
                self.accept();
            }
            if *ended {
                break;
            }
        }
        for _ in 0..LAST_TURNS {
            let all = vec![true; self.clients.len()];
            self.turns(&all, &mut piece);
        }
    }

    /// Waits until something can be done; `ready` then says what: the end, a new connection, each connection.
    fn wait(&mut self, ready: &mut Vec<bool>) -> io::Result<()> {
        let rests = self.rest_until.is_some_and(|until| until > Instant::now());
        let has_room = (self.has_room)();
        let accepts = if rests { PollFlags::empty() } else { PollFlags::IN };
        let mut asked = vec![
            PollFd::new(&self.woken, PollFlags::IN),
            PollFd::from_borrowed_fd(self.listener.as_fd(), accepts),
        ];
        // Without room peers keep what is not read, and wait. A connection that has ended would be ready at
        // once.
        let clients = self.clients.iter().filter(|_| has_room);
        asked.extend(clients.map(|client| PollFd::from_borrowed_fd(client.as_fd(), PollFlags::IN)));
        let pause = if has_room { ACCEPT_PAUSE } else { ROOM_PAUSE };
        let pause = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
        match poll(&mut asked, (rests || !has_room).then_some(&pause)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        ready.clear();
        ready.extend(asked.iter().map(|one| !one.revents().is_empty()));
        Ok(())
    }

    /// Lets connections that are ready have a turn: one of each process, so that many connections are no
    /// larger share than one.
    fn turns(&mut self, ready: &[bool], piece: &mut Vec<u8>) {
        let mut ended = Vec::new();
        let mut served = HashSet::new();
        let count = self.clients.len();
        self.first = (self.first + 1) % count.max(1);
        for at in (0..count).map(|n| (self.first + n) % count) {
            if !ready.get(at).copied().unwrap_or_default() || !(self.has_room)() {
                continue;
            }
            let Some(client) = self.clients.get_mut(at).filter(|client| served.insert(client.process()))
            else {
                continue;
            };
            let (metrics, sites, on_event) = (&self.metrics, &mut self.sites, &self.on_event);
            match client.turn(piece, |line| take(line, metrics, sites, on_event)) {
                Turn::Open => {}
                Turn::Ended(how) => ended.push((at, how, None)),
                Turn::Broken(how, what) => ended.push((at, Some(how), Some(what))),
            }
        }
        ended.sort_by_key(|(at, ..)| *at);
        for (at, how, what) in ended.into_iter().rev() {
            self.clients.swap_remove(at);
            if let Some(how) = how {
                self.metrics.refused.inc(how as usize);
            }
            if let Some(what) = what {
                self.complain(&format!("a connection was ended: {what}"));
            }
        }
        self.metrics.clients.set(i64::try_from(self.clients.len()).unwrap_or(i64::MAX));
    }

    fn accept(&mut self) {
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            Err(error) => {
                self.rest_until = Some(Instant::now() + ACCEPT_PAUSE);
                return self.complain(&format!("a connection cannot be accepted: {error}"));
            }
        };
        let Ok(peer) = socket_peercred(&stream) else { return };
        let user = peer.uid.as_raw();
        if !self.users.contains(&user) {
            self.metrics.refused.inc(Refused::User as usize);
            let process = peer.pid.as_raw_nonzero();
            return self.complain(&format!(
                "process {process} of user {user} may not send; if it should, name its user in events.listen_users"
            ));
        }
        if self.clients.len() >= CLIENTS_MAX {
            self.metrics.refused.inc(Refused::Clients as usize);
            return self.complain(&format!("there are {CLIENTS_MAX} connections already"));
        }
        if let Ok(client) = Client::new(stream, peer.pid.as_raw_nonzero().get()) {
            self.clients.push(client);
        }
    }

    fn complain(&mut self, what: &str) {
        if self.complained.is_none_or(|last| last.elapsed() >= COMPLAINT_PAUSE) {
            self.complained = Some(Instant::now());
            (self.say)(&format!("event socket: {what}"));
        }
    }
}

fn take(line: Line, metrics: &Taken, sites: &mut HashSet<Arc<str>>, on_event: &OnEvent) {
    let mut event = match line {
        Line::Event(event) => event,
        Line::Report(report) => {
            for (reason, count) in report.lost {
                // A reason of a later version is counted as another one.
                metrics.lost.add(LOST.iter().position(|known| *known == reason).unwrap_or(LOST.len()), count);
            }
            return;
        }
    };
    let now = Timestamp::from(SystemTime::now()).epoch_millis();
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let (oldest, newest) = (now.saturating_sub(millis(AGE_MAX)), now.saturating_add(millis(AHEAD_MAX)));
    // The store also counts by the end of the request.
    let end = event.time.epoch_millis().saturating_add(event.duration_us / 1000);
    if event.time.epoch_millis() < oldest || end > newest {
        return metrics.refused.inc(Refused::Time as usize);
    }
    match sites.get(&event.site) {
        Some(known) => event.site = Arc::clone(known),
        None if sites.len() < SITES_MAX => {
            sites.insert(Arc::clone(&event.site));
        }
        None => return metrics.refused.inc(Refused::Sites as usize),
    }
    if let Some(integration) = &event.integration {
        metrics.events.inc(integration.kind as usize);
    }
    on_event(*event);
}
