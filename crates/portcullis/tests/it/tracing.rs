//! Traces: the context is forwarded to the upstream, spans go to a collector, and a collector that is down
//! costs no request anything.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::served::*;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::Value;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

type Texts = Arc<Mutex<Vec<String>>>;

/// A collector that keeps what it gets.
fn collector() -> (Server, Texts) {
    let bodies = Texts::default();
    let kept = Arc::clone(&bodies);
    let server = application(move |request| {
        assert_eq!((&*request.method, &*request.target), ("POST", "/v1/traces"));
        assert_eq!(request.header("content-type"), Some(&b"application/json"[..]));
        assert_eq!(request.header("x-key"), Some(&b"k1"[..]));
        kept.lock().unwrap().push(String::from_utf8(request.body.clone()).unwrap());
        says("{}")
    });
    (server, bodies)
}

/// All spans that came so far, once there are so many.
fn spans(bodies: &Texts, count: usize) -> Vec<Value> {
    let begin = Instant::now();
    loop {
        let mut spans = Vec::new();
        for body in bodies.lock().unwrap().iter() {
            let document: Value = serde_json::from_str(body).unwrap();
            let resource = &document["resourceSpans"][0];
            assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "edge");
            spans.extend(resource["scopeSpans"][0]["spans"].as_array().unwrap().iter().cloned());
        }
        if spans.len() >= count {
            return spans;
        }
        assert!(begin.elapsed() < PATIENCE, "{count} spans wanted: {spans:?}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn attributes(span: &Value) -> BTreeMap<String, String> {
    let text = |of: &Value| of["stringValue"].as_str().or(of["intValue"].as_str()).unwrap().to_owned();
    let list = span["attributes"].as_array().unwrap().iter();
    list.map(|one| (one["key"].as_str().unwrap().to_owned(), text(&one["value"]))).collect()
}

/// An application that keeps the trace headers that it gets.
fn recording() -> (Server, Texts) {
    let seen = Texts::default();
    let kept = Arc::clone(&seen);
    let server = application(move |request| {
        let header = |name: &str| {
            request.header(name).map_or("-".to_owned(), |value| String::from_utf8_lossy(value).into_owned())
        };
        kept.lock().unwrap().push(format!("{} {}", header("traceparent"), header("tracestate")));
        says("hello")
    });
    (server, seen)
}

fn start(application: &Server, collector: std::net::SocketAddr, more: &str) -> Served {
    let site = rules("SecRule ARGS \"@contains attack\" \"id:1,phase:2,deny\"");
    let tracing = format!(
        "[tracing]\notlp = \"http://{collector}\"\nservice = \"edge\"\nheaders = {{ X-Key = \"k1\" }}\n{more}\n\
         [access_log]\nfile = \"access.json\"\n"
    );
    Served::start_site(application, &site, &tracing)
}

fn ask(served: &Served, target: &str, headers: &str) -> u16 {
    served.raw(format!("GET {target} HTTP/1.1\r\nHost: a\r\n{headers}Connection: close\r\n\r\n")).status()
}

#[test]
fn spans_of_a_request_with_a_parent() {
    let ((application, seen), (collector, bodies)) = (recording(), collector());
    let served = start(&application, collector.address(), "parent = \"all\"\nratio = 0");
    let headers = format!("traceparent: {PARENT}\r\ntracestate: vendor=1\r\n");
    assert_eq!(ask(&served, "/a", &headers), 200);
    let passed_on = seen.lock().unwrap().pop().unwrap();
    assert!(
        passed_on.starts_with(&format!("00-{TRACE}-")) && passed_on.ends_with("-01 vendor=1"),
        "{passed_on}"
    );
    assert!(!passed_on.contains("00f067aa0ba902b7"), "the parent is our span now");

    let found = spans(&bodies, 5);
    let name = |span: &Value| span["name"].as_str().unwrap().to_owned();
    assert_eq!(name(&found[0]), "GET /");
    let mut names: Vec<String> = found.iter().map(name).collect();
    names.sort();
    let phases = (1..=4).map(|number| format!("inspection phase {number}"));
    let expected: Vec<String> =
        ["GET /".to_owned()].into_iter().chain(phases).chain(["upstream".to_owned()]).collect();
    let phase_4 = names.iter().any(|name| name.ends_with("phase 4"));
    let expected: Vec<String> =
        expected.into_iter().filter(|name| phase_4 || !name.ends_with("phase 4")).collect();
    assert_eq!(names, expected);
    let server = &found[0];
    assert_eq!((&server["traceId"], &server["parentSpanId"]), (&TRACE.into(), &"00f067aa0ba902b7".into()));
    assert_eq!((&server["kind"], &server["traceState"]), (&2.into(), &"vendor=1".into()));
    assert!(passed_on.contains(server["spanId"].as_str().unwrap()));
    let about = attributes(server);
    assert_eq!(
        (&*about["http.response.status_code"], &*about["portcullis.verdict"], &*about["portcullis.site"]),
        ("200", "pass", "site")
    );
    let nanos = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
    for span in &found[1..] {
        assert_eq!((&span["parentSpanId"], &span["traceId"]), (&server["spanId"], &server["traceId"]));
        assert!(nanos(span, "startTimeUnixNano") >= nanos(server, "startTimeUnixNano"));
        assert!(nanos(span, "endTimeUnixNano") <= nanos(server, "endTimeUnixNano"));
    }
    let upstream = found.iter().find(|span| name(span) == "upstream").unwrap();
    let asked = attributes(upstream);
    let asked = format!("{}:{}", asked["server.address"], asked["server.port"]);
    assert_eq!(asked, application.address().to_string());

    // One that the client does not sample is passed on, and not exported; so is one of our own at this
    // ratio.
    let count = spans(&bodies, 5).len();
    assert_eq!(ask(&served, "/b", &format!("traceparent: 00-{TRACE}-00f067aa0ba902b7-00\r\n")), 200);
    assert!(seen.lock().unwrap().pop().unwrap().ends_with("-00 -"));
    assert_eq!(ask(&served, "/c", "traceparent: wrong\r\ntracestate: of=nothing\r\n"), 200);
    let own = seen.lock().unwrap().pop().unwrap();
    assert!(own.ends_with("-00 -") && !own.contains(TRACE), "{own}");
    // The trace stands in the event and in the access log.
    assert_eq!(ask(&served, "/d?q=attack", &format!("traceparent: {PARENT}\r\n")), 403);
    let event: Value = serde_json::from_str(&served.events(1)[0]).unwrap();
    assert_eq!(event["trace_id"], TRACE);
    let blocked = spans(&bodies, count + 1);
    let blocked = blocked.iter().rfind(|span| span["kind"] == 2).unwrap();
    assert_eq!(attributes(blocked)["portcullis.verdict"], "deny");
    until(|| served.metric("portcullis_spans_exported_total") >= 6.0);
    let folder = served.stop();
    let log = std::fs::read_to_string(folder.path().join("access.json")).unwrap();
    assert_eq!(
        log.lines().filter(|line| line.contains(&format!("\"trace_id\":\"{TRACE}\""))).count(),
        3,
        "{log}"
    );
}

#[test]
fn strangers_do_not_decide_what_is_traced_unless_told_so() {
    let ((application, seen), (collector, bodies)) = (recording(), collector());
    let served = start(&application, collector.address(), "ratio = 1");
    assert_eq!(ask(&served, "/", &format!("traceparent: {PARENT}\r\ntracestate: a=1\r\n")), 200);
    let own = seen.lock().unwrap().pop().unwrap();
    assert!(own.ends_with("-01 -") && !own.contains(TRACE), "{own}");
    let found = spans(&bodies, 1);
    assert_eq!(found[0]["parentSpanId"], Value::Null);
    assert!(own.contains(found[0]["traceId"].as_str().unwrap()));
    served.stop();
}

#[test]
fn a_collector_that_is_down_or_silent_delays_nothing() {
    let (application, _) = recording();
    // It takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for address in [free_address(), silent.local_addr().unwrap()] {
        let served = start(&application, address, "ratio = 1");
        let dropped = "portcullis_spans_dropped_total{reason=\"export\"}";
        for _ in 0..50 {
            assert_eq!(ask(&served, "/", ""), 200);
        }
        let begin = Instant::now();
        while served.metric(dropped) == 0.0 {
            assert_eq!(ask(&served, "/", ""), 200);
            assert!(begin.elapsed() < PATIENCE, "{}", served.metrics());
        }
        served.stop();
    }
}

