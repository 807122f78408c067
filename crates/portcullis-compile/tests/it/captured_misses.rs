//! A chain that begins with a negated pattern which captures runs only where that pattern finds something, or
//! where the rest of the chain may match.

use crate::common::{Headers, Message, Response, assert_equivalent, plan};
use portcullis_engine::{Memo, Scratch};

const RULES: &str = r#"SecRuleEngine On
SecResponseBodyAccess On
SecResponseBodyMimeType text/html
SecRule RESPONSE_STATUS "!@rx ^(4)04$" "id:1,phase:4,pass,log,capture,chain"
SecRule RESPONSE_BODY "@rx Server (E)rror" "capture"
SecRule TX:1 "@streq 4" "id:2,phase:4,pass,log"
SecRule TX:1 "@streq E" "id:3,phase:4,pass,log"
"#;

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
    // The results for a status are remembered.
    for round in 0..3 {
        for (status, body, expected) in answers {
            let headers: Headers = &[(b"Content-Type", b"text/html")];
            let response = Some(Response { status, headers, body: body.as_bytes() });
            let message = Message {
                line: "GET / HTTP/1.1",
                headers: &[(b"Host", b"h")],
                response,
                ..Message::default()
            };
            let seen = assert_equivalent(&plan, &mut scratch, &message);
            assert_eq!(seen.logged(), expected, "round {round}: {status} {body}");
        }
    }
}
