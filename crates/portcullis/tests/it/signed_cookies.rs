//! Signed cookies in the running program: only what the upstream has set gets back to it.

use std::net::SocketAddr;

use portcullis_testkit::process::{Signal, signal};
use portcullis_testkit::shared_store::{Kind, SharedStore};
use portcullis_testkit::upstream::Server;

use crate::served::{Response, Served, application, says};

/// An application that sets what it is asked for at `/set?`, a cookie to a line, and says which `Cookie`
/// fields came.
fn echo() -> Server {
    application(|request| {
        let lines = request.header_lines().map(|line| String::from_utf8_lossy(line).into_owned());
        let cookies = lines.filter_map(|line| Some(format!("[{}]", line.strip_prefix("Cookie: ")?)));
        let plain = says(cookies.collect::<String>());
        let asked = request.target.strip_prefix("/set?").unwrap_or_default();
        let set = asked.split('|').filter(|field| !field.is_empty());
        let set = set.map(|field| ("Set-Cookie".to_owned(), field.replace('+', " "))).collect::<Vec<_>>();
        Response { headers: [plain.headers, set].concat(), ..plain }
    })
}

fn site(settings: &str) -> (Server, Served) {
    let upstream = echo();
    let served = Served::start_site(&upstream, settings, "");
    (upstream, served)
}

