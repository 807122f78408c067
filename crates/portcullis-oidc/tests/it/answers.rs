//! Answers that cannot be used, and floods.

use std::time::Duration;

use portcullis_oidc::ANSWER_BYTES_MAX;
use serde_json::json;

use crate::{BACK, NOW, Pair, provider, token};

const PATHS: [&str; 4] = ["/.well-known/openid-configuration", "/jwks", "/token", "/userinfo"];

fn with_answer(path: &str, status: u16, headers: &[(&str, &str)], body: &[u8]) -> Pair {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Pair::conduct(|conduct| {
        conduct.claims = json!({"groups": null});
        conduct.answers.insert(path.to_owned(), (status, headers, body.to_vec()));
    })
}

#[test]
fn answers_are_bounded() {
    let huge = format!("{{\"keys\": [], \"x\": \"{}\"}}", "x".repeat(ANSWER_BYTES_MAX as usize));
    for path in PATHS {
        let why = provider(with_answer(path, 200, &[], huge.as_bytes()).log_in());
        assert!(why.contains("more than 262144 bytes"), "{path}: {why}");
    }
}

/// Whoever could answer for the provider once must not send us, with code and secret, elsewhere.
#[test]
fn redirects_are_not_followed() {
    for path in PATHS {
        for status in [301, 302, 307, 308] {
            let pair = with_answer(path, status, &[("Location", "/there")], b"");
            assert!(provider(pair.log_in()).contains(&format!("it answers {status}")), "{path}");
            assert_eq!(pair.server.asked("/there"), 0);
        }
    }
}

#[test]
fn answers_that_are_no_json_are_errors() {
    let deep = "[".repeat(100_000);
    for path in PATHS {
        for body in
            ["", "null", "[]", "<html>", "{\"keys\": 1, \"id_token\": 1, \"issuer\": 1", &deep, "\u{feff}{}"]
        {
            let why = provider(with_answer(path, 200, &[], body.as_bytes()).log_in());
            assert!(!why.is_empty(), "{path}: {body:.20}");
        }
        for status in [204, 400, 401, 403, 404, 429, 500, 503] {
            provider(with_answer(path, status, &[], b"").log_in());
        }
    }
}

/// No error quotes what a token endpoint said beside the error code.
#[test]
fn errors_have_no_secret() {
    let body = r#"{"error": "invalid_client", "error_description": "secret hunter2 is wrong"}"#;
    let why = provider(with_answer("/token", 401, &[], body.as_bytes()).log_in());
    assert!(why.contains("invalid_client") && !why.contains("hunter2"), "{why}");
    let body = r#"{"id_token": "hunter2", "access_token": 7}"#;
    let why = provider(with_answer("/token", 200, &[], body.as_bytes()).log_in());
    assert!(!why.contains("hunter2"), "{why}");
}

#[test]
fn documents_that_do_not_fit_are_refused() {
    for (document, part) in [
        (json!({"issuer": "https://evil.example"}), "another issuer"),
        (json!({"issuer": null}), "document"),
        (json!({"token_endpoint": "http://login.example/token"}), "endpoint"),
        (json!({"token_endpoint": "http://169.254.169.254/latest"}), "endpoint"),
        (json!({"jwks_uri": "file:///etc/passwd"}), "endpoint"),
        (json!({"userinfo_endpoint": "ftp://127.0.0.1/"}), "endpoint"),
        (json!({"authorization_endpoint": "javascript:alert(1)"}), "endpoint"),
        (json!({"authorization_endpoint": "https://login.example/\r\nSet-Cookie: a=b"}), "endpoint"),
        (json!({"jwks_uri": null}), "document"),
    ] {
        let why = provider(Pair::conduct(|conduct| conduct.document = document.clone()).log_in());
        assert!(why.contains(part), "{document}: {why}");
    }
    // With a slash more it is another name.
    let pair = Pair::with(|settings| settings.issuer.push('/'));
    assert!(provider(pair.log_in()).contains("another issuer"));
}

/// A provider that stalls holds a login for the time limit, each request; one that is away is not asked
/// again at once.
#[test]
fn a_slow_provider_is_given_up() {
    for path in PATHS {
        let pair = Pair::with(|settings| settings.timeout = Duration::from_millis(200));
        pair.server.set(|conduct| {
            conduct.claims = json!({"groups": null});
            conduct.delays.insert(path.to_owned(), Duration::from_secs(2));
        });
        assert!(provider(pair.log_in()).contains("no answer in time"), "{path}");
    }
    let pair = Pair::conduct(|conduct| {
        conduct.answers.insert(PATHS[0].to_owned(), (500, Vec::new(), Vec::new()));
    });
    for now in [NOW, NOW, NOW + 4] {
        assert!(pair.client.begin(BACK, now).is_err());
    }
    assert_eq!(pair.server.asked(PATHS[0]), 1);
    pair.server.set(|conduct| conduct.answers.clear());
    assert!(pair.client.begin(BACK, NOW + 5).is_ok());
}

/// Tokens with keys that nobody knows have the keys fetched again, once a minute.
#[test]
fn a_flood_of_unknown_keys_is_bounded() {
    let pair = Pair::conduct(|conduct| conduct.claims = json!({"exp": NOW + 1000}));
    pair.log_in().unwrap();
    pair.server.set(|conduct| conduct.header = json!({"kid": "new"}));
    for second in 0..50 {
        assert!(token(pair.log_in_at(NOW + second)).contains("no key"));
    }
    assert_eq!(pair.server.asked("/jwks"), 1);
    for second in 0..50 {
        token(pair.log_in_at(NOW + 60 + second));
    }
    assert_eq!(pair.server.asked("/jwks"), 2);
    // The provider has changed its keys: they are found.
    let keys = pair.server.keys();
    let new = keys.to_string().replace("\"ec\"", "\"new\"");
    pair.server.set(|conduct| conduct.keys = serde_json::from_str(&new).ok());
    assert!(pair.log_in_at(NOW + 120).is_ok());
    assert_eq!(pair.server.asked("/jwks"), 3);
}

/// Keys of odd forms are passed over, and do not hide the others.
#[test]
fn odd_keys_are_passed_over() {
    let pair = Pair::new();
    let mut keys = pair.server.keys();
    let odd = json!([
        null, 1, "key", {}, {"kty": "EC"}, {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "ec"},
        {"kty": "RSA", "n": "", "e": "", "kid": "ec"}, {"kty": "RSA", "n": "AA", "e": "AQAB", "kid": "ec"},
        {"kty": "EC", "crv": "P-521", "x": "AA", "y": "AA"}, {"kty": "OKP", "crv": "Ed25519", "x": "AA"},
    ]);
    let all: Vec<_> =
        odd.as_array().unwrap().iter().chain(keys["keys"].as_array().unwrap()).cloned().collect();
    keys["keys"] = json!(all);
    pair.server.set(|conduct| conduct.keys = Some(keys));
    assert!(pair.log_in().is_ok());
    for set in [json!({"keys": []}), json!({"keys": [{"kty": "oct", "k": "AA", "alg": "HS256"}]})] {
        let pair = Pair::conduct(|conduct| conduct.keys = Some(set));
        assert!(token(pair.log_in()).contains("no key"));
    }
}
