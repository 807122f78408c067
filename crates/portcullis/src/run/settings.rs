//! Settings of `portcullis run`: a document, or flags for one site; and the rules they name.

use std::path::PathBuf;
use std::sync::Arc;

use portcullis_api::CertificateFiles;
use portcullis_config::{Config, DocumentText, Flags, Policy};
use portcullis_engine::Plan;
use portcullis_inspect::Inspector;
use portcullis_load::{Patterns, SharedDetectors, check_kinds};
use portcullis_metrics::Registry;
use portcullis_revisions::Document;
use portcullis_store::{Limits, Store, StoreMetrics};

use crate::outcome::Failure;
use crate::policy_args::RuleFlags;
use crate::run::audit::Audit;
use crate::run::console::ConsoleSettings;
use crate::run::declared_apis::DeclaredApis;
use crate::run::discovery::Discovery;
use crate::run::learning::Learning;
use crate::run::{kept_document, plan_cache};
use crate::{data_folder, new_file};

/// Arguments of `portcullis run`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Take everything from this configuration document (.toml, .yaml)
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "listen", "upstream", "mode", "level", "crs", "paranoia", "detect_only", "setup", "rules", "http_compat", "events",
            "error_log", "plan_cache", "workers", "worker_affinity", "admin"
        ],
    )]
    config: Option<PathBuf>,
    /// Where --config is not there yet, begin with a copy of this document: one that may only be read, as
    /// from a ConfigMap or an image, becomes one that console and API change
    #[arg(long, value_name = "FILE", requires = "config")]
    first_config: Option<PathBuf>,
    /// Address and port to serve; by default 127.0.0.1:8080
    #[arg(long, value_name = "ADDR", requires = "upstream")]
    listen: Option<String>,
    /// The application: http://host:port or https://host:port
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    #[command(flatten)]
    rules: RuleFlags,
    /// strict, or apache for test suites written against Apache httpd
    #[arg(long, value_name = "PROFILE")]
    http_compat: Option<String>,
    /// Write events to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Write each match to this file in the form of ModSecurity
    #[arg(long, value_name = "FILE")]
    error_log: Option<PathBuf>,
    /// Cache rule analysis in this file for faster restarts
    #[arg(long, value_name = "FILE")]
    plan_cache: Option<PathBuf>,
    /// Worker threads; by default one for each core
    #[arg(long, value_name = "N")]
    workers: Option<u32>,
    /// Pin each worker to a core of its own, which serves the connections whose packets arrive there
    #[arg(long)]
    worker_affinity: bool,
    /// Address and port of /metrics and /healthz
    #[arg(long, value_name = "ADDR")]
    admin: Option<String>,
    /// Folder of the event store, identities, certificates and, without --config, of the settings; takes
    /// the place of `data.folder`. With --upstream and --console by default portcullis-data in the current
    /// folder
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Serve the web console and the admin API, by default on 127.0.0.1:9443; over TLS unless the address is
    /// a loopback one
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = CONSOLE)]
    console: Option<String>,
    /// Certificate of the admin API, in PEM; by default a self-signed one, made at the first start
    #[arg(long, value_name = "FILE", requires = "console_key")]
    console_cert: Option<PathBuf>,
    /// Private key of the admin API's certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "console_cert")]
    console_key: Option<PathBuf>,
    /// Folder of the socket for `portcullis events`; by default that of this user, or of the service
    #[arg(long, value_name = "DIR")]
    pub runtime_folder: Option<PathBuf>,
}

/// Where the console listens, if nobody says where.
pub const CONSOLE: &str = "127.0.0.1:9443";
/// The data folder of a console that was started with flags.
const DATA: &str = "portcullis-data";

/// The error of a start without a document or an application to protect.
const NOTHING_TO_GUARD: &str = "name the application to protect:

    portcullis run --upstream http://127.0.0.1:9000

serves it on 127.0.0.1:8080 (`--listen` names another address) and blocks attacks; `--detect-only` only logs them. `--console` \
adds the web console. For several sites, TLS and all else there is a document:

    portcullis run --config portcullis.toml

`portcullis run --help` lists the flags.";

impl Args {
    /// The document, if there is one.
    pub fn document(&self) -> Option<std::path::PathBuf> {
        self.config.clone()
    }

