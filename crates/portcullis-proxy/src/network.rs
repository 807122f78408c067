//! Client networks: the first bits of clients' addresses, and what those who share them hold of the process.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Locks over which networks are spread.
const SHARDS: usize = 16;

/// The first bits of an address, all others zero; IPv4 as in `::ffff:0:0/96`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NetworkKey(u128);

/// The lengths of the prefixes that make a network.
pub(crate) struct Prefixes {
    v4: AtomicU8,
    v6: AtomicU8,
}

impl NetworkKey {
    /// These bits.
    pub(crate) fn bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl Prefixes {
    pub(crate) fn new(v4: u8, v6: u8) -> Self {
        Prefixes { v4: AtomicU8::new(v4), v6: AtomicU8::new(v6) }
    }

    pub(crate) fn set(&self, v4: u8, v6: u8) {
        self.v4.store(v4, Ordering::Relaxed);
        self.v6.store(v6, Ordering::Relaxed);
    }

    /// The network of an address.
    pub(crate) fn of(&self, address: IpAddr) -> NetworkKey {
        let (bits, prefix) = match address.to_canonical() {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped().to_bits(), 96 + self.v4.load(Ordering::Relaxed).min(32)),
            IpAddr::V6(v6) => (v6.to_bits(), self.v6.load(Ordering::Relaxed).min(128)),
        };
        let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
        NetworkKey(bits & mask)
    }
}

/// Resources of the process that clients of one network hold.
pub(crate) struct Network {
    key: NetworkKey,
    members: AtomicUsize,
    /// Bytes of memory for bodies.
    bytes: AtomicU64,
    /// Request bodies that have not come whole.
    bodies: AtomicU32,
    /// Inspections that wait for a thread, or have one.
    jobs: AtomicU32,
    /// Bytes that unfinished bodies are to give back.
    wanted: AtomicU64,
    /// Told when some are wanted.
    shed: Notify,
}

/// The networks with members.
#[derive(Default)]
pub(crate) struct Networks {
    shards: [Mutex<HashMap<NetworkKey, Arc<Network>>>; SHARDS],
}

impl Networks {
    /// Joins a network, which is forgotten when its last member has left.
    pub(crate) fn join(self: &Arc<Self>, key: NetworkKey) -> Member {
        let mut shard = self.shard(key);
        let network = shard.entry(key).or_insert_with(|| {
            Arc::new(Network {
                key,
                members: AtomicUsize::new(0),
                bytes: AtomicU64::new(0),
                bodies: AtomicU32::new(0),
                jobs: AtomicU32::new(0),
                wanted: AtomicU64::new(0),
                shed: Notify::new(),
            })
        });
        network.members.fetch_add(1, Ordering::Relaxed);
        Member { network: Arc::clone(network), networks: Arc::clone(self) }
    }

    /// The network that holds the most memory.
    pub(crate) fn heaviest(&self) -> Option<Arc<Network>> {
        let mut heaviest: Option<Arc<Network>> = None;
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for network in shard.values() {
                if heaviest.as_ref().is_none_or(|known| known.bytes() < network.bytes()) {
                    heaviest = Some(Arc::clone(network));
                }
            }
        }
        heaviest
    }

    fn shard(&self, key: NetworkKey) -> MutexGuard<'_, HashMap<NetworkKey, Arc<Network>>> {
        // The bits of a prefix that differ stand anywhere.
        let folded = (key.0 >> 64) as u64 ^ key.0 as u64;
        let index = (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as usize;
        self.shards[index % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap().len()).sum()
    }
}

impl Network {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Has unfinished bodies give `bytes` back.
    pub(crate) fn want(&self, bytes: u64) {
        self.wanted.fetch_max(bytes.min(self.bytes()), Ordering::Relaxed);
        self.shed.notify_waiters();
    }
}

/// A member of a client network.
pub(crate) struct Member {
    network: Arc<Network>,
    networks: Arc<Networks>,
}

