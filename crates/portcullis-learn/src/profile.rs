//! What one field carries, and whether that is enough to know it.

mod closing;
mod known;
mod merging;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::bytes::Syntax;
use crate::hash::option_hash;
use crate::key::FieldPlace;
use crate::opening::{FIELD_KINDS_MAX, KIND_BYTES_MAX, Opening, OpeningState};
use crate::refused::Refused;
use crate::sketch::{Distinct, Sightings, grouped};
use crate::source::{Source, Standing, Thresholds};
use crate::value::{Shape, TypeSet, ValueType};

pub(crate) use known::Known;
pub use known::{Opened, Unusual};

/// Networks that a closed field must see another type from before it is taken for one of its own; more than
/// ten, and at least this share of all.
pub const OPENING_NETWORKS_MIN: u64 = 16;
/// One in so many.
pub const OPENING_SHARE: u64 = 50;
/// One network in so many may show what it likes without keeping a field from being closed: more than that is
/// use, for which nobody should be refused.
pub const STRAY_SHARE: u64 = 200;
/// Values of trusted sources that stand for the thresholds of networks and days: those of `portcullis learn`.
pub const TRUSTED_VALUES: u64 = 100;
/// Values of trusted sources that open a closed field for their type.
pub const TRUSTED_OPENING_VALUES: u64 = 3;
/// Values per entry of an enumeration before a field is closed as one.
pub const OPTION_VALUES: u64 = 10;
/// Values of an enumeration.
pub const OPTIONS_MAX: usize = 32;
/// Bytes of a value of an enumeration.
pub const OPTION_BYTES_MAX: usize = 64;

/// One value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// What it is.
    pub shape: Shape,
    /// Its bytes.
    pub bytes: u32,
    /// Its hash, see `option_hash`; 0 where an enumeration would not have it.
    pub option: u64,
}

impl Carried {
    /// That of `value`, which has this shape, and is in no list.
    fn unlisted(value: &[u8], shape: Shape) -> Carried {
        Carried { shape, bytes: u32::try_from(value.len()).unwrap_or(u32::MAX), option: 0 }
    }

    /// That of a name in a path, known by its hash until it counts as a name of its own.
    pub(crate) fn name(name: &[u8]) -> Carried {
        let shape = Shape { kind: ValueType::Line, syntax: Syntax::NONE };
        Carried { option: option_hash(name), ..Carried::unlisted(name, shape) }
    }

    /// That of `value` in this place, which has this shape.
    #[inline]
    pub(crate) fn of(place: FieldPlace, value: &[u8], shape: Shape) -> Carried {
        let may_be_option =
            place.is_of_parameters() && value.len() <= OPTION_BYTES_MAX && shape.kind != ValueType::Whole;
        let option = if may_be_option { option_hash(value) } else { 0 };
        Carried { option, ..Carried::unlisted(value, shape) }
    }
}

/// The form that a closed field keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Values of this plain type.
    Type(ValueType),
    /// Values of a list of at most [`OPTIONS_MAX`].
    Enumeration,
}

/// Types of values that no list of choices has.
const WRITTEN: TypeSet =
    TypeSet::of(&[ValueType::Text, ValueType::Markup, ValueType::Code, ValueType::Json, ValueType::Binary]);

/// A field that is known well enough to say which values are unlike it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    /// Its form.
    pub form: Form,
    /// Bytes of code that its values had.
    pub shown: Syntax,
}

impl Closed {
    /// The form that has what both have, if one of them does.
    fn wider(self, other: Closed) -> Closed {
        let form = match (self.form, other.form) {
            (Form::Type(own), Form::Type(others)) if others.covers().has(own) => other.form,
            (Form::Enumeration, others) => others,
            (own, _) => own,
        };
        Closed { form, shown: self.shown.with(other.shown) }
    }
}

/// What a field was closed as until it opened again, by what it carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reopened {
    /// Its form until then.
    pub form: Form,
    /// The day, since 1970.
    pub day: u32,
}

/// What is missing before a field is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Values.
    pub values: u64,
    /// Networks of clients.
    pub networks: u64,
    /// Sessions.
    pub sessions: u64,
    /// Days.
    pub days: u32,
}

