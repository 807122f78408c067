//! The endpoints of one site, within bounds.

use std::collections::HashMap;

use portcullis_learn::{DEPTH_MAX, segments, spelled};
use serde::{Deserialize, Serialize};

use crate::batch::{Batch, Details, Observation};
use crate::endpoint::{Endpoint, day};
use crate::segment::is_file_type;
use crate::tree::Node;

/// Bytes of a path, its values replaced.
pub const TEMPLATE_BYTES_MAX: usize = 256;
/// One network may have one in so many of the places, for endpoints that nobody else has asked.
pub const FOUNDER_SHARE: usize = 4;
/// An endpoint that nobody has asked for so many days may be replaced by a new one.
pub const IDLE_DROP_DAYS: u32 = 90;
/// After a search that found no endpoint to drop, the next one waits.
const SEARCH_EVERY_S: u64 = 600;
/// Endpoints that are reported at a time.
const NEWS_MAX: usize = 16;
/// Methods that make endpoints: those of HTTP that ask for something, and those of WebDAV.
const METHODS: &[&str] = &[
    "GET",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "QUERY",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "REPORT",
    "SEARCH",
];

/// Limits of what is kept, and the definition of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Endpoints.
    pub endpoints_max: usize,
    /// Seconds from the first exchange during which all endpoints are expected to be new.
    pub learning_s: u64,
    /// Seconds after which an endpoint that nobody has asked is reported as gone.
    pub idle_s: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { endpoints_max: 2_000, learning_s: 7 * 86_400, idle_s: 30 * 86_400 }
    }
}

/// Endpoints that did not fit in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beyond {
    /// Requests of endpoints beyond the limit, or beyond the share of one network.
    pub endpoints: u64,
    /// Parameters beyond the limit of their endpoint, and with names that are none.
    pub parameters: u64,
}

/// An endpoint with its place.
#[derive(Clone, Debug)]
pub struct Found<'i> {
    /// The method.
    pub method: &'i str,
    /// The path, with placeholders for values: `/users/{number}`.
    pub path: String,
    /// What is known of it.
    pub endpoint: &'i Endpoint,
}

impl Found<'_> {
    /// Its id, see [`endpoint_id`].
    pub fn id(&self, site: &str) -> String {
        endpoint_id(site, self.method, &self.path)
    }
}

/// The id of an endpoint among those of all sites: FNV-1a of site, method and path.
pub fn endpoint_id(site: &str, method: &str, path: &str) -> String {
    let bytes = site.bytes().chain([0]).chain(method.bytes()).chain([0]).chain(path.bytes());
    let hash = bytes.fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    format!("{hash:016x}")
}

/// Something that an operator may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// It is new; else nobody has asked it for long.
    pub is_new: bool,
}

/// Knowledge of the endpoints of one site.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    limits: Limits,
    root: Node,
    /// The number of endpoints.
    count: usize,
    /// When the first exchange was, in seconds since 1970.
    since_s: Option<u64>,
    beyond: Beyond,
    /// By network: the endpoints that only it has asked.
    unconfirmed: HashMap<u32, usize>,
    /// When the next search for an endpoint to drop makes sense.
    search_s: u64,
}

impl Inventory {
    /// An empty inventory.
    pub fn new(limits: Limits) -> Inventory {
        Inventory { limits, ..Inventory::default() }
    }

    /// Takes in the exchanges of a batch.
    pub fn learn(&mut self, batch: &Batch) {
        let (before, mut now_s) = (self.count, 0);
        for (seen, details) in batch.exchanges() {
            now_s = now_s.max(seen.at_s);
            self.add(&seen, details);
        }
        if self.count > before && self.root.merge_names(now_s) {
            self.count_again();
        }
    }

