//! Which route a request takes, and what routes do with it.

use crate::common::*;

/// A site with these routes before a backend, and the rules of the tests.
fn site(backend: &Backend, routes: &str) -> Front {
    let site = format!("{RULES}\n{routes}");
    Front::start(&document(backend.address, "", "", &site, ""))
}

fn ask(front: &Front, line: &str, headers: &str) -> String {
    front.once(format!("{line} HTTP/1.1\r\nHost: Shop.example:8080\r\n{headers}Connection: close\r\n\r\n"))
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

#[test]
fn the_most_telling_route_is_taken() {
    let backend = Backend::start(|_| ok("application"));
    let respond =
        |name: &str, what: &str| format!("[[sites.routes]]\n{what}\nrespond = {{ body = \"{name}\" }}\n");
    let routes = [
        respond("prefix", "path = \"/api/\""),
        respond("longer", "path = \"/api/v1/\""),
        respond("post", "path = \"/api/\"\nmethods = [\"POST\", \"PUT\"]"),
        respond("versioned", "path = \"/api/\"\nheaders = { X-Version = \"2\", X-Any = \"*\" }"),
        respond("users", "path_pattern = \"^/api/users/[0-9]+$\""),
        respond("any user", "path_pattern = \"^/api/users/\""),
        respond("exact", "path_exact = \"/api/users/7\""),
    ];
    let front = site(&backend, &routes.concat());
    let version = "X-Version: 1\r\nX-Version: 2\r\nX-Any: x\r\n";
    for (line, headers, expected) in [
        ("GET /", "", "application"),
        ("GET /api", "", "application"),
        ("GET /api/", "", "prefix"),
        ("GET /api/v1/x", "", "longer"),
        ("POST /api/v1/x", "", "longer"),
        ("POST /api/x", "", "post"),
        ("DELETE /api/x", "", "prefix"),
        ("GET /api/x", version, "versioned"),
        ("GET /api/x", "X-Version: 2\r\n", "prefix"),
        ("GET /api/x", "X-Version: 3\r\nX-Any: x\r\n", "prefix"),
        ("GET /api/users/8", version, "users"),
        ("GET /api/users/8a", "", "any user"),
        ("GET /api/users/7", "", "exact"),
        ("GET /api/users/7?x=/", "", "exact"),
    ] {
        assert_eq!(body(&ask(&front, line, headers)), expected, "{line} {headers:?}");
    }
    let counted = "portcullis_requests_total{site=\"site\",route=\"POST,PUT /api/\",status=\"200\"";
    until(|| front.metric(counted) == 1.0);
}

#[test]
fn the_upstream_sees_the_path_that_the_route_makes() {
    let backend = Backend::start(|_| ok("ok"));
    let route = |what: &str, to: &str| format!("[[sites.routes]]\n{what}\nrewrite = \"{to}\"\n");
    let routes = [
        route("path = \"/api/\"", "/"),
        route("path = \"/plain\"", "/new/"),
        route("path_exact = \"/old\"", "/fresh"),
        route("path_pattern = \"^/v([0-9])/(.*)$\"", "/$2/version/$1"),
    ];
    let front = site(&backend, &routes.concat());
    for (asked, expected) in [
        ("/api/x/%41?q=%2F&r", "/x/%41?q=%2F&r"),
        ("/api/", "/"),
        ("/plain/x", "/new/x"),
        ("/plain", "/new/"),
        ("/old?a=b", "/fresh?a=b"),
        ("/v2/users?x", "/users/version/2?x"),
        ("/other", "/other"),
    ] {
        assert_eq!(status(&ask(&front, &format!("GET {asked}"), "")), 200, "{asked}");
        let seen = backend.seen().pop().expect("a request");
        assert_eq!(seen.line(), format!("GET {expected} HTTP/1.1"));
    }
    // Rules see what the client sent, and nobody gets out of a prefix.
    assert_eq!(status(&ask(&front, "GET /api/attack", "")), 403);
    let before = backend.seen().len();
    for path in ["/api/../secret", "/api/%2e%2e/x", "/api/..;/x"] {
        assert_eq!(status(&ask(&front, &format!("GET {path}"), "")), 400, "{path}");
    }
    assert_eq!(backend.seen().len(), before);
}

#[test]
fn routes_redirect_and_answer_after_inspection() {
    let backend = Backend::start(|_| ok("application"));
    let front = site(
        &backend,
        "response_headers = { set = { X-Frame = \"{host}\", cache-control = \"max-age=60\" }, remove = [\"content-type\"] }\n\
         [[sites.routes]]\npath = \"/old/\"\nredirect = { to = \"https://{host}/new{uri}\", status = 308 }\n\
         [[sites.routes]]\npath_pattern = \"^/u/([a-z]+)$\"\nredirect = { to = \"/users/$1\" }\n\
         [[sites.routes]]\npath_pattern = \"^/out/(.*)$\"\nredirect = { to = \"/$1\" }\n\
         [[sites.routes]]\npath = \"/closed/\"\nrespond = { status = 410 }\n\
         [[sites.routes]]\npath_exact = \"/robots.txt\"\n\
         respond = { body = \"User-agent: *\\n\", content_type = \"text/x-robots\" }\nresponse_headers = { set = { X-Frame = \"{host}\" } }\n",
    );
    let answer = ask(&front, "GET /old/a%20b?c=d", "");
    assert_eq!(status(&answer), 308);
    assert_eq!(header(&answer, "location"), Some("https://Shop.example/new/old/a%20b?c=d"));
    assert_eq!(header(&answer, "x-frame"), Some("Shop.example"), "headers of the site are on them, too");
    assert_eq!(
        (header(&answer, "cache-control"), header(&answer, "content-type")),
        (Some("max-age=60"), None)
    );
    let answer = ask(&front, "GET /u/anna", "");
    assert_eq!((status(&answer), header(&answer, "location")), (302, Some("/users/anna")));
    let answer = ask(&front, "GET /out/x/y", "");
    assert_eq!((status(&answer), header(&answer, "location")), (302, Some("/x/y")));
    // Nobody chooses another host.
    assert_eq!(header(&ask(&front, "GET /out//elsewhere/", ""), "location"), Some("/elsewhere/"));
    let answer = ask(&front, "GET /out/\\elsewhere", "");
    assert!(header(&answer, "location").is_none_or(|to| to == "/elsewhere"), "{answer}");
    let answer = ask(&front, "GET /closed/x", "");
    assert_eq!(status(&answer), 410);
    let answer = ask(&front, "GET /robots.txt", "");
    assert_eq!((status(&answer), body(&answer)), (200, "User-agent: *\n"));
    assert_eq!(
        (header(&answer, "content-type"), header(&answer, "x-frame")),
        (Some("text/x-robots"), Some("Shop.example"))
    );
    for line in ["GET /old/attack", "GET /closed/attack", "GET /robots.txt?attack"] {
        let answer = ask(&front, line, "");
        assert_eq!(
            (status(&answer), header(&answer, "x-frame")),
            (403, None),
            "{line}: no answer of the route"
        );
    }
    assert!(backend.seen().is_empty());
}

#[test]
fn headers_change_on_their_way() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Powered-By: x\r\nX-Old: 1\r\nVary: a\r\n\r\nok";
    let backend = Backend::start(move |_| Reply::Bytes(answer.to_vec()));
    let front = site(
        &backend,
        "request_headers = { set = { X-Site = \"site\" } }\n\
         response_headers = { set = { X-Old = \"2\", X-Id = \"{request_id}\" }, add = { Vary = \"b\" }, remove = [\"X-Powered-By\"] }\n\
         [[sites.routes]]\npath = \"/api/\"\n\
         request_headers = { set = { Host = \"api.internal\", X-Client = \"{client}\" }, add = { Accept = \"b/b\" }, remove = [\"Cookie\"] }\n\
         response_headers = {}\n",
    );
    let sent = "Cookie: a=b\r\nAccept: a/a\r\nX-Client: forged\r\nX_Client: forged\r\nX-Site: forged\r\n";
    let answer = ask(&front, "GET /", sent);
    let seen = backend.seen().pop().expect("a request");
    assert_eq!((seen.header("x-site"), seen.header("cookie")), (Some("site"), Some("a=b")));
    assert_eq!(seen.header("host"), Some("Shop.example:8080"));
    assert_eq!((header(&answer, "x-powered-by"), header(&answer, "x-old")), (None, Some("2")));
    assert_eq!(header(&answer, "x-id"), header(&answer, "x-request-id"));
    assert_eq!(
        answer.matches("Vary: a\r\n").count() + answer.to_lowercase().matches("vary: b\r\n").count(),
        2
    );
    let answer = ask(&front, "GET /api/", sent);
    let seen = backend.seen().pop().expect("a request");
    assert_eq!((seen.header("host"), seen.header("x-client")), (Some("api.internal"), Some("127.0.0.1")));
    assert!(!seen.head.contains("forged\r\nX_Client"), "{}", seen.head);
    assert_eq!(seen.head.matches("forged").count(), 1, "only what the route does not name: {}", seen.head);
    assert_eq!(seen.header("cookie"), None);
    assert_eq!(
        seen.head.matches("/a\r\n").count() + seen.head.matches("b/b\r\n").count(),
        2,
        "{}",
        seen.head
    );
    assert_eq!(header(&answer, "x-powered-by"), Some("x"), "what the site says does not hold here");
}

