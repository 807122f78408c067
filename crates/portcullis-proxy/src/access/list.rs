//! Files with addresses, read again when they change.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_config::{Clients, Config};
use portcullis_match::IpSet;
use portcullis_metrics::{Gauge, Registry, catalogue};

use super::watched::{RESULTS, Read, Watched};
use crate::StartError;

/// Files by path, each read once.
pub(crate) type ListFiles = BTreeMap<PathBuf, Arc<ListFile>>;

/// The files of settings that are being built.
pub(crate) struct Lists<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) config: &'a Config,
    /// Those of the settings before.
    pub(crate) old: Option<&'a ListFiles>,
    pub(crate) files: ListFiles,
}

/// A file of addresses.
pub(crate) struct ListFile {
    file: Watched<IpSet>,
    ranges: Gauge,
}

impl Lists<'_> {
    /// The file at `path`, as it is now.
    pub(crate) fn load(&mut self, path: &Path) -> Result<Arc<ListFile>, StartError> {
        self.load_with(path, read)
    }

    /// The list `name` that is kept up to date: empty until it is there.
    pub(crate) fn load_kept(&mut self, name: &str) -> Result<Arc<ListFile>, StartError> {
        let path = self.config.list_file(name).ok_or_else(|| {
            StartError::new(format!(
                "the list `{name}` is kept in the data folder, and there is none: add `data = {{ folder = \"...\" }}` or \
                 `--data DIR`"
            ))
        })?;
        self.load_with(&path, read_kept)
    }

    fn load_with(&mut self, path: &Path, read: Read<IpSet>) -> Result<Arc<ListFile>, StartError> {
        if let Some(known) = self.files.get(path) {
            return Ok(Arc::clone(known));
        }
        let old = self.old.and_then(|old| old.get(path)).filter(|old| old.file.is_current());
        let file = match old {
            Some(old) => Arc::clone(old),
            None => Arc::new(ListFile::open(path, read, self.registry)?),
        };
        self.files.insert(path.to_path_buf(), Arc::clone(&file));
        Ok(file)
    }
}

impl ListFile {
    fn open(path: &Path, read: Read<IpSet>, registry: &Registry) -> Result<ListFile, StartError> {
        let reloads = registry.enum_counters(&catalogue::ACCESS_LIST_RELOADS, &[], &RESULTS);
        let ranges = registry.gauge(&catalogue::ACCESS_LIST_RANGES, &[&path.display().to_string()]);
        let file = ListFile { file: Watched::open(path, read, reloads)?, ranges };
        file.measure();
        Ok(file)
    }

    /// Its addresses, as ranges.
    pub(crate) fn ranges(&self) -> usize {
        self.file.get().ranges()
    }

    pub(crate) fn contains(&self, client: IpAddr) -> bool {
        self.file.get().contains(client)
    }

    /// Reads the file again if it has changed.
    pub(crate) fn refresh(&self, say: &(dyn Fn(&str) + Send + Sync)) {
        if self.file.refresh("list", say) {
            self.measure();
        }
    }

    fn measure(&self) {
        self.ranges.set(i64::try_from(self.ranges()).unwrap_or(i64::MAX));
    }
}

/// The mistakes of the address lists and databases of a configuration, as they are now.
pub(crate) fn check_lists(config: &Config) -> Vec<String> {
    let routes = config.sites.iter().flat_map(|site| &site.routes);
    let limits = config.sites.iter().flat_map(|site| {
        site.rate_limits.iter().chain(site.routes.iter().flat_map(|route| &route.rate_limits))
    });
    let sets = routes.filter_map(|route| route.access.as_ref()).chain(&config.unserved.access);
    let sets = sets.flat_map(|access| [&access.bypass, &access.allow, &access.deny]);
    let sets = sets.chain(limits.filter_map(|limit| limit.only.as_ref()));
    let files: BTreeSet<&PathBuf> = sets.flat_map(|clients: &Clients| &clients.files).collect();
    let lists = files.into_iter().filter_map(|file| read(file).err());
    lists.chain(config.geo_files.iter().filter_map(|file| super::geo::read(file).err())).collect()
}

/// Bytes of a list: about ten million addresses.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// Reads a list. The error says where it is wrong.
fn read(path: &Path) -> Result<IpSet, String> {
    let shown = path.display();
    let text =
        portcullis_files::read_text(path, LIST_BYTES_MAX).map_err(|error| format!("{shown}: {error}"))?;
    IpSet::parse_file(&text).map_err(|error| {
        let before = &text.as_bytes()[..error.offset.min(text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        format!("{shown}:{line}: {}", error.message)
    })
}

/// Reads a list that may not be there yet.
fn read_kept(path: &Path) -> Result<IpSet, String> {
    match portcullis_files::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(IpSet::of_networks([])),
        _ => read(path),
    }
}
