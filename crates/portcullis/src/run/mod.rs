//! `portcullis run`: the WAF in front of an application, until a signal ends it.
//!
//! ```text
//!  main thread: signals, admin listener          workers: portcullis-proxy          writer: portcullis-log
//!  console thread: admin API
//!      SIGHUP ──> load aside ──> swap ─────────────────┘        └── events, audit records ┘
//!      SIGUSR1 ──> open log files again
//!      SIGUSR2 ──> start the program anew with our sockets; when it serves, as SIGTERM
//!      SIGTERM ──> drain workers ──> flush events ──> exit 0
//! ```

pub mod audit;
mod auto_enforce;
mod bans;
mod console;
mod cookies;
mod declared_apis;
pub mod discovery;
mod documents;
pub mod event_inlet;
pub mod event_socket;
pub mod event_store;
pub mod fields;
pub mod first_lines;
mod kept;
mod kept_document;
mod learner;
pub mod learning;
mod lists;
mod live;
pub mod notify;
pub mod oidc;
mod plan_cache;
mod recent;
mod redis;
pub mod reloading;
mod service;
pub mod settings;
mod shared_fields;
pub mod signals;
pub mod sinks;
mod sockets;
mod teaching;
pub mod traces;
mod trials;
mod upgrade;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use portcullis_config::Config;
use portcullis_event_store::Recorder;
use portcullis_inspect::KeptFile;
use portcullis_log::{
    AccessLine, AccessLog, EventLog, Format, QueueLimits, Rotation, SinkConfig, Target, Upload, UploadLimits,
    UploadStore,
};
use portcullis_metrics::{Registry, catalogue};
use portcullis_proxy::{Proxy, Services};
use portcullis_trace::Exporter;

use crate::outcome::Failure;
use crate::{data_folder, runtime_folder};
use audit::Audit;
use console::Console;
use discovery::Discovery;
use event_socket::EventSocket;
use learning::Learning;
use lists::Lists;
use notify::Notify;
use recent::{Keeper, Recent};
use service::Service;
pub use settings::Args;
use settings::{Policies, Settings};
use signals::Signals;
use sockets::Inherited;
use upgrade::Program;

