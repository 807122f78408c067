//! Login at a real OpenID Connect provider (npm's oidc-provider) with the real program, as a browser goes
//! there and back. Needs Node.js and npm.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use portcullis_testkit::client::exchange;
use portcullis_testkit::process::Process;
use portcullis_testkit::workspace_root;
use rustls::ClientConfig;

use crate::authority::{Authority, over_tls};
use crate::served::{PATIENCE, free_address, program};

/// Requests of one login, at most.
const STEPS_MAX: usize = 20;
const SECRET: &str = "a secret: with + and %";

/// The provider's program, installed once; none: the test is left out, and fails in CI.
fn installed() -> Option<&'static Path> {
    static INSTALLED: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = INSTALLED.get_or_init(|| {
        let output = Command::new(workspace_root().join("scripts/oidc-provider.sh")).output().unwrap();
        if output.status.success() {
            return Some(PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()));
        }
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(std::env::var_os("CI").is_none(), "{why}");
        eprintln!("left out: {why}");
        None
    });
    found.as_deref()
}

/// A provider and a program that trusts it.
struct Place {
    folder: tempfile::TempDir,
    authority: Authority,
    provider: SocketAddr,
    console: SocketAddr,
    processes: Vec<Process>,
}

/// What differs between tests.
struct Case {
    is_tls: bool,
    auth_method: &'static str,
    algorithm: &'static str,
    groups_in_token: bool,
    /// More lines of `admin.oidc`.
    more: &'static str,
}

