//! Path templates: paths whose variable parts stand as `*`, so that `/users/17` and `/users/18` count
//! together.

/// Segments of a template; the rest of a longer path is one `*`.
const SEGMENTS_MAX: usize = 8;
/// A segment that is longer holds an identifier or an attack.
const SEGMENT_BYTES_MAX: usize = 40;

/// Writes the template of a request target (origin or absolute form).
pub(crate) fn template(target: &[u8], out: &mut String) {
    out.clear();
    let target = match memchr::memmem::find(target, b"://") {
        Some(at) if !target[..at].iter().any(|byte| matches!(byte, b'/' | b'?')) => {
            let rest = &target[at + 3..];
            memchr::memchr(b'/', rest).map_or(&b"/"[..], |at| &rest[at..])
        }
        _ => target,
    };
    let path = target.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or(b"");
    for (number, segment) in path.split(|byte| *byte == b'/').enumerate() {
        if number > 0 {
            out.push('/');
        }
        if number > SEGMENTS_MAX {
            out.push('*');
            return;
        }
        match std::str::from_utf8(segment) {
            Ok(text) if !is_variable(segment) => out.push_str(text),
            _ => out.push('*'),
        }
    }
}

/// Numbers, identifiers, and what no programmer writes as a segment.
fn is_variable(segment: &[u8]) -> bool {
    if segment.len() > SEGMENT_BYTES_MAX {
        return true;
    }
    let digits = segment.iter().filter(|byte| byte.is_ascii_digit()).count();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(byte);
    let is_number = digits > 0 && digits == segment.len();
    is_number || digits >= 4 || !segment.iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::template;

    #[test]
    fn variable_parts_are_stars() {
        let long = format!("/{}", "a/".repeat(20));
        for (target, expected) in [
            ("/", "/"),
            ("/users/17/edit?x=1", "/users/*/edit"),
            ("/v2/app/blobs/sha256:0123456789abcdef", "/v2/app/blobs/*"),
            ("/item/550e8400-e29b-41d4-a716-446655440000", "/item/*"),
            ("/static/app.css", "/static/app.css"),
            ("http://shop.example/a/5", "/a/*"),
            ("http://shop.example", "/"),
            ("/%2e%2e/<script>", "/*/*"),
            ("*", "*"),
            ("", ""),
            (&long, "/a/a/a/a/a/a/a/a/*"),
        ] {
            let mut out = "before".to_owned();
            template(target.as_bytes(), &mut out);
            assert_eq!(out, expected, "{target}");
        }
    }
}
