//! Fields that carry code: which kinds of findings a field has carried, who showed them, and which of them
//! count for nothing there.
//!
//! ```text
//!  seen ──enough networks, sessions, days──> proposed ──> on trial ──> live
//!   ^  <──────────── not seen for long ────────┴─────────────┴──────────┘   (and dismissed, from any of them)
//! ```

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::hash::option_hash;
use crate::key::Key;
use crate::sketch::{Distinct, Sightings, grouped, mix};
use crate::source::{Source, Standing, Thresholds};

/// Kinds of findings that are counted in one field.
pub const FIELD_KINDS_MAX: usize = 6;
/// Bytes of the name of a kind.
pub const KIND_BYTES_MAX: usize = 64;
/// A kind must have come from one in so many of the networks that send the field.
pub const KIND_SHARE: u64 = 20;
/// Values with the kind by trusted sources that stand for all thresholds.
pub const TRUSTED_KIND_VALUES: u64 = 3;
/// A kind that is not proposed within so many days is counted anew: who has time gains nothing by it.
pub const KIND_WINDOW_DAYS: u32 = 60;
/// A kind that was not seen for so many days counts again, and is no proposal any more.
pub const KIND_IDLE_DAYS: u32 = 30;
/// Days after which a kind that only one network has shown may be replaced by another one.
const GIVES_WAY_DAYS: u32 = 7;

/// How far a kind in a field has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpeningState {
    /// It has been seen, too little to propose anything.
    #[default]
    Seen,
    /// The field carries it for many: a person should look.
    Proposed,
    /// It counts, and requests that were stopped tell what would have become of them.
    Trial,
    /// It counts for nothing in this field.
    Live,
    /// A person has said that it counts.
    Dismissed,
}

impl OpeningState {
    /// All of them.
    pub const ALL: [OpeningState; 5] = [
        OpeningState::Seen,
        OpeningState::Proposed,
        OpeningState::Trial,
        OpeningState::Live,
        OpeningState::Dismissed,
    ];

    /// The name in lists and files.
    pub fn name(self) -> &'static str {
        match self {
            OpeningState::Seen => "seen",
            OpeningState::Proposed => "proposed",
            OpeningState::Trial => "trial",
            OpeningState::Live => "live",
            OpeningState::Dismissed => "dismissed",
        }
    }

    /// That of a name.
    pub fn from_name(name: &str) -> Option<OpeningState> {
        OpeningState::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// What would have become of requests that were stopped, had the kinds on trial counted for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// They would have passed, and nothing else was found in them.
    pub passes: u64,
    /// They would have passed, although something else was found in them: perhaps attacks.
    pub lost: u64,
    /// They would have been stopped all the same.
    pub stopped: u64,
}

/// What would have become of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryResult {
    /// See [`Tried::passes`].
    Passes,
    /// See [`Tried::lost`].
    Lost,
    /// See [`Tried::stopped`].
    Stopped,
}

impl Tried {
    pub(crate) fn add(&mut self, result: TryResult) {
        let count = match result {
            TryResult::Passes => &mut self.passes,
            TryResult::Lost => &mut self.lost,
            TryResult::Stopped => &mut self.stopped,
        };
        *count = count.saturating_add(1);
    }
}

/// One kind of finding in one field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// Requests with it that were let through, from clients that had logged in.
    pub seen: Sightings,
    /// Their sessions.
    pub sessions: Distinct,
    /// Requests with it of trusted sources.
    pub trusted: u64,
    /// How far it has come.
    pub state: OpeningState,
    /// The day on which that began.
    pub since: u32,
    /// What the trial has told.
    #[serde(default)]
    pub tried: Tried,
}

impl Opening {
    /// Counts a request. Who has not logged in teaches nothing here.
    pub(crate) fn add(&mut self, from: Source) {
        if self.seen.values == 0
            || self.state == OpeningState::Seen && self.since.saturating_add(KIND_WINDOW_DAYS) < from.day
        {
            *self = Opening { since: from.day, ..Opening::default() };
        }
        if from.standing == Standing::Trusted {
            self.trusted = self.trusted.saturating_add(1);
        }
        self.seen.add(1, from.network, from.day);
        if let Some(session) = from.session {
            self.sessions.add(session);
        }
    }

