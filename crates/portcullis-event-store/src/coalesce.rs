//! A flood of events that are alike becomes one event with a count.
//!
//! Alike are events of one site with the same verdict and reason (class, rule, control or refusal) from one
//! network (IPv4 /24, IPv6 /48) on one path template. The first events of a second are samples and stay;
//! those above the limit are counted in the first of them, which is given out when the second is over.

use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;
use std::sync::Arc;

use hashbrown::HashMap;
use portcullis_event::Event;

use crate::paths;
use crate::recorded::Recorded;

/// Kinds that are counted apart in a second; events of further ones stay as they are.
const KINDS_MAX: usize = 4096;

/// The events of the present second.
pub(crate) struct Coalescer {
    /// Events a second of one kind that stay; 0: all.
    above: u32,
    second: u64,
    kinds: HashMap<u64, Kind>,
    path: String,
}

#[derive(Default)]
struct Kind {
    seen: u32,
    /// The first event above the limit, and those that it stands for.
    held: Option<(Recorded, u64)>,
}

/// Fate of an event.
#[derive(Debug)]
pub(crate) enum Fate {
    /// It is stored.
    Stays(Recorded),
    /// It is held back, to be given out with a count.
    Held,
    /// It is counted in one that is held back.
    Counted,
}

impl Coalescer {
    pub(crate) fn new(above: u32) -> Coalescer {
        Coalescer { above, second: 0, kinds: HashMap::new(), path: String::new() }
    }

    pub(crate) fn look_at(&mut self, recorded: Recorded) -> Fate {
        if self.above == 0 {
            return Fate::Stays(recorded);
        }
        let key = self.key(&recorded.event);
        if self.kinds.len() >= KINDS_MAX && !self.kinds.contains_key(&key) {
            return Fate::Stays(recorded);
        }
        let kind = self.kinds.entry(key).or_default();
        if kind.seen < self.above {
            kind.seen += 1;
            return Fate::Stays(recorded);
        }
        match &mut kind.held {
            Some((_, count)) => {
                *count = count.saturating_add(recorded.event.count);
                Fate::Counted
            }
            None => {
                let count = recorded.event.count;
                kind.held = Some((recorded, count));
                Fate::Held
            }
        }
    }

    /// Gives out what was held back in a second that is over. `now` in milliseconds.
    pub(crate) fn due(&mut self, now: u64) -> Vec<Recorded> {
        if now / 1000 == self.second {
            return Vec::new();
        }
        self.second = now / 1000;
        self.flush()
    }

    /// Gives out what is held back.
    pub(crate) fn flush(&mut self) -> Vec<Recorded> {
        let held = self.kinds.drain().filter_map(|(_, kind)| kind.held);
        let counted = held.map(|(recorded, count)| {
            let mut event = Event::clone(&recorded.event);
            event.count = count;
            Recorded { event: Arc::new(event), ..recorded }
        });
        let mut events: Vec<Recorded> = counted.collect();
        events.sort_by_key(|recorded| recorded.event.time);
        events
    }

    fn key(&mut self, event: &Event) -> u64 {
        let mut path = std::mem::take(&mut self.path);
        paths::template(event.request.target.as_bytes(), &mut path);
        let verdict = &event.verdict;
        let rule = verdict.rule_id.or_else(|| event.matches.first().map(|found| found.rule.rule_id));
        let class = verdict.class.or_else(|| event.findings.first().map(|found| found.class));
        let control = verdict.control.as_ref().map(|control| (control.by, &control.name));
        let key = (
            &event.site,
            network(&event.client.addr),
            verdict.action,
            (class, rule, control),
            &event.refusal,
            event.upstream_error,
            &path,
        );
        let hash = self.kinds.hasher().hash_one(Alike(key));
        self.path = path;
        hash
    }
}

/// Hashes by the parts that implement `Hash`.
struct Alike<T>(T);

impl<T: Hash> Hash for Alike<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

fn network(address: &str) -> Option<IpAddr> {
    Some(match address.parse::<IpAddr>().ok()?.to_canonical() {
        IpAddr::V4(address) => IpAddr::from((u32::from(address) & 0xFFFF_FF00).to_be_bytes()),
        IpAddr::V6(address) => IpAddr::from((u128::from(address) >> 80 << 80).to_be_bytes()),
    })
}

#[cfg(test)]
mod tests {
    use portcullis_event::{Action, Timestamp};

    use super::*;

    fn event(client: &str, target: &str, action: Action) -> Arc<Event> {
        let mut event = Event::new("r", Timestamp::from_epoch_millis(5000));
        event.client.addr = client.to_owned();
        event.request.target = target.to_owned();
        event.verdict.action = action;
        Arc::new(event)
    }

    fn stays(coalescer: &mut Coalescer, event: Arc<Event>) -> bool {
        matches!(coalescer.look_at(Recorded { event, request: None }), Fate::Stays(_))
    }

    #[test]
    fn a_flood_becomes_samples_and_one_event_with_the_exact_count() {
        let mut coalescer = Coalescer::new(10);
        assert!(coalescer.due(5000).is_empty());
        let flood =
            |n: u32| event(&format!("192.0.2.{}", n % 256), &format!("/item/{n}?a={n}"), Action::Deny);
        let stayed = (0..100_000).filter(|n| stays(&mut coalescer, flood(*n))).count();
        assert_eq!(stayed, 10);
        // Each of these differs in one thing.
        assert!(stays(&mut coalescer, event("192.0.3.1", "/item/1", Action::Deny)));
        assert!(stays(&mut coalescer, event("192.0.2.1", "/items/1", Action::Deny)));
        assert!(stays(&mut coalescer, event("192.0.2.1", "/item/1", Action::Detect)));
        assert!(coalescer.due(5999).is_empty());
        let due = coalescer.due(6000);
        assert_eq!(due.iter().map(|recorded| recorded.event.count).collect::<Vec<_>>(), [99_990]);
        // The next second begins anew.
        assert!(stays(&mut coalescer, flood(1)));
        assert!(coalescer.flush().is_empty());
    }

    #[test]
    fn memory_is_bounded_whatever_the_kinds() {
        let mut coalescer = Coalescer::new(1);
        for n in 0..100_000u32 {
            let address = IpAddr::from((n << 8).to_be_bytes()).to_string();
            assert!(stays(&mut coalescer, event(&address, "/", Action::Deny)));
        }
        assert_eq!(coalescer.kinds.len(), KINDS_MAX);
        // And without a limit there are none.
        let mut off = Coalescer::new(0);
        assert!((0..100).all(|_| stays(&mut off, event("192.0.2.1", "/", Action::Deny))));
        assert_eq!(off.kinds.len(), 0);
    }
}
