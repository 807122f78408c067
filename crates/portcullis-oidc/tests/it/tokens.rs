//! ID tokens that must not count.

use portcullis_testkit::oidc::{CLIENT, Sign};
use serde_json::{Value, json};

use crate::{NOW, Pair, token};

#[test]
fn signatures_that_do_not_count() {
    for (sign, why) in [
        (Sign::None, "not signed by RS256, PS256 or ES256"),
        (Sign::HmacWithPublicKey, "not signed by RS256, PS256 or ES256"),
        (Sign::OtherKey, "signature is wrong"),
        (Sign::Altered, "signature is wrong"),
    ] {
        let pair = Pair::conduct(|conduct| conduct.sign = sign.clone());
        let found = token(pair.log_in());
        assert!(found.contains(why), "{sign:?}: {found}");
    }
}

/// The header is the attacker's: what it says never widens what is accepted.
#[test]
fn headers_that_do_not_count() {
    for (header, why) in [
        (json!({"alg": "none"}), "not signed by"),
        (json!({"alg": "NONE"}), "not signed by"),
        (json!({"alg": "es256"}), "not signed by"),
        (json!({"alg": "HS256"}), "not signed by"),
        (json!({"alg": "RS256"}), "no key of its `kid` and `alg`"),
        (json!({"alg": "RS256", "kid": "rsa"}), "signature is wrong"),
        (json!({"alg": "PS256", "kid": "rsa"}), "signature is wrong"),
        (json!({"alg": "RS256", "kid": null}), "signature is wrong"),
        (json!({"alg": null}), "its header"),
        (json!({"alg": ["ES256"]}), "its header"),
        (json!({"kid": 7}), "its header"),
        (json!({"kid": "../../etc/passwd"}), "no key of its `kid` and `alg`"),
        (json!({"kid": "secret"}), "no key of its `kid` and `alg`"),
        (json!({"crit": ["exp"]}), "`crit`"),
    ] {
        let pair = Pair::conduct(|conduct| conduct.header = header.clone());
        let found = token(pair.log_in());
        assert!(found.contains(why), "{header}: {found}");
    }
    // Keys and addresses in the header are not looked at.
    let jwk = json!({"jwk": {"kty": "EC"}, "jku": "http://127.0.0.1:1/keys", "x5u": "http://127.0.0.1:1/"});
    assert!(Pair::conduct(|conduct| conduct.header = jwk).log_in().is_ok());
    assert!(Pair::conduct(|conduct| conduct.header = json!({"kid": null})).log_in().is_ok());
}

#[test]
fn claims_that_do_not_count() {
    let others = json!([CLIENT, "other"]);
    let cases: Vec<(Value, Option<&str>)> = vec![
        (json!({"iss": "https://evil.example"}), Some("`iss`")),
        (json!({"iss": null}), Some("`iss`")),
        (json!({"aud": "other"}), Some("`aud`")),
        (json!({"aud": null}), Some("`aud`")),
        (json!({"aud": []}), Some("`aud`")),
        (json!({"aud": ["other"]}), Some("`aud`")),
        (json!({"aud": "portcullis2"}), Some("`aud`")),
        (json!({"aud": [CLIENT]}), None),
        (json!({"aud": others}), Some("`azp`")),
        (json!({"aud": others, "azp": "other"}), Some("`azp`")),
        (json!({"aud": others, "azp": CLIENT}), None),
        (json!({"azp": "other"}), Some("`azp`")),
        (json!({"exp": NOW - 60}), Some("`exp`")),
        (json!({"exp": NOW - 59}), None),
        (json!({"exp": null}), Some("`exp`")),
        (json!({"exp": "9999999999"}), Some("`exp`")),
        (json!({"exp": 0}), Some("`exp`")),
        (json!({"exp": -1}), Some("`exp`")),
        (json!({"iat": NOW + 61}), Some("`iat`")),
        (json!({"iat": NOW + 60}), None),
        (json!({"iat": null}), Some("`iat`")),
        (json!({"nbf": NOW + 61}), Some("`nbf`")),
        (json!({"nbf": "soon"}), Some("`nbf`")),
        (json!({"nonce": "another"}), Some("`nonce`")),
        (json!({"nonce": null}), Some("`nonce`")),
        (json!({"sub": null}), Some("`sub`")),
        (json!({"sub": ""}), Some("`sub`")),
        (json!({"sub": 7}), Some("`sub`")),
        (json!({"sub": "a\nb"}), Some("`sub`")),
        (json!({"sub": "x".repeat(256)}), Some("`sub`")),
    ];
    let pair = Pair::new();
    for (claims, why) in cases {
        pair.server.set(|conduct| conduct.claims = claims.clone());
        match why {
            Some(why) => {
                let found = token(pair.log_in());
                assert!(found.contains(why), "{claims}: {found}");
            }
            None => assert!(pair.log_in().is_ok(), "{claims}"),
        }
    }
}

/// Whatever stands in place of a token: no panic, and no login.
#[test]
fn texts_that_are_no_token() {
    let pair = Pair::new();
    let head = "eyJhbGciOiJFUzI1NiJ9";
    for text in [
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        "...".to_owned(),
        "a.b.c".to_owned(),
        format!("{head}.."),
        format!("{head}.e30.AAAA.AAAA"),
        format!("{head}=.e30.AAAA"),
        format!("{head}.e30.A+/A"),
        format!("{head}.bm90IGpzb24.AAAA"),
        format!("{}.e30.AAAA", "A".repeat(100_000)),
        "é.é.é".to_owned(),
        // {"protected": ...}: JSON forms are not taken.
        "{\"payload\":\"e30\",\"signatures\":[]}".to_owned(),
    ] {
        pair.server.set(|conduct| conduct.tokens = json!({"id_token": text}));
        token(pair.log_in());
    }
    for missing in [json!({"id_token": null}), json!({"id_token": ["a"]}), json!({"id_token": 1})] {
        pair.server.set(|conduct| conduct.tokens = missing);
        crate::provider(pair.log_in());
    }
}

/// Userinfo is not signed: it counts for the same user only.
#[test]
fn userinfo_of_somebody_else_does_not_count() {
    for other in [json!({"sub": "user-2", "groups": ["waf-admins"]}), json!({"groups": ["waf-admins"]})] {
        let pair = Pair::conduct(|conduct| {
            conduct.claims = json!({"groups": null});
            conduct.userinfo = other;
        });
        assert!(token(pair.log_in()).contains("another user"));
    }
}
