//! The effects of rules on a request, one small case each. The answers are those of ModSecurity 2.9.7; where
//! a case rests on one function of it, the comment names the function.

use std::sync::Arc;

use crate::common::{self, connection, plan_with};
use portcullis_engine::{Interruption, NoCollections, Progress, RequestLine, Scratch, Transaction};
use portcullis_seclang::MemoryFiles;

/// The outcome of one request.
struct Seen {
    interruption: Option<Interruption>,
    /// `id target=value` of each logged match.
    matches: Vec<String>,
    transaction: Box<Transaction>,
}

impl Seen {
    fn tx(&self, key: &str) -> Option<String> {
        let values = self.transaction.tx_values();
        let found = values.into_iter().find(|(name, _)| name == key.as_bytes());
        found.map(|(_, value)| String::from_utf8(value).unwrap())
    }
}

/// A request: `METHOD target`, headers, body.
type Request<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

fn run(rules: &str, (line, headers, body): Request<'_>) -> Seen {
    let text = format!("SecRuleEngine On\nSecRequestBodyAccess On\n{rules}\n");
    let mut files = MemoryFiles::default();
    files.0.insert("words.data".into(), b"# comment\nalpha\nbeta gamma\n".to_vec());
    let plan = plan_with(&text, &files).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let mut transaction =
        Transaction::new(Arc::new(plan), Arc::new(NoCollections), Scratch::default(), &connection());
    transaction.keep_quiet_matches();
    let (method, target) = line.split_once(' ').unwrap();
    let whole = format!("{line} HTTP/1.1");
    let request = RequestLine {
        line: whole.as_bytes(),
        method: method.as_bytes(),
        target: target.as_bytes(),
        protocol: b"HTTP/1.1",
    };
    let fields = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let interruption = phases(&mut transaction, request, fields, body);
    transaction.finish();
    let matches = transaction.matches().iter().filter(|found| found.log).map(|found| {
        let view = transaction.view(found);
        format!("{} {}={}", view.rule.id, view.target.escape_ascii(), view.value.escape_ascii())
    });
    Seen { interruption, matches: matches.collect(), transaction }
}

fn phases<'a>(
    transaction: &mut Transaction,
    line: RequestLine<'_>,
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    body: &str,
) -> Option<Interruption> {
    let ended = |progress| match progress {
        Progress::Done(interruption) => interruption,
        Progress::Ask => panic!("no rule here asks anybody"),
    };
    ended(transaction.request_head(line, fields))
        .or_else(|| {
            transaction.request_body(body.as_bytes());
            ended(transaction.request_end(false))
        })
        .or_else(|| {
            let headers = [(b"Content-Type".as_slice(), b"text/html".as_slice())];
            ended(transaction.response_head(b"HTTP/1.1", 200, headers))
        })
        .or_else(|| {
            transaction.response_body(b"<p>stack trace</p>");
            ended(transaction.response_end(false))
        })
}

const GET: Request<'static> = ("GET /a/b.php?q=One&q=two&x=1", &[("Host", "h"), ("Cookie", "c=1; d=2")], "");

#[track_caller]
fn check(rules: &str, request: Request<'_>, matches: &[&str]) {
    assert_eq!(run(rules, request).matches, matches, "{rules}");
}

