//! The description of an API: read, compiled, its mistakes told with the file.

use std::path::Path;
use std::sync::Arc;

use portcullis_config::{DeclaredApi, Policy};
use portcullis_declared::{Api, Problem, limits};

use crate::LoadError;

/// Mistakes of one description that are told.
const TOLD_MAX: usize = 20;

/// A compiled description.
#[derive(Clone, Debug)]
pub struct LoadedApi {
    /// What is declared.
    pub api: Arc<Api>,
    /// What is declared and not enforced.
    pub warnings: Vec<String>,
}

/// Reads and compiles the description that `policy` names, if it names one.
pub fn load_api(policy: &Policy) -> Result<Option<LoadedApi>, LoadError> {
    policy.api.as_ref().map(|declared| compile(&declared.schema, &read(declared)?)).transpose()
}

/// The text of the description.
pub(crate) fn read(declared: &DeclaredApi) -> Result<String, LoadError> {
    let path = &declared.schema;
    portcullis_files::read_text(path, limits::DOCUMENT_BYTES_MAX as u64).map_err(|error| LoadError::Api {
        errors: 1,
        report: format!("error: {}: cannot read the description of the API: {error}", path.display()),
    })
}

/// Compiles the text of the file at `path`.
pub(crate) fn compile(path: &Path, text: &str) -> Result<LoadedApi, LoadError> {
    match Api::compile(text) {
        Ok(api) => {
            let warnings = told(path, "warning", api.warnings());
            Ok(LoadedApi { api: Arc::new(api), warnings })
        }
        Err(problems) => {
            let report = told(path, "error", &problems).join("\n");
            Err(LoadError::Api { errors: problems.len(), report })
        }
    }
}

fn told(path: &Path, severity: &str, problems: &[Problem]) -> Vec<String> {
    let place = |problem: &Problem| match problem.line {
        Some(line) => format!("{}:{line}", path.display()),
        None => path.display().to_string(),
    };
    let one = |problem: &Problem| {
        let at = if problem.pointer.is_empty() { String::new() } else { format!(" at {}", problem.pointer) };
        format!("{severity}: {}{at}\n  --> {}", problem.message, place(problem))
    };
    let mut told: Vec<String> = problems.iter().take(TOLD_MAX).map(one).collect();
    if problems.len() > TOLD_MAX {
        told.push(format!("{severity}: {} more in {}", problems.len() - TOLD_MAX, path.display()));
    }
    told
}