/// What a field has carried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// All of it.
    pub all: Sightings,
    /// Values that came with a session.
    pub with_session: u64,
    /// Sessions.
    pub sessions: Distinct,
    /// By type.
    pub types: BTreeMap<ValueType, Sightings>,
    /// By class of bytes of code.
    pub(crate) syntax: BTreeMap<u8, Sightings>,
    /// Bytes of the shortest and of the longest value.
    pub bytes: (u32, u32),
    /// Hashes of its values while they are few.
    pub(crate) options: Vec<u64>,
    /// The number of values up to the last one that was new.
    #[serde(default)]
    pub(crate) option_new_at: u64,
    /// Values beyond them.
    pub(crate) others: Sightings,
    /// Values of trusted sources, and by type those of each.
    #[serde(default)]
    pub trusted: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    trusted_types: BTreeMap<ValueType, u64>,
    /// By kind of finding, those that it has carried.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub openings: BTreeMap<String, Opening>,
    /// Requests that were refused for what it carried, and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Box<Refused>>,
    /// What it keeps to, once that is known.
    pub closed: Option<Closed>,
    /// What it kept to before, of a field that has opened again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopened: Option<Reopened>,
    /// Of its different values those of a list, by which fields beside it are known, too; 0: it is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    listed: usize,
    /// An operator keeps it open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept_open: bool,
}

impl Profile {
    /// Takes a value over, which stands for so many.
    pub(crate) fn add(&mut self, carried: &Carried, weight: u32, from: Source, thresholds: &Thresholds) {
        let Carried { shape, bytes, option } = *carried;
        self.bytes = match self.all.values {
            0 => (bytes, bytes),
            _ => (self.bytes.0.min(bytes), self.bytes.1.max(bytes)),
        };
        let before = self.all.values;
        let mut is_news = self.all.add(weight, from.network, from.day);
        if let Some(session) = from.session {
            self.with_session = self.with_session.saturating_add(weight.into());
            is_news |= self.sessions.add(session);
        }
        is_news |= self.types.entry(shape.kind).or_default().add(weight, from.network, from.day);
        if from.standing == Standing::Trusted {
            self.trusted = self.trusted.saturating_add(1);
            let of_type = self.trusted_types.entry(shape.kind).or_default();
            *of_type = of_type.saturating_add(1);
            is_news |= *of_type == TRUSTED_OPENING_VALUES || self.trusted == TRUSTED_VALUES;
        }
        for class in shape.syntax.iter() {
            is_news |= self.syntax.entry(number(class)).or_default().add(weight, from.network, from.day);
        }
        if option == 0 || !self.options.contains(&option) {
            if option != 0 && self.options.len() < OPTIONS_MAX {
                self.options.push(option);
                self.option_new_at = self.all.values;
            } else {
                is_news |= self.others.add(weight, from.network, from.day);
            }
        }
        // Thresholds are passed by values from somewhere new, or by the number of values.
        let has_doubled = self.all.values.leading_zeros() < before.leading_zeros();
        if is_news || before <= thresholds.values || has_doubled {
            self.settle(thresholds);
        }
    }

    /// Counts a kind of finding that it carried.
    pub(crate) fn add_kind(&mut self, kind: &str, from: Source) {
        if from.standing == Standing::Anybody || kind.len() > KIND_BYTES_MAX {
            return;
        }
        if !self.openings.contains_key(kind) && self.openings.len() >= FIELD_KINDS_MAX {
            let old = self.openings.iter().find(|(_, opening)| opening.gives_way(from.day));
            let Some(old) = old.map(|(kind, _)| kind.clone()) else { return };
            self.openings.remove(&old);
        }
        match self.openings.get_mut(kind) {
            Some(opening) => opening.add(from),
            None => self.openings.entry(kind.to_owned()).or_default().add(from),
        }
    }

    /// Has a decision about a kind hold, unless the kind has moved on since the day of the decision.
    pub(crate) fn decide(&mut self, kind: &str, (state, day): (OpeningState, u32), thresholds: &Thresholds) {
        let opening = self.openings.get_mut(kind);
        let is_later = |opening: &&mut Opening| {
            opening.state != state && (opening.state == OpeningState::Seen || opening.since <= day)
        };
        if let Some(opening) = opening.filter(is_later) {
            opening.enter(state, day);
            self.settle(thresholds);
        }
    }

    /// Counts a request that was refused for what it carried, and nothing else.
    pub(crate) fn add_refused(&mut self, from: Source, thresholds: &Thresholds) {
        let strays = self.strays();
        self.refused.get_or_insert_default().add(from, strays, thresholds);
    }

    /// True if what was refused keeps it from being closed.
    pub(crate) fn is_refused_often(&self) -> bool {
        self.refused.as_ref().is_some_and(|refused| refused.keeps_open(self.all.days.last()))
    }

    /// Moves the kinds that it carries on, see [`Store::advance`](crate::Store::advance). True if something
    /// has changed.
    pub(crate) fn advance(&mut self, day: u32, thresholds: &Thresholds, auto: Option<u32>) -> bool {
        let networks = self.all.network_count();
        let mut has_changed = false;
        self.openings.retain(|_, opening| {
            let before = opening.state;
            let stays = opening.advance(day, networks, thresholds, auto);
            has_changed |= !stays || before != opening.state;
            stays
        });
        if has_changed {
            self.settle(thresholds);
        }
        has_changed
    }

