//! Several nodes, one set of records: changes go to Redis in batches, and the results come back to every
//! node.
//!
//! ```text
//! this node's changes ──every 40 ms, one script──> hash of each record, stream of what they are now
//! every node          <──waits on the stream────── values after all nodes' changes; our own unsent ones go on top
//! ```
//!
//! No request waits for any of this. While Redis is away changes gather, one sum for each counter; a batch
//! that was sent when the connection broke is sent again under its number, so that it counts once. A record
//! that Redis lost is made anew from what this node knows.

use std::hash::BuildHasher as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use portcullis_engine::RecordId;
use portcullis_resp::{Client, Command, Connection, Limits, Reply};
use portcullis_types::Outage;

use crate::keeper::{Thread, now};
use crate::map::Map;
use crate::notice::{Notices, Say};
use crate::shared::{Changes, Named, Waiting};

/// Between two batches.
const SEND_EVERY: Duration = Duration::from_millis(40);
/// Records in a batch; Redis does nothing else while it applies one.
const BATCH_RECORDS: usize = 256;
/// Records asked for at once.
const FETCH_RECORDS: usize = 256;
/// Entries that the stream keeps, about.
const STREAM_ENTRIES: u32 = 100_000;
const CONNECT_TIME: Duration = Duration::from_secs(1);
const ANSWER_TIME: Duration = Duration::from_secs(2);
/// For reading all there is.
const MEET_TIME: Duration = Duration::from_secs(60);
/// Rounds of reading all there is without a pause between them.
const QUICK_ROUNDS: u64 = 500;
const ROUND_PAUSE: Duration = Duration::from_millis(2);
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// Bytes that an exchange may bring: a thousand changes of the largest records by default. Of larger records
/// fewer are asked for at once.
const ANSWER_BYTES_MAX: usize = 32 << 20;
/// Values of an exchange. If that is too few, fewer entries are requested.
const ANSWER_VALUES_MAX: usize = 512 << 10;
/// Changes read at once.
const READ_ENTRIES: usize = 1_000;
const FEWER_MAX: u32 = 10;
const MERGE: &str = include_str!("merge.lua");

/// The Redis server with the records that nodes share.
#[derive(Clone, PartialEq, Eq)]
pub struct Redis {
    /// `redis://[[user]:password@]host[:port][/database]`, or `rediss://` for TLS.
    pub url: String,
    /// Before every key.
    pub prefix: String,
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The URL may have a password.
        f.debug_struct("Redis").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// A record with its changes, on its way to Redis.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    /// See [`crate::shard::joined`].
    pub(crate) id: Box<[u8]>,
    /// For a Redis that does not have the record.
    pub(crate) base: Vec<Named>,
    pub(crate) changes: Changes,
}

/// Variables of a record as Redis has them; `None`: it is gone.
pub(crate) type Fields = Vec<(Vec<u8>, Option<Box<[u8]>>)>;

pub(crate) fn start(map: &Arc<Map>, redis: Redis, say: &Say) -> Option<Thread> {
    let mut notices = Notices::new(Arc::clone(say));
    let client = match Client::new(&redis.url) {
        Ok(client) => client,
        Err(error) => {
            notices.say("redis", &format!("the address of redis cannot be used: {error}"));
            return None;
        }
    };
    map.share.store(true, Relaxed);
    // Names this process among the nodes; not a secret.
    let node = std::hash::RandomState::new().hash_one((std::process::id(), now()));
    let mut link = Link {
        map: Arc::clone(map),
        client,
        keys: Keys { prefix: redis.prefix.into_bytes() },
        node: format!("{node:016x}"),
        batch: 0,
        unanswered: None,
        position: Vec::new(),
        fewer: 0,
        notices,
        outage: Outage::default(),
    };
    Thread::start("portcullis-redis", move |stop| link.run(stop))
}

struct Link {
    map: Arc<Map>,
    client: Client,
    keys: Keys,
    node: String,
    /// Number of the last batch.
    batch: u64,
    /// A batch that may or may not have arrived.
    unanswered: Option<Command>,
    /// The last entry of the stream that was read.
    position: Vec<u8>,
    /// Number of times that the size of a batch is halved.
    fewer: u32,
    notices: Notices,
    outage: Outage,
}

