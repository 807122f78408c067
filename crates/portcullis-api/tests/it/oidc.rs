//! Logins at a provider: what binds them to a browser, who gets in, and floods.

use std::time::Duration;

use portcullis_api::{Limits, OidcLogin};
use portcullis_identity::{Change, Role};
use portcullis_oidc::{Provider, Settings};
use portcullis_testkit::oidc::{CLIENT, Conduct, TestProvider};
use serde_json::{Value, json};

use crate::client::Answer;
use crate::server::{NOW_MS, Server};

const CALLBACK: &str = "/login/oidc/callback";

/// A server whose users log in at a provider.
struct Pair {
    provider: TestProvider,
    server: Server,
}

/// A login that a browser began: where it goes, and its cookie.
struct Begun {
    url: String,
    cookie: String,
}

impl Pair {
    fn start() -> Pair {
        Pair::with(None, Duration::from_secs(5))
    }

    fn with(redirect: Option<&str>, timeout: Duration) -> Pair {
        Pair::with_sites(redirect, timeout, None)
    }

    fn with_sites(
        redirect: Option<&str>,
        timeout: Duration,
        sites: Option<Vec<(String, Vec<String>)>>,
    ) -> Pair {
        let provider = TestProvider::start(NOW_MS / 1000).unwrap();
        let settings = Settings {
            issuer: provider.issuer(),
            client_id: CLIENT.to_owned(),
            client_secret_file: None,
            scopes: vec!["openid".to_owned()],
            ca: None,
            groups_claim: "groups".to_owned(),
            timeout,
        };
        let groups = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let login = OidcLogin {
            provider: Provider::new(settings).unwrap(),
            name: "Example".to_owned(),
            redirect: redirect.map(str::to_owned),
            roles: vec![
                (Role::Viewer, groups(&["staff"])),
                (Role::Admin, groups(&["waf-admins", "on-call"])),
            ],
            sites,
        };
        Pair { provider, server: Server::with_oidc(Limits::default(), login) }
    }

    fn conduct(change: impl FnOnce(&mut Conduct)) -> Pair {
        let pair = Pair::start();
        pair.provider.set(change);
        pair
    }

    fn begin(&self) -> Begun {
        let answer = self.server.ask("GET", "/login/oidc").send();
        assert_eq!(answer.status, 303, "{}", answer.text());
        let set = answer.header("set-cookie").unwrap();
        for part in ["__Host-portcullis-login=", "; Path=/", "; Secure", "; HttpOnly", "; SameSite=Lax"] {
            assert!(set.contains(part), "{set}");
        }
        let cookie = set.split(';').next().unwrap().to_owned();
        Begun { url: answer.header("location").unwrap().to_owned(), cookie }
    }

    /// The target with which a browser comes back.
    fn back(&self, begun: &Begun) -> String {
        let back = self.provider.log_in(&begun.url).unwrap();
        format!("{CALLBACK}?code={}&state={}&scope=openid", encoded(&back.code), back.state)
    }

    fn log_in(&self) -> Answer {
        let begun = self.begin();
        self.server.ask("GET", &self.back(&begun)).header("Cookie", &begun.cookie).send()
    }

