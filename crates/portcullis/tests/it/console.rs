//! `run --console`, `token` and `user` of the real program.

use std::ffi::OsString;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use portcullis_testkit::client::exchange;
use portcullis_testkit::process::Process;

use crate::served::*;

/// Runs a command with a line on standard input.
fn command(arguments: &[&str], data: &Path, input: &str) -> Output {
    let mut child = Command::new(program())
        .args(arguments)
        .arg("--data")
        .arg(data)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that asks for nothing may have ended.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A running program with a console.
struct Console {
    _process: Process,
    address: SocketAddr,
}

impl Console {
    fn start(data: &Path, log: &Path, more: &[&str]) -> Console {
        let (listen, address) = (free_address(), free_address());
        let (listen_text, console) = (listen.to_string(), address.to_string());
        let run = ["run", "--listen", &listen_text, "--upstream", "http://127.0.0.1:9", "--mode", "off"];
        let mut arguments: Vec<OsString> = run.iter().chain(more).map(OsString::from).collect();
        arguments.extend(["--console".into(), console.into(), "--data".into(), data.into()]);
        let mut process = Process::start(&program(), &arguments, log).unwrap();
        process.wait_for(address, PATIENCE).unwrap();
        Console { _process: process, address }
    }

    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let length = body.len();
        let request = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        let answer = exchange(self.address, None, request.as_bytes(), PATIENCE).unwrap();
        (answer.status, String::from_utf8_lossy(answer.after_head()).into_owned())
    }

    fn get(&self, path: &str, token: &str) -> u16 {
        self.ask("GET", path, &format!("Authorization: Bearer {token}\r\n"), "").0
    }
}

#[test]
fn tokens_of_the_command_line_count_at_once() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let create = |role: &str| {
        text(command(&["token", "create", "--role", role, "--name", "test", "--expires", "30d"], &data, ""))
    };
    let first = create("viewer");
    let token = first.strip_suffix('\n').unwrap();
    assert!(token.starts_with("pct_") && token.len() == 47, "{first:?}");
    let log = place.path().join("log");
    let console = Console::start(&data, &log, &[]);
    assert_eq!(console.ask("GET", "/openapi.json", "", "").0, 200);
    assert_eq!(console.ask("GET", "/events", "", "").0, 401);
    assert_eq!(console.get("/events", token), 200);
    assert_eq!(console.get("/tokens", token), 403);
    let admin = create("admin");
    let header = format!("Authorization: Bearer {}\r\n", admin.trim());
    assert_eq!(console.ask("GET", "/tokens", &header, "").0, 200);
    let (status, body) = console.ask("POST", "/reload", &header, "");
    assert!(status == 200 && body.contains("generation 2"), "{status} {body}");
    assert!(text(command(&["token", "list"], &data, "")).contains("viewer   valid"));
    // A folder that is none of ours, or not there, is a mistake, and stays as it is.
    let other = place.path().join("other");
    for prepare in [false, true] {
        if prepare {
            std::fs::create_dir(&other).unwrap();
            std::fs::write(other.join("letter.txt"), "").unwrap();
        }
        for words in [
            &["token", "list"][..],
            &["token", "create", "--role", "viewer", "--name", "x"],
            &["user", "list"],
        ] {
            let output = command(words, &other, "");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && said.contains("help: the data folder"), "{said}");
        }
        assert!(!other.join("identities.db").exists());
    }
    assert_eq!(text(command(&["token", "revoke", "1"], &data, "")), "token 1 is revoked\n");
    assert_eq!(console.get("/events", token), 401);
    assert!(!std::fs::read_to_string(&log).unwrap().contains("nobody can log in"));
}