struct Keys {
    prefix: Vec<u8>,
}

impl Keys {
    fn named(&self, name: &str) -> Vec<u8> {
        [&self.prefix, name.as_bytes()].concat()
    }

    /// `r:2:ip:192.0.2.1`: the length says where the name ends.
    fn record(&self, id: RecordId<'_>) -> Vec<u8> {
        let length = format!("r:{}:", id.name.len());
        [self.prefix.as_slice(), length.as_bytes(), id.name, b":", id.key].concat()
    }

    fn id<'k>(&self, key: &'k [u8]) -> Option<RecordId<'k>> {
        let rest = key.strip_prefix(self.prefix.as_slice())?.strip_prefix(b"r:")?;
        let colon = rest.iter().position(|b| *b == b':')?;
        let length: usize = std::str::from_utf8(&rest[..colon]).ok()?.parse().ok()?;
        let (name, rest) = rest[colon + 1..].split_at_checked(length)?;
        Some(RecordId { name, key: rest.strip_prefix(b":")? })
    }
}

impl Link {
    fn run(&mut self, stop: &AtomicBool) {
        let mut delay = RETRY_FIRST;
        while !stop.load(Relaxed) {
            let began = Instant::now();
            let result = self.session(stop);
            self.map.metrics.redis_connected.set(0);
            let Err(error) = result else { return };
            if error.kind() == io::ErrorKind::InvalidData {
                // Too much, perhaps: the next time less is asked for.
                self.fewer = (self.fewer + 2).min(FEWER_MAX);
            }
            self.map.metrics.redis_failures.inc();
            if self.outage.failed() {
                let line =
                    format!("redis cannot be reached, collections are kept in this node only: {error}");
                self.notices.say("redis", &line);
            }
            if began.elapsed() > ANSWER_TIME {
                delay = RETRY_FIRST;
            }
            std::thread::park_timeout(delay);
            delay = (delay * 2).min(RETRY_MAX);
        }
    }

    /// One connection, until it breaks or we are to stop.
    fn session(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let limits = Limits {
            bytes_max: ANSWER_BYTES_MAX.max(self.record_bytes_max()),
            values_max: ANSWER_VALUES_MAX,
        };
        let mut connection = self.client.connect(CONNECT_TIME, limits)?;
        if let Some(batch) = &self.unanswered {
            connection.ask(batch, ANSWER_TIME)?;
            self.unanswered = None;
        }
        if !self.meet(&mut connection, stop)? {
            return Ok(());
        }
        self.map.metrics.redis_connected.set(1);
        let mut sent = Instant::now();
        loop {
            if stop.load(Relaxed) {
                return self.send(&mut connection);
            }
            let wait = SEND_EVERY.saturating_sub(sent.elapsed());
            if wait.is_zero() {
                self.send(&mut connection)?;
                sent = Instant::now();
                if self.outage.worked(now_ms()) {
                    self.notices.forget("redis");
                    self.notices.say("redis again", "redis is reachable again, collections are shared");
                }
            } else if !self.read(&mut connection, wait)? {
                // It should have waited so long for something to come.
                std::thread::park_timeout(wait.saturating_sub(sent.elapsed()));
            }
        }
    }

