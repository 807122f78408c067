//! Encodings do not hide what is found without them, and text of everyday shapes is never blocked.

use super::testing::look;
use crate::{Class, Place};

const ATTACKS: &[(Class, &str)] = &[
    (Class::Path, "../../../../etc/passwd"),
    (Class::Path, "php://filter/convert.base64-encode/resource=index.php"),
    (Class::Ssrf, "http://169.254.169.254/latest/meta-data/"),
    (Class::Ssrf, "gopher://127.0.0.1:6379/_INFO"),
    (Class::RemoteFile, "http://a.example/shell.txt?"),
    (Class::Xxe, "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///x\">]><a>&x;</a>"),
    (Class::NoSql, "{\"$where\": \"sleep(5000)\"}"),
    (Class::Ldap, "*)(uid=*))(|(uid=*"),
    (Class::Xpath, "' and string-length(name(/*[1]))=5 and '1'='1"),
    (Class::Ssi, "<!--#exec cmd=\"ls\" -->"),
    (Class::Crlf, "x\r\nSet-Cookie: a=b"),
    (Class::Prototype, "{\"__proto__\": {\"admin\": true}}"),
];

fn each(text: &str, write: impl Fn(u8) -> String) -> String {
    text.bytes().map(write).collect()
}

fn base64(text: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let number =
            chunk.iter().fold(0u32, |number, b| number << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for index in 0..4 {
            let letter = char::from(ALPHABET[(number >> (18 - 6 * index) & 63) as usize]);
            out.push(if index <= chunk.len() { letter } else { '=' });
        }
    }
    out
}

#[test]
fn encodings_do_not_hide() {
    for (class, attack) in ATTACKS {
        let percent = each(attack, |b| format!("%{b:02x}"));
        let forms = [
            ("itself", (*attack).to_owned()),
            ("percent", percent.clone()),
            ("percent twice", percent.replace('%', "%25")),
            (
                "signs only",
                each(attack, |b| {
                    if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") }
                }),
            ),
            ("escapes", each(attack, |b| format!("\\u{b:04x}"))),
            ("entities", each(attack, |b| format!("&#{b};"))),
            ("base64", base64(attack)),
            ("percent in base64", base64(&percent)),
        ];
        for (form, text) in forms {
            for place in [Place::Query, Place::Form, Place::Json, Place::Cookie] {
                let (have, is_blocked) = look(*class, place, "q", text.as_bytes());
                assert!(is_blocked, "{class} as {form} at {}: {text}: {have}", place.name());
            }
        }
    }
}

/// Sentences, addresses, numbers, file names and code words in every order: nothing of it is an attack.
#[test]
fn everyday_text_passes() {
    let pieces = [
        "the file is in ../docs",
        "see https://www.example.com/a?b=1&c=2",
        "(see above)",
        "C:\\Users\\Ann",
        "a@b.example",
        "$5 or $10",
        "10.0.0.1",
        "x = y * (z + 1)",
        "<b>bold</b>",
        "50% off",
        "#hashtag",
        "it's",
        "\"quoted\"",
        "{key: value}",
        "count(items)",
        "Subject: hello",
        "line one\r\nline two",
    ];
    for one in pieces {
        for two in pieces {
            for three in pieces.iter().step_by(3) {
                let text = format!("{one} {two}, {three}");
                let (have, is_blocked) = look(Class::Path, Place::Form, "text", text.as_bytes());
                assert!(!is_blocked, "{text}: {have}");
            }
        }
    }
}
