//! The inspectors of a test.

use std::sync::Arc;

use portcullis_config::Config;
use portcullis_engine::{Collections, RecordId, Value, VariableChange};
use portcullis_inspect::Inspector;

pub fn inspectors(config: &Config) -> Vec<Arc<Inspector>> {
    let redactor = Arc::new(portcullis_exchange::redactor(config));
    let load = |policy| portcullis_load::load(policy).unwrap_or_else(|error| panic!("{error}"));
    let plans = config.policies.iter().map(|policy| load(policy).plan);
    plans.map(|plan| Arc::new(Inspector::new(plan, Arc::clone(&redactor), Arc::new(Exploding)))).collect()
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
