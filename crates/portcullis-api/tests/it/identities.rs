use portcullis_event::Timestamp;
use portcullis_identity::Role;
use serde_json::json;

use crate::server::{NOW_MS, Server};

#[test]
fn tokens_are_created_listed_and_revoked() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let order = json!({"name": "ci", "role": "analyst", "expires_in_seconds": 60});
    let answer = server.ask("POST", "/tokens").bearer(&admin).json(order).send();
    assert_eq!(answer.status, 201, "{}", answer.text());
    let token = answer.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(server.get("/bans", &token).status, 200);
    let list = server.get("/tokens?limit=1&cursor=1", &admin);
    assert_eq!(list.json()["items"][0]["name"], "ci");
    assert!(!list.text().contains(&token));
    let revoked = server.ask("DELETE", "/tokens/2").bearer(&admin).send();
    assert_eq!(revoked.status, 204);
    assert_eq!(server.get("/bans", &token).status, 401);
    for path in ["/tokens/99", "/tokens/x", "/tokens/-1", "/tokens/9999999999999999999999"] {
        assert_eq!(server.ask("DELETE", path).bearer(&admin).send().status, 404, "{path}");
    }
    assert_eq!(server.actions(), ["token.create", "token.create", "token.revoke"]);
    let audit = server.get("/audit", &admin).json();
    assert_eq!(audit["items"][0]["actor"], "token:1 (test admin)");
    assert_eq!(audit["items"][0]["address"], "127.0.0.1");
}

