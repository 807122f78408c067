//! Who may ask what.

use portcullis_api::Limits;
use portcullis_identity::{Actor, NewToken, Role, Sites};

use crate::openapi::{filled, operations};
use crate::server::Server;

/// Every route with every kind of identity, from the document.
#[test]
fn roles() {
    // Streams end by themselves.
    let zero = std::time::Duration::ZERO;
    let server =
        Server::with(Limits { stream_time_max: zero, stranger_login_time: zero, ..Limits::default() });
    server.user("viewer", Role::Viewer);
    server.user("analyst", Role::Analyst);
    server.user("admin", Role::Admin);
    for (path, method, needed) in operations(&server.document) {
        // These end the session.
        if path.ends_with("/logout") {
            continue;
        }
        let target = filled(&path);
        let anonymous = server.ask(&method, &target).send();
        let wrong = server.ask(&method, &target).bearer(&format!("pct_{}", "A".repeat(43))).send();
        if needed == "none" {
            for answer in [anonymous, wrong] {
                assert!(answer.status != 401 && answer.status != 403, "{method} {path}: {}", answer.text());
            }
            continue;
        }
        for answer in [anonymous, wrong] {
            assert_eq!(answer.status, 401, "{method} {path}");
            assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"), "{}", answer.head);
        }
        for role in Role::ALL {
            let by_token = server.ask(&method, &target).bearer(&server.token(role)).send();
            let (cookie, csrf) = server.session(role.name());
            let by_session = server
                .ask(&method, &target)
                .header("Cookie", &cookie)
                .header("X-CSRF-Token", &csrf)
                .header("Origin", &server.origin())
                .send();
            let suffices = Role::named(&needed).is_none_or(|needed| role >= needed);
            for (answer, may) in [(by_token, suffices && needed != "session"), (by_session, suffices)] {
                assert_ne!(answer.status, 401, "{method} {path} as {role}: {}", answer.text());
                assert_eq!(answer.status != 403, may, "{method} {path} as {role}: {}", answer.text());
                assert!(answer.status < 500, "{method} {path} as {role}: {}", answer.text());
            }
        }
    }
}

#[test]
fn tokens_count_as_they_are_now() {
    let server = Server::start();
    let new = NewToken {
        name: "short".to_owned(),
        role: Role::Viewer,
        sites: Sites::All,
        expires: Some(server.now() + 60),
    };
    let (token, secret) = server.identities.create_token(&new, &Actor::new("test"), server.now()).unwrap();
    assert_eq!(server.get("/version", &secret).status, 200);
    server.pass(60);
    let answer = server.get("/version", &secret);
    assert_eq!(answer.status, 401);
    assert!(answer.header("www-authenticate").unwrap().contains("invalid_token"));
    let lasting = server.token(Role::Viewer);
    assert_eq!(server.get("/version", &lasting).status, 200);
    server.identities.revoke_token(token.id + 1, &Actor::new("test"), server.now()).unwrap();
    assert_eq!(server.get("/version", &lasting).status, 401);
}

#[test]
fn odd_authorizations_do_not_count() {
    let server = Server::start();
    let token = server.token(Role::Admin);
    server.user("anna", Role::Admin);
    let (cookie, _) = server.session("anna");
    for value in [
        token.clone(),
        format!("Basic {token}"),
        format!("Bearer{token}"),
        format!("Bearer {token}x"),
        "Bearer".into(),
        format!("Bearer {token}, Bearer {token}"),
        format!("Bearer\t{token}"),
        format!("Bearer {}", &token[4..]),
        format!("Bearer {}", token.to_uppercase()),
        "Bearer ".into(),
        format!("Bearer {token}\u{e9}"),
    ] {
        // A session beside it does not make up for it.
        let answer =
            server.ask("GET", "/version").header("Authorization", &value).header("Cookie", &cookie).send();
        assert_eq!(answer.status, 401, "{value}");
    }
    let twice = server.ask("GET", "/version").bearer(&token).bearer(&token).send();
    assert_eq!(twice.status, 401);
    for scheme in ["bearer", "BEARER"] {
        let answer =
            server.ask("GET", "/version").header("Authorization", &format!("{scheme} {token}")).send();
        assert_eq!(answer.status, 200, "{scheme}");
    }
    // Not in the query, and not as a cookie.
    assert_eq!(server.ask("GET", &format!("/version?access_token={token}")).send().status, 401);
    assert_eq!(
        server.ask("GET", "/version").header("Cookie", &format!("__Host-portcullis={token}")).send().status,
        401
    );
}

