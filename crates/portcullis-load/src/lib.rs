//! From a policy of the configuration to a ready plan, and to an inspector with its semantic detector.
//!
//! ```text
//! Policy --sources--> rule files, inline texts --parse--> Document --compile--> Plan
//!    |                           └──────────── diagnostics ────────────┘         |
//!    └──────────────────────── SharedDetectors::attach ────────────────────> Inspector
//! ```
//!
//! The one place where rule files are opened, and those of `SecRemoteRules` fetched. Every mistake of every
//! file comes in one report; a policy with an error gives no plan.

#![warn(clippy::wildcard_enum_match_arm)]

mod declared;
mod plan_cache;
mod remote;
mod rule_text;
mod scopes;
mod semantic;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use portcullis_config::{Config, KeyPart, Policy, RuleSource, Upstream};
use portcullis_engine::{KeepFiles, Origin, Plan};
use portcullis_seclang::{Diagnostic, Level, Root, Sources, ast::Document, parse};

pub use declared::{LoadedApi, check_api, load_api};
pub use plan_cache::{PlanCache, PlanCacheError};
pub use portcullis_compile::{Patterns, Used};
pub use remote::RuleFiles;
pub use rule_text::rule_text;
pub use scopes::{Mistake, load_scopes};
pub use semantic::{SharedDetectors, check_kinds};

/// Rules that are ready to run.
#[derive(Debug)]
pub struct Loaded {
    /// The plan.
    pub plan: Arc<Plan>,
    /// The tree it was made of: for tools that compare evaluators.
    pub document: Document,
    /// The texts.
    pub sources: Sources,
    /// Warnings, rendered.
    pub warnings: Vec<String>,
    /// Notes, rendered: what a setting keeps from having an effect. Only `check` shows them.
    pub notes: Vec<String>,
}

