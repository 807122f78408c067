//! The URL of a `proxy` action.

use bstr::ByteSlice;
use portcullis_engine::Origin;

/// The server that `url` names, and the rest, which may hold macros. The error is a message and a hint.
pub(crate) fn parse(url: &[u8]) -> Result<(Origin, &[u8]), (String, String)> {
    let example = "write proxy:http://host:port/path; the host is fixed, the path may have macros";
    let error = |message: &str| Err((format!("proxy: {message}"), example.to_owned()));
    // A word of Apache's mod_proxy: the path is sent as written. Ours always is.
    let url = url.strip_prefix(b"[nocanon]").unwrap_or(url);
    let Some((https, rest)) = scheme(url) else {
        return error("the URL does not begin with http:// or https://");
    };
    let end = rest.iter().position(|b| matches!(b, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    if authority.contains_str("%{") {
        return error("a macro may not choose the server");
    }
    let Ok(authority) = std::str::from_utf8(authority) else { return error("the host is not a host name") };
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').unwrap_or(""))),
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b':');
    if host.is_empty() || !host.bytes().all(is_name) {
        return error(&format!("{authority:?} is not a host with an optional port"));
    }
    let port = match port {
        None => Some(if https { 443 } else { 80 }),
        Some(digits) => digits.parse().ok().filter(|&port: &u16| port > 0),
    };
    let Some(port) = port else { return error(&format!("{authority:?} has no valid port")) };
    Ok((Origin { https, host: host.to_ascii_lowercase(), port }, target))
}

fn scheme(url: &[u8]) -> Option<(bool, &[u8])> {
    let starts =
        |scheme: &[u8]| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    match () {
        () if starts(b"http://") => Some((false, &url[7..])),
        () if starts(b"https://") => Some((true, &url[8..])),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers() {
        for (url, origin, rest) in [
            ("http://h", "http://h:80", ""),
            ("HTTPS://H.Example/a%{tx.x}", "https://h.example:443", "/a%{tx.x}"),
            ("http://10.0.0.1:8080/?a", "http://10.0.0.1:8080", "/?a"),
            ("http://[::1]:81?q", "http://[::1]:81", "?q"),
            ("http://[::1]/", "http://[::1]:80", "/"),
            ("[nocanon]http://h/a%2f", "http://h:80", "/a%2f"),
        ] {
            let (found, target) = parse(url.as_bytes()).unwrap();
            assert_eq!((found.to_string().as_str(), target), (origin, rest.as_bytes()), "{url}");
        }
    }

    #[test]
    fn what_is_no_server() {
        for url in [
            "",
            "h",
            "/a",
            "ftp://h/",
            "http:///a",
            "http://u@h/",
            "http://h:0/",
            "http://h:99999/",
            "http://h:x/",
            "http://%{tx.h}/",
            "http://h%{tx.h}:80/",
            "[nocanon]/a",
            "http://[::1/",
            "http://h i/",
            "http://[::1]x/",
        ] {
            assert!(parse(url.as_bytes()).is_err(), "{url}");
        }
    }
}
