//! Memcached: `gets` for many keys, then `cas` or `add` for each, in its text protocol. The clock is that of
//! this node.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use portcullis_access::Grant;

use crate::link::{Keeper, PATIENCE, Question};

/// Another node may change a key in between: so often it is tried again.
const TRIES: usize = 8;
/// Of a line or value; the longest that we write has 20 digits.
const LINE_BYTES_MAX: u64 = 512;
/// Memcached takes longer times for dates.
const EXPIRY_MAX: u64 = 30 * 24 * 3600;

pub(crate) struct Memcached {
    stream: BufReader<Timed>,
    prefix: Vec<u8>,
}

/// A connection from which an exchange is read until its deadline, however many bytes drip in.
struct Timed {
    stream: TcpStream,
    deadline: Instant,
}

impl io::Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(into)
    }
}

/// The state of a key: a time in microseconds, and the number that tells this state from others.
type Found = Option<(u64, u64)>;

impl Memcached {
    pub(crate) fn connect(address: &str, prefix: &str) -> io::Result<Memcached> {
        let address = address.to_socket_addrs()?.next().ok_or_else(|| io::Error::other("no such host"))?;
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let stream = Timed { stream, deadline: Instant::now() };
        Ok(Memcached { stream: BufReader::new(stream), prefix: prefix.as_bytes().to_vec() })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.stream.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(String::from_utf8_lossy(&line).trim_end().to_string())
    }

    /// Begins an exchange, all of which has to come to its end in time.
    fn begin(&mut self) {
        self.stream.get_mut().deadline = Instant::now() + PATIENCE;
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().stream.write_all(bytes)
    }

    /// Returns the states that the store has under these names.
    fn gets(&mut self, names: &[Vec<u8>]) -> io::Result<Vec<Found>> {
        let mut command = b"gets".to_vec();
        for name in names {
            command.push(b' ');
            command.extend_from_slice(name);
        }
        command.extend_from_slice(b"\r\n");
        self.send(&command)?;
        let mut found = vec![None; names.len()];
        // A value for each name at most, and the end.
        for _ in 0..=names.len() {
            let line = self.line()?;
            if line == "END" {
                return Ok(found);
            }
            // VALUE <key> <flags> <bytes> <cas unique>
            let words: Vec<&str> = line.split(' ').collect();
            let ["VALUE", name, _, _, unique] = words[..] else { return Err(unexpected(&line)) };
            let unique = unique.parse().map_err(|_| unexpected(&line))?;
            let value = self.line()?;
            if let Some(at) = names.iter().position(|own| own == name.as_bytes()) {
                // A value that is not one of our numbers counts as nothing.
                found[at] = Some((value.trim().parse().unwrap_or(0), unique));
            }
        }
        Err(io::Error::other("memcached has more values than were asked for"))
    }

    /// Writes those times where nothing has changed since. Returns whether each was written.
    fn write(&mut self, changes: &[(&[u8], u64, Found)], now: u64) -> io::Result<Vec<bool>> {
        let mut commands = Vec::new();
        for (name, time, before) in changes {
            let seconds = (time.saturating_sub(now) / 1_000_000 + 2).min(EXPIRY_MAX);
            let (text, verb) = (time.to_string(), if before.is_some() { "cas" } else { "add" });
            commands.extend_from_slice(verb.as_bytes());
            commands.push(b' ');
            commands.extend_from_slice(name);
            commands.extend_from_slice(format!(" 0 {seconds} {}", text.len()).as_bytes());
            if let Some((_, unique)) = before {
                commands.extend_from_slice(format!(" {unique}").as_bytes());
            }
            commands.extend_from_slice(format!("\r\n{text}\r\n").as_bytes());
        }
        self.send(&commands)?;
        changes
            .iter()
            .map(|_| match self.line()?.as_str() {
                "STORED" => Ok(true),
                "EXISTS" | "NOT_FOUND" | "NOT_STORED" => Ok(false),
                other => Err(unexpected(other)),
            })
            .collect()
    }
}

impl Keeper for Memcached {
    fn lease(&mut self, questions: &[Question]) -> io::Result<Vec<Option<Grant>>> {
        let names: Vec<Vec<u8>> =
            questions.iter().map(|question| [&self.prefix[..], &question.name].concat()).collect();
        let mut grants = vec![None; questions.len()];
        self.begin();
        let mut open: Vec<usize> = (0..questions.len()).collect();
        for _ in 0..TRIES {
            let asked: Vec<Vec<u8>> = open.iter().map(|at| names[*at].clone()).collect();
            let found = self.gets(&asked)?;
            let now = microseconds();
            let mut changes = Vec::new();
            for (at, found) in open.iter().zip(found) {
                let (grant, time) = decide(&questions[*at], found.map_or(0, |(time, _)| time), now);
                grants[*at] = Some(grant);
                changes.push((&names[*at][..], time, found));
            }
            let written = self.write(&changes, now)?;
            open = open.into_iter().zip(written).filter(|(_, written)| !written).map(|(at, _)| at).collect();
            if open.is_empty() {
                return Ok(grants);
            }
        }
        // Others were faster each time.
        open.into_iter().for_each(|at| grants[at] = None);
        Ok(grants)
    }

    fn ping(&mut self) -> io::Result<()> {
        self.begin();
        self.send(b"version\r\n")?;
        let line = self.line()?;
        if line.starts_with("VERSION") { Ok(()) } else { Err(unexpected(&line)) }
    }
}

/// As the script for Redis does.
fn decide(question: &Question, tat: u64, now: u64) -> (Grant, u64) {
    let Question { interval_us: interval, burst, order, .. } = question;
    let full = now.saturating_add(burst.saturating_mul(*interval));
    // A later time in the store is a mistake of a clock or of another writer.
    let most = now.saturating_add(question.owed_max().saturating_mul(*interval));
    let tat = tat.clamp(now, most).saturating_add(order.debt.saturating_mul(*interval));
    match full.saturating_sub(tat) / interval {
        0 => {
            let wait = tat.saturating_sub(now).saturating_sub((burst - 1).saturating_mul(*interval));
            (Grant::None(Duration::from_micros(wait.max(1))), tat)
        }
        room => {
            let tokens = room.min(order.want);
            (Grant::Tokens(tokens), tat.saturating_add(tokens.saturating_mul(*interval)))
        }
    }
}

fn microseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

fn unexpected(line: &str) -> io::Error {
    io::Error::other(format!("memcached says `{line}`"))
}

#[cfg(test)]
mod tests {
    use portcullis_access::Order;

    use super::*;

    #[test]
    fn a_time_in_the_future_is_a_mistake() {
        let question =
            Question { name: Vec::new(), interval_us: 1_000, burst: 20, order: Order { debt: 1, want: 5 } };
        let now = 1_000_000_000;
        for far in [now + 80_001, now + 86_400_000_000, u64::MAX] {
            let (grant, time) = decide(&question, far, now);
            assert_eq!(grant, Grant::None(Duration::from_micros(62_000)), "{far}");
            assert_eq!(time, now + 81_000);
            // Requests that nodes have let through on credit are owed.
            let (_, owed) = decide(&question, now + 30_000, now);
            assert_eq!(owed, now + 31_000);
        }
        assert_eq!(decide(&question, now + 10_000, now), (Grant::Tokens(5), now + 16_000));
    }
}
