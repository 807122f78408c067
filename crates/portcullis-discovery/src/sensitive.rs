//! Sensitive data in answers: which kinds there are, never what they are.

use portcullis_learn::{ValueType, classify};
use serde::{Deserialize, Serialize};

/// Bytes of an answer that are looked at.
pub const SCANNED_BYTES_MAX: usize = 32 << 10;

/// A kind of sensitive data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sensitive {
    /// Numbers of payment cards, by length, first digits and checksum.
    Card,
    /// Keys and tokens of services, by their prefixes; private keys.
    Key,
    /// Mail addresses.
    Email,
    /// Values under names of secrets: `password`, `api_key`, ...
    Secret,
}

impl Sensitive {
    /// All kinds.
    pub const ALL: [Sensitive; 4] = [Sensitive::Card, Sensitive::Key, Sensitive::Email, Sensitive::Secret];

    /// The name in lists and state files.
    pub fn name(self) -> &'static str {
        match self {
            Sensitive::Card => "card",
            Sensitive::Key => "key",
            Sensitive::Email => "email",
            Sensitive::Secret => "secret",
        }
    }

    /// The kinds in the first [`SCANNED_BYTES_MAX`] bytes of an answer.
    pub fn of(body: &[u8]) -> Vec<Sensitive> {
        let body = &body[..body.len().min(SCANNED_BYTES_MAX)];
        let has = |kind: &Sensitive| match kind {
            Sensitive::Card => has_card(body),
            Sensitive::Key => has_key(body),
            Sensitive::Email => has_email(body),
            Sensitive::Secret => has_secret(body),
        };
        Sensitive::ALL.into_iter().filter(has).collect()
    }
}

/// The prefix of a key, and how many letters, digits, hyphens and underscores follow at least.
const PREFIXES: &[(&[u8], usize)] = &[
    (b"AKIA", 16),
    (b"ASIA", 16),
    (b"AIza", 35),
    (b"ghp_", 36),
    (b"gho_", 36),
    (b"ghs_", 36),
    (b"github_pat_", 40),
    (b"glpat-", 20),
    (b"sk_live_", 20),
    (b"rk_live_", 20),
    (b"sk-ant-", 30),
    (b"xoxb-", 20),
    (b"xoxp-", 20),
    (b"SG.", 40),
    (b"npm_", 36),
    (b"-----BEGIN RSA PRIVATE KEY", 0),
    (b"-----BEGIN EC PRIVATE KEY", 0),
    (b"-----BEGIN OPENSSH PRIVATE KEY", 0),
    (b"-----BEGIN PRIVATE KEY", 0),
];

/// The first bytes of prefixes.
const FIRST: [bool; 256] = {
    let mut first = [false; 256];
    let mut at = 0;
    while at < PREFIXES.len() {
        first[PREFIXES[at].0[0] as usize] = true;
        at += 1;
    }
    first
};

/// Names of secrets, without hyphens and underscores, in lower case.
const NAMES: &[&[u8]] = &[
    b"password",
    b"passwd",
    b"passwordhash",
    b"secret",
    b"clientsecret",
    b"apikey",
    b"accesstoken",
    b"refreshtoken",
    b"privatekey",
    b"secretkey",
    b"ssn",
    b"iban",
    b"cvv",
];

fn has_key(body: &[u8]) -> bool {
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
    let is_start =
        |at: &usize| FIRST[usize::from(body[*at])] && (*at == 0 || !body[at - 1].is_ascii_alphanumeric());
    (0..body.len()).filter(is_start).any(|at| {
        let rest = &body[at..];
        PREFIXES.iter().any(|(prefix, after)| {
            rest.strip_prefix(*prefix)
                .is_some_and(|rest| rest.iter().take(*after).take_while(|b| is_name(b)).count() == *after)
        })
    })
}

/// Digits in a row, perhaps in groups, of a length and beginning that cards have, with the right last one.
fn has_card(body: &[u8]) -> bool {
    let mut at = 0;
    while at < body.len() {
        if !body[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let start = at;
        let mut digits = [0u8; 20];
        let mut count = 0;
        let mut end = at;
        while let Some(b) = body.get(at) {
            match b {
                b'0'..=b'9' => {
                    if let Some(digit) = digits.get_mut(count) {
                        *digit = b - b'0';
                    }
                    count += 1;
                    end = at;
                }
                b' ' | b'-' if end + 1 == at => {}
                _ => break,
            }
            at += 1;
        }
        let is_part = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let is_alone =
            !is_part(start.checked_sub(1).and_then(|before| body.get(before))) && !is_part(body.get(end + 1));
        if is_alone && (13..=19).contains(&count) && is_card(&digits[..count]) {
            return true;
        }
    }
    false
}

fn is_card(digits: &[u8]) -> bool {
    let is_issued = match (digits[0], digits.len()) {
        (4, 13 | 16 | 19) | (5 | 2, 16) | (6, 16..=19) => true,
        (3, 14 | 15) => matches!(digits[1], 4 | 6 | 7 | 8 | 0),
        _ => false,
    };
    let doubled = |digit: u8| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| u32::from(if at % 2 == 1 { doubled(*digit) } else { *digit }))
        .sum();
    is_issued && sum.is_multiple_of(10) && digits.iter().any(|digit| *digit != digits[1])
}

fn has_email(body: &[u8]) -> bool {
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || b"._+-".contains(b);
    let mut from = 0;
    while let Some(found) = body[from..].iter().position(|b| *b == b'@') {
        let at = from + found;
        let before = body[..at].iter().rev().take(64).take_while(|b| is_part(b)).count();
        let after = body[at + 1..].iter().take(254).take_while(|b| is_part(b)).count();
        let address = &body[at - before..at + 1 + after];
        let address = address.strip_suffix(b".").unwrap_or(address);
        // `icon@2x.png` is none.
        let domain = address.rsplit(|b| *b == b'.').next().unwrap_or_default();
        let is_domain = domain.len() >= 2
            && domain.iter().all(u8::is_ascii_alphabetic)
            && body.get(at + 1).is_some_and(u8::is_ascii_alphabetic);
        if is_domain && classify(address, |_| false).kind == ValueType::Email {
            return true;
        }
        from = at + 1;
    }
    false
}

/// `"password": "..."` in JSON, with something in it.
fn has_secret(body: &[u8]) -> bool {
    let mut from = 0;
    while let Some(found) = body[from..].iter().position(|b| *b == b'"') {
        let start = from + found + 1;
        let Some(length) = body[start..].iter().take(40).position(|b| *b == b'"') else {
            from = start;
            continue;
        };
        let name: Vec<u8> = body[start..start + length]
            .iter()
            .filter(|b| !b"-_".contains(b))
            .map(u8::to_ascii_lowercase)
            .collect();
        let rest = body[start + length + 1..].trim_ascii_start();
        if NAMES.contains(&&*name)
            && let Some(value) = rest.strip_prefix(b":")
            && let Some(value) = value.trim_ascii_start().strip_prefix(b"\"")
            && value.first().is_some_and(|b| *b != b'"')
            && !value.starts_with(b"*")
        {
            return true;
        }
        from = start + length;
    }
    false
}
