//! Knowledge of one endpoint.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_learn::{Days, Distinct, ValueType};
use serde::{Deserialize, Serialize};

use crate::batch::{Details, Observation, Seen};
use crate::sensitive::Sensitive;

/// Upper bounds of the buckets of latency, in milliseconds; there is one more for what is slower.
pub const LATENCY_MS: [u32; 11] = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];
const BUCKETS: usize = LATENCY_MS.len() + 1;
/// Parameters of an endpoint.
pub const PARAMETERS_MAX: usize = 64;
/// One network may have so many of them that nobody else has sent.
const FOUNDER_PARAMETERS_MAX: usize = 16;
/// Media types, and statuses, of an endpoint.
pub const TYPES_MAX: usize = 16;
/// Requests from which on it is said that a parameter is required.
pub(crate) const REQUIRED_REQUESTS_MIN: u64 = 5;
/// It has been in so many of a hundred.
const REQUIRED_PERCENT: u64 = 98;
/// A parameter that one network alone sends, and less often than in one of so many requests, does not belong
/// to the interface.
const STRAY_SHARE: u64 = 50;
const DAY_S: u64 = 86_400;

/// A kind of credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Authentication {
    /// `Authorization: Bearer`.
    Bearer,
    /// `Authorization: Basic`.
    Basic,
    /// Another scheme.
    Other,
    /// A cookie that is called like one of a session.
    SessionCookie,
    /// A header that is called like one of API keys.
    ApiKey,
    /// A certificate of the client.
    ClientCertificate,
    /// None of these.
    None,
}

impl Authentication {
    /// The name in lists and state files.
    pub fn name(self) -> &'static str {
        match self {
            Authentication::Bearer => "bearer",
            Authentication::Basic => "basic",
            Authentication::Other => "other",
            Authentication::SessionCookie => "session-cookie",
            Authentication::ApiKey => "api-key",
            Authentication::ClientCertificate => "client-certificate",
            Authentication::None => "none",
        }
    }

    /// The kinds that a request's header fields show; [`None`](Authentication::None) if there are none.
    pub fn of<'h>(
        fields: impl Iterator<Item = (&'h [u8], &'h [u8])>,
        certificate: bool,
    ) -> Vec<Authentication> {
        let mut found = BTreeSet::new();
        if certificate {
            found.insert(Authentication::ClientCertificate);
        }
        for (name, value) in fields {
            if name.eq_ignore_ascii_case(b"authorization") {
                let scheme = value.trim_ascii().split(|b| *b == b' ').next().unwrap_or_default();
                found.insert(match () {
                    () if scheme.eq_ignore_ascii_case(b"bearer") => Authentication::Bearer,
                    () if scheme.eq_ignore_ascii_case(b"basic") => Authentication::Basic,
                    () => Authentication::Other,
                });
            } else if name.eq_ignore_ascii_case(b"cookie") {
                if value.split(|b| *b == b';').any(is_session) {
                    found.insert(Authentication::SessionCookie);
                }
            } else if is_api_key(name) {
                found.insert(Authentication::ApiKey);
            }
        }
        if found.is_empty() {
            found.insert(Authentication::None);
        }
        found.into_iter().collect()
    }
}

/// True for a cookie that is called like one of a session.
fn is_session(pair: &[u8]) -> bool {
    let name = pair.split(|b| *b == b'=').next().unwrap_or_default().to_ascii_lowercase();
    let has = |word: &[u8]| name.windows(word.len()).any(|part| part == word);
    has(b"sess") || has(b"sid") || has(b"auth") || has(b"token") || has(b"jwt")
}

fn is_api_key(name: &[u8]) -> bool {
    let ends_in =
        |end: &[u8]| name.len().checked_sub(end.len()).is_some_and(|at| name[at..].eq_ignore_ascii_case(end));
    if !ends_in(b"key") && !ends_in(b"token") {
        return false;
    }
    let name: Vec<u8> = name.iter().filter(|b| !b"-_".contains(b)).map(u8::to_ascii_lowercase).collect();
    name.ends_with(b"apikey") || name.ends_with(b"authtoken") || name.ends_with(b"accesstoken")
}

/// The place of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParameterPlace {
    /// The query string.
    Query,
    /// A form, whatever its coding.
    Form,
    /// JSON in the body.
    Json,
}

