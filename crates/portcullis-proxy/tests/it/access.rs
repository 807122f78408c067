//! Lists of clients: who is let in, who is refused, who is not inspected; files that change.

use crate::common::*;
use portcullis_event::{Action, ControlKind, DetectionMode, EngineMode};

const TRUSTED: &str = "client_address = { trusted_proxies = [\"127.0.0.1\"], header = \"x-forwarded-for\" }";

fn front(backend: &Backend, site: &str) -> Front {
    Front::start(&document(backend.address, TRUSTED, "", &format!("{RULES}{site}"), ""))
}

fn ask(front: &Front, path: &str, client: &str) -> u16 {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n\r\n");
    let mut connection = front.client();
    connection.send(request);
    status(&connection.response().0)
}

#[test]
fn bypass_wins_over_allow_and_allow_over_deny() {
    let backend = Backend::start(|_| ok("ok"));
    let front = front(
        &backend,
        "rate_limits = [{ name = \"l\", rate = 2, per = \"1h\", except = [\"10.1.0.0/16\"] }]\n\
         [sites.access]\nbypass = { networks = [\"10.0.0.1\"] }\nallow = { networks = [\"10.0.0.0/8\"] }\n\
         deny = { networks = [\"10.0.0.0/7\", \"2001:db8::/32\"] }\n",
    );
    let check = |client: &str, plain: u16, attack: u16| {
        assert_eq!((ask(&front, "/", client), ask(&front, "/attack", client)), (plain, attack), "{client}");
    };
    check("10.0.0.1", 200, 200);
    check("10.0.0.2", 200, 403);
    check("11.0.0.1", 403, 403);
    check("::ffff:11.0.0.1", 403, 403);
    check("2001:db8::1", 403, 403);
    check("192.0.2.1", 200, 403);
    // The limit holds for whom it counts, and not for who is let past it.
    assert_eq!([(); 3].map(|()| ask(&front, "/", "10.0.0.1")), [200; 3]);
    assert_eq!([(); 3].map(|()| ask(&front, "/", "10.1.0.1")), [200; 3]);
    assert_eq!([(); 3].map(|()| ask(&front, "/", "10.0.0.3")), [200, 200, 429]);
    let count = |decision: &str| {
        front.metric(&format!("portcullis_access_decisions_total{{site=\"site\",decision=\"{decision}\"}}"))
    };
    until(|| (count("bypassed"), count("allowed"), count("denied")) == (5.0, 8.0, 6.0));
    until(|| front.metric("portcullis_bytes_not_inspected_total{reason=\"bypassed\"}") > 0.0);
    front.counts("portcullis_bytes_not_inspected_total{reason=\"engine_off\"}", 0.0);
    let events = front.events(9);
    let denied: Vec<_> = events.iter().filter(|event| event.verdict.control.is_some()).collect();
    let control = denied[0].verdict.control.as_ref().unwrap();
    assert_eq!((control.by, &*control.name), (ControlKind::DenyList, "networks"));
    assert_eq!((denied[0].verdict.action, denied[0].verdict.status), (Action::Deny, Some(403)));
}

#[test]
fn all_others_can_be_refused_or_only_logged_and_routes_say_their_own() {
    let backend = Backend::start(|_| ok("ok"));
    let front = front(
        &backend,
        "access = { allow = { networks = [\"192.0.2.0/24\"] }, others = \"deny\", status = 404 }\n\
         [[sites.routes]]\npath = \"/open\"\naccess = { }\n\
         [[sites.routes]]\npath = \"/watch\"\n\
         access = { deny = { networks = [\"0.0.0.0/0\"] }, action = \"log\" }\n",
    );
    let ask = |path, client| ask(&front, path, client);
    assert_eq!((ask("/", "192.0.2.1"), ask("/", "198.51.100.1")), (200, 404));
    assert_eq!((ask("/open", "198.51.100.1"), ask("/watch", "198.51.100.1")), (200, 200));
    let events = front.events(2);
    assert_eq!(&*events[0].verdict.control.as_ref().unwrap().name, "others");
    assert_eq!((&*events[1].route, events[1].verdict.action), ("/watch", Action::Detect));
    front.counts("portcullis_access_decisions_total{site=\"site\",decision=\"logged\"}", 1.0);
}

