//! Skipping short numbers that no rule could match must not change verdicts.

use crate::common::{Message, assert_equivalent, plan};
use portcullis_engine::Scratch;
use portcullis_testkit::random::Random;

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

#[test]
fn as_every_number_is_looked_at() {
    let mut random = Random::new(7);
    let mut below = |bound: usize| random.below(bound);
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
                let length = body.len().to_string();
                let headers: [(&[u8], &[u8]); 3] = [
                    (b"Host", b"h"),
                    (b"Content-Type", b"application/json"),
                    (b"Content-Length", length.as_bytes()),
                ];
                let message = Message {
                    line: "POST / HTTP/1.1",
                    headers: &headers,
                    body: body.as_bytes(),
                    ..Message::default()
                };
                let found = assert_equivalent(&plan, &mut Scratch::default(), &message).logged().len();
                matches += found;
                none += usize::from(found == 0);
            }
        }
    }
    assert!(matches > 300 && none > 300, "{matches} matches, {none} bodies without");
}
