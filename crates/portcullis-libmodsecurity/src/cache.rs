//! Rules that are loaded once for all rule sets of the same content.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use portcullis_load::{Patterns, load_scopes};
use portcullis_seclang::Root;

use crate::clock::Zone;
use crate::mistakes::describe;
use crate::ready::{Ready, Shared};
use crate::recorder::{Read, Recorder};

/// Read before the rules of the outermost scope, so that they can say otherwise.
const DEFAULTS: &str = "SecCompatibility ModSecurity3\nSecRuleEngine DetectionOnly\nSecRequestBodyAccess On\n\
                        SecResponseBodyLimitAction ProcessPartial\n";

/// Rule sets merged between transactions that are kept.
const KEPT_MAX: usize = 16;

/// What rule sets of a process share: loaded rules, compiled patterns, persistent collections.
///
/// Rules live as long as a rule set has them. While a server loads its configuration anew, the rules of the
/// old one are still there, so those that did not change are not loaded again.
///
/// The connector of Apache merges rule sets for each request, in processes that may not be able to read the
/// files any more. What is merged between transactions is therefore kept, and whether files have changed is
/// not asked then, until rules are added again: that is how a configuration is read.
#[derive(Debug, Default)]
pub struct Cache {
    /// A transaction has begun since rules were added.
    is_serving: AtomicBool,
    patterns: Patterns,
    known: Mutex<Vec<Known>>,
    /// What was merged since then; the latest at the end.
    kept: Mutex<Vec<Arc<Ready>>>,
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
    /// Rules are about to be added.
    pub(crate) fn begin_reading(&self) {
        self.is_serving.store(false, Ordering::Relaxed);
        self.kept().clear();
    }

    /// A transaction is about to begin.
    pub(crate) fn begin_serving(&self) {
        self.is_serving.store(true, Ordering::Relaxed);
    }

    /// The rules of `scopes`, the innermost first, or what is wrong with them.
    pub(crate) fn load(&self, scopes: &[Vec<Root>]) -> Result<Arc<Ready>, String> {
        let is_serving = self.is_serving.load(Ordering::Relaxed);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|each| each.ready.strong_count() > 0);
        // The latest: between transactions the content of files is not looked at.
        let same = known
            .iter()
            .rev()
            .find(|each| each.scopes == scopes && (is_serving || each.reads.iter().all(Read::is_current)));
        if let Some(ready) = same.and_then(|each| each.ready.upgrade()) {
            if !is_serving {
                ready.follow()?;
            }
            return Ok(ready);
        }
        let defaults = [Root::Text { name: "<defaults>".into(), text: DEFAULTS.into() }];
        let mut all: Vec<&[Root]> = scopes.iter().map(Vec::as_slice).collect();
        all.push(&defaults);
        let files = Recorder::default();
        let loaded = load_scopes(&all, &files, &self.patterns).map_err(|mistakes| describe(&mistakes))?;
        let ready = Arc::new(Ready::new(&loaded, &self.shared)?);
        if is_serving {
            self.keep(Arc::clone(&ready));
        }
        known.push(Known {
            scopes: scopes.to_vec(),
            reads: files.into_reads(),
            ready: Arc::downgrade(&ready),
        });
        Ok(ready)
    }

    fn keep(&self, ready: Arc<Ready>) {
        let mut kept = self.kept();
        if kept.len() >= KEPT_MAX {
            kept.remove(0);
        }
        kept.push(ready);
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Arc<Ready>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of rules in memory, each counted once.
    pub fn loaded(&self) -> usize {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter(|each| each.ready.strong_count() > 0).count()
    }
}
