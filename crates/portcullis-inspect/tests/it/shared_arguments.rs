//! The semantic detector takes the arguments of a query or a body from the engine where it would find the
//! same itself. It finds the same.

use std::sync::{Arc, LazyLock};

use crate::common::{DETECTORS, begin, request_head, semantic_inspector};
use portcullis_event::{limits, text};
use portcullis_inspect::{Inspector, Outcome, SemanticPolicy, Step};
use portcullis_semantic::Analysis;

const RULES: &str = "SecRuleEngine DetectionOnly
SecRequestBodyAccess On
SecSecondReadings On
SecRule REQUEST_HEADERS:Content-Type \"@contains json\" \"id:1,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON\"
";

static INSPECTOR: LazyLock<Arc<Inspector>> =
    LazyLock::new(|| semantic_inspector(RULES, SemanticPolicy::default()));

/// Returns the findings of an inspection in the body, and whether the engine's arguments were enough for it.
fn inspected(content_type: &str, body: &[u8]) -> (Vec<String>, bool) {
    let mut inspection = begin(&INSPECTOR);
    let length = body.len();
    let head = format!(
        "POST /?page=1 HTTP/1.1\r\nHost: a\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
    );
    assert_eq!(inspection.request_head(&request_head(&head), None), Step::Continue);
    inspection.request_body(body);
    assert_eq!(inspection.request_end(false), Step::Continue);
    let is_shared = inspection.transaction().body_arguments().is_some();
    let values = inspection.semantic_values().unwrap_or_default();
    drop(inspection.finish(&Outcome::default()));
    let found = values.iter().flat_map(|value| &value.findings).map(|found| {
        let place = (found.place, &found.name);
        format!("{} {place:?} {:?} {:?} {}", found.kind, found.span, found.evidence, found.mentioned)
    });
    (sorted(found), is_shared)
}

/// Returns the findings of the detectors alone.
fn analysed(content_type: &str, body: &[u8]) -> Vec<String> {
    let mut analysis = Analysis::new();
    analysis.request_body(&DETECTORS, content_type.as_bytes(), body);
    let found = analysis.findings().iter().map(|found| {
        let value = &analysis.values()[found.value as usize];
        let place = (value.place, text(&value.name, limits::TARGET_NAME_BYTES_MAX));
        let evidence = text(&found.evidence, limits::VALUE_BYTES_MAX);
        format!("{} {place:?} {:?} {evidence:?} {}", found.kind.id, Some(found.span), found.mentioned)
    });
    sorted(found)
}