    fn add(&mut self, seen: &Observation<'_>, details: Option<&Details>) {
        let method = match seen.method {
            b"HEAD" => "GET",
            method => match METHODS.iter().find(|known| known.as_bytes() == method) {
                Some(known) => known,
                None => return,
            },
        };
        self.since_s = Some(self.since_s.map_or(seen.at_s, |since| since.min(seen.at_s)));
        let path = spelled(seen.path);
        let parts: Vec<&[u8]> = segments(&path).collect();
        let is_file = details.map(|details| details.response_type.as_deref().is_some_and(is_file_type));
        let Some(path) = self.root.resolve(&parts, is_file, seen.network) else { return };
        let is_answered = !seen.is_refused && matches!(seen.status, 100..400);
        let is_denied = !seen.is_refused && matches!(seen.status, 401 | 403);
        if let Some(node) = self.root.at_mut(&path) {
            if let Some(endpoint) = node.endpoints.get_mut(method) {
                if seen.is_refused {
                    endpoint.refused = endpoint.refused.saturating_add(1);
                    return;
                }
                let confirmed = endpoint.founder.take_if(|founder| *founder != seen.network);
                self.beyond.parameters = self.beyond.parameters.saturating_add(endpoint.add(seen, details));
                return self.release(confirmed);
            }
            // The path is there by another method.
            if is_denied && !node.endpoints.is_empty() && node.deny(method, seen.network) {
                return self.create(&path, method, seen, details);
            }
        }
        if is_answered {
            self.create(&path, method, seen, details);
        }
    }

    fn create(&mut self, path: &[String], method: &str, seen: &Observation<'_>, details: Option<&Details>) {
        let bytes: usize = path.iter().map(|segment| segment.len() + 1).sum();
        let own = self.unconfirmed.get(&seen.network).copied().unwrap_or_default();
        let is_share = own < (self.limits.endpoints_max / FOUNDER_SHARE).max(1);
        let is_room = self.count < self.limits.endpoints_max || is_share && self.give_way(seen.at_s);
        if bytes > TEMPLATE_BYTES_MAX || path.len() > DEPTH_MAX || !is_share || !is_room {
            self.beyond.endpoints = self.beyond.endpoints.saturating_add(1);
            return;
        }
        let mut endpoint = Endpoint::new(seen.network, seen.at_s);
        endpoint.is_told =
            self.since_s.is_none_or(|since| seen.at_s < since.saturating_add(self.limits.learning_s));
        self.beyond.parameters += endpoint.add(seen, details);
        self.root.make(path).endpoints.insert(method.to_owned(), endpoint);
        self.count += 1;
        *self.unconfirmed.entry(seen.network).or_default() += 1;
    }

    /// An endpoint that a network had found is no longer its own.
    fn release(&mut self, founder: Option<u32>) {
        if let Some(founder) = founder
            && let Some(count) = self.unconfirmed.get_mut(&founder)
        {
            *count -= 1;
            if *count == 0 {
                self.unconfirmed.remove(&founder);
            }
        }
    }

    /// Drops the endpoints that nobody else has asked since yesterday, and those that nobody has asked for
    /// long. False if there are none.
    fn give_way(&mut self, now_s: u64) -> bool {
        if now_s < self.search_s {
            return false;
        }
        self.search_s = now_s.saturating_add(SEARCH_EVERY_S);
        let today = day(now_s);
        self.root.retain(&mut |endpoint| {
            let last = endpoint.days.last();
            endpoint.is_settled() && last.saturating_add(IDLE_DROP_DAYS) >= today || last >= today
        });
        self.count_again();
        self.count < self.limits.endpoints_max
    }

    fn count_again(&mut self) {
        let (mut count, mut unconfirmed) = (0, HashMap::new());
        self.root.each(&mut String::new(), &mut |_, _, endpoint| {
            count += 1;
            if let Some(founder) = endpoint.founder {
                *unconfirmed.entry(founder).or_default() += 1;
            }
        });
        (self.count, self.unconfirmed) = (count, unconfirmed);
    }

