//! `portcullis serve`: verdicts for other servers, until a signal ends it.
//!
//! The same policies, events, metrics and signals as `portcullis run`; no upstreams, and no console.

mod settings;

use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use portcullis_admin::{Health, Pages, Reload};
use portcullis_config::{Config, Cookies};
use portcullis_event_socket::Forward;
use portcullis_event_store::Recorder;
use portcullis_exchange::{BlockPage, Exclusions, Outputs, Service as Exchanges, Settings, redactor};
use portcullis_inspect::{Inspector, PolicyNames};
use portcullis_log::{EventLog, QueueLimits, UploadLimits, UploadStore};
use portcullis_metrics::Registry;
use portcullis_serve::{Limits, Server, Service};
use portcullis_store::Store;
use tokio::sync::mpsc;

use crate::outcome::Failure;
use crate::run::audit::Audit;
use crate::run::event_socket::EventSocket;
use crate::run::notify::Notify;
use crate::run::reloading::{RELOAD_TIME_MAX, Reloading, Stage, Step};
use crate::run::settings::Policies;
use crate::run::signals::{Signal, Signals};
use crate::run::{self, EVENTS_DEADLINE, event_inlet, event_store, sinks};
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
    // Without a configuration file events are printed on standard error, unless they go to a file.
    let says = !common.has_document() && config.events.is_none() && common.events_socket.is_none();
    let (recent, files) = run::event_files(config, says);
    let log = EventLog::new(files, QueueLimits::default(), &registry).map_err(Failure::failed)?;
    let recorder = event_store::start(config, false, &registry)?;
    let sample = event_store::start_sample(config, false, &registry)?;
    let uploads =
        UploadLimits { folder_bytes_max: config.upload_folder_bytes_max, ..UploadLimits::default() };
    let uploads = UploadStore::new(uploads, &registry).map_err(Failure::failed)?;
    let sinks = sinks::start(config, &registry)?;
    let forward = common.events_socket.as_deref();
    let forward = forward.map(|path| event_inlet::forward(path, &registry)).transpose()?;
    let other = forward.as_ref().map(Forward::sender);
    let (record, kept_files) = (recorder.as_ref().map(Recorder::handle), uploads.sender());
    let outputs = Outputs {
        capture: event_store::capture(config, sample.as_ref(), record.as_ref()),
        on_request: event_store::on_request(record.as_ref()),
        on_event: sinks::fan_out(log.sender(), sinks.sender(), record, other),
        on_file: Arc::new(move |file| kept_files.submit(run::upload(file))),
        keep_request_bytes: if config.data.is_some() { config.event_store.keep_request_bytes } else { 0 },
    };
    let data_plane = portcullis_exchange::data_plane(&registry);
    let held = held(common, config);
    let service = Exchanges::new(integration.kind(), settings, held, outputs, &registry, data_plane);
    let service = Service::new(service, limits);
    let listener = TcpListener::bind(address)
        .map_err(|error| Failure::failed(portcullis_proxy::cannot_listen(address, &error)))?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    let collections = runtime.block_on(async {
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
        let (registry, collections) = (Arc::clone(&registry), policies.collections());
        let policies = Some(policies);
        let running = Running { common, registry, service, policies, collections };
        running.run(signals, config.admin, server, reopen).await
    })?;
    if let Some(collections) = collections {
        collections.close();
    }
    uploads.shutdown(EVENTS_DEADLINE);
    let lost =
        log.shutdown(EVENTS_DEADLINE) + audit.shutdown(EVENTS_DEADLINE) + sinks.shutdown(EVENTS_DEADLINE);
    let lost = lost + forward.map_or(0, |forward| forward.shutdown(EVENTS_DEADLINE));
    let lost = lost + recorder.map_or(0, |recorder| recorder.shutdown(EVENTS_DEADLINE));
    let _ = sample.map(|sample| sample.shutdown(EVENTS_DEADLINE));
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
        message_timeout: MESSAGE_TIMEOUT,
        idle_timeout: IDLE_TIMEOUT,
        drain_timeout: config.timeouts.drain,
    })
}

fn held(common: &Common, config: &Config) -> portcullis_exchange::Limits {
    portcullis_exchange::Limits {
        held_bytes_max: usize::try_from(config.limits.held_body_bytes_max).unwrap_or(usize::MAX),
        refuses_cut_bodies: common.refuse_cut_bodies,
    }
}

