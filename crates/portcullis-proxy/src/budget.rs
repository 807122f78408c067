//! Memory for bodies: one budget of the process, with a share for each client network, so that many bodies
//! cannot take the machine and no network can take what others need.
//!
//! Memory for a piece of a body is charged before it is taken, by what all copies of the piece may take, and
//! then corrected by what they did; and so is memory for the values of a body before it is taken apart. What
//! this takes for itself meanwhile is not charged: few bodies are taken apart at one time
//! ([`beside`](crate::beside)).

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use portcullis_config::Limits;
use portcullis_metrics::{EnumCounters, Gauge, Registry, catalogue};

use crate::memory::{Memory, Pressure};
use crate::network::{Member, NetworkKey, Networks, Prefixes, Unfinished};

/// A network that holds less finds room in the last eighth of the budget.
const LITTLE_BYTES: u64 = 1 << 20;
/// The time between two looks of a request that waits for memory.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The bytes that all bodies may take at one time.
pub(crate) struct Budget {
    max: AtomicU64,
    network_max: AtomicU64,
    bodies_max: AtomicU32,
    wait_max_ms: AtomicU64,
    used: AtomicU64,
    memory: Memory,
    prefixes: Prefixes,
    networks: Arc<Networks>,
    gauge: Gauge,
    refused: EnumCounters,
}

/// Why there is no memory for more of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// `limits.held_bodies` is used up.
    Process,
    /// The client's network has its share of it.
    Network,
    /// This body alone needs more than that share.
    Alone,
    /// The client's network has too many unfinished bodies.
    Count,
    /// Others need the memory that the client's network has the most of.
    Shed,
    /// The client's network has too many large bodies that wait for their inspection.
    Busy,
    /// The process is near the limit of its memory.
    Memory,
}

impl Full {
    /// Label values of `portcullis_bodies_refused_total`.
    const NAMES: [&'static str; 7] = ["process", "network", "alone", "count", "shed", "busy", "memory"];

    /// The status and text to answer with.
    pub(crate) fn answer(self) -> (u16, &'static str) {
        match self {
            Full::Alone => (
                413,
                "The request body needs more memory than one client may have (limits.network_held_bodies).",
            ),
            Full::Count => (503, "Your network has too many unfinished requests at this moment."),
            Full::Process | Full::Network | Full::Shed | Full::Busy | Full::Memory => {
                (503, "Too many large requests at this moment.")
            }
        }
    }
}

/// There is not enough memory for a body that rules made.
#[derive(Debug)]
pub(crate) struct NoMemory;

/// Bytes taken from a [`Budget`]; they go back when it is dropped.
pub(crate) struct Held {
    budget: Arc<Budget>,
    member: Member,
    bytes: u64,
}

impl Budget {
    pub(crate) fn new(limits: &Limits, registry: &Registry) -> Self {
        let budget = Budget {
            max: AtomicU64::default(),
            network_max: AtomicU64::default(),
            bodies_max: AtomicU32::default(),
            wait_max_ms: AtomicU64::default(),
            used: AtomicU64::default(),
            memory: Memory::new(limits, registry),
            prefixes: Prefixes::new(0, 0),
            networks: Arc::default(),
            gauge: registry.gauge(&catalogue::HELD_BODY_BYTES, &[]),
            refused: registry.enum_counters(&catalogue::BODIES_REFUSED, &[], &Full::NAMES),
        };
        budget.resize(limits);
        budget
    }

    /// Takes other settings; what is held stays held.
    pub(crate) fn resize(&self, limits: &Limits) {
        self.max.store(limits.held_body_bytes_max, Ordering::Relaxed);
        self.network_max.store(limits.network_held_body_bytes_max, Ordering::Relaxed);
        self.bodies_max.store(limits.network_bodies_max, Ordering::Relaxed);
        let wait = u64::try_from(limits.held_body_wait_max.as_millis()).unwrap_or(u64::MAX);
        self.wait_max_ms.store(wait, Ordering::Relaxed);
        self.prefixes.set(limits.network_prefix_v4, limits.network_prefix_v6);
        self.memory.resize(limits);
    }

    /// The network of a client.
    pub(crate) fn network_of(&self, address: IpAddr) -> NetworkKey {
        self.prefixes.of(address)
    }

