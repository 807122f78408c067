//! A proxy in this process between raw sockets: a client that sees every byte, a backend that records every
//! byte.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portcullis_config::{Config, Format};
use portcullis_event::{Action, Event, NotInspected, UpstreamError};
use portcullis_http::message::Refusal;
use portcullis_metrics::{DataPlane, DataPlaneNames, Registry};
use portcullis_proxy::{Proxy, Services};

pub mod authority;
pub mod http2;
pub mod http2_backend;
mod rules;
pub use portcullis_testkit::wait::{PATIENCE, until};
pub use rules::inspectors;

/// A request as a backend received it.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub head: String,
    pub body: Vec<u8>,
    /// The lines behind a chunked body.
    pub trailers: Vec<String>,
    /// Number of the connection it came on, from 0.
    pub connection: usize,
}

impl Recorded {
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or("")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// What a backend does with a request.
pub enum Reply {
    /// Send these bytes and keep the connection.
    Bytes(Vec<u8>),
    /// Send these bytes and close.
    Close(Vec<u8>),
    /// Say nothing until the client is tired of it.
    Silence,
    /// Send these bytes, then echo until the client ends.
    Echo(Vec<u8>),
    /// Send each part, and rest after it.
    Slowly(Vec<Vec<u8>>, Duration),
    /// Send the first part, and each further one when the test says so.
    Steps(Vec<Vec<u8>>, Arc<Mutex<Receiver<()>>>),
}

pub fn ok(body: &str) -> Reply {
    Reply::Bytes(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())
}

/// A backend on a port of its own.
pub struct Backend {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Recorded>>>,
    closed: Arc<AtomicUsize>,
}

impl Backend {
    pub fn start(answer: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> Backend {
        Backend::start_at("127.0.0.1:0".parse().unwrap(), answer)
    }

    /// A backend on a given port; see [`vacant`].
    pub fn start_at(
        address: SocketAddr,
        answer: impl Fn(&Recorded) -> Reply + Send + Sync + 'static,
    ) -> Backend {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, record) = (Arc::new(answer), Arc::clone(&seen));
        let closed = Arc::new(AtomicUsize::new(0));
        let closes = Arc::clone(&closed);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let (answer, record, closes) =
                    (Arc::clone(&answer), Arc::clone(&record), Arc::clone(&closes));
                let Ok(stream) = stream else { return };
                std::thread::spawn(move || {
                    serve(stream, number, &*answer, &record);
                    closes.fetch_add(1, Relaxed);
                });
            }
        });
        Backend { address, seen, closed }
    }

    /// How many connections it has closed.
    pub fn closed(&self) -> usize {
        self.closed.load(Relaxed)
    }

    pub fn seen(&self) -> Vec<Recorded> {
        self.seen.lock().unwrap().clone()
    }
}

/// An address where nothing listens.
pub fn vacant() -> SocketAddr {
    portcullis_testkit::proxy::free_address().unwrap()
}

fn serve(
    mut stream: TcpStream,
    connection: usize,
    answer: &dyn Fn(&Recorded) -> Reply,
    record: &Mutex<Vec<Recorded>>,
) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut input = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut input, connection) {
        record.lock().unwrap().push(request.clone());
        match answer(&request) {
            Reply::Bytes(bytes) => drop(stream.write_all(&bytes)),
            Reply::Close(bytes) => return drop(stream.write_all(&bytes)),
            Reply::Silence => {
                let _ = stream.read(&mut [0; 1024]);
                return;
            }
            Reply::Echo(bytes) => {
                let _ = stream.write_all(&bytes);
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    let _ = stream.write_all(&buffer[..count]);
                }
                return;
            }
            Reply::Steps(parts, step) => {
                for (number, part) in parts.iter().enumerate() {
                    if number > 0 && step.lock().unwrap().recv_timeout(PATIENCE).is_err() {
                        return;
                    }
                    let _ = stream.write_all(part);
                }
            }
            Reply::Slowly(parts, pause) => {
                for part in parts {
                    let _ = stream.write_all(&part);
                    std::thread::sleep(pause);
                }
            }
        }
    }
}

