//! The loop of the main thread while the workers serve: signals, reloads, upgrades, the service manager.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use portcullis_admin::{Candidate, Health, Pages, Reload, Reloads};
use portcullis_config::Config;
use portcullis_metrics::{EnumCounters, Registry};
use portcullis_proxy::Proxy;
use portcullis_revisions::Revisions;
use portcullis_store::Store;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use super::console::{self, Console, Running};
use super::cookies::Keeper;
use super::documents;
use super::lists::Lists;
use super::notify::Notify;
use super::reloading::{RELOAD_TIME_MAX, Reloading, Stage, Step, beside};
use super::settings::{Args, Policies, Settings};
use super::signals::{Signal, Signals};
use super::traces;
use super::upgrade::Program;
use crate::outcome::Failure;

/// Reloads that wait while one is done.
const RELOADS_QUEUED: usize = 16;
/// For a reload that is being taken into use when the program is to end.
const COMMIT_TIME_MAX: Duration = Duration::from_secs(5);
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
    /// The collections of their rules.
    pub collections: Option<Arc<Store>>,
    pub notify: Notify,
    /// The cookies of all sites.
    pub cookies: &'a Keeper,
    /// Lists of addresses that are kept up to date.
    pub lists: Arc<Lists>,
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
    /// Serves until a signal ends it or another process has taken over, and returns the collections of rules,
    /// which are to be closed. `reopen` opens the log files again.
    pub async fn run(
        mut self,
        mut signals: Signals,
        admin: Option<TcpListener>,
        console: Option<Console>,
        reopen: impl Fn(),
    ) -> Result<Option<Arc<Store>>, Failure> {
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
        let watch =
            self.started.reload_on_change.then(|| Arc::new(documents::watch(self.args, self.started)));
        let mut looks = every(LOOK_EVERY);
        // A look at the files that has not ended: they may not answer.
        let mut look: Option<oneshot::Receiver<bool>> = None;
        let mut reloading: Option<Reloading<Loaded>> = None;
        // A reload was asked for while one was in progress.
        let mut again = false;
        let watchdog = self.notify.keep_watch(self.proxy.beats()).map(tokio::spawn);
        self.notify.ready();
        let end = loop {
            tokio::select! {
                signal = signals.next() => match signal {
                    Signal::Stop => break End::Stopped,
                    Signal::Reopen => reopen(),
                    Signal::Reload => match &reloading {
                        None => reloading = Some(self.begin_reload(None, &revisions)?),
                        Some(reload) => {
                            eprintln!("portcullis: the next reload waits: {}", reload.why_not());
                            again = true;
                        }
                    },
                    Signal::Upgrade => {
                        if let Some(end) = self.upgrade(&mut signals, [admin.as_ref(), console_socket.as_ref()]).await {
                            break end;
                        }
                    }
                },
                Some(asked) = asked.recv(), if reloading.as_ref().is_none_or(Reloading::is_late) => {
                    match &reloading {
                        None => reloading = Some(self.begin_reload(Some(asked), &revisions)?),
                        Some(reload) => asked.answer(Err(reload.why_not())),
                    }
                }
                step = Reloading::next(&mut reloading) => match step {
                    Step::Late => self.late(reloading.as_mut()),
                    Step::Ended(None, _) => return Err(Failure::failed("a reload has failed")),
                    Step::Ended(Some(loaded), asked) => {
                        self.end_reload(loaded, asked);
                        reopen();
                        if std::mem::take(&mut again) {
                            reloading = Some(self.begin_reload(None, &revisions)?);
                        }
                    }
                },
                _ = looks.tick(), if look.is_none() && reloading.is_none() => {
                    let work = watch.clone().map(|watch| move || watch.refresh(|| Ok::<_, ()>(())).is_some());
                    look = work.map(|work| beside("look", work)).transpose().map_err(Failure::failed)?;
                }
                changed = result_of(&mut look) => if changed && reloading.is_none() {
                    reloading = Some(self.begin_reload(None, &revisions)?);
                },
            }
        };
        // Callers that wait for a reload get the answer that there will be none; what is being taken into use
        // is let end, for the proxy drains when nobody else has it.
        if let Some(reload) = &mut reloading
            && !reload.abandon()
        {
            let _ = timeout(COMMIT_TIME_MAX, Reloading::next(&mut reloading)).await;
        }
        drop((asked, reloading));
        draining.store(true, Ordering::Relaxed);
        let handed_over = match end {
            End::Stopped => {
                self.notify.stopping();
                false
            }
            End::HandedOver(id) => {
                eprintln!("portcullis: process {id} has taken over");
                self.lists.stop();
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
        Ok(self.collections)
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

    /// Begins to load settings and rules again, of the document or of the text that is asked for. If they
    /// have any error, the old ones stay in use.
    fn begin_reload(
        &mut self,
        mut asked: Option<Reload>,
        revisions: &Option<Arc<Revisions>>,
    ) -> Result<Reloading<Loaded>, Failure> {
        self.notify.reloading();
        let loader = Loader {
            proxy: Arc::downgrade(&self.proxy),
            args: self.args.clone(),
            started: self.started.clone(),
            revisions: revisions.clone(),
            lists: Arc::clone(&self.lists),
        };
        let candidate = asked.as_mut().and_then(Reload::take_candidate);
        let policies = self.policies.take();
        let mut policies = policies.ok_or_else(|| Failure::failed("a reload is in progress already"))?;
        // Compiling rules takes long, and a file may not answer.
        let work = move |stage: &Stage| {
            let result = loader.reload(candidate, &mut policies, stage);
            Loaded { policies, result }
        };
        Reloading::begin(asked, RELOAD_TIME_MAX, work).map_err(Failure::failed)
    }

    /// Reports a reload that has not ended in time.
    fn late(&mut self, reloading: Option<&mut Reloading<Loaded>>) {
        let Some(reload) = reloading else { return };
        if reload.abandon() {
            self.proxy.count_failed_reload();
            self.notify.ready();
        }
        eprintln!("portcullis: {}", reload.why_not());
    }

    /// Reports the result of a reload.
    fn end_reload(&mut self, Loaded { policies, result }: Loaded, asked: Option<Reload>) {
        self.policies = Some(policies);
        self.notify.ready();
        match &result {
            Ok(text) => eprintln!("portcullis: {text}"),
            Err(text) => eprintln!("portcullis: {text}"),
        }
        if let Some(asked) = asked {
            asked.answer(result);
        }
    }

    /// Has a new process take over; none if it did not.
    async fn upgrade(&mut self, signals: &mut Signals, others: [Option<&TcpListener>; 2]) -> Option<End> {
        eprintln!("portcullis: starting the new process");
        let write = self.cookies.writer();
        let started = async {
            // The new process reads them at its start.
            tokio::task::spawn_blocking(write).await.map_err(|error| error.to_string())?;
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

/// The result of a look at the files when it has ended; pending for ever if there is none.
async fn result_of(look: &mut Option<oneshot::Receiver<bool>>) -> bool {
    let Some(receiver) = look else { return std::future::pending().await };
    let changed = receiver.await.unwrap_or(false);
    *look = None;
    changed
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

/// What a reload leaves.
struct Loaded {
    policies: Policies,
    /// What is in use now, or why the old settings stay.
    result: Result<String, String>,
}

/// What a reload works with.
struct Loader {
    /// It drains when nobody else has it, and a reload may not end.
    proxy: Weak<Proxy>,
    args: Args,
    started: Config,
    revisions: Option<Arc<Revisions>>,
    lists: Arc<Lists>,
}

impl Loader {
    fn reload(
        &self,
        candidate: Option<Candidate>,
        policies: &mut Policies,
        stage: &Stage,
    ) -> Result<String, String> {
        let Some(Candidate { text, write }) = candidate else { return self.load(None, policies, stage) };
        let loaded = self.load(Some(&text), policies, stage)?;
        let Err(error) = write() else { return Ok(loaded) };
        // What is not in the file must not serve either: the next start would bring the old settings back.
        match self.load(None, policies, stage) {
            Ok(_) => Err(format!("{error}; the old settings serve")),
            Err(text) => {
                Err(format!("{error}; the new settings serve, for the old ones do not load: {text}"))
            }
        }
    }

    fn load(
        &self,
        candidate: Option<&str>,
        policies: &mut Policies,
        stage: &Stage,
    ) -> Result<String, String> {
        let result = self.args.read(candidate).map_err(|failure| failure.to_string()).and_then(|settings| {
            let inspectors = policies.load(&settings.config).map_err(|error| error.to_string())?;
            Ok((settings, inspectors))
        });
        let proxy = self.proxy.upgrade().ok_or("the program is ending")?;
        let (Settings { config, text }, inspectors) = result.map_err(|error| {
            proxy.count_failed_reload();
            format!("reload failed, keeping the old settings:\n{error}")
        })?;
        if !stage.commit() {
            return Err("the reload that did not end has ended; the old settings stay in use".to_owned());
        }
        let reloaded = proxy.reload(&config, &inspectors);
        reloaded.map_err(|error| format!("reload failed, keeping the old settings: {error}"))?;
        self.lists.keep(&config);
        if let (None, Some(revisions)) = (candidate, &self.revisions) {
            console::note(revisions, text);
        }
        let mut text = format!("reloaded, generation {}", proxy.generation());
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
            "limits.issued_cookies",
            started.limits.issued_cookie_bytes_max != now.limits.issued_cookie_bytes_max,
        ),
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
