//! Running it for long: reloads by others than signals, the service manager, passed sockets, and upgrades
//! under load.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use command_fds::{CommandFdExt, FdMapping};
use portcullis_testkit::client::exchange;
use portcullis_testkit::process::{self, Signal};
use portcullis_testkit::proxy::free_address;
use portcullis_testkit::upstream::{Response, Server};
use portcullis_testkit::wait::{PATIENCE, until};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A folder with a document, and an upstream.
struct Place {
    folder: tempfile::TempDir,
    upstream: Server,
    address: SocketAddr,
    admin: SocketAddr,
}

impl Place {
    fn new() -> Place {
        let answer = |_: &_| Response { status: 200, body: b"hello".to_vec(), ..Response::default() };
        let upstream = Server::start("127.0.0.1:0", answer).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let place =
            Place { folder, upstream, address: free_address().unwrap(), admin: free_address().unwrap() };
        place.write("first", "");
        place
    }

    fn document(&self) -> PathBuf {
        self.folder.path().join("portcullis.toml")
    }

    /// The document, with a rule that refuses paths with `word`.
    fn write(&self, word: &str, more: &str) {
        let text = format!(
            "workers = 2\nadmin = {{ listen = \"{}\" }}\ntimeouts = {{ drain = \"20s\" }}\n{more}\ndata = {{ folder = \"data\" }}\n\
             [[listeners]]\naddress = \"{}\"\n\
             [[sites]]\nname = \"site\"\nhosts = [\"*\"]\nupstream = \"app\"\n\
             rules = {{ directives = 'SecRule REQUEST_URI \"@contains {word}\" \"id:1,phase:1,deny,log\"' }}\n\
             [upstreams.app]\nendpoints = [\"http://{}\"]\n",
            self.admin,
            self.address,
            self.upstream.address()
        );
        // In one step, since a reader may have it open.
        let new = self.folder.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.document()).unwrap();
    }

    fn start(&self, set_up: impl FnOnce(&mut Command)) -> Running {
        let log = std::fs::File::options().create(true).append(true).open(self.output()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        let arguments: [OsString; 3] = ["run".into(), "--config".into(), self.document().into()];
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        set_up(&mut command);
        Running(command.spawn().unwrap())
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("output")
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.output()).unwrap()
    }

    fn get(&self, path: &str) -> Option<u16> {
        ask(self.address, "GET", path).map(|(status, _)| status)
    }

    fn is_served(&self) -> bool {
        self.get("/") == Some(200)
    }

    fn metric(&self, line: &str) -> bool {
        ask(self.admin, "GET", "/metrics").is_some_and(|(_, text)| text.contains(&format!("\n{line}\n")))
    }
}

fn ask(address: SocketAddr, method: &str, path: &str) -> Option<(u16, String)> {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    let answer = exchange(address, None, request.as_bytes(), PATIENCE).ok()?;
    Some((answer.status, String::from_utf8_lossy(answer.after_head()).into_owned()))
}

struct Running(Child);

impl Running {
    fn signal(&self, what: Signal) {
        signal(self.0.id(), what);
    }

    fn ended(&mut self) -> Option<i32> {
        self.0.try_wait().unwrap().map(|status| status.code().unwrap_or(-1))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn signal(id: u32, what: Signal) {
    process::signal(id, what).unwrap();
}

/// A process that another one started.
struct Successor(u32);

impl Successor {
    /// The one that took over, as the old one says.
    fn of(place: &Place) -> Successor {
        let mut id = None;
        until(|| {
            let said = place.said();
            let line = said.lines().rev().find(|line| line.ends_with("has taken over"));
            id = line.and_then(|line| line.split(' ').nth(2)?.parse().ok());
            id.is_some()
        });
        Successor(id.unwrap())
    }

    fn is_alive(&self) -> bool {
        // One that has ended and that no parent waits for is a zombie.
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0)).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        if self.is_alive() {
            let _ = process::signal(self.0, Signal::TERM);
        }
    }
}

#[test]
fn reloads_are_asked_for_at_the_admin_listener() {
    let place = Place::new();
    let _running = place.start(|_| {});
    until(|| place.is_served());
    place.write("second", "");
    let (status, text) = ask(place.admin, "POST", "/reload").unwrap();
    assert_eq!((status, text.as_str()), (200, "reloaded, generation 2\n"));
    assert_eq!((place.get("/first"), place.get("/second")), (Some(200), Some(403)));
    place.write("third", "adress = 1\n");
    let (status, text) = ask(place.admin, "POST", "/reload").unwrap();
    assert!(status == 422 && text.contains("keeping the old settings"), "{text}");
    assert!(text.contains("portcullis.toml:4"), "{text}");
    assert_eq!((place.get("/second"), place.get("/third")), (Some(403), Some(200)));
    assert!(place.metric("portcullis_reloads_total{result=\"failed\"} 1"));
}

