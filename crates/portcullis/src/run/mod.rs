//! `portcullis run`: the WAF in front of an application, until a signal ends it.
//!
//! ```text
//!  main thread: signals, admin listener          workers: portcullis-proxy          writer: portcullis-log
//!      SIGHUP ──> load aside ──> swap ─────────────────┘        └── events, audit records ┘
//!      SIGUSR1 ──> open log files again
//!      SIGTERM ──> drain workers ──> flush events ──> exit 0
//! ```

mod audit;
mod plan_cache;
mod settings;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use portcullis_admin::Health;
use portcullis_config::Config;
use portcullis_event::{Action, FindingOutcome, NotInspected, UpstreamError};
use portcullis_http::body::Ambiguity;
use portcullis_http::message::Refusal;
use portcullis_inspect::KeptFile;
use portcullis_log::{
    AccessLine, AccessLog, EventLog, Format, QueueLimits, Rotation, SinkConfig, Target, Upload, UploadLimits,
    UploadStore,
};
use portcullis_metrics::{DataPlane, DataPlaneNames, Registry};
use portcullis_proxy::{Proxy, Services};
use portcullis_types::Class;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::Failure;
use audit::Audit;
pub use settings::Args;
use settings::Policies;

/// How long the event writer may take after the last request.
const EVENTS_DEADLINE: Duration = Duration::from_secs(5);
/// Lines of the access log that wait for their writer: those of a second or two under full load.
const ACCESS_LOG_QUEUE: QueueLimits = QueueLimits { events_max: 65_536, bytes_max: 64 << 20 };
/// Old event files that are kept.
const EVENT_FILES_KEPT: u32 = 1;

/// Serves until SIGTERM or SIGINT. Exit code 1 if it cannot start.
pub fn run(args: &Args) -> ExitCode {
    match serve(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit(),
    }
}

fn serve(args: &Args) -> Result<(), Failure> {
    let config = args.config()?;
    let registry = Registry::new();
    let audit = Arc::new(Audit::new(config.audit_log, &registry));
    let mut policies = Policies::new(Arc::clone(&registry), Arc::clone(&audit));
    let inspectors = policies.load(&config)?;
    let log = EventLog::new(sinks(&config), QueueLimits::default(), &registry).map_err(Failure::failed)?;
    let access_logs = config.access_log_files();
    let access_log = AccessLog::open(&access_logs, ACCESS_LOG_QUEUE, &registry).map_err(Failure::failed)?;
    let limits = UploadLimits { folder_bytes_max: config.upload_folder_bytes_max, ..UploadLimits::default() };
    let uploads = UploadStore::new(limits, &registry).map_err(Failure::failed)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    let policies = runtime.block_on(async {
        // Signals are caught before anybody is told that we are ready.
        let mut signals = Signals::catch()?;
        let admin = admin(&config).await?;
        let (events, files, lines) = (log.sender(), uploads.sender(), access_log.sender());
        let services = Services {
            registry: Arc::clone(&registry),
            metrics: data_plane(&registry),
            on_event: Arc::new(move |event| events.submit(event)),
            on_file: Arc::new(move |file| files.submit(upload(file))),
            access_logs,
            on_access: Arc::new(move |file, text| lines.submit(AccessLine { file, text })),
            say: Arc::new(|line| eprintln!("portcullis: {line}")),
        };
        let proxy = Proxy::start(&config, &inspectors, services).map_err(Failure::failed)?;
        drop(inspectors);
        let draining = Arc::new(AtomicBool::new(false));
        if let Some(listener) = admin {
            if let Ok(address) = listener.local_addr() {
                eprintln!("portcullis: admin listener on {address}");
            }
            let asked = Arc::clone(&draining);
            let health = move || match asked.load(Ordering::Relaxed) {
                true => Health::NotReady("draining".into()),
                false => Health::Ready,
            };
            tokio::spawn(portcullis_admin::serve(listener, registry, health, std::future::pending()));
        }
        for address in proxy.addresses() {
            eprintln!("portcullis: listening on {address}");
        }
        let proxy = Arc::new(proxy);
        loop {
            match signals.next().await {
                Signal::Stop => break,
                Signal::Reopen => {}
                Signal::Reload => {
                    let (reloaded, args, started) = (Arc::clone(&proxy), args.clone(), config.clone());
                    // Compiling rules takes long; the admin listener answers meanwhile.
                    let work = tokio::task::spawn_blocking(move || {
                        reload(&reloaded, &args, &started, &mut policies);
                        policies
                    });
                    policies = work.await.map_err(Failure::failed)?;
                }
            }
            log.reopen();
            access_log.reopen();
            audit.reopen();
        }
        eprintln!("portcullis: draining");
        draining.store(true, Ordering::Relaxed);
        let drained = tokio::task::spawn_blocking(move || {
            if let Some(proxy) = Arc::into_inner(proxy) {
                proxy.drain();
            }
        });
        drained.await.map_err(Failure::failed)?;
        Ok::<_, Failure>(policies)
    })?;
    policies.close();
    uploads.shutdown(EVENTS_DEADLINE);
    let lost = log.shutdown(EVENTS_DEADLINE) + audit.shutdown(EVENTS_DEADLINE);
    let lost = lost + access_log.shutdown(EVENTS_DEADLINE);
    if lost > 0 {
        eprintln!("portcullis: {lost} events, audit records or lines of the access log could not be written");
    }
    Ok(())
}

