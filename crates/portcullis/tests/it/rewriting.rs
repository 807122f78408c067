//! Bodies that rules change, in the real program: what arrives is the changed body, framed anew.

use crate::served::{Response, Served, application, says};

const ON: &str = "SecContentInjection On\nSecResponseBodyAccess On\nSecStreamInBodyInspection On\n\
                  SecStreamOutBodyInspection On\nSecResponseBodyMimeType text/html\n";

fn answer(headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Response {
    let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Response { status: 200, headers, body: body.into() }
}

/// `append` and `prepend` work on held and on streamed bodies, of known and unknown length.
#[test]
fn text_around_a_response() {
    let app = application(|request| match request.path() {
        "/short" => answer(&[("Content-Type", "text/html"), ("ETag", "\"1\""), ("Expires", "0")], "body"),
        "/stream" => answer(&[("Content-Type", "text/css"), ("ETag", "\"1\"")], "body"),
        "/empty" => answer(&[("Content-Type", "text/html")], ""),
        // The test application sends what is longer than this in chunks.
        "/long" => answer(&[("Content-Type", "text/css")], vec![b'x'; 300_000]),
        "/gzip" => answer(&[("Content-Type", "text/html"), ("Content-Encoding", "gzip")], "coded"),
        "/part" => Response { status: 206, ..answer(&[("Content-Range", "bytes 0-3/9")], "body") },
        _ => says("body"),
    });
    let rules = format!(
        "{ON}SecRule REQUEST_URI \"!@contains plain\" \"id:1,phase:1,pass,nolog,prepend:'<%{{ARGS.a}}>',append:'first'\"\n\
         SecAction \"id:2,phase:4,pass,nolog,chain\"\nSecRule REQUEST_URI \"!@contains plain\" \"append:'</%{{RESPONSE_STATUS}}>'\"\n"
    );
    let served = Served::start(&app, &rules, "");
    for (path, body) in [
        ("/short?a=1", "<1>body</200>".to_owned()),
        ("/stream?a=1", "<1>body</200>".to_owned()),
        ("/empty", "<></200>".to_owned()),
        ("/long", format!("<>{}</200>", "x".repeat(300_000))),
        ("/plain", "body".to_owned()),
    ] {
        let got = served.get(path);
        assert!(got.body() == body, "{path}: {}", &got.text()[..200.min(got.text().len())]);
        assert_eq!(got.header("etag"), None, "{path}");
    }
    assert_eq!(served.get("/short").header("content-length").as_deref(), Some("12"));
    // HTTP/1.0 has no chunks, HEAD no body, and neither promises a wrong length.
    let old = served.raw("GET /long HTTP/1.0\r\nHost: a\r\n\r\n");
    assert!(old.bytes.ends_with(b"xx</200>") && old.header("transfer-encoding").is_none());
    let head = served.raw("HEAD /short HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(head.bytes.ends_with(b"\r\n\r\n") && head.header("content-length").is_none(), "{}", head.text());
    // Bodies that cannot be changed are sent as they are, and counted.
    assert_eq!(
        (served.get("/gzip").body(), served.get("/part").body()),
        ("coded".to_owned(), "body".to_owned())
    );
    served.counts("portcullis_exceptions_total{cause=\"body_not_rewritten\",policy=\"open\"}", 2.0);
    assert!(served.events(2)[0].contains("body_not_rewritten"));
}

#[test]
fn substitution_in_responses() {
    let app = application(|request| match request.path() {
        "/other" => answer(&[("Content-Type", "text/css")], "card 4111"),
        "/long" => answer(&[("Content-Type", "text/html")], format!("card 4111 {}", "x".repeat(3000))),
        "/large" => answer(&[("Content-Type", "text/html")], format!("card 4111 {}", "x".repeat(30_000))),
        _ => answer(&[("Content-Type", "text/html"), ("ETag", "\"1\"")], "card 4111, CARD 4222"),
    });
    let rules = format!(
        "{ON}SecResponseBodyLimit 20000\nSecResponseBodyLimitAction ProcessPartial\n\
         SecRule STREAM_OUTPUT_BODY \"@rsub s/(card) (\\d)\\d*/\\1 \\2***/i\" \"id:1,phase:4,pass,nolog\"\n\
         SecRule STREAM_OUTPUT_BODY \"@contains ***\" \"id:2,phase:4,pass,nolog,append:'!'\"\n\
         SecRule RESPONSE_BODY \"@contains ***\" \"id:3,phase:4,deny\"\n"
    );
    let served = Served::start(&app, &rules, "");
    let changed = served.get("/");
    assert_eq!(changed.body(), "card 4***, CARD 4***!", "and RESPONSE_BODY is what came");
    assert_eq!((changed.status(), changed.header("etag")), (200, None));
    assert_eq!(served.get("/other").body(), "card 4111", "not a type that is inspected");
    assert_eq!(served.get("/long").body(), format!("card 4*** {}!", "x".repeat(3000)));
    assert!(served.get("/large").body().starts_with("card 4111"), "only read in part");
    served.counts("portcullis_exceptions_total{cause=\"body_not_rewritten\",policy=\"open\"}", 1.0);
}

/// The application gets the changed body under its own length; rules after it see it, too.
#[test]
fn substitution_in_requests() {
    let app = application(|request| {
        let field = |name| request.header(name).map(|value| String::from_utf8_lossy(value).into_owned());
        let body = String::from_utf8_lossy(&request.body).into_owned();
        says(format!(
            "{body} {:?} {:?} {:?}",
            field("content-length"),
            field("transfer-encoding"),
            field("digest")
        ))
    });
    let rules = format!(
        "{ON}SecRule STREAM_INPUT_BODY \"@rsub s/<script/&lt;script/i\" \"id:1,phase:2,pass,nolog\"\n\
         SecRule STREAM_INPUT_BODY \"@rsub s/%{{ARGS.word}}./[%{{ARGS_GET.by}}]/d\" \"id:2,phase:2,pass,nolog\"\n\
         SecRule STREAM_INPUT_BODY \"@contains <script\" \"id:3,phase:2,deny\"\n"
    );
    let served = Served::start(&app, &rules, "");
    let length = |n: usize| format!("Some(\"{n}\") None None");
    assert_eq!(served.post("/", "text/plain", "a<SCRIPT>").body(), format!("a&lt;script> {}", length(12)));
    assert_eq!(served.post("/", "text/plain", "nothing").body(), format!("nothing {}", length(7)));
    let form = "application/x-www-form-urlencoded";
    let got = served.post("/?by=x", form, "word=a.b&c=a.b.").body();
    assert_eq!(got, format!("word=a.b&c=[x] {}", length(14)), "the dot is a dot");
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nDigest: sha-256=x\r\nConnection: close\r\n\
                   Transfer-Encoding: chunked\r\n\r\n4\r\n<scr\r\n4\r\nipt>\r\n0\r\n\r\n";
    assert_eq!(served.raw(chunked).body(), format!("&lt;script> {}", length(11)));
    let coded = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\nConnection: close\r\n\
                 Content-Length: 8\r\n\r\n<script>";
    assert!(!served.raw(coded).text().contains("&lt;"), "a coded body is not touched");
}

#[test]
fn nothing_changes_unless_switched_on() {
    let app = application(|request| says(format!("{} card", String::from_utf8_lossy(&request.body))));
    let rules = "SecResponseBodyAccess On\n\
                 SecRule STREAM_INPUT_BODY \"@rsub s/a/b/\" \"id:1,phase:2,pass,nolog\"\n\
                 SecRule STREAM_OUTPUT_BODY \"@rsub s/a/b/\" \"id:2,phase:4,pass,nolog\"\n\
                 SecAction \"id:3,phase:3,pass,nolog,append:x\"\n";
    let served = Served::start(&app, rules, "");
    assert_eq!(served.post("/", "text/plain", "aa").body(), "aa card");
    let said = std::fs::read_to_string(served.folder.path().join("output")).unwrap();
    for word in [
        "SecStreamInBodyInspection is Off",
        "SecStreamOutBodyInspection is Off",
        "SecContentInjection is Off",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

/// With SecDisableBackendCompression the application is not told what the client could unpack.
#[test]
fn compression_is_switched_off() {
    let app = application(|request| says(format!("{:?}", request.header("accept-encoding"))));
    let request = "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n";
    for (setting, told) in [("On", "None"), ("Off", "Some")] {
        let rules =
            format!("SecDisableBackendCompression {setting}\nSecAction \"id:1,phase:1,pass,nolog\"\n");
        let served = Served::start(&app, &rules, "");
        assert!(served.raw(request).body().starts_with(told), "{setting}");
    }
}
