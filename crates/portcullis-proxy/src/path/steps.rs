//! Steps of servers on a path, one at a time.

use std::borrow::Cow;

use portcullis_types::percent_decode;

/// A change that a server makes to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Everything from a `#` on is cut.
    Fragment,
    /// `//host/path`: the host is cut, as in a URL without its scheme.
    Authority,
    /// `;parameters` of each segment are cut.
    Params,
    /// `\` becomes `/`.
    Backslash,
    /// `%2E`, `%41` and the like, which RFC 3986 allows to be decoded anywhere (its "unreserved" characters).
    Unreserved,
    /// Everything percent-encoded is decoded.
    Decode,
    /// The same, but `%2F` stays.
    DecodeAllButSlash,
    /// The same with `%u002F`, and with overlong UTF-8 (`%C0%AF`) taken for what it stands for.
    DecodeLeniently,
    /// A decoded NUL, `?` or `#` ends the path.
    End,
    /// Several slashes become one.
    Merge,
    /// `.` and `..` are resolved (RFC 3986, section 5.2.4).
    Dots,
    /// The same as names of files are: no slash is left where `.` or `..` ends the path.
    Normpath,
    /// Dots and blanks at the end of a segment are cut.
    Trim,
}

impl Step {
    /// Makes all of the changes.
    pub(super) fn run_all<'p>(steps: &[Step], path: &'p [u8]) -> Cow<'p, [u8]> {
        steps.iter().fold(Cow::Borrowed(path), |path, step| step.run(path))
    }

    /// Makes the change.
    pub(super) fn run<'p>(self, path: Cow<'p, [u8]>) -> Cow<'p, [u8]> {
        let has = |byte: u8| path.contains(&byte);
        let changed = match self {
            Step::Fragment => cut(&path, |byte| byte == b'#'),
            Step::End => cut(&path, |byte| matches!(byte, 0 | b'?' | b'#')),
            Step::Authority => authority(&path).map(|at| path[at..].to_vec()),
            Step::Params if has(b';') => Some(segments(&path, |segment| {
                segment.split(|&byte| byte == b';').next().unwrap_or_default()
            })),
            Step::Backslash if has(b'\\') => {
                Some(path.iter().map(|&byte| if byte == b'\\' { b'/' } else { byte }).collect())
            }
            Step::Unreserved if has(b'%') => Some(decode_some(&path, |byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
            })),
            Step::Decode if has(b'%') => Some(percent_decode(&path, false)),
            Step::DecodeAllButSlash if has(b'%') => Some(decode_some(&path, |byte| byte != b'/')),
            Step::DecodeLeniently if path.iter().any(|&byte| byte == b'%' || is_long(byte)) => {
                Some(decode_leniently(&path))
            }
            Step::Merge if path.windows(2).any(|pair| pair == b"//") => Some(merge(&path)),
            Step::Dots if path.windows(2).any(|pair| pair == b"/.") => Some(resolve(&path)),
            Step::Normpath if path.windows(2).any(|pair| pair == b"/.") => Some(normpath(&path)),
            Step::Trim if path.iter().any(|byte| matches!(byte, b'.' | b' ')) => Some(segments(&path, trim)),
            Step::Params
            | Step::Backslash
            | Step::Unreserved
            | Step::Decode
            | Step::DecodeAllButSlash
            | Step::DecodeLeniently
            | Step::Merge
            | Step::Dots
            | Step::Normpath
            | Step::Trim => None,
        };
        changed.map_or(path, Cow::Owned)
    }
}

/// The first byte of UTF-8 that may stand for ASCII to a lenient reader.
pub(super) fn is_long(byte: u8) -> bool {
    matches!(byte, 0xc0 | 0xc1 | 0xe0 | 0xef)
}

fn cut(path: &[u8], ends: impl Fn(u8) -> bool) -> Option<Vec<u8>> {
    let at = path.iter().position(|&byte| ends(byte))?;
    Some(path[..at].to_vec())
}

/// The end of a leading `//host`.
fn authority(path: &[u8]) -> Option<usize> {
    let host = path.strip_prefix(b"//")?;
    host.iter().position(|&byte| byte == b'/').map(|at| at + 2)
}

fn segments(path: &[u8], change: impl Fn(&[u8]) -> &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    for (number, segment) in path.split(|&byte| byte == b'/').enumerate() {
        if number > 0 {
            out.push(b'/');
        }
        out.extend_from_slice(change(segment));
    }
    out
}

/// Of a segment of dots alone these stay.
fn trim(segment: &[u8]) -> &[u8] {
    let end = match segment.iter().rposition(|byte| !matches!(byte, b'.' | b' ')) {
        Some(last) => last + 1,
        None => segment.iter().position(|&byte| byte == b' ').unwrap_or(segment.len()),
    };
    &segment[..end]
}

/// Decodes the bytes that `wanted` wants decoded.
fn decode_some(path: &[u8], wanted: impl Fn(u8) -> bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, tail)) = rest.split_first() {
        match (byte == b'%').then(|| hexadecimal(tail.first_chunk::<2>()?)).flatten() {
            Some(value) if wanted(value as u8) => {
                out.push(value as u8);
                rest = &tail[2..];
            }
            _ => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    out
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)?))
}