impl ParameterPlace {
    /// The name in lists.
    pub fn name(self) -> &'static str {
        match self {
            ParameterPlace::Query => "query",
            ParameterPlace::Form => "form",
            ParameterPlace::Json => "json",
        }
    }
}

/// A parameter of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// The place.
    pub place: ParameterPlace,
    /// The name: `a.b`, `items[].id`.
    pub name: String,
    /// Requests that had it, of those that were looked at closely.
    pub requests: u64,
    /// Values of each type.
    pub types: BTreeMap<ValueType, u64>,
    /// The shortest and the longest value, in bytes.
    pub bytes: (u32, u32),
    /// The least and the greatest number, if all values that are not empty are whole numbers.
    pub numbers: Option<(i64, i64)>,
    founder: Option<u32>,
    last_day: u32,
}

impl Parameter {
    fn new(seen: &Seen, network: u32) -> Parameter {
        Parameter {
            place: seen.place,
            name: seen.name.to_string(),
            requests: 0,
            types: BTreeMap::new(),
            bytes: (seen.bytes, seen.bytes),
            numbers: seen.number.map(|number| (number, number)),
            founder: Some(network),
            last_day: 0,
        }
    }

    fn add(&mut self, seen: &Seen, network: u32, day: u32) {
        self.bytes = (self.bytes.0.min(seen.bytes), self.bytes.1.max(seen.bytes));
        if seen.bytes > 0 {
            let all = self.numbers.zip(seen.number);
            // The first value that is not empty says what it is about.
            self.numbers = match self.types.is_empty() {
                true => seen.number.map(|number| (number, number)),
                false => all.map(|((least, most), number)| (least.min(number), most.max(number))),
            };
            *self.types.entry(seen.kind).or_default() += 1;
        }
        if self.founder.is_some_and(|founder| founder != network) {
            self.founder = None;
        }
        self.last_day = self.last_day.max(day);
    }

    fn merge(&mut self, other: &Parameter) {
        let is_empty = self.types.is_empty();
        self.requests = self.requests.saturating_add(other.requests);
        for (kind, values) in &other.types {
            *self.types.entry(*kind).or_default() += values;
        }
        self.bytes = (self.bytes.0.min(other.bytes.0), self.bytes.1.max(other.bytes.1));
        self.numbers = match (is_empty, other.types.is_empty()) {
            (true, _) => other.numbers,
            (_, true) => self.numbers,
            _ => self.numbers.zip(other.numbers).map(|(own, other)| (own.0.min(other.0), own.1.max(other.1))),
        };
        if self.founder != other.founder {
            self.founder = None;
        }
        self.last_day = self.last_day.max(other.last_day);
    }
}

/// An endpoint: a method and a path template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// When it was first seen, in seconds since 1970.
    pub first_s: u64,
    /// When it was last seen.
    pub last_s: u64,
    /// Requests that the site has answered.
    pub requests: u64,
    /// Requests that were refused here, or would be. They are in no other count.
    pub refused: u64,
    /// Networks of clients.
    pub networks: Distinct,
    /// Days on which it was asked.
    pub days: Days,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Answers by the time that they took: up to each of [`LATENCY_MS`], and longer.
    pub latency: [u64; BUCKETS],
    /// Requests that were looked at closely: what follows is of them.
    pub detailed: u64,
    /// Those of them that had a form or JSON in the body.
    pub bodies: u64,
    /// Kinds of credentials.
    pub authentication: BTreeMap<Authentication, u64>,
    /// Media types of request bodies.
    pub request_types: BTreeMap<String, u64>,
    /// Media types of answers.
    pub response_types: BTreeMap<String, u64>,
    /// Parameters, by place and name.
    parameters: Vec<Parameter>,
    /// Answers in which sensitive data was looked for.
    pub answers: u64,
    /// Answers that had some, by kind.
    pub sensitive: BTreeMap<Sensitive, u64>,
    /// The network that has found it, as long as nobody else has asked.
    pub(crate) founder: Option<u32>,
    /// It has been reported as new, or was known from the beginning.
    #[serde(default)]
    pub(crate) is_told: bool,
    /// It has been reported as gone.
    #[serde(default)]
    pub(crate) is_gone: bool,
}

