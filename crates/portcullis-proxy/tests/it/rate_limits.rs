//! Rate limits: whose requests are counted together, what a refused one gets, what is counted and told.

use crate::common::*;
use portcullis_event::{Action, ControlKind};

const TRUSTED: &str = "client_address = { trusted_proxies = [\"127.0.0.1\"], header = \"x-forwarded-for\" }";

/// A proxy with these limits at its site, and none with a rate that could admit anything more within a test.
fn front(backend: &Backend, limits: &str) -> Front {
    Front::start(&document(backend.address, TRUSTED, "", &format!("{RULES}{limits}"), ""))
}

fn get(path: &str, client: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n{more}\r\n")
}

fn statuses(front: &Front, requests: &[String]) -> Vec<u16> {
    let mut client = front.client();
    let one = |request: &String| {
        client.send(request);
        status(&client.response().0)
    };
    requests.iter().map(one).collect()
}

#[test]
fn a_client_that_asks_too_often_is_told_when_to_come_again() {
    let backend = Backend::start(|_| ok("ok"));
    let limits = "rate_limits = [{ name = \"all\", rate = 2, per = \"1h\" }]";
    let front = front(&backend, limits);
    let mut client = front.client();
    let mut last = String::new();
    for _ in 0..3 {
        client.send(get("/attack", "192.0.2.1", ""));
        last = client.response().0;
    }
    assert_eq!(status(&last), 429, "{last}");
    let wait: u64 = header(&last, "retry-after").unwrap().parse().unwrap();
    assert!((1790..=1800).contains(&wait), "half an hour for each: {wait}");
    assert_eq!(header(&last, "ratelimit-policy"), Some("\"all\";q=2;w=3600"));
    assert_eq!(header(&last, "ratelimit"), Some(format!("\"all\";r=0;t={wait}").as_str()));
    assert_eq!(header(&last, "connection"), None, "the connection goes on");
    // Addresses of one /64 are one client, other addresses are others.
    let others = ["192.0.2.2", "2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1"];
    let requests = others.map(|other| get("/", other, ""));
    assert_eq!(statuses(&front, &requests), [200, 200, 200, 429, 200]);
    assert_eq!(backend.seen().len(), 4, "two attacks were blocked, two requests refused");
    front.counts("portcullis_rate_limited_total{site=\"site\",limit=\"all\",action=\"block\"}", 2.0);
    let events = front.events(4);
    let told = events.iter().filter_map(|event| Some((event, event.verdict.control.as_ref()?)));
    let told: Vec<_> = told.collect();
    assert_eq!(told.len(), 2);
    let (event, control) = told[0];
    assert_eq!((control.by, &*control.name), (ControlKind::RateLimit, "all"));
    assert_eq!((event.verdict.action, event.verdict.status), (Action::Deny, Some(429)));
    assert_eq!(event.client.addr, "192.0.2.1");
    front.counts("portcullis_requests_total{site=\"site\",route=\"/\",status=\"429\"", 2.0);
    front.counts("portcullis_bytes_not_inspected_total{reason=\"engine_off\"}", 0.0);
}

#[test]
fn keys_are_what_the_document_says() {
    let backend = Backend::start(|_| ok("ok"));
    let check = |key: &str, requests: &[String], expected: &[u16]| {
        let limits = format!("rate_limits = [{{ name = \"l\", rate = 1, per = \"1h\", {key} }}]");
        assert_eq!(statuses(&front(&backend, &limits), requests), expected, "{key}");
    };
    let (a, b) = ("192.0.2.1", "192.0.2.2");
    let key = |value: &str| get("/", a, &format!("X-Key: {value}\r\n"));
    check(
        "key = [\"header:x-key\"]",
        &[key("1"), key("1"), key("2"), get("/", a, "")],
        &[200, 429, 200, 200],
    );
    let sid = |value: &str| get("/", a, &format!("Cookie: x=y; sid={value}\r\n"));
    check("key = [\"cookie:sid\"]", &[sid("1"), sid("2"), sid("1"), get("/", a, "")], &[200, 200, 429, 200]);
    // Whichever of several values the application goes by, it is counted.
    let two = |a: &str, b: &str| get("/", "192.0.2.1", &format!("X-Key: {a}\r\nX-Key: {b}\r\n"));
    check(
        "key = [\"header:x-key\"]",
        &[key("1"), two("2", "1"), two("3", "1"), two("4", "4"), key("4")],
        &[200, 429, 429, 200, 429],
    );
    let sids = |a: &str, b: &str| get("/", "192.0.2.1", &format!("Cookie: sid={a}; sid={b}\r\n"));
    check("key = [\"cookie:sid\"]", &[sids("1", "2"), sid("1"), sid("2"), sid("3")], &[200, 429, 429, 200]);
    let five = |from: u32| {
        let fields: String = (from..from + 5).map(|number| format!("X-Key: {number}\r\n")).collect();
        get("/", "192.0.2.1", &fields)
    };
    check("key = [\"header:x-key\"]", &[five(10), five(20), key("10")], &[200, 429, 200]);
    let paths = ["/a", "/b", "/a?c", "/x/..//%61"].map(|path| get(path, a, ""));
    check("key = [\"path\"]", &paths, &[200, 200, 429, 429]);
    check(
        "key = [\"client\", \"path\"]",
        &[get("/a", a, ""), get("/a", b, ""), get("/a", a, "")],
        &[200, 200, 429],
    );
    check("key = []", &[get("/", a, ""), get("/", b, "")], &[200, 429]);
    check("ipv4_prefix = 24", &[get("/", a, ""), get("/", b, "")], &[200, 429]);
    let post = get("/", a, "Content-Length: 0\r\n").replacen("GET", "POST", 1);
    check("methods = [\"POST\"]", &[post.clone(), get("/", a, ""), post], &[200, 200, 429]);
    check("status = 503", &[get("/", a, ""), get("/", a, "")], &[200, 503]);
}

