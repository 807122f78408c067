//! The endpoints of a group, and which of them a request goes to.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::breaker::{BreakerSettings, BreakerState, Permit};
use crate::ejection::EjectionSettings;
use crate::ring::Ring;
use crate::{Endpoint, Moment, Random};

/// The method of choosing an endpoint among those that are available.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// In turn, by weight, evenly interleaved (smooth weighted round robin).
    #[default]
    RoundRobin,
    /// The one with the fewest requests in flight for its weight.
    LeastConnections,
    /// The one of two random ones with fewer requests in flight for its weight.
    PowerOfTwo,
    /// By the hash of a key of the request, consistently. Requests without a key take turns.
    Hash,
}

/// One endpoint of a group.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its state; shared with all users of the same endpoint.
    pub endpoint: Arc<Endpoint>,
    /// Its place on the ring of hashes comes from this, for example `10.0.0.5:9000`.
    pub name: String,
    /// Its share of the requests; at least 1.
    pub weight: u32,
    /// Those of a higher number get requests only while none of a lower number is available.
    pub priority: u32,
}

/// The policy of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The method of choosing an endpoint.
    pub balance: Balance,
    /// Its share grows over this time after it has come back; not with [`Balance::Hash`].
    pub slow_start: Option<Duration>,
    /// None: no endpoint is ejected. An ejected one is asked only where there is no other.
    pub ejection: Option<EjectionSettings>,
    /// None: no breaker.
    pub breaker: Option<BreakerSettings>,
    /// Requests in flight at one endpoint.
    pub active_max: Option<u32>,
}

/// The input of a choice, beside the state of the endpoints.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The present time.
    pub now: Moment,
    /// Endpoints not to choose: they were tried before.
    pub tried: &'a [usize],
    /// The hash of the request's key, for [`Balance::Hash`].
    pub key: Option<u64>,
    /// The endpoint that the client has been at; chosen whatever the balance says if it is available.
    pub preferred: Option<usize>,
}

/// The reason why no endpoint was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// All are down, behind an open breaker, or were tried.
    Unavailable,
    /// All that are available have as many requests as they may.
    Full,
}

/// A chosen endpoint. Every grant is given back through [`Endpoints::release`].
#[derive(Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its index.
    pub endpoint: usize,
    /// Leave of its breaker.
    pub permit: Permit,
    /// Its breaker changed to this state: the request is the first probe.
    pub breaker: Option<BreakerState>,
}

/// The changes after the outcome of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The breaker is in this state now.
    pub breaker: Option<BreakerState>,
    /// The endpoint was ejected for this time.
    pub ejected: Option<Duration>,
}

/// The state of one worker between its choices.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// For smooth round robin: what each endpoint is owed.
    owed: Vec<i64>,
    random: Random,
}

/// The endpoints of a group.
#[derive(Debug)]
pub struct Endpoints {
    members: Vec<Member>,
    policy: Policy,
    ring: Option<Ring>,
    /// Held while it is decided whether one more may be ejected; never where a request succeeds.
    ejecting: Mutex<()>,
}

impl Endpoints {
    /// A group of these endpoints.
    pub fn new(members: Vec<Member>, policy: Policy) -> Endpoints {
        let named = members.iter().map(|member| (member.name.as_str(), member.weight));
        let ring = (policy.balance == Balance::Hash).then(|| Ring::new(named));
        Endpoints { members, policy, ring, ejecting: Mutex::new(()) }
    }

    /// Its endpoints.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// For one worker; workers with different seeds do not all begin with the same endpoint.
    pub fn rotation(&self, seed: u64) -> Rotation {
        let mut random = Random::new(seed);
        let mut owed = vec![0; self.members.len()];
        if let Some(first) = owed.get_mut(random.below(self.members.len() as u64) as usize) {
            *first = 1;
        }
        Rotation { owed, random }
    }

