//! The library in an unmodified nginx with its unmodified module, as Debian has them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::library::{has, install, output};

/// The module that Debian's package `libnginx-mod-http-modsecurity` brings.
const MODULE: &str = "/usr/lib/nginx/modules/ngx_http_modsecurity_module.so";
/// Longest time for nginx to do something.
pub const PATIENCE: Duration = Duration::from_secs(60);

const RULES: &str = "\
SecRuleEngine On
SecRequestBodyAccess On
SecRule ARGS \"@contains evil\" \"id:1,phase:2,deny,status:403,log,auditlog,msg:'Evil'\"
SecRule REQUEST_HEADERS:X-Warn \"@rx .\" \"id:2,phase:1,pass,log,auditlog,msg:'Warned'\"
";

pub struct Nginx {
    pub process: Child,
    pub folder: TempDir,
    pub port: u16,
}

impl Nginx {
    /// nginx in a folder of its own; None if it or its module is not there.
    pub fn start(test: &str) -> Option<Nginx> {
        Nginx::start_with(test, |_| String::new())
    }

    /// The same with more rules, which may name the folder.
    pub fn start_with(test: &str, rules: impl Fn(&Path) -> String) -> Option<Nginx> {
        // As root, nginx would give its worker a user that cannot write to the folder of the test.
        Nginx::start_as(test, ("root", 1), rules)
    }

    /// The same with so many workers, of that user if this is root.
    pub fn start_as(test: &str, workers: (&str, usize), rules: impl Fn(&Path) -> String) -> Option<Nginx> {
        if !has("nginx", test) || !has(MODULE, test) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        install(folder.path());
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = |name: &str| folder.path().join(name);
        let logs = format!(
            "{RULES}SecAuditEngine RelevantOnly\nSecAuditLogParts ABHZ\nSecAuditLogType Serial\nSecAuditLog {}\n{}",
            at("audit.log").display(),
            rules(folder.path())
        );
        fs::write(at("rules.conf"), logs).unwrap();
        fs::write(at("nginx.conf"), configuration(folder.path(), port, workers)).unwrap();
        let process = nginx(folder.path()).stderr(Stdio::null()).spawn().unwrap();
        let nginx = Nginx { process, folder, port };
        nginx.wait_until_open();
        Some(nginx)
    }

    fn wait_until_open(&self) {
        self.wait("it listens", |nginx| TcpStream::connect(("127.0.0.1", nginx.port)).is_ok());
    }

    /// Ends it and starts it again with the same configuration.
    pub fn restart(&mut self) {
        self.signal("TERM");
        self.process.wait().unwrap();
        self.process = nginx(self.folder.path()).stderr(Stdio::null()).spawn().unwrap();
        self.wait_until_open();
    }

    /// New workers by a reload.
    pub fn reload(&self) {
        let before = self.workers();
        self.signal("HUP");
        self.wait("new workers", |nginx| {
            let now = nginx.workers();
            now.len() == before.len() && now.iter().all(|worker| !before.contains(worker))
        });
    }

    /// What `nginx -t` says.
    pub fn check(&self) -> String {
        let said = nginx(self.folder.path()).arg("-t").output().unwrap();
        String::from_utf8_lossy(&said.stderr).into_owned()
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.at("error.log")).unwrap_or_default()
    }

    #[track_caller]
    pub fn wait(&self, what: &str, is_so: impl Fn(&Nginx) -> bool) {
        let begin = Instant::now();
        while !is_so(self) {
            assert!(begin.elapsed() < PATIENCE, "{what}: not in time\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The status of the answer to a request.
    pub fn status(&self, head: &str, body: &str) -> u16 {
        let answer = self.answer(head, body);
        answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or_else(|| panic!("{answer:?}"))
    }

    /// The answer to a request.
    pub fn answer(&self, head: &str, body: &str) -> String {
        self.try_answer(head, body).unwrap()
    }

    /// The answer to a request, as far as it came.
    pub fn try_answer(&self, head: &str, body: &str) -> std::io::Result<String> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port))?;
        connection.set_read_timeout(Some(PATIENCE))?;
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let request = format!("{head}\r\nHost: a.example\r\nConnection: close\r\n{length}\r\n{body}");
        connection.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    pub fn get(&self, target: &str) -> u16 {
        self.status(&format!("GET {target} HTTP/1.1"), "")
    }

    pub fn signal(&self, signal: &str) {
        output(Command::new("kill").args(["-s", signal, &self.process.id().to_string()]));
    }

    /// The workers.
    pub fn workers(&self) -> Vec<u32> {
        let id = self.process.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        children.split_whitespace().filter_map(|id| id.parse().ok()).collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-s", "TERM", &self.process.id().to_string()]).status();
        let _ = self.process.wait();
    }
}

fn nginx(folder: &Path) -> Command {
    let mut command = Command::new("nginx");
    let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default());
    command
        .env("PATH", path)
        .env("LD_LIBRARY_PATH", folder)
        .arg("-p")
        .arg(folder)
        .arg("-c")
        .arg(folder.join("nginx.conf"));
    command
}

