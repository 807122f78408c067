//! Attacks in Base64 that something else stands around or in, as lenient decoders read it.

use std::io::Write;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use portcullis_semantic::{Analysis, Detectors, Level, Location, Place};

static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

const ATTACKS: &[(&str, &str)] = &[
    ("1' UNION SELECT password FROM users-- -", "sqli"),
    ("<script>alert(document.cookie)</script>", "xss"),
    ("../../../../../../../../etc/passwd", "path"),
];

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let at = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i) & 63) as usize] as char;
            out.push(if i > three.len() { '=' } else { letter });
        }
    }
    out
}

fn deflated(text: &str, level: Compression) -> Vec<u8> {
    let mut packer = DeflateEncoder::new(Vec::new(), level);
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

/// A signed token with `claim`.
fn token(claim: &str) -> String {
    let claims = format!(r#"{{"sub":"{claim}","iat":1}}"#);
    let url = |part: &str| base64(part.as_bytes()).trim_end_matches('=').replace('+', "-").replace('/', "_");
    let head = url(r#"{"alg":"HS256","typ":"JWT"}"#);
    format!("{head}.{}.0Yb3xQm7rT-kVz9uHc2LwJ5eNpA8sDfG6iXoB1tUyRq", url(&claims))
}

fn worst(analysis: &Analysis) -> &'static str {
    let worst = analysis.worst(&DETECTORS, Level::Balanced).filter(|worst| worst.blocks(Level::Balanced));
    worst.map_or("", |worst| worst.class.name())
}

fn header(name: &str, value: &str) -> &'static str {
    let fields: [(&[u8], &[u8]); 2] = [(b"Host", b"shop.example"), (name.as_bytes(), value.as_bytes())];
    let mut analysis = Analysis::new();
    analysis.request_head(&DETECTORS, b"GET", b"/", fields.into_iter());
    worst(&analysis)
}

fn query(value: &str) -> &'static str {
    let escaped: String = value.bytes().map(|b| format!("%{b:02X}")).collect();
    let mut analysis = Analysis::new();
    let fields: [(&[u8], &[u8]); 1] = [(b"Host", b"shop.example")];
    analysis.request_head(&DETECTORS, b"GET", format!("/?x={escaped}").as_bytes(), fields.into_iter());
    worst(&analysis)
}

fn body(content_type: &str, body: &str) -> &'static str {
    let mut analysis = Analysis::new();
    analysis.request_body(&DETECTORS, content_type.as_bytes(), body.as_bytes());
    worst(&analysis)
}