    /// How many sessions have sent it, see [`Sightings::network_count`].
    pub fn session_count(&self) -> u64 {
        self.sessions.count().min(self.with_session)
    }

    /// What it is known to carry: "whole numbers only: 48,210 values of 1,204 networks in 12 days".
    pub fn evidence(&self) -> String {
        let mut text = match self.all.values {
            0 => "no value was learned yet".to_owned(),
            _ => self.evidence_of_values(),
        };
        if let Some(refused) =
            self.refused.as_ref().filter(|_| self.closed.is_none() && self.is_refused_often())
        {
            let (requests, networks) = (refused.seen.values, refused.seen.network_count());
            let _ = write!(
                text,
                "; kept open by {} refused requests of {} networks",
                grouped(requests),
                grouped(networks)
            );
        }
        text
    }

    fn evidence_of_values(&self) -> String {
        let what = match self.closed.map(|closed| closed.form) {
            Some(Form::Type(kind)) => format!("{} only", kind.title()),
            Some(Form::Enumeration) => format!("one of {} values", self.options()),
            None => {
                let mut types: Vec<_> = self.types.iter().collect();
                types.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.values));
                types.iter().map(|(kind, _)| kind.title()).collect::<Vec<_>>().join(", ")
            }
        };
        let Sightings { values, days, .. } = &self.all;
        let mut text =
            format!("{what}: {} values of {} networks", grouped(*values), grouped(self.all.network_count()));
        if self.with_session > 0 {
            let _ = write!(text, " and {} sessions", grouped(self.session_count()));
        }
        let _ = write!(text, " in {} day{}", days.count(), if days.count() == 1 { "" } else { "s" });
        text
    }

    /// The number of its different values while they are few; an enumeration has no others.
    pub fn options(&self) -> usize {
        self.options.len()
    }

    /// How much of what closing takes has been seen, from 0 to 1.
    pub fn confidence(&self, thresholds: &Thresholds) -> f64 {
        let missing = self.missing(thresholds);
        let share = |missing: u64, needed: u64| 1.0 - missing as f64 / needed.max(1) as f64;
        share(missing.values, thresholds.values)
            .min(share(missing.networks, thresholds.networks))
            .min(share(missing.sessions, thresholds.networks))
            .min(share(missing.days.into(), thresholds.days.into()))
    }

    pub(crate) fn held_bytes(&self) -> usize {
        let of = |seen: &Sightings| size_of::<Sightings>() + seen.networks.held_bytes() + MAP_BYTES;
        size_of::<Profile>()
            + self.all.networks.held_bytes()
            + self.sessions.held_bytes()
            + self.others.networks.held_bytes()
            + self.types.values().map(of).sum::<usize>()
            + self.syntax.values().map(of).sum::<usize>()
            + self.options.capacity() * size_of::<u64>()
            + self
                .refused
                .as_ref()
                .map_or(0, |refused| size_of::<Refused>() + refused.seen.networks.held_bytes())
            + self.trusted_types.len() * (size_of::<(ValueType, u64)>() + MAP_BYTES)
            + self
                .openings
                .iter()
                .map(|(kind, opening)| kind.len() + size_of::<String>() + opening.held_bytes() + MAP_BYTES)
                .sum::<usize>()
    }

    /// What is wrong with it, if it was read from somewhere.
    pub(crate) fn mistake(&self) -> Option<&'static str> {
        match () {
            () if self.options.len() > OPTIONS_MAX => Some("an enumeration has too many values"),
            () if self.listed > self.options.len() => Some("a list has more values than are known of it"),
            () if self.syntax.keys().any(|class| usize::from(*class) >= Syntax::ALL.len()) => {
                Some("there is no such class of bytes")
            }
            () if self.openings.len() > FIELD_KINDS_MAX => Some("it has carried too many kinds of findings"),
            () if self.openings.keys().any(|kind| kind.len() > KIND_BYTES_MAX) => {
                Some("the name of a kind of finding is too long")
            }
            () if self.bytes.0 > self.bytes.1 => Some("the shortest value is longer than the longest"),
            () => match self.closed.map(|closed| closed.form) {
                Some(Form::Type(kind)) if !ValueType::PLAIN.contains(&kind) => {
                    Some("a field is closed as a type that is not plain")
                }
                _ => None,
            },
        }
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What a map takes for an entry beside it.
const MAP_BYTES: usize = 16;

/// The number of a class of syntax, which is its place in [`Syntax::ALL`].
fn number(class: Syntax) -> u8 {
    Syntax::ALL.iter().position(|(known, _)| *known == class).unwrap_or_default() as u8
}
