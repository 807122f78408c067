//! Tests of what discovery finds, and of how little a hostile client can do to it.

mod compared;
mod found;
mod hostile;
mod kept;

use portcullis_discovery::{Details, Inventory, Limits, Observation, ParameterPlace, Site};

/// 2026-11-01.
const START_S: u64 = 1_793_491_200;
const DAY_S: u64 = 86_400;

/// A site whose exchanges are learned as they come.
struct Visited {
    site: Site,
    inventory: Inventory,
}

impl Visited {
    fn new() -> Visited {
        Visited::within(Limits::default())
    }

    fn within(limits: Limits) -> Visited {
        Visited { site: Site::default(), inventory: Inventory::new(limits) }
    }

    /// A request that was answered so, with JSON.
    fn answered(&mut self, network: u32, day: u64, line: &str, status: u16) {
        self.with(network, day, line, status, |details| {
            details.response_type = Some("application/json".to_owned());
        });
    }

    fn with(&mut self, network: u32, day: u64, line: &str, status: u16, note: impl FnOnce(&mut Details)) {
        let (method, target) = line.split_once(' ').expect("a method and a path");
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut details = Details::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            details.note(ParameterPlace::Query, name.as_bytes(), value.as_bytes());
        }
        note(&mut details);
        let seen = Observation {
            network,
            at_s: START_S + day * DAY_S,
            method: method.as_bytes(),
            path: path.as_bytes(),
            status,
            took_us: 7_000,
            ..Observation::default()
        };
        self.site.observe(&seen, Some(details));
        self.inventory.learn(&self.site.take());
    }

    fn list(&self) -> Vec<String> {
        self.inventory.endpoints().map(|found| format!("{} {}", found.method, found.path)).collect()
    }
}
