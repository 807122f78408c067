//! Schemes that open streams and files.

use super::{FILE_URL, WRAPPER};
use crate::KindId;

/// Bytes of the path after a scheme that are looked at.
const PATH_BYTES_MAX: usize = 1_024;

/// What `scheme` with `rest` after its colon is.
pub(super) fn wrapper(scheme: &[u8], rest: &[u8]) -> Option<KindId> {
    let is = |name: &str| scheme.eq_ignore_ascii_case(name.as_bytes());
    let has_slashes = rest.starts_with(b"//");
    if has_slashes
        && [
            "php",
            "zip",
            "phar",
            "expect",
            "data",
            "glob",
            "rar",
            "ogg",
            "ssh2.exec",
            "compress.zlib",
            "compress.bzip2",
        ]
        .iter()
        .any(|name| is(name))
    {
        return Some(WRAPPER);
    }
    // Without the slashes these are words of prose; what follows must be a file.
    if is("phar") && memchr::memchr(b'/', &rest[..rest.len().min(PATH_BYTES_MAX)]).is_some() {
        return Some(WRAPPER);
    }
    if is("jar") && ["http", "file", "ftp"].iter().any(|name| rest.starts_with(name.as_bytes())) {
        return Some(WRAPPER);
    }
    if is("netdoc") && rest.starts_with(b"/") {
        return Some(WRAPPER);
    }
    let is_file = (is("file") || is("local_file"))
        && (matches!(rest, [b'/' | b'\\' | b'$' | b'%', ..])
            || matches!(rest, [a, b':' | b'|', ..] if a.is_ascii_alphabetic()));
    is_file.then_some(FILE_URL)
}

/// The path of a file URL lies in somebody's home.
pub(super) fn is_home(rest: &[u8]) -> bool {
    let path = &rest[rest.iter().take_while(|b| matches!(b, b'/' | b'\\')).count()..];
    let path = match path {
        [letter, b':', b'/' | b'\\', inner @ ..] if letter.is_ascii_alphabetic() => inner,
        path => path,
    };
    let begins =
        |folder: &[u8]| path.get(..folder.len()).is_some_and(|start| start.eq_ignore_ascii_case(folder));
    (begins(b"users/") || begins(b"home/") || begins(b"storage/"))
        && memchr::memmem::find(&path[..path.len().min(PATH_BYTES_MAX)], b"/.").is_none()
}

/// A byte of a scheme's name.
pub(super) fn is_scheme(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-')
}
