//! That short numbers are not looked at where no rule could match one changes no verdict: a transaction that keeps a trace looks at all.

use std::sync::Arc;

use crate::common::{connection, plan};
use portcullis_engine::{NoCollections, Plan, RequestLine, Scratch, Transaction};

/// Each of these alone.
const OPERATORS: &[&str] = &[
    "@rx ^(?:4711|12)$",
    "@rx [0-9]{3}",
    "@rx ^0*$",
    "@rx 7(?!1)",
    "!@rx ^[0-9]{1,3}$",
    "@rx select 1",
    "@pm 77 select",
    "!@pm 1 2",
    "@pm 5",
    "@contains 00",
    "@streq 42",
    "@within 1,22,333",
    "@gt 500",
    "@validateByteRange 48-56",
    "@detectSQLi",
    "@beginsWith 9",
    "@strmatch 123",
    "@unconditionalMatch",
];

const TRANSFORMATIONS: &[&str] = &[
    "t:none",
    "t:none,t:lowercase",
    "t:none,t:base64Decode",
    "t:none,t:hexDecode",
    "t:none,t:length",
    "t:none,t:removeNulls,t:base64Encode",
    "t:none,t:urlDecodeUni,t:sqlHexDecode",
];

/// How often the rule on arguments matches in this JSON.
fn run(plan: &Arc<Plan>, body: &str, trace: bool) -> usize {
    let mut transaction =
        Transaction::new(Arc::clone(plan), Arc::new(NoCollections), Scratch::default(), &connection());
    if trace {
        transaction.keep_trace(None);
    }
    let line = RequestLine { line: b"POST / HTTP/1.1", method: b"POST", target: b"/", protocol: b"HTTP/1.1" };
    let length = body.len().to_string();
    let head: [(&[u8], &[u8]); 3] =
        [(b"Host", b"h"), (b"Content-Type", b"application/json"), (b"Content-Length", length.as_bytes())];
    let _ = transaction.request_head(line, head);
    transaction.request_body(body.as_bytes());
    let _ = transaction.request_end(false);
    transaction.finish();
    transaction.matches().iter().filter(|found| plan.rule(found.rule).id.0 == 2).count()
}

#[test]
fn as_every_number_is_looked_at() {
    let mut state = 7u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let (mut matches, mut none) = (0, 0);
    for operator in OPERATORS {
        for transformations in TRANSFORMATIONS {
            let rules = format!(
                "SecRuleEngine On\nSecRequestBodyAccess On\n\
                 SecRule REQUEST_HEADERS:Content-Type \"@contains json\" \"id:1,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON\"\n\
                 SecRule ARGS \"{operator}\" \"id:2,phase:2,pass,log,{transformations}\"\n"
            );
            let plan = plan(&rules);
            for _ in 0..12 {
                let count = 1 + below(4);
                let numbers = (0..count).map(|_| match below(8) {
                    0 => "null".to_owned(),
                    1 => "\"a7\"".to_owned(),
                    _ => {
                        let bound = [10, 100, 1_000, 100_000][below(4)];
                        format!("\"{}\"", below(bound))
                    }
                });
                let body = format!("[{}]", numbers.collect::<Vec<_>>().join(","));
                let found = run(&plan, &body, false);
                assert_eq!(found, run(&plan, &body, true), "{operator} {transformations}: {body}");
                matches += found;
                none += usize::from(found == 0);
            }
        }
    }
    assert!(matches > 300 && none > 300, "{matches} matches, {none} bodies without");
}