/// Returns the findings of an inspection in the query, and whether the engine's arguments were enough for it:
/// under rules that read none, where the detector takes the query apart, and under others.
fn in_query(query: &str) -> [(Vec<String>, bool); 2] {
    let head = format!("GET /?{query} HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = request_head(&head);
    [&*INSPECTOR, &*READS_QUERY].map(|inspector| {
        let mut inspection = begin(inspector);
        assert_eq!(inspection.request_head(&head, None), Step::Continue);
        let is_shared = inspection.transaction().query_arguments().is_some();
        let values = inspection.semantic_values().unwrap_or_default();
        drop(inspection.finish(&Outcome::default()));
        let found = values.iter().flat_map(|value| &value.findings).map(|found| {
            let place = (found.place, &found.name);
            format!("{} {place:?} {:?} {:?} {}", found.kind, found.span, found.evidence, found.mentioned)
        });
        (sorted(found), is_shared)
    })
}

static READS_QUERY: LazyLock<Arc<Inspector>> = LazyLock::new(|| {
    let rules = format!("{RULES}SecRule ARGS_GET:none \"@rx .\" \"id:2,phase:1,pass,nolog\"\n");
    semantic_inspector(&rules, SemanticPolicy::default())
});

fn sorted(found: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = found.collect();
    all.sort_unstable();
    all
}

#[track_caller]
fn check(content_type: &str, body: &str, want_shared: bool) {
    let (found, is_shared) = inspected(content_type, body.as_bytes());
    assert_eq!(found, analysed(content_type, body.as_bytes()), "{content_type}: {body}");
    assert_eq!(is_shared, want_shared, "{content_type}: {body}");
}

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

#[test]
fn forms_and_json_are_taken_apart_once() {
    check(FORM, "a=1&id=1%27+union+select+1,2,3--+-&b=%3Cscript%3Ealert(1)%3C/script%3E", true);
    check(FORM, "a=1' or 1=1 -- &name or 1=1 --=x&x", true);
    check(
        JSON,
        r#"{"a":1,"items":[{"id":"1' or 1=1 -- "},"../../etc/passwd"],"__proto__":{"x":"\u003cscript\u003e"}}"#,
        true,
    );
    check(JSON, r#"{"query":"{ user(id: \"1' or 1=1 -- \") { name } }"}"#, true);
    check(JSON, "{\"a\":\"x\"}\n{\"b\":\"../../etc/passwd\"}", true);
    check("application/vnd.api+json; charset=utf-8", r#"["id; cat /etc/passwd", {"$where":"1"}]"#, true);
}

#[test]
fn what_has_two_readings_or_none_is_taken_apart_by_each() {
    // A percent sign that is encoded three times, full-width signs, a character set that hides quotes.
    check(FORM, "a=%252527+or+1%25253D1", false);
    check(FORM, "a=\u{ff07} or 1=1", false);
    check("application/x-www-form-urlencoded; charset=utf-7", "a=+ADw-script+AD4-", false);
    // Broken, cut off, half a character, something else than it says.
    check(JSON, r#"{"a":"1' or 1=1 -- ""#, false);
    check(JSON, r#"{"a":"\ud800' or 1=1 -- "}"#, false);
    check(FORM, r#"{"a":"1' or 1=1 -- "}"#, false);
    check("text/xml", "<a>1' or 1=1 -- </a>", false);
    check("text/plain", "a=1' or 1=1 -- ", false);
    check(
        "multipart/form-data; boundary=x",
        "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1' or 1=1 -- \r\n--x--\r\n",
        false,
    );
    // More than the limit on arguments, deeper than the limit on depth.
    check(FORM, &"a=1&".repeat(1_200), false);
    check(JSON, &format!("{}1{}", "[".repeat(600), "]".repeat(600)), false);
}

#[test]
fn what_the_detectors_take_for_something_else_they_take_apart_themselves() {
    // The engine is told that it is JSON by a rule; to the detectors the type says nothing.
    check("text/x-json-like", r#"{"a":"1' or 1=1 -- "}"#, true);
}

#[test]
fn queries_are_taken_apart_once() {
    let shared = [
        "a=1&id=1%27+union+select+1,2,3--+-&b=%3Cscript%3Ealert(1)%3C/script%3E",
        "a=1%27%20or%201=1%20--%20&name%20or%201=1%20--=x&x&&=&../../etc/passwd",
        "file=../../../etc/passwd&file=x",
    ];
    // A percent sign that is encoded three times, a stray one, a character set that hides quotes.
    let others = [
        "a=%252527+or+1%25253D1",
        "id=1%27+un%ion+se%lect+1,2,3+--+-",
        "_charset_=utf-7&a=%2BADw-script%2BAD4-alert(1)%2BADw-/script%2BAD4-",
    ];
    for (query, want_shared) in
        shared.map(|query| (query, true)).into_iter().chain(others.map(|query| (query, false)))
    {
        let [(alone, of_none), (together, is_shared)] = in_query(query);
        assert!(!alone.is_empty(), "{query}");
        assert_eq!(together, alone, "{query}");
        assert_eq!((of_none, is_shared), (false, want_shared), "{query}");
    }
    // More than the limit on arguments.
    let [_, (_, is_shared)] = in_query(&"a=1&".repeat(1_200));
    assert!(!is_shared);
}
