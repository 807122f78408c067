//! Nodes tell each other which cookies their upstreams have set, through a stream of Redis.
//!
//! ```text
//! fresh ones ──every 40 ms──> XADD cookies (site, hashes) ──> XREAD of every node ──> its own table
//! ```
//!
//! No request waits for any of this: a node asks its own table alone. While Redis is away cookies gather, as
//! many as a site may have waiting. The nodes of a Redis have one key, which the first of them brings; who
//! can read it there can tell which of the values that they know were set, and sign cookies.

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use portcullis_inspect::{Fresh, ISSUED_COOKIE_MILLIS, IssuedCookies, IssuedSites};
use portcullis_metrics::{Counter, Registry, catalogue};
use portcullis_resp::{Client, Command, Connection, Limits, Reply};

use super::files::{Files, hex, parse};
use super::{lock, now};
use crate::run::redis::{ANSWER_TIME, Health, Link, Session};

/// The longest time that fresh cookies wait.
const SEND_EVERY: Duration = Duration::from_millis(40);
/// Cookies of an entry, and bytes of each.
const ENTRY_COOKIES: usize = 64;
const COOKIE_BYTES: usize = size_of::<u64>() + 1;
/// Entries that the stream keeps, about.
const STREAM_ENTRIES: u32 = 50_000;
/// Entries that are read or sent at once.
const AT_ONCE: usize = 256;
/// Before the first entry.
const BEGINNING: &[u8] = b"0-0";
/// An exchange brings no more than this: entries have names of sites.
const LIMITS: Limits = Limits { bytes_max: 4 << 20, values_max: 64 << 10 };

struct Work {
    stream: Vec<u8>,
    key: Vec<u8>,
    node: String,
    sites: Arc<IssuedSites>,
    files: Arc<Mutex<Files>>,
    /// The last entry that was read, for these sites.
    position: Vec<u8>,
    read_for: Vec<Weak<IssuedCookies>>,
    sent: Counter,
    received: Counter,
}

/// Shares the cookies of all sites. None where they cannot be shared, which is reported; dropped, it tells
/// what is left.
pub(super) fn start(
    redis: &portcullis_config::Redis,
    sites: &Arc<IssuedSites>,
    files: &Arc<Mutex<Files>>,
    registry: &Registry,
) -> Option<Link> {
    let complain = |error: &dyn std::fmt::Display| {
        eprintln!("portcullis: issued cookies are not shared: the address of redis cannot be used: {error}");
    };
    let client = Client::new(&redis.url).inspect_err(|error| complain(error)).ok()?;
    let name = |name: &str| [redis.prefix.as_bytes(), name.as_bytes()].concat();
    let shared = |direction| registry.counter(&catalogue::ISSUED_COOKIES_SHARED, &[direction]);
    let work = Work {
        stream: name("cookies"),
        key: name("cookies:key"),
        // Names this process among the nodes; not a secret.
        node: format!("{:016x}", RandomState::new().hash_one((std::process::id(), now()))),
        sites: Arc::clone(sites),
        files: Arc::clone(files),
        position: BEGINNING.to_vec(),
        read_for: Vec::new(),
        sent: shared("sent"),
        received: shared("received"),
    };
    let health = Health::new(
        registry.gauge(&catalogue::ISSUED_COOKIES_REDIS_CONNECTED, &[]),
        registry.counter(&catalogue::ISSUED_COOKIES_REDIS_FAILURES, &[]),
    );
    sites.set_shared(true);
    let link = Link::start("cookies-redis", client, LIMITS, health, work);
    link.inspect_err(|error| {
        sites.set_shared(false);
        eprintln!("portcullis: issued cookies are not shared: no thread could be started: {error}");
    })
    .ok()
}

impl Session for Work {
    const LOST: &str = "each node knows its own issued cookies only";
    const BACK: &str = "issued cookies are shared";

    fn run(&mut self, connection: &mut Connection, health: &mut Health, stop: &AtomicBool) -> io::Result<()> {
        self.agree_on_key(connection)?;
        let length = connection.ask(&Command::new("XLEN").arg(&self.stream), ANSWER_TIME)?;
        if length == Reply::Int(0) {
            // A new Redis, or one that lost everything.
            self.sites.all().iter().for_each(|site| site.offer_all());
        }
        loop {
            self.send(connection)?;
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let began = Instant::now();
            let is_any = self.read(connection)?;
            health.works(Self::BACK);
            if !is_any {
                // It should have waited so long for something to come.
                std::thread::park_timeout(SEND_EVERY.saturating_sub(began.elapsed()));
            }
        }
    }
}

