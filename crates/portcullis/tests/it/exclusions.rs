//! From the id on a block page to the event, and to an exclusion that lets exactly that request pass.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::served::*;
use portcullis_testkit::client::exchange;
use portcullis_testkit::process::Process;

struct Running {
    process: Process,
    address: SocketAddr,
}

impl Running {
    fn start(folder: &Path, arguments: &[&str], address: SocketAddr) -> Running {
        let runtime = folder.join("runtime").display().to_string();
        let own = ["run", "--runtime-folder", &runtime];
        let arguments: Vec<OsString> = own.iter().chain(arguments).map(OsString::from).collect();
        let mut process = Process::start(&program(), &arguments, &folder.join("output")).unwrap();
        process.wait_for(address, PATIENCE).unwrap();
        Running { process, address }
    }

    /// The status of an answer and its request id.
    fn ask(&self, target: &str, cookie: &str) -> (u16, String) {
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n");
        let answer = exchange(self.address, None, request.as_bytes(), PATIENCE).unwrap();
        let id = answer.header("x-request-id").unwrap_or_default();
        (answer.status, String::from_utf8_lossy(id).into_owned())
    }

    fn stop(self) {
        assert!(self.process.stop(PATIENCE).unwrap().success());
    }
}

/// Returns the output of a command, and whether it succeeded.
fn portcullis(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let runtime = folder.join("runtime");
    let output =
        Command::new(program()).args(arguments).arg("--runtime-folder").arg(runtime).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// The event is there a moment after the answer.
fn told(folder: &Path, arguments: &[&str]) -> String {
    let mut text = String::new();
    until(|| {
        let (ok, said) = portcullis(folder, arguments);
        text = said;
        ok
    });
    text
}

const INJECTION: &str = "1%27+UNION+SELECT+name,password+FROM+users--+";

#[test]
fn a_site_of_flags_tells_of_its_blocks_and_remembers_them() {
    let app = application(|_| says("app"));
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let (listen, upstream) = (address.to_string(), format!("http://{}", app.address()));
    let running = Running::start(folder.path(), &["--listen", &listen, "--upstream", &upstream], address);
    let (status, id) = running.ask(&format!("/search?q={INJECTION}"), "a=b");
    assert_eq!((status, running.ask("/search?q=iron", "a=b").0), (403, 200));
    let event = told(folder.path(), &["events", &id]);
    assert!(event.contains(&id) && event.contains("sqli in query:q"), "{event}");
    let listed = told(folder.path(), &["events"]);
    assert_eq!(listed.lines().count(), 1, "{listed}");
    let json: serde_json::Value =
        serde_json::from_str(&told(folder.path(), &["events", &id, "--json"])).unwrap();
    assert_eq!(json["request_id"], id.as_str());
    // The line is written behind what `events` reads.
    until(|| {
        let said = std::fs::read_to_string(folder.path().join("output")).unwrap();
        said.contains(&id) && said.contains("deny 403")
    });
    // Only the user of the process may ask.
    let runtime = folder.path().join("runtime");
    let mode = |mode| std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(mode)).unwrap();
    assert_eq!(std::fs::metadata(&runtime).unwrap().permissions().mode() & 0o777, 0o700);
    mode(0o755);
    assert!(!portcullis(folder.path(), &["events"]).0, "a folder that others may open is not trusted");
    mode(0o700);
    for (arguments, words) in [
        (&["events", "0123"][..], "is not a request id"),
        (&["exclude", "01a2b3c4d5e6f708"], "no running instance remembers"),
        (&["events", "a b"], "is not a request id"),
    ] {
        let (ok, text) = portcullis(folder.path(), arguments);
        assert!(!ok && text.contains(words), "{text}");
    }
    running.stop();
    assert_eq!(std::fs::read_dir(&runtime).unwrap().count(), 0, "the socket is gone");
    let (ok, text) = portcullis(folder.path(), &["events"]);
    assert!(!ok && text.contains("no instance that keeps events"), "{text}");
}

/// Messages and kept data stay within their bounds, for any requests.
#[test]
fn a_flood_of_blocks_stays_within_bounds() {
    let app = application(|_| says("app"));
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let (listen, upstream) = (address.to_string(), format!("http://{}", app.address()));
    let running = Running::start(folder.path(), &["--listen", &listen, "--upstream", &upstream], address);
    let ask = |n| running.ask(&format!("/{n}?q={INJECTION}%0a%1b[31m"), "a=b").1;
    (0..300).for_each(|n| drop(ask(n)));
    // The last ones of a flood may have no events of their own.
    std::thread::sleep(std::time::Duration::from_secs(1));
    told(folder.path(), &["events", &ask(300)]);
    let listed = told(folder.path(), &["events"]);
    assert_eq!(listed.lines().count(), 100);
    let said = std::fs::read_to_string(folder.path().join("output")).unwrap();
    assert!(said.lines().count() < 200, "not a line for each: {}", said.lines().count());
    assert!(
        !said.contains('\u{1b}') && !listed.contains('\u{1b}'),
        "nothing of a client reaches the terminal raw"
    );
    running.stop();
}

