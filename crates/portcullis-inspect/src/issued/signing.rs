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
    /// How many there were, by [`CookieCheck`].
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

    /// What is to become of a piece of a `Cookie` field; none if nobody reads it as a cookie of a signed
    /// name. `before`: others in the request.
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

    /// The name of ours that a name is read as, by some server at least.
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
mod tests {
    use proptest::prelude::*;

    use super::super::{IssuedKey, IssuedSites};
    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    fn signer_of(key: u8, site: &str, names: &[&str], accepts_unsigned: bool) -> CookieSigner {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        IssuedSites::new(IssuedKey([key; 32]), 1 << 20).site(site).signer(&names, accepts_unsigned)
    }

    fn signer() -> CookieSigner {
        signer_of(7, "shop", &["session", "user"], false)
    }

    /// The cookie that a browser sends back of a field that was signed.
    fn sent_back(signer: &CookieSigner, field: &str, now: u64) -> String {
        let signed = signer.set_cookie(field.as_bytes(), now).expect("a name that is signed").field;
        let pair = signed.split(|b| *b == b';').next().unwrap();
        String::from_utf8(pair.to_vec()).unwrap()
    }

    /// What is left of a `Cookie` field, and the outcomes.
    fn checked(signer: &CookieSigner, field: &[u8], now: u64) -> (Vec<u8>, Vec<&'static str>) {
        let mut checked = CheckedCookies::default();
        let left = signer.cookies(field, now, &mut checked);
        let outcomes = checked.counts.iter().zip(CookieCheck::NAMES);
        let outcomes = outcomes.filter(|(count, _)| **count > 0).map(|(_, name)| name).collect();
        (left.unwrap_or_else(|| field.to_vec()), outcomes)
    }

    fn left(signer: &CookieSigner, field: &str) -> (String, Vec<&'static str>) {
        let (left, outcomes) = checked(signer, field.as_bytes(), NOW);
        (String::from_utf8(left).unwrap(), outcomes)
    }

    #[test]
    fn attributes_and_other_cookies_stay_as_they_are() {
        let signer = signer();
        for (field, begin, end) in [
            ("session=abc; Path=/; HttpOnly", "session=abc.", "; Path=/; HttpOnly"),
            (" session = abc ;Path=/", "session=abc.", ";Path=/"),
            ("session=a=b==", "session=a=b==.", ""),
            ("session=\"a b\"; Secure", "session=\"a b.", "\"; Secure"),
            ("session=; Max-Age=0", "session=.", "; Max-Age=0"),
            ("SESSION=1", "SESSION=1.", ""),
        ] {
            let signed = signer.set_cookie(field.as_bytes(), NOW).unwrap();
            let text = String::from_utf8(signed.field).unwrap();
            assert!(text.starts_with(begin) && text.ends_with(end) && !signed.is_too_long, "{text}");
            assert_eq!(text.len(), begin.len() + end.len() + SIGNATURE_BYTES - 1, "{text}");
        }
        for field in ["theme=dark", "sessions=1", "session", "", "; session=1", "=session=1"] {
            assert_eq!(signer.set_cookie(field.as_bytes(), NOW), None, "{field}");
        }
    }

    #[test]
    fn a_cookie_that_browsers_would_drop_for_its_signature_is_told() {
        let is_too_long = |bytes: usize| {
            let field = format!("session={}; Path=/", "x".repeat(bytes - "session".len()));
            signer().set_cookie(field.as_bytes(), NOW).unwrap().is_too_long
        };
        assert!(!is_too_long(COOKIE_BYTES_MAX - SIGNATURE_BYTES));
        assert!(is_too_long(COOKIE_BYTES_MAX - SIGNATURE_BYTES + 1) && is_too_long(COOKIE_BYTES_MAX));
        // They drop it without one, too.
        assert!(!is_too_long(COOKIE_BYTES_MAX + 1));
    }

