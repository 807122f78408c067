//! The console listener: the admin API, on a thread with a runtime of its own, so that a flood of requests to
//! it does not hold up signals and reloads.

use std::future::Future;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portcullis_admin::{Candidate, Reloads, ask_to_load, ask_to_reload};
use portcullis_api::interfaces::Interfaces;
use portcullis_api::{
    Api, Banned, Bans, CertificateFiles, Health, Limits, OidcLogin, Reload, ReloadResult, SetupCode, Supplies,
};
use portcullis_config::{EventDatabase, Oidc};
use portcullis_event_store::{EventSource, Store};
use portcullis_identity::Identities;
use portcullis_metrics::Registry;
use portcullis_proxy::{BanList, Status};
use portcullis_revisions::{Document, Live, LiveResult, Revisions, Text};
use tokio::sync::oneshot;

use super::sockets::Inherited;
use super::trials::Bench;
use super::{auto_enforce, fields, live};
use crate::outcome::Failure;
use crate::terminal::{Colour, Paint};
use crate::{data_folder, event_database, identities};

/// Threads for what blocks: queries, passwords, the file of identities.
const BLOCKING_THREADS: usize = 12;

/// Where the console listens, and what it needs.
#[derive(Clone, Debug)]
pub struct ConsoleSettings<'a> {
    pub address: SocketAddr,
    pub data: &'a Path,
    /// The database of events that is read in place of the store in `data`.
    pub database: Option<&'a EventDatabase>,
    pub certificate: Option<CertificateFiles>,
    /// Names under which it may be asked, beside addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Login at a provider, if there is one.
    pub oidc: Option<&'a Oidc>,
    /// The document; none: the settings come from flags.
    pub document: Option<Document>,
    /// Changes of the document are refused.
    pub read_only: bool,
}

/// A console that is ready to start.
pub struct Console {
    pub listener: TcpListener,
    tls: Option<tokio_rustls::TlsAcceptor>,
    identities: Identities,
    setup: Option<SetupCode>,
    events: Store,
    sample: Store,
    database: Option<EventDatabase>,
    hosts: Vec<String>,
    oidc: Option<OidcLogin>,
    data: PathBuf,
    document: Option<Document>,
    read_only: bool,
    /// The text of the document that the program serves by.
    text: Option<String>,
    interfaces: Arc<dyn Interfaces>,
    /// What sites have learned.
    fields: fields::Desk,
    /// Where it is and how to get in, for people.
    where_it_is: String,
}

/// A console that serves.
pub struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
    revisions: Option<Arc<Revisions>>,
}

impl Running {
    /// The revisions of the document, if there is one.
    pub fn revisions(&self) -> Option<Arc<Revisions>> {
        self.revisions.clone()
    }

    /// Closes the listener and waits for the last answers, a second at most.
    pub fn stop(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}

impl Console {
    /// Opens what it needs. The first start has a code to create an administrator with.
    pub fn open(
        settings: ConsoleSettings<'_>,
        interfaces: Arc<dyn Interfaces>,
        fields: fields::Desk,
        inherited: &mut Inherited,
    ) -> Result<Console, Failure> {
        let ConsoleSettings { address, data, database, certificate, hosts, oidc, document, read_only } =
            settings;
        let oidc = oidc.map(super::oidc::login).transpose()?;
        let identities = Identities::open(data).map_err(Failure::failed)?;
        let explain = |error| format!("console: {}", portcullis_proxy::cannot_listen(address, &error));
        let listener = inherited.listen(address).map_err(|error| Failure::failed(explain(error)))?;
        let address = listener.local_addr().map_err(Failure::failed)?;
        let files = match certificate {
            Some(files) => Some(files),
            None if address.ip().is_loopback() => None,
            None => {
                let made = portcullis_api::self_signed(data, address.ip(), now_ms());
                let (files, fingerprint) = made.map_err(Failure::failed)?;
                eprintln!(
                    "portcullis: console: self-signed certificate with the SHA-256 fingerprint {fingerprint}"
                );
                Some(files)
            }
        };
        let tls = files.as_ref().map(portcullis_api::acceptor).transpose().map_err(Failure::failed)?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let mut where_it_is = format!("portcullis: console on {scheme}://{address}/, API on /api/v1");
        let setup = match identities.is_empty().map_err(Failure::failed)? {
            true => {
                let (setup, code) = SetupCode::new(identities::now()).map_err(Failure::failed)?;
                where_it_is.push_str(&first_step(scheme, address, &code));
                Some(setup)
            }
            false => None,
        };
        Ok(Console {
            listener,
            tls,
            identities,
            setup,
            events: Store::new(&data_folder::events(data)),
            sample: Store::new(&data_folder::sample(data)),
            database: database.cloned(),
            hosts,
            oidc,
            data: data.to_owned(),
            document,
            read_only,
            text: None,
            interfaces,
            fields,
            where_it_is,
        })
    }

    /// Where it is and how to get in: a line, or two as long as nobody can log in.
    pub fn where_it_is(&self) -> &str {
        &self.where_it_is
    }

