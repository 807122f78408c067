//! The inspectors of a test.

use std::sync::{Arc, Mutex, PoisonError};

use portcullis_config::Config;
use portcullis_engine::{Collections, RecordId, Value, VariableChange};
use portcullis_inspect::Inspector;
use portcullis_load::SharedDetectors;

/// One for all tests.
static DETECTORS: Mutex<Option<SharedDetectors>> = Mutex::new(None);

pub fn inspectors(config: &Config) -> Vec<Arc<Inspector>> {
    let redactor = Arc::new(portcullis_exchange::redactor(config));
    let mut detectors = DETECTORS.lock().unwrap_or_else(PoisonError::into_inner);
    let detectors = detectors.get_or_insert_default();
    let load = |policy| {
        let plan = portcullis_load::load(policy).unwrap_or_else(|error| panic!("{error}")).plan;
        let inspector = Inspector::new(plan, Arc::clone(&redactor), Arc::new(Exploding));
        Arc::new(detectors.attach(inspector, policy).unwrap_or_else(|error| panic!("{error}")))
    };
    config.policies.iter().map(load).collect()
}

/// Panics when a rule asks for it, as a bug of ours would.
#[derive(Debug)]
struct Exploding;

impl Collections for Exploding {
    fn load(&self, _: RecordId<'_>, _: i64, _: &mut dyn FnMut(&[u8], Value<'_>)) -> bool {
        panic!("a bug, as the test asked");
    }

    fn save(&self, _: RecordId<'_>, _: i64, _: i64, _: &[VariableChange<'_>]) {}
}
