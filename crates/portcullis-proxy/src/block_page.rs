//! What a client reads when we answer instead of the application.

use std::borrow::Cow;
use std::path::Path;

use portcullis_http::message::RequestHead;
use portcullis_types::reason_phrase;

use crate::{StartError, grpc};

/// A page is read into memory and written for each block; larger ones are a mistake.
const PAGE_BYTES_MAX: u64 = 256 * 1024;

const PAGE: &str = "<!doctype html>
<html lang=\"en\">
<head><meta charset=\"utf-8\"><title>{{status}} {{reason}}</title></head>
<body>
<h1>{{status}} {{reason}}</h1>
<p>{{text}}</p>
<p>Request id: <code>{{request_id}}</code></p>
</body>
</html>
";

/// The template of our answers.
pub(crate) struct BlockPage {
    /// The operator's page; used for blocks only, not for gateway errors.
    own: Option<String>,
}

/// A body, its media type, and fields that go with them.
pub(crate) struct Page {
    pub(crate) media_type: Cow<'static, str>,
    pub(crate) body: String,
    pub(crate) fields: Vec<(&'static str, String)>,
}

impl Page {
    /// Without fields of its own.
    pub(crate) fn new(media_type: impl Into<Cow<'static, str>>, body: String) -> Self {
        Page { media_type: media_type.into(), body, fields: Vec::new() }
    }

    /// What takes its place where the request is a call of gRPC.
    pub(crate) fn told(self, head: &RequestHead, status: u16, request_id: &str) -> Self {
        match grpc::media_type(head) {
            Some(media_type) => Page {
                media_type: media_type.into(),
                body: String::new(),
                fields: grpc::fields(status, request_id).into(),
            },
            None => self,
        }
    }
}

impl BlockPage {
    /// Reads the operator's page, if there is one.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, StartError> {
        let Some(path) = file else { return Ok(BlockPage { own: None }) };
        let size = std::fs::metadata(path).map_err(|error| StartError::file(path, error))?.len();
        if size > PAGE_BYTES_MAX {
            return Err(StartError::file(path, format!("a block page has at most {PAGE_BYTES_MAX} bytes")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| StartError::file(path, error))?;
        Ok(BlockPage { own: Some(text) })
    }

    /// The answer to a blocked request. `accept` is the client's `Accept` header.
    pub(crate) fn blocked(&self, status: u16, request_id: &str, accept: &[u8]) -> Page {
        let text = "The request was blocked by the web application firewall.";
        match &self.own {
            Some(own) if !prefers_json(accept) => html(own, status, text, request_id),
            _ => page(status, text, request_id, accept),
        }
    }
}

/// An answer of ours that is not a block.
pub(crate) fn page(status: u16, text: &str, request_id: &str, accept: &[u8]) -> Page {
    if prefers_json(accept) {
        let reason = reason_phrase(status);
        let body = format!(
            "{{\"status\":{status},\"error\":\"{reason}\",\"message\":\"{text}\",\"request_id\":\"{request_id}\"}}\n"
        );
        return Page::new("application/json", body);
    }
    html(PAGE, status, text, request_id)
}

fn html(template: &str, status: u16, text: &str, request_id: &str) -> Page {
    let status_text = status.to_string();
    let fields = [
        ("status", status_text.as_str()),
        ("reason", reason_phrase(status)),
        ("text", text),
        ("request_id", request_id),
    ];
    Page::new("text/html; charset=utf-8", fill(template, &fields))
}

/// `template` with each `{{name}}` of a field replaced, in one pass. Other braces stay.
fn fill(template: &str, fields: &[(&str, &str)]) -> String {
    let mut body = String::with_capacity(template.len() + 128);
    let mut rest = template;
    while let Some(at) = rest.find("{{") {
        let inner = &rest[at + 2..];
        let known = inner.find("}}").and_then(|end| {
            let (_, value) = fields.iter().find(|(name, _)| *name == &inner[..end])?;
            Some((value, &inner[end + 2..]))
        });
        match known {
            Some((value, after)) => {
                body.push_str(&rest[..at]);
                body.push_str(value);
                rest = after;
            }
            // The second brace may begin a field.
            None => {
                body.push_str(&rest[..at + 1]);
                rest = &rest[at + 1..];
            }
        }
    }
    body.push_str(rest);
    body
}

/// True if JSON is named and neither HTML nor "anything, first of all" comes before it.
fn prefers_json(accept: &[u8]) -> bool {
    let json = accept
        .split(|byte| *byte == b',')
        .map(|range| range.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii())
        .find_map(|range| {
            if range.eq_ignore_ascii_case(b"text/html") {
                return Some(false);
            }
            let (kind, subtype) = range.split_at_checked(12)?;
            let is_json = kind.eq_ignore_ascii_case(b"application/")
                && (subtype.eq_ignore_ascii_case(b"json")
                    || subtype.to_ascii_lowercase().ends_with(b"+json"));
            is_json.then_some(true)
        });
    json.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_for_those_who_prefer_it() {
        let html = "text/html; charset=utf-8";
        let json = "application/json";
        for (accept, expected) in [
            ("", html),
            ("*/*", html),
            ("application/json", json),
            ("application/problem+JSON;q=0.9, */*", json),
            ("text/html, application/json", html),
            ("text/plain, application/json", json),
        ] {
            let page = BlockPage { own: None }.blocked(403, "0123", accept.as_bytes());
            assert_eq!(page.media_type, expected, "{accept}");
            assert!(page.body.contains("0123") && page.body.contains("403"), "{}", page.body);
        }
    }

    #[test]
    fn the_page_of_the_operator_is_filled_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        std::fs::write(&path, "no ({{status}}), ask for {{request_id}}").unwrap();
        let page = BlockPage::load(Some(&path)).unwrap().blocked(403, "77", b"*/*");
        assert_eq!(page.body, "no (403), ask for 77");
        for (template, expected) in [
            ("", ""),
            ("{{{status}}}", "{403}"),
            ("{{status}} {{other}} {{ {{status}} }}", "403 {{other}} {{ 403 }}"),
            ("{{text}}{{", "{{status}}{{"),
            ("{{request_id}", "{{request_id}"),
        ] {
            let fields = [("status", "403"), ("text", "{{status}}")];
            assert_eq!(fill(template, &fields), expected, "{template}");
        }
        assert!(BlockPage::load(Some(&folder.path().join("missing"))).is_err());
    }
}
