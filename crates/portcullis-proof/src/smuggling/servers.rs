//! Other people's servers as back ends, each of which tells how many requests it saw.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use portcullis_testkit::TestkitError;
use portcullis_testkit::client;
use portcullis_testkit::process::{Process, Signal};
use portcullis_testkit::proxy::{Folder, free_address};

/// A running back end.
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    count: Count,
    _process: Stopping,
}

/// A server that is asked to stop when it is no longer used.
pub(super) struct Stopping(pub(super) Process);

/// The source of the number of requests.
enum Count {
    /// Lines of a log.
    Lines(PathBuf),
    /// HAProxy's statistics.
    Haproxy(PathBuf),
    /// A page on another port.
    Page(SocketAddr),
}

const NAMES: [&str; 6] = ["nginx", "apache", "haproxy", "node", "go", "python"];

/// Starts all that are installed; the names of those that are not.
pub(super) fn start(folder: &Folder) -> Result<(Vec<Server>, Vec<&'static str>), TestkitError> {
    let (mut servers, mut missing) = (Vec::new(), Vec::new());
    for name in NAMES {
        match one(name, folder)? {
            Some(server) => servers.push(server),
            None => missing.push(name),
        }
    }
    Ok((servers, missing))
}

fn one(name: &'static str, folder: &Folder) -> Result<Option<Server>, TestkitError> {
    let (address, page) = (free_address()?, free_address()?);
    let home = folder.file(name);
    std::fs::create_dir_all(&home).map_err(|error| trouble(name, &error))?;
    let write = |file: &str, text: String| {
        let path = home.join(file);
        std::fs::write(&path, text).map(|()| path).map_err(|error| trouble(name, &error))
    };
    let log = home.join("requests.log");
    let (program, arguments, count): (Option<PathBuf>, Vec<OsString>, Count) = match name {
        "nginx" => {
            let path = write("nginx.conf", nginx(&home, address, &log))?;
            let arguments = vec!["-e".into(), home.join("error.log").into(), "-c".into(), path.into()];
            (find(&["/usr/sbin/nginx"]), arguments, Count::Lines(log))
        }
        "apache" => {
            let path = write("apache.conf", apache(&home, address, &log))?;
            (
                find(&["/usr/sbin/apache2"]),
                vec!["-DFOREGROUND".into(), "-f".into(), path.into()],
                Count::Lines(log),
            )
        }
        "haproxy" => {
            let socket = home.join("stats.sock");
            let path = write("haproxy.cfg", haproxy(address, &socket))?;
            (
                find(&["/usr/sbin/haproxy"]),
                vec!["-db".into(), "-f".into(), path.into()],
                Count::Haproxy(socket),
            )
        }
        "node" => {
            let path = write("server.js", script(include_str!("server.js"), address, page))?;
            (on_path("node"), vec![path.into()], Count::Page(page))
        }
        "python" => {
            let path = write("server.py", script(include_str!("server.py"), address, page))?;
            (on_path("python3"), vec![path.into()], Count::Page(page))
        }
        _ => {
            let path = write("server.go", script(include_str!("server.go.txt"), address, page))?;
            let built = home.join("server");
            let Some(go) = on_path("go") else { return Ok(None) };
            let output = Command::new(go).arg("build").arg("-o").arg(&built).arg(&path).output();
            let output = output.map_err(|error| trouble(name, &error))?;
            if !output.status.success() {
                return Err(trouble(name, &String::from_utf8_lossy(&output.stderr)));
            }
            (Some(built), Vec::new(), Count::Page(page))
        }
    };
    let Some(program) = program else { return Ok(None) };
    let mut process = Process::start(&program, &arguments, &home.join("output.txt"))?;
    process.wait_for(address, Duration::from_secs(20))?;
    Ok(Some(Server { name, address, count, _process: Stopping(process) }))
}

