//! The thread that looks after the endpoints of all groups: it checks their health, resolves their names,
//! takes ejected ones back in and keeps the gauges. Certificates are ordered on it, too.

use std::cell::RefCell;
use std::collections::HashSet;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_config::Upstream;
use portcullis_tls::acme;
use tokio::sync::watch;
use tokio::task::LocalSet;

use super::checks::Checkers;
use super::names::{self, Schedule};
use super::report::Resolved;
use super::{Group, Slot};
use crate::agents::Agent;
use crate::generation::Generation;
use crate::state::Shared;
use crate::worker::Stop;

/// The time between two looks.
const TICK: Duration = Duration::from_millis(100);

/// Runs until the proxy stops.
pub(crate) fn run(shared: &Arc<Shared>, stopped: watch::Receiver<Option<Stop>>) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return (shared.services.say)(&format!("endpoint maintenance could not start: {error}"));
        }
    };
    LocalSet::new().block_on(&runtime, keep(shared, stopped));
    // An authority that does not answer is not waited for.
    runtime.shutdown_background();
}

async fn keep(shared: &Arc<Shared>, mut stopped: watch::Receiver<Option<Stop>>) {
    let of_settings = Arc::clone(shared);
    tokio::task::spawn_local(acme::run(acme::Host {
        registry: Arc::clone(&shared.services.registry),
        challenges: Arc::clone(&shared.challenges),
        say: Arc::clone(&shared.services.say),
        settings: Box::new(move || of_settings.current.load().acme.clone()),
    }));
    let mut keeper = Keeper::default();
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let look = async {
        loop {
            interval.tick().await;
            keeper.look_after(shared);
        }
    };
    let stop = async {
        // An error means that the proxy was dropped; its workers run on, and so does this.
        if stopped.wait_for(Option::is_some).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = look => {}
        () = stop => {}
    }
}

#[derive(Default)]
struct Keeper {
    generation: u64,
    /// The groups that serve.
    known: Vec<Arc<Group>>,
    agents: Vec<Arc<Agent>>,
    checkers: Checkers,
    schedule: Schedule,
    /// Answers about names since the last look.
    answers: Rc<RefCell<Vec<(String, Answer)>>>,
    /// Names that could not be resolved the last time.
    failing: HashSet<String>,
}

type Answer = Result<(Vec<IpAddr>, Option<Duration>), String>;

impl Keeper {
    fn look_after(&mut self, shared: &Shared) {
        let generation = shared.current.load_full();
        self.resolve(shared, &generation);
        let slots = generation.groups.iter().chain(generation.diverted.values());
        let groups: Vec<Arc<Group>> = slots.map(|slot| slot.group()).collect();
        let is_same = |(old, new): (&Arc<Group>, &Arc<Group>)| old.id == new.id;
        if self.known.len() != groups.len() || !self.known.iter().zip(&groups).all(is_same) {
            let old = std::mem::replace(&mut self.known, groups);
            // Before the gauges are set, since groups of earlier settings may share series with their
            // successors.
            for gone in old.iter().filter(|old| !self.known.iter().any(|group| group.id == old.id)) {
                gone.report.forget();
            }
            // Groups of a diverted request have endpoints of others, which are checked there.
            self.checkers.follow(&self.known[..generation.groups.len()]);
        }
        if self.generation != generation.number {
            self.generation = generation.number;
            let old = std::mem::replace(&mut self.agents, generation.agents.clone());
            old.iter().for_each(|agent| agent.forget());
        }
        self.agents.iter().for_each(|agent| agent.measure());
        for group in &self.known {
            let now = group.moment(Instant::now());
            for endpoint in group.endpoints.end_ejections(now) {
                group.report.line(endpoint, "back after its ejection");
            }
            group.report.measure(&group.endpoints, group.queue.waiting(), now);
        }
    }

    /// Takes answers about names into use, and asks for those that are due.
    fn resolve(&mut self, shared: &Shared, generation: &Generation) {
        let configured: Vec<&Upstream> = generation.groups.iter().map(|slot| slot.configured()).collect();
        let now = Instant::now();
        let answers = std::mem::take(&mut *self.answers.borrow_mut());
        for (name, answer) in answers {
            let life = answer.as_ref().map_or(None, |(_, life)| *life);
            self.schedule.answered(&name, &configured, life, now);
            let (what, told) = match answer {
                Ok((addresses, _)) => {
                    self.failing.remove(&name);
                    let shown: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
                    match shared.origin.names.note(&name, addresses) {
                        true => (Resolved::Changed, Some(format!("{name} is {}", shown.join(", ")))),
                        false => (Resolved::Unchanged, None),
                    }
                }
                Err(error) => {
                    let told = format!("cannot resolve {name}, keeping its previous addresses: {error}");
                    (Resolved::Failed, self.failing.insert(name.clone()).then_some(told))
                }
            };
            let has = |slot: &&Arc<Slot>| slot.configured().endpoints.iter().any(|one| one.host == name);
            for slot in generation.groups.iter().filter(has) {
                slot.group().report.resolved(what, told.as_deref());
            }
            for slot in generation.groups.iter().chain(generation.diverted.values()).filter(has) {
                if let Err(error) = slot.follow_names(&shared.services, &shared.origin) {
                    (shared.services.say)(&error.to_string());
                }
            }
        }
        for name in self.schedule.due(&configured, now) {
            let (answers, lookups) = (Rc::clone(&self.answers), generation.lookups.clone());
            tokio::task::spawn_local(async move {
                let answer = names::resolve(&name, &lookups).await;
                answers.borrow_mut().push((name, answer));
            });
        }
    }
}