    /// Takes over what another inventory knows. Where there is no room for an endpoint its requests count as
    /// beyond the limit.
    pub fn merge(&mut self, other: &Inventory) {
        for found in other.endpoints() {
            self.put(&found.path, found.method, found.endpoint.clone());
        }
        self.since_s = self.since_s.into_iter().chain(other.since_s).min();
        self.beyond.endpoints = self.beyond.endpoints.saturating_add(other.beyond.endpoints);
        self.beyond.parameters = self.beyond.parameters.saturating_add(other.beyond.parameters);
        self.root.merge_names(0);
        self.count_again();
    }

    /// Puts an endpoint in its place.
    pub(crate) fn put(&mut self, path: &str, method: &str, endpoint: Endpoint) {
        let path: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let known = self.root.at_mut(&path).and_then(|node| node.endpoints.get_mut(method));
        match known {
            Some(known) => known.merge(&endpoint),
            None if self.count < self.limits.endpoints_max => {
                self.root.make(&path).endpoints.insert(method.to_owned(), endpoint);
                self.count += 1;
            }
            None => self.beyond.endpoints = self.beyond.endpoints.saturating_add(endpoint.requests),
        }
    }

    /// Drops an endpoint; false if there is none.
    pub fn forget(&mut self, method: &str, path: &str) -> bool {
        let path: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let removed = self.root.remove(&path, method).is_some();
        self.count_again();
        removed
    }

    /// The endpoints, in the order of their paths.
    pub fn endpoints(&self) -> impl Iterator<Item = Found<'_>> {
        let mut found = Vec::with_capacity(self.count);
        self.root.each(&mut String::new(), &mut |path, method, endpoint| {
            found.push(Found { method, path: path.to_owned(), endpoint });
        });
        found.sort_by(|a, b| (&a.path, a.method).cmp(&(&b.path, b.method)));
        found.into_iter()
    }

    /// The endpoints that are new since the last call, and those that nobody has asked for long: each is
    /// reported once.
    pub fn news(&mut self, now_s: u64) -> Vec<News> {
        let mut news = Vec::new();
        let idle_s = self.limits.idle_s;
        self.root.each(&mut String::new(), &mut |path, method, endpoint| {
            let is_gone = endpoint.last_s.saturating_add(idle_s) < now_s && !endpoint.is_gone;
            if endpoint.is_settled() && news.len() < NEWS_MAX && (!endpoint.is_told || is_gone) {
                let is_new = !endpoint.is_told;
                news.push(News { method: method.to_owned(), path: path.to_owned(), is_new });
            }
        });
        for each in &news {
            let path: Vec<String> =
                each.path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
            let endpoint = self.root.at_mut(&path).and_then(|node| node.endpoints.get_mut(&each.method));
            if let Some(endpoint) = endpoint {
                match each.is_new {
                    true => endpoint.is_told = true,
                    false => endpoint.is_gone = true,
                }
            }
        }
        news
    }

    /// True if an endpoint has come after the learning period, and not long ago.
    pub fn is_new(&self, endpoint: &Endpoint, now_s: u64) -> bool {
        let learned_s = self.since_s.unwrap_or_default().saturating_add(self.limits.learning_s);
        endpoint.first_s >= learned_s && endpoint.first_s.saturating_add(self.limits.learning_s) > now_s
    }

    /// True if nobody has asked an endpoint for long.
    pub fn is_idle(&self, endpoint: &Endpoint, now_s: u64) -> bool {
        endpoint.last_s.saturating_add(self.limits.idle_s) < now_s
    }

    /// The number of endpoints.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Endpoints that did not fit in.
    pub fn beyond(&self) -> Beyond {
        self.beyond
    }

    /// When the first exchange was, in seconds since 1970.
    pub fn since_s(&self) -> Option<u64> {
        self.since_s
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Changes the limits. What is known stays, also beyond them.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Bytes of memory, about.
    pub fn held_bytes(&self) -> usize {
        self.root.held_bytes() + self.unconfirmed.len() * 16
    }

    pub(crate) fn restored(since_s: Option<u64>, beyond: Beyond, limits: Limits) -> Inventory {
        Inventory { since_s, beyond, ..Inventory::new(limits) }
    }

    pub(crate) fn settle(&mut self) {
        self.count_again();
    }
}
