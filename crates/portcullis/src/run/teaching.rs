//! Sessions in which an operator teaches a site by hand.

use std::sync::Arc;

use portcullis_api::fields::{
    KindEffect, SessionError, SessionOrder, TaughtEffect, TaughtField, TaughtKind, Teacher, TeachingSession,
};
use portcullis_event::Timestamp;
use portcullis_learn::{
    Key, OpeningState, Profile, SESSION_UNDECIDED_SECONDS, Session, Site, Store, Teacher as Whose,
};
use portcullis_metrics::{Counter, Registry, catalogue};

use crate::events::stored::now;
use crate::learned_files as files;

/// The teaching of one site: one session at a time.
pub struct Teaching {
    name: String,
    site: Arc<Site>,
    taught: Option<Taught>,
    counters: Counters,
    /// The site has trusted sources.
    pub has_trusted: bool,
}

/// A session of a site, that runs or waits for a decision.
struct Taught {
    session: Arc<Session>,
    store: Store,
    /// Who has begun it.
    by: String,
    /// Requests that it has learned.
    requests: u64,
    /// When it ended, in milliseconds since 1970.
    ended: Option<u64>,
    /// Refused requests that the counter has had.
    counted_refused: u64,
}

/// What is counted of sessions of one site.
struct Counters {
    started: Counter,
    accepted: Counter,
    dismissed: Counter,
    expired: Counter,
    learned: Counter,
    refused: Counter,
    dropped: Counter,
}

impl Counters {
    fn new(site: &str, registry: &Registry) -> Counters {
        let of_sessions = |result| registry.counter(&catalogue::TEACHING_SESSIONS, &[site, result]);
        let of_requests = |result| registry.counter(&catalogue::TEACHING_REQUESTS, &[site, result]);
        Counters {
            started: of_sessions("started"),
            accepted: of_sessions("accepted"),
            dismissed: of_sessions("dismissed"),
            expired: of_sessions("expired"),
            learned: of_requests("learned"),
            refused: of_requests("refused"),
            dropped: of_requests("dropped"),
        }
    }
}

impl Teaching {
    /// Nobody teaches yet.
    pub fn new(name: &str, site: Arc<Site>, registry: &Registry) -> Teaching {
        let counters = Counters::new(name, registry);
        Teaching { name: name.to_owned(), site, taught: None, counters, has_trusted: false }
    }

    /// Takes in what the session has seen, ends it if it is time, and drops it if nobody has decided.
    pub fn tend(&mut self, now: u64) {
        let Some(taught) = &mut self.taught else { return };
        if taught.ended.is_none() && now >= taught.session.time().1 {
            taught.ended = Some(taught.session.time().1);
            self.site.set_session(None);
        }
        let batch = taught.session.take();
        taught.store.learn(&batch);
        let (learned, refused) = (batch.len() as u64, taught.session.refused());
        taught.requests += learned;
        self.counters.learned.add(learned);
        self.counters.dropped.add(batch.dropped);
        self.counters.refused.add(refused - std::mem::replace(&mut taught.counted_refused, refused));
        if taught.ended.is_some_and(|ended| now >= ended + SESSION_UNDECIDED_SECONDS * 1_000) {
            let (name, by) = (&self.name, &taught.by);
            eprintln!(
                "portcullis: site {name}: nobody has accepted what {by} has taught within a day; it is dropped"
            );
            self.taught = None;
            self.counters.expired.inc();
        }
    }

    /// The session, if there is one, and what accepting it does to what is known.
    pub fn session(&mut self, known: &Store) -> Option<TeachingSession> {
        self.tend(now());
        let taught = self.taught.as_ref()?;
        let mut after = known.clone();
        after.confirm(&taught.store, files::today());
        let field = |(key, shown): (&Key, &Profile)| {
            let (before, then) = (known.field(key), after.field(key));
            TaughtField {
                method: key.method.clone(),
                path: key.template.clone(),
                place: key.place.name(),
                name: key.name.clone(),
                values: shown.all.values,
                types: shown.types.keys().map(|kind| kind.name()).collect(),
                effect: effect(before, then),
                kinds: shown.openings.keys().map(|kind| kind_effect(kind, before, then)).collect(),
            }
        };
        let (started, until) = taught.session.time();
        let ended = taught.ended.unwrap_or(until);
        let time = |millis: u64| Timestamp::from_epoch_millis(millis).rfc3339();
        let beyond = taught.store.beyond();
        Some(TeachingSession {
            site: self.name.clone(),
            by: taught.by.clone(),
            network: match taught.session.teacher() {
                Whose::Network(address, prefix) => Some(format!("{address}/{prefix}")),
                Whose::Trusted => None,
            },
            is_running: taught.ended.is_none(),
            started: time(started),
            until: time(ended),
            dropped: time(ended + SESSION_UNDECIDED_SECONDS * 1_000),
            requests: taught.requests,
            refused: taught.session.refused(),
            beyond_limit: beyond.fields.saturating_add(beyond.long),
            fields: taught.store.fields().map(field).collect(),
        })
    }

