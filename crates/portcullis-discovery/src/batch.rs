//! Exchanges on their way to the inventory: what they were, without a value.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use portcullis_learn::ValueType;

use crate::endpoint::{Authentication, ParameterPlace};
use crate::sensitive::{SCANNED_BYTES_MAX, Sensitive};

/// Exchanges that wait; more are dropped and counted.
pub const REQUESTS_MAX: usize = 8_192;
/// Bytes of paths, names and answers that wait.
pub const BYTES_MAX: usize = 2 << 20;
/// One network may have one in so many exchanges of those that wait.
pub const NETWORK_SHARE: usize = 4;
/// So many exchanges of those that wait are looked at closely.
pub const DETAILED_MAX: u32 = 128;
/// Beyond them, one in so many is.
pub const DETAILED_SHARE: u32 = 64;
/// Exchanges that are alike in method and path are familiar once there were so many of them.
pub const FAMILIAR_MIN: u32 = 64;
/// One in so many of the familiar ones is looked at closely.
pub const FAMILIAR_SHARE: u32 = 32;
/// Answers of those that wait in which sensitive data is looked for.
pub const SENSITIVE_MAX: u32 = 32;
/// Counters of exchanges that are alike: 16 KiB for a site. Those that share one are familiar too early,
/// which leaves a look out now and then.
const SHAPES: usize = 4_096;
/// Parameters of a request that are looked at.
const REQUEST_PARAMETERS_MAX: usize = 256;
/// A longer name is none.
const NAME_BYTES_MAX: usize = 128;

/// A finished exchange.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observation<'o> {
    /// The client's network, as [`portcullis_learn::network`] counts it.
    pub network: u32,
    /// When it was, in seconds since 1970.
    pub at_s: u64,
    /// The method.
    pub method: &'o [u8],
    /// The path, as sent.
    pub path: &'o [u8],
    /// The status that the site answered with, or that of the refusal.
    pub status: u16,
    /// The request was refused here, or would be.
    pub is_refused: bool,
    /// Duration of the exchange, in microseconds.
    pub took_us: u64,
}

/// A parameter of a request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub place: ParameterPlace,
    pub name: Box<str>,
    pub kind: ValueType,
    pub bytes: u32,
    /// The value of a whole number.
    pub number: Option<i64>,
}

/// Result of a close look at an exchange.
#[derive(Debug, Default)]
pub struct Details {
    pub(crate) parameters: Vec<Seen>,
    /// Parameters with a name that is none.
    pub(crate) nameless: u32,
    /// The media type of the request's body.
    pub request_type: Option<String>,
    /// That of the answer.
    pub response_type: Option<String>,
    /// The kinds of credentials.
    pub authentication: Vec<Authentication>,
    /// The kinds of sensitive data in the answer; none: it was not looked at.
    pub sensitive: Option<Vec<Sensitive>>,
    /// The beginning of an answer that is still to be looked at.
    answer: Box<[u8]>,
}

impl Details {
    /// Notes a parameter. The value is looked at and not kept.
    pub fn note(&mut self, place: ParameterPlace, name: &[u8], value: &[u8]) {
        if self.parameters.len() >= REQUEST_PARAMETERS_MAX {
            return;
        }
        let Some(name) = parameter_name(place, name) else {
            self.nameless += 1;
            return;
        };
        let kind = portcullis_learn::classify(value, |_| false).kind;
        let number = if let ValueType::Whole = kind {
            std::str::from_utf8(value.trim_ascii()).ok().and_then(|text| text.parse().ok())
        } else {
            None
        };
        let bytes = u32::try_from(value.len()).unwrap_or(u32::MAX);
        self.parameters.push(Seen { place, name, kind, bytes, number });
    }

    /// Notes the beginning of the answer's body: what is in it is found out when the exchange is learned.
    pub fn note_answer(&mut self, body: &[u8]) {
        self.answer = body[..body.len().min(SCANNED_BYTES_MAX)].into();
    }

    /// The kinds of sensitive data in the answer, if it was or can be looked at.
    pub(crate) fn sensitive(&self) -> Option<Vec<Sensitive>> {
        let of_answer = || (!self.answer.is_empty()).then(|| Sensitive::of(&self.answer));
        self.sensitive.clone().or_else(of_answer)
    }

    /// Notes the media type of a `Content-Type`: what stands before its parameters.
    pub fn media_type(field: &[u8]) -> Option<String> {
        let media_type = field.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
        let is_token = |b: &u8| b.is_ascii_alphanumeric() || b"/+-._".contains(b);
        let is_type = (3..=80).contains(&media_type.len())
            && media_type.iter().filter(|b| **b == b'/').count() == 1
            && media_type.iter().all(is_token);
        is_type.then(|| String::from_utf8_lossy(media_type).to_ascii_lowercase())
    }
}

/// Digits from which on a name is a time or a random number against caches (`?1796002340`).
const NUMBER_NAME_BYTES_MIN: usize = 6;

/// The name of a parameter as it is shown, or nothing for what no application calls one: elements of lists
/// have one name, and nothing in it is markup or invisible.
fn parameter_name(place: ParameterPlace, name: &[u8]) -> Option<Box<str>> {
    let name = std::str::from_utf8(name.trim_ascii()).ok()?;
    let is_shown = |c: char| c.is_alphanumeric() || "-_.~:@+,=$!()[]/* #".contains(c);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_shown) {
        return None;
    }
    if name.len() >= NUMBER_NAME_BYTES_MIN && name.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    if place == ParameterPlace::Json {
        return Some(json_name(name).into());
    }
    // `id[7]` is an element of `id[]`.
    let mut shown = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(open) = rest.find('[') {
        let (before, after) = rest.split_at(open + 1);
        shown.push_str(before);
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        if !rest.starts_with(']') {
            rest = after;
        }
    }
    shown.push_str(rest);
    Some(shown.into())
}

