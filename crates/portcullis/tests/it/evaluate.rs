//! `portcullis evaluate` as a person calls it.

use std::path::Path;
use std::process::{Command, Output};

const UNION: &str = "1' UNION SELECT name, password FROM users-- -";

/// A set of values, one of requests, a folder of raw requests.
fn corpus(folder: &Path) {
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let value = |text: &str, source: &str| serde_json::json!({ "p": text, "src": source }).to_string() + "\n";
    write("attack/values.jsonl", value(UNION, "a") + &value("0 or sleep(5)#", "a") + &value("hello", "b"));
    let request = |uri: &str, body: &str| {
        let headers = [("Content-Type", "application/json")];
        serde_json::json!({ "method": "POST", "uri": uri, "headers": headers, "body": body }).to_string()
            + "\n"
    };
    let posts = request("/items", r#"{"title":"the union of select writers"}"#) + &request("/items", "{}");
    write("benign/requests.jsonl", posts);
    let raw = |target: &str| format!("GET {target} HTTP/1.1\nHost: app.example\n\n");
    write("raw/1.black", raw("/?id=1%27%20UNION%20SELECT%20name%20FROM%20users--%20-"));
    write("raw/2.white", raw("/?id=7"));
    write("raw/3.white", raw("/?forbidden=1"));
    write("list.txt", format!("{UNION}\r\n\nhello\n<script>alert(1)</script>"));
    write("request.txt", raw("/?id=1%27%20UNION%20SELECT%20name%20FROM%20users--%20-"));
    write("rules.conf", "SecRule ARGS_NAMES \"@streq forbidden\" \"id:1,phase:1,deny,log\"\n".to_owned());
}

fn evaluate(arguments: &[&str]) -> (tempfile::TempDir, Output) {
    let folder = tempfile::tempdir().unwrap();
    corpus(folder.path());
    let program = env!("CARGO_BIN_EXE_portcullis");
    let mut command = Command::new(program);
    let output = command.arg("evaluate").args(arguments).current_dir(folder.path()).output().unwrap();
    (folder, output)
}

/// The numbers of a set: attacks, detected, benign, flagged.
fn row(report: &str, set: &str) -> Vec<String> {
    let line = report.lines().find(|line| line.split_whitespace().next() == Some(set));
    let line = line.unwrap_or_else(|| panic!("no {set} in\n{report}")).replace(" %", "");
    line.split_whitespace().skip(1).take(4).map(str::to_owned).collect()
}

#[test]
fn counts_what_is_caught_and_what_is_flagged_wrongly() {
    let (folder, output) = evaluate(&["attack", "benign", "raw", "--show", "1", "--missed", "missed.txt"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(0), ""));
    assert!(text.starts_with("8 samples, mode semantic, level balanced, all classes\n"), "{text}");
    assert_eq!(row(&text, "values.jsonl"), ["3", "66.67", "0", "-"]);
    assert_eq!(row(&text, "requests.jsonl"), ["0", "-", "2", "0.00"]);
    assert_eq!(row(&text, "raw"), ["1", "100.00", "2", "0.00"]);
    assert!(text.contains("values.jsonl: missed or wrongly flagged\n  [b] hello\n      passed"), "{text}");
    let missed = std::fs::read_to_string(folder.path().join("missed.txt")).unwrap();
    assert_eq!(missed.matches("missed\n").count(), 1, "{missed}");
}

/// A file of lines is a list of values, one of a request is a request.
#[test]
fn a_list_of_values_is_no_request() {
    let (_folder, output) = evaluate(&["list.txt", "request.txt", "--label", "attack"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("4 samples, "), "{text}");
    assert_eq!(row(&text, "list.txt"), ["3", "66.67", "0", "-"]);
    assert_eq!(row(&text, "request.txt"), ["1", "100.00", "0", "-"]);
    let (_folder, output) = evaluate(&["list.txt", "--label", "benign", "--place", "header"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(row(&text, "list.txt")[..3], ["0", "-", "3"], "{text}");
}

#[test]
fn evaluates_rules_as_well() {
    let (_folder, output) = evaluate(&["raw", "--rules", "rules.conf", "--show", "9"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("3 samples, mode crs, all classes\n"), "{text}");
    assert_eq!(row(&text, "raw"), ["1", "0.00", "2", "50.00"]);
    let (_folder, output) = evaluate(&["raw", "--rules", "rules.conf", "--mode", "both"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(row(&text, "raw"), ["1", "100.00", "2", "50.00"]);
}

#[test]
fn writes_features_for_training() {
    let (folder, output) = evaluate(&["attack", "--features", "features.tsv"]);
    assert_eq!(output.status.code(), Some(0));
    let features = std::fs::read_to_string(folder.path().join("features.tsv")).unwrap();
    assert!(features.contains("#kind\tsqli\tsqli.union-select\tCRITICAL\n"), "{features}");
    assert!(features.lines().any(|line| line.starts_with("1\t1\tvalues.jsonl\ta\tsqli\t")), "{features}");
    assert!(features.lines().any(|line| line == "3\t1\tvalues.jsonl\tb\t-\t"), "{features}");
}

#[test]
fn mistakes_say_what_to_do() {
    for (arguments, message) in [
        (&["none"][..], "none: "),
        (
            &["rules.conf"],
            "not known to be attack or benign: name the file .black or .white, or give --label",
        ),
        (&["attack", "--class", "sql"], "there is no class called `sql`"),
    ] {
        let (_folder, output) = evaluate(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
}

#[test]
fn evaluates_responses() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let html = [("Content-Type", "text/html")];
    let response = |label: &str, body: &str| {
        let line = serde_json::json!({ "label": label, "status": 200, "headers": html, "body": body, "uri": "/page" });
        line.to_string() + "\n"
    };
    let lines = response(
        "attack",
        "<b>You have an error in your SQL syntax; check the manual that corresponds to your MySQL",
    ) + &response("attack", "<p>hello</p>")
        + &response("benign", "<html><body>hello</body></html>");
    write("pages.jsonl", &lines);
    write(
        "shell.black",
        "HTTP/1.1 200 OK\nContent-Type: text/html\n\n<pre>uid=33(www-data) gid=33(www-data) groups=33(www-data)\n</pre>",
    );
    write("page.white", "HTTP/1.1 200 OK\nContent-Type: text/html\n\n<p>uid is a column</p>");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command.arg("evaluate").arg(folder.path()).args(arguments).output().unwrap()
    };
    let output = run(&["--show", "3"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(0), ""));
    let name = folder.path().file_name().unwrap().to_str().unwrap();
    // The message of a database is only logged, which is what is to be done about it.
    assert_eq!(row(&text, "pages.jsonl"), ["2", "50.00", "1", "0.00"], "{text}");
    assert_eq!(row(&text, name), ["1", "100.00", "1", "0.00"], "{text}");
    assert!(text.contains("200 [text/html] <p>hello</p>"), "{text}");
    let output = run(&["--class", "sqli"]);
    assert_eq!(row(&String::from_utf8(output.stdout).unwrap(), "pages.jsonl"), ["2", "0.00", "1", "0.00"]);
}
