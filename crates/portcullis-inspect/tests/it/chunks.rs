//! Findings depend neither on where a body is cut as it arrives, nor on its content coding.

use std::io::Write as _;
use std::sync::{Arc, LazyLock};

use crate::common::{begin, request_head, semantic_inspector};
use portcullis_http::h1::{Limits, ResponseParser};
use portcullis_inspect::{BodyPlan, Inspector, Outcome, SemanticPolicy, Step};

static INSPECTOR: LazyLock<Arc<Inspector>> = LazyLock::new(|| {
    let rules = "SecRuleEngine DetectionOnly\nSecRequestBodyAccess On\n";
    semantic_inspector(rules, SemanticPolicy::default())
});

/// Kinds, places, spans and evidence of what is found where the bodies come in these pieces.
fn found(head: &str, request: &[Vec<u8>], response: &str, answer: &[Vec<u8>]) -> Vec<String> {
    let mut inspection = begin(&INSPECTOR);
    assert_eq!(inspection.request_head(&request_head(head), None), Step::Continue);
    for piece in request {
        inspection.request_body(piece);
    }
    assert_eq!(inspection.request_end(false), Step::Continue);
    let parsed = ResponseParser::new(Limits::default()).parse(response.as_bytes());
    let head = parsed.ok().flatten().expect("a head of a response");
    assert_eq!(inspection.response_head(&head), Step::Continue);
    if inspection.response_body_plan() != BodyPlan::Skip {
        for piece in answer {
            inspection.response_body(piece);
        }
        assert_eq!(inspection.response_end(false), Step::Continue);
    }
    let values = inspection.semantic_values().unwrap_or_default();
    drop(inspection.finish(&Outcome::default()));
    values
        .iter()
        .flat_map(|value| &value.findings)
        .map(|found| format!("{} {} {:?} {:?}", found.kind, found.place.name(), found.span, found.evidence))
        .collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn check(media_type: &str, body: &str, answer: &str) {
    let post = |length: usize, coding: &str| {
        format!(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: {media_type}\r\n{coding}Content-Length: {length}\r\n\r\n"
        )
    };
    let response = |coding: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{coding}\r\n");
    let coding = "Content-Encoding: gzip\r\n";
    let (packed, packed_answer) = (gzip(body.as_bytes()), gzip(answer.as_bytes()));
    let whole = found(&post(body.len(), ""), &[body.into()], &response(""), &[answer.into()]);
    assert!(whole.iter().any(|found| !found.contains("response-body")), "{body}: {whole:?}");
    assert!(whole.iter().any(|found| found.contains("response-body")), "{answer}: {whole:?}");
    for size in [1, 2, 3, 5, 7, 16, 61, 1_000] {
        let cut = |bytes: &[u8]| bytes.chunks(size).map(<[u8]>::to_vec).collect::<Vec<_>>();
        let (request, answered) = (cut(body.as_bytes()), cut(answer.as_bytes()));
        assert_eq!(found(&post(body.len(), ""), &request, &response(""), &answered), whole, "{size}: {body}");
        let (request, answered) = (cut(&packed), cut(&packed_answer));
        let coded = found(&post(packed.len(), coding), &request, &response(coding), &answered);
        assert_eq!(coded, whole, "packed, {size}: {body}");
    }
}

#[test]
fn where_bodies_are_cut_does_not_matter() {
    let attack = "1' UNION SELECT name, password FROM users-- -";
    let error =
        "<p>You have an error in your SQL syntax; check the manual that corresponds to your MySQL</p>";
    let users = "<pre>root:x:0:0:root:/root:/bin/bash\nbin:x:1:1:bin:/bin:/sbin/nologin\n</pre>";
    let encoded: String = attack.bytes().map(|b| format!("%{b:02x}")).collect();
    check("application/x-www-form-urlencoded", &format!("a=1&id={encoded}&b=2"), error);
    check("application/json", &format!("{{\"filter\":[{{\"name\":\"{attack}\"}}],\"n\":1}}"), users);
    check(
        "multipart/form-data; boundary=b",
        &format!("--b\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\n{attack}\r\n--b--\r\n"),
        error,
    );
    check("application/xml", "<a><b>x</b><c><![CDATA[1' OR '1'='1' -- -]]></c></a>", users);
    check("text/plain", "<script>alert(document.cookie)</script>", error);
}
