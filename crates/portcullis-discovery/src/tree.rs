//! Paths as a tree of segments, in which names that multiply become one placeholder.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use portcullis_learn::{ANY, Distinct};

use crate::endpoint::Endpoint;
use crate::segment::{FILE, NAME, TOKEN, is_file, is_placeholder, is_slug, label};

/// Names in one place of a path that have numbers or several parts and are otherwise alike; more are one.
pub const SLUGS_MAX: usize = 16;
/// Names of any kind in one place that are otherwise alike; more are one.
pub const WORDS_MAX: usize = 64;
/// Names in one place, but the first, that have the same parameters, too, nothing below and no extension;
/// more are one.
pub const TWINS_MAX: usize = 24;
/// Names in one place that are alike and have come a day or more after the first one; more are one.
pub const LATE_MAX: usize = 16;
/// Names in one place with the same name somewhere below each (`/{name}/{name}/issues`); more are one.
pub const SHARED_MAX: usize = 12;
/// Names in one place that nobody asks for any more: asked three times at most, an hour ago or longer; more
/// are one.
pub const RARE_MAX: usize = 32;
const RARE_REQUESTS_MAX: u64 = 3;
const RARE_AGE_S: u64 = 3_600;
const LATE_AGE_S: u64 = 86_400;
/// Steps below a name where such a name is looked for.
const SHARED_DEPTH: usize = 3;
/// A name that so many networks have asked for on so many days stays one.
const KNOWN_NETWORKS_MIN: u64 = 16;
const KNOWN_DAYS_MIN: u32 = 3;
/// Methods of one path whose refusals by the site are counted.
const DENIED_MAX: usize = 8;

/// A place in a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// As it was first sent; the key in its parent is in lower case.
    shown: String,
    children: BTreeMap<String, Node>,
    pub endpoints: BTreeMap<String, Endpoint>,
    /// Methods that have been answered with 401 and 403 only.
    denied: Vec<(String, Distinct, u32)>,
}

impl Node {
    /// The names below this node under which a path is kept that `network` asks for. `file_type`: what is
    /// answered is a file, or not, if that is known. Nothing if it cannot be said.
    pub fn resolve(&self, segments: &[&[u8]], file_type: Option<bool>, network: u32) -> Option<Vec<String>> {
        let mut resolved = Vec::with_capacity(segments.len());
        let mut node = Some(self);
        for (at, segment) in segments.iter().enumerate() {
            let has = |key: &str| node.is_some_and(|node| node.children.contains_key(key));
            let has_name = || {
                let merged = node.and_then(|node| node.children.get(NAME));
                merged.is_some_and(|merged| merged.founder().is_none_or(|founder| founder == network))
            };
            let is_last = at + 1 == segments.len();
            let label = label(segment);
            let key = match &*label {
                // Where it is not known what was answered: the name that is known beside the files.
                name if is_last
                    && is_file(segment)
                    && file_type.unwrap_or_else(|| has(FILE) && !has(&lower(name))) =>
                {
                    FILE.to_owned()
                }
                ANY | TOKEN if has_name() => NAME.to_owned(),
                placeholder if is_placeholder(placeholder) => placeholder.to_owned(),
                name => {
                    let lower = lower(name);
                    if has(&lower) {
                        lower.into_owned()
                    } else if has_name() {
                        NAME.to_owned()
                    } else if is_last && is_file(segment) && file_type.is_none() {
                        // Whether it is a file is not known.
                        return None;
                    } else {
                        name.to_owned()
                    }
                }
            };
            node = node.and_then(|node| node.children.get(&*lower(&key)));
            resolved.push(key);
        }
        Some(resolved)
    }

    pub fn at_mut(&mut self, path: &[String]) -> Option<&mut Node> {
        path.iter().try_fold(self, |node, segment| node.children.get_mut(&*lower(segment)))
    }

    /// The node of a path, made where it is not there.
    pub fn make(&mut self, path: &[String]) -> &mut Node {
        path.iter().fold(self, |node, segment| {
            node.children
                .entry(segment.to_ascii_lowercase())
                .or_insert_with(|| Node { shown: segment.clone(), ..Node::default() })
        })
    }

    /// Counts an answer of 401 or 403 to a method that has had no other; true if it has been seen often.
    pub fn deny(&mut self, method: &str, network: u32) -> bool {
        let at = self.denied.iter().position(|(own, ..)| own == method);
        let at = at.or_else(|| {
            (self.denied.len() < DENIED_MAX).then(|| {
                self.denied.push((method.to_owned(), Distinct::default(), 0));
                self.denied.len() - 1
            })
        });
        let Some((_, networks, answers)) = at.and_then(|at| self.denied.get_mut(at)) else { return false };
        networks.add(network);
        *answers = answers.saturating_add(1);
        *answers >= 3 && networks.count() >= 2
    }

