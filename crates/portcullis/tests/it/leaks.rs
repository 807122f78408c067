//! Leaks in responses, in the running program: which are blocked, which are logged, which are not delayed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::served::{self, PATIENCE, Response, Served, application, until};

/// Waits for a page as long as a slow machine needs for it; by itself it would be let go after a fifth of a
/// second.
const SITE: &str = "mode = \"semantic\"\nsemantic = { response_wait = \"10m\" }";
const BY_ITSELF: &str = "mode = \"semantic\"";

/// An answer for each path.
fn answer(path: &str) -> Response {
    let html = "text/html; charset=utf-8";
    let (media_type, body) = match path {
        "/key" => ("text/plain", key()),
        "/key.json" => ("application/json", serde_json::json!({ "pem": key() }).to_string()),
        "/shell" => (html, "<pre>uid=33(www-data) gid=33(www-data) groups=33(www-data)\n</pre>".to_owned()),
        "/sql" => (
            html,
            "<b>You have an error in your SQL syntax; check the manual that corresponds to your MySQL"
                .to_owned(),
        ),
        "/list/" => (
            html,
            "<html><head><title>Index of /list</title></head><a href=\"/\">Parent Directory</a>".to_owned(),
        ),
        "/style" => ("text/css", key()),
        "/long" => (html, format!("{}{}", "<p>page</p>\n".repeat(60_000), key())),
        _ => (html, "<html><body>hello</body></html>".to_owned()),
    };
    Response {
        status: 200,
        headers: vec![("Content-Type".to_owned(), media_type.to_owned())],
        body: body.into_bytes(),
    }
}

fn key() -> String {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n";
    format!("-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----\n", line.repeat(26))
}

fn serve(site: &str) -> (portcullis_testkit::upstream::Server, Served) {
    let application = application(|request| answer(&request.target));
    let served = Served::start_site(&application, site, "");
    (application, served)
}

fn event(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn keys_and_shells_are_blocked_messages_and_listings_logged() {
    let (_application, served) = serve(SITE);
    for (path, status, action) in [
        ("/key", 403, "deny"),
        ("/key.json", 403, "deny"),
        ("/shell", 403, "deny"),
        ("/sql", 200, "detect"),
        ("/list/", 200, "detect"),
    ] {
        let before = served.events(0).len();
        let got = served.get(path);
        assert_eq!(got.status(), status, "{path}");
        assert!(!String::from_utf8_lossy(&got.bytes).contains("MIIEvQ"), "{path}");
        let event = event(&served.events(before + 1)[before]);
        assert_eq!(event["verdict"]["action"], action, "{event}");
        assert_eq!(
            (&event["verdict"]["class"], &event["verdict"]["phase"]),
            (&"leak".into(), &4.into()),
            "{event}"
        );
        assert_eq!(event["findings"][0]["place"], "response-body", "{event}");
        assert!(!event.to_string().contains("MIIEvQ"), "{event}");
    }
    assert_eq!(served.get("/").status(), 200);
    assert_eq!(served.events(5).len(), 5);
    let metric = |outcome: &str| {
        served.metric(&format!("portcullis_semantic_findings_total{{class=\"leak\",outcome=\"{outcome}\"}}"))
    };
    until(|| (metric("blocked"), metric("detected")) == (3.0, 2.0));
}

#[test]
fn policy_says_otherwise() {
    let (_application, served) = serve(&format!(
        "{BY_ITSELF}\nsemantic = {{ response_wait = \"10m\", classes = {{ leak = \"block\" }}, exclude = [{{ class = \"leak\", path = \"/key\" }}] }}\n\
         [[sites.routes]]\npath = \"/shell\"\nsemantic = {{ classes = {{ leak = \"log\" }} }}\n\
         [[sites.routes]]\npath = \"/list/\"\nresponse_body = {{ inspect = false }}\n"
    ));
    for (path, status) in [("/sql", 403), ("/key", 200), ("/key.json", 200), ("/shell", 200), ("/list/", 200)]
    {
        assert_eq!(served.get(path).status(), status, "{path}");
    }
    let excluded = "portcullis_semantic_findings_total{class=\"leak\",outcome=\"excluded\"}";
    served.counts(excluded, 2.0);
    until(|| served.metric("portcullis_bytes_not_inspected_total{reason=\"body_access_off\"}") > 50.0);
}

#[test]
fn what_is_not_looked_at_passes_and_is_counted() {
    let counts = |site: &str, path: &str, reason: &str, bytes: usize| {
        let (_application, served) = serve(site);
        assert_eq!(served.get(path).status(), 200, "{path}");
        let series = format!("portcullis_bytes_not_inspected_total{{reason=\"{reason}\"}}");
        served.counts(&series, bytes as f64);
        assert!(served.events(0).is_empty());
    };
    let length = |path: &str| answer(path).body.len();
    counts(SITE, "/style", "media_type", length("/style"));
    // In chunks: the part within the limit is inspected. With a length that is over it: nothing, at once.
    counts(SITE, "/long", "over_limit", length("/long") - 524_288);
    counts(&format!("{SITE}\nresponse_body = {{ limit = \"1KiB\" }}"), "/key", "over_limit", length("/key"));
}

#[test]
fn codings_are_undone() {
    let application = application(|_| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(key().as_bytes()).unwrap();
        let headers = [("Content-Type", "text/plain"), ("Content-Encoding", "gzip")];
        Response {
            status: 200,
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            body: packer.finish().unwrap(),
        }
    });
    let served = Served::start_site(&application, SITE, "");
    assert_eq!(served.get("/").status(), 403);
}

