//! Rules that are loaded once for all rule sets of the same content.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use portcullis_load::{Patterns, load_scopes};
use portcullis_seclang::Root;

use crate::clock::Zone;
use crate::mistakes::describe;
use crate::ready::{Ready, Shared};
use crate::recorder::{Read, Recorder};

/// Read before the rules of the outermost scope, so that they can say otherwise.
const DEFAULTS: &str = "SecCompatibility ModSecurity3\n";

/// What rule sets of a process share: loaded rules, compiled patterns, persistent collections.
///
/// Rules live as long as a rule set has them. While a server loads its configuration anew, the rules of the
/// old one are still there, so those that did not change are not loaded again.
#[derive(Debug, Default)]
pub struct Cache {
    patterns: Patterns,
    known: Mutex<Vec<Known>>,
    shared: Shared,
    pub(crate) zone: Zone,
}

#[derive(Debug)]
struct Known {
    scopes: Vec<Vec<Root>>,
    reads: Vec<Read>,
    ready: Weak<Ready>,
}

impl Cache {
    /// The rules of `scopes`, the innermost first, or what is wrong with them.
    pub(crate) fn load(&self, scopes: &[Vec<Root>]) -> Result<Arc<Ready>, String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|each| each.ready.strong_count() > 0);
        let same = known.iter().find(|each| each.scopes == scopes && each.reads.iter().all(Read::is_current));
        if let Some(ready) = same.and_then(|each| each.ready.upgrade()) {
            ready.follow()?;
            return Ok(ready);
        }
        let defaults = [Root::Text { name: "<defaults>".into(), text: DEFAULTS.into() }];
        let mut all: Vec<&[Root]> = scopes.iter().map(Vec::as_slice).collect();
        all.push(&defaults);
        let files = Recorder::default();
        let loaded = load_scopes(&all, &files, &self.patterns).map_err(|mistakes| describe(&mistakes))?;
        let ready = Arc::new(Ready::new(&loaded, &self.shared)?);
        known.push(Known {
            scopes: scopes.to_vec(),
            reads: files.into_reads(),
            ready: Arc::downgrade(&ready),
        });
        Ok(ready)
    }

    /// Number of rules in memory, each counted once.
    pub fn loaded(&self) -> usize {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter(|each| each.ready.strong_count() > 0).count()
    }
}