#[test]
fn a_collector_that_is_back_soon_loses_nothing() {
    let (application, _) = recording();
    let bodies = Texts::default();
    let kept = Arc::clone(&bodies);
    let collector = self::application(move |request| {
        let mut kept = kept.lock().unwrap();
        kept.push(String::from_utf8(request.body.clone()).unwrap());
        match kept.len() {
            1 => Response { status: 503, ..says("not now") },
            2 => says(r#"{"partialSuccess":{"rejectedSpans":"1","errorMessage":"one is too old"}}"#),
            _ => says("{}"),
        }
    });
    let served = start(&application, collector.address(), "ratio = 1");
    assert_eq!(ask(&served, "/", ""), 200);
    let exported = || served.metric("portcullis_spans_exported_total");
    until(|| exported() != 0.0);
    // The same batch came twice, and all of it but one span was taken.
    let bodies = bodies.lock().unwrap();
    assert!(bodies.len() == 2 && bodies[0] == bodies[1], "{bodies:?}");
    let spans = bodies[0].matches("\"spanId\"").count() as f64;
    served.counts("portcullis_spans_dropped_total{reason=\"export\"}", 1.0);
    until(|| exported() == spans - 1.0);
    served.stop();
}

/// A collector over TLS for the name `localhost`, which keeps what it gets; its port and the PEM of its
/// authority.
fn collector_over_tls() -> (u16, String, Texts) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let bodies = Texts::default();
    let kept = Arc::clone(&bodies);
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let tls = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(rustls::StreamOwned::new(tls, socket));
            // A client that does not trust the certificate sends nothing.
            let Some(body) = posted(&mut stream) else { continue };
            kept.lock().unwrap().push(body);
            let _ = stream
                .get_mut()
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
        }
    });
    (port, made.cert.pem(), bodies)
}

