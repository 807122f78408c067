//! The loop of the main thread while the workers serve: signals, reloads, upgrades, the service manager.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use portcullis_admin::{Candidate, Health, Pages, Reloads};
use portcullis_config::Config;
use portcullis_metrics::{EnumCounters, Registry};
use portcullis_proxy::Proxy;
use portcullis_revisions::Revisions;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::console::{self, Console, Running};
use super::documents;
use super::notify::Notify;
use super::settings::{Args, Policies, Settings};
use super::signals::{Signal, Signals};
use super::traces;
use super::upgrade::Program;
use crate::cli::Failure;

/// Reloads that wait while one is done.
const RELOADS_QUEUED: usize = 16;
/// Between two looks at the files, where they are watched.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A running proxy and what belongs to it.
pub struct Service<'a> {
    pub program: Program,
    pub args: &'a Args,
    /// The settings of the start.
    pub started: &'a Config,
    pub registry: Arc<Registry>,
    pub proxy: Arc<Proxy>,
    /// None while they are being loaded.
    pub policies: Option<Policies>,
    pub notify: Notify,
    /// Upgrades by result.
    pub upgrades: EnumCounters,
}

/// Label values of `portcullis_upgrades_total`.
pub const UPGRADE_RESULTS: [&str; 2] = ["ok", "failed"];

/// The reason why it ends.
enum End {
    Stopped,
    /// This process serves from now on.
    HandedOver(u32),
}

impl Service<'_> {
    /// Serves until a signal ends it or another process has taken over. `reopen` opens the log files again.
    pub async fn run(
        mut self,
        mut signals: Signals,
        admin: Option<TcpListener>,
        console: Option<Console>,
        reopen: impl Fn(),
    ) -> Result<Policies, Failure> {
        let draining = Arc::new(AtomicBool::new(false));
        let (reloads, mut asked) = mpsc::channel(RELOADS_QUEUED);
        let pages = admin.as_ref().map(|listener| self.serve_admin(listener, reloads.clone(), &draining));
        let pages = pages.transpose().map_err(Failure::failed)?;
        let console_socket = console.as_ref().map(|console| console.listener.try_clone()).transpose();
        let console_socket = console_socket.map_err(Failure::failed)?;
        let console = console.map(|console| {
            let draining = Arc::clone(&draining);
            let (bans, status) = (self.proxy.bans(), self.proxy.status());
            console.start(bans, status, reloads.clone(), draining, Arc::clone(&self.registry))
        });
        let mut console = console.transpose()?;
        let revisions = console.as_ref().and_then(Running::revisions);
        let watch = self.started.reload_on_change.then(|| documents::watch(self.args, self.started));
        let mut looks = every(LOOK_EVERY);
        let watchdog = self.notify.keep_watch(self.proxy.beats()).map(tokio::spawn);
        self.notify.ready();
        let end = loop {
            tokio::select! {
                signal = signals.next() => match signal {
                    Signal::Stop => break End::Stopped,
                    Signal::Reopen => reopen(),
                    Signal::Reload => {
                        let _ = self.reload(None, &revisions).await?;
                        reopen();
                    }
                    Signal::Upgrade => {
                        if let Some(end) = self.upgrade(&mut signals, [admin.as_ref(), console_socket.as_ref()]).await {
                            break end;
                        }
                    }
                },
                Some(mut reload) = asked.recv() => {
                    let result = self.reload(reload.take_candidate(), &revisions).await?;
                    reload.answer(result);
                    reopen();
                }
                _ = looks.tick(), if watch.is_some() => {
                    if watch.as_ref().and_then(|watch| watch.refresh(|| Ok::<_, ()>(()))).is_some() {
                        let _ = self.reload(None, &revisions).await?;
                    }
                }
            }
        };
        drop(asked);
        draining.store(true, Ordering::Relaxed);
        let handed_over = match end {
            End::Stopped => {
                self.notify.stopping();
                false
            }
            End::HandedOver(id) => {
                eprintln!("portcullis: process {id} has taken over");
                self.notify.main_process(id);
                if let Some(pages) = &pages {
                    pages.abort();
                }
                console.take().into_iter().for_each(Running::stop);
                true
            }
        };
        drop((admin, console_socket));
        if let Some(watchdog) = watchdog {
            watchdog.abort();
        }
        eprintln!("portcullis: draining");
        let proxy = self.proxy;
        let drained = tokio::task::spawn_blocking(move || match (Arc::into_inner(proxy), handed_over) {
            (Some(proxy), true) => proxy.hand_over(),
            (Some(proxy), false) => proxy.drain(),
            (None, _) => {}
        });
        drained.await.map_err(Failure::failed)?;
        console.into_iter().for_each(Running::stop);
        self.policies.ok_or_else(|| Failure::failed("the reload did not finish"))
    }

    fn serve_admin(
        &self,
        listener: &TcpListener,
        reloads: Reloads,
        draining: &Arc<AtomicBool>,
    ) -> std::io::Result<JoinHandle<()>> {
        let listener = tokio::net::TcpListener::from_std(listener.try_clone()?)?;
        eprintln!("portcullis: admin listener on {}", listener.local_addr()?);
        let draining = Arc::clone(draining);
        let health = move || match draining.load(Ordering::Relaxed) {
            true => Health::NotReady("draining".into()),
            false => Health::Ready,
        };
        let registry = Arc::clone(&self.registry);
        let bans = Some(Arc::new(super::bans::Desk(self.proxy.bans())) as _);
        let hosts = self.started.admin_hosts.clone();
        let pages = Pages { registry, health: Box::new(health), bans, reloads: Some(reloads), hosts };
        Ok(tokio::spawn(portcullis_admin::serve(listener, pages, std::future::pending())))
    }

    /// Loads settings and rules again, of the document or of a text in its place. If they have any error, the
    /// old ones stay in use. Returns the result.
    async fn reload(
        &mut self,
        candidate: Option<Candidate>,
        revisions: &Option<Arc<Revisions>>,
    ) -> Result<Result<String, String>, Failure> {
        self.notify.reloading();
        let loader = Loader {
            proxy: Arc::clone(&self.proxy),
            args: self.args.clone(),
            started: self.started.clone(),
            revisions: revisions.clone(),
        };
        let Some(mut policies) = self.policies.take() else {
            return Err(Failure::failed("the reload did not finish"));
        };
        // Compiling rules takes long; the admin listener answers meanwhile.
        let work = tokio::task::spawn_blocking(move || {
            let result = loader.reload(candidate, &mut policies);
            (policies, result)
        });
        let (policies, result) = work.await.map_err(Failure::failed)?;
        self.policies = Some(policies);
        self.notify.ready();
        match &result {
            Ok(text) => eprintln!("portcullis: {text}"),
            Err(text) => eprintln!("portcullis: {text}"),
        }
        Ok(result)
    }

    /// Has a new process take over; none if it did not.
    async fn upgrade(&mut self, signals: &mut Signals, others: [Option<&TcpListener>; 2]) -> Option<End> {
        eprintln!("portcullis: starting the new process");
        let started = async {
            let mut sockets = self.proxy.sockets().map_err(|error| error.to_string())?;
            for socket in others.into_iter().flatten() {
                sockets.push(socket.try_clone().map_err(|error| error.to_string())?);
            }
            self.program.start(sockets).await
        };
        let result = tokio::select! {
            result = started => result,
            () = stop(signals) => return Some(End::Stopped),
        };
        self.upgrades.inc(usize::from(result.is_err()));
        match result {
            Ok(id) => Some(End::HandedOver(id)),
            Err(error) => {
                eprintln!("portcullis: the upgrade failed, this process keeps serving: {error}");
                None
            }
        }
    }
}