    #[test]
    fn what_has_no_signature_of_its_own_is_removed() {
        let signer = signer();
        let own = sent_back(&signer, "session=abc; Path=/", NOW);
        let other = sent_back(&signer, "session=def", NOW);
        let user = sent_back(&signer, "user=abc", NOW).replace("user", "session");
        let site = sent_back(&signer_of(7, "blog", &["session"], false), "session=abc", NOW);
        let secret = sent_back(&signer_of(8, "shop", &["session"], false), "session=abc", NOW);
        let moved = format!("session=abc{}", other.strip_prefix("session=def").unwrap());
        for (field, rest, outcomes) in [
            ("theme=dark; x", "theme=dark; x", &[][..]),
            (&own, "session=abc", &["verified"]),
            (&format!("a=1;{own};  b=2"), "a=1; session=abc; b=2", &["verified"]),
            // Several of a name: each for itself.
            (&format!("{own}; {other}"), "session=abc; session=def", &["verified"]),
            (&format!("session=abc; {own}; session="), "session=abc", &["verified", "unsigned"]),
            ("session=abc", "", &["unsigned"]),
            ("a=1; session; b=2", "a=1; b=2", &["unsigned"]),
            (&own.replace("session", "SESSION"), "", &["changed"]),
            (&own.replace("session=abc", "session=ABC"), "", &["changed"]),
            (&own.replace("session=abc", "session=\"abc").replace(' ', ""), "", &["changed"]),
            (&format!("{own}x"), "", &["unsigned"]),
            (&moved, "", &["changed"]),
            (&user, "", &["changed"]),
            (&site, "", &["changed"]),
            (&secret, "", &["changed"]),
        ] {
            let (found, found_outcomes) = left(&signer, field);
            assert_eq!((found.as_str(), &found_outcomes[..]), (rest, outcomes), "{field}");
        }
    }

    /// Places where one server or another finds a cookie, and names that it takes for the same.
    #[test]
    fn what_some_server_reads_as_the_cookie_is_removed() {
        let signer = signer();
        for field in [
            "a=1, session=x",
            "a=1,session=x",
            "a=1 session=x",
            "a=1\tsession =x",
            "a=\"b session=x\"",
            "a=\"session=x",
            "=session=x",
            "a==session=x",
            "a=b=\u{a0}session=x",
            "a session\u{a0}=x",
            "a=1 \"session\" =x",
        ] {
            assert_eq!(left(&signer, field), (String::new(), vec!["hidden"]), "{field}");
        }
        for name in [
            "Session",
            "\"session\"",
            "'session'",
            " session",
            "\u{a0}session",
            "%73ession",
            "session[a]",
            "session[",
            "session%00x",
            "ses%73ion%5Ba",
            "+session",
            "session+",
            "session\u{3000}",
        ] {
            assert_eq!(left(&signer, &format!("{name}=x")), (String::new(), vec!["unsigned"]), "{name}");
        }
        let dotted = signer_of(7, "shop", &["ASP.NET_SessionId"], false);
        for name in [
            "ASP_NET_SessionId",
            "asp%2Enet_sessionid",
            "ASP NET_SessionId",
            "ASP[NET_SessionId",
            "asp[net[sessionid",
        ] {
            assert_eq!(left(&dotted, &format!("{name}=x")).0, "", "{name}");
        }
        // Cookies that only mention it.
        for field in [
            "a=session",
            "next=/x?session=1",
            "q=a&session=1",
            "session2=x",
            "my-session=x",
            "a=b; xsession=1",
        ] {
            assert_eq!(left(&signer, field), (field.to_owned(), vec![]), "{field}");
        }
    }

    #[test]
    fn unsigned_cookies_are_accepted_for_a_time_and_changed_ones_never() {
        let signer = signer_of(7, "shop", &["session"], true);
        let own = sent_back(&signer, "session=abc", NOW);
        let accepted = |field: &str| (field.to_owned(), vec!["accepted"]);
        assert_eq!(left(&signer, "session=abc"), accepted("session=abc"));
        assert_eq!(left(&signer, "a=1 session=x"), accepted("a=1 session=x"));
        assert_eq!(left(&signer, &own), ("session=abc".to_owned(), vec!["verified"]));
        assert_eq!(left(&signer, &own.replace("abc", "abd")), (String::new(), vec!["changed"]));
    }