    /// A member of the network of a client.
    pub(crate) fn join(&self, address: IpAddr) -> Member {
        self.networks.join(self.prefixes.of(address))
    }

    /// An empty share for one of a network.
    pub(crate) fn share(self: &Arc<Self>, member: Member) -> Held {
        Held { budget: Arc::clone(self), member, bytes: 0 }
    }

    /// Shows how much is held, and looks at the memory of the process; for each tick. Where there is too
    /// little of it the network that holds the most of it gives some back. True then.
    pub(crate) fn look(&self, now: Instant) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        self.gauge.set(i64::try_from(used).unwrap_or(i64::MAX));
        self.memory.look(now, used);
        self.ease()
    }

    fn ease(&self) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        if self.memory.pressure(used) == Pressure::None {
            return false;
        }
        if let Some(heaviest) = self.networks.heaviest() {
            heaviest.want(self.memory.excess(used));
        }
        true
    }

    /// Counts a body that is refused.
    pub(crate) fn count_refused(&self, full: Full) {
        self.refused.inc(full as usize);
    }

    /// The bytes up to which a network that holds `bytes` finds room. The last eighth is for those that hold
    /// little, and the more of it the less they hold: what is given back for a light network would else be
    /// taken by those that hold more and wait, too.
    fn most_for(&self, bytes: u64) -> u64 {
        let (max, little) = (self.max.load(Ordering::Relaxed), self.little());
        let kept_free = u128::from(max / 8) * u128::from(bytes.min(little)) / u128::from(little);
        max - u64::try_from(kept_free).unwrap_or(u64::MAX).min(max)
    }

    /// A network that holds less than this holds little.
    fn little(&self) -> u64 {
        (self.max.load(Ordering::Relaxed) / 16).clamp(1, LITTLE_BYTES)
    }

    /// True if the memory of the process leaves no room for `more` to a network that holds `bytes`.
    fn is_short(&self, bytes: u64, more: u64) -> bool {
        match self.memory.pressure(self.used.load(Ordering::Relaxed).saturating_add(more)) {
            Pressure::None => false,
            Pressure::Some => bytes >= self.little(),
            Pressure::Full => true,
        }
    }
}

impl Held {
    /// Takes `bytes` more, or says no and takes nothing.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let (budget, bytes) = (&self.budget, bytes as u64);
        let of_network = self.member.network().bytes().saturating_add(bytes);
        let used = budget.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if used > budget.max.load(Ordering::Relaxed)
            || of_network > budget.network_max.load(Ordering::Relaxed)
        {
            budget.used.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.member.add(bytes);
        self.bytes += bytes;
        true
    }

    /// Charges `bytes` in all: they are held already.
    pub(crate) fn set(&mut self, bytes: usize) {
        let bytes = bytes as u64;
        match bytes.checked_sub(self.bytes) {
            Some(more) => {
                self.budget.used.fetch_add(more, Ordering::Relaxed);
                self.member.add(more);
            }
            None => {
                self.budget.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
                self.member.subtract(self.bytes - bytes);
            }
        }
        self.bytes = bytes;
    }

    /// The member of a network that holds it.
    pub(crate) fn member(&self) -> &Member {
        &self.member
    }

    /// The bytes that are charged.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Charges `more` bytes that are about to be taken, or says why there is no room for them.
    pub(crate) fn reserve(&mut self, more: usize) -> Result<(), Full> {
        let (budget, more) = (&self.budget, more as u64);
        let of_network = self.member.network().bytes();
        if of_network.saturating_add(more) > budget.network_max.load(Ordering::Relaxed) {
            return Err(Full::Network);
        }
        if budget.is_short(of_network, more) {
            return Err(Full::Memory);
        }
        let used = budget.used.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        if used > budget.most_for(of_network) {
            budget.used.fetch_sub(more, Ordering::Relaxed);
            return Err(Full::Process);
        }
        self.member.add(more);
        self.bytes += more;
        Ok(())
    }

    /// True if with `more` bytes, and `beside` of the same client, this alone takes most of what a network
    /// may have. The last quarter is for the answer, and for others of the network.
    pub(crate) fn takes_most(&self, more: usize, beside: u64) -> bool {
        let bytes = self.bytes.saturating_add(beside).saturating_add(more as u64);
        bytes > self.budget.network_max.load(Ordering::Relaxed) / 4 * 3
    }

