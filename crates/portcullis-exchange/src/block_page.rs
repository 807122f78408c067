//! Pages that clients read when we answer instead of the application.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::Path;

use portcullis_http::message::RequestHead;
use portcullis_types::reason_phrase;

use crate::grpc;

/// A page is read into memory and written for each block; larger ones are a mistake.
const PAGE_BYTES_MAX: u64 = 256 * 1024;

const PAGE: &str = include_str!("block_page.html");

/// The content security policy: the page loads its own style sheet, by its hash, and nothing else. No other
/// page may show it in a frame.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'sha256-Ad+MNNTZuOhukI/XgriodNq+L7+2UV7r2OMiR2q5pO4='; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The template of our answers.
#[derive(Debug)]
pub struct BlockPage {
    /// The operator's page; used for blocks only, not for gateway errors.
    own: Option<String>,
}

/// The operator's page cannot be used.
#[derive(Debug)]
pub struct PageError(String);

impl PageError {
    fn new(path: &Path, error: impl fmt::Display) -> PageError {
        PageError(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PageError {}

/// A body, its media type, and fields that go with them.
#[derive(Debug)]
pub struct Page {
    /// The media type.
    pub media_type: Cow<'static, str>,
    /// The body.
    pub body: String,
    /// Fields that go with it.
    pub fields: Vec<(&'static str, String)>,
}

impl Page {
    /// Without fields of its own.
    pub fn new(media_type: impl Into<Cow<'static, str>>, body: String) -> Self {
        Page { media_type: media_type.into(), body, fields: Vec::new() }
    }

    /// This page, or what a client of gRPC gets in its place.
    pub fn or_grpc(self, head: &RequestHead, status: u16, request_id: &str) -> Self {
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
    pub fn load(file: Option<&Path>) -> Result<Self, PageError> {
        let Some(path) = file else { return Ok(BlockPage { own: None }) };
        let text = portcullis_files::read_text(path, PAGE_BYTES_MAX).map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => {
                PageError::new(path, format!("a block page has at most {PAGE_BYTES_MAX} bytes"))
            }
            _ => PageError::new(path, error),
        })?;
        Ok(BlockPage { own: Some(text) })
    }

    /// The answer to a blocked request.
    pub fn blocked(&self, status: u16, request_id: &str, form: Form) -> Page {
        self.own(status, request_id, form, BLOCKED)
    }

    /// The answer to a client that may not ask, whatever it asks for.
    pub fn denied(&self, status: u16, request_id: &str, form: Form) -> Page {
        self.own(status, request_id, form, DENIED)
    }

    fn own(&self, status: u16, request_id: &str, form: Form, words: Words<'_>) -> Page {
        match &self.own {
            Some(own) if form == Form::Html => Page::new(HTML, filled(own, status, request_id, words)),
            _ => ours(status, request_id, form, words),
        }
    }
}

/// The words of a page.
#[derive(Clone, Copy)]
struct Words<'a> {
    title: &'a str,
    text: &'a str,
    /// Advice for the visitor, a line each.
    advice: &'a [&'a str],
}

const TELL: &str = "If it happens again and you meant no harm, tell the people who run this site, with the \
    request id below.";
const BLOCKED: Words<'_> = Words {
    title: "This request was blocked",
    text: "Something in it looks like an attack to the protection of this website, which did not pass it on.",
    advice: &[
        "Go back and look at what you entered: program code, file paths or unusual signs can look like an attack.",
        TELL,
    ],
};
const DENIED: Words<'_> = Words {
    title: "Access denied",
    text: "This website takes no requests from your network address, or none at the moment.",
    advice: &["If you use a VPN or a proxy, try without it, or try again later.", TELL],
};
const LATER: &[&str] = &[
    "Try again in a moment.",
    "If it goes on, tell the people who run this site, with the request id below.",
];
const CHECK: &[&str] = &["Go back and check the address, or what you sent.", TELL];

/// An answer of ours that is not a block.
pub fn page(status: u16, text: &str, request_id: &str, form: Form) -> Page {
    let advice = match status {
        408 | 429 | 500.. => LATER,
        400.. => CHECK,
        _ => &[],
    };
    ours(status, request_id, form, Words { title: reason_phrase(status), text, advice })
}

fn ours(status: u16, request_id: &str, form: Form, words: Words<'_>) -> Page {
    let mut page = match form {
        Form::Html => {
            let mut page = Page::new(HTML, filled(PAGE, status, request_id, words));
            page.fields.push(("Content-Security-Policy", PAGE_POLICY.to_owned()));
            page
        }
        // RFC 9457.
        Form::Json => {
            let problem = serde_json::json!({
                "type": "about:blank",
                "title": reason_phrase(status),
                "status": status,
                "detail": words.text,
                "request_id": request_id,
            });
            Page::new("application/problem+json", format!("{problem}\n"))
        }
    };
    page.fields.push(("X-Content-Type-Options", "nosniff".to_owned()));
    page
}

const HTML: &str = "text/html; charset=utf-8";

fn filled(template: &str, status: u16, request_id: &str, words: Words<'_>) -> String {
    let items: String = words.advice.iter().map(|line| format!("<li>{line}</li>\n")).collect();
    let advice = if items.is_empty() { items } else { format!("<ul>\n{items}</ul>\n") };
    let status_text = status.to_string();
    let fields = [
        ("status", status_text.as_str()),
        ("reason", reason_phrase(status)),
        ("title", words.title),
        ("text", words.text),
        ("advice", &advice),
        ("request_id", request_id),
    ];
    fill(template, &fields)
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

/// The form of page that a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A page for a person.
    Html,
    /// For a program.
    Json,
}

