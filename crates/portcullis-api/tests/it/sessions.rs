//! Sessions that are listed and ended.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use portcullis_api::Limits;
use portcullis_identity::Role;
use serde_json::{Value, json};

use crate::client::{Answer, connect};
use crate::server::{PASSWORD, Server};

fn start() -> Server {
    let server = Server::with(Limits {
        stream_every: Duration::from_millis(20),
        stranger_login_time: Duration::ZERO,
        ..Limits::default()
    });
    server.user("anna", Role::Viewer);
    server.user("otto", Role::Viewer);
    server.user("root", Role::Admin);
    server
}

/// A browser with a session.
struct Browser<'a> {
    server: &'a Server,
    cookie: String,
    csrf: String,
}

impl<'a> Browser<'a> {
    fn new(server: &'a Server, name: &str) -> Browser<'a> {
        let login = json!({"name": name, "password": PASSWORD});
        let answer = server.ask("POST", "/login").header("User-Agent", "Firefox").json(login).send();
        assert_eq!(answer.status, 200, "{}", answer.text());
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        Browser { server, cookie, csrf: answer.json()["csrf_token"].as_str().unwrap().to_owned() }
    }

    fn ask(&self, method: &str, path: &str) -> Answer {
        let ask = self.server.ask(method, path).header("Cookie", &self.cookie);
        ask.header("X-CSRF-Token", &self.csrf).header("Origin", &self.server.origin()).send()
    }

    fn is_open(&self) -> bool {
        self.ask("GET", "/session").status == 200
    }

    fn list(&self, path: &str) -> Vec<Value> {
        self.ask("GET", path).json()["items"].as_array().unwrap().clone()
    }
}

#[test]
fn a_user_sees_and_ends_own_sessions_only() {
    let server = start();
    let [first, second, third] = [(); 3].map(|()| Browser::new(&server, "anna"));
    let other = Browser::new(&server, "otto");
    let listed = first.list("/session/sessions");
    assert_eq!(
        listed.iter().map(|item| item["current"].as_bool().unwrap()).collect::<Vec<_>>(),
        [true, false, false]
    );
    assert!(listed.iter().all(|item| item["user"] == "anna" && item["agent"] == "Firefox"), "{listed:?}");
    assert_eq!(
        (&listed[0]["address"], &listed[0]["last_address"]),
        (&json!("127.0.0.1"), &json!("127.0.0.1"))
    );
    let number = |browser: &Browser<'_>| {
        let all = browser.list("/session/sessions");
        all.into_iter().find(|item| item["current"] == true).unwrap()["number"].as_i64().unwrap()
    };
    // Somebody else's session is not there for a user.
    let foreign = format!("/session/sessions/{}", number(&other));
    assert_eq!(first.ask("DELETE", &foreign).status, 404);
    for path in ["/session/sessions/99", "/session/sessions/x", "/session/sessions/-1"] {
        assert_eq!(first.ask("DELETE", path).status, 404, "{path}");
    }
    let one = format!("/session/sessions/{}", number(&second));
    assert_eq!(first.ask("DELETE", &one).status, 204);
    assert!(!second.is_open() && third.is_open() && other.is_open());
    assert_eq!(first.ask("DELETE", &one).status, 404);
    let others = first.ask("DELETE", "/session/sessions");
    assert_eq!((others.status, &others.json()["ended"]), (200, &json!(1)));
    assert!(first.is_open() && !third.is_open() && other.is_open());
    // One's own: the browser forgets its cookie, too.
    let own = first.ask("DELETE", &format!("/session/sessions/{}", number(&first)));
    assert_eq!(own.status, 204);
    assert!(own.header("set-cookie").unwrap().contains("Max-Age=0"), "{}", own.head);
    assert!(!first.is_open() && other.is_open());
    assert_eq!(server.actions().iter().filter(|action| *action == "session.end").count(), 3);
    // Without the token of its page a session ends nothing.
    let forged = server.ask("DELETE", "/session/sessions").header("Cookie", &other.cookie).send();
    assert_eq!(forged.status, 403);
}

#[test]
fn an_administrator_ends_sessions_of_everybody() {
    let server = start();
    let [anna, again, otto, root] = ["anna", "anna", "otto", "root"].map(|name| Browser::new(&server, name));
    assert_eq!(root.list("/sessions").len(), 4);
    let listed = root.list("/sessions?user=anna");
    assert_eq!(listed.len(), 2);
    let number = listed[0]["number"].as_i64().unwrap();
    assert_eq!(anna.ask("DELETE", &format!("/sessions/{number}")).status, 403);
    assert_eq!(root.ask("DELETE", &format!("/sessions/{number}")).status, 204);
    assert!(!anna.is_open() && again.is_open());
    assert_eq!(root.ask("DELETE", &format!("/sessions/{number}")).status, 404);
    let ended = root.ask("DELETE", "/users/anna/sessions");
    assert_eq!(ended.json(), json!({"ended": 1}));
    assert!(!again.is_open() && otto.is_open() && root.is_open());
    assert_eq!(root.ask("DELETE", "/users/nobody/sessions").status, 404);
    // By a token, too; pages are as those of other lists.
    let token = server.token(Role::Admin);
    let page = server.get("/sessions?limit=1", &token).json();
    assert_eq!(page["items"][0]["current"], false);
    let next = page["next"].as_str().unwrap();
    assert_eq!(server.get(&format!("/sessions?cursor={next}"), &token).json()["items"][0]["user"], "root");
    for wrong in ["limit=0", "limit=1001", "cursor=x", "x=1"] {
        assert_eq!(server.get(&format!("/sessions?{wrong}"), &token).status, 400, "{wrong}");
    }
}

#[test]
fn a_stream_ends_with_its_session() {
    let server = start();
    let (anna, root) = (Browser::new(&server, "anna"), Browser::new(&server, "root"));
    let mut socket = connect(server.address);
    let head = format!(
        "GET /api/v1/events/stream HTTP/1.1\r\nHost: localhost\r\nCookie: {}\r\nConnection: close\r\n\r\n",
        anna.cookie
    );
    socket.write_all(head.as_bytes()).unwrap();
    let mut begun = [0; 12];
    socket.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200");
    assert_eq!(root.ask("DELETE", "/users/anna/sessions").status, 200);
    // The read fails if the server goes on: the socket has a time limit.
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).unwrap();
}

#[test]
fn a_token_shows_where_it_was_used() {
    let server = start();
    let (admin, viewer) = (server.token(Role::Admin), server.token(Role::Viewer));
    let of_viewer = || server.get("/tokens?cursor=1", &admin).json()["items"][0].clone();
    assert_eq!((&of_viewer()["last_used"], &of_viewer()["last_address"]), (&Value::Null, &Value::Null));
    server.get("/version", &viewer);
    assert_eq!(of_viewer()["last_address"], "127.0.0.1");
}