/// Frames as the plainest server would: `Content-Length`, or chunks.
fn read_request(stream: &mut TcpStream, input: &mut Vec<u8>, connection: usize) -> Option<Recorded> {
    let mut more = |input: &mut Vec<u8>| -> Option<()> {
        let mut buffer = [0; 16384];
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        input.extend_from_slice(&buffer[..count]);
        Some(())
    };
    let end = loop {
        if let Some(at) = find(input, b"\r\n\r\n") {
            break at + 4;
        }
        more(input)?;
    };
    let head = String::from_utf8_lossy(&input[..end]).into_owned();
    input.drain(..end);
    let mut request = Recorded { head, body: Vec::new(), trailers: Vec::new(), connection };
    if request.header("transfer-encoding").is_some() {
        let mut ended = false;
        loop {
            let line = loop {
                match find(input, b"\r\n") {
                    Some(at) => break at,
                    None => more(input)?,
                }
            };
            let text = std::str::from_utf8(&input[..line]).ok()?.to_owned();
            if ended && text.is_empty() {
                input.drain(..2);
                return Some(request);
            }
            if ended {
                request.trailers.push(text);
                input.drain(..line + 2);
                continue;
            }
            let size = usize::from_str_radix(&text, 16).ok()?;
            if size == 0 {
                ended = true;
                input.drain(..line + 2);
                continue;
            }
            while input.len() < line + 2 + size + 2 {
                more(input)?;
            }
            request.body.extend_from_slice(&input[line + 2..line + 2 + size]);
            input.drain(..line + 2 + size + 2);
        }
    }
    let length = request.header("content-length").map_or(0, |value| value.parse().expect("a length"));
    while input.len() < length {
        more(input)?;
    }
    request.body = input.drain(..length).collect();
    Some(request)
}

pub fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// A proxy and what it reports.
pub struct Front {
    pub proxy: Proxy,
    pub registry: Arc<Registry>,
    events: Arc<Mutex<Vec<Event>>>,
    lines: Arc<Mutex<Vec<String>>>,
}

/// A document with one listener, one site and one upstream; `more` goes before them, `site` into the site.
pub fn document(upstream: SocketAddr, more: &str, listener: &str, site: &str, group: &str) -> String {
    format!(
        "workers = 1\n{more}\n[[listeners]]\nname = \"main\"\naddress = \"127.0.0.1:0\"\n{listener}\n\
         [[sites]]\nname = \"site\"\nhosts = [\"*\"]\nupstream = \"app\"\n{site}\n\
         [upstreams.app]\nendpoints = [\"http://{upstream}\"]\n{group}\n"
    )
}

