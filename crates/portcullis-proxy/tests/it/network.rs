//! The PROXY protocol, and who the client is.

use crate::common::*;

#[test]
fn the_proxy_protocol_names_the_client() {
    let backend = Backend::start(|_| ok("ok"));
    let trust = "client_address = { trusted_proxies = [\"127.0.0.1\"] }";
    let front = Front::start(&document(backend.address, trust, "proxy_protocol = true\n", RULES, ""));
    let request = "GET /attack HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let v1 = format!("PROXY TCP4 192.0.2.7 198.51.100.1 5000 80\r\n{request}");
    assert_eq!(status(&front.once(v1)), 403);
    let mut v2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    v2.extend([192, 0, 2, 8, 198, 51, 100, 1, 0x13, 0x88, 0, 80]);
    v2.extend(request.as_bytes());
    assert_eq!(status(&front.once(v2)), 403);
    let events = front.events(2);
    assert_eq!((events[0].client.addr.as_str(), events[1].client.addr.as_str()), ("192.0.2.7", "192.0.2.8"));
    assert_eq!(events[0].client.port, 5000);
    // Where it is expected it must be there.
    assert_eq!(front.once(request), "");
    assert_eq!(front.once("PROXY TCP4 junk\r\n"), "");
    // And from others it is no HTTP.
    let distrust = "client_address = { trusted_proxies = [\"10.0.0.0/8\"] }";
    let front = Front::start(&document(backend.address, distrust, "proxy_protocol = true\n", RULES, ""));
    assert_eq!(status(&front.once(format!("PROXY TCP4 192.0.2.7 198.51.100.1 5000 80\r\n{request}"))), 400);
}

#[test]
fn forwarding_headers_count_from_trusted_peers_only() {
    let backend = Backend::start(|_| ok("ok"));
    let request = "GET /attack HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6, 192.0.2.7, 10.0.0.1\r\n\
                   Forwarded: for=192.0.2.9\r\nConnection: close\r\n\r\n";
    for (settings, expected) in [
        (
            "client_address = { trusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"], header = \"x-forwarded-for\" }",
            "192.0.2.7",
        ),
        ("client_address = { trusted_proxies = [\"127.0.0.1\"], header = \"forwarded\" }", "192.0.2.9"),
        (
            "client_address = { trusted_proxies = [\"10.0.0.0/8\"], header = \"x-forwarded-for\" }",
            "127.0.0.1",
        ),
        ("", "127.0.0.1"),
    ] {
        let front = Front::start(&document(backend.address, settings, "", RULES, ""));
        assert_eq!(status(&front.once(request)), 403);
        assert_eq!(front.events(1)[0].client.addr, expected, "{settings}");
    }
    let passed = request.replace("/attack", "/");
    let front = Front::plain(&backend);
    front.once(&passed);
    let seen = backend.seen().pop().unwrap();
    assert_eq!(seen.header("x-forwarded-for"), Some("127.0.0.1"), "what a stranger claims is not passed on");
    assert_eq!(seen.header("forwarded"), None);
    let trust = "client_address = { trusted_proxies = [\"127.0.0.1\"], header = \"x-forwarded-for\" }";
    let front = Front::start(&document(backend.address, trust, "", RULES, ""));
    front.once(&passed);
    let seen = backend.seen().pop().unwrap();
    assert_eq!(seen.header("x-forwarded-for"), Some("6.6.6.6, 192.0.2.7, 10.0.0.1, 127.0.0.1"));
}

/// What only a proxy may say is not passed on for somebody else; the site may decide otherwise.
#[test]
fn claims_of_proxies_are_dropped_unless_they_are_trusted() {
    let backend = Backend::start(|_| ok("ok"));
    let claims = [
        "true-client-ip",
        "x-original-url",
        "x_rewrite_url",
        "x-client-ip",
        "x-forwarded-user",
        "x-real-ip",
        "proxy",
        "x.real.ip",
        "client+ip",
        "true~client!ip",
        "remote.user",
        "x'original*url",
    ];
    let fields: String = claims.iter().map(|name| format!("{name}: /admin\r\n")).collect();
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}X-Own: 1\r\nConnection: close\r\n\r\n");
    let seen = |settings: &str| {
        let front = Front::start(&document(backend.address, settings, "", RULES, ""));
        assert_eq!(status(&front.once(&request)), 200);
        let seen = backend.seen().pop().unwrap();
        assert_eq!(seen.header("x-own"), Some("1"));
        claims.iter().filter(|name| seen.header(name) == Some("/admin")).copied().collect::<Vec<_>>()
    };
    assert_eq!(seen(""), Vec::<&str>::new());
    assert_eq!(seen("client_address = { trusted_proxies = [\"10.0.0.0/8\"] }"), Vec::<&str>::new());
    let passed = seen("client_address = { identity_headers = \"pass\" }");
    let others = claims.iter().filter(|name| !matches!(**name, "x-real-ip" | "x.real.ip")).copied();
    assert_eq!(passed, others.collect::<Vec<_>>(), "that one is ours in any case");
    assert_eq!(seen("client_address = { trusted_proxies = [\"127.0.0.1\"] }"), claims);
}

/// The id that a trusted proxy gives a request is kept where the document says so.
#[test]
fn request_ids_of_trusted_proxies_are_kept_if_asked() {
    let backend = Backend::start(|_| ok("ok"));
    let ask = |settings: &str, field: &str| {
        let front = Front::start(&document(backend.address, settings, "", RULES, ""));
        let answer = front.once(format!("GET / HTTP/1.1\r\nHost: a\r\n{field}Connection: close\r\n\r\n"));
        let id = header(&answer, "x-request-id").expect("an id").to_string();
        assert_eq!(backend.seen().pop().unwrap().header("x-request-id"), Some(&*id), "one id for all");
        id
    };
    let keep = "client_address = { trusted_proxies = [\"127.0.0.1\"], header = \"x-forwarded-for\", request_id = \"trusted\" }";
    let own = keep.replace("trusted\" }", "own\" }");
    let other = keep.replace("127.0.0.1", "10.0.0.1");
    let field = "X-Request-Id: 7b-c.1/x=\r\n";
    assert_eq!(ask(keep, field), "7b-c.1/x=");
    let long = "a".repeat(129);
    let made = [
        ask(&own, field),
        ask(&other, field),
        ask(keep, ""),
        ask(keep, "X-Request-Id: \r\n"),
        ask(keep, "X-Request-Id: a b\r\n"),
        ask(keep, "X-Request-Id: <script>\r\n"),
        ask(keep, &format!("X-Request-Id: {long}\r\n")),
        ask(keep, &format!("{field}X-Request-Id: 8\r\n")),
    ];
    assert!(made.iter().all(|id| id.len() == 32), "{made:?}");
}