    #[test]
    fn old_keys_are_accepted_for_a_time() {
        let signer = signer();
        let own = sent_back(&signer, "session=abc", NOW);
        let start = NOW / COOKIE_KEY_MILLIS * COOKIE_KEY_MILLIS;
        let kept = u64::from(COOKIE_KEYS_KEPT) * COOKIE_KEY_MILLIS;
        assert!(kept >= 400 * 24 * 3600 * 1000, "as long as browsers keep cookies");
        let outcome = |now: u64| checked(&signer, own.as_bytes(), now).1;
        for (now, expected) in [
            (NOW, "verified"),
            (NOW + kept, "verified"),
            (start + kept + COOKIE_KEY_MILLIS - 1, "verified"),
            (start + kept + COOKIE_KEY_MILLIS, "unsigned"),
            // A node whose clock is behind.
            (start - 1, "verified"),
            (start - COOKIE_KEY_MILLIS - 1, "unsigned"),
            (0, "unsigned"),
            (u64::MAX, "unsigned"),
        ] {
            assert_eq!(outcome(now), [expected], "{now}");
        }
        let later = sent_back(&signer, "session=abc", NOW + COOKIE_KEY_MILLIS);
        assert_ne!(own, later);
    }

    /// A node that takes over the secret of others takes over their signatures.
    #[test]
    fn nodes_with_one_secret_accept_each_others_signatures() {
        let sites = IssuedSites::new(IssuedKey([1; 32]), 1 << 20);
        let signer = sites.site("shop").signer(&["session".to_owned()], false);
        let own = sent_back(&signer_of(7, "shop", &["session"], false), "session=abc", NOW);
        assert_eq!(left(&signer, &own).1, ["changed"]);
        sites.set_key(IssuedKey([7; 32]));
        assert_eq!(left(&signer, &own).1, ["verified"]);
    }

    #[test]
    fn a_flood_of_cookies_is_checked_in_part() {
        let signer = signer();
        let own = sent_back(&signer, "session=abc", NOW);
        let field = vec![own.as_str(); SIGNED_COOKIES_MAX + 9].join(";");
        let mut checked = CheckedCookies::default();
        let rest = signer.cookies(field.as_bytes(), NOW, &mut checked).unwrap();
        assert_eq!(rest, vec!["session=abc"; SIGNED_COOKIES_MAX].join("; ").into_bytes());
        assert_eq!(checked.counts[CookieCheck::TooMany as usize], 9);
        // The limit is that of the request, not of a field.
        assert_eq!(signer.cookies(own.as_bytes(), NOW, &mut checked).unwrap(), b"");
        assert_eq!(checked.foreign.len(), FOREIGN_MAX);
    }

    /// The values under `name` that servers find in a `Cookie` field: by semicolons; by commas, too; by
    /// blanks and with quotes; with the names of PHP.
    fn readings(field: &[u8], name: &str) -> Vec<Vec<u8>> {
        let lower = field.to_ascii_lowercase();
        let mut found = Vec::new();
        let separators: [fn(&u8) -> bool; 4] = [
            |b| *b == b';',
            |b| matches!(b, b';' | b','),
            |b| matches!(b, b';' | b',' | b' ' | b'\t' | b'"'),
            |b| *b == b';' || b.is_ascii_whitespace() || !b.is_ascii(),
        ];
        for is_separator in separators {
            for part in lower.split(is_separator) {
                let part = part.trim_ascii();
                // A name alone has no value that anybody could have chosen.
                let Some(equals) = part.iter().position(|b| *b == b'=') else { continue };
                let decoded = percent_decode(&part[..equals], false);
                // PHP: an index ends the name, and without its end it is a part of it.
                let array = decoded.split(|b| *b == b'[').next().unwrap_or_default().trim_ascii();
                let plain = decoded.trim_ascii().iter().map(|b| match b {
                    b' ' | b'.' | b'[' => b'_',
                    b => *b,
                });
                for read in [&part[..equals], array, &plain.collect::<Vec<u8>>()] {
                    if read.trim_ascii() == name.as_bytes() {
                        found.push(part[equals + 1..].trim_ascii().to_vec());
                    }
                }
            }
        }
        // A pattern: a name, blanks, an equals sign.
        let ends = lower.iter().enumerate().filter(|(_, b)| **b == b'=').map(|(at, _)| at);
        for at in ends {
            let is_blank = |b: &u8| b.is_ascii_whitespace() || *b == b'"' || !b.is_ascii();
            let end = lower[..at].iter().rposition(|b| !is_blank(b)).map_or(0, |last| last + 1);
            let splits = |b: &u8| is_blank(b) || matches!(b, b';' | b',' | b'=');
            let start = lower[..end].iter().rposition(splits).map_or(0, |last| last + 1);
            if &lower[start..end] == name.as_bytes() {
                found.push(lower[at + 1..].to_vec());
            }
        }
        found
    }