    /// Reads all there is, after the place in the stream where reading continues. False if we are to stop.
    fn meet(&mut self, connection: &mut Connection, stop: &AtomicBool) -> io::Result<bool> {
        let began = Instant::now();
        let last = Command::new("XREVRANGE").arg(&self.keys.named("changes")).arg(b"+").arg(b"-");
        let last = connection.ask(&last.arg(b"COUNT").number(1), ANSWER_TIME)?;
        self.position = entries(last).into_iter().next().map_or_else(|| b"0-0".to_vec(), |entry| entry.id);
        // Changes sent before are in the data read now, or lost with it.
        self.map.forget_sent();
        let here = Command::new("SET").arg(&self.keys.named("here")).number(1).arg(b"GET");
        let known = connection.ask(&here, ANSWER_TIME)?;
        let mut cursor = b"0".to_vec();
        for round in 0_u64.. {
            if round >= QUICK_ROUNDS {
                // A server may have many keys of others, or answer without end.
                std::thread::park_timeout(ROUND_PAUSE);
            }
            if stop.load(Relaxed) {
                return Ok(false);
            }
            if began.elapsed() > MEET_TIME {
                let seconds = MEET_TIME.as_secs();
                return Err(io::Error::other(format!("SCAN has no end after {seconds} s")));
            }
            let pattern = [glob_escaped(&self.keys.prefix).as_slice(), b"r:*"].concat();
            let scan = Command::new("SCAN").arg(&cursor).arg(b"MATCH").arg(&pattern).arg(b"COUNT");
            let scan = scan.number(FETCH_RECORDS as u64);
            let mut answer = connection.ask(&scan, ANSWER_TIME)?.items().into_iter();
            let next = answer.next().and_then(Reply::text);
            let keys = answer.next().map(Reply::items).unwrap_or_default();
            let keys: Vec<Vec<u8>> = keys.into_iter().filter_map(Reply::text).collect();
            for keys in keys.chunks(self.at_once(FETCH_RECORDS)) {
                if stop.load(Relaxed) {
                    return Ok(false);
                }
                self.fetch(connection, keys)?;
            }
            match next {
                Some(next) if next != b"0" => cursor = next,
                _ => break,
            }
        }
        if known == Reply::Nil {
            // A new Redis, or one that lost everything.
            self.map.offer_all();
        }
        Ok(true)
    }

    /// Takes over whole records.
    fn fetch(&self, connection: &mut Connection, keys: &[Vec<u8>]) -> io::Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let commands: Vec<Command> = keys.iter().map(|key| Command::new("HGETALL").arg(key)).collect();
        let answers = connection.exchange(&commands, ANSWER_TIME)?;
        for (key, answer) in keys.iter().zip(answers) {
            // A key of another type is no record, and concerns no other.
            let mut values = answer.items().into_iter();
            let mut fields = Fields::new();
            while let (Some(name), Some(value)) =
                (values.next().and_then(Reply::text), values.next().and_then(Reply::text))
            {
                fields.push((name, Some(value.into())));
            }
            if let (Some(id), false) = (self.keys.id(key), fields.is_empty()) {
                self.map.adopt(id, &fields, false, true, now());
            }
        }
        Ok(())
    }

    /// Sends what changed.
    fn send(&mut self, connection: &mut Connection) -> io::Result<()> {
        loop {
            let outgoing = self.map.take_unsent(BATCH_RECORDS);
            if outgoing.is_empty() {
                return Ok(());
            }
            self.batch += 1;
            let began = Instant::now();
            let command = self.command(&outgoing);
            let answer = connection.exchange(std::slice::from_ref(&command), ANSWER_TIME);
            match answer.map(|mut answers| answers.pop()) {
                Ok(Some(Reply::Refused(why))) => {
                    // An answer that is about the batch itself would be repeated without end; others are
                    // about the server: loading, read only, out of memory.
                    if is_about_batch(&why) {
                        self.map.forget_sent();
                    } else {
                        self.unanswered = Some(command);
                    }
                    return Err(io::Error::other(why));
                }
                Ok(_) => self.map.metrics.redis_exchange.observe(began.elapsed()),
                Err(error) => {
                    self.unanswered = Some(command);
                    return Err(error);
                }
            }
            if outgoing.len() < BATCH_RECORDS {
                return Ok(());
            }
        }
    }

    fn command(&self, outgoing: &[Outgoing]) -> Command {
        let mut command = Command::new("EVAL").arg(MERGE.as_bytes()).number(outgoing.len() as u64 + 2);
        command.push(&self.keys.named("changes"));
        command.push(&self.keys.named(&format!("node:{}", self.node)));
        for record in outgoing {
            command.push(&self.keys.record(crate::shard::split(&record.id)));
        }
        command = command.number(now()).arg(self.node.as_bytes()).number(self.batch).number(STREAM_ENTRIES);
        for record in outgoing {
            command = command.number(record.base.len() as u64);
            for (name, value) in &record.base {
                command = command.arg(name).arg(value);
            }
            command = command.number(record.changes.len() as u64);
            for (name, change) in &record.changes {
                command.push(name);
                command = match change {
                    Waiting::Unset => command.arg(b"-"),
                    Waiting::Set(value) => command.arg(b"=").arg(value),
                    Waiting::Add { delta, decay, seen, first } => {
                        command.arg(b"+").number(*delta).number(*decay).number(*seen).number(*first)
                    }
                };
            }
        }
        command
    }

    /// Waits for changes of others, and for our own to come back. False if none came.
    fn read(&mut self, connection: &mut Connection, wait: Duration) -> io::Result<bool> {
        let command = Command::new("XREAD").arg(b"COUNT").number(self.at_once(READ_ENTRIES) as u64);
        let command = command.arg(b"BLOCK").number(wait.as_millis().max(1) as u64).arg(b"STREAMS");
        let command = command.arg(&self.keys.named("changes")).arg(&self.position);
        let answer = connection.ask(&command, wait + ANSWER_TIME)?;
        let Some(stream) = answer.items().into_iter().next() else { return Ok(false) };
        let Some(list) = stream.items().into_iter().nth(1) else { return Ok(false) };
        let before = self.position.clone();
        self.fewer = self.fewer.saturating_sub(1);
        let mut unknown = Vec::new();
        for entry in entries(list) {
            self.position = entry.id;
            let mut fields = entry.fields.into_iter();
            let (Some((_, node)), Some((_, key))) = (fields.next(), fields.next()) else { continue };
            let Some(id) = self.keys.id(&key) else { continue };
            let fields: Fields = fields
                .filter_map(|(name, value)| match value.split_first()? {
                    (b'=', text) => Some((name, Some(text.into()))),
                    _ => Some((name, None)),
                })
                .collect();
            let own = node == self.node.as_bytes();
            if !self.map.adopt(id, &fields, own, false, now()) && !own && !unknown.contains(&key) {
                unknown.push(key);
            }
        }
        for keys in unknown.chunks(self.at_once(FETCH_RECORDS)) {
            self.fetch(connection, keys)?;
        }
        Ok(self.position != before)
    }

    /// Returns the number of records that fit into one exchange, of at most `most`.
    fn at_once(&self, most: usize) -> usize {
        ((ANSWER_BYTES_MAX / self.record_bytes_max()).clamp(1, most) >> self.fewer).max(1)
    }

    /// Bytes of a record in an answer: names come beside the values.
    fn record_bytes_max(&self) -> usize {
        self.map.record_bytes_max().saturating_mul(2).max(1)
    }
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    u64::try_from(now()).unwrap_or(0).saturating_mul(1000)
}

