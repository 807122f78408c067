//! `SecCompatibility`: every difference between ModSecurity 2 and libmodsecurity that is switched, in both
//! modes, in the engine and in the plain evaluator. The answers of the first mode are those of ModSecurity
//! 2.9.7 on Apache, those of the second of libmodsecurity 3.0.9; `docs/compatibility.md` has the table.

use crate::support::Pair;
use portcullis_reference::Request;
use portcullis_seclang::{MemoryFiles, Root};

/// Runs `rules` over `request` as one ModSecurity would: `ID VARIABLE=VALUE` of each match.
fn run(mode: &str, rules: &str, request: &Request) -> Vec<String> {
    let text =
        format!("SecRuleEngine On\nSecRequestBodyAccess On\nSecCompatibility ModSecurity{mode}\n{rules}\n");
    let files = MemoryFiles::default();
    let pair = Pair::load(&[Root::Text { name: "test.conf".into(), text: text.into_bytes() }], &files)
        .unwrap_or_else(|problem| panic!("mode {mode}: {problem}\n{rules}"));
    let (outcome, difference) = pair.compare(request);
    if let Some(difference) = difference {
        panic!("mode {mode}: {difference}\n{rules}\n{request:#?}");
    }
    let whole = outcome.matches.iter().filter(|found| found.complete);
    let mut seen: Vec<String> =
        whole.map(|found| format!("{} {}={}", found.rule, found.variable, found.value)).collect();
    seen.extend(
        outcome.interruption.map(|by| format!("{} by {} in {}", by.status, by.rule, by.phase.number())),
    );
    seen
}

#[track_caller]
fn check(rules: &str, request: Request, modsecurity2: &[&str], modsecurity3: &[&str]) {
    assert_eq!(run("2", rules, &request), modsecurity2, "ModSecurity 2");
    assert_eq!(run("3", rules, &request), modsecurity3, "libmodsecurity");
}

/// A rule of phase 2 that shows the values of its targets.
fn show(targets: &str) -> String {
    format!("SecRule {targets} \"@unconditionalMatch\" \"id:1,phase:2,pass,t:none\"")
}

const JSON: &str = "SecAction \"id:9,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON\"\n";
const XML: &str = "SecAction \"id:9,phase:1,pass,nolog,ctl:requestBodyProcessor=XML\"\n";

/// Without the matches of the rule that chooses the parser.
#[track_caller]
fn check_body(setup: &str, targets: &str, request: Request, modsecurity2: &[&str], modsecurity3: &[&str]) {
    let rules = format!("{setup}{}", show(targets));
    let shown = |mode: &str| {
        let mut seen = run(mode, &rules, &request);
        seen.retain(|line| !line.starts_with("9 "));
        seen
    };
    assert_eq!(shown("2"), modsecurity2, "ModSecurity 2");
    assert_eq!(shown("3"), modsecurity3, "libmodsecurity");
}

#[test]
fn request_body_of_json_xml_multipart_and_unknown_types() {
    let json = Request::post("/", "application/json", "[1]");
    check_body(JSON, "REQUEST_BODY", json, &[], &["1 REQUEST_BODY=[1]"]);
    let xml = Request::post("/", "text/xml", "<a/>");
    check_body(XML, "REQUEST_BODY", xml, &[], &["1 REQUEST_BODY=<a/>"]);
    let text = Request::post("/", "text/plain", "a");
    check_body("", "REQUEST_BODY", text, &[], &["1 REQUEST_BODY=a"]);
    let form = Request::post("/", "application/x-www-form-urlencoded", "a=1");
    check_body("", "REQUEST_BODY", form, &["1 REQUEST_BODY=a=1"], &["1 REQUEST_BODY=a=1"]);
    let body = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B--\r\n";
    let parts = Request::post("/", "multipart/form-data; boundary=B", body);
    check_body("", "REQUEST_BODY", parts, &[], &[&format!("1 REQUEST_BODY={body}")]);
}

