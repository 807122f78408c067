//! SecRequestBodyLimit..., SecRequestBodyNoFilesLimit, SecResponseBodyLimit... and SecResponseBodyMimeType in
//! the real program, beside what ModSecurity 2.9.7 on Apache answers.

use std::process::Command;

use crate::served::{self, Response, Served, application, document, free_address, program, says};

const FORM: &str = "application/x-www-form-urlencoded";

fn form(bytes: usize) -> String {
    format!("a=1&b={}", "x".repeat(bytes - 6))
}

fn chunked(media_type: &str, body: &str) -> String {
    format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: {media_type}\r\nTransfer-Encoding: chunked\r\n\
         Connection: close\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    )
}

/// A part with a file of so many bytes, and a field of as many.
fn multipart(file: usize, field: usize) -> String {
    format!(
        "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n\"\r\n\r\n{}\r\n\
         --B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n{}\r\n--B--\r\n",
        "x".repeat(file),
        "y".repeat(field)
    )
}

const MULTIPART: &str = "multipart/form-data; boundary=B";

/// A rule that sends back the values that phase 2 sees.
const SEEN: &str = "SecRule REQUEST_URI \"@contains seen\" \"id:9,phase:2,nolog,\
    redirect:'http://h/%{INBOUND_DATA_ERROR}-%{REQBODY_ERROR}-%{ARGS_POST.a}'\"\n";

#[test]
fn request_bodies_over_the_limit() {
    let app = application(|request| says(request.body.len().to_string()));
    for (engine, action, status) in [
        ("On", "Reject", 413),
        ("On", "ProcessPartial", 200),
        ("DetectionOnly", "Reject", 200),
        ("DetectionOnly", "ProcessPartial", 200),
    ] {
        let rules = format!(
            "SecRuleEngine {engine}\nSecRequestBodyLimit 1000\nSecRequestBodyLimitAction {action}\n{SEEN}"
        );
        let served = Served::start(&app, &rules, "");
        for (bytes, expected) in [(1000, 200), (1001, status), (200_000, status)] {
            assert_eq!(served.post("/", FORM, form(bytes)).status(), expected, "{engine} {action} {bytes}");
            let answer = served.raw(chunked(FORM, &form(bytes)));
            assert_eq!(answer.status(), expected, "{engine} {action} {bytes} in chunks");
            if expected == 200 {
                assert_eq!(answer.body(), bytes.to_string(), "all of it goes on");
            }
        }
        if engine == "On" && action == "ProcessPartial" {
            let seen = |bytes| served.post("/seen", FORM, form(bytes)).header("location").unwrap();
            assert_eq!((seen(1000), seen(1001)), ("http://h/0-0-1".to_owned(), "http://h/1-0-1".to_owned()));
            // ModSecurity 2 answers 500 to a multipart body that the limit cuts; here it passes, marked as
            // cut.
            let location = served.post("/seen", MULTIPART, multipart(5000, 5)).header("location");
            assert_eq!(location.as_deref(), Some("http://h/1-0-"));
        }
    }
}

/// The body without its files has a limit of its own; reaching it is 413.
#[test]
fn request_bodies_without_their_files() {
    let app = application(|_| says("app"));
    let rules = format!(
        "SecRequestBodyNoFilesLimit 800\nSecRule REQUEST_URI \"@contains force\" \
         \"id:1,phase:1,pass,nolog,ctl:forceRequestBodyVariable=On\"\n{SEEN}"
    );
    let served = Served::start(&app, &rules, "");
    let json = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
    for (target, media_type, body, status) in [
        ("/", FORM, form(799), 200),
        ("/", FORM, form(800), 413),
        ("/", "application/json", json(799), 200),
        ("/", "application/json", json(800), 413),
        ("/", "text/plain", form(900), 200),
        ("/force", "text/plain", form(900), 413),
        ("/", MULTIPART, multipart(5000, 10), 200),
        ("/", MULTIPART, multipart(10, 5000), 413),
    ] {
        assert_eq!(served.post(target, media_type, &body).status(), status, "{media_type} {}", body.len());
    }
    let partial = format!("SecRuleRemoveById 9000103\nSecRequestBodyLimitAction ProcessPartial\n{rules}");
    let served = Served::start(&app, &partial, "");
    assert_eq!(served.post("/", FORM, form(900)).status(), 200);
    let location = served.post("/seen", FORM, form(900)).header("location");
    assert_eq!(location.as_deref(), Some("http://h/1-1-1"));
}

