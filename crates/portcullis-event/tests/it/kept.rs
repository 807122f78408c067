//! Requests that are kept lose their secrets and nothing else.

use portcullis_event::{KeptRequest, RawRequest, Redactor, RedactorNames};
use proptest::prelude::*;

fn keep(line: &str, fields: &[(&str, &str)], body: &[u8], omitted: u64) -> KeptRequest {
    let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    let request = RawRequest { line: line.as_bytes(), fields, body, omitted };
    KeptRequest::new(&request, &[&Redactor::default()], &[])
}

fn text(kept: &KeptRequest) -> String {
    String::from_utf8(kept.bytes.clone()).unwrap()
}

#[test]
fn a_request_is_put_together() {
    let fields = [
        ("Host", "shop.example"),
        ("Authorization", "Bearer abc.DEF-123"),
        ("X-Api-Key", "k3y"),
        ("Cookie", "theme=dark; session=S3cr3tValue; x=1"),
        ("Content-Encoding", "gzip"),
        ("content-length", "17"),
        ("Transfer-Encoding", "chunked"),
        ("Referer", "https://shop.example/login?token=T0kenT0ken&x=1"),
    ];
    let kept = keep(
        "POST /login?next=%2F&password=pa%73sport HTTP/1.1",
        &fields,
        b"user=bob&password=Hunter%32!&q=1",
        5,
    );
    assert_eq!(
        text(&kept),
        "POST /login?next=%2F&password=xx%78xxxxx HTTP/1.1\r\nHost: shop.example\r\n\
         Authorization: Bearer xxx.XXX-000\r\nX-Api-Key: x0x\r\nCookie: theme=dark; session=X0xx0xXxxxx; x=1\r\n\
         Referer: https://shop.example/login?token=X0xxxX0xxx&x=1\r\nContent-Length: 32\r\n\r\n\
         user=bob&password=Xxxxxx%30!&q=1"
    );
    assert_eq!(kept.omitted, 5);
}