#[test]
fn bodies_are_checked() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let post = |body: &str| server.ask("POST", "/tokens").bearer(&admin).json(body).send().status;
    for (body, status) in [
        ("{", 400),
        ("", 400),
        ("[]", 422),
        ("{}", 422),
        (r#"{"name":"a","role":"root"}"#, 422),
        (r#"{"name":"a","role":"viewer","more":1}"#, 422),
        (r#"{"name":"","role":"viewer"}"#, 422),
        (r#"{"name":"a","name":"b","role":"viewer"}"#, 422),
        (r#"{"name":"a","role":"viewer","expires_in_seconds":0}"#, 422),
        (r#"{"name":"a","role":"viewer","expires_in_seconds":-1}"#, 422),
        (r#"{"name":"a","role":"viewer","expires_in_seconds":1.5}"#, 422),
        (r#"{"name":"a","role":"viewer","expires_in_seconds":18446744073709551615}"#, 422),
        (r#"{"name":"a","role":"viewer"} x"#, 400),
        (r#"["a","viewer",60]"#, 422),
        (&"[".repeat(50_000), 422),
        (&format!("{{\"name\":{}", "[".repeat(50_000)), 422),
        (&" ".repeat(70_000), 413),
    ] {
        assert_eq!(post(body), status, "{:.60}", body);
    }
    for media_type in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""] {
        let ask = server.ask("POST", "/tokens").bearer(&admin).header("Content-Type", media_type);
        assert_eq!(ask.send().status, 415, "{media_type}");
    }
    assert_eq!(server.identities.tokens(None, 10).unwrap().len(), 1);
}

#[test]
fn users_have_versions() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let order = json!({"name": "anna", "role": "admin", "password": "a long enough one"});
    let created = server.ask("POST", "/users").bearer(&admin).json(&order).send();
    assert_eq!(created.status, 201, "{}", created.text());
    let tag = created.header("etag").unwrap().to_owned();
    assert_eq!(server.ask("POST", "/users").bearer(&admin).json(&order).send().status, 409);
    let change = |tag: Option<&str>, body: serde_json::Value| {
        let mut ask = server.ask("PATCH", "/users/anna").bearer(&admin).json(body);
        if let Some(tag) = tag {
            ask = ask.header("If-Match", tag);
        }
        ask.send()
    };
    assert_eq!(change(None, json!({"role": "viewer"})).status, 428);
    assert_eq!(change(Some("\"0-0\""), json!({"role": "viewer"})).status, 412);
    assert_eq!(change(Some("x"), json!({"role": "viewer"})).status, 400);
    assert_eq!(change(Some(&tag), json!({"role": "viewer"})).status, 409);
    assert_eq!(change(Some(&tag), json!({"password": "short"})).status, 422);
    assert_eq!(change(Some(&tag), json!({"totp": true})).status, 422);
    server.user("otto", Role::Admin);
    let changed = change(Some(&tag), json!({"role": "viewer"}));
    assert_eq!((changed.status, changed.json()["role"].as_str()), (200, Some("viewer")));
    assert_eq!(change(Some(&tag), json!({"role": "admin"})).status, 412);
    assert_eq!(server.get("/users/anna", &admin).header("etag"), changed.header("etag"));
    let delete = |name: &str| {
        let path = format!("/users/{name}");
        server.ask("DELETE", &path).bearer(&admin).header("If-Match", "*").send().status
    };
    assert_eq!((delete("otto"), delete("anna"), delete("anna")), (409, 204, 404));
    let page = server.get("/users", &admin);
    assert!(!page.text().contains("argon2"), "{}", page.text());
}

#[test]
fn bans_are_listed_and_lifted() {
    let server = Server::start();
    let (viewer, analyst) = (server.token(Role::Viewer), server.token(Role::Analyst));
    let first = server.get("/bans?limit=2", &viewer).json();
    assert_eq!(first["items"][1]["client"], "192.0.2.2");
    let next = first["next"].as_str().unwrap().replace(' ', "%20").replace('/', "%2F");
    let second = server.get(&format!("/bans?limit=2&cursor={next}"), &viewer).json();
    assert_eq!(
        (second["items"][0]["client"].as_str(), second["next"].as_str()),
        (Some("2001:db8::/64"), None)
    );
    let lift = |token: &str, path: &str| server.ask("DELETE", path).bearer(token).send().status;
    assert_eq!(lift(&viewer, "/bans/192.0.2.1"), 403);
    assert_eq!(lift(&analyst, "/bans/192.0.2.1?ban=blog"), 404);
    assert_eq!(lift(&analyst, "/bans/192.0.2.1?ban=shop"), 204);
    assert_eq!(lift(&analyst, "/bans/2001:db8::%2F64"), 204);
    assert_eq!(lift(&analyst, "/bans/nobody"), 404);
    assert_eq!(server.get("/bans", &viewer).json()["items"].as_array().unwrap().len(), 2);
    assert_eq!(server.actions().iter().filter(|action| *action == "ban.lift").count(), 2);
}

#[test]
fn a_ban_by_hand_has_a_length_and_is_in_the_audit_trail() {
    let server = Server::start();
    let (viewer, analyst) = (server.token(Role::Viewer), server.token(Role::Analyst));
    let add = |token: &str, body: &str| server.ask("POST", "/bans").bearer(token).json(body).send();
    assert_eq!(add(&viewer, r#"{"client":"192.0.2.7","seconds":60}"#).status, 403);
    let answer = add(&analyst, r#"{"client":"192.0.2.7","seconds":3600,"reason":"scans"}"#);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["items"][0]["client"], "192.0.2.7");
    let until = Timestamp::from_epoch_millis(NOW_MS + 3_600_000).rfc3339();
    assert_eq!(answer.json()["items"][0]["until"], until);
    // Whoever is not refused is not said to be banned; networks and lengths without an end are for the list.
    for (body, status) in [
        (r#"{"client":"192.0.2.9","seconds":60}"#, 409),
        (r#"{"client":"192.0.2.7","seconds":60,"ban":"blog"}"#, 409),
        (r#"{"client":"192.0.2.0/24","seconds":60}"#, 422),
        (r#"{"client":"somebody","seconds":60}"#, 422),
        (r#"{"client":"192.0.2.7","seconds":0}"#, 422),
        (r#"{"client":"192.0.2.7","seconds":31536001}"#, 422),
    ] {
        assert_eq!(add(&analyst, body).status, status, "{body}");
    }
    assert_eq!(server.actions().iter().filter(|action| *action == "ban.add").count(), 1);
}

#[test]
fn reloads_say_how_they_ended() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let reload = || server.ask("POST", "/reload").bearer(&admin).send();
    let (first, second) = (reload(), reload());
    assert_eq!((first.status, first.json()["message"].as_str()), (200, Some("generation 2")));
    assert_eq!((second.status, second.json()["detail"].as_str()), (422, Some("line 3")));
    assert_eq!(server.actions()[1..], ["reload", "reload"]);
}