    /// As [`reserve`](Held::reserve), but waits until there is room. `beside` is held for the same client
    /// beside this.
    pub(crate) async fn wait_to_reserve(&mut self, more: usize, beside: u64) -> Result<(), Full> {
        // The time between looks, not that on the clock: a worker that comes late to look again, because
        // other programs have the processor, has given nobody the time to make room.
        let mut waited = Duration::ZERO;
        let wait_max = Duration::from_millis(self.budget.wait_max_ms.load(Ordering::Relaxed));
        loop {
            let own = self.bytes.saturating_add(beside);
            let full = match self.reserve(more) {
                Ok(()) => return Ok(()),
                Err(Full::Network)
                    if own.saturating_add(more as u64) > self.budget.network_max.load(Ordering::Relaxed) =>
                {
                    Full::Alone
                }
                Err(full) => full,
            };
            if matches!(full, Full::Process | Full::Memory) {
                self.have_others_give(own);
            }
            if self.member.gives_up(own) {
                return Err(Full::Shed);
            }
            if full == Full::Alone || waited >= wait_max {
                return Err(full);
            }
            tokio::time::sleep(LOOK_EVERY).await;
            waited += LOOK_EVERY;
        }
    }

    /// Has the network that holds the most give some of it back, if that is not ours.
    fn have_others_give(&self, own: u64) {
        let Some(heaviest) = self.budget.networks.heaviest() else { return };
        if heaviest.bytes() / 2 > self.member.network().bytes() {
            heaviest.want(own.max(self.budget.max.load(Ordering::Relaxed) / 64));
        }
    }

    /// Counts the body as one that has not come whole.
    pub(crate) fn begin_body(&self) -> Result<Unfinished, Full> {
        self.member.begin_body(self.budget.bodies_max.load(Ordering::Relaxed)).ok_or(Full::Count)
    }

