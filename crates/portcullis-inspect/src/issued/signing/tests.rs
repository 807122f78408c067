//! What some server reads as a signed cookie, and keys that change.

use proptest::prelude::*;

use super::super::{IssuedKey, IssuedSites};
use super::*;

const NOW: u64 = 1_700_000_000_000;

fn signer_of(key: u8, site: &str, names: &[&str], accepts_unsigned: bool) -> CookieSigner {
    let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    IssuedSites::new(IssuedKey([key; 32]), 1 << 20).site(site).signer(&names, accepts_unsigned)
}

fn signer() -> CookieSigner {
    signer_of(7, "shop", &["session", "user"], false)
}

/// The cookie that a browser sends back of a field that was signed.
fn sent_back(signer: &CookieSigner, field: &str, now: u64) -> String {
    let signed = signer.set_cookie(field.as_bytes(), now).expect("a name that is signed").field;
    let pair = signed.split(|b| *b == b';').next().unwrap();
    String::from_utf8(pair.to_vec()).unwrap()
}

/// What is left of a `Cookie` field, and the outcomes.
fn checked(signer: &CookieSigner, field: &[u8], now: u64) -> (Vec<u8>, Vec<&'static str>) {
    let mut checked = CheckedCookies::default();
    let left = signer.cookies(field, now, &mut checked);
    let outcomes = checked.counts.iter().zip(CookieCheck::NAMES);
    let outcomes = outcomes.filter(|(count, _)| **count > 0).map(|(_, name)| name).collect();
    (left.unwrap_or_else(|| field.to_vec()), outcomes)
}

fn left(signer: &CookieSigner, field: &str) -> (String, Vec<&'static str>) {
    let (left, outcomes) = checked(signer, field.as_bytes(), NOW);
    (String::from_utf8(left).unwrap(), outcomes)
}

#[test]
fn attributes_and_other_cookies_stay_as_they_are() {
    let signer = signer();
    for (field, begin, end) in [
        ("session=abc; Path=/; HttpOnly", "session=abc.", "; Path=/; HttpOnly"),
        (" session = abc ;Path=/", "session=abc.", ";Path=/"),
        ("session=a=b==", "session=a=b==.", ""),
        ("session=\"a b\"; Secure", "session=\"a b.", "\"; Secure"),
        ("session=; Max-Age=0", "session=.", "; Max-Age=0"),
        ("SESSION=1", "SESSION=1.", ""),
    ] {
        let signed = signer.set_cookie(field.as_bytes(), NOW).unwrap();
        let text = String::from_utf8(signed.field).unwrap();
        assert!(text.starts_with(begin) && text.ends_with(end) && !signed.is_too_long, "{text}");
        assert_eq!(text.len(), begin.len() + end.len() + SIGNATURE_BYTES - 1, "{text}");
    }
    for field in ["theme=dark", "sessions=1", "session", "", "; session=1", "=session=1"] {
        assert_eq!(signer.set_cookie(field.as_bytes(), NOW), None, "{field}");
    }
}

#[test]
fn a_cookie_that_browsers_would_drop_for_its_signature_is_told() {
    let is_too_long = |bytes: usize| {
        let field = format!("session={}; Path=/", "x".repeat(bytes - "session".len()));
        signer().set_cookie(field.as_bytes(), NOW).unwrap().is_too_long
    };
    assert!(!is_too_long(COOKIE_BYTES_MAX - SIGNATURE_BYTES));
    assert!(is_too_long(COOKIE_BYTES_MAX - SIGNATURE_BYTES + 1) && is_too_long(COOKIE_BYTES_MAX));
    // They drop it without one, too.
    assert!(!is_too_long(COOKIE_BYTES_MAX + 1));
}