impl Work {
    /// The key is that of the first node, and stays while any node is there to bring it again.
    fn agree_on_key(&self, connection: &mut Connection) -> io::Result<()> {
        let own = self.sites.key();
        let offer = Command::new("SET").arg(&self.key).arg(hex(own).as_bytes()).arg(b"NX");
        connection.ask(&offer, ANSWER_TIME)?;
        let answer = connection.ask(&Command::new("GET").arg(&self.key), ANSWER_TIME)?;
        let key = answer.text().and_then(|text| parse(&text));
        let key = key.ok_or_else(|| {
            let name = String::from_utf8_lossy(&self.key);
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("`{name}` is no key of issued cookies; delete it"),
            )
        })?;
        if key != own {
            lock(&self.files).set_key(key);
            self.sites.set_key(key);
        }
        Ok(())
    }

    /// Tells the other nodes of fresh cookies.
    fn send(&self, connection: &mut Connection) -> io::Result<()> {
        let mut result = Ok(());
        for site in self.sites.all() {
            let fresh = site.take_fresh();
            for (sent, some) in fresh.chunks(ENTRY_COOKIES * AT_ONCE).enumerate() {
                result = result.and_then(|()| self.send_some(connection, &site, some));
                if result.is_err() {
                    // What has arrived nevertheless is known there, and no harm.
                    site.put_back(&fresh[sent * ENTRY_COOKIES * AT_ONCE..]);
                    break;
                }
            }
        }
        result
    }

    fn send_some(&self, connection: &mut Connection, site: &IssuedCookies, some: &[Fresh]) -> io::Result<()> {
        let entry = |cookies: &[Fresh]| {
            let command =
                Command::new("XADD").arg(&self.stream).arg(b"MAXLEN").arg(b"~").number(STREAM_ENTRIES);
            let command = command.arg(b"*").arg(b"n").arg(self.node.as_bytes());
            let one = |(hash, network): &Fresh| [&hash.to_le_bytes()[..], &[*network]].concat();
            let bytes = cookies.iter().flat_map(one).collect::<Vec<u8>>();
            command.arg(b"s").arg(site.site().as_bytes()).arg(b"h").arg(&bytes)
        };
        let commands: Vec<Command> = some.chunks(ENTRY_COOKIES).map(entry).collect();
        for answer in connection.exchange(&commands, ANSWER_TIME)? {
            answer.accepted()?;
        }
        self.sent.add(some.len() as u64);
        Ok(())
    }

    /// Waits for what other nodes tell. False if nothing came.
    fn read(&mut self, connection: &mut Connection) -> io::Result<bool> {
        self.begin_again_for_new_sites();
        let command = Command::new("XREAD").arg(b"COUNT").number(AT_ONCE as u64).arg(b"BLOCK");
        let command = command.number(SEND_EVERY.as_millis() as u64).arg(b"STREAMS");
        let answer =
            connection.ask(&command.arg(&self.stream).arg(&self.position), SEND_EVERY + ANSWER_TIME)?;
        let stream = answer.items().into_iter().next().map(Reply::items).unwrap_or_default();
        let entries = stream.into_iter().nth(1).map(Reply::items).unwrap_or_default();
        let is_any = !entries.is_empty();
        for entry in entries {
            let mut parts = entry.items().into_iter();
            let Some(id) = parts.next().and_then(Reply::text) else { continue };
            let fields = parts.next().map(Reply::items).unwrap_or_default();
            let fields: Vec<Vec<u8>> = fields.into_iter().filter_map(Reply::text).collect();
            if let [_, node, _, site, _, cookies] = &fields[..]
                && node != self.node.as_bytes()
                && time_of(&id).is_some_and(|time| now().saturating_sub(time) < ISSUED_COOKIE_MILLIS)
            {
                self.learn(site, cookies);
            }
            self.position = id;
        }
        Ok(is_any)
    }

    /// Messages about a site before it existed were missed: sites start after this thread, and with reloads.
    fn begin_again_for_new_sites(&mut self) {
        let sites = self.sites.all();
        let is_new = |site: &Arc<IssuedCookies>| {
            !self.read_for.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(site)))
        };
        if sites.iter().any(is_new) {
            self.position = BEGINNING.to_vec();
        }
        self.read_for = sites.iter().map(Arc::downgrade).collect();
    }

    fn learn(&self, site: &[u8], cookies: &[u8]) {
        let sites = self.sites.all();
        let Some(site) = sites.iter().find(|known| known.site().as_bytes() == site) else { return };
        for cookie in cookies.chunks_exact(COOKIE_BYTES).take(ENTRY_COOKIES) {
            let [a, b, c, d, e, f, g, h, network] = *cookie else { continue };
            if site.learn((u64::from_le_bytes([a, b, c, d, e, f, g, h]), network), now()) {
                self.received.inc();
            }
        }
    }
}

/// The time in an id of an entry, such as `1700000000000-0`.
fn time_of(id: &[u8]) -> Option<u64> {
    std::str::from_utf8(id).ok()?.split('-').next()?.parse().ok()
}
