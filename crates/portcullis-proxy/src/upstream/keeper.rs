//! The thread that looks after the endpoints of all groups: it checks their health, takes ejected ones back in and keeps
//! the gauges.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::LocalSet;

use super::Group;
use super::checks::Checkers;
use crate::state::Shared;

/// How often it looks.
const TICK: Duration = Duration::from_millis(100);

/// Runs until the proxy stops.
pub(crate) fn run(shared: &Arc<Shared>, stopped: watch::Receiver<Option<Duration>>) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return (shared.services.say)(&format!("endpoints are not looked after: {error}")),
    };
    LocalSet::new().block_on(&runtime, keep(shared, stopped));
}

async fn keep(shared: &Shared, mut stopped: watch::Receiver<Option<Duration>>) {
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
    /// The groups of that generation.
    known: Vec<Arc<Group>>,
    checkers: Checkers,
}

impl Keeper {
    fn look_after(&mut self, shared: &Shared) {
        let generation = shared.current.load();
        if self.generation != generation.number {
            self.generation = generation.number;
            let groups = generation.groups.iter().chain(generation.diverted.values());
            let old = std::mem::replace(&mut self.known, groups.cloned().collect());
            // Before the gauges are set, since groups of earlier settings may share series with their successors.
            for gone in old.iter().filter(|old| !self.known.iter().any(|group| group.id == old.id)) {
                gone.report.forget();
            }
            // Groups of a diverted request have endpoints of others, which are checked there.
            self.checkers.follow(&generation.groups);
        }
        for group in &self.known {
            let now = group.moment(Instant::now());
            for endpoint in group.endpoints.end_ejections(now) {
                group.report.line(endpoint, "back after its ejection");
            }
            group.report.measure(&group.endpoints, group.queue.waiting(), now);
        }
    }
}
