//! A policy at work.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, Response};
use portcullis_config::{Config, Policy};
use portcullis_event::{Action, IntegrationKind, Redactor};
use portcullis_exchange::{
    Arrival, BlockPage, Conversation, Exclusions, Limits, Outputs, Service, Settings, Told, data_plane,
    redactor, request_head,
};
use portcullis_http::h1::{Limits as HeadLimits, Parsed, RequestParts, assemble_request};
use portcullis_inspect::{Collections, Inspector, KeptFile, PolicyNames};
use portcullis_load::{
    Loaded, Patterns, SharedDetectors, check_folders, check_kinds, check_limits, check_servers, load_sharing,
};
use portcullis_log::{DirectUploads, Upload, UploadDrop, UploadLimits};
use portcullis_metrics::{Registry, catalogue};
use portcullis_store::{SharedFile, Store, StoreMetrics, check_folder};

use crate::builder::{Builder, Source};
use crate::error::BuildError;
use crate::exchange::Exchange;

/// A policy at work; clones share it.
#[derive(Clone, Debug)]
pub struct Waf(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    service: Arc<Service>,
    registry: Arc<Registry>,
    warnings: Vec<String>,
    /// One reload at a time.
    loader: Mutex<Loader>,
}

/// What a reload reads, and keeps from the time before.
#[derive(Debug)]
struct Loader {
    builder: Builder,
    patterns: Patterns,
    detectors: SharedDetectors,
    metrics: StoreMetrics,
    /// Collections of rules without `SecDataDir`.
    store: Arc<Store>,
    /// Those of rules with it.
    shared: Option<Arc<SharedFile>>,
}

/// The other side of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    address: SocketAddr,
    peer: Option<SocketAddr>,
    server: Option<SocketAddr>,
    tls: bool,
}

impl Client {
    /// A client at this address.
    pub fn at(ip: impl Into<IpAddr>, port: u16) -> Client {
        Client { address: SocketAddr::new(ip.into(), port), peer: None, server: None, tls: false }
    }

    /// The same behind a proxy at `peer`, whose word on the address was believed.
    pub fn by(self, peer: SocketAddr) -> Client {
        Client { peer: Some(peer), ..self }
    }

    /// The same with the address that it reached.
    pub fn to(self, server: SocketAddr) -> Client {
        Client { server: Some(server), ..self }
    }

    /// The same by TLS.
    pub fn by_tls(self) -> Client {
        Client { tls: true, ..self }
    }
}

impl From<SocketAddr> for Client {
    fn from(address: SocketAddr) -> Client {
        Client::at(address.ip(), address.port())
    }
}

impl From<Client> for Arrival {
    fn from(client: Client) -> Arrival {
        let unknown = SocketAddr::new(IpAddr::from([0, 0, 0, 0]), 0);
        Arrival {
            client: client.address,
            peer: client.peer.unwrap_or(client.address),
            server: client.server.unwrap_or(unknown),
            tls: client.tls,
        }
    }
}

/// The verdict on a whole request.
#[derive(Debug)]
pub struct Verdict {
    /// The answer in place of the application's; none: the request passes.
    pub answer: Option<Response<Vec<u8>>>,
    /// The action.
    pub action: Action,
    /// Scores and rules.
    pub told: Told,
    /// The id of the exchange.
    pub request_id: String,
}

impl Waf {
    pub(crate) fn build(builder: Builder) -> Result<Waf, BuildError> {
        builder.check()?;
        let registry = Registry::new();
        let metrics = StoreMetrics::new(&registry);
        let store = Arc::new(Store::in_memory(Default::default(), metrics.clone()));
        let on_event = builder.on_event.clone();
        let (patterns, detectors) = (Patterns::default(), SharedDetectors::default());
        let mut loader = Loader { builder, patterns, detectors, metrics, store, shared: None };
        let Ready { settings, held_bytes_max, folder_bytes_max, warnings } = loader.load(&registry, 1)?;
        let outputs = Outputs {
            on_event,
            on_request: None,
            on_file: keeping_files(folder_bytes_max, &registry),
            keep_request_bytes: 0,
            capture: None,
        };
        let limits = Limits { held_bytes_max, refuses_cut_bodies: false };
        let counters = data_plane(&registry);
        let service = Service::new(IntegrationKind::Embedded, settings, limits, outputs, &registry, counters);
        Ok(Waf(Arc::new(Inner { service, registry, warnings, loader: Mutex::new(loader) })))
    }

