//! What a profile takes over from another one of the same field.

use super::{Form, OPTIONS_MAX, Profile, TRUSTED_OPENING_VALUES};
use crate::opening::{FIELD_KINDS_MAX, OpeningState};
use crate::source::Thresholds;

impl Profile {
    /// Takes over what another node has seen of the same field.
    pub(crate) fn merge(&mut self, other: &Profile, thresholds: &Thresholds) {
        self.bytes = match (self.all.values, other.all.values) {
            (0, _) => other.bytes,
            (_, 0) => self.bytes,
            _ => (self.bytes.0.min(other.bytes.0), self.bytes.1.max(other.bytes.1)),
        };
        self.all.merge(&other.all);
        self.with_session = self.with_session.saturating_add(other.with_session);
        self.sessions.merge(&other.sessions);
        for (kind, seen) in &other.types {
            self.types.entry(*kind).or_default().merge(seen);
        }
        for (class, seen) in &other.syntax {
            self.syntax.entry(*class).or_default().merge(seen);
        }
        self.trusted = self.trusted.saturating_add(other.trusted);
        for (kind, values) in &other.trusted_types {
            let own = self.trusted_types.entry(*kind).or_default();
            *own = own.saturating_add(*values);
        }
        for (kind, opening) in &other.openings {
            if let Some(own) = self.openings.get_mut(kind) {
                own.merge(opening);
            } else if self.openings.len() < FIELD_KINDS_MAX {
                self.openings.insert(kind.clone(), opening.clone());
            }
        }
        // As if what this one has carried came first, and then the other one's.
        let of_other = self.all.values.saturating_sub(other.all.values).saturating_add(other.option_new_at);
        let mut beyond = other.others.clone();
        for option in &other.options {
            if self.options.contains(option) {
                continue;
            }
            match self.options.len() < OPTIONS_MAX {
                true => {
                    self.options.push(*option);
                    self.option_new_at = of_other;
                }
                // It is not known who sent it: anybody who sent the field.
                false => beyond.merge(&other.all),
            }
        }
        self.others.merge(&beyond);
        if let Some(refused) = &other.refused {
            self.refused.get_or_insert_default().merge(refused);
        }
        // What one of both knows well, both do, until it is outgrown by what they have seen together: a few
        // who could not open it here do not open it by being seen elsewhere.
        self.closed = match (self.closed, other.closed) {
            (Some(own), Some(others)) => Some(own.wider(others)),
            (own, others) => own.or(others),
        };
        self.kept_open |= other.kept_open;
        if self.is_list() || other.is_list() {
            self.listed = self.options.len();
        }
        self.reopened = self.reopened.or(other.reopened);
        self.settle(thresholds);
    }

    /// A person has confirmed what it carries: each of its types counts as one of trusted sources. Whether
    /// it is closed is for the field that takes it over.
    pub(crate) fn vouch(&mut self) {
        for kind in self.types.keys() {
            let values = self.trusted_types.entry(*kind).or_default();
            *values = (*values).max(TRUSTED_OPENING_VALUES);
        }
        (self.closed, self.reopened, self.kept_open) = (None, None, false);
        self.listed = 0;
    }

    /// Has the kinds count for nothing that `taught` carries, as far as nobody has said that they count; and
    /// keeps open a list that has no place for the values of `taught`.
    pub(crate) fn take_confirmed(&mut self, taught: &Profile, day: u32, thresholds: &Thresholds) {
        for kind in taught.openings.keys() {
            if let Some(own) = self.openings.get_mut(kind)
                && own.state != OpeningState::Dismissed
            {
                own.enter(OpeningState::Live, day);
            }
        }
        let is_list = self.closed.is_some_and(|closed| closed.form == Form::Enumeration);
        let has_place = |option: &u64| self.options.contains(option);
        if is_list && (taught.others.values > 0 || !taught.options.iter().all(has_place)) {
            (self.kept_open, self.closed) = (true, None);
        }
        self.settle(thresholds);
    }
}
