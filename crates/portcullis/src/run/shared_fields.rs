//! Nodes show each other what they have learned, through Redis.
//!
//! ```text
//! what this node has seen ──when it is new──> SET learned:SITE:NODE ──> GET of every node ──> merged, and published
//!                                            HSET learned:SITE NODE time
//! ```
//!
//! Each node tells of its own clients alone, and each replaces what it has told before: nothing counts twice,
//! however often it is read. What another node has told stays until it tells something else, over restarts,
//! too; what cannot be read changes nothing.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portcullis_learn::Store;
use portcullis_metrics::{Counter, Registry, catalogue};
use portcullis_resp::{Client, Command, Connection, Limits, Reply};

use crate::learned_files as files;
use crate::run::kept::lock;
use crate::run::learner::{KEPT, Learner, NODES_MAX};
use crate::run::redis::{ANSWER_TIME, Health, Link, Session, now};

/// Between two looks at what others have told.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Between two times that a site's fields are sent.
const SEND_EVERY: Duration = Duration::from_secs(30);
/// Bytes of what one node has learned of one site.
const BYTES_MAX: usize = 8 << 20;
/// What an answer may bring.
const LIMITS: Limits = Limits { bytes_max: BYTES_MAX + (1 << 20), values_max: 4_096 };
/// Digits of a node's name.
const NAME_DIGITS: usize = 16;

type Learners = Arc<Mutex<BTreeMap<String, Learner>>>;

struct Work {
    prefix: String,
    node: String,
    learners: Learners,
    /// By site: what was sent and read.
    sites: BTreeMap<String, Told>,
    sent: Counter,
    received: Counter,
    refused: Counter,
}

#[derive(Default)]
struct Told {
    /// The state that was sent, when, and what the entry says.
    sent: Option<(u64, Instant, String)>,
    /// By node: what its entry said when it was read.
    read: BTreeMap<String, String>,
}

/// Shares what these sites learn. None where that cannot be, which is reported; dropped, it tells what is
/// left.
pub fn start(
    redis: &portcullis_config::Redis,
    data: Option<&Path>,
    learners: Learners,
    registry: &Registry,
) -> Option<Link> {
    let complain = |error: &dyn std::fmt::Display| {
        eprintln!("portcullis: learned fields are not shared: {error}");
    };
    let client = Client::new(&redis.url);
    let client = client.inspect_err(|error| complain(&format_args!("the address of redis: {error}"))).ok()?;
    let node = files::node(data).inspect_err(|error| complain(error)).ok()?;
    let shared = |result| registry.counter(&catalogue::LEARNED_SHARED, &[result]);
    let work = Work {
        prefix: redis.prefix.clone(),
        node,
        learners,
        sites: BTreeMap::new(),
        sent: shared("sent"),
        received: shared("received"),
        refused: shared("refused"),
    };
    let health = Health::new(
        registry.gauge(&catalogue::LEARNED_REDIS_CONNECTED, &[]),
        registry.counter(&catalogue::LEARNED_REDIS_FAILURES, &[]),
    );
    Link::start("learn-redis", client, LIMITS, health, work).inspect_err(|error| complain(error)).ok()
}

impl Session for Work {
    const LOST: &str = "each node knows of fields what it has learned itself, and what others told before";
    const BACK: &str = "what fields carry is shared";

