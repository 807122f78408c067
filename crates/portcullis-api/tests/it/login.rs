use std::time::{Duration, Instant};

use portcullis_api::Limits;
use portcullis_identity::{Role, code_of};
use serde_json::json;

use crate::server::{PASSWORD, Server};

#[test]
fn a_session_from_login_to_logout() {
    let server = Server::start();
    server.user("anna", Role::Analyst);
    let answer = server.log_in("Anna ", PASSWORD);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let set = answer.header("set-cookie").unwrap();
    for part in ["__Host-portcullis=", "; Path=/", "; Secure", "; HttpOnly", "; SameSite=Strict"] {
        assert!(set.contains(part), "{set}");
    }
    assert!(!set.contains("Domain"));
    let (cookie, csrf) = server.session("anna");
    let ask = |method: &'static str, path: &str| {
        let ask = server.ask(method, path).header("Cookie", &cookie).header("X-CSRF-Token", &csrf);
        ask.header("Origin", &server.origin())
    };
    assert_eq!(ask("GET", "/session").send().json()["name"], "anna");
    assert_eq!(ask("POST", "/logout").send().status, 204);
    assert_eq!(ask("GET", "/session").send().status, 401);
    // A page of another site cannot log anybody in.
    let login = json!({"name": "anna", "password": PASSWORD});
    let foreign = server.ask("POST", "/login").header("Origin", "http://evil.example").json(&login).send();
    assert_eq!(foreign.status, 403);
}

/// A session that somebody else put into the browser does not become one of the user, and ends.
#[test]
fn a_login_makes_a_new_session() {
    let server = Server::start();
    server.user("anna", Role::Admin);
    server.user("mallory", Role::Viewer);
    let (planted, _) = server.session("mallory");
    let login = json!({"name": "anna", "password": PASSWORD});
    let answer = server.ask("POST", "/login").header("Cookie", &planted).json(login).send();
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap();
    assert_ne!(cookie, planted);
    assert_eq!(server.ask("GET", "/session").header("Cookie", &planted).send().status, 401);
    assert_eq!(server.ask("GET", "/session").header("Cookie", cookie).send().json()["name"], "anna");
}

#[test]
fn guessing_is_slowed_down_and_told() {
    let server = Server::start();
    server.user("anna", Role::Admin);
    let wrong = |name: &str| server.log_in(name, "not the password");
    let (there, not_there) = (wrong("anna"), wrong("nobody"));
    // The answer does not say whether there is such a user.
    assert_eq!((there.status, there.body), (not_there.status, not_there.body));
    let statuses: Vec<u16> = (0..6).map(|_| wrong("anna").status).collect();
    assert_eq!(statuses, [401, 401, 401, 401, 429, 429]);
    let refused = server.log_in("anna", PASSWORD);
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    server.pass(1);
    assert_eq!(server.log_in("anna", PASSWORD).status, 200);
    // Where anna is known, other accounts' failures do not count.
    for number in 0..25 {
        wrong(&format!("name{number}"));
    }
    assert_eq!(wrong("another").status, 429);
    assert_eq!(server.log_in("anna", PASSWORD).status, 200);
    let text = server.registry.render();
    assert!(text.contains("portcullis_api_login_failures_total{reason=\"wrong\"}"), "{text}");
    assert!(text.contains("portcullis_api_requests_total{route=\"/api/v1/login\",status=\"4xx\"}"), "{text}");
    // The audit trail does not grow with each of them.
    let failed = server.actions().iter().filter(|action| *action == "login.failed").count();
    assert_eq!(failed, 10);
    server.pass(60);
    wrong("another");
    let last = server.identities.audit(None, 1).unwrap();
    assert!(last[0].detail.contains("failures before it are not listed"), "{last:?}");
}

/// The password of a user who does not exist takes as long as that of one who does.
#[test]
fn time_does_not_tell_who_exists() {
    let server = Server::start();
    server.user("anna", Role::Admin);
    let timed = |name: &str| {
        let began = Instant::now();
        assert_eq!(server.log_in(name, "not the password").status, 401);
        began.elapsed()
    };
    // By turns, so that what else the machine does meets both.
    let (mut there, mut not_there) = (Duration::MAX, Duration::MAX);
    for _ in 0..4 {
        there = there.min(timed("anna"));
        not_there = not_there.min(timed("nobody"));
    }
    let ratio = there.as_secs_f64() / not_there.as_secs_f64();
    assert!((0.3..3.0).contains(&ratio), "{there:?} {not_there:?}");
}

