//! `portcullis serve`: verdicts for other servers, until a signal ends it.
//!
//! The same policies, events, metrics and signals as `portcullis run`; no upstreams, and no console.

mod settings;

use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portcullis_admin::{Health, Pages};
use portcullis_event_store::Recorder;
use portcullis_inspect::{Inspector, PolicyNames};
use portcullis_log::{EventLog, QueueLimits, UploadLimits, UploadStore};
use portcullis_metrics::Registry;
use portcullis_proxy::{BlockPage, Exclusions};
use portcullis_serve::{Limits, Outputs, Server, Service};
use tokio::sync::mpsc;

use crate::cli::Failure;
use crate::run::audit::Audit;
use crate::run::event_socket::EventSocket;
use crate::run::notify::Notify;
use crate::run::settings::Policies;
use crate::run::signals::{Signal, Signals};
use crate::run::{self, EVENTS_DEADLINE, event_store, sinks};
use crate::runtime_folder;
pub use settings::Args;
use settings::{Chosen, Common, Integration};

/// Reloads that wait while one is done.
const RELOADS_QUEUED: usize = 16;
/// For the rest of a message whose beginning has come.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two messages of a connection: servers keep theirs open for the next exchange.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Serves until SIGTERM or SIGINT. Exit code 1 if it cannot start.
pub fn run(args: &Args) -> ExitCode {
    match serve(&args.integration) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit(),
    }
}

fn serve(integration: &Integration) -> Result<(), Failure> {
    let common = integration.common();
    let (address, protocol) = (common.address()?, integration.protocol()?);
    let chosen = common.read()?;
    let config = &chosen.config;
    let limits = limits(common, &chosen)?;
    let registry = Registry::new();
    let audit = Arc::new(Audit::new(config.audit_log, &registry));
    let mut policies = Policies::new(Arc::clone(&registry), Arc::clone(&audit));
    let settings = load(&chosen, &mut policies, &registry, 1)?;
    // Without a document events are told on standard error, unless they go to a file.
    let says = !common.has_document() && config.events.is_none();
    let (recent, files) = run::event_files(config, says);
    let log = EventLog::new(files, QueueLimits::default(), &registry).map_err(Failure::failed)?;
    let recorder = event_store::start(config, false, &registry)?;
    let uploads =
        UploadLimits { folder_bytes_max: config.upload_folder_bytes_max, ..UploadLimits::default() };
    let uploads = UploadStore::new(uploads, &registry).map_err(Failure::failed)?;
    let sinks = sinks::start(config, &registry)?;
    let (record, kept_files) = (recorder.as_ref().map(Recorder::handle), uploads.sender());
    let outputs = Outputs {
        on_request: event_store::on_request(record.as_ref()),
        on_event: sinks::fan_out(log.sender(), sinks.sender(), record),
        on_file: Arc::new(move |file| kept_files.submit(run::upload(file))),
        keep_request_bytes: if config.data.is_some() { config.event_store.keep_request_bytes } else { 0 },
    };
    let data_plane = run::data_plane(&registry);
    let service = Service::new(integration.kind(), settings, limits, outputs, &registry, data_plane);
    let listener = TcpListener::bind(address)
        .map_err(|error| Failure::failed(portcullis_proxy::cannot_listen(address, &error)))?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    let policies = runtime.block_on(async {
        // Signals are caught before readiness is reported.
        let signals = Signals::catch()?;
        let server = Server::start(listener, Arc::clone(&service), protocol, config.workers);
        let server = server.map_err(Failure::failed)?;
        let folder = common.runtime_folder.clone().unwrap_or_else(runtime_folder::default);
        let _socket = recent.and_then(|recent| EventSocket::open(&folder, recent).ok());
        eprintln!("portcullis: {} on {}", integration.kind(), server.address());
        let reopen = || {
            log.reopen();
            audit.reopen();
        };
        let running = Running { common, registry: Arc::clone(&registry), service, policies: Some(policies) };
        running.run(signals, config.admin, server, reopen).await
    })?;
    policies.close();
    uploads.shutdown(EVENTS_DEADLINE);
    let lost =
        log.shutdown(EVENTS_DEADLINE) + audit.shutdown(EVENTS_DEADLINE) + sinks.shutdown(EVENTS_DEADLINE);
    let lost = lost + recorder.map_or(0, |recorder| recorder.shutdown(EVENTS_DEADLINE));
    if lost > 0 {
        eprintln!("portcullis: {lost} events or audit records could not be written");
    }
    Ok(())
}

fn limits(common: &Common, chosen: &Chosen) -> Result<Limits, Failure> {
    let config = &chosen.config;
    Ok(Limits {
        trusted: common.trusted(config)?,
        connections_max: config.limits.connections_max,
        held_bytes_max: usize::try_from(config.limits.held_body_bytes_max).unwrap_or(usize::MAX),
        message_timeout: MESSAGE_TIMEOUT,
        idle_timeout: IDLE_TIMEOUT,
        drain_timeout: config.timeouts.drain,
        refuses_cut_bodies: common.refuse_cut_bodies,
    })
}