/// The body of a request.
fn posted(stream: &mut impl BufRead) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().ok()?
            }
            None if line == "\r\n" => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

fn over_tls(host: &str, port: u16, ca: &str) -> String {
    format!("[tracing]\notlp = \"https://{host}:{port}\"\nservice = \"edge\"\nratio = 1\nca = \"{ca}\"\n")
}

#[test]
fn a_collector_over_tls_is_known_by_its_certificate() {
    let (application, _) = recording();
    let (port, pem, bodies) = collector_over_tls();
    let (_, other, _) = collector_over_tls();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (own, other) = (write("own.pem", &pem), write("other.pem", &other));
    let dropped = "portcullis_spans_dropped_total{reason=\"export\"}";
    // Another authority than the one that signed, and another name than the certificate bears.
    for (host, ca) in [("localhost", &other), ("127.0.0.1", &own)] {
        let served = Served::start_site(&application, "mode = \"off\"", &over_tls(host, port, ca));
        assert_eq!(ask(&served, "/", ""), 200);
        until(|| served.metric(dropped) != 0.0);
        let folder = served.stop();
        let said = std::fs::read_to_string(folder.path().join("output")).unwrap();
        assert!(said.contains("the collector does not accept spans: invalid peer certificate"), "{said}");
        assert!(bodies.lock().unwrap().is_empty(), "nothing is sent to strangers");
    }
    let served = Served::start_site(&application, "mode = \"off\"", &over_tls("localhost", port, &own));
    assert_eq!(ask(&served, "/", ""), 200);
    assert_eq!(spans(&bodies, 1)[0]["name"], "GET /");
    served.stop();
}

#[test]
fn authorities_that_cannot_be_read_are_told_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    let garbage = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    for (text, why) in [(None, ""), (Some("nothing here\n"), "it has no certificate"), (Some(garbage), "")] {
        if let Some(text) = text {
            std::fs::write(&ca, text).unwrap();
        }
        let more = over_tls("localhost", 4318, &ca.display().to_string());
        let upstream = free_address();
        let config =
            document(folder.path(), free_address(), free_address(), upstream, "mode = \"off\"", &more);
        let output = Command::new(program()).args(["run", "--config"]).arg(config).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = format!("`tracing.ca`: {}: {why}", ca.display());
        assert!(!output.status.success() && said.contains(&line), "{text:?}: {said}");
    }
}
