//! When a field is closed, as what, and when it opens again.

use super::{
    Closed, Form, Missing, OPENING_NETWORKS_MIN, OPENING_SHARE, OPTION_VALUES, Profile, Reopened,
    STRAY_SHARE, TRUSTED_OPENING_VALUES, TRUSTED_VALUES, WRITTEN, number,
};
use crate::bytes::Syntax;
use crate::opening::{Opening, OpeningState};
use crate::sketch::Sightings;
use crate::source::{OPENING_DAYS_MIN, Thresholds};
use crate::value::{TypeSet, ValueType};

impl Profile {
    /// Closes the field, or opens it again.
    pub(crate) fn settle(&mut self, thresholds: &Thresholds) {
        self.list(thresholds);
        if self.openings.values().any(|opening| opening.state == OpeningState::Live) {
            self.closed = None;
        }
        if self.kept_open {
            self.closed = None;
            return;
        }
        if let Some(closed) = self.closed
            && self.is_outgrown(closed)
        {
            self.closed = None;
            self.reopened = Some(Reopened { form: closed.form, day: self.all.days.last() });
        }
        if let Some(closed) = self.closed {
            let shown = closed.shown.with(self.syntax_where(|seen| self.is_established(seen)));
            self.closed = Some(Closed { shown, ..closed });
        } else if !self.carries_code()
            && !self.is_refused_often()
            && self.missing(thresholds) == Missing::default()
        {
            self.close(Syntax::NONE);
        }
    }

    /// It carries code, or it is to be decided whether.
    pub(super) fn carries_code(&self) -> bool {
        self.openings.values().any(Opening::keeps_open)
    }

    /// Takes the field for a list, or no longer.
    pub(super) fn list(&mut self, thresholds: &Thresholds) {
        if self.is_list() {
            if self.is_established(&self.others) {
                self.listed = 0;
            }
        } else if self.options.len() > 1
            && self.missing(thresholds) == Missing::default()
            && self.is_enumeration(self.strays())
        {
            self.listed = self.options.len();
        }
    }

    /// It carries values of a list, by which fields beside it are known, too.
    pub(crate) fn is_list(&self) -> bool {
        self.listed > 0
    }

    /// The hashes of the values of the list, and of those that came later: any client can add to these.
    pub(crate) fn listed(&self) -> (&[u64], &[u64]) {
        self.options.split_at_checked(self.listed).unwrap_or_default()
    }

    /// Closes the field as what it has carried so far, with bytes of code that are known to be usual in it;
    /// false if that is of no plain type.
    pub(crate) fn close(&mut self, known: Syntax) -> bool {
        let strays = self.strays();
        let shown = self.syntax_where(|seen| seen.network_count() > strays).with(known);
        self.closed = self.form_so_far().map(|form| Closed { form, shown });
        if self.closed.is_some() {
            (self.reopened, self.kept_open) = (None, false);
        }
        self.closed.is_some()
    }

    /// What is missing before it is closed, beside a plain type of its values.
    pub fn missing(&self, thresholds: &Thresholds) -> Missing {
        let is_of_sessions = self.with_session > self.all.values / 2;
        if self.trusted >= TRUSTED_VALUES {
            return Missing::default();
        }
        let sessions = if is_of_sessions { thresholds.networks } else { 0 };
        Missing {
            values: thresholds.values.saturating_sub(self.all.values),
            networks: thresholds.networks.saturating_sub(self.all.network_count()),
            sessions: sessions.saturating_sub(self.session_count()),
            days: thresholds.days.saturating_sub(self.all.days.count()),
        }
    }

    /// The form that it has kept to so far; none if its values are of no plain type.
    pub fn form_so_far(&self) -> Option<Form> {
        self.form(self.strays())
    }

    /// Networks that may show what they like.
    pub(super) fn strays(&self) -> u64 {
        self.all.network_count() / STRAY_SHARE
    }

    /// The narrowest form that has all of its values, but for those of at most `strays` networks.
    fn form(&self, strays: u64) -> Option<Form> {
        let shown = self.types.iter().filter(|(kind, seen)| {
            // Those of few are left out, unless a trusted client has sent them.
            seen.network_count() > strays || self.is_trusted(**kind)
        });
        let shown: TypeSet = shown.map(|(kind, _)| *kind).collect();
        let fits = |kind: &&ValueType| !shown.is_empty() && shown.is_within(kind.covers());
        // A path alone may be any: URLs among its values show that it stays on the site, and tokens that it
        // is part of a token.
        let is_told = |kind: &&ValueType| {
            (**kind != ValueType::OwnUrl || shown.has(ValueType::OwnUrl))
                && (**kind != ValueType::Token || !shown.is_within(TypeSet::of(&[ValueType::Path])))
        };
        match ValueType::PLAIN.iter().filter(fits).find(is_told) {
            Some(kind) => Some(Form::Type(*kind)),
            None => self.is_enumeration(strays).then_some(Form::Enumeration),
        }
    }

    /// Its values are those of a list. A list has stopped growing long before: names that are drawn from many
    /// have new ones among the last half of them, few as they are. What people write is no list, however
    /// often the same of it came: others will come.
    fn is_enumeration(&self, strays: u64) -> bool {
        let is_written = |(kind, seen): (&ValueType, &Sightings)| {
            WRITTEN.has(*kind) && (seen.network_count() > strays || self.is_trusted(*kind))
        };
        !self.types.iter().any(is_written)
            && self.others.network_count() <= strays
            && self.option_new_at <= self.all.values / 2
            && self.all.values >= OPTION_VALUES * self.options.len() as u64
    }

    /// What it carries now has another form.
    fn is_outgrown(&self, closed: Closed) -> bool {
        match closed.form {
            Form::Type(kind) => {
                let covered = kind.covers();
                self.types.iter().any(|(kind, seen)| {
                    !covered.has(*kind) && (self.is_established(seen) || self.is_trusted(*kind))
                })
            }
            Form::Enumeration => self.is_established(&self.others),
        }
    }

    /// Trusted sources have sent enough values of this type.
    pub(super) fn is_trusted(&self, kind: ValueType) -> bool {
        self.trusted_types.get(&kind).is_some_and(|values| *values >= TRUSTED_OPENING_VALUES)
    }

    /// Many have sent it, or a trusted client.
    pub(crate) fn is_known_to_many(&self) -> bool {
        self.is_established(&self.all) || self.trusted >= TRUSTED_OPENING_VALUES
    }

    pub(super) fn is_established(&self, seen: &Sightings) -> bool {
        let networks = seen.network_count();
        networks >= OPENING_NETWORKS_MIN.max(self.all.network_count() / OPENING_SHARE)
            && seen.days.count() >= OPENING_DAYS_MIN
    }

    pub(super) fn syntax_where(&self, is_shown: impl Fn(&Sightings) -> bool) -> Syntax {
        let all = Syntax::ALL.iter().map(|(class, _)| *class);
        let shown = all.filter(|class| self.syntax.get(&number(*class)).is_some_and(&is_shown));
        shown.fold(Syntax::NONE, Syntax::with)
    }
}
