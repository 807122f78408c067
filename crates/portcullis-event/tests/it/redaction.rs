//! Tests of the texts that a redacted event must not contain.

use std::sync::Arc;

use portcullis_event::{
    Event, Header, Redactor, RedactorNames, RuleEffect, RuleInfo, RuleMatch, Timestamp, limits, text,
};
use portcullis_types::{Phase, RuleId, Span};

fn rule() -> Arc<RuleInfo> {
    Arc::new(RuleInfo {
        rule_id: RuleId(942100),
        phase: Phase::RequestBody,
        severity: None,
        operator: "detectSQLi".into(),
        argument: "".into(),
        transformations: Box::new([]),
        tags: Box::new([]),
        ver: None,
        rev: None,
        maturity: None,
        accuracy: None,
        file: "rules.conf".into(),
        line: 1,
    })
}

fn event(target: &str, matched: &str, value: &str, data: &str) -> Event {
    let mut event = Event::new("r1", Timestamp::default());
    event.request.target = target.to_owned();
    event.push_match(RuleMatch {
        rule: rule(),
        message: "found".to_owned(),
        data: data.to_owned(),
        target: matched.to_owned(),
        value: value.to_owned(),
        span: Some(Span::new(0, 1)),
        points: 5,
        effect: RuleEffect::None,
    });
    event
}

/// A text of a match on `REQUEST_BODY`, before and after.
fn check_text(before: &str, after: &str) {
    let mut e = event("/", "REQUEST_BODY", before, "");
    Redactor::default().redact(&mut e);
    assert_eq!(e.matches[0].value, after);
}

