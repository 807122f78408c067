//! Persistent collections in the real binary: they count over requests, survive an orderly end and a
//! crash, and are shared through Redis.

use std::cell::Cell;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use portcullis_testkit::client::exchange;
use portcullis_testkit::process::{Process, Signal};
use portcullis_testkit::proxy::free_address;
use portcullis_testkit::shared_store::{Kind, SharedStore};
use portcullis_testkit::upstream::{Response, Server};
use portcullis_testkit::wait::{PATIENCE, until};

/// The sixth request of a client within the hour is refused.
const RULES: &str = "SecAction \"id:1,phase:1,pass,nolog,initcol:ip=%{REQUEST_HEADERS.x-client}\"\n\
     SecRule REQUEST_URI \"@streq /hit\" \"id:2,phase:1,pass,nolog,setvar:ip.hits=+1\"\n\
     SecRule IP:hits \"@gt 5\" \"id:3,phase:1,deny,status:429\"";

struct Running {
    process: Process,
    /// The file of its standard output and error.
    output: PathBuf,
    address: SocketAddr,
    admin: SocketAddr,
    /// Requests that it has answered.
    answered: AtomicI64,
}

impl Running {
    /// Starts with `store` as the document's keys of that table.
    fn start(folder: &Path, upstream: &Server, store: &str) -> Running {
        Running::start_with(folder, upstream, store, RULES)
    }

    fn start_with(folder: &Path, upstream: &Server, store: &str, rules: &str) -> Running {
        Running::start_within(&[], folder, upstream, store, rules)
    }

    /// `within`: a program with arguments that goes over into ours, such as `env NAME=value`.
    fn start_within(
        within: &[String],
        folder: &Path,
        upstream: &Server,
        store: &str,
        rules: &str,
    ) -> Running {
        let (address, admin) = (free_address().unwrap(), free_address().unwrap());
        let config = folder.join(format!("{}.toml", address.port()));
        let text = format!(
            "workers = 2\nadmin = {{ listen = \"{admin}\" }}\n[store]\n{store}\n\
             [[listeners]]\naddress = \"{address}\"\n\
             [[sites]]\nname = \"site\"\nhosts = [\"*\"]\nupstream = \"app\"\n\
             rules = {{ directives = '''\n{rules}\n''' }}\n\
             [upstreams.app]\nendpoints = [\"http://{}\"]\n",
            upstream.address()
        );
        std::fs::write(&config, text).unwrap();
        let run = [env!("CARGO_BIN_EXE_portcullis").into(), "run".into(), "--config".into(), config.into()];
        let mut arguments = within.iter().map(OsString::from).chain(run);
        let program = PathBuf::from(arguments.next().unwrap());
        let arguments: Vec<OsString> = arguments.collect();
        let output = folder.join(format!("{}.output", address.port()));
        let mut process = Process::start(&program, &arguments, &output).unwrap();
        process.wait_for(address, PATIENCE).unwrap();
        Running { process, output, address, admin, answered: AtomicI64::new(0) }
    }

    fn get(&self, target: &str, client: &str) -> u16 {
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: a\r\nX-Client: {client}\r\nConnection: close\r\n\r\n");
        let answer = exchange(self.address, None, request.as_bytes(), PATIENCE);
        let said = || std::fs::read_to_string(&self.output).unwrap_or_default();
        let answer = answer.unwrap_or_else(|failure| panic!("{failure}; it said: {}", said()));
        self.answered.fetch_add(1, Relaxed);
        answer.status
    }

    /// One request after the other, each once the one before has been stored, which happens after its answer
    /// is out.
    fn hits(&self, client: &str, count: usize) -> Vec<u16> {
        let hit = |_| {
            let status = self.get("/hit", client);
            let answered = self.answered.load(Relaxed);
            // Counted when its account is closed, behind phase 5.
            until(|| self.metric("portcullis_protocol_requests_total{protocol=\"http/1.1\"}") >= answered);
            status
        };
        (0..count).map(hit).collect()
    }

