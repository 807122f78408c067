//! What tests of sinks share: events, sinks from documents, programs that may be missing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portcullis_config::{Config, Format};
use portcullis_event::{
    Action, Event, Finding, FindingOutcome, Header, RuleEffect, RuleInfo, RuleMatch, SemanticScore, Timestamp,
};
use portcullis_metrics::Registry;
use portcullis_sinks::Sinks;
use portcullis_types::{Class, Phase, Place, RuleId, Severity};

pub const PATIENCE: Duration = Duration::from_secs(30);
pub const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
pub const EVIDENCE: &str = "1' union select a|b=c\\d,\"e\"]\r\n<134>1 CEF:0|x} -- é";

/// A blocked SQL injection, with values that try to end what they stand in.
pub fn event(id: &str) -> Event {
    let mut event = Event::new(id, Timestamp::from_epoch_millis(1_790_000_000_123));
    event.site = "shop".into();
    event.route = "api".into();
    event.client = "192.0.2.7:4711".parse::<std::net::SocketAddr>().unwrap().into();
    event.client.country = Some("DE".into());
    event.server.addr = "10.0.0.2".into();
    event.server.port = 443;
    event.server.host = "shop.example".into();
    event.request.method = "POST".into();
    event.request.target = "/login?q=1'\n%20union|x=y".into();
    event.request.headers = vec![Header { name: "User-Agent".into(), value: "sql\"map\\/1.0".into() }];
    event.response.status = Some(403);
    event.duration_us = 1234;
    event.trace_id = Some(TRACE.into());
    event.verdict.action = Action::Deny;
    event.verdict.status = Some(403);
    event.verdict.class = Some(Class::Sqli);
    event.verdict.reason = "SQL injection in query:q".into();
    event.scores.semantic = vec![SemanticScore {
        class: Class::Sqli,
        place: Place::Query,
        name: "q".into(),
        points: 9.5,
        threshold: 5.0,
        outcome: FindingOutcome::Blocked,
    }];
    event.findings = vec![finding("sqli.union", Place::Query, "q", EVIDENCE)];
    event.matches = vec![rule(942_100, "ARGS:q", "1 union select")];
    event
}

pub fn finding(kind: &'static str, place: Place, name: &str, evidence: &str) -> Finding {
    Finding {
        class: Class::Sqli,
        kind: kind.into(),
        place,
        name: name.into(),
        decoded: vec![],
        span: None,
        evidence: evidence.into(),
        count: 1,
        below: false,
        mentioned: false,
        suppressed_by: None,
        points: 9.5,
        reason: "UNION reads another table".into(),
        reference: "https://cwe.mitre.org/data/definitions/89.html".into(),
    }
}

pub fn rule(id: u32, target: &str, value: &str) -> RuleMatch {
    let info = RuleInfo {
        rule_id: RuleId(id),
        phase: Phase::RequestBody,
        severity: Some(Severity::Critical),
        operator: "rx".into(),
        argument: "".into(),
        transformations: Box::default(),
        tags: Box::new(["attack-sqli".into()]),
        ver: None,
        rev: None,
        maturity: None,
        accuracy: None,
        file: "rules.conf".into(),
        line: 1,
    };
    RuleMatch {
        rule: Arc::new(info),
        message: "SQL injection".into(),
        data: String::new(),
        target: target.into(),
        value: value.into(),
        span: None,
        points: 5,
        effect: RuleEffect::None,
    }
}

/// Running sinks, with what they count and say.
pub struct Running {
    sinks: Option<Sinks>,
    pub registry: Arc<Registry>,
    said: Arc<Mutex<Vec<String>>>,
}

/// Sinks of the tables of a document, which are TOML; paths in them start from `/`.
pub fn start(tables: &str) -> Running {
    let registry = Registry::new();
    let said = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&said);
    let config = config(tables);
    let sinks = Sinks::start(&config.event_sinks, &registry, move |line: &str| {
        keep.lock().unwrap().push(line.to_owned());
    });
    Running { sinks: Some(sinks.expect("the sinks start")), registry, said }
}