#[test]
fn quotes_around_it() {
    for &(attack, class) in ATTACKS {
        let packed = base64(attack.as_bytes());
        for text in [packed.clone(), token(attack), format!(" {packed} ")] {
            assert_eq!(header("Cookie", &format!("s=\"{text}\"")), class, "{text}");
            assert_eq!(header("Cookie", &format!("a=b; s=%22{text}%22")), class, "{text}");
            assert_eq!(query(&format!("'{text}'")), class, "{text}");
            let json = format!(r#"{{"x":"\"{text}\""}}"#);
            assert_eq!(body("application/json", &json), class, "{json}");
        }
    }
}

#[test]
fn lines_with_indents() {
    for &(attack, class) in ATTACKS {
        let packed = base64(format!("{attack} {attack}").as_bytes());
        for indent in ["", "  ", "\t", "                "] {
            for width in [16, 20, 61, 76] {
                let lines = packed.as_bytes().chunks(width);
                let lines: String =
                    lines.map(|line| format!("\n{indent}{}", String::from_utf8_lossy(line))).collect();
                let xml = format!("<methodCall><params><base64>{lines}\n</base64></params></methodCall>");
                assert_eq!(body("text/xml", &xml), class, "{xml}");
                assert_eq!(query(&lines), class, "{lines}");
            }
        }
    }
}

#[test]
fn words_before_it() {
    for &(attack, class) in ATTACKS {
        let packed = base64(attack.as_bytes());
        for lead in [
            "Basic ",
            "Basic  ",
            "Basic\t",
            "  Bearer   ",
            "CustomToken ",
            "CustomToken \t",
            "v1:",
            "v1=",
            "Token token=",
            "Signature keyId=abc, value=",
            "a long word of others, and then ",
        ] {
            assert_eq!(header("Authorization", &format!("{lead}{packed}")), class, "{lead}");
            assert_eq!(header("Authorization", &format!("{lead}\"{packed}\"")), class, "{lead}");
            assert_eq!(header("Authorization", &format!("{lead}{}", token(attack))), class, "{lead}");
            let odd = format!("{lead}{}!{}", &packed[..17], &packed[17..]);
            assert_eq!(header("Authorization", &odd), class, "{odd}");
        }
        let text = format!("Token token=\"{}\", nonce=\"Zm9vYmFyYmF6cXV4Zm9v\"", token(attack));
        assert_eq!(header("Authorization", &text), class);
    }
    let head = base64(br#"{"alg":"HS256","kid":"../../../../../../etc/passwd"}"#);
    let text = format!("  Bearer   {}.eyJzdWIiOiIxIn0.c2ln", head.trim_end_matches('='));
    assert_eq!(header("Authorization", &text), "path");
}

#[test]
fn bytes_in_it_that_decoders_skip() {
    for &(attack, class) in ATTACKS {
        let packed = base64(attack.as_bytes());
        for odd in ["!", ".", " ", "*", "$", "\u{e9}", ":", "\"", "\n ", "\t", "=", "\r\n\t"] {
            for at in [1, 6, 11, 16, 22, 33] {
                let text = format!("{}{odd}{}", &packed[..at], &packed[at..]);
                assert_eq!(query(&text), class, "{}", text.escape_debug());
            }
        }
        // One letter or padding too many.
        for more in ["A", "=", "===", "!"] {
            assert_eq!(query(&format!("{packed}{more}")), class, "{packed}{more}");
        }
        for at in [7, 8, 9, 10] {
            let (first, second) = attack.split_at(at);
            let text = base64(first.as_bytes()) + &base64(second.as_bytes());
            assert_eq!(query(&text), class, "{text}");
        }
        let parts = format!("{}{packed}", "MTIzNDU2Nzg5.".repeat(9));
        assert_eq!(query(&parts), class, "{parts}");
        let long = format!("{}!{packed}", base64(&b"just a text of words ".repeat(400)));
        assert_eq!(body("application/json", &format!(r#"{{"x":"{long}"}}"#)), class);
    }
}

#[test]
fn raw_deflate() {
    let saml = r#"<?xml version="1.0"?><!DOCTYPE r [<!ENTITY x SYSTEM "http://a.example/x">]>
        <samlp:AuthnRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol">&x;</samlp:AuthnRequest>"#;
    for level in [Compression::none(), Compression::fast(), Compression::best()] {
        for before in [&b""[..], &[0, 0, 0, 0xFF, 0xFF], &[0x08, 0, 0, 0xFF, 0xFF]] {
            let packed = [before, &deflated(saml, level)].concat();
            for packed in [packed.clone(), [&packed[..], b"\xF3"].concat()] {
                assert_eq!(query(&base64(&packed)), "xxe", "{level:?}");
            }
        }
        for &(attack, class) in ATTACKS {
            // As long as messages of SAML are at least; shorter ones are not tried.
            let text = format!("{attack}?q8ZrkTw2Vn5ybX7dJm3cLh9sGf4pRt6aWk1eYu0iPo2zQx8vBn5mAs3dFg7hJk9l");
            let packed = deflated(&text, level);
            assert!(packed.len() >= 64);
            assert_eq!(query(&base64(&packed)), class, "{level:?}");
        }
        let honest = deflated(&saml[saml.find("<samlp").unwrap()..].replace("&x;", ""), level);
        assert_eq!(query(&base64(&honest)), "");
    }
}

/// An attack behind more text than is unpacked of a value: the text is cut, and a text that is cut blocks.
#[test]
fn attacks_behind_what_is_unpacked() {
    for words in [20_000, 200_000, 2_000_000, 8_000_000] {
        let text = "a ".repeat(words) + "x' union select password, 2 from users -- ";
        let packed = base64(&deflated(&text, Compression::best()));
        assert!(packed.len() < 60_000);
        assert_eq!(query(&packed), "protocol", "{words} words in {} bytes", packed.len());
    }
}

#[test]
fn honest_texts() {
    let mut state = 1u64;
    let mut random = |len: usize| -> Vec<u8> {
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as u8
        };
        (0..len).map(next).collect()
    };
    let mut texts: Vec<String> = [
        "The quick brown fox jumps over the lazy dog, and 12 others: see https://shop.example/a/B/Cde?x=Yz.",
        "Donaudampfschifffahrtsgesellschaft Rechtsschutzversicherung Kraftfahrzeughaftpflicht",
        "W/\"5f3-17a2b3c4d5e6f708\"",
        "\"33a64df551425fcc55e4d42a148795d9f25f89d4\"",
        "Digest username=\"Mufasa\", realm=\"testrealm@host.com\", \
         nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\"",
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=\
         host;range, Signature=fe5f80f77d5fa3beca038a248ff027d0445342fe2855ddc963176630326f1024",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ\
         AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC",
        "GA1.2.1234567890.1609459200",
        "550e8400-e29b-41d4-a716-446655440000",
        "com.example.SomeVeryLongClassName: getUserAccountDetailsByIdentifier(AccountIdentifier)",
    ]
    .map(String::from)
    .into();
    texts.push(token("anne@shop.example"));
    texts.push(format!("Bearer {}", token("anne@shop.example")));
    texts.push(format!("Token token=\"{}\"", base64(b"a note of Anne's: the order is 3 of 5 or so")));
    for len in (8..400).step_by(7) {
        let packed = base64(&random(len));
        texts.push(format!("\"{packed}\""));
        texts.push(format!("v1:{packed}"));
        texts.push(format!("s:{}.{}", packed, base64(&random(32))));
        let lines = packed.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line) + "\n");
        texts.push(format!(
            "-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----",
            lines.collect::<String>()
        ));
        texts.push(packed);
    }
    for text in texts {
        assert_eq!(query(&text), "", "{text}");
        if !text.contains('\n') {
            assert_eq!(header("Authorization", &text), "", "{text}");
            assert_eq!(header("Cookie", &format!("s={text}")), "", "{text}");
        }
        let mut analysis = Analysis::new();
        analysis.value(&DETECTORS, Location::new(Place::Json, b"x"), text.as_bytes());
        assert_eq!(worst(&analysis), "", "{text}");
    }
}