    fn metric(&self, name: &str) -> i64 {
        let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let answer = exchange(self.admin, None, request, PATIENCE).unwrap();
        let text = String::from_utf8_lossy(answer.after_head()).into_owned();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    fn stop(self) {
        assert!(self.process.stop(PATIENCE).unwrap().success());
    }

    fn kill(mut self) {
        self.process.signal(Signal::KILL).unwrap();
        until(|| self.process.exited().unwrap().is_some());
    }
}

fn upstream() -> Server {
    Server::start("127.0.0.1:0", |_| Response { status: 200, ..Response::default() }).unwrap()
}

#[test]
fn counts_survive_an_end_and_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, store) = (upstream(), "folder = \"data\"");
    let file = || std::fs::metadata(folder.path().join("data/collections.log")).unwrap().len();

    let running = Running::start(folder.path(), &upstream, store);
    assert_eq!(running.hits("a", 2), [200, 200]);
    running.stop();

    let running = Running::start(folder.path(), &upstream, store);
    let before = file();
    assert_eq!(running.hits("a", 2), [200, 200]);
    assert_eq!(running.hits("b", 1), [200]);
    // All of it has been written when the file has not grown for ten times as long as a flush is waited for.
    let mut last = (before, Instant::now());
    until(|| {
        if file() != last.0 {
            last = (file(), Instant::now());
        }
        last.0 > before && last.1.elapsed() > Duration::from_secs(1)
    });
    running.kill();

    let running = Running::start(folder.path(), &upstream, store);
    assert_eq!(running.metric("portcullis_store_records"), 2);
    assert_eq!(running.hits("a", 3), [200, 429, 429], "the fifth, and what is too much");
    assert_eq!(running.hits("b", 5), [200, 200, 200, 200, 429]);
    assert_eq!(running.get("/other", "c"), 200);
    running.stop();
}

#[test]
fn without_a_folder_they_end_with_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = upstream();
    let running = Running::start(folder.path(), &upstream, "records = 1000");
    assert_eq!(running.hits("a", 6), [200, 200, 200, 200, 200, 429]);
    running.stop();
    let running = Running::start(folder.path(), &upstream, "records = 1000");
    assert_eq!(running.get("/hit", "a"), 200);
    running.stop();
}

/// The file may not grow beyond 32 KiB, and writing on is an error as on a full disk.
#[test]
fn a_full_disk_costs_no_count() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = upstream();
    let rules = format!(
        "{RULES}\nSecAction \"id:9,phase:1,pass,nolog,setvar:'ip.big=%{{REQUEST_HEADERS.x-client}}{}'\"",
        "x".repeat(2_000)
    );
    let limit = "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"";
    let within = ["sh", "-c", limit].map(str::to_owned);
    let running = Running::start_within(&within, folder.path(), &upstream, "folder = \"data\"", &rules);
    assert_eq!(running.hits("first", 2), [200, 200]);
    // Changes between two writes go in one piece or not at all, so some have to be there before the
    // limit is met.
    for client in 0..6 {
        assert_eq!(running.get("/hit", &format!("client-{client}")), 200);
    }
    until(|| running.metric("portcullis_store_file_bytes") > 14_000);
    let mut client = 6;
    until(|| {
        client += 1;
        assert_eq!(running.get("/hit", &format!("client-{client}")), 200);
        running.metric("portcullis_store_persist_errors_total") > 0
    });
    // Counting continues in memory.
    assert_eq!(running.hits("first", 4), [200, 200, 200, 429]);
    assert!(running.metric("portcullis_store_records") > 10);
    running.stop();
    // Data written before is there, and nothing torn.
    let running = Running::start(folder.path(), &upstream, "folder = \"data\"");
    assert!(running.metric("portcullis_store_records") > 5);
    assert_eq!(running.metric("portcullis_store_persist_errors_total"), 0);
    running.stop();
}

#[test]
fn the_rules_can_name_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = upstream();
    let rules = format!("SecDataDir {}/sec\nSecCollectionTimeout 600\n{RULES}", folder.path().display());
    for expected in [[200; 3], [200, 200, 429]] {
        let running = Running::start_with(folder.path(), &upstream, "", &rules);
        assert_eq!(running.hits("a", 3), expected);
        running.stop();
    }
    assert!(folder.path().join("sec/collections.log").is_file());
}

#[test]
fn parallel_requests_lose_no_count() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = upstream();
    let rules = "SecAction \"id:1,phase:1,pass,nolog,initcol:global=all\"\n\
                 SecRule REQUEST_URI \"@streq /hit\" \"id:2,phase:1,pass,nolog,setvar:global.n=+1\"\n\
                 SecRule GLOBAL:n \"!@eq 200\" \"id:3,phase:1,deny,status:409,chain\"\n\
                 SecRule REQUEST_URI \"@streq /ask\"";
    let running = Running::start_with(folder.path(), &upstream, "", rules);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(running.hits("a", 50).iter().all(|status| *status == 200)));
        }
    });
    until(|| running.get("/ask", "a") == 200);
    running.stop();
}

/// Counts as [`RULES`] do, without a limit; 409 if the count is the one that is asked for.
const SHARED_RULES: &str = "SecAction \"id:1,phase:1,pass,nolog,initcol:ip=%{REQUEST_HEADERS.x-client}\"\n\
     SecRule REQUEST_URI \"@streq /hit\" \"id:2,phase:1,pass,nolog,setvar:ip.hits=+1\"\n\
     SecRule IP:hits \"@eq %{ARGS_GET.n}\" \"id:3,phase:1,deny,status:409\"";

