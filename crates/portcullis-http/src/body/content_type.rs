//! The `Content-Type` header, as far as choosing and setting up a body parser needs it.

use super::charset::Charset;
use super::transcode;

/// A body parser, by the name SecLang gives it (`REQBODY_PROCESSOR`, `ctl:requestBodyProcessor`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Processor {
    /// `application/x-www-form-urlencoded`
    UrlEncoded,
    /// `multipart/form-data`
    Multipart,
    /// JSON
    Json,
    /// XML
    Xml,
}

impl Processor {
    /// The name in SecLang.
    pub fn name(self) -> &'static str {
        match self {
            Processor::UrlEncoded => "URLENCODED",
            Processor::Multipart => "MULTIPART",
            Processor::Json => "JSON",
            Processor::Xml => "XML",
        }
    }

    /// The processor of that name, in any case.
    pub fn from_name(name: &str) -> Option<Processor> {
        let all = [Processor::UrlEncoded, Processor::Multipart, Processor::Json, Processor::Xml];
        all.into_iter().find(|p| p.name().eq_ignore_ascii_case(name))
    }

    /// The processor ModSecurity 2 chooses by itself, before any rule: forms only, by the start of the value.
    pub fn native(content_type: &[u8]) -> Option<Processor> {
        if starts_with(content_type, b"application/x-www-form-urlencoded") {
            Some(Processor::UrlEncoded)
        } else if starts_with(content_type, b"multipart/form-data") {
            Some(Processor::Multipart)
        } else {
            None
        }
    }

    /// The processor by media type: forms, everything JSON and everything XML. For use without rules that
    /// choose.
    pub fn by_media_type(content_type: &[u8]) -> Option<Processor> {
        let media_type = media_type(content_type).to_ascii_lowercase();
        let subtype = media_type.splitn(2, |&b| b == b'/').nth(1).unwrap_or_default();
        let suffix = |suffix: &[u8]| {
            subtype == suffix || subtype.strip_suffix(suffix).is_some_and(|r| r.ends_with(b"+"))
        };
        if media_type == b"application/x-www-form-urlencoded" {
            Some(Processor::UrlEncoded)
        } else if media_type == b"multipart/form-data" {
            Some(Processor::Multipart)
        } else if suffix(b"json") || matches!(subtype, b"x-json" | b"json5" | b"csp-report" | b"json-rpc") {
            Some(Processor::Json)
        } else if suffix(b"xml") || subtype == b"xml-dtd" {
            Some(Processor::Xml)
        } else {
            None
        }
    }

    /// A guess from a body's first bytes, for bodies whose type says nothing. Never an error, often a form.
    pub fn sniff(body: &[u8]) -> Processor {
        let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body).trim_ascii_start();
        match body {
            [b'{' | b'[', ..] => Processor::Json,
            [b'<', ..] => Processor::Xml,
            _ => Processor::UrlEncoded,
        }
    }
}

/// The media type of a `Content-Type` value: what stands before the first semicolon, comma or white space.
pub fn media_type(content_type: &[u8]) -> &[u8] {
    let value = content_type.trim_ascii();
    let end = value.iter().position(|&b| matches!(b, b';' | b',') || b.is_ascii_whitespace());
    &value[..end.unwrap_or(value.len())]
}

/// The parameter `name` (lower case) of a `Content-Type` value, without quotes; the first one if there are
/// several.
pub fn parameter<'a>(content_type: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut rest = content_type;
    while let Some(at) = memchr::memchr2(b';', b',', rest) {
        rest = &rest[at + 1..];
        let equals = memchr::memchr(b'=', rest)?;
        if !rest[..equals].trim_ascii().eq_ignore_ascii_case(name) {
            continue;
        }
        let value = rest[equals + 1..].trim_ascii_start();
        return Some(match value {
            [b'"', quoted @ ..] => &quoted[..memchr::memchr(b'"', quoted).unwrap_or(quoted.len())],
            _ => {
                let end = value.iter().position(|&b| matches!(b, b';' | b',') || b.is_ascii_whitespace());
                &value[..end.unwrap_or(value.len())]
            }
        });
    }
    None
}

/// The character set that a `Content-Type` names, if the whole body must be decoded from it.
pub fn transcoded(content_type: &[u8]) -> Option<transcode::Foreign> {
    match Charset::from_label(parameter(content_type, b"charset")?) {
        Charset::Transcoded(foreign) => Some(foreign),
        Charset::Ascii | Charset::MultiByte(_) | Charset::Foreign => None,
    }
}

