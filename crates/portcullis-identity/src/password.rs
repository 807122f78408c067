//! Passwords: argon2id, in the PHC string format.

use std::fmt;

use argon2::{Algorithm, Argon2, Params, Version};
use data_encoding::BASE64_NOPAD;

use crate::error::IdentityError;
use crate::secret::is_same;

/// Characters of a password, at least.
pub const PASSWORD_CHARACTERS_MIN: usize = 12;
/// Bytes of a password, at most.
pub const PASSWORD_BYTES_MAX: usize = 1024;

/// Memory of one computation, in KiB. With two passes this is the recommendation of OWASP's password storage
/// page.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
const OUTPUT_BYTES: usize = 32;
/// No stored value may ask for more than this, in KiB and in passes.
const MEMORY_KIB_MAX: u32 = 256 * 1024;
const PASSES_MAX: u32 = 16;

/// Why a password is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordError {
    /// It has fewer than [`PASSWORD_CHARACTERS_MIN`] characters.
    TooShort,
    /// It has more than [`PASSWORD_BYTES_MAX`] bytes.
    TooLong,
    /// It is the user's name, or one character repeated.
    TooSimple,
}

impl fmt::Display for PasswordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PasswordError::TooShort => {
                write!(f, "a password has at least {PASSWORD_CHARACTERS_MIN} characters")
            }
            PasswordError::TooLong => write!(f, "a password has at most {PASSWORD_BYTES_MAX} bytes"),
            PasswordError::TooSimple => {
                f.write_str("a password must not be one character or the user's name, repeated")
            }
        }
    }
}

impl std::error::Error for PasswordError {}

/// Checks that a user of this name may have this password.
pub fn check_password(name: &str, password: &str) -> Result<(), PasswordError> {
    if password.len() > PASSWORD_BYTES_MAX {
        return Err(PasswordError::TooLong);
    }
    if password.chars().count() < PASSWORD_CHARACTERS_MIN {
        return Err(PasswordError::TooShort);
    }
    let first: String = password.chars().take(1).collect();
    let repeats = |part: &str| !part.is_empty() && password.to_ascii_lowercase().replace(part, "").is_empty();
    if repeats(&first.to_ascii_lowercase()) || repeats(&name.to_ascii_lowercase()) {
        return Err(PasswordError::TooSimple);
    }
    Ok(())
}

/// The stored form of a password.
pub(crate) fn hash(password: &str) -> Result<String, IdentityError> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|_| IdentityError::Random)?;
    let output = compute(password, &salt, MEMORY_KIB, PASSES, LANES, OUTPUT_BYTES)
        .ok_or_else(|| IdentityError::Invalid("the password cannot be hashed".to_owned()))?;
    let (salt, output) = (BASE64_NOPAD.encode(&salt), BASE64_NOPAD.encode(&output));
    Ok(format!("$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}${salt}${output}"))
}

/// Compares a password with the one that was stored. Without a stored one, as for a user that does not exist,
/// it takes the same time and is false.
pub(crate) fn is_right(password: &str, stored: Option<&str>) -> bool {
    // A longer one was never stored, and hashing it would cost the sender's choice of time.
    if password.len() > PASSWORD_BYTES_MAX {
        return false;
    }
    let Some(stored) = stored.and_then(Stored::parse) else {
        let output = compute(password, &[0; 16], MEMORY_KIB, PASSES, LANES, OUTPUT_BYTES);
        drop(output);
        return false;
    };
    let output =
        compute(password, &stored.salt, stored.memory, stored.passes, stored.lanes, stored.output.len());
    output.is_some_and(|output| is_same(&output, &stored.output))
}

struct Stored {
    memory: u32,
    passes: u32,
    lanes: u32,
    salt: Vec<u8>,
    output: Vec<u8>,
}

impl Stored {
    fn parse(text: &str) -> Option<Stored> {
        let mut parts = text.strip_prefix("$argon2id$v=19$")?.split('$');
        let mut costs = parts.next()?.split(',');
        let mut cost = |name: &str| costs.next()?.strip_prefix(name)?.parse::<u32>().ok();
        let (memory, passes, lanes) = (cost("m=")?, cost("t=")?, cost("p=")?);
        let mut bytes = || BASE64_NOPAD.decode(parts.next()?.as_bytes()).ok();
        let (salt, output) = (bytes()?, bytes()?);
        let fits = memory <= MEMORY_KIB_MAX && passes <= PASSES_MAX && (16..=64).contains(&output.len());
        fits.then_some(Stored { memory, passes, lanes, salt, output })
    }
}

fn compute(
    password: &str,
    salt: &[u8],
    memory: u32,
    passes: u32,
    lanes: u32,
    bytes: usize,
) -> Option<Vec<u8>> {
    let params = Params::new(memory, passes, lanes, Some(bytes)).ok()?;
    let mut output = vec![0; bytes];
    let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    hasher.hash_password_into(password.as_bytes(), salt, &mut output).ok()?;
    Some(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_recognised() {
        let stored = hash("correct horse battery").unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        assert!(is_right("correct horse battery", Some(&stored)));
        assert_ne!(stored, hash("correct horse battery").unwrap());
        for wrong in ["", "correct horse batter", "correct horse battery ", "Correct horse battery"] {
            assert!(!is_right(wrong, Some(&stored)), "{wrong}");
        }
        assert!(!is_right("", None) && !is_right(&"x".repeat(5000), Some(&stored)));
        // What is stored cannot ask for any amount of memory, and what is broken lets nobody in.
        for broken in ["", "$argon2id$v=19$m=4000000000,t=2,p=1$c2FsdHNhbHQ$AAAA", "plain"] {
            assert!(!is_right("plain", Some(broken)), "{broken}");
        }
    }

    /// Computed by the reference implementation's command line:
    /// `echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1`.
    #[test]
    fn as_the_reference_implementation() {
        let stored = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        assert!(is_right("password", Some(stored)));
        assert!(!is_right("passwore", Some(stored)));
    }

    #[test]
    fn weak_passwords_are_refused() {
        assert_eq!(check_password("anna", "short"), Err(PasswordError::TooShort));
        assert_eq!(check_password("anna", &"x".repeat(1025)), Err(PasswordError::TooLong));
        for simple in ["aaaaaaaaaaaaa", "AnnaannaAnna", "éééééééééééé"] {
            assert_eq!(check_password("anna", simple), Err(PasswordError::TooSimple), "{simple}");
        }
        assert_eq!(check_password("anna", "twelve chars"), Ok(()));
        assert_eq!(check_password("", "twelve chars"), Ok(()));
    }
}
