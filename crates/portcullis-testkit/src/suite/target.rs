//! What the requests go to: a Portcullis of our own, or a server that runs already.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Options, replay};
use crate::process::Process;
use crate::upstream::{Server, reflector::Reflector};
use crate::{TestkitError, client, crs};

/// HTTP profile of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Profile {
    /// The product's default.
    Strict,
    /// As the reference server of the suite behaves.
    Apache,
}

/// The suite's own set-up: what its reference containers set, as rules before `crs-setup.conf`. Two values more
/// than there, `max_num_args` and `arg_name_length`, which 920380-1 and 920360-1 need: with them Apache and
/// mod_security2, the reference, pass all tests.
const SETUP: &str = r#"SecRuleEngine DetectionOnly
SecRequestBodyAccess On
SecResponseBodyAccess On
SecResponseBodyMimeType text/plain text/html text/xml application/json
SecAction "id:9000200,phase:1,pass,t:none,nolog,\
  setvar:tx.blocking_paranoia_level=4,\
  setvar:tx.detection_paranoia_level=4,\
  setvar:tx.crs_validate_utf8_encoding=1,\
  setvar:tx.max_num_args=255,\
  setvar:tx.arg_name_length=100,\
  setvar:tx.arg_length=400,\
  setvar:tx.total_arg_length=6400,\
  setvar:tx.max_file_size=64100,\
  setvar:tx.combined_file_sizes=65535"
"#;

/// The running target.
pub(super) struct Target {
    address: SocketAddr,
    traces: Traces,
    own: Option<Own>,
}

/// What was started for the run.
struct Own {
    process: Process,
    /// Serves until it is dropped.
    _backend: Server,
    admin: SocketAddr,
}

/// The files a run leaves.
pub(super) struct Traces {
    /// Error log, ModSecurity's form.
    pub log: PathBuf,
    /// Event file, if there is one.
    pub events: Option<PathBuf>,
    /// Output of the proxy.
    pub output: Option<PathBuf>,
    /// The metrics page at the end.
    pub metrics: Option<String>,
    /// Keeps the files until they have been read.
    pub _folder: Option<Folder>,
}