#[test]
fn changed_files_are_read_if_that_is_wished() {
    let place = Place::new();
    let rules = place.folder.path().join("rules");
    std::fs::create_dir(&rules).unwrap();
    let write_rule = |word: &str| {
        let rule = format!("SecRule REQUEST_URI \"@contains {word}\" \"id:2,phase:1,deny,log\"\n");
        std::fs::write(rules.join("own.conf"), rule).unwrap();
    };
    write_rule("alpha");
    let write = |word: &str| {
        place.write(word, "reload_on_change = true\n");
        let text = std::fs::read_to_string(place.document()).unwrap();
        let with_file = text.replace("rules = { ", "rules = { include = [\"rules/*.conf\"], ");
        std::fs::write(place.document(), with_file).unwrap();
    };
    write("first");
    let _running = place.start(|_| {});
    until(|| place.is_served());
    assert_eq!((place.get("/first"), place.get("/alpha")), (Some(403), Some(403)));
    write("second");
    until(|| place.get("/second") == Some(403));
    write_rule("beta");
    until(|| place.get("/beta") == Some(403) && place.get("/alpha") == Some(200));
    std::fs::write(place.document(), "nonsense").unwrap();
    until(|| place.metric("portcullis_reloads_total{result=\"failed\"} 1"));
    assert_eq!(place.get("/second"), Some(403));
}

#[test]
fn the_service_manager_is_told() {
    let place = Place::new();
    let path = place.folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let heard = |word: &str| {
        let start = Instant::now();
        let mut buffer = [0; 1024];
        loop {
            assert!(start.elapsed() < PATIENCE, "{word} was not said");
            let length = socket.recv(&mut buffer).unwrap();
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if text.lines().any(|line| line == word) {
                return text;
            }
        }
    };
    let mut running = place.start(|command| {
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "400000");
    });
    heard("READY=1");
    assert!(place.is_served(), "ready means that it serves");
    for _ in 0..3 {
        heard("WATCHDOG=1");
    }
    running.signal(Signal::HUP);
    let text = heard("RELOADING=1");
    let clock = text.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC=")).unwrap();
    assert!(clock.parse::<u64>().unwrap() > 0);
    heard("READY=1");
    running.signal(Signal::TERM);
    heard("STOPPING=1");
    until(|| running.ended() == Some(0));
}

#[test]
fn sockets_may_be_passed_by_systemd() {
    let mut place = Place::new();
    let bound = TcpListener::bind("127.0.0.1:0").unwrap();
    place.address = bound.local_addr().unwrap();
    place.write("first", "");
    let pass = |command: &mut Command, socket: OwnedFd| {
        command.env("LISTEN_FDS", "1");
        command.fd_mappings(vec![FdMapping { parent_fd: socket, child_fd: 3 }]).unwrap();
    };
    // A client comes before the service is there.
    let mut early = TcpStream::connect(place.address).unwrap();
    early.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    early.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut running = place.start(|command| pass(command, bound.try_clone().unwrap().into()));
    let mut answer = String::new();
    early.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for _ in 0..20 {
        assert!(place.is_served());
    }
    // Connections between two processes wait.
    running.signal(Signal::TERM);
    until(|| running.ended() == Some(0));
    let mut between = TcpStream::connect(place.address).unwrap();
    between.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    between.set_read_timeout(Some(PATIENCE)).unwrap();
    let _running = place.start(|command| pass(command, bound.into()));
    let mut answer = String::new();
    between.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// The cores that this thread may use.
fn cores() -> Vec<usize> {
    let usable = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).filter(|core| usable.is_set(*core)).collect()
}

/// Returns true if SO_INCOMING_CPU counts among sockets of one port: since Linux 6.2.
fn kernel_steers() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers =
        release.split(|letter: char| !letter.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(2))
}

