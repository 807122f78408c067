//! `portcullis run` as a process: flags, signals, a full disk, mistakes that keep it from starting.

use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use portcullis_testkit::client::exchange;
use portcullis_testkit::process::{Process, Signal};
use portcullis_testkit::proxy::free_address;
use portcullis_testkit::upstream::{Response, Server};
use portcullis_testkit::wait::{PATIENCE, until};

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_portcullis"))
}

/// A running proxy before an upstream that says its `greeting`.
struct Running {
    process: Process,
    _upstream: Server,
    upstream: SocketAddr,
    address: SocketAddr,
    admin: SocketAddr,
    folder: tempfile::TempDir,
}

impl Running {
    /// Starts with a document that `text` makes of listen, admin and upstream address.
    fn start(text: impl Fn(SocketAddr, SocketAddr, SocketAddr) -> String) -> Running {
        let folder = tempfile::tempdir().unwrap();
        let server =
            Server::start("127.0.0.1:0", |_| Response { status: 200, ..Response::default() }).unwrap();
        let (address, admin, upstream) = (free_address().unwrap(), free_address().unwrap(), server.address());
        let config = folder.path().join("portcullis.toml");
        std::fs::write(&config, text(address, admin, upstream)).unwrap();
        let arguments: [OsString; 3] = ["run".into(), "--config".into(), config.into()];
        let mut process = Process::start(&program(), &arguments, &folder.path().join("output")).unwrap();
        process.wait_for(address, PATIENCE).unwrap();
        Running { process, _upstream: server, upstream, address, admin, folder }
    }

    fn get(&self, target: &str) -> u16 {
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        exchange(self.address, None, request.as_bytes(), PATIENCE).unwrap().status
    }

    fn metrics(&self) -> String {
        let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let answer = exchange(self.admin, None, request, PATIENCE).unwrap();
        String::from_utf8_lossy(answer.after_head()).into_owned()
    }

    fn signal(&self, what: Signal) {
        self.process.signal(what).unwrap();
    }

    fn rewrite(&self, text: &str) {
        std::fs::write(self.folder.path().join("portcullis.toml"), text).unwrap();
    }
}

fn document(
    address: SocketAddr,
    admin: SocketAddr,
    upstream: SocketAddr,
    word: &str,
    events: &Path,
) -> String {
    format!(
        "workers = 1\nadmin = {{ listen = \"{admin}\" }}\nevents = {{ file = \"{}\" }}\n\
         [[listeners]]\naddress = \"{address}\"\n\
         [[sites]]\nname = \"site\"\nhosts = [\"*\"]\nupstream = \"app\"\n\
         rules = {{ directives = 'SecRule REQUEST_URI \"@contains {word}\" \"id:1,phase:1,deny,log\"' }}\n\
         [upstreams.app]\nendpoints = [\"http://{upstream}\"]\n",
        events.display()
    )
}

#[test]
fn reloads_on_hangup_and_ends_on_terminate() {
    let events = Path::new("events.jsonl");
    let running = Running::start(|a, b, c| document(a, b, c, "first", events));
    assert_eq!((running.get("/first"), running.get("/second")), (403, 200));

    let (address, admin, upstream) = (running.address, running.admin, running.upstream);
    running.rewrite(&document(address, admin, upstream, "second", events));
    running.signal(Signal::HUP);
    until(|| running.metrics().contains("portcullis_policy_generation 2"));
    assert_eq!((running.get("/first"), running.get("/second")), (200, 403));

    // Neither a bad document nor bad rules take the old ones away.
    let good = document(address, admin, upstream, "third", events);
    for (count, bad) in
        [good.replace("[[sites]]", "[[site]]"), good.replace("@contains", "@contians")].iter().enumerate()
    {
        running.rewrite(bad);
        running.signal(Signal::HUP);
        let line = format!("portcullis_reloads_total{{result=\"failed\"}} {}", count + 1);
        until(|| running.metrics().contains(&line));
        assert_eq!((running.get("/third"), running.get("/second")), (200, 403));
    }

    let folder = running.folder;
    assert!(running.process.stop(PATIENCE).unwrap().success());
    let lines = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 4, "one event for each block, all written before the end");
    let output = std::fs::read_to_string(folder.path().join("output")).unwrap();
    assert!(output.contains(&format!("listening on {address}")), "{output}");
    assert!(
        output.contains("did you mean `sites`?") && output.contains("keeping the old settings"),
        "{output}"
    );
}

