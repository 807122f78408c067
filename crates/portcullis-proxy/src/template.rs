//! Filling in texts of the configuration from a request.

use portcullis_access::Code;
use portcullis_config::{ClientCertField, Part, Template};
use portcullis_http::message::RequestHead;
use portcullis_match::regex::Captures;

use crate::facts::{Facts, host, without_port};

/// The sources of the parts of a text.
pub(crate) struct Source<'a> {
    pub(crate) facts: &'a Facts<'a>,
    /// Of the route's pattern.
    pub(crate) groups: &'a Captures,
}

/// The text with its parts filled in.
pub(crate) fn fill(template: &Template, from: &Source<'_>) -> Vec<u8> {
    let (facts, head) = (from.facts, from.facts.head);
    let mut out = Vec::new();
    for part in &template.0 {
        match part {
            Part::Text(text) => out.extend_from_slice(text.as_bytes()),
            Part::Client => out.extend_from_slice(facts.client.ip().to_string().as_bytes()),
            Part::Host => out.extend_from_slice(without_port(host(head))),
            Part::Path => out.extend_from_slice(path(head)),
            Part::Uri => {
                out.extend_from_slice(path(head));
                query(head, &mut out);
            }
            Part::RequestId => out.extend_from_slice(facts.request_id.as_bytes()),
            Part::Country => code(facts.place.country, &mut out),
            Part::Continent => code(facts.place.continent, &mut out),
            Part::Asn => {
                let asn = facts.place.asn.map(|number| number.to_string());
                out.extend_from_slice(asn.unwrap_or_default().as_bytes());
            }
            Part::ClientCert(field) => {
                let certificate = facts.certificate;
                let text = certificate.map_or("", |certificate| match field {
                    ClientCertField::Subject => &certificate.subject,
                    ClientCertField::Issuer => &certificate.issuer,
                    ClientCertField::Serial => &certificate.serial,
                    ClientCertField::Fingerprint => &certificate.fingerprint,
                });
                out.extend_from_slice(text.as_bytes());
            }
            Part::Group(number) => {
                if let Some(span) = from.groups.get(*number).copied().flatten() {
                    out.extend_from_slice(span.of(head.path()));
                }
            }
        }
    }
    out
}

fn code(code: Option<Code>, out: &mut Vec<u8>) {
    out.extend_from_slice(code.as_ref().map_or("", Code::as_str).as_bytes());
}

/// Appends the query with its question mark.
pub(crate) fn query(head: &RequestHead, out: &mut Vec<u8>) {
    if let Some(query) = head.query() {
        out.push(b'?');
        out.extend_from_slice(query);
    }
}

/// The path; a target that has none, such as `*`, stands for the root.
fn path(head: &RequestHead) -> &[u8] {
    if head.path().starts_with(b"/") { head.path() } else { b"/" }
}