/// True if this is root, whose servers change their user.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

fn configuration(folder: &Path, port: u16, (user, workers): (&str, usize)) -> String {
    let root = folder.display();
    let user = if is_root() { format!("user {user};") } else { String::new() };
    // Each worker has a queue of its own, so that they all get connections.
    let listen = if workers > 1 { " reuseport" } else { "" };
    format!(
        "load_module {MODULE};\n{user}\ndaemon off; worker_processes {workers}; pid {root}/nginx.pid;\n\
         error_log {root}/error.log info;\nevents {{ worker_connections 64; }}\n\
         http {{\n access_log off; client_body_temp_path {root}/body; proxy_temp_path {root}/proxy;\n\
         fastcgi_temp_path {root}/fastcgi; uwsgi_temp_path {root}/uwsgi; scgi_temp_path {root}/scgi;\n\
         client_body_buffer_size 1k; modsecurity on; modsecurity_rules_file {root}/rules.conf;\n\
         add_header X-Worker $pid always;\n\
         server {{ listen 127.0.0.1:{port}{listen}; root {root};\n\
         location / {{ try_files /rules.conf =404; }}\n\
         location /own {{ return 200 own; }}\n\
         location /free {{ modsecurity_rules 'SecRuleRemoveById 1'; try_files /rules.conf =404; }}\n\
         location /off {{ modsecurity off; try_files /rules.conf =404; }}\n\
         location /go {{ modsecurity_rules 'SecAction \"id:9,phase:1,redirect:https://b.example/\"'; }}\n }}\n}}\n"
    )
}

#[test]
fn nginx_blocks_logs_and_reloads() {
    let Some(nginx) = Nginx::start("nginx with our libmodsecurity") else { return };
    assert_eq!((nginx.get("/?q=fine"), nginx.get("/?q=evil")), (200, 403));
    assert_eq!(nginx.get("/own?q=evil"), 403, "nginx answers by itself");
    assert_eq!((nginx.get("/free?q=evil"), nginx.get("/off?q=evil"), nginx.get("/go")), (200, 200, 302));
    let form = "POST / HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded";
    assert_eq!(nginx.status(form, "a=evil"), 403);
    // Behind a buffer's length nginx keeps the body in a file.
    assert_eq!(nginx.status(form, &format!("a={}&b=evil", "x".repeat(100_000))), 403);
    assert_eq!(nginx.status("GET / HTTP/1.1\r\nX-Warn: yes", ""), 200);
    nginx.wait("the lines are there", |nginx| nginx.log().contains("[msg \"Warned\"]"));
    let log = nginx.log();
    let denied = "[client 127.0.0.1] ModSecurity: Access denied with code 403 (phase 2). Matched \"Operator `Contains'";
    assert!(log.contains(denied) && log.contains("[msg \"Evil\"]"), "{log}");
    assert!(log.contains("ModSecurity: Warning. Matched \"Operator `Rx'"), "{log}");
    let audit = fs::read_to_string(nginx.at("audit.log")).unwrap();
    assert!(audit.contains("GET /?q=evil HTTP/1.1") && audit.matches("-A--\n").count() >= 4, "{audit}");

    // Nothing is started in the master or in a worker.
    let before = nginx.workers();
    for process in before.iter().copied().chain([nginx.process.id()]) {
        assert_eq!(fs::read_dir(format!("/proc/{process}/task")).unwrap().count(), 1, "threads of {process}");
    }
    // A log that was moved away is opened anew by a reload.
    fs::rename(nginx.at("audit.log"), nginx.at("audit.log.1")).unwrap();
    nginx.signal("HUP");
    nginx.wait("new workers", |nginx| {
        let now = nginx.workers();
        !now.is_empty() && now.iter().all(|worker| !before.contains(worker))
    });
    assert_eq!((nginx.get("/?q=fine"), nginx.get("/?q=evil")), (200, 403));
    nginx.wait("its record is in the new file", |nginx| {
        fs::read_to_string(nginx.at("audit.log")).is_ok_and(|audit| audit.contains("GET /?q=evil"))
    });
}

#[test]
fn a_mistake_is_told_with_file_line_and_hint() {
    let Some(nginx) = Nginx::start("nginx -t with our libmodsecurity") else { return };
    fs::write(nginx.at("rules.conf"), "SecRuleEngine On\nSecRule ARGZ \"@rx a\" \"id:1\"\n").unwrap();
    let said = nginx.check();
    let place = format!("Rules error. File: {}. Line: 2. Column: 9.", nginx.at("rules.conf").display());
    assert!(
        said.contains(&place) && said.contains("did you mean ARGS?") && said.contains("nginx.conf:"),
        "{said}"
    );
    // A reload with it keeps the old rules.
    nginx.signal("HUP");
    nginx.wait("the mistake is in the log", |nginx| nginx.log().contains("Rules error."));
    assert_eq!(nginx.get("/?q=evil"), 403);
}
