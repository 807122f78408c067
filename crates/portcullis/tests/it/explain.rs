//! `portcullis explain` and `portcullis rules` as a person calls them.

use std::io::Write;
use std::process::{Command, Output, Stdio};

const RULES: &str = r#"SecRequestBodyAccess On
SecAction "id:10,phase:1,pass,nolog,setvar:tx.score=0"
SecRule ARGS "@rx (?i)union\s+select" "id:11,phase:2,pass,log,msg:'SQL in %{MATCHED_VAR_NAME}',\
    logdata:'%{TX.0}',severity:CRITICAL,t:none,t:urlDecodeUni,capture,setvar:tx.score=+5"
SecRule TX:SCORE "@ge 5" "id:12,phase:2,deny,status:403,log,msg:'Score %{TX.SCORE}'"
"#;

struct Files(tempfile::TempDir);

impl Files {
    fn new(request: &str) -> Files {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("rules.conf"), RULES).expect("writing");
        std::fs::write(dir.path().join("request.http"), request).expect("writing");
        Files(dir)
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command.args(args).current_dir(self.0.path()).output().expect("the program runs")
    }

    fn explain(&self, more: &[&str]) -> String {
        let output = self.run(&[&["explain", "request.http", "--rules", "rules.conf"], more].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*error), (Some(0), ""));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        // Told in full and run as a server runs it, rules match alike.
        assert!(!text.contains("a server would have"), "{text}");
        text
    }
}

const ATTACK: &str =
    "POST /a?x=1 HTTP/1.1\nHost: a\nContent-Type: application/x-www-form-urlencoded\n\nq=1+UNION%0aSELECT+2";

#[test]
fn lookups_are_noted_and_can_be_answered() {
    let files = Files::new("GET / HTTP/1.1\nHost: a\n\n");
    let rules = "SecRule REMOTE_ADDR \"@rbl zen.spamhaus.org\" \"id:20,phase:1,deny,log,capture,logdata:'%{TX.0}'\"\n";
    std::fs::write(files.0.path().join("rules.conf"), rules).expect("writing");
    let text = files.explain(&[]);
    assert!(
        text.contains("note: a rule looks up 1.2.0.192.zen.spamhaus.org in DNS: unanswered here"),
        "{text}"
    );
    assert!(text.contains("verdict  pass"), "{text}");
    let text = files.explain(&["--dns", "1.2.0.192.zen.spamhaus.org=127.0.0.3"]);
    assert!(text.contains("succeeded at REMOTE_ADDR (Static UBE sources)."), "{text}");
    assert!(text.contains("verdict  deny 403 by rule 20 in phase 1"), "{text}");
}

#[test]
fn rate_limits_of_rules_are_noted() {
    let files = Files::new("GET /?user=ann HTTP/1.1\nHost: a\n\n");
    let rules = "SecAction \"id:20,phase:1,pass,nolog,ctl:rateLimit=logins;%{ARGS_GET.user}\"\n";
    std::fs::write(files.0.path().join("rules.conf"), rules).expect("writing");
    let text = files.explain(&[]);
    assert!(
        text.contains("note: rule 20 counts the request in the rate limit `logins` under `ann`"),
        "{text}"
    );
    let late = rules.replace("phase:1", "phase:3");
    std::fs::write(files.0.path().join("rules.conf"), late).expect("writing");
    let error = files.run(&["explain", "request.http", "--rules", "rules.conf"]).stderr;
    let error = String::from_utf8_lossy(&error).into_owned();
    assert!(error.contains("ctl:rateLimit works in phases 1 and 2, not in phase 3"), "{error}");
}

#[test]
fn an_attack_is_explained() {
    let text = Files::new(ATTACK).explain(&[]);
    let expected = [
        "POST /a?x=1 HTTP/1.1\n",
        "  note: Content-Length: 20 was added for the body\n",
        "rule 11, phase 2, CRITICAL: SQL in ARGS:q\n",
        "    target   ARGS:q\n",
        "    after    t:urlDecodeUni\n",
        "    value    1 UNION\\nSELECT 2\n",
        "    matched  bytes 2 to 14: UNION\\nSELECT\n",
        "    data     UNION\\nSELECT\n",
        "    points   tx.score +5\n",
        "    from     rules.conf:3\n",
        "rule 12, phase 2: Score 5\n",
        "    effect   blocks\n",
        "verdict  deny 403 by rule 12 in phase 2: Score 5\n",
    ];
    let mut rest = text.as_str();
    for part in expected {
        let at = rest.find(part).unwrap_or_else(|| panic!("no {part:?} (or not in order) in\n{text}"));
        rest = &rest[at + part.len()..];
    }
    assert!(!text.contains("rule 10,"), "{text}");
    assert!(Files::new(ATTACK).explain(&["--all"]).contains("rule 10, phase 1"));
}

