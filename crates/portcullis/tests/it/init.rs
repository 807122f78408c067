//! `portcullis init`: flags, answers, and the document in front of an application.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portcullis_testkit::client::exchange;
use portcullis_testkit::process::Process;
use portcullis_testkit::upstream::Response;

use crate::served::*;

/// Runs `init` in `folder` with these lines typed.
fn init(folder: &Path, arguments: &[&str], typed: &str) -> Output {
    let mut child = Command::new(program())
        .arg("init")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that asks for nothing may have ended.
    let _ = child.stdin.take().unwrap().write_all(typed.as_bytes());
    child.wait_with_output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn document(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("portcullis.toml")).unwrap()
}

#[test]
fn the_document_passes_the_check_serves_and_keeps_events() {
    let place = tempfile::tempdir().unwrap();
    let application = application(|_| says("shop"));
    let (listen, admin, console) = (free_address(), free_address(), free_address());
    let upstream = format!("http://{}", application.address());
    let arguments =
        ["--upstream", &upstream, "--listen", &listen.to_string(), "--host", "shop.example", "--yes"];
    let output = init(place.path(), &[&arguments[..], &["--mode", "semantic"]].concat(), "");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    let next = String::from_utf8(output.stdout).unwrap();
    assert!(next.contains("portcullis run --config portcullis.toml"), "{next}");
    // Another host would be answered 404.
    assert!(next.contains("curl -i -H 'Host: shop.example' 'http://"), "{next}");

    // On ports of this test's own; 9090 and 9443 may be in use.
    let path = place.path().join("portcullis.toml");
    let text = document(place.path());
    assert!(text.contains("127.0.0.1:9090") && text.contains("127.0.0.1:9443"));
    let text =
        text.replace("127.0.0.1:9090", &admin.to_string()).replace("127.0.0.1:9443", &console.to_string());
    std::fs::write(&path, &text).unwrap();
    let check = Command::new(program()).arg("check").arg("--strict").arg(&path).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));

    let run: [OsString; 3] = ["run".into(), "--config".into(), path.clone().into()];
    let mut process = Process::start(&program(), &run, &place.path().join("output")).unwrap();
    process.wait_for(listen, PATIENCE).unwrap();
    let attack = "GET /?id=1%27%20OR%201=1--%20- HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n";
    let ask = || exchange(listen, None, attack.as_bytes(), PATIENCE).unwrap().status;
    assert_eq!(ask(), 200);
    assert!(process.stop(PATIENCE).unwrap().success());
    let data = place.path().join("portcullis-data");
    let events = Command::new(program()).args(["events", "--json", "--data"]).arg(data).output().unwrap();
    let events = String::from_utf8(events.stdout).unwrap();
    assert!(events.contains("\"detect\"") && events.contains("sqli"), "{events}");

    // As its comment says.
    let blocking: Vec<&str> = text.lines().filter(|line| !line.starts_with("engine =")).collect();
    std::fs::write(&path, blocking.join("\n")).unwrap();
    let mut process = Process::start(&program(), &run, &place.path().join("output")).unwrap();
    process.wait_for(listen, PATIENCE).unwrap();
    assert_eq!(ask(), 403);
}

