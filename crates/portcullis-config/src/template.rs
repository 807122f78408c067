//! Texts with parts that come from the request.

/// A text, some parts of which come from the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template(pub Vec<Part>);

/// A part of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// As it is.
    Text(String),
    /// `{client}`: the client's address.
    Client,
    /// `{host}`: the host that was asked for, without port.
    Host,
    /// `{path}`: the path as it was sent.
    Path,
    /// `{uri}`: path and query as they were sent.
    Uri,
    /// `{request_id}`.
    RequestId,
    /// `{country}`: of the client, empty if it is unknown.
    Country,
    /// `{continent}`: the same.
    Continent,
    /// `{asn}`: the number of its autonomous system, empty if it is unknown.
    Asn,
    /// `{client_cert_...}`: of the client's certificate; nothing without one.
    ClientCert(ClientCertField),
    /// `$1` to `$9`: a group of the route's pattern, 0 for the whole match.
    Group(usize),
}

/// The fields of a client's certificate that can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertField {
    /// Its subject, as RFC 4514 writes it.
    Subject,
    /// Its issuer.
    Issuer,
    /// Its serial number, hexadecimal.
    Serial,
    /// The SHA-256 of all of it, hexadecimal.
    Fingerprint,
}

const NAMES: [(&str, Part); 12] = [
    ("client", Part::Client),
    ("host", Part::Host),
    ("path", Part::Path),
    ("uri", Part::Uri),
    ("request_id", Part::RequestId),
    ("country", Part::Country),
    ("continent", Part::Continent),
    ("asn", Part::Asn),
    ("client_cert_subject", Part::ClientCert(ClientCertField::Subject)),
    ("client_cert_issuer", Part::ClientCert(ClientCertField::Issuer)),
    ("client_cert_serial", Part::ClientCert(ClientCertField::Serial)),
    ("client_cert_fingerprint", Part::ClientCert(ClientCertField::Fingerprint)),
];

impl Template {
    /// Reads a text; `$1` means something only where there is a pattern with `groups`. Braces around anything
    /// but a word are text, since header values may be JSON.
    pub(crate) fn parse(text: &str, groups: Option<usize>) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let found = match first {
                '{' => placeholder(rest)?,
                '$' => group(rest, groups)?,
                _ => None,
            };
            let length = match found {
                Some((part, length)) => {
                    if !plain.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(part);
                    length
                }
                None => {
                    plain.push(first);
                    first.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Template(parts))
    }
}

/// The placeholder at the beginning of `text`, and its length.
fn placeholder(text: &str) -> Result<Option<(Part, usize)>, String> {
    let Some(end) = text.find('}') else { return Ok(None) };
    let name = &text[1..end];
    let is_word = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if !is_word {
        return Ok(None);
    }
    match NAMES.into_iter().find(|(known, _)| *known == name) {
        Some((_, part)) => Ok(Some((part, end + 1))),
        None => Err(format!("unknown placeholder `{{{name}}}`")),
    }
}

fn group(text: &str, groups: Option<usize>) -> Result<Option<(Part, usize)>, String> {
    let digit = text[1..].chars().next().and_then(|digit| digit.to_digit(10));
    let (Some(number), Some(groups)) = (digit.map(|digit| digit as usize), groups) else { return Ok(None) };
    match number <= groups {
        true => Ok(Some((Part::Group(number), 2))),
        false => Err(format!("`${number}` is a group that the pattern does not have")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_parts() {
        let text = |text: &str| Part::Text(text.to_string());
        for (from, groups, expected) in [
            ("", None, vec![]),
            ("https://{host}{uri}", None, vec![text("https://"), Part::Host, Part::Uri]),
            ("/v2/$1?$0", Some(1), vec![text("/v2/"), Part::Group(1), text("?"), Part::Group(0)]),
            ("$1 {\"a\":1} {", None, vec![text("$1 {\"a\":1} {")]),
        ] {
            assert_eq!(Template::parse(from, groups), Ok(Template(expected)), "{from}");
        }
        assert!(Template::parse("{hots}", None).is_err());
        assert!(Template::parse("$2", Some(1)).is_err());
    }
}