#[test]
fn values_behind_secret_names_go() {
    check_text("user=bob&password=hunter2&x=1", "user=bob&password=[redacted]&x=1");
    check_text("user[password]=hunter2", "user[password]=[redacted]");
    check_text("user%5Bpassword%5D=hunter2&y=2", "user%5Bpassword%5D=[redacted]&y=2");
    check_text("password=two words&y=2", "password=[redacted]&y=2");
    check_text("GET /?token=abcd HTTP/1.1", "GET /?token=[redacted] HTTP/1.1");
    check_text(r#"{"a":1,"passwd" : "q\"x","b":2}"#, r#"{"a":1,"passwd" : "[redacted]","b":2}"#);
    check_text(r#"{"pin":1234,"b":2}"#, r#"{"pin":[redacted],"b":2}"#);
    check_text(r#"{"secret":{"k":"v"}}"#, r#"{"secret":[redacted]"#);
    check_text(
        "<a><s:password x='1'>hunter2</s:password></a>",
        "<a><s:password x='1'>[redacted]</s:password></a>",
    );
    check_text(
        "GET / HTTP/1.1\r\nAuthorization: Basic eHg=\r\nHost: a",
        "GET / HTTP/1.1\r\nAuthorization: [redacted]\nHost: a",
    );
    check_text(
        "--b\r\nContent-Disposition: form-data; name=\"pwd\"\r\n\r\nhunter2\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=\"pwd\"[redacted]\n--b--",
    );
    check_text("password=é&x", "password=[redacted]&x");
}

#[test]
fn other_values_stay() {
    for text in [
        "q=password",
        "a=1&b=2",
        "password=",
        "compass=north",
        "pinned=1",
        "' or 1=1 -- ",
        "<script>alert(1)</script>",
        r#"{"a":"b: c"}"#,
        "Authorization",
        ":",
        "=",
        ">",
        "",
    ] {
        check_text(text, text);
    }
}

#[test]
fn a_match_on_a_secret_target_shows_neither_value_nor_logdata() {
    for target in [
        "ARGS:password",
        "ARGS_POST:json.user.password",
        "REQUEST_HEADERS:authorization",
        "REQUEST_COOKIES:PHPSESSID",
    ] {
        let mut e = event("/", target, "x' or 1=1", "Matched Data: or 1=1 found");
        Redactor::default().redact(&mut e);
        let m = &e.matches[0];
        assert_eq!(
            (m.value.as_str(), m.data.as_str(), m.span),
            ("[redacted]", "[redacted]", None),
            "{target}"
        );
        assert_eq!(m.target, target);
    }
}

#[test]
fn logdata_that_names_a_secret_target_goes_whole() {
    let mut e = event("/", "TX:1", "or", "Matched Data: or 1=1 found within ARGS:password: x' or 1=1");
    Redactor::default().redact(&mut e);
    assert_eq!(e.matches[0].data, "[redacted]");
}

#[test]
fn a_secret_of_the_query_is_found_again_elsewhere() {
    let mut e = event("/?token=s3cr%65t+x&q=1", "ARGS:q", "see S3CRET X here", "Matched Data: s3cret x");
    e.request.headers.push(Header { name: "Referer".into(), value: "http://a/?q=s3cr%65t+x".into() });
    Redactor::default().redact(&mut e);
    assert_eq!(e.request.target, "/?token=[redacted]&q=1");
    assert_eq!(e.matches[0].value, "see [redacted] here");
    assert_eq!(e.matches[0].data, "Matched Data: [redacted]");
    assert_eq!(e.request.headers[0].value, "http://a/?q=[redacted]");
}

#[test]
fn secrets_the_caller_knows_are_found_even_when_cut() {
    let long = text(b"xxxxhunter2hunter2", 4 + 9);
    let mut e = event("/", "REQUEST_BODY", &long, "");
    Redactor::default().redact_known(&mut e, &[b"hunter2hunter2"]);
    assert_eq!(e.matches[0].value, "xxxx[redacted]");
}

#[test]
fn headers_and_user_information() {
    let mut e = event("http://bob:pw@host/x?a=b@c", "ARGS:q", "v", "");
    for (name, value) in [
        ("AUTHORIZATION", "Bearer x"),
        ("Cookie", "a=1; sessionid=zzz; b=2"),
        ("X-Auth-Key", "k"),
        ("Accept", "*/*"),
    ] {
        e.request.headers.push(Header { name: name.into(), value: value.into() });
    }
    Redactor::default().redact(&mut e);
    let values: Vec<&str> = e.request.headers.iter().map(|h| h.value.as_str()).collect();
    assert_eq!(values, ["[redacted]", "a=1; sessionid=[redacted]; b=2", "[redacted]", "*/*"]);
    assert_eq!(e.request.target, "http://[redacted]@host/x?a=b@c");
}

#[test]
fn a_url_inside_the_query_is_not_an_authority() {
    let mut e = event("/go?to=http://h/?a=b@c", "ARGS:q", "v", "");
    Redactor::default().redact(&mut e);
    assert_eq!(e.request.target, "/go?to=http://h/?a=b@c");
}

#[test]
fn names_are_configurable() {
    let mut names = RedactorNames { args: vec![], headers: vec![], cookies: vec![], weak: vec![] };
    names.add_everywhere("kennwort");
    let mut e = event("/?KENNWORT=abc&password=x", "ARGS:q", "v", "");
    Redactor::new(&names).redact(&mut e);
    assert_eq!(e.request.target, "/?KENNWORT=[redacted]&password=x");
}

#[test]
fn time_is_linear_in_hostile_texts() {
    let started = std::time::Instant::now();
    for unit in ["password=", "ARGS:", "<password", "a=\"", "\":", "%", "=&", "x:\n"] {
        let hostile = unit.repeat(limits::REQUEST_TARGET_BYTES_MAX / unit.len());
        let mut e = event(&hostile, "REQUEST_BODY", &hostile, &hostile);
        for _ in 0..50 {
            let again = e.matches[0].clone();
            e.push_match(again);
        }
        Redactor::default().redact(&mut e);
    }
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}

/// A signed token: three parts of base64url, of which the first is an object.
const TOKEN: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1c2VyLTEifQ.c2lnbmF0dXJlLXNpZ25hdHVyZQ";

#[test]
fn tokens_go_whatever_they_are_called() {
    check_text(&format!("x={TOKEN}&y=2"), "x=[redacted]&y=2");
    check_text(&format!("/files/{TOKEN}/a?jwt={TOKEN}"), "/files/[redacted]/a?jwt=[redacted]");
    check_text(&format!("{{\"a\":\"{TOKEN}\",\"b\":1}}"), "{\"a\":\"[redacted]\",\"b\":1}");
    check_text(&format!("password={TOKEN}&z={TOKEN}"), "password=[redacted]&z=[redacted]");
    // Texts that only begin like one stay.
    for text in [
        "eyJ",
        "eyJhbGciOiJIUzI1NiJ9",
        "eyJhbGciOiJIUzI1NiJ9.short.x",
        "a.eyJhbGciOiJI.b",
        "eyJeyJeyJeyJeyJ.eyJ.eyJ",
    ] {
        check_text(text, text);
    }
}

#[test]
fn names_of_credentials_are_known_by_their_parts() {
    for name in [
        "jwt",
        "id_jwt",
        "JWT_assertion",
        "client_assertion",
        "accessKey",
        "aws_access_key_id",
        "private-key",
        "user_apikey",
        "bearer",
        "x_credentials",
        "credential",
        "SAMLResponse",
        "sig_signature",
    ] {
        check_text(&format!("{name}=abcd&y=2"), &format!("{name}=[redacted]&y=2"));
    }
    for name in ["q", "name", "key", "design", "assert", "signal", "author", "cred"] {
        let text = format!("{name}=abcd&y=2");
        check_text(&text, &text);
    }
}