    /// Makes the document that does not exist yet: that of `--first-config`, or, where flags have a data
    /// folder, theirs.
    pub fn begin(&self) -> Result<Args, Failure> {
        let mut args = self.clone();
        if self.upstream.is_some() && (self.data.is_some() || self.console.is_some()) {
            let data = self.data.clone().unwrap_or_else(|| PathBuf::from(DATA));
            data_folder::check_named(&data)?;
            args.config = Some(kept_document::take_up(&data, &self.flags())?);
            args.data = Some(data);
        }
        let Some((first, config)) = self.first_config.as_ref().zip(self.config.as_ref()) else {
            return Ok(args);
        };
        if config.exists() {
            return Ok(args);
        }
        let text = std::fs::read_to_string(first)
            .map_err(|error| Failure::failed(format_args!("--first-config {}: {error}", first.display())))?;
        new_file::write(&text, config, false)?;
        eprintln!("portcullis: {} begins as a copy of {}", config.display(), first.display());
        Ok(args)
    }

    /// True if what is served was named by flags.
    pub fn has_flags(&self) -> bool {
        self.upstream.is_some()
    }

    fn flags(&self) -> Flags {
        Flags {
            listen: self.listen.clone(),
            upstream: self.upstream.clone().unwrap_or_default(),
            policy: self.rules.policy(),
            http_compat: self.http_compat.clone(),
            events: self.events.clone(),
            error_log: self.error_log.clone(),
            plan_cache: self.plan_cache.clone(),
            workers: self.workers,
            worker_affinity: self.worker_affinity,
            admin: self.admin.clone(),
        }
    }

    /// The console, if there is one.
    pub fn console<'c>(&self, config: &'c Config) -> Result<Option<ConsoleSettings<'c>>, Failure> {
        let wrong = |text: &str| {
            Failure::usage(format_args!(
                "--console: `{text}` is not an address with a port; write `127.0.0.1:9443`"
            ))
        };
        let flag = self.console.as_ref().map(|text| text.parse().map_err(|_| wrong(text))).transpose()?;
        let Some(address) = flag.or(config.console) else { return Ok(None) };
        let Some(data) = &config.data else {
            return Err(Failure::usage(
                "the console needs a data folder: `--data DIR`, or `data.folder` in the document",
            ));
        };
        let certificate = self.console_cert.clone().zip(self.console_key.clone());
        let certificate = certificate.map(|(certificate, key)| CertificateFiles { certificate, key });
        let (hosts, read_only) = (config.admin_hosts.clone(), config.read_only);
        let document = self.config.as_deref().and_then(Document::new);
        let (database, oidc) = (config.event_database.as_ref(), config.oidc.as_ref());
        let settings =
            ConsoleSettings { address, data, database, certificate, hosts, oidc, document, read_only };
        Ok(Some(settings))
    }

    /// The settings, read anew. With a document: by its text in the file, or by another one in its place.
    pub fn read(&self, candidate: Option<&str>) -> Result<Settings, Failure> {
        let mut settings = self.document_or_flags(candidate)?;
        if let Some(data) = &self.data {
            settings.config.data = Some(data.clone());
        }
        Ok(settings)
    }

    fn document_or_flags(&self, candidate: Option<&str>) -> Result<Settings, Failure> {
        let Some(path) = &self.config else {
            if self.upstream.is_none() {
                return Err(Failure::usage(NOTHING_TO_GUARD));
            }
            let config = Config::from_flags(self.flags()).map_err(Failure::usage)?;
            return Ok(Settings { config, text: None });
        };
        let source = match candidate {
            Some(text) => DocumentText::of_path(path, text.to_owned()),
            None => DocumentText::read(path),
        };
        let source = source.map_err(Failure::failed)?;
        let mut config = source.config().map_err(Failure::failed)?;
        // Warnings are about what will be run.
        config.data = self.data.clone().or(config.data);
        for warning in config.warnings() {
            eprintln!("portcullis: {}: warning: {warning}", path.display());
        }
        Ok(Settings { config, text: Some(source.text) })
    }
}

/// Settings, and the text of the document that they come from.
pub struct Settings {
    pub config: Config,
    /// None if they come from flags.
    pub text: Option<String>,
}

/// Compiles the policies of a configuration, and keeps what outlives one: persistent collections, detectors.
pub struct Policies {
    registry: Arc<Registry>,
    store: Option<Arc<Store>>,
    audit: Arc<Audit>,
    /// Kept over reloads: rules that stay are not compiled again.
    patterns: Patterns,
    detectors: SharedDetectors,
    /// What sites learn of their fields, where requests are seen to be answered.
    learning: Option<Learning>,
    /// Where their interfaces are found, there alike.
    discovery: Option<Discovery>,
}

impl Policies {
    /// None compiled yet.
    pub fn new(registry: Arc<Registry>, audit: Arc<Audit>) -> Policies {
        Policies {
            registry,
            store: None,
            audit,
            patterns: Patterns::default(),
            detectors: SharedDetectors::default(),
            learning: None,
            discovery: None,
        }
    }