/// A path for which the readings of servers differ asks for one route's inspection and another one's
/// application.
#[test]
fn a_path_that_servers_read_differently_takes_no_route() {
    let backend = Backend::start(|_| ok("application"));
    let front = site(
        &backend,
        "[[sites.routes]]\npath = \"/static/\"\nmode = \"off\"\n\
         [[sites.routes]]\npath = \"/admin\"\naccess = { allow = { networks = [\"192.0.2.1\"] }, others = \"deny\" }\n\
         [[sites.routes]]\npath = \"/images/\"\n\
         [[sites.routes]]\npath_pattern = \"[.]php$\"\nrespond = { body = \"php\" }\n",
    );
    let refused = [
        "/static/../index.php/..;/static/x",
        "/static/../index.php/%252e%252e/static/x",
        "/static/../index.php/..\\static/x",
        "/static/../admin//../static/y",
        "/x/../admin/..;/x",
        "/x/%2e%2e/admin",
        "/static%2f..%2fadmin",
        "/static/%u002e%u002e/admin",
        "/static/%c0%ae%c0%ae/admin",
        "//static/x",
        "/%61dmin",
        "/%2561dmin",
        "//host/admin",
        "/ADMIN",
        "/Static/x",
        "/static;v=1/x",
        "/\\static\\x",
        "/static%2fx",
        "/x.PHP",
        "/x.php;v=1",
        "/x.php%00",
        "/./static/x",
        "/static/.",
    ];
    for (count, path) in refused.iter().enumerate() {
        assert_eq!(status(&ask(&front, &format!("GET {path}?id=1"), "")), 400, "{path}");
        let event = front.events(count + 1).pop().expect("an event");
        assert_eq!(event.refusal.as_deref(), Some("ambiguous-path"), "{path}");
        assert!(event.verdict.reason.contains("different routes"), "{}", event.verdict.reason);
    }
    front.counts("portcullis_refused_requests_total{reason=\"ambiguous-path\"}", refused.len() as f64);
    assert!(backend.seen().is_empty());
    // A long path is one of other letters, or it is made to be read in as many ways as there are.
    let long = format!("/shop/{}", "%E3%81%82".repeat(600));
    assert_eq!(status(&ask(&front, &format!("GET {long}"), "")), 200);
    assert_eq!(backend.seen().pop().expect("a request").line(), format!("GET {long} HTTP/1.1"));
    let seen = backend.seen().len();
    let made = format!("/shop/{}", "a%2Fb;c//\\d%252f%u002f.%2e.x/%61".repeat(200));
    assert_eq!(status(&ask(&front, &format!("GET {made}"), "")), 400);
    assert_eq!(backend.seen().len(), seen);
    // What leads every server to the same route goes on as it came, and so what leads to routes that differ
    // in their names alone.
    for path in [
        "/static/a;v=1/b%20c//d%2Fe%252F\u{e9}[]{}|%zz",
        "/shop/a;v=1/b%20c//d%2Fe%252F\u{e9}[]{}|%zz",
        "/shop//static/x",
        "/Images/x",
        "/images//x",
        "//images/x",
        "/x%2Fy.phpx",
        "/a.../b..c/.d",
    ] {
        assert_eq!(status(&ask(&front, &format!("GET {path}?q=/../x"), "")), 200, "{path}");
        assert_eq!(backend.seen().pop().expect("a request").line(), format!("GET {path}?q=/../x HTTP/1.1"));
    }
}

