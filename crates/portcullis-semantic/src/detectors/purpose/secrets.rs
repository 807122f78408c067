//! Fields for passwords, tokens and keys: any signs may stand in them.

use super::name::{has_word, is_of_body, last_part};
use crate::Location;

/// The field is for a password or a secret.
pub(in crate::detectors) fn takes_password(location: Location<'_>) -> bool {
    has_word(last_part(location.name), &[b"password", b"passwd", b"passwort", b"passphrase", b"pwd", b"pass"])
        || takes_secret(location)
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
    const KEYS: &[&[u8]] =
        &[b"api", b"access", b"private", b"app", b"auth", b"license", b"encryption", b"signing", b"master"];
    let last = last_part(location.name);
    is_of_body(location.place)
        && (has_word(last, SECRETS) || has_word(last, &[b"key"]) && has_word(last, KEYS))
}

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