    /// Chooses an endpoint, and counts the request in.
    pub fn choose(&self, rotation: &mut Rotation, ask: &Ask<'_>) -> Result<Grant, Refused> {
        // Another worker may be faster to take the last place or the last probe; then the choice is made
        // again.
        for _ in 0..=self.members.len() {
            let index = self.pick(rotation, ask)?;
            let endpoint = &self.members[index].endpoint;
            if !endpoint.enter(self.policy.active_max) {
                continue;
            }
            let Some(settings) = &self.policy.breaker else {
                return Ok(Grant { endpoint: index, permit: Permit::FREE, breaker: None });
            };
            match endpoint.breaker.acquire(settings, ask.now) {
                Some((permit, breaker)) => return Ok(Grant { endpoint: index, permit, breaker }),
                None => endpoint.leave(),
            }
        }
        Err(Refused::Full)
    }

    /// The request has ended; `permit` is given if its outcome was never reported.
    pub fn release(&self, endpoint: usize, permit: Option<Permit>) {
        let endpoint = &self.members[endpoint].endpoint;
        if let Some(permit) = permit {
            endpoint.breaker.cancelled(permit);
        }
        endpoint.leave();
    }

    /// The endpoint did what it should.
    pub fn succeeded(&self, endpoint: usize, permit: Permit) -> Changes {
        let endpoint = &self.members[endpoint].endpoint;
        if self.policy.ejection.is_some() {
            endpoint.ejection.succeeded();
        }
        let settings = self.policy.breaker.as_ref();
        let breaker = settings.and_then(|settings| endpoint.breaker.succeeded(permit, settings));
        Changes { breaker, ejected: None }
    }

    /// The endpoint failed: no connection, no answer, or a bad one.
    pub fn failed(&self, endpoint: usize, permit: Permit, now: Moment) -> Changes {
        let failed = &self.members[endpoint].endpoint;
        let settings = self.policy.breaker.as_ref();
        let breaker = settings.and_then(|settings| failed.breaker.failed(permit, settings, now));
        let settings = self.policy.ejection.as_ref().filter(|settings| failed.ejection.failed(settings));
        let ejected = settings.and_then(|settings| {
            let _held = self.ejecting.lock().unwrap_or_else(PoisonError::into_inner);
            let ejected = self.members.iter().filter(|member| member.endpoint.is_ejected()).count();
            let may = ejected < settings.ejected_max(self.members.len());
            may.then(|| failed.ejection.eject(settings, now)).flatten()
        });
        Changes { breaker, ejected }
    }

    /// Takes endpoints back in whose ejection has ended; their indices. To be called several times a second.
    pub fn end_ejections(&self, now: Moment) -> Vec<usize> {
        let ended = |member: &Member| member.endpoint.is_ejected() && member.endpoint.ejection.end(now);
        let back: Vec<usize> = self
            .members
            .iter()
            .enumerate()
            .filter(|(_, member)| ended(member))
            .map(|(index, _)| index)
            .collect();
        for index in &back {
            self.members[*index].endpoint.is_back(now);
        }
        back
    }

    /// Endpoints that are not known to be out of order. A breaker whose time is up no longer speaks against
    /// its endpoint.
    pub fn healthy(&self, now: Moment) -> usize {
        let is_open = |endpoint: &Endpoint| {
            let settings = self.policy.breaker.as_ref();
            let is_open = endpoint.breaker_state() == BreakerState::Open;
            is_open && settings.is_some_and(|settings| !endpoint.breaker.admits(settings, now))
        };
        let is_good =
            |endpoint: &Endpoint| endpoint.is_healthy() && !endpoint.is_ejected() && !is_open(endpoint);
        self.members.iter().filter(|member| is_good(&member.endpoint)).count()
    }

    /// Returns true if an endpoint can be asked; `ejected`: although it is ejected.
    fn is_available(&self, index: usize, ask: &Ask<'_>, ejected: bool) -> bool {
        let endpoint = &self.members[index].endpoint;
        endpoint.is_healthy()
            && (ejected || !endpoint.is_ejected())
            && !ask.tried.contains(&index)
            && self.policy.breaker.as_ref().is_none_or(|settings| endpoint.breaker.admits(settings, ask.now))
    }

    /// The best priority among the endpoints that can be asked.
    fn tier(&self, ask: &Ask<'_>, ejected: bool) -> Option<u32> {
        let available = (0..self.members.len()).filter(|index| self.is_available(*index, ask, ejected));
        available.map(|index| self.members[index].priority).min()
    }

