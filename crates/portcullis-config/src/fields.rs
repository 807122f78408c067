//! Header fields that are changed, and trailer fields that are forwarded, checked.

use std::ops::Range;

use crate::mistakes::Mistakes;
use crate::raw;
use crate::route::HeaderChanges;
use crate::spanned::Spanned;
use crate::template::Template;
use crate::values::is_token;

/// Fields that say how a message is framed, or whom we forward for: only the proxy may write them.
const OURS: [&str; 12] = [
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

/// Fields that readers act upon although the head is over (RFC 9110, section 6.5.1), or that say who asks.
const NEVER_TRAILERS: [&str; 19] = [
    "authorization",
    "cache-control",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "if-match",
    "if-none-match",
    "max-forwards",
    "pragma",
    "proxy-authorization",
    "range",
    "via",
    "x-forwarded-port",
    "x-real-ip",
];

/// A name in lower case as applications take it that get fields in variables, but with `-`: every other byte
/// than a letter or digit is the same to them.
fn in_variable(name: &str) -> String {
    name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-")
}

/// Names of trailers of requests that are forwarded.
pub(crate) fn trailers(mistakes: &mut Mistakes<'_>, raw: &[Spanned<String>]) -> Vec<String> {
    let name = |text: &Spanned<String>| {
        let name = text.to_ascii_lowercase();
        let reads_as = in_variable(&name);
        if !is_token(&name) {
            mistakes.wrong(text.span.clone(), format!("`{name}` is not the name of a field"));
        } else if OURS.contains(&reads_as.as_str()) || NEVER_TRAILERS.contains(&reads_as.as_str()) {
            let message = format!(
                "`{name}` is not allowed as a trailer field: applications act on it as a header field"
            );
            mistakes.wrong(text.span.clone(), message);
        }
        name
    };
    raw.iter().map(name).collect()
}

/// Changes of the headers of requests, or of answers.
pub(crate) fn changes(
    mistakes: &mut Mistakes<'_>,
    raw: &Option<raw::HeaderChanges>,
    is_request: bool,
) -> HeaderChanges {
    let Some(raw) = raw else { return HeaderChanges::default() };
    let mut name = |name: &str, span: &Range<usize>, sets: bool| {
        let name = name.to_ascii_lowercase();
        if !is_token(&name) {
            mistakes.wrong(span.clone(), format!("`{name}` is not the name of a header"));
        } else if OURS.contains(&in_variable(&name).as_str()) || (name == "host" && !(is_request && sets)) {
            mistakes.wrong(span.clone(), format!("`{name}` is set by the proxy only"));
        }
        name
    };
    let remove = raw.remove.iter().map(|text| name(text, &text.span, false)).collect();
    let set: Vec<String> = raw.set.iter().map(|(text, value)| name(text, &value.span, true)).collect();
    let add: Vec<String> = raw.add.iter().map(|(text, value)| name(text, &value.span, false)).collect();
    let mut values = |names: Vec<String>, raw: &std::collections::BTreeMap<String, Spanned<String>>| {
        names
            .into_iter()
            .zip(raw.values())
            .map(|(name, value)| (name, template(mistakes, value, None)))
            .collect()
    };
    HeaderChanges { remove, set: values(set, &raw.set), add: values(add, &raw.add) }
}

/// A text in which values of the request are filled in.
pub(crate) fn template(
    mistakes: &mut Mistakes<'_>,
    text: &Spanned<String>,
    groups: Option<usize>,
) -> Template {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        mistakes.wrong(text.span.clone(), "there is a control character in it".to_string());
    }
    Template::parse(text, groups).unwrap_or_else(|message| {
        let known = "{client}, {country}, {continent}, {asn}, {host}, {path}, {uri}, {request_id}, {client_cert_subject}";
        let hint = format!("known: {known}, and $1 to $9 with a pattern");
        mistakes.wrong_with_hint(text.span.clone(), message, hint);
        Template::default()
    })
}