    /// Waits until the memory is wanted back.
    pub(crate) async fn shed(&self, more: u64) {
        self.member.shed(self.bytes.saturating_add(more)).await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(max: u64, network_max: u64) -> Arc<Budget> {
        let limits = Limits {
            held_body_bytes_max: max,
            network_held_body_bytes_max: network_max,
            held_body_wait_max: Duration::from_millis(100),
            ..Limits::default()
        };
        Arc::new(Budget::new(&limits, &Registry::new()))
    }

    fn share(budget: &Arc<Budget>, address: &str) -> Held {
        budget.share(budget.join(address.parse().unwrap()))
    }

    #[test]
    fn gives_back_what_was_taken() {
        let budget = budget(10, 10);
        let mut a = share(&budget, "192.0.2.1");
        let mut b = share(&budget, "198.51.100.1");
        assert!(a.grow(6) && !b.grow(5) && b.grow(4) && !a.grow(1));
        drop(a);
        assert!(b.grow(6));
        b.set(3);
        assert_eq!((budget.used.load(Ordering::Relaxed), b.member.network().bytes()), (3, 3));
        drop(b);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn one_network_does_not_take_what_others_need() {
        let budget = budget(10, 6);
        let (mut a, mut neighbour) = (share(&budget, "192.0.2.1"), share(&budget, "192.0.2.2"));
        assert!(a.grow(5) && !neighbour.grow(2));
        neighbour.set(1);
        assert_eq!(neighbour.reserve(1), Err(Full::Network));
        let mut other = share(&budget, "198.51.100.1");
        assert!(other.grow(4));
        assert_eq!(other.reserve(1), Err(Full::Process));
    }

    #[test]
    fn what_is_reserved_is_charged_and_corrected() {
        let budget = budget(1_600, 1_600);
        let mut one = share(&budget, "192.0.2.1");
        assert_eq!(one.reserve(1_000), Ok(()));
        assert_eq!((one.bytes(), budget.used.load(Ordering::Relaxed)), (1_000, 1_000));
        // It holds much, so the last eighth is not for it.
        assert_eq!((one.reserve(401), one.reserve(400)), (Err(Full::Process), Ok(())));
        one.set(10);
        assert_eq!((budget.used.load(Ordering::Relaxed), one.member.network().bytes()), (10, 10));
    }

    #[tokio::test]
    async fn near_the_limit_of_memory_those_who_hold_much_find_no_room() {
        let budget = budget(64 << 20, 64 << 20);
        let (mut heavy, mut light) = (share(&budget, "192.0.2.1"), share(&budget, "198.51.100.1"));
        heavy.set(20 << 20);
        for (percent, want) in
            [(84, [Ok(()), Ok(())]), (86, [Err(Full::Memory), Ok(())]), (95, [Err(Full::Memory); 2])]
        {
            budget.memory.pretend(percent);
            let found = [heavy.reserve(1_000), light.reserve(1_000)];
            assert_eq!(found, want, "{percent}");
        }
        // The client network that holds the most gives it back; its request is refused with the reason.
        budget.memory.pretend(86);
        budget.ease();
        heavy.shed(0).await;
        assert_eq!(light.wait_to_reserve(1_000, 0).await, Ok(()));
        budget.memory.pretend(95);
        assert_eq!(light.wait_to_reserve(1_000, 0).await, Err(Full::Memory));
    }

    /// Heavy networks that wait take nothing of what others of them give back, as long as a light one could
    /// need it.
    #[test]
    fn what_is_given_back_is_for_light_networks_first() {
        let budget = budget(1_600, 1_600);
        let (mut heavy, mut other) = (share(&budget, "192.0.2.1"), share(&budget, "198.51.100.1"));
        let mut light = share(&budget, "203.0.113.1");
        heavy.set(900);
        other.set(700);
        let tried = |shares: [&mut Held; 3]| {
            shares.map(|share| {
                let found = share.reserve(1);
                share.set(share.bytes as usize - usize::from(found.is_ok()));
                found
            })
        };
        assert_eq!(tried([&mut heavy, &mut other, &mut light]), [Err(Full::Process); 3]);
        for left in [899, 800, 700] {
            heavy.set(left);
            let full = tried([&mut heavy, &mut other, &mut light]);
            assert_eq!(full, [Err(Full::Process), Err(Full::Process), Ok(())], "{left}");
        }
        // It is light as long as it holds a sixteenth at most, and those that hold less come before it.
        let mut lighter = share(&budget, "192.0.3.1");
        light.set(50);
        for (left, full) in [(800, Err(Full::Process)), (748, Ok(()))] {
            heavy.set(left);
            assert_eq!(tried([&mut heavy, &mut light, &mut lighter])[1..], [full, Ok(())], "{left}");
        }
        light.set(0);
        heavy.set(699);
        assert_eq!(tried([&mut heavy, &mut other, &mut light]), [Ok(()); 3]);
        light.set(100);
        assert_eq!(light.reserve(1), Err(Full::Process));
    }

    #[tokio::test]
    async fn the_heaviest_network_gives_way() {
        let budget = budget(100, 100);
        let mut heavy = share(&budget, "192.0.2.1");
        heavy.set(100);
        let mut light = share(&budget, "198.51.100.1");
        // The heavy network's share is asked to go; the light one gets the memory.
        let shed = async {
            heavy.shed(0).await;
            drop(heavy);
        };
        let (waited, ()) = tokio::join!(light.wait_to_reserve(1, 0), shed);
        assert_eq!(waited, Ok(()));
    }

    /// Two looks are not a wait, however much time other programs have taken between them.
    #[tokio::test]
    async fn a_worker_that_looks_late_has_not_waited() {
        let budget = budget(100, 100);
        let mut heavy = share(&budget, "192.0.2.1");
        heavy.set(100);
        let mut light = share(&budget, "198.51.100.1");
        let busy = async {
            std::thread::sleep(Duration::from_millis(150));
            tokio::time::sleep(Duration::from_millis(30)).await;
            drop(heavy);
        };
        let (waited, ()) = tokio::join!(light.wait_to_reserve(1, 0), busy);
        assert_eq!(waited, Ok(()));
    }

    #[tokio::test]
    async fn waiting_ends() {
        let budget = budget(10, 10);
        let mut a = share(&budget, "192.0.2.1");
        a.set(9);
        let mut b = share(&budget, "192.0.2.2");
        b.set(1);
        assert_eq!(b.wait_to_reserve(1, 0).await, Err(Full::Network));
        // No waiting helps one who needs more than all of it.
        assert_eq!(b.wait_to_reserve(1, 9).await, Err(Full::Alone));
    }
}
