//! Names whose values are secrets: data, with where each comes from.
//!
//! Sources: `RFC 6265`, `RFC 6749` (OAuth 2.0), `RFC 6750`, `RFC 7235`, `RFC 7636` (PKCE), `RFC 7522/7523`
//! (assertions), `OIDC` (OpenID Connect Core), `SAML` (SAML 2.0 bindings), `CAS` (CAS protocol), `SigV4` (AWS
//! Signature Version 4), `GCS` (Google Cloud Storage, signed URLs), `SAS` (Azure shared access signatures),
//! `OTel` (OpenTelemetry semantic conventions, `url.query`), `CWE-598` (use of GET requests with sensitive
//! query strings),
//! `PCI DSS` (3.3, card data), `habit`: what applications and frameworks call them.

use std::borrow::Cow;

use portcullis_types::{PASSWORD_NAMES, PASSWORD_WORDS, percent_decode};

/// The place of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Header,
    Arg,
    Cookie,
    /// An argument or a cookie with a name that often stands for something else: its value is a secret if it
    /// looks like one ([`looks_secret`]).
    Weak,
}

use Place::{Arg, Cookie, Header, Weak};

/// Where it stands, the name in lower case with `*` at its ends for any text, and the source.
pub(crate) const SECRET_NAMES: &[(Place, &str, &str)] = &[
    (Header, "authorization", "RFC 7235"),
    (Header, "proxy-authorization", "RFC 7235"),
    (Header, "set-cookie", "RFC 6265"),
    (Header, "x-api-key", "habit"),
    (Header, "api-key", "habit"),
    (Header, "x-auth-*", "habit"),
    (Header, "*-token", "SigV4, habit"),
    (Header, "*-secret", "habit"),
    (Header, "*-key", "habit"),
    (Header, "*-password", "habit"),
    (Header, "*-signature", "habit"),
    (Header, "*jwt*", "habit"),
    (Header, "*credential*", "habit"),
    (Header, "*session-id", "habit"),
    (Arg, "*secret*", "RFC 6749"),
    (Arg, "*token", "RFC 6749, RFC 6750"),
    (Arg, "token_*", "habit"),
    (Arg, "*jwt*", "RFC 7523"),
    (Arg, "*bearer*", "RFC 6750"),
    (Arg, "*credential*", "SigV4"),
    (Arg, "*apikey", "habit"),
    (Arg, "*api_key", "habit"),
    (Arg, "*api-key", "habit"),
    (Arg, "*accesskey*", "OTel"),
    (Arg, "*access_key*", "habit"),
    (Arg, "*access-key*", "habit"),
    (Arg, "*privatekey*", "habit"),
    (Arg, "*private_key*", "habit"),
    (Arg, "*private-key*", "habit"),
    (Arg, "*signing_key*", "habit"),
    (Arg, "*signature", "SigV4, GCS, OTel"),
    (Arg, "*assertion", "RFC 7522/7523"),
    (Arg, "samlresponse", "SAML"),
    (Arg, "code_verifier", "RFC 7636"),
    (Arg, "authorization", "habit"),
    (Arg, "otp", "habit"),
    (Arg, "pin", "habit"),
    (Arg, "cvv", "PCI DSS"),
    (Arg, "cvc", "PCI DSS"),
    (Arg, "card_number", "PCI DSS"),
    (Arg, "cardnumber", "PCI DSS"),
    (Arg, "ssn", "habit"),
    // Session ids that travel in URLs.
    (Arg, "sid", "habit"),
    (Arg, "*sessid", "habit"),
    (Arg, "*sessionid", "habit"),
    (Arg, "*session_id", "habit"),
    (Cookie, "*sess*", "RFC 6265"),
    (Cookie, "*sid", "habit"),
    (Cookie, "*token*", "habit"),
    (Cookie, "*auth*", "habit"),
    (Cookie, "*secret*", "habit"),
    (Cookie, "*jwt*", "habit"),
    (Cookie, "*password*", "habit"),
    (Cookie, "remember*", "habit"),
    (Weak, "sig", "SAS, OTel"),
    (Weak, "*_sig", "habit"),
    (Weak, "*-sig", "habit"),
    (Weak, "code", "RFC 6749"),
    (Weak, "*_code", "habit"),
    (Weak, "*-code", "habit"),
    (Weak, "state", "RFC 6749"),
    (Weak, "nonce", "OIDC"),
    (Weak, "ticket", "CAS"),
    (Weak, "session", "habit"),
    (Weak, "*_session", "habit"),
    (Weak, "sess", "habit"),
    (Weak, "key", "habit"),
    (Weak, "*_key", "habit"),
    (Weak, "*-key", "habit"),
    (Weak, "hash", "habit"),
    (Weak, "*_hash", "habit"),
    (Weak, "hmac", "habit"),
    (Weak, "mac", "habit"),
    (Weak, "digest", "habit"),
    (Weak, "auth", "habit"),
    (Weak, "auth_*", "habit"),
    (Weak, "access", "habit"),
    (Weak, "csrf*", "habit"),
    (Weak, "xsrf*", "habit"),
    (Weak, "_csrf", "habit"),
    (Weak, "invite", "habit"),
    (Weak, "reset", "habit"),
    (Weak, "confirm*", "habit"),
    (Weak, "verif*", "habit"),
    (Weak, "magic", "habit"),
];

