//! A Portcullis of our own for a run: started from its binary in front of a [`Reflector`], its traces kept in
//! one folder, stopped by SIGTERM.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::cgroup::Cgroup;
pub use crate::ports::free_address;
use crate::process::{Process, Signal};
use crate::upstream::{Server, reflector::Reflector};
use crate::{TestkitError, client};

/// A running proxy with its back end.
pub struct Proxy {
    process: Process,
    /// Serves until it is dropped.
    _backend: Option<Server>,
    /// Dropped behind the process, which must have left it.
    _cgroup: Option<Cgroup>,
    address: SocketAddr,
    admin: SocketAddr,
    folder: Folder,
}

impl Proxy {
    /// Starts `portcullis run` in mode `crs` with the CRS in `rules` and `extra` flags, its files in
    /// `folder`.
    pub fn start(folder: Folder, rules: PathBuf, extra: Vec<OsString>) -> Result<Self, TestkitError> {
        let reflector = Reflector::default();
        let backend = Server::start("127.0.0.1:0", move |request| reflector.answer(request))
            .map_err(|error| TestkitError::Run(format!("back end: {error}")))?;
        let (address, admin) = (free_address()?, free_address()?);
        let mut arguments: Vec<OsString> = vec!["run".into()];
        let mut flag = |name: &str, value: OsString| arguments.extend([name.into(), value]);
        flag("--listen", address.to_string().into());
        flag("--admin", admin.to_string().into());
        flag("--upstream", format!("http://{}", backend.address()).into());
        flag("--mode", "crs".into());
        flag("--crs", rules.into());
        flag("--events", folder.events().into());
        flag("--error-log", folder.log().into());
        arguments.extend(extra);
        println!("{} listens on {address}", program()?.display());
        Proxy::launch(folder, program()?, &arguments, (address, admin), &[], Some(backend))
    }

    /// Starts `portcullis run` with the document that `write` makes for the addresses of its listener and of
    /// its admin listener, and with `environment` beside ours.
    pub fn configured(
        folder: Folder,
        write: impl FnOnce(SocketAddr, SocketAddr) -> String,
        environment: &[(String, String)],
    ) -> Result<Self, TestkitError> {
        let (address, admin) = (free_address()?, free_address()?);
        let path = folder.configuration();
        std::fs::write(&path, write(address, admin)).map_err(|source| TestkitError::io(&path, source))?;
        let arguments = ["run".into(), "--config".into(), path.into()];
        Proxy::launch(folder, program()?, &arguments, (address, admin), environment, None)
    }

    /// The same as a member of `cgroup` from its first instruction on.
    pub fn confined(
        folder: Folder,
        write: impl FnOnce(SocketAddr, SocketAddr) -> String,
        cgroup: Cgroup,
    ) -> Result<Self, TestkitError> {
        let (address, admin) = (free_address()?, free_address()?);
        let path = folder.configuration();
        std::fs::write(&path, write(address, admin)).map_err(|source| TestkitError::io(&path, source))?;
        let arguments = [
            "-c".into(),
            r#"echo $$ > "$0" && exec "$@""#.into(),
            cgroup.processes().into(),
            program()?.into(),
            "run".into(),
            "--config".into(),
            path.into(),
        ];
        let mut proxy = Proxy::launch(folder, "/bin/sh".into(), &arguments, (address, admin), &[], None)?;
        proxy._cgroup = Some(cgroup);
        Ok(proxy)
    }

    fn launch(
        folder: Folder,
        program: PathBuf,
        arguments: &[OsString],
        (address, admin): (SocketAddr, SocketAddr),
        environment: &[(String, String)],
        backend: Option<Server>,
    ) -> Result<Self, TestkitError> {
        for old in [folder.log(), folder.events()] {
            let _ = std::fs::remove_file(old);
        }
        let mut process = Process::start_with(&program, arguments, &folder.output(), environment)?;
        process.wait_for(address, Duration::from_secs(60))?;
        Ok(Proxy { process, _backend: backend, _cgroup: None, address, admin, folder })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns the address of its metrics.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its files.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// An error if it has ended by itself.
    pub fn check_alive(&mut self) -> Result<(), TestkitError> {
        match self.process.exited()? {
            None => Ok(()),
            Some(status) => {
                let output = tail(&self.folder.output());
                Err(TestkitError::Run(format!("portcullis ended during the run ({status}): {output}")))
            }
        }
    }

    /// Its metrics page.
    pub fn metrics(&self) -> Result<String, TestkitError> {
        let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let answer = client::exchange(self.admin, None, request, Duration::from_secs(5));
        let answer = answer.map_err(|failure| TestkitError::Run(format!("metrics: {failure}")))?;
        Ok(String::from_utf8_lossy(answer.after_head()).into_owned())
    }

    /// Has it read configuration and rules again: SIGHUP. It is not done when this returns.
    pub fn reload(&self) -> Result<(), TestkitError> {
        self.process.signal(Signal::HUP)
    }

    /// Its resident memory in KiB.
    pub fn memory_kib(&self) -> Result<f64, TestkitError> {
        let path = PathBuf::from(format!("/proc/{}/status", self.process.id()));
        let status = std::fs::read_to_string(&path).map_err(|source| TestkitError::io(&path, source))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.ok_or_else(|| TestkitError::Run(format!("{}: no VmRSS", path.display())))
    }

    /// Stops it by SIGTERM, and hands back its files, complete now. An exit code other than 0 is an error.
    pub fn stop(self) -> Result<Folder, TestkitError> {
        let status = self.process.stop(Duration::from_secs(40))?;
        match status.success() {
            true => Ok(self.folder),
            false => Err(TestkitError::Run(format!("portcullis ended with {status} after SIGTERM"))),
        }
    }
}

/// The files of a run, in a folder that is removed at the end unless the caller named it.
pub struct Folder {
    path: PathBuf,
    temporary: bool,
}

impl Folder {
    /// The folder `keep`, or a temporary one.
    pub fn create(keep: Option<&Path>) -> Result<Self, TestkitError> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let temporary = || {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            std::env::temp_dir().join(format!("portcullis-run-{}-{count}", std::process::id()))
        };
        let path = keep.map_or_else(temporary, Path::to_path_buf);
        std::fs::create_dir_all(&path).map_err(|source| TestkitError::io(&path, source))?;
        Ok(Folder { path, temporary: keep.is_none() })
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The error log, in ModSecurity's form.
    pub fn log(&self) -> PathBuf {
        self.file("error.log")
    }

    /// The event file.
    pub fn events(&self) -> PathBuf {
        self.file("events.jsonl")
    }

    /// The document that it was started with, if it was.
    pub fn configuration(&self) -> PathBuf {
        self.file("portcullis.toml")
    }

    /// Returns the file with the proxy's output.
    pub fn output(&self) -> PathBuf {
        self.file("output.txt")
    }

    /// Lines of the output that tell of a panic.
    pub fn panics(&self) -> Vec<String> {
        let text = std::fs::read(self.output()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().filter(|line| line.contains("panicked at")).map(str::to_string).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.temporary {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// The end of a file, as text.
pub(crate) fn tail(path: &Path) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&text[text.len().saturating_sub(100_000)..]).into_owned()
}

/// `PORTCULLIS_BIN`, or the `portcullis` beside this program.
pub fn program() -> Result<PathBuf, TestkitError> {
    let path = match std::env::var_os("PORTCULLIS_BIN") {
        Some(path) => PathBuf::from(path),
        None => {
            let here =
                std::env::current_exe().map_err(|source| TestkitError::io("current program", source))?;
            here.parent().unwrap_or(Path::new(".")).join("portcullis")
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