/// Whatever a site is made of, a segment that stands for the parent is not sent to an application as it is
/// written.
#[test]
fn parent_segments_do_not_go_upstream() {
    let backend = Backend::start(|_| ok("application"));
    for (routes, path, expected) in [
        ("mode = \"off\"", "/a/../b", 400),
        ("mode = \"off\"", "/a/.%2E/b", 400),
        ("mode = \"off\"", "/..", 400),
        ("mode = \"off\"", "http://Shop.example:8080/a/..", 400),
        // Of one route and without a prefix it is the application's to read.
        ("mode = \"off\"", "/a/..;/b", 200),
        ("mode = \"off\"", "/a/..%2fb", 200),
        ("mode = \"off\"", "/a/...?/../b", 200),
        // Nobody gets out of what a route puts in front.
        ("mode = \"off\"\n[[sites.routes]]\npath = \"/\"\nrewrite = \"/app/\"", "/..;/b", 400),
        ("mode = \"off\"\n[[sites.routes]]\npath = \"/\"\nrewrite = \"/app/\"", "/%252e%252e/b", 400),
        ("mode = \"off\"\n[[sites.routes]]\npath = \"/\"\nrewrite = \"/app/\"", "/a;/b", 200),
        ("mode = \"off\"\n[[sites.routes]]\npath = \"/\"\nrespond = { body = \"x\" }", "/a/../b", 200),
    ] {
        let front = Front::start(&document(backend.address, "", "", routes, ""));
        let before = backend.seen().len();
        assert_eq!(status(&ask(&front, &format!("GET {path}"), "")), expected, "{routes} {path}");
        if expected == 400 {
            let event = front.events(1).pop().expect("an event");
            assert_eq!(event.refusal.as_deref(), Some("parent-segment"), "{path}");
            assert_eq!(event.verdict.status, Some(400));
            front.counts("portcullis_refused_requests_total{reason=\"parent-segment\"}", 1.0);
            assert_eq!(backend.seen().len(), before, "{path}");
        }
    }
    // Where somebody looks the attack is named, and is what is answered.
    let front = site(&backend, "");
    assert_eq!(status(&ask(&front, "GET /a/../attack", "")), 403);
}

