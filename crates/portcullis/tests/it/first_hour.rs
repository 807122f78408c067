//! The first hour: the program as a newcomer starts it, with flags, and what is kept for the next start.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use portcullis_testkit::client::exchange;
use portcullis_testkit::process::Process;
use serde_json::{Value, json};

use crate::served::*;

/// A program that was started with flags, a console, and this data folder.
pub struct Started {
    process: Process,
    address: SocketAddr,
    console: SocketAddr,
    pub data: PathBuf,
    log: PathBuf,
}

impl Started {
    pub fn start(place: &Path, upstream: SocketAddr, more: &[&str]) -> Started {
        let (data, log) = (place.join("data"), place.join("log"));
        let (address, console) = (free_address(), free_address());
        let flags = ["run", "--workers", "1", "--listen", &address.to_string(), "--upstream"];
        let mut arguments: Vec<OsString> = flags.iter().map(OsString::from).collect();
        arguments.push(format!("http://{upstream}").into());
        arguments.extend([
            "--console".into(),
            console.to_string().into(),
            "--data".into(),
            data.clone().into(),
        ]);
        arguments.extend(more.iter().map(OsString::from));
        let mut process = Process::start(&program(), &arguments, &log).unwrap();
        process.wait_for(address, PATIENCE).unwrap_or_else(|error| {
            panic!("{error:?}: {}", std::fs::read_to_string(&log).unwrap_or_default())
        });
        process.wait_for(console, PATIENCE).unwrap();
        Started { process, address, console, data, log }
    }

    pub fn get(&self, target: &str) -> u16 {
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        exchange(self.address, None, request.as_bytes(), PATIENCE).unwrap().status
    }

    pub fn token(&self) -> String {
        let create = ["token", "create", "--role", "admin", "--name", "test", "--data"];
        let created = Command::new(program()).args(create).arg(&self.data).output().unwrap();
        String::from_utf8(created.stdout).unwrap().trim().to_owned()
    }

    pub fn change(&self, method: &str, path: &str, body: &Value) -> (u16, String) {
        self.ask(&self.token(), method, path, body)
    }

    pub fn ask(&self, token: &str, method: &str, path: &str, body: &Value) -> (u16, String) {
        let body = body.to_string();
        let request = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nIf-Match: *\r\n\
             Content-Type: application/json\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = exchange(self.console, None, request.as_bytes(), PATIENCE).unwrap();
        (answer.status, String::from_utf8_lossy(answer.after_head()).into_owned())
    }

    pub fn stop(self) -> String {
        assert!(self.process.stop(PATIENCE).unwrap().success());
        std::fs::read_to_string(&self.log).unwrap()
    }
}

pub const ATTACK: &str = "/?q=1%27%20OR%201=1--%20-";

