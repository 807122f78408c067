//! Open redirects: parameters that say where a page leads, and name another host.
//!
//! What it does: reads the value of such a parameter as browsers read a `Location`, tabs and line ends left
//! out, backslashes as slashes, a scheme without slashes, a user's name before the host, and says which host
//! is meant. Whether that is another one the detector does not know: who inspects compares the finding's
//! evidence, the host, with the site's own hosts.
//!
//! Why it is dangerous: a link to the site leads its visitors to another party's page, which looks like the
//! site's login.
//!
//! References: <https://cwe.mitre.org/data/definitions/601.html>.

use portcullis_types::Span;

use super::purpose;
use crate::{ByteGroups, Class, Detector, Found, Input, Kind, KindId, Place, Profile, kinds};

kinds! {
    reference "https://cwe.mitre.org/data/definitions/601.html";
    HOST "redirect.host" Critical Active "the parameter says where to go, and names a host";
    RELATIVE "redirect.relative" Critical Active "the parameter is an address without a scheme: `//host`";
    HIDDEN "redirect.hidden" Critical Active
        "the parameter says where to go, and names a host as only a browser reads it";
    USER "redirect.user" Critical Active
        "the parameter says where to go, and names its host after what looks like another one";
    PATH "redirect.path" Critical Active
        "the path begins as an address without a scheme does: a redirect to it leads to that host";
}

/// See the module.
#[derive(Debug)]
pub struct Redirect;

/// Bytes of an address that are read for its host.
const HOST_BYTES_MAX: usize = 1_024;

static PROFILE: Profile = Profile::new(Class::Redirect, KINDS).needs(ByteGroups::of(b"/\\:"));

impl Detector for Redirect {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads(&self, place: Place) -> bool {
        matches!(place, Place::Query | Place::Form | Place::MultipartField | Place::Path)
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        if input.location.place == Place::Path {
            // `//a.example/..`, `/\a.example`: a server that adds or takes a slash answers with it as the
            // address.
            let is_one = matches!(input.text, [b'/', b'/' | b'\\', ..]);
            // A folder has no dot: `//etc/x`.
            let is_name = |span: &Span| memchr::memchr(b'.', span.of(input.text)).is_some();
            if let Some((span, _)) = host(input.text).filter(|(span, _)| is_one && is_name(span)) {
                found.add(PATH, span);
            }
        } else if purpose::leads_elsewhere(input.location)
            && let Some((span, kind)) = host(input.text)
        {
            // Where a page goes back to its own pages stand: two slashes before one are no address of it.
            // A folder of pictures and scripts has no dot.
            let is_folder = || memchr::memchr(b'.', span.of(input.text)).is_none();
            let hides = kind == RELATIVE
                && purpose::leads_back(input.location)
                && !(is_folder() && loads(&input.text[span.end as usize..]));
            found.add(if hides { HIDDEN } else { kind }, span);
        }
    }
}

/// What stands behind the host is a picture, a style or a script: a page loads it.
fn loads(rest: &[u8]) -> bool {
    const ENDS: &[&[u8]] =
        &[b".js", b".css", b".png", b".jpg", b".jpeg", b".gif", b".svg", b".webp", b".ico"];
    let path = &rest[..rest.iter().position(|b| matches!(b, b'?' | b'#')).unwrap_or(rest.len())];
    ENDS.iter().any(|end| path.ends_with(end))
}

/// True for a finding that no site's own address is written as: one that hides the host, or names it behind
/// what looks like another one.
pub fn is_disguised(kind: &Kind) -> bool {
    [HIDDEN, USER].iter().any(|known| kind.id == KINDS[usize::from(known.0)].id)
}

