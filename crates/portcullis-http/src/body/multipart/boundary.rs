//! The boundary of a multipart body, from its `Content-Type`.

use crate::body::{MultipartError, MultipartFlags};
use memchr::{memchr, memmem};

const MEDIA_TYPE: &[u8] = b"multipart/form-data";
const CONTENT_TYPE_BYTES_MAX: usize = 1_024;

/// Finds the boundary in a `Content-Type` value, with the strictness of ModSecurity 2.9.7: the boundary is
/// the only parameter, reaches to the end of the value, and its name is in lower case. Sets the flags that
/// belong to it. `parameters_behind`: it ends at a semicolon, where other parameters may follow.
pub(super) fn parse(
    content_type: &[u8],
    parameters_behind: bool,
    flags: &mut MultipartFlags,
) -> Result<Vec<u8>, MultipartError> {
    let value = content_type;
    if value.len() > CONTENT_TYPE_BYTES_MAX {
        return Err(MultipartError::ContentTypeLength);
    }
    if !value.get(..MEDIA_TYPE.len()).is_some_and(|start| start.eq_ignore_ascii_case(MEDIA_TYPE)) {
        return Err(MultipartError::MediaType);
    }
    if boundary_parameters(value) > 1 {
        return Err(MultipartError::BoundaryRepeated);
    }
    let lower = || memmem::find(&value.to_ascii_lowercase(), b"boundary").is_some();
    let name = memmem::find(value, b"boundary").ok_or_else(|| match lower() {
        true => MultipartError::BoundaryCase,
        false => MultipartError::BoundaryMissing,
    })?;

    // Before it: white space and one semicolon.
    let between = value.get(MEDIA_TYPE.len()..name).unwrap_or_default();
    let mut others = between.iter().filter(|&&b| !is_space(b));
    match (others.next(), others.next()) {
        (None, _) => flags.missing_semicolon = true,
        (Some(b';'), None) => {}
        _ => return Err(MultipartError::BoundaryParameter),
    }

    let rest = &value[name + b"boundary".len()..];
    let equals = memchr(b'=', rest).ok_or(MultipartError::BoundaryParameter)?;
    if !rest[..equals].iter().all(|&b| is_space(b)) {
        return Err(MultipartError::BoundaryName);
    }
    let mut boundary = &rest[equals + 1..];
    flags.boundary_whitespace = equals > 0 || boundary.first().is_some_and(|&b| is_space(b));
    if parameters_behind {
        boundary = without_parameters(boundary);
    }

    if let [b'"', inner @ .., b'"'] = boundary {
        flags.boundary_quoted = true;
        boundary = inner;
    } else if boundary.first() == Some(&b'"') || boundary.len() >= 2 && boundary.ends_with(b"\"") {
        return Err(MultipartError::BoundaryQuote);
    }
    if boundary_parameters(boundary) != 0 {
        return Err(MultipartError::BoundaryRepeated);
    }
    if boundary.is_empty() || boundary.ends_with(b" ") || !boundary.iter().all(|&b| is_boundary_character(b))
    {
        return Err(MultipartError::BoundaryCharacters);
    }
    Ok(boundary.to_vec())
}

/// The value of the parameter at the beginning of `value`, quotation marks included.
fn without_parameters(value: &[u8]) -> &[u8] {
    let quoted = match value {
        [b'"', inner @ ..] => memchr(b'"', inner).map_or(0, |close| close + 2),
        _ => 0,
    };
    match memchr(b';', &value[quoted..]) {
        Some(at) => value[..quoted + at].trim_ascii_end(),
        None => value,
    }
}

/// Counts the occurrences of the word, in any case, with an equals sign somewhere behind it.
fn boundary_parameters(value: &[u8]) -> usize {
    let value = value.to_ascii_lowercase();
    let last_equals = memchr::memrchr(b'=', &value).unwrap_or(0);
    memmem::find_iter(&value, b"boundary").filter(|&at| at < last_equals).count()
}

/// RFC 2046, section 5.1.1.
fn is_boundary_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+_,-./:=?".contains(&byte)
}

