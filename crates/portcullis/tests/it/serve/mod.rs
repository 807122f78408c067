//! `portcullis serve` behind real servers: what they show, what clients get, what events and metrics tell.

mod caddy;
mod check;
mod envoy;
mod haproxy;
mod traefik;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

use portcullis_testkit::process::{Process, Signal};
use serde_json::Value;

use crate::served::{Answer, PATIENCE, Request, Server, application, free_address, lines, program, says};

/// Blocks what has `attack` in an argument, a body or a response, and redirects `elsewhere`.
const RULES: &str = "SecRuleEngine On
SecRequestBodyAccess On
SecResponseBodyAccess On
SecResponseBodyMimeType text/html
SecRequestBodyLimit 200000
SecRequestBodyLimitAction Reject
SecRule ARGS|REQUEST_HEADERS:X-Note \"@contains attack\" \"id:1,phase:2,deny,status:403,log,msg:'found'\"
SecRule ARGS \"@streq elsewhere\" \"id:2,phase:1,redirect:'https://a.example/',status:302,log\"
SecRule ARGS \"@streq gone\" \"id:3,phase:1,drop,log\"
SecRule RESPONSE_BODY \"@contains secret\" \"id:4,phase:4,deny,status:403,log,msg:'leak'\"
";

/// A running `portcullis serve`.
pub struct Serve {
    process: Option<Process>,
    pub address: SocketAddr,
    admin: SocketAddr,
    pub folder: tempfile::TempDir,
}

impl Serve {
    /// Starts an integration with [`RULES`] and these arguments.
    pub fn start(integration: &str, more: &[&str]) -> Serve {
        Serve::start_with(integration, RULES, more)
    }

    pub fn start_with(integration: &str, rules: &str, more: &[&str]) -> Serve {
        let folder = tempfile::tempdir().unwrap();
        let (address, admin) = (free_address(), free_address());
        let path = |name: &str| folder.path().join(name).into_os_string();
        std::fs::write(path("rules.conf"), rules).unwrap();
        let mut arguments: Vec<OsString> = vec!["serve".into(), integration.into()];
        arguments.extend([
            "--listen".into(),
            address.to_string().into(),
            "--rules".into(),
            path("rules.conf"),
        ]);
        arguments.extend([
            "--events".into(),
            path("events.jsonl"),
            "--admin".into(),
            admin.to_string().into(),
        ]);
        arguments.extend(["--workers".into(), "2".into(), "--runtime-folder".into(), path("runtime")]);
        arguments.extend(more.iter().map(OsString::from));
        let output = folder.path().join("output");
        let mut process = Process::start(&program(), &arguments, &output).unwrap();
        if let Err(error) = process.wait_for(admin, PATIENCE) {
            panic!("{error:?}");
        }
        Serve { process: Some(process), address, admin, folder }
    }

    pub fn metric(&self, series: &str) -> f64 {
        let text =
            exchange(self.admin, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let text = text.text();
        let line = text.lines().find(|line| line.starts_with(series));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
    }

    #[track_caller]
    pub fn counts(&self, series: &str, value: f64) {
        portcullis_testkit::wait::becomes((series, value), || (series, self.metric(series)));
    }

    /// The events, once there are so many.
    pub fn events(&self, count: usize) -> Vec<Value> {
        let lines = lines(&self.folder.path().join("events.jsonl"), count);
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn signal(&self, signal: Signal) {
        self.process.as_ref().unwrap().signal(signal).unwrap();
    }

    /// Ends it by SIGTERM, which it has to follow.
    pub fn stop(mut self) {
        assert!(self.process.take().unwrap().stop(PATIENCE).unwrap().success());
    }
}

/// One request on a connection of its own.
pub fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> Answer {
    let begin = std::time::Instant::now();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // A server that refuses may close before all of it was written.
    let _ = stream.write_all(request.as_ref());
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    Answer { bytes, took: begin.elapsed() }
}

pub fn get(address: SocketAddr, target: &str) -> Answer {
    exchange(address, format!("GET {target} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"))
}

pub fn post(address: SocketAddr, body: &str) -> Answer {
    let head =
        "POST /form HTTP/1.1\r\nHost: a.example\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    exchange(address, format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()))
}

/// The program of another server; none where it is not installed, which only a person's machine may do.
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{name} is missing; scripts/test-tools.sh installs it");
        eprintln!("left out: {name} is not installed");
    }
    found
}

/// A file of `examples/integrations`, its addresses replaced.
pub fn example(name: &str, addresses: &[(&str, SocketAddr)]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/integrations");
    let mut text = std::fs::read_to_string(folder.join(name)).unwrap();
    for (address, actual) in addresses {
        assert!(text.contains(address), "{name}: {address}");
        text = text.replace(address, &actual.to_string());
    }
    text
}

/// Answers with a page, and with the body that it got.
pub fn site() -> Server {
    application(|request: &Request| match request.target.as_str() {
        "/leak" => says("a secret of ours"),
        _ => says(format!("hello {} {}", request.target, request.body.len())),
    })
}

/// A started server of others, in front of [`site`].
pub struct Front {
    _process: Process,
    pub address: SocketAddr,
}

impl Front {
    pub fn start(program: &Path, arguments: &[OsString], address: SocketAddr, folder: &Path) -> Front {
        let mut process = Process::start(program, arguments, &folder.join("front.output")).unwrap();
        if let Err(error) = process.wait_for(address, PATIENCE) {
            panic!("{error:?}");
        }
        Front { _process: process, address }
    }
}