#[test]
fn bodies_of_all_kinds_lose_their_secrets() {
    for (body, expected) in [
        (
            r#"{"user":"bob","password":"a\"b\u0041","n":1}"#,
            r#"{"user":"bob","password":"x\"x\u0058","n":1}"#,
        ),
        (r#"{"pin": 1234, "x": 1234567}"#, r#"{"pin": 0000, "x": 0000567}"#),
        ("<r><password>Tr0ub4dor</password><q>1</q></r>", "<r><password>Xx0xx0xxx</password><q>1</q></r>"),
        (
            "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nhunter2\r\n--b--",
            "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nxxxxxx0\r\n--b--",
        ),
        (
            "t=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlcw&q=1",
            "t=xxXxxXxxXxXXXxX0XxX0.xxXxxXXxXxXxXx0.x0xxxxX0xXXxxx&q=1",
        ),
    ] {
        let kept = text(&keep("POST / HTTP/1.1", &[], body.as_bytes(), 0));
        let (head, rest) = kept.split_once("\r\n\r\n").unwrap();
        // The head of a part of a multipart body is not looked at further.
        let expected_length = format!("Content-Length: {}", body.len());
        assert!(head.ends_with(&expected_length), "{head}");
        if body.starts_with("--b") {
            assert!(!rest.contains("hunter2") && rest.contains("--b--"), "{rest}");
        } else {
            assert_eq!(rest, expected);
        }
    }
}

/// A secret that is known by its name goes wherever else it stands, also decoded and within credentials.
#[test]
fn known_secrets_go_everywhere() {
    let fields = [("Authorization", "Basic Ym9iOkh1bnRlcjI="), ("X-Note", "it was Hunter2 again")];
    let kept = text(&keep("GET /a/hunter2?x=Hunter2 HTTP/1.1", &fields, b"comment=my+Hunter2", 0));
    assert!(!kept.to_lowercase().contains("hunter2"), "{kept}");
    assert!(kept.contains("Authorization: Basic Xx0xXxx0xxXxxxX="), "{kept}");
    let kept = text(&keep("GET http://bob:secret-word@a.example/ HTTP/1.1", &[], b"x=secret-word", 0));
    assert!(!kept.contains("bob") && kept.contains("@a.example/"), "{kept}");
    let hidden =
        RedactorNames { headers: vec![], args: vec!["card".to_owned()], cookies: vec![], weak: vec![] };
    let request = RawRequest { line: b"GET /?card=4111 HTTP/1.1", fields: vec![], body: b"", omitted: 0 };
    let kept = KeptRequest::new(&request, &[&Redactor::default(), &Redactor::new(&hidden)], &[b"HTTP"]);
    assert_eq!(text(&kept), "GET /?card=0000 XXXX/1.1\r\n\r\n");
}

/// What the end of the kept part cuts off is a secret still.
#[test]
fn secrets_that_are_cut_off_go_too() {
    for (line, body) in [
        ("POST / HTTP/1.1", "a=1&password=SecretW"),
        ("POST / HTTP/1.1", r#"{"password":"SecretW"#),
        ("POST /?password=SecretWord HTTP/1.1", "a=1&b=the+SecretW"),
        ("POST / HTTP/1.1", "a=1&b=eyJSecretWord0123456789.SecretW"),
        ("POST / HTTP/1.1", "<password>SecretW"),
        ("POST / HTTP/1.1", "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nSecretW"),
    ] {
        let kept = text(&keep(line, &[], body.as_bytes(), 100));
        assert!(!kept.contains("Secret"), "{kept}");
    }
}

proptest! {
    /// Whatever is sent, a named secret is gone, lengths stay, and keeping what is kept changes nothing.
    #[test]
    fn named_secrets_are_gone(
        secret in "[a-zA-Z0-9]{6,30}[!$*~_.-]{0,3}",
        before in prop::collection::vec(any::<u8>(), 0..60),
        after in "[&;\"<>{}a-z= ]{0,40}",
        form in 0..4_usize,
    ) {
        prop_assume!(secret.bytes().filter(u8::is_ascii_alphanumeric).any(|byte| !b"xX0".contains(&byte)));
        let mut body = before;
        let text = match form {
            0 => format!("&password={secret}&{after}"),
            1 => format!("\"password\": \"{secret}\"{after}"),
            2 => format!("<password>{secret}<{after}"),
            _ => format!("\nX-Api-Key: {secret}\n{after}"),
        };
        body.extend_from_slice(text.as_bytes());
        let kept = keep("POST / HTTP/1.1", &[], &body, 0);
        let start = kept.bytes.len() - body.len();
        let found = kept.bytes[start..].windows(secret.len()).any(|window| window == secret.as_bytes());
        prop_assert!(!found, "{}", String::from_utf8_lossy(&kept.bytes));
        let again = keep("POST / HTTP/1.1", &[], &kept.bytes[start..], 0);
        prop_assert_eq!(&again.bytes[start..], &kept.bytes[start..]);
    }

    #[test]
    fn any_bytes_are_kept_in_their_length(line in prop::collection::vec(any::<u8>(), 0..80), body in prop::collection::vec(any::<u8>(), 0..400), omitted in 0..3_u64) {
        let request = RawRequest { line: &line, fields: vec![(&line, &body)], body: &body, omitted };
        let kept = KeptRequest::new(&request, &[&Redactor::default()], &[&body]);
        prop_assert!(kept.bytes.len() >= line.len() + body.len());
    }
}

/// The time is linear: a body that is all names and separators takes no longer than its length says.
#[test]
fn a_body_of_separators_is_read_once() {
    for piece in [
        "=",
        "password=",
        "\"password\":",
        "<password>",
        "eyJ",
        "name=\"password\"",
        "Cookie: a=b;",
        "password= HTTP/",
        "password=x HTTP/",
        "pin=1 ",
        "a=\"b\": <c>",
        "\nX-Api-Key: ",
    ] {
        let body = piece.repeat((1 << 20) / piece.len());
        let kept = keep("POST / HTTP/1.1", &[], body.as_bytes(), 1);
        assert!(kept.bytes.len() > body.len());
    }
}
