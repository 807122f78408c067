//! The files that `reload_on_change` watches: the document, and the files in the folders that rules are read
//! from.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use portcullis_config::{Config, RuleSource};
use portcullis_proxy::Watch;

use super::settings::Args;

/// Files looked at in one folder of rules.
const FILES_MAX: usize = 10_000;

/// Notices changes of these files. The set of folders is that of the start.
pub fn watch(args: &Args, config: &Config) -> Watch {
    let schemas =
        config.policies.iter().filter_map(|policy| policy.api.as_ref()).map(|api| api.schema.clone());
    let files: BTreeSet<PathBuf> =
        args.document().into_iter().chain(config.block_page.clone()).chain(schemas).collect();
    let files: Vec<PathBuf> = files.into_iter().collect();
    let mut folders = BTreeSet::new();
    for policy in &config.policies {
        let crs = policy.crs.clone();
        let named = policy.sources(crs.map(|folder| folder.join("crs-setup.conf")));
        folders.extend(named.iter().filter_map(|source| match source {
            RuleSource::File(path) | RuleSource::Optional(path) => path.parent().map(Path::to_path_buf),
            RuleSource::Inline { .. } => None,
        }));
    }
    Watch::listing(move || {
        let mut all = files.clone();
        for folder in &folders {
            let Ok(entries) = portcullis_files::entries(folder, FILES_MAX) else { continue };
            let entries = entries.into_iter().map(|name| folder.join(name));
            // Logs and state may stand beside rules.
            let is_rules =
                |path: &PathBuf| path.extension().is_some_and(|name| name == "conf" || name == "data");
            all.extend(entries.filter(is_rules));
        }
        all.sort();
        all
    })
}
