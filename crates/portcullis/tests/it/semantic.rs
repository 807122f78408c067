//! The semantic detector in the running program: what it stops, what it lets through, what it tells.

use std::io::Write;
use std::process::{Command, Output};

use crate::served::{self, PATIENCE, Response, Served, application, free_address, program, says, until};
use portcullis_testkit::process::Process;

const SITE: &str = "mode = \"semantic\"";
/// `1' UNION SELECT name, password FROM users-- -`
const ATTACK: &str = "1%27%20UNION%20SELECT%20name%2C%20password%20FROM%20users--%20-";
const PLAIN: &str = "1' UNION SELECT name, password FROM users-- -";

fn multipart(value: &str) -> String {
    format!("--b\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\n{value}\r\n--b--\r\n")
}

fn with_header(line: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{line}\r\n\r\n")
}

/// Every place with `value` in it: the status that came back.
fn everywhere(served: &Served, encoded: &str, plain: &str) -> Vec<(&'static str, u16)> {
    let json = serde_json::json!({ "filter": [{ "name": plain }] }).to_string();
    vec![
        ("query", served.get(&format!("/items?id={encoded}")).status()),
        ("path", served.get(&format!("/items/{encoded}")).status()),
        (
            "form",
            served.post("/items", "application/x-www-form-urlencoded", format!("a=1&id={encoded}")).status(),
        ),
        ("json", served.post("/items", "application/json", json).status()),
        ("multipart", served.post("/items", "multipart/form-data; boundary=b", multipart(plain)).status()),
        ("cookie", served.raw(with_header(&format!("Cookie: theme=dark; last={encoded}"))).status()),
        ("header", served.raw(with_header(&format!("X-Sort: {plain}"))).status()),
    ]
}

#[test]
fn an_attack_is_stopped_wherever_it_stands_and_honest_text_is_not() {
    let application = application(|_| says("hello"));
    let served = Served::start_site(&application, SITE, "");
    for (place, status) in everywhere(&served, ATTACK, PLAIN) {
        assert_eq!(status, 403, "{place}");
    }
    let honest = "O'Reilly's union of select -- and well-read -- authors; 50% off";
    let encoded =
        "O%27Reilly%27s%20union%20of%20select%20--%20and%20well-read%20--%20authors%3B%2050%25%20off";
    for (place, status) in everywhere(&served, encoded, honest) {
        assert_eq!(status, 200, "{place}");
    }
}

#[test]
fn trailers_that_go_on_are_looked_at_like_headers() {
    let application = application(|_| says("hello"));
    let site = format!("{SITE}\nrequest_trailers = [\"X-Sort\"]");
    let served = Served::start_site(&application, &site, "");
    let ask = |trailer: &str| {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: close";
        served.raw(format!("{head}\r\n\r\n2\r\nab\r\n0\r\n{trailer}\r\n\r\n"))
    };
    assert_eq!(ask("X-Sort: by name").status(), 200);
    assert_eq!(ask(&format!("X-Sort: {PLAIN}")).status(), 403);
    assert!(
        served.events(1)[0].contains("\"place\":\"header\",\"name\":\"X-Sort\""),
        "{:?}",
        served.events(1)
    );
    // A dropped field need not be inspected.
    assert_eq!(ask(&format!("X-Other: {PLAIN}")).status(), 200);
}