/// A working folder: kept if the caller named it, else removed.
pub(super) struct Folder {
    path: PathBuf,
    temporary: bool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.temporary {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

impl Target {
    pub fn start(options: &Options) -> Result<Self, TestkitError> {
        if let (Some(address), Some(log)) = (options.target, options.log.clone()) {
            let traces = Traces { log, events: None, output: None, metrics: None, _folder: None };
            return Ok(Target { address, traces, own: None });
        }
        let rules = crs::rules()?;
        let program = program()?;
        let folder = Folder {
            path: options.keep.clone().unwrap_or_else(|| {
                std::env::temp_dir().join(format!("portcullis-crs-suite-{}", std::process::id()))
            }),
            temporary: options.keep.is_none(),
        };
        let file = |name: &str| folder.path.join(name);
        std::fs::create_dir_all(&folder.path).map_err(|source| TestkitError::io(&folder.path, source))?;
        let (log, events, output, setup) =
            (file("error.log"), file("events.jsonl"), file("output.txt"), file("suite-setup.conf"));
        for old in [&log, &events] {
            let _ = std::fs::remove_file(old);
        }
        std::fs::write(&setup, SETUP).map_err(|source| TestkitError::io(&setup, source))?;

        let reflector = Reflector::default();
        let backend = Server::start("127.0.0.1:0", move |request| reflector.answer(request))
            .map_err(|error| TestkitError::Run(format!("back end: {error}")))?;
        let (address, admin) = (free_address()?, free_address()?);
        let profile = match options.profile {
            Profile::Strict => "strict",
            Profile::Apache => "apache",
        };
        let arguments: Vec<OsString> = [
            "run",
            "--listen",
            &address.to_string(),
            "--admin",
            &admin.to_string(),
            "--upstream",
            &format!("http://{}", backend.address()),
            "--mode",
            "crs",
            "--paranoia",
            "4",
            "--detect-only",
            "--http-compat",
            profile,
            "--workers",
            &options.workers.to_string(),
        ]
        .into_iter()
        .map(OsString::from)
        .chain(["--crs".into(), rules.into_os_string()])
        .chain(["--setup".into(), setup.into_os_string()])
        .chain(["--events".into(), events.clone().into_os_string()])
        .chain(["--error-log".into(), log.clone().into_os_string()])
        .collect();
        let mut process = Process::start(&program, &arguments, &output)?;
        process.wait_for(address, Duration::from_secs(60))?;
        println!("{} listens on {address}, profile {profile}", program.display());
        let traces =
            Traces { log, events: Some(events), output: Some(output), metrics: None, _folder: Some(folder) };
        Ok(Target { address, traces, own: Some(Own { process, _backend: backend, admin }) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until everything has been written, and stops what was started.
    pub fn finish(self) -> Result<Traces, TestkitError> {
        let Target { address, mut traces, own } = self;
        let Some(mut own) = own else {
            mark(address, &traces.log)?;
            std::thread::sleep(Duration::from_secs(1)); // other workers of a foreign server may still write
            return Ok(traces);
        };
        if let Some(status) = own.process.exited()? {
            let output = traces.output.as_deref().map(tail).unwrap_or_default();
            return Err(TestkitError::Run(format!("portcullis ended during the run ({status}): {output}")));
        }
        mark(address, &traces.log)?;
        traces.metrics = Some(metrics(own.admin)?);
        let status = own.process.stop(Duration::from_secs(40))?;
        match status.success() {
            true => Ok(traces),
            false => Err(TestkitError::Run(format!("portcullis ended with {status} after SIGTERM"))),
        }
    }
}

/// Sends a request that every set-up of the CRS logs, until its line is in the log.
fn mark(address: SocketAddr, log: &Path) -> Result<(), TestkitError> {
    let request = b"GET /?end-of-run=%3Cscript%3Ealert(1)%3C/script%3E HTTP/1.1\r\nHost: localhost\r\nUser-Agent: crs-suite\r\nAccept: */*\r\nConnection: close\r\n\r\n";
    let want = format!("[client {}", replay::MARKER);
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        let answer = client::exchange(address, Some(replay::MARKER), request, Duration::from_secs(5));
        answer.map_err(|failure| TestkitError::Run(format!("the marker request at the end: {failure}")))?;
        for _ in 0..10 {
            if tail(log).contains(&want) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    Err(TestkitError::Run(format!("the marker request does not show up in {}", log.display())))
}

fn metrics(admin: SocketAddr) -> Result<String, TestkitError> {
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = client::exchange(admin, None, request, Duration::from_secs(5));
    let answer = answer.map_err(|failure| TestkitError::Run(format!("metrics: {failure}")))?;
    Ok(String::from_utf8_lossy(answer.after_head()).into_owned())
}

fn tail(path: &Path) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&text[text.len().saturating_sub(100_000)..]).into_owned()
}

/// A port that is free now. Another process could take it before the proxy does; the run then fails to start.
fn free_address() -> Result<SocketAddr, TestkitError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(|error| TestkitError::Run(format!("no free port: {error}")))
}

/// `PORTCULLIS_BIN`, or the `portcullis` beside this program.
pub(crate) fn program() -> Result<PathBuf, TestkitError> {
    let path = match std::env::var_os("PORTCULLIS_BIN") {
        Some(path) => PathBuf::from(path),
        None => {
            let here =
                std::env::current_exe().map_err(|source| TestkitError::io("current program", source))?;
            let folder = here.parent().unwrap_or(Path::new("."));
            // Test programs live one folder deeper than the others.
            let deeper = folder.file_name().is_some_and(|name| name == "deps");
            let folder = if deeper { folder.parent().unwrap_or(folder) } else { folder };
            folder.join("portcullis")
        }
    };
    match path.is_file() {
        true => Ok(path),
        false => Err(TestkitError::Missing {
            what: "the portcullis program",
            path,
            how: "cargo build -p portcullis, or name it in PORTCULLIS_BIN",
        }),
    }
}
