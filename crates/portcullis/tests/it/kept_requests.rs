//! Requests that are kept with their events, in the real program: found again, without secrets, and judged
//! alike by `explain`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::served::*;

/// A program with an event store in the folder of its document, which keeps so much of bodies.
fn start(application: &Server, keep: &str) -> (Served, PathBuf) {
    let served = Served::start_edited(application.address(), "mode = \"semantic\"", "", |text| {
        let keys = format!("data = {{ folder = \"data\" }}\nevents = {{ keep_request = \"{keep}\", file = ");
        text.replace("events = { file = ", &keys)
    });
    let data = served.folder.path().join("data");
    (served, data)
}

fn run(arguments: &[&str], data: &Path) -> Output {
    Command::new(program()).args(arguments).arg("--data").arg(data).output().unwrap()
}

/// The newest event, once there is one.
fn event(data: &Path) -> Value {
    until(|| !run(&["events", "--json"], data).stdout.is_empty());
    serde_json::from_slice(&run(&["events", "--json", "--limit", "1"], data).stdout).unwrap()
}

fn request(data: &Path) -> Output {
    run(&["events", "request", event(data)["request_id"].as_str().unwrap()], data)
}

#[test]
fn a_blocked_request_is_found_again_and_explained() {
    let application = application(|_| says("found"));
    let (served, data) = start(&application, "64KiB");
    let attack = "password=Hunter2!&comment=1%27+UNION+SELECT+password+FROM+users--+";
    let blocked = served.raw(format!(
        "POST /posts?token=T0k3n HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer abc123\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{attack}",
        attack.len()
    ));
    assert_eq!(blocked.status(), 403);
    let kept = request(&data);
    let text = String::from_utf8(kept.stdout.clone()).unwrap();
    assert_eq!(
        text,
        format!(
            "POST /posts?token=X0x0x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer xxx000\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n\
             password=Xxxxxx0!&comment=1%27+UNION+SELECT+password+FROM+users--+",
            attack.len()
        )
    );
    // What is kept is judged as what was sent.
    let mut explain = Command::new(program())
        .args(["explain", "-", "--mode", "semantic", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    explain.stdin.take().unwrap().write_all(&kept.stdout).unwrap();
    let told: Value = serde_json::from_slice(&explain.wait_with_output().unwrap().stdout).unwrap();
    assert!(told.to_string().contains("UNION SELECT"), "{told}");
    // The file of events has no room for it.
    assert!(!served.events(1)[0].contains("kept"));
}

#[test]
fn bodies_are_kept_up_to_their_limit_and_without_codings() {
    let application = application(|_| says("found"));
    let (served, data) = start(&application, "1KiB");
    let body = format!("a=%3Cscript%3Ealert(1)%3C/script%3E&fill={}", "x".repeat(5000));
    let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    assert_eq!(served.raw(chunked).status(), 403);
    let kept = request(&data);
    let expected = format!("{head}Content-Length: 1024\r\n\r\n{}", &body[..1024]);
    assert_eq!(String::from_utf8(kept.stdout).unwrap(), expected);
    let omitted = format!("{} more bytes", body.len() - 1024);
    assert!(String::from_utf8_lossy(&kept.stderr).contains(&omitted));
    // In a coding: what came out of it is kept.
    let plain = b"a=%3Cscript%3Ealert(2)%3C/script%3E";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(plain).unwrap();
    let packed = gzip.finish().unwrap();
    let coded = format!("{head}Content-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", packed.len());
    assert_eq!(served.raw([coded.as_bytes(), &packed].concat()).status(), 403);
    let is_second = || request(&data).stdout.ends_with(plain);
    until(is_second);
    let kept = String::from_utf8(request(&data).stdout).unwrap();
    assert!(kept.contains("Content-Length: 35\r\n\r\n") && !kept.contains("gzip"), "{kept}");
}

#[test]
fn nothing_is_kept_where_that_is_said() {
    let application = application(|_| says("found"));
    let (served, data) = start(&application, "0");
    assert_eq!(served.get("/?q=%3Cscript%3Ealert(1)%3C/script%3E").status(), 403);
    let none = request(&data);
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no request is kept with the event"));
    let missing = run(&["events", "request", "none"], &data);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("no event with the id none"));
}