/// The `Set-Cookie` fields of an answer to a request that asks for these.
fn set(served: &Served, fields: &str) -> Vec<String> {
    let head = format!("GET /set?{fields} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let text = served.raw(head).text();
    text.lines().filter_map(|line| line.strip_prefix("Set-Cookie: ")).map(str::to_owned).collect()
}

/// The cookie that a browser sends of a `Set-Cookie` field.
fn pair(field: &str) -> &str {
    field.split(';').next().unwrap_or_default()
}

/// The `Cookie` fields that get to the upstream of a request with these.
fn through(served: &Served, cookies: &[&str]) -> String {
    let fields: String = cookies.iter().map(|cookie| format!("Cookie: {cookie}\r\n")).collect();
    let answer = served.raw(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n"));
    assert_eq!(answer.status(), 200, "{cookies:?}");
    let text = answer.text();
    text.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned()
}

const SIGNS: &str =
    "cookies = { sign = [\"session\", \"__Host-id\"], secure = true, http_only = [\"session\"] }";

#[test]
fn only_cookies_that_the_upstream_set_get_back_to_it() {
    for mode in ["off", "semantic"] {
        let (_upstream, served) = site(&format!("mode = \"{mode}\"\n{SIGNS}"));
        let fields = set(&served, "session=a=b;+Path=/|theme=dark|__Host-id=\"7\";+Secure;+Path=/");
        assert_eq!(fields.len(), 3, "{fields:?}");
        let (session, id) = (pair(&fields[0]), pair(&fields[2]));
        assert!(
            session.starts_with("session=a=b.") && fields[0].ends_with("; Path=/; HttpOnly"),
            "{fields:?}"
        );
        assert_eq!(fields[1], "theme=dark");
        assert!(id.starts_with("__Host-id=\"7.") && fields[2].ends_with("\"; Secure; Path=/"), "{fields:?}");

        let both = format!("theme=dark; {session}; {id}");
        assert_eq!(through(&served, &[&both]), "[theme=dark; session=a=b; __Host-id=\"7\"]");
        // In fields of their own, as some clients send them.
        assert_eq!(through(&served, &[session, "x=1", id]), "[session=a=b][x=1][__Host-id=\"7\"]");
        for other in [
            "session=a=b".to_owned(),
            session.replace("a=b", "a=c"),
            session.replace("session", "SESSION"),
            session.replace("session", "__Host-id"),
            format!("{session}."),
            "a=1, session=1".to_owned(),
        ] {
            assert_eq!(through(&served, &[&other]), "", "{other}");
            assert_eq!(through(&served, &["x=1", &other]), "[x=1]", "{other}");
        }
        assert_eq!(through(&served, &[&format!("session=1; {session}")]), "[session=a=b]");
        let checked = |result: &str| {
            served.metric(&format!("portcullis_checked_cookies_total{{site=\"site\",result=\"{result}\"}}"))
        };
        assert_eq!(checked("verified"), 5.0);
        assert_eq!((checked("unsigned"), checked("hidden")), (5.0, 2.0));
        assert!(checked("changed") >= 6.0);
        assert_eq!(served.metric("portcullis_signed_cookies_total{site=\"site\",result=\"signed\"}"), 2.0);
    }
}

/// Neither what a client sends nor what the proxy itself answers becomes signed.
#[test]
fn nothing_that_a_client_sends_becomes_signed() {
    let settings = "mode = \"semantic\"\ncookies = { sign = [\"session\"] }\n\
                    [[sites.routes]]\npath = \"/own\"\n\
                    respond = { status = 200, body = \"own\" }\n\
                    response_headers = { add = { \"set-cookie\" = \"session=own\" } }\n";
    let (_upstream, served) = site(settings);
    for request in [
        "GET / HTTP/1.1\r\nHost: a\r\nSet-Cookie: session=x\r\nCookie: session=x\r\n",
        "TRACE / HTTP/1.1\r\nHost: a\r\nCookie: session=x\r\n",
        "GET /?q=1'+UNION+SELECT+user,password+FROM+users--+- HTTP/1.1\r\nHost: a\r\nCookie: session=x\r\n",
        "GET /own HTTP/1.1\r\nHost: a\r\nCookie: session=x\r\n",
    ] {
        let answer = served.raw(format!("{request}Connection: close\r\n\r\n")).text();
        assert!(!answer.contains("session=x"), "{answer}");
        assert_eq!(answer.contains("set-cookie: session=own\r\n"), request.contains("/own"), "{answer}");
    }
    assert_eq!(served.metric("portcullis_signed_cookies_total{site=\"site\",result=\"signed\"}"), 0.0);
}

#[test]
fn an_event_tells_of_a_cookie_that_is_not_the_sites_own() {
    let (_upstream, served) = site("mode = \"semantic\"\ncookies = { sign = [\"cart\"] }");
    assert_eq!(through(&served, &["a=1; cart=x"]), "[a=1]");
    let event = &served.events(1)[0];
    for part in
        ["\"field.foreign-cookie\"", "\"name\":\"cart\"", "it has no signature", "\"action\":\"detect\""]
    {
        assert!(event.contains(part), "{part}: {event}");
    }
    let more = [
        ("semantic = { exclude = [{ class = \"field\", location = \"cookie:cart\" }] }", 200),
        ("semantic = { classes = { field = \"block\" } }", 403),
    ];
    for (settings, status) in more {
        let (_upstream, served) =
            site(&format!("mode = \"semantic\"\ncookies = {{ sign = [\"cart\"] }}\n{settings}"));
        let answer = served.raw("GET / HTTP/1.1\r\nHost: a\r\nCookie: cart=x\r\nConnection: close\r\n\r\n");
        assert_eq!(answer.status(), status, "{settings}");
        assert_eq!(served.get("/?q=1'+UNION+SELECT+user,password+FROM+users--+-").status(), 403);
        assert_eq!(served.events(1)[0].contains("foreign-cookie"), status == 403, "{settings}");
    }
}

/// A running site begins to sign: for a time it accepts what clients have of before.
#[test]
fn a_site_that_begins_to_sign_may_accept_old_cookies() {
    let (_upstream, served) =
        site("mode = \"off\"\ncookies = { sign = [\"session\"], unsigned = \"accept\" }");
    let fields = set(&served, "session=new");
    let new = pair(&fields[0]);
    assert_eq!(through(&served, &["session=old"]), "[session=old]");
    assert_eq!(through(&served, &[new]), "[session=new]");
    assert_eq!(through(&served, &[&new.replace("new", "old")]), "");
    let document = served.folder.path().join("portcullis.toml");
    let text = std::fs::read_to_string(&document).unwrap();
    std::fs::write(&document, text.replace(", unsigned = \"accept\"", "")).unwrap();
    signal(served.id(), Signal::HUP).unwrap();
    served.counts("portcullis_policy_generation", 2.0);
    assert_eq!(through(&served, &["session=old"]), "");
    assert_eq!(through(&served, &[new]), "[session=new]");
}

/// Sessions outlive restarts with a data folder, and are good at all nodes of a Redis.
#[test]
fn signatures_outlive_restarts_and_hold_at_other_nodes() {
    let upstream = echo();
    let settings = "mode = \"off\"\ncookies = { sign = [\"session\"], provenance = false }";
    let data = tempfile::tempdir().unwrap();
    let more = format!("[data]\nfolder = \"{}\"\n", data.path().display());
    let first = Served::start_site(&upstream, settings, &more);
    let fields = set(&first, "session=kept");
    first.stop();
    let second = Served::start_site(&upstream, settings, &more);
    assert_eq!(through(&second, &[pair(&fields[0])]), "[session=kept]");
    second.stop();
    // Without the folder it is another secret.
    let third = Served::start_site(&upstream, settings, "");
    assert_eq!(through(&third, &[pair(&fields[0])]), "");
    third.stop();

    let redis = SharedStore::start(Kind::Redis, None).unwrap();
    let more = format!("[store]\nredis = \"{}\"\n", redis.url());
    let nodes = [(); 2].map(|()| Served::start_site(&upstream, settings, &more));
    nodes.iter().for_each(|node| node.counts("portcullis_issued_cookies_redis_connected", 1.0));
    let fields = set(&nodes[0], "session=shared");
    assert_eq!(through(&nodes[1], &[pair(&fields[0])]), "[session=shared]");
}

/// Answers that stream, and those without a body.
#[test]
fn every_answer_of_an_upstream_is_signed() {
    let address: SocketAddr = raw_upstream();
    let served =
        Served::start_edited(address, "mode = \"off\"\ncookies = { sign = [\"session\"] }", "", |text| text);
    for (target, method) in [("/chunked", "GET"), ("/304", "GET"), ("/chunked", "HEAD"), ("/close", "GET")] {
        let head = format!("{method} {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let text = served.raw(head).text();
        let field = text.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).unwrap_or_default();
        assert!(field.starts_with("session=1.") && field.ends_with("; Path=/"), "{target} {text}");
    }
}

/// A server that answers each connection once, as its target says.
fn raw_upstream() -> SocketAddr {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if stream.read_exact(&mut byte).is_err() {
                    break;
                }
                head.push(byte[0]);
            }
            let text = String::from_utf8_lossy(&head);
            let cookie = "Set-Cookie: session=1; Path=/\r\n";
            let answer = match text.split(' ').nth(1) {
                Some("/304") => format!("HTTP/1.1 304 Not Modified\r\n{cookie}\r\n"),
                Some("/close") => format!("HTTP/1.1 200 OK\r\n{cookie}Connection: close\r\n\r\nall"),
                _ if text.starts_with("HEAD") => {
                    format!("HTTP/1.1 200 OK\r\n{cookie}Transfer-Encoding: chunked\r\n\r\n")
                }
                _ => format!(
                    "HTTP/1.1 200 OK\r\n{cookie}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
                ),
            };
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}