    /// Begins a session.
    pub fn start(
        &mut self,
        known: &Store,
        teacher: Teacher,
        seconds: u64,
        by: &str,
    ) -> Result<TeachingSession, SessionError> {
        self.tend(now());
        if self.taught.is_some() {
            return Err(SessionError::Exists);
        }
        let whose = match teacher {
            Teacher::Network(address, prefix) => Whose::Network(address, prefix),
            Teacher::Trusted if !self.has_trusted => return Err(SessionError::NoTrusted),
            Teacher::Trusted => Whose::Trusted,
        };
        let session = Arc::new(Session::new(whose, now(), seconds));
        self.taught = Some(Taught {
            session: Arc::clone(&session),
            store: known.for_session(),
            by: by.to_owned(),
            requests: 0,
            ended: None,
            counted_refused: 0,
        });
        self.site.set_session(Some(session));
        self.counters.started.inc();
        eprintln!("portcullis: site {}: {by} teaches it by hand for {seconds} s", self.name);
        self.session(known).ok_or(SessionError::NoSession)
    }

    /// Ends the session, or decides about what it has learned, which was shown with so many requests. With it
    /// comes what was accepted.
    pub fn order(
        &mut self,
        known: &Store,
        order: SessionOrder,
        requests: Option<u64>,
    ) -> Result<(TeachingSession, Option<Store>), SessionError> {
        if let Some(taught) = &mut self.taught
            && taught.ended.is_none()
            && (order != SessionOrder::Accept || requests == Some(taught.requests))
        {
            taught.ended = Some(now().min(taught.session.time().1));
            self.site.set_session(None);
        }
        let session = self.session(known).ok_or(SessionError::NoSession)?;
        if order == SessionOrder::Accept && requests != Some(session.requests) {
            return Err(SessionError::Changed);
        }
        let mut accepted = None;
        if order != SessionOrder::Stop
            && let Some(taught) = self.taught.take()
        {
            self.site.set_session(None);
            if order == SessionOrder::Accept {
                self.counters.accepted.inc();
                accepted = Some(taught.store);
            } else {
                self.counters.dismissed.inc();
            }
        }
        Ok((session, accepted))
    }
}

fn effect(before: Option<&Profile>, after: Option<&Profile>) -> TaughtEffect {
    let Some(after) = after else { return TaughtEffect::NoRoom };
    let Some(before) = before else {
        return if after.closed.is_some() { TaughtEffect::Closes } else { TaughtEffect::New };
    };
    match (before.closed, after.closed) {
        (Some(_), None) => TaughtEffect::Opens,
        (None, Some(_)) => TaughtEffect::Closes,
        (Some(old), Some(new)) if old != new || before.options() != after.options() => TaughtEffect::Widens,
        _ => TaughtEffect::Known,
    }
}

fn kind_effect(kind: &str, before: Option<&Profile>, after: Option<&Profile>) -> TaughtKind {
    let state = |profile: Option<&Profile>| {
        profile.and_then(|profile| profile.openings.get(kind)).map(|opening| opening.state)
    };
    let effect = match (state(before), state(after)) {
        (Some(OpeningState::Live), _) => KindEffect::Open,
        (_, Some(OpeningState::Live)) => KindEffect::Opens,
        (_, Some(OpeningState::Dismissed)) => KindEffect::Dismissed,
        _ => KindEffect::NoRoom,
    };
    TaughtKind { kind: kind.to_owned(), effect }
}
