//! Signed cookies: `Set-Cookie` of an upstream goes out with a signature, and a cookie that comes back is
//! shown to nobody unless it has a valid one.
//!
//! ```text
//! upstream > Set-Cookie: session=abc; Path=/    > set_cookie > session=abc.SIGNATURE; Path=/   > client
//! client   > Cookie: theme=dark; session=abc.SIGNATURE > cookies > theme=dark; session=abc     > upstream
//!                    session=abd.SIGNATURE, session=abd > removed
//! ```
//!
//! The signature is a period and an HMAC-SHA-256 of site, name and value, cut to half. Its key is derived
//! from that of the hashes and the period, so that nodes that share the one share the other, and keys change
//! with time without anybody telling anybody.
//!
//! Servers do not agree on where a cookie begins or how its name is read. What any of them may read as a
//! cookie of a signed name counts as one here, and what is not exactly the cookie that was signed goes.

use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use portcullis_types::percent_decode;
use sha2::Sha256;

use super::sites::Pool;
use super::{IssuedCookies, trimmed};

/// The time for which one key signs.
pub const COOKIE_KEY_MILLIS: u64 = 30 * 24 * 3600 * 1000;
/// Keys of the past whose signatures are accepted: browsers keep no cookie longer than 400 days.
pub const COOKIE_KEYS_KEPT: u16 = 14;
/// Bytes of name and value that browsers keep (RFC 6265bis, section 5.6).
pub const COOKIE_BYTES_MAX: usize = 4096;
/// Cookies of signed names in one request that are checked; browsers send one for each path.
pub const SIGNED_COOKIES_MAX: usize = 64;

/// Bytes of a key, and of a block of SHA-256.
const KEY_BYTES: usize = 32;
const BLOCK_BYTES: usize = 64;
/// Bytes of the period and of the HMAC in a signature.
const PERIOD_BYTES: usize = 2;
const MAC_BYTES: usize = 16;
/// The period and the HMAC in Base64, with the dot in front.
const SIGNATURE_BYTES: usize = 1 + (PERIOD_BYTES + MAC_BYTES) * 4 / 3;
/// Names of removed cookies that are listed in an event.
const FOREIGN_MAX: usize = 8;
/// Keeps these keys apart from whatever else is made of the same secret.
const LABEL: &[u8] = b"portcullis signed cookies 1";

type Mac = Hmac<Sha256>;

/// Signs the cookies of a site that have one of these names, and checks them.
#[derive(Clone, Debug)]
pub struct CookieSigner {
    site: String,
    pool: Arc<Pool>,
    /// As [`canonical`] has them.
    names: Vec<Vec<u8>>,
    accepts_unsigned: bool,
}

/// A `Set-Cookie` field with a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCookie {
    /// The value of the field.
    pub field: Vec<u8>,
    /// Browsers would have kept the cookie without the signature, and do not with it.
    pub is_too_long: bool,
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieCheck {
    /// It is as it was signed.
    Verified,
    /// It has no signature, and is accepted without one.
    Accepted,
    /// It has no signature.
    Unsigned,
    /// It has a signature of something else: another value, name, site or secret.
    Changed,
    /// A server may find it in another cookie.
    Hidden,
    /// The request has too many of them.
    TooMany,
}

impl CookieCheck {
    /// All of them, in the order of their numbers.
    pub const NAMES: [&str; 6] = ["verified", "accepted", "unsigned", "changed", "hidden", "too_many"];

    /// The cookie is forwarded.
    pub fn passes(self) -> bool {
        matches!(self, CookieCheck::Verified | CookieCheck::Accepted)
    }

    /// The reason for which a cookie was removed, for an event.
    pub fn explanation(self) -> &'static str {
        match self {
            CookieCheck::Verified => "its signature is valid",
            CookieCheck::Accepted => "it has no signature, and was accepted",
            CookieCheck::Unsigned => "it has no signature, and was removed",
            CookieCheck::Changed => "it has the signature of another cookie or value, and was removed",
            CookieCheck::Hidden => {
                "it stands in another cookie, where some servers find it; both were removed"
            }
            CookieCheck::TooMany => "there are too many of its name; it was removed",
        }
    }
}

/// The cookies of signed names in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedCookies {
    /// Counts by [`CookieCheck`].
    pub counts: [u32; CookieCheck::NAMES.len()],
    /// The first ones that were removed.
    pub foreign: Vec<ForeignCookie>,
}

/// A cookie of a signed name that was removed from a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignCookie {
    /// The name as the site has it in its settings, in lower case.
    pub name: Vec<u8>,
    /// The reason.
    pub check: CookieCheck,
}