/// The names for a place; arguments also have the names of passwords (CWE-598).
pub(crate) fn names(place: Place) -> Vec<String> {
    let of_place = SECRET_NAMES.iter().filter(|(of, ..)| *of == place).map(|(_, name, _)| (*name).to_owned());
    let mut names: Vec<String> = of_place.collect();
    if place == Arg {
        names.extend(PASSWORD_NAMES.iter().map(|part| format!("*{part}*")));
        names.extend(
            PASSWORD_WORDS
                .iter()
                .flat_map(|word| [(*word).to_owned(), format!("*_{word}"), format!("*-{word}")]),
        );
    }
    names
}

/// From so many characters on a text with lower-case letters, upper-case letters and digits is no word.
const MIXED_MIN: usize = 8;
/// From so many characters on letters of both cases, or letters and digits, are no word either.
const LONG_MIN: usize = 16;

/// True for a value that looks like a key, code or digest: four digits or more, or letters and digits without
/// blanks, in base64 or hexadecimal form. Attacks do not: they need other characters, and are shown for that.
pub(crate) fn looks_secret(value: &[u8]) -> bool {
    let decoded: Cow<'_, [u8]> = match value.contains(&b'%') {
        true => percent_decode(value, false).into(),
        false => value.into(),
    };
    // Without the padding of base64.
    let padding = decoded.iter().rev().take_while(|byte| **byte == b'=').count();
    let value = &decoded[..decoded.len() - padding];
    let length = value.len();
    let (mut lower, mut upper, mut digit) = (false, false, false);
    for byte in value {
        match byte {
            b'a'..=b'z' => lower = true,
            b'A'..=b'Z' => upper = true,
            b'0'..=b'9' => digit = true,
            b'-' | b'_' | b'.' | b'~' => {}
            // Base64 with its own alphabet; `+` may stand for a blank, and `/` part a path.
            b'+' | b'/' if length >= MIXED_MIN => {}
            _ => return false,
        }
    }
    let is_random = lower && upper && digit;
    let is_path = value.windows(2).any(|two| two == b"..");
    let is_path = is_path || value.iter().any(|byte| matches!(byte, b'/' | b'+')) && !is_random;
    let is_mixed = is_random && length >= MIXED_MIN;
    let is_long = length >= LONG_MIN && (digit || (lower && upper));
    let is_number = digit && !lower && !upper && length >= 4;
    let is_code = digit && (lower || upper) && length >= 6;
    !is_path && (is_mixed || is_long || is_number || is_code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_words() {
        for secret in [
            "123456",
            "4711",
            "a1b2c3",
            "SplxlOBeZQQYbYS6WxSbIA",
            "e3b0c44298fc1c149afbf4c8996fb924",
            "ST-1856339-aA5Yuvrxzpv8Tau1cYQ7",
            "p5Z%2FaB3%2Bx9%3D%3D",
            "%61%31%62%32%63%33",
            "p5Z/aB3+x9cdefgh=",
            "AIzaSyA-abcdefghijklmnop_q",
        ] {
            assert!(looks_secret(secret.as_bytes()), "{secret}");
        }
        for word in [
            "",
            "US",
            "name",
            "blue",
            "12",
            "category_description",
            "en-GB",
            "1' or '1'='1",
            "../../etc/passwd1",
            "..%2f..%2fetc",
            "/var/www/html/index1.php",
            "<script>alert(1)</script>",
            "1 union select 1",
            "1+or+1=1",
            "1+union+select+1+from+users",
            "${jndi:ldap://a}",
            "php://filter",
            "%27%201",
        ] {
            assert!(!looks_secret(word.as_bytes()), "{word}");
        }
    }

    #[test]
    fn names_are_written_once_and_have_a_source() {
        for (at, (place, name, source)) in SECRET_NAMES.iter().enumerate() {
            assert!(!source.is_empty() && *name == name.to_ascii_lowercase(), "{name}");
            assert!(!SECRET_NAMES[..at].iter().any(|(of, other, _)| (of, other) == (place, name)), "{name}");
        }
    }
}
