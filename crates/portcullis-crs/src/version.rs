//! Version numbers of releases, which are also names of folders.

use std::fmt;
use std::str::FromStr;

/// A version such as `4.25.0`: three numbers, so that it is a safe name of a folder. Versions are ordered as
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version([u16; 3]);

impl Version {
    /// The version of these numbers.
    pub const fn new(major: u16, minor: u16, patch: u16) -> Version {
        Version([major, minor, patch])
    }

    /// The version that a text has behind `OWASP_CRS/`, as each rule of the CRS names it in `ver`.
    pub(crate) fn in_rules(text: &str) -> Option<Version> {
        let (_, behind) = text.split_once("ver:'OWASP_CRS/")?;
        let (version, _) = behind.split_once('\'')?;
        version.parse().ok()
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Version, String> {
        let wrong = || format!("`{text}` is not a version of the CRS; write it like 4.25.0");
        let parts: Vec<&str> = text.strip_prefix('v').unwrap_or(text).split('.').collect();
        let [major, minor, patch] = parts[..] else { return Err(wrong()) };
        let number = |part: &str| {
            let digits = part.bytes().all(|byte| byte.is_ascii_digit());
            let plain = digits && (part == "0" || !part.starts_with('0'));
            part.parse().ok().filter(|_| plain).ok_or_else(wrong)
        };
        Ok(Version([number(major)?, number(minor)?, number(patch)?]))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version([major, minor, patch]) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}
