//! What sites have learned, as the admin API shows it, and what operators decide about it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use portcullis_api::fields::{
    CarriedType, ClosedBefore, DecidedProposal, DecidedSession, FieldOrder, FieldOrderError, FieldPlace,
    FieldProposal, FieldState, LearnedField, LearnedFields, LearningSite, OrderedField, ProposalDecision,
    ProposalState, SessionError, SessionOrder, Sighted, Teacher, TeachingSession,
};
use portcullis_config::Unusual;
use portcullis_event::Timestamp;
use portcullis_learn::{
    FieldPlace as Place, Form, Key, Missing, Opening, OpeningState, Order, OrderError, Profile, Thresholds,
    Tried,
};

use crate::run::kept;
use crate::run::learner::Learner;

/// Milliseconds of a day.
const DAY_MILLIS: u64 = 86_400_000;

/// The sites that learn.
pub struct Desk(pub Arc<Mutex<BTreeMap<String, Learner>>>);

impl Desk {
    fn learners(&self) -> MutexGuard<'_, BTreeMap<String, Learner>> {
        kept::lock(&self.0)
    }
}

impl LearnedFields for Desk {
    fn sites(&self) -> Vec<LearningSite> {
        self.learners().iter().map(|(name, learner)| site(name, learner)).collect()
    }

    fn fields(&self, site: Option<&str>) -> Vec<LearnedField> {
        let learners = self.learners();
        let wanted = learners.iter().filter(|(name, _)| site.is_none_or(|site| site == *name));
        let fields = wanted.flat_map(|(name, learner)| {
            let thresholds = &learner.known().limits().thresholds;
            learner.known().fields().map(move |(key, profile)| field(name, key, profile, thresholds))
        });
        fields.collect()
    }

    fn find(&self, at: &FieldPlace) -> Option<LearnedField> {
        let learners = self.learners();
        let store = learners.get(&at.site)?.known();
        let place = place(&at.place)?;
        let (key, profile) =
            store.find(at.method.as_bytes(), at.path.as_bytes(), place, at.name.as_bytes())?;
        Some(field(&at.site, key, profile, &store.limits().thresholds))
    }

    fn proposals(&self, site: Option<&str>) -> Vec<FieldProposal> {
        let learners = self.learners();
        let wanted = learners.iter().filter(|(name, _)| site.is_none_or(|site| site == *name));
        let proposals = wanted.flat_map(|(name, learner)| {
            let openings = learner.known().openings();
            openings.map(move |(id, key, kind, opening)| proposal(id, name, key, kind, opening))
        });
        proposals.collect()
    }

    fn decide(&self, site: &str, id: &str, decision: ProposalDecision) -> Option<DecidedProposal> {
        let mut learners = self.learners();
        let learner = learners.get_mut(site)?;
        let state = match decision {
            ProposalDecision::Accept => OpeningState::Live,
            ProposalDecision::Trial => OpeningState::Trial,
            ProposalDecision::Dismiss => OpeningState::Dismissed,
        };
        let not_kept = learner.decide_opening(id, state);
        let (id, key, kind, opening) = learner.known().openings().find(|(own, ..)| own == id)?;
        Some(DecidedProposal { proposal: proposal(id, site, key, kind, opening), not_kept })
    }

    fn order(&self, at: &FieldPlace, order: FieldOrder) -> Result<OrderedField, FieldOrderError> {
        let mut learners = self.learners();
        let learner = learners.get_mut(&at.site).ok_or(FieldOrderError::NoField)?;
        let key = Key {
            template: at.path.clone(),
            name: at.name.clone(),
            method: at.method.clone(),
            place: place(&at.place).ok_or(FieldOrderError::NoField)?,
        };
        let order = match order {
            FieldOrder::KeepOpen => Order::KeepOpen,
            FieldOrder::Learn => Order::Learn,
            FieldOrder::Close => Order::Close,
            FieldOrder::Forget => Order::Forget,
        };
        let not_kept = learner.order(&key, order).map_err(|error| match error {
            OrderError::NoField => FieldOrderError::NoField,
            OrderError::NotPlain => FieldOrderError::NotPlain,
        })?;
        let store = learner.known();
        let found = store.fields().find(|(own, _)| **own == key);
        let field = found.map(|(key, profile)| field(&at.site, key, profile, &store.limits().thresholds));
        Ok(OrderedField { field, not_kept })
    }

    fn sessions(&self) -> Vec<TeachingSession> {
        self.learners().values_mut().filter_map(Learner::session).collect()
    }

