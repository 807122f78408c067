//! DNS answers, each until its time is up, a bounded number of them.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Instant;

/// Two halves: new answers go into the young one; when that is full it becomes the old one, whose entries are
/// forgotten.
#[derive(Debug, Default)]
pub(super) struct Cache {
    young: HashMap<String, Entry>,
    old: HashMap<String, Entry>,
    /// The settings that the answers were asked under.
    generation: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// None: there is no such name.
    address: Option<Ipv4Addr>,
    until: Instant,
}

impl Cache {
    /// Forgets the answers of other settings, which may have come from other servers.
    pub(super) fn belongs_to(&mut self, generation: u64) {
        if self.generation != generation {
            *self = Cache { generation, ..Cache::default() };
        }
    }

    /// The remembered answer for `name`, if there is one.
    pub(super) fn find(&self, name: &str, now: Instant) -> Option<Option<Ipv4Addr>> {
        let entry = self.young.get(name).or_else(|| self.old.get(name))?;
        (entry.until > now).then_some(entry.address)
    }

    /// Remembers an answer. `entries_max` is for both halves.
    pub(super) fn keep(&mut self, name: &str, address: Option<Ipv4Addr>, until: Instant, entries_max: usize) {
        if self.young.len() >= entries_max.div_ceil(2) {
            self.old = std::mem::take(&mut self.young);
        }
        if entries_max > 0 {
            self.young.insert(name.to_owned(), Entry { address, until });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn answers_end_and_are_bounded() {
        let (now, later) = (Instant::now(), Instant::now() + Duration::from_secs(60));
        let mut cache = Cache::default();
        for number in 0..1000 {
            cache.keep(&format!("n{number}"), Some(Ipv4Addr::LOCALHOST), later, 10);
            assert!(cache.young.len() + cache.old.len() <= 10);
            assert_eq!(cache.find(&format!("n{number}"), now), Some(Some(Ipv4Addr::LOCALHOST)));
        }
        assert_eq!(cache.find("n996", now), Some(Some(Ipv4Addr::LOCALHOST)));
        assert_eq!(cache.find("n1", now), None);
        cache.keep("none", None, later, 10);
        assert_eq!(cache.find("none", now), Some(None));
        assert_eq!(cache.find("none", later), None);
        cache.belongs_to(1);
        assert_eq!(cache.find("none", now), None);
        cache.keep("x", None, later, 0);
        assert_eq!(cache.find("x", now), None);
    }
}
