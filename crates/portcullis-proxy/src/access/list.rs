//! Files with addresses, read again when they change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use portcullis_config::Config;
use portcullis_match::IpSet;
use portcullis_metrics::{EnumCounters, Gauge, Registry, catalogue};

use crate::StartError;

/// Label values of `portcullis_access_list_reloads_total`.
const RESULTS: [&str; 2] = ["ok", "failed"];

/// Files by path, each read once.
pub(crate) type ListFiles = BTreeMap<PathBuf, Arc<ListFile>>;

/// The files of settings that are being built.
pub(crate) struct Lists<'a> {
    pub(crate) registry: &'a Registry,
    /// Those of the settings before.
    pub(crate) old: Option<&'a ListFiles>,
    pub(crate) files: ListFiles,
}

/// A file of addresses.
pub(crate) struct ListFile {
    path: PathBuf,
    set: ArcSwap<IpSet>,
    seen: Mutex<Seen>,
    ranges: Gauge,
    reloads: EnumCounters,
}

/// What a file's change is known by; none while it cannot be found.
type Stamp = Option<(SystemTime, u64, u64)>;

struct Seen {
    /// That of the file which was read last.
    read: Stamp,
    /// What was read then could not be used; the addresses of before stay.
    failed: bool,
    /// That of a file which may still be written to.
    unread: Option<Stamp>,
}

impl Lists<'_> {
    /// The file at `path`, as it is now.
    pub(crate) fn load(&mut self, path: &Path) -> Result<Arc<ListFile>, StartError> {
        if let Some(known) = self.files.get(path) {
            return Ok(Arc::clone(known));
        }
        let stamp = stamp(path);
        let old = self.old.and_then(|old| old.get(path)).filter(|old| old.is_read(stamp));
        let file = match old {
            Some(old) => Arc::clone(old),
            None => Arc::new(ListFile::open(path, stamp, self.registry)?),
        };
        self.files.insert(path.to_path_buf(), Arc::clone(&file));
        Ok(file)
    }
}

impl ListFile {
    fn open(path: &Path, stamp: Stamp, registry: &Registry) -> Result<ListFile, StartError> {
        let set = read(path).map_err(StartError::new)?;
        let shown = path.display().to_string();
        let ranges = registry.gauge(&catalogue::ACCESS_LIST_RANGES, &[&shown]);
        ranges.set(i64::try_from(set.ranges()).unwrap_or(i64::MAX));
        Ok(ListFile {
            path: path.to_path_buf(),
            set: ArcSwap::from_pointee(set),
            seen: Mutex::new(Seen { read: stamp, failed: false, unread: None }),
            ranges,
            reloads: registry.enum_counters(&catalogue::ACCESS_LIST_RELOADS, &[], &RESULTS),
        })
    }

    pub(crate) fn contains(&self, client: IpAddr) -> bool {
        self.set.load().contains(client)
    }

    fn is_read(&self, stamp: Stamp) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.read == stamp && !seen.failed
    }

    /// Reads the file again if it has changed since, and not since the last look: who writes it may not be done. Whatever is wrong
    /// with it, the addresses of before stay.
    pub(crate) fn refresh(&self, say: &(dyn Fn(&str) + Send + Sync)) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&self.path);
        if stamp == seen.read {
            seen.unread = None;
            return;
        }
        if seen.unread != Some(stamp) {
            seen.unread = Some(stamp);
            return;
        }
        let read = read(&self.path);
        *seen = Seen { read: stamp, failed: read.is_err(), unread: None };
        match read {
            Ok(set) => {
                self.ranges.set(i64::try_from(set.ranges()).unwrap_or(i64::MAX));
                self.set.store(Arc::new(set));
                self.reloads.inc(0);
            }
            Err(message) => {
                say(&format!("{message}; the list stays as it was"));
                self.reloads.inc(1);
            }
        }
    }
}

fn stamp(path: &Path) -> Stamp {
    use std::os::unix::fs::MetadataExt as _;
    let file = fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len(), file.ino()))
}

/// What is wrong with the address lists of a configuration, as they are now.
pub fn check_lists(config: &Config) -> Vec<String> {
    let routes = config.sites.iter().flat_map(|site| &site.routes);
    let sets = routes.filter_map(|route| route.access.as_ref());
    let sets = sets.flat_map(|access| [&access.bypass, &access.allow, &access.deny]);
    let files: BTreeSet<&PathBuf> = sets.flat_map(|clients| &clients.files).collect();
    files.into_iter().filter_map(|file| read(file).err()).collect()
}

/// Reads a list. The error says where it is wrong.
fn read(path: &Path) -> Result<IpSet, String> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
    IpSet::parse_file(&text).map_err(|error| {
        let before = &text.as_bytes()[..error.offset.min(text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        format!("{shown}:{line}: {}", error.message)
    })
}
