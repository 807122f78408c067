//! Lists of addresses that are fetched, in the real program: taken up, changed, kept while their server is
//! away or lies, and over a restart.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::served::*;

const SITE: &str = "access = { deny = { lists = [\"drop\"] } }";

/// The document's part of a list that `server` has, kept in `data`.
fn list(server: &Server, data: &Path, more: &str) -> String {
    format!(
        "[data]\nfolder = \"{}\"\n[[lists]]\nname = \"drop\"\nurl = \"http://{}/drop.txt\"\nlimit = 64\n{more}",
        data.display(),
        server.address()
    )
}

fn reload(served: &Served) {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(served.admin).unwrap();
    stream
        .write_all(
            b"POST /reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        )
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
}

/// An answer of the server of lists.
fn answer(status: u16, body: &[u8], headers: &[(&str, &str)]) -> Response {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Response { status, headers, body: body.to_vec() }
}

fn fetched(result: &str) -> String {
    format!("portcullis_lists_fetched_total{{list=\"drop\",result=\"{result}\"}}")
}

#[test]
fn a_list_is_taken_up_and_its_server_may_say_anything() {
    let (app, data) = (application(|_| says("hello")), tempfile::tempdir().unwrap());
    let current: Arc<Mutex<(&str, Vec<u8>, u16)>> =
        Arc::new(Mutex::new(("\"a\"", b"192.0.2.0/24 # x\n".to_vec(), 200)));
    let shown = Arc::clone(&current);
    let server = application(move |request| {
        let (tag, body, status) = shown.lock().unwrap().clone();
        if request.header("if-none-match") == Some(tag.as_bytes()) {
            return answer(304, b"", &[]);
        }
        answer(status, &body, &[("ETag", tag), ("Location", "http://127.0.0.1:1/other")])
    });
    let say = |tag, body: &[u8], status| *current.lock().unwrap() = (tag, body.to_vec(), status);
    let served = Served::start_site(&app, SITE, &list(&server, data.path(), ""));
    served.counts(&fetched("changed"), 1.0);
    assert_eq!(served.get("/").status(), 200);
    // The same again, then another one.
    reload(&served);
    served.counts(&fetched("unchanged"), 1.0);
    say("\"b\"", b"127.0.0.1-127.0.0.9\n", 200);
    reload(&served);
    until(|| served.get("/").status() == 403);
    served.counts(&fetched("changed"), 2.0);
    assert!(served.metric("portcullis_lists_current_timestamp_seconds{list=\"drop\"}") > 1.7e9);
    let event: serde_json::Value = serde_json::from_str(&served.events(1)[0]).unwrap();
    assert_eq!(event["verdict"]["control"]["name"], "drop", "{event}");
    let lies: [(&[u8], u16); 8] = [
        (b"127.0.0.1", 500),
        (b"127.0.0.1", 404),
        (b"127.0.0.1", 302),
        (b"", 200),
        (b"<html>", 200),
        (b"0.0.0.0/0", 200),
        (b"\xff", 200),
        (&[b'#'; 65], 200),
    ];
    for (count, (body, status)) in (1..).zip(lies) {
        say("\"c\"", body, status);
        reload(&served);
        served.counts(&fetched("failed"), f64::from(count));
        assert_eq!(served.get("/").status(), 403, "{status} {body:?}");
    }
    served.stop();
    // What is kept holds before its server answers, and if it never does.
    say("\"c\"", b"", 500);
    let served = Served::start_site(&app, SITE, &list(&server, data.path(), ""));
    assert_eq!(served.get("/").status(), 403);
    let output = std::fs::read_to_string(served.folder.path().join("output")).unwrap();
    assert!(!output.contains("drop.txt?"), "{output}");
    served.stop();
    // A file that somebody has changed is none.
    let mut files = std::fs::read_dir(data.path().join("lists")).unwrap();
    let file = files.next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("127.0.0.9", "127.0.0.8")).unwrap();
    let served = Served::start_site(&app, SITE, &list(&server, data.path(), ""));
    assert_eq!(served.get("/").status(), 200);
    let output = std::fs::read_to_string(served.folder.path().join("output")).unwrap();
    assert!(output.contains("it is damaged; the list is fetched again"), "{output}");
    served.stop();
    // Another source begins anew, and its file alone is left.
    say("\"d\"", b"127.0.0.1\n", 200);
    let served = Served::start_site(&app, SITE, &list(&server, data.path(), ""));
    until(|| served.get("/").status() == 403);
    served.stop();
    say("\"e\"", b"", 500);
    let other = list(&server, data.path(), "headers = { Authorization = \"x\" }");
    let served = Served::start_site(&app, SITE, &other);
    assert_eq!(served.get("/").status(), 200);
    assert_eq!(std::fs::read_dir(data.path().join("lists")).unwrap().count(), 0);
}

#[test]
fn a_checksum_decides() {
    let (app, data) = (application(|_| says("hello")), tempfile::tempdir().unwrap());
    let right = Arc::new(Mutex::new(false));
    let is_right = Arc::clone(&right);
    // That of `127.0.0.1`.
    const SHA256: &str = "12ca17b49af2289436f303e0166030a21e525d266e209267433801a8fd4071a0";
    let server = application(move |request| match (request.path(), *is_right.lock().unwrap()) {
        ("/drop.txt", _) => answer(200, b"127.0.0.1", &[]),
        (_, true) => answer(200, format!("{SHA256}  drop.txt\n").as_bytes(), &[]),
        (_, false) => answer(200, SHA256.replace('1', "2").as_bytes(), &[]),
    });
    let checksum = format!("checksum = \"http://{}/drop.txt.sha256\"", server.address());
    let served = Served::start_site(&app, SITE, &list(&server, data.path(), &checksum));
    served.counts(&fetched("failed"), 1.0);
    assert_eq!(served.get("/").status(), 200);
    *right.lock().unwrap() = true;
    reload(&served);
    until(|| served.get("/").status() == 403);
}

#[test]
fn hosts_are_looked_up() {
    let (app, data) = (application(|_| says("hello")), tempfile::tempdir().unwrap());
    let more = format!(
        "[data]\nfolder = \"{}\"\n[[lists]]\nname = \"drop\"\nhosts = [\"localhost\"]\n",
        data.path().display()
    );
    let served = Served::start_site(&app, SITE, &more);
    until(|| served.get("/").status() == 403);
}

#[test]
fn lists_need_a_data_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (address, admin) = (free_address(), free_address());
    let more = "[[lists]]\nname = \"drop\"\nhosts = [\"localhost\"]\n";
    let config = document(folder.path(), address, admin, address, SITE, more);
    let run = std::process::Command::new(program()).args(["run", "--config"]).arg(config).output().unwrap();
    let text = String::from_utf8(run.stderr).unwrap();
    assert!(
        !run.status.success()
            && text.contains("the list `drop` is kept in the data folder, and there is none"),
        "{text}"
    );
}