    fn result(&self, result: &str) -> bool {
        let series = format!("portcullis_api_oidc_logins_total{{result=\"{result}\"}} ");
        let text = self.server.registry.render();
        text.lines().any(|line| line.strip_prefix(&series).is_some_and(|count| count != "0"))
    }
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn kind(answer: &Answer) -> String {
    answer.json()["type"].as_str().unwrap().trim_start_matches("urn:portcullis:problem:").to_owned()
}

/// The session's cookie of an answer.
fn session(answer: &Answer) -> String {
    let set = answer.head.lines().find_map(|line| line.split_once(": __Host-portcullis="));
    let (_, set) = set.unwrap_or_else(|| panic!("{}", answer.text()));
    assert!(set.contains("SameSite=Strict") && set.contains("HttpOnly") && set.contains("Secure"), "{set}");
    format!("__Host-portcullis={}", set.split(';').next().unwrap())
}

#[test]
fn a_login_begins_a_session() {
    let pair = Pair::start();
    let methods = pair.server.ask("GET", "/login/methods").send().json();
    let url = "/api/v1/login/oidc";
    assert_eq!(methods, json!({"password": true, "oidc": {"name": "Example", "url": url}}));
    let answer = pair.log_in();
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")), "{}", answer.text());
    // The browser forgets the login's cookie.
    assert!(answer.head.contains("__Host-portcullis-login=; Path=/") && answer.head.contains("Max-Age=0"));
    let cookie = session(&answer);
    let shown = pair.server.ask("GET", "/session").header("Cookie", &cookie).send().json();
    assert_eq!((&shown["name"], &shown["role"]), (&json!("anna"), &json!("admin")));
    let users = pair.server.ask("GET", "/users").header("Cookie", &cookie).send().json();
    let user = &users["items"][0];
    let expected = json!({"issuer": pair.provider.issuer(), "subject": "user-1"});
    assert_eq!((&user["origin"], &user["provider"]), (&json!("oidc"), &expected));
    assert_eq!(pair.server.actions(), ["user.create", "login"]);
    assert!(pair.result("ok"));
    // There is no password, and there are no codes, to change.
    for (method, path, body) in [
        ("POST", "/session/password", json!({"password": "a", "new_password": "another fine password"})),
        ("POST", "/session/totp", json!({})),
    ] {
        let csrf = shown["csrf_token"].as_str().unwrap();
        let ask = pair.server.ask(method, path).header("Cookie", &cookie).header("X-CSRF-Token", csrf);
        let refused = ask.header("Origin", &pair.server.origin()).json(body).send();
        assert_eq!(refused.status, 409, "{path}: {}", refused.text());
    }
    assert_eq!(pair.server.log_in("anna", "").status, 401);
}

#[test]
fn without_a_provider_there_are_passwords() {
    let server = Server::start();
    assert_eq!(server.ask("GET", "/login/methods").send().json(), json!({"password": true, "oidc": null}));
    for path in ["/login/oidc", CALLBACK] {
        let answer = server.ask("GET", path).send();
        assert_eq!((answer.status, &*kind(&answer)), (409, "no-provider"), "{path}");
    }
}

/// Cookie, state and code belong together; each alone, or of another login, is worth nothing.
#[test]
fn a_callback_is_for_the_browser_that_began() {
    let pair = Pair::start();
    let (one, other) = (pair.begin(), pair.begin());
    let target = pair.back(&one);
    let ask = |target: &str, cookie: Option<&str>| {
        let ask = pair.server.ask("GET", target);
        let ask = match cookie {
            Some(cookie) => ask.header("Cookie", cookie),
            None => ask,
        };
        ask.send()
    };
    let twice = format!("{}; {}", one.cookie, other.cookie);
    let of_session = one.cookie.replace("-login", "");
    let no_state = target.split("&state").next().unwrap();
    let own = Some(&*one.cookie);
    let cases = [
        (target.clone(), None),
        (target.clone(), Some(&*other.cookie)),
        (target.clone(), Some("__Host-portcullis-login=")),
        (target.clone(), Some(&*of_session)),
        (target.clone(), Some(&*twice)),
        (no_state.to_owned(), own),
        (format!("{no_state}&state="), own),
        (format!("{no_state}&state=%00"), own),
        (CALLBACK.to_owned(), own),
    ];
    for (target, cookie) in &cases {
        let cookie = *cookie;
        let answer = ask(target, cookie);
        assert_eq!((answer.status, &*kind(&answer)), (401, "oidc-login"), "{target} {cookie:?}");
        assert_eq!(answer.header("set-cookie"), None);
    }
    // Twice the same parameter is no request.
    assert_eq!(ask(&format!("{target}&state=a"), Some(&one.cookie)).status, 400);
    assert_eq!(pair.provider.asked("/token"), 0);
    assert_eq!(ask(&target, Some(&one.cookie)).status, 303);
    // Once.
    assert_eq!(ask(&target, Some(&one.cookie)).status, 401);
    assert_eq!(pair.provider.asked("/token"), 1);
    assert!(pair.result("invalid"));
}

#[test]
fn a_login_takes_ten_minutes_at_most() {
    let pair = Pair::conduct(|conduct| conduct.claims = json!({"exp": NOW_MS / 1000 + 3600}));
    let begun = pair.begin();
    let target = pair.back(&begun);
    pair.server.pass(600);
    assert_eq!(pair.server.ask("GET", &target).header("Cookie", &begun.cookie).send().status, 401);
}

/// A page of another site must not begin logins, and cannot: no frame, no image, no link.
#[test]
fn pages_of_other_sites_do_not_begin_logins() {
    let pair = Pair::start();
    for site in ["cross-site", "same-site"] {
        let answer = pair.server.ask("GET", "/login/oidc").header("Sec-Fetch-Site", site).send();
        assert_eq!((answer.status, answer.header("set-cookie")), (403, None), "{site}");
    }
    let begun = pair.begin();
    let target = pair.back(&begun);
    // The way back comes from another site, and that is right.
    let ask = pair.server.ask("GET", &target).header("Cookie", &begun.cookie);
    assert_eq!(ask.header("Sec-Fetch-Site", "cross-site").send().status, 303);
}

#[test]
fn the_role_is_computed_anew_at_each_login() {
    let pair = Pair::conduct(|conduct| conduct.claims = json!({"groups": ["staff", "on-call"]}));
    let cookie = session(&pair.log_in());
    let role = |cookie: &str| pair.server.ask("GET", "/session").header("Cookie", cookie).send();
    assert_eq!(role(&cookie).json()["role"], "admin");
    pair.provider.set(|conduct| conduct.claims = json!({"groups": "staff"}));
    let again = session(&pair.log_in());
    // Of older sessions, too.
    assert_eq!(
        (role(&cookie).json()["role"].as_str(), role(&again).json()["role"].as_str()),
        (Some("viewer"), Some("viewer"))
    );
    // Without a group there is no login, and the sessions end.
    for groups in [json!(["guests"]), json!([]), json!(["STAFF", "staff ", "waf-admins2"]), json!("")] {
        pair.provider.set(|conduct| conduct.claims = json!({"groups": groups}));
        let refused = pair.log_in();
        assert_eq!((refused.status, &*kind(&refused)), (403, "no-role"), "{groups}");
        assert!(refused.text().contains("none of your groups"), "{}", refused.text());
        assert_eq!(refused.header("set-cookie"), None);
    }
    assert_eq!((role(&cookie).status, role(&again).status), (401, 401));
    assert!(pair.result("no_role"));
}

/// Who has no group with a site gets in nowhere, and what the groups give counts at each login.
#[test]
fn the_sites_are_those_of_the_groups() {
    let of = |site: &str, group: &str| (site.to_owned(), vec![group.to_owned()]);
    let sites = vec![of("shop", "shop-team"), of("blog", "blog-team"), of("*", "soc")];
    let pair = Pair::with_sites(None, Duration::from_secs(5), Some(sites));
    for (groups, expected) in [
        (json!(["staff", "shop-team"]), Some(json!(["shop"]))),
        (json!(["staff", "shop-team", "blog-team"]), Some(json!(["blog", "shop"]))),
        (json!(["staff", "soc", "shop-team"]), Some(Value::Null)),
        (json!(["on-call"]), Some(Value::Null)),
        (json!(["staff"]), None),
        (json!(["staff", "shop", "*", "SHOP-TEAM"]), None),
        (json!(["shop-team"]), None),
    ] {
        pair.provider.set(|conduct| conduct.claims = json!({"groups": groups}));
        let answer = pair.log_in();
        match expected {
            Some(sites) => {
                let session = pair.server.ask("GET", "/session").header("Cookie", &session(&answer)).send();
                assert_eq!(session.json()["sites"], sites, "{groups}");
            }
            None => assert_eq!((answer.status, &*kind(&answer)), (403, "no-role"), "{groups}"),
        }
    }
}

#[test]
fn disabled_users_and_refusals_are_told() {
    let pair = Pair::start();
    pair.log_in();
    let disabled = Change { disabled: Some(true), ..Change::default() };
    let by = portcullis_identity::Actor::new("test");
    pair.server.identities.change_user("anna", None, &disabled, &by, pair.server.now()).unwrap();
    let refused = pair.log_in();
    assert!(refused.status == 403 && refused.text().contains("disabled"), "{}", refused.text());
    // The provider says no.
    let begun = pair.begin();
    let state = pair.provider.log_in(&begun.url).unwrap().state;
    let target = format!("{CALLBACK}?error=access_denied%3Cscript%3E%0A&state={state}");
    let ask = || pair.server.ask("GET", &target).header("Cookie", &begun.cookie);
    let page = ask().header("Accept", "text/html,application/xhtml+xml");
    let answer = crate::client::raw(pair.server.address, page_text(&page).as_bytes()).unwrap();
    assert_eq!((answer.status, answer.header("content-type")), (401, Some("text/html; charset=utf-8")));
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(body.contains("access_denied&lt;script&gt;") && !body.contains("<script>"), "{body}");
    assert!(answer.header("content-security-policy").is_some());
    // And with this the login is over.
    assert_eq!(ask().send().status, 401);
    assert!(pair.result("disabled") && pair.result("denied"));
}

fn page_text(ask: &crate::client::Ask<'_>) -> String {
    let headers: String = ask.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n", ask.target, ask.address)
}

/// RFC 9207.
#[test]
fn an_answer_of_another_provider_is_refused() {
    let pair = Pair::start();
    let begun = pair.begin();
    let target = format!("{}&iss=https%3A%2F%2Fevil.example", pair.back(&begun));
    let answer = pair.server.ask("GET", &target).header("Cookie", &begun.cookie).send();
    assert_eq!((answer.status, &*kind(&answer)), (401, "oidc-login"), "{}", answer.text());
    assert_eq!(pair.provider.asked("/token"), 0);
    let begun = pair.begin();
    let target = format!("{}&iss={}", pair.back(&begun), encoded(&pair.provider.issuer()));
    assert_eq!(pair.server.ask("GET", &target).header("Cookie", &begun.cookie).send().status, 303);
}

/// A provider that is away says nothing of itself to strangers, and locks nobody out.
#[test]
fn a_lost_provider_leaves_local_users_alone() {
    let pair = Pair::conduct(|conduct| {
        let path = "/.well-known/openid-configuration".to_owned();
        conduct.answers.insert(path, (500, Vec::new(), b"secret trace".to_vec()));
    });
    pair.server.user("root", Role::Admin);
    for _ in 0..50 {
        let answer = pair.server.ask("GET", "/login/oidc").send();
        assert_eq!((answer.status, &*kind(&answer)), (502, "provider"));
        assert!(!answer.text().contains("secret") && !answer.text().contains(" 500"), "{}", answer.text());
    }
    // It was asked once, and the audit trail does not grow with each of them.
    assert_eq!(pair.provider.asked("/.well-known/openid-configuration"), 1);
    let failed = pair.server.actions().iter().filter(|action| *action == "login.failed").count();
    assert_eq!(failed, 10);
    assert_eq!(pair.server.log_in("root", crate::server::PASSWORD).status, 200);
    assert!(pair.result("provider"));
}

/// A provider that stalls takes few threads: passwords are computed meanwhile.
#[test]
fn a_slow_provider_does_not_hold_up_local_users() {
    let pair = Pair::with(None, Duration::from_secs(20));
    pair.server.user("root", Role::Admin);
    pair.provider.set(|conduct| {
        conduct.delays.insert("/.well-known/openid-configuration".to_owned(), Duration::from_secs(1));
    });
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asks: Vec<_> =
            (0..20).map(|_| scope.spawn(|| pair.server.ask("GET", "/login/oidc").send().status)).collect();
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(pair.server.log_in("root", crate::server::PASSWORD).status, 200);
        asks.into_iter().map(|ask| ask.join().unwrap()).collect()
    });
    let busy = statuses.iter().filter(|status| **status == 503).count();
    assert!(statuses.iter().all(|status| [303, 503].contains(status)) && busy >= 8, "{statuses:?}");
    assert_eq!(pair.provider.asked("/.well-known/openid-configuration"), 1);
}