/// However many strangers try at once, one password is computed at a time, and few wait.
#[test]
fn logins_at_once_are_bounded() {
    let limits = Limits {
        logins_waiting_max: 2,
        stranger_login_time: Duration::from_millis(300),
        ..Limits::default()
    };
    let server = Server::with(limits);
    server.user("anna", Role::Admin);
    let known = Server::log_in(&server, "anna", PASSWORD);
    assert_eq!(known.status, 200);
    std::thread::sleep(Duration::from_millis(400));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..12)
            .map(|number| {
                scope.spawn({
                    let server = &server;
                    move || server.log_in(&format!("name{number}"), "not the password").status
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(100));
        // An administrator is not kept waiting by them.
        let began = Instant::now();
        assert_eq!(server.log_in("anna", PASSWORD).status, 200);
        assert!(began.elapsed() < Duration::from_secs(5));
        tries.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let refused = statuses.iter().filter(|status| **status == 503).count();
    assert!(statuses.iter().all(|status| [401, 503].contains(status)) && refused >= 6, "{statuses:?}");
}

#[test]
fn one_time_codes() {
    let server = Server::start();
    server.user("anna", Role::Viewer);
    let (cookie, csrf) = server.session("anna");
    let ask = |method: &'static str, path: &str| {
        let ask = server.ask(method, path).header("Cookie", &cookie).header("X-CSRF-Token", &csrf);
        ask.header("Origin", &server.origin())
    };
    let early = ask("PUT", "/session/totp").json(json!({"code": "000000"})).send();
    assert_eq!(early.status, 404);
    let offer = ask("POST", "/session/totp").send();
    assert!(offer.json()["url"].as_str().unwrap().starts_with("otpauth://totp/Portcullis:anna?"));
    let user = server.identities.user("anna").unwrap().unwrap();
    let secret = server.identities.offer_totp(user.id).unwrap();
    assert_eq!(ask("PUT", "/session/totp").json(json!({"code": "000000"})).send().status, 422);
    let code = code_of(&secret, server.now());
    assert_eq!(ask("PUT", "/session/totp").json(json!({"code": code})).send().status, 204);
    assert_eq!(ask("POST", "/session/totp").send().status, 409);
    let needed = server.log_in("anna", PASSWORD);
    assert_eq!(
        (needed.status, needed.json()["type"].as_str()),
        (401, Some("urn:portcullis:problem:code-needed"))
    );
    server.pass(60);
    let login = json!({"name": "anna", "password": PASSWORD, "code": code_of(&secret, server.now())});
    assert_eq!(server.ask("POST", "/login").json(&login).send().status, 200);
    // The same code again.
    assert_eq!(server.ask("POST", "/login").json(&login).send().status, 401);
}

#[test]
fn own_passwords_are_changed_with_the_old_one() {
    let server = Server::start();
    server.user("anna", Role::Viewer);
    let (cookie, csrf) = server.session("anna");
    let change = |old: &str, new: &str| {
        let ask =
            server.ask("POST", "/session/password").header("Cookie", &cookie).header("X-CSRF-Token", &csrf);
        let body = json!({"password": old, "new_password": new});
        ask.header("Origin", &server.origin()).json(body).send().status
    };
    assert_eq!(change("not the password", "another fine password"), 401);
    assert_eq!(change(PASSWORD, "short"), 422);
    assert_eq!(change(PASSWORD, "another fine password"), 204);
    assert_eq!(change("another fine password", PASSWORD), 401);
    assert_eq!(server.log_in("anna", "another fine password").status, 200);
}

#[test]
fn the_first_administrator_is_created_once() {
    let server = Server::start();
    let setup = |code: &str, name: &str| {
        let body = json!({"code": code, "name": name, "password": PASSWORD});
        server.ask("POST", "/setup").json(body).send().status
    };
    assert_eq!(setup("wrong", "anna"), 403);
    assert_eq!(setup("", "anna"), 403);
    assert_eq!(setup(&server.setup_code, "NOT A NAME"), 422);
    assert_eq!(setup(&server.setup_code, "anna"), 201);
    assert_eq!(setup(&server.setup_code, "otto"), 409);
    assert_eq!(server.identities.user("anna").unwrap().unwrap().role, Role::Admin);
    let other = Server::start();
    other.pass(3600);
    let body = json!({"code": other.setup_code, "name": "anna", "password": PASSWORD});
    assert_eq!(other.ask("POST", "/setup").json(body).send().status, 403);
}

/// Saved views belong to whoever saved them; tokens have none.
#[test]
fn views_of_a_session() {
    let server = Server::start();
    server.user("anna", Role::Viewer);
    server.user("otto", Role::Admin);
    let sessions = ["anna", "otto"].map(|name| server.session(name));
    let ask = |who: usize, method: &'static str, path: &str| {
        let (cookie, csrf) = &sessions[who];
        let ask = server.ask(method, path).header("Cookie", cookie).header("X-CSRF-Token", csrf);
        ask.header("Origin", &server.origin())
    };
    let view = json!({"name": "attacks", "place": "#/events?kind=all&filter=class+%3D+sqli"});
    let saved = ask(0, "POST", "/session/views").json(&view).send();
    assert_eq!(saved.status, 201, "{}", saved.text());
    let saved = saved.json();
    let path = format!("/session/views/{}", saved["id"]);
    let list = |who| ask(who, "GET", "/session/views").send().json()["items"].clone();
    assert_eq!((list(0), list(1)), (json!([saved]), json!([])));
    assert_eq!(ask(0, "POST", "/session/views").json(&view).send().status, 409);
    let renamed = json!({"name": "all", "place": view["place"]});
    for (who, status) in [(1, 404), (0, 200)] {
        assert_eq!(ask(who, "PUT", &path).json(&renamed).send().status, status);
    }
    assert_eq!(list(0)[0]["name"], "all");
    let elsewhere = json!({"name": "x", "place": "https://elsewhere.example"});
    assert_eq!(ask(0, "POST", "/session/views").json(elsewhere).send().status, 422);
    for (who, status) in [(1, 404), (0, 204), (0, 404)] {
        assert_eq!(ask(who, "DELETE", &path).send().status, status);
    }
    assert_eq!(list(0), json!([]));
    assert_eq!(server.get("/session/views", &server.token(Role::Admin)).status, 403);
}
