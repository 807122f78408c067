//! Types of values.

use portcullis_learn::{Syntax, TypeSet, ValueType, classify};
use proptest::prelude::*;

fn kind(value: &[u8]) -> ValueType {
    classify(value, |host| host.eq_ignore_ascii_case(b"shop.example")).kind
}

#[test]
fn types_of_values() {
    use ValueType::*;
    for (expected, values) in [
        (Whole, &["0", "4711", "-3", "+49", " 12 ", "00123456789"][..]),
        (Decimal, &["0.5", "-1,25", "1e6", ".5", "3.14E-10"]),
        (Boolean, &["true", "False", "yes", "OFF"]),
        (Uuid, &["123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000"]),
        (Hash, &["d41d8cd98f00b204e9800998ecf8427e", "0123456789abcdef"]),
        (
            Date,
            &[
                "2026-11-29",
                "29.11.2026",
                "11/29/2026",
                "2026-11-29T18:05:30.123Z",
                "18:05",
                "2026-11",
                "2026-11-29 18:05:30+01:00",
            ],
        ),
        (Email, &["ann@shop.example", "a.b+c@mail.shop.example"]),
        (Word, &["price", "user_name", "Größe", "abc123", "deadbeef"]),
        (Slug, &["en-GB", "my-first-post", "file.txt", "1.2.3", "a--b"]),
        (OwnUrl, &["https://shop.example/", "//SHOP.example:8443/a?b=c"]),
        (OtherUrl, &["https://evil.example/", "http://shop.example.evil.example/x"]),
        (Path, &["/cart", "/a/b.html?x=1&y=2", "images/logo.png"]),
        (Token, &["eyJhbGciOi+/==", "1,2,3", "a:b:c", "x~y"]),
        (
            Line,
            &[
                "two words",
                "1 or 1=1",
                "../../etc/passwd",
                "O'Brien",
                "https://shop.example@evil.example/",
                "a=b=c",
            ],
        ),
        (Text, &["two\nlines"]),
        (Markup, &["<b>bold</b>", "x <!-- y"]),
        (Code, &["f(a);b=[1]", "{{7*7}}$(x)", "${jndi:ldap://x}()"]),
        (Json, &[r#"{"a":1}"#, "[1,2]", "[]"]),
        (Binary, &["\0\u{1}\u{2}"]),
    ] {
        for value in values {
            assert_eq!(kind(value.as_bytes()), expected, "{value}");
        }
    }
    assert_eq!(kind(&[0xFF; 300]), Binary);
    assert_eq!(kind(b"Zo\xE9"), Line, "Latin-1");
}

#[test]
fn bytes_of_code() {
    let syntax = |value: &str| classify(value.as_bytes(), |_| false).syntax.to_string();
    assert_eq!(syntax("plain text, with 12.5 % - no"), "percent signs");
    assert_eq!(
        syntax("1' or (2)=\"2\";--"),
        "apostrophes, double quotes, parentheses, semicolons, equals signs, two hyphens in a row"
    );
    assert_eq!(syntax("..\\x\r\n"), "backslashes, line ends or control characters, two dots in a row");
    assert_eq!(syntax("1＇"), "full-width characters");
    assert_eq!(syntax("a-b_c.d"), "");
}

proptest! {
    /// Any bytes have a type, in time that is linear in them.
    #[test]
    fn anything_has_a_type(value in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = classify(&value, |_| true);
    }

    /// A value of a plain type has no bytes that end a value in any language: what covers it can only be
    /// plain.
    #[test]
    fn plain_values_have_no_quotes_or_brackets(value in "[ -~]{1,24}") {
        let shape = classify(value.as_bytes(), |host| host == b"a.b");
        let sharp = [
            Syntax::QUOTE, Syntax::DOUBLE_QUOTE, Syntax::BACKTICK, Syntax::BRACE, Syntax::ANGLE, Syntax::DOLLAR,
            Syntax::BACKSLASH, Syntax::PIPE, Syntax::SQUARE,
        ];
        let sharp = sharp.into_iter().fold(Syntax::NONE, Syntax::with);
        // Of a URL brackets stand around an address, or in the query.
        let is_url = matches!(shape.kind, ValueType::OwnUrl | ValueType::OtherUrl);
        if ValueType::PLAIN.contains(&shape.kind) && !is_url {
            prop_assert!(!shape.syntax.intersects(sharp), "{value} is {shape}");
        }
    }
}

/// A wider type covers what the narrower ones that it covers do, so that the narrowest that fits is found by
/// order.
#[test]
fn covering_is_transitive() {
    for wide in ValueType::PLAIN {
        assert!(wide.covers().has(*wide), "{wide:?}");
        for narrow in ValueType::PLAIN.iter().filter(|narrow| wide.covers().has(**narrow)) {
            assert!(narrow.covers().is_within(wide.covers()), "{wide:?} covers {narrow:?}, not all of it");
        }
    }
    let all: TypeSet = ValueType::ALL.iter().copied().collect();
    let never = [
        ValueType::Line,
        ValueType::Text,
        ValueType::Markup,
        ValueType::Code,
        ValueType::Json,
        ValueType::Binary,
    ];
    for plain in ValueType::PLAIN {
        assert!(plain.covers().is_within(all));
        assert!(never.iter().all(|kind| !plain.covers().has(*kind)), "{plain:?}");
    }
}
