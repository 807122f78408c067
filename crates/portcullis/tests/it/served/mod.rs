//! The real program before an application of the test: rules in, bytes in, bytes out.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use portcullis_testkit::process::Process;

pub use portcullis_testkit::upstream::{Request, Response, Server};
pub use portcullis_testkit::wait::{PATIENCE, until};

pub fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_portcullis"))
}

pub fn free_address() -> SocketAddr {
    portcullis_testkit::proxy::free_address().unwrap()
}

pub fn application(handler: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Server {
    Server::start("127.0.0.1:0", handler).unwrap()
}

/// Answers with a text.
pub fn says(text: impl Into<String>) -> Response {
    let headers = vec![("Content-Type".to_owned(), "text/html; charset=utf-8".to_owned())];
    Response { status: 200, headers, body: text.into().into_bytes() }
}

/// A running program with one site, its events and its admin listener.
pub struct Served {
    process: Option<Process>,
    pub address: SocketAddr,
    pub admin: SocketAddr,
    pub folder: tempfile::TempDir,
}

impl Served {
    /// Starts before `application`. `directives` are the rules; `more` goes into the document behind them.
    pub fn start(application: &Server, directives: &str, more: &str) -> Served {
        Served::start_site(application, &rules(directives), more)
    }

    /// The same with these lines in the table of the site.
    pub fn start_site(application: &Server, site: &str, more: &str) -> Served {
        Served::start_before(application.address(), site, more)
    }

    /// The same before what listens at `upstream`.
    pub fn start_before(upstream: SocketAddr, site: &str, more: &str) -> Served {
        Served::start_edited(upstream, site, more, |text| text)
    }

    /// As [`start_site`](Served::start_site), with these lines in the table of the listener.
    #[allow(dead_code, reason = "used by http3.rs")]
    pub fn start_listener(application: &Server, listener: &str, site: &str) -> Served {
        Served::start_edited(application.address(), site, "", |text| {
            text.replacen("[[sites]]", &format!("{listener}\n[[sites]]"), 1)
        })
    }

    pub fn start_edited(
        upstream: SocketAddr,
        site: &str,
        more: &str,
        edit: impl FnOnce(String) -> String,
    ) -> Served {
        let folder = tempfile::tempdir().unwrap();
        let (address, admin) = (free_address(), free_address());
        let config = document(folder.path(), address, admin, upstream, site, more);
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, edit(text)).unwrap();
        let arguments: [OsString; 3] = ["run".into(), "--config".into(), config.into()];
        let output = folder.path().join("output");
        let mut process = Process::start(&program(), &arguments, &output).unwrap();
        if let Err(error) = process.wait_for(address, PATIENCE) {
            panic!("{error:?}: {}", std::fs::read_to_string(output).unwrap_or_default());
        }
        Served { process: Some(process), address, admin, folder }
    }

    /// As [`start_site`](Served::start_site), with this event file.
    pub fn start_with_events(application: &Server, site: &str, more: &str, events: &Path) -> Served {
        let file = format!("\"{}\"", events.display());
        Served::start_edited(application.address(), site, more, |text| {
            text.replace("\"events.jsonl\"", &file)
        })
    }

    /// One request on a connection of its own, and everything until the program closes.
    pub fn raw(&self, request: impl AsRef<[u8]>) -> Answer {
        let begin = Instant::now();
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_ref()).unwrap();
        let mut bytes = Vec::new();
        // A reset is how a dropped connection may look.
        let _ = stream.read_to_end(&mut bytes);
        Answer { bytes, took: begin.elapsed() }
    }

    pub fn get(&self, target: &str) -> Answer {
        self.raw(format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
    }

    pub fn post(&self, target: &str, media_type: &str, body: impl AsRef<[u8]>) -> Answer {
        let body = body.as_ref();
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        self.raw([head.as_bytes(), body].concat())
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.as_ref().map_or(0, Process::id)
    }

    pub fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(self.admin).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// The value of the series that begins a line like this.
    pub fn metric(&self, series: &str) -> f64 {
        let text = self.metrics();
        let line = text.lines().find(|line| line.starts_with(series));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
    }

    /// That value becomes `value`. A request is counted when its answer is out already.
    #[track_caller]
    pub fn counts(&self, series: &str, value: f64) {
        portcullis_testkit::wait::becomes((series, value), || (series, self.metric(series)));
    }

    /// The event file, once it has so many lines.
    pub fn events(&self, count: usize) -> Vec<String> {
        lines(&self.folder.path().join("events.jsonl"), count)
    }

    /// Ends the program, everything written.
    pub fn stop(mut self) -> tempfile::TempDir {
        if let Some(process) = self.process.take() {
            assert!(process.stop(PATIENCE).unwrap().success());
        }
        self.folder
    }
}

/// The line of a site that has these rules.
/// The lines of a file once there are so many. One that is being written does not count yet.
pub fn lines(file: &Path, count: usize) -> Vec<String> {
    let begin = Instant::now();
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let lines: Vec<String> = whole.map(str::to_owned).collect();
        if lines.len() >= count {
            return lines;
        }
        assert!(begin.elapsed() < PATIENCE, "{count} lines wanted: {text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn rules(directives: &str) -> String {
    format!("rules = {{ directives = '''\n{directives}\n''' }}")
}

/// Writes a configuration document and says where.
pub fn document(
    folder: &Path,
    address: SocketAddr,
    admin: SocketAddr,
    upstream: SocketAddr,
    site: &str,
    more: &str,
) -> PathBuf {
    let text = format!(
        "workers = 1\nadmin = {{ listen = \"{admin}\" }}\nevents = {{ file = \"events.jsonl\" }}\n\
         [[listeners]]\naddress = \"{address}\"\n\
         [[sites]]\nname = \"site\"\nhosts = [\"*\"]\nupstream = \"app\"\n\
         {site}\n\
         [upstreams.app]\nendpoints = [\"http://{upstream}\"]\n{more}\n"
    );
    let path = folder.join("portcullis.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// The answer.
pub struct Answer {
    pub bytes: Vec<u8>,
    pub took: Duration,
}

impl Answer {
    /// 0 if there was no answer.
    pub fn status(&self) -> u16 {
        let text = self.text();
        text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub fn header(&self, name: &str) -> Option<String> {
        let text = self.text();
        text.lines().take_while(|line| !line.is_empty()).find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    }

    /// The body, chunks put together. Panics if the framing does not fit the bytes.
    pub fn body(&self) -> String {
        let at = self.bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
        let rest = &self.bytes[at..];
        let body = if self.header("transfer-encoding").is_some() {
            unchunked(rest)
        } else {
            if let Some(length) = self.header("content-length") {
                assert_eq!(length.parse(), Ok(rest.len()), "{}", self.text());
            }
            rest.to_vec()
        };
        String::from_utf8_lossy(&body).into_owned()
    }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n").expect("a chunk size");
        let size =
            usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).expect("a chunk size");
        rest = &rest[line + 2..];
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&rest[..size]);
        assert_eq!(&rest[size..size + 2], b"\r\n");
        rest = &rest[size + 2..];
    }
}
