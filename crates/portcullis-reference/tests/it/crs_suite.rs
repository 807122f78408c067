//! The CRS regression suite over reference and engine, without the proxy. It takes about a minute.
//!
//! For each stage both must give the same matches in the same order, the same `TX` and the same interruption,
//! and the reference must satisfy the test: judged is which rules log. Statuses and the texts of log lines
//! are the proxy's business. `ONLY=9411 cargo test ...` runs the tests whose names begin so.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::support::Pair;
use portcullis_http::h1::{BodyDecoder, Compat, Limits, Parsed, RequestHead, RequestParser};
use portcullis_reference::{Request, Response};
use portcullis_seclang::{DiskFiles, Root};
use portcullis_testkit::ftw::{self, Stage};
use portcullis_testkit::upstream::Server;
use portcullis_testkit::upstream::reflector::Reflector;
use portcullis_testkit::{client, crs};

/// The settings of the suite's own containers, and the rules that choose body processors.
const SETUP: &str = r#"
SecRuleEngine DetectionOnly
SecRequestBodyAccess On
SecResponseBodyAccess On
SecResponseBodyMimeType text/plain text/html text/xml application/json
SecRule REQUEST_HEADERS:Content-Type "@rx ^(?:application(?:/soap\+|/)|text/)xml" \
    "id:1,phase:1,t:none,t:lowercase,pass,nolog,ctl:requestBodyProcessor=XML"
SecRule REQUEST_HEADERS:Content-Type "@rx ^application/(?:[a-z0-9.-]+[+])?json" \
    "id:2,phase:1,t:none,t:lowercase,pass,nolog,ctl:requestBodyProcessor=JSON"
SecDefaultAction "phase:1,log,auditlog,pass"
SecDefaultAction "phase:2,log,auditlog,pass"
SecAction "id:3,phase:1,pass,t:none,nolog,\
    setvar:tx.crs_setup_version=4250,\
    setvar:tx.blocking_paranoia_level=4,setvar:tx.detection_paranoia_level=4,\
    setvar:tx.crs_validate_utf8_encoding=1,setvar:tx.max_num_args=255,setvar:tx.arg_name_length=100,\
    setvar:tx.arg_length=400,setvar:tx.total_arg_length=6400,\
    setvar:tx.max_file_size=64100,setvar:tx.combined_file_sizes=65535"
"#;

#[test]
fn the_suite_sees_what_it_expects() {
    let (rules, tests) = match (crs::rules(), crs::tests()) {
        (Ok(rules), Ok(tests)) => (rules, tests),
        (Err(missing), _) | (_, Err(missing)) if std::env::var_os("CI").is_some() => panic!("{missing}"),
        (Err(missing), _) | (_, Err(missing)) => return eprintln!("skipped: {missing}"),
    };
    let pair = load(&rules);
    let suite = ftw::read_folder(&tests).unwrap();
    let reflector = Reflector::default();
    let server = Server::start("127.0.0.1:0", move |request| reflector.answer(request)).unwrap();
    let only = std::env::var("ONLY").ok();
    let (mut passed, mut misses) = (0, Vec::new());
    for (_, test) in
        suite.tests().filter(|(_, test)| only.as_ref().is_none_or(|only| test.name().starts_with(only)))
    {
        let mut reasons = Vec::new();
        for stage in &test.stages {
            reasons.extend(judge(&pair, stage, &server));
        }
        if reasons.is_empty() {
            passed += 1;
        } else {
            misses.push(format!("{}: {}", test.name(), reasons.join("; ")));
        }
    }
    eprintln!("{}\n{passed} passed, {} missed", misses.join("\n"), misses.len());
    assert!(only.is_some() || passed + misses.len() > 4000, "the suite is not all there");
    assert!(misses.is_empty(), "{} misses", misses.len());
}

fn load(folder: &Path) -> Pair {
    let setup = Root::Text { name: "setup.conf".into(), text: SETUP.into() };
    Pair::load(&[setup, Root::File(folder.join("rules/*.conf"))], &DiskFiles)
        .unwrap_or_else(|problem| panic!("{problem}"))
}