/// Rules that act on words in target or body.
pub const RULES: &str = r#"rules = { directives = '''
SecRule REQUEST_URI "@contains attack" "id:1,phase:1,deny,status:403,log,msg:'attack'"
SecRule REQUEST_URI "@contains dropme" "id:2,phase:1,drop,log"
SecRule REQUEST_URI "@contains moveme" "id:3,phase:1,redirect:http://elsewhere/,log"
SecRule REQUEST_URI "@contains panicme" "id:4,phase:1,pass,nolog,initcol:ip=panic"
SecRule ARGS|REQUEST_BODY "@contains attack" "id:5,phase:2,deny,status:403,log"
SecRule RESPONSE_BODY "@contains secret" "id:6,phase:4,deny,status:403,log"
''' }
"#;

impl Front {
    /// The plainest proxy before `backend`.
    pub fn plain(backend: &Backend) -> Front {
        Front::start(&document(backend.address, "", "", RULES, ""))
    }

    pub fn start(document: &str) -> Front {
        Front::coalescing(document, 0)
    }

    /// Of more than so many requests a second that repeat an attack the further ones become one event.
    pub fn coalescing(document: &str, coalesce_above: u32) -> Front {
        let config = parse(document);
        let registry = Registry::new();
        let refusals: Vec<&'static str> = Refusal::ALL.iter().map(|refusal| refusal.name()).collect();
        let ambiguities = portcullis_http::body::Ambiguity::ALL.map(|ambiguity| ambiguity.name());
        let names = DataPlaneNames {
            verdicts: Action::NAMES,
            not_inspected: NotInspected::NAMES,
            upstream_errors: UpstreamError::NAMES,
            refusals: &refusals,
            ambiguities: &ambiguities,
            classes: &[],
            finding_outcomes: &[],
        };
        let events = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&events);
        let lines = Arc::new(Mutex::new(Vec::new()));
        let said = Arc::clone(&lines);
        let issued = portcullis_inspect::IssuedSites::default();
        let services = Services {
            issued_cookies: Arc::new(move |site| issued.site(site)),
            registry: Arc::clone(&registry),
            metrics: DataPlane::new(&registry, "test", names),
            on_event: Some(Arc::new(move |event| sink.lock().unwrap().push(event))),
            coalesce_above,
            keep_request_bytes: 64 << 10,
            capture: None,
            on_request: None,
            on_file: Arc::new(|_| {}),
            access_logs: config.access_log_files(),
            on_access: Arc::new(|_, _| {}),
            traces: None,
            say: Arc::new(move |line| said.lock().unwrap().push(line.to_string())),
        };
        let proxy =
            Proxy::start(&config, &inspectors(&config), services).unwrap_or_else(|error| panic!("{error}"));
        Front { proxy, registry, events, lines }
    }

    pub fn address(&self) -> SocketAddr {
        self.proxy.addresses()[0]
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address())
    }

    /// One request on a connection of its own, and everything that comes back until the proxy closes.
    pub fn once(&self, request: impl AsRef<[u8]>) -> String {
        let mut client = self.client();
        client.send(request);
        client.rest()
    }

    /// Waits for this many events.
    pub fn events(&self, count: usize) -> Vec<Event> {
        until(|| self.events.lock().unwrap().len() >= count);
        self.events.lock().unwrap().clone()
    }

    /// All events, once the proxy has ended.
    pub fn end(self) -> Vec<Event> {
        self.proxy.drain();
        self.events.lock().unwrap().clone()
    }

    /// What the operator was told.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// The sum of the series that begin with `prefix`.
    pub fn metric(&self, prefix: &str) -> f64 {
        let text = self.registry.render();
        let lines = text.lines().filter(|line| line.starts_with(prefix));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// The sum of the series that begin with `prefix` becomes `value`. A request is counted when its answer
    /// is out already.
    #[track_caller]
    pub fn counts(&self, prefix: &str, value: f64) {
        portcullis_testkit::wait::becomes((prefix, value), || (prefix, self.metric(prefix)));
    }
}

pub fn parse(document: &str) -> Config {
    Config::parse(document, Format::Toml, "test.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// A raw client.
pub struct Client {
    pub stream: TcpStream,
    pub input: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { stream, input: Vec::new() }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // A proxy that has answered may have closed; the answer tells.
        let _ = self.stream.write_all(bytes.as_ref());
    }

    /// Reads one response with `Content-Length` or chunks; the body decoded, heads of 1xx answers skipped.
    pub fn response(&mut self) -> (String, Vec<u8>) {
        let head = self.head();
        let value = |name: &str| {
            head.lines().find_map(|line| {
                let (found, value) = line.split_once(": ")?;
                found.eq_ignore_ascii_case(name).then(|| value.to_string())
            })
        };
        let mut body = Vec::new();
        if value("transfer-encoding").is_some() {
            loop {
                let line = self.line();
                let size =
                    usize::from_str_radix(&line, 16).unwrap_or_else(|_| panic!("no chunk size: {line}"));
                body.extend(self.take(size));
                if size == 0 {
                    // Trailers, if any, up to the empty line.
                    while !self.line().is_empty() {}
                    break;
                }
                assert_eq!(self.line(), "");
            }
        } else if let Some(length) = value("content-length") {
            body = self.take(length.parse().unwrap());
        }
        (head, body)
    }

    /// Whether the connection was closed before anything of an answer came; waits for either.
    pub fn is_closed(&mut self) -> bool {
        self.input.is_empty() && !self.fill()
    }

    /// Reads a response head.
    pub fn head(&mut self) -> String {
        loop {
            if let Some(at) = find(&self.input, b"\r\n\r\n") {
                let head: Vec<u8> = self.input.drain(..at + 4).collect();
                return String::from_utf8(head).unwrap();
            }
            assert!(self.fill(), "closed within a head: {:?}", String::from_utf8_lossy(&self.input));
        }
    }

    fn line(&mut self) -> String {
        loop {
            if let Some(at) = find(&self.input, b"\r\n") {
                let line: Vec<u8> = self.input.drain(..at + 2).collect();
                return String::from_utf8_lossy(&line[..at]).into_owned();
            }
            assert!(self.fill(), "closed within a line");
        }
    }

    pub fn take(&mut self, count: usize) -> Vec<u8> {
        while self.input.len() < count {
            assert!(self.fill(), "closed within a body");
        }
        self.input.drain(..count).collect()
    }

    fn fill(&mut self) -> bool {
        let mut buffer = [0; 16384];
        match self.stream.read(&mut buffer) {
            Ok(count) => {
                self.input.extend_from_slice(&buffer[..count]);
                count > 0
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("the proxy says nothing"),
            Err(_) => false,
        }
    }

    /// Everything until the proxy closes.
    pub fn rest(&mut self) -> String {
        while self.fill() {}
        String::from_utf8_lossy(&std::mem::take(&mut self.input)).into_owned()
    }
}

/// The status of a response.
pub fn status(response: &str) -> u16 {
    response.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// The value of a header in a response.
pub fn header<'r>(response: &'r str, name: &str) -> Option<&'r str> {
    response.lines().take_while(|line| !line.is_empty()).find_map(|line| {
        let (found, value) = line.split_once(": ")?;
        found.eq_ignore_ascii_case(name).then_some(value)
    })
}