#[test]
fn files_are_read_again_when_they_change() {
    let backend = Backend::start(|_| ok("ok"));
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("deny.txt");
    std::fs::write(&list, "192.0.2.1 # one\n").unwrap();
    // Of the document, for sites that say nothing themselves.
    let more = format!("access = {{ deny = {{ files = [\"{}\"] }} }}\n{TRUSTED}", list.display());
    let text = document(backend.address, &more, "", RULES, "");
    let front = Front::start(&text);
    let ask = |client| ask(&front, "/", client);
    assert_eq!((ask("192.0.2.1"), ask("192.0.2.2")), (403, 200));
    assert_eq!(*front.events(1)[0].verdict.control.as_ref().unwrap().name, *list.display().to_string());
    std::fs::write(&list, "192.0.2.2\n198.51.100.0/24\n").unwrap();
    until(|| ask("192.0.2.2") == 403);
    assert_eq!((ask("192.0.2.1"), ask("198.51.100.9")), (200, 403));
    let file = format!("portcullis_access_list_ranges{{file=\"{}\"}}", list.display());
    front.counts(&file, 2.0);
    // A bad file changes nothing, at a reload either.
    std::fs::write(&list, "192.0.2.1\nnonsense\n").unwrap();
    until(|| front.metric("portcullis_access_list_reloads_total{result=\"failed\"}") == 1.0);
    assert_eq!((ask("192.0.2.1"), ask("192.0.2.2")), (200, 403));
    let config = parse(&text);
    let error = front.proxy.reload(&config, &inspectors(&config)).unwrap_err().to_string();
    assert_eq!(error, format!("{}:2: `nonsense` is not an IP address", list.display()));
    std::fs::write(&list, "192.0.2.3\n").unwrap();
    front.proxy.reload(&config, &inspectors(&config)).unwrap();
    assert_eq!((ask("192.0.2.2"), ask("192.0.2.3")), (200, 403));
}

/// The lists of the whole document hold where no site is served, too.
#[test]
fn lists_hold_for_hosts_that_no_site_has() {
    let backend = Backend::start(|_| ok("ok"));
    let more = "client_address = { trusted_proxies = [\"127.0.0.1\"], header = \"x-forwarded-for\" }\n\
                access = { deny = { networks = [\"192.0.2.0/24\"] } }";
    let text =
        document(backend.address, more, "", RULES, "").replace("hosts = [\"*\"]", "hosts = [\"a.example\"]");
    let front = Front::start(&text);
    let mut client = front.client();
    for (host, from, expected) in [
        ("a.example", "192.0.2.7", 403),
        ("a.example", "198.51.100.7", 200),
        ("127.0.0.1", "192.0.2.7", 403),
        ("127.0.0.1", "198.51.100.7", 404),
        ("b.example", "192.0.2.7", 403),
    ] {
        client.send(
            format!("GET /attack%20not HTTP/1.1\r\nHost: {host}\r\nX-Forwarded-For: {from}\r\n\r\n")
                .replace("attack%20not", ""),
        );
        assert_eq!(status(&client.response().0), expected, "{host} {from}");
    }
    front.counts("portcullis_access_decisions_total{site=\"\",decision=\"denied\"}", 2.0);
}

/// Whatever refuses a request where nothing is inspected, its event says that no detector ran and that none
/// was enforced; where something is inspected, it names the detector.
#[test]
fn events_say_where_nothing_is_inspected() {
    let backend = Backend::start(|_| ok("ok"));
    let controls = "access = { deny = { networks = [\"192.0.2.0/24\"] } }\n\
                    rate_limits = [{ name = \"l\", rate = 1, per = \"1h\", key = [\"header:x-key\"] }]\n";
    let front = front(&backend, &format!("{controls}[[sites.routes]]\npath = \"/plain\"\nmode = \"off\"\n"));
    let ask = |path: &str, client: &str, more: &str| {
        let mut connection = front.client();
        connection.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n{more}\r\n"));
        status(&connection.response().0)
    };
    let (denied, plain) = ("192.0.2.7", "198.51.100.7");
    // Not inspected, so not refused either.
    assert_eq!(ask("/plain/attack", plain, ""), 200);
    for path in ["/plain/", "/"] {
        assert_eq!(ask(path, denied, ""), 403);
        let key = format!("X-Key: {path}\r\n");
        assert_eq!((ask(path, plain, &key), ask(path, plain, &key)), (200, 429));
    }
    let events = front.events(4);
    assert_eq!(events.len(), 4);
    assert_eq!(events.iter().filter(|event| event.route.contains("plain")).count(), 2, "{events:?}");
    for event in &events {
        let expected = match event.route.contains("plain") {
            true => (DetectionMode::Off, EngineMode::Off),
            false => (DetectionMode::Crs, EngineMode::Blocking),
        };
        assert_eq!((event.mode, event.engine), expected, "{event:?}");
        assert!(event.verdict.control.is_some() && event.matches.is_empty() && event.findings.is_empty());
        let mut line = Vec::new();
        event.write_json_line(&mut line);
        let line = String::from_utf8(line).unwrap();
        let (mode, engine) = (expected.0.name(), expected.1.name());
        assert!(line.contains(&format!("\"mode\":\"{mode}\"")), "{line}");
        assert!(line.contains(&format!("\"engine\":\"{engine}\"")), "{line}");
    }
}