#[test]
fn an_event_and_the_metrics_tell_why() {
    let application = application(|_| says("hello"));
    let served = Served::start_site(&application, SITE, "");
    let answer = served.get(&format!("/items?id={ATTACK}&password=hunter22"));
    assert_eq!(answer.status(), 403);
    assert_eq!(served.get("/items?id=7").status(), 200);
    let lines = served.events(1);
    assert_eq!(lines.len(), 1, "an honest request makes no event: {lines:?}");
    let event: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(event["request_id"].as_str(), answer.header("x-request-id").as_deref());
    assert_eq!((&event["mode"], &event["engine"]), (&"semantic".into(), &"blocking".into()));
    let verdict = &event["verdict"];
    assert_eq!((&verdict["action"], &verdict["status"]), (&"deny".into(), &403.into()));
    assert_eq!((&verdict["class"], &verdict["phase"]), (&"sqli".into(), &1.into()));
    let reason = verdict["reason"].as_str().unwrap();
    assert!(reason.starts_with("SQL injection in query:id: "), "{reason}");
    let score = &event["scores"]["semantic"][0];
    assert_eq!(
        (&score["class"], &score["place"], &score["name"]),
        (&"sqli".into(), &"query".into(), &"id".into())
    );
    assert_eq!(score["outcome"], "blocked");
    assert!(score["points"].as_f64() >= score["threshold"].as_f64(), "{score}");
    let findings = event["findings"].as_array().unwrap();
    let finding =
        findings.iter().find(|finding| finding["place"] == "query").expect("a finding in the query");
    assert_eq!(finding["name"], "id");
    assert!(finding["kind"].as_str().unwrap().starts_with("sqli."), "{finding}");
    assert!(finding["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{finding}");
    assert!(finding["reference"].as_str().is_some_and(|url| url.starts_with("https://")), "{finding}");
    let span: Vec<usize> = serde_json::from_value(finding["span"].clone()).unwrap();
    assert_eq!(finding["evidence"].as_str(), PLAIN.get(span[0]..span[1]));
    assert!(!lines[0].contains("hunter22"), "{}", lines[0]);
    let blocked = "portcullis_semantic_findings_total{class=\"sqli\",outcome=\"blocked\"}";
    served.counts(blocked, 1.0);
}

#[test]
fn evidence_in_a_secret_is_not_told() {
    let application = application(|_| says("hello"));
    let served = Served::start_site(&application, SITE, "");
    assert_eq!(served.get(&format!("/login?password={ATTACK}")).status(), 403);
    let lines = served.events(1);
    assert!(lines[0].contains("\"evidence\":\"[redacted]\""), "{}", lines[0]);
    for secret in ["name,", "%20name", "FROM users"] {
        assert!(!lines[0].contains(secret), "{}", lines[0]);
    }
}

#[test]
fn what_is_decoded_is_told() {
    let application = application(|_| says("hello"));
    let served = Served::start_site(&application, SITE, "");
    // Base64 of PLAIN.
    let coded = "MScgVU5JT04gU0VMRUNUIG5hbWUsIHBhc3N3b3JkIEZST00gdXNlcnMtLSAt";
    assert_eq!(served.get(&format!("/items?state={coded}")).status(), 403);
    let event: serde_json::Value = serde_json::from_str(&served.events(1)[0]).unwrap();
    assert_eq!(event["findings"][0]["decoded"], serde_json::json!(["base64"]), "{event}");
}

#[test]
fn detection_only_lets_pass_and_tells() {
    let application = application(|_| says("hello"));
    let served = Served::start_site(&application, "engine = \"detection_only\"", "");
    for (place, status) in everywhere(&served, ATTACK, PLAIN) {
        assert_eq!(status, 200, "{place}");
    }
    let lines = served.events(7);
    for line in &lines {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&event["mode"], &event["verdict"]["action"]), (&"semantic".into(), &"detect".into()));
        assert_eq!(event["scores"]["semantic"][0]["outcome"], "detected", "{event}");
    }
    let detected = "portcullis_semantic_findings_total{class=\"sqli\",outcome=\"detected\"}";
    served.counts(detected, 7.0);
}

#[test]
fn both_run_beside_each_other() {
    let application = application(|_| says("hello"));
    let rules = served::rules("SecRule ARGS \"@contains forbidden\" \"id:1,phase:2,deny,log,msg:'No'\"");
    let served = Served::start_site(&application, &format!("mode = \"both\"\n{rules}"), "");
    assert_eq!(served.get("/items?id=forbidden").status(), 403);
    assert_eq!(served.get(&format!("/items?id={ATTACK}")).status(), 403);
    assert_eq!(served.get("/items?id=7").status(), 200);
    let events: Vec<serde_json::Value> =
        served.events(2).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().all(|event| event["mode"] == "both"), "{events:?}");
    assert_eq!((&events[0]["verdict"]["rule_id"], &events[0]["verdict"]["class"]), (&1.into(), &().into()));
    assert_eq!(
        (&events[1]["verdict"]["rule_id"], &events[1]["verdict"]["class"]),
        (&().into(), &"sqli".into())
    );
}

/// A folder in the way of the CRS whose one rule is in no table, so that its points count in full, and a
/// gate.
fn small_crs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("rules")).unwrap();
    let setup = "SecAction \"id:900,phase:1,pass,nolog,setvar:tx.inbound_anomaly_score_threshold=5,\
                 setvar:tx.blocking_paranoia_level=1,setvar:tx.blocking_inbound_anomaly_score=0\"\n";
    std::fs::write(folder.path().join("crs-setup.conf"), setup).unwrap();
    let rules = "SecRule ARGS \"@contains odd\" \"id:942100,phase:2,block,log,msg:'Odd',setvar:tx.inbound_anomaly_score_pl1=+5\"\n\
                 SecAction \"id:949060,phase:2,pass,nolog,setvar:tx.blocking_inbound_anomaly_score=+%{tx.inbound_anomaly_score_pl1}\"\n\
                 SecRule TX:BLOCKING_INBOUND_ANOMALY_SCORE \"@ge %{tx.inbound_anomaly_score_threshold}\" \
                 \"id:949110,phase:2,deny,t:none,log,msg:'Inbound Anomaly Score Exceeded'\"\n";
    std::fs::write(folder.path().join("rules").join("REQUEST-901-INITIALIZATION.conf"), rules).unwrap();
    folder
}