impl Drop for Stopping {
    /// Killed, a server with processes of its own would leave them behind.
    fn drop(&mut self) {
        let end = Instant::now() + Duration::from_secs(5);
        let asked = self.0.signal(Signal::TERM).is_ok();
        while asked && Instant::now() < end && matches!(self.0.exited(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Server {
    /// Returns the number of requests it saw since its start.
    pub(super) fn seen(&self) -> Result<usize, TestkitError> {
        match &self.count {
            Count::Lines(path) => {
                let text = std::fs::read(path).map_err(|error| trouble(self.name, &error))?;
                Ok(text.iter().filter(|&&byte| byte == b'\n').count())
            }
            Count::Haproxy(socket) => {
                let mut text = String::new();
                UnixStream::connect(socket)
                    .and_then(|mut stream| {
                        stream.write_all(b"show stat\n")?;
                        stream.read_to_string(&mut text)
                    })
                    .map_err(|error| trouble(self.name, &error))?;
                number(&text, "req_tot").ok_or_else(|| trouble(self.name, &"no req_tot"))
            }
            Count::Page(address) => {
                let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
                let answer = client::exchange(*address, None, request, Duration::from_secs(5))
                    .map_err(|error| trouble(self.name, &error))?;
                let text = String::from_utf8_lossy(answer.after_head()).into_owned();
                text.trim().parse().map_err(|_| trouble(self.name, &format!("count: {text:?}")))
            }
        }
    }
}

/// A column of the front end's line.
fn number(statistics: &str, column: &str) -> Option<usize> {
    let mut lines = statistics.lines();
    let at = lines.next()?.split(',').position(|name| name == column)?;
    lines.find(|line| line.starts_with("front,FRONTEND,"))?.split(',').nth(at)?.parse().ok()
}

pub(super) fn trouble(name: &str, error: &dyn std::fmt::Display) -> TestkitError {
    TestkitError::Run(format!("back end {name}: {error}"))
}

pub(super) fn find(places: &[&str]) -> Option<PathBuf> {
    places.iter().map(PathBuf::from).find(|path| path.is_file())
}

pub(super) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

fn script(text: &str, address: SocketAddr, page: SocketAddr) -> String {
    text.replace("PORT", &address.port().to_string()).replace("PAGE", &page.port().to_string())
}

fn nginx(home: &Path, address: SocketAddr, log: &Path) -> String {
    let home = home.display();
    format!(
        "daemon off;\nmaster_process off;\npid {home}/pid;\nevents {{ worker_connections 1000; }}\nhttp {{\n\
         client_body_temp_path {home}/a; proxy_temp_path {home}/b; fastcgi_temp_path {home}/c; uwsgi_temp_path {home}/d; \
         scgi_temp_path {home}/e;\naccess_log {};\nignore_invalid_headers off;\nserver {{ listen {address}; location / {{ return 200 ok; }} }}\n}}\n",
        log.display()
    )
}

fn apache(home: &Path, address: SocketAddr, log: &Path) -> String {
    let (home, log) = (home.display(), log.display());
    let module = |name: &str| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n");
    let modules: String = ["mpm_event", "authz_core", "rewrite"].map(module).concat();
    format!(
        "{modules}ServerRoot {home}\nServerName localhost\nPidFile {home}/pid\nDefaultRuntimeDir {home}\nMutex file:{home}\nListen {address}\n\
         ErrorLog {home}/error.log\nLogFormat \"%r\" line\nCustomLog {log} line\nKeepAliveTimeout 30\nMaxKeepAliveRequests 0\n\
         HttpProtocolOptions Unsafe\nRewriteEngine On\nRewriteRule .* - [R=204,L]\n"
    )
}

fn haproxy(address: SocketAddr, socket: &Path) -> String {
    format!(
        "global\n  stats socket {} mode 600\n  maxconn 1000\ndefaults\n  mode http\n  timeout client 60s\n  timeout server 60s\n  timeout connect 5s\n\
         \x20 option accept-invalid-http-request\nfrontend front\n  bind {address}\n  http-request wait-for-body time 2s\n  http-request return status 200 content-type text/plain string ok\n",
        socket.display()
    )
}
