//! One-time codes: TOTP (RFC 6238) as authenticator apps have it: SHA-1, six digits, thirty seconds.

use std::fmt;

use data_encoding::BASE32_NOPAD;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

use crate::error::IdentityError;
use crate::secret::is_same;

/// Seconds that a code stands for.
const STEP_S: u64 = 30;
const DIGITS: usize = 6;
/// Codes of so many steps before and after are accepted: clocks differ, and people type.
const DRIFT_STEPS: u64 = 1;

/// The secret that an authenticator app and the file share: 160 random bits.
#[derive(Clone, PartialEq, Eq)]
pub struct TotpSecret(Vec<u8>);

/// Without the secret.
impl fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TotpSecret")
    }
}

impl TotpSecret {
    pub(crate) fn random() -> Result<TotpSecret, IdentityError> {
        let mut bytes = vec![0; 20];
        getrandom::fill(&mut bytes).map_err(|_| IdentityError::Random)?;
        Ok(TotpSecret(bytes))
    }

    pub(crate) fn of(bytes: Vec<u8>) -> TotpSecret {
        TotpSecret(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// As people type it into an app.
    pub fn base32(&self) -> String {
        BASE32_NOPAD.encode(&self.0)
    }

    /// As an app reads it from a picture. The name must have no characters that an address escapes.
    pub fn url(&self, name: &str) -> String {
        format!("otpauth://totp/Portcullis:{name}?secret={}&issuer=Portcullis", self.base32())
    }

    /// The time step of a code that is right at this time and newer than `last`, the step of the last one
    /// used.
    pub(crate) fn step_of(&self, code: &str, last: u64, now: u64) -> Option<u64> {
        let current = now / STEP_S;
        let mut found = None;
        for step in current.saturating_sub(DRIFT_STEPS)..=current + DRIFT_STEPS {
            if is_same(code_at(&self.0, step).as_bytes(), code.as_bytes()) && step > last {
                found = Some(step);
            }
        }
        found
    }
}

/// The code of a secret at this time, as an authenticator app shows it.
pub fn code_of(secret: &TotpSecret, now: u64) -> String {
    code_at(&secret.0, now / STEP_S)
}

/// RFC 4226, section 5.3.
fn code_at(secret: &[u8], step: u64) -> String {
    // A key of any length is one.
    let Ok(mut mac) = <Hmac<Sha1> as KeyInit>::new_from_slice(secret) else { return String::new() };
    mac.update(&step.to_be_bytes());
    let output = mac.finalize().into_bytes();
    let offset = usize::from(output.last().copied().unwrap_or(0) & 15);
    let word = output.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; 4]);
    let number = (u32::from_be_bytes(word) & 0x7fff_ffff) % 10_u32.pow(DIGITS as u32);
    format!("{number:0DIGITS$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6238, appendix B, of which we use the last six digits.
    #[test]
    fn codes_of_the_rfc() {
        let secret = TotpSecret(b"12345678901234567890".to_vec());
        for (time, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(code_of(&secret, time), code, "{time}");
        }
    }

    #[test]
    fn a_code_is_accepted_once_and_for_a_while() {
        let secret = TotpSecret(b"12345678901234567890".to_vec());
        let now = 1_234_567_890;
        let code = code_of(&secret, now);
        let step = secret.step_of(&code, 0, now).unwrap();
        assert_eq!(secret.step_of(&code, step, now), None);
        assert!(secret.step_of(&code, 0, now + 30).is_some() && secret.step_of(&code, 0, now - 30).is_some());
        assert_eq!(secret.step_of(&code, 0, now + 90), None);
        for wrong in ["", "00592", "0059244", "005 924", "٠٠٥٩٢٤"] {
            assert_eq!(secret.step_of(wrong, 0, now), None, "{wrong}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let secret = TotpSecret::random().unwrap();
        assert!(!format!("{secret:?}").contains(&secret.base32()));
        assert_eq!(secret.base32().len(), 32);
        assert!(secret.url("anna").starts_with("otpauth://totp/Portcullis:anna?secret="));
    }
}
