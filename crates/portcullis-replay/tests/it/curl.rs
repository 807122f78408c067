//! Command lines of curl become the requests that curl sends.

use portcullis_replay::{CurlError, read_curl};
use proptest::prelude::*;

#[track_caller]
fn check(line: &str, request: &str) {
    let read = read_curl(line).map(|message| String::from_utf8_lossy(&message.bytes).into_owned());
    assert_eq!(read.as_deref(), Ok(request), "{line}");
}

const OWN: &str = "User-Agent: curl/8.0\r\nAccept: */*\r\n";

/// What curl 7.88 sent for the same lines, but for its version in `User-Agent` and boundaries.
#[test]
fn requests_are_those_of_curl() {
    check("curl http://a.example", &format!("GET / HTTP/1.1\r\nHost: a.example\r\n{OWN}\r\n"));
    check("curl -I a.example:81/x?y#z", &format!("HEAD /x?y HTTP/1.1\r\nHost: a.example:81\r\n{OWN}\r\n"));
    check(
        "curl -d a=1 --data-urlencode 'b=x y&z' https://a.example/p",
        &format!(
            "POST /p HTTP/1.1\r\nHost: a.example\r\n{OWN}Content-Length: 13\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n\r\na=1&b=x+y%26z"
        ),
    );
    check(
        "curl -G -d 'q=1+or+1' 'http://a.example/?p'",
        &format!("GET /?p&q=1+or+1 HTTP/1.1\r\nHost: a.example\r\n{OWN}\r\n"),
    );
    check("curl http://a.example/a/../b/./c", &format!("GET /b/c HTTP/1.1\r\nHost: a.example\r\n{OWN}\r\n"));
    check(
        "curl --path-as-is http://a.example/a/..",
        &format!("GET /a/.. HTTP/1.1\r\nHost: a.example\r\n{OWN}\r\n"),
    );
    check(
        "curl -XPUT --json '{\"a\":1}' http://u:p@a.example/",
        "PUT / HTTP/1.1\r\nHost: a.example\r\nAuthorization: Basic dTpw\r\nUser-Agent: curl/8.0\r\n\
         Content-Type: application/json\r\nAccept: application/json\r\nContent-Length: 7\r\n\r\n{\"a\":1}",
    );
    check(
        "curl -sSk -A '' -H 'Accept:' -H 'X-Empty;' -b a=1 -b 'b=2' -e http://r/ http://a.example/",
        "GET / HTTP/1.1\r\nHost: a.example\r\nReferer: http://r/\r\nCookie: a=1;b=2\r\nX-Empty:\r\n\r\n",
    );
    check(
        "curl http://a.example/ -F 'n=v;type=text/html' -F 'f=x;filename=a.php'",
        &format!(
            "POST / HTTP/1.1\r\nHost: a.example\r\n{OWN}Content-Type: multipart/form-data; boundary=------------------------portcullis\r\nContent-Length: 253\r\n\r\n\
             --------------------------portcullis\r\nContent-Disposition: form-data; name=\"n\"\r\n\
             Content-Type: text/html\r\n\r\nv\r\n\
             --------------------------portcullis\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.php\"\r\n\
             \r\nx\r\n--------------------------portcullis--\r\n"
        ),
    );
}

/// Chrome and Firefox copy lines like this one.
#[test]
fn lines_of_browsers_are_read() {
    check(
        "curl 'https://shop.example/search' \\\n  -X 'POST' \\\n  -H 'accept: text/html' \\\n  -H 'user-agent: Mozilla/5.0' \\\n  \
         --data-raw $'q=it\\'s \\u0021 \\x41\\101' \\\n  --compressed",
        "POST /search HTTP/1.1\r\nHost: shop.example\r\nAccept-Encoding: deflate, gzip, br, zstd\r\naccept: text/html\r\n\
         user-agent: Mozilla/5.0\r\nContent-Length: 11\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\nq=it's ! AA",
    );
}

#[test]
fn mistakes_are_told() {
    let error = |line: &str| read_curl(line).map(|_| ()).unwrap_err();
    assert_eq!(error("wget http://a"), CurlError::NotCurl);
    assert_eq!(error(""), CurlError::NotCurl);
    assert_eq!(error("curl -X GET"), CurlError::Urls(0));
    assert_eq!(error("curl http://a http://b"), CurlError::Urls(2));
    assert_eq!(error("curl 'http://a"), CurlError::OpenQuote('\''));
    assert_eq!(error("curl \"http://a"), CurlError::OpenQuote('"'));
    assert_eq!(error("curl ftp://a/"), CurlError::Scheme("ftp://a/".into()));
    assert_eq!(error("curl -d @x http://a"), CurlError::ReadsFile("-d".into()));
    assert_eq!(error("curl -F f=@x http://a"), CurlError::ReadsFile("-F".into()));
    assert_eq!(error("curl -b jar http://a"), CurlError::ReadsFile("-b".into()));
    assert_eq!(error("curl http://a -H"), CurlError::NoValue("-H".into()));
    assert_eq!(error("curl --upload-file x http://a"), CurlError::UnknownOption("--upload-file".into()));
    assert_eq!(error("curl 'http://a/b c'"), CurlError::Space);
    assert_eq!(error("curl -G -d 'a b' http://a/"), CurlError::Space);
    assert_eq!(error("curl http://a | sh"), CurlError::Shell('|'));
    assert_eq!(error("curl http://a?b&c"), CurlError::Shell('&'));
    assert_eq!(error("curl http://a -H $'X: a\\r\\nY: b'"), CurlError::LineEnd("a header"));
    assert_eq!(error("curl $'http://a/\\nx'"), CurlError::LineEnd("the method or the URL"));
}

proptest! {
    /// Whatever is pasted: an error, or a message with one head whose lines are those that were asked for.
    #[test]
    fn any_text_is_read_or_refused(words in prop::collection::vec("(-[a-zA-Z]|--[a-z-]{1,12}|[ -~\\n]{0,12})", 0..8)) {
        if let Ok(message) = read_curl(&format!("curl {}", words.join(" "))) {
            let head = message.bytes.windows(4).position(|part| part == b"\r\n\r\n");
            prop_assert!(head.is_some());
        }
    }

    /// A value between single marks arrives as it is.
    #[test]
    fn quoted_data_arrive(data in "[ -&(-~\\n]{1,40}") {
        let message = read_curl(&format!("curl --data-raw '{data}' http://a/")).unwrap();
        let end = format!("\r\n\r\n{data}");
        prop_assert!(message.bytes.ends_with(end.as_bytes()));
    }
}