#[test]
fn what_has_no_signature_of_its_own_is_removed() {
    let signer = signer();
    let own = sent_back(&signer, "session=abc; Path=/", NOW);
    let other = sent_back(&signer, "session=def", NOW);
    let user = sent_back(&signer, "user=abc", NOW).replace("user", "session");
    let site = sent_back(&signer_of(7, "blog", &["session"], false), "session=abc", NOW);
    let secret = sent_back(&signer_of(8, "shop", &["session"], false), "session=abc", NOW);
    let moved = format!("session=abc{}", other.strip_prefix("session=def").unwrap());
    for (field, rest, outcomes) in [
        ("theme=dark; x", "theme=dark; x", &[][..]),
        (&own, "session=abc", &["verified"]),
        (&format!("a=1;{own};  b=2"), "a=1; session=abc; b=2", &["verified"]),
        // Several of a name: each for itself.
        (&format!("{own}; {other}"), "session=abc; session=def", &["verified"]),
        (&format!("session=abc; {own}; session="), "session=abc", &["verified", "unsigned"]),
        ("session=abc", "", &["unsigned"]),
        ("a=1; session; b=2", "a=1; b=2", &["unsigned"]),
        (&own.replace("session", "SESSION"), "", &["changed"]),
        (&own.replace("session=abc", "session=ABC"), "", &["changed"]),
        (&own.replace("session=abc", "session=\"abc").replace(' ', ""), "", &["changed"]),
        (&format!("{own}x"), "", &["unsigned"]),
        (&moved, "", &["changed"]),
        (&user, "", &["changed"]),
        (&site, "", &["changed"]),
        (&secret, "", &["changed"]),
    ] {
        let (found, found_outcomes) = left(&signer, field);
        assert_eq!((found.as_str(), &found_outcomes[..]), (rest, outcomes), "{field}");
    }
}

/// Places where one server or another finds a cookie, and names that it takes for the same.
#[test]
fn what_some_server_reads_as_the_cookie_is_removed() {
    let signer = signer();
    for field in [
        "a=1, session=x",
        "a=1,session=x",
        "a=1 session=x",
        "a=1\tsession =x",
        "a=\"b session=x\"",
        "a=\"session=x",
        "=session=x",
        "a==session=x",
        "a=b=\u{a0}session=x",
        "a session\u{a0}=x",
        "a=1 \"session\" =x",
    ] {
        assert_eq!(left(&signer, field), (String::new(), vec!["hidden"]), "{field}");
    }
    for name in [
        "Session",
        "\"session\"",
        "'session'",
        " session",
        "\u{a0}session",
        "%73ession",
        "session[a]",
        "session[",
        "session%00x",
        "ses%73ion%5Ba",
        "+session",
        "session+",
        "session\u{3000}",
    ] {
        assert_eq!(left(&signer, &format!("{name}=x")), (String::new(), vec!["unsigned"]), "{name}");
    }
    let dotted = signer_of(7, "shop", &["ASP.NET_SessionId"], false);
    for name in [
        "ASP_NET_SessionId",
        "asp%2Enet_sessionid",
        "ASP NET_SessionId",
        "ASP[NET_SessionId",
        "asp[net[sessionid",
    ] {
        assert_eq!(left(&dotted, &format!("{name}=x")).0, "", "{name}");
    }
    // Cookies that only mention it.
    for field in
        ["a=session", "next=/x?session=1", "q=a&session=1", "session2=x", "my-session=x", "a=b; xsession=1"]
    {
        assert_eq!(left(&signer, field), (field.to_owned(), vec![]), "{field}");
    }
}

#[test]
fn unsigned_cookies_are_accepted_for_a_time_and_changed_ones_never() {
    let signer = signer_of(7, "shop", &["session"], true);
    let own = sent_back(&signer, "session=abc", NOW);
    let accepted = |field: &str| (field.to_owned(), vec!["accepted"]);
    assert_eq!(left(&signer, "session=abc"), accepted("session=abc"));
    assert_eq!(left(&signer, "a=1 session=x"), accepted("a=1 session=x"));
    assert_eq!(left(&signer, &own), ("session=abc".to_owned(), vec!["verified"]));
    assert_eq!(left(&signer, &own.replace("abc", "abd")), (String::new(), vec!["changed"]));
}