/// A page in a browser whose name was made to stand for our address.
#[test]
fn other_names_and_origins_are_refused() {
    let server = Server::start();
    let token = server.token(Role::Viewer);
    let port = server.address.port();
    for host in ["evil.example", &format!("evil.example:{port}"), "waf.internal.evil.example", "", "a b"] {
        let answer = server.ask("GET", "/version").bearer(&token).header("Host", host).send();
        assert!([400, 403].contains(&answer.status), "{host}: {}", answer.text());
    }
    for host in ["waf.internal", "WAF.internal:8443", "localhost", "[::1]:1"] {
        assert_eq!(
            server.ask("GET", "/version").bearer(&token).header("Host", host).send().status,
            200,
            "{host}"
        );
    }
    let two =
        server.ask("GET", "/version").bearer(&token).header("Host", "localhost").header("Host", "localhost");
    assert_eq!(two.send().status, 400);
    let mut absolute = server.ask("GET", "/version").bearer(&token);
    absolute.target = "http://evil.example/api/v1/version".to_owned();
    assert_eq!(absolute.send().status, 403);
    for origin in [
        "http://evil.example".to_owned(),
        "null".into(),
        String::new(),
        format!("http://127.0.0.1.evil:{port}"),
        "http://127.0.0.1".into(),
        format!("ftp://{}", server.address),
        format!("http://user@{}", server.address),
        format!("{}/", server.origin()),
        "http://localhost".into(),
    ] {
        for route in ["/version", "/health", "/openapi.json"] {
            let answer = server.ask("GET", route).bearer(&token).header("Origin", &origin).send();
            assert_eq!(answer.status, 403, "{origin} {route}");
        }
    }
    let own = server.ask("GET", "/version").bearer(&token).header("Origin", &server.origin());
    assert_eq!(own.send().status, 200);
}

/// A page of another site, with the browser of somebody who is logged in.
#[test]
fn changes_of_a_session_need_its_page() {
    let server = Server::start();
    server.user("anna", Role::Admin);
    let (cookie, csrf) = server.session("anna");
    let (other_cookie, other_csrf) = server.session("anna");
    assert_ne!((&cookie, &csrf), (&other_cookie, &other_csrf));
    let ask = |origin: Option<&str>, token: Option<&str>, site: Option<&str>| {
        let mut ask = server.ask("POST", "/tokens").header("Cookie", &cookie);
        ask = ask.json(serde_json::json!({"name": "x", "role": "viewer"}));
        for (name, value) in [("Origin", origin), ("X-CSRF-Token", token), ("Sec-Fetch-Site", site)] {
            if let Some(value) = value {
                ask = ask.header(name, value);
            }
        }
        ask.send().status
    };
    let origin = server.origin();
    assert_eq!(ask(Some(&origin), Some(&csrf), Some("same-origin")), 201);
    assert_eq!(ask(Some(&origin), Some(&csrf), None), 201);
    assert_eq!(ask(None, Some(&csrf), None), 403);
    assert_eq!(ask(Some(&origin), None, None), 403);
    assert_eq!(ask(Some(&origin), Some(&other_csrf), None), 403);
    assert_eq!(ask(Some(&origin), Some(""), None), 403);
    assert_eq!(ask(Some("http://evil.example"), Some(&csrf), None), 403);
    assert_eq!(ask(Some(&origin), Some(&csrf), Some("cross-site")), 403);
    assert_eq!(ask(Some(&origin), Some(&csrf), Some("same-site")), 403);
    let read = server.ask("GET", "/tokens").header("Cookie", &cookie);
    assert_eq!(read.send().status, 200);
    let read = server.ask("GET", "/tokens").header("Cookie", &cookie).header("Sec-Fetch-Site", "cross-site");
    assert_eq!(read.send().status, 403);
    // Two cookies of the name: one of them may have been put there.
    let two = server.ask("GET", "/tokens").header("Cookie", &format!("{cookie}; {other_cookie}"));
    assert_eq!(two.send().status, 401);
    // The session's token shows when the page asks.
    let session = server.ask("GET", "/session").header("Cookie", &cookie).send();
    assert_eq!(session.json()["csrf_token"], csrf);
    assert_eq!(server.identities.tokens(None, 10).unwrap().len(), 2);
}
