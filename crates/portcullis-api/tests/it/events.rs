use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use portcullis_api::Limits;
use portcullis_event::{AccessRecord, Action, Coverage, Event, KeptRequest, Timestamp};
use portcullis_event_store::{StoreSettings, Tallies, Writer};
use portcullis_identity::{Actor, NewToken, Role, Sites};
use serde_json::json;

use crate::client::connect;
use crate::server::{NOW_MS, Server};

fn writer(server: &Server) -> Writer {
    Writer::open(StoreSettings::new(server.folder.path().join("events")), false).unwrap()
}

fn write(writer: &mut Writer, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut event = Event::new(format!("r{number}"), Timestamp::from_epoch_millis(NOW_MS + number));
        event.verdict.action = [Action::Deny, Action::Pass][number as usize % 2];
        event.request.target = "/<script>".to_owned();
        let request = KeptRequest { bytes: b"GET /\xff HTTP/1.1\r\n\r\n".to_vec(), omitted: number };
        writer.add(&event, (number % 2 == 1).then_some(&request));
    }
    writer.commit(NOW_MS).unwrap();
}

#[test]
fn pages_from_the_newest_to_the_oldest() {
    let server = Server::start();
    let token = server.token(Role::Viewer);
    // Before the writer made its folder there are no events.
    let none = server.get("/events", &token).json();
    assert_eq!((none["items"].as_array().unwrap().len(), none["complete"].as_bool()), (0, Some(true)));
    write(&mut writer(&server), 0..25);
    let (mut ids, mut target) = (Vec::new(), "/events?limit=10".to_owned());
    loop {
        let page = server.get(&target, &token).json();
        assert_eq!(page["skipped"].as_array().unwrap().len(), 0);
        let items = page["items"].as_array().unwrap();
        ids.extend(items.iter().map(|item| item["event"]["request_id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        target = format!("/events?limit=10&before={next}");
    }
    let expected: Vec<String> = (0..25).rev().map(|number| format!("r{number}")).collect();
    assert_eq!(ids, expected);
    let denied = server.get("/events?filter=verdict+%3D+deny&limit=1000", &token).json();
    assert_eq!(denied["items"].as_array().unwrap().len(), 13);
}

#[test]
fn one_event_by_the_id_of_its_request() {
    let server = Server::start();
    let token = server.token(Role::Viewer);
    write(&mut writer(&server), 0..2);
    let event = server.get("/events/r0", &token).json();
    assert_eq!((event["event"]["request_id"].as_str(), event["count"].as_u64()), (Some("r0"), Some(1)));
    for path in ["/events/r9", "/events/%00", "/events/%ff"] {
        assert_eq!(server.get(path, &token).status, 404, "{path}");
    }
}

#[test]
fn facets_of_the_events_that_pass() {
    let server = Server::start();
    let viewer = server.token(Role::Viewer);
    let none = server.get("/events/facets", &viewer).json();
    assert_eq!((none["total"].as_u64(), none["complete"].as_bool()), (Some(0), Some(true)));
    write(&mut writer(&server), 0..25);
    let counted = server
        .get("/events/facets?fields=verdict,path,verdict&top=1&filter=time+%3C+2100-01-01", &viewer)
        .json();
    assert_eq!(counted["total"], 25);
    let verdict = &counted["fields"]["verdict"];
    assert_eq!(
        (&verdict["values"][0]["value"], &verdict["values"][0]["count"]),
        (&"deny".into(), &13.into())
    );
    assert_eq!((&verdict["others"], &verdict["without"]), (&12.into(), &0.into()));
    assert_eq!(counted["fields"].as_object().unwrap().len(), 2);
    for query in ["fields=time", "fields=", "fields=a,b", "top=0", "top=1001", "filter=%28", "x=1"] {
        assert_eq!(server.get(&format!("/events/facets?{query}"), &viewer).status, 400, "{query}");
    }
}

#[test]
fn events_over_time() {
    let server = Server::start();
    let viewer = server.token(Role::Viewer);
    let none = server.get("/events/histogram", &viewer).json();
    assert_eq!((none["total"].as_u64(), none["complete"].as_bool()), (Some(0), Some(true)));
    write(&mut writer(&server), 0..25);
    let counted = server.get("/events/histogram?filter=time+%3C+2100-01-01", &viewer).json();
    let facets = server.get("/events/facets?fields=outcome&filter=time+%3C+2100-01-01", &viewer).json();
    assert_eq!((&counted["total"], &counted["complete"]), (&facets["total"], &true.into()), "{counted}");
    let sum = |name: &str| -> u64 {
        counted["items"].as_array().unwrap().iter().map(|item| item[name].as_u64().unwrap()).sum()
    };
    assert_eq!((sum("blocked"), sum("others")), (13, 12), "{counted}");
    let (from, to) = (counted["from"].as_u64().unwrap(), counted["to"].as_u64().unwrap());
    let step = counted["step"].as_u64().unwrap();
    assert!(step > 0 && (to - from) / step <= 96, "{counted}");
    for item in counted["items"].as_array().unwrap() {
        let start = item["start"].as_u64().unwrap();
        assert!((from..to).contains(&start) && (start - from).is_multiple_of(step), "{counted}");
    }
    for query in ["steps=1", "steps=1001", "steps=x", "filter=%28", "x=1"] {
        assert_eq!(server.get(&format!("/events/histogram?{query}"), &viewer).status, 400, "{query}");
    }
}

#[test]
fn the_request_of_an_event() {
    let server = Server::start();
    let [viewer, analyst] = [Role::Viewer, Role::Analyst].map(|role| server.token(role));
    write(&mut writer(&server), 0..2);
    let kept = server.get("/events/r1/request", &analyst);
    assert_eq!((kept.status, &kept.body[..]), (200, &b"GET /\xff HTTP/1.1\r\n\r\n"[..]));
    assert_eq!(
        (kept.header("content-type"), kept.header("x-omitted-bytes")),
        (Some("message/http"), Some("1"))
    );
    assert!(kept.header("content-disposition").unwrap().starts_with("attachment"));
    assert_eq!(server.get("/events/r0/request", &analyst).status, 404);
    assert_eq!(server.get("/events/r9/request", &analyst).status, 404);
    assert_eq!(server.get("/events/r1/request", &viewer).status, 403);
    assert_eq!(server.ask("GET", "/events/r1/request").send().status, 401);
    let flags: Vec<_> = server.get("/events", &viewer).json()["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["has_request"].clone())
        .collect();
    assert_eq!(flags, [true, false]);
}

/// The program is shown the kept request, others of its site, and the document.
#[test]
fn advice_on_a_kept_request() {
    let server = Server::start();
    let [viewer, analyst] = [Role::Viewer, Role::Analyst].map(|role| server.token(role));
    write(&mut writer(&server), 0..4);
    let ask = |token: &str, id: &str| {
        let answer = server.ask("POST", "/advise").bearer(token).json(json!({ "request_id": id })).send();
        (answer.status, answer.json())
    };
    let (status, answer) = ask(&analyst, "r1");
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["site"], answer["advice"]["site"]);
    assert!(answer["advice"]["request"].as_str().unwrap().starts_with("GET /"), "{answer}");
    assert!(answer["advice"]["others"].as_array().unwrap().contains(&json!("r1")), "{answer}");
    assert_eq!((ask(&analyst, "r0").0, ask(&analyst, "r9").0), (404, 404));
    assert_eq!((ask(&viewer, "r1").0, server.ask("POST", "/advise").send().status), (403, 401));
    let text = server.text() + "# unadvised\n";
    std::fs::write(server.folder.path().join("portcullis.toml"), text).unwrap();
    let (status, answer) = ask(&analyst, "r1");
    assert_eq!((status, &answer["detail"]), (409, &json!("there is nothing to exclude")));
}

#[test]
fn statistics_count_all_requests() {
    let server = Server::start();
    let token = server.token(Role::Viewer);
    let none = server.get("/statistics", &token).json();
    assert_eq!((none["items"].as_array().unwrap().len(), none["skipped"].as_array().unwrap().len()), (0, 0));
    let tallies = Tallies::default();
    for number in 0..100 {
        let record = AccessRecord {
            time: Timestamp::from_epoch_millis(NOW_MS + number * 1000),
            request_id: "r",
            client: [192, 0, 2, (number % 20) as u8].into(),
            country: None,
            asn: None,
            site: ["blog", "shop"][(number % 2) as usize],
            route: "/",
            method: b"GET",
            host: b"a",
            target: b"/a/17",
            protocol: b"HTTP/1.1",
            status: Some(200),
            request_body_bytes: 1,
            body_bytes: 2,
            duration_us: 500,
            upstream: None,
            trace_id: None,
            verdict: [Action::Deny, Action::Pass][(number % 2) as usize],
            control: None,
            referer: None,
            user_agent: None,
        };
        tallies.own().request(&record, &Coverage::default(), Some(Duration::from_micros(40)));
    }
    let mut writer = writer(&server);
    writer.count(tallies.take());
    writer.commit(NOW_MS).unwrap();
    let begin = NOW_MS / 60_000 * 60;
    let all = server.get(&format!("/statistics?from={begin}&to={}&top=3", begin + 7200), &token).json();
    let items = all["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["site"], &items[0]["requests"]), (2, &"blog".into(), &50.into()));
    let by = &items[0]["by"];
    assert_eq!((&by["verdict"][0]["label"], &by["verdict"][0]["count"]), (&"deny".into(), &50.into()));
    assert_eq!((&by["path"][0]["label"], by["client"].as_array().unwrap().len()), (&"/a/*".into(), 3));
    // Whoever is limited to a site has the counts of that site only, and of a series, too.
    let limited = token_of_shop(&server);
    for step in ["", "&step=minute"] {
        for site in ["", "&site=blog", "&site=shop"] {
            let target = format!("/statistics?from={begin}&to={}{site}{step}", begin + 7200);
            let own = server.get(&target, &limited);
            assert!(!own.text().contains("blog") || site == "&site=blog" && own.json()["items"] == json!([]));
            let counted = own.json()["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["requests"].as_u64().unwrap())
                .sum::<u64>();
            assert_eq!(counted, if site == "&site=blog" { 0 } else { 50 }, "{target}");
        }
    }
    let p50 = items[0]["duration_us"]["p50"].as_u64().unwrap();
    assert!((500..=625).contains(&p50), "{p50}");
    let own = items[0]["inspection_us"]["p99"].as_u64().unwrap();
    assert!((40..=50).contains(&own), "{own}");
    let series = format!("/statistics?from={begin}&to={}&site=shop&step=minute", begin + 7200);
    let series = server.get(&series, &token).json();
    let minutes: Vec<u64> =
        series["items"].as_array().unwrap().iter().map(|item| item["requests"].as_u64().unwrap()).collect();
    assert!((2..=3).contains(&minutes.len()) && minutes.iter().sum::<u64>() == 50, "{minutes:?}");
    for wrong in [
        "from=5&to=4",
        "top=257",
        "step=day",
        "step=minute&from=0&to=900000",
        "from=0&to=90000000",
        "from=253402300800&to=253402300801",
        "x=1",
    ] {
        assert_eq!(server.get(&format!("/statistics?{wrong}"), &token).status, 400, "{wrong}");
    }
}

#[test]
fn mistakes_have_their_place() {
    let server = Server::start();
    let token = server.token(Role::Viewer);
    let answer = server.get("/events?filter=statsu+%3D+403", &token);
    let problem = answer.json();
    assert_eq!((answer.status, problem["column"].as_u64()), (400, Some(1)));
    assert!(problem["detail"].as_str().unwrap().contains("did you mean `status`"), "{problem}");
    for query in [
        "limit=0",
        "limit=1001",
        "limit=-1",
        "limit=x",
        "limit=",
        "x=1",
        "limit=1&limit=2",
        "filter=%ff",
        "filter=%28",
        "before=x",
        "before=1-2-3",
        "before=",
        "limit=99999999999999999999",
    ] {
        assert_eq!(server.get(&format!("/events?{query}"), &token).status, 400, "{query}");
    }
    let long = server.get(&format!("/events?filter={}", "a".repeat(9000)), &token);
    assert_eq!(long.status, 400);
}

/// Server-sent events of one connection.
struct Stream(BufReader<TcpStream>);

impl Stream {
    fn open(server: &Server, target: &str, token: &str, last: &str) -> (u16, Stream) {
        let mut socket = connect(server.address);
        let text = format!(
            "GET /api/v1{target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{last}\r\n"
        );
        socket.write_all(text.as_bytes()).unwrap();
        let mut stream = Stream(BufReader::new(socket));
        let status = stream.line().unwrap()[9..12].parse().unwrap();
        while stream.line().is_some_and(|line| !line.is_empty()) {}
        (status, stream)
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
        }
    }

    /// The id of the next event, and the id of its request.
    fn next(&mut self) -> Option<(String, String)> {
        let mut id = String::new();
        loop {
            let line = self.line()?;
            if let Some(text) = line.strip_prefix("id: ") {
                id = text.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                let json: serde_json::Value = serde_json::from_str(data).unwrap();
                return Some((id, json["event"]["request_id"].as_str().unwrap().to_owned()));
            }
        }
    }
}

fn quick() -> Limits {
    Limits {
        stream_every: Duration::from_millis(20),
        streams_max: 3,
        identity_streams_max: 2,
        ..Limits::default()
    }
}

#[test]
fn a_stream_has_what_is_new_and_goes_on_where_it_ended() {
    let server = Server::with(quick());
    let token = server.token(Role::Viewer);
    let mut writer = writer(&server);
    write(&mut writer, 0..5);
    let (status, mut stream) = Stream::open(&server, "/events/stream?filter=verdict+%3D+deny", &token, "");
    assert_eq!(status, 200);
    stream.line().unwrap();
    write(&mut writer, 5..9);
    let (_, first) = stream.next().unwrap();
    let (last, second) = stream.next().unwrap();
    assert_eq!((first.as_str(), second.as_str()), ("r6", "r8"));
    drop(stream);
    write(&mut writer, 9..13);
    let header = format!("Last-Event-ID: {last}\r\n");
    let (_, mut stream) = Stream::open(&server, "/events/stream?filter=verdict+%3D+deny", &token, &header);
    assert_eq!(stream.next().unwrap().1, "r10");
    assert_eq!(stream.next().unwrap().1, "r12");
    for wrong in ["x", "after:", "after:x", "from:1-2-3", "from:0-0", "after:1-1", &"9".repeat(100)] {
        let header = format!("Last-Event-ID: {wrong}\r\n");
        assert_eq!(Stream::open(&server, "/events/stream", &token, &header).0, 400, "{wrong}");
    }
}

#[test]
fn streams_are_bounded() {
    let server = Server::with(quick());
    let (one, other) = (server.token(Role::Viewer), server.token(Role::Viewer));
    let open = |token: &str| Stream::open(&server, "/events/stream", token, "");
    let (first, second) = (open(&one), open(&one));
    assert_eq!((first.0, second.0), (200, 200));
    assert_eq!(open(&one).0, 503);
    let third = open(&other);
    assert_eq!((third.0, open(&other).0), (200, 503));
    // Other requests go on, and a place that is left is free again.
    assert_eq!(server.get("/version", &one).status, 200);
    drop(first);
    let again = (0..200).find(|_| {
        std::thread::sleep(Duration::from_millis(20));
        open(&other).0 == 200
    });
    assert!(again.is_some());
}

#[test]
fn a_stream_ends_with_its_token() {
    let server = Server::with(quick());
    let token = server.token(Role::Viewer);
    let (_, mut stream) = Stream::open(&server, "/events/stream", &token, "");
    server.identities.revoke_token(1, &Actor::new("test"), server.now()).unwrap();
    while stream.line().is_some() {}
}

fn token_of_shop(server: &Server) -> String {
    let sites = Sites::named(["shop".to_owned()]).unwrap();
    let new = NewToken { name: "shop".to_owned(), role: Role::Viewer, sites, expires: None };
    server.identities.create_token(&new, &Actor::new("test"), server.now()).unwrap().1
}

#[test]
fn a_stream_has_only_events_of_own_sites() {
    let server = Server::with(quick());
    let token = token_of_shop(&server);
    let mut writer = writer(&server);
    write(&mut writer, 0..1);
    for filter in ["", "?filter=verdict+%3D+deny+or+site+%3D+blog"] {
        let (_, mut stream) = Stream::open(&server, &format!("/events/stream{filter}"), &token, "");
        stream.line().unwrap();
        for (number, site) in ["blog", "", "shopping", "SHOP", "shop"].into_iter().enumerate() {
            let id = format!("{site}{}{number}", filter.len());
            let mut event = Event::new(id, Timestamp::from_epoch_millis(NOW_MS + 100 + number as u64));
            (event.site, event.verdict.action) = (site.into(), Action::Deny);
            writer.add(&event, None);
        }
        writer.commit(NOW_MS).unwrap();
        assert_eq!(stream.next().unwrap().1, format!("shop{}4", filter.len()));
    }
}