#[test]
fn a_rule_with_an_id_of_the_crs_and_other_contents_counts_in_full() {
    let application = application(|_| says("hello"));
    let folder = small_crs();
    for (mode, scoring) in
        [("both", ""), ("both", ", scoring = \"weighted\""), ("crs", ", scoring = \"weighted\"")]
    {
        let site = format!("mode = \"{mode}\"\nrules = {{ crs = \"{}\"{scoring} }}", folder.path().display());
        let served = Served::start_site(&application, &site, "");
        assert_eq!(served.get("/items?id=odd").status(), 403, "{mode}{scoring}");
        assert_eq!(served.get("/items?id=even").status(), 200, "{mode}{scoring}");
        served.counts("portcullis_anomaly_scores_withheld_total", 0.0);
    }
}

/// With the rules of the CRS themselves, where they are.
#[test]
fn a_noisy_rule_of_the_crs_is_logged_and_decides_nothing() {
    let folder = match portcullis_testkit::crs::rules() {
        Ok(folder) => folder.display().to_string(),
        Err(missing) if std::env::var_os("CI").is_none() => return eprintln!("left out: {missing}"),
        Err(missing) => panic!("{missing}"),
    };
    let application = application(|_| says("hello"));
    // A dictionary's entry: `make` behind a semicolon is a command to 932235.
    let path = "/search?q=cause+to+sense;+make+sensitive";
    let start = |scoring: &str| {
        let site = format!("mode = \"both\"\nrules = {{ crs = \"{folder}\"{scoring} }}");
        Served::start_site(&application, &site, "")
    };
    let served = start("");
    assert_eq!(served.get(path).status(), 200);
    let event: serde_json::Value = serde_json::from_str(&served.events(1)[0]).unwrap();
    assert_eq!(event["verdict"]["action"], "detect", "{event}");
    assert!(event["scores"]["inbound_blocking"].as_i64() >= Some(5), "{event}");
    served.counts("portcullis_anomaly_scores_withheld_total", 1.0);
    assert_eq!(start(", scoring = \"anomaly\"").get(path).status(), 403);
}

#[test]
fn rules_let_a_client_through() {
    let application = application(|_| says("hello"));
    let rules = served::rules("SecRule ARGS:trusted \"@streq yes\" \"id:1,phase:1,allow,nolog\"");
    let served = Served::start_site(&application, &format!("mode = \"both\"\n{rules}"), "");
    assert_eq!(served.get(&format!("/items?id={ATTACK}&trusted=yes")).status(), 200);
    assert_eq!(served.get(&format!("/items?id={ATTACK}&trusted=no")).status(), 403);
}

#[test]
fn routes_have_their_own_mode() {
    let application = application(|_| says("hello"));
    let routes = "routes = [{ path = \"/raw/\", mode = \"off\" }, { path = \"/lenient/\", engine = \"detection_only\" }]";
    let served = Served::start_site(&application, routes, "");
    assert_eq!(served.get(&format!("/raw/?id={ATTACK}")).status(), 200);
    assert_eq!(served.get(&format!("/lenient/?id={ATTACK}")).status(), 200);
    assert_eq!(served.get(&format!("/?id={ATTACK}")).status(), 403);
}