/// A piece of a `Cookie` field that some server may read as a cookie of a signed name.
struct Found<'n, 'p> {
    /// That name.
    known: &'n [u8],
    check: CookieCheck,
    /// The name as it came and the value, if it was signed.
    signed: Option<(&'p [u8], Vec<u8>)>,
}

impl CheckedCookies {
    fn note(&mut self, name: &[u8], check: CookieCheck) {
        self.counts[check as usize] += 1;
        if !check.passes() && self.foreign.len() < FOREIGN_MAX {
            self.foreign.push(ForeignCookie { name: name.to_vec(), check });
        }
    }

    fn len(&self) -> usize {
        self.counts.iter().sum::<u32>() as usize
    }
}

impl IssuedCookies {
    /// Signs and checks cookies of these names, with keys that follow the key of the hashes.
    /// `accepts_unsigned`: those without a signature are left in requests.
    pub fn signer(&self, names: &[String], accepts_unsigned: bool) -> CookieSigner {
        CookieSigner {
            site: self.site.clone(),
            pool: Arc::clone(&self.pool),
            names: names.iter().map(|name| folded(before_index(&decoded(name.as_bytes())))).collect(),
            accepts_unsigned,
        }
    }
}

impl CookieSigner {
    /// A `Set-Cookie` field of an upstream with a signature; none if its name is not one of these. `now` is
    /// in milliseconds since 1970.
    pub fn set_cookie(&self, field: &[u8], now: u64) -> Option<SignedCookie> {
        let end = field.iter().position(|b| *b == b';').unwrap_or(field.len());
        let (pair, attributes) = field.split_at(end);
        let equals = pair.iter().position(|b| *b == b'=')?;
        let (name, value) = (trimmed(&pair[..equals]), trimmed(&pair[equals + 1..]));
        self.known(name)?;
        let signed = self.sign(name, value, now);
        let kept = |value: &[u8]| name.len() + value.len() <= COOKIE_BYTES_MAX;
        let is_too_long = kept(value) && !kept(&signed);
        Some(SignedCookie { field: [name, b"=", &signed, attributes].concat(), is_too_long })
    }

    /// A `Cookie` field without signatures, and without cookies that should have one and do not; none if
    /// there is nothing to change. What it finds is added to `checked`, which is of one request.
    pub fn cookies(&self, field: &[u8], now: u64, checked: &mut CheckedCookies) -> Option<Vec<u8>> {
        let before = checked.len();
        let mut left = Vec::with_capacity(field.len());
        for piece in field.split(|b| *b == b';') {
            let Some(Found { known, check, signed }) = self.piece(piece, now, checked.len()) else {
                append(&mut left, &[trimmed(piece)]);
                continue;
            };
            checked.note(known, check);
            match (check, signed) {
                (CookieCheck::Verified, Some((own, value))) => append(&mut left, &[own, b"=", &value]),
                (CookieCheck::Accepted, _) => append(&mut left, &[trimmed(piece)]),
                _ => {}
            }
        }
        (checked.len() > before).then_some(left)
    }

    /// Treatment of a piece of a `Cookie` field; none if no server reads it as a cookie of a signed name.
    /// `before`: others in the request.
    fn piece<'p>(&self, piece: &'p [u8], now: u64, before: usize) -> Option<Found<'_, 'p>> {
        let piece = trimmed(piece);
        let equals = piece.iter().position(|b| *b == b'=').unwrap_or(piece.len());
        let name = trimmed(&piece[..equals]);
        let Some(known) = self.known(name) else {
            let hidden = self.hidden(piece)?;
            let check = if self.accepts_unsigned { CookieCheck::Accepted } else { CookieCheck::Hidden };
            return Some(Found { known: hidden, check, signed: None });
        };
        if before >= SIGNED_COOKIES_MAX {
            return Some(Found { known, check: CookieCheck::TooMany, signed: None });
        }
        let value = trimmed(piece.get(equals + 1..).unwrap_or_default());
        let (check, signed) = match self.verify(name, value, now) {
            Ok(value) => (CookieCheck::Verified, Some((name, value))),
            Err(CookieCheck::Unsigned) if self.accepts_unsigned => (CookieCheck::Accepted, None),
            Err(check) => (check, None),
        };
        Some(Found { known, check, signed })
    }

    /// The signed name that some server may find within a piece: they split at commas, blanks of all kinds
    /// and quotes, too, and skip them in front of `=`.
    fn hidden(&self, piece: &[u8]) -> Option<&[u8]> {
        let mut start = 0;
        while let Some(at) = piece.get(start..)?.iter().position(|b| *b == b'=') {
            let splits = |b: &u8| !b.is_ascii_graphic() || matches!(b, b',' | b'"');
            let name =
                piece[start..start + at].rsplit(splits).find(|word| !word.is_empty()).unwrap_or_default();
            if let Some(known) = self.known(name) {
                return Some(known);
            }
            start += at + 1;
        }
        None
    }

