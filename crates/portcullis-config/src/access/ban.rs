//! `ban`: clients that are refused for a time because of what they did.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::check::{action, networks, prefixes, status};
use super::checked::{Prefixes, RefuseAction};
use super::raw::RefuseAction as RawAction;
use crate::checked::network::Network;
use crate::mistakes::Mistakes;
use crate::spanned::Spanned;
use crate::units::Time;

const SCORE: u32 = 50;
const SCORE_MAX: u32 = 1_000_000;
const WINDOW: Duration = Duration::from_secs(10 * 60);
const FIRST: Duration = Duration::from_secs(10 * 60);
const LONGEST: Duration = Duration::from_secs(24 * 3600);
const MEMORY: Duration = Duration::from_secs(24 * 3600);
/// The longest of these times.
const TIME_MAX: Duration = Duration::from_secs(366 * 24 * 3600);
const CLIENTS: u32 = 65_536;
const CLIENTS_MAX: u32 = 1 << 22;

/// When clients are banned: refused for a time, because their requests were attacks.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    /// `false`: nobody is. Default: `true`.
    pub enabled: Option<bool>,
    /// A client that gets so many points within `window` is banned. Default: 50.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub score: Option<Spanned<u32>>,
    /// The time within which points count. Default: 10m.
    pub window: Option<Spanned<Time>>,
    /// What gives a client points.
    #[serde(default)]
    pub points: RawPoints,
    /// How long the first ban is; each further one is twice as long. Default: 10m.
    pub duration: Option<Spanned<Time>>,
    /// How long a ban is at most. Default: 24h.
    pub duration_max: Option<Spanned<Time>>,
    /// So long after a ban the next one counts as the first again. Default: 24h.
    pub memory: Option<Spanned<Time>>,
    /// Bits of an IPv4 address that tell clients apart. Default: 32.
    #[schemars(range(min = 1, max = 32))]
    pub ipv4_prefix: Option<Spanned<u8>>,
    /// The same for IPv6. Default: 64.
    #[schemars(range(min = 1, max = 128))]
    pub ipv6_prefix: Option<Spanned<u8>>,
    /// Addresses and networks of clients that are never banned.
    #[serde(default)]
    pub except: Vec<Spanned<String>>,
    /// What happens to requests of banned clients. Default: `block`.
    pub action: Option<RawAction>,
    /// Status of the refusal. Default: 403.
    #[schemars(range(min = 400, max = 599))]
    pub status: Option<Spanned<u16>>,
    /// Clients with points or bans at one time, 64 bytes each; beyond it those that did the least are
    /// forgotten, counted. Default: 65536.
    #[schemars(range(min = 8, max = 4_194_304))]
    pub clients: Option<Spanned<u32>>,
}

/// Points by what came of a request.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPoints {
    /// Blocked by the rules or the semantic detector. Default: 10.
    pub blocked: Option<u32>,
    /// Reported by them and let through. Default: 0.
    pub detected: Option<u32>,
    /// Not HTTP as it may be sent. Default: 0.
    pub refused: Option<u32>,
    /// Over a rate limit. Default: 0.
    pub limited: Option<u32>,
    /// The inbound anomaly score of the rules comes on top. Default: `false`.
    pub anomaly: Option<bool>,
}

/// The policy of bans: points, durations, exceptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ban {
    /// The sites and routes with the same name share their bans: `all`, a site, or `SITE/ROUTE`.
    pub name: String,
    /// Points of a banned client.
    pub score: u32,
    /// The time within which they count.
    pub window: Duration,
    /// Points for each kind of offence.
    pub points: Points,
    /// The first ban.
    pub duration: Duration,
    /// The longest.
    pub duration_max: Duration,
    /// The time after its end for which a ban makes the next one longer.
    pub memory: Duration,
    /// The prefix lengths by which addresses count as one client.
    pub prefixes: Prefixes,
    /// Networks that are never banned.
    pub except: Vec<Network>,
    /// The action on requests of banned clients.
    pub action: RefuseAction,
    /// The status they are answered with.
    pub status: u16,
    /// Clients at one time.
    pub clients_max: usize,
}

/// Points by what came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Points {
    /// Blocked.
    pub blocked: u32,
    /// Reported and let through.
    pub detected: u32,
    /// Not acceptable HTTP.
    pub refused: u32,
    /// Over a rate limit.
    pub limited: u32,
    /// The inbound anomaly score comes on top.
    pub anomaly: bool,
}

impl Default for Points {
    fn default() -> Points {
        Points { blocked: 10, detected: 0, refused: 0, limited: 0, anomaly: false }
    }
}

/// Checks `raw` for clients that it lists under `name`; `base` if it is absent.
pub(crate) fn check(
    mistakes: &mut Mistakes<'_>,
    raw: Option<&Spanned<Raw>>,
    name: &str,
    base: Option<&Ban>,
) -> Option<Ban> {
    let Some(spanned) = raw else { return base.cloned() };
    let raw = &spanned.value;
    if raw.enabled == Some(false) {
        return None;
    }
    let default = Points::default();
    let points = Points {
        blocked: raw.points.blocked.unwrap_or(default.blocked),
        detected: raw.points.detected.unwrap_or(default.detected),
        refused: raw.points.refused.unwrap_or(default.refused),
        limited: raw.points.limited.unwrap_or(default.limited),
        anomaly: raw.points.anomaly.unwrap_or(default.anomaly),
    };
    if points == (Points { blocked: 0, ..default }) {
        mistakes
            .wrong(spanned.span.clone(), "no outcome gives points, so no client would be banned".to_string());
    }
    let mut time = |key: &str, given: &Option<Spanned<Time>>, default: Duration| {
        let Some(given) = given else { return default };
        if given.value.0.is_zero() || given.value.0 > TIME_MAX {
            mistakes.wrong(given.span.clone(), format!("{key} must be more than 0 and a year at most"));
        }
        given.value.0
    };
    let window = time("window", &raw.window, WINDOW);
    let duration = time("duration", &raw.duration, FIRST);
    let duration_max = time("duration_max", &raw.duration_max, LONGEST.max(duration));
    let memory = time("memory", &raw.memory, MEMORY);
    if let Some(given) = raw.duration_max.as_ref().filter(|_| duration_max < duration) {
        mistakes.wrong(given.span.clone(), "duration_max is shorter than duration".to_string());
    }
    let mut number =
        |key: &str, given: &Option<Spanned<u32>>, range: std::ops::RangeInclusive<u32>, default| {
            let Some(given) = given else { return default };
            if !range.contains(&given.value) {
                let message = format!("{key} must be {} to {}", range.start(), range.end());
                mistakes.wrong(given.span.clone(), message);
            }
            given.value
        };
    let score = number("score", &raw.score, 1..=SCORE_MAX, SCORE);
    let clients_max = number("clients", &raw.clients, 8..=CLIENTS_MAX, CLIENTS).min(CLIENTS_MAX) as usize;
    Some(Ban {
        name: name.to_string(),
        score,
        window,
        points,
        duration,
        duration_max,
        memory,
        prefixes: prefixes(mistakes, &raw.ipv4_prefix, &raw.ipv6_prefix),
        except: networks(mistakes, &raw.except),
        action: action(raw.action),
        status: status(mistakes, raw.status.as_ref(), raw.action, 403),
        clients_max,
    })
}