#[test]
fn classes_and_exclusions_say_what_counts() {
    let application = application(|_| says("hello"));
    let site = "semantic = { exclude = [{ class = \"sqli\", location = \"form:comment*\", path = \"/wiki/\" }] }\n\
                routes = [{ path = \"/log/\", semantic = { classes = { sqli = \"log\" } } }, \
                { path = \"/off/\", semantic = { classes = { sqli = \"off\" } } }]";
    let served = Served::start_site(&application, site, "");
    let post = |path: &str, name: &str| {
        served.post(path, "application/x-www-form-urlencoded", format!("{name}={ATTACK}")).status()
    };
    let count = |outcome: &str| {
        served.metric(&format!("portcullis_semantic_findings_total{{class=\"sqli\",outcome=\"{outcome}\"}}"))
    };
    assert_eq!(post("/wiki/Page", "comment_1"), 200);
    until(|| count("excluded") == 1.0);
    // Another name, another path, another place, and a path that only pretends.
    for (path, name) in [("/wiki/Page", "title"), ("/shop/", "comment_1"), ("/wiki/%2e./shop", "comment_1")] {
        let status = post(path, name);
        assert!(status == 403 || status == 400, "{path} {name}: {status}");
    }
    assert_eq!(served.get(&format!("/wiki/Page?comment_1={ATTACK}")).status(), 403);
    assert_eq!(post("/off/", "a"), 200);
    until(|| count("excluded") == 2.0);
    assert_eq!(post("/log/", "a"), 200);
    until(|| count("detected") == 1.0);
    // When the program has ended, all is written.
    let folder = served.stop();
    let text = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let events: Vec<&str> = text.lines().collect();
    let last: serde_json::Value = serde_json::from_str(events.last().unwrap()).unwrap();
    assert_eq!(
        (&last["verdict"]["action"], &last["verdict"]["class"]),
        (&"detect".into(), &"sqli".into()),
        "{last}"
    );
    assert!(!events.iter().any(|line| line.contains("excluded")), "{events:?}");
}

#[test]
fn a_body_is_looked_at_as_far_as_it_is_held() {
    let application = application(|_| says("hello"));
    let site = "request_body = { limit = 1000, over_limit = \"pass_uninspected\" }";
    let served = Served::start_site(&application, site, "");
    let form = "application/x-www-form-urlencoded";
    let filler = "x".repeat(2000);
    assert_eq!(served.post("/", form, format!("id={ATTACK}&a={filler}")).status(), 403);
    assert_eq!(served.post("/", form, format!("a={filler}&id={ATTACK}")).status(), 200);
    until(|| served.metric("portcullis_bytes_not_inspected_total{reason=\"over_limit\"}") > 1000.0);
    // JSON that only the limit cut off is not held against its sender.
    let json = serde_json::json!({ "a": filler, "b": [1, 2] }).to_string();
    assert_eq!(served.post("/", "application/json", json).status(), 200);
}

#[test]
fn the_rest_of_a_large_file_is_counted() {
    let application = application(|_| says("hello"));
    let served = Served::start_site(&application, SITE, "");
    let file = "lorem ".repeat(20_000);
    let body = format!(
        "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\n{file}\r\n--b--\r\n"
    );
    assert_eq!(served.post("/", "multipart/form-data; boundary=b", body).status(), 200);
    let rest = (file.len() - (64 << 10)) as f64;
    served.counts("portcullis_bytes_not_inspected_total{reason=\"file_rest\"}", rest);
}

#[test]
fn what_would_take_too_much_work_is_refused_and_counted() {
    let application = application(|_| says("hello"));
    let served = Served::start_site(&application, SITE, "");
    let dear = ":<%$(:<%%u00611\\u0061:<%&#x61;:w/*".repeat(200);
    let body = serde_json::json!({ "a": dear }).to_string();
    assert_eq!(served.post("/", "application/json", body).status(), 403);
    until(|| served.metric("portcullis_bytes_not_inspected_total{reason=\"work_limit\"}") >= 1.0);
}

