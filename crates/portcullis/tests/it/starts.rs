//! Starts of the real program: what answers from the first moment on, and who may have an address.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::served::*;
use portcullis_testkit::process::Process;

/// Number of times that each of two threads starts the program; `PORTCULLIS_STARTS` overrides it.
const STARTS: usize = 15;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

fn arguments(address: SocketAddr, upstream: SocketAddr, more: &[&str]) -> Vec<OsString> {
    let (address, upstream) = (address.to_string(), format!("http://{upstream}"));
    let run = ["run", "--listen", &address, "--upstream", &upstream, "--mode", "off", "--workers", "2"];
    run.iter().chain(more).map(OsString::from).collect()
}

/// Connects as soon as the address accepts, and asks on that very connection.
fn first_answer(address: SocketAddr, process: &mut Process, output: &Path) -> String {
    let began = Instant::now();
    let mut stream = loop {
        if let Ok(stream) = TcpStream::connect(address) {
            break stream;
        }
        let said = || std::fs::read_to_string(output).unwrap_or_default();
        assert!(process.exited().unwrap().is_none(), "it ended: {}", said());
        assert!(began.elapsed() < PATIENCE, "it does not listen: {}", said());
        std::thread::yield_now();
    };
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = String::new();
    let done = stream.write_all(REQUEST).and_then(|()| stream.read_to_string(&mut answer));
    format!("{}{answer}", done.err().map(|error| format!("{error}: ")).unwrap_or_default())
}

/// While threads of this process start other programs, as tests do, and the cores are busy.
#[test]
fn a_request_is_answered_from_the_moment_the_address_accepts() {
    let starts = std::env::var("PORTCULLIS_STARTS").ok().and_then(|text| text.parse().ok()).unwrap_or(STARTS);
    let app = application(|_| says("hello"));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                Command::new("true").status().unwrap();
            }
        });
        let start = || {
            let folder = tempfile::tempdir().unwrap();
            let output = folder.path().join("output");
            for number in 0..starts {
                let address = free_address();
                let mut process =
                    Process::start(&program(), &arguments(address, app.address(), &[]), &output).unwrap();
                let answer = first_answer(address, &mut process, &output);
                let said = || std::fs::read_to_string(&output).unwrap_or_default();
                assert!(
                    answer.starts_with("HTTP/1.1 200"),
                    "start {number}: {answer:?}; it said: {}",
                    said()
                );
            }
        };
        let threads = [scope.spawn(start), scope.spawn(start)];
        let results = threads.map(|thread| thread.join());
        stop.store(true, Ordering::Relaxed);
        assert!(results.iter().all(Result::is_ok));
    });
}

fn refused(arguments: &[OsString]) -> String {
    let Output { status, stderr, .. } = Command::new(program()).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(status.code(), Some(1), "{said}");
    said
}

#[test]
fn an_address_has_one_process() {
    let app = application(|_| says("first"));
    let first = Served::start_site(&app, "", "");
    let other = application(|_| says("second"));
    let (address, admin) = (first.address, first.admin);
    let wide = SocketAddr::from(([0, 0, 0, 0], address.port()));
    let admin_flag = ["--admin", &admin.to_string()];
    for (named, arguments) in [
        (address, arguments(address, other.address(), &[])),
        (wide, arguments(wide, other.address(), &[])),
        (admin, arguments(admin, other.address(), &[])),
        (admin, arguments(free_address(), other.address(), &admin_flag)),
    ] {
        let said = refused(&arguments);
        let words = [&format!("cannot listen on {named}"), "in use by another process", "SIGUSR2"];
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert!(!said.contains("listening on"), "{said}");
    }
    for _ in 0..50 {
        assert_eq!(first.get("/").body(), "first", "no client reaches the second");
    }
    first.stop();
}

/// An address of IPv6 without a host takes clients of IPv4 as well.
#[test]
fn an_address_of_either_family_has_one_process() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        eprintln!("left out: this machine has no IPv6");
        return;
    }
    let app = application(|_| says("hello"));
    let port = free_address().port();
    let address = |ip: &str| SocketAddr::new(ip.parse().unwrap(), port);
    let folder = tempfile::tempdir().unwrap();
    let all = ["::", "0.0.0.0", "127.0.0.1", "::1", "::ffff:127.0.0.1"];
    for (first, taken) in [("::", &all[..]), ("0.0.0.0", &["::", "0.0.0.0", "127.0.0.1", "::ffff:127.0.0.1"])]
    {
        let output = folder.path().join("output");
        let mut process =
            Process::start(&program(), &arguments(address(first), app.address(), &[]), &output).unwrap();
        process.wait_for(address("127.0.0.1"), PATIENCE).unwrap();
        for second in taken {
            let second = address(second);
            let said = refused(&arguments(second, app.address(), &[]));
            assert!(said.contains(&format!("cannot listen on {second}")), "{first}: {said}");
        }
        assert!(process.stop(PATIENCE).unwrap().success());
    }
}

#[test]
fn of_those_that_start_at_once_one_serves() {
    let app = application(|_| says("hello"));
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let start = |number: usize| {
        let output = folder.path().join(format!("output{number}"));
        Process::start(&program(), &arguments(address, app.address(), &[]), &output).unwrap()
    };
    let mut processes: Vec<Process> = (0..4).map(start).collect();
    let mut alive = || {
        let ended = processes.iter_mut().map(|process| process.exited().unwrap().is_some());
        ended.filter(|ended| !ended).count()
    };
    until(|| alive() == 1);
    until(|| TcpStream::connect(address).is_ok());
    assert_eq!(alive(), 1);
}

/// Listeners of one document may overlap; that is no second process.
#[test]
fn listeners_of_a_document_may_overlap() {
    let app = application(|_| says("hello"));
    let address = free_address();
    let wide = SocketAddr::from(([0, 0, 0, 0], address.port()));
    let folder = tempfile::tempdir().unwrap();
    for listeners in [[address, wide], [wide, address]] {
        let config = folder.path().join("portcullis.toml");
        let [first, second] = listeners;
        let text = format!(
            "workers = 2\n[[listeners]]\naddress = \"{first}\"\n[[listeners]]\naddress = \"{second}\"\n\
             [[sites]]\nname = \"site\"\nhosts = [\"*\"]\nupstream = \"app\"\n\
             [upstreams.app]\nendpoints = [\"http://{}\"]\n",
            app.address()
        );
        std::fs::write(&config, text).unwrap();
        let output = folder.path().join("output");
        let arguments: [OsString; 3] = ["run".into(), "--config".into(), config.into()];
        let mut process = Process::start(&program(), &arguments, &output).unwrap();
        let answer = first_answer(address, &mut process, &output);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(process.stop(PATIENCE).unwrap().success());
    }
}