#[test]
fn detection_only_lets_it_pass_and_says_so() {
    let text = Files::new(ATTACK).explain(&["--detect-only"]);
    assert!(text.contains("verdict  detect") && text.contains("DetectionOnly"), "{text}");
}

#[test]
fn json_has_the_same() {
    let json: serde_json::Value =
        serde_json::from_str(&Files::new(ATTACK).explain(&["--json"])).expect("valid JSON");
    assert_eq!(json["verdict"]["action"], "deny");
    assert_eq!(json["verdict"]["rule_id"], 12);
    let found = &json["matches"][0];
    assert_eq!((&found["rule_id"], &found["target"]), (&11.into(), &"ARGS:q".into()));
    assert_eq!(found["span"], serde_json::json!([2, 14]));
    assert_eq!(found["points"], serde_json::json!([{ "score": "tx.score", "added": 5 }]));
}

#[test]
fn a_harmless_request_passes() {
    let text = Files::new("GET /?q=union HTTP/1.1\nHost: a\n\n").explain(&[]);
    assert!(text.contains("\nno rule found anything\n") && text.ends_with("\nverdict  pass\n"), "{text}");
}

#[test]
fn what_is_not_http_is_refused_and_phase_1_still_runs() {
    let files = Files::new("GET /#x HTTP/1.1\r\nHost: a\r\n\r\n");
    let text = files.explain(&["--all"]);
    assert!(text.contains("refused with 400 (fragment-in-target)"), "{text}");
    assert!(text.contains("rule 10, phase 1") && text.contains("verdict  refuse 400"), "{text}");
}

/// Rules of the logging phase are among the matches, and what they did not run for among the reasons.
#[test]
fn the_logging_phase_is_explained() {
    let files = Files::new("GET /?q=x HTTP/1.1\nHost: a\n\n");
    let rules = "SecRule ARGS \"@streq x\" \"id:20,phase:5,pass,log,msg:'seen at the end'\"\n\
                 SecRule ARGS \"@streq x\" \"id:21,phase:5,pass,nolog,skip:1\"\nSecAction \"id:22,phase:5,pass,log\"\n";
    std::fs::write(files.0.path().join("rules.conf"), rules).expect("writing");
    let text = files.explain(&[]);
    assert!(text.contains("rule 20, phase 5") && text.contains("seen at the end"), "{text}");
    assert!(text.contains("skipped by rule 21"), "{text}");
    assert!(!text.contains("rule 22, phase 5"), "{text}");
}

/// A body over a limit gets the proxy's 413: by its length, by what came, and by SecRequestBodyNoFilesLimit;
/// not where the rules say that the rest may pass, and not within the limit.
#[test]
fn a_body_over_the_limit_is_the_answer_of_the_proxy() {
    let body = "a=".to_owned() + &"x".repeat(300);
    let plain = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let chunked = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let on = "SecRuleEngine On\nSecRequestBodyAccess On\n";
    let rule = "SecRule ARGS \"@rx x{50}\" \"id:30,phase:2,pass,log\"\n";
    for (directives, refused, matched_plain, matched_chunked) in [
        ("SecRequestBodyLimit 100\n", true, false, true),
        ("SecRequestBodyLimit 100\nSecRequestBodyLimitAction ProcessPartial\n", false, true, true),
        ("SecRequestBodyLimit 1000\nSecRequestBodyNoFilesLimit 100\n", true, false, false),
        ("SecRequestBodyLimit 1000\n", false, true, true),
    ] {
        for (request, matched) in [(&plain, matched_plain), (&chunked, matched_chunked)] {
            let files = Files::new(request);
            std::fs::write(files.0.path().join("rules.conf"), format!("{on}{directives}{rule}"))
                .expect("writing");
            let text = files.explain(&[]);
            assert_eq!(
                text.contains("refused with 413 (request-body-over-limit)"),
                refused,
                "{directives}{text}"
            );
            assert_eq!(text.contains("verdict  deny"), refused, "{directives}{text}");
            assert!(matched || !text.contains("rule 30, phase 2"), "{directives}{text}");
        }
    }
}

