//! Paths as servers may resolve them.

use std::borrow::Cow;

use portcullis_types::percent_decode;

/// The path under which a server answers, as far as that can be known.
pub(crate) fn as_servers_see(path: &[u8]) -> Cow<'_, [u8]> {
    if is_unusual(path) { Cow::Owned(resolved(path)) } else { Cow::Borrowed(path) }
}

pub(crate) fn is_unusual(path: &[u8]) -> bool {
    path.windows(2).any(|pair| matches!(pair, b"//" | b"/." | b"/;"))
        || path.iter().any(|byte| b"%\\;".contains(byte))
}

/// The path as a server may see it: percent-decoded twice, backslashes turned, path parameters cut, dot
/// segments and empty segments taken out.
pub(crate) fn resolved(path: &[u8]) -> Vec<u8> {
    let decoded = percent_decode(&percent_decode(path, false), false);
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in decoded.split(|byte| matches!(byte, b'/' | b'\\')) {
        let segment = segment.split(|byte| *byte == b';').next().unwrap_or_default();
        match segment {
            b"" | b"." => {}
            b".." => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    let mut path = Vec::with_capacity(decoded.len() + 1);
    for segment in &segments {
        path.push(b'/');
        path.extend_from_slice(segment);
    }
    if path.is_empty() || matches!(decoded.last(), Some(b'/' | b'\\')) {
        path.push(b'/');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_as_servers_see_them() {
        for (path, expected) in [
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("/a/", "/a/"),
            ("/static/../admin", "/admin"),
            ("/static/%2e%2e/admin", "/admin"),
            ("/static/%252e%252e/admin", "/admin"),
            ("/static/..;x=y/admin", "/admin"),
            ("/static\\..\\admin", "/admin"),
            ("//static//x", "/static/x"),
            ("/../../x", "/x"),
            ("/a%2Fb", "/a/b"),
            ("/%zz", "/%zz"),
        ] {
            assert_eq!(resolved(path.as_bytes()), expected.as_bytes(), "{path}");
        }
    }
}