    fn run(&mut self, connection: &mut Connection, health: &mut Health, stop: &AtomicBool) -> io::Result<()> {
        loop {
            let is_last = stop.load(Ordering::Relaxed);
            let names: Vec<String> = lock(&self.learners).keys().cloned().collect();
            for name in &names {
                let mut told = self.sites.remove(name).unwrap_or_default();
                let result = self.look(connection, name, &mut told, is_last);
                self.sites.insert(name.clone(), told);
                result?;
            }
            health.works(Self::BACK);
            if is_last {
                return Ok(());
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
    }
}

impl Work {
    /// Reads what others have told of a site, and tells what is new here.
    fn look(
        &self,
        connection: &mut Connection,
        site: &str,
        told: &mut Told,
        is_last: bool,
    ) -> io::Result<()> {
        let entry = self.entry(site);
        let listed = connection.ask(&Command::new("HGETALL").arg(&entry), ANSWER_TIME)?.accepted()?;
        let listed = nodes(listed, now());
        for (node, time) in &listed {
            if *node == self.node || told.read.get(node) == Some(time) {
                continue;
            }
            let state = self.state(site, node);
            let length = connection.ask(&Command::new("STRLEN").arg(&state), ANSWER_TIME);
            let text = match length {
                // Gone since: it will tell again.
                Ok(Reply::Int(0)) => continue,
                Ok(Reply::Int(length)) if length <= BYTES_MAX as i64 => {
                    connection.ask(&Command::new("GET").arg(&state), ANSWER_TIME)?.text().unwrap_or_default()
                }
                // Too long, or no text.
                Ok(_) => Vec::new(),
                Err(error) if error.kind() == io::ErrorKind::Other => Vec::new(),
                Err(error) => return Err(error),
            };
            told.read.insert(node.clone(), time.clone());
            self.take(site, node, &text);
        }
        told.read.retain(|node, _| listed.iter().any(|(listed, _)| listed == node));
        let own = listed.iter().find(|(node, _)| *node == self.node).map(|(_, time)| time);
        self.send(connection, site, told, own, is_last)
    }

    /// Takes over what a node has told, if it can be read.
    fn take(&self, site: &str, node: &str, text: &[u8]) {
        let limits = lock(&self.learners).get(site).map(|learner| *learner.limits());
        let Some(limits) = limits else { return };
        let store = Store::from_text(text, limits);
        let mut learners = lock(&self.learners);
        let Some(learner) = learners.get_mut(site) else { return };
        match store {
            Ok(store) => {
                self.received.inc();
                learner.told_by(node, store, text);
            }
            Err(error) => {
                self.refused.inc();
                learner.report(&format!("what node {node} has learned cannot be read: {error}"));
            }
        }
    }

    /// Tells the others what is new, and all of it if Redis has lost it. `own`: what is there.
    fn send(
        &self,
        connection: &mut Connection,
        site: &str,
        told: &mut Told,
        own: Option<&String>,
        is_last: bool,
    ) -> io::Result<()> {
        let is_there = |time: &String| own == Some(time);
        let (state, text) = {
            let learners = lock(&self.learners);
            let Some(learner) = learners.get(site) else { return Ok(()) };
            let state = learner.state();
            let is_told = told.sent.as_ref().is_some_and(|(sent, at, time)| {
                is_there(time) && (*sent == state || !is_last && at.elapsed() < SEND_EVERY)
            });
            if is_told || state == 0 {
                return Ok(());
            }
            (state, learner.own_text())
        };
        if text.len() > BYTES_MAX {
            if let Some(learner) = lock(&self.learners).get_mut(site) {
                let (is, most) = (text.len() >> 20, BYTES_MAX >> 20);
                learner.report(&format!("{is} MiB of learned fields are not shared, {most} at most are"));
            }
            return Ok(());
        }
        let time = now().to_string();
        let (entry, kept) = (self.entry(site), KEPT.as_secs());
        let commands = [
            Command::new("SET")
                .arg(&self.state(site, &self.node))
                .arg(text.as_bytes())
                .arg(b"EX")
                .number(kept),
            Command::new("HSET").arg(&entry).arg(self.node.as_bytes()).arg(time.as_bytes()),
            Command::new("EXPIRE").arg(&entry).number(kept),
        ];
        for answer in connection.exchange(&commands, ANSWER_TIME)? {
            answer.accepted()?;
        }
        self.sent.inc();
        told.sent = Some((state, Instant::now(), time));
        Ok(())
    }

    fn entry(&self, site: &str) -> Vec<u8> {
        format!("{}learned:{}", self.prefix, files::file_name(site)).into_bytes()
    }

    fn state(&self, site: &str, node: &str) -> Vec<u8> {
        format!("{}learned:{}:{node}", self.prefix, files::file_name(site)).into_bytes()
    }
}

/// The nodes of a list that are listened to, with the times of what they have told; this node among them.
fn nodes(listed: Reply, now: u64) -> Vec<(String, String)> {
    let texts: Vec<String> =
        listed.items().into_iter().filter_map(|item| String::from_utf8(item.text()?).ok()).collect();
    let mut found: Vec<(u64, String, String)> = texts
        .chunks_exact(2)
        .filter_map(|pair| {
            let [node, time] = pair else { return None };
            let is_name = node.len() == NAME_DIGITS && node.bytes().all(|b| b.is_ascii_hexdigit());
            let at: u64 = time.parse().ok()?;
            let is_heard = now.saturating_sub(at) < KEPT.as_millis() as u64;
            (is_name && is_heard).then(|| (at, node.clone(), time.clone()))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.truncate(NODES_MAX + 1);
    found.into_iter().map(|(_, node, time)| (node, time)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list that another node has written is bounded, and so is each of its entries.
    #[test]
    fn hostile_lists() {
        let bulk = |text: &str| Reply::Text(text.as_bytes().to_vec());
        let now = 1_800_000_000_000u64;
        let mut items = Vec::new();
        for (node, time) in [
            ("0123456789abcdef", "1799999999000"),
            ("0123456789abcdef0", "1799999999000"),
            ("../../etc/passwd", "1799999999000"),
            ("00000000000000aa", "soon"),
            ("00000000000000ab", "1790000000000"),
        ] {
            items.extend([bulk(node), bulk(time)]);
        }
        assert_eq!(nodes(Reply::List(items), now), [("0123456789abcdef".into(), "1799999999000".into())]);
        let many =
            (0..9_999).flat_map(|node| [bulk(&format!("{node:016x}")), bulk(&(now - node).to_string())]);
        let heard = nodes(Reply::List(many.collect()), now);
        assert_eq!((heard.len(), &*heard[0].0), (NODES_MAX + 1, "0000000000000000"));
        assert!(nodes(Reply::Int(7), now).is_empty());
    }
}
