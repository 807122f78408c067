//! The events of the last minutes, kept in memory: the last sink of the event log.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::event_text;
use crate::terminal::Paint;

/// Events that are kept, however short they are.
const EVENTS_MAX: usize = 10_000;
/// Lines on standard error in a second; what is more is counted.
const SAID_A_SECOND: u32 = 10;

/// Events that are kept: the newest, as many as there is room for.
#[derive(Debug)]
pub struct Recent {
    bytes_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// One JSON text each, without its line break.
    lines: VecDeque<Arc<str>>,
    bytes: usize,
}

impl Recent {
    /// Room for `bytes_max` bytes of events.
    pub fn new(bytes_max: usize) -> Arc<Recent> {
        Arc::new(Recent { bytes_max, kept: Mutex::default() })
    }

    fn keep(&self, line: &str) {
        let kept = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes += line.len();
        kept.lines.push_back(Arc::from(line));
        while kept.bytes > self.bytes_max || kept.lines.len() > EVENTS_MAX {
            let Some(oldest) = kept.lines.pop_front() else { break };
            kept.bytes -= oldest.len();
        }
    }

    /// The event of this request; a request has one.
    pub fn of(&self, request_id: &str) -> Option<Arc<str>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.lines.iter().rev().find(|line| id(line) == Some(request_id)).cloned()
    }

    /// The last `count` events, oldest first.
    pub fn last(&self, count: usize) -> Vec<Arc<str>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let skipped = kept.lines.len().saturating_sub(count);
        kept.lines.iter().skip(skipped).cloned().collect()
    }
}

/// An event begins with its schema and its id.
fn id(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("\"request_id\":\"")?;
    (before.len() < 32).then(|| rest.split('"').next()).flatten()
}

/// Takes JSON lines, in any pieces.
#[derive(Debug)]
pub struct Keeper {
    recent: Arc<Recent>,
    /// A line that has not ended yet.
    begun: Vec<u8>,
    /// Events are printed on standard error.
    says: bool,
    second: Instant,
    said: u32,
    unsaid: u64,
}

impl Keeper {
    /// Keeps what is written to it in `recent`. `says`: with a line on standard error for each event.
    pub fn new(recent: Arc<Recent>, says: bool) -> Keeper {
        Keeper { recent, begun: Vec::new(), says, second: Instant::now(), said: 0, unsaid: 0 }
    }

    fn take(&mut self, line: &[u8]) {
        // They are written by serde_json.
        let Ok(line) = std::str::from_utf8(line) else { return };
        if line.len() <= self.recent.bytes_max {
            self.recent.keep(line);
        }
        if self.says {
            self.say(line);
        }
    }

    /// Not more than so many in a second: an attacker makes as many events as there are requests.
    fn say(&mut self, line: &str) {
        if self.second.elapsed() > Duration::from_secs(1) {
            if self.unsaid > 0 {
                eprintln!("portcullis: and {} events more; `portcullis events` lists them", self.unsaid);
            }
            (self.second, self.said, self.unsaid) = (Instant::now(), 0, 0);
        }
        if self.said == SAID_A_SECOND {
            self.unsaid += 1;
            return;
        }
        self.said += 1;
        if let Ok(event) = serde_json::from_str(line) {
            eprintln!("portcullis: {}", event_text::painted(&event, Paint::of_stderr()));
        }
    }
}

impl Write for Keeper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let mut line = std::mem::take(&mut self.begun);
            line.extend_from_slice(&rest[..end]);
            self.take(&line);
            rest = &rest[end + 1..];
        }
        self.begun.extend_from_slice(rest);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str, more: &str) -> String {
        format!("{{\"schema\":1,\"request_id\":\"{id}\",\"more\":\"{more}\"}}\n")
    }

    #[test]
    fn the_newest_are_kept_within_their_bytes() {
        let recent = Recent::new(200);
        let mut keeper = Keeper::new(Arc::clone(&recent), false);
        let text: String = (0..20).map(|number| event(&format!("r{number}"), "x")).collect();
        for piece in text.as_bytes().chunks(7) {
            keeper.write_all(piece).unwrap();
        }
        assert_eq!(recent.of("r19").as_deref(), Some(event("r19", "x").trim_end()));
        assert_eq!(recent.of("r0"), None);
        assert!(recent.last(100).len() > 2 && recent.kept.lock().unwrap().bytes <= 200);
        assert_eq!(recent.last(1)[0], recent.of("r19").unwrap());
        // One that is too long for all of the room does not push out the others.
        keeper.write_all(event("long", &"x".repeat(500)).as_bytes()).unwrap();
        assert!(recent.of("long").is_none() && recent.of("r19").is_some());
    }

    /// Text that a client sends stands further behind, and cannot pass for the id.
    #[test]
    fn an_id_is_that_of_the_event() {
        let recent = Recent::new(1000);
        let mut keeper = Keeper::new(Arc::clone(&recent), false);
        keeper.write_all(event("real", "\\\"request_id\\\":\\\"fake\\\"").as_bytes()).unwrap();
        keeper.write_all(b"{\"x\":\"0123456789012345678901234567890\",\"request_id\":\"fake\"}\n").unwrap();
        assert!(recent.of("real").is_some() && recent.of("fake").is_none());
    }
}