impl Endpoint {
    pub(crate) fn new(network: u32, at_s: u64) -> Endpoint {
        Endpoint { first_s: at_s, founder: Some(network), ..Endpoint::default() }
    }

    /// Adds an exchange that the site has answered. Returns parameters that did not fit in.
    pub(crate) fn add(&mut self, seen: &Observation<'_>, details: Option<&Details>) -> u64 {
        self.requests = self.requests.saturating_add(1);
        self.last_s = self.last_s.max(seen.at_s);
        self.first_s = self.first_s.min(seen.at_s);
        self.is_gone = false;
        self.networks.add(seen.network);
        let day = day(seen.at_s);
        self.days.add(day);
        if self.statuses.len() < TYPES_MAX || self.statuses.contains_key(&seen.status) {
            *self.statuses.entry(seen.status).or_default() += 1;
        }
        let bucket = LATENCY_MS.iter().position(|ms| seen.took_us <= u64::from(*ms) * 1000);
        self.latency[bucket.unwrap_or(BUCKETS - 1)] += 1;
        match details {
            // What is answered with an error says nothing about what is asked for.
            Some(details) if seen.status < 400 => self.add_details(seen.network, day, details),
            _ => 0,
        }
    }

    fn add_details(&mut self, network: u32, day: u32, details: &Details) -> u64 {
        self.detailed += 1;
        let types = [
            (&mut self.request_types, &details.request_type),
            (&mut self.response_types, &details.response_type),
        ];
        for (types, seen) in types {
            if let Some(seen) = seen
                && (types.len() < TYPES_MAX || types.contains_key(seen))
            {
                *types.entry(seen.clone()).or_default() += 1;
            }
        }
        for kind in &details.authentication {
            *self.authentication.entry(*kind).or_default() += 1;
        }
        if let Some(kinds) = details.sensitive() {
            self.answers += 1;
            for kind in kinds {
                *self.sensitive.entry(kind).or_default() += 1;
            }
        }
        self.bodies += u64::from(details.parameters.iter().any(|seen| seen.place != ParameterPlace::Query));
        let mut beyond = u64::from(details.nameless);
        let mut counted = BTreeSet::new();
        for seen in &details.parameters {
            match self.parameter(seen, network, day) {
                Some(parameter) => {
                    parameter.add(seen, network, day);
                    if counted.insert((seen.place, &*seen.name)) {
                        parameter.requests += 1;
                    }
                }
                None => beyond += 1,
            }
        }
        beyond
    }

    /// The parameter, made if there is room for it.
    fn parameter(&mut self, seen: &Seen, network: u32, day: u32) -> Option<&mut Parameter> {
        let place = |own: &Parameter| (own.place, &*own.name).cmp(&(seen.place, &*seen.name));
        let at = match self.parameters.binary_search_by(place) {
            Ok(at) => at,
            Err(at) => {
                let own = self.parameters.iter().filter(|own| own.founder == Some(network)).count();
                if own >= FOUNDER_PARAMETERS_MAX && self.networks.count() > 1 {
                    return None;
                }
                let mut at = at;
                if self.parameters.len() >= PARAMETERS_MAX {
                    // One that another client made up may be dropped the next day.
                    let may_go = |own: &Parameter| own.founder.is_some() && own.last_day < day;
                    let gone = self.parameters.iter().position(may_go)?;
                    self.parameters.remove(gone);
                    at -= usize::from(gone < at);
                }
                self.parameters.insert(at, Parameter::new(seen, network));
                at
            }
        };
        self.parameters.get_mut(at)
    }