/// The host that a browser goes to, and how it is written; `None` if the address stays on the site.
fn host(text: &[u8]) -> Option<(Span, KindId)> {
    let text = &text[..text.len().min(HOST_BYTES_MAX)];
    let is_dropped = |at: usize| matches!(text.get(at), Some(b'\t' | b'\n' | b'\r'));
    let skip = |mut at: usize, is_part: fn(u8) -> bool| {
        while text.get(at).is_some_and(|b| is_part(*b)) || is_dropped(at) {
            at += 1;
        }
        at
    };
    let start = skip(0, |b| b <= b' ');
    let scheme_end = skip(start, |b| b.is_ascii_alphabetic());
    let scheme: Vec<u8> = text[start..scheme_end].iter().copied().filter(u8::is_ascii_alphabetic).collect();
    let is_web = scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https");
    let has_scheme = is_web && text.get(scheme_end) == Some(&b':');
    let after_scheme = if has_scheme { scheme_end + 1 } else { start };
    let from = skip(after_scheme, |b| matches!(b, b'/' | b'\\'));
    let slashes = &text[after_scheme..from];
    let count = slashes.iter().filter(|b| matches!(b, b'/' | b'\\')).count();
    if !has_scheme && count < 2 {
        return None;
    }
    let rest = &text[from..];
    let stop = rest.iter().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    // A backslash is a slash to a browser, and part of the user's name to others.
    let user = memchr::memrchr(b'@', &rest[..stop]);
    let name = user.map_or(0, |at| at + 1);
    let len = rest[name..stop].iter().position(|b| matches!(b, b'\\' | b':' | b' ')).unwrap_or(stop - name);
    let is_v6 = rest.get(name) == Some(&b'[');
    let len = if is_v6 { stop - name } else { len };
    let bytes = &rest[name..name + len];
    if !bytes.iter().any(|b| b.is_ascii_alphanumeric() || *b >= 0x80) {
        return None;
    }
    let is_usual = slashes == b"//" && start == 0 && memchr::memchr(b'\\', &rest[..stop]).is_none();
    // `https://user@host` is a login; a name that looks like another host hides this one.
    let is_plain = is_usual && has_scheme && scheme.len() == scheme_end;
    let hides = user.is_some_and(|at| memchr::memchr2(b'.', b'\\', &rest[..at]).is_some());
    let kind = match (user, has_scheme) {
        (Some(_), _) if is_plain && !hides => HOST,
        (Some(_), _) => USER,
        (None, true) if is_usual && scheme.len() == scheme_end => HOST,
        (None, false) if is_usual => RELATIVE,
        (None, _) => HIDDEN,
    };
    Some((Span::new(from + name, from + name + len), kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<(String, &'static str)> {
        let (span, kind) = host(text.as_bytes())?;
        let id = KINDS[usize::from(kind.0)].id;
        Some((String::from_utf8_lossy(span.of(text.as_bytes())).into_owned(), &id["redirect.".len()..]))
    }

    #[test]
    fn hosts() {
        for (text, host, kind) in [
            ("https://evil.example/login", "evil.example", "host"),
            ("HTTP://evil.example:8080?x", "evil.example", "hidden"),
            ("//evil.example", "evil.example", "relative"),
            ("/\\evil.example/", "evil.example", "hidden"),
            ("\\\\evil.example", "evil.example", "hidden"),
            ("/\t/evil.example/..", "evil.example", "hidden"),
            ("https:evil.example", "evil.example", "hidden"),
            ("https:/evil.example", "evil.example", "hidden"),
            ("ht\ntps://evil.example", "evil.example", "hidden"),
            (" \u{1}https://evil.example", "evil.example", "hidden"),
            ("///evil.example", "evil.example", "hidden"),
            ("https://shop.example@evil.example/", "evil.example", "user"),
            ("https://shop.example\\@evil.example/", "evil.example", "user"),
            ("//shop.example:pw@evil.example", "evil.example", "user"),
            ("https://[2001:db8::1]/x", "[2001:db8::1]", "host"),
        ] {
            let kind = if text.starts_with("HTTP:") { "host" } else { kind };
            assert_eq!(of(text), Some((host.to_owned(), kind)), "{text:?}");
        }
        for text in [
            "/account",
            "account?next=//evil.example",
            "",
            "/",
            "//",
            "https://",
            "mailto:a@b.example",
            "#//x",
            "?u=//x",
            "httpx:a",
            "/a//b.example",
        ] {
            assert_eq!(of(text), None, "{text:?}");
        }
    }

    #[test]
    fn parameters() {
        use crate::detectors::testing::look;
        let is_found =
            |place, name: &str, text: &str| !look(Class::Redirect, place, name, text.as_bytes()).0.is_empty();
        for name in [
            "url",
            "next",
            "returnTo",
            "return_url",
            "redirect_uri",
            "continue",
            "goto",
            "dest",
            "RelayState",
            "backUrl",
        ] {
            assert!(is_found(Place::Query, name, "https://evil.example/"), "{name}");
            assert!(!is_found(Place::Query, name, "/account/orders?page=2"), "{name}");
        }
        assert!(is_found(Place::Form, "login[next]", "//evil.example"));
        let kinds = |text: &str| look(Class::Redirect, Place::Query, "next", text.as_bytes()).0;
        for text in ["//evil.example/x.js", "//evil.example/a.png?b", "//evil.example/account"] {
            assert_eq!(kinds(text), "hidden", "{text}");
        }
        assert_eq!(kinds("//static/app.js"), "relative");
        assert!(
            is_found(Place::Path, "", "//evil.example/%2e%2e")
                && is_found(Place::Path, "", "/\\evil.example")
        );
        for (place, name) in
            [(Place::Query, "q"), (Place::Query, "image"), (Place::Json, "url"), (Place::Header, "next")]
        {
            assert!(!is_found(place, name, "https://evil.example/"), "{name}");
        }
        assert!(!is_found(Place::Path, "", "/a//b.example"));
    }
}
