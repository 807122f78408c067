//! The `Cookie` request header, split as ModSecurity 2.9.7 splits it.
//!
//! Values are not decoded: rules do that with transformations. Nothing is trimmed but white space before a
//! name (format 0). A `Cookie` field with no cookie in it yields nothing; repeated names are all reported.

use portcullis_types::Span;

/// `SecCookieFormat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CookieFormat {
    /// Netscape cookies: what every browser sends. Quotes and `$` mean nothing.
    #[default]
    V0,
    /// RFC 2109 cookies: quoted values, `,` separates too, `$Path` and the like belong to the cookie before.
    V1,
}

/// A cookie: where its name and value stand in the header's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// The name, never empty.
    pub name: Span,
    /// The value; empty if there is no `=`.
    pub value: Span,
    /// In format 1 the name of the cookie that an attribute such as `$Path` belongs to: the attribute is then
    /// reported by ModSecurity as `$cookie_Path`. See [`Cookie::full_name`].
    pub attribute_of: Option<Span>,
}

impl Cookie {
    /// The name as `REQUEST_COOKIES_NAMES` has it. `header` is the header's value that was parsed.
    pub fn full_name<'a>(&self, header: &'a [u8]) -> std::borrow::Cow<'a, [u8]> {
        let name = self.name.of(header);
        match self.attribute_of {
            Some(owner) => [b"$", owner.of(header), b"_", name.get(1..).unwrap_or_default()].concat().into(),
            None => name.into(),
        }
    }

    /// The value's bytes.
    pub fn value<'a>(&self, header: &'a [u8]) -> &'a [u8] {
        self.value.of(header)
    }
}

/// The cookies of one header, and what ModSecurity leaves out of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cookies {
    /// In order.
    pub cookies: Vec<Cookie>,
    /// Cookies with an empty name (`=value`), which ModSecurity and most servers ignore and some do not.
    pub nameless: usize,
}

/// Parses the value of one `Cookie` header field.
///
/// `separator` is `SecCookieV0Separator`. Without one it is `;`, except that a header with no `;` whose first
/// comma is followed by a space is split at commas.
///
/// ```
/// use portcullis_http::cookie::{CookieFormat, parse};
/// let header = b"id=1; theme=dark=blue;  flag";
/// let found = parse(header, CookieFormat::V0, None).cookies;
/// let pairs: Vec<_> = found.iter().map(|c| (c.full_name(header), c.value(header))).collect();
/// assert_eq!(pairs[1], (b"theme"[..].into(), &b"dark=blue"[..]));
/// assert_eq!(pairs[2], (b"flag"[..].into(), &b""[..]));
/// ```
pub fn parse(header: &[u8], format: CookieFormat, separator: Option<u8>) -> Cookies {
    match format {
        CookieFormat::V0 => parse_v0(header, separator.unwrap_or_else(|| guess_separator(header))),
        CookieFormat::V1 => parse_v1(header),
    }
}

fn guess_separator(header: &[u8]) -> u8 {
    let comma_space = || {
        let comma = memchr::memchr(b',', header)?;
        (header.get(comma + 1) == Some(&b' ')).then_some(b',')
    };
    match memchr::memchr(b';', header) {
        Some(_) => b';',
        None => comma_space().unwrap_or(b';'),
    }
}

fn parse_v0(header: &[u8], separator: u8) -> Cookies {
    let mut found = Cookies::default();
    let mut at = 0;
    for piece in header.split(|&b| b == separator) {
        let end = at + piece.len();
        let start = skip_space(header, at, end);
        let equals = memchr::memchr(b'=', &header[start..end]).map(|i| start + i);
        let name = Span::new(start, equals.unwrap_or(end));
        let value = Span::new(equals.map_or(end, |i| i + 1), end);
        if !name.is_empty() {
            found.cookies.push(Cookie { name, value, attribute_of: None });
        } else if equals.is_some() {
            found.nameless += 1;
        }
        at = end + 1;
    }
    found
}