#[test]
fn workers_keep_to_cores_and_connections_to_workers() {
    let cores = cores();
    assert!(cores.len() >= 2, "this test needs two cores");
    let place = Place::new();
    place.write("first", "worker_affinity = true");
    let running = place.start(|_| {});
    until(|| place.is_served());
    // The second worker may be on its way still when the first serves.
    until(|| ask(place.admin, "GET", "/metrics").is_some_and(|(_, text)| text.contains("{worker=\"1\"} ")));
    let tasks = std::fs::read_dir(format!("/proc/{}/task", running.0.id())).unwrap();
    let mut kept: Vec<(String, String)> = tasks
        .filter_map(|task| {
            let status = std::fs::read_to_string(task.unwrap().path().join("status")).ok()?;
            let field =
                |name| status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()));
            Some((field("Name:")?, field("Cpus_allowed_list:")?))
        })
        .filter(|(name, _)| name.starts_with("worker-"))
        .collect();
    kept.sort();
    let own = |number: usize| (format!("worker-{number}"), cores[number].to_string());
    assert_eq!(kept, [own(0), own(1)]);

    let accepted = || {
        let (_, text) = ask(place.admin, "GET", "/metrics").unwrap();
        [0, 1].map(|number| {
            let series = format!("portcullis_worker_connections_total{{worker=\"{number}\"}} ");
            let value =
                text.lines().find_map(|line| line.strip_prefix(&series)).expect("the series is there");
            value.parse::<u64>().unwrap()
        })
    };
    for (number, core) in cores.into_iter().take(2).enumerate() {
        let (address, mut expected) = (place.address, accepted());
        let clients = std::thread::spawn(move || {
            let mut own = CpuSet::new();
            own.set(core);
            sched_setaffinity(None, &own).unwrap();
            (0..10).filter(|_| ask(address, "GET", "/").is_some_and(|(status, _)| status == 200)).count()
        });
        assert_eq!(clients.join().unwrap(), 10);
        expected[number] += 10;
        let now = accepted();
        assert_eq!(now.iter().sum::<u64>(), expected.iter().sum::<u64>());
        assert!(now == expected || !kernel_steers(), "connections of core {core}: {now:?}, not {expected:?}");
    }
}

#[test]
fn affinity_needs_a_core_for_each_worker() {
    let place = Place::new();
    place.write("first", "worker_affinity = true");
    let document = std::fs::read_to_string(place.document()).unwrap();
    std::fs::write(place.document(), document.replace("workers = 2", "workers = 1024")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    let output = command.arg("run").arg("--config").arg(place.document()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("lower `workers`"), "{said}");
}

/// Clients that ask without a pause: with new connections, and with kept ones.
struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    clients: Vec<std::thread::JoinHandle<Vec<String>>>,
}

impl Load {
    fn start(address: SocketAddr) -> Load {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let client = |number: usize| {
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            std::thread::spawn(move || {
                let (mut kept, mut lost) = (None, Vec::new());
                while !stop.load(Ordering::Relaxed) {
                    match request(address, &mut kept, number.is_multiple_of(2)) {
                        Ok(()) => drop(answered.fetch_add(1, Ordering::Relaxed)),
                        Err(error) => lost.push(error),
                    }
                }
                lost
            })
        };
        let clients = (0..8).map(client).collect();
        Load { stop, answered, clients }
    }

    fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Waits for this many more answers.
    fn go_on(&self, count: u64) {
        let wanted = self.answered() + count;
        until(|| self.answered() >= wanted);
    }

    fn end(self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    }
}