/// The longest time that the event writer may take after the last request.
pub const EVENTS_DEADLINE: Duration = Duration::from_secs(5);
/// The longest time that a collector may take for the last traces.
const TRACES_DEADLINE: Duration = Duration::from_secs(2);
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
    let program = Program::of_process();
    let mut inherited = Inherited::take()?;
    let args = &args.begin()?;
    let Settings { config, text } = args.read(None)?;
    let registry = Registry::new();
    let audit = Arc::new(Audit::new(config.audit_log, &registry));
    let learning = Learning::new(config.data.clone(), Arc::clone(&registry));
    let learning = learning.shared(config.store.redis.as_ref());
    let fields = learning.desk();
    let discovery = Discovery::new(config.data.clone(), Arc::clone(&registry));
    let (interfaces, news) = (discovery.shown(), discovery.sinks());
    let policies = Policies::new(Arc::clone(&registry), Arc::clone(&audit));
    let mut policies = policies.with_learning(learning).with_discovery(discovery);
    let inspectors = policies.load(&config)?;
    // Who starts it with flags sees events on standard error, unless they go to a file.
    let says = args.has_flags() && config.events.is_none();
    let (recent, files) = event_files(&config, says);
    let log = EventLog::new(files, QueueLimits::default(), &registry).map_err(Failure::failed)?;
    let recorder = event_store::start(&config, inherited.predecessor.is_some(), &registry)?;
    let sample = event_store::start_sample(&config, inherited.predecessor.is_some(), &registry)?;
    let issued_bytes = usize::try_from(config.limits.issued_cookie_bytes_max).unwrap_or(usize::MAX);
    let cookies =
        cookies::Keeper::open((config.data.clone(), issued_bytes), config.store.redis.as_ref(), &registry)
            .map_err(Failure::failed)?;
    let access_logs = config.access_log_files();
    let access_log = AccessLog::open(&access_logs, ACCESS_LOG_QUEUE, &registry).map_err(Failure::failed)?;
    let limits = UploadLimits { folder_bytes_max: config.upload_folder_bytes_max, ..UploadLimits::default() };
    let uploads = UploadStore::new(limits, &registry).map_err(Failure::failed)?;
    let traces = traces::start(&config, &registry)?;
    let sinks = sinks::start(&config, &registry)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    let collections = runtime.block_on(async {
        // Signals are caught before readiness is reported.
        let signals = Signals::catch()?;
        let admin = config.admin.map(|address| {
            let explain =
                |error| format!("admin pages: {}", portcullis_proxy::cannot_listen(address, &error));
            inherited.listen(address).map_err(|error| Failure::failed(explain(error)))
        });
        let admin = admin.transpose()?;
        // What cannot be kept is no reason not to protect.
        let console = args.console(&config)?.filter(|settings| match data_folder::check_writable(settings.data) {
            Ok(()) => true,
            Err(error) => {
                eprintln!(
                    "portcullis: console: not started: users, sessions and the audit trail are kept in the data folder, \
                     and {} cannot be written: {error}; requests are inspected all the same",
                    settings.data.display()
                );
                false
            }
        });
        if console.is_none() && auto_enforce::is_asked_for(&config) {
            eprintln!(
                "portcullis: warning: `auto_enforce` ends no trial without the console (--console, --data)"
            );
        }
        let console =
            console.map(|settings| Console::open(settings, interfaces, fields, &mut inherited)).transpose()?;
        let (files, lines) = (uploads.sender(), access_log.sender());
        let record = recorder.as_ref().map(Recorder::handle);
        let on_event = sinks::fan_out(log.sender(), sinks.sender(), record.clone(), None);
        if let Some(on_event) = &on_event {
            let _ = news.set(Arc::clone(on_event));
        }
        let has_room = sinks::has_room(log.sender(), record.clone());
        let services = Services {
            registry: Arc::clone(&registry),
            metrics: portcullis_exchange::data_plane(&registry),
            keep_request_bytes: if config.data.is_some() { config.event_store.keep_request_bytes } else { 0 },
            capture: event_store::capture(&config, sample.as_ref(), record.as_ref()),
            on_request: event_store::on_request(record.as_ref()),
            on_event: on_event.clone(),
            // The error log has a line for each match, and no place for a count.
            coalesce_above: match config.error_log {
                Some(_) => 0,
                None => config.event_store.coalesce_above,
            },
            on_file: Arc::new(move |file| files.submit(upload(file))),
            access_logs,
            on_access: Arc::new(move |file, text| lines.submit(AccessLine { file, text })),
            say: Arc::new(|line| eprintln!("portcullis: {line}")),
            issued_cookies: cookies.finder(),
            traces: traces.as_ref().map(Exporter::sender),
        };
        let listeners = portcullis_proxy::Inherited {
            sockets: std::mem::take(&mut inherited.listeners),
            takes_over: inherited.predecessor.is_some(),
        };
        let takes_over = listeners.takes_over;
        // Before the proxy reads them: a damaged one is set aside.
        let lists = Lists::new(Arc::clone(&registry));
        lists.keep(&config);
        let proxy = Proxy::start_on(&config, &inspectors, services, listeners).map_err(Failure::failed)?;
        drop(inspectors);
        let inlet = event_inlet::open(&config, takes_over, &registry, on_event, has_room)?;
        let _socket = recent.and_then(|recent| {
            let folder = args.runtime_folder.clone().unwrap_or_else(runtime_folder::default);
            let socket = EventSocket::open(&folder, recent);
            let complain = |error: &std::io::Error| {
                eprintln!(
                    "portcullis: `portcullis events` cannot ask this process: {}: {error}",
                    folder.display()
                );
            };
            socket.inspect_err(complain).ok()
        });
        first_lines::report(args, &config, proxy.addresses(), console.as_ref().map(Console::where_it_is));
        let reopen = || {
            log.reopen();
            access_log.reopen();
            audit.reopen();
        };
        let notify = Notify::new(inherited.predecessor.take());
        let upgrades = registry.enum_counters(&catalogue::UPGRADES, &[], &service::UPGRADE_RESULTS);
        let (proxy, started) = (Arc::new(proxy), &config);
        let collections = policies.collections();
        let policies = Some(policies);
        let service =
            Service { program, args, started, registry, proxy, policies, collections, notify, upgrades, cookies: &cookies, lists: Arc::new(lists) };
        let ended = service.run(signals, admin, console.map(|console| console.serves(text)), reopen).await;
        drop(inlet);
        ended
    })?;
    if let Some(collections) = collections {
        collections.close();
    }
    let lost = traces.map_or(0, |traces| traces.shutdown(TRACES_DEADLINE));
    if lost > 0 {
        eprintln!("portcullis: {lost} traces could not be sent");
    }
    uploads.shutdown(EVENTS_DEADLINE);
    let lost = log.shutdown(EVENTS_DEADLINE) + audit.shutdown(EVENTS_DEADLINE);
    let lost = lost + access_log.shutdown(EVENTS_DEADLINE) + sinks.shutdown(EVENTS_DEADLINE);
    let lost = lost + recorder.map_or(0, |recorder| recorder.shutdown(EVENTS_DEADLINE));
    // What is lost of a sample is counted, and no more.
    let _ = sample.map(|sample| sample.shutdown(EVENTS_DEADLINE));
    if lost > 0 {
        eprintln!("portcullis: {lost} events, audit records or lines of the access log could not be written");
    }
    Ok(())
}

/// The sinks of events that are files, or keep the last ones; and where those are kept. `says`: they are
/// printed on standard error, too.
pub fn event_files(config: &Config, says: bool) -> (Option<Arc<Recent>>, Vec<SinkConfig>) {
    let (recent, mut files) = (recent(config), files(config));
    files.extend(recent.as_ref().map(|recent| SinkConfig {
        name: "recent".to_string(),
        format: Format::JsonLines,
        target: Target::Writer(Box::new(Keeper::new(Arc::clone(recent), says))),
    }));
    (recent, files)
}

/// Room for the last events, unless none are kept.
fn recent(config: &Config) -> Option<Arc<Recent>> {
    let bytes = usize::try_from(config.recent_events_bytes).unwrap_or(usize::MAX);
    (bytes > 0).then(|| Recent::new(bytes))
}

/// An uploaded file on its way to its folder.
pub fn upload(file: KeptFile) -> Upload {
    Upload { folder: file.folder, name: file.name, mode: file.mode, content: file.content }
}

fn files(config: &Config) -> Vec<SinkConfig> {
    let events = config.events.as_ref().map(|events| SinkConfig {
        name: "json".to_string(),
        format: sinks::format(events.form),
        target: Target::File {
            path: events.file.clone(),
            rotation: Some(Rotation { bytes_max: events.rotate_at_bytes, keep: EVENT_FILES_KEPT }),
        },
    });
    let errors = config.error_log.as_ref();
    let errors = errors.map(|path| SinkConfig::file("modsecurity", Format::ModSecurity, path));
    events.into_iter().chain(errors).collect()
}
