//! The bodies that curl composes: multipart forms and percent-encoded texts.

use data_encoding::BASE64;

/// The boundary of multipart bodies.
const BOUNDARY: &str = "------------------------portcullis";
/// Their media type.
pub(super) const CONTENT_TYPE: &str = "multipart/form-data; boundary=------------------------portcullis";

/// A part of a multipart form.
pub(super) struct Part {
    name: Vec<u8>,
    content: Vec<u8>,
    file_name: Option<Vec<u8>>,
    media_type: Option<Vec<u8>>,
}

impl Part {
    /// A part as `--form` takes it: `name=content;type=...;filename=...`. None if it names a file to read.
    pub(super) fn of(text: &[u8]) -> Option<Part> {
        let mut part = Part::text(text);
        if part.content.starts_with(b"@") || part.content.starts_with(b"<") {
            return None;
        }
        while let Some(at) = part.content.iter().rposition(|&b| b == b';') {
            let attribute = part.content[at + 1..].trim_ascii();
            let unquoted = |value: &[u8]| {
                let inner = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
                inner.unwrap_or(value).to_vec()
            };
            if let Some(value) = attribute.strip_prefix(b"type=") {
                part.media_type = Some(unquoted(value));
            } else if let Some(value) = attribute.strip_prefix(b"filename=") {
                part.file_name = Some(unquoted(value));
            } else {
                break;
            }
            part.content.truncate(at);
        }
        Some(part)
    }

    /// A part as `--form-string` takes it: `name=content`, whatever the content.
    pub(super) fn text(text: &[u8]) -> Part {
        let at = text.iter().position(|&b| b == b'=').unwrap_or(text.len());
        let content = text.get(at + 1..).unwrap_or_default().to_vec();
        Part { name: text[..at].to_vec(), content, file_name: None, media_type: None }
    }
}

/// The multipart body of `parts`.
pub(super) fn body(parts: &[Part]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        out.extend_from_slice(format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"").as_bytes());
        quote(&mut out, &part.name);
        if let Some(name) = &part.file_name {
            out.extend_from_slice(b"\"; filename=\"");
            quote(&mut out, name);
        }
        out.extend_from_slice(b"\"\r\n");
        if let Some(media_type) = &part.media_type {
            out.extend_from_slice(b"Content-Type: ");
            out.extend(media_type.iter().filter(|b| !matches!(b, b'\r' | b'\n')));
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&part.content);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    out
}

/// A text between quotation marks, as curl and browsers write it (WHATWG HTML, 4.10.21.8).
fn quote(out: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"%22"),
            b'\r' => out.extend_from_slice(b"%0D"),
            b'\n' => out.extend_from_slice(b"%0A"),
            other => out.push(*other),
        }
    }
}

/// A text as `--data-urlencode` takes it: `content`, `=content` or `name=content`. None if it names a file.
pub(super) fn encoded(text: &[u8]) -> Option<Vec<u8>> {
    let at = text.iter().position(|&b| matches!(b, b'=' | b'@'));
    let (name, content) = match at {
        Some(at) if text[at] == b'@' => return None,
        Some(0) => (&b""[..], &text[1..]),
        Some(at) => (&text[..=at], &text[at + 1..]),
        None => (&b""[..], text),
    };
    let mut out = name.to_vec();
    for byte in content {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(*byte),
            b' ' => out.push(b'+'),
            other => out.extend_from_slice(format!("%{other:02X}").as_bytes()),
        }
    }
    Some(out)
}

/// Credentials as HTTP carries them.
pub(super) fn base64(text: &[u8]) -> String {
    BASE64.encode(text)
}