/// An upstream that sends `first` of a page, and `second` once `until` says so.
fn in_pieces(
    first: &'static str,
    second: String,
    until: impl FnOnce() + Send + 'static,
) -> (SocketAddr, std::thread::JoinHandle<()>) {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = upstream.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = upstream.accept().unwrap();
        let mut head = [0; 4096];
        assert!(stream.read(&mut head).unwrap() > 0);
        let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(format!("{head}{}", chunk(first)).as_bytes()).unwrap();
        until();
        // The client may have been refused what is still to come.
        let _ = stream.write_all(format!("{}0\r\n\r\n", chunk(&second)).as_bytes());
    });
    (address, thread)
}

const RELEASED: &str = "portcullis_exchanges_not_inspected_total{reason=\"released\"}";

#[test]
fn a_page_in_pieces_does_not_wait() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let has_come = move || wait.recv_timeout(PATIENCE).expect("the client has the first part");
    let (address, thread) = in_pieces("first", key(), has_come);
    let served = Served::start_before(address, BY_ITSELF, "");
    let mut client = TcpStream::connect(served.address).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut got = Vec::new();
    let begin = Instant::now();
    let mut told = false;
    while !(told && got.ends_with(b"0\r\n\r\n")) && begin.elapsed() < PATIENCE {
        let mut part = [0; 4096];
        if let Ok(count) = client.read(&mut part) {
            got.extend_from_slice(&part[..count]);
        }
        if !told && got.windows(5).any(|part| part == b"first") {
            told = true;
            go.send(()).unwrap();
        }
    }
    thread.join().unwrap();
    let got = String::from_utf8_lossy(&got);
    assert!(got.contains("END PRIVATE KEY"), "{got}");
    served.counts(RELEASED, 1.0);
    served.stop();
}

#[test]
fn a_page_in_pieces_waits_as_long_as_the_site_says() {
    // Longer than it would wait without a word.
    let (address, thread) = in_pieces("first", key(), || std::thread::sleep(Duration::from_millis(500)));
    let served = Served::start_before(address, SITE, "");
    assert_eq!(served.get("/").status(), 403);
    served.counts(RELEASED, 0.0);
    thread.join().unwrap();
    served.stop();
}

#[test]
fn beside_rules_that_hold_bodies() {
    let (_application, served) = serve(&format!(
        "mode = \"both\"\nresponse_body = {{ inspect = true }}\n{}",
        served::rules("SecRule RESPONSE_BODY \"@contains hello\" \"id:1,phase:4,pass,log,msg:'Greeting'\"")
    ));
    assert_eq!((served.get("/key").status(), served.get("/").status()), (403, 200));
    let events: Vec<_> = served.events(2).iter().map(|line| event(line)).collect();
    assert_eq!(events[0]["verdict"]["class"], "leak");
    assert_eq!(events[1]["matches"][0]["rule_id"], 1, "{}", events[1]);
}
