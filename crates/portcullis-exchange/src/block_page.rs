//! Pages that clients read when we answer instead of the application.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::Path;

use portcullis_types::reason_phrase;

use crate::form::{self, Form};
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
}

impl BlockPage {
    /// Reads the operator's page, if there is one.
    pub fn load(file: Option<&Path>) -> Result<Self, PageError> {
        let Some(path) = file else { return Ok(BlockPage { own: None }) };
        let text = portcullis_files::read_text(path, PAGE_BYTES_MAX).map_err(|error| {
            if error.kind() == io::ErrorKind::FileTooLarge {
                PageError::new(path, format!("a block page has at most {PAGE_BYTES_MAX} bytes"))
            } else {
                PageError::new(path, error)
            }
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

/// Our own answer that is not a block.
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
        Form::Json(media_type) => Page::new(media_type, form::json(status, words.text, request_id)),
        Form::Xml(media_type) => Page::new(media_type, form::xml(status, words.text, request_id)),
        Form::S3 => {
            let mut page = Page::new("application/xml", form::s3(status, words.text, request_id));
            page.fields.push(("x-amz-request-id", request_id.to_owned()));
            page
        }
        Form::Grpc(media_type) => {
            let fields = grpc::fields(status, request_id).into();
            return Page { media_type: media_type.into(), body: String::new(), fields };
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

#[cfg(test)]
mod tests {
    use sha2::Digest;

    use super::*;

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