/// A refusal of the data that was sent, not of all data from this node.
fn is_about_batch(why: &str) -> bool {
    ["ERR", "WRONGTYPE", "NOSCRIPT"].iter().any(|kind| why.split(' ').next() == Some(*kind))
}

/// An entry of a stream.
struct Entry {
    id: Vec<u8>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
}

fn entries(list: Reply) -> Vec<Entry> {
    let entry = |entry: Reply| {
        let mut parts = entry.items().into_iter();
        let id = parts.next()?.text()?;
        let mut values = parts.next()?.items().into_iter();
        let mut fields = Vec::new();
        while let (Some(name), Some(value)) =
            (values.next().and_then(Reply::text), values.next().and_then(Reply::text))
        {
            fields.push((name, value));
        }
        Some(Entry { id, fields })
    };
    list.items().into_iter().filter_map(entry).collect()
}

/// `text` for a pattern of `SCAN`, where it stands for itself.
fn glob_escaped(text: &[u8]) -> Vec<u8> {
    text.iter()
        .flat_map(|byte| if b"*?[]\\^".contains(byte) { vec![b'\\', *byte] } else { vec![*byte] })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_their_record() {
        let keys = Keys { prefix: b"p:".to_vec() };
        for (name, key) in [("ip", "192.0.2.1"), ("shop:1_SESSION", "a:b:c"), ("global", "")] {
            let id = RecordId { name: name.as_bytes(), key: key.as_bytes() };
            assert_eq!(keys.id(&keys.record(id)), Some(id));
        }
        for bad in ["p:r:", "p:r:9:ip:a", "p:x:2:ip:a", "q:r:2:ip:a", "p:r:2:ipa"] {
            assert_eq!(keys.id(bad.as_bytes()), None, "{bad}");
        }
    }
}
