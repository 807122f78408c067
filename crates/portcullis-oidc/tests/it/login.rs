use portcullis_oidc::{OidcError, Provider, Settings};
use portcullis_testkit::oidc::{CLIENT, SUBJECT, Sign};
use serde_json::json;

use crate::{BACK, NOW, Pair};

#[test]
fn a_user_is_told_with_groups() {
    for sign in [Sign::Es256, Sign::Rs256, Sign::Ps256] {
        let pair = Pair::conduct(|conduct| conduct.sign = sign.clone());
        let subject = pair.log_in().unwrap();
        assert_eq!((subject.issuer, &*subject.subject), (pair.server.issuer(), SUBJECT), "{sign:?}");
        assert_eq!((&*subject.name, subject.groups), ("anna", vec!["waf-admins".to_owned()]));
        assert_eq!(pair.server.asked("/userinfo"), 0);
    }
}

/// The document and the keys are fetched once an hour.
#[test]
fn what_is_known_is_kept() {
    let pair = Pair::new();
    let asked = || (pair.server.asked("/.well-known/openid-configuration"), pair.server.asked("/jwks"));
    pair.server.set(|conduct| conduct.claims = json!({"exp": NOW + 8000}));
    for now in [NOW, NOW + 1, NOW + 3599] {
        pair.log_in_at(now).unwrap();
        assert_eq!(asked(), (1, 1));
    }
    pair.log_in_at(NOW + 3600).unwrap();
    assert_eq!(asked(), (2, 2));
}

#[test]
fn states_and_challenges_differ() {
    let pair = Pair::new();
    let (one, other) = (pair.client.begin(BACK, NOW).unwrap(), pair.client.begin(BACK, NOW).unwrap());
    for name in ["state", "nonce", "code_challenge"] {
        let value = |url: &str| {
            let (_, rest) = url.split_once(&format!("&{name}=")).unwrap();
            rest.split('&').next().unwrap().to_owned()
        };
        assert_ne!(value(&one.0), value(&other.0), "{name}");
        assert_eq!(value(&one.0).len(), 43);
    }
    // Nothing of it is shown in logs.
    assert!(!format!("{:?}", one.1).contains(one.1.state()));
}

/// A code that somebody else's login was given is worth nothing: the verifier is another one.
#[test]
fn codes_are_bound_to_their_login() {
    let pair = Pair::new();
    let (mine, _) = pair.client.begin(BACK, NOW).unwrap();
    let (_, pending) = pair.client.begin(BACK, NOW).unwrap();
    let stolen = pair.server.log_in(&mine).unwrap().code;
    let result = pair.client.finish(&pending, &stolen, NOW);
    assert_eq!(result, Err(OidcError::Refused("invalid_grant".to_owned())));
    // Even by a provider that does not look at the verifier: the nonce is another one, too.
    pair.server.set(|conduct| conduct.lax = true);
    let stolen = pair.server.log_in(&mine).unwrap().code;
    assert!(crate::token(pair.client.finish(&pending, &stolen, NOW)).contains("`nonce`"));
}

#[test]
fn a_code_works_once() {
    let pair = Pair::new();
    let (url, pending) = pair.client.begin(BACK, NOW).unwrap();
    let back = pair.server.log_in(&url).unwrap();
    assert!(pair.client.finish(&pending, &back.code, NOW).is_ok());
    let again = pair.client.finish(&pending, &back.code, NOW);
    assert_eq!(again, Err(OidcError::Refused("invalid_grant".to_owned())));
}

/// RFC 9207: an answer says whose it is, and by a provider that promises so it must.
#[test]
fn answers_of_other_providers_are_refused() {
    let pair = Pair::new();
    let issuer = pair.server.issuer();
    assert_eq!(pair.client.check_issuer(Some(&issuer), NOW), Ok(()));
    assert_eq!(pair.client.check_issuer(None, NOW), Ok(()));
    for other in ["https://evil.example", "", &format!("{issuer}/")] {
        assert!(matches!(pair.client.check_issuer(Some(other), NOW), Err(OidcError::Refused(_))), "{other}");
    }
    let strict = Pair::conduct(|conduct| {
        conduct.document = json!({"authorization_response_iss_parameter_supported": true});
    });
    assert!(matches!(strict.client.check_issuer(None, NOW), Err(OidcError::Refused(_))));
}

