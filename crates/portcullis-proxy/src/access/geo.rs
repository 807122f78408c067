//! Countries and networks of clients, from databases that are read again when they change.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_access::{GeoData, Whereabouts};
use portcullis_metrics::{EnumCounters, Registry, catalogue};

use super::watched::{RESULTS, Watched};
use crate::StartError;

/// Label values of `portcullis_geo_lookups_total`.
const LOOKUPS: [&str; 2] = ["known", "unknown"];

/// The databases of the settings, in their order.
pub(crate) struct Geo {
    files: Vec<Arc<Watched<GeoData>>>,
    lookups: EnumCounters,
}

impl Geo {
    pub(crate) fn build(
        registry: &Registry,
        files: &[PathBuf],
        old: Option<&Geo>,
    ) -> Result<Geo, StartError> {
        let open = |path: &PathBuf| {
            let known = old.and_then(|old| old.files.iter().find(|file| file.path() == path));
            if let Some(known) = known.filter(|known| known.is_current()) {
                return Ok(Arc::clone(known));
            }
            let reloads = registry.enum_counters(&catalogue::GEO_RELOADS, &[], &RESULTS);
            Watched::open(path, read, reloads).map(Arc::new)
        };
        Ok(Geo {
            files: files.iter().map(open).collect::<Result<_, _>>()?,
            lookups: registry.enum_counters(&catalogue::GEO_LOOKUPS, &[], &LOOKUPS),
        })
    }

    /// The place of a client, as far as the databases know it.
    pub(crate) fn find(&self, client: IpAddr) -> Whereabouts {
        if self.files.is_empty() {
            return Whereabouts::default();
        }
        let add = |known: Whereabouts, file: &Arc<Watched<GeoData>>| known.or(file.get().find(client));
        let found = self.files.iter().fold(Whereabouts::default(), add);
        self.lookups.inc(usize::from(found.country.is_none() && found.asn.is_none()));
        found
    }

    /// Reads files again that have changed.
    pub(crate) fn refresh(&self, say: &(dyn Fn(&str) + Send + Sync)) {
        for file in &self.files {
            file.refresh("database", say);
        }
    }
}

/// Bytes of a database: several times those of the largest there are.
const DATABASE_BYTES_MAX: u64 = 2 << 30;

/// Reads a database.
pub(super) fn read(path: &Path) -> Result<GeoData, String> {
    let shown = path.display();
    let bytes =
        portcullis_files::read(path, DATABASE_BYTES_MAX).map_err(|error| format!("{shown}: {error}"))?;
    GeoData::new(bytes).map_err(|error| format!("{shown}: {error}"))
}
