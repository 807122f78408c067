//! Lists of addresses that are kept up to date (`lists`): a thread for each fetches it, or looks its hosts
//! up, and writes it to the data folder, where the proxy reads it as it reads files of an operator.
//!
//! ```text
//!  server, resolver ──> answer ──> format: addresses? ──> kept: DATA/lists/NAME.txt ──> proxy, within 2 s
//!                          └── no answer, not a list, wrong checksum ──> the last one stays; try again
//! ```

mod format;
mod kept;

use std::net::{IpAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{io, thread};

use portcullis_config::{Config, FetchedList, List, ListSource};
use portcullis_fetch::{Receiver, Settings};
use portcullis_metrics::{EnumCounters, Gauge, Registry, catalogue};

use crate::run::kept::lock;
use kept::Kept;

/// Label values of `portcullis_lists_fetched_total`.
const RESULTS: [&str; 3] = ["changed", "unchanged", "failed"];
/// The first wait after a failure; it doubles up to `every`.
const RETRY: Duration = Duration::from_secs(30);
/// Bytes of the file of a checksum that are read.
const CHECKSUM_BYTES_MAX: u64 = 4 << 10;
/// Addresses that one host may have.
const ADDRESSES_MAX: usize = 256;
/// Files in the folder of lists that are looked at.
const FILES_MAX: usize = 1_024;

/// The lists of the settings in use, and a thread for each. Dropped, the threads end by themselves.
pub struct Lists {
    registry: Arc<Registry>,
    kept_up: Mutex<Vec<KeptUp>>,
}

/// A list and its thread.
struct KeptUp {
    list: List,
    file: PathBuf,
    /// Has it look at once; dropped, it ends.
    poke: Sender<()>,
    /// False: a look that has not ended must not write any more.
    may_write: Arc<Mutex<bool>>,
}

impl Drop for KeptUp {
    fn drop(&mut self) {
        *lock(&self.may_write) = false;
    }
}

impl Lists {
    /// No list yet.
    pub fn new(registry: Arc<Registry>) -> Lists {
        Lists { registry, kept_up: Mutex::default() }
    }

    /// Keeps the lists of these settings up to date, and no others. Those that it has kept before are looked
    /// at again. Without a data folder there are none.
    pub fn keep(&self, config: &Config) {
        let mut kept_up = lock(&self.kept_up);
        let mut old = std::mem::take(&mut *kept_up);
        for list in &config.lists {
            let Some(file) = config.list_file(&list.name) else { continue };
            match old.iter().position(|old| (&old.list, &old.file) == (list, &file)) {
                Some(index) => {
                    let known = old.swap_remove(index);
                    // A thread that has ended has reported why.
                    let _ = known.poke.send(());
                    kept_up.push(known);
                }
                None => match Worker::start(list, file, &self.registry) {
                    Ok(started) => kept_up.push(started),
                    Err(error) => eprintln!("portcullis: list `{}`: not kept up to date: {error}", list.name),
                },
            }
        }
        drop(old);
        let used: Vec<&PathBuf> = kept_up.iter().map(|list| &list.file).collect();
        config.list_folder().iter().for_each(|folder| remove_others(folder, &used));
    }

    /// Ends the looks: another process keeps the lists up to date.
    pub fn stop(&self) {
        lock(&self.kept_up).clear();
    }
}

/// Removes the files of lists that there are no more, so that none comes back years later.
fn remove_others(folder: &Path, used: &[&PathBuf]) {
    let names = portcullis_files::entries(folder, FILES_MAX).unwrap_or_default();
    for path in names.into_iter().map(|name| folder.join(name)) {
        if path.extension().is_some_and(|end| end == "txt") && !used.contains(&&path) {
            // One that stays is read by nobody.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// What the thread of a list works with.
struct Worker {
    list: List,
    file: PathBuf,
    may_write: Arc<Mutex<bool>>,
    kept: Kept,
    results: EnumCounters,
    current: Gauge,
    failures: u32,
}

impl Worker {
    /// Reads what is kept and starts the thread, which ends when the sender is gone.
    fn start(list: &List, file: PathBuf, registry: &Registry) -> io::Result<KeptUp> {
        let say = |what: &str| eprintln!("portcullis: list `{}`: {}: {what}", list.name, file.display());
        let kept = match kept::read(&file) {
            Ok(kept) => kept.unwrap_or_default(),
            Err(why) => {
                say(&format!("{why}; the list is fetched again"));
                if let Err(error) = std::fs::remove_file(&file) {
                    say(&error.to_string());
                }
                Kept::default()
            }
        };
        let worker = Worker {
            results: registry.enum_counters(&catalogue::LISTS_FETCHED, &[&list.name], &RESULTS),
            current: registry.gauge(&catalogue::LISTS_CURRENT, &[&list.name]),
            list: list.clone(),
            file: file.clone(),
            may_write: Arc::new(Mutex::new(true)),
            kept,
            failures: 0,
        };
        let may_write = Arc::clone(&worker.may_write);
        let (poke, poked) = channel();
        thread::Builder::new().name("portcullis-list".to_owned()).spawn(move || {
            let mut worker = worker;
            let mut wait = worker.first_wait();
            while poked.recv_timeout(wait) != Err(RecvTimeoutError::Disconnected) {
                // Reloads during a look are answered by one.
                poked.try_iter().for_each(drop);
                wait = worker.look();
            }
        })?;
        Ok(KeptUp { list: list.clone(), file, poke, may_write })
    }

    fn first_wait(&mut self) -> Duration {
        self.current.set(i64::try_from(self.kept.current_s).unwrap_or(i64::MAX));
        if self.kept.addresses.is_empty() {
            return Duration::ZERO;
        }
        self.list.every.saturating_sub(self.age())
    }

    /// The time since the list was known to be current. One of the future was written by a wrong clock.
    fn age(&self) -> Duration {
        now_s().checked_sub(self.kept.current_s).map_or(Duration::MAX, Duration::from_secs)
    }

    /// Writes the list, unless it is kept up to date by others from now on.
    fn write(&self, kept: &Kept) -> Result<(), String> {
        let may_write = lock(&self.may_write);
        match *may_write {
            true => {
                kept::write(&self.file, kept).map_err(|error| format!("{}: {error}", self.file.display()))
            }
            false => Ok(()),
        }
    }

    /// Looks whether there is a new list; the time to the next look.
    fn look(&mut self) -> Duration {
        let result = self.fetch().and_then(|new| {
            let kept = new.unwrap_or_else(|| Kept { current_s: now_s(), ..self.kept.clone() });
            let is_new = kept.addresses != self.kept.addresses;
            self.write(&kept)?;
            self.kept = kept;
            Ok(is_new)
        });
        match result {
            Ok(is_new) => {
                if self.failures > 0 {
                    self.say("is fetched again");
                }
                self.failures = 0;
                self.results.inc(usize::from(!is_new));
                self.current.set(i64::try_from(self.kept.current_s).unwrap_or(i64::MAX));
                self.list.every
            }
            Err(why) => {
                self.results.inc(2);
                // Once, until it is fetched again.
                if self.failures == 0 {
                    let state = match (self.kept.addresses.is_empty(), self.kept.current_s) {
                        (false, _) => "the last one stays in effect",
                        (true, _) => "it is empty until then",
                    };
                    self.say(&format!("not fetched, retrying: {why}; {state}"));
                }
                self.expire();
                self.failures += 1;
                let retry = RETRY.saturating_mul(1 << self.failures.min(16).saturating_sub(1));
                // In time to empty it.
                let left = self.list.max_age.filter(|_| !self.kept.addresses.is_empty());
                let left = left.map_or(Duration::MAX, |max| max.saturating_sub(self.age()));
                retry.min(self.list.every).min(left.saturating_add(Duration::from_secs(1)))
            }
        }
    }

    /// The list, if it has changed.
    fn fetch(&self) -> Result<Option<Kept>, String> {
        let is_known = !self.kept.addresses.is_empty();
        let known = if is_known { self.kept.validators.clone() } else { Default::default() };
        let (addresses, validators) = match &self.list.source {
            ListSource::Hosts(hosts) => (resolve(hosts)?, Default::default()),
            ListSource::Fetched(list) => {
                let server = receiver(list, list.url.expose(), true)?;
                let answer = server.get_if_changed(&known, list.bytes_max).map_err(|why| why.to_string())?;
                let Some((answer, validators)) = answer else { return Ok(None) };
                let bytes = answer.accepted(|_| true).map_err(|why| why.to_string())?;
                checked(list, &bytes)?;
                (format::addresses(&bytes, &list.format)?, validators)
            }
        };
        Ok(Some(Kept { validators, current_s: now_s(), addresses }))
    }

    /// Empties a list that is too old to be relied on.
    fn expire(&mut self) {
        let is_old = self.list.max_age.is_some_and(|max| self.age() > max);
        if !is_old || self.kept.addresses.is_empty() {
            return;
        }
        let empty = Kept { addresses: String::new(), validators: Default::default(), ..self.kept.clone() };
        match self.write(&empty) {
            Ok(()) => {
                self.kept = empty;
                self.say("is older than `max_age`, and empty from now on");
            }
            Err(why) => self.say(&format!("cannot be emptied: {why}")),
        }
    }

    fn say(&self, what: &str) {
        eprintln!("portcullis: list `{}`: {what}", self.list.name);
    }
}

fn receiver(list: &FetchedList, url: &str, with_headers: bool) -> Result<Receiver, String> {
    let headers = list.headers.iter().filter(|_| with_headers);
    let headers = headers.map(|(name, value)| (name.clone(), value.expose().to_owned()));
    let settings = Settings {
        url: url.to_owned(),
        ca: list.ca.clone(),
        headers: headers.collect(),
        timeout: list.timeout,
    };
    Receiver::new(settings, "ca").map_err(|error| error.to_string())
}

/// Checks the answer against the checksum that its server offers, if it does.
fn checked(list: &FetchedList, bytes: &[u8]) -> Result<(), String> {
    let Some(url) = &list.checksum else { return Ok(()) };
    let wrong = |why: &dyn std::fmt::Display| format!("its checksum: {why}");
    // Headers may be secrets of the server that has the list.
    let with_headers = origin(url.expose()) == origin(list.url.expose());
    let answer =
        receiver(list, url.expose(), with_headers)?.get(CHECKSUM_BYTES_MAX).map_err(|why| wrong(&why))?;
    let answer = answer.accepted(|_| true).map_err(|why| wrong(&why))?;
    let answer = String::from_utf8_lossy(&answer);
    let expected = answer.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    if expected.len() != 64 || !expected.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong(&"the answer does not begin with 64 hexadecimal digits"));
    }
    let found = kept::checksum(bytes);
    if found == expected { Ok(()) } else { Err(format!("its checksum is {found} and not {expected}")) }
}

/// Scheme, host and port of a URL.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or(url, |end| &url[..host + end])
}

/// The addresses of all these hosts.
fn resolve(hosts: &[String]) -> Result<String, String> {
    let mut found: Vec<IpAddr> = Vec::new();
    for host in hosts {
        let addresses = (host.as_str(), 0).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
        found.extend(addresses.take(ADDRESSES_MAX).map(|address| address.ip().to_canonical()));
    }
    found.sort_unstable();
    found.dedup();
    let text: String = found.iter().map(|address| format!("{address}\n")).collect();
    format::check(&text)?;
    Ok(text)
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