/// The secret goes where the provider takes it, and is read anew: it can be changed without a restart.
#[test]
fn the_secret_is_shown_as_the_provider_takes_it() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("secret");
    std::fs::write(&file, "a:b c%\n").unwrap();
    let pair = Pair::with(|settings| settings.client_secret_file = Some(file.clone()));
    pair.log_in().unwrap();
    let (authorization, form) = pair.server.last("/token").unwrap();
    // portcullis:a%3Ab+c%25
    assert_eq!(authorization.as_deref(), Some("Basic cG9ydGN1bGxpczphJTNBYitjJTI1"));
    assert!(!form.contains_key("client_secret") && !form.contains_key("client_id"));
    std::fs::write(&file, "new").unwrap();
    let methods = json!({"token_endpoint_auth_methods_supported": ["private_key_jwt", "client_secret_post"]});
    pair.server.set(|conduct| conduct.document = methods);
    pair.log_in_at(NOW + 3600).unwrap_err();
    let (authorization, form) = pair.server.last("/token").unwrap();
    let text = |name: &str| form.get(name).map(String::as_str);
    assert_eq!((authorization, text("client_id"), text("client_secret")), (None, Some(CLIENT), Some("new")));
    pair.server.set(|conduct| {
        conduct.document = json!({"token_endpoint_auth_methods_supported": ["private_key_jwt"]});
    });
    assert!(crate::provider(pair.log_in_at(NOW + 7200)).contains("neither by Basic nor in the form"));
    std::fs::remove_file(&file).unwrap();
    assert!(crate::provider(pair.log_in_at(NOW + 10_800)).contains("client_secret_file"));
}

#[test]
fn a_public_client_has_no_secret() {
    let pair = Pair::new();
    pair.log_in().unwrap();
    let (authorization, form) = pair.server.last("/token").unwrap();
    assert_eq!((authorization, form.get("client_id").map(String::as_str)), (None, Some(CLIENT)));
}

#[test]
fn files_that_cannot_be_read_stop_the_start() {
    let place = tempfile::tempdir().unwrap();
    let (missing, empty, huge) =
        (place.path().join("no"), place.path().join("empty"), place.path().join("huge"));
    std::fs::write(&empty, "\n").unwrap();
    std::fs::write(&huge, "x".repeat(5000)).unwrap();
    let settings = |secret, ca| Settings {
        issuer: "https://login.example".to_owned(),
        client_id: CLIENT.to_owned(),
        client_secret_file: secret,
        scopes: Vec::new(),
        ca,
        groups_claim: "groups".to_owned(),
        timeout: std::time::Duration::from_secs(1),
    };
    for file in [&missing, &empty, &huge] {
        let wrong = Provider::new(settings(Some(file.clone()), None)).unwrap_err();
        assert!(wrong.contains("client_secret_file") && wrong.contains(file.to_str().unwrap()), "{wrong}");
    }
    let wrong = Provider::new(settings(None, Some(missing))).unwrap_err();
    assert!(wrong.contains("admin.oidc.ca"), "{wrong}");
}

/// The claim may be missing in the ID token, and elsewhere than at the top.
#[test]
fn groups_come_from_the_token_or_from_userinfo() {
    let pair = Pair::conduct(|conduct| {
        conduct.claims = json!({"groups": null, "preferred_username": null});
        conduct.userinfo = json!({"sub": SUBJECT, "groups": "one", "email": "anna@shop.example"});
    });
    let subject = pair.log_in().unwrap();
    assert_eq!((&*subject.name, subject.groups), ("anna@shop.example", vec!["one".to_owned()]));
    assert_eq!(pair.server.last("/userinfo").unwrap().0.as_deref(), Some("Bearer access"));
    // Nowhere: no groups.
    pair.server.set(|conduct| conduct.userinfo = json!({"sub": SUBJECT}));
    let subject = pair.log_in().unwrap();
    assert_eq!((&*subject.name, subject.groups), (SUBJECT, Vec::new()));
    let deep = Pair::with(|settings| settings.groups_claim = "realm_access.roles".to_owned());
    deep.server.set(|conduct| conduct.claims = json!({"realm_access": {"roles": ["a", "b"]}}));
    assert_eq!(deep.log_in().unwrap().groups, ["a", "b"]);
    for odd in [json!(1), json!({"admin": true}), json!(["a", 1])] {
        pair.server.set(|conduct| conduct.claims = json!({"groups": odd}));
        assert!(crate::token(pair.log_in()).contains("`groups` is neither"));
    }
}