/// C's `isspace`.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, expected: Result<&str, MultipartError>, raised: &str) {
        let mut flags = MultipartFlags::default();
        let result = parse(value.as_bytes(), false, &mut flags);
        assert_eq!(result, expected.map(|b| b.as_bytes().to_vec()), "{value}");
        if result.is_ok() {
            let names = [
                (flags.boundary_quoted, "quoted"),
                (flags.boundary_whitespace, "whitespace"),
                (flags.missing_semicolon, "semicolon"),
            ];
            let names: Vec<_> = names.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
            assert_eq!(names.join(" "), raised, "{value}");
        }
    }

    #[test]
    fn boundaries() {
        use MultipartError::*;
        check("multipart/form-data; boundary=x", Ok("x"), "");
        check("MULTIPART/form-data;boundary=----WebKit1", Ok("----WebKit1"), "");
        check("multipart/form-data; boundary=\"x y\"", Ok("x y"), "quoted");
        check("multipart/form-data; boundary='x'", Ok("'x'"), "");
        check("multipart/form-data boundary=x", Ok("x"), "semicolon");
        check("multipart/form-data; boundary = x", Ok(" x"), "whitespace");
        check("multipart/form-data; boundary=\"x", Err(BoundaryQuote), "");
        check("multipart/form-data; boundary=x\"", Err(BoundaryQuote), "");
        check("multipart/form-data; boundary=\"", Err(BoundaryQuote), "");
        check("multipart/form-data; boundary=", Err(BoundaryCharacters), "");
        check("multipart/form-data; boundary=\"\"", Err(BoundaryCharacters), "");
        check("multipart/form-data; boundary=x; charset=utf-8", Err(BoundaryCharacters), "");
        check("multipart/form-data; charset=utf-8; boundary=x", Err(BoundaryParameter), "");
        check("multipart/form-data, boundary=x", Err(BoundaryParameter), "");
        check("multipart/form-data; boundary*=us-ascii''x", Err(BoundaryName), "");
        check("multipart/form-data; boundary=x; boundary=y", Err(BoundaryRepeated), "");
        check("multipart/form-data; boundary=x; BOUNDARY=y", Err(BoundaryRepeated), "");
        check("multipart/form-data; BOUNDARY=x", Err(BoundaryCase), "");
        check("multipart/form-data; boundary=boundary", Ok("boundary"), "");
        check("multipart/form-data; boundary", Err(BoundaryParameter), "");
        check("multipart/form-data", Err(BoundaryMissing), "");
        check("multipart/mixed; boundary=x", Err(MediaType), "");
        check("", Err(MediaType), "");
        check(&format!("multipart/form-data; boundary={}", "x".repeat(1_000)), Err(ContentTypeLength), "");
    }

    /// What the strict reading finds, the other finds as well; and where it stops at a parameter, the other
    /// has the boundary in front of it.
    #[test]
    fn parameters_behind_it() {
        let read = |value: &str, parameters_behind| {
            parse(value.as_bytes(), parameters_behind, &mut MultipartFlags::default())
        };
        for boundary in ["x", "\"x\"", "\"x y\"", "'x'", "----WebKit1", "x?a=b"] {
            let plain = format!("multipart/form-data; boundary={boundary}");
            let expected = read(&plain, false);
            assert!(expected.is_ok(), "{plain}");
            assert_eq!(read(&plain, true), expected);
            for behind in [";", ";charset=utf-8", "; charset=utf-8", " ; a=\"b;c\"; d", "\t;;"] {
                let value = format!("{plain}{behind}");
                assert_eq!(read(&value, true), expected, "{value}");
                assert!(read(&value, false).is_err(), "{value}");
            }
        }
        for bad in ["; a=b", "\"x; a=b", "x\"; a=b", "\"x\"y; a=b", "x; boundary=y", "x; BOUNDARY=y"] {
            let value = format!("multipart/form-data; boundary={bad}");
            assert!(read(&value, true).is_err(), "{value}");
        }
    }
}