    /// The program serves by this text of the document.
    pub fn serves(self, text: Option<String>) -> Console {
        Console { text, ..self }
    }

    /// Serves on a thread of its own.
    pub fn start(
        self,
        bans: BanList,
        status: Status,
        reloads: Reloads,
        draining: Arc<AtomicBool>,
        registry: Arc<Registry>,
    ) -> Result<Running, Failure> {
        let revisions = self.document.map(|document| {
            let live = Box::new(Loader(reloads.clone()));
            Revisions::open(&self.data, document, live, self.read_only).map_err(Failure::failed)
        });
        let revisions = revisions.transpose()?.map(Arc::new);
        if let Some(revisions) = &revisions {
            note(revisions, self.text);
        }
        let database =
            self.database.map(|settings| event_database::open(&settings, &registry)).transpose()?;
        let supplies = Supplies {
            identities: Arc::new(self.identities),
            events: Some(self.events),
            sample: Some(self.sample),
            database: database.map(|database| Arc::new(database) as Arc<dyn EventSource>),
            bans: Some(Arc::new(Desk(bans))),
            reload: Some(Arc::new(Asker(reloads))),
            interfaces: Some(self.interfaces),
            fields: Arc::new(self.fields),
            trials: Arc::new(Bench(status.clone())),
            live: Arc::new(live::Desk { status, registry: Arc::clone(&registry) }),
            revisions: revisions.clone(),
            health: Arc::new(move || match draining.load(Ordering::Relaxed) {
                true => Health::Draining,
                false => Health::Ready,
            }),
            registry,
            version: env!("CARGO_PKG_VERSION"),
            hosts: self.hosts,
            oidc: self.oidc,
            setup: self.setup,
            say: Arc::new(|line| eprintln!("portcullis: {line}")),
            now: Arc::new(now_ms),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS)
            .build()
            .map_err(Failure::failed)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let (listener, tls) = (self.listener, self.tls);
        let trials = revisions.clone().map(|revisions| {
            let registry = Arc::clone(&supplies.registry);
            move || auto_enforce::watch(revisions, registry, now_ms)
        });
        let serve = move || {
            runtime.block_on(async move {
                let listener = match tokio::net::TcpListener::from_std(listener) {
                    Ok(listener) => listener,
                    Err(error) => return eprintln!("portcullis: console: {error}"),
                };
                let shutdown = async {
                    let _ = stopped.await;
                };
                // Dropped with the runtime.
                trials.map(|watch| tokio::spawn(watch()));
                Api::new(supplies, Limits::default()).serve(listener, tls, shutdown).await;
            });
            // Queries that still look are not waited for.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("console".to_owned()).spawn(serve);
        Ok(Running { stop, thread: thread.map_err(Failure::failed)?, revisions })
    }
}

/// The way in, while there is no user and no token.
fn first_step(scheme: &str, address: SocketAddr, code: &str) -> String {
    let host = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => "localhost".to_owned(),
        IpAddr::V6(ip) if ip.is_unspecified() => "localhost".to_owned(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    // Behind the `#`: no server and no log sees the code.
    let page = format!("{scheme}://{host}:{}/#/?setup={code}", address.port());
    let page = Paint::of_stderr().text(Colour::Strong, &page);
    format!(
        "\nportcullis: nobody can log in yet; within an hour this link creates the administrator, once: {page}\n\
         portcullis: without a browser: `portcullis user add NAME --role admin --data DIR`"
    )
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Bans of the proxy, as the API shows them.
struct Desk(BanList);

impl Bans for Desk {
    fn list(&self) -> Vec<Banned> {
        shown(self.0.list())
    }

    fn impose(&self, ban: Option<&str>, client: IpAddr, length: Duration) -> Vec<Banned> {
        shown(self.0.impose(ban, client, length))
    }

    fn lift(&self, ban: Option<&str>, client: IpAddr) -> usize {
        self.0.lift(ban, client)
    }
}

fn shown(bans: Vec<portcullis_proxy::Banned>) -> Vec<Banned> {
    let now = now_ms();
    let until = |left: Duration| now.saturating_add(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
    let shown = bans.into_iter().map(|banned| Banned {
        ban: banned.ban.to_string(),
        until: until(banned.left),
        client: banned.client,
        count: banned.count,
    });
    shown.collect()
}

/// Tells the revisions that the program serves by this text of the document.
pub fn note(revisions: &Revisions, text: Option<String>) {
    let Some(text) = text else { return };
    if let Err(error) = revisions.serves(&Text::new(text), now_ms()) {
        eprintln!("portcullis: {error}");
    }
}

/// Has the main thread load a text.
struct Loader(Reloads);

impl Live for Loader {
    fn load(&self, text: &str, write: Box<dyn FnOnce() -> Result<(), String> + Send>) -> LiveResult {
        ask_to_load(&self.0, Candidate { text: text.to_owned(), write })
    }
}

/// Has the main thread reload.
struct Asker(Reloads);

impl Reload for Asker {
    fn reload(&self) -> Pin<Box<dyn Future<Output = ReloadResult> + Send + '_>> {
        Box::pin(ask_to_reload(&self.0))
    }
}
