//! `AUTH_TYPE` and `REMOTE_USER`: who the request says it is.
//!
//! Under Apache these are what an authentication module found out. A proxy finds out nothing, so the two say
//! what the `Authorization` header claims, as in ModSecurity 3; that the upstream believes it is not known
//! here.

use portcullis_types::Variable;
use portcullis_values::Values;

/// Enters the scheme, and the user of `Basic` and `Digest`.
pub(crate) fn ingest(header: &[u8], store: &mut Values) {
    let header = header.trim_ascii();
    let scheme_end = header.iter().position(|b| b.is_ascii_whitespace()).unwrap_or(header.len());
    let (scheme, rest) = header.split_at(scheme_end);
    if scheme.is_empty() {
        return;
    }
    store.set_scalar(Variable::AuthType, scheme);
    let user = if scheme.eq_ignore_ascii_case(b"basic") {
        basic_user(rest.trim_ascii())
    } else if scheme.eq_ignore_ascii_case(b"digest") {
        digest_user(rest)
    } else {
        None
    };
    if let Some(user) = user {
        store.set_scalar(Variable::RemoteUser, &user);
    }
}

/// The user name: the decoded credentials up to the first colon.
fn basic_user(credentials: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    if !portcullis_decode::Transformation::Base64Decode.apply(credentials, &mut decoded) {
        return None;
    }
    let end = memchr::memchr(b':', &decoded)?;
    decoded.truncate(end);
    Some(decoded)
}

/// The `username` parameter.
fn digest_user(parameters: &[u8]) -> Option<Vec<u8>> {
    let mut rest = parameters;
    loop {
        rest = rest.trim_ascii_start();
        let equals = memchr::memchr(b'=', rest)?;
        let name = rest[..equals].trim_ascii();
        let (value, after) = parameter_value(rest[equals + 1..].trim_ascii_start());
        if name.eq_ignore_ascii_case(b"username") {
            return Some(value);
        }
        rest = &after[memchr::memchr(b',', after)? + 1..];
    }
}

/// A token or a quoted string, and what follows it.
fn parameter_value(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(|&b| b == b',' || b.is_ascii_whitespace()).unwrap_or(text.len());
        return (text[..end].to_vec(), &text[end..]);
    };
    let mut value = Vec::new();
    let mut bytes = quoted.iter().copied().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return (value, &quoted[at + 1..]),
            b'\\' => value.extend(bytes.next().map(|(_, escaped)| escaped)),
            byte => value.push(byte),
        }
    }
    (value, b"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found() {
        let check = |header: &str, scheme: Option<&str>, user: Option<&str>| {
            let mut store = Values::default();
            ingest(header.as_bytes(), &mut store);
            let text = |variable| {
                store
                    .scalar(variable)
                    .map(|id| String::from_utf8_lossy(store.text(store.data(id))).into_owned())
            };
            assert_eq!(text(Variable::AuthType).as_deref(), scheme, "{header}");
            assert_eq!(text(Variable::RemoteUser).as_deref(), user, "{header}");
        };
        check("Basic QWxhZGRpbjpvcGVuOnNlc2FtZQ==", Some("Basic"), Some("Aladdin"));
        check("bAsIc   OnB3", Some("bAsIc"), Some(""));
        check("Basic ", Some("Basic"), None);
        check("Basic QWxhZGRpbg==", Some("Basic"), None);
        check("Digest realm=\"a, b\", username=\"x\\\"y\", uri=/", Some("Digest"), Some("x\"y"));
        check("Digest USERNAME = bob,nonce=1", Some("Digest"), Some("bob"));
        check("Digest realm=\"never closed", Some("Digest"), None);
        check("Bearer abc.def", Some("Bearer"), None);
        check("", None, None);
    }
}
