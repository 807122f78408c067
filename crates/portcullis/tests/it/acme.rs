//! Certificates by ACME in the real program, from pebble, the test authority of Let's Encrypt. Needs Go,
//! which builds it.

#[allow(dead_code)] // has more than is used here
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::authority::{Authority, over_tls};
use portcullis_testkit::answers::{DnsReply, DnsServer};
use portcullis_testkit::client::exchange;
use portcullis_testkit::process::Process;
use portcullis_testkit::proxy::free_address;
use portcullis_testkit::upstream::{Response, Server};
use portcullis_testkit::wait::{PATIENCE, until};
use portcullis_testkit::workspace_root;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, ServerConfig, ServerConnection, StreamOwned};

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// The program, built once.
fn pebble() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let output = Command::new(workspace_root().join("scripts/pebble.sh")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
    })
}

/// The files and servers of a test.
struct Place {
    folder: tempfile::TempDir,
    /// The authority that signed the certificate of the directory.
    authority: Authority,
    directory: SocketAddr,
    management: SocketAddr,
    /// `lost.example` is at a host where no server listens.
    names: DnsServer,
    http: SocketAddr,
    https: SocketAddr,
    admin: SocketAddr,
    upstream: Server,
}

impl Place {
    fn new() -> Place {
        let answer =
            |_: &_| Response { status: 200, body: b"the application".to_vec(), ..Response::default() };
        let place = Place {
            folder: tempfile::tempdir().unwrap(),
            authority: Authority::new(),
            directory: free_address().unwrap(),
            management: free_address().unwrap(),
            names: DnsServer::start_tcp(|name| {
                let last = if name == "lost.example" { 99 } else { 1 };
                DnsReply::Address(Ipv4Addr::new(127, 0, 0, last), 0)
            })
            .unwrap(),
            http: free_address().unwrap(),
            https: free_address().unwrap(),
            admin: free_address().unwrap(),
            upstream: Server::start("127.0.0.1:0", answer).unwrap(),
        };
        std::fs::write(place.path("directory-ca.pem"), place.authority.certificate.pem()).unwrap();
        place.authority.write_as(place.folder.path(), "127.0.0.1", "pebble");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the path of a file in the folder of the authority.
    fn kept(&self, name: &str) -> PathBuf {
        self.path("state").join(format!("127.0.0.1_{}_dir", self.directory.port())).join(name)
    }

    fn account(&self) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.kept("account.json")).unwrap()).unwrap()
    }

    /// An authority whose certificates are valid for so many seconds. It forgets everything when it ends.
    fn start_pebble(&self, valid: u64) -> Process {
        let path = |name: &str| self.path(name).display().to_string();
        let settings = serde_json::json!({ "pebble": {
            "listenAddress": self.directory.to_string(),
            "managementListenAddress": self.management.to_string(),
            "certificate": path("pebble.pem"),
            "privateKey": path("pebble.key"),
            "httpPort": self.http.port(),
            "tlsPort": 1,
            "retryAfter": { "authz": 1, "order": 1 },
            "keyAlgorithm": "ecdsa",
            "profiles": { "default": { "description": "the only one", "validityPeriod": valid } },
        }});
        std::fs::write(self.path("pebble.json"), settings.to_string()).unwrap();
        let arguments: [OsString; 4] = [
            "-config".into(),
            self.path("pebble.json").into(),
            "-dnsserver".into(),
            self.names.address.to_string().into(),
        ];
        // Every order is proved anew; one nonce in twenty is refused, which is its default.
        let environment = [("PEBBLE_VA_NOSLEEP", "1"), ("PEBBLE_AUTHZREUSE", "0")]
            .map(|(name, value)| (name.into(), value.into()));
        let log = self.path("pebble.log");
        let mut process = Process::start_with(pebble(), &arguments, &log, &environment).unwrap();
        process.wait_for(self.directory, PATIENCE).unwrap();
        process.wait_for(self.management, PATIENCE).unwrap();
        process
    }

    /// An authority that has had enough of new accounts, for two hours.
    fn start_weary_authority(&self) {
        let (certificate, key) = self.authority.sign("127.0.0.1");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config =
            config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
        let (config, here) = (Arc::new(config), format!("https://{}", self.directory));
        let listener = TcpListener::bind(self.directory).unwrap();
        let directory = serde_json::json!({
            "newNonce": format!("{here}/nonce"),
            "newAccount": format!("{here}/account"),
            "newOrder": format!("{here}/order"),
        });
        let problem = serde_json::json!({
            "type": "urn:ietf:params:acme:error:rateLimited",
            "detail": "too many\r\nnew accounts",
            "status": 429,
        });
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream =
                    StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap().to_lowercase();
                let length =
                    head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                let mut body = vec![0; length.unwrap_or(0)];
                let _ = stream.read_exact(&mut body);
                let (status, body) = match head.split(' ').nth(1) {
                    Some("/dir") => ("200 OK", directory.to_string()),
                    Some("/nonce") => ("200 OK\r\nReplay-Nonce: n0", String::new()),
                    _ => ("429 Too Many Requests\r\nRetry-After: 7200", problem.to_string()),
                };
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
                let _ = stream.write_all(answer.as_bytes());
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        });
    }

    /// A client that trusts what pebble signs. Its root is another one after each start.
    fn client(&self) -> Arc<ClientConfig> {
        let stream = TcpStream::connect(self.management).unwrap();
        let request = "GET /roots/0 HTTP/1.1\r\nHost: pebble\r\nConnection: close\r\n\r\n";
        let (answer, _) = over_tls(self.authority.client(), stream, "127.0.0.1", request).unwrap();
        let pem = &answer[answer.find("-----BEGIN").unwrap()..];
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        // A session that is resumed shows the certificate that it began with.
        config.resumption = rustls::client::Resumption::disabled();
        Arc::new(config)
    }

    /// Names are those of ACME; each site would keep the authority out in its own way.
    fn write(&self, names: &[&str], contact: &str) {
        let (directory, http, https, admin) = (self.directory, self.http, self.https, self.admin);
        let text = format!(
            "workers = 1\nadmin = {{ listen = \"{admin}\" }}\ntimeouts = {{ drain = \"1s\" }}\n\
             [acme]\ndirectory = \"https://{directory}/dir\"\nca = \"directory-ca.pem\"\nstate = \"state\"\n\
             contact = [\"{contact}\"]\nterms_agreed = true\n\
             [[listeners]]\nname = \"http\"\naddress = \"{http}\"\n\
             [[listeners]]\nname = \"https\"\naddress = \"{https}\"\ntls = {{ acme = {{ domains = {names:?} }} }}\n\
             [[sites]]\nname = \"shop\"\nhosts = [\"shop.example\"]\nupstream = \"app\"\n\
             https = {{ redirect = true }}\n\
             rules = {{ directives = 'SecRule REQUEST_URI \"@contains acme-challenge\" \"id:1,phase:1,deny\"' }}\n\
             [[sites]]\nname = \"blog\"\nhosts = [\"blog.example\"]\nupstream = \"app\"\nmode = \"off\"\n\
             access = {{ deny = {{ networks = [\"127.0.0.0/8\"] }} }}\n\
             [upstreams.app]\nendpoints = [\"http://{}\"]\n",
            self.upstream.address()
        );
        std::fs::write(self.path("portcullis.toml"), text).unwrap();
    }

    fn start(&self) -> Process {
        let arguments: [OsString; 3] = ["run".into(), "--config".into(), self.path("portcullis.toml").into()];
        let program = Path::new(env!("CARGO_BIN_EXE_portcullis"));
        let mut process = Process::start(program, &arguments, &self.path("output")).unwrap();
        for address in [self.http, self.https, self.admin] {
            process.wait_for(address, PATIENCE).unwrap();
        }
        process
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.path("output")).unwrap()
    }

    fn plain(&self, host: &str, path: &str) -> u16 {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        exchange(self.http, None, request.as_bytes(), PATIENCE).unwrap().status
    }

    /// The answer over TLS, and the certificate; an error if the client does not believe it.
    fn secure(&self, client: &Arc<ClientConfig>, name: &str) -> std::io::Result<(String, Vec<u8>)> {
        let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
        over_tls(Arc::clone(client), TcpStream::connect(self.https)?, name, &request)
    }

    fn metric(&self, series: &str) -> f64 {
        let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let page = exchange(self.admin, None, request, PATIENCE).unwrap();
        let text = String::from_utf8_lossy(page.after_head()).into_owned();
        let line = text.lines().find(|line| line.starts_with(series));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
    }

    fn orders(&self, result: &str) -> f64 {
        self.metric(&format!("portcullis_acme_orders_total{{result=\"{result}\"}}"))
    }

    fn next_order(&self, name: &str) -> f64 {
        self.metric(&format!("portcullis_acme_next_order_timestamp_seconds{{domain=\"{name}\"}}"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for log in ["output", "pebble.log"] {
                eprintln!("== {log}\n{}", std::fs::read_to_string(self.path(log)).unwrap_or_default());
            }
        }
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn certificates_are_ordered_served_and_renewed() {
    let place = Place::new();
    let names = ["shop.example", "blog.example", "nobody.example"];
    place.write(&names, "ops@shop.example");
    let program = place.start();

    // The authority is down: the program serves, but for TLS.
    until(|| place.orders("unreachable") >= 1.0);
    assert_eq!(place.plain("shop.example", "/"), 308);
    place.secure(&place.authority.client(), "shop.example").unwrap_err();
    let refused = "portcullis_tls_handshake_failures_total{listener=\"https\",reason=\"not_issued\"}";
    until(|| place.metric(refused) == 1.0);
    assert!(place.said().contains("no certificate for blog.example, nobody.example, shop.example yet"));
    assert!(place.next_order("shop.example") > now() - 30.0);

    // It is back. Neither redirects, rules nor access lists keep it out, and a name needs no site.
    let authority = place.start_pebble(30);
    let client = place.client();
    let mut first = Vec::new();
    for (name, status) in names.iter().zip([200, 403, 404]) {
        let mut seen = None;
        until(|| {
            seen = place.secure(&client, name).ok();
            seen.is_some()
        });
        let (answer, certificate) = seen.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        first.push(certificate);
    }
    assert!(place.orders("ok") >= 3.0);
    assert!(place.metric("portcullis_acme_challenges_answered_total") >= 3.0);
    let expiry = format!(
        "portcullis_tls_certificate_expiry_timestamp_seconds{{certificate=\"{}\"}}",
        place.kept("shop.example.pem").display()
    );
    // 30 s less one: two thirds of it are 19 s, and 10 s are left.
    until(|| {
        let (expiry, next) = (place.metric(&expiry), place.next_order("shop.example"));
        expiry - next == 10.0
    });
    for (file, expected) in [("", 0o700), ("shop.example.pem", 0o600), ("account.json", 0o600)] {
        assert_eq!(mode(&place.kept(file)), expected, "{file}");
    }
    assert_eq!(mode(&place.path("state")), 0o700);

    // A challenge that is not pending is a request like any other.
    assert_eq!(place.plain("shop.example", "/.well-known/acme-challenge/other"), 403);
    assert_eq!(place.plain("blog.example", "/.well-known/acme-challenge/other"), 403);
    assert_eq!(place.plain("nobody.example", "/.well-known/acme-challenge/other"), 404);

    // They are renewed, by the same account, and taken into use without a restart or reload.
    let account = place.account();
    for (name, first) in names.iter().zip(first) {
        until(|| place.secure(&client, name).is_ok_and(|(_, certificate)| certificate != first));
    }
    assert!(place.orders("ok") >= 6.0);
    assert_eq!(place.account(), account);

    // A reload brings another name, and another person to write to about the same account.
    place.write(&["shop.example", "new.example"], "web@shop.example");
    let signalled = Command::new("kill").args(["-HUP", &program.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    until(|| place.secure(&client, "new.example").is_ok());
    assert_eq!(place.next_order("blog.example"), 0.0, "it is not ordered any more");

    let updated = place.account();
    assert_eq!(updated["contact"], serde_json::json!(["web@shop.example"]));
    assert_eq!(updated["credentials"], account["credentials"]);

    // An authority that has lost all accounts gets a new one.
    assert_eq!(place.orders("refused"), 0.0);
    drop(authority);
    let _authority = place.start_pebble(30);
    let client = place.client();
    until(|| place.secure(&client, "shop.example").is_ok());
    assert!(place.orders("refused") >= 1.0);
    assert_ne!(place.account()["credentials"], account["credentials"]);
    assert!(place.kept("account.unknown.json").exists());
    assert!(program.stop(PATIENCE).unwrap().success());
}

#[test]
fn a_name_that_fails_does_not_keep_others_from_theirs_and_a_restart_needs_no_authority() {
    let place = Place::new();
    place.write(&["lost.example", "shop.example"], "ops@shop.example");
    let authority = place.start_pebble(7_776_000);
    let program = place.start();
    let client = place.client();
    until(|| place.secure(&client, "shop.example").is_ok());
    until(|| place.orders("challenge") >= 1.0);
    // The answers of the CA are told.
    let said = place.said();
    let line =
        said.lines().find(|line| line.contains("no certificate for lost.example: ")).unwrap_or_default();
    assert!(line.contains("urn:ietf:params:acme:error:connection"), "{said}");
    assert!(line.contains("the next try is in "), "{said}");
    let wait = place.next_order("lost.example") - now();
    assert!((1.0..=3600.0).contains(&wait), "{wait}");
    let renewal = place.next_order("shop.example") - now();
    assert!((59.0..=60.1).contains(&(renewal / 86_400.0)), "{renewal}");
    let (_, before) = place.secure(&client, "shop.example").unwrap();
    assert!(program.stop(PATIENCE).unwrap().success());
    drop(authority);

    // It accepts connections and says nothing. The kept certificate is served at once, and the end does not
    // wait for it.
    let silent = TcpListener::bind(place.directory).unwrap();
    let program = place.start();
    let (_, after) = place.secure(&client, "shop.example").unwrap();
    assert_eq!(before, after);
    silent.accept().unwrap();
    let begin = Instant::now();
    assert!(program.stop(PATIENCE).unwrap().success());
    assert!(begin.elapsed() < Duration::from_secs(25), "it waited for the authority");
}

#[test]
fn an_authority_that_wants_us_to_wait_is_left_alone() {
    let place = Place::new();
    place.write(&["blog.example", "shop.example"], "ops@shop.example");
    place.start_weary_authority();
    let program = place.start();
    until(|| place.orders("rate_limited") >= 1.0);
    // The account is that of all names.
    for name in ["blog.example", "shop.example"] {
        let wait = place.next_order(name) - now();
        assert!((3600.0..=7201.0).contains(&wait), "{name}: {wait}");
    }
    let said = place.said();
    assert!(said.contains("too many  new accounts"), "on one line: {said}");
    assert!(said.contains("the next try is in 2 h"), "{said}");
    assert_eq!(place.orders("rate_limited"), 1.0);
    assert!(program.stop(PATIENCE).unwrap().success());
}
