//! Debian's Apache with ModSecurity 2 over HTTP on loopback.
//!
//! One Apache serves a batch: each rule set is a virtual host with a port of its own, so that requests need
//! nothing in them that tells rule sets apart. The outcome of a request is read from the access log, which
//! has the variable that the last rule sets; ports at both ends of the connection say whose line it is.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bstr::ByteSlice;
use portcullis_reference::Request;
use portcullis_testkit::process::Process;
use portcullis_testkit::proxy::free_address;
use portcullis_testkit::upstream::Server;

use crate::requests::{ANSWER, wire};
use crate::rule_set::{DUMP, RuleSet};
use crate::seen::{Interruption, Seen, read_dump};

const APACHE: &str = "/usr/sbin/apache2";
const MODULES: &str = "/usr/lib/apache2/modules";
const CLIENTS: usize = 4;
const LINES_LOST_MAX: usize = 10;
const PATIENCE: Duration = Duration::from_secs(60);
/// The statuses of the back end; any other status comes from a rule, or from Apache.
const BACK_END: &[u16] = &[200, 201, 404, 409];

/// Starts Apaches.
pub struct ModSecurity2 {
    folder: tempfile::TempDir,
    backend: Server,
    /// Held for as long as this process lives.
    ports: Vec<u16>,
}

/// The results of a rule set's requests; the error is why Apache refused the rules.
pub type Results = Result<Vec<Option<Seen>>, String>;

/// The view of the client and of the log on a request.
#[derive(Clone, Copy)]
struct Answer {
    local_port: u16,
    /// `None`: closed without an answer.
    status: Option<u16>,
}

impl ModSecurity2 {
    /// Checks that Apache and the module are installed, and starts the back end.
    pub fn new() -> Result<ModSecurity2, String> {
        for path in [APACHE, &format!("{MODULES}/mod_security2.so")] {
            if !Path::new(path).exists() {
                return Err(format!("{path} is missing: install apache2 and libapache2-mod-security2"));
            }
        }
        let folder =
            tempfile::Builder::new().prefix("portcullis-apache").tempdir().map_err(|e| e.to_string())?;
        // Apache's workers are another user, who writes collections and uploads here.
        open_to_all(folder.path())?;
        let backend =
            Server::start("127.0.0.1:0", |request| answer(request.header(ANSWER).unwrap_or_default()))
                .map_err(|error| format!("back end: {error}"))?;
        Ok(ModSecurity2 { folder, backend, ports: Vec::new() })
    }

    /// Runs rule sets, each with its requests.
    pub fn run(&mut self, batch: &[(RuleSet, Vec<Request>)]) -> Result<Vec<Results>, String> {
        let ports = self.free_ports(batch.len())?;
        for ((rules, _), port) in batch.iter().zip(&ports) {
            self.write(&format!("{port}.conf"), &rules.text_with_dump())?;
        }
        let refused = self.check(&ports)?;
        let served: Vec<u16> = ports.iter().copied().filter(|port| !refused.contains_key(port)).collect();
        let answers = self.serve(batch, &ports, &served)?;
        let log = self.log(answers.iter().flatten().flatten().count())?;
        let result = |(at, port): (usize, &u16)| match refused.get(port) {
            Some(why) => Err(why.clone()),
            None => Ok(answers[at].iter().map(|answer| seen(*port, (*answer)?, &log)).collect()),
        };
        Ok(ports.iter().enumerate().map(result).collect())
    }

    /// Ports of this process, used again by each batch: no other process draws them, and no process listens
    /// there but Apache.
    fn free_ports(&mut self, count: usize) -> Result<Vec<u16>, String> {
        while self.ports.len() < count {
            self.ports.push(free_address().map_err(|error| error.to_string())?.port());
        }
        Ok(self.ports[..count].to_vec())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        std::fs::write(self.path(name), text).map_err(|error| format!("{name}: {error}"))
    }

    fn configure(&self, ports: &[u16]) -> Result<(), String> {
        let folder = self.folder.path().display();
        let mut text = format!(
            "ServerRoot {folder}\nPidFile {folder}/pid\nServerName localhost\nErrorLog {folder}/error.log\nLogLevel crit\n\
             User www-data\nGroup www-data\nDefaultRuntimeDir {folder}\nMutex posixsem\n"
        );
        for module in
            ["mpm_event", "authz_core", "proxy", "proxy_http", "unique_id", "log_config", "security2"]
        {
            // Debian builds some of them in.
            if Path::new(MODULES).join(format!("mod_{module}.so")).exists() {
                let _ = writeln!(text, "LoadModule {module}_module {MODULES}/mod_{module}.so");
            }
        }
        let _ = write!(
            text,
            "StartServers 1\nServerLimit 1\nThreadsPerChild 16\nThreadLimit 16\nMaxRequestWorkers 16\nKeepAlive Off\n\
             ProxyRequests Off\nAllowEncodedSlashes NoDecode\nProxyPreserveHost On\nUseCanonicalName Off\n\
             ProxyPass / http://{}/ nocanon enablereuse=on keepalive=On max=16\n\
             LogFormat \"%{{local}}p %{{remote}}p %{{{DUMP}}}e\" dump\nCustomLog {folder}/access.log dump\n\
             SecDataDir {folder}\nSecTmpDir {folder}\nSecPcreMatchLimit 500000\nSecPcreMatchLimitRecursion 500000\n",
            self.backend.address()
        );
        for port in ports {
            let _ = writeln!(
                text,
                "Listen 127.0.0.1:{port}\n<VirtualHost 127.0.0.1:{port}>\nInclude {folder}/{port}.conf\n</VirtualHost>"
            );
        }
        self.write("httpd.conf", &text)
    }

