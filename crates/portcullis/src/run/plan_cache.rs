//! Start-up time beside loading itself: the plan cache, automata built in the background.

use std::path::Path;
use std::sync::Arc;

use portcullis_engine::Plan;
use portcullis_load::{Patterns, PlanCache, Used};

/// Has `patterns` take what the file knows.
pub fn open(path: &Path, patterns: &Patterns) -> PlanCache {
    let (cache, error) = PlanCache::open(path, patterns);
    if let Some(error) = error {
        eprintln!("portcullis: plan cache {} is not used and will be rewritten: {error}", path.display());
    }
    cache
}

/// Builds the automata of `plans` and writes the cache, on a thread of its own: requests are served
/// meanwhile, and build what they need themselves.
pub fn prepare(plans: Vec<Arc<Plan>>, cache: Option<PlanCache>, used: Used) {
    let work = move || {
        plans.iter().for_each(|plan| plan.prepare());
        if let Some(cache) = cache
            && let Err(error) = cache.keep(&used)
        {
            eprintln!("portcullis: {error}");
        }
    };
    if let Err(error) = std::thread::Builder::new().name("prepare".to_owned()).spawn(work) {
        eprintln!(
            "portcullis: cannot start the thread that builds automata, they are built when first needed: {error}"
        );
    }
}
