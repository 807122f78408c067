//! Rules are not run over what `base64Decode` makes of a value where that is noise, and this changes no
//! verdict.

use crate::common::{Message, assert_equivalent, plan};
use portcullis_decode::Transformation;
use portcullis_engine::Scratch;
use portcullis_testkit::random::Random;

const RULES: &str = r#"SecRuleEngine On
SecRequestBodyAccess On
SecRule ARGS|ARGS_NAMES "@rx (?:process|[Cc]onsole)\.(?:env|log)|require ?\(|_\$\$nd" "id:1,phase:2,pass,log,multiMatch,t:none,t:urlDecodeUni,t:jsDecode,t:removeWhitespace,t:base64Decode,t:urlDecodeUni,t:jsDecode,t:removeWhitespace"
SecRule ARGS "@rx (?i)while\s*\(\s*true" "id:2,phase:2,pass,log,multiMatch,t:none,t:jsDecode,t:base64Decode,t:urlDecodeUni,t:jsDecode,t:replaceComments"
SecRule ARGS "@pm subprocess childprocess" "id:3,phase:2,pass,log,t:base64Decode,t:removeNulls,t:lowercase"
"#;

/// Pieces of attacks, and text that the transformations of the rules remove or unescape.
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

#[test]
fn as_every_form_is_looked_at() {
    let plan = plan(RULES);
    let mut random = Random::new(7);
    let mut below = |bound: usize| random.below(bound);
    let mut scratch = Scratch::default();
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
            // Letters that are not Base64.
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
        let body = format!("a={value}&{value}=b");
        let length = body.len().to_string();
        let headers: [(&[u8], &[u8]); 3] = [
            (b"Host", b"h"),
            (b"Content-Type", b"application/x-www-form-urlencoded"),
            (b"Content-Length", length.as_bytes()),
        ];
        let message = Message {
            line: "POST / HTTP/1.1",
            headers: &headers,
            body: body.as_bytes(),
            ..Message::default()
        };
        let found = assert_equivalent(&plan, &mut scratch, &message).logged();
        matches += found.len();
        none += usize::from(found.is_empty());
    }
    assert!(matches > 100 && none > 1_000, "{matches} matches, {none} values without");
}