impl Form {
    /// The form that `Accept` prefers. Where it takes both alike, programs get JSON: clients that send JSON
    /// or ask on behalf of a script.
    pub fn of(head: &RequestHead) -> Form {
        let accept: Vec<u8> = head.header("accept").collect::<Vec<_>>().join(&b',');
        match preferred(&accept) {
            Some(form) => form,
            None => {
                let says = |name, wanted: &[u8]| {
                    head.header(name).any(|value| value.trim_ascii().eq_ignore_ascii_case(wanted))
                };
                let is_program = head.header("content-type").any(is_json)
                    || says("x-requested-with", b"XMLHttpRequest")
                    || says("sec-fetch-dest", b"empty");
                if is_program { Form::Json } else { Form::Html }
            }
        }
    }
}

/// `application/json`, `application/problem+json` and the like.
fn is_json(media_type: &[u8]) -> bool {
    let name = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let Some((kind, subtype)) = name.split_at_checked(12) else { return false };
    let subtype = subtype.to_ascii_lowercase();
    kind.eq_ignore_ascii_case(b"application/") && (subtype == b"json" || subtype.ends_with(b"+json"))
}

/// The form that a list of media ranges (RFC 9110, 12.5.1) names with the higher quality, or names first;
/// none if it names neither.
fn preferred(accept: &[u8]) -> Option<Form> {
    let mut best: Option<(Form, f32)> = None;
    for range in accept.split(|byte| *byte == b',') {
        let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default();
        let form = match name {
            name if name.eq_ignore_ascii_case(b"text/html") => Form::Html,
            name if name.eq_ignore_ascii_case(b"application/xhtml+xml") => Form::Html,
            name if is_json(name) => Form::Json,
            _ => continue,
        };
        let weight = parts.find_map(|part| part.strip_prefix(b"q=").or_else(|| part.strip_prefix(b"Q=")));
        let weight =
            weight.and_then(|text| std::str::from_utf8(text).ok()?.parse::<f32>().ok()).unwrap_or(1.0);
        if weight > best.map_or(0.0, |(_, weight)| weight) {
            best = Some((form, weight));
        }
    }
    best.map(|(form, _)| form)
}

#[cfg(test)]
mod tests {
    use portcullis_http::h1::{Compat, Limits, Parsed, RequestParser};
    use sha2::Digest;

    use super::*;

    fn form(fields: &str) -> Form {
        let text = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        match RequestParser::new(Limits::default(), Compat::Strict).parse(text.as_bytes()) {
            Parsed::Head(head) => Form::of(&head),
            _ => panic!("a head: {text}"),
        }
    }

    #[test]
    fn json_for_programs() {
        for (fields, expected) in [
            ("", Form::Html),
            ("Accept: */*\r\n", Form::Html),
            ("Accept: application/json\r\n", Form::Json),
            ("Accept: application/problem+JSON;q=0.9, */*\r\n", Form::Json),
            ("Accept: text/html, application/json\r\n", Form::Html),
            ("Accept: text/html;q=0.5, application/json\r\n", Form::Json),
            ("Accept: application/json;q=0, text/html;q=0.1\r\n", Form::Html),
            ("Accept: application/json; q=nonsense\r\n", Form::Json),
            ("Accept: text/plain\r\nAccept: application/json\r\n", Form::Json),
            (
                "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nContent-Type: application/json\r\n",
                Form::Html,
            ),
            ("Accept: */*\r\nContent-Type: application/json; charset=utf-8\r\n", Form::Json),
            ("Accept: */*\r\nContent-Type: application/jsonx\r\n", Form::Html),
            ("Accept: */*\r\nSec-Fetch-Dest: empty\r\n", Form::Json),
            ("X-Requested-With: xmlhttprequest\r\n", Form::Json),
        ] {
            assert_eq!(form(fields), expected, "{fields}");
        }
        let pages = BlockPage { own: None };
        let page = pages.blocked(403, "01\"23", Form::Json);
        let problem: serde_json::Value = serde_json::from_str(&page.body).unwrap();
        assert_eq!(page.media_type, "application/problem+json");
        assert_eq!((&problem["status"], &problem["request_id"]), (&403.into(), &"01\"23".into()));
    }

    /// The page loads nothing, and its policy allows the style sheet that is in it.
    #[test]
    fn the_page_needs_nothing_else() {
        let style = PAGE.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).unwrap();
        let hash = PAGE_POLICY.split("'sha256-").nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
        assert_eq!(
            data_encoding::BASE64.decode(hash.as_bytes()).unwrap(),
            sha2::Sha256::digest(style).to_vec()
        );
        for word in ["<script", "src=", "href=", "http:", "https:", "url(", "@import", "style=", " on"] {
            let code = PAGE.to_ascii_lowercase();
            assert!(!code.contains(word), "{word}");
        }
        let pages = BlockPage { own: None };
        for page in [
            pages.blocked(403, "0123", Form::Html),
            pages.denied(403, "0123", Form::Html),
            page(502, "x", "0123", Form::Html),
        ] {
            assert!(page.body.contains("<code>0123</code>"), "{}", page.body);
            assert!(!page.body.contains("{{"), "{}", page.body);
        }
    }

    #[test]
    fn the_page_of_the_operator_is_filled_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        std::fs::write(&path, "no ({{status}}), ask for {{request_id}}").unwrap();
        let page = BlockPage::load(Some(&path)).unwrap().blocked(403, "77", Form::Html);
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