impl Member {
    pub(crate) fn key(&self) -> NetworkKey {
        self.network.key
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.network.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, bytes: u64) {
        self.network.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts a body that has not come whole, unless there are `most` of them.
    pub(crate) fn begin_body(&self, most: u32) -> Option<Unfinished> {
        let before = self.network.bodies.fetch_add(1, Ordering::Relaxed);
        let unfinished = Unfinished(self.clone());
        (before < most).then_some(unfinished)
    }

    /// Counts an inspection on a thread of its own.
    pub(crate) fn begin_job(&self) -> Job {
        let before = self.network.jobs.fetch_add(1, Ordering::Relaxed);
        Job { member: self.clone(), count: before + 1 }
    }

    /// True, and taken note of, if memory is wanted back from one who holds `bytes`.
    pub(crate) fn gives_up(&self, bytes: u64) -> bool {
        let wanted = &self.network.wanted;
        let less = |wanted: u64| (wanted > 0).then(|| wanted.saturating_sub(bytes.max(1)));
        wanted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Waits until memory is wanted back from one who holds `bytes`.
    pub(crate) async fn shed(&self, bytes: u64) {
        loop {
            let mut told = std::pin::pin!(self.network.shed.notified());
            // From here on a word is heard.
            told.as_mut().enable();
            if self.gives_up(bytes) {
                return;
            }
            told.await;
        }
    }
}

impl Clone for Member {
    fn clone(&self) -> Self {
        self.network.members.fetch_add(1, Ordering::Relaxed);
        Member { network: Arc::clone(&self.network), networks: Arc::clone(&self.networks) }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.network.members.fetch_sub(1, Ordering::AcqRel) == 1 {
            let mut shard = self.networks.shard(self.network.key);
            // A member may have joined before this thread had the lock.
            if self.network.members.load(Ordering::Acquire) == 0 {
                shard.remove(&self.network.key);
            }
        }
    }
}

/// An inspection on a thread of its own.
pub(crate) struct Job {
    member: Member,
    count: u32,
}

impl Job {
    /// The number of jobs of the network when this one began, with it.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.member.network.jobs.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A body that has not come whole.
pub(crate) struct Unfinished(Member);

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.network.bodies.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_of_one_prefix_are_one_network() {
        let prefixes = Prefixes::new(24, 48);
        let same = |a: &str, b: &str| prefixes.of(address(a)) == prefixes.of(address(b));
        assert!(same("192.0.2.1", "192.0.2.254") && !same("192.0.2.1", "192.0.3.1"));
        assert!(same("192.0.2.1", "::ffff:192.0.2.9"));
        assert!(same("2001:db8:1::1", "2001:db8:1:ffff::2") && !same("2001:db8:1::1", "2001:db8:2::1"));
        assert!(!same("::1", "0.0.0.1"));
        prefixes.set(32, 128);
        assert!(!same("192.0.2.1", "192.0.2.2") && !same("2001:db8::1", "2001:db8::2"));
    }

    #[test]
    fn a_network_is_forgotten_with_its_last_member() {
        let (networks, prefixes) = (Arc::new(Networks::default()), Prefixes::new(24, 48));
        let first = networks.join(prefixes.of(address("192.0.2.1")));
        let second = networks.join(prefixes.of(address("192.0.2.2")));
        let third = second.clone();
        first.add(5);
        assert_eq!((networks.len(), third.network().bytes()), (1, 5));
        first.subtract(5);
        drop((first, second));
        assert_eq!(networks.len(), 1);
        drop(third);
        assert_eq!(networks.len(), 0);
    }

    #[test]
    fn bodies_are_counted_up_to_the_most() {
        let networks = Arc::new(Networks::default());
        let member = networks.join(Prefixes::new(24, 48).of(address("192.0.2.1")));
        let first = member.begin_body(2);
        let second = member.begin_body(2);
        assert!(first.is_some() && second.is_some() && member.begin_body(2).is_none());
        drop(first);
        assert!(member.begin_body(2).is_some());
    }

    #[tokio::test]
    async fn as_much_is_given_up_as_is_wanted() {
        let networks = Arc::new(Networks::default());
        let member = networks.join(Prefixes::new(24, 48).of(address("192.0.2.1")));
        member.add(100);
        assert!(!member.gives_up(10));
        networks.heaviest().unwrap().want(15);
        member.shed(10).await;
        assert!(member.gives_up(10) && !member.gives_up(10));
    }
}
