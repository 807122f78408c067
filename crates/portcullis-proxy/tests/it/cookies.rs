//! Cookies of sites over HTTP/2: a browser may send each in a field of its own.

use http::Request;

use crate::common::http2::Peer;
use crate::common::*;

const CLEARTEXT: &str = "http2 = { cleartext = true }";
const ISSUED: &str = "http://10.0.0.5:9090/metrics";

/// An application that sets two cookies.
fn front(settings: &str) -> (Backend, Front) {
    let backend = Backend::start(|_| {
        let text = format!(
            "HTTP/1.1 200 OK\r\nSet-Cookie: last={ISSUED}; Path=/\r\nSet-Cookie: theme=dark; HttpOnly\r\n\
             Content-Length: 0\r\n\r\n"
        );
        Reply::Bytes(text.into_bytes())
    });
    let front = Front::start(&document(backend.address, "", CLEARTEXT, settings, ""));
    (backend, front)
}

fn with(cookies: &[&str]) -> Request<()> {
    let request = Request::get("http://www.shop.example/app/x");
    cookies.iter().fold(request, |request, cookie| request.header("cookie", *cookie)).body(()).unwrap()
}

#[test]
fn a_cookie_that_was_set_passes_however_it_is_sent() {
    let (_backend, front) = front("mode = \"semantic\"");
    let mut peer = Peer::connect(front.address());
    let mut status = |cookies: &[&str]| peer.ask(with(cookies), b"").unwrap().status;
    let own = format!("last={ISSUED}");
    assert_eq!(status(&[&own]), 403, "before it was set");
    assert_eq!(status(&["a=1"]), 200);
    assert_eq!(status(&["a=1", &own, "theme=dark"]), 200);
    assert_eq!(status(&[&format!("a=1; {own}")]), 200);
    for other in [
        vec![own.as_str(), "last=1"],
        vec![own.as_str(), "LAST=1"],
        vec!["last=http://10.0.0.5:9091/metrics"],
        vec![own.as_str(), "last_page=http://10.0.0.5:9090/metrics"],
    ] {
        assert_eq!(status(&other), 403, "{other:?}");
    }
}

#[test]
fn cookies_are_expired_and_get_attributes() {
    let (_backend, front) =
        front("mode = \"semantic\"\ncookies = { http_only = [\"*\"], same_site = \"lax\" }");
    let mut peer = Peer::connect(front.address());
    let mut fields = |cookies: &[&str]| {
        let answer = peer.ask(with(cookies), b"").unwrap();
        let fields =
            answer.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap().to_owned());
        fields.collect::<Vec<_>>()
    };
    let set = [
        format!("last={ISSUED}; Path=/; HttpOnly; SameSite=Lax"),
        "theme=dark; HttpOnly; SameSite=Lax".into(),
    ];
    assert_eq!(fields(&["a=1"]), set);
    let refused = ["a=1", "last_page=http://10.0.0.5:9090/metrics"];
    assert!(fields(&refused).is_empty() && fields(&refused).is_empty());
    let expired = fields(&refused);
    assert_eq!(expired.len(), 6, "{expired:?}");
    assert_eq!(expired[0], "last_page=; Max-Age=0; Path=/");
    assert!(fields(&refused).is_empty());
}

/// Each crumb is a cookie: those that are signed come back, and the others of the name do not.
#[test]
fn signed_cookies_come_back_however_they_are_sent() {
    let backend = Backend::start(|request| {
        let cookies = request.header("cookie").unwrap_or_default();
        let text = format!(
            "HTTP/1.1 200 OK\r\nSet-Cookie: id=7; Path=/\r\nSet-Cookie: theme=dark\r\nX-Got: [{cookies}]\r\n\
             Content-Length: 0\r\n\r\n"
        );
        Reply::Bytes(text.into_bytes())
    });
    let settings = "mode = \"off\"\ncookies = { sign = [\"id\"], http_only = [\"id\"] }";
    let front = Front::start(&document(backend.address, "", CLEARTEXT, settings, ""));
    let mut peer = Peer::connect(front.address());
    let mut ask = |cookies: &[&str]| {
        let answer = peer.ask(with(cookies), b"").unwrap();
        let set = answer.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap().to_owned());
        (set.collect::<Vec<_>>(), answer.headers["x-got"].to_str().unwrap().to_owned())
    };
    let (set, _) = ask(&[]);
    let own = set[0].strip_suffix("; Path=/; HttpOnly").unwrap();
    assert!(own.starts_with("id=7.") && set[1] == "theme=dark", "{set:?}");
    for (cookies, got) in [
        (vec!["a=1", own, "b=2"], "[a=1; id=7; b=2]"),
        (vec!["a=1", "id=7", own, "ID=8"], "[a=1; id=7]"),
        (vec![&format!("a=1; {own}")], "[a=1; id=7]"),
        (vec!["id=7"], "[]"),
        (vec!["id=7", "a=1, id=8"], "[]"),
    ] {
        assert_eq!(ask(&cookies).1, got, "{cookies:?}");
    }
}
