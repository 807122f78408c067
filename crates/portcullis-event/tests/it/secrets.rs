//! A secret, wherever in a request it stands, is in no output.

use std::net::IpAddr;
use std::sync::Arc;

use data_encoding::BASE64;
use portcullis_event::{
    AccessRecord, Action, Event, Finding, Header, KeptRequest, RawRequest, Redactor, RuleEffect, RuleInfo,
    RuleMatch, Timestamp, modsecurity_lines,
};
use portcullis_types::{Class, Phase, Place, RuleId, Severity, Span};
use proptest::prelude::*;

/// Names of values that are secrets, and of those that are if they look like some.
const ARGS: &[&str] = &[
    "password",
    "user[password]",
    "access_token",
    "client_secret",
    "api_key",
    "X-Amz-Signature",
    "sig",
    "code",
    "session",
    "key",
    "hash",
    "state",
    "nonce",
    "ticket",
    "user.reset_code",
    "csrf_token",
    "_csrf",
    "hmac",
    "auth_id",
];
const HEADERS: &[&str] = &[
    "Authorization",
    "Proxy-Authorization",
    "X-Api-Key",
    "X-Auth-User",
    "X-Signature",
    "X-Session-Id",
    "Set-Cookie",
];
const COOKIES: &[&str] = &["PHPSESSID", "session", "auth", "key", "remember_me", "code"];