#[test]
fn old_keys_are_accepted_for_a_time() {
    let signer = signer();
    let own = sent_back(&signer, "session=abc", NOW);
    let start = NOW / COOKIE_KEY_MILLIS * COOKIE_KEY_MILLIS;
    let kept = u64::from(COOKIE_KEYS_KEPT) * COOKIE_KEY_MILLIS;
    assert!(kept >= 400 * 24 * 3600 * 1000, "as long as browsers keep cookies");
    let outcome = |now: u64| checked(&signer, own.as_bytes(), now).1;
    for (now, expected) in [
        (NOW, "verified"),
        (NOW + kept, "verified"),
        (start + kept + COOKIE_KEY_MILLIS - 1, "verified"),
        (start + kept + COOKIE_KEY_MILLIS, "unsigned"),
        // A node whose clock is behind.
        (start - 1, "verified"),
        (start - COOKIE_KEY_MILLIS - 1, "unsigned"),
        (0, "unsigned"),
        (u64::MAX, "unsigned"),
    ] {
        assert_eq!(outcome(now), [expected], "{now}");
    }
    let later = sent_back(&signer, "session=abc", NOW + COOKIE_KEY_MILLIS);
    assert_ne!(own, later);
}

/// A node that takes over the secret of others takes over their signatures.
#[test]
fn nodes_with_one_secret_accept_each_others_signatures() {
    let sites = IssuedSites::new(IssuedKey([1; 32]), 1 << 20);
    let signer = sites.site("shop").signer(&["session".to_owned()], false);
    let own = sent_back(&signer_of(7, "shop", &["session"], false), "session=abc", NOW);
    assert_eq!(left(&signer, &own).1, ["changed"]);
    sites.set_key(IssuedKey([7; 32]));
    assert_eq!(left(&signer, &own).1, ["verified"]);
}

#[test]
fn a_flood_of_cookies_is_checked_in_part() {
    let signer = signer();
    let own = sent_back(&signer, "session=abc", NOW);
    let field = vec![own.as_str(); SIGNED_COOKIES_MAX + 9].join(";");
    let mut checked = CheckedCookies::default();
    let rest = signer.cookies(field.as_bytes(), NOW, &mut checked).unwrap();
    assert_eq!(rest, vec!["session=abc"; SIGNED_COOKIES_MAX].join("; ").into_bytes());
    assert_eq!(checked.counts[CookieCheck::TooMany as usize], 9);
    // The limit is that of the request, not of a field.
    assert_eq!(signer.cookies(own.as_bytes(), NOW, &mut checked).unwrap(), b"");
    assert_eq!(checked.foreign.len(), FOREIGN_MAX);
}

/// The values under `name` that servers find in a `Cookie` field: by semicolons; by commas, too; by
/// blanks and with quotes; with the names of PHP.
fn readings(field: &[u8], name: &str) -> Vec<Vec<u8>> {
    let lower = field.to_ascii_lowercase();
    let mut found = Vec::new();
    let separators: [fn(&u8) -> bool; 4] = [
        |b| *b == b';',
        |b| matches!(b, b';' | b','),
        |b| matches!(b, b';' | b',' | b' ' | b'\t' | b'"'),
        |b| *b == b';' || b.is_ascii_whitespace() || !b.is_ascii(),
    ];
    for is_separator in separators {
        for part in lower.split(is_separator) {
            let part = part.trim_ascii();
            // A name alone has no value that anybody could have chosen.
            let Some(equals) = part.iter().position(|b| *b == b'=') else { continue };
            let decoded = percent_decode(&part[..equals], false);
            // PHP: an index ends the name, and without its end it is a part of it.
            let array = decoded.split(|b| *b == b'[').next().unwrap_or_default().trim_ascii();
            let plain = decoded.trim_ascii().iter().map(|b| match b {
                b' ' | b'.' | b'[' => b'_',
                b => *b,
            });
            for read in [&part[..equals], array, &plain.collect::<Vec<u8>>()] {
                if read.trim_ascii() == name.as_bytes() {
                    found.push(part[equals + 1..].trim_ascii().to_vec());
                }
            }
        }
    }
    // A pattern: a name, blanks, an equals sign.
    let ends = lower.iter().enumerate().filter(|(_, b)| **b == b'=').map(|(at, _)| at);
    for at in ends {
        let is_blank = |b: &u8| b.is_ascii_whitespace() || *b == b'"' || !b.is_ascii();
        let end = lower[..at].iter().rposition(|b| !is_blank(b)).map_or(0, |last| last + 1);
        let splits = |b: &u8| is_blank(b) || matches!(b, b';' | b',' | b'=');
        let start = lower[..end].iter().rposition(splits).map_or(0, |last| last + 1);
        if &lower[start..end] == name.as_bytes() {
            found.push(lower[at + 1..].to_vec());
        }
    }
    found
}