/// One request on the connection that was kept, or a new one.
fn request(address: SocketAddr, kept: &mut Option<TcpStream>, keep: bool) -> Result<(), String> {
    let mut stream = match kept.take() {
        Some(stream) => stream,
        None => TcpStream::connect(address).map_err(|error| format!("connect: {error}"))?,
    };
    stream.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
    let close = if keep { "" } else { "Connection: close\r\n" };
    let text = format!("GET /x HTTP/1.1\r\nHost: a\r\n{close}\r\n");
    stream.write_all(text.as_bytes()).map_err(|error| format!("write: {error}"))?;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while !answer.ends_with(b"\r\n\r\nhello") {
        match stream.read(&mut buffer) {
            Ok(0) => return Err(format!("closed after {:?}", String::from_utf8_lossy(&answer))),
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) => return Err(format!("read: {error}")),
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    if !answer.starts_with("HTTP/1.1 200") {
        return Err(answer.into_owned());
    }
    if keep && !answer.contains("Connection: close") {
        *kept = Some(stream);
    }
    Ok(())
}

#[test]
fn an_upgrade_under_load_loses_no_request() {
    let place = Place::new();
    let mut running = place.start(|_| {});
    until(|| place.is_served());
    assert_eq!(place.get("/first"), Some(403));
    let load = Load::start(place.address);
    load.go_on(200);
    place.write("second", "");
    running.signal(Signal::USR2);
    let first = Successor::of(&place);
    load.go_on(500);
    until(|| running.ended() == Some(0));
    assert_eq!(
        (place.get("/first"), place.get("/second")),
        (Some(200), Some(403)),
        "the new one read it anew"
    );
    assert!(place.metric("portcullis_policy_generation 1"), "the admin listener was handed over, too");
    // And once more, from the new one.
    std::fs::write(place.output(), "").unwrap();
    signal(first.0, Signal::USR2);
    let second = Successor::of(&place);
    load.go_on(500);
    until(|| !first.is_alive());
    assert_eq!(load.end(), Vec::<String>::new(), "lost requests");
    assert!(place.is_served());
    signal(second.0, Signal::TERM);
    until(|| !second.is_alive());
    assert!(!place.is_served());
    // Predecessor and successor wrote to one store.
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    let output = command.args(["events", "--json", "--data"]).arg(place.folder.path().join("data")).output();
    let output = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(
        output.contains("\"target\":\"/first\"") && output.contains("\"target\":\"/second\""),
        "{output}"
    );
}

#[test]
fn an_upgrade_that_fails_changes_nothing() {
    let place = Place::new();
    let mut running = place.start(|_| {});
    until(|| place.is_served());
    let load = Load::start(place.address);
    place.write("second", "nonsense = 1\n");
    running.signal(Signal::USR2);
    until(|| place.metric("portcullis_upgrades_total{result=\"failed\"} 1"));
    load.go_on(100);
    assert_eq!(load.end(), Vec::<String>::new(), "lost requests");
    assert_eq!((running.ended(), place.get("/first")), (None, Some(403)));
    assert!(place.said().contains("the upgrade failed, this process keeps serving"), "{}", place.said());
}

/// Whatever a file of the settings has become, a reload says so and ends, what is in use stays, and signals
/// are heard.
#[test]
fn a_reload_that_meets_no_file_ends() {
    let place = Place::new();
    let (list, page) = (place.folder.path().join("deny.txt"), place.folder.path().join("page.html"));
    std::fs::write(&list, "192.0.2.1\n").unwrap();
    std::fs::write(&page, "<p>{{request_id}}</p>").unwrap();
    let more = format!("access = {{ deny = {{ files = [{list:?}] }} }}\nblock_page = {{ file = {page:?} }}");
    place.write("first", &more);
    let mut running = place.start(|_| {});
    until(|| place.is_served());
    let pipe = |path: &PathBuf| {
        std::fs::remove_file(path).unwrap();
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let device = |path: &PathBuf| {
        std::fs::remove_file(path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path).unwrap();
    };
    for (path, make) in
        [(&list, &pipe as &dyn Fn(&PathBuf)), (&page, &pipe), (&list, &device), (&page, &device)]
    {
        let before = std::fs::read(path).unwrap();
        make(path);
        let (status, text) = ask(place.admin, "POST", "/reload").unwrap();
        assert!(status == 422 && text.contains("it is not a regular file"), "{status} {text}");
        assert!(place.is_served() && place.get("/first") == Some(403));
        std::fs::remove_file(path).unwrap();
        std::fs::write(path, before).unwrap();
    }
    // The document itself, and a signal in place of a request.
    let text = std::fs::read(place.document()).unwrap();
    pipe(&place.document());
    running.signal(Signal::HUP);
    until(|| place.said().contains("portcullis.toml: cannot read it: it is not a regular file"));
    std::fs::remove_file(place.document()).unwrap();
    std::fs::write(place.document(), text).unwrap();
    let (status, text) = ask(place.admin, "POST", "/reload").unwrap();
    assert_eq!(status, 200, "{text}");
    pipe(&list);
    running.signal(Signal::HUP);
    running.signal(Signal::TERM);
    until(|| running.ended().is_some());
    assert_eq!(running.ended(), Some(0), "{}", place.said());
}

/// A pipe that nobody reads from keeps neither a check nor a start, a request, a reload or the end from
/// happening.
#[test]
fn logs_may_be_pipes_that_nobody_reads() {
    let place = Place::new();
    let pipes = ["access.pipe", "errors.pipe", "events.pipe", "audit.pipe"].map(|name| {
        let path = place.folder.path().join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    });
    let [access, errors, events, audit] = &pipes;
    let more = format!(
        "access_log = {{ file = {access:?} }}\nerror_log = {{ file = {errors:?} }}\nevents = {{ file = {events:?} }}"
    );
    place.write(
        &format!("first\" \"id:2,phase:1,deny,log\"\nSecAuditEngine On\nSecAuditLog {}\n#", audit.display()),
        &more,
    );
    let text = std::fs::read_to_string(place.document()).unwrap();
    // Several lines of rules.
    std::fs::write(
        place.document(),
        text.replace("directives = 'Sec", "directives = '''\nSec").replace("log\"' }", "log\"\n''' }"),
    )
    .unwrap();
    let mut check = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    let check = check.arg("check").arg(place.document()).stdout(Stdio::piped()).spawn().unwrap();
    let mut check = Running(check);
    until(|| check.ended().is_some());
    let mut running = place.start(|_| {});
    until(|| place.is_served());
    // More than a pipe holds.
    for _ in 0..400 {
        assert_eq!(place.get("/first"), Some(403));
    }
    let lost = |name: &str| {
        let (_, text) = ask(place.admin, "GET", "/metrics").unwrap_or_default();
        text.lines()
            .any(|line| line.starts_with(name) && line.contains("write_error") && !line.ends_with(" 0"))
    };
    until(|| lost("portcullis_events_dropped_total") && lost("portcullis_audit_dropped_total"));
    let (status, text) = ask(place.admin, "POST", "/reload").unwrap();
    assert!(status == 200 && place.is_served(), "{status} {text}");
    running.signal(Signal::USR1);
    running.signal(Signal::TERM);
    until(|| running.ended().is_some());
    assert_eq!(running.ended(), Some(0), "{}", place.said());
}

/// A data folder that cannot be written is no reason not to protect.
#[test]
fn protects_with_a_data_folder_that_cannot_be_written() {
    let place = Place::new();
    // Nobody makes folders there, root included.
    place.write("first", "");
    let text = std::fs::read_to_string(place.document()).unwrap();
    let text = text.replace("folder = \"data\"", "folder = \"/sys/portcullis\"");
    let console = free_address().unwrap();
    let text = text.replace("admin = { listen", &format!("admin = {{ console = \"{console}\", listen"));
    std::fs::write(place.document(), text).unwrap();
    let mut running = place.start(|_| {});
    until(|| place.is_served());
    assert_eq!(place.get("/first"), Some(403));
    let said = place.said();
    assert!(
        said.contains("console: not started: ") && said.contains("/sys/portcullis cannot be written"),
        "{said}"
    );
    until(|| place.said().contains("event store: /sys/portcullis/events: "));
    running.signal(Signal::TERM);
    until(|| running.ended().is_some());
    assert_eq!(running.ended(), Some(0), "{}", place.said());
    assert_eq!(place.said().matches("event store: ").count(), 1, "{}", place.said());
}

/// What is kept on disk is for its owner alone, from the first byte on, whatever the umask.
#[test]
fn files_of_a_data_folder_are_for_their_owner_alone() {
    use std::os::unix::fs::MetadataExt as _;
    let place = Place::new();
    let more = "events = { capture = { share = 1.0 } }";
    let console = free_address().unwrap();
    place.write("first", more);
    let text = std::fs::read_to_string(place.document()).unwrap();
    let text = text.replace("admin = { listen", &format!("admin = {{ console = \"{console}\", listen"));
    std::fs::write(place.document(), text).unwrap();
    let data = place.folder.path().join("data");
    let files = || {
        let (mut found, mut folders) = (Vec::new(), vec![data.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(there) if there.is_dir() => folders.push(entry.path()),
                    Ok(there) => found.push((entry.path(), there.mode() & 0o777)),
                    Err(_) => {}
                }
            }
        }
        found
    };
    let mut running = place.start(|_| {});
    let has = |names: &[&str]| {
        let files = files();
        let open: Vec<_> = files.iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
        assert!(open.is_empty(), "{open:?}");
        names.iter().all(|name| files.iter().any(|(path, _)| path.to_string_lossy().contains(name)))
    };
    until(|| has(&[]) && place.is_served());
    assert_eq!(place.get("/first"), Some(403));
    until(|| has(&["identities.db", "revisions.db-wal", "events/writer.lock", "-wal", "sample/writer.lock"]));
    until(|| files().iter().filter(|(path, _)| path.to_string_lossy().contains("/events/")).count() >= 3);
    running.signal(Signal::TERM);
    until(|| running.ended().is_some());
    assert!(has(&["events/"]));
}