/// A request with one secret in it.
#[derive(Clone, Debug, Default)]
struct Sent {
    target: String,
    fields: Vec<(String, String)>,
    body: String,
    /// The value as rules see it.
    matched: Option<(String, String)>,
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// Puts the secret into the place with this number.
fn put(place: usize, name: usize, secret: &str) -> Sent {
    let (arg, header) = (ARGS[name % ARGS.len()], HEADERS[name % HEADERS.len()]);
    let cookie = COOKIES[name % COOKIES.len()];
    let field = |name: &str, value: String| vec![(name.to_owned(), value)];
    let plain = Sent { target: "/a?q=1".to_owned(), ..Sent::default() };
    let url = format!("https://bob:{secret}@host.example/x");
    match place {
        0 => Sent {
            target: format!("/a?x=1&{arg}={secret}&y=2"),
            matched: Some((format!("ARGS:{arg}"), secret.to_owned())),
            ..plain
        },
        1 => Sent { target: format!("/a?{}={}", percent(arg), percent(secret)), ..plain },
        2 => Sent { body: format!("x=1&{arg}={secret}&y=2"), ..plain },
        3 => Sent { body: format!("{{\"a\": 1, \"{arg}\": \"{secret}\", \"b\": 2}}"), ..plain },
        4 => Sent { body: format!("<r><{0}>{secret}</{0}></r>", arg.replace(['[', ']'], "_")), ..plain },
        5 => Sent {
            body: format!(
                "--b\r\nContent-Disposition: form-data; name=\"{arg}\"\r\n\r\n{secret}\r\n--b--\r\n"
            ),
            ..plain
        },
        6 => Sent {
            fields: field(header, secret.to_owned()),
            matched: Some((format!("REQUEST_HEADERS:{header}"), secret.to_owned())),
            ..plain
        },
        7 => Sent {
            fields: field(
                "Authorization",
                format!("Basic {}", BASE64.encode(format!("bob:{secret}").as_bytes())),
            ),
            ..plain
        },
        8 => Sent {
            fields: field("Cookie", format!("a=1; {cookie}={secret}; b=2")),
            matched: Some((format!("REQUEST_COOKIES:{cookie}"), secret.to_owned())),
            ..plain
        },
        9 => Sent { fields: field("Referer", format!("https://host.example/a?{arg}={secret}&y=2")), ..plain },
        10 => Sent { fields: field("Referer", url), ..plain },
        11 => Sent { target: url, ..plain },
        12 => Sent { target: format!("/go?to={url}"), matched: Some(("ARGS:to".to_owned(), url)), ..plain },
        13 => Sent { target: format!("/go?to={}", percent(&url)), ..plain },
        14 => Sent { target: format!("/go?to={}", percent(&percent(&url))), ..plain },
        15 => Sent { body: format!("{{\"to\": \"{}\"}}", url.replace('/', "\\/")), ..plain },
        16 => Sent { fields: field("User-Agent", format!("bot/1 {url}")), ..plain },
        _ => Sent { fields: field("X-Forwarded-Uri", format!("/a?{arg}={secret}")), ..plain },
    }
}
const PLACES: usize = 18;

fn rule() -> Arc<RuleInfo> {
    Arc::new(RuleInfo {
        rule_id: RuleId(942_100),
        phase: Phase::RequestBody,
        severity: Some(Severity::Critical),
        operator: "rx".into(),
        argument: ".".into(),
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

/// All that the program writes of such a request.
fn outputs(sent: &Sent) -> Vec<(&'static str, Vec<u8>)> {
    let redactor = Redactor::default();
    let line = format!("POST {} HTTP/1.1", sent.target);
    let fields = sent.fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    let request = RawRequest { line: line.as_bytes(), fields, body: sent.body.as_bytes(), omitted: 0 };
    let kept = KeptRequest::new(&request, &[&redactor], &[]);
    let mut event = Event::new("r1", Timestamp::default());
    event.request.target.clone_from(&sent.target);
    event.request.headers =
        sent.fields.iter().map(|(name, value)| Header { name: name.clone(), value: value.clone() }).collect();
    let whole = [
        ("REQUEST_LINE".to_owned(), line.clone()),
        ("REQUEST_URI".to_owned(), sent.target.clone()),
        ("REQUEST_BODY".to_owned(), sent.body.clone()),
    ];
    let of_fields =
        sent.fields.iter().map(|(name, value)| (format!("REQUEST_HEADERS:{name}"), value.clone()));
    for (target, value) in whole.into_iter().chain(of_fields).chain(sent.matched.clone()) {
        event.push_match(RuleMatch {
            rule: rule(),
            message: format!("found {value}"),
            data: format!("Matched Data: {value} found within {target}: {value}"),
            target,
            value,
            span: Some(Span::new(0, 1)),
            points: 5,
            effect: RuleEffect::None,
        });
    }
    let (field, value) = sent.fields.first().cloned().unwrap_or_default();
    for (place, name, evidence) in [
        (Place::RawBody, "", &sent.body),
        (Place::QueryString, "", &sent.target),
        (Place::Header, &*field, &value),
    ] {
        event.push_finding(Finding {
            class: Class::Sqli,
            kind: "sqli.union".into(),
            place,
            name: name.to_owned(),
            decoded: Vec::new(),
            span: None,
            evidence: evidence.clone(),
            count: 1,
            below: false,
            mentioned: false,
            suppressed_by: None,
            points: 1.0,
            reason: "".into(),
            reference: "".into(),
        });
    }
    redactor.redact(&mut event);
    let of = |name: &str| sent.fields.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_bytes());
    let record = AccessRecord {
        time: Timestamp::default(),
        request_id: "r1",
        client: IpAddr::from([192, 0, 2, 1]),
        country: None,
        asn: None,
        site: "shop",
        route: "/",
        method: b"POST",
        host: b"shop.example",
        target: sent.target.as_bytes(),
        protocol: b"HTTP/1.1",
        status: Some(403),
        request_body_bytes: 1,
        body_bytes: 1,
        duration_us: 1,
        upstream: None,
        trace_id: None,
        verdict: Action::Deny,
        control: None,
        referer: of("Referer"),
        user_agent: of("User-Agent"),
    };
    let (mut cef, mut ocsf) = (Vec::new(), Vec::new());
    event.write_cef_line("1", &mut cef);
    event.write_ocsf_line("1", &mut ocsf);
    vec![
        ("event", event.json_line().into_bytes()),
        ("CEF", cef),
        ("OCSF", ocsf),
        ("error log", modsecurity_lines(&event).into_bytes()),
        ("access log", record.json_line(&redactor)),
        ("access log, combined", record.combined_line(&redactor)),
        ("kept request", kept.bytes),
    ]
}

/// The name of an output in which the secret is, plain or encoded.
fn leak(sent: &Sent, secret: &str) -> Option<(&'static str, String)> {
    let forms = [
        secret.to_owned(),
        percent(secret),
        percent(&percent(secret)),
        BASE64.encode(format!("bob:{secret}").as_bytes()),
    ];
    outputs(sent).into_iter().find_map(|(name, bytes)| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let lower = text.to_lowercase();
        forms.iter().any(|form| lower.contains(&form.to_lowercase())).then_some((name, text))
    })
}

proptest! {
    #[test]
    fn a_secret_is_in_no_output(
        place in 0..PLACES,
        name in 0..40_usize,
        secret in "[a-z][A-Z][0-9][a-zA-Z0-9]{13,40}",
    ) {
        let sent = put(place, name, &secret);
        let found = leak(&sent, &secret);
        prop_assert!(found.is_none(), "{sent:?}: {found:?}");
    }
}

/// Every name with every place once.
#[test]
fn every_name_in_every_place() {
    let secret = "aZ4kQm7Tx2Lw9RbE5u";
    for place in 0..PLACES {
        for name in 0..ARGS.len().max(HEADERS.len()) {
            let sent = put(place, name, secret);
            assert_eq!(leak(&sent, secret), None, "{sent:?}");
        }
    }
}

/// Attacks under names that may stand for secrets are shown.
#[test]
fn attacks_are_shown() {
    for attack in ["1'+union+select+1,2", "../../etc/passwd", "<script>alert(1)</script>", "${jndi:ldap://x}"]
    {
        let sent = Sent { target: format!("/a?code={attack}&key={attack}"), ..Sent::default() };
        let outputs = outputs(&sent);
        let event = String::from_utf8_lossy(&outputs[0].1).into_owned();
        assert!(event.contains(attack), "{event}");
    }
}
