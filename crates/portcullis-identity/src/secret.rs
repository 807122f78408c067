//! Random secrets, and the digests that are stored in place of them.

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::error::IdentityError;

/// Prefix of API tokens, so that scanners for leaked secrets and people recognise them.
pub const TOKEN_PREFIX: &str = "pct_";
/// Random bytes of a secret.
const BYTES: usize = 32;

/// A new secret: 256 random bits as 43 characters behind a prefix.
pub fn random_secret(prefix: &str) -> Result<String, IdentityError> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|_| IdentityError::Random)?;
    Ok(format!("{prefix}{}", BASE64URL_NOPAD.encode(&bytes)))
}

/// The SHA-256 of a text. A secret of 256 random bits needs no slow hash.
pub fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Compares in a time that does not depend on the content.
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

/// True if a text has the form of a secret with this prefix. Other texts need no look into the file.
pub(crate) fn has_form(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix)
        .is_some_and(|rest| BASE64URL_NOPAD.decode(rest.as_bytes()).is_ok_and(|bytes| bytes.len() == BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_have_their_form() {
        let (one, other) = (random_secret("pct_").unwrap(), random_secret("pct_").unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 47);
        assert!(has_form(&one, "pct_") && !has_form(&one, "x_"));
        for text in ["", "pct_", "pct_AAAA", &format!("{one}A"), &one[1..], &one.replace('p', "P")] {
            assert!(!has_form(text, "pct_"), "{text}");
        }
    }
}
