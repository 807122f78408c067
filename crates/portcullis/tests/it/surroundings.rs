//! The effects of the real program on its machine: the files it leaves, its messages, and its behaviour when
//! it gets no more of a resource.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use crate::served::*;
use portcullis_testkit::process::Process;

/// Requests of visitors stand in them.
#[test]
fn what_is_written_is_not_for_everybody() {
    let app = application(|_| says("hello"));
    let more = "[access_log]\nfile = \"access.log\"\n[store]\nfolder = \"data\"\n";
    let rules = rules(
        "SecRuleEngine On\nSecAction \"id:1,phase:1,pass,nolog,initcol:global=all,setvar:global.n=+1\"",
    );
    let served = Served::start_site(&app, &rules, more);
    assert_eq!(served.get("/").status(), 200);
    let folder = served.stop();
    for (file, most) in [
        ("events.jsonl", 0o640),
        ("access.log", 0o640),
        ("data/collections.log", 0o600),
        ("data/collections.lock", 0o600),
    ] {
        let mode = std::fs::metadata(folder.path().join(file))
            .unwrap_or_else(|error| panic!("{file}: {error}"))
            .mode();
        assert_eq!(mode & 0o777 & !most, 0, "{file}: {mode:o}");
    }
}

/// A page in a browser on this machine can have its own name point here; it cannot have the browser send
/// another one.
#[test]
fn the_admin_listener_answers_to_no_foreign_name() {
    let app = application(|_| says("hello"));
    let served = Served::start_site(&app, "", "");
    let status = |path: &str, host: &str| {
        let mut stream = TcpStream::connect(served.admin).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        Answer { bytes, took: Duration::ZERO }.status()
    };
    let port = served.admin.port();
    for path in ["/metrics", "/bans"] {
        for host in
            ["evil.example", "evil.example:9090", "localhost.evil.example", "127.0.0.1.evil.example", "a"]
        {
            assert_eq!(status(path, host), 403, "{path} {host}");
        }
    }
    for host in ["localhost", "LOCALHOST:1", &format!("127.0.0.1:{port}"), "[::1]"] {
        assert_eq!(status("/metrics", host), 200, "{host}");
    }
    assert_eq!(status("/healthz", "evil.example"), 200, "probes ask under any name");
}

/// Memory taken by a flood of large bodies goes back to the system, also where no other request comes.
#[test]
fn memory_comes_back_after_a_flood() {
    let app = application(|_| says("hello"));
    let served = Served::start_site(&app, "mode = \"semantic\"", "");
    assert_eq!(served.get("/").status(), 200);
    let memory = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", served.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<usize>().unwrap() / 1024
    };
    let before = memory();
    let body = "a=b&".repeat(250_000);
    let head = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n",
        body.len() + 1
    );
    let clients: Vec<TcpStream> = (0..60)
        .map(|_| {
            let mut stream = TcpStream::connect(served.address).unwrap();
            stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
            // Data beyond the client's share of memory is not read.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
            stream
        })
        .collect();
    until(|| memory() > before + 60);
    drop(clients);
    until(|| memory() <= before + 30);
}

/// It says why, and serves on when there are some again.
#[test]
fn without_descriptors_it_says_so() {
    let app = application(|_| says("hello"));
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let limit = "ulimit -n 80; exec \"$0\" \"$@\"";
    let run = ["run", "--listen", &address.to_string(), "--upstream", &format!("http://{}", app.address())];
    let mut arguments: Vec<OsString> = ["-c", limit].map(OsString::from).to_vec();
    arguments.push(program().into());
    arguments.extend(run.iter().chain(&["--mode", "off", "--workers", "1"]).map(OsString::from));
    let output = folder.path().join("output");
    let mut process = Process::start("/bin/sh".as_ref(), &arguments, &output).unwrap();
    process.wait_for(address, PATIENCE).unwrap();
    let held: Vec<TcpStream> = (0..120).filter_map(|_| TcpStream::connect(address).ok()).collect();
    let said = || std::fs::read_to_string(&output).unwrap_or_default();
    until(|| said().contains("may not open more files: raise LimitNOFILE= of the service (ulimit -n)"));
    assert_eq!(said().matches("may not open more files").count(), 1, "{}", said());
    drop(held);
    until(|| {
        let mut answer = String::new();
        let asked = TcpStream::connect(address).and_then(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_secs(2)))?;
            stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
            stream.read_to_string(&mut answer)
        });
        asked.is_ok() && answer.starts_with("HTTP/1.1 200")
    });
    assert!(process.stop(PATIENCE).unwrap().success());
}
