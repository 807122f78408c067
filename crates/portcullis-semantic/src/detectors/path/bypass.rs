//! Paths of a request that rules of access read otherwise than the server behind them: a parameter in place
//! of a name's end, a dot written as a number, a sign that only one of them takes away.

use portcullis_types::Span;

use super::{CLIMB_ALIAS, DOT_ENCODED, HOST_STEP, LINE_END, PARAMETER_ODD, TRIMMED};
use crate::KindId;

/// What `path`, as sent, has of these.
pub(super) fn bypass(path: &[u8]) -> Option<(KindId, Span)> {
    let mut start = 0;
    for segment in path.split(|b| *b == b'/') {
        let span = Span::new(start, start + segment.len());
        start += segment.len() + 1;
        if has_odd_parameter(segment, start <= path.len()) {
            return Some((PARAMETER_ODD, span));
        }
        if is_encoded_dot(segment) {
            return Some((DOT_ENCODED, span));
        }
        if is_alias_step(segment) && path.get(start).is_some_and(|next| *next != b'/') {
            return Some((CLIMB_ALIAS, span));
        }
    }
    if let Some(at) = line_end(path) {
        return Some((LINE_END, Span::new(at, path.len())));
    }
    if steps_behind_host(path) {
        return Some((HOST_STEP, Span::new(0, path.len())));
    }
    trimmed(path).map(|at| (TRIMMED, Span::new(at, path.len())))
}

/// `/%0a/a.example`, `/x.json.;%0aa.css`: an encoded line end with something behind it. At the end of a path
/// it was copied along.
fn line_end(path: &[u8]) -> Option<usize> {
    let is_line_end = |unit: &[u8]| unit.eq_ignore_ascii_case(b"%0a") || unit.eq_ignore_ascii_case(b"%0d");
    memchr::memchr_iter(b'%', path).find(|at| {
        let rest = &path[*at..];
        let goes_on = || rest.chunks(3).find(|unit| !is_line_end(unit) && *unit != b"%20");
        rest.get(..3).is_some_and(is_line_end) && goes_on().is_some()
    })
}

/// `//a.example/..`, `///a.example/%2f..`: what begins as an address of another host and ends with a step up.
/// A server that adds a slash, or takes the step out, answers with it as the address.
fn steps_behind_host(path: &[u8]) -> bool {
    let slashes = path.iter().take_while(|b| matches!(b, b'/' | b'\\')).count();
    let rest = &path[slashes..];
    let host = &rest[..rest.iter().position(|b| matches!(b, b'/' | b'\\' | b'%')).unwrap_or(rest.len())];
    let end = path.strip_suffix(b"/").unwrap_or(path);
    let ends = [&b"/.."[..], b"%2f..", b"%2F..", b"%2e%2e", b"%2E%2E"].iter().any(|step| end.ends_with(step));
    slashes > 1 && ends && memchr::memchr(b'.', host).is_some_and(|at| at > 0)
}

/// `/admin;/users`, `/admin;.css`, `/admin%3b.js`: a parameter without a name, or one that is an extension.
/// Servlets drop it, and who compares the path, or looks at its end, does not. `a;jsessionid=1` has a name.
fn has_odd_parameter(segment: &[u8], goes_on: bool) -> bool {
    let raw = memchr::memchr(b';', segment).map(|at| (at, 1));
    let coded = segment.windows(3).position(|unit| unit.eq_ignore_ascii_case(b"%3b")).map(|at| (at, 3));
    let Some((at, len)) = [raw, coded].into_iter().flatten().min() else { return false };
    let parameter = &segment[at + len..];
    // `..;` is read as a step up.
    let is_step = segment[..at].ends_with(b"..");
    // `/admin/;x/y`: a segment that is nothing but a parameter.
    let is_alone = at == 0 && goes_on && !parameter.is_empty();
    !is_step && (parameter.is_empty() && goes_on || is_alone || is_extension(parameter))
}

/// A path that ends in `;.jsp`: `jsp=/app/rest/server;.jsp`
pub(super) fn ends_in_extension(path: &[u8]) -> bool {
    path.starts_with(b"/")
        && memchr::memrchr(b';', path).is_some_and(|at| is_extension(&path[at + 1..]))
        && !path.iter().any(u8::is_ascii_whitespace)
}

/// `.css`
fn is_extension(text: &[u8]) -> bool {
    matches!(text, [b'.', end @ ..] if (2..=5).contains(&end.len()) && end.iter().all(u8::is_ascii_alphanumeric))
}

/// `/%2e/admin`: a client that knows what a dot is leaves such a segment out.
fn is_encoded_dot(segment: &[u8]) -> bool {
    segment.eq_ignore_ascii_case(b"%2e")
}

/// `/static../settings.py`: a server that puts a folder in place of `/static` has the two dots stand alone. A
/// title that breaks off has words with hyphens, a capital or three dots.
fn is_alias_step(segment: &[u8]) -> bool {
    let is_name = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'_';
    segment
        .strip_suffix(b"..")
        .is_some_and(|name| name.first().is_some_and(u8::is_ascii_lowercase) && name.iter().all(is_name))
}

