//! `portcullis replay` as a pipeline calls it: files of requests, two documents, an exit code.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// A document whose only site has these settings.
fn document(folder: &Path, name: &str, site: &str) -> String {
    let text = format!(
        "[[listeners]]\naddress = \"127.0.0.1:8080\"\n[[sites]]\nname = \"shop\"\nhosts = [\"*\"]\nupstream = \"app\"\n\
         {site}\n[upstreams.app]\nendpoints = [\"http://127.0.0.1:9000\"]\n"
    );
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn replay(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_portcullis")).arg("replay").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn lost_attacks_fail_a_pipeline_and_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let strict = document(folder, "strict.toml", "mode = \"semantic\"");
    let exclude = "mode = \"semantic\"\n[[sites.semantic.exclude]]\nclass = \"sqli\"\nlocation = \"query:q\"";
    let wider = document(folder, "wider.toml", exclude);
    let attack = "GET /?q=1%20union%20select%20password%20from%20users-- HTTP/1.1\nHost: a\n\n";
    let lines = [
        json!({"id": "sql", "request": attack}),
        json!({"id": "script", "request": attack.replace("1%20union%20select%20password%20from%20users--", "<script>alert(1)</script>")}),
        json!({"id": "honest", "request": "GET /?q=hello HTTP/1.1\nHost: a\n\n", "client": "192.0.2.7"}),
    ];
    let jsonl = folder.join("requests.jsonl");
    std::fs::write(&jsonl, lines.map(|line| line.to_string()).join("\n")).unwrap();
    let har = folder.join("work.har");
    let entry = json!({"request": {"method": "GET", "url": "http://a/?q=1%20union%20select%20password%20from%20users--",
        "headers": []}});
    std::fs::write(&har, json!({"log": {"entries": [entry]}}).to_string()).unwrap();
    let raw = folder.join("one.http");
    std::fs::write(&raw, attack).unwrap();
    let files = [jsonl.to_str().unwrap(), har.to_str().unwrap(), raw.to_str().unwrap()];

    let compared =
        |new: &str, old: &str| replay(&[&["--config", new, "--against", old, "--json"], &files[..]].concat());
    let (code, text, _) = compared(&wider, &strict);
    let told: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<_> = told.iter().filter(|line| line["change"] == "lost").map(|line| &line["id"]).collect();
    assert_eq!((code, ids.len()), (Some(1), 3), "{text}");
    assert_eq!(ids[0], "sql");
    assert_eq!(
        told.last().unwrap(),
        &json!({"requests": 5, "stopped": 1, "lost": 3, "new": 0, "not_inspected": 0, "incomplete": 0})
    );
    let (code, text, _) = compared(&strict, &wider);
    assert_eq!((code, text.matches("\"change\":\"new\"").count()), (Some(0), 3), "{text}");
    let (code, text, _) = replay(&[&["--config", &strict], &files[..]].concat());
    assert!(
        text.ends_with(
            "5 requests: 4 stopped; 0 that were stopped would pass, 0 that passed would be stopped\n"
        ),
        "{text}"
    );
    assert_eq!(code, Some(0));
    // A site that is not inspected any more loses all of them.
    let off = document(folder, "off.toml", "mode = \"off\"");
    let (code, text, _) = compared(&off, &strict);
    assert_eq!((code, text.matches("\"change\":\"lost\"").count()), (Some(1), 4), "{text}");
    assert!(text.contains("\"not_inspected\":5"), "{text}");
}

#[test]
fn what_cannot_be_read_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let good = document(folder, "good.toml", "mode = \"semantic\"");
    let bad = document(folder, "bad.toml", "mode = \"none\"");
    for (name, content, part) in [
        ("a.jsonl", "{}\n", "line 1: give one of request and request_base64"),
        (
            "b.jsonl",
            "{\"request\":\"x\"}\n{\"request_base64\":\"!\"}",
            "line 2: request_base64 is not base64",
        ),
        ("c.har", "{}", "missing field"),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        let (code, _, error) = replay(&["--config", &good, path.to_str().unwrap()]);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(name) && error.contains(part), "{error}");
    }
    let (code, _, error) = replay(&["--config", &bad, "x.http"]);
    assert!(code == Some(2), "{error}");
    let (code, _, error) = replay(&["--config", &good, "--site", "blog", "x.http"]);
    assert!(code == Some(2) && error.contains("x.http"), "{error}");
    let (code, _, error) = replay(&["--config", &good]);
    assert!(code == Some(2) && error.contains("FILE"), "{error}");
}
