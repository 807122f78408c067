//! Rules that are ready to inspect.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use portcullis_engine::{Collections, KeptFile, RuleEngine, Settings};
use portcullis_event::{DetectionMode, Redactor, limits, text};
use portcullis_inspect::{Inspector, PolicyNames, Semantic};
use portcullis_load::{Loaded, Mistake, check_folders};
use portcullis_log::{DirectUploads, OpenFiles, Upload, UploadError};
use portcullis_seclang::ast::Directive;
use portcullis_seclang::settings::Setting;
use portcullis_semantic::Detectors;
use portcullis_store::{SharedFile, Store, StoreMetrics, check_folder};
use portcullis_types::Level;

use crate::audit::Logs;
use crate::mistakes::describe;
use crate::outlet::{Outlet, say};

/// What inspectors of a process have in common.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Collections of rules without `SecDataDir`.
    collections: Arc<Store>,
    /// Those of the others: rules that name one folder share what is in it.
    shared_files: Mutex<Vec<Weak<SharedFile>>>,
    files: OpenFiles,
    uploads: Arc<DirectUploads>,
    /// Built for the first rules that ask for them.
    detectors: OnceLock<Arc<Detectors>>,
    /// Rules that name one socket share what sends to it.
    outlets: Mutex<Vec<Weak<Outlet>>>,
}

impl Shared {
    fn outlet(&self, path: &Path) -> Arc<Outlet> {
        let mut outlets = self.outlets.lock().unwrap_or_else(PoisonError::into_inner);
        outlets.retain(|outlet| outlet.strong_count() > 0);
        let same = outlets.iter().filter_map(Weak::upgrade).find(|outlet| outlet.path() == path);
        same.unwrap_or_else(|| {
            let outlet = Arc::new(Outlet::new(path));
            outlets.push(Arc::downgrade(&outlet));
            outlet
        })
    }

    /// The collections of these rules.
    fn collections(&self, loaded: &Loaded) -> Result<Arc<dyn Collections>, String> {
        // The original never looks at the folder, so one that no rule needs is no mistake.
        let folder = loaded.plan.settings.data_dir.as_ref().filter(|_| loaded.plan.opens_collections());
        let Some(folder) = folder else { return Ok(Arc::clone(&self.collections) as _) };
        match check_folder(folder) {
            Ok(warning) => {
                warning.into_iter().for_each(|warning| say(&format!("warning: SecDataDir: {warning}")))
            }
            Err((message, hint)) => return Err(describe(&[data_dir_mistake(loaded, message, hint)])),
        }
        let mut files = self.shared_files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|file| file.strong_count() > 0);
        let same = files.iter().filter_map(Weak::upgrade).find(|file| file.folder() == folder);
        Ok(same.unwrap_or_else(|| {
            let file = Arc::new(SharedFile::new(folder, StoreMetrics::default(), Arc::new(say)));
            files.push(Arc::downgrade(&file));
            file
        }) as _)
    }

    fn semantic(&self, level: Level, settings: &Settings) -> Semantic {
        Semantic {
            detectors: Arc::clone(self.detectors.get_or_init(|| Arc::new(Detectors::new()))),
            level,
            policy: Arc::default(),
            response_bodies: settings.response_body_access,
            // A connector does not hold bodies back.
            response_wait: Duration::ZERO,
        }
    }
}

/// An inspector with the logs of its rules; shared by all rule sets of the same content.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) inspector: Arc<Inspector>,
    pub(crate) names: PolicyNames,
    pub(crate) redactor: Arc<Redactor>,
    logs: Option<Arc<Logs>>,
    uploads: Arc<DirectUploads>,
    /// Where events are sent.
    pub(crate) outlet: Option<Arc<Outlet>>,
}