/// The settings of a generation.
fn load(
    chosen: &Chosen,
    policies: &mut Policies,
    registry: &Registry,
    generation: u64,
) -> Result<Settings, Failure> {
    let Chosen { config, policy, site, route, failure } = chosen;
    if config.policies.get(*policy).is_some_and(|policy| policy.fields.is_some()) {
        eprintln!(
            "portcullis: warning: site {site}: `fields` has no effect in `serve`, which does not see how requests are answered"
        );
    }
    let cookies = config.sites.iter().find(|of| of.name == *site).map(|of| &of.cookies);
    if cookies.is_some_and(|cookies| *cookies != Cookies::default()) {
        eprintln!(
            "portcullis: warning: site {site}: `cookies` has no effect in `serve`, which changes no answers of \
             applications"
        );
    }
    let inspectors: Vec<Arc<Inspector>> = policies.load(config)?;
    let inspector = inspectors.get(*policy).ok_or_else(|| Failure::failed("the policy has no rules"))?;
    let names = PolicyNames { site: site.as_str().into(), route: route.as_str().into(), generation };
    let page = BlockPage::load(config.block_page.as_deref()).map_err(Failure::failed)?;
    let redactor = redactor(config);
    let exclusions = Exclusions::of_route(registry, config, *policy, (site, route));
    Ok(Settings::new(registry, Arc::clone(inspector), names, *failure, page, redactor, exclusions))
}

/// A service at work, and what a reload needs.
struct Running<'a> {
    common: &'a Common,
    registry: Arc<Registry>,
    service: Arc<Service>,
    /// None while they are being loaded.
    policies: Option<Policies>,
    /// The collections of their rules.
    collections: Option<Arc<Store>>,
}

impl Running<'_> {
    /// Serves until a signal ends it, and returns the collections of rules, which are to be closed. `reopen`
    /// opens the log files again.
    async fn run(
        mut self,
        mut signals: Signals,
        admin: Option<std::net::SocketAddr>,
        server: Server,
        reopen: impl Fn(),
    ) -> Result<Option<Arc<Store>>, Failure> {
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
        let mut reloading: Option<Reloading<Loaded>> = None;
        // A reload was asked for while one was in progress.
        let mut again = false;
        loop {
            tokio::select! {
                signal = signals.next() => match signal {
                    Signal::Stop => break,
                    Signal::Reopen => reopen(),
                    Signal::Reload => match &reloading {
                        None => reloading = Some(self.begin_reload(None)?),
                        Some(reload) => {
                            eprintln!("portcullis: the next reload waits: {}", reload.why_not());
                            again = true;
                        }
                    },
                    Signal::Upgrade => eprintln!("portcullis: `serve` is not upgraded in place; restart it"),
                },
                Some(asked) = asked.recv(), if reloading.as_ref().is_none_or(Reloading::is_late) => {
                    match &reloading {
                        None => reloading = Some(self.begin_reload(Some(asked))?),
                        Some(reload) => asked.answer(Err(reload.why_not())),
                    }
                }
                step = Reloading::next(&mut reloading) => match step {
                    Step::Late => if let Some(reload) = &mut reloading {
                        if reload.abandon() {
                            self.service.count_failed_reload();
                        }
                        eprintln!("portcullis: {}", reload.why_not());
                    },
                    Step::Ended(None, _) => return Err(Failure::failed("a reload has failed")),
                    Step::Ended(Some(loaded), asked) => {
                        self.end_reload(loaded, asked);
                        reopen();
                        if std::mem::take(&mut again) {
                            reloading = Some(self.begin_reload(None)?);
                        }
                    }
                },
            }
        }
        drop((asked, reloading));
        draining.store(true, Ordering::Relaxed);
        notify.stopping();
        eprintln!("portcullis: draining");
        tokio::task::spawn_blocking(move || server.drain()).await.map_err(Failure::failed)?;
        Ok(self.collections)
    }

    /// Begins to read settings and rules again. If they have any error, the old ones stay in use.
    fn begin_reload(&mut self, asked: Option<Reload>) -> Result<Reloading<Loaded>, Failure> {
        let policies = self.policies.take();
        let mut policies = policies.ok_or_else(|| Failure::failed("a reload is in progress already"))?;
        let (common, registry) = (self.common.clone(), Arc::clone(&self.registry));
        let generation = self.service.generation() + 1;
        let work = move |stage: &Stage| {
            let chosen = common.read();
            let settings = chosen.and_then(|chosen| load(&chosen, &mut policies, &registry, generation));
            let settings = settings.and_then(|settings| match stage.commit() {
                true => Ok(settings),
                false => Err(Failure::failed("it has not ended in time")),
            });
            Loaded { policies, settings, generation }
        };
        Reloading::begin(asked, RELOAD_TIME_MAX, work).map_err(Failure::failed)
    }

    /// Takes what a reload has left into use, and reports that.
    fn end_reload(&mut self, loaded: Loaded, asked: Option<Reload>) {
        let Loaded { policies, settings, generation } = loaded;
        self.policies = Some(policies);
        let result = match settings {
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
        if let Some(asked) = asked {
            asked.answer(result);
        }
    }
}

/// What a reload leaves.
struct Loaded {
    policies: Policies,
    settings: Result<Settings, Failure>,
    generation: u64,
}
