//! Paths, and the other paths that servers take them for.

mod readings;
mod steps;

use std::borrow::Cow;

use steps::{Step, is_long};

pub(crate) use readings::readings;

/// The path under which a server answers, as far as that can be known.
pub(crate) fn as_servers_see(path: &[u8]) -> Cow<'_, [u8]> {
    if is_plain(path) { Cow::Borrowed(path) } else { Step::run_all(&readings::SHORTEST, path) }
}

/// True if every server takes the path for what is written: none of the [`readings`] changes it. Letters in
/// upper case are left to who compares.
pub(crate) fn is_plain(path: &[u8]) -> bool {
    let mut before = b'a';
    for &byte in path {
        match byte {
            b'%' | b'\\' | b';' | b'#' | b'?' | b' ' | 0 => return false,
            b'/' if matches!(before, b'/' | b'.') => return false,
            b'.' if before == b'/' => return false,
            _ if is_long(byte) => return false,
            _ => before = byte,
        }
    }
    before != b'.'
}

/// True if the path of a request target has a segment that stands for the parent, as it is written or with
/// percent-encoded dots. RFC 3986, section 5.2.4, has clients resolve it before they send it.
pub(crate) fn has_parent_segment(target: &[u8]) -> bool {
    let path = target.split(|&byte| byte == b'?').next().unwrap_or_default();
    let is_parent = |segment: &[u8]| segment == b"..";
    !is_plain(path) && Step::Unreserved.run(Cow::Borrowed(path)).split(|&byte| byte == b'/').any(is_parent)
}

/// True if some server climbs to a parent somewhere in the path, however the segment for it is written.
pub(crate) fn climbs(path: &[u8]) -> bool {
    if is_plain(path) {
        return false;
    }
    let decoded = Step::run_all(&[Step::DecodeLeniently; 3], path);
    decoded.split(|byte| matches!(byte, b'/' | b'\\')).any(|segment| {
        // The part that some servers cut off.
        let end = segment.iter().position(|byte| matches!(byte, b';' | b'?' | b'#' | 0));
        segment[..end.unwrap_or(segment.len())].trim_ascii_end() == b".."
    })
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
            assert_eq!(as_servers_see(path.as_bytes()), expected.as_bytes(), "{path}");
        }
    }

    #[test]
    fn parents() {
        for (path, climbing, written) in [
            ("/a/../b", true, true),
            ("/a/%2E./b?c", true, true),
            ("/..", true, true),
            ("/a/..;x/b", true, false),
            ("/a/..%2fb", true, false),
            ("/a\\..\\b", true, false),
            ("/a/%252e%252e/b", true, false),
            ("/a/%c0%ae./b", true, false),
            ("/a/..%20%00x/b", true, false),
            ("/a/.../b", false, false),
            ("/a..b/", false, false),
            ("/a/./b", false, false),
            ("/a?x=/../", false, false),
        ] {
            let plain = path.split('?').next().unwrap_or_default();
            assert_eq!(
                (climbs(plain.as_bytes()), has_parent_segment(path.as_bytes())),
                (climbing, written),
                "{path}"
            );
        }
    }
}