#[test]
fn response_bodies_over_the_limit() {
    let app = application(|request| says("x".repeat(request.query().parse().unwrap_or(0))));
    let seen = "SecRule OUTBOUND_DATA_ERROR \"@eq 1\" \"id:1,phase:4,pass,log\"\n\
                SecRule RESPONSE_BODY \"@contains xxx\" \"id:2,phase:4,pass,nolog\"\n";
    for (engine, action, status) in
        [("On", "Reject", 500), ("On", "ProcessPartial", 200), ("DetectionOnly", "Reject", 200)]
    {
        let rules = format!(
            "SecRuleEngine {engine}\nSecResponseBodyAccess On\nSecResponseBodyLimit 1000\n\
             SecResponseBodyLimitAction {action}\n{seen}"
        );
        let served = Served::start(&app, &rules, "");
        for (bytes, expected) in [(1000, 200), (1001, status), (50_000, status)] {
            let answer = served.get(&format!("/?{bytes}"));
            assert_eq!(answer.status(), expected, "{engine} {action} {bytes}");
            if expected == 200 {
                assert_eq!(answer.body().len(), bytes);
            }
        }
        if status == 200 {
            assert!(served.events(2)[0].contains("\"rule_id\":1"));
        }
    }
}

/// The product names text/plain, text/html and text/xml; rule files add to them, and
/// `SecResponseBodyMimeTypesClear` takes all away.
#[test]
fn media_types_of_response_bodies() {
    let app = application(|request| {
        let headers = match request.query() {
            "" => Vec::new(),
            media_type => vec![("Content-Type".to_owned(), media_type.replace('+', " "))],
        };
        Response { status: 200, headers, body: b"secret".to_vec() }
    });
    let rule = "SecResponseBodyAccess On\nSecRule RESPONSE_BODY \"@contains secret\" \"id:1,phase:4,deny\"\n";
    let all = ["text/html", "text/xml", "image/png", ""];
    for (types, inspected) in [
        ("", vec!["text/html", "text/xml"]),
        ("SecResponseBodyMimeType IMAGE/PNG\n", vec!["text/html", "text/xml", "image/png"]),
        ("SecResponseBodyMimeType null\n", vec!["text/html", "text/xml", ""]),
        ("SecResponseBodyMimeTypesClear\n", vec![]),
        ("SecResponseBodyMimeTypesClear\nSecResponseBodyMimeType (null)\n", vec![""]),
        ("SecResponseBodyMimeTypesClear\nSecResponseBodyMimeType text/html\n", vec!["text/html"]),
    ] {
        let served = Served::start(&app, &format!("{types}{rule}"), "");
        for media_type in all {
            let status = if inspected.contains(&media_type) { 403 } else { 200 };
            assert_eq!(served.get(&format!("/?{media_type}")).status(), status, "{types:?} {media_type:?}");
        }
        if inspected.contains(&"text/html") {
            assert_eq!(served.get("/?Text/HTML;charset=utf-8").status(), 403);
        }
    }
}

#[test]
fn more_than_a_gigabyte_counts_as_one_with_a_warning() {
    for directive in ["SecRequestBodyLimit", "SecResponseBodyLimit", "SecRequestBodyNoFilesLimit"] {
        let folder = tempfile::tempdir().unwrap();
        let rules = format!("{directive} 1073741825");
        let config = document(
            folder.path(),
            free_address(),
            free_address(),
            free_address(),
            &served::rules(&rules),
            "",
        );
        for (flags, code) in [(&["check"][..], 0), (&["check", "--strict"], 1)] {
            let output = Command::new(program()).args(flags).arg(&config).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.code() == Some(code) && text.contains("1 GiB"), "{flags:?} {text}");
        }
    }
}