    fn start_session(
        &self,
        site: &str,
        teacher: Teacher,
        seconds: u64,
        by: &str,
    ) -> Result<TeachingSession, SessionError> {
        let mut learners = self.learners();
        learners.get_mut(site).ok_or(SessionError::NoSite)?.start_session(teacher, seconds, by)
    }

    fn order_session(
        &self,
        site: &str,
        order: SessionOrder,
        requests: Option<u64>,
    ) -> Result<DecidedSession, SessionError> {
        let mut learners = self.learners();
        learners.get_mut(site).ok_or(SessionError::NoSite)?.order_session(order, requests)
    }
}

fn place(name: &str) -> Option<Place> {
    Place::ALL.into_iter().find(|place| place.name() == name)
}

fn site(name: &str, learner: &Learner) -> LearningSite {
    let limits = learner.known().limits();
    let count =
        |is: fn(&Profile) -> bool| learner.known().fields().filter(|(_, profile)| is(profile)).count();
    let (fields, closed) = learner.known().counts();
    let beyond = learner.known().beyond();
    let Thresholds { values, networks, days } = limits.thresholds;
    LearningSite {
        site: name.to_owned(),
        unusual: match learner.unusual_values() {
            Unusual::Off => "off",
            Unusual::Detect => "detect",
            Unusual::Block => "block",
        },
        fields,
        closed,
        kept_open: count(|profile| profile.kept_open),
        reopened: count(|profile| state(profile) == FieldState::Reopened),
        fields_max: limits.fields_max,
        beyond_limit: beyond.fields.saturating_add(beyond.long),
        closes_after: Sighted { values, networks, sessions: networks, days },
    }
}

fn field(site: &str, key: &Key, profile: &Profile, thresholds: &Thresholds) -> LearnedField {
    let Missing { values, networks, sessions, days } = profile.missing(thresholds);
    let of_type = |(kind, seen): (&portcullis_learn::ValueType, &portcullis_learn::Sightings)| CarriedType {
        r#type: kind.name(),
        values: seen.values,
        networks: seen.network_count(),
        days: seen.days.count(),
    };
    LearnedField {
        site: site.to_owned(),
        method: key.method.clone(),
        path: key.template.clone(),
        place: key.place.name(),
        name: key.name.clone(),
        state: state(profile),
        closed_as: profile.closed.map(|closed| form(closed.form)),
        closes_as: profile.form_so_far().map(form),
        options: profile.options(),
        closed_before: profile
            .reopened
            .map(|before| ClosedBefore { closed_as: form(before.form), until: day(before.day) }),
        evidence: profile.evidence(),
        confidence: profile.confidence(thresholds),
        missing: Sighted { values, networks, sessions, days },
        values: profile.all.values,
        networks: profile.all.network_count(),
        sessions: profile.session_count(),
        days: profile.all.days.count(),
        last_day: day(profile.all.days.last()),
        bytes_min: profile.bytes.0,
        bytes_max: profile.bytes.1,
        types: profile.types.iter().map(of_type).collect(),
    }
}

fn proposal(id: String, site: &str, key: &Key, kind: &str, opening: &Opening) -> FieldProposal {
    let Tried { passes, lost, stopped } = opening.tried;
    FieldProposal {
        id,
        site: site.to_owned(),
        method: key.method.clone(),
        path: key.template.clone(),
        place: key.place.name(),
        name: key.name.clone(),
        kind: kind.to_owned(),
        state: match opening.state {
            OpeningState::Seen => ProposalState::Seen,
            OpeningState::Proposed => ProposalState::Proposed,
            OpeningState::Trial => ProposalState::Trial,
            OpeningState::Live => ProposalState::Live,
            OpeningState::Dismissed => ProposalState::Dismissed,
        },
        since: day(opening.since),
        evidence: opening.evidence(),
        requests: opening.seen.values,
        networks: opening.seen.network_count(),
        sessions: opening.session_count(),
        days: opening.seen.days.count(),
        passes,
        lost,
        stopped,
    }
}

fn state(profile: &Profile) -> FieldState {
    match () {
        () if profile.kept_open => FieldState::KeptOpen,
        () if profile.closed.is_some() => FieldState::Closed,
        () if profile.reopened.is_some() => FieldState::Reopened,
        () => FieldState::Open,
    }
}

fn form(form: Form) -> &'static str {
    match form {
        Form::Type(kind) => kind.name(),
        Form::Enumeration => "enumeration",
    }
}

/// A day as `2026-11-29`.
fn day(since_1970: u32) -> String {
    let text = Timestamp::from_epoch_millis(u64::from(since_1970) * DAY_MILLIS).rfc3339();
    text.split('T').next().unwrap_or_default().to_owned()
}