#[test]
fn the_rules_of_the_crs_are_taken_and_compiled() {
    let place = tempfile::tempdir().unwrap();
    let crs = portcullis_testkit::crs::rules().expect("run make crs");
    let crs = crs.canonicalize().unwrap();
    let output = init(place.path(), &["--yes", "--crs", crs.to_str().unwrap()], "");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = document(place.path());
    assert!(text.contains("mode = \"both\"") && text.contains(crs.to_str().unwrap()), "{text}");
    let output = init(place.path(), &["--yes", "--crs", "/nowhere", "--force"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no CRS in /nowhere"), "{}", stderr(&output));
    assert_eq!(document(place.path()), text, "a failure leaves the old document");
}

#[test]
fn wrong_answers_are_asked_for_again_with_the_reason() {
    let place = tempfile::tempdir().unwrap();
    let typed = "ftp://shop\nhttp://127.0.0.1:9\nshop example\na.example, b.example\nnowhere\n127.0.0.1:8123\n\
                 everything\nsemantic\nwordpres\nprobe\n";
    let output = init(place.path(), &[], typed);
    let asked = stderr(&output);
    assert!(output.status.success(), "{asked}");
    for part in [
        "does not begin with http",
        "Address to serve [127.0.0.1:8080]",
        "unknown value `everything`",
        "did you mean `wordpress`?",
    ] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    assert_eq!(asked.matches("Host names of the application").count(), 2, "{asked}");
    assert!(asked.contains("warning: the application does not answer at 127.0.0.1:9"), "{asked}");
    let text = document(place.path());
    for part in
        ["hosts = [\"a.example\", \"b.example\"]", "address = \"127.0.0.1:8123\"", "[\"http://127.0.0.1:9\"]"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_answer_cannot_become_more_than_a_value() {
    let place = tempfile::tempdir().unwrap();
    let hostile = "x\"]\nmode = \"off\"\n#";
    let output = init(place.path(), &["--yes", "--host", hostile], "");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(!place.path().join("portcullis.toml").exists());
}

#[test]
fn without_answers_it_ends_with_what_is_missing() {
    let place = tempfile::tempdir().unwrap();
    let endless = "x\n".repeat(100);
    let long = "x".repeat(100_000);
    for (arguments, typed, part) in [
        (&[][..], "", "--upstream"),
        (&["--upstream", "http://127.0.0.1:9"], "", "--host"),
        (&[], &*endless, "no answer could be used"),
        (&[], &*long, "too long"),
        (&["--upstream", "shop"], "", "--upstream: `shop`"),
        (&["--yes", "--mode", "both", "--crs", "/x", "--listen", "1"], "", "--listen"),
        (&["--yes", "--output", "a.yaml"], "", "has to end in .toml"),
        (
            &["--yes", "--application", "grafan"],
            "",
            "--application: there is no profile `grafan`; did you mean",
        ),
    ] {
        let output = init(place.path(), arguments, typed);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_document_that_is_there_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("portcullis.toml"), "# mine").unwrap();
    let output = init(place.path(), &["--yes"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--force"), "{}", stderr(&output));
    assert_eq!(document(place.path()), "# mine");
    // A link to nothing is something that is there, too.
    std::os::unix::fs::symlink("/nonexistent", place.path().join("link.toml")).unwrap();
    assert_eq!(init(place.path(), &["--yes", "--output", "link.toml"], "").status.code(), Some(1));
    assert!(init(place.path(), &["--yes", "--force"], "").status.success());
    assert!(document(place.path()).contains("[[sites]]"));
}

/// An application that answers like Grafana behind a redirect, and what was asked of it.
fn grafana() -> (Server, Arc<Mutex<Vec<String>>>) {
    let page = "<!DOCTYPE html><html><head><title>Grafana</title></head><body><script>window.grafanaBootData = {};\
                </script></body></html>";
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let application = application(move |request| {
        seen.lock().unwrap().push(request.target.clone());
        match request.target.as_str() {
            "/" => Response {
                status: 302,
                headers: vec![("Location".to_owned(), "/login".to_owned())],
                body: Vec::new(),
            },
            _ => says(page),
        }
    });
    (application, asked)
}

/// What answers like a known application is named, as a comment with what was seen: nobody switches it on but
/// a person.
#[test]
fn a_known_application_is_named_and_not_switched_on() {
    let place = tempfile::tempdir().unwrap();
    let (application, asked) = grafana();
    let upstream = format!("http://{}", application.address());
    let arguments =
        ["--upstream", &upstream, "--host", "*", "--listen", "127.0.0.1:8123", "--mode", "semantic"];
    // Of this machine the front page is asked for unless somebody says no.
    let output = init(place.path(), &arguments, "\n");
    assert!(
        output.status.success() && stderr(&output).contains("or `unknown` [probe]"),
        "{}",
        stderr(&output)
    );
    assert_eq!(*asked.lock().unwrap(), ["/", "/login"]);
    let next = String::from_utf8(output.stdout).unwrap();
    assert!(next.contains("looks like Grafana") && next.contains("portcullis profiles grafana"), "{next}");
    let text = document(place.path());
    assert!(text.contains("\n# Its front page looks like Grafana: title grafana"), "{text}");
    assert!(text.contains("\n# profiles = [\"grafana\"]\n"), "{text}");
    let taken = text.replace("# profiles", "profiles");
    let path = place.path().join("taken.toml");
    std::fs::write(&path, taken).unwrap();
    let check = Command::new(program()).arg("check").arg(&path).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}

/// Nothing is sent to an application unless somebody says so: no script, and no answer, has it by default for
/// another machine. What a person names counts at once.
#[test]
fn an_application_is_asked_with_consent_only() {
    let (application, asked) = grafana();
    let upstream = format!("http://{}", application.address());
    let flags = ["--upstream", &upstream, "--host", "*", "--listen", "127.0.0.1:8123", "--mode", "semantic"];
    for (more, typed, names) in [
        (&["--yes"][..], "", None),
        (&[], "unknown\n", None),
        (&["--application", "unknown"], "", None),
        (&["--application", "gitea"], "", Some("\nprofiles = [\"gitea\"]")),
        (&[], "gitea\n", Some("\nprofiles = [\"gitea\"]")),
    ] {
        let place = tempfile::tempdir().unwrap();
        let output = init(place.path(), &[&flags[..], more].concat(), typed);
        assert!(output.status.success(), "{}", stderr(&output));
        let text = document(place.path());
        assert!(asked.lock().unwrap().is_empty(), "{more:?} {typed:?}");
        match names {
            Some(line) => assert!(text.contains(line), "{text}"),
            None => assert!(!text.contains("profiles ="), "{text}"),
        }
        let path = place.path().join("portcullis.toml");
        let check = Command::new(program()).arg("check").arg("--strict").arg(&path).output().unwrap();
        assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    }
    let place = tempfile::tempdir().unwrap();
    let output = init(place.path(), &[&flags[..], &["--yes", "--application", "probe"]].concat(), "");
    assert!(output.status.success() && document(place.path()).contains("# profiles = [\"grafana\"]"));
    // For another machine the answer that is offered asks nothing.
    let other = [
        "--upstream",
        "http://192.0.2.7:8000",
        "--host",
        "*",
        "--listen",
        "127.0.0.1:8123",
        "--mode",
        "semantic",
    ];
    let place = tempfile::tempdir().unwrap();
    let output = init(place.path(), &other, "\n");
    assert!(
        output.status.success() && stderr(&output).contains("or `unknown` [unknown]"),
        "{}",
        stderr(&output)
    );
}

/// However an application answers, or does not, the command ends soon, and the document holds nothing of the
/// answer.
#[test]
fn hostile_answers_end_soon_and_leave_nothing() {
    let endless = |first: &'static [u8], each: &'static [u8]| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                std::thread::spawn(move || {
                    let mut gone = stream.write_all(first).is_err();
                    while !gone {
                        std::thread::sleep(Duration::from_millis(20));
                        gone = stream.write_all(each).is_err();
                    }
                });
            }
        });
        address
    };
    let page = b"HTTP/1.1 200 OK\r\nX-\"]\nmode = \"off\"\n#: 1\r\n\r\n<title>Grafana \"]\nmode = \"off\"</title>window.grafanaBootData";
    for (first, each) in [
        (&b""[..], &b""[..]),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        (b"HTTP/1.1 302 Found\r\nLocation: /a\r\n\r\n", b"<title>Grafana</title>"),
        (page, b" "),
    ] {
        let place = tempfile::tempdir().unwrap();
        let upstream = format!("http://{}", endless(first, each));
        let begun = Instant::now();
        let output = init(place.path(), &["--upstream", &upstream, "--yes", "--application", "probe"], "");
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        let text = document(place.path());
        assert_eq!(
            text.matches("mode = ").count(),
            text.matches("mode = \"semantic\"").count() + text.matches("# With the OWASP CRS, too").count(),
            "{text}"
        );
    }
}
