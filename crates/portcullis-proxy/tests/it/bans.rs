//! Bans: what leads to one, whom it holds for, what is counted and told.

use crate::common::*;
use portcullis_event::{Action, ControlKind, EngineMode};

const TRUSTED: &str = "client_address = { trusted_proxies = [\"127.0.0.1\"], header = \"x-forwarded-for\" }";

fn get(target: &str, client: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n\r\n")
}

fn statuses(front: &Front, requests: &[(&str, &str)]) -> Vec<u16> {
    let mut client = front.client();
    let one = |(target, from): &(&str, &str)| {
        client.send(get(target, from));
        status(&client.response().0)
    };
    requests.iter().map(one).collect()
}

#[test]
fn a_client_that_attacks_again_and_again_is_banned() {
    let backend = Backend::start(|_| ok("ok"));
    let more =
        format!("{TRUSTED}\nban = {{ score = 20, duration = \"1h\", duration_max = \"1h\", status = 429 }}");
    let site = format!("{RULES}access = {{ bypass = {{ networks = [\"192.0.2.50\"] }} }}");
    let front = Front::start(&document(backend.address, &more, "", &site, ""));
    let (bad, good, trusted) = ("2001:db8::1", "2001:db8:0:1::1", "192.0.2.50");
    let attacks =
        [("/attack", bad), ("/", bad), ("/attack", bad), ("/", bad), ("/", "2001:db8::2"), ("/", good)];
    assert_eq!(statuses(&front, &attacks), [403, 200, 403, 429, 429, 200], "a /64 is one client");
    assert_eq!(statuses(&front, &[("/attack", trusted); 4]), [200; 4], "who is not inspected is not banned");
    let begun = "portcullis_bans_total{ban=\"all\"}";
    front.counts(begun, 1.0);
    front.counts("portcullis_ban_requests_total{ban=\"all\",action=\"block\"}", 2.0);
    until(|| front.metric("portcullis_banned_clients{ban=\"all\"}") == 1.0);
    until(|| front.lines().iter().any(|line| line == "ban `all`: 2001:db8::/64 for 3600 s"));
    let events = front.events(4);
    let control = events[2].verdict.control.as_ref().expect("a control");
    assert_eq!((control.by, &*control.name), (ControlKind::Ban, "all"));
    assert_eq!((events[2].verdict.action, events[2].verdict.status), (Action::Deny, Some(429)));
    assert_eq!(events[2].engine, EngineMode::Blocking, "as for requests that are inspected");
    assert!(events[2].verdict.reason.starts_with("The client is banned for another 3"), "{:?}", events[2]);

    let bans = front.proxy.bans();
    let list = bans.list();
    assert_eq!((list.len(), &*list[0].ban, list[0].client.as_str()), (1, "all", "2001:db8::/64"));
    assert!(list[0].left.as_secs() > 3500 && list[0].count == 1);
    assert_eq!(bans.lift(None, good.parse().unwrap()), 0);
    assert_eq!(bans.lift(Some("elsewhere"), bad.parse().unwrap()), 0);
    assert_eq!(bans.lift(None, "2001:db8::7".parse().unwrap()), 1);
    front.counts("portcullis_bans_lifted_total{ban=\"all\"}", 1.0);
    assert_eq!((bans.list().len(), statuses(&front, &[("/", bad)])), (0, vec![200]));
    assert_eq!(
        statuses(&front, &[("/attack", bad), ("/", bad)]),
        [403, 200],
        "its points are forgotten, too"
    );
}

#[test]
fn points_are_what_the_document_says() {
    let backend = Backend::start(|_| ok("ok"));
    let check = |ban: &str, requests: &[(&str, &str)], expected: &[u16]| {
        let site = format!(
            "rate_limits = [{{ name = \"l\", rate = 1, per = \"1h\", key = [\"header:x-key\"] }}]\n{RULES}ban = {{ {ban} }}"
        );
        let front = Front::start(&document(backend.address, TRUSTED, "", &site, ""));
        let mut client = front.client();
        let mut got = Vec::new();
        for (target, more) in requests {
            client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n{more}\r\n"));
            got.push(status(&client.response().0));
        }
        assert_eq!(got, expected, "{ban}");
    };
    let (attack, plain, limited) = (("/attack", ""), ("/", ""), ("/", "X-Key: 1\r\n"));
    check("score = 10", &[plain, limited, limited, limited, attack, plain], &[200, 200, 429, 429, 403, 403]);
    check(
        "score = 10, points = { blocked = 0, limited = 5 }",
        &[limited, limited, limited, attack],
        &[200, 429, 429, 403],
    );
    check("score = 10, action = \"log\"", &[attack, plain, attack], &[403, 200, 403]);
    check("score = 10, except = [\"127.0.0.0/8\"]", &[attack, plain], &[403, 200]);
    check(
        "enabled = false",
        &[attack, attack, attack, attack, attack, attack, plain],
        &[403, 403, 403, 403, 403, 403, 200],
    );
}

