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
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{io, thread};

use portcullis_config::{Config, FetchedList, List, ListSource};
use portcullis_fetch::{Receiver, Settings};
use portcullis_metrics::{EnumCounters, Gauge, Registry, catalogue};

use kept::Kept;

/// Label values of `portcullis_lists_fetched_total`.
const RESULTS: [&str; 3] = ["changed", "unchanged", "failed"];
/// The first wait after a failure; it doubles up to `every`.
const RETRY: Duration = Duration::from_secs(30);
/// Bytes of the file of a checksum that are read.
const CHECKSUM_BYTES_MAX: u64 = 4 << 10;
/// Addresses that one host may have.
const ADDRESSES_MAX: usize = 256;

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
}

impl Lists {
    /// No list yet.
    pub fn new(registry: Arc<Registry>) -> Lists {
        Lists { registry, kept_up: Mutex::default() }
    }

    /// Keeps the lists of these settings up to date, and no others. Those that it has kept before are looked
    /// at again. Without a data folder there are none.
    pub fn keep(&self, config: &Config) {
        let mut kept_up = self.kept_up.lock().unwrap_or_else(PoisonError::into_inner);
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
                None => match Worker::start(list, file.clone(), &self.registry) {
                    Ok(poke) => kept_up.push(KeptUp { list: list.clone(), file, poke }),
                    Err(error) => eprintln!("portcullis: list `{}`: not kept up to date: {error}", list.name),
                },
            }
        }
    }
}

/// What the thread of a list works with.
struct Worker {
    list: List,
    file: PathBuf,
    /// That of the settings.
    source: String,
    kept: Kept,
    results: EnumCounters,
    current: Gauge,
    failures: u32,
}

impl Worker {
    /// Reads what is kept and starts the thread, which ends when the sender is gone.
    fn start(list: &List, file: PathBuf, registry: &Registry) -> io::Result<Sender<()>> {
        let say = |what: &str| eprintln!("portcullis: list `{}`: {}: {what}", list.name, file.display());
        let source = source(list);
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
            file,
            source,
            kept,
            failures: 0,
        };
        let (poke, poked) = channel();
        thread::Builder::new().name("portcullis-list".to_owned()).spawn(move || {
            let mut worker = worker;
            let mut wait = worker.first_wait();
            while poked.recv_timeout(wait) != Err(RecvTimeoutError::Disconnected) {
                wait = worker.look();
            }
        })?;
        Ok(poke)
    }

    /// A list that other settings have fetched is not asked about with what their server said.
    fn first_wait(&mut self) -> Duration {
        self.current.set(i64::try_from(self.kept.current_s).unwrap_or(i64::MAX));
        if self.kept.source != self.source {
            return Duration::ZERO;
        }
        let age = Duration::from_secs(now_s().saturating_sub(self.kept.current_s));
        self.list.every.saturating_sub(age)
    }

    /// Looks whether there is a new list; the time to the next look.
    fn look(&mut self) -> Duration {
        let result = self.fetch().and_then(|new| {
            let is_new = new.is_some();
            let same = Kept { current_s: now_s(), ..self.kept.clone() };
            let kept = new.unwrap_or(same);
            kept::write(&self.file, &kept).map_err(|error| format!("{}: {error}", self.file.display()))?;
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
                retry.min(self.list.every)
            }
        }
    }

    /// The list, if it has changed.
    fn fetch(&self) -> Result<Option<Kept>, String> {
        let is_known = self.kept.source == self.source && !self.kept.addresses.is_empty();
        let known = if is_known { self.kept.validators.clone() } else { Default::default() };
        let (addresses, validators) = match &self.list.source {
            ListSource::Hosts(hosts) => (resolve(hosts)?, Default::default()),
            ListSource::Fetched(list) => {
                let server = receiver(list, list.url.expose())?;
                let answer = server.get_if_changed(&known, list.bytes_max).map_err(|why| why.to_string())?;
                let Some((answer, validators)) = answer else { return Ok(None) };
                let bytes = answer.accepted(|_| true).map_err(|why| why.to_string())?;
                checked(list, &bytes)?;
                (format::addresses(&bytes, &list.format)?, validators)
            }
        };
        let kept = Kept { source: self.source.clone(), validators, current_s: now_s(), addresses };
        Ok((kept.addresses != self.kept.addresses || !is_known).then_some(kept))
    }

    /// Empties a list that is too old to be relied on.
    fn expire(&mut self) {
        let age = Duration::from_secs(now_s().saturating_sub(self.kept.current_s));
        let is_old = self.list.max_age.is_some_and(|max| age > max);
        if !is_old || self.kept.addresses.is_empty() {
            return;
        }
        let empty = Kept { addresses: String::new(), validators: Default::default(), ..self.kept.clone() };
        match kept::write(&self.file, &empty) {
            Ok(()) => {
                self.kept = empty;
                self.say("is older than `max_age`, and empty from now on");
            }
            Err(error) => self.say(&format!("cannot be emptied: {}: {error}", self.file.display())),
        }
    }

    fn say(&self, what: &str) {
        eprintln!("portcullis: list `{}`: {what}", self.list.name);
    }
}

fn receiver(list: &FetchedList, url: &str) -> Result<Receiver, String> {
    let headers = list.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
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
    let answer = receiver(list, url.expose())?.get(CHECKSUM_BYTES_MAX).map_err(|why| wrong(&why))?;
    let answer = answer.accepted(|_| true).map_err(|why| wrong(&why))?;
    let answer = String::from_utf8_lossy(&answer);
    let expected = answer.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    if expected.len() != 64 || !expected.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong(&"the answer does not begin with 64 hexadecimal digits"));
    }
    let found = kept::checksum(bytes);
    if found == expected { Ok(()) } else { Err(format!("its checksum is {found} and not {expected}")) }
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

/// What tells whether a kept list was fetched with the same settings. Secrets are not written down.
fn source(list: &List) -> String {
    let text = match &list.source {
        ListSource::Hosts(hosts) => hosts.join(" "),
        ListSource::Fetched(list) => format!("{} {:?}", list.url.expose(), list.format),
    };
    kept::checksum(text.as_bytes())
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
