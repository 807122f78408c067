//! Requests that repeat an attack many times a second: beyond a limit one event stands for all of them.
//!
//! An event costs about half as much as the inspection that led to it: it is described, redacted, queued and
//! written for each receiver. The first of a kind in a second have events of their own, and so has the first
//! one above the limit, which is held back until the second is over and counts the others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use portcullis_event::Event;
use portcullis_inspect::Decision;
use portcullis_metrics::Counter;

/// Kinds that are distinguished in a second; requests of further ones have events of their own.
const KINDS_MAX: usize = 256;

/// Requests that are alike but for the texts that the client chose.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The client.
    pub client: IpAddr,
    /// The site's name.
    pub site: Arc<str>,
    /// The route's name.
    pub route: Arc<str>,
    /// What was decided.
    pub decision: Decision,
}

/// The events of the present second, of one worker.
#[derive(Debug)]
pub struct Repeats {
    /// Events a second of one kind that are made; 0: all.
    above: u32,
    second: u64,
    kinds: HashMap<Kind, Seen>,
    coalesced: Counter,
}

#[derive(Debug, Default)]
struct Seen {
    made: u32,
    /// The first event above the limit, which counts those behind it.
    held: Option<Box<Event>>,
}

/// What becomes of the event of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is made and given out.
    Own,
    /// It is made and [held back](Repeats::hold).
    Held(Kind),
    /// It is not made: another one counts it.
    Counted,
}

impl Repeats {
    /// Beyond `above` events of a kind in a second one stands for all; 0: none does. Those that are not made
    /// are counted in `coalesced`, too.
    pub fn new(above: u32, coalesced: Counter) -> Repeats {
        Repeats { above, second: 0, kinds: HashMap::new(), coalesced }
    }

    /// True if any event may be left out.
    pub fn is_on(&self) -> bool {
        self.above > 0
    }

    /// Decides on the event of a request of this kind. [`due`](Repeats::due) is to be called before.
    pub fn turn(&mut self, kind: Kind) -> Turn {
        if !self.is_on() || self.kinds.len() >= KINDS_MAX && !self.kinds.contains_key(&kind) {
            return Turn::Own;
        }
        let seen = self.kinds.entry(kind.clone()).or_default();
        match &mut seen.held {
            None if seen.made < self.above => {
                seen.made += 1;
                Turn::Own
            }
            None => Turn::Held(kind),
            Some(held) => {
                held.count = held.count.saturating_add(1);
                self.coalesced.inc();
                Turn::Counted
            }
        }
    }

    /// Holds back the event of [`Turn::Held`].
    pub fn hold(&mut self, kind: Kind, event: Box<Event>) {
        self.kinds.entry(kind).or_default().held = Some(event);
    }

    /// Gives out what was held back in a second that is over.
    pub fn due(&mut self, second: u64) -> Vec<Event> {
        // Clocks that are read at different times may say an earlier second.
        if second <= self.second {
            return Vec::new();
        }
        self.second = second;
        self.flush()
    }

    /// Gives out what is held back.
    pub fn flush(&mut self) -> Vec<Event> {
        let mut held: Vec<Event> =
            self.kinds.drain().filter_map(|(_, seen)| seen.held.map(|event| *event)).collect();
        held.sort_by_key(|event| event.time);
        held
    }
}

#[cfg(test)]
mod tests {
    use portcullis_event::{Action, Timestamp};
    use portcullis_metrics::{Registry, catalogue};
    use portcullis_types::RuleId;

    use super::*;

    fn kind(client: u32, rule: u32) -> Kind {
        Kind {
            client: IpAddr::from(client.to_be_bytes()),
            site: "s".into(),
            route: "/".into(),
            decision: Decision { action: Action::Deny, rule: Some(RuleId(rule)), class: None, matches: 0 },
        }
    }

    fn repeats(above: u32) -> Repeats {
        Repeats::new(above, Registry::new().counter(&catalogue::EVENTS_COALESCED, &[]))
    }

    /// The requests of `kinds`, in this order, through `repeats`: the events that are made, with their count.
    fn events(repeats: &mut Repeats, kinds: impl Iterator<Item = Kind>, second: u64) -> Vec<Event> {
        let mut given = repeats.due(second);
        for (number, kind) in kinds.enumerate() {
            let event = || Box::new(Event::new(number.to_string(), Timestamp::from_epoch_millis(1)));
            match repeats.turn(kind) {
                Turn::Own => given.push(*event()),
                Turn::Held(kind) => repeats.hold(kind, event()),
                Turn::Counted => {}
            }
        }
        given
    }

    fn sum(events: &[Event]) -> u64 {
        events.iter().map(|event| event.count).sum()
    }

    #[test]
    fn each_request_is_in_one_event_and_samples_come_first() {
        let mut repeats = repeats(10);
        // Three clients, one of which meets two rules.
        let flood = || (0..4000).map(|n| kind(n % 4 / 2 * 2 + n % 2, n % 4 / 3));
        let first = events(&mut repeats, flood(), 7);
        assert_eq!((first.len(), sum(&first)), (40, 40));
        let ids: Vec<&str> = first.iter().map(|event| &*event.request_id).take(5).collect();
        assert_eq!(ids, ["0", "1", "2", "3", "4"], "the first ones of each kind");
        assert_eq!(repeats.coalesced.value(), 4000 - 40 - 4);
        assert!(repeats.due(7).is_empty());
        let later = repeats.due(8);
        assert_eq!((later.len(), sum(&later)), (4, 4000 - 40));
        assert!(repeats.flush().is_empty());
        // The next second begins anew.
        assert_eq!(events(&mut repeats, flood().take(8), 8).len(), 8);
    }

    #[test]
    fn nothing_is_lost_if_an_event_is_not_made() {
        let mut repeats = repeats(1);
        assert_eq!(repeats.turn(kind(1, 1)), Turn::Own);
        // The event that was to be held does not come: the next one takes its place.
        assert_eq!(repeats.turn(kind(1, 1)), Turn::Held(kind(1, 1)));
        assert_eq!(sum(&events(&mut repeats, (0..5).map(|_| kind(1, 1)), 0)), 0);
        assert_eq!(sum(&repeats.flush()), 5);
    }

    #[test]
    fn memory_is_bounded_whoever_attacks() {
        let mut repeats = repeats(1);
        let all = events(&mut repeats, (0..10_000).map(|n| kind(n, 1)), 0);
        let again = events(&mut repeats, (0..10_000).map(|n| kind(n, 1)), 0);
        assert_eq!((all.len(), repeats.kinds.len()), (10_000, KINDS_MAX));
        assert_eq!(sum(&again) + sum(&repeats.flush()), 10_000);
    }

    #[test]
    fn without_a_limit_each_has_its_own() {
        let mut repeats = repeats(0);
        assert_eq!(events(&mut repeats, (0..1000).map(|_| kind(1, 1)), 0).len(), 1000);
        assert!(!repeats.is_on() && repeats.kinds.is_empty());
    }
}