    /// The same, and sites that are to learn do.
    pub fn with_learning(self, learning: Learning) -> Policies {
        Policies { learning: Some(learning), ..self }
    }

    /// The same, and the interfaces of sites that want it are discovered.
    pub fn with_discovery(self, discovery: Discovery) -> Policies {
        Policies { discovery: Some(discovery), ..self }
    }

    /// An inspector for each policy, in order. Warnings go to standard error.
    pub fn load(&mut self, config: &Config) -> Result<Vec<Arc<Inspector>>, Failure> {
        if let Some((_, message)) = check_kinds(config).into_iter().next() {
            return Err(Failure::failed(format_args!("semantic.exclude: {message}")));
        }
        let cache = config.plan_cache.as_deref().map(|path| plan_cache::open(path, &self.patterns));
        let plans = self.plans(config);
        let used = self.patterns.used();
        let plans = plans?;
        plan_cache::prepare(plans.clone(), cache, used);
        let redactor = Arc::new(portcullis_exchange::redactor(config));
        let store = self.store(&config.store, &plans);
        let inspector = |(plan, policy): (_, &Policy)| {
            let inspector = Inspector::new(plan, Arc::clone(&redactor), Arc::clone(&store) as _);
            let inspector = self.detectors.attach(inspector, policy).map_err(Failure::failed)?;
            let inspector = match policy.fields.as_ref().zip(self.learning.as_mut()) {
                Some((fields, learning)) => inspector.with_fields(learning.fields_of(fields)),
                None => inspector,
            };
            let inspector = match policy.discovery.as_ref().zip(self.discovery.as_mut()) {
                Some((settings, discovery)) => inspector.with_discovery(discovery.site_of(settings)),
                None => inspector,
            };
            self.audit.attach(inspector).map(Arc::new).map_err(Failure::failed)
        };
        let inspectors = plans.into_iter().zip(&config.policies).map(inspector).collect::<Result<_, _>>();
        if let (Ok(_), Some(discovery)) = (&inspectors, &self.discovery) {
            for site in &config.sites {
                discovery.declare(&site.name, DeclaredApis::of(config, site));
            }
        }
        for warning in self.detectors.take_warnings() {
            eprintln!("{warning}");
        }
        inspectors
    }

    fn plans(&self, config: &Config) -> Result<Vec<Arc<Plan>>, Failure> {
        let mut plans = Vec::with_capacity(config.policies.len());
        for (index, policy) in config.policies.iter().enumerate() {
            let loaded = portcullis_load::load_sharing(policy, &self.patterns).map_err(Failure::failed)?;
            portcullis_load::check_servers(&loaded, &config.upstreams).map_err(Failure::failed)?;
            portcullis_load::check_limits(&loaded, config, index).map_err(Failure::failed)?;
            portcullis_load::check_folders(&loaded).map_err(Failure::failed)?;
            for warning in &loaded.warnings {
                eprintln!("{warning}");
            }
            plans.push(loaded.plan);
        }
        Ok(plans)
    }

    /// The collections of the rules; none before they are loaded.
    pub fn collections(&self) -> Option<Arc<Store>> {
        self.store.clone()
    }

    /// Opened once for all policies, and before the first request.
    fn store(&mut self, settings: &portcullis_config::Store, plans: &[Arc<Plan>]) -> Arc<Store> {
        if let Some(store) = &self.store {
            return Arc::clone(store);
        }
        let mut folders = plans.iter().filter_map(|plan| plan.settings.data_dir.as_ref());
        let folder = settings.folder.as_ref().or_else(|| folders.next()).cloned();
        for other in folders.filter(|other| Some(*other) != folder.as_ref()) {
            let other = other.display();
            eprintln!("portcullis: SecDataDir {other} is not used, all collections are kept in one folder");
        }
        let options = portcullis_store::Options {
            limits: Limits {
                records_max: settings.records_max,
                bytes_max: usize::try_from(settings.bytes_max).unwrap_or(usize::MAX),
                record_bytes_max: usize::try_from(settings.record_bytes_max).unwrap_or(usize::MAX),
            },
            folder,
            redis: settings.redis.as_ref().map(|redis| portcullis_store::Redis {
                url: redis.url.clone(),
                prefix: redis.prefix.clone(),
            }),
        };
        let say = Arc::new(|line: &str| eprintln!("portcullis: {line}"));
        let store = Arc::new(Store::open(options, StoreMetrics::new(&self.registry), say));
        self.store = Some(Arc::clone(&store));
        store
    }
}