#[test]
fn a_plan_cache_is_written_used_and_replaced_when_it_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("plan.cache");
    let start = || {
        Running::start(|a, b, c| {
            let document = document(a, b, c, "bad", Path::new("events.jsonl"));
            format!("plan_cache = \"{}\"\n{document}", cache.display())
        })
    };
    let output = |running: Running| {
        assert_eq!((running.get("/bad"), running.get("/good")), (403, 200));
        let folder = running.folder;
        assert!(running.process.stop(PATIENCE).unwrap().success());
        std::fs::read_to_string(folder.path().join("output")).unwrap()
    };
    let first = start();
    until(|| cache.exists());
    let good = std::fs::read(&cache).unwrap();
    assert!(!output(first).contains("plan cache"));
    assert!(!output(start()).contains("plan cache"));

    std::fs::write(&cache, &good[..good.len() / 2]).unwrap();
    let second = start();
    until(|| std::fs::read(&cache).is_ok_and(|content| content == good));
    let output = output(second);
    assert!(output.contains("is not used and will be rewritten: it is damaged"), "{output}");
}

#[test]
fn a_full_disk_costs_events_and_no_request() {
    let running = Running::start(|a, b, c| document(a, b, c, "bad", Path::new("/dev/full")));
    for _ in 0..20 {
        assert_eq!((running.get("/bad"), running.get("/good")), (403, 200));
    }
    let dropped = "portcullis_events_dropped_total{sink=\"json\",reason=\"disk_full\"} 20";
    until(|| running.metrics().contains(dropped));
    assert!(running.process.stop(PATIENCE).unwrap().success());
}

#[test]
fn mistakes_name_the_place_and_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("bad.toml");
    let mut file = std::fs::File::create(&config).unwrap();
    writeln!(file, "[[listeners]]\nadress = \"127.0.0.1:1\"").unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let config = config.to_str().unwrap();
    let upstream = "http://127.0.0.1:1";
    for (arguments, code, words) in [
        (vec!["--config", config], 1, vec!["bad.toml:2:1", "did you mean `address`?"]),
        (vec!["--config", "missing.toml"], 1, vec!["missing.toml"]),
        (vec!["--listen", "here", "--upstream", upstream], 2, vec!["--listen"]),
        (vec!["--listen", "127.0.0.1:0", "--upstream", "here"], 2, vec!["--upstream"]),
        (vec!["--listen", "127.0.0.1:0"], 2, vec!["--upstream"]),
        (
            vec!["--listen", "127.0.0.1:0", "--upstream", upstream, "--mode", "crs", "--crs", "/nonexistent"],
            1,
            vec!["/nonexistent", "portcullis crs install"],
        ),
        (vec!["--listen", &taken, "--upstream", upstream], 1, vec![&taken, "in use"]),
    ] {
        let output = Command::new(program()).arg("run").args(&arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(words.iter().all(|word| text.contains(word)), "{arguments:?}: {text}");
    }
}

#[test]
fn the_apache_profile_answers_as_apache() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start("127.0.0.1:0", |_| Response { status: 200, ..Response::default() }).unwrap();
    for (profile, expected) in [("strict", [405, 400, 400]), ("apache", [200, 200, 0])] {
        let address = free_address().unwrap();
        let arguments =
            ["run", "--listen", &address.to_string(), "--upstream", &format!("http://{}", server.address())];
        let arguments: Vec<OsString> =
            arguments.iter().chain(&["--http-compat", profile]).map(OsString::from).collect();
        let mut process = Process::start(&program(), &arguments, &folder.path().join("output")).unwrap();
        process.wait_for(address, PATIENCE).unwrap();
        for (request, status) in [
            "CONNECT 1.2.3.4:80 HTTP/1.1\r\nHost: 1.2.3.4:80\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na=b\r\n0\r\n\r\n",
            "GET /\r\n\r\n",
        ]
        .into_iter()
        .zip(expected)
        {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = Vec::new();
            std::io::Read::read_to_end(&mut stream, &mut answer).unwrap();
            let answer = String::from_utf8_lossy(&answer).into_owned();
            match status {
                0 => assert!(!answer.starts_with("HTTP/"), "a simple request gets the body only: {answer}"),
                _ => assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{profile} {request:?}: {answer}"),
            }
        }
        assert!(process.stop(PATIENCE).unwrap().success());
    }
}