    /// How many sessions have shown it, see [`Sightings::network_count`].
    pub fn session_count(&self) -> u64 {
        self.sessions.count().min(self.seen.values)
    }

    /// Enough have shown it, `networks` being those that have sent the field.
    pub(crate) fn is_common(&self, networks: u64, thresholds: &Thresholds) -> bool {
        self.trusted >= TRUSTED_KIND_VALUES
            || self.seen.network_count() >= thresholds.networks.max(networks / KIND_SHARE)
                && self.session_count() >= thresholds.networks
                && self.seen.days.count() >= thresholds.days
    }

    /// Moves it on: `auto` says after how many days on trial it counts for nothing by itself. False if it is
    /// over.
    pub(crate) fn advance(
        &mut self,
        day: u32,
        networks: u64,
        thresholds: &Thresholds,
        auto: Option<u32>,
    ) -> bool {
        use OpeningState::{Live, Proposed, Seen, Trial};
        if self.seen.days.last().saturating_add(KIND_IDLE_DAYS) < day {
            return false;
        }
        if self.state == Seen && self.is_common(networks, thresholds) {
            self.enter(Proposed, day);
        }
        let Some(days) = auto else { return true };
        if self.state == Proposed {
            // Who is trusted is believed.
            let is_trusted = self.trusted >= TRUSTED_KIND_VALUES;
            self.enter(if is_trusted { Live } else { Trial }, day);
        }
        if self.state == Trial && self.since.saturating_add(days) <= day && self.tried.lost == 0 {
            self.enter(Live, day);
        }
        true
    }

    /// It is in another state from now on.
    pub(crate) fn enter(&mut self, state: OpeningState, day: u32) {
        if self.state != state {
            (self.state, self.since) = (state, day);
        }
        if state == OpeningState::Trial {
            self.tried = Tried::default();
        }
    }

    /// True if it keeps its field from being closed.
    pub(crate) fn keeps_open(&self) -> bool {
        matches!(self.state, OpeningState::Proposed | OpeningState::Trial | OpeningState::Live)
    }

    /// True if it may be dropped for another kind.
    pub(crate) fn gives_way(&self, day: u32) -> bool {
        self.state == OpeningState::Seen
            && self.seen.network_count() <= 1
            && self.seen.days.last().saturating_add(GIVES_WAY_DAYS) < day
    }

    pub(crate) fn merge(&mut self, other: &Opening) {
        self.seen.merge(&other.seen);
        self.sessions.merge(&other.sessions);
        self.trusted = self.trusted.saturating_add(other.trusted);
        // What a person here has said holds.
        if self.state == OpeningState::Seen {
            (self.state, self.since) = (other.state, other.since.max(self.since));
        }
    }

    /// Who has shown it: "120 requests of 40 networks and 38 sessions in 9 days".
    pub fn evidence(&self) -> String {
        let Opening { seen, trusted, .. } = self;
        let mut text =
            format!("{} requests of {} networks", grouped(seen.values), grouped(seen.network_count()));
        if self.session_count() > 0 {
            let _ = write!(text, " and {} sessions", grouped(self.session_count()));
        }
        let days = seen.days.count();
        let _ = write!(text, " in {days} day{}", if days == 1 { "" } else { "s" });
        if *trusted > 0 {
            let _ = write!(text, ", {} of trusted sources", grouped(*trusted));
        }
        text
    }

    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<Opening>() + self.seen.networks.held_bytes() + self.sessions.held_bytes()
    }
}

/// The name by which people call a kind in a field.
pub fn opening_id(key: &Key, kind: &str) -> String {
    let Key { template, name, method, place } = key;
    let mut hash = 0;
    for part in [template, name, method, place.name(), kind] {
        hash = mix(hash ^ option_hash(part.as_bytes()));
    }
    format!("{:010x}", hash >> 24)
}
