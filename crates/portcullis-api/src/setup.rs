//! The one-time code with which the first administrator is created.

use portcullis_identity::{IdentityError, digest, is_same, random_secret};

/// Seconds that a code is valid.
pub const SETUP_CODE_S: u64 = 3600;

/// A code that was shown to the operator, as its digest.
#[derive(Clone, Debug)]
pub struct SetupCode {
    digest: [u8; 32],
    expires: u64,
}

impl SetupCode {
    /// A new code, and the text to tell. `now`: in seconds since 1970.
    pub fn new(now: u64) -> Result<(SetupCode, String), IdentityError> {
        let text = random_secret("")?;
        Ok((SetupCode { digest: digest(&text), expires: now.saturating_add(SETUP_CODE_S) }, text))
    }

    /// True if this is the code, at this time.
    pub(crate) fn is(&self, text: &str, now: u64) -> bool {
        is_same(&digest(text), &self.digest) && now < self.expires
    }
}