/// Waits for a signal to stop. Others count again when the new process serves, or not.
async fn stop(signals: &mut Signals) {
    while !matches!(signals.next().await, Signal::Stop) {}
}

fn every(time: Duration) -> Interval {
    let mut interval = interval(time);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// What a reload works with.
struct Loader {
    proxy: Arc<Proxy>,
    args: Args,
    started: Config,
    revisions: Option<Arc<Revisions>>,
}

impl Loader {
    fn reload(&self, candidate: Option<Candidate>, policies: &mut Policies) -> Result<String, String> {
        let Some(Candidate { text, write }) = candidate else { return self.load(None, policies) };
        let loaded = self.load(Some(&text), policies)?;
        let Err(error) = write() else { return Ok(loaded) };
        // What is not in the file must not serve either: the next start would bring the old settings back.
        match self.load(None, policies) {
            Ok(_) => Err(format!("{error}; the old settings serve")),
            Err(text) => {
                Err(format!("{error}; the new settings serve, for the old ones do not load: {text}"))
            }
        }
    }

    fn load(&self, candidate: Option<&str>, policies: &mut Policies) -> Result<String, String> {
        let result = self.args.read(candidate).map_err(|failure| failure.to_string()).and_then(|settings| {
            let inspectors = policies.load(&settings.config).map_err(|error| error.to_string())?;
            Ok((settings, inspectors))
        });
        let (Settings { config, text }, inspectors) = result.map_err(|error| {
            self.proxy.count_failed_reload();
            format!("reload failed, keeping the old settings:\n{error}")
        })?;
        let reloaded = self.proxy.reload(&config, &inspectors);
        reloaded.map_err(|error| format!("reload failed, keeping the old settings: {error}"))?;
        if let (None, Some(revisions)) = (candidate, &self.revisions) {
            console::note(revisions, text);
        }
        let mut text = format!("reloaded, generation {}", self.proxy.generation());
        for key in unchanged_until_restart(&self.started, &config) {
            text.push_str(&format!("; `{key}` needs a restart to take effect"));
        }
        Ok(text)
    }
}

/// Keys that differ and that only a start reads.
fn unchanged_until_restart(started: &Config, now: &Config) -> Vec<&'static str> {
    let changed = [
        ("workers", started.workers != now.workers),
        ("worker_affinity", started.worker_affinity != now.worker_affinity),
        ("store", started.store != now.store),
        (
            "admin",
            (started.admin, started.console, &started.admin_hosts, started.read_only, &started.oidc)
                != (now.admin, now.console, &now.admin_hosts, now.read_only, &now.oidc),
        ),
        ("recent_events", started.recent_events_bytes != now.recent_events_bytes),
        ("data", started.data != now.data),
        ("events", (&started.events, &started.event_store) != (&now.events, &now.event_store)),
        ("events.sinks", started.event_sinks != now.event_sinks),
        ("events.listen", started.event_socket != now.event_socket),
        ("events.read_from", started.event_database != now.event_database),
        ("error_log", started.error_log != now.error_log),
        ("tracing", traces::needs_restart(started, now)),
        ("audit_log", started.audit_log != now.audit_log),
        ("ban_file", started.ban_file != now.ban_file),
        ("uploads", started.upload_folder_bytes_max != now.upload_folder_bytes_max),
        ("reload_on_change", started.reload_on_change != now.reload_on_change),
    ];
    changed.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}