    fn has_room(&self, index: usize) -> bool {
        self.policy.active_max.is_none_or(|limit| self.members[index].endpoint.active() < limit)
    }

    fn pick(&self, rotation: &mut Rotation, ask: &Ask<'_>) -> Result<usize, Refused> {
        if let Some(index) = ask.preferred
            && self.is_available(index, ask, false)
            && self.has_room(index)
        {
            return Ok(index);
        }
        // That an endpoint is ejected is a guess from the past: rather one of those than none.
        let (tier, ejected) = match self.tier(ask, false) {
            Some(tier) => (tier, false),
            None => (self.tier(ask, true).ok_or(Refused::Unavailable)?, true),
        };
        let may = |index: &usize| {
            let is_of_tier = self.members[*index].priority == tier;
            is_of_tier && self.is_available(*index, ask, ejected) && self.has_room(*index)
        };
        let found = match (self.policy.balance, ask.key, &self.ring) {
            (Balance::Hash, Some(key), Some(ring)) => ring.walk(key).find(may),
            (Balance::RoundRobin | Balance::Hash, ..) => self.in_turn(rotation, ask.now, may),
            (Balance::LeastConnections, ..) => self.least_loaded(rotation, ask.now, may),
            (Balance::PowerOfTwo, ..) => self.of_two(rotation, ask.now, may),
        };
        found.ok_or(Refused::Full)
    }

    /// The weight that an endpoint has at present.
    fn weight(&self, index: usize, now: Moment) -> u64 {
        let member = &self.members[index];
        u64::from(member.weight) * member.endpoint.warmth(self.policy.slow_start, now)
    }

    /// Smooth weighted round robin, as nginx has it: each is owed its weight in every turn, and the one that
    /// is owed most pays for the turn.
    fn in_turn(&self, rotation: &mut Rotation, now: Moment, may: impl Fn(&usize) -> bool) -> Option<usize> {
        let mut total = 0;
        let mut best: Option<usize> = None;
        for index in (0..self.members.len()).filter(may) {
            let weight = self.weight(index, now) as i64;
            total += weight;
            rotation.owed[index] += weight;
            if best.is_none_or(|best| rotation.owed[index] > rotation.owed[best]) {
                best = Some(index);
            }
        }
        rotation.owed[best?] -= total;
        best
    }

    /// Chooses the endpoint with the least load. Where several are equal, which is usual under light load,
    /// they take turns.
    fn least_loaded(
        &self,
        rotation: &mut Rotation,
        now: Moment,
        may: impl Fn(&usize) -> bool,
    ) -> Option<usize> {
        let fewer = |best, other| if self.is_less_loaded(other, best, now) { other } else { best };
        let best = (0..self.members.len()).filter(&may).reduce(fewer)?;
        let equal = |index: &usize| may(index) && !self.is_less_loaded(best, *index, now);
        // Meanwhile another worker may have sent each of them a request.
        self.in_turn(rotation, now, equal).or(Some(best))
    }

    fn of_two(&self, rotation: &mut Rotation, now: Moment, may: impl Fn(&usize) -> bool) -> Option<usize> {
        let first = self.at_random(rotation, now, &may)?;
        let second = self.at_random(rotation, now, |index| *index != first && may(index)).unwrap_or(first);
        Some(if self.is_less_loaded(second, first, now) { second } else { first })
    }

    /// One at random, by weight.
    fn at_random(&self, rotation: &mut Rotation, now: Moment, may: impl Fn(&usize) -> bool) -> Option<usize> {
        let mut total = 0;
        let mut chosen = None;
        for index in (0..self.members.len()).filter(may) {
            let weight = self.weight(index, now);
            total += weight;
            if rotation.random.below(total) < weight {
                chosen = Some(index);
            }
        }
        chosen
    }

    /// `one` has less to do for its weight than `other`.
    fn is_less_loaded(&self, one: usize, other: usize, now: Moment) -> bool {
        let load = |index: usize| u64::from(self.members[index].endpoint.active());
        load(one) * self.weight(other, now) < load(other) * self.weight(one, now)
    }
}