    /// Warnings about the rules, of the start.
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    /// Begins an exchange by the head of its request: phase 1. `ended`: it has no body.
    pub fn begin(&self, parts: &http::request::Parts, ended: bool, client: impl Into<Client>) -> Exchange {
        self.converse(request_head(parts, ended, None), client.into())
    }

    /// The same for a head in parts of bytes.
    pub fn begin_parts(&self, parts: &RequestParts<'_>, client: impl Into<Client>) -> Exchange {
        self.converse(assemble_request(parts, &HeadLimits::default()), client.into())
    }

    fn converse(&self, parsed: Parsed, client: Client) -> Exchange {
        Exchange::new(Conversation::begin(&self.0.service, client.into(), parsed))
    }

    /// Inspects a whole request. Its response is not seen.
    pub fn inspect<B: AsRef<[u8]>>(&self, request: &Request<B>, client: impl Into<Client>) -> Verdict {
        let body = request.body().as_ref();
        let mut bare = Request::new(());
        *bare.method_mut() = request.method().clone();
        *bare.uri_mut() = request.uri().clone();
        *bare.version_mut() = request.version();
        *bare.headers_mut() = request.headers().clone();
        let mut exchange = self.begin(&bare.into_parts().0, body.is_empty(), client);
        exchange.no_response();
        match exchange.wants_request_body() {
            true => _ = exchange.request_body(body),
            false => exchange.request_passed().add(body.len()),
        }
        exchange.request_end();
        let (answer, action, told) = (exchange.answer(), exchange.action(), exchange.told());
        Verdict { answer, action, told, request_id: exchange.request_id().to_owned() }
    }

    /// Reads the document, or the rule files, again. Exchanges in flight end by the settings they began with;
    /// with any mistake the old ones stay. Returns the number of the new settings.
    pub fn reload(&self) -> Result<u64, BuildError> {
        let mut loader = self.0.loader.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = self.0.service.generation() + 1;
        match loader.load(&self.0.registry, generation) {
            Ok(ready) => {
                self.0.service.replace(ready.settings);
                Ok(generation)
            }
            Err(error) => {
                self.0.service.count_failed_reload();
                Err(error)
            }
        }
    }

    /// Metrics in the text form of Prometheus; the names are those of the proxy.
    pub fn metrics(&self) -> String {
        self.0.registry.render()
    }
}

/// Writes uploaded files that rules keep, in the thread that ends the exchange: applications fork, and our
/// thread would not exist in the child.
fn keeping_files(folder_bytes_max: u64, registry: &Registry) -> Arc<dyn Fn(KeptFile) + Send + Sync> {
    let uploads = DirectUploads::new(folder_bytes_max);
    let kept = registry.counter(&catalogue::UPLOADS_KEPT, &[]);
    let dropped = registry.enum_counters(&catalogue::UPLOADS_DROPPED, &[], UploadDrop::NAMES);
    Arc::new(move |KeptFile { folder, name, mode, content }| {
        match uploads.keep(&Upload { folder, name, mode, content }) {
            Ok(()) => kept.inc(),
            Err(error) => dropped.inc(error.reason() as usize),
        }
    })
}

/// Settings that can serve.
struct Ready {
    settings: Settings,
    held_bytes_max: usize,
    folder_bytes_max: u64,
    warnings: Vec<String>,
}