impl Running {
    fn counts(&self, client: &str, hits: usize) -> bool {
        self.get(&format!("/is?n={hits}"), client) == 409
    }
}

#[test]
fn nodes_share_counts_through_redis() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, redis) = (upstream(), SharedStore::start(Kind::Redis, None).unwrap());
    let store = format!("redis = \"{}\"", redis.url());
    let start = || Running::start_with(folder.path(), &upstream, &store, SHARED_RULES);
    let nodes = [start(), start()];
    until(|| nodes.iter().all(|node| node.metric("portcullis_store_redis_connected") == 1));

    assert_eq!(nodes[0].hits("a", 3), [200; 3]);
    let began = Instant::now();
    until(|| nodes[1].counts("a", 3));
    println!("the other node knew after {:?}", began.elapsed());
    // Both count at a time.
    std::thread::scope(|scope| {
        for node in &nodes {
            scope.spawn(|| assert_eq!(node.hits("a", 40), [200; 40]));
        }
    });
    until(|| nodes.iter().all(|node| node.counts("a", 83)));

    // A node that comes later knows what there is.
    let later = start();
    until(|| later.counts("a", 83));

    // Redis dies, and with it all it knew. No client notices.
    let waits = Cell::new(0usize);
    let hit = |node: &Running| {
        let began = Instant::now();
        assert_eq!(node.get("/hit", "a"), 200);
        // An answer of Redis is waited for longer than that.
        waits.set(waits.get() + usize::from(began.elapsed() >= Duration::from_secs(1)));
    };
    let address = redis.address();
    drop(redis); // killed
    let down = Instant::now();
    let mut hits = 83;
    while down.elapsed() < Duration::from_secs(1) || hits < 83 + 40 {
        nodes.iter().for_each(&hit);
        hits += 2;
    }
    // A busy machine may hold up some, but not most.
    assert!(waits.get() * 2 < hits - 83, "{} of {} requests waited", waits.get(), hits - 83);
    until(|| nodes.iter().all(|node| node.metric("portcullis_store_redis_connected") == 0));
    assert!(nodes.iter().all(|node| node.metric("portcullis_store_redis_failures_total") > 0));
    assert!(!nodes[0].counts("a", hits), "each node knows its own now");

    let redis = SharedStore::start(Kind::Redis, Some(address)).unwrap();
    for _ in 0..20 {
        nodes.iter().for_each(&hit);
        hits += 2;
    }
    until(|| nodes.iter().chain([&later]).all(|node| node.counts("a", hits)));
    until(|| nodes.iter().all(|node| node.metric("portcullis_store_redis_unsent") == 0));

    // The last changes of a node are not lost when it ends.
    let [first, second] = nodes;
    hit(&first);
    first.stop();
    until(|| second.counts("a", hits + 1));
    second.stop();
    later.stop();
    drop(redis);
}

/// `rediss://`: the certificate is checked against the machine's authorities, which `SSL_CERT_FILE` names
/// here.
#[test]
fn nodes_share_counts_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    std::fs::write(path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let address = free_address().unwrap();
    let tls = ["--port", "0", "--tls-port", &address.port().to_string(), "--tls-auth-clients", "no"];
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let files = ["--tls-cert-file", &cert, "--tls-key-file", &key];
    let redis = SharedStore::start_with(Kind::Redis, address, &[tls.as_slice(), &files].concat()).unwrap();

    let upstream = upstream();
    let store = format!("redis = \"rediss://{address}\"");
    let start = |authorities: &str| {
        let within = ["env".to_owned(), format!("SSL_CERT_FILE={authorities}")];
        Running::start_within(&within, folder.path(), &upstream, &store, SHARED_RULES)
    };
    let nodes = [start(&cert), start(&cert)];
    until(|| nodes.iter().all(|node| node.metric("portcullis_store_redis_connected") == 1));
    assert_eq!(nodes[0].hits("a", 3), [200; 3]);
    until(|| nodes[1].counts("a", 3));

    // A node that does not know who signed it shares nothing, and continues alone.
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(path("other.pem"), other.cert.pem()).unwrap();
    let alone = start(&path("other.pem"));
    until(|| alone.metric("portcullis_store_redis_failures_total") > 0);
    assert_eq!(alone.metric("portcullis_store_redis_connected"), 0);
    assert_eq!(alone.get("/hit", "a"), 200);
    until(|| alone.counts("a", 1));
    alone.stop();
    nodes.into_iter().for_each(Running::stop);
    drop(redis);
}