/// Routes that differ in case only say that the server tells such paths apart.
#[test]
fn routes_may_say_that_case_matters() {
    let backend = Backend::start(|_| ok("application"));
    let routes = "[[sites.routes]]\npath = \"/docs/\"\nrespond = { body = \"lower\" }\n\
                  [[sites.routes]]\npath = \"/Docs/\"\nrespond = { body = \"upper\" }\n\
                  [[sites.routes]]\npath_pattern = \"^/[A-Z]{3}$\"\nrespond = { body = \"letters\" }\n";
    let front = site(&backend, routes);
    for (path, expected) in [
        ("/docs/x", "lower"),
        ("/Docs/x", "upper"),
        ("/ABC", "letters"),
        ("/abc", "application"),
        ("/DOCS/", "application"),
    ] {
        assert_eq!(body(&ask(&front, &format!("GET {path}"), "")), expected, "{path}");
    }
}

/// The route of the path as it is written still decides who may ask and who is banned for trying.
#[test]
fn ambiguous_paths_count_towards_a_ban() {
    let backend = Backend::start(|_| ok("application"));
    let front = site(
        &backend,
        "ban = { score = 20, points = { refused = 10 } }\n[[sites.routes]]\npath = \"/static/\"\nmode = \"off\"\n",
    );
    let line = "GET /static/..;/x";
    assert_eq!([line; 3].map(|line| status(&ask(&front, line, ""))), [400, 400, 403]);
}
