//! The console's files beside the API: their headers, and what is none of them.

use crate::server::Server;

#[test]
fn the_console_is_at_the_root() {
    let server = Server::start();
    let page = server.page("GET", "/").send();
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    // What is no file of it keeps the policy of the API.
    for path in ["/nothing", "/assets/", "/../Cargo.toml", "/%2e%2e/Cargo.toml", "/index.html.gz"] {
        let answer = server.page("GET", path).send();
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.header("content-security-policy").unwrap().contains("sandbox"), "{path}");
    }
    assert_eq!(server.page("POST", "/").send().status, 405);
    // The checks of names hold for it as for the API.
    assert_eq!(server.page("GET", "/").header("Host", "evil.example").send().status, 403);
}

#[test]
fn compressed_files_go_to_those_who_take_them() {
    if !portcullis_api::console::is_built() {
        return;
    }
    let server = Server::start();
    for (accepted, coded) in [
        ("gzip", true),
        ("br, gzip;q=0.5", true),
        ("GZIP", true),
        ("gzip;q=0", false),
        ("br", false),
        ("", false),
    ] {
        let page = server.page("GET", "/").header("Accept-Encoding", accepted).send();
        assert_eq!(page.header("content-encoding") == Some("gzip"), coded, "{accepted}");
        assert_eq!(page.header("vary"), Some("Accept-Encoding"));
    }
}
