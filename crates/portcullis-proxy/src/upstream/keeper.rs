//! The thread that looks after the endpoints of all groups: it takes ejected ones back in and keeps the gauges.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::Group;
use crate::state::Shared;

/// How often it looks.
const TICK: Duration = Duration::from_millis(100);

/// Runs until the proxy stops.
pub(crate) fn run(shared: &Arc<Shared>, mut stopped: watch::Receiver<Option<Duration>>) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return (shared.services.say)(&format!("endpoints are not looked after: {error}")),
    };
    runtime.block_on(async {
        let mut known: Vec<Arc<Group>> = Vec::new();
        let mut interval = tokio::time::interval(TICK);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = interval.tick() => look_after(shared, &mut known),
                // An error means that the proxy was dropped; its workers run on, and so does this.
                result = stopped.wait_for(Option::is_some) => match result {
                    Ok(_) => return,
                    Err(_) => loop {
                        interval.tick().await;
                        look_after(shared, &mut known);
                    },
                }
            }
        }
    });
}

fn look_after(shared: &Shared, known: &mut Vec<Arc<Group>>) {
    let generation = shared.current.load();
    let groups = || generation.groups.iter().chain(generation.diverted.values());
    // Groups of earlier settings first, since they may share series with their successors.
    for gone in known.iter().filter(|group| !groups().any(|other| other.id == group.id)) {
        gone.report.forget();
    }
    known.clear();
    for group in groups() {
        let now = group.moment(Instant::now());
        for endpoint in group.endpoints.end_ejections(now) {
            group.report.line(endpoint, "back after its ejection");
        }
        group.report.measure(&group.endpoints, now);
        known.push(Arc::clone(group));
    }
}