impl Loader {
    fn load(&mut self, registry: &Registry, generation: u64) -> Result<Ready, BuildError> {
        let names =
            |site: &str, route: &str| PolicyNames { site: site.into(), route: route.into(), generation };
        match self.builder.source.clone() {
            Source::Document { path, site, route } => {
                let config = Config::from_file(&path)?;
                if let Some((_, message)) = check_kinds(&config).into_iter().next() {
                    return Err(BuildError::Setting(format!("semantic.exclude: {message}")));
                }
                let chosen = config.inspected_route(site.as_deref(), route.as_deref())?;
                let policy = &config.policies[chosen.policy];
                let page = BlockPage::load(config.block_page.as_deref()).map_err(BuildError::BlockPage)?;
                let of = Some((&config, chosen.policy));
                let (inspector, warnings) = self.inspector(policy, of, redactor(&config))?;
                let names = names(chosen.site, chosen.route);
                let place = (chosen.site, chosen.route);
                let exclusions = Exclusions::of_route(registry, &config, chosen.policy, place);
                let redactor = redactor(&config);
                let settings =
                    Settings::new(registry, inspector, names, chosen.failure, page, redactor, exclusions);
                Ok(Ready {
                    settings,
                    held_bytes_max: self.builder.held_bytes(Some(&config)),
                    folder_bytes_max: config.upload_folder_bytes_max,
                    warnings,
                })
            }
            Source::Policy { policy, failure, block_page } => {
                let page = BlockPage::load(block_page.as_deref()).map_err(BuildError::BlockPage)?;
                let (inspector, warnings) = self.inspector(&policy, None, Redactor::default())?;
                let site = self.builder.name.as_deref().unwrap_or("default");
                let settings = Settings::new(
                    registry,
                    inspector,
                    names(site, "default"),
                    failure,
                    page,
                    Redactor::default(),
                    Exclusions::new(registry, &policy, (site, None)),
                );
                Ok(Ready {
                    settings,
                    held_bytes_max: self.builder.held_bytes(None),
                    folder_bytes_max: UploadLimits::default().folder_bytes_max,
                    warnings,
                })
            }
        }
    }

    /// The inspector of a policy, which may be one of a document, and warnings about its rules.
    fn inspector(
        &mut self,
        policy: &Policy,
        of: Option<(&Config, usize)>,
        redactor: Redactor,
    ) -> Result<(Arc<Inspector>, Vec<String>), BuildError> {
        let mut loaded = load_sharing(policy, &self.patterns)?;
        check_folders(&loaded)?;
        check_servers(&loaded, of.map_or(&[], |(config, _)| &config.upstreams))?;
        if let Some((config, index)) = of {
            check_limits(&loaded, config, index)?;
        }
        // Before the first request, which would wait for it.
        loaded.plan.prepare();
        let collections = self.collections(&mut loaded)?;
        let inspector = Inspector::new(loaded.plan, Arc::new(redactor), collections);
        let inspector = Arc::new(self.detectors.attach(inspector, policy)?);
        loaded.warnings.extend(self.detectors.take_warnings());
        Ok((inspector, loaded.warnings))
    }

    /// The collections of these rules: applications have several processes, and share what is in a folder.
    fn collections(&mut self, loaded: &mut Loaded) -> Result<Arc<dyn Collections>, BuildError> {
        let folder = loaded.plan.settings.data_dir.as_ref().filter(|_| loaded.plan.opens_collections());
        let Some(folder) = folder else { return Ok(Arc::clone(&self.store) as _) };
        let warning = check_folder(folder)
            .map_err(|(message, hint)| BuildError::Setting(format!("SecDataDir: {message}; {hint}")))?;
        loaded.warnings.extend(warning.map(|warning| format!("warning: SecDataDir: {warning}")));
        if let Some(shared) = self.shared.as_ref().filter(|shared| shared.folder() == folder) {
            return Ok(Arc::clone(shared) as _);
        }
        // An application does not have our log: trouble is in the metrics, and on standard error.
        let say = Arc::new(|line: &str| eprintln!("portcullis: {line}"));
        let shared = Arc::new(SharedFile::new(folder, self.metrics.clone(), say));
        self.shared = Some(Arc::clone(&shared));
        Ok(shared)
    }
}