#[test]
fn the_anomaly_score_counts_where_it_is_asked_for() {
    let backend = Backend::start(|_| ok("ok"));
    let site = "rules = { directives = '''\nSecRule REQUEST_URI \"@contains odd\" \
        \"id:1,phase:1,pass,log,setvar:tx.blocking_inbound_anomaly_score=4\"\n''' }\n\
        ban = { score = 8, points = { anomaly = true } }";
    let front = Front::start(&document(backend.address, TRUSTED, "", site, ""));
    let from = "192.0.2.1";
    assert_eq!(
        statuses(&front, &[("/odd", from), ("/", from), ("/odd", from), ("/", from)]),
        [200, 200, 200, 403]
    );
}

#[test]
fn a_site_or_route_has_bans_of_its_own() {
    let backend = Backend::start(|_| ok("ok"));
    let more = format!("{TRUSTED}\nban = {{ score = 10 }}");
    let site = format!(
        "{RULES}[[sites.routes]]\npath = \"/api/\"\nban = {{ score = 20 }}\n\
         [[sites.routes]]\npath = \"/open/\"\nban = {{ enabled = false }}\n"
    );
    let front = Front::start(&document(backend.address, &more, "", &site, ""));
    let (a, b) = ("192.0.2.1", "192.0.2.2");
    let requests =
        [("/api/attack", a), ("/api/", a), ("/api/attack", a), ("/api/", a), ("/", a), ("/open/attack", a)];
    assert_eq!(statuses(&front, &requests), [403, 200, 403, 403, 200, 403]);
    assert_eq!(
        statuses(&front, &[("/attack", b), ("/", b), ("/api/", b), ("/open/", b)]),
        [403, 403, 200, 200]
    );
    let names: Vec<_> = front.proxy.bans().list().iter().map(|banned| banned.ban.to_string()).collect();
    assert!(names.contains(&"all".to_string()) && names.contains(&"site//api/".to_string()), "{names:?}");
}