/// Loads settings and rules again. Whatever is wrong with them, the old ones go on.
fn reload(proxy: &Proxy, args: &Args, started: &Config, policies: &mut Policies) {
    let result = args.config().map_err(|failure| failure.to_string()).and_then(|config| {
        let inspectors = policies.load(&config).map_err(|error| error.to_string())?;
        Ok((config, inspectors))
    });
    match result {
        Ok((config, inspectors)) => match proxy.reload(&config, &inspectors) {
            Ok(()) => {
                eprintln!("portcullis: reloaded, generation {}", proxy.generation());
                for key in unchanged_until_restart(started, &config) {
                    eprintln!("portcullis: `{key}` was changed, which takes a restart");
                }
            }
            Err(error) => eprintln!("portcullis: reload failed, the old settings go on: {error}"),
        },
        Err(error) => {
            proxy.count_failed_reload();
            eprintln!("portcullis: reload failed, the old settings go on:\n{error}");
        }
    }
}

/// Keys that differ and that only a start reads.
fn unchanged_until_restart(started: &Config, now: &Config) -> Vec<&'static str> {
    let changed = [
        ("workers", started.workers != now.workers),
        ("store", started.store != now.store),
        ("admin", started.admin != now.admin),
        ("events", started.events != now.events),
        ("error_log", started.error_log != now.error_log),
        ("audit_log", started.audit_log != now.audit_log),
        ("uploads", started.upload_folder_bytes_max != now.upload_folder_bytes_max),
    ];
    changed.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

fn upload(file: KeptFile) -> Upload {
    Upload { folder: file.folder, name: file.name, mode: file.mode, content: file.content }
}

fn sinks(config: &Config) -> Vec<SinkConfig> {
    let events = config.events.as_ref().map(|events| SinkConfig {
        name: "json".to_string(),
        format: Format::JsonLines,
        target: Target::File {
            path: events.file.clone(),
            rotation: Some(Rotation { bytes_max: events.rotate_at_bytes, keep: EVENT_FILES_KEPT }),
        },
    });
    let errors = config.error_log.as_ref();
    let errors = errors.map(|path| SinkConfig::file("modsecurity", Format::ModSecurity, path));
    events.into_iter().chain(errors).collect()
}

fn data_plane(registry: &Registry) -> DataPlane {
    let ambiguities = Ambiguity::ALL.map(|ambiguity| ambiguity.name());
    let refusals: Vec<&'static str> = Refusal::ALL.iter().map(|refusal| refusal.name()).collect();
    let names = DataPlaneNames {
        verdicts: Action::NAMES,
        not_inspected: NotInspected::NAMES,
        upstream_errors: UpstreamError::NAMES,
        refusals: &refusals,
        ambiguities: &ambiguities,
        classes: Class::NAMES,
        finding_outcomes: FindingOutcome::NAMES,
    };
    DataPlane::new(registry, env!("CARGO_PKG_VERSION"), names)
}

async fn admin(config: &Config) -> Result<Option<tokio::net::TcpListener>, Failure> {
    let Some(address) = config.admin else { return Ok(None) };
    let bound = tokio::net::TcpListener::bind(address).await;
    let explain =
        |error| Failure::failed(format_args!("cannot listen on {address} for the admin pages: {error}"));
    bound.map(Some).map_err(explain)
}

enum Signal {
    Reload,
    Reopen,
    Stop,
}

/// The signals that mean something here.
struct Signals {
    hangup: tokio::signal::unix::Signal,
    user: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    fn catch() -> Result<Self, Failure> {
        let catch = |kind| signal(kind).map_err(Failure::failed);
        Ok(Signals {
            hangup: catch(SignalKind::hangup())?,
            user: catch(SignalKind::user_defined1())?,
            terminate: catch(SignalKind::terminate())?,
            interrupt: catch(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.hangup.recv() => Signal::Reload,
            _ = self.user.recv() => Signal::Reopen,
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.interrupt.recv() => Signal::Stop,
        }
    }
}