    /// The name of our cookie that a name is read as, by some server at least.
    fn known(&self, name: &[u8]) -> Option<&[u8]> {
        let name = decoded(name);
        let read = [folded(before_index(&name)), folded(before_nul(&name))];
        self.names.iter().find(|known| read.contains(*known)).map(Vec::as_slice)
    }

    fn sign(&self, name: &[u8], value: &[u8], now: u64) -> Vec<u8> {
        let (text, close) = open(value);
        let period = period(now);
        let mac = self.mac(name, value, period).finalize().into_bytes();
        let signature = [&period.to_be_bytes(), &mac[..MAC_BYTES]].concat();
        [text, b".", BASE64URL_NOPAD.encode(&signature).as_bytes(), close].concat()
    }

    /// The value that was signed, if it was.
    fn verify(&self, name: &[u8], value: &[u8], now: u64) -> Result<Vec<u8>, CookieCheck> {
        let (text, close) = open(value);
        let at = text.len().checked_sub(SIGNATURE_BYTES).ok_or(CookieCheck::Unsigned)?;
        let (text, signature) = text.split_at(at);
        let signature = signature.strip_prefix(b".").ok_or(CookieCheck::Unsigned)?;
        let signature = BASE64URL_NOPAD.decode(signature).map_err(|_| CookieCheck::Unsigned)?;
        let (of, mac) = signature.split_first_chunk::<PERIOD_BYTES>().ok_or(CookieCheck::Unsigned)?;
        let (of, now) = (u16::from_be_bytes(*of), period(now));
        // Clocks of nodes differ: one may be a period ahead.
        if of > now.saturating_add(1) || now.saturating_sub(of) > COOKIE_KEYS_KEPT {
            return Err(CookieCheck::Unsigned);
        }
        let plain = [text, close].concat();
        // In constant time.
        let verified = self.mac(name, &plain, of).verify_truncated_left(mac);
        verified.map(|()| plain).map_err(|_| CookieCheck::Changed)
    }

    fn mac(&self, name: &[u8], value: &[u8], period: u16) -> Mac {
        let key = mac(&self.pool.key().0, &[LABEL, &period.to_be_bytes()]).finalize().into_bytes();
        mac(&key.into(), &[self.site.as_bytes(), name, value])
    }
}

/// An HMAC of texts with their lengths.
fn mac(key: &[u8; KEY_BYTES], texts: &[&[u8]]) -> Mac {
    // Shorter keys are those with zeros behind them (RFC 2104).
    let mut block = [0; BLOCK_BYTES];
    block[..KEY_BYTES].copy_from_slice(key);
    let mut mac = Mac::new(&block.into());
    for text in texts {
        mac.update(&(text.len() as u64).to_le_bytes());
        mac.update(text);
    }
    mac
}

/// The period of a time.
fn period(now: u64) -> u16 {
    u16::try_from(now / COOKIE_KEY_MILLIS).unwrap_or(u16::MAX)
}

/// A value without the quote at its end, if it is quoted: a signature goes within the quotes.
fn open(value: &[u8]) -> (&[u8], &[u8]) {
    match value {
        [b'"', .., b'"'] => value.split_at(value.len() - 1),
        _ => (value, b""),
    }
}

/// A name without escapes.
fn decoded(name: &[u8]) -> Vec<u8> {
    match name.contains(&b'%') {
        true => percent_decode(name, true),
        false => name.to_vec(),
    }
}

fn is_blank(byte: &u8) -> bool {
    !byte.is_ascii_graphic() || matches!(byte, b'"' | b'\'' | b'+')
}

/// A name without the index behind it: `a` of `a[b]`.
fn before_index(name: &[u8]) -> &[u8] {
    let name = before_nul(name);
    let end = name.iter().skip(1).position(|b| *b == b'[').map_or(name.len(), |at| at + 1);
    &name[..end]
}

/// A name without blanks before it and what stands behind NUL.
fn before_nul(name: &[u8]) -> &[u8] {
    let start = name.iter().position(|b| !is_blank(b)).unwrap_or(name.len());
    let name = &name[start..];
    &name[..name.iter().position(|b| *b == 0).unwrap_or(name.len())]
}

/// A name as the most generous of servers read it: without case and blanks behind it, and with the characters
/// that PHP replaces. A bracket that nothing closes is one of them: `a[b` is `a_b`.
fn folded(name: &[u8]) -> Vec<u8> {
    let end = name.iter().rposition(|b| !is_blank(b)).map_or(0, |at| at + 1);
    let fold = |byte: &u8| match byte {
        b' ' | b'.' | b'+' | b'[' => b'_',
        byte => byte.to_ascii_lowercase(),
    };
    name[..end].iter().map(fold).collect()
}

fn append(field: &mut Vec<u8>, parts: &[&[u8]]) {
    if !field.is_empty() {
        field.extend_from_slice(b"; ");
    }
    parts.iter().for_each(|part| field.extend_from_slice(part));
}

#[cfg(test)]
mod tests;