fn parse_v1(header: &[u8]) -> Cookies {
    let mut found = Cookies::default();
    let mut owner = None;
    let mut at = 0;
    let len = header.len();
    let is_end = |b: u8| matches!(b, b';' | b',');
    while at < len {
        at = skip_space(header, at, len);
        let start = at;
        while at < len && header[at] != b'=' && !is_end(header[at]) {
            at += 1;
        }
        let name = trim_end(header, start, at);
        let mut value = Span::new(at, at);
        let has_value = header.get(at) == Some(&b'=');
        if has_value {
            at = skip_space(header, at + 1, len);
            let quoted = header.get(at) == Some(&b'"');
            at += quoted as usize;
            let start = at;
            while at < len && if quoted { header[at] != b'"' } else { !is_end(header[at]) } {
                at += 1;
            }
            value = if quoted { Span::new(start, at) } else { trim_end(header, start, at) };
        }
        // Over the quote, comma or semicolon; then over what else separates.
        at += 1;
        while at < len && (is_end(header[at]) || is_space(header[at])) {
            at += 1;
        }
        if name.is_empty() {
            found.nameless += has_value as usize;
            continue;
        }
        let is_attribute = header[name.range()].starts_with(b"$");
        let attribute_of = owner.filter(|_| is_attribute);
        if !is_attribute {
            owner = Some(name);
        }
        found.cookies.push(Cookie { name, value, attribute_of });
    }
    found
}

fn skip_space(header: &[u8], mut at: usize, end: usize) -> usize {
    while at < end && is_space(header[at]) {
        at += 1;
    }
    at
}

fn trim_end(header: &[u8], start: usize, mut end: usize) -> Span {
    while end > start && is_space(header[end - 1]) {
        end -= 1;
    }
    Span::new(start, end)
}

/// C's `isspace`.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(format: CookieFormat, header: &str, expected: &[(&str, &str)]) {
        let header = header.as_bytes();
        let found = parse(header, format, None).cookies;
        let found: Vec<_> = found.iter().map(|c| (c.full_name(header), c.value(header))).collect();
        let expected: Vec<_> = expected.iter().map(|(n, v)| (n.as_bytes().into(), v.as_bytes())).collect();
        assert_eq!(found, expected, "{}", header.escape_ascii());
    }

    #[test]
    fn v0() {
        use CookieFormat::V0;
        check(V0, "", &[]);
        check(V0, "a=1", &[("a", "1")]);
        check(V0, "a=1; b=2;c=3", &[("a", "1"), ("b", "2"), ("c", "3")]);
        check(V0, "a", &[("a", "")]);
        check(V0, "a; b=", &[("a", ""), ("b", "")]);
        check(V0, ";; a=1;", &[("a", "1")]);
        check(V0, "=x; a=1", &[("a", "1")]);
        check(V0, "a = 1 ; b=2", &[("a ", " 1 "), ("b", "2")]);
        check(V0, "a=b=c", &[("a", "b=c")]);
        check(V0, "a=%41+", &[("a", "%41+")]);
        check(V0, "a=\"x; b=y\"", &[("a", "\"x"), ("b", "y\"")]);
        check(V0, "$Version=1; s=\"x", &[("$Version", "1"), ("s", "\"x")]);
        check(V0, "a=1; a=2", &[("a", "1"), ("a", "2")]);
    }

    #[test]
    fn v0_comma() {
        use CookieFormat::V0;
        check(V0, "a=1, b=2", &[("a", "1"), ("b", "2")]);
        check(V0, "a=1,b=2", &[("a", "1,b=2")]);
        check(V0, "a=1, b=2; c=3", &[("a", "1, b=2"), ("c", "3")]);
        check(V0, "a=1,", &[("a", "1,")]);
    }

    #[test]
    fn v1() {
        use CookieFormat::V1;
        check(
            V1,
            "$Version=1; s=\"x; y\"; $Path=/, t = 2 ",
            &[("$Version", "1"), ("s", "x; y"), ("$s_Path", "/"), ("t", "2")],
        );
        check(V1, "a", &[("a", "")]);
        check(V1, "a;b,c", &[("a", ""), ("b", ""), ("c", "")]);
        check(V1, "a=\"", &[("a", "")]);
        check(V1, "a=\"x", &[("a", "x")]);
        check(V1, " ; =x; a= ", &[("a", "")]);
    }

    #[test]
    fn nameless_are_counted() {
        assert_eq!(parse(b"=x; ; =y", CookieFormat::V0, None).nameless, 2);
        assert_eq!(parse(b"=x; ; =y", CookieFormat::V1, None).nameless, 2);
    }

    proptest! {
        #[test]
        fn spans_lie_inside(header in "[a$=;,\" ]{0,20}", v1 in any::<bool>()) {
            let header = header.as_bytes();
            let format = if v1 { CookieFormat::V1 } else { CookieFormat::V0 };
            let mut last = 0;
            for cookie in parse(header, format, None).cookies {
                prop_assert!(!cookie.name.is_empty());
                prop_assert!(cookie.name.start >= last && cookie.name.end <= cookie.value.start);
                prop_assert!(cookie.value.end as usize <= header.len());
                last = cookie.value.end;
            }
        }
    }
}