/// Decodes `%XX` and `%uXXXX`, and takes overlong UTF-8 of ASCII for the ASCII, and full-width forms, too.
fn decode_leniently(path: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        let value = match tail {
            _ if byte != b'%' => None,
            [b'u' | b'U', digits @ ..] => digits.first_chunk::<4>().and_then(|d| Some((hexadecimal(d)?, 5))),
            digits => digits.first_chunk::<2>().and_then(|d| Some((hexadecimal(d)?, 2))),
        };
        match value {
            Some((value, length)) => {
                match (length, u8::try_from(value)) {
                    (_, Ok(value)) => bytes.push(value),
                    (_, Err(_)) => {
                        let mut room = [0; 4];
                        let letter = char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER);
                        bytes.extend_from_slice(letter.encode_utf8(&mut room).as_bytes());
                    }
                }
                rest = &tail[length..];
            }
            None => bytes.push(byte),
        }
    }
    shorten(&bytes)
}

/// UTF-8 that takes more bytes than it needs, and full-width letters, as the ASCII that they stand for.
fn shorten(bytes: &[u8]) -> Vec<u8> {
    let low = |byte: u8| byte & 0x3f;
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        let (ascii, length) = match *rest {
            [0xc0 | 0xc1, b, ..] if b & 0xc0 == 0x80 => ((byte & 1) << 6 | low(b), 2),
            [0xe0, b @ (0x80 | 0x81), c, ..] if c & 0xc0 == 0x80 => ((b & 1) << 6 | low(c), 3),
            // U+FF01 to U+FF5E
            [0xef, 0xbc, c @ 0x81..=0xbf, ..] => (low(c) + 0x20, 3),
            [0xef, 0xbd, c @ 0x80..=0x9e, ..] => (low(c) + 0x60, 3),
            _ => {
                out.push(byte);
                rest = tail;
                continue;
            }
        };
        out.push(ascii);
        rest = &rest[length..];
    }
    out
}

fn merge(path: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(path.len());
    for &byte in path {
        if byte != b'/' || out.last() != Some(&b'/') {
            out.push(byte);
        }
    }
    out
}

/// The path without `.` and `..`; what climbs above the root stays there.
fn resolve(path: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(path.len());
    let (root, rest) = match path.strip_prefix(b"/") {
        Some(rest) => (&b"/"[..], rest),
        None => (&b""[..], path),
    };
    // Start of each segment that is kept.
    let mut starts = Vec::new();
    let mut segments = rest.split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            b"." => continue,
            b".." => out.truncate(starts.pop().unwrap_or(0)),
            _ => {
                starts.push(out.len());
                out.extend_from_slice(segment);
                if !is_last {
                    out.push(b'/');
                }
            }
        }
    }
    [root, &out].concat()
}

/// The same, and without the slash that a dot segment at the end leaves.
fn normpath(path: &[u8]) -> Vec<u8> {
    let mut out = resolve(path);
    if (path.ends_with(b"/.") || path.ends_with(b"/..")) && out.len() > 1 {
        out.pop();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(step: Step, path: &str, expected: &str) {
        let got = step.run(Cow::Borrowed(path.as_bytes()));
        assert_eq!(String::from_utf8_lossy(&got), expected, "{step:?} {path}");
    }

    #[test]
    fn steps() {
        check(Step::Fragment, "/a#b", "/a");
        check(Step::Authority, "//a:80/b//c", "/b//c");
        check(Step::Authority, "//a", "//a");
        check(Step::Params, "/a;b=c;d/..;e/;f", "/a/../");
        check(Step::Backslash, "\\a\\b", "/a/b");
        check(Step::Unreserved, "/%2e%2E%41%2f%25", "/..A%2f%25");
        check(Step::Decode, "/%2e%2f%252e%zz%", "/./%2e%zz%");
        check(Step::DecodeAllButSlash, "/%2e%2f%3b", "/.%2f;");
        check(
            Step::DecodeLeniently,
            "/%u002e%c0%ae%c0%af%e0%80%af%uff0e%ef%bc%8f%u00e9%C3%A9",
            "/..//./\u{fffd}\u{e9}",
        );
        check(Step::End, "/a\0b", "/a");
        check(Step::End, "/a?b", "/a");
        check(Step::Merge, "//a///b//", "/a/b/");
        check(Step::Normpath, "/a/./b/.", "/a/b");
        check(Step::Normpath, "/a/..", "/");
        check(Step::Normpath, "/a/./b/", "/a/b/");
        check(Step::Trim, "/a. ./../.. /.../b ", "/a/../../.../b");
    }

    #[test]
    fn dot_segments_as_in_the_rfc() {
        // Section 5.2.4 and the examples of section 5.4.
        for (path, expected) in [
            ("/a/b/c/./../../g", "/a/g"),
            ("/b/c/..", "/b/"),
            ("/b/c/.", "/b/c/"),
            ("/b/c/../..", "/"),
            ("/b/c/../../../../g", "/g"),
            ("/b/c/g..", "/b/c/g.."),
            ("/b/c/..g", "/b/c/..g"),
            ("/b/c/g/./h", "/b/c/g/h"),
            ("/a//../b", "/a/b"),
            ("/..", "/"),
            ("/.", "/"),
            ("/", "/"),
            ("/.a/...", "/.a/..."),
        ] {
            check(Step::Dots, path, expected);
        }
    }
}
