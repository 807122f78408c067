//! The description of an API: read, compiled, its mistakes told with the file.

use std::path::Path;
use std::sync::Arc;

use portcullis_config::{ClassAction, DeclaredApi, Policy};
use portcullis_declared::{Api, GraphqlLimits, Problem, Settings, limits};

use crate::LoadError;

/// Mistakes of one description that are reported.
const TOLD_MAX: usize = 20;

/// A compiled description.
#[derive(Clone, Debug)]
pub struct LoadedApi {
    /// The declarations.
    pub api: Arc<Api>,
    /// Declarations that are not enforced.
    pub warnings: Vec<String>,
}

/// Reads and compiles the description that `policy` names, if it names one.
pub fn load_api(policy: &Policy) -> Result<Option<LoadedApi>, LoadError> {
    policy.api.as_ref().map(|declared| compile(declared, &read(declared)?)).transpose()
}

/// Reads and compiles the description in a file, with the answers in it.
pub fn check_api(path: &Path) -> Result<LoadedApi, LoadError> {
    compile_with(path, &read_file(path)?, &Settings { answers: true, graphql: None })
}

/// The content of the description.
pub(crate) fn read(declared: &DeclaredApi) -> Result<Vec<u8>, LoadError> {
    read_file(&declared.schema)
}

fn read_file(path: &Path) -> Result<Vec<u8>, LoadError> {
    portcullis_files::read(path, limits::DOCUMENT_BYTES_MAX as u64).map_err(|error| LoadError::Api {
        errors: 1,
        report: format!("error: {}: cannot read the description of the API: {error}", path.display()),
    })
}

pub(crate) fn settings(declared: &DeclaredApi) -> Settings {
    let limits = declared.graphql.map(|limits| GraphqlLimits {
        depth: limits.depth,
        fields: limits.fields.into(),
        aliases: limits.aliases.into(),
        batch: limits.batch as usize,
        introspection: limits.introspection,
        persisted_only: limits.persisted_only,
    });
    Settings { answers: declared.responses != ClassAction::Off, graphql: limits }
}

/// Compiles the content of the description.
pub(crate) fn compile(declared: &DeclaredApi, content: &[u8]) -> Result<LoadedApi, LoadError> {
    let (path, settings) = (&declared.schema, settings(declared));
    let mut loaded = compile_with(path, content, &settings)?;
    let unused = loaded.api.unused(&settings);
    let one = |why: &&str| format!("warning: {why}\n  --> {}", path.display());
    loaded.warnings.extend(unused.iter().map(one));
    Ok(loaded)
}

fn compile_with(path: &Path, content: &[u8], settings: &Settings) -> Result<LoadedApi, LoadError> {
    match Api::compile_file(content, settings) {
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
