//! Parts of the request line that stand in it as they are are not kept again, and those that were encoded
//! are: each is judged by its own bytes, whatever was remembered of others.

use crate::common::{Headers, Message, assert_equivalent, plan};
use portcullis_engine::{Memo, Scratch};

const RULES: &str = r#"SecRuleEngine On
SecRule REQUEST_URI "@rx select.+from" "id:1,phase:1,pass,log,t:lowercase"
SecRule ARGS "@contains evil" "id:2,phase:1,pass,log"
SecRule ARGS "@rx ^[0-9]{4,}$" "id:3,phase:2,pass,log"
SecRule ARGS:page "!@rx ^[0-9]+$" "id:4,phase:2,pass,log"
SecRule ARGS_NAMES "@rx ^x-.+y$" "id:5,phase:1,pass,log"
SecRule QUERY_STRING "@contains <script" "id:6,phase:1,pass,log,t:urlDecodeUni,t:htmlEntityDecode"
SecRule REQUEST_FILENAME "@rx /etc/passwd$" "id:7,phase:2,pass,log"
SecRule REQUEST_LINE "!@rx ^[A-Z]+ [^ ]+ HTTP/1.1$" "id:8,phase:1,pass,log"
SecRule REQUEST_URI_RAW "@contains #" "id:9,phase:1,pass,log"
SecRule REQUEST_BASENAME "@endsWith .bak" "id:10,phase:1,pass,log"
SecRule ARGS "@rx ^p$" "id:11,phase:2,pass,log,t:base64Decode"
SecRule REQUEST_HEADERS:X-Of-No-Line "@contains evil" "id:12,phase:1,pass,log"
SecRule REQUEST_PROTOCOL "@streq HTTP/1.0" "id:13,phase:1,pass,log"
SecRule REQUEST_METHOD "@streq PUT" "id:14,phase:1,pass,log"
"#;

#[test]
fn parts_of_the_line_are_judged_as_if_each_came_alone() {
    let plan = plan(RULES);
    let lines: [(&str, &[u32]); 18] = [
        ("GET / HTTP/1.1", &[12]),
        ("GET /p?category=books&sort=price&page=17 HTTP/1.1", &[12]),
        ("GET /p?q=SELECT+x+from+y HTTP/1.1", &[1, 12]),
        // Encoded, so that only the argument has the word.
        ("GET /p?q=%65vil HTTP/1.1", &[2, 12]),
        ("GET /p?q=evil HTTP/1.1", &[2, 12]),
        ("GET /p?q=123&r=4 HTTP/1.1", &[12]),
        ("GET /p?q=12345&r=4 HTTP/1.1", &[3, 12]),
        ("GET /p?page=x HTTP/1.1", &[4, 12]),
        ("GET /p?page= HTTP/1.1", &[4, 12]),
        ("GET /p?x-1y=2&x-=y HTTP/1.1", &[5, 12]),
        ("GET /p?a=%3Cscript HTTP/1.1", &[6, 12]),
        ("GET /p?a=&lt;script HTTP/1.1", &[6, 12]),
        ("GET /a/%65tc/passwd HTTP/1.1", &[7, 12]),
        ("GET http://h/etc/passwd?a HTTP/1.1", &[7, 12]),
        ("GET  /p  HTTP/1.1", &[8, 12]),
        ("PUT /x.bak?a#b HTTP/1.0", &[8, 9, 10, 12, 13, 14]),
        // The result of base64 stands nowhere in the line.
        ("GET /p?a=cA HTTP/1.1", &[11, 12]),
        ("GET /p?HTTP/1.1=GET&a=a HTTP/1.1", &[12]),
    ];
    let memo = Memo::default();
    let mut scratch = Scratch::sharing(&memo);
    for round in 0..3 {
        for (line, expected) in lines {
            let headers: Headers = &[(b"Host", b"h"), (b"X-Of-No-Line", b"evil")];
            let message = Message { line, headers, ..Message::default() };
            let mut found = assert_equivalent(&plan, &mut scratch, &message).logged();
            found.sort_unstable();
            assert_eq!(found, expected, "round {round}: {line}");
        }
    }
}