    /// Each endpoint below, with its method and path.
    pub fn each<'n>(&'n self, path: &mut String, visit: &mut impl FnMut(&str, &'n str, &'n Endpoint)) {
        for (method, endpoint) in &self.endpoints {
            visit(if path.is_empty() { "/" } else { path }, method, endpoint);
        }
        for child in self.children.values() {
            let length = path.len();
            path.push('/');
            path.push_str(&child.shown);
            child.each(path, visit);
            path.truncate(length);
        }
    }

    /// Each endpoint below; it goes if the answer is no. Nodes that are empty then go, too.
    pub fn retain(&mut self, keep: &mut impl FnMut(&mut Endpoint) -> bool) {
        self.endpoints.retain(|_, endpoint| keep(endpoint));
        self.children.retain(|_, child| {
            child.retain(keep);
            !child.is_empty()
        });
    }

    /// Drops one endpoint.
    pub fn remove(&mut self, path: &[String], method: &str) -> Option<Endpoint> {
        let Some((first, rest)) = path.split_first() else { return self.endpoints.remove(method) };
        let key = first.to_ascii_lowercase();
        let child = self.children.get_mut(&key)?;
        let removed = child.remove(rest, method);
        if child.is_empty() {
            self.children.remove(&key);
        }
        removed
    }

    fn is_empty(&self) -> bool {
        self.endpoints.is_empty() && self.children.is_empty()
    }

    /// Makes one of names that have multiplied; true if there were any.
    pub fn merge_names(&mut self, now_s: u64) -> bool {
        self.merge_names_at(0, now_s)
    }

    fn merge_names_at(&mut self, depth: usize, now_s: u64) -> bool {
        let mut has_merged = false;
        loop {
            let alike = self.multiplied(depth, now_s);
            if alike.is_empty() {
                break;
            }
            has_merged = true;
            let mut merged = self.children.remove(NAME).unwrap_or_default();
            merged.shown = NAME.to_owned();
            let joining = alike.into_iter().chain([ANY.to_owned(), TOKEN.to_owned()]);
            for key in joining.collect::<Vec<_>>() {
                if let Some(child) = self.children.remove(&key) {
                    merged.take_over(child);
                }
            }
            self.children.insert(NAME.to_owned(), merged);
        }
        for child in self.children.values_mut() {
            has_merged |= child.merge_names_at(depth + 1, now_s);
        }
        has_merged
    }

    /// The keys of children that are to become one.
    fn multiplied(&self, depth: usize, now_s: u64) -> Vec<String> {
        let all: Vec<(&String, &Node)> =
            self.children.iter().filter(|(key, _)| !is_placeholder(key)).collect();
        if all.len() <= SHARED_MAX {
            return Vec::new();
        }
        let founders: BTreeMap<&String, Option<u32>> =
            all.iter().map(|(key, child)| (*key, child.founder())).collect();
        let (known, names): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, child)| child.is_known());
        let first_s = self.children.values().filter_map(Node::first_s).min().unwrap_or_default();
        let mut slugs: BTreeMap<String, Vec<&String>> = BTreeMap::new();
        let mut words: BTreeMap<String, Vec<&String>> = BTreeMap::new();
        let mut late: BTreeMap<String, Vec<&String>> = BTreeMap::new();
        let mut shared: BTreeMap<(usize, &str), Vec<&String>> = BTreeMap::new();
        for (key, child) in &names {
            let signature = child.signature();
            if is_slug(key) {
                slugs.entry(signature.clone()).or_default().push(key);
            }
            if child.first_s().is_some_and(|own| own >= first_s.saturating_add(LATE_AGE_S)) {
                late.entry(signature.clone()).or_default().push(key);
            }
            words.entry(signature).or_default().push(key);
            let mut below = BTreeSet::new();
            child.names_below(1, &mut below);
            below.into_iter().for_each(|name| shared.entry(name).or_default().push(key));
        }
        // Those that many ask for are values only if there are many of them.
        let twins = [&known, &names].map(|names| {
            let mut twins: BTreeMap<String, Vec<&String>> = BTreeMap::new();
            for (key, child) in names.iter().filter(|(key, child)| depth > 0 && child.is_leaf(key)) {
                twins.entry(child.signature() + &child.parameter_names()).or_default().push(key);
            }
            twins
        });
        let is_rare = |child: &Node| {
            let (requests, last_s) = child.asked();
            requests <= RARE_REQUESTS_MAX && last_s.saturating_add(RARE_AGE_S) <= now_s
        };
        let rare = names.iter().filter(|(_, child)| is_rare(child)).map(|(key, _)| *key).collect();
        let groups = slugs.into_values().map(|keys| (keys, SLUGS_MAX));
        let groups = groups.chain(words.into_values().map(|keys| (keys, WORDS_MAX)));
        let groups = groups.chain(late.into_values().map(|keys| (keys, LATE_MAX)));
        let groups = groups.chain(shared.into_values().map(|keys| (keys, SHARED_MAX)));
        let groups =
            groups.chain(twins.into_iter().flat_map(BTreeMap::into_values).map(|keys| (keys, TWINS_MAX)));
        let groups = groups.chain([(rare, RARE_MAX)]);
        let found: BTreeSet<&String> =
            groups.flat_map(|(keys, max)| too_many(keys, max, &founders)).collect();
        found.into_iter().cloned().collect()
    }

    /// When something here was first asked.
    fn first_s(&self) -> Option<u64> {
        let own = self.endpoints.values().map(|endpoint| endpoint.first_s);
        own.chain(self.children.values().filter_map(Node::first_s)).min()
    }

    /// True if nothing is below, and the name has no extension, as pages of programs have (`edit.php`).
    fn is_leaf(&self, name: &str) -> bool {
        self.children.is_empty() && !is_file(name.as_bytes())
    }

    /// The parameters that it has, by method.
    fn parameter_names(&self) -> String {
        let of = |endpoint: &Endpoint| {
            endpoint
                .parameters()
                .fold(String::new(), |all, own| all + own.place.name() + ":" + &own.name + " ")
        };
        self.endpoints.values().fold(String::new(), |all, endpoint| all + "|" + &of(endpoint))
    }

    /// The network that alone has asked for what is here, if one has.
    fn founder(&self) -> Option<u32> {
        let own = self.endpoints.values().map(|endpoint| endpoint.founder);
        let mut all = own.chain(self.children.values().map(Node::founder));
        let first = all.next()??;
        all.all(|other| other == Some(first)).then_some(first)
    }

    /// Common properties of alike names: methods, values and names below, the type of answers.
    fn signature(&self) -> String {
        let methods: Vec<&str> = self.endpoints.keys().map(String::as_str).collect();
        // Names below values differ.
        let below: BTreeSet<&str> =
            self.children.keys().map(|key| if is_placeholder(key) { key.as_str() } else { "+" }).collect();
        let below: Vec<&str> = below.into_iter().collect();
        let types = self.endpoints.values().filter_map(|endpoint| {
            endpoint.response_types.iter().max_by_key(|(_, answers)| **answers).map(|(kind, _)| kind.as_str())
        });
        let types: BTreeSet<&str> = types.collect();
        let types: Vec<&str> = types.into_iter().collect();
        [methods.join(" "), below.join(" "), types.join(" ")].join("|")
    }

    /// The names up to a few steps below, with the number of steps.
    fn names_below<'n>(&'n self, depth: usize, found: &mut BTreeSet<(usize, &'n str)>) {
        for (key, child) in &self.children {
            if !is_placeholder(key) {
                found.insert((depth, key));
            }
            if depth < SHARED_DEPTH {
                child.names_below(depth + 1, found);
            }
        }
    }

    /// Number of requests here, and the time of the last.
    fn asked(&self) -> (u64, u64) {
        let own = self.endpoints.values().map(|endpoint| (endpoint.requests, endpoint.last_s));
        let all = own.chain(self.children.values().map(Node::asked));
        all.fold((0, 0), |(sum, last_s), (requests, at_s)| (sum + requests, last_s.max(at_s)))
    }

    /// True if many have asked for this name, for days.
    fn is_known(&self) -> bool {
        self.endpoints.values().any(|endpoint| {
            endpoint.networks.count() >= KNOWN_NETWORKS_MIN && endpoint.days.count() >= KNOWN_DAYS_MIN
        })
    }

    fn take_over(&mut self, other: Node) {
        for (method, endpoint) in other.endpoints {
            match self.endpoints.get_mut(&method) {
                Some(own) => own.merge(&endpoint),
                None => {
                    self.endpoints.insert(method, endpoint);
                }
            }
        }
        for (key, child) in other.children {
            match self.children.get_mut(&key) {
                Some(own) => own.take_over(child),
                None => {
                    self.children.insert(key, child);
                }
            }
        }
    }

    /// Bytes of memory, about.
    pub fn held_bytes(&self) -> usize {
        let endpoints = self.endpoints.iter().map(|(method, endpoint)| method.len() + endpoint.held_bytes());
        let children =
            self.children.iter().map(|(key, child)| key.len() + child.shown.len() + child.held_bytes());
        size_of::<Node>() + endpoints.sum::<usize>() + children.sum::<usize>()
    }
}

/// The key of a name: most are in lower case.
fn lower(name: &str) -> Cow<'_, str> {
    match name.bytes().any(|b| b.is_ascii_uppercase()) {
        true => name.to_ascii_lowercase().into(),
        false => name.into(),
    }
}

/// Those of `keys` that are to become one, if there are more than `max`. What one network has made up says
/// little about what others have asked for: a quarter of them may be its own, else it is its own names that
/// become one.
fn too_many<'k>(
    keys: Vec<&'k String>,
    max: usize,
    founders: &BTreeMap<&String, Option<u32>>,
) -> Vec<&'k String> {
    let mut of_founder: BTreeMap<Option<u32>, Vec<&'k String>> = BTreeMap::new();
    for key in &keys {
        of_founder.entry(founders.get(key).copied().flatten()).or_default().push(key);
    }
    let counted = |(founder, keys): (&Option<u32>, &Vec<&String>)| match founder {
        Some(_) => keys.len().min(max / 4),
        None => keys.len(),
    };
    if of_founder.iter().map(counted).sum::<usize>() > max {
        return keys;
    }
    of_founder.into_values().filter(|keys| keys.len() > max).flatten().collect()
}