#[test]
fn the_first_start_has_a_code_and_a_lost_administrator_gets_back() {
    let place = tempfile::tempdir().unwrap();
    let (data, log) = (place.path().join("data"), place.path().join("log"));
    let console = Console::start(&data, &log, &[]);
    // It listens a moment before it tells the code.
    let mut said = String::new();
    until(|| {
        said = std::fs::read_to_string(&log).unwrap();
        said.contains("without a browser")
    });
    let (_, rest) = said.split_once("setup=").expect("a code");
    let code = rest.split_whitespace().next().unwrap();
    let json = "Content-Type: application/json\r\n";
    let setup = format!(r#"{{"code":"{code}","name":"admin","password":"a fine long password"}}"#);
    assert_eq!(console.ask("POST", "/setup", json, &setup).0, 201);
    assert_eq!(console.ask("POST", "/setup", json, &setup).0, 409);
    let log_in = |password: &str| {
        console.ask("POST", "/login", json, &format!(r#"{{"name":"admin","password":"{password}"}}"#)).0
    };
    assert_eq!((log_in("a fine long password"), log_in("password")), (200, 401));
    let set = command(&["user", "password", "admin"], &data, "another long password\n");
    assert!(text(set).starts_with("the password of admin is set"));
    assert_eq!((log_in("a fine long password"), log_in("another long password")), (401, 200));
    let short = command(&["user", "add", "anna", "--role", "viewer"], &data, "short\n");
    assert_eq!(short.status.code(), Some(1));
    text(command(&["user", "add", "anna", "--role", "viewer"], &data, "a fine long password\n"));
    assert!(text(command(&["user", "list"], &data, "")).contains("anna"));
    text(command(&["user", "delete", "anna"], &data, ""));
    let missing = command(&["user", "password", "anna"], &data, "a fine long password\n");
    assert!(String::from_utf8_lossy(&missing.stderr).contains("there is no user `anna`"));
}

/// Tokens and users of the command line are limited to the sites that it names; administrators are not.
#[test]
fn the_command_line_limits_identities_to_sites() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let create = |role: &str, sites: &[&str]| {
        let words = [&["token", "create", "--role", role, "--name", "test"], sites].concat();
        command(&words, &data, "")
    };
    let all = text(create("viewer", &[]));
    let other = text(create("viewer", &["--site", "other", "--site", "another"]));
    let refused = create("admin", &["--site", "other"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("an administrator cannot be limited to sites"), "{said}");
    let words = ["user", "add", "anna", "--role", "analyst", "--site", "other"];
    text(command(&words, &data, "a fine long password\n"));
    let listed = text(command(&["token", "list"], &data, "")) + &text(command(&["user", "list"], &data, ""));
    assert!(
        listed.contains("test (the sites another, other)\n") && listed.contains("anna (the sites other)\n"),
        "{listed}"
    );
    let console = Console::start(&data, &place.path().join("log"), &[]);
    let get = |path: &str, token: &str| {
        console.ask("GET", path, &format!("Authorization: Bearer {}\r\n", token.trim()), "")
    };
    let sites = |token: &str| get("/sites", token).1.matches("\"hosts\"").count();
    assert_eq!((sites(&all), sites(&other)), (1, 0));
    assert_eq!((get("/statistics", &other).0, get("/config/schema", &other).0), (200, 200));
}

/// A session that its user ends from another browser gets nothing any more.
#[test]
fn a_session_is_ended_from_another_browser() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    std::fs::create_dir(&data).unwrap();
    text(command(&["user", "add", "anna", "--role", "viewer"], &data, "a fine long password\n"));
    let console = Console::start(&data, &place.path().join("log"), &[]);
    let log_in = || {
        let login = r#"{"name":"anna","password":"a fine long password"}"#;
        let head = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", login.len());
        let request = format!(
            "POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{head}\r\n{login}"
        );
        let answer = exchange(console.address, None, request.as_bytes(), PATIENCE).unwrap();
        assert_eq!(answer.status, 200);
        let set = String::from_utf8_lossy(answer.header("set-cookie").expect("a cookie")).into_owned();
        let session: serde_json::Value = serde_json::from_slice(answer.after_head()).unwrap();
        let (cookie, csrf) = (set.split(';').next().unwrap(), session["csrf_token"].as_str().unwrap());
        format!("Cookie: {cookie}\r\nX-CSRF-Token: {csrf}\r\nOrigin: http://localhost\r\n")
    };
    let (first, second) = (log_in(), log_in());
    assert_eq!(console.ask("GET", "/version", &first, "").0, 200);
    let (status, listed) = console.ask("GET", "/session/sessions", &second, "");
    assert!(status == 200 && listed.matches("\"user\":\"anna\"").count() == 2, "{listed}");
    assert_eq!(console.ask("DELETE", "/session/sessions", &second, "").0, 200);
    assert_eq!(console.ask("GET", "/version", &first, "").0, 401);
    assert_eq!(console.ask("GET", "/version", &second, "").0, 200);
}

/// Passwords are no arguments.
#[test]
fn command_lines_that_cannot_be_followed() {
    let place = tempfile::tempdir().unwrap();
    for arguments in [
        &["user", "add", "anna", "--role", "viewer", "--password", "x"][..],
        &["token", "create", "--role", "root", "--name", "x"],
        &["token", "create", "--role", "admin", "--name", "x", "--expires", "soon"],
        &["run", "--upstream", "http://127.0.0.1:9", "--console", "here"],
    ] {
        assert_eq!(command(arguments, place.path(), "").status.code(), Some(2), "{arguments:?}");
    }
}