/// An exclusion, a list and a mode that the console sets are there at the next start, whatever else the flags
/// say then; and what the flags say differently counts.
#[test]
fn what_the_console_changes_without_a_document_is_kept() {
    let place = tempfile::tempdir().unwrap();
    let application = application(|_| says("shop"));
    let started = Started::start(place.path(), application.address(), &[]);
    assert_eq!(started.get(ATTACK), 403);
    let exclusion = json!({ "site": "default", "class": "sqli", "location": "query:q" });
    let (status, text) = started.change("POST", "/exclusions", &exclusion);
    assert!((200..300).contains(&status), "{status} {text}");
    assert_eq!(started.get(ATTACK), 200);
    assert_eq!(started.get(&ATTACK.replace("q=", "r=")), 403);
    let document = started.data.join("portcullis.toml");
    assert_eq!(std::fs::metadata(&document).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(started.stop().contains("settings are kept in"));

    // The same flags but for the addresses, which the test chooses anew.
    let started = Started::start(place.path(), application.address(), &["--detect-only"]);
    assert_eq!(started.get(&ATTACK.replace("q=", "r=")), 200, "a flag that is new");
    let text = std::fs::read_to_string(&document).unwrap();
    assert!(text.contains("detection_only") && text.contains("query:q"), "{text}");
    started.stop();
    let started = Started::start(place.path(), application.address(), &[]);
    assert_eq!((started.get(ATTACK), started.get(&ATTACK.replace("q=", "r="))), (200, 403));
    let said = started.stop();
    assert!(said.contains("sites.engine"), "{said}");
}

/// Three lines: where it listens, a request to copy, the console; no colour in a file.
#[test]
fn the_first_lines_say_what_to_do_next() {
    let place = tempfile::tempdir().unwrap();
    let application = application(|_| says("shop"));
    let started = Started::start(place.path(), application.address(), &[]);
    let curl = format!("curl -i 'http://{}{ATTACK}'", started.address);
    let mut said = String::new();
    until(|| {
        said = std::fs::read_to_string(&started.log).unwrap();
        said.contains("without a browser")
    });
    let lines: Vec<&str> = said.lines().collect();
    let at = |what: &str| {
        lines.iter().position(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {said}"))
    };
    let first = at(&format!("listening on {}", started.address));
    assert_eq!((at(&curl), at(&format!("console on http://{}/", started.console))), (first + 1, first + 2));
    assert!(lines[first + 1].contains("blocked") && at("/#/?setup=") == first + 3, "{said}");
    assert!(!said.contains('\x1b'), "{said}");
    // The target of that line, as it is.
    assert_eq!(started.get(ATTACK), 403);
    started.stop();

    let started = Started::start(place.path(), application.address(), &["--mode", "off"]);
    assert!(started.stop().contains("pass without inspection"));
}

fn refused(data: &Path) -> String {
    let upstream = ["run", "--upstream", "http://127.0.0.1:9", "--listen", "127.0.0.1:0", "--data"];
    let output: Output =
        Command::new(program()).args(upstream).arg(data).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("--data") && text.contains("help: "), "{text}");
    text
}

/// A file, a folder of something else, a folder below a file: an error that says what to do, and nothing is
/// written.
#[test]
fn a_wrong_data_folder_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    let (file, home) = (place.path().join("file"), place.path().join("home"));
    std::fs::write(&file, "mine").unwrap();
    assert!(refused(&file).contains("this is a file"));
    assert!(refused(&file.join("below")).contains("this is a file, or below one"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("letter.txt"), "dear").unwrap();
    assert!(refused(&home).contains("letter.txt"));
    assert_eq!(std::fs::read_dir(&home).unwrap().count(), 1);
    if is_root() {
        // Root writes everywhere; what another user's instance keeps is that user's all the same.
        let theirs = place.path().join("theirs");
        std::fs::create_dir_all(theirs.join("events")).unwrap();
        std::os::unix::fs::chown(&theirs, Some(12_345), None).unwrap();
        let text = refused(&theirs);
        assert!(text.contains("uid 12345") && text.contains("sudo -u"), "{text}");
    } else {
        let closed = place.path().join("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o500)).unwrap();
        assert!(refused(&closed).contains("may not write there"));
    }
}

/// Whoever made the folder of this test.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Settings of earlier starts that do not fit any more are named, and nothing is changed.
#[test]
fn a_kept_document_that_flags_do_not_fit_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let application = application(|_| says("shop"));
    let started = Started::start(place.path(), application.address(), &[]);
    let data = started.data.clone();
    started.stop();
    let document = data.join("portcullis.toml");
    std::fs::write(&document, "listeners = [").unwrap();
    let upstream = ["run", "--upstream", "http://127.0.0.1:9", "--data"];
    let output = Command::new(program()).args(upstream).arg(&data).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("portcullis.toml") && text.contains("move it away"), "{text}");
    assert_eq!(std::fs::read_to_string(&document).unwrap(), "listeners = [");
    // One that a person wrote is not taken for that of the flags.
    std::fs::remove_file(data.join("flags.toml")).unwrap();
    let output = Command::new(program()).args(upstream).arg(&data).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("was not made of flags"));
}

/// The completions of each shell know all commands; another shell is a mistake.
#[test]
fn completions_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        let output = Command::new(program()).args(["completions", shell]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("evaluate"), "{shell}: {text}");
    }
    let output = Command::new(program()).args(["completions", "csh"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