/// The settings of a generation.
fn load(
    chosen: &Chosen,
    policies: &mut Policies,
    registry: &Registry,
    generation: u64,
) -> Result<portcullis_serve::Settings, Failure> {
    let Chosen { config, policy, site, route, failure } = chosen;
    let inspectors: Vec<Arc<Inspector>> = policies.load(config)?;
    let inspector = inspectors.get(*policy).ok_or_else(|| Failure::failed("the policy has no rules"))?;
    let names = PolicyNames { site: site.as_str().into(), route: route.as_str().into(), generation };
    let page = BlockPage::load(config.block_page.as_deref()).map_err(Failure::failed)?;
    let redactor = portcullis_proxy::redactor(config);
    let of_site = config.sites.iter().filter(|known| known.name == *site).flat_map(|site| &site.routes);
    let semantic_of =
        of_site.filter(|known| known.name == *route).find_map(|route| route.semantic_of.as_deref());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let exclusions = Exclusions::new(registry, &config.policies[*policy], (site, semantic_of), now);
    let inspector = Arc::clone(inspector);
    Ok(portcullis_serve::Settings::new(registry, inspector, names, *failure, page, redactor, exclusions))
}

/// A service at work, and what a reload needs.
struct Running<'a> {
    common: &'a Common,
    registry: Arc<Registry>,
    service: Arc<Service>,
    /// None while they are being loaded.
    policies: Option<Policies>,
}

impl Running<'_> {
    /// Serves until a signal ends it. `reopen` opens the log files again.
    async fn run(
        mut self,
        mut signals: Signals,
        admin: Option<std::net::SocketAddr>,
        server: Server,
        reopen: impl Fn(),
    ) -> Result<Policies, Failure> {
        let draining = Arc::new(AtomicBool::new(false));
        let (reloads, mut asked) = mpsc::channel(RELOADS_QUEUED);
        if let Some(address) = admin {
            let explain =
                |error| format!("admin pages: {}", portcullis_proxy::cannot_listen(address, &error));
            let listener = tokio::net::TcpListener::bind(address).await;
            let listener = listener.map_err(|error| Failure::failed(explain(error)))?;
            eprintln!("portcullis: admin listener on {address}");
            let state = Arc::clone(&draining);
            let health = move || match state.load(Ordering::Relaxed) {
                true => Health::NotReady("draining".into()),
                false => Health::Ready,
            };
            let registry = Arc::clone(&self.registry);
            let reloads = Some(reloads.clone());
            let pages = Pages { registry, health: Box::new(health), bans: None, reloads, hosts: Vec::new() };
            tokio::spawn(portcullis_admin::serve(listener, pages, std::future::pending()));
        }
        let mut notify = Notify::new(None);
        notify.ready();
        loop {
            tokio::select! {
                signal = signals.next() => match signal {
                    Signal::Stop => break,
                    Signal::Reopen => reopen(),
                    Signal::Reload => {
                        let _ = self.reload().await?;
                        reopen();
                    }
                    Signal::Upgrade => eprintln!("portcullis: `serve` is not upgraded in place; restart it"),
                },
                Some(reload) = asked.recv() => {
                    let result = self.reload().await?;
                    reload.answer(result);
                    reopen();
                }
            }
        }
        draining.store(true, Ordering::Relaxed);
        notify.stopping();
        eprintln!("portcullis: draining");
        tokio::task::spawn_blocking(move || server.drain()).await.map_err(Failure::failed)?;
        self.policies.ok_or_else(|| Failure::failed("the reload did not finish"))
    }

    /// Reads settings and rules again. If they have any error, the old ones stay in use.
    async fn reload(&mut self) -> Result<Result<String, String>, Failure> {
        let Some(mut policies) = self.policies.take() else {
            return Err(Failure::failed("the reload did not finish"));
        };
        let (common, registry) = (self.common.clone(), Arc::clone(&self.registry));
        let generation = self.service.generation() + 1;
        let work = tokio::task::spawn_blocking(move || {
            let chosen = common.read();
            let loaded = chosen.and_then(|chosen| load(&chosen, &mut policies, &registry, generation));
            (policies, loaded)
        });
        let (policies, loaded) = work.await.map_err(Failure::failed)?;
        self.policies = Some(policies);
        let result = match loaded {
            Ok(settings) => {
                self.service.replace(settings);
                Ok(format!("reloaded, generation {generation}"))
            }
            Err(error) => {
                self.service.count_failed_reload();
                Err(format!("reload failed, keeping the old settings:\n{error}"))
            }
        };
        let (Ok(text) | Err(text)) = &result;
        eprintln!("portcullis: {text}");
        Ok(result)
    }
}
