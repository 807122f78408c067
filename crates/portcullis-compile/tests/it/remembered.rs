//! The thread's memo of headers and heads changes no verdict: each message of a series is judged as if it
//! were the first.

use crate::common::{Headers, Message, Response, assert_equivalent, plan};
use portcullis_engine::{Memo, Scratch};
use portcullis_testkit::random::Random;

const RULES: &str = r#"SecRuleEngine On
SecRule REQUEST_HEADERS "@contains evil" "id:1,phase:1,pass,log"
SecRule REQUEST_HEADERS:User-Agent "@rx ^curl" "id:2,phase:1,pass,log,chain"
SecRule REQUEST_METHOD "@streq GET" "setvar:tx.a=1"
SecRule REQUEST_HEADERS_NAMES "@rx ^x-.+y$" "id:3,phase:1,pass,log,t:lowercase"
SecRule REQUEST_HEADERS:Cookie|REQUEST_COOKIES "@contains 1=1" "id:4,phase:2,pass,log"
SecRule REQUEST_HEADERS:Referer "@beginsWith ftp:" "id:5,phase:2,pass,log"
SecRule &REQUEST_HEADERS:Accept "@eq 0" "id:6,phase:1,pass,log"
SecRule RESPONSE_HEADERS:Server "@contains old" "id:7,phase:3,pass,log"
SecRule RESPONSE_HEADERS|REQUEST_HEADERS "@rx \d{6}" "id:8,phase:3,pass,log"
"#;

/// Hundreds of names, more than there is place for, between messages with few of them.
#[test]
fn more_names_than_are_remembered() {
    const RULES: &str = r#"SecRuleEngine On
SecRule ARGS_NAMES "@contains evil" "id:1,phase:1,pass,log"
SecRule ARGS_NAMES "@rx ^x[0-9]+z$" "id:2,phase:1,pass,log,t:lowercase"
SecRule ARGS_NAMES:n7 "@rx n" "id:3,phase:1,pass,log"
"#;
    let plan = plan(RULES);
    let query = |count: usize, others: &[&str]| {
        let names: Vec<String> = (0..count).map(|n| format!("n{n}=")).collect();
        format!("/?{}&{}", names.join("&"), others.join("&"))
    };
    let memo = Memo::default();
    let mut scratch = Scratch::sharing(&memo);
    let few = [query(3, &["evil"]), query(9, &["X1Z", "b"]), query(2, &["b"])];
    let many = [query(600, &[]), query(300, &["evil", "x22z", "evil", "b"]), query(900, &["X1Z", "anevil1"])];
    for round in 0..2 {
        for (target, expected) in few.iter().chain(&many).zip([1, 2, 0, 1, 4, 3]) {
            let line = format!("GET {target} HTTP/1.1");
            let message = Message { line: &line, headers: &[(b"Host", b"h")], ..Message::default() };
            let found = assert_equivalent(&plan, &mut scratch, &message).logged();
            assert_eq!(found.len(), expected, "round {round}: {} {found:?}", &target[target.len() - 20..]);
        }
    }
}