pub fn config(tables: &str) -> Config {
    let document = format!(
        "listeners = [{{ address = \"127.0.0.1:0\" }}]\nsites = [{{ name = \"s\", hosts = [\"*\"], upstream = \"u\" }}]\n\
         upstreams = {{ u = {{ endpoints = [\"http://127.0.0.1:1\"] }} }}\n{tables}"
    );
    Config::parse(&document, Format::Toml, "/test.toml").unwrap_or_else(|error| panic!("{error}"))
}

impl Running {
    pub fn submit(&self, event: Event) {
        self.sinks.as_ref().unwrap().sender().submit(&Arc::new(event));
    }

    /// Ends the sinks; how many events were lost by that.
    pub fn end(&mut self, deadline: Duration) -> u64 {
        self.sinks.take().unwrap().shutdown(deadline)
    }

    /// A counter or gauge, by its name and labels as they are shown.
    pub fn metric(&self, name: &str) -> i64 {
        metric(&self.registry, name)
    }

    pub fn sent(&self, sink: &str) -> i64 {
        self.metric(&format!("portcullis_sink_events_sent_total{{sink=\"{sink}\"}}"))
    }

    pub fn dropped(&self, sink: &str, reason: &str) -> i64 {
        self.metric(&format!("portcullis_sink_events_dropped_total{{sink=\"{sink}\",reason=\"{reason}\"}}"))
    }

    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }
}

pub fn metric(registry: &Registry, name: &str) -> i64 {
    let text = registry.render();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
}

/// Waits until `get` has something.
pub fn eventually<T>(what: &str, mut get: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = get() {
            return value;
        }
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The program, or none: then the test is left out, and fails in CI.
pub fn need(program: &str, package: &str) -> Option<PathBuf> {
    let folders = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];
    let found = folders.iter().map(|folder| Path::new(folder).join(program)).find(|path| path.exists());
    if found.is_none() {
        left_out(&format!("{program} is needed (apt-get install {package})"));
    }
    found
}

/// Python with the engine of today's ClickHouse: that of `PORTCULLIS_PYTHON`, or `python3`. It is too large
/// for CI.
pub fn python_with_chdb() -> Option<String> {
    let python = std::env::var("PORTCULLIS_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output = Command::new(&python).args(["-c", "import chdb"]).output();
    if output.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    eprintln!("left out: Python with chdb is needed (PORTCULLIS_PYTHON names one)");
    None
}

fn left_out(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    eprintln!("left out: {why}");
}

/// A request that an [`HttpServer`] got.
#[derive(Clone, Debug)]
pub struct Request {
    pub head: String,
    pub body: Vec<u8>,
}

/// A small HTTP server that keeps what it gets. It runs until the process ends.
pub struct HttpServer {
    pub port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl HttpServer {
    /// `answer` says what is sent back, as bytes; the connection is closed behind it.
    pub fn start(answer: impl Fn(usize, &Request, &mut std::net::TcpStream) + Send + 'static) -> HttpServer {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&requests);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                let Some(request) = read_request(&mut stream) else { continue };
                keep.lock().unwrap().push(request.clone());
                answer(number, &request, &mut stream);
            }
        });
        HttpServer { port, requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// What came, once there are so many requests.
    pub fn wait(&self, count: usize) -> Vec<Request> {
        eventually("requests", || Some(self.requests()).filter(|requests| requests.len() >= count))
    }
}

fn read_request(stream: &mut std::net::TcpStream) -> Option<Request> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = head.lines().find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length: ")
                .and_then(|text| text.parse::<usize>().ok())
        });
        let body = bytes[end + 4..].to_vec();
        if body.len() >= length.unwrap_or(0) {
            return Some(Request { head, body });
        }
    }
}

/// An answer with this status line and body.
pub fn answer(stream: &mut std::net::TcpStream, status: &str, more: &str, body: &[u8]) {
    use std::io::Write as _;
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{more}\r\n", body.len());
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body);
}

pub fn ok(stream: &mut std::net::TcpStream) {
    answer(stream, "200 OK", "", b"");
}

/// Runs a script with this on its standard input.
pub fn python(python: &str, script: &str, input: &[u8]) -> String {
    use std::io::Write as _;
    let mut child = Command::new(python)
        .args(["-c", script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{script}");
    String::from_utf8(output.stdout).unwrap()
}
