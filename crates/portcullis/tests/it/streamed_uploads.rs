//! Uploads longer than what is held of a body: they are forwarded to the upstream while they are inspected,
//! and what has something in it never comes to its end there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::served::{self, Served, application, says};
use portcullis_testkit::random::Random;

const SITE: &str = "mode = \"semantic\"\nrequest_body = { limit = 100000, upload_limit = 2000000 }";
const MULTIPART: &str = "multipart/form-data; boundary=B";
const SHELL: &[u8] = b"<?php system($_GET['cmd']); ?>";
const BYTES: &str = "application/octet-stream";

/// Random bytes, the same each time.
fn noise(len: usize) -> Vec<u8> {
    Random::new(1).bytes(len)
}

fn chunked(media_type: &str, body: &[u8], size: usize) -> Vec<u8> {
    let mut request = format!(
        "PUT /file HTTP/1.1\r\nHost: a\r\nContent-Type: {media_type}\r\nTransfer-Encoding: chunked\r\n\
         Connection: close\r\n\r\n"
    )
    .into_bytes();
    for piece in body.chunks(size) {
        request.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        request.extend_from_slice(piece);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\n\r\n");
    request
}

fn file(contents: &[u8], field: &str) -> Vec<u8> {
    let head = "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.bin\"\r\n\r\n";
    let tail =
        format!("\r\n--B\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\n{field}\r\n--B--\r\n");
    [head.as_bytes(), contents, tail.as_bytes()].concat()
}

#[test]
fn uploads_are_looked_at_while_they_go_on() {
    let whole = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&whole);
    let app = application(move |request| {
        count.fetch_add(1, Ordering::Relaxed);
        says(request.body.len().to_string())
    });
    let served = Served::start_site(&app, SITE, "");
    let noise = noise(1_000_000);
    let rows = b"17;Smith;2026-01-02;a note about it, and one more;12.50\n".repeat(15_000);
    let mut passed = 0;
    for (media_type, body) in [
        (BYTES, noise.clone()),
        ("video/mp4", noise.clone()),
        ("text/csv", rows.clone()),
        (MULTIPART, file(&noise, "a holiday in May")),
        (MULTIPART, file(&rows, "a holiday in May")),
    ] {
        let answer = served.post("/file", media_type, &body);
        assert_eq!((answer.status(), answer.body()), (200, body.len().to_string()), "{media_type}");
        let answer = served.raw(chunked(media_type, &body, 7_001));
        assert_eq!((answer.status(), answer.body()), (200, body.len().to_string()), "{media_type} in chunks");
        passed += 2;
    }
    served.counts("portcullis_streamed_uploads_total{outcome=\"passed\"}", f64::from(passed));
    let reached = whole.load(Ordering::Relaxed);

    let sqli = "x' UNION SELECT user,password FROM users-- -";
    let mut attacks = vec![
        ("text/csv", [&rows[..], sqli.as_bytes()].concat()),
        (MULTIPART, file(&noise, sqli)),
        (MULTIPART, file(&[&noise[..], SHELL].concat(), "x")),
        ("image/png", [b"\x89PNG\r\n\x1A\n", &noise[..], SHELL].concat()),
    ];
    // Around the end of what is held, and of windows behind it, cut at any place.
    for lead in [99_970, 99_985, 99_999, 100_000, 131_060, 196_600, 500_000, 999_999] {
        attacks.push((BYTES, [&noise[..lead], SHELL, &noise[lead..]].concat()));
    }
    let mut broken = 0;
    for (media_type, body) in &attacks {
        assert_eq!(served.post("/file", media_type, body).status(), 403, "{media_type} {}", body.len());
        assert_eq!(served.raw(chunked(media_type, body, 9_000)).status(), 403, "{media_type} in chunks");
        broken += 2;
    }
    assert_eq!(whole.load(Ordering::Relaxed), reached, "an application took an upload for complete");
    let counted = || served.metric("portcullis_streamed_uploads_total{outcome=\"broken_off\"}");
    // Those that phase 2 refused were never sent.
    served::until(|| counted() >= f64::from(broken) / 2.0);
    assert!(counted() <= f64::from(broken));
}

#[test]
fn what_may_not_go_on_is_refused() {
    let app = application(|request| says(request.body.len().to_string()));
    let served = Served::start_site(&app, SITE, "");
    let json = format!("{{\"a\":\"{}\"}}", "x".repeat(200_000));
    let form = format!("a={}", "x".repeat(200_000));
    let field = file(b"small", &"x".repeat(300_000));
    let unclosed = &file(&noise(300_000), "x")[..200_000];
    for (media_type, body, status) in [
        ("application/json", json.as_bytes(), 413),
        ("application/x-www-form-urlencoded", form.as_bytes(), 413),
        (BYTES, &noise(2_000_001), 413),
        (MULTIPART, &field, 413),
        (MULTIPART, unclosed, 400),
    ] {
        assert_eq!(served.post("/", media_type, body).status(), status, "{media_type}");
        assert_eq!(served.raw(chunked(media_type, body, 60_000)).status(), status, "{media_type} in chunks");
    }
    // Switched off by the limit of what is held.
    let site = "mode = \"semantic\"\nrequest_body = { limit = 100000, upload_limit = 100000 }";
    let served = Served::start_site(&app, site, "");
    assert_eq!(served.post("/", BYTES, noise(100_001)).status(), 413);
    // Rules that set ModSecurity's action mean it.
    let served = Served::start(&app, "SecRequestBodyLimit 100000\nSecRequestBodyLimitAction Reject", "");
    assert_eq!(served.post("/", BYTES, noise(100_001)).status(), 413);
}

