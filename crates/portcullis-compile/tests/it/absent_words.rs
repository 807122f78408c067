//! A link that matches where no word of a list stands is answered by the search for words of all links.

use crate::common::{Message, assert_equivalent, plan};
use portcullis_engine::Scratch;

/// The second list keeps the search for words alive where the first has none.
const RULES: &str = r#"SecRuleEngine On
SecRule REQUEST_HEADERS:X "!@pm syntax sqlite_error ora-0 warning" "id:1,phase:1,pass,log"
SecRule REQUEST_HEADERS:X "!@pm syntax sqlite_error ora-0 warning" "id:2,phase:1,pass,log,t:removeWhitespace"
SecRule REQUEST_HEADERS:X "@pm harmless powershell" "id:3,phase:1,pass,log"
"#;

#[test]
fn absence_is_what_the_operator_says() {
    let plan = plan(RULES);
    let filler = "a page that says nothing of interest to anybody. ".repeat(3);
    for (text, expected) in [
        ("hello", &[1, 2][..]),
        ("harmless", &[1, 2, 3]),
        ("a SYNTAX error", &[]),
        ("syn tax", &[1]),
        ("synta", &[1, 2]),
        ("ORA-01756 PowerShell", &[3]),
        ("s q l i t e _ e r r o r harmless", &[1, 3]),
        ("warnin g", &[1]),
    ] {
        for value in [text.to_owned(), format!("{filler}{text}"), format!("{text}{filler}")] {
            let headers: [(&[u8], &[u8]); 2] = [(b"Host", b"h"), (b"X", value.as_bytes())];
            let message = Message { line: "GET / HTTP/1.1", headers: &headers, ..Message::default() };
            let seen = assert_equivalent(&plan, &mut Scratch::default(), &message);
            assert_eq!(seen.logged(), expected, "{value}");
        }
    }
}