    /// Finds the rule sets that Apache does not take, one after the other, since it stops at the first.
    fn check(&self, ports: &[u16]) -> Result<HashMap<u16, String>, String> {
        let mut refused = HashMap::new();
        loop {
            let left: Vec<u16> = ports.iter().copied().filter(|port| !refused.contains_key(port)).collect();
            self.configure(&left)?;
            let out = Command::new(APACHE)
                .arg("-t")
                .arg("-f")
                .arg(self.path("httpd.conf"))
                .output()
                .map_err(|error| format!("{APACHE}: {error}"))?;
            if out.status.success() {
                return Ok(refused);
            }
            let why = String::from_utf8_lossy(&out.stderr).into_owned();
            let port = left.iter().find(|port| why.contains(&format!("/{port}.conf:")));
            let Some(&port) = port else {
                return Err(format!("Apache does not take the configuration: {why}"));
            };
            refused.insert(port, why);
        }
    }

    fn serve(
        &self,
        batch: &[(RuleSet, Vec<Request>)],
        ports: &[u16],
        served: &[u16],
    ) -> Result<Vec<Vec<Option<Answer>>>, String> {
        for log in ["access.log", "error.log"] {
            let _ = std::fs::remove_file(self.path(log));
        }
        let Some(&last) = served.last() else { return Ok(vec![Vec::new(); batch.len()]) };
        let arguments = ["-DFOREGROUND".into(), "-f".into(), self.path("httpd.conf").into_os_string()];
        let mut apache = Process::start(Path::new(APACHE), &arguments, &self.path("output"))
            .map_err(|error| error.to_string())?;
        apache
            .wait_for(SocketAddr::from((Ipv4Addr::LOCALHOST, last)), PATIENCE)
            .map_err(|e| e.to_string())?;
        let answers = Mutex::new(vec![Vec::new(); batch.len()]);
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some((_, requests)) = batch.get(at) else { return };
                        if !served.contains(&ports[at]) {
                            continue;
                        }
                        let list: Vec<_> =
                            requests.iter().map(|request| exchange(ports[at], request)).collect();
                        if let Ok(mut answers) = answers.lock() {
                            answers[at] = list;
                        }
                    }
                });
            }
        });
        apache.stop(PATIENCE).map_err(|error| error.to_string())?;
        answers.into_inner().map_err(|_| "a client thread failed".to_owned())
    }

    /// Dumps by the ports of their connections. Apache has ended, so the log is whole.
    fn log(&self, least: usize) -> Result<HashMap<(u16, u16), Vec<u8>>, String> {
        let text = std::fs::read(self.path("access.log")).unwrap_or_default();
        let line = |line: &[u8]| {
            let mut words = line.split(|&byte| byte == b' ');
            let mut port = || words.next()?.to_str().ok()?.parse::<u16>().ok();
            let ports = (port()?, port()?);
            Some((ports, words.next()?.to_vec()))
        };
        let log: HashMap<_, _> = text.lines().filter_map(line).collect();
        // Now and then a line is not there. Its pair counts as lost.
        match log.len() + LINES_LOST_MAX >= least {
            true => Ok(log),
            false => Err(format!("{} lines in Apache's log for {least} requests", log.len())),
        }
    }
}

fn seen(port: u16, answer: Answer, log: &HashMap<(u16, u16), Vec<u8>>) -> Option<Seen> {
    let dump = log.get(&(port, answer.local_port))?;
    let tx = if dump == b"-" { None } else { read_dump(dump) };
    let interruption = match answer.status {
        None => Some(Interruption::Drop),
        Some(status) if BACK_END.contains(&status) => None,
        Some(status) => Some(Interruption::Status(status)),
    };
    Some(Seen::new(tx, interruption))
}

/// One request on a connection of its own; `None` if there was trouble with the connection.
fn exchange(port: u16, request: &Request) -> Option<Answer> {
    let end = Instant::now() + PATIENCE;
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let local_port = stream.local_addr().ok()?.port();
    stream.write_all(&wire(request)).ok()?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while Instant::now() < end && bytes.len() < 1 << 20 {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(_) => return None,
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
    let status = bytes.get(9..12).and_then(|digits| digits.to_str().ok()?.parse().ok());
    Some(Answer { local_port, status })
}

/// `status|content type|X-R|body`, as the request says.
fn answer(wanted: &[u8]) -> portcullis_testkit::upstream::Response {
    let text = String::from_utf8_lossy(wanted);
    let mut parts = text.splitn(4, '|');
    let mut part = || parts.next().unwrap_or_default().to_owned();
    let status = part().parse().unwrap_or(500);
    let headers = vec![("Content-Type".to_owned(), part()), ("X-R".to_owned(), part())];
    portcullis_testkit::upstream::Response { status, headers, body: part().into_bytes() }
}

fn open_to_all(folder: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777))
        .map_err(|error| error.to_string())
}