fn judge(pair: &Pair, stage: &Stage, server: &Server) -> Vec<String> {
    let wire = stage.input.wire();
    let mut request = read(&wire);
    request.response = answer(&wire, server);
    let (outcome, difference) = pair.compare(&request);
    let ids: BTreeSet<u32> = outcome.matches.iter().filter(|m| m.logged).map(|m| m.rule.0).collect();
    let output = &stage.output;
    let mut reasons = Vec::new();
    reasons.extend(difference);
    let missed: Vec<_> = output.expect_ids.iter().filter(|id| !ids.contains(id)).collect();
    if !missed.is_empty() {
        reasons.push(format!("expected {missed:?}, got {ids:?}"));
    }
    let extra: Vec<_> = output.no_expect_ids.iter().filter(|id| ids.contains(id)).collect();
    if !extra.is_empty() {
        reasons.push(format!("did not expect {extra:?}, got {ids:?}"));
    }
    reasons
}

/// A request from its bytes, read as Apache reads them. One that is refused has no body.
fn read(wire: &[u8]) -> Request {
    let mut request = Request::get("/");
    request.headers.clear();
    request.client = [127, 0, 0, 2].into();
    let mut parser = RequestParser::new(Limits::default(), Compat::Apache);
    let parsed = match parser.parse(wire) {
        Parsed::NeedMore => parser.end(wire),
        parsed => Some(parsed),
    };
    let (head, is_whole) = match parsed {
        Some(Parsed::Head(head)) => (head, true),
        Some(Parsed::Refused { partial, .. }) => (partial, false),
        Some(Parsed::NeedMore) | None => return request,
    };
    request.line = head.line().into();
    request.method = head.method().into();
    request.uri = head.target().into();
    request.protocol = head.version_bytes().into();
    request.headers = head.fields().map(|(name, value)| (name.into(), value.into())).collect();
    if is_whole && head.framing() != portcullis_http::h1::BodyFraming::None {
        request.body = Some(body(&head, &wire[head.received_len()..]).into());
    }
    request
}

fn body(head: &RequestHead, mut wire: &[u8]) -> Vec<u8> {
    let mut decoder = BodyDecoder::request(head.framing(), &Limits::default());
    let mut out = Vec::new();
    while let Ok(step) = decoder.decode(wire) {
        out.extend_from_slice(step.data);
        wire = &wire[step.consumed..];
        if step.done || step.consumed == 0 {
            break;
        }
    }
    out
}

/// Returns the answer of the suite's back end; `None` if it cannot read the request.
fn answer(wire: &[u8], server: &Server) -> Option<Response> {
    let exchange = client::exchange(server.address(), None, wire, Duration::from_secs(5)).ok()?;
    let head_length = exchange.raw.len() - exchange.after_head().len();
    let mut lines = exchange.raw[..head_length].split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end);
    lines.next()?;
    let headers = lines.filter_map(|line| {
        let colon = line.iter().position(|&b| b == b':')?;
        Some((line[..colon].into(), line[colon + 1..].trim_ascii().into()))
    });
    let chunked = exchange.header("Transfer-Encoding").is_some();
    let body = if chunked { unchunk(exchange.after_head()) } else { exchange.after_head().to_vec() };
    Some(Response {
        status: exchange.status,
        protocol: "HTTP/1.1".into(),
        headers: headers.collect(),
        body: body.into(),
    })
}

fn unchunk(mut wire: &[u8]) -> Vec<u8> {
    let framing = portcullis_http::h1::BodyFraming::Chunked;
    let mut decoder = BodyDecoder::response(framing, &Limits::default());
    let mut out = Vec::new();
    while let Ok(step) = decoder.decode(wire) {
        out.extend_from_slice(step.data);
        wire = &wire[step.consumed..];
        if step.done || step.consumed == 0 {
            break;
        }
    }
    out
}
