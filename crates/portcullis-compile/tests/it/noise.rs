//! That what `base64Decode` makes of a value is told to be noise changes no verdict: a transaction that keeps a trace looks at every form.

use std::sync::Arc;

use crate::common::{connection, plan};
use portcullis_decode::Transformation;
use portcullis_engine::{NoCollections, Plan, RequestLine, Scratch, Transaction};

const RULES: &str = r#"SecRuleEngine On
SecRequestBodyAccess On
SecRule ARGS|ARGS_NAMES "@rx (?:process|[Cc]onsole)\.(?:env|log)|require ?\(|_\$\$nd" "id:1,phase:2,pass,log,multiMatch,t:none,t:urlDecodeUni,t:jsDecode,t:removeWhitespace,t:base64Decode,t:urlDecodeUni,t:jsDecode,t:removeWhitespace"
SecRule ARGS "@rx (?i)while\s*\(\s*true" "id:2,phase:2,pass,log,multiMatch,t:none,t:jsDecode,t:base64Decode,t:urlDecodeUni,t:jsDecode,t:replaceComments"
SecRule ARGS "@pm subprocess childprocess" "id:3,phase:2,pass,log,t:base64Decode,t:removeNulls,t:lowercase"
"#;

/// What attackers put together, and what transformations of the rules take away or unescape.
const PIECES: &[&[u8]] = &[
    b"process",
    b".env",
    b"console",
    b".log",
    b"pro",
    b"cess",
    b"require",
    b"while",
    b"(",
    b"true",
    b"_$$nd",
    b"WHILE",
    b"child",
    b"sub",
    b" ",
    b"\t",
    b"+",
    b"\\",
    b"%",
    b"\0",
    b"\xa0",
    b"%65",
    b"\\x65",
    b"\\145",
    b"\\n",
    b"%u0065",
    b"65",
    b"n",
    b"e",
    b"/*",
    b"*/",
    b"/",
    b"*",
    b"%2",
    b"%5c",
    b"x65",
    b"qz",
    b"\x01\xfe",
    b"A",
    b"0",
];

/// Ids of the rules that match a form with this value, and the value's.
fn run(plan: &Arc<Plan>, value: &str, trace: bool) -> Vec<u32> {
    let mut transaction =
        Transaction::new(Arc::clone(plan), Arc::new(NoCollections), Scratch::default(), &connection());
    if trace {
        transaction.keep_trace(None);
    }
    let line = RequestLine { line: b"POST / HTTP/1.1", method: b"POST", target: b"/", protocol: b"HTTP/1.1" };
    let body = format!("a={value}&{value}=b");
    let length = body.len().to_string();
    let head: [(&[u8], &[u8]); 3] = [
        (b"Host", b"h"),
        (b"Content-Type", b"application/x-www-form-urlencoded"),
        (b"Content-Length", length.as_bytes()),
    ];
    let _ = transaction.request_head(line, head);
    transaction.request_body(body.as_bytes());
    let _ = transaction.request_end(false);
    transaction.finish();
    transaction.matches().iter().map(|found| plan.rule(found.rule).id.0).collect()
}

#[test]
fn as_every_form_is_looked_at() {
    let plan = plan(RULES);
    let mut state = 7u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let (mut matches, mut none) = (0, 0);
    for round in 0..4_000 {
        let mut text: Vec<u8> = (0..below(24)).map(|_| below(256) as u8).collect();
        for _ in 0..below(9) {
            text.extend_from_slice(PIECES[below(PIECES.len())]);
        }
        let mut encoded = Vec::new();
        Transformation::Base64Encode.apply(&text, &mut encoded);
        let encoded = String::from_utf8(encoded).unwrap().replace('+', "%2b").replace('=', "");
        let value = match round % 3 {
            0 => encoded,
            // Letters that nobody has encoded.
            1 => (0..below(120))
                .map(|_| char::from(b"abcdefghijklmnopqrstuvwxyzQ0123456789"[below(37)]))
                .collect(),
            // White space goes before it is decoded.
            _ => encoded
                .chars()
                .flat_map(|letter| [letter, ' '])
                .take(30)
                .chain(encoded.chars().skip(15))
                .collect(),
        }
        .replace(' ', "%20");
        let found = run(&plan, &value, false);
        assert_eq!(found, run(&plan, &value, true), "{value}: {}", text.escape_ascii());
        matches += found.len();
        none += usize::from(found.is_empty());
    }
    assert!(matches > 100 && none > 1_000, "{matches} matches, {none} values without");
}