/// Whoever begins many logins forgets their own.
#[test]
fn logins_that_have_begun_are_bounded() {
    let pair = Pair::start();
    let first = pair.begin();
    let target = pair.back(&first);
    let all: Vec<Begun> = (0..64).map(|_| pair.begin()).collect();
    assert_eq!(pair.server.ask("GET", &target).header("Cookie", &first.cookie).send().status, 401);
    let last = all.last().unwrap();
    let target = pair.back(last);
    assert_eq!(pair.server.ask("GET", &target).header("Cookie", &last.cookie).send().status, 303);
}

/// Codes that are made up make the provider work, so a network that fails has to wait.
#[test]
fn made_up_codes_are_slowed_down() {
    let pair = Pair::start();
    let guess = || {
        let begun = pair.begin();
        let state = pair.provider.log_in(&begun.url).unwrap().state;
        let target = format!("{CALLBACK}?code=guess&state={state}");
        pair.server.ask("GET", &target).header("Cookie", &begun.cookie).send().status
    };
    let statuses: Vec<u16> = (0..8).map(|_| guess()).collect();
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429, 429, 429]);
    assert_eq!(pair.provider.asked("/token"), 5);
    pair.server.pass(1);
    assert_eq!(pair.log_in().status, 303);
    assert!(pair.result("busy"));
}

#[test]
fn the_way_back_is_where_the_document_says() {
    let pair = Pair::start();
    let by_host = pair.provider.log_in(&pair.begin().url).unwrap().redirect_uri;
    assert_eq!(by_host, format!("{}/api/v1{CALLBACK}", pair.server.origin()));
    let pair = Pair::with(Some("https://waf.internal:9443"), Duration::from_secs(5));
    let named = pair.provider.log_in(&pair.begin().url).unwrap().redirect_uri;
    assert_eq!(named, format!("https://waf.internal:9443/api/v1{CALLBACK}"));
}

/// A session that was there before ends, as with passwords.
#[test]
fn a_login_makes_a_new_session() {
    let pair = Pair::start();
    pair.server.user("mallory", Role::Viewer);
    let (planted, _) = pair.server.session("mallory");
    let begun = pair.begin();
    let cookies = format!("{planted}; {}", begun.cookie);
    let answer = pair.server.ask("GET", &pair.back(&begun)).header("Cookie", &cookies).send();
    assert_ne!(session(&answer), planted);
    assert_eq!(pair.server.ask("GET", "/session").header("Cookie", &planted).send().status, 401);
}