#[test]
fn names_of_json_values() {
    check_body(
        JSON,
        "ARGS",
        Request::post("/", "application/json", r#"{"a":{"b":[1,{"c":2}]},"d":3}"#),
        &["1 ARGS:a.b.b=1", "1 ARGS:a.b.b.c=2", "1 ARGS:d=3"],
        &["1 ARGS:json.a.b.array_0=1", "1 ARGS:json.a.b.array_1.c=2", "1 ARGS:json.d=3"],
    );
    check_body(
        JSON,
        "ARGS",
        Request::post("/", "application/json", "[1]"),
        &["1 ARGS:array.array=1"],
        &["1 ARGS:json.array_0=1"],
    );
}

#[test]
fn an_exclusion_takes_away_what_stands_before_it_or_everywhere() {
    let request = || Request::get("/?a=1&b=2");
    check(&show("!ARGS:a|ARGS"), request(), &["1 ARGS:a=1", "1 ARGS:b=2"], &["1 ARGS:b=2"]);
    check(&show("ARGS:b|!ARGS|ARGS:a"), request(), &["1 ARGS:a=1"], &[]);
    check(&show("ARGS|!ARGS:a"), request(), &["1 ARGS:b=2"], &["1 ARGS:b=2"]);
    // Later additions stand behind.
    let updated = format!(
        "{}\nSecRuleUpdateTargetById 1 \"!ARGS:a\"\nSecRuleUpdateTargetById 1 \"ARGS:a\"",
        show("ARGS_NAMES|ARGS")
    );
    let names = ["1 ARGS_NAMES:a=a", "1 ARGS_NAMES:b=b", "1 ARGS:b=2"];
    check(&updated, request(), &[&names[..], &["1 ARGS:a=1"]].concat(), &names);
}

// Follows ModSecurity 2.9.9 and libmodsecurity 3.0.14, by their sources: Debian's are older.
#[test]
fn xml_bodies_make_arguments_where_that_is_wanted() {
    let body = "<a x='0'>t<p:b>1<!-- - --><![CDATA[<]]></p:b><c/></a>";
    let targets = "ARGS|ARGS_POST_NAMES|&ARGS|ARGS_COMBINED_SIZE|XML:/*|XML://@*|XML:/a/c";
    let args = ["1 ARGS:xml.a.b=1<", "1 ARGS:xml.a.c=", "1 ARGS_POST_NAMES:xml.a.b=xml.a.b"];
    let counts = ["1 ARGS_POST_NAMES:xml.a.c=xml.a.c", "1 &ARGS=2", "1 ARGS_COMBINED_SIZE=16"];
    let document = ["1 XML=t1<", "1 XML=0", "1 XML="];
    let both = |setup: &str, want: &[&str]| {
        check_body(&format!("{XML}{setup}"), targets, Request::post("/", "text/xml", body), want, want);
    };
    let none = ["1 &ARGS=0", "1 ARGS_COMBINED_SIZE=0"];
    both("", &[&none[..], &document].concat());
    both("SecParseXmlIntoArgs Off\n", &[&none[..], &document].concat());
    both("SecParseXmlIntoArgs On\n", &[&args[..], &counts, &document].concat());
    both("SecParseXmlIntoArgs OnlyArgs\n", &[args, counts].concat());
    // A rule has the last word.
    let ctl = |word: &str| {
        format!(
            "SecAction \"id:9,phase:1,pass,nolog,ctl:requestBodyProcessor=XML,ctl:parseXmlIntoArgs={word}\"\n"
        )
    };
    let by_ctl = |setup: &str, want: &[&str]| {
        check_body(setup, targets, Request::post("/", "text/xml", body), want, want);
    };
    by_ctl(&ctl("On"), &[&args[..], &counts, &document].concat());
    by_ctl(&ctl("OnlyArgs"), &[args, counts].concat());
    by_ctl(&format!("SecParseXmlIntoArgs On\n{}", ctl("Off")), &[&none[..], &document].concat());
    // Too many are an error of the body, as of any other.
    let limited = format!("{XML}SecParseXmlIntoArgs On\nSecArgumentsLimit 1\n");
    let want = ["1 ARGS:xml.a.b=1<", "1 REQBODY_ERROR=1"];
    check_body(&limited, "ARGS|REQBODY_ERROR", Request::post("/", "text/xml", body), &want, &want);
}

#[test]
fn the_target_is_unescaped_earlier_and_as_a_whole() {
    let targets = "REQUEST_URI|REQUEST_FILENAME|REQUEST_BASENAME|QUERY_STRING";
    let rule = |phase: u8| format!("SecRule {targets} \"@rx ^\" \"id:{phase},phase:{phase},pass,t:none\"");
    let request = || Request::get("/a%20b/c%2fd?x=%41+");
    let unescaped = |id: u8| {
        [
            format!("{id} REQUEST_URI=/a b/c/d?x=A+"),
            format!("{id} REQUEST_FILENAME=/a b/c/d"),
            format!("{id} REQUEST_BASENAME=d"),
            format!("{id} QUERY_STRING=x=%41+"),
        ]
    };
    check(
        &rule(1),
        request(),
        &[
            "1 REQUEST_URI=/a%20b/c%2fd?x=%41+",
            "1 REQUEST_FILENAME=/a%20b/c%2fd",
            "1 REQUEST_BASENAME=c%2fd",
            "1 QUERY_STRING=x=%41+",
        ],
        &unescaped(1).each_ref().map(String::as_str),
    );
    check(
        &rule(2),
        request(),
        &[
            "2 REQUEST_URI=/a b/c/d?x=%41+",
            "2 REQUEST_FILENAME=/a b/c/d",
            "2 REQUEST_BASENAME=d",
            "2 QUERY_STRING=x=%41+",
        ],
        &unescaped(2).each_ref().map(String::as_str),
    );
    // An escaped question mark hides nothing (CVE-2024-1019); an absolute target keeps its scheme there.
    for (target, path, base) in [
        ("/a%3fb/c", "/a?b/c", "c"),
        ("/app%3f/<script>?q", "/app?/<script>", "<script>"),
        ("/a?b%3f/c", "/a", "a"),
    ] {
        let want = [format!("1 REQUEST_FILENAME={path}"), format!("1 REQUEST_BASENAME={base}")];
        let want = want.each_ref().map(String::as_str);
        check(&show("REQUEST_FILENAME|REQUEST_BASENAME"), Request::get(target), &want, &want);
    }
    check(
        &show("REQUEST_URI|REQUEST_FILENAME"),
        Request::get("http://h/p?q"),
        &["1 REQUEST_URI=/p?q", "1 REQUEST_FILENAME=/p"],
        &["1 REQUEST_URI=/p?q", "1 REQUEST_FILENAME=http://h/p"],
    );
}

#[test]
fn cookies() {
    let request = || Request::get("/").header("Cookie", "a=1, b=2");
    check(
        &show("REQUEST_COOKIES"),
        request(),
        &["1 REQUEST_COOKIES:a=1", "1 REQUEST_COOKIES:b=2"],
        &["1 REQUEST_COOKIES:a=1, b=2"],
    );
    let quoted = || Request::get("/").header("Cookie", "a=\"1;2\"");
    check(
        &format!("SecCookieFormat 1\n{}", show("REQUEST_COOKIES")),
        quoted(),
        &["1 REQUEST_COOKIES:a=1;2"],
        &["1 REQUEST_COOKIES:a=\"1", "1 REQUEST_COOKIES:2\"="],
    );
}

#[test]
fn default_actions_count_for_their_phase() {
    let rules = "SecDefaultAction \"phase:1,log,deny,status:401\"\nSecDefaultAction \"phase:2,log,pass\"\n\
                 SecRule ARGS:a \"1\" \"id:1,phase:1,block\"\nSecRule ARGS:a \"1\" \"id:2,phase:2,block\"";
    check(rules, Request::get("/?a=1"), &["1 ARGS:a=1", "2 ARGS:a=1"], &["1 ARGS:a=1", "401 by 1 in 1"]);
}

#[test]
fn line_anchors_of_patterns() {
    let rule = |pattern: &str| format!("SecRule ARGS \"@rx {pattern}\" \"id:1,phase:1,pass,t:none\"");
    let lines = || Request::get("/?a=x%0ay%0az");
    check(&rule("^y$"), lines(), &[], &["1 ARGS:a=x\ny\nz"]);
    check(&rule("x$"), lines(), &[], &["1 ARGS:a=x\ny\nz"]);
    check(&rule("^x$"), Request::get("/?a=x%0a"), &[], &["1 ARGS:a=x\n"]);
    check(&rule("^x"), lines(), &["1 ARGS:a=x\ny\nz"], &["1 ARGS:a=x\ny\nz"]);
}

#[test]
fn unmatched_boundaries_have_another_number() {
    let body = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n--y\r\n--B--\r\n";
    check(
        &show("MULTIPART_UNMATCHED_BOUNDARY"),
        Request::post("/", "multipart/form-data; boundary=B", body),
        &["1 MULTIPART_UNMATCHED_BOUNDARY=1"],
        &["1 MULTIPART_UNMATCHED_BOUNDARY=2"],
    );
}

#[test]
fn status_lines() {
    let rules = "SecRule STATUS_LINE \"@unconditionalMatch\" \"id:1,phase:3,pass,t:none\"";
    let request = Request::get("/").answered(404, "text/plain", "");
    check(rules, request, &["1 STATUS_LINE=404 Not Found"], &["1 STATUS_LINE=404"]);
}

#[test]
fn statuses_of_later_links() {
    let both = |setup: &str, links: &[&str], modsecurity2: u16, modsecurity3: u16| {
        let actions = links.join(",chain\"\nSecRule ARGS \"@rx .\" \"");
        let rules = format!("{setup}\nSecRule ARGS \"@rx .\" \"id:1,phase:1,{actions}\"");
        for (mode, status) in [("2", modsecurity2), ("3", modsecurity3)] {
            let seen = run(mode, &rules, &Request::get("/?a=1"));
            assert_eq!(seen.last(), Some(&format!("{status} by 1 in 1")), "{mode}: {rules}");
        }
    };
    both("", &["deny", "status:437"], 403, 437);
    both("", &["deny", "status:437", "status:438"], 403, 437);
    both("", &["deny,status:411", "status:437"], 411, 411);
    both("SecDefaultAction \"phase:1,log,deny,status:410\"", &["block", "status:437"], 410, 410);
    for (status, modsecurity2, modsecurity3) in
        [(300, 302, 302), (301, 301, 301), (304, 302, 304), (306, 302, 306), (307, 307, 307), (308, 302, 302)]
    {
        both("", &[&format!("redirect:http://h/,status:{status}")], modsecurity2, modsecurity3);
    }
}

#[test]
fn disruptive_actions_of_a_default() {
    let rules = |own: &str| {
        format!("SecDefaultAction \"phase:1,log,deny\"\nSecRule ARGS \"@rx .\" \"id:1,phase:1,t:none{own}\"")
    };
    let denied = ["1 ARGS:a=1", "403 by 1 in 1"];
    let request = Request::get("/?a=1");
    check(&rules(""), request.clone(), &denied, &denied[..1]);
    check(&rules(",block"), request.clone(), &denied, &denied);
    check(&rules(",pass"), request.clone(), &denied[..1], &denied[..1]);
    let updated = format!("{}\nSecRuleUpdateActionById 1 \"block\"", rules(""));
    check(&updated, request, &denied, &denied);
}

#[test]
fn levels_of_json() {
    let limit = format!("SecRequestBodyJsonDepthLimit 2\n{JSON}");
    let body = |text: &str| Request::post("/", "application/json", text);
    check_body(
        &limit,
        "REQBODY_ERROR",
        body(r#"{"a":{"b":[1]}}"#),
        &["1 REQBODY_ERROR=0"],
        &["1 REQBODY_ERROR=1"],
    );
    check_body(&limit, "REQBODY_ERROR", body("[[1]]"), &["1 REQBODY_ERROR=0"], &["1 REQBODY_ERROR=0"]);
    check_body(&limit, "REQBODY_ERROR", body("[[[]]]"), &["1 REQBODY_ERROR=1"], &["1 REQBODY_ERROR=1"]);
}

/// Second readings, too, are the same in both evaluators.
#[test]
fn second_readings() {
    let on = |targets: &str| format!("SecSecondReadings On\n{}", show(targets));
    let both = |rules: &str, request: Request, want: &[&str]| check(rules, request, want, want);
    both(&on("ARGS"), Request::get("/?a=%c0%bcb"), &["1 ARGS:a=\u{fffd}\u{fffd}b", "1 ARGS:a=<b"]);
    both(
        &on("ARGS|ARGS_NAMES"),
        Request::get("/?a=s%el"),
        &["1 ARGS:a=s%el", "1 ARGS:a=sel", "1 ARGS_NAMES:a=a"],
    );
    both(&on("ARGS_GET"), Request::get("/x;a=1/y"), &["1 ARGS_GET:a=1"]);
    both(&on("&ARGS|ARGS_COMBINED_SIZE"), Request::get("/?a=s%el"), &["1 &ARGS=1", "1 ARGS_COMBINED_SIZE=5"]);
    both(&on("ARGS_POST"), Request::post("/", "text/plain", "a=%3C"), &["1 ARGS_POST:a=<"]);
    let moved = Request::get("/").header("X-Original-URL", "/?a=1");
    both(&on("ARGS"), moved.clone(), &["1 ARGS:a=1"]);
    both(&show("ARGS"), moved, &[]);
    both(&show("ARGS"), Request::get("/?a=s%el"), &["1 ARGS:a=s%el"]);
}

#[test]
fn ambiguities_are_a_variable() {
    let form = |kind: &str| Request::post("/", &format!("application/x-www-form-urlencoded{kind}"), "a=1");
    let rule = show("REQBODY_AMBIGUITY");
    let both = |request: Request, want: &str| check(&rule, request, &[want], &[want]);
    both(form(""), "1 REQBODY_AMBIGUITY=");
    both(form("; charset=shift_jis"), "1 REQBODY_AMBIGUITY=");
    both(form("; charset=ebcdic-int"), "1 REQBODY_AMBIGUITY=charset");
    both(form("; charset=ibm037"), "1 REQBODY_AMBIGUITY=charset");
    let part = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: base64\r\n\
                Content-Type: multipart/mixed; charset=utf-7\r\n\r\nMQ==\r\n--B--\r\n";
    both(
        Request::post("/", "multipart/form-data; boundary=B", part),
        "1 REQBODY_AMBIGUITY=transfer_encoding part_charset nested_multipart",
    );
}
