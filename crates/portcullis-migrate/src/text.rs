//! Texts that every syntax has: host names, networks, header values, regular expressions.

use std::net::IpAddr;

use portcullis_match::{Regex, RegexFlags};

/// Header fields that the proxy writes itself.
const OURS: &[&str] = &[
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-request-id",
];

/// True if the proxy writes this header field itself.
pub(crate) fn is_ours(name: &str) -> bool {
    OURS.contains(&name.to_ascii_lowercase().as_str())
}

/// True if a header field can have this name.
pub(crate) fn is_field_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// True for `type/subtype`.
pub(crate) fn is_media_type(text: &str) -> bool {
    text.split_once('/').is_some_and(|(kind, sub)| {
        [kind, sub].iter().all(|part| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte))
        })
    })
}

/// An address or a network, as it may stand in a list of clients.
pub(crate) fn is_network(text: &str) -> bool {
    let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    prefix.is_none_or(|prefix| prefix.parse::<u8>().is_ok_and(|prefix| prefix <= bits))
}

/// A name that a site may have: exact, or `*.` before it.
pub(crate) fn is_host(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let is_name = !name.is_empty()
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let is_address = text
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok());
    is_name || is_address
}

/// True if a certificate can be ordered for this host.
pub(crate) fn is_domain(name: &str) -> bool {
    let is_label = |label: &str| (1..=63).contains(&label.len()) && !label.contains('_');
    let is_address = name.parse::<IpAddr>().is_ok() || name.starts_with('[');
    name.len() <= 253
        && name.contains('.')
        && !name.contains('*')
        && !is_address
        && name.split('.').all(is_label)
}

/// An e-mail address, as an authority is given it.
pub(crate) fn is_contact(text: &str) -> bool {
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !b",?:{}".contains(&byte));
    plain && text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty())
}

/// A method as routes have it.
pub(crate) fn is_method(text: &str) -> bool {
    is_field_name(text) && !text.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Methods of a configuration in which who may GET may HEAD. `None` if one is none, or if there are none.
pub(crate) fn methods<'a>(words: impl Iterator<Item = &'a str>) -> Option<Vec<String>> {
    let mut methods: Vec<String> = Vec::new();
    for word in words {
        if !is_method(word) {
            return None;
        }
        let head = (word == "GET").then_some("HEAD");
        for method in [word].into_iter().chain(head) {
            if !methods.iter().any(|known| known == method) {
                methods.push(method.to_owned());
            }
        }
    }
    (!methods.is_empty()).then_some(methods)
}

/// A path as routes have it.
pub(crate) fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|byte| byte > 0x20 && byte != 0x7f && !b"?#".contains(&byte))
}

/// The number of groups of a regular expression, if routes can use it.
pub(crate) fn groups(pattern: &str) -> Option<usize> {
    if pattern.chars().any(char::is_control) {
        return None;
    }
    Regex::new(pattern.as_bytes(), RegexFlags::default()).ok().map(|regex| regex.group_count())
}

/// A pattern without its groups that look ahead and behind: what it matches is more.
pub(crate) fn without_lookaround(pattern: &str) -> String {
    let (mut result, mut rest) = (String::new(), pattern);
    while let Some(at) = ["(?!", "(?=", "(?<!", "(?<="].iter().filter_map(|open| rest.find(open)).min() {
        result.push_str(&rest[..at]);
        let (mut depth, mut escaped, mut end) = (0_usize, false, rest.len());
        for (index, c) in rest[at..].char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '(' => depth += 1,
                ')' if depth == 1 => {
                    end = at + index + 1;
                    break;
                }
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        rest = &rest[end..];
    }
    result + rest
}

/// `host` or `host:port` of an upstream, with a port.
pub(crate) fn is_authority(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(inner) => match inner.split_once(']') {
            Some((host, port)) if host.parse::<std::net::Ipv6Addr>().is_ok() => {
                (host, port.strip_prefix(':'))
            }
            _ => return false,
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_host = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte));
    let is_port = |port: &str| {
        port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    !host.is_empty()
        && is_host
        && port.is_none_or(is_port)
        && !(text.starts_with('[') && port.is_none() && !text.ends_with(']'))
}

/// A header value or target whose variables begin with `$`, with the placeholders of documents. `of` knows
/// the variables; `None` if one is unknown, or if a text would be read as a placeholder.
pub(crate) fn template(text: &str, of: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['$', '{']) {
        result.push_str(&rest[..at]);
        if rest[at..].starts_with('{') {
            // Braces around a word would be a placeholder.
            let inner = rest[at + 1..].split('}').next().unwrap_or_default();
            if rest[at + 1..].contains('}')
                && !inner.is_empty()
                && inner.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            {
                return None;
            }
            result.push('{');
            rest = &rest[at + 1..];
            continue;
        }
        let after = &rest[at + 1..];
        let (name, length) = match after.strip_prefix('{') {
            Some(inner) => inner.find('}').map(|end| (&inner[..end], end + 2))?,
            None => {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                (&after[..end], end)
            }
        };
        if name.is_empty() {
            return None;
        }
        // `$12` is `$1` and a 2 where groups are meant; nobody has ten of them.
        result.push_str(&of(name)?);
        rest = &after[length..];
    }
    result.push_str(rest);
    (!result.chars().any(char::is_control)).then_some(result)
}