fn document(folder: &Path, address: SocketAddr, app: SocketAddr, site: &str) -> String {
    let text = format!(
        "[[listeners]]\naddress = \"{address}\"\n[[sites]]\nname = \"shop\"\nhosts = [\"*\"]\nupstream = \"app\"\n{site}\n\
         [upstreams.app]\nendpoints = [\"http://{app}\"]\n"
    );
    let path = folder.join("portcullis.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// `requests`: the first is blocked, and passes with what `exclude` prints; the others are blocked in any
/// case.
#[track_caller]
fn check(site: &str, requests: &[(&str, &str)]) {
    let app = application(|_| says("app"));
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let config = document(folder.path(), address, app.address(), site);
    let running = Running::start(folder.path(), &["--config", &config], address);
    let ids: Vec<String> = requests
        .iter()
        .map(|(target, cookie)| {
            let (status, id) = running.ask(target, cookie);
            assert_eq!(status, 403, "{target}");
            id
        })
        .collect();
    let exclusion = told(folder.path(), &["exclude", &ids[0]]);
    running.stop();
    let config = document(folder.path(), address, app.address(), &format!("{site}\n{exclusion}"));
    let running = Running::start(folder.path(), &["--config", &config], address);
    let with: Vec<u16> = requests.iter().map(|(target, cookie)| running.ask(target, cookie).0).collect();
    let expected: Vec<u16> = (0..requests.len()).map(|at| if at == 0 { 200 } else { 403 }).collect();
    assert_eq!(with, expected, "{exclusion}");
    running.stop();
}

#[test]
fn the_detectors_exclusion_is_for_one_class_in_one_value_of_one_path() {
    check(
        "",
        &[
            (&format!("/search?q={INJECTION}"), "a=b"),
            // Another value, another place, another path, another class.
            (&format!("/search?r={INJECTION}"), "a=b"),
            ("/search", &format!("q={}", INJECTION.replace('+', "%20"))),
            (&format!("/find?q={INJECTION}"), "a=b"),
            ("/search?q=%3Cscript%3Ealert(1)%3C/script%3E", "a=b"),
        ],
    );
}

#[test]
fn a_rules_exclusion_is_for_one_target_of_one_rule_on_one_path() {
    let rules = "mode = \"crs\"\n[sites.rules]\ninclude = [\"own.conf\"]\n";
    let app = application(|_| says("app"));
    let folder = tempfile::tempdir().unwrap();
    let own = "SecRuleEngine On\nSecRule ARGS|REQUEST_COOKIES \"@contains union\" \"id:7,phase:2,deny,t:lowercase\"\n\
               SecRule ARGS \"@contains script\" \"id:8,phase:2,deny\"\n";
    std::fs::write(folder.path().join("own.conf"), own).unwrap();
    let address = free_address();
    let config = document(folder.path(), address, app.address(), rules);
    let running = Running::start(folder.path(), &["--config", &config], address);
    let requests =
        [("/a?q=union", ""), ("/a?r=union", ""), ("/a", "q=union"), ("/a?q=script", ""), ("/b?q=union", "")];
    let ids = requests.map(|(target, cookie)| running.ask(target, cookie).1);
    let exclusion = told(folder.path(), &["exclude", &ids[0]]);
    running.stop();
    let config = document(folder.path(), address, app.address(), &format!("{rules}{exclusion}"));
    let running = Running::start(folder.path(), &["--config", &config], address);
    let with = requests.map(|(target, cookie)| running.ask(target, cookie).0);
    assert_eq!(with, [200, 403, 403, 403, 403], "{exclusion}");
    running.stop();
}

#[test]
fn bare_run_says_what_to_type() {
    let output = Command::new(program()).arg("run").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("portcullis run --upstream http://") && text.contains("--config"), "{text}");
}

/// Detector and rules both stop a request, one before the other can speak: what `exclude` prints with the
/// document lets it pass, at the root of the site and nowhere else.
#[test]
fn an_exclusion_clears_what_both_would_stop() {
    let app = application(|_| says("app"));
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let text = format!(
        "data = {{ folder = \"data\" }}\n[[listeners]]\naddress = \"{address}\"\n[[sites]]\nname = \"shop\"\nhosts = [\"*\"]\n\
         upstream = \"app\"\nmode = \"both\"\n[sites.rules]\ndirectives = '''\n\
         SecRule ARGS \"@rx (?i)union.+select\" \"id:1,phase:2,deny,status:403,log,msg:'a union'\"\n'''\n@EXCLUDE@\n\
         [upstreams.app]\nendpoints = [\"http://{}\"]\n",
        app.address()
    );
    let path = folder.path().join("portcullis.toml");
    let config = path.display().to_string();
    std::fs::write(&path, text.replace("@EXCLUDE@", "")).unwrap();
    let running = Running::start(folder.path(), &["--config", &config], address);
    let target = format!("/?q={INJECTION}");
    let (status, id) = running.ask(&target, "a=b");
    assert_eq!(status, 403);
    let mut excluded = String::new();
    until(|| {
        let output = Command::new(program()).args(["exclude", &id, "--config", &config]).output().unwrap();
        excluded = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success()
    });
    running.stop();
    assert!(excluded.contains("sites.semantic.exclude") && excluded.contains("rules = [1]"), "{excluded}");
    assert!(excluded.contains("path = \"/$\"") && !excluded.contains("path = \"/\"\n"), "{excluded}");

    std::fs::write(&path, text.replace("@EXCLUDE@", &excluded)).unwrap();
    let running = Running::start(folder.path(), &["--config", &config], address);
    assert_eq!(running.ask(&target, "a=b").0, 200);
    assert_eq!(running.ask(&format!("/admin?q={INJECTION}"), "a=b").0, 403);
    assert_eq!(running.ask(&format!("/?other={INJECTION}"), "a=b").0, 403);
    running.stop();
}
