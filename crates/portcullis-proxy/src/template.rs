//! Filling in texts of the configuration from a request.

use portcullis_access::Code;
use portcullis_config::{ClientCertField, Part, Template};
use portcullis_http::message::{RequestHead, TargetForm};
use portcullis_match::regex::Captures;

use crate::site::without_port;
use crate::transaction::Transaction;

/// What the parts of a text come from.
pub(crate) struct Source<'a> {
    pub(crate) head: &'a RequestHead,
    pub(crate) transaction: &'a Transaction,
    /// Of the route's pattern.
    pub(crate) groups: &'a Captures,
}

/// The text with its parts filled in.
pub(crate) fn fill(template: &Template, from: &Source<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for part in &template.0 {
        match part {
            Part::Text(text) => out.extend_from_slice(text.as_bytes()),
            Part::Client => out.extend_from_slice(from.transaction.client().ip().to_string().as_bytes()),
            Part::Host => out.extend_from_slice(without_port(host(from.head))),
            Part::Path => out.extend_from_slice(path(from.head)),
            Part::Uri => {
                out.extend_from_slice(path(from.head));
                query(from.head, &mut out);
            }
            Part::RequestId => out.extend_from_slice(from.transaction.request_id.as_bytes()),
            Part::Country => code(from.transaction.place().country, &mut out),
            Part::Continent => code(from.transaction.place().continent, &mut out),
            Part::Asn => {
                let asn = from.transaction.place().asn.map(|number| number.to_string());
                out.extend_from_slice(asn.unwrap_or_default().as_bytes());
            }
            Part::ClientCert(field) => {
                let certificate = from.transaction.client_certificate.as_deref();
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
                    out.extend_from_slice(span.of(from.head.path()));
                }
            }
        }
    }
    out
}

fn code(code: Option<Code>, out: &mut Vec<u8>) {
    out.extend_from_slice(code.as_ref().map_or("", Code::as_str).as_bytes());
}

/// The host that the request is for: the target's own, where it has one.
pub(crate) fn host(head: &RequestHead) -> &[u8] {
    match head.target_form() {
        TargetForm::Absolute | TargetForm::Authority => head.target_authority().unwrap_or_default(),
        _ => head.host(),
    }
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