impl Place {
    /// None if the provider cannot be installed here.
    fn start(case: &Case) -> Option<Place> {
        let script = installed()?;
        let folder = tempfile::tempdir().unwrap();
        let mut place = Place {
            authority: Authority::new(),
            provider: free_address(),
            console: free_address(),
            processes: Vec::new(),
            folder,
        };
        place.start_provider(script, case);
        place.start_program(case);
        Some(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start_provider(&mut self, script: &Path, case: &Case) {
        let mut settings = serde_json::json!({
            "port": self.provider.port(),
            "redirect_uri": format!("http://{}/api/v1/login/oidc/callback", self.console),
            "secret": SECRET,
            "auth_method": case.auth_method,
            "algorithm": case.algorithm,
            "groups_in_token": case.groups_in_token,
            "accounts": { "anna": ["staff", "waf-admins"], "otto": ["staff"], "mallory": ["guests"] },
        });
        if case.is_tls {
            std::fs::write(self.path("ca.pem"), self.authority.certificate.pem()).unwrap();
            self.authority.write_as(self.folder.path(), "127.0.0.1", "provider");
            settings["cert"] = self.path("provider.pem").to_str().into();
            settings["key"] = self.path("provider.key").to_str().into();
        }
        std::fs::write(self.path("provider.json"), settings.to_string()).unwrap();
        let arguments: [OsString; 2] = [script.into(), self.path("provider.json").into()];
        let log = self.path("provider.log");
        let mut process = Process::start(Path::new("node"), &arguments, &log).unwrap();
        if let Err(error) = process.wait_for(self.provider, PATIENCE) {
            panic!("{error:?}: {}", std::fs::read_to_string(log).unwrap_or_default());
        }
        self.processes.push(process);
    }

    fn issuer(&self, case: &Case) -> String {
        format!("{}://{}", if case.is_tls { "https" } else { "http" }, self.provider)
    }

    fn start_program(&mut self, case: &Case) {
        std::fs::write(self.path("secret"), format!("{SECRET}\n")).unwrap();
        let document = format!(
            r#"workers = 1
data = {{ folder = "data" }}
[admin]
console = "{}"
[admin.oidc]
issuer = "{}"
client_id = "portcullis"
client_secret_file = "secret"
scopes = ["profile", "groups"]
roles = {{ viewer = ["staff"], admin = ["waf-admins"] }}
{}
{}
[[listeners]]
address = "{}"
[[sites]]
name = "shop"
hosts = ["*"]
upstream = "app"
mode = "off"
[upstreams.app]
endpoints = ["http://127.0.0.1:9"]
"#,
            self.console,
            self.issuer(case),
            if case.is_tls { "ca = \"ca.pem\"" } else { "" },
            case.more,
            free_address(),
        );
        std::fs::write(self.path("portcullis.toml"), document).unwrap();
        let arguments: [OsString; 3] = ["run".into(), "--config".into(), self.path("portcullis.toml").into()];
        let log = self.path("log");
        let mut process = Process::start(&program(), &arguments, &log).unwrap();
        if let Err(error) = process.wait_for(self.console, PATIENCE) {
            panic!("{error:?}: {}", std::fs::read_to_string(log).unwrap_or_default());
        }
        self.processes.push(process);
    }

    fn browser(&self) -> Browser {
        Browser { tls: self.authority.client(), cookies: BTreeMap::new() }
    }

    /// Ends the provider.
    fn stop_provider(&mut self) {
        self.processes.remove(0).stop(PATIENCE).unwrap();
    }

    /// Standard output of a command on the data folder.
    fn command(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(program());
        let output = command.args(arguments).arg("--data").arg(self.path("data")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// An answer to a browser.
struct Page {
    url: String,
    status: u16,
    location: Option<String>,
    body: String,
}

/// Keeps cookies, as browsers do: by host, whatever the port.
struct Browser {
    tls: Arc<ClientConfig>,
    cookies: BTreeMap<String, String>,
}

impl Browser {
    fn ask(&mut self, url: &str, form: Option<&str>) -> Page {
        let (scheme, rest) = url.split_once("://").unwrap();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let address: SocketAddr = authority.parse().unwrap_or_else(|_| panic!("{url}"));
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut request = match form {
            Some(_) => format!("POST {path} HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"),
            None => format!("GET {path} HTTP/1.1\r\n"),
        };
        request.push_str(&format!("Host: {authority}\r\nAccept: text/html,*/*\r\nConnection: close\r\n"));
        if !cookies.is_empty() {
            request.push_str(&format!("Cookie: {}\r\n", cookies.join("; ")));
        }
        let form = form.unwrap_or_default();
        request.push_str(&format!("Content-Length: {}\r\n\r\n{form}", form.len()));
        let answer = match scheme {
            "https" => {
                over_tls(Arc::clone(&self.tls), TcpStream::connect(address).unwrap(), "127.0.0.1", &request)
                    .unwrap()
                    .0
            }
            _ => {
                let answer = exchange(address, None, request.as_bytes(), PATIENCE).unwrap();
                String::from_utf8_lossy(&answer.raw).into_owned()
            }
        };
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let mut page = Page {
            url: url.to_owned(),
            status: head[9..12].parse().unwrap(),
            location: None,
            body: body.to_owned(),
        };
        for (name, value) in head.lines().skip(1).filter_map(|line| line.split_once(": ")) {
            match name.to_ascii_lowercase().as_str() {
                "location" => page.location = Some(value.to_owned()),
                "set-cookie" => self.keep(value),
                _ => {}
            }
        }
        // A place on the same host.
        if let Some(place) = page.location.as_mut().filter(|place| place.starts_with('/')) {
            *place = format!("{scheme}://{authority}{place}");
        }
        page
    }

    fn keep(&mut self, set: &str) {
        let (name, value) = set.split(';').next().unwrap().split_once('=').unwrap();
        match value {
            "" => self.cookies.remove(name),
            value => self.cookies.insert(name.to_owned(), value.to_owned()),
        };
    }

    /// Follows redirects to a page, or to a place that begins with `until`, which is not asked for.
    fn follow(&mut self, mut page: Page, until: &str) -> Page {
        for _ in 0..STEPS_MAX {
            match page.location.take() {
                Some(place) if place.starts_with(until) => return Page { url: place, ..page },
                Some(place) => page = self.ask(&place, None),
                None => return page,
            }
        }
        panic!("too many redirects: {}", page.url);
    }

    /// Logs in at the provider, agrees, and returns the URL of the callback.
    fn log_in_at_provider(&mut self, place: &Place, name: &str) -> String {
        let base = format!("http://{}/api/v1/login/oidc", place.console);
        let callback = format!("{base}/callback");
        let first = self.ask(&base, None);
        assert_eq!(first.status, 303, "{}", first.body);
        let mut page = self.follow(first, &callback);
        for _ in 0..STEPS_MAX {
            if page.url.starts_with(&callback) {
                return page.url;
            }
            assert_eq!(page.status, 200, "{}: {}", page.url, page.body);
            let form = match page.body.contains("value=\"login\"") {
                true => format!("prompt=login&login={name}&password=any"),
                false => "prompt=consent".to_owned(),
            };
            let sent = self.ask(&page.url, Some(&form));
            page = self.follow(sent, &callback);
        }
        panic!("no way back: {}", page.url);
    }

    /// A whole login: the last page.
    fn log_in(&mut self, place: &Place, name: &str) -> Page {
        let callback = self.log_in_at_provider(place, name);
        self.ask(&callback, None)
    }

    fn session(&mut self, place: &Place) -> Page {
        self.ask(&format!("http://{}/api/v1/session", place.console), None)
    }
}

#[test]
fn a_login_gives_the_role_of_the_groups() {
    let case = Case {
        is_tls: true,
        auth_method: "client_secret_basic",
        algorithm: "RS256",
        groups_in_token: false,
        more: "name = \"Example\"",
    };
    let Some(mut place) = Place::start(&case) else { return };
    let methods = place.browser().ask(&format!("http://{}/api/v1/login/methods", place.console), None);
    assert!(
        methods.body.contains(r#""oidc":{"name":"Example","url":"/api/v1/login/oidc"}"#),
        "{}",
        methods.body
    );

    let mut anna = place.browser();
    let back = anna.log_in(&place, "anna");
    let home = format!("http://{}/", place.console);
    assert_eq!((back.status, back.location.as_deref()), (303, Some(&*home)), "{}", back.body);
    let page = anna.ask(&home, None);
    assert!(page.status == 200 || page.status == 404, "the console may not be built");
    let session = anna.session(&place).body;
    assert!(session.contains(r#""name":"anna""#) && session.contains(r#""role":"admin""#), "{session}");
    let users = anna.ask(&format!("http://{}/api/v1/users", place.console), None).body;
    assert!(users.contains(r#""origin":"oidc""#) && users.contains(r#""subject":"id-of-anna""#), "{users}");

    let mut otto = place.browser();
    assert_eq!(otto.log_in(&place, "otto").status, 303);
    assert!(otto.session(&place).body.contains(r#""role":"viewer""#));
    assert_eq!(otto.ask(&format!("http://{}/api/v1/users", place.console), None).status, 403);

    // No group of hers has a role: told plainly, and no session.
    let mut mallory = place.browser();
    let refused = mallory.log_in(&place, "mallory");
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("none of your groups there has a role here"), "{}", refused.body);
    assert_eq!(mallory.session(&place).status, 401);

    let listed = place.command(&["user", "list"]);
    assert!(listed.contains("admin    active    oidc") && !listed.contains("mallory"), "{listed}");
    let audit = anna.ask(&format!("http://{}/api/v1/audit", place.console), None).body;
    for part in ["id-of-anna", "no group has a role: id-of-mallory", "\"login.failed\"", "user:otto"] {
        assert!(audit.contains(part), "{part}: {audit}");
    }

    // The provider is away: sessions go on, a new login says so, and local users log in.
    place.stop_provider();
    assert_eq!(anna.session(&place).status, 200);
    let mut input = Command::new(program())
        .args(["user", "add", "root", "--role", "admin", "--data"])
        .arg(place.path("data"))
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut input.stdin.take().unwrap(), b"a fine long password\n").unwrap();
    assert!(input.wait().unwrap().success());
    let body = r#"{"name":"root","password":"a fine long password"}"#;
    let request = format!(
        "POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert_eq!(exchange(place.console, None, request.as_bytes(), PATIENCE).unwrap().status, 200);
}

/// A link that somebody else made logs nobody in, and a callback works once.
#[test]
fn a_callback_is_for_the_browser_that_began_and_works_once() {
    let case = Case {
        is_tls: false,
        auth_method: "client_secret_post",
        algorithm: "ES256",
        groups_in_token: true,
        more: "",
    };
    let Some(place) = Place::start(&case) else { return };
    let mut mallory = place.browser();
    let link = mallory.log_in_at_provider(&place, "anna");
    let mut victim = place.browser();
    assert_eq!(victim.ask(&link, None).status, 401);
    // Even where the victim has begun a login, too.
    victim.log_in_at_provider(&place, "otto");
    let page = victim.ask(&link, None);
    assert!(page.status == 401 && page.body.contains("was not begun in this browser"), "{}", page.body);
    assert_eq!(victim.session(&place).status, 401);
    assert_eq!(mallory.ask(&link, None).status, 303);
    let before = mallory.session(&place).body;
    assert_eq!(mallory.ask(&link, None).status, 401);
    assert_eq!(mallory.session(&place).body, before);
}

/// Other signatures and places of the claim; a user who is disabled; the URL of the console by the document.
#[test]
fn disabled_users_stay_out() {
    let case = Case {
        is_tls: true,
        auth_method: "client_secret_basic",
        algorithm: "PS256",
        groups_in_token: true,
        more: "role_claim = \"groups\"",
    };
    let Some(place) = Place::start(&case) else { return };
    let mut anna = place.browser();
    assert_eq!(anna.log_in(&place, "anna").status, 303);
    let mut otto = place.browser();
    assert_eq!(otto.log_in(&place, "otto").status, 303);
    let token = place.command(&["token", "create", "--role", "admin", "--name", "test"]);
    let change = |body: &str| {
        let request = format!(
            "PATCH /api/v1/users/otto HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nIf-Match: *\r\n\
             Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            token.trim(),
            body.len()
        );
        exchange(place.console, None, request.as_bytes(), PATIENCE).unwrap().status
    };
    assert_eq!(change(r#"{"role":"admin"}"#), 409);
    assert_eq!(change(r#"{"password":"a fine long password"}"#), 409);
    assert_eq!(change(r#"{"disabled":true}"#), 200);
    assert_eq!(otto.session(&place).status, 401);
    let refused = otto.log_in(&place, "otto");
    assert!(refused.status == 403 && refused.body.contains("disabled"), "{}", refused.body);
    assert_eq!(change(r#"{"disabled":false}"#), 200);
    assert_eq!(otto.log_in(&place, "otto").status, 303);
    assert_eq!(otto.session(&place).status, 200);
}

/// A start does not need the provider, but the files that the document names.
#[test]
fn files_that_are_missing_stop_the_start() {
    let place = tempfile::tempdir().unwrap();
    let document = format!(
        "data = {{ folder = \"data\" }}\n[admin]\nconsole = \"{}\"\n[admin.oidc]\nissuer = \"https://login.example\"\n\
         client_id = \"portcullis\"\nclient_secret_file = \"missing\"\nroles = {{ admin = [\"a\"] }}\n\
         [[listeners]]\naddress = \"{}\"\n[[sites]]\nname = \"a\"\nhosts = [\"*\"]\nupstream = \"b\"\nmode = \"off\"\n\
         [upstreams.b]\nendpoints = [\"http://127.0.0.1:9\"]\n",
        free_address(),
        free_address(),
    );
    let path = place.path().join("portcullis.toml");
    std::fs::write(&path, document).unwrap();
    let output = Command::new(program()).arg("run").arg("--config").arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("`admin.oidc.client_secret_file`"), "{said}");
    let output = Command::new(program()).arg("check").arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && said.contains("`admin.oidc.client_secret_file`"), "{said}");
}