    proptest! {
        /// What an upstream sets is what it gets back, whatever bytes it is of.
        #[test]
        fn a_value_comes_back_as_it_was_set(value in prop::collection::vec(0x20u8..=0xff, 0..80), quoted: bool) {
            let mut value: Vec<u8> = value.into_iter().filter(|b| *b != b';').collect();
            if quoted {
                value = [b"\"", &value[..], b"\""].concat();
            }
            let value = trimmed(&value);
            let signer = signer();
            let field = [b"session=", value, b"; Path=/"].concat();
            let signed = signer.set_cookie(&field, NOW).unwrap().field;
            let pair = signed.strip_suffix(b"; Path=/").unwrap();
            let (left, outcomes) = checked(&signer, pair, NOW);
            prop_assert_eq!(left, [b"session=", value].concat());
            prop_assert_eq!(outcomes, ["verified"]);
        }

        /// No bit of a signed cookie, name, value or signature, can be changed: whatever server reads the
        /// rest finds the cookie with the value that was set, or none of its name.
        #[test]
        fn no_changed_bit_gets_through(value in "[ -:<-~]{0,24}", more in "[a-z=;, \"]{0,12}", at: prop::sample::Index, bit in 0u8..8) {
            let signer = signer();
            let own = sent_back(&signer, &format!("session={value}"), NOW);
            let mut field = own.clone().into_bytes();
            let at = at.index(field.len());
            field[at] ^= 1 << bit;
            field.extend_from_slice(more.as_bytes());
            let (left, _) = checked(&signer, &field, NOW);
            // What stands in the value itself was set by the upstream.
            if !value.contains('=') {
                prop_assert_eq!(readings(&left, "session"), Vec::<Vec<u8>>::new(), "{:?}", left);
            }
            prop_assert!(!left.starts_with(b"session="), "{:?}", left);
        }

        /// Nobody without the secret gets a cookie of a signed name through, however it is written, and
        /// nothing that a client sends becomes signed.
        #[test]
        fn nothing_that_a_client_writes_is_taken(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "session", "SESSION", "user", "ses%73ion", "=", "=", ";", ", ", " ", "\t", "\"", "'", "[", "]",
                    "a", "x", "my", "_", "id", "%20", "%00", ".", "+", "$", "\\", "\u{a0}", ".AAEAAAAAAAAAAAAAAAAAAAAAAA",
                ]),
                0..14,
            ),
        ) {
            let signer = signer();
            let field = parts.concat();
            let (left, outcomes) = checked(&signer, field.as_bytes(), NOW);
            prop_assert!(!outcomes.contains(&"verified"));
            for name in ["session", "user", "my_id"] {
                prop_assert_eq!(readings(&left, name), Vec::<Vec<u8>>::new(), "{:?} of {:?}", left, field);
            }
            // What is left was there, and is left again.
            let (again, outcomes) = checked(&signer, &left, NOW);
            prop_assert!(again == left && outcomes.is_empty());
            prop_assert!(left.len() <= field.len() + parts.len());
        }
    }
}
