//! Several nodes, one set of records: changes go to Redis in batches, and what came of them comes back to every node.
//!
//! ```text
//! this node's changes ──every 40 ms, one script──> hash of each record, stream of what they are now
//! every node          <──waits on the stream────── values after everybody's changes; our own unsent ones go on top
//! ```
//!
//! No request waits for any of this. While Redis is away changes gather, one sum for each counter; a batch that was sent
//! when the connection broke is sent again under its number, so that it counts once. A record that Redis lost is made anew
//! from what this node knows.

use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use portcullis_engine::RecordId;
use redis::{Client, Connection, RedisError, Value};

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
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(5);
const MERGE: &str = include_str!("merge.lua");

/// Where the records that nodes share are.
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
    let client = match Client::open(redis.url.as_str()) {
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
        notices,
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
    unanswered: Option<redis::Cmd>,
    /// The last entry of the stream that was read.
    position: Vec<u8>,
    notices: Notices,
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
            self.map.metrics.redis_failures.inc();
            self.notices
                .say("redis", &format!("redis cannot be reached, collections go on in this node: {error}"));
            if began.elapsed() > ANSWER_TIME {
                delay = RETRY_FIRST;
            }
            std::thread::park_timeout(delay);
            delay = (delay * 2).min(RETRY_MAX);
        }
    }

    /// One connection, until it breaks or we are to stop.
    fn session(&mut self, stop: &AtomicBool) -> Result<(), RedisError> {
        let mut connection = self.client.get_connection_with_timeout(CONNECT_TIME)?;
        connection.set_read_timeout(Some(ANSWER_TIME))?;
        connection.set_write_timeout(Some(ANSWER_TIME))?;
        if let Some(batch) = &self.unanswered {
            batch.exec(&mut connection)?;
            self.unanswered = None;
        }
        if !self.meet(&mut connection, stop)? {
            return Ok(());
        }
        self.map.metrics.redis_connected.set(1);
        if self.notices.was_said("redis") {
            self.notices.forget("redis");
            self.notices.say("redis again", "redis is reached again, collections are shared");
        }
        let mut sent = Instant::now();
        loop {
            if stop.load(Relaxed) {
                return self.send(&mut connection);
            }
            let wait = SEND_EVERY.saturating_sub(sent.elapsed());
            if wait.is_zero() {
                self.send(&mut connection)?;
                sent = Instant::now();
            } else {
                self.read(&mut connection, wait)?;
            }
        }
    }

    /// Reads all there is, after the place in the stream where reading goes on. False if we are to stop.
    fn meet(&mut self, connection: &mut Connection, stop: &AtomicBool) -> Result<bool, RedisError> {
        let began = Instant::now();
        let mut last = redis::cmd("XREVRANGE");
        last.arg(self.keys.named("changes")).arg("+").arg("-").arg("COUNT").arg(1);
        let last: Value = last.query(connection)?;
        self.position = entries(last).into_iter().next().map_or_else(|| b"0-0".to_vec(), |entry| entry.id);
        // What was sent before is in what is read now, or lost with it.
        self.map.forget_sent();
        let here = self.keys.named("here");
        let known: Value = redis::cmd("SET").arg(&here).arg(1).arg("GET").query(connection)?;
        let mut cursor = b"0".to_vec();
        loop {
            if stop.load(Relaxed) {
                return Ok(false);
            }
            if began.elapsed() > MEET_TIME {
                let seconds = MEET_TIME.as_secs();
                return Err((redis::ErrorKind::Io, "SCAN", format!("has no end after {seconds} s")).into());
            }
            let pattern = [glob_escaped(&self.keys.prefix).as_slice(), b"r:*"].concat();
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(FETCH_RECORDS);
            let mut answer = items(scan.query(connection)?).into_iter();
            let next = answer.next().and_then(bytes);
            let keys: Vec<Vec<u8>> =
                answer.next().map(items).unwrap_or_default().into_iter().filter_map(bytes).collect();
            for keys in keys.chunks(FETCH_RECORDS) {
                self.fetch(connection, keys)?;
            }
            match next {
                Some(next) if next != b"0" => cursor = next,
                _ => break,
            }
        }
        if matches!(known, Value::Nil) {
            // A new Redis, or one that lost everything.
            self.map.offer_all();
        }
        Ok(true)
    }

    /// Takes over whole records.
    fn fetch(&self, connection: &mut Connection, keys: &[Vec<u8>]) -> Result<(), RedisError> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut pipeline = redis::pipe();
        for key in keys {
            pipeline.cmd("HGETALL").arg(key);
        }
        let answers: Vec<Value> = pipeline.query(connection)?;
        for (key, answer) in keys.iter().zip(answers) {
            let mut values = items(answer).into_iter();
            let mut fields = Fields::new();
            while let (Some(name), Some(value)) =
                (values.next().and_then(bytes), values.next().and_then(bytes))
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
    fn send(&mut self, connection: &mut Connection) -> Result<(), RedisError> {
        loop {
            let outgoing = self.map.take_unsent(BATCH_RECORDS);
            if outgoing.is_empty() {
                return Ok(());
            }
            self.batch += 1;
            let began = Instant::now();
            let command = self.command(&outgoing);
            let result = command.exec(connection);
            match result {
                Ok(()) => self.map.metrics.redis_exchange.observe(began.elapsed()),
                // An answer that is about the batch itself would come again and again.
                Err(error) if error.code() == Some("ERR") => {
                    self.map.forget_sent();
                    return Err(error);
                }
                // No answer, or one about the server: loading, read only, out of memory.
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

    fn command(&self, outgoing: &[Outgoing]) -> redis::Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(MERGE).arg(outgoing.len() + 2);
        command.arg(self.keys.named("changes")).arg(self.keys.named(&format!("node:{}", self.node)));
        for record in outgoing {
            command.arg(self.keys.record(crate::shard::split(&record.id)));
        }
        command.arg(now()).arg(&self.node).arg(self.batch).arg(STREAM_ENTRIES);
        for record in outgoing {
            command.arg(record.base.len());
            for (name, value) in &record.base {
                command.arg(&**name).arg(&**value);
            }
            command.arg(record.changes.len());
            for (name, change) in &record.changes {
                command.arg(&**name);
                match change {
                    Waiting::Unset => command.arg("-"),
                    Waiting::Set(value) => command.arg("=").arg(&**value),
                    Waiting::Add { delta, decay, seen, first } => {
                        command.arg("+").arg(*delta).arg(*decay).arg(*seen).arg(*first)
                    }
                };
            }
        }
        command
    }

    /// Waits for changes of others, and for our own to come back.
    fn read(&mut self, connection: &mut Connection, wait: Duration) -> Result<(), RedisError> {
        let mut command = redis::cmd("XREAD");
        command.arg("COUNT").arg(1_000).arg("BLOCK").arg(wait.as_millis().max(1) as u64).arg("STREAMS");
        command.arg(self.keys.named("changes")).arg(&self.position);
        let answer: Value = command.query(connection)?;
        let Some(stream) = items(answer).into_iter().next() else { return Ok(()) };
        let Some(list) = items(stream).into_iter().nth(1) else { return Ok(()) };
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
        for keys in unknown.chunks(FETCH_RECORDS) {
            self.fetch(connection, keys)?;
        }
        Ok(())
    }
}

/// An entry of a stream.
struct Entry {
    id: Vec<u8>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
}

fn entries(list: Value) -> Vec<Entry> {
    let entry = |entry: Value| {
        let mut parts = items(entry).into_iter();
        let id = bytes(parts.next()?)?;
        let mut values = items(parts.next()?).into_iter();
        let mut fields = Vec::new();
        while let (Some(name), Some(value)) = (values.next().and_then(bytes), values.next().and_then(bytes)) {
            fields.push((name, value));
        }
        Some(Entry { id, fields })
    };
    items(list).into_iter().filter_map(entry).collect()
}

fn items(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.into_bytes()),
        Value::Int(number) => Some(number.to_string().into_bytes()),
        _ => None,
    }
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
