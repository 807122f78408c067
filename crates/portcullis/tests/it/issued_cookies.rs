//! Cookies that the application has set, in the running program: they pass when they come back unchanged.

use portcullis_testkit::upstream::Server;

use crate::served::{Response, Served, application, says};

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
    let application = application(|request| {
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
    });
    let served = Served::start_site(&application, settings, "");
    (application, served)
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
