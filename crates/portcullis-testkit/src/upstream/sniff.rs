//! The part of content sniffing (WHATWG MIME Sniffing, section 7.1) that response tests rest on: a back end
//! that names no type gets HTML, XML, plain text or "bytes" guessed from the start of the body.

const HTML: [&str; 17] = [
    "<!doctype html",
    "<html",
    "<head",
    "<script",
    "<iframe",
    "<h1",
    "<div",
    "<font",
    "<table",
    "<a",
    "<style",
    "<title",
    "<b",
    "<body",
    "<br",
    "<p",
    "<!--",
];

/// The media type of a body without one.
pub(super) fn content_type(body: &[u8]) -> &'static str {
    let start = &body[..body.len().min(512)];
    let text = start.trim_ascii_start();
    let tag = |name: &&str| {
        text.len() > name.len()
            && text[..name.len()].eq_ignore_ascii_case(name.as_bytes())
            && matches!(text[name.len()], b' ' | b'>')
    };
    if HTML.iter().any(tag) {
        "text/html; charset=utf-8"
    } else if text.starts_with(b"<?xml") {
        "text/xml; charset=utf-8"
    } else if start.iter().any(|byte| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f)) {
        "application/octet-stream"
    } else {
        "text/plain; charset=utf-8"
    }
}

#[cfg(test)]
mod tests {
    use super::content_type;

    #[test]
    fn guesses() {
        for (body, want) in [
            (&b" <HTML>"[..], "text/html; charset=utf-8"),
            (b"<p class=x>", "text/html; charset=utf-8"),
            (b"<pre>", "text/plain; charset=utf-8"),
            (b"<?xml version", "text/xml; charset=utf-8"),
            (b"a\x00b", "application/octet-stream"),
            (b"ORA-1234: \xc3\xa9", "text/plain; charset=utf-8"),
        ] {
            assert_eq!(content_type(body), want, "{body:?}");
        }
    }
}