#[test]
fn limits_of_a_route_come_on_top_and_those_that_log_let_pass() {
    let backend = Backend::start(|_| ok("ok"));
    let limits = "[[sites.rate_limits]]\nname = \"site\"\nrate = 3\nper = \"1h\"\n\
         [[sites.rate_limits]]\nname = \"watch\"\nrate = 1\nper = \"1h\"\naction = \"log\"\n\
         [[sites.routes]]\npath = \"/login\"\n\
         [[sites.routes.rate_limits]]\nname = \"login\"\nrate = 1\nper = \"1h\"\n";
    let front = front(&backend, limits);
    let requests = ["/login", "/login", "/", "/"].map(|path| get(path, "192.0.2.1", ""));
    assert_eq!(statuses(&front, &requests), [200, 429, 200, 429]);
    let limited = |limit: &str| {
        front.metric(&format!("portcullis_rate_limited_total{{site=\"site\",limit=\"{limit}\""))
    };
    until(|| (limited("site"), limited("login"), limited("watch")) == (1.0, 1.0, 2.0));
    let events = front.events(3);
    let name = |index: usize| events[index].verdict.control.as_ref().unwrap().name.to_string();
    assert_eq!((name(0), events[0].verdict.action), ("login".into(), Action::Deny));
    assert_eq!((name(1), events[1].verdict.action), ("watch".into(), Action::Detect));
    assert_eq!((name(2), events[2].verdict.action), ("site".into(), Action::Deny));
}

#[test]
fn a_refused_body_is_not_taken_for_a_request() {
    let backend = Backend::start(|_| ok("ok"));
    let front = front(&backend, "rate_limits = [{ name = \"all\", rate = 1, per = \"1h\" }]");
    let post = get("/", "192.0.2.1", "Content-Length: 40\r\n").replacen("GET", "POST", 1);
    assert_eq!(statuses(&front, &[get("/", "192.0.2.1", "")]), [200]);
    let answer = front.once(format!("{post}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_eq!((status(&answer), header(&answer, "connection")), (429, Some("close")));
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1);
    // What is not HTTP is counted as well.
    let answer = front.once("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\nbad header\r\n\r\n");
    assert_eq!(status(&answer), 429);
}

#[test]
fn buckets_outlive_reloads_and_floods_make_few_events() {
    let backend = Backend::start(|_| ok("ok"));
    let text = |rate: u32, status: u16| {
        let limits =
            format!("rate_limits = [{{ name = \"l\", rate = {rate}, per = \"1h\", status = {status} }}]");
        document(backend.address, TRUSTED, "", &limits, "")
    };
    let front = Front::start(&text(1, 429));
    let request = [get("/", "192.0.2.1", "")];
    assert_eq!(statuses(&front, &request), [200]);
    let reload = |text: &str| {
        let config = parse(text);
        front.proxy.reload(&config, &inspectors(&config)).unwrap();
    };
    reload(&text(1, 503));
    assert_eq!(statuses(&front, &request), [503], "what was counted still counts");
    reload(&text(2, 503));
    assert_eq!(statuses(&front, &request), [200], "another limit counts anew");
    let flood = vec![request[0].clone(); 300];
    assert_eq!(statuses(&front, &flood).iter().filter(|status| **status == 200).count(), 1);
    front.counts("portcullis_rate_limited_total", 300.0);
    let omitted = front.metric("portcullis_access_events_omitted_total");
    assert!((100.0..=199.0).contains(&omitted), "{omitted}");
}
