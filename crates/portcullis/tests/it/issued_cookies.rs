//! Cookies that the application has set, in the running program: they pass when they come back unchanged.

use std::os::unix::fs::PermissionsExt as _;

use portcullis_testkit::process::{Signal, signal};
use portcullis_testkit::shared_store::{Kind, SharedStore};
use portcullis_testkit::upstream::Server;

use crate::served::{Response, Served, application, says, until};

const SEMANTIC: &str = "mode = \"semantic\"";
/// `{"_flashes":[["error","http://10.0.0.5:9090/metrics is watched already"]]}`, as Flask keeps it.
const SESSION: &str = "eyJfZmxhc2hlcyI6W1siZXJyb3IiLCJodHRwOi8vMTAuMC4wLjU6OTA5MC9tZXRyaWNzIGlzIHdhdGNo\
                       ZWQgYWxyZWFkeSJdXX0";
/// `{"saved":"http://10.0.0.5:9091/metrics"}`
const CHANGED: &str = "eyJzYXZlZCI6Imh0dHA6Ly8xMC4wLjAuNTo5MDkxL21ldHJpY3MifQ";
/// The query of a saved search.
const RECENT: &str = "1' UNION SELECT user, password FROM users WHERE 1=1-- -";

/// An application that sets three cookies at `/login`, and at `/echo?` writes what it is asked for into one.
fn site(settings: &str) -> (Server, Served) {
    let application = issuer();
    let served = Served::start_site(&application, settings, "");
    (application, served)
}

fn issuer() -> Server {
    application(|request| {
        let field = |value: String| ("Set-Cookie".to_owned(), value);
        let plain = says("hello");
        let set = match request.target.split_once('?') {
            None if request.target == "/login" => vec![
                field(format!("session={SESSION}; HttpOnly; Path=/; SameSite=Lax")),
                field(format!("recent={RECENT}")),
                field("theme=dark; Max-Age=9".to_owned()),
            ],
            Some(("/echo", text)) => vec![field(format!("echo=${{jndi:{text}}}; Path=/"))],
            _ => Vec::new(),
        };
        Response { headers: [plain.headers, set].concat(), ..plain }
    })
}

fn with_cookies(served: &Served, cookies: &str) -> u16 {
    let head = format!("GET /work HTTP/1.1\r\nHost: a\r\nCookie: {cookies}\r\nConnection: close\r\n\r\n");
    served.raw(head).status()
}

#[test]
fn a_cookie_that_the_application_set_passes_and_a_stranger_is_refused() {
    let (_application, served) = site(SEMANTIC);
    let own = format!("theme=dark; session={SESSION}");
    assert_eq!(with_cookies(&served, &own), 403, "before it was set");
    assert_eq!(served.get("/login").status(), 200);
    served.counts("portcullis_issued_cookies{", 3.0);
    assert_eq!(with_cookies(&served, &own), 200);
    let issued = served.metrics();
    let series = |line: &&str| line.starts_with("portcullis_issued_cookie_findings_total{");
    let lines: Vec<&str> = issued.lines().filter(series).collect();
    assert!(lines.iter().any(|line| line.contains("issued") && line.ends_with(" 1")), "{lines:?}");
    for other in [
        own.replace(SESSION, CHANGED),
        format!("{own}; session=x"),
        format!("{own}; SESSION=x"),
        format!("{own}\r\nCookie: a=1"),
        format!("{own}; last_page=http://10.0.0.5:9090/metrics"),
        format!("{own};cat /etc/passwd"),
    ] {
        assert_eq!(with_cookies(&served, &other), 403, "{other}");
    }
    served.counts("portcullis_issued_cookies_declined_total{", 0.0);
    served.counts("portcullis_issued_cookie_rotations_total{", 0.0);
    assert!(served.metric("portcullis_issued_cookie_bytes{") >= 24.0);
}

