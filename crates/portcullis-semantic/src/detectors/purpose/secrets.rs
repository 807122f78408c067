//! Fields for passwords, tokens and keys: any signs may stand in them.

use portcullis_types::is_password_name;

use super::name::{has_word, innermost, is_of_body, key_of_record};
use crate::Location;

/// The field is for a password or a secret.
pub(in crate::detectors) fn takes_password(location: Location<'_>) -> bool {
    let last = key_of_record(location.name).unwrap_or_default();
    has_word(last, &[b"pwd", b"pass"]) || is_password_name(last) || takes_secret(location)
}

/// The field is for a generated secret: a token, a key, a signature.
fn takes_secret(location: Location<'_>) -> bool {
    const SECRETS: &[&[u8]] = &[
        b"secret",
        b"secrets",
        b"token",
        b"nonce",
        b"salt",
        b"signature",
        b"credential",
        b"credentials",
        b"apikey",
        b"passcode",
        b"passkey",
        b"hmac",
    ];
    let last = key_of_record(location.name).unwrap_or_default();
    is_of_body(location.place)
        && (has_word(last, SECRETS) || has_word(last, &[b"key"]) && has_word(last, KEYS))
}

/// Words beside `key` that make it a secret.
const KEYS: &[&[u8]] =
    &[b"api", b"access", b"private", b"app", b"auth", b"license", b"encryption", b"signing", b"master"];

/// The identifier names a secret, as a column or a key: `password`, `user.reset_token`, `pinCode`.
pub(in crate::detectors) fn names_secret(name: &[u8]) -> bool {
    const WORDS: &[&[u8]] = words!("purpose", "secrets");
    // What is joined without a sign: `userpassword`, `pwdhash`.
    const STEMS: &[&[u8]] = &[b"passw", b"pwd", b"secret", b"token"];
    let last = innermost(name);
    let has_stem = |stem: &&[u8]| last.windows(stem.len()).any(|part| part.eq_ignore_ascii_case(stem));
    has_word(last, WORDS)
        || last.len() <= IDENTIFIER_BYTES_MAX && STEMS.iter().any(has_stem)
        || has_word(last, &[b"key"]) && has_word(last, KEYS)
}

/// Longer names are no identifiers of a database.
const IDENTIFIER_BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;

    fn at(place: Place, name: &str) -> Location<'_> {
        Location::new(place, name.as_bytes())
    }

    #[test]
    fn passwords() {
        assert!(
            takes_password(at(Place::Form, "user[newPassword]"))
                && !takes_password(at(Place::Form, "passenger"))
        );
        for name in ["kennwort", "user[contraseña]", "mot_de_passe", "hasło", "wachtwoord", "smtpPass"] {
            assert!(takes_password(at(Place::Form, name)), "{name}");
        }
    }

    #[test]
    fn names_of_secrets() {
        for name in ["password", "user.reset_token", "pinCode", "pwdhash", "api_key", "userPassword"] {
            assert!(names_secret(name.as_bytes()), "{name}");
        }
        for name in ["pineapple", "key", "passenger", "hashtag", "spinner", "name", "compass", ""] {
            assert!(!names_secret(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn secrets() {
        assert!(
            takes_secret(at(Place::Json, "api_secret"))
                && takes_secret(at(Place::Json, "apiKey"))
                && !takes_secret(at(Place::Json, "key"))
        );
    }
}