impl Ready {
    /// Opens what the rules need. Warnings go to standard error, which servers show when they start.
    pub(crate) fn new(loaded: &Loaded, shared: &Shared) -> Result<Ready, String> {
        refuse_diversions(loaded)?;
        check_folders(loaded).map_err(|error| format!("Rules error. {error}").replace('\n', " "))?;
        let settings = &loaded.plan.settings;
        let logs = Logs::open(settings, &shared.files)
            .map_err(|error| format!("Rules error. {error}"))?
            .map(Arc::new);
        for warning in &loaded.warnings {
            eprintln!("{}", warning.trim_end());
        }
        let collections = shared.collections(loaded)?;
        // Before the server forks, so that its workers share what is built.
        loaded.plan.prepare();
        let (plan, redactor) = (Arc::clone(&loaded.plan), Arc::new(Redactor::default()));
        let mut inspector = Inspector::new(plan, Arc::clone(&redactor), collections);
        if let Some(level) = settings.semantic_detector {
            inspector = inspector.with_semantic(DetectionMode::Both, shared.semantic(level, settings));
        }
        if let Some(logs) = &logs {
            // As in the original: rules say what is hidden.
            inspector = inspector.with_audit(Arc::clone(logs) as _, true);
        }
        let route: Arc<str> = Arc::from("libmodsecurity");
        let site = match &settings.web_app_id[..] {
            b"default" => Arc::clone(&route),
            id => Arc::from(text(id, limits::REQUEST_TOKEN_BYTES_MAX)),
        };
        let names = PolicyNames { site, route, generation: 1 };
        let outlet = settings.event_socket.as_deref().map(|path| shared.outlet(path));
        Ok(Ready {
            inspector: Arc::new(inspector),
            names,
            redactor,
            logs,
            uploads: Arc::clone(&shared.uploads),
            outlet,
        })
    }

    /// Opens log files anew that were moved away.
    pub(crate) fn follow(&self) -> Result<(), String> {
        let followed = self.logs.as_ref().map_or(Ok(()), |logs| logs.follow());
        followed.map_err(|error| format!("Rules error. A log of the rules cannot be opened again: {error}"))
    }

    /// Writes an uploaded file that is to be kept.
    pub(crate) fn keep(&self, file: KeptFile) -> Result<(), UploadError> {
        let KeptFile { folder, name, mode, content } = file;
        self.uploads.keep(&Upload { folder, name, mode, content })
    }

    /// Number of rules.
    pub(crate) fn rule_count(&self) -> usize {
        self.inspector.plan().rules.len()
    }

    /// True if the rules interrupt, unless one of them says otherwise for a transaction.
    pub(crate) fn is_blocking(&self) -> bool {
        self.inspector.plan().settings.rule_engine == RuleEngine::On
    }
}

/// A folder that cannot be used, at the directive that names it.
fn data_dir_mistake(loaded: &Loaded, message: String, hint: &str) -> Mistake {
    let is_named = |directive: &Directive| matches!(directive, Directive::Setting(Setting::DataDir(_)));
    let named = loaded.document.directives.iter().rfind(|directive| is_named(&directive.node));
    let span = named.map(|directive| directive.span);
    let position = span.map(|span| loaded.sources.position(span));
    Mistake {
        file: span.map_or_else(String::new, |span| loaded.sources.path(span.file).display().to_string()),
        line: position.map_or(0, |position| position.line),
        column: position.map_or(0, |position| position.column),
        message: format!("SecDataDir: {message}"),
        hint: Some(hint.to_owned()),
    }
}

/// A server with a connector cannot be asked to send a request elsewhere.
fn refuse_diversions(loaded: &Loaded) -> Result<(), String> {
    let Some((rule, _)) = loaded.plan.diversions().next() else { return Ok(()) };
    let file = loaded.plan.files.get(rule.metadata.place.file as usize).map_or("", |file| &**file);
    let (line, id) = (rule.metadata.place.line, rule.id);
    Err(format!(
        "Rules error. File: {file}. Line: {line}. Column: 1. rule {id}: the proxy action cannot be carried out here. \
         Hint: use deny, or a proxy of the server's own configuration"
    ))
}
