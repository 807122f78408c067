//! Our own proxy to be measured: this program once more, with a configuration file made for it.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use portcullis_loadgen::{Certificates, NAME};
use tempfile::TempDir;

use super::Mode;
use crate::outcome::Failure;

/// The settings of the proxy.
pub struct Settings<'a> {
    /// None: no inspection.
    pub mode: Option<Mode>,
    pub crs: Option<&'a Path>,
    pub paranoia: Option<u8>,
    pub workers: Option<u32>,
    /// The address of the application without TLS.
    pub plain: Option<SocketAddr>,
    /// And with it.
    pub tls: Option<SocketAddr>,
}

/// A running proxy. Dropped, it is killed.
pub struct Proxy {
    pub mode: Option<Mode>,
    pub plain: SocketAddr,
    /// None if the application has no TLS.
    pub tls: Option<SocketAddr>,
    child: Child,
    /// Its document, certificates and events.
    _folder: TempDir,
}

impl Proxy {
    /// Starts it and waits until it listens.
    pub fn start(settings: &Settings<'_>, certificates: &Certificates) -> Result<Proxy, Failure> {
        let folder =
            tempfile::Builder::new().prefix("portcullis-bench.").tempdir().map_err(Failure::failed)?;
        let file = |name: &str, text: String| fs::write(folder.path().join(name), text);
        file("authority.pem", certificates.authority_pem()).map_err(Failure::failed)?;
        file("certificate.pem", certificates.certificate_pem()).map_err(Failure::failed)?;
        file("key.pem", certificates.key_pem()).map_err(Failure::failed)?;
        file("portcullis.toml", document(settings)?).map_err(Failure::failed)?;
        let program = std::env::current_exe().map_err(Failure::failed)?;
        let mut child = Command::new(program)
            .arg("run")
            .arg("--config")
            .arg(folder.path().join("portcullis.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Failure::failed)?;
        let expected = 1 + usize::from(settings.tls.is_some());
        let output = child.stderr.take();
        // From here on, dropping it ends the child.
        let mut proxy = Proxy {
            mode: settings.mode,
            plain: ([127, 0, 0, 1], 0).into(),
            tls: None,
            child,
            _folder: folder,
        };
        let addresses = listening(output, expected)?;
        proxy.plain = addresses[0];
        proxy.tls = addresses.get(1).copied();
        Ok(proxy)
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It has nothing to lose; gone already is fine, too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The addresses that it says it listens on. Its later output is read and thrown away, so that it
/// never waits for a reader.
fn listening(output: Option<ChildStderr>, expected: usize) -> Result<Vec<SocketAddr>, Failure> {
    let mut lines = output.map(BufReader::new).into_iter().flat_map(BufRead::lines);
    let (mut addresses, mut said) = (Vec::new(), String::new());
    for line in lines.by_ref() {
        let line = line.map_err(Failure::failed)?;
        let address = line.strip_prefix("portcullis: listening on ");
        addresses.extend(address.and_then(|text| text.parse::<SocketAddr>().ok()));
        if addresses.len() == expected {
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(addresses);
        }
        // Writing to a string does not fail.
        let _ = writeln!(said, "{line}");
    }
    Err(Failure::failed(format_args!("a proxy to be measured did not start:\n{said}")))
}

fn document(settings: &Settings<'_>) -> Result<String, Failure> {
    let mut site = match settings.mode {
        None => "mode = \"off\"\n".to_owned(),
        Some(mode) => format!("mode = \"{}\"\n", mode.name()),
    };
    if let (Some(Mode::Crs | Mode::Both), Some(crs)) = (settings.mode, settings.crs) {
        let crs = fs::canonicalize(crs)
            .map_err(|error| Failure::failed(format_args!("{}: {error}", crs.display())))?;
        let paranoia = settings.paranoia.map_or(String::new(), |level| format!(", paranoia = {level}"));
        let crs = serde_json::to_string(&crs.to_string_lossy()).map_err(Failure::failed)?;
        site += &format!("rules = {{ crs = {crs}{paranoia} }}\n");
    }
    let mut text = settings.workers.map_or(String::new(), |workers| format!("workers = {workers}\n"));
    text += "events = { file = \"events.jsonl\", rotate_at = \"64MiB\" }\n";
    let mut add = |name: &str, listener: &str, address: SocketAddr, scheme: &str, upstream: &str| {
        let (host, port) = match upstream {
            "" => (address.ip().to_string(), address.port()),
            _ => (NAME.to_owned(), address.port()),
        };
        text += &format!(
            "[[listeners]]\nname = \"{name}\"\naddress = \"127.0.0.1:0\"\n{listener}\
             [[sites]]\nname = \"{name}\"\nhosts = [\"*\"]\nlisteners = [\"{name}\"]\nupstream = \"{name}\"\n{site}\
             [upstreams.{name}]\nendpoints = [\"{scheme}://{host}:{port}\"]\n{upstream}"
        );
    };
    if let Some(address) = settings.plain {
        add("plain", "", address, "http", "");
    }
    if let Some(address) = settings.tls {
        let listener = "tls = { certificates = [{ cert = \"certificate.pem\", key = \"key.pem\" }] }\n";
        add("tls", listener, address, "https", "tls = { ca = \"authority.pem\" }\n");
    }
    Ok(text)
}
