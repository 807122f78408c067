//! The bans of a running proxy, as the rest of the process sees them.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::state::Shared;

/// The bans of a running proxy, for those who look after it.
#[derive(Clone)]
pub struct BanList {
    pub(crate) shared: Arc<Shared>,
}

/// A client that is banned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Banned {
    /// The scope: `all`, a site, or `SITE/ROUTE`.
    pub ban: Arc<str>,
    /// An address, or a network.
    pub client: String,
    /// The time that is left.
    pub left: Duration,
    /// Bans in a row.
    pub count: u32,
}

impl BanList {
    /// All who are banned now, those whose bans end last first.
    pub fn list(&self) -> Vec<Banned> {
        let now = self.shared.clock(Instant::now());
        let generation = self.shared.current.load();
        let mut found = Vec::new();
        for (name, table) in &generation.controls.jails {
            found.extend(table.list(now).into_iter().map(|(client, ban)| Banned {
                ban: Arc::clone(name),
                client,
                left: ban.left,
                count: ban.count,
            }));
        }
        found.sort_by_key(|banned| std::cmp::Reverse(banned.left));
        found
    }

    /// Bans a client whatever it did, where `ban` says, or everywhere: for `length` at least. The bans that
    /// this makes or extends; none where it would not be refused.
    pub fn impose(&self, ban: Option<&str>, client: IpAddr, length: Duration) -> Vec<Banned> {
        let now = self.shared.clock(Instant::now());
        let generation = self.shared.current.load();
        let named =
            generation.controls.jails.iter().filter(|(name, _)| ban.is_none_or(|ban| ban == &***name));
        let imposed = named.filter_map(|(name, table)| {
            let (client, left) = table.impose(client, length, now)?;
            Some(Banned { ban: Arc::clone(name), client, left, count: 1 })
        });
        imposed.collect()
    }

    /// Lets a client in again, and forgets what it did: where `ban` says, or everywhere. How many bans that
    /// ends.
    pub fn lift(&self, ban: Option<&str>, client: IpAddr) -> usize {
        let now = self.shared.clock(Instant::now());
        let generation = self.shared.current.load();
        let named =
            generation.controls.jails.iter().filter(|(name, _)| ban.is_none_or(|ban| ban == &***name));
        named.filter(|(_, table)| table.lift(client, now)).count()
    }
}