/// Where a sign stands at the end that frameworks take away as white space and proxies do not: controls and
/// no-break spaces of single bytes. A browser takes tabs and line ends out of an address before it sends it.
fn trimmed(path: &[u8]) -> Option<usize> {
    let at = path.len().checked_sub(3)?;
    let [b'%', high, low] = path[at..] else { return None };
    let is_control = matches!((high, low), (b'0', b'9' | b'b' | b'B' | b'c' | b'C'))
        || high == b'1' && matches!(low, b'c'..=b'f' | b'C'..=b'F');
    // Not the second byte of a letter.
    let is_alone =
        !matches!(path[..at], [.., b'%', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', _] | [.., 0x80..=0xFF]);
    let is_space = matches!((high, low), (b'8', b'5') | (b'a' | b'A', b'0')) && is_alone;
    (is_control || is_space).then_some(at)
}

/// `?/webhooks/trigger` after the path of something else: who looks for an open address anywhere in the
/// target finds it there. Sites whose pages stand in the query have them after their root or a script; a
/// form's action is one name.
pub(crate) fn is_query_path(path: &[u8], query: &[u8]) -> bool {
    if names_other_page(query) {
        return true;
    }
    let Some(rest) = query.strip_prefix(b"/") else { return false };
    let last = &path[memchr::memrchr(b'/', path).map_or(0, |at| at + 1)..];
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    let mut count = 0;
    !last.is_empty()
        && memchr::memchr(b'.', last).is_none()
        && rest.split(|b| *b == b'/').all(|name| {
            count += 1;
            !name.is_empty() && name.iter().all(is_name)
        })
        && count >= 2
}

/// `@a.example/mapi/nspi/?`, `a=a@b.example/owa/?x`, `a..b/owa/?`: a user's or host's name, a path, and a
/// query of its own, for a proxy that takes the address it asks from what follows the first question mark.
fn names_other_page(query: &[u8]) -> bool {
    if memchr::memchr(b'?', query).is_none() {
        return false;
    }
    // `@a/PowerShell?x=1`
    if query.starts_with(b"@") && memchr::memchr(b'/', query).is_some() {
        return true;
    }
    let Some(end) = memchr::memmem::find(query, b"/?") else { return false };
    let before = &query[..end];
    // A parameter of the query that another one stands in: `&url=..`.
    if memchr::memchr(b'&', before).is_some() || memchr::memmem::find(before, b"://").is_some() {
        return false;
    }
    let value = &before[memchr::memchr(b'=', before).map_or(0, |at| at + 1)..];
    let host = &value[..memchr::memchr(b'/', value).unwrap_or(value.len())];
    let is_named = memchr::memchr(b'@', host).is_some() && memchr::memchr(b'.', host).is_some();
    let is_odd = value.len() == before.len() && memchr::memmem::find(host, b"..").is_some();
    host.len() < value.len() && (is_named || is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_are_read_twice() {
        for path in [
            "/admin;/users",
            "/admin;.css",
            "/app/rest/users;.jsp",
            "/api/private%3b.js",
            "/x/%3B/y",
            "/%2e/admin",
            "/static../app/settings.py",
            "/app/media_files../.env",
            "/a/%2E/b",
            "/admin%09",
            "/admin%1F",
            "/admin%A0",
            "/admin%85",
            "/admin/;x/y",
            "/admin/%3bx/",
            "/%0a/a.example/",
            "/%0D%0Aa.example",
            "/a.json.;%0ab.css",
            "//a.example/..",
            "///a.example//..",
            "//a.example/%2f..",
            "/\\a.example/%2e%2e",
        ] {
            assert!(bypass(path.as_bytes()).is_some(), "{path}");
        }
        for path in [
            "/cart;jsessionid=0A1B",
            "/map;lat=1;lon=2/tiles",
            "/a;b",
            "/see-this;",
            "/a.b;v=1.2",
            "/%C3%A0",
            "/caf%C3%85",
            "/a%20",
            "/a%0A",
            "/a%0d%0a%20",
            "//a/b/..",
            "//a.example/b",
            "/a.example/..",
            "/x;jsessionid=1.node2",
            "/a/./b",
            "/v1.2/%2ewell-known",
            "/wiki/Wait../talk",
            "/wiki/wait.../talk",
            "/to-be-continued../comments",
            "/static../",
            "/static..",
            "/repo/compare/v1.0..v1.1/a",
            "/repo/compare/main...feature/x",
            "/a/..b/c",
            "/1../2",
            "/m%C3%BC../x",
        ] {
            assert!(bypass(path.as_bytes()).is_none(), "{path}");
        }
        assert!(ends_in_extension(b"/app/rest/server;.jsp") && !ends_in_extension(b"/a b;.jsp"));
        assert!(!ends_in_extension(b"/a;v=1.jsp"));
    }

    #[test]
    fn queries_that_are_paths() {
        assert!(is_query_path(b"/api/global/users", b"/webhooks/trigger"));
        for query in [
            "@a.example/mapi/nspi/?&Email=x",
            "@zdi/PowerShell?a=b",
            "a=a@b.example/powershell/?X=1",
            "a..b.var/owa/?&x=1",
        ] {
            assert!(is_query_path(b"/autodiscover/autodiscover.json", query.as_bytes()), "{query}");
        }
        for query in
            ["mail=a@b.example", "url=https://u@a.example/b/?c=1", "next=/a/b/?c=1", "threads/a.1/?page=2"]
        {
            assert!(!is_query_path(b"/a/b", query.as_bytes()), "{query}");
        }
        for (path, query) in [
            ("/", "/blog/post"),
            ("/index.php", "/blog/post"),
            ("/forum/", "/topic/1"),
            ("/login", "/register"),
            ("/api/users", "path=/a/b"),
            ("/api/users", "/a//b"),
        ] {
            assert!(!is_query_path(path.as_bytes(), query.as_bytes()), "{path}?{query}");
        }
    }
}
