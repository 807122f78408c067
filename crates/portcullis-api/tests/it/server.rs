//! A server with identities and events in a folder of its own.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use portcullis_api::{
    Api, Banned, Bans, CertificateFiles, Health, Limits, Reload, ReloadResult, SetupCode, Supplies,
};
use portcullis_event_store::{EventSource, Store};
use portcullis_identity::{Actor, Identities, NewToken, NewUser, Role, Sites};
use portcullis_metrics::Registry;
use portcullis_revisions::{Document, Live, LiveResult, Revisions, Text};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::client::{Answer, Ask};

/// The time at which a server starts, in milliseconds.
pub const NOW_MS: u64 = 1_790_000_000_000;
pub const PASSWORD: &str = "correct horse battery";

pub struct Server {
    pub address: SocketAddr,
    pub folder: TempDir,
    pub identities: Identities,
    pub registry: Arc<Registry>,
    pub document: serde_json::Value,
    pub setup_code: String,
    clock: Arc<AtomicU64>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Three clients are banned until they are lifted.
#[derive(Default)]
struct ThreeBans(AtomicUsize);

impl Bans for ThreeBans {
    fn list(&self) -> Vec<Banned> {
        let clients = ["192.0.2.1", "192.0.2.2", "2001:db8::/64"];
        let banned = |client: &str| Banned {
            ban: "shop".to_owned(),
            client: client.to_owned(),
            until: NOW_MS,
            count: 1,
        };
        clients.into_iter().skip(self.0.load(Ordering::Relaxed)).map(banned).collect()
    }

    fn impose(&self, ban: Option<&str>, client: IpAddr, length: std::time::Duration) -> Vec<Banned> {
        // 192.0.2.9 is never refused.
        let refused = ban.is_none_or(|ban| ban == "shop") && client.to_string() != "192.0.2.9";
        let until = NOW_MS + length.as_millis() as u64;
        let banned = Banned { ban: "shop".to_owned(), client: client.to_string(), until, count: 1 };
        refused.then_some(banned).into_iter().collect()
    }

    fn lift(&self, ban: Option<&str>, client: IpAddr) -> usize {
        let fits = ban.is_none_or(|ban| ban == "shop")
            && ["192.0.2.1", "2001:db8::"].contains(&&*client.to_string());
        if fits {
            self.0.store(1, Ordering::Relaxed);
        }
        usize::from(fits)
    }
}

/// The first reload works, others do not.
#[derive(Default)]
struct OneReload(AtomicUsize);

impl Reload for OneReload {
    fn reload(&self) -> Pin<Box<dyn Future<Output = ReloadResult> + Send + '_>> {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            Some(if count == 0 { Ok("generation 2".to_owned()) } else { Err("line 3".to_owned()) })
        })
    }
}

/// A document with one site.
pub const DOCUMENT: &str = r#"# Ours.
listeners = [{ address = "127.0.0.1:8080" }]
access = { deny = { networks = ["198.51.100.0/24"] } }
[[sites]]
name = "shop"
hosts = ["*"]
upstream = "app"   # one of two
[upstreams.app]
endpoints = ["http://127.0.0.1:9000"]   # password: hunter2
"#;

/// Loads every text, but those that ask to be refused; while there is a file of this name, it waits.
struct Program(std::path::PathBuf);

impl Live for Program {
    fn load(&self, text: &str, write: Box<dyn FnOnce() -> Result<(), String> + Send>) -> LiveResult {
        while self.0.exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        if text.contains("# refuse") {
            return Some(Err("rules.conf:3: unknown directive".to_owned()));
        }
        Some(write().map(|()| "reloaded, generation 2".to_owned()))
    }
}

fn revisions(folder: &std::path::Path, read_only: bool, text: &str) -> Revisions {
    let path = folder.join("portcullis.toml");
    std::fs::write(&path, text).unwrap();
    let document = Document::new(&path).unwrap();
    let revisions =
        Revisions::open(folder, document, Box::new(Program(folder.join("hold"))), read_only).unwrap();
    revisions.serves(&Text::new(text), NOW_MS).unwrap();
    revisions
}

/// A database of events, and where lines for the operator go.
type Database = (Arc<dyn EventSource>, Arc<Mutex<Vec<String>>>);

/// What only some tests have.
#[derive(Default)]
struct More {
    database: Option<Database>,
    oidc: Option<portcullis_api::OidcLogin>,
    /// The document; none: [`DOCUMENT`].
    document: Option<String>,
}

impl Server {
    pub fn start() -> Server {
        // Guesses of strangers are slow in production; tests of that say so.
        let stranger_login_time = std::time::Duration::ZERO;
        Server::with(Limits { stranger_login_time, ..Limits::default() })
    }

    pub fn with(limits: Limits) -> Server {
        Server::with_tls(limits, None)
    }

    /// Nobody changes the document.
    pub fn read_only() -> Server {
        Server::build(Limits::default(), None, true, More::default())
    }

    /// The site has rules.
    pub fn with_rules() -> Server {
        let document = DOCUMENT
            .replace("upstream = \"app\"", "mode = \"both\"\nrules = { crs = \"/crs\" }\nupstream = \"app\"");
        let more = More { document: Some(document), ..More::default() };
        Server::build(Limits::default(), None, false, more)
    }

    /// The document has these lines, too.
    pub fn with_more(lines: &str) -> Server {
        let more = More { document: Some(format!("{DOCUMENT}\n{lines}")), ..More::default() };
        Server::build(Limits::default(), None, false, more)
    }

