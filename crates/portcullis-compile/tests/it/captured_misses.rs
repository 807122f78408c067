//! A chain that begins with a negated pattern which captures runs only where that pattern finds something, or where the rest of the chain may match.

use std::sync::Arc;

use crate::common::{connection, plan};
use portcullis_engine::{Memo, NoCollections, Plan, RequestLine, Scratch, Transaction};

const RULES: &str = r#"SecRuleEngine On
SecResponseBodyAccess On
SecResponseBodyMimeType text/html
SecRule RESPONSE_STATUS "!@rx ^(4)04$" "id:1,phase:4,pass,log,capture,chain"
SecRule RESPONSE_BODY "@rx Server (E)rror" "capture"
SecRule TX:1 "@streq 4" "id:2,phase:4,pass,log"
SecRule TX:1 "@streq E" "id:3,phase:4,pass,log"
"#;

/// Ids of the rules that match, and the buffers of the transaction.
fn run(plan: &Arc<Plan>, scratch: Scratch, status: u16, body: &str, trace: bool) -> (Vec<u32>, Scratch) {
    let mut transaction = Transaction::new(Arc::clone(plan), Arc::new(NoCollections), scratch, &connection());
    if trace {
        transaction.keep_trace(None);
    }
    let line = RequestLine { line: b"GET / HTTP/1.1", method: b"GET", target: b"/", protocol: b"HTTP/1.1" };
    let _ = transaction.request_head(line, [(&b"Host"[..], &b"h"[..])]);
    let _ = transaction.request_end(false);
    let _ = transaction.response_head(b"HTTP/1.1", status, [(&b"Content-Type"[..], &b"text/html"[..])]);
    transaction.response_body(body.as_bytes());
    let _ = transaction.response_end(false);
    transaction.finish();
    let rules = transaction.matches().iter().filter(|found| found.log);
    let ids = rules.map(|found| plan.rule(found.rule).id.0).collect();
    (ids, transaction.into_scratch())
}

#[test]
fn captures_are_those_of_all_rules() {
    let plan = plan(RULES);
    let answers: [(u16, &str, &[u32]); 6] = [
        (200, "<p>Nothing to see.</p>", &[]),
        (200, "<h1>Server Error</h1>", &[1, 3]),
        (404, "<p>Nothing to see.</p>", &[2]),
        (404, "<h1>Server Error</h1>", &[2]),
        (200, "", &[]),
        (404, "", &[2]),
    ];
    let memo = Memo::default();
    let mut scratch = Scratch::sharing(&memo);
    // What is found of a status is remembered.
    for round in 0..3 {
        for (status, body, expected) in answers {
            let (found, buffers) = run(&plan, scratch, status, body, false);
            scratch = buffers;
            assert_eq!(found, run(&plan, Scratch::default(), status, body, true).0, "{status} {body}");
            assert_eq!(found, expected, "round {round}: {status} {body}");
        }
    }
}