#[test]
fn bans_outlive_a_restart_and_a_reload() {
    let backend = Backend::start(|_| ok("ok"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bans.json");
    let more =
        format!("{TRUSTED}\nban_file = '{}'\nban = {{ score = 10, duration = \"1h\" }}", file.display());
    let text = document(backend.address, &more, "", RULES, "");
    let (bad, kept) = ("192.0.2.1", "192.0.2.2");
    let front = Front::start(&text);
    assert_eq!(statuses(&front, &[("/attack", bad), ("/attack", kept), ("/", kept)]), [403, 403, 403]);
    let config = parse(&text);
    front.proxy.reload(&config, &inspectors(&config)).unwrap();
    assert_eq!(statuses(&front, &[("/", bad)]), [403]);
    until(|| std::fs::read_to_string(&file).is_ok_and(|text| text.lines().count() == 2));
    front.proxy.bans().lift(None, bad.parse().unwrap());
    front.proxy.drain();
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(written.lines().count(), 1, "what is lifted is written at the end: {written}");

    std::fs::write(&file, format!("{written}no ban\n")).unwrap();
    let front = Front::start(&text);
    assert_eq!(statuses(&front, &[("/", bad), ("/", kept)]), [200, 403]);
    assert!(front.lines()[0].contains("skipped 1 lines that are not bans"), "{:?}", front.lines());
    front.counts("portcullis_ban_file_errors_total", 1.0);
    let list = front.proxy.bans().list();
    assert!(list[0].left.as_secs() > 3500, "{list:?}");

    // Where the file cannot be written bans hold all the same.
    let more = format!("{TRUSTED}\nban_file = '/dev/null/bans'\nban = {{ score = 10, duration = \"1h\" }}");
    let front = Front::start(&document(backend.address, &more, "", RULES, ""));
    assert_eq!(statuses(&front, &[("/attack", bad), ("/", bad)]), [403, 403]);
    until(|| front.lines().iter().any(|line| line.contains("cannot save bans")));
    until(|| front.metric("portcullis_ban_file_errors_total") >= 1.0);
}

/// Rules for a Referer and for parameters; `logged` in a parameter is let through.
const REFERER: &str = "rules = { directives = '''
SecRule REQUEST_HEADERS:Referer|ARGS \"@contains attack\" \"id:1,phase:1,deny,log\"
SecRule REQUEST_HEADERS:Referer \"@contains logged\" \"id:2,phase:1,deny,log\"
SecRule ARGS \"@contains logged\" \"id:3,phase:1,pass,log\"
''' }\n";

fn behind_referer_rules(backend: &Backend) -> Front {
    let more = format!("{TRUSTED}\nban = {{ score = 20, points = {{ refused = 10 }} }}");
    Front::start(&document(backend.address, &more, "", REFERER, ""))
}

fn ask(client: &mut Client, target: &str, referer: &str, from: &str) -> u16 {
    client.send(format!(
        "GET {target} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {from}\r\nReferer: {referer}\r\n\r\n"
    ));
    status(&client.response().0)
}

/// A browser sends the address of a page with each style and picture of it: an attack in it is one offence,
/// whether the page was blocked or let through, and also while it is not there yet.
#[test]
fn a_referer_that_repeats_an_attack_is_no_further_offence() {
    let backend = Backend::start(|request| match request.line().contains("/slow") {
        true => Reply::Silence,
        false => ok("ok"),
    });
    let front = behind_referer_rules(&backend);
    let mut client = front.client();
    let pages = [("/page?q=attack", 403, "192.0.2.1"), ("/page?q=logged", 200, "192.0.2.2")];
    for (page, expected, from) in pages {
        assert_eq!(ask(&mut client, page, "http://a/", from), expected);
        for number in 0..30 {
            let style = format!("/style-{number}.css");
            assert_eq!(ask(&mut client, &style, &format!("http://a{page}"), from), 403);
        }
        assert_eq!(ask(&mut client, "/", "http://a/", from), 200, "{page}: one attack");
    }

    let (mut slow, from) = (front.client(), "192.0.2.3");
    let before = backend.seen().len();
    slow.send(get("/slow?q=logged", from));
    until(|| backend.seen().len() > before);
    for number in 0..30 {
        let style = format!("/style-{number}.css");
        assert_eq!(ask(&mut client, &style, "http://a/slow?q=logged", from), 403);
    }
    assert_eq!(ask(&mut client, "/", "http://a/", from), 200, "the page is on its way");
}

/// A Referer that names the site itself excuses nothing by that.
#[test]
fn a_referer_that_is_made_up_is_an_offence() {
    let backend = Backend::start(|_| ok("ok"));
    let front = behind_referer_rules(&backend);
    let mut client = front.client();
    let page = "http://a/page?q=attack";
    let checks = [
        // No page was asked for, by this client.
        ("/", "http://a/?q=attack", "192.0.2.10"),
        ("/style.css", page, "192.0.2.11"),
        // It is of another site, or beside an attack of its own.
        ("/style.css", "http://b/page?q=attack", "192.0.2.12"),
        ("/page?q=%22attack", page, "192.0.2.13"),
    ];
    assert_eq!(ask(&mut client, "/page?q=attack", "http://a/", "192.0.2.1"), 403);
    for (target, referer, from) in checks {
        let statuses = [(); 2].map(|()| ask(&mut client, target, referer, from));
        assert_eq!(statuses, [403, 403]);
        assert_eq!(ask(&mut client, "/", "http://a/", from), 403, "banned: {target} {referer}");
    }
    // The page was asked for, but a browser would not send this.
    for (more, from) in [("#attack", "192.0.2.20"), ("2", "192.0.2.21")] {
        assert_eq!(ask(&mut client, "/page?q=attack", "http://a/", from), 403);
        assert_eq!(ask(&mut client, "/style.css", &format!("{page}{more}"), from), 403);
        assert_eq!(ask(&mut client, "/", "http://a/", from), 403, "banned: {more}");
    }
    // Points for a refusal are not for what the Referer says.
    let from = "192.0.2.30";
    assert_eq!(ask(&mut client, "/page?q=attack", "http://a/", from), 403);
    let both = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    let refused =
        format!("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {from}\r\nReferer: {page}\r\n{both}");
    assert!(front.once(refused).starts_with("HTTP/1.1 400"));
    until(|| ask(&mut client, "/", "http://a/", from) == 403);
}

/// A bare address is where scanners begin: what they try there counts, and who is banned is banned there,
/// too.
#[test]
fn bans_hold_for_hosts_that_no_site_has() {
    let backend = Backend::start(|_| ok("ok"));
    let more = format!("{TRUSTED}\nban = {{ score = 20 }}");
    let text =
        document(backend.address, &more, "", RULES, "").replace("hosts = [\"*\"]", "hosts = [\"a.example\"]");
    let front = Front::start(&text);
    let mut client = front.client();
    let mut ask = |host: &str, target: &str, from: &str| {
        client.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nX-Forwarded-For: {from}\r\n\r\n"));
        status(&client.response().0)
    };
    let (scanner, other) = ("192.0.2.7", "198.51.100.7");
    assert_eq!(ask("203.0.113.1", "/", scanner), 404, "to ask is no attack");
    assert_eq!(ask("203.0.113.1", "/attack", scanner), 403);
    assert_eq!(ask("203.0.113.1", "/?x=attack", scanner), 403);
    assert_eq!(ask("a.example", "/", scanner), 403, "banned at the sites");
    assert_eq!(ask("203.0.113.1", "/", scanner), 403, "and where there is none");
    assert_eq!((ask("a.example", "/", other), ask("203.0.113.1", "/", other)), (200, 404));
    let banned = front.events(4).into_iter().filter(|event| event.verdict.control.is_some()).count();
    assert!(banned >= 1 && backend.seen().len() == 1);
    // An attack at the sites holds for the address.
    let third = "192.0.2.99";
    assert_eq!((ask("a.example", "/attack", third), ask("a.example", "/attack", third)), (403, 403));
    assert_eq!(ask("203.0.113.1", "/", third), 403);
}
