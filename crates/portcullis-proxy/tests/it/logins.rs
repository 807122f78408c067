//! Logins that belong to a connection (NTLM, Negotiate): they work, and nobody else is ever served as the
//! user who logged in.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http::Request;

use crate::common::authority::*;
use crate::common::http2::*;
use crate::common::http2_backend::Http2Backend;
use crate::common::*;

/// What the application knows of a connection.
#[derive(Clone, Default)]
struct Known {
    challenged: bool,
    user: Option<String>,
}

/// An application that logs users in as IIS does: in two steps, for the connection. `Negotiate KERBEROS-user`
/// is a login in one step that holds for one request.
struct Application {
    backend: Backend,
    known: Arc<Mutex<HashMap<usize, Known>>>,
}

fn answer(status: &str, fields: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Bytes(format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{fields}\r\n{body}").into_bytes())
}

impl Application {
    fn start() -> Application {
        let known: Arc<Mutex<HashMap<usize, Known>>> = Arc::default();
        let shared = Arc::clone(&known);
        let backend = Backend::start(move |request| {
            let mut all = shared.lock().unwrap();
            let known = all.entry(request.connection).or_default();
            let credentials = request.header("authorization").unwrap_or("");
            let served = |user: &str| match request.line().split(' ').nth(1) {
                Some("/fail") => answer("503 Service Unavailable", "", user),
                Some("/socket") => Reply::Echo(
                    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                      Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
                        .to_vec(),
                ),
                _ => answer("200 OK", "", user),
            };
            if let Some(user) = credentials.strip_prefix("Negotiate KERBEROS-") {
                return served(user);
            }
            match (credentials.strip_prefix("NTLM TYPE3-"), credentials == "NTLM TYPE1") {
                (_, true) => {
                    *known = Known { challenged: true, user: None };
                    return answer("401 Unauthorized", "WWW-Authenticate: NTLM TYPE2\r\n", "");
                }
                (Some(user), _) if known.challenged => {
                    *known = Known { challenged: false, user: Some(user.to_string()) };
                }
                _ => {}
            }
            match &known.user {
                Some(user) => served(user),
                None => {
                    let offers = "WWW-Authenticate: Negotiate\r\nWWW-Authenticate: NTLM\r\n";
                    answer("401 Unauthorized", offers, "")
                }
            }
        });
        Application { backend, known }
    }

    fn address(&self) -> SocketAddr {
        self.backend.address
    }

    fn users(&self) -> usize {
        self.known.lock().unwrap().values().filter(|known| known.user.is_some()).count()
    }
}

fn front(application: &Application, group: &str) -> Front {
    Front::start(&document(application.address(), "", "http2 = { cleartext = true }", RULES, group))
}

/// The status, and the user as whom the application serves the client.
fn ask(client: &mut Client, method: &str, target: &str, credentials: &str) -> (u16, String) {
    let credentials = match credentials {
        "" => String::new(),
        some => format!("Authorization: {some}\r\n"),
    };
    let body = if method == "POST" { "Content-Length: 3\r\n\r\na=1" } else { "\r\n" };
    client.send(format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{credentials}{body}"));
    let (head, body) = client.response();
    (status(&head), String::from_utf8(body).unwrap())
}

fn get(client: &mut Client, credentials: &str) -> (u16, String) {
    ask(client, "GET", "/", credentials)
}

fn log_in(client: &mut Client, user: &str) {
    assert_eq!(get(client, "NTLM TYPE1").0, 401);
    assert_eq!(get(client, &format!("NTLM TYPE3-{user}")), (200, user.to_string()));
}

const NOBODY: (u16, String) = (401, String::new());
const LOGINS: &str = "portcullis_upstream_login_connections{";

#[test]
fn a_login_holds_for_its_client_connection_and_no_other() {
    for group in ["", "idle_connections = 0"] {
        let application = Application::start();
        let front = front(&application, group);
        let mut alice = front.client();
        assert_eq!(get(&mut alice, ""), NOBODY);
        log_in(&mut alice, "alice");
        for _ in 0..5 {
            let mut other = front.client();
            assert_eq!(get(&mut other, ""), NOBODY, "{group}");
        }
        let mut bob = front.client();
        log_in(&mut bob, "bob");
        for _ in 0..2 {
            for (client, user) in [(&mut alice, "alice"), (&mut bob, "bob")] {
                assert_eq!(get(client, ""), (200, user.to_string()));
                assert_eq!(ask(client, "POST", "/", ""), (200, user.to_string()));
            }
        }
        // What we answer ourselves takes the login from nobody.
        assert_eq!(ask(&mut alice, "GET", "/?attack", "").0, 403);
        assert_eq!(get(&mut alice, ""), (200, "alice".to_string()));
        front.counts(LOGINS, 2.0);
        // Another login on the same connection is another user.
        log_in(&mut alice, "carol");
        assert_eq!(get(&mut alice, ""), (200, "carol".to_string()));
        let closed = application.backend.closed();
        drop((alice, bob));
        front.counts(LOGINS, 0.0);
        until(|| application.backend.closed() >= closed + 2);
        let mut other = front.client();
        assert_eq!(get(&mut other, ""), NOBODY);
    }
}

/// Whatever clients do, in any order: each is served as the user of its own connection or as nobody.
#[test]
fn no_client_is_ever_served_as_somebody_else() {
    let one = Application::start();
    let two = Application::start();
    let group = |limits: &str| {
        format!(
            "workers = 2\n[client_address]\ntrusted_proxies = [\"127.0.0.0/8\"]\nheader = \"x-forwarded-for\"\n\
             [[listeners]]\naddress = \"127.0.0.1:0\"\n[[sites]]\nname = \"site\"\nhosts = [\"*\"]\n\
             upstream = \"app\"\nmode = \"off\"\n[upstreams.app]\n\
             endpoints = [\"http://{}\", \"http://{}\"]\n{limits}",
            one.address(),
            two.address()
        )
    };
    let front = Front::start(&group(""));
    let mut state = 0x5EED_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    /// A client connection, and who is logged in on it.
    struct Browser {
        client: Client,
        address: u64,
        challenged: bool,
        user: Option<String>,
    }
    let begin = |address| Browser { client: front.client(), address, challenged: false, user: None };
    let mut browsers: Vec<Browser> = (0..8).map(begin).collect();
    let (mut logins, mut served) = (0, 0);
    for step in 0..1500 {
        let index = random(browsers.len() as u64) as usize;
        let what = random(20);
        if what == 0 {
            browsers[index] = begin(step);
            continue;
        }
        if what == 1 {
            // The endpoints stay, so the logins do.
            let idle = if random(2) == 0 { "idle_connections = 0" } else { "retry = { statuses = [503] }" };
            front.proxy.reload(&parse(&group(idle)), &[]).unwrap();
            continue;
        }
        let browser = &mut browsers[index];
        if what == 2 {
            // A balancer sends another client's requests on the same connection.
            browser.address += 1_000_000;
            (browser.challenged, browser.user) = (false, None);
        }
        let user = format!("user{step}");
        let (credentials, expected) = match what {
            3..=7 => ("NTLM TYPE1".to_string(), None),
            8..=12 if browser.challenged => (format!("NTLM TYPE3-{user}"), Some(user)),
            13 => (format!("Negotiate KERBEROS-{user}"), Some(user)),
            _ => (String::new(), browser.user.clone()),
        };
        let method = if random(3) == 0 { "POST" } else { "GET" };
        let body = if method == "POST" { "Content-Length: 3\r\n\r\na=1" } else { "\r\n" };
        let fields = if credentials.is_empty() { "" } else { "Authorization: " };
        let end = if credentials.is_empty() { "" } else { "\r\n" };
        let [_, a, b, c] = (browser.address as u32).to_be_bytes();
        browser.client.send(format!(
            "{method} / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.{a}.{b}.{c}\r\n\
             {fields}{credentials}{end}{body}"
        ));
        let (head, body) = browser.client.response();
        let got = (status(&head), String::from_utf8(body).unwrap());
        let wanted = expected.as_ref().map_or(NOBODY, |user| (200, user.clone()));
        assert_eq!(got, wanted, "step {step}: {method} {credentials}");
        served += usize::from(got.0 == 200);
        match what {
            3..=7 => (browser.challenged, browser.user) = (true, None),
            8..=12 if browser.challenged => {
                (browser.challenged, browser.user) = (false, expected);
                logins += 1;
            }
            _ => {}
        }
    }
    assert!(logins > 100 && served > 400, "{logins} logins, {served} requests served");
    assert!(one.users() > 10 && two.users() > 10, "both endpoints are used");
    drop(browsers);
    front.counts(LOGINS, 0.0);
}

/// With two endpoints, one place at each and an answer that would else be tried again elsewhere: a request of
/// somebody who is logged in goes to the endpoint that knows it.
#[test]
fn a_login_stays_at_its_endpoint() {
    let one = Application::start();
    let two = Application::start();
    let group = format!(
        "endpoints = [\"http://{}\", \"http://{}\"]\nretry = {{ statuses = [503] }}\n\
         limits = {{ requests = 1, queue = 10 }}",
        one.address(),
        two.address()
    );
    let document = document(one.address(), "", "", "mode = \"off\"", "");
    let endpoints = format!("endpoints = [\"http://{}\"]\n\n", one.address());
    let front = Front::start(&document.replace(&endpoints, &group));
    for number in 0..6 {
        let mut client = front.client();
        let user = format!("user{number}");
        log_in(&mut client, &user);
        for _ in 0..3 {
            assert_eq!(get(&mut client, ""), (200, user.clone()));
            assert_eq!(ask(&mut client, "GET", "/fail", ""), (503, user.clone()));
        }
    }
    assert_eq!(one.users() + two.users(), 6);
    assert!(one.users() > 0 && two.users() > 0);
    front.counts(LOGINS, 0.0);
}

#[test]
fn a_client_that_goes_away_takes_its_login_along() {
    let application = Application::start();
    let front = front(&application, "");
    let mut alice = front.client();
    log_in(&mut alice, "alice");
    // In the middle of a request, whose answer it does not wait for.
    alice.send("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nX: ");
    drop(alice);
    until(|| application.backend.closed() >= 1);
    front.counts(LOGINS, 0.0);
    assert_eq!(get(&mut front.client(), ""), NOBODY);
    // In the middle of the login.
    let mut bob = front.client();
    assert_eq!(get(&mut bob, "NTLM TYPE1").0, 401);
    drop(bob);
    until(|| application.backend.closed() >= 3);
    assert_eq!(get(&mut front.client(), "NTLM TYPE3-mallory"), NOBODY);
}

#[test]
fn a_websocket_is_opened_by_the_user_of_its_connection() {
    let application = Application::start();
    let front = front(&application, "");
    let socket = "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                  Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let mut alice = front.client();
    log_in(&mut alice, "alice");
    let mut other = front.client();
    other.send(socket);
    assert_eq!(status(&other.response().0), 401);
    alice.send(socket);
    assert_eq!(status(&alice.head()), 101);
    alice.send("hello");
    assert_eq!(alice.take(5), b"hello");
    drop(alice);
    front.counts(LOGINS, 0.0);
}

/// Requests on one HTTP/2 connection may be those of many, and have no order: a login in one step holds for
/// its request alone, one in several steps has to come over HTTP/1.1.
#[test]
fn streams_of_http2_share_no_login() {
    let application = Application::start();
    let front = front(&application, "");
    let mut peer = Peer::connect(front.address());
    let request = |credentials: &str| {
        let request = Request::get("http://a/");
        match credentials {
            "" => request.body(()).unwrap(),
            some => request.header("authorization", some).body(()).unwrap(),
        }
    };
    for user in ["alice", "bob"] {
        let answer = peer.ask(request(""), b"").unwrap();
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, "Negotiate"));
        let answer = peer.ask(request(&format!("Negotiate KERBEROS-{user}")), b"").unwrap();
        assert_eq!((answer.status, &answer.body[..]), (200, user.as_bytes()));
        let error = peer.ask(request("NTLM TYPE1"), b"").unwrap_err();
        assert_eq!(error.reason(), Some(h2::Reason::HTTP_1_1_REQUIRED));
        assert_eq!(peer.ask(request("NTLM TYPE3-mallory"), b"").unwrap().status, 401);
    }
    assert_eq!(application.users(), 0);
    front.counts(LOGINS, 0.0);
    // Beside it the login works.
    let mut alice = front.client();
    log_in(&mut alice, "alice");
    assert_eq!(peer.ask(request(""), b"").unwrap().status, 401);
}