/// The reason why a policy cannot be loaded.
#[derive(Debug)]
pub enum LoadError {
    /// The CRS folder is missing or does not hold a CRS.
    NoCrs {
        /// The folder.
        folder: PathBuf,
        /// The missing part.
        missing: &'static str,
    },
    /// The description of the API cannot be read, or has mistakes.
    Api {
        /// Number of errors.
        errors: usize,
        /// All of them, each with its file.
        report: String,
    },
    /// The rules have mistakes.
    Rules {
        /// Number of errors.
        errors: usize,
        /// All diagnostics, rendered.
        report: String,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::NoCrs { folder, missing } => write!(
                f,
                "no CRS in {}: {missing}\n  help: `portcullis crs install` brings a release and names its folder; or unpack \
                 one, and name the folder that holds rules/ and crs-setup.conf.example",
                folder.display()
            ),
            LoadError::Api { report, .. } => f.write_str(report),
            LoadError::Rules { errors, report } => write!(f, "{report}\n{errors} error(s) in the rules"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Reads, parses and compiles the rules of `policy`.
pub fn load(policy: &Policy) -> Result<Loaded, LoadError> {
    load_sharing(policy, &Patterns::default())
}

/// As [`load`], with patterns that the plans of other policies may have, too.
pub fn load_sharing(policy: &Policy, patterns: &Patterns) -> Result<Loaded, LoadError> {
    let setup = policy.crs.as_deref().map(crs_setup).transpose()?;
    let roots: Vec<Root> = policy.sources(setup).into_iter().map(root).collect();
    read(&roots, patterns)
}

/// Mistakes of `loaded` that only show beside the upstreams of the configuration: a `proxy` action may send
/// requests only to one of their endpoints, so that a rule file cannot open the way to servers that the
/// configuration never named.
pub fn check_servers(loaded: &Loaded, upstreams: &[Upstream]) -> Result<(), LoadError> {
    let known = |origin: &Origin| {
        upstreams.iter().any(|each| each.endpoint_at(origin.https, &origin.host, origin.port).is_some())
    };
    let foreign: Vec<String> = loaded
        .plan
        .diversions()
        .filter(|(_, origin)| !known(origin))
        .map(|(rule, origin)| {
            let file = loaded.plan.files.get(rule.metadata.place.file as usize).map_or("", |file| &**file);
            let (line, id) = (rule.metadata.place.line, rule.id);
            format!(
                "error: rule {id}: proxy sends requests to {origin}, which is not an endpoint of an upstream\n  --> \
                 {file}:{line}\n  help: name it in the configuration: [upstreams.decoy] endpoints = [\"{origin}\"]"
            )
        })
        .collect();
    match foreign.len() {
        0 => Ok(()),
        errors => Err(LoadError::Rules { errors, report: foreign.join("\n") }),
    }
}

/// Mistakes of `loaded`, the rules of a policy of `config` by index, that only show beside its rate limits:
/// those that rules count requests in must be there, at every route that the rules serve, and be meant for
/// it.
pub fn check_limits(loaded: &Loaded, config: &Config, policy: usize) -> Result<(), LoadError> {
    let routes = config.sites.iter().flat_map(|site| site.routes.iter().map(move |route| (site, route)));
    let routes: Vec<_> = routes.filter(|(_, route)| route.policy == Some(policy)).collect();
    let mut mistakes = Vec::new();
    for (rule, limit) in loaded.plan.rate_limits() {
        let lacks = routes.iter().find(|(site, route)| {
            let mut limits = site.rate_limits.iter().chain(&route.rate_limits);
            !limits.any(|one| one.name == *limit.name && one.key.contains(&KeyPart::Rule))
        });
        if let Some((site, route)) = lacks {
            let file = loaded.plan.files.get(rule.metadata.place.file as usize).map_or("", |file| &**file);
            let (line, id, name) = (rule.metadata.place.line, rule.id, &limit.name);
            mistakes.push(format!(
                "error: rule {id}: ctl:rateLimit names `{name}`, which is not a rate limit of rules at route `{}` of site `{}`\n  \
                 --> {file}:{line}\n  help: rate_limits = [{{ name = \"{name}\", key = [\"rule\"], rate = 5, per = \"1m\" }}]",
                route.name, site.name
            ));
        }
    }
    match mistakes.len() {
        0 => Ok(()),
        errors => Err(LoadError::Rules { errors, report: mistakes.join("\n") }),
    }
}

/// A mistake of `loaded` that only shows on the machine that it is to run on: the folder for uploaded files
/// must be there.
pub fn check_folders(loaded: &Loaded) -> Result<(), LoadError> {
    let settings = &loaded.plan.settings;
    let folder = settings.upload_folder.as_ref().filter(|_| settings.keep_files != KeepFiles::Off);
    let wrong = folder.and_then(|folder| {
        let why = match std::fs::metadata(folder.as_path()) {
            Ok(found) if found.is_dir() => return None,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => "may not be looked into",
            _ => "is not a folder",
        };
        Some((folder, why))
    });
    match wrong {
        None => Ok(()),
        Some((folder, why)) => Err(LoadError::Rules {
            errors: 1,
            report: format!(
                "error: SecUploadDir {} {why}\n  help: make it, and let the user that the proxy runs as write to it",
                folder.display()
            ),
        }),
    }
}

/// As [`load`], for rule files and texts that no policy names.
pub fn load_roots(roots: &[Root]) -> Result<Loaded, LoadError> {
    read(roots, &Patterns::default())
}

fn read(roots: &[Root], patterns: &Patterns) -> Result<Loaded, LoadError> {
    let parsed = parse(roots, &RuleFiles);
    let compiled =
        portcullis_compile::compile_sharing(&parsed.document, &parsed.sources, &RuleFiles, patterns);
    let diagnostics: Vec<Diagnostic> = parsed.diagnostics.into_iter().chain(compiled.diagnostics).collect();
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Level::Error).count();
    let rendered = |diagnostic: &Diagnostic| diagnostic.render(&parsed.sources);
    let of = |level: Level| diagnostics.iter().filter(move |one| one.severity == level).map(rendered);
    match compiled.plan {
        Some(plan) if errors == 0 => Ok(Loaded {
            warnings: of(Level::Warning).chain(library_warnings(&plan)).collect(),
            notes: of(Level::Note).collect(),
            plan: Arc::new(plan),
            document: parsed.document,
            sources: parsed.sources,
        }),
        _ => {
            let report = diagnostics.iter().map(rendered).collect::<Vec<_>>().join("\n");
            Err(LoadError::Rules { errors, report })
        }
    }
}

/// Directives for servers that load our libmodsecurity: a policy has a mode, and the proxy its own events.
fn library_warnings(plan: &Plan) -> impl Iterator<Item = String> + use<> {
    let detector = "warning: SecSemanticDetector has no effect here\n  help: set the policy's mode, e.g. mode = \"both\"\n";
    let socket = "warning: SecEventSocket has no effect here\n  help: add data = { folder = \"...\" } to the document\n";
    let settings = &plan.settings;
    let detector = settings.semantic_detector.map(|_| detector.to_owned());
    detector.into_iter().chain(settings.event_socket.as_ref().map(|_| socket.to_owned()))
}

/// The setup file of the CRS in `folder`: the operator's, or the example that comes with it.
fn crs_setup(folder: &Path) -> Result<PathBuf, LoadError> {
    let error = |missing| LoadError::NoCrs { folder: folder.to_owned(), missing };
    match std::fs::read_dir(folder).map_err(|error| error.kind()) {
        Ok(_) => {}
        Err(std::io::ErrorKind::PermissionDenied) => {
            return Err(error("the user that this runs as may not look into the folder"));
        }
        Err(std::io::ErrorKind::NotADirectory) => return Err(error("it is not a folder")),
        Err(_) => return Err(error("there is no such folder")),
    }
    if !folder.join("rules").join("REQUEST-901-INITIALIZATION.conf").is_file() {
        return Err(error("rules/REQUEST-901-INITIALIZATION.conf is missing"));
    }
    ["crs-setup.conf", "crs-setup.conf.example"]
        .map(|name| folder.join(name))
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| error("crs-setup.conf and crs-setup.conf.example are missing"))
}

fn root(source: RuleSource) -> Root {
    match source {
        RuleSource::File(path) => Root::File(path),
        RuleSource::Optional(path) => Root::Optional(path),
        RuleSource::Inline { name, text } => {
            Root::Text { name: PathBuf::from(format!("<{name}>")), text: text.into_bytes() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_crs_says_how_to_get_it() {
        let policy = Policy { crs: Some(PathBuf::from("/nonexistent/crs")), ..Policy::default() };
        let error = load(&policy).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/crs") && error.contains("portcullis crs install"), "{error}");
    }

    #[test]
    fn a_policy_without_a_crs_loads_the_defaults() {
        let loaded = load(&Policy::default()).unwrap();
        assert_eq!(loaded.plan.settings.rule_engine, portcullis_engine::RuleEngine::On);
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    }

    #[test]
    fn mistakes_of_parser_and_compiler_come_together() {
        let text = "SecRule ARGS \"@rx (\" \"id:1\"\nSecRule ARGZ \"@rx a\" \"id:2\"\n";
        let policy = Policy { directives: Some(text.to_owned()), ..Policy::default() };
        let LoadError::Rules { errors, report } = load(&policy).unwrap_err() else { panic!("other error") };
        assert_eq!(errors, 2, "{report}");
        assert!(report.contains("<directives>:1:") && report.contains("<directives>:2:"), "{report}");
    }
}