/// A restart, whether orderly or after a crash, and a reload. A damaged file is no reason not to start.
#[test]
fn a_cookie_is_known_after_a_restart() {
    let application = issuer();
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join("issued-cookies");
    let more = format!("[data]\nfolder = \"{}\"\n", data.path().display());
    let start = || Served::start_site(&application, SEMANTIC, &more);
    let own = format!("theme=dark; session={SESSION}");

    let first = start();
    assert_eq!(first.get("/login").status(), 200);
    signal(first.id(), Signal::HUP).unwrap();
    first.counts("portcullis_policy_generation", 2.0);
    assert_eq!(with_cookies(&first, &own), 200, "after a reload");
    first.stop();
    let files = ["key", "site.hashes"].map(|name| folder.join(name));
    for file in &files {
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let second = start();
    assert_eq!(with_cookies(&second, &own), 200);
    assert_eq!(with_cookies(&second, &own.replace(SESSION, CHANGED)), 403);
    second.stop();

    let whole = std::fs::read(&files[1]).unwrap();
    std::fs::write(&files[1], &whole[..whole.len() / 2]).unwrap();
    let third = start();
    assert_eq!(with_cookies(&third, &own), 403);
    let said = std::fs::read_to_string(third.folder.path().join("output")).unwrap();
    assert!(said.contains("the file is damaged") && said.contains("site.hashes.damaged now"), "{said}");
    third.stop();
}

/// A user who logs in at one node is known at the other; without Redis each node knows its own, at once.
#[test]
fn nodes_share_cookies_through_redis() {
    let application = issuer();
    let redis = SharedStore::start(Kind::Redis, None).unwrap();
    let more = format!("[store]\nredis = \"{}\"\n", redis.url());
    let start = || Served::start_site(&application, SEMANTIC, &more);
    let connected = "portcullis_issued_cookies_redis_connected";
    let own = format!("theme=dark; session={SESSION}");
    let nodes = [start(), start()];
    nodes.iter().for_each(|node| node.counts(connected, 1.0));
    assert_eq!(nodes[0].get("/login").status(), 200);
    nodes[1].counts("portcullis_issued_cookies_shared_total{direction=\"received\"}", 3.0);
    assert_eq!(with_cookies(&nodes[1], &own), 200);
    assert_eq!(with_cookies(&nodes[1], &own.replace(SESSION, CHANGED)), 403);
    // One that comes later knows what there is.
    let later = start();
    later.counts("portcullis_issued_cookies_shared_total{direction=\"received\"}", 3.0);
    assert_eq!(with_cookies(&later, &own), 200);

    drop(redis); // killed
    nodes.iter().for_each(|node| node.counts(connected, 0.0));
    let first = &nodes[0];
    assert_eq!((first.get("/echo?1").status(), with_cookies(first, &own)), (200, 200));
    until(|| first.metric("portcullis_issued_cookies_redis_failures_total") > 0.0);
    assert_eq!(first.metric("portcullis_issued_cookies_unshared_total{"), 0.0);
}

/// A Redis that comes back and knows nothing gets all from the nodes.
#[test]
fn nodes_bring_a_new_redis_what_they_know() {
    let application = issuer();
    let redis = SharedStore::start(Kind::Redis, None).unwrap();
    let more = format!("[store]\nredis = \"{}\"\n", redis.url());
    let start = || Served::start_site(&application, SEMANTIC, &more);
    let connected = "portcullis_issued_cookies_redis_connected";
    let own = format!("theme=dark; session={SESSION}");
    let node = start();
    node.counts(connected, 1.0);
    assert_eq!(node.get("/login").status(), 200);
    let address = redis.address();
    drop(redis); // killed
    node.counts(connected, 0.0);
    let redis = SharedStore::start(Kind::Redis, Some(address)).unwrap();
    node.counts(connected, 1.0);
    let last = start();
    until(|| with_cookies(&last, &own) == 200);
    drop(redis);
}

/// What acts in whoever reads the cookie counts, although the application wrote it.
#[test]
fn a_lookup_that_the_application_reflects_into_a_cookie_is_refused() {
    let (_application, served) = site(SEMANTIC);
    assert_eq!(served.get("/echo?ldap:x.example/a").status(), 200);
    served.counts("portcullis_issued_cookies{", 1.0);
    assert_eq!(with_cookies(&served, "echo=${jndi:ldap:x.example/a}"), 403);
}

/// In mode `both` the points of the CRS for such a cookie are withheld; in `crs` they count as SecLang says.
#[test]
fn rules_of_the_crs_do_not_decide_by_a_cookie_that_was_set() {
    let folder = match portcullis_testkit::crs::rules() {
        Ok(folder) => folder.display().to_string(),
        Err(missing) if std::env::var_os("CI").is_none() => return eprintln!("left out: {missing}"),
        Err(missing) => panic!("{missing}"),
    };
    let cookies = format!("theme=dark; recent={RECENT}");
    let ask = |mode: &str, first: &str| {
        let (_application, served) = site(&format!("mode = \"{mode}\"\nrules = {{ crs = \"{folder}\" }}"));
        served.get(first);
        let status = with_cookies(&served, &cookies);
        (status, with_cookies(&served, &format!("{cookies}; last={RECENT}")))
    };
    assert_eq!(ask("both", "/"), (403, 403));
    assert_eq!(ask("both", "/login"), (200, 403));
    assert_eq!(ask("crs", "/login"), (403, 403));
}

#[test]
fn a_site_can_do_without() {
    let (_application, served) = site(&format!("{SEMANTIC}\ncookies = {{ provenance = false }}"));
    assert_eq!(served.get("/login").status(), 200);
    assert_eq!(with_cookies(&served, &format!("session={SESSION}")), 403);
    assert!(!served.metrics().contains("portcullis_issued_cookies{"));
}

/// A value of JSON that the application never set, refused until the browser is told to drop it.
#[test]
fn a_cookie_for_which_a_client_is_refused_again_and_again_is_expired_once() {
    let application = issuer();
    let served = Served::start_site(&application, SEMANTIC, "");
    let ask = |target: &str, cookies: &str| {
        let head = format!(
            "GET {target} HTTP/1.1\r\nHost: www.shop.example\r\nCookie: {cookies}\r\nConnection: close\r\n\r\n"
        );
        served.raw(head)
    };
    let expired = |cookies: &str| {
        let answer = ask("/app/work", cookies);
        assert_eq!(answer.status(), 403, "{cookies}");
        let text = answer.text();
        let fields = text.lines().filter_map(|line| line.strip_prefix("Set-Cookie: "));
        fields.map(str::to_owned).collect::<Vec<_>>()
    };
    let found = "last_page=http://10.0.0.5:9090/metrics";
    let own = format!("session=1; {found}");
    assert!((0..2).all(|_| expired(&own).is_empty()));
    let fields = expired(&own);
    let of = |path: &str| format!("last_page=; Max-Age=0; Path={path}");
    let paths = ["/", "/app", "/app/"].map(of);
    let with_domain = paths.clone().map(|field| format!("{field}; Domain=www.shop.example"));
    assert_eq!(fields, [paths, with_domain].concat());
    assert!(expired(&own).is_empty(), "once");
    served.counts("portcullis_expired_cookies_total{", 1.0);
    let events = served.events(4);
    let says: Vec<bool> = events.iter().map(|event| event.contains("the cookie is expired")).collect();
    assert_eq!(says, [false, false, true, false]);

    // Somebody who puts a cookie beside that of a user, or into a request for it, cannot have it expired.
    for cookies in [format!("session=1; session={SESSION}"), format!("session=1; SESSION={SESSION}")] {
        assert!((0..5).all(|_| expired(&cookies).is_empty()), "{cookies}");
    }
    for _ in 0..5 {
        for cookies in ["session=1; theme=dark", &own.replace("9090", "9092")] {
            let answer = ask("/work?id=1'+UNION+SELECT+user,password+FROM+users--+-", cookies);
            assert!(answer.status() == 403 && answer.header("set-cookie").is_none(), "{cookies}");
        }
    }
    served.counts("portcullis_expired_cookies_total{", 1.0);
}

#[test]
fn cookies_are_not_expired_where_the_site_says_so_or_only_detects() {
    for settings in ["cookies = { expire_refused = false }", "engine = \"detection_only\""] {
        let application = issuer();
        let served = Served::start_site(&application, &format!("{SEMANTIC}\n{settings}"), "");
        for _ in 0..4 {
            let head = "GET / HTTP/1.1\r\nHost: a\r\nCookie: p=http://10.0.0.5:9090/metrics\r\nConnection: close\r\n\r\n";
            assert!(served.raw(head).header("set-cookie").is_none(), "{settings}");
        }
    }
}

/// What upstreams leave out is added, and nothing else is changed.
#[test]
fn cookies_get_the_attributes_that_they_lack() {
    let application = issuer();
    let settings =
        "mode = \"off\"\ncookies = { secure = true, http_only = [\"recent\"], same_site = \"strict\" }";
    let trusts = "[client_address]\ntrusted_proxies = [\"127.0.0.1\"]\n";
    let served = Served::start_site(&application, settings, trusts);
    let cookies = |more: &str| {
        let head = format!("GET /login HTTP/1.1\r\nHost: a\r\n{more}Connection: close\r\n\r\n");
        let text = served.raw(head).text();
        text.lines()
            .filter_map(|line| line.strip_prefix("Set-Cookie: "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let plain = [
        format!("session={SESSION}; HttpOnly; Path=/; SameSite=Lax"),
        format!("recent={RECENT}; HttpOnly; SameSite=Strict"),
        "theme=dark; Max-Age=9; SameSite=Strict".to_owned(),
    ];
    assert_eq!(cookies(""), plain);
    let secure = [
        format!("session={SESSION}; HttpOnly; Path=/; SameSite=Lax; Secure"),
        format!("recent={RECENT}; Secure; HttpOnly; SameSite=Strict"),
        "theme=dark; Max-Age=9; Secure; SameSite=Strict".to_owned(),
    ];
    assert_eq!(cookies("X-Forwarded-Proto: https\r\n"), secure);
}

/// Sites come after the stream has been read: at the start, and with reloads.
#[test]
fn a_site_that_comes_later_knows_what_was_told_of_it() {
    let application = issuer();
    let redis = SharedStore::start(Kind::Redis, None).unwrap();
    let more = format!("[store]\nredis = \"{}\"\n", redis.url());
    let first = Served::start_site(&application, SEMANTIC, &more);
    let named = |name: &str, text: String| text.replace("name = \"site\"", &format!("name = \"{name}\""));
    let later = Served::start_edited(application.address(), SEMANTIC, &more, |text| named("another", text));
    [&first, &later].iter().for_each(|node| node.counts("portcullis_issued_cookies_redis_connected", 1.0));
    assert_eq!(first.get("/login").status(), 200);
    let sent = "portcullis_issued_cookies_shared_total{direction=\"sent\"}";
    first.counts(sent, 3.0);
    // The stream is read by somebody who has no use for this, up to what another site was told last.
    assert_eq!(later.get("/login").status(), 200);
    later.counts(sent, 3.0);
    let document = later.folder.path().join("portcullis.toml");
    let text = std::fs::read_to_string(&document).unwrap();
    std::fs::write(&document, text.replace("\"another\"", "\"site\"")).unwrap();
    signal(later.id(), Signal::HUP).unwrap();
    later.counts("portcullis_policy_generation", 2.0);
    let own = format!("theme=dark; session={SESSION}");
    until(|| with_cookies(&later, &own) == 200);
}
