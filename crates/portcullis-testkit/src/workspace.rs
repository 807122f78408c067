//! The root folder of the workspace.

use std::path::{Path, PathBuf};

/// The root of the workspace these sources belong to.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// A folder named by `variable`, or else `default` under the workspace root.
pub(crate) fn folder(variable: &str, default: &str) -> PathBuf {
    match std::env::var_os(variable) {
        Some(path) if !path.is_empty() => PathBuf::from(path),
        _ => workspace_root().join(default),
    }
}