#[test]
fn every_matching_target_is_a_match() {
    check(
        r#"SecRule ARGS "@rx ." "id:1,phase:2,pass""#,
        GET,
        &["1 ARGS:q=One", "1 ARGS:q=two", "1 ARGS:x=1"],
    );
    check(
        r#"SecRule ARGS:Q|ARGS_NAMES "@rx t|x" "id:1,phase:2,pass""#,
        GET,
        &["1 ARGS:q=two", "1 ARGS_NAMES:x=x"],
    );
    check(r#"SecRule ARGS:/^[a-q]$/ "@rx ." "id:1,phase:2,pass""#, GET, &["1 ARGS:q=One", "1 ARGS:q=two"]);
    check(r#"SecRule ARGS|!ARGS:q "@rx ." "id:1,phase:2,pass""#, GET, &["1 ARGS:x=1"]);
    check(r#"SecRule REQUEST_COOKIES "@streq 2" "id:1,phase:1,pass""#, GET, &["1 REQUEST_COOKIES:d=2"]);
}

#[test]
fn counts_and_missing_values() {
    check(r#"SecRule &ARGS "@eq 3" "id:1,phase:2,pass""#, GET, &["1 &ARGS=3"]);
    check(r#"SecRule &ARGS:q "@eq 2" "id:1,phase:2,pass""#, GET, &["1 &ARGS:q=2"]);
    check(
        r#"SecRule &REQUEST_HEADERS:Accept "@eq 0" "id:1,phase:1,pass""#,
        GET,
        &["1 &REQUEST_HEADERS:Accept=0"],
    );
    // No value, no test: not even a negated one.
    check(r#"SecRule REQUEST_HEADERS:Accept "!@rx x" "id:1,phase:1,pass""#, GET, &[]);
    check(r#"SecRule &TX:none "@eq 0" "id:1,phase:1,pass""#, GET, &["1 &TX:none=0"]);
}

#[test]
fn request_line_variables() {
    let headers = [("Host", "h"), ("Authorization", "Basic dTpw")];
    let request: Request<'_> = ("GET http://h:80/a/b.php?q=1", &headers, "");
    // The clock says 2001-09-09 01:46:40 UTC, local time is two hours ahead.
    for (variable, value) in [
        ("REQUEST_URI_RAW", "http://h:80/a/b.php?q=1"),
        ("REQUEST_URI", "/a/b.php?q=1"),
        ("REQUEST_FILENAME", "/a/b.php"),
        ("REQUEST_BASENAME", "b.php"),
        ("QUERY_STRING", "q=1"),
        ("REQUEST_LINE", "GET http://h:80/a/b.php?q=1 HTTP/1.1"),
        ("REQUEST_PROTOCOL", "HTTP/1.1"),
        ("REMOTE_ADDR", "192.0.2.7"),
        ("SERVER_NAME", "h"),
        ("TIME", "20010909034640"),
        ("TIME_YEAR", "2001"),
        ("TIME_MON", "09"),
        ("TIME_DAY", "09"),
        ("TIME_HOUR", "03"),
        ("TIME_MIN", "46"),
        ("TIME_SEC", "40"),
        ("TIME_WDAY", "0"),
        ("TIME_EPOCH", "1000000000"),
        ("AUTH_TYPE", "Basic"),
        ("REMOTE_USER", "u"),
        ("PATH_INFO", "/a/b.php"),
        ("USERAGENT_IP", "192.0.2.7"),
        ("SDBM_DELETE_ERROR", "0"),
        ("MODSEC_BUILD", "020907900"),
        // Host: h, Authorization: Basic dTpw, two newlines, the empty line, and one for the end.
        ("FULL_REQUEST_LENGTH", "36"),
    ] {
        let rule = format!(r#"SecRule {variable} "@unconditionalMatch" "id:1,phase:1,pass""#);
        check(&rule, request, &[&format!("1 {variable}={value}")]);
    }
}

#[test]
fn full_request_has_the_body_where_request_body_has_it() {
    let rule = r#"SecRule FULL_REQUEST "@rx (?s)^(.*)$" "id:1,phase:2,pass,capture,setvar:tx.all=%{TX.1}""#;
    let form = [("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", "3")];
    let seen = run(rule, ("POST /x", &form, "a=b"));
    let head = "POST /x HTTP/1.1\n\nContent-Type: application/x-www-form-urlencoded\nContent-Length: 3\n\n";
    assert_eq!(seen.tx("all"), Some(format!("{head}a=b")));
    let seen = run(rule, GET);
    assert_eq!(
        seen.tx("all").as_deref(),
        Some("GET /a/b.php?q=One&q=two&x=1 HTTP/1.1\n\nHost: h\nCookie: c=1; d=2\n\n")
    );
}

#[test]
fn setenv_sets_the_environment_of_the_transaction() {
    let rules = r#"SecAction "id:1,phase:1,pass,nolog,setenv:a=1,setenv:b=%{REQUEST_METHOD},setenv:c,setenv:d=x,setenv:!D"
SecRule ENV:A|ENV:b|ENV:c|&ENV:d "@unconditionalMatch" "id:2,phase:2,pass"
SecRule ENV "@streq GET" "id:3,phase:2,pass"
SecAction "id:4,phase:2,pass,msg:'%{ENV.b}',setvar:tx.env=%{ENV.b}""#;
    check(rules, GET, &["2 ENV:a=1", "2 ENV:b=GET", "2 ENV:c=1", "2 &ENV:d=0", "3 ENV:b=GET", "4 ="]);
    assert_eq!(run(rules, GET).tx("env").as_deref(), Some("GET"));
}

#[test]
fn a_rule_knows_its_own_metadata() {
    let metadata = "id:7,phase:2,pass,msg:'m %{REQUEST_METHOD}',logdata:'l',ver:'v/1',rev:'2',severity:CRITICAL,maturity:3,\
                    accuracy:8";
    for (key, value) in [
        ("id", "7"),
        ("msg", "m %{REQUEST_METHOD}"),
        ("logdata", "l"),
        ("ver", "v/1"),
        ("rev", "2"),
        ("severity", "2"),
        ("maturity", "3"),
        ("Accuracy", "8"),
    ] {
        check(
            &format!("SecRule RULE:{key} \"@strmatch {value}\" \"{metadata}\""),
            GET,
            &[&format!("7 RULE={value}")],
        );
    }
}

#[test]
fn the_users_of_collections_are_known() {
    let rules = r#"SecRule USERID|SESSIONID "!@streq x" "id:3,phase:1,pass"
SecAction "id:1,phase:1,pass,nolog,setuid:bob,setsid:%{REQUEST_METHOD}-1"
SecRule USERID|SESSIONID "@unconditionalMatch" "id:2,phase:2,pass""#;
    // Not there before they are set.
    check(rules, GET, &["2 USERID=bob", "2 SESSIONID=GET-1"]);
}

#[test]
fn cookies_may_be_separated_by_another_byte() {
    let cookies: Request<'_> = ("GET /", &[("Cookie", "a=1,b=2;c=3")], "");
    let rule = r#"SecRule REQUEST_COOKIES "@unconditionalMatch" "id:1,phase:1,pass""#;
    check(rule, cookies, &["1 REQUEST_COOKIES:a=1,b=2", "1 REQUEST_COOKIES:c=3"]);
    check(
        &format!("SecCookieV0Separator ,\n{rule}"),
        cookies,
        &["1 REQUEST_COOKIES:a=1", "1 REQUEST_COOKIES:b=2;c=3"],
    );
}

#[test]
fn setvar_runs_for_each_match() {
    let rules = r#"SecRule ARGS "@rx ." "id:1,phase:2,pass,setvar:tx.n=+2,setvar:tx.last=%{MATCHED_VAR_NAME}"
SecAction "id:2,phase:2,pass,nolog,setvar:tx.m=%{tx.n},setvar:tx.m=+%{tx.n},setvar:tx.gone=1,setvar:!tx.gone""#;
    let seen = run(rules, GET);
    assert_eq!(seen.tx("n").as_deref(), Some("6"));
    assert_eq!(seen.tx("m").as_deref(), Some("12"));
    assert_eq!(seen.tx("last").as_deref(), Some("ARGS:x"));
    assert_eq!(seen.tx("gone"), None);
    // msre_action_setvar_execute: counters never go below zero.
    assert_eq!(
        run(r#"SecAction "id:1,phase:1,pass,setvar:tx.n=3,setvar:tx.n=-5""#, GET).tx("n").as_deref(),
        Some("0")
    );
}

#[test]
fn keys_made_at_run_time_are_found_again() {
    let rules = r#"SecRule ARGS "@rx ." "id:1,phase:2,pass,nolog,setvar:'tx.count_%{MATCHED_VAR_NAME}=+1'"
SecRule TX:/count_.*/ "@gt 1" "id:2,phase:2,pass""#;
    check(rules, GET, &["2 TX:count_ARGS:q=2"]);
}

#[test]
fn chains_need_every_link() {
    let rules = r#"SecRule ARGS:q "@streq two" "id:1,phase:2,pass,setvar:tx.first=1,chain"
  SecRule ARGS:x "@streq 2" "setvar:tx.second=1"
SecRule ARGS:q "@rx ." "id:2,phase:2,pass,chain"
  SecRule ARGS:x "@streq 1" "chain"
    SecRule MATCHED_VARS "@streq two" """#;
    let seen = run(rules, GET);
    // execute_rule: the actions of a link run when the link matches, whatever the chain comes to.
    assert_eq!((seen.tx("first").as_deref(), seen.tx("second")), (Some("1"), None));
    assert_eq!(seen.matches, ["2 ARGS:q=two"]);
}

#[test]
fn captures_replace_the_old_ones() {
    let rules = r#"SecRule REQUEST_FILENAME "@rx ^/(a)/(b)" "id:1,phase:1,pass,capture,setvar:tx.one=%{tx.2}"
SecRule REQUEST_FILENAME "@rx ^/(a)" "id:2,phase:1,pass,capture,setvar:'tx.two=%{tx.1}%{tx.2}'""#;
    let seen = run(rules, GET);
    assert_eq!((seen.tx("one").as_deref(), seen.tx("two").as_deref()), (Some("b"), Some("a")));
}

#[test]
fn transformations_and_defaults() {
    let request: Request<'_> = ("GET /?q=AbC", &[("Host", "h")], "");
    check(r#"SecRule ARGS "@streq abc" "id:1,phase:2,pass,t:lowercase""#, request, &["1 ARGS:q=abc"]);
    let defaults = "SecDefaultAction \"phase:2,pass,nolog,t:lowercase\"\n";
    check(&format!("{defaults}SecRule ARGS \"@streq abc\" \"id:1,phase:2,log\""), request, &["1 ARGS:q=abc"]);
    check(
        &format!("{defaults}SecRule ARGS \"@streq AbC\" \"id:1,phase:2,log,t:none\""),
        request,
        &["1 ARGS:q=AbC"],
    );
    check(&format!("{defaults}SecRule ARGS \"@streq abc\" \"id:1,phase:2\""), request, &[]);
    check(
        r#"SecRule ARGS "@rx (?i)abc" "id:1,phase:2,pass,multiMatch,t:lowercase,t:lowercase""#,
        request,
        &["1 ARGS:q=AbC", "1 ARGS:q=abc"],
    );
}

#[test]
fn block_is_what_the_default_says() {
    let rule = "SecRule ARGS:x \"@streq 1\" \"id:1,phase:2,block\"";
    let deny = |status| Some(Interruption::Deny { status });
    assert_eq!(run(rule, GET).interruption, None);
    let with = |default: &str| run(&format!("SecDefaultAction \"{default}\"\n{rule}"), GET).interruption;
    assert_eq!(with("phase:2,deny"), deny(403));
    assert_eq!(with("phase:2,deny,status:406"), deny(406));
    // create_rule: there is one default action list, the last one, whatever phase it names.
    assert_eq!(with("phase:1,deny"), deny(403));
    assert_eq!(with("phase:2,deny\"\nSecDefaultAction \"phase:1,pass"), None);
    let both = "SecDefaultAction \"phase:2,pass\"\nSecRule ARGS:x \"@streq 1\" \"id:1,phase:2,deny,block\"";
    assert_eq!(run(both, GET).interruption, deny(403));
    assert_eq!(with("phase:2,drop"), Some(Interruption::Drop));
    let location = b"https://h/?c=1".to_vec();
    assert_eq!(
        with("phase:2,redirect:https://h/?c=%{ARGS.x}"),
        Some(Interruption::Redirect { status: 302, location })
    );
}

#[test]
fn an_interruption_ends_the_transaction() {
    let rules = r#"SecRule ARGS "@rx ." "id:1,phase:1,deny,status:401,msg:'no %{MATCHED_VAR}'"
SecAction "id:2,phase:1,pass"
SecAction "id:3,phase:5,pass""#;
    let seen = run(rules, GET);
    assert_eq!(seen.interruption, Some(Interruption::Deny { status: 401 }));
    assert_eq!(seen.matches.len(), 2);
    assert!(seen.matches[1].starts_with("3 "), "phase 5 still runs");
    assert_eq!(seen.transaction.view(&seen.transaction.matches()[0]).msg, b"no One");
}

#[test]
fn detection_only_goes_on() {
    let rules = r#"SecRuleEngine DetectionOnly
SecRule ARGS "@rx ." "id:1,phase:1,deny"
SecRule ARGS:x "@rx ." "id:2,phase:2,pass""#;
    let seen = run(rules, GET);
    assert_eq!(seen.interruption, None);
    assert_eq!(seen.matches, ["1 ARGS:q=One", "1 ARGS:q=two", "1 ARGS:x=1", "2 ARGS:x=1"]);
}

#[test]
fn skips_and_markers() {
    let rules = r#"SecAction "id:1,phase:1,pass,nolog,skipAfter:END"
SecRule ARGS:x "@rx ." "id:2,phase:1,pass"
SecRule ARGS:x "@rx ." "id:3,phase:2,pass"
SecMarker END
SecRule ARGS:x "@rx ." "id:4,phase:1,pass,skip:1"
SecRule ARGS:x "@rx ." "id:5,phase:1,pass,chain"
  SecRule ARGS:x "@rx ." ""
SecRule ARGS:x "@rx ." "id:6,phase:1,pass""#;
    check(rules, GET, &["4 ARGS:x=1", "6 ARGS:x=1", "3 ARGS:x=1"]);
}

#[test]
fn allow_has_three_scopes() {
    let rules = |scope: &str| {
        format!(
            "SecAction \"id:1,phase:1,nolog,allow{scope}\"\nSecAction \"id:2,phase:1,pass\"\n\
             SecAction \"id:3,phase:2,pass\"\nSecAction \"id:4,phase:3,pass\"\nSecAction \"id:5,phase:5,pass\""
        )
    };
    let ids = |scope: &str| -> Vec<String> {
        run(&rules(scope), GET)
            .matches
            .iter()
            .map(|found| found.split(' ').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids(""), ["5"]);
    assert_eq!(ids(":phase"), ["3", "4", "5"]);
    assert_eq!(ids(":request"), ["4", "5"]);
}

#[test]
fn removals_and_updates() {
    let base = r#"SecRule ARGS "@rx ." "id:10,phase:2,pass,tag:'t/a',msg:'m one'"
SecRule ARGS:x "@rx ." "id:11,phase:2,pass,tag:'t/b'"
"#;
    let all = ["10 ARGS:q=One", "10 ARGS:q=two", "10 ARGS:x=1", "11 ARGS:x=1"];
    check(base, GET, &all);
    for (update, left) in [
        ("SecRuleRemoveById 10", &all[3..]),
        ("SecRuleRemoveById 5-10 12", &all[3..]),
        ("SecRuleRemoveByTag t/b", &all[..3]),
        ("SecRuleRemoveByMsg one$", &all[3..]),
        ("SecRuleUpdateTargetById 10 !ARGS:q", &all[2..]),
        ("SecRuleUpdateTargetByTag t/ !ARGS:/[qx]/", &[]),
        ("SecRuleUpdateActionById 11 nolog", &all[..3]),
    ] {
        check(&format!("{base}{update}"), GET, left);
        // The same before the rules exist changes nothing.
        if update.starts_with("SecRuleRemove") {
            check(&format!("{update}\n{base}"), GET, &all);
        }
    }
    for (ctl, left) in [
        ("ruleRemoveById=10", &all[3..]),
        ("ruleRemoveByTag=t/b", &all[..3]),
        ("ruleRemoveTargetById=10;ARGS:q", &all[2..]),
        ("ruleRemoveTargetByTag=t/.*;ARGS:x", &all[..2]),
        ("ruleRemoveTargetById=10;ARGS", &all[3..]),
        ("ruleEngine=Off", &[]),
    ] {
        check(&format!("SecAction \"id:1,phase:1,pass,nolog,ctl:{ctl}\"\n{base}"), GET, left);
    }
}

#[test]
fn bodies_become_arguments() {
    let form = [("Host", "h"), ("Content-Type", "application/x-www-form-urlencoded")];
    let rule = r#"SecRule ARGS_POST|REQUEST_BODY|FILES|XML:/*|XML://@* "@rx ." "id:1,phase:2,pass""#;
    check(
        rule,
        ("POST /?g=0", &form, "a=1&b=%32"),
        &["1 ARGS_POST:a=1", "1 ARGS_POST:b=2", "1 REQUEST_BODY=a=1&b=%32"],
    );
    let json = [("Host", "h"), ("Content-Type", "application/json")];
    let choose = "SecRule REQUEST_HEADERS:Content-Type json \"id:9,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON\"\n";
    check(&format!("{choose}{rule}"), ("POST /", &json, r#"{"a":{"b":"c"}}"#), &["1 ARGS_POST:a.b=c"]);
    let xml = "SecAction \"id:9,phase:1,pass,nolog,ctl:requestBodyProcessor=XML\"\n";
    check(&format!("{xml}{rule}"), ("POST /", &json, r#"<a b="c">d<e/></a>"#), &["1 XML=d", "1 XML=c"]);
    let multipart = [("Host", "h"), ("Content-Type", "multipart/form-data; boundary=B")];
    let body = "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\n\r\ndata\r\n--B\r\n\
                Content-Disposition: form-data; name=\"n\"\r\n\r\nv\r\n--B--\r\n";
    check(rule, ("POST /", &multipart, body), &["1 ARGS_POST:n=v", "1 FILES:f=x.txt"]);
    let force = "SecAction \"id:9,phase:1,pass,nolog,ctl:forceRequestBodyVariable=On\"\n";
    check(&format!("{force}{rule}"), ("POST /", &[("Host", "h")], "raw"), &["1 REQUEST_BODY=raw"]);
}

#[test]
fn body_errors_are_visible() {
    let rule = r#"SecAction "id:9,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON"
SecRule REQBODY_ERROR "!@eq 0" "id:1,phase:2,deny,status:400,msg:'%{REQBODY_ERROR_MSG}'""#;
    let seen = run(rule, ("POST /", &[("Host", "h")], "{\"a\":"));
    assert_eq!(seen.interruption, Some(Interruption::Deny { status: 400 }));
    assert_eq!(run(rule, ("POST /", &[("Host", "h")], "{\"a\":1}")).interruption, None);
    assert_eq!(run(rule, ("POST /", &[("Host", "h")], "")).interruption, None);
}

#[test]
fn responses_are_inspected() {
    let rules = r#"SecResponseBodyAccess On
SecRule RESPONSE_STATUS "@streq 200" "id:1,phase:3,pass"
SecRule RESPONSE_BODY "@contains stack trace" "id:2,phase:4,deny,status:502""#;
    let seen = run(rules, GET);
    assert_eq!(seen.interruption, Some(Interruption::Deny { status: 502 }));
    assert_eq!(seen.matches.len(), 2);
}

#[test]
fn operators() {
    let request: Request<'_> = ("GET /?v=Alpha%20x", &[("Host", "h")], "");
    for (operator, hit) in [
        ("@contains pha", true),
        ("@contains PHA", false),
        ("@containsWord Alpha", true),
        ("@containsWord Alph", false),
        ("@within Beta Alpha x", true),
        ("@within Beta", false),
        ("@beginsWith Al", true),
        ("@endsWith x", true),
        ("@endsWith .x", false),
        ("@streq Alpha x", true),
        ("@strmatch pha x", true),
        ("@pm gamma ALPHA", true),
        ("@pmFromFile words.data", true),
        ("!@pm gamma ALPHA", false),
        ("@rx ^alpha", false),
        ("@rx (?i)^alpha", true),
        ("@eq 0", true),
        ("@validateByteRange 32-126", false),
        ("@validateByteRange 65-126", true),
        ("@noMatch", false),
        ("@ipMatch 192.0.2.0/24", false),
    ] {
        let seen = run(&format!("SecRule ARGS:v \"{operator}\" \"id:1,phase:2,pass\""), request);
        assert_eq!(!seen.matches.is_empty(), hit, "{operator}");
    }
    check(
        r#"SecRule REMOTE_ADDR "@ipMatch 192.0.2.0/24" "id:1,phase:1,pass""#,
        GET,
        &["1 REMOTE_ADDR=192.0.2.7"],
    );
}

#[test]
fn matches_say_where() {
    for (rule, span) in [
        (r#"SecRule ARGS:q "@rx w." "id:1,phase:2,pass""#, Some("wo")),
        (r#"SecRule ARGS:q "@rx t(w)." "id:1,phase:2,pass,capture""#, Some("two")),
        (r#"SecRule ARGS:q "@contains w" "id:1,phase:2,pass""#, Some("w")),
        (r#"SecRule ARGS:q "@pm zz TWO" "id:1,phase:2,pass""#, Some("two")),
        (r#"SecRule ARGS:q "@validateByteRange 97-119" "id:1,phase:2,pass""#, Some("O")),
        (r#"SecRule &ARGS:q "@eq 2" "id:1,phase:2,pass""#, None),
        (r#"SecAction "id:1,phase:2,pass""#, None),
    ] {
        let seen = run(rule, GET);
        let found = seen.transaction.matches()[0];
        let view = seen.transaction.view(&found);
        let text = found.found.map(|span| std::str::from_utf8(span.of(view.value)).unwrap());
        assert_eq!(text, span, "{rule}");
    }
    assert_eq!(run(r#"SecAction "id:1,phase:2,pass""#, GET).matches, ["1 ="]);
}

#[test]
fn scores_are_explained() {
    let rules = r#"SecAction "id:1,phase:1,pass,nolog,setvar:tx.critical=5"
SecRule ARGS:x "@rx ." "id:2,phase:2,pass,setvar:tx.score=+%{tx.critical},setvar:tx.sqli=+1""#;
    let seen = run(rules, GET);
    let view = seen.transaction.view(&seen.transaction.matches()[1]);
    assert_eq!(view.changes, [(b"score".as_slice(), 5), (b"sqli".as_slice(), 1)]);
}

/// `ctl:ruleRemoveTarget...` with a path takes away what it selects: rule 901181 of the CRS leaves attributes
/// out for all of its rules. ModSecurity 2.9.7 compares names there and takes nothing away, or by
/// `SecRuleUpdateTarget...` all of XML.
#[test]
fn an_excluded_path_takes_away_what_it_selects() {
    let headers: &[(&str, &str)] = &[("Host", "h"), ("Content-Type", "text/xml")];
    let body = r#"<a x="1" y="evil"><b>evil</b><c z="evil">fine</c></a>"#;
    let rule =
        "SecRule XML:/*|XML://@*|XML://b|XML://@z \"@contains evil\" \"id:1,phase:2,pass,msg:'m',tag:'t'\"\n";
    let all = ["1 XML=evilfine", "1 XML=evil", "1 XML=evil", "1 XML=evil", "1 XML=evil"];
    let seen = |rules: String| {
        let processor = "SecAction \"id:9,phase:1,pass,nolog,ctl:requestBodyProcessor=XML\"\n";
        run(&format!("{processor}{rules}"), ("POST /", headers, body)).matches
    };
    assert_eq!(seen(rule.to_owned()), all);
    // Path; how many of text, attributes, `//b`, `//@z` are left.
    for (path, left) in [
        ("XML", [0, 0, 0, 0]),
        ("XML:/*", [0, 2, 1, 1]),
        ("XML:/a", [0, 2, 1, 1]),
        ("XML://@*", [1, 0, 1, 0]),
        ("XML:/a/@*", [1, 1, 1, 1]),
        ("XML://@z", [1, 1, 1, 0]),
        ("XML://b", [1, 2, 0, 1]),
        ("XML:/a/*", [1, 2, 0, 1]),
        ("XML://none", [1, 2, 1, 1]),
    ] {
        let mut want = vec!["1 XML=evilfine"; left[0]];
        want.resize(left.iter().sum(), "1 XML=evil");
        for ctl in ["ruleRemoveTargetById=1", "ruleRemoveTargetByTag=t", "ruleRemoveTargetByMsg=m"] {
            let remove = format!("SecAction \"id:2,phase:1,pass,nolog,ctl:{ctl};{path}\"\n");
            assert_eq!(seen(format!("{remove}{rule}")), want, "{ctl};{path}");
        }
        for update in ["ById 1", "ByTag t", "ByMsg m"] {
            let update = format!("SecRuleUpdateTarget{update} \"!{path}\"\n");
            assert_eq!(seen(format!("{rule}{update}")), want, "{update}");
        }
        let written = rule.replace("//@z", &format!("//@z|!{path}"));
        assert_eq!(seen(written), want, "!{path} in the rule");
    }
    // Other readings of the text go with it, and only with it.
    let tagged = "SecRule XML:/* \"@contains evil\" \"id:1,phase:2,pass,ctl:ruleRemoveTargetById=3;XML:/*\"\n\
                  SecRule XML:/*|XML://@* \"@contains evil\" \"id:3,phase:2,pass\"";
    assert_eq!(seen(tagged.to_owned()), ["1 XML=evilfine", "3 XML=evil", "3 XML=evil"]);
}

/// As asked of ModSecurity 2.9.7: `nolog` takes both away, `log` gives only itself back
/// (`msre_action_log_init`).
#[test]
fn log_brings_no_audit_record_back() {
    for (defaults, actions, log, audit) in [
        ("", "log", true, true),
        ("", "noauditlog,log", true, false),
        ("", "log,noauditlog", true, false),
        ("", "nolog,log", true, false),
        ("", "nolog,auditlog", false, true),
        ("", "auditlog,nolog", false, false),
        ("nolog", "log", true, false),
        ("nolog", "auditlog", false, true),
        ("log,noauditlog", "log", true, false),
        ("nolog,auditlog", "log", true, true),
    ] {
        let defaults = match defaults {
            "" => String::new(),
            words => format!("SecDefaultAction \"phase:1,{words},pass\"\n"),
        };
        let rules = format!("{defaults}SecAction \"id:1,phase:1,pass,{actions}\"");
        let plan = common::plan(&rules);
        assert_eq!((plan.rules[0].log, plan.rules[0].audit_log), (log, audit), "{rules}");
    }
}

#[test]
fn what_belongs_to_one_rule_is_no_default() {
    for what in
        ["id:7", "rev:1", "msg:x", "ver:x", "accuracy:3", "maturity:3", "chain", "skip:1", "skipAfter:X"]
    {
        let rules = format!("SecDefaultAction \"phase:1,pass,{what}\"");
        let mistakes = plan_with(&rules, &MemoryFiles::default()).unwrap_err();
        let name = what.split(':').next().unwrap();
        assert!(mistakes.contains(&format!("SecDefaultAction cannot have {name}")), "{mistakes}");
    }
    common::plan("SecDefaultAction \"phase:1,pass,tag:x,severity:2,t:lowercase\"");
}

/// The warnings about rules that load.
fn said(rules: &str) -> String {
    let mut files = MemoryFiles::default();
    files.0.insert("empty.data".into(), b"# nothing\n".to_vec());
    let root = portcullis_seclang::Root::Text { name: "test.conf".into(), text: rules.into() };
    let parsed = portcullis_seclang::parse(&[root], &files);
    let compiled = portcullis_compile::compile(&parsed.document, &parsed.sources, &files);
    let diagnostics = parsed.diagnostics.iter().chain(&compiled.diagnostics);
    let said: Vec<_> = diagnostics.map(|found| found.message.as_str()).collect();
    assert!(!parsed.has_errors() && compiled.plan.is_some(), "ModSecurity 2.9.7 loads it: {rules}\n{said:?}");
    said.join("\n")
}

/// Rules that ModSecurity 2.9.7 loads, as asked, though they cannot work: they load here, and a warning says
/// so.
#[test]
fn what_cannot_work_loads_with_a_warning() {
    for (rule, warning) in [
        (
            "SecRule REMOTE_ADDR \"@geoLookup\" \"id:1,phase:1,deny\"",
            "@geoLookup has no database: it finds nothing",
        ),
        (
            "SecRule REMOTE_ADDR \"@rbl dnsbl.httpbl.org\" \"id:1,phase:1,deny\"",
            "@rbl: dnsbl.httpbl.org takes an access key: it finds nothing",
        ),
        (
            "SecRule ARGS \"@pmFromFile empty.data\" \"id:1,phase:1,deny\"",
            "empty.data has no words: it finds nothing",
        ),
        (
            "SecRule REMOTE_ADDR \"@ipMatchFromFile empty.data\" \"id:1,phase:1,deny\"",
            "empty.data has no addresses: it finds nothing",
        ),
        (
            "SecRule ARGS \"@rx .\" \"id:1,phase:1,deny,chain\"\nSecMarker X",
            "chain without a following rule: this rule never matches",
        ),
        (
            "SecRule ARGS \"@rx .\" \"id:1,phase:1,deny,chain\"",
            "chain without a following rule: this rule never matches",
        ),
    ] {
        assert_eq!(said(rule), warning, "{rule}");
        let mut files = MemoryFiles::default();
        files.0.insert("empty.data".into(), b"# nothing\n".to_vec());
        let plan = plan_with(rule, &files).unwrap();
        assert_eq!(plan.rules.len(), 1, "{rule}");
    }
    let dangling = "SecRule ARGS \"@rx .\" \"id:1,phase:1,deny,chain\"\nSecMarker X";
    assert_eq!(run(dangling, GET).interruption, None);
}

#[test]
fn an_update_of_no_rule_is_told() {
    let rule = "SecRule ARGS \"@rx a\" \"id:100,phase:2,pass,tag:t,msg:m\"\n";
    for update in [
        "SecRuleUpdateTargetById 100 \"!ARGS:a\"",
        "SecRuleUpdateTargetById 99-101 \"!ARGS:a\"",
        "SecRuleUpdateTargetByTag t \"!ARGS:a\"",
        "SecRuleUpdateTargetByMsg m \"!ARGS:a\"",
        "SecRuleUpdateActionById 100 \"pass\"",
    ] {
        assert_eq!(said(&format!("{rule}{update}\n")), "");
        let early = said(&format!("{update}\n{rule}"));
        let name = update.split(' ').next().unwrap();
        assert!(early.starts_with(&format!("{name}: no rule before this line with ")), "{early}");
    }
}

/// One mistake in a chain is one mistake, wherever in it.
#[test]
fn a_refused_link_makes_no_mistakes_of_others() {
    let bad = "SecRule ARGS \"@nothing\"";
    let last = "SecRule ARGS \"@rx z\" \"id:9,phase:2,deny\"\n";
    for chain in [
        format!("{bad} \"id:1,phase:2,deny,chain\"\nSecRule ARGS \"@rx a\" \"t:none\"\n"),
        format!(
            "{bad} \"id:1,phase:2,deny,t:none, chain\"\nSecRule ARGS \"@rx a\" \"chain\"\nSecRule ARGS \"@rx b\"\n"
        ),
        format!("SecRule ARGS \"@rx a\" \"id:1,phase:2,deny,chain\"\n{bad} \"t:none\"\n"),
        format!(
            "SecRule ARGS \"@rx a\" \"id:1,phase:2,deny,chain\"\n{bad} \"chain\"\nSecRule ARGS \"@rx b\"\n"
        ),
        format!("{bad} \"id:1,phase:2,deny\"\n"),
    ] {
        for end in [last, ""] {
            let mistakes = plan_with(&format!("{chain}{end}"), &MemoryFiles::default()).unwrap_err();
            assert_eq!(mistakes.matches("error").count(), 1, "{mistakes}");
            assert!(mistakes.contains("unknown operator @nothing"), "{mistakes}");
        }
    }
    // Text that is wrong without it stays wrong.
    let open = format!("{bad} \"id:1,phase:2,deny\"\nSecRule ARGS \"@rx a\" \"t:none\"\n");
    let mistakes = plan_with(&open, &MemoryFiles::default()).unwrap_err();
    assert!(mistakes.contains("the rule has no id"), "{mistakes}");
}

/// In a rule `block` gives way to any other disruptive action; in a later update it goes back to the default.
#[test]
fn an_update_with_block_goes_back_to_the_default_action() {
    for (default, rule, update, status) in [
        ("deny,status:403", "pass", "block", Some(403)),
        ("deny,status:403", "allow", "block", Some(403)),
        ("deny,status:403", "redirect:http://x/", "block", Some(403)),
        ("pass", "deny,status:406", "block", None),
        ("pass", "deny,status:406", "deny,block", None),
        ("pass", "pass", "block,deny,status:406", Some(406)),
        ("pass", "pass", "deny,status:406,block", None),
        ("deny,status:403", "block,status:409", "block", Some(409)),
        ("deny,status:403", "block", "pass", None),
        ("deny,status:403", "block", "status:409", Some(409)),
        ("deny,status:403", "pass,block", "t:none", None),
        ("pass", "deny,block,status:409", "t:none", Some(409)),
    ] {
        let rules = format!(
            "SecDefaultAction \"phase:2,log,{default}\"\nSecRule REQUEST_METHOD \"@rx .\" \"id:1,phase:2,{rule}\"\n\
             SecRuleUpdateActionById 1 \"{update}\""
        );
        let answered = run(&rules, GET).interruption.and_then(|interruption| interruption.status());
        assert_eq!(answered, status, "{default}; {rule}; {update}");
    }
}

/// As in ModSecurity 2, a rule is a marker of the name of its id, in its phase, also where it was removed.
#[test]
fn skip_after_finds_rules() {
    let rest = "SecAction \"id:2,phase:1,pass\"\nSecAction \"id:3,phase:1,pass\"\nSecAction \"id:4,phase:1,pass\"\n\
                SecAction \"id:5,phase:2,pass\"";
    for (label, more, want) in [
        ("3", "", ["4 =", "5 ="].as_slice()),
        ("2", "", &["3 =", "4 =", "5 ="]),
        ("3", "SecRuleRemoveById 3", &["4 =", "5 ="]),
        ("5", "", &["5 ="]),
        ("1", "", &["5 ="]),
        ("03", "", &["5 ="]),
        ("3", "SecCompatibility ModSecurity3", &["5 ="]),
    ] {
        let rules = format!("SecAction \"id:1,phase:1,pass,nolog,skipAfter:{label}\"\n{rest}\n{more}");
        check(&rules, GET, want);
    }
}

#[test]
fn updates_of_targets_reach_all_links_whatever_the_number() {
    for selector in ["1", "1:0", "1:1", "1:7", "1-2:1"] {
        let rules = format!(
            "SecRule ARGS:q|REQUEST_METHOD \"@rx .\" \"id:1,phase:2,pass,chain\"\nSecRule REQUEST_METHOD|ARGS:none \"@rx G\"\n\
             SecRuleUpdateTargetById {selector} \"!REQUEST_METHOD\""
        );
        check(&rules, GET, &[]);
    }
}

#[test]
fn names_of_tx_keys_have_the_spelling_of_their_setvar() {
    let rules = r#"SecAction "id:1,phase:1,pass,nolog,setvar:tx.FooBar=1,setvar:tx.low=1,setvar:'tx.K_%{REQUEST_METHOD}=1'"
SecRule TX:foobar|TX:LOW|TX:/^k_/ "@rx ." "id:2,phase:1,pass,msg:'%{MATCHED_VAR_NAME}',setvar:'tx.n=%{tx.n} %{MATCHED_VAR_NAME}'""#;
    check(rules, GET, &["2 TX:FooBar=1", "2 TX:low=1", "2 TX:K_GET=1"]);
    assert_eq!(run(rules, GET).tx("n").as_deref(), Some(" TX:FooBar TX:low TX:K_GET"));
}

#[test]
fn what_is_written_of_the_key_of_a_collection_is_in_lower_case() {
    let rules = r#"SecAction "id:1,phase:1,pass,nolog,initcol:ip=Kx_%{REQUEST_METHOD}_Yy,setsid:SiD"
SecRule IP:KEY|SESSION:KEY "@rx ." "id:2,phase:1,pass""#;
    check(rules, GET, &["2 IP:KEY=kx_GET_yy", "2 SESSION:KEY=SiD"]);
    check(
        &format!("SecCompatibility ModSecurity3\n{rules}"),
        GET,
        &["2 IP:KEY=Kx_GET_Yy", "2 SESSION:KEY=SiD"],
    );
}

/// So that rules can count what was refused.
#[test]
fn phase_5_sees_the_status_of_an_interruption() {
    for (action, status) in [("deny,status:409", "409"), ("drop", "403"), ("redirect:http://x/", "302")] {
        for phase in [1, 2] {
            let rules = format!(
                "SecAction \"id:1,phase:{phase},nolog,{action}\"\nSecRule RESPONSE_STATUS \"@streq {status}\" \"id:2,phase:5,pass\""
            );
            check(&rules, GET, &[&format!("2 RESPONSE_STATUS={status}")]);
        }
    }
}

#[test]
fn words_in_byte_ranges_count_as_0() {
    for (ranges, is_match) in [("", true), ("x", true), ("x,71,69,84", false), ("65-90", false)] {
        let rules = format!("SecRule REQUEST_METHOD \"@validateByteRange {ranges}\" \"id:1,phase:1,pass\"");
        check(&rules, GET, if is_match { &["1 REQUEST_METHOD=GET"] } else { &[] });
    }
}