#[test]
fn the_request_may_come_from_standard_input() {
    let files = Files::new("");
    let mut child = Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .args(["explain", "-", "--rules", "rules.conf"])
        .current_dir(files.0.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    child.stdin.take().expect("a pipe").write_all(ATTACK.as_bytes()).expect("writing");
    let output = child.wait_with_output().expect("an end");
    assert!(String::from_utf8_lossy(&output.stdout).contains("verdict  deny 403"));
}

#[test]
fn rules_are_listed_and_the_plan_is_printed() {
    let files = Files::new("");
    let output = files.run(&["rules", "--rules", "rules.conf"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        text.contains("11       phase 2 active     CRITICAL  rules.conf:3 SQL in %{MATCHED_VAR_NAME}\n"),
        "{text}"
    );
    assert!(
        text.contains("12       phase 2 active     -         rules.conf:5 Score %{TX.SCORE}\n"),
        "{text}"
    );
    let output = files.run(&["rules", "--plan", "--rules", "rules.conf"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.starts_with("plan: 8 rules") && text.contains("phase 2:"), "{text}");
}

#[test]
fn the_list_says_what_became_of_each_rule() {
    let files = Files::new("");
    let more = r#"SecRule TX:LEVEL "@lt 2" "id:20,phase:2,pass,nolog,skipAfter:END"
SecRule TX:SCORE "@ge 0" "id:21,phase:2,pass"
SecRule ARGS "@rx a" "id:22,phase:2,pass,ctl:ruleRemoveById=11,ctl:ruleRemoveTargetById=12;TX:SCORE"
SecMarker END
SecRuleUpdateTargetById 11 "!ARGS:free"
SecRuleRemoveById 21
"#;
    std::fs::write(files.0.path().join("more.conf"), more).expect("writing");
    let list = |more: &[&str]| {
        let output = files.run(&[&["rules", "--rules", "rules.conf", "--rules", "more.conf"], more].concat());
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let text = list(&[]);
    for part in [
        "11       phase 2 overridden CRITICAL  rules.conf:3 SQL in %{MATCHED_VAR_NAME}\n         SecRuleUpdateTargetById at more.conf:5\n",
        "         rule 22 can switch it off (ctl)\n",
        "         rule 22 can switch it off for TX:SCORE (ctl)\n",
        "20       phase 2 dead       -         more.conf:1\n         TX:level is never set here\n",
        "21       phase 2 excluded   -         more.conf:2\n         SecRuleRemoveById at more.conf:6\n",
        "\n11 rules: 8 active, 1 overridden, 1 dead, 1 excluded\n",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert_eq!(list(&["--state", "dead", "--state", "excluded"]).matches("phase").count(), 2);
    let json: serde_json::Value = serde_json::from_str(&list(&["--id", "20", "--json"])).expect("valid JSON");
    assert_eq!((&json["state"], &json["line"]), (&"dead".into(), &1.into()));
    let output = files.run(&["rules", "--rules", "rules.conf", "--id", "99"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no rule 99"));
}

#[test]
fn what_did_not_run_and_why() {
    let files = Files::new("GET /?q=1+union+select+2&free=union+select&a=1 HTTP/1.1\nHost: a\n\n");
    let more = r#"SecAction "id:5,phase:1,pass,nolog,setvar:tx.level=1"
SecRule TX:LEVEL "@ge 2" "id:6,phase:2,pass"
SecRule ARGS:a "@eq 1" "id:7,phase:2,pass,nolog,ctl:ruleRemoveById=9,ctl:ruleRemoveTargetById=11;ARGS:q,skipAfter:END"
SecRule ARGS "@rx a" "id:8,phase:2,pass"
SecMarker END
SecRule ARGS "@rx a" "id:9,phase:2,pass"
SecRule ARGS:none "@rx a" "id:13,phase:2,pass"
"#;
    std::fs::write(files.0.path().join("more.conf"), more).expect("writing");
    std::fs::write(
        files.0.path().join("last.conf"),
        "SecRuleUpdateTargetById 11 !ARGS:free\nSecRuleRemoveById 12\n",
    )
    .expect("writing");
    let explain = |rule: &str| {
        let output = files.run(&[
            "explain",
            "request.http",
            "--rules",
            "more.conf",
            "--rules",
            "rules.conf",
            "--rules",
            "last.conf",
            "--rule",
            rule,
        ]);
        assert_eq!(output.status.code(), Some(if rule == "12" { 1 } else { 0 }));
        String::from_utf8(output.stdout).expect("UTF-8") + &String::from_utf8_lossy(&output.stderr)
    };
    let text = explain("11");
    for part in [
        "    1    dead with these settings (see portcullis rules --state dead): 6\n",
        "    1    skipped by rule 7: 8\n",
        "    1    switched off by rule 7 (ctl): 9\n",
        "    ARGS:q: rule 7 excludes it (ctl): 11\n",
        "    ARGS:free: their own targets exclude it: 11\n",
        "\nrule 11\n    link 0 ARGS:a after t:urlDecodeUni: 1\n        @rx (?i)union\\s+select: no\n",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert!(explain("6").contains("did not run: dead: TX:level is always 1 here"));
    assert!(explain("8").contains("did not run: skipped by rule 7"));
    assert!(explain("9").contains("did not run: switched off by rule 7 (ctl)"));
    assert!(explain("13").contains("ran and found none of its targets"));
    assert!(explain("12").contains("rule 12 is excluded: SecRuleRemoveById at last.conf:2"));
}

#[test]
fn mistakes() {
    let files = Files::new(ATTACK);
    std::fs::write(files.0.path().join("bad.conf"), "SecRule ARGZ \"@rx a\" \"id:1\"\n").expect("writing");
    for (args, code, part) in [
        (&["explain", "request.http", "--site", "a"][..], 2, "--config"),
        (&["explain", "none.http", "--rules", "rules.conf"], 2, "cannot read none.http: "),
        (&["explain", "request.http", "--crs", "none"], 1, "portcullis crs install"),
        (&["explain", "request.http", "--rules", "bad.conf"], 1, "did you mean ARGS?"),
        (&["explain", "request.http", "--rules", "none.conf"], 1, "none.conf"),
        (&["explain", "request.http", "--config", "none.toml"], 1, "none.toml"),
        (&["rules", "--crs", "x", "--paranoia", "5"], 2, "--paranoia"),
        (&["rules", "--config", "a.toml", "--crs", "x"], 2, "--crs"),
    ] {
        let output = files.run(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(part) && output.stdout.is_empty(), "{args:?}: {text}");
    }
}

#[test]
fn a_response_is_explained_behind_its_request() {
    let files = Files::new("GET /report HTTP/1.1\nHost: a\n\n");
    let key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n".repeat(26);
    let response = format!(
        "HTTP/1.1 200 OK\nContent-Type: text/plain\n\n-----BEGIN PRIVATE KEY-----\n{key}-----END PRIVATE KEY-----\n"
    );
    std::fs::write(files.0.path().join("response.http"), response).expect("writing");
    let explain = |more: &[&str]| {
        let output = files.run(&[&["explain", "request.http", "--response", "response.http"], more].concat());
        assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(0), ""));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let text = explain(&[]);
    let expected = [
        "GET /report HTTP/1.1\n",
        "\nHTTP/1.1 200 OK\n",
        " in response-body\n",
        "    leak.",
        "\n  note: response: ",
    ];
    for part in expected {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    assert!(text.contains("verdict  deny 403") && text.contains("phase 4"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&explain(&["--json"])).expect("JSON");
    assert_eq!((&json["response"], &json["verdict"]["class"]), (&"HTTP/1.1 200 OK".into(), &"leak".into()));
    let body_bytes = json["response_body_bytes_inspected"].as_u64();
    assert!(body_bytes > Some(1_000) && json["response_body_bytes_not_inspected"] == 0, "{json}");

    let rules = "SecResponseBodyAccess On\nSecResponseBodyMimeType text/plain\n\
                 SecRule RESPONSE_BODY \"@contains PRIVATE\" \"id:30,phase:4,deny,status:502,log,msg:'Key'\"\n";
    std::fs::write(files.0.path().join("rules.conf"), rules).expect("writing");
    assert!(explain(&["--rules", "rules.conf"]).contains("verdict  deny 502 by rule 30 in phase 4: Key"));

    std::fs::write(files.0.path().join("request.http"), "GET /?f=../../etc/passwd HTTP/1.1\nHost: a\n\n")
        .expect("writing");
    assert!(explain(&[]).contains("note: the request does not get as far as its response"));
    let output = files.run(&["explain", "request.http", "--response", "request.http"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("request.http is not an HTTP/1 response: "));
}