    /// Events are asked of this, and lines for the operator go there.
    pub fn with_database(database: Arc<dyn EventSource>, said: Arc<Mutex<Vec<String>>>) -> Server {
        let more = More { database: Some((database, said)), ..More::default() };
        Server::build(Limits::default(), None, false, more)
    }

    pub fn with_tls(limits: Limits, tls: Option<CertificateFiles>) -> Server {
        Server::build(limits, tls, false, More::default())
    }

    /// With logins at a provider.
    pub fn with_oidc(limits: Limits, oidc: portcullis_api::OidcLogin) -> Server {
        Server::build(limits, None, false, More { oidc: Some(oidc), ..More::default() })
    }

    fn build(
        limits: Limits,
        tls: Option<CertificateFiles>,
        read_only: bool,
        More { database, oidc, document }: More,
    ) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let identities = Arc::new(Identities::open(folder.path()).unwrap());
        let registry = Registry::new();
        let clock = Arc::new(AtomicU64::new(NOW_MS));
        let (setup, setup_code) = SetupCode::new(NOW_MS / 1000).unwrap();
        let time = Arc::clone(&clock);
        let (database, said) = database.unzip();
        let supplies = Supplies {
            identities,
            events: Some(Store::new(&folder.path().join("events"))),
            sample: Some(Store::new(&folder.path().join("sample"))),
            database,
            bans: Some(Arc::new(ThreeBans::default())),
            reload: Some(Arc::new(OneReload::default())),
            live: Arc::new(crate::live::Three),
            interfaces: Some(Arc::new(crate::interfaces::Shop)),
            fields: Arc::new(crate::fields::Known::default()),
            trials: Arc::new(crate::explain::Echo),
            revisions: Some(Arc::new(revisions(
                folder.path(),
                read_only,
                document.as_deref().unwrap_or(DOCUMENT),
            ))),
            health: Arc::new(|| Health::Ready),
            registry: Arc::clone(&registry),
            version: "1.2.3",
            hosts: vec!["waf.internal".to_owned()],
            oidc,
            setup: Some(setup),
            say: Arc::new(move |line| match &said {
                Some(said) => said.lock().unwrap().push(line.to_owned()),
                None => panic!("{line}"),
            }),
            now: Arc::new(move || time.load(Ordering::Relaxed)),
        };
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let api = Api::new(supplies, limits);
        let document = serde_json::from_str(api.document()).unwrap();
        let address = socket.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            // As few threads that may block as the console has.
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().max_blocking_threads(12).build().unwrap();
            runtime.block_on(async move {
                let (listener, _) = portcullis_api::listener(socket).unwrap();
                let tls = tls.map(|files| portcullis_api::acceptor(&files).unwrap());
                api.serve(listener, tls, async {
                    let _ = stopped.await;
                })
                .await;
            });
            runtime.shutdown_background();
        });
        let identities = Identities::open(folder.path()).unwrap();
        let (stop, thread) = (Some(stop), Some(thread));
        Server { address, folder, identities, registry, document, setup_code, clock, stop, thread }
    }

    /// The document in its file.
    pub fn text(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("portcullis.toml")).unwrap()
    }

    /// Lets time pass.
    pub fn pass(&self, seconds: u64) {
        self.clock.fetch_add(seconds * 1000, Ordering::Relaxed);
    }

    pub fn now(&self) -> u64 {
        self.clock.load(Ordering::Relaxed) / 1000
    }

    pub fn token(&self, role: Role) -> String {
        let new = NewToken { name: format!("test {role}"), role, sites: Sites::All, expires: None };
        self.identities.create_token(&new, &Actor::new("test"), self.now()).unwrap().1
    }

    pub fn user(&self, name: &str, role: Role) -> portcullis_identity::User {
        let new = NewUser { name: name.to_owned(), role, sites: Sites::All, password: PASSWORD.to_owned() };
        self.identities.create_user(&new, &Actor::new("test"), self.now()).unwrap()
    }

    /// A request to a path below the prefix, or to a whole target.
    pub fn ask<'a>(&self, method: &'a str, target: &str) -> Ask<'a> {
        let target = if target.starts_with("/api") { target.to_owned() } else { format!("/api/v1{target}") };
        Ask { address: self.address, method, target, headers: Vec::new(), body: None }
    }

    /// A request to a path that is not below the prefix.
    pub fn page<'a>(&self, method: &'a str, target: &str) -> Ask<'a> {
        Ask { address: self.address, method, target: target.to_owned(), headers: Vec::new(), body: None }
    }

    pub fn get(&self, target: &str, token: &str) -> Answer {
        self.ask("GET", target).bearer(token).send()
    }

    pub fn log_in(&self, name: &str, password: &str) -> Answer {
        self.ask("POST", "/login").json(json!({"name": name, "password": password})).send()
    }

    /// The cookie and the token of a new session.
    pub fn session(&self, name: &str) -> (String, String) {
        let answer = self.log_in(name, PASSWORD);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        (cookie, answer.json()["csrf_token"].as_str().unwrap().to_owned())
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Actions of the audit trail, oldest first.
    pub fn actions(&self) -> Vec<String> {
        let mut entries = self.identities.audit(None, 1000).unwrap();
        entries.reverse();
        entries.into_iter().map(|entry| entry.action).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server does not panic");
        }
    }
}