/// A path in JSON, as parsers of rules name values: an element of an array has the array's name, and its last
/// component once more. Here arrays are `[]`.
fn json_name(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    let mut before = None;
    for component in name.split('.') {
        if before == Some(component) {
            shown.push_str("[]");
            continue;
        }
        if before.is_some() {
            shown.push('.');
        }
        shown.push_str(component);
        before = Some(component);
    }
    // That at the top has no name.
    match shown.strip_prefix("array[]") {
        Some(rest) => format!("[]{rest}"),
        None => shown,
    }
}

/// One site's part of discovery that all threads see.
#[derive(Debug)]
pub struct Site {
    waiting: Mutex<Batch>,
    seen: AtomicU32,
    scanned: AtomicU32,
    /// By the hash of method and path: how many exchanges were alike.
    alike: Box<[AtomicU32]>,
}

impl Default for Site {
    fn default() -> Self {
        Site {
            waiting: Mutex::default(),
            seen: AtomicU32::default(),
            scanned: AtomicU32::default(),
            alike: (0..SHAPES).map(|_| AtomicU32::default()).collect(),
        }
    }
}

impl Site {
    /// True if an exchange is to be looked at closely: what is known of those that are alike changes little.
    pub fn wants_details(&self, method: &[u8], path: &[u8]) -> bool {
        let alike = &self.alike[shape(method, path) as usize % SHAPES];
        let alike = alike.fetch_add(1, Ordering::Relaxed);
        if alike >= FAMILIAR_MIN {
            return alike.is_multiple_of(FAMILIAR_SHARE);
        }
        let seen = self.seen.fetch_add(1, Ordering::Relaxed);
        seen < DETAILED_MAX || seen.is_multiple_of(DETAILED_SHARE)
    }

    /// True if sensitive data is to be looked for in its answer.
    pub fn wants_answer(&self) -> bool {
        self.scanned.load(Ordering::Relaxed) < SENSITIVE_MAX
            && self.scanned.fetch_add(1, Ordering::Relaxed) < SENSITIVE_MAX
    }

    /// Notes an exchange.
    pub fn observe(&self, observation: &Observation<'_>, details: Option<Details>) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).add(observation, details);
    }

    /// The exchanges that wait.
    pub fn take(&self) -> Batch {
        self.seen.store(0, Ordering::Relaxed);
        self.scanned.store(0, Ordering::Relaxed);
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A hash of method and path, in which segments with a digit are all the same: most are values.
fn shape(method: &[u8], path: &[u8]) -> u32 {
    let add = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let mut hash = method.iter().fold(0x811C_9DC5, |hash, byte| add(hash, *byte));
    let (mut before, mut has_digit) = (hash, false);
    for byte in path {
        match byte {
            b'/' => {
                hash = add(hash, b'/');
                (before, has_digit) = (hash, false);
            }
            _ if has_digit => {}
            b'0'..=b'9' => (hash, has_digit) = (add(before, b'0'), true),
            _ => hash = add(hash, *byte),
        }
    }
    // The last bits are those that are used.
    hash ^ hash >> 15
}

#[derive(Debug)]
struct Waiting {
    network: u32,
    at_s: u64,
    method: Range<u32>,
    path: Range<u32>,
    status: u16,
    is_refused: bool,
    took_us: u64,
    details: Option<u32>,
}

/// Exchanges that wait for the inventory.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    exchanges: Vec<Waiting>,
    details: Vec<Details>,
    detail_bytes: usize,
    by_network: HashMap<u32, usize>,
    /// Exchanges that were dropped: too many wait, or too many of one network.
    pub dropped: u64,
}

impl Batch {
    fn add(&mut self, seen: &Observation<'_>, details: Option<Details>) {
        let of_details = details.as_ref().map_or(0, |details| {
            details.parameters.iter().map(|seen| size_of::<Seen>() + seen.name.len()).sum::<usize>()
                + details.answer.len()
        });
        let needed = seen.method.len() + seen.path.len() + of_details;
        let of_network = self.by_network.entry(seen.network).or_default();
        if self.exchanges.len() >= REQUESTS_MAX
            || self.bytes.len() + self.detail_bytes + needed > BYTES_MAX
            || *of_network >= REQUESTS_MAX / NETWORK_SHARE
        {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        *of_network += 1;
        self.detail_bytes += of_details;
        let method = self.keep(seen.method);
        let path = self.keep(seen.path);
        let details = details.map(|details| {
            self.details.push(details);
            self.details.len() as u32 - 1
        });
        let Observation { network, at_s, status, is_refused, took_us, .. } = *seen;
        self.exchanges.push(Waiting { network, at_s, method, path, status, is_refused, took_us, details });
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<u32> {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len() as u32
    }

    fn text(&self, range: &Range<u32>) -> &[u8] {
        self.bytes.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    pub(crate) fn exchanges(&self) -> impl Iterator<Item = (Observation<'_>, Option<&Details>)> {
        self.exchanges.iter().map(|waiting| {
            let observation = Observation {
                network: waiting.network,
                at_s: waiting.at_s,
                method: self.text(&waiting.method),
                path: self.text(&waiting.path),
                status: waiting.status,
                is_refused: waiting.is_refused,
                took_us: waiting.took_us,
            };
            (observation, waiting.details.and_then(|at| self.details.get(at as usize)))
        })
    }

    /// The number of exchanges.
    pub fn len(&self) -> usize {
        self.exchanges.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }
}