/// What clients of file servers, registries and photo apps send, with the limits of the product, and a rule
/// that does what the CRS does with bodies that no parser takes.
#[test]
fn raw_uploads_by_default() {
    let app = application(|request| says(request.body.len().to_string()));
    let force = "SecRule REQBODY_PROCESSOR \"!@rx (?:URLENCODED|MULTIPART|XML|JSON)\" \
        \"id:1,phase:1,pass,nolog,ctl:forceRequestBodyVariable=On\"";
    let body = noise(15 << 20);
    for mode in ["crs", "both"] {
        for keys in [
            "",
            "request_body = { over_limit = \"pass_uninspected\" }",
            "request_body = { limit = \"1GiB\" }",
        ] {
            let site = format!("mode = \"{mode}\"\n{}\n{keys}", served::rules(force));
            let served = Served::start_site(&app, &site, "[limits]\nheld_bodies = \"1GiB\"\n");
            for answer in [served.post("/", BYTES, &body), served.raw(chunked("image/jpeg", &body, 1 << 20))]
            {
                assert_eq!((answer.status(), answer.body()), (200, body.len().to_string()), "{mode} {keys}");
            }
        }
    }
}

/// A limit beyond what a client's share of the memory has room for: an upload goes on as one beyond the limit
/// does, and what has to be held is refused with the key to raise.
#[test]
fn a_limit_that_memory_does_not_reach() {
    let app = application(|request| says(request.body.len().to_string()));
    let limits = "[limits]\nheld_bodies = \"8MiB\"\nnetwork_held_bodies = \"4MiB\"\n";
    let (noise, form) = (noise(6 << 20), file(&noise(6 << 20), "a holiday in May"));
    let (late, late_form) = ([&noise[..], SHELL].concat(), file(&[&noise[..], SHELL].concat(), "x"));
    let json = format!("{{\"a\":\"{}\"}}", "x".repeat(6 << 20));
    for (mode, found) in [("semantic", 403), ("both", 403), ("crs", 200)] {
        let rules = if mode == "semantic" { String::new() } else { served::rules("SecRequestBodyAccess On") };
        let site = format!("mode = \"{mode}\"\n{rules}\nrequest_body = {{ limit = \"1GiB\" }}");
        let served = Served::start_site(&app, &site, limits);
        for (media_type, body) in [(BYTES, &noise), (MULTIPART, &form)] {
            for answer in [served.post("/", media_type, body), served.raw(chunked(media_type, body, 1 << 20))]
            {
                // Where rules alone look, none of them would see the field behind the file.
                match (mode, media_type) {
                    ("crs", MULTIPART) => assert_eq!(answer.status(), 413),
                    _ => {
                        assert_eq!((answer.status(), answer.body()), (200, body.len().to_string()), "{mode}")
                    }
                }
            }
        }
        assert_eq!(served.post("/", BYTES, &late).status(), found, "{mode}");
        if mode != "crs" {
            assert_eq!(served.post("/", MULTIPART, &late_form).status(), found, "{mode}");
        }
        let uninspected = served.metric("portcullis_bytes_not_inspected_total{reason=\"over_limit\"}");
        assert_eq!(uninspected > 0.0, mode == "crs", "{mode}: {uninspected}");
        let answer = served.post("/", "application/json", &json);
        assert_eq!(answer.status(), 413, "{mode}");
        assert!(answer.body().contains("limits.network_held_bodies"), "{mode}: {}", answer.body());
    }
}

#[test]
fn limits_by_default() {
    let app = application(|request| says(request.body.len().to_string()));
    let served = Served::start_site(&app, "mode = \"semantic\"", "");
    let body = noise(14 << 20);
    assert_eq!(served.post("/", BYTES, &body).body(), body.len().to_string());
    let values: String = (0..100_000).map(|number| format!("\"value {number}\",")).collect();
    let json = |last: &str| format!("{{\"a\":[{values}\"{last}\"]}}");
    assert_eq!(served.post("/", "application/json", json("end")).status(), 200);
    let sqli = "x' UNION SELECT user,password FROM users-- -";
    assert_eq!(served.post("/", "application/json", json(sqli)).status(), 403);
    // Another body under the type of JSON is read as what it is.
    assert_eq!(served.post("/", "application/json", "a=1&b=hello").status(), 200);
    assert_eq!(served.post("/", "application/json", format!("a=1&b={sqli}")).status(), 403);
    let served =
        Served::start_site(&app, "mode = \"semantic\"\nrequest_body = { unreadable = \"refuse\" }", "");
    assert_eq!(served.post("/", "application/json", "a=1&b=hello").status(), 400);
}