/// Credentials of such a scheme do not go on a connection of HTTP/2 that others' requests share.
#[test]
fn credentials_do_not_go_on_shared_connections() {
    let backend = Http2Backend::start();
    let front = Front::start(&document(backend.address, "", "", RULES, "protocol = \"h2c\""));
    let connections = || backend.connections.load(std::sync::atomic::Ordering::SeqCst);
    let mut client = front.client();
    for _ in 0..3 {
        assert_eq!(get(&mut client, "").0, 200);
        assert_eq!(get(&mut client, "Basic YTpi").0, 200);
    }
    assert_eq!(connections(), 1);
    for number in 0..3 {
        assert_eq!(get(&mut client, "Negotiate YII").0, 200);
        assert_eq!(connections(), 2 + number);
    }
    assert_eq!((get(&mut client, "").0, connections()), (200, 4));
    front.counts("portcullis_upstream_http2_connections{", 1.0);
}

/// An application that HTTP/2 is agreed on with gets credentials of such a scheme over HTTP/1.1, and whatever
/// else it wants so.
#[test]
fn an_application_that_wants_http1_gets_it() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let (address, sessions) = http1_only_backend(&authority, "app.internal", |is_first, head| {
        let (status, field) = match is_first {
            _ if head.contains("NTLM TYPE1") => ("401 Unauthorized", "WWW-Authenticate: NTLM TYPE2"),
            true => ("401 Unauthorized", "WWW-Authenticate: NTLM"),
            false => ("200 OK", "X-From: the connection"),
        };
        format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n{field}\r\n\r\n")
    });
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, authority.certificate.pem()).unwrap();
    let group =
        format!("protocol = \"auto\"\ntls = {{ ca = \"{}\", name = \"app.internal\" }}\n", ca.display());
    let text = document(address, "", "", RULES, &group).replace("http://", "https://");
    let front = Front::start(&text);
    let sessions = || sessions.load(std::sync::atomic::Ordering::SeqCst);
    let mut client = front.client();
    assert_eq!(get(&mut client, ""), NOBODY);
    assert_eq!(ask(&mut client, "POST", "/", ""), NOBODY);
    assert_eq!(sessions(), 1, "it offers HTTP/2, and is asked so first");
    assert_eq!(get(&mut client, "NTLM TYPE1"), NOBODY);
    assert_eq!(get(&mut client, "NTLM TYPE3"), (200, String::new()));
    assert_eq!(get(&mut client, ""), (200, String::new()));
    assert_eq!(sessions(), 1);
    assert_eq!(get(&mut front.client(), ""), NOBODY);
}