/// True if a `Content-Type` names a character set in which the bytes may be another text, or names two, or
/// names one in the extended syntax of RFC 2231 that only some readers know. `decodes`: those that are
/// decoded here do not count.
pub fn is_foreign(content_type: &[u8], decodes: bool) -> bool {
    let is_unread = |label: &[u8]| match Charset::from_label(label) {
        Charset::Foreign => true,
        Charset::Transcoded(_) => !decodes,
        Charset::Ascii | Charset::MultiByte(_) => false,
    };
    let mut first: Option<&[u8]> = None;
    let mut rest = content_type;
    while let Some(at) = memchr::memchr2(b';', b',', rest) {
        rest = &rest[at + 1..];
        let name = rest.trim_ascii_start();
        if !starts_with(name, b"charset") {
            continue;
        }
        if name.get(7) == Some(&b'*') {
            return true;
        }
        // From the separator on, so that the parameter is the first one.
        let from = content_type.len() - rest.len() - 1;
        let Some(label) = parameter(&content_type[from..], b"charset") else { continue };
        if is_unread(label) || first.is_some_and(|first| !first.eq_ignore_ascii_case(label)) {
            return true;
        }
        first = Some(label);
    }
    false
}

fn starts_with(value: &[u8], prefix: &[u8]) -> bool {
    value.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors() {
        use Processor::*;
        for (value, native, by_type) in [
            ("application/x-www-form-urlencoded", Some(UrlEncoded), Some(UrlEncoded)),
            ("Application/X-WWW-Form-Urlencoded; charset=utf-8", Some(UrlEncoded), Some(UrlEncoded)),
            ("application/x-www-form-urlencodedX", Some(UrlEncoded), None),
            ("multipart/form-data; boundary=x", Some(Multipart), Some(Multipart)),
            ("multipart/mixed; boundary=x", None, None),
            ("application/json", None, Some(Json)),
            ("application/vnd.api+json", None, Some(Json)),
            ("application/jsonx", None, None),
            ("text/xml;charset=utf-8", None, Some(Xml)),
            ("application/soap+xml", None, Some(Xml)),
            ("text/plain", None, None),
            ("", None, None),
        ] {
            assert_eq!(Processor::native(value.as_bytes()), native, "{value}");
            assert_eq!(Processor::by_media_type(value.as_bytes()), by_type, "{value}");
        }
        assert_eq!(Processor::from_name("json"), Some(Json));
    }

    #[test]
    fn sniffing() {
        assert_eq!(Processor::sniff(b" \n{\"a\":1}"), Processor::Json);
        assert_eq!(Processor::sniff(b"\xEF\xBB\xBF<a/>"), Processor::Xml);
        assert_eq!(Processor::sniff(b"a=1"), Processor::UrlEncoded);
        assert_eq!(Processor::sniff(b""), Processor::UrlEncoded);
    }

    #[test]
    fn parameters() {
        let charset = |value: &'static str| parameter(value.as_bytes(), b"charset").map(|v| v.to_vec());
        assert_eq!(charset("text/xml; charset=utf-8"), Some(b"utf-8".to_vec()));
        assert_eq!(charset("text/xml;a=b; Charset = \"x y\"; q=1"), Some(b"x y".to_vec()));
        assert_eq!(charset("text/xml; charset=\"x"), Some(b"x".to_vec()));
        assert_eq!(charset("text/xml; charset"), None);
        assert_eq!(charset("text/xml"), None);
    }

    #[test]
    fn foreign_charsets() {
        for no in [
            "a/b",
            "a/b; charset=utf-8",
            "a/b;charset=\"GBK\"",
            "a/b; charset=",
            "a/b; charset=x;charset=x; q",
        ] {
            assert_eq!(is_foreign(no.as_bytes(), false), no.contains('x'), "{no}");
        }
        for yes in [
            "a/b; charset=rot13",
            "a/b;CHARSET = 'ibm037'",
            "a/b; charset=utf-7; charset=utf-16",
            "a/b; charset=utf-8; charset=utf-16",
            "a/b; charset=utf-8; charset=latin1",
            "a/b; charset*=utf-8''ibm500",
            "a/b; charset*0=ibm; charset*1=500",
        ] {
            assert!(is_foreign(yes.as_bytes(), true), "{yes}");
        }
        for decoded in
            ["a/b; charset=utf-7", "a/b; charset=\"IBM037\"", "a/b; charset=utf-16; charset=UTF-16"]
        {
            assert!(
                is_foreign(decoded.as_bytes(), false) && !is_foreign(decoded.as_bytes(), true),
                "{decoded}"
            );
        }
    }
}