proptest! {
    /// What an upstream sets is what it gets back, whatever bytes it is of.
    #[test]
    fn a_value_comes_back_as_it_was_set(value in prop::collection::vec(0x20u8..=0xff, 0..80), quoted: bool) {
        let mut value: Vec<u8> = value.into_iter().filter(|b| *b != b';').collect();
        if quoted {
            value = [b"\"", &value[..], b"\""].concat();
        }
        let value = trimmed(&value);
        let signer = signer();
        let field = [b"session=", value, b"; Path=/"].concat();
        let signed = signer.set_cookie(&field, NOW).unwrap().field;
        let pair = signed.strip_suffix(b"; Path=/").unwrap();
        let (left, outcomes) = checked(&signer, pair, NOW);
        prop_assert_eq!(left, [b"session=", value].concat());
        prop_assert_eq!(outcomes, ["verified"]);
    }

    /// No bit of a signed cookie, name, value or signature, can be changed: whatever server reads the
    /// rest finds the cookie with the value that was set, or none of its name.
    #[test]
    fn no_changed_bit_gets_through(value in "[ -:<-~]{0,24}", more in "[a-z=;, \"]{0,12}", at: prop::sample::Index, bit in 0u8..8) {
        let signer = signer();
        let own = sent_back(&signer, &format!("session={value}"), NOW);
        let mut field = own.clone().into_bytes();
        let at = at.index(field.len());
        field[at] ^= 1 << bit;
        field.extend_from_slice(more.as_bytes());
        let (left, _) = checked(&signer, &field, NOW);
        // What stands in the value itself was set by the upstream.
        if !value.contains('=') {
            prop_assert_eq!(readings(&left, "session"), Vec::<Vec<u8>>::new(), "{:?}", left);
        }
        prop_assert!(!left.starts_with(b"session="), "{:?}", left);
    }

    /// Nobody without the secret gets a cookie of a signed name through, however it is written, and
    /// nothing that a client sends becomes signed.
    #[test]
    fn nothing_that_a_client_writes_is_taken(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "session", "SESSION", "user", "ses%73ion", "=", "=", ";", ", ", " ", "\t", "\"", "'", "[", "]",
                "a", "x", "my", "_", "id", "%20", "%00", ".", "+", "$", "\\", "\u{a0}", ".AAEAAAAAAAAAAAAAAAAAAAAAAA",
            ]),
            0..14,
        ),
    ) {
        let signer = signer();
        let field = parts.concat();
        let (left, outcomes) = checked(&signer, field.as_bytes(), NOW);
        prop_assert!(!outcomes.contains(&"verified"));
        for name in ["session", "user", "my_id"] {
            prop_assert_eq!(readings(&left, name), Vec::<Vec<u8>>::new(), "{:?} of {:?}", left, field);
        }
        // What is left was there, and is left again.
        let (again, outcomes) = checked(&signer, &left, NOW);
        prop_assert!(again == left && outcomes.is_empty());
        prop_assert!(left.len() <= field.len() + parts.len());
    }
}