    /// The parameters of the interface: those that one network alone sends, and rarely, are left out.
    pub fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| {
            parameter.founder.is_none()
                || parameter.requests.saturating_mul(STRAY_SHARE) >= self.detailed.max(1)
        })
    }

    /// True if requests without the parameter are the exception.
    pub fn is_required(&self, parameter: &Parameter) -> bool {
        let all = match parameter.place {
            ParameterPlace::Query => self.detailed,
            ParameterPlace::Form | ParameterPlace::Json => self.bodies,
        };
        all >= REQUIRED_REQUESTS_MIN
            && parameter.requests.saturating_mul(100) >= all.saturating_mul(REQUIRED_PERCENT)
    }

    /// True if more than one network has asked it.
    pub fn is_confirmed(&self) -> bool {
        self.founder.is_none()
    }

    /// True if it can be taken for a part of the interface: more than one network has asked it, or on more
    /// than one day.
    pub fn is_settled(&self) -> bool {
        self.is_confirmed() || self.days.count() > 1
    }

    /// The bound under which so many of a hundred answers stayed, in milliseconds; none if it is beyond all
    /// bounds or there is no answer.
    pub fn latency_ms(&self, percent: u64) -> Option<u32> {
        let all: u64 = self.latency.iter().sum();
        let mut sum = 0;
        let at = self.latency.iter().position(|answers| {
            sum += answers;
            all > 0 && sum.saturating_mul(100) >= all.saturating_mul(percent)
        })?;
        LATENCY_MS.get(at).copied()
    }

    pub(crate) fn merge(&mut self, other: &Endpoint) {
        self.first_s = self.first_s.min(other.first_s);
        self.last_s = self.last_s.max(other.last_s);
        for (own, other) in [
            (&mut self.requests, other.requests),
            (&mut self.refused, other.refused),
            (&mut self.detailed, other.detailed),
            (&mut self.bodies, other.bodies),
            (&mut self.answers, other.answers),
        ] {
            *own = own.saturating_add(other);
        }
        self.networks.merge(&other.networks);
        self.days.merge(&other.days);
        add_up(&mut self.statuses, &other.statuses);
        self.latency.iter_mut().zip(other.latency).for_each(|(own, other)| *own = own.saturating_add(other));
        add_up(&mut self.authentication, &other.authentication);
        add_up(&mut self.request_types, &other.request_types);
        add_up(&mut self.response_types, &other.response_types);
        add_up(&mut self.sensitive, &other.sensitive);
        for parameter in &other.parameters {
            let place = |own: &Parameter| (own.place, &*own.name).cmp(&(parameter.place, &*parameter.name));
            match self.parameters.binary_search_by(place) {
                Ok(at) => self.parameters[at].merge(parameter),
                Err(at) if self.parameters.len() < PARAMETERS_MAX => {
                    self.parameters.insert(at, parameter.clone())
                }
                Err(_) => {}
            }
        }
        if self.founder != other.founder {
            self.founder = None;
        }
        self.is_told |= other.is_told;
        self.is_gone &= other.is_gone;
    }

    /// An error in an endpoint of a file.
    pub(crate) fn mistake(&mut self) -> Option<&'static str> {
        self.parameters.sort_by(|a, b| (a.place, &a.name).cmp(&(b.place, &b.name)));
        let types = [&self.request_types, &self.response_types];
        match () {
            () if self.parameters.len() > PARAMETERS_MAX => Some("it has too many parameters"),
            () if self.parameters.iter().any(|parameter| parameter.name.len() > 160) => {
                Some("a parameter has too long a name")
            }
            () if types
                .iter()
                .any(|types| types.len() > TYPES_MAX || types.keys().any(|kind| kind.len() > 80)) =>
            {
                Some("it has too many media types")
            }
            () if self.statuses.len() > TYPES_MAX => Some("it has too many statuses"),
            () => None,
        }
    }

    /// Bytes of memory, about.
    pub(crate) fn held_bytes(&self) -> usize {
        let of_types =
            |types: &BTreeMap<String, u64>| types.keys().map(|kind| kind.len() + 40).sum::<usize>();
        let parameter = |parameter: &Parameter| {
            size_of::<Parameter>() + parameter.name.len() + parameter.types.len() * 24
        };
        size_of::<Endpoint>()
            + 160
            + self.statuses.len() * 16
            + (self.authentication.len() + self.sensitive.len()) * 16
            + of_types(&self.request_types)
            + of_types(&self.response_types)
            + self.parameters.iter().map(parameter).sum::<usize>()
    }
}

pub(crate) fn day(at_s: u64) -> u32 {
    u32::try_from(at_s / DAY_S).unwrap_or(u32::MAX)
}

fn add_up<K: Ord + Clone>(own: &mut BTreeMap<K, u64>, other: &BTreeMap<K, u64>) {
    for (key, count) in other {
        if own.len() < TYPES_MAX || own.contains_key(key) {
            let sum = own.entry(key.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
}
