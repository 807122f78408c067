use portcullis_types::Span;

/// The form of the target, of the four in RFC 9112, section 3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TargetForm {
    /// `/path?query`
    Origin,
    /// `http://host/path?query`
    Absolute,
    /// `host:port`, with CONNECT
    Authority,
    /// `*`, with OPTIONS
    Asterisk,
    /// None of them: such a request is refused, its target is evidence only.
    #[default]
    Invalid,
}

/// A request target taken apart; spans into the head's bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Target {
    pub form: TargetForm,
    pub whole: Span,
    pub scheme: Span,
    pub authority: Span,
    pub path: Span,
    /// Without the question mark; `None` if there is none.
    pub query: Option<Span>,
}

/// Takes apart the target that `whole` covers. Never fails: what fits no form has [`TargetForm::Invalid`] and
/// its bytes up to the first question mark count as path, so that rules still see them.
pub(crate) fn split_target(bytes: &[u8], whole: Span, connect: bool) -> Target {
    let text = whole.of(bytes);
    let mut target = Target { whole, ..Target::default() };
    let path_at = match text {
        [b'/', ..] => {
            target.form = TargetForm::Origin;
            0
        }
        b"*" => {
            target.form = TargetForm::Asterisk;
            0
        }
        _ if connect => {
            target.form = TargetForm::Authority;
            target.authority = whole;
            text.len()
        }
        _ => match scheme_length(text) {
            Some(scheme) => {
                target.form = TargetForm::Absolute;
                target.scheme = sub(whole, 0, scheme);
                let start = scheme + 3;
                let length =
                    text[start..].iter().position(|b| matches!(b, b'/' | b'?')).unwrap_or(text.len() - start);
                target.authority = sub(whole, start, start + length);
                start + length
            }
            None => 0,
        },
    };
    let path_end = memchr::memchr(b'?', &text[path_at..]).map_or(text.len(), |at| path_at + at);
    target.path = sub(whole, path_at, path_end);
    if path_end < text.len() {
        target.query = Some(sub(whole, path_end + 1, text.len()));
    }
    target
}

fn sub(whole: Span, start: usize, end: usize) -> Span {
    let base = whole.start as usize;
    Span::new(base + start, base + end)
}

/// Length of the scheme if `text` begins with `scheme://`.
fn scheme_length(text: &[u8]) -> Option<usize> {
    let length =
        text.iter().position(|&b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')))?;
    (length > 0 && text[0].is_ascii_alphabetic() && text[length..].starts_with(b"://")).then_some(length)
}

/// A plain host and optional port, checked: what a `Host` header or an absolute target may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'a> {
    /// The host; an IPv6 address keeps its brackets.
    pub host: &'a [u8],
    /// The port, if one is written.
    pub port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Parses `host`, `host:`, `host:port` or `[v6]:port`.
    ///
    /// Stricter than RFC 3986: no user part, no percent-encoding and no sub-delimiters in the host. Real
    /// names have none of them, and servers disagree about what they mean.
    pub fn parse(text: &'a [u8]) -> Option<Authority<'a>> {
        let host_len = match text.first()? {
            b'[' => {
                let end = memchr::memchr(b']', text)?;
                let inside = std::str::from_utf8(&text[1..end]).ok()?;
                inside.parse::<std::net::Ipv6Addr>().ok()?;
                end + 1
            }
            _ => {
                let end = memchr::memchr(b':', text).unwrap_or(text.len());
                let name = &text[..end];
                let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
                (!name.is_empty() && name.iter().all(plain)).then_some(end)?
            }
        };
        let (host, rest) = text.split_at(host_len);
        let port = match rest {
            [] | [b':'] => None,
            [b':', digits @ ..] if digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit) => {
                Some(std::str::from_utf8(digits).ok()?.parse().ok()?)
            }
            _ => return None,
        };
        Some(Authority { host, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities() {
        let good: [(&str, &str, Option<u16>); 8] = [
            ("localhost", "localhost", None),
            ("a.example:8080", "a.example", Some(8080)),
            ("a.example.:", "a.example.", None),
            ("[::1]", "[::1]", None),
            ("[2001:db8::7]:443", "[2001:db8::7]", Some(443)),
            ("1.2.3.4:80", "1.2.3.4", Some(80)),
            ("my_host", "my_host", None),
            ("x--y.example", "x--y.example", None),
        ];
        for (text, host, port) in good {
            assert_eq!(
                Authority::parse(text.as_bytes()),
                Some(Authority { host: host.as_bytes(), port }),
                "{text}"
            );
        }
        let bad = [
            "", ":80", "a b", "a%00", "a%1F", "u@h", "a,b", "a/b", "a\\b", "a:b", "a:99999", "a:+80",
            "a:80:80", "[::1", "[::1]x", "[zz]", "::1", "a\"", "a<b", "a\u{e9}", "a:080000",
        ];
        for text in bad {
            assert_eq!(Authority::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn forms() {
        let check = |text: &str, connect: bool| {
            let t = split_target(text.as_bytes(), Span::new(0, text.len()), connect);
            let s = |span: Span| String::from_utf8_lossy(span.of(text.as_bytes())).into_owned();
            (t.form, s(t.authority), s(t.path), t.query.map(s))
        };
        let q = |s: &str| Some(s.to_owned());
        assert_eq!(check("/a?b?c", false), (TargetForm::Origin, "".into(), "/a".into(), q("b?c")));
        assert_eq!(check("/a?", false), (TargetForm::Origin, "".into(), "/a".into(), q("")));
        assert_eq!(check("http://h:1/a?b", false), (TargetForm::Absolute, "h:1".into(), "/a".into(), q("b")));
        assert_eq!(check("http://h?b", false), (TargetForm::Absolute, "h".into(), "".into(), q("b")));
        assert_eq!(check("http://h", false), (TargetForm::Absolute, "h".into(), "".into(), None));
        assert_eq!(check("*", false), (TargetForm::Asterisk, "".into(), "*".into(), None));
        assert_eq!(check("h:1", true), (TargetForm::Authority, "h:1".into(), "".into(), None));
        assert_eq!(check("\\x?y", false), (TargetForm::Invalid, "".into(), "\\x".into(), q("y")));
        assert_eq!(check("", false).0, TargetForm::Invalid);
        assert_eq!(check("1://h", false).0, TargetForm::Invalid);
    }
}