#[test]
fn each_message_is_judged_as_if_it_were_the_first() {
    let plan = plan(RULES);
    let requests: [(Headers, &[u32]); 9] = [
        (&[(b"Host", b"h"), (b"User-Agent", b"browser"), (b"Accept", b"*/*")], &[]),
        (&[(b"Host", b"h"), (b"User-Agent", b"curl/8"), (b"Accept", b"*/*")], &[2]),
        (&[(b"Host", b"h"), (b"User-Agent", b"curl/8")], &[2, 6]),
        (&[(b"Host", b"h"), (b"Accept", b"*/*"), (b"Cookie", b"a=1=1"), (b"X-Key", b"evil")], &[1, 3, 4, 4]),
        (&[(b"Host", b"h"), (b"Accept", b"*/*"), (b"Cookie", b"a=2"), (b"X-Key", b"evil")], &[1, 3]),
        (&[(b"Host", b"h"), (b"Accept", b"*/*"), (b"X-Key", b"good")], &[3]),
        (&[(b"Host", b"h"), (b"Accept", b"*/*"), (b"Referer", b"ftp://evil"), (b"x", b"123456")], &[1, 5, 8]),
        (&[(b"Host", b"h"), (b"Accept", b"*/*"), (b"Referer", b"http://h"), (b"x", b"123456")], &[8]),
        // The same bytes, divided otherwise.
        (&[(b"Host", b"h"), (b"Accept", b"*/*"), (b"xevi", b"l"), (b"User-Agent", b"c")], &[]),
    ];
    let responses: [(Headers, &[u32]); 3] = [
        (&[(b"Server", b"new"), (b"Date", b"Mon"), (b"X", b"y")], &[]),
        (&[(b"Server", b"old"), (b"Date", b"Mon"), (b"X", b"y")], &[7]),
        (&[(b"Server", b"old"), (b"Date", b"Tue 123456"), (b"X", b"y")], &[7, 8]),
    ];
    let memo = Memo::default();
    let mut scratch = Scratch::sharing(&memo);
    // More often than a head must come to be remembered.
    for round in 0..4 {
        for (request, of_request) in requests {
            for (response, of_response) in responses {
                let message = Message {
                    line: "GET / HTTP/1.1",
                    headers: request,
                    response: Some(Response { status: 200, headers: response, body: b"" }),
                    ..Message::default()
                };
                let mut found = assert_equivalent(&plan, &mut scratch, &message).logged();
                let mut expected = [of_request, of_response].concat();
                found.sort_unstable();
                expected.sort_unstable();
                assert_eq!(found, expected, "round {round}: {request:?} {response:?}");
            }
        }
    }
}

/// Methods and protocols are remembered with heads, names of arguments in their order: any mix of them, most
/// of which come again.
#[test]
fn request_lines_and_names_of_arguments() {
    const RULES: &str = r#"SecRuleEngine On
SecRule REQUEST_METHOD "!@within GET HEAD" "id:1,phase:1,pass,log"
SecRule REQUEST_METHOD "@rx ^get" "id:2,phase:1,pass,log"
SecRule REQUEST_PROTOCOL "!@within HTTP/1.1 HTTP/2.0" "id:3,phase:1,pass,log"
SecRule ARGS_GET_NAMES "@contains evil" "id:4,phase:2,pass,log"
SecRule ARGS_NAMES:n7 "@rx n" "id:5,phase:2,pass,log"
SecRule REQUEST_METHOD|REQUEST_HEADERS|ARGS_NAMES "@rx x[0-9]z" "id:6,phase:2,pass,log,t:lowercase"
SecRule REQUEST_HEADERS:Host "@streq g" "id:7,phase:1,pass,log,chain"
SecRule REQUEST_METHOD "@streq GET"
SecRule REMOTE_PORT "@eq 4711" "id:8,phase:1,pass,log"
SecRule SERVER_ADDR "!@streq 192.0.2.7" "id:9,phase:2,pass,log"
SecRule REQBODY_AMBIGUITY "!@streq x" "id:10,phase:2,pass,log"
"#;
    let plan = plan(RULES);
    let long = "X".repeat(40);
    let methods = ["GET", "POST", "getter", "GETH", "X1Z", long.as_str()];
    let protocols = ["HTTP/1.1", "TTP/1.1", "HTTP/1.0", "HTTP/2.0"];
    let queries =
        ["", "?a=1", "?a=1&evil=2", "?b=1&a=2", "?n7&a", "?a&n7=", "?ev&il", "?evil&", "?X1Z=&b=", "?A1&b=3"];
    let heads: [Headers; 5] = [
        &[(b"Host", b"h"), (b"Accept", b"*/*")],
        &[(b"Host", b"g"), (b"Accept", b"*/*")],
        &[(b"Cookie", b"a=1"), (b"Authorization", b"x7z")],
        &[(b"Host", b"g")],
        &[],
    ];
    let memo = Memo::default();
    let mut scratch = Scratch::sharing(&memo);
    let mut random = Random::new(7);
    let mut matches = 0;
    for _ in 0..6000 {
        // The first of each most of the time.
        let mut often = |count: usize| random.below(count) * usize::from(random.below(3) == 0);
        let (method, protocol) = (methods[often(methods.len())], protocols[often(protocols.len())]);
        let (query, head) = (queries[often(queries.len())], heads[often(heads.len())]);
        let line = format!("{method} /{query} {protocol}");
        let response = Some(Response { status: 200, ..Response::default() });
        let message = Message { line: &line, headers: head, response, ..Message::default() };
        matches += assert_equivalent(&plan, &mut scratch, &message).logged().len();
    }
    assert!(matches > 20_000, "{matches}");
}