#[test]
fn a_site_may_log_what_would_take_too_much_work() {
    let application = application(|_| says("hello"));
    let site = "semantic = { classes = { protocol = \"log\" } }\n\
                routes = [{ path = \"/strict/\", semantic = { classes = { protocol = \"block\" } } }]";
    let served = Served::start_site(&application, site, "");
    let dear = ":<%$(:<%%u00611\\u0061:<%&#x61;:w/*".repeat(200);
    let body = serde_json::json!({ "a": dear }).to_string();
    assert_eq!(served.post("/", "application/json", &body).status(), 200);
    let event: serde_json::Value = serde_json::from_str(&served.events(1)[0]).unwrap();
    assert_eq!(
        (&event["verdict"]["action"], &event["verdict"]["class"]),
        (&"detect".into(), &"protocol".into()),
        "{event}"
    );
    let findings = event["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["kind"] == "protocol.work-limit"), "{event}");
    let logged = "portcullis_semantic_findings_total{class=\"protocol\",outcome=\"detected\"}";
    served.counts(logged, 1.0);
    // Bytes that pass uninspected are counted all the same.
    let missed = || served.metric("portcullis_bytes_not_inspected_total{reason=\"work_limit\"}");
    until(|| missed() >= dear.len() as f64);
    // Other classes are not affected, nor are other routes.
    assert_eq!(served.get(&format!("/items?id={ATTACK}")).status(), 403);
    assert_eq!(served.post("/strict/", "application/json", &body).status(), 403);
}

#[test]
fn strings_of_graphql_and_grpc_are_looked_at() {
    let application = application(|_| says("hello"));
    let served = Served::start_site(&application, SITE, "");
    let graphql = |name: &str| {
        let query = format!("query {{ file(name: \"{name}\") {{ id }} }}");
        serde_json::json!({ "query": query }).to_string()
    };
    assert_eq!(served.post("/graphql", "application/json", graphql("notes")).status(), 200);
    assert_eq!(served.post("/graphql", "application/json", graphql("../../../../etc/passwd")).status(), 403);
    // A frame of gRPC: not packed, its length, field 1 with a string.
    let grpc = |text: &str| {
        let len = text.len() as u8;
        format!("\0\0\0\0{}\n{}{text}", char::from(len + 2), char::from(len))
    };
    assert_eq!(served.post("/a.B/Get", "application/grpc", grpc("notes")).status(), 200);
    assert_eq!(served.post("/a.B/Get", "application/grpc", grpc("1' union select 1,2,3-- -")).status(), 403);
}

#[test]
fn it_is_what_runs_without_rules() {
    let application = application(|_| Response { status: 200, ..Response::default() });
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let arguments = [
        "run".to_owned(),
        "--listen".to_owned(),
        address.to_string(),
        "--upstream".to_owned(),
        format!("http://{}", application.address()),
    ]
    .map(std::ffi::OsString::from);
    let mut process = Process::start(&program(), &arguments, &folder.path().join("output")).unwrap();
    process.wait_for(address, PATIENCE).unwrap();
    let status = |target: &str| {
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        portcullis_testkit::client::exchange(address, None, request.as_bytes(), PATIENCE).unwrap().status
    };
    assert_eq!(status("/items?id=7"), 200);
    assert_eq!(status(&format!("/items?id={ATTACK}")), 403);
    assert!(process.stop(PATIENCE).unwrap().success());
}

fn run(arguments: &[&str], request: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("request.http")).unwrap().write_all(request.as_bytes()).unwrap();
    Command::new(program()).args(arguments).current_dir(folder.path()).output().unwrap()
}

#[test]
fn explain_adds_the_score_up() {
    let request = format!("GET /items?id={ATTACK} HTTP/1.1\nHost: a\n\n");
    let output = run(&["explain", "request.http"], &request);
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = [
        "SQL injection in query:id\n",
        "        evidence bytes ",
        "        see      https://",
        "    terms    bias ",
        "    score    ",
        ", the threshold of balanced\n",
        "verdict  deny 403 by findings of sqli in phase 1: SQL injection in query:id: ",
    ];
    let mut rest = text.as_str();
    for part in expected {
        let at = rest.find(part).unwrap_or_else(|| panic!("no {part:?} (or not in order) in\n{text}"));
        rest = &rest[at + part.len()..];
    }
    let output = run(&["explain", "--level", "strict", "--json", "request.http"], &request);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["mode"], &json["semantic"]["level"]), (&"semantic".into(), &"strict".into()));
    let value = &json["semantic"]["values"][0];
    let sum: f64 = value["terms"].as_array().unwrap().iter().filter_map(|term| term["weight"].as_f64()).sum();
    assert!((sum - value["points"].as_f64().unwrap()).abs() < 0.01, "{value}");
    let honest = run(&["explain", "request.http"], "GET /items?id=7 HTTP/1.1\nHost: a\n\n");
    let text = String::from_utf8(honest.stdout).unwrap();
    assert!(
        text.contains("the semantic detector found nothing\n") && text.contains("verdict  pass\n"),
        "{text}"
    );
}

#[test]
fn mistakes_on_the_command_line_are_told() {
    let request = "GET / HTTP/1.1\nHost: a\n\n";
    for (arguments, message) in [
        (&["--mode", "semantics"][..], "unknown value `semantics`\n   = did you mean `semantic`?"),
        (&["--level", "strickt"], "unknown value `strickt`\n   = did you mean `strict`?"),
        (&["--mode", "both"], "--mode both needs --crs DIR"),
        (&["--mode", "semantic", "--rules", "a.conf"], "--mode semantic does not read rules"),
        (&["--level", "strict", "--rules", "a.conf"], "--level is for the semantic detector"),
    ] {
        let output = run(&[&["explain", "request.http"], arguments].concat(), request);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
}
