//! What of a page is markup and code, and what only texts that it shows.

/// Longer texts in the code of a page are its content.
const STRING_BYTES_MAX: usize = 64;

/// Two copies of a page in which all else is blank, so that places are the same.
pub(super) struct Markup {
    /// Its tags.
    pub(super) tags: String,
    /// Its tags and its scripts, but for data and long texts in them; of an answer that is no page all of it.
    pub(super) code: String,
}

/// Reads a page in lower case. Comments, texts, and elements that hold texts (`textarea`, data in a `script`)
/// are left out: in them a page quotes others.
pub(super) fn markup(page: &str) -> Markup {
    if !["<html", "<!doctype html", "<head", "<body", "<title"].iter().any(|sign| page.contains(sign)) {
        return Markup { tags: String::new(), code: page.to_owned() };
    }
    let bytes = page.as_bytes();
    let (mut tags, mut code) = (vec![b' '; bytes.len()], vec![b' '; bytes.len()]);
    let mut at = 0;
    while let Some(found) = page[at..].find('<') {
        let start = at + found;
        if page[start..].starts_with("<!--") {
            at = page[start..].find("-->").map_or(page.len(), |end| start + end + 3);
            continue;
        }
        if !bytes.get(start + 1).is_some_and(|next| next.is_ascii_alphabetic() || b"/!?".contains(next)) {
            at = start + 1;
            continue;
        }
        at = start + tag_length(&bytes[start..]);
        tags[start..at].copy_from_slice(&bytes[start..at]);
        code[start..at].copy_from_slice(&bytes[start..at]);
        let tag = &page[start..at];
        let name = tag[1..].split(|char: char| !char.is_ascii_alphanumeric()).next().unwrap_or_default();
        if !["script", "style", "textarea", "title", "xmp", "noframes"].contains(&name) {
            continue;
        }
        let end = page[at..].find(&format!("</{name}")).map_or(page.len(), |end| at + end);
        if name == "script" && !is_data(tag) {
            code[at..end].copy_from_slice(&bytes[at..end]);
            blank_texts(&mut code[at..end]);
        }
        at = end;
    }
    let text = |bytes| String::from_utf8(bytes).unwrap_or_default();
    Markup { tags: text(tags), code: text(code) }
}

/// Bytes of the tag that stands here: to the first `>` that is in no quotes.
fn tag_length(bytes: &[u8]) -> usize {
    let mut quote = None;
    for (at, &byte) in bytes.iter().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at + 1,
            // Quotes count where a value begins.
            (None, b'"' | b'\'') if bytes[..at].trim_ascii_end().ends_with(b"=") => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    bytes.len()
}

/// True if the tag of a script says that there is data in it.
fn is_data(tag: &str) -> bool {
    ["json", "text/template", "text/html", "text/x-", "text/markdown"].iter().any(|kind| tag.contains(kind))
        && tag.contains("type")
}

/// Blanks the long texts of a script.
fn blank_texts(script: &mut [u8]) {
    let mut at = 0;
    while at < script.len() {
        let quote = script[at];
        if !b"\"'`".contains(&quote) {
            at += 1;
            continue;
        }
        let mut end = at + 1;
        while end < script.len() && script[end] != quote && (quote == b'`' || script[end] != b'\n') {
            end += if script[end] == b'\\' { 2 } else { 1 };
        }
        let end = end.min(script.len());
        if script.get(end) == Some(&b'\n') {
            // An apostrophe in a comment begins no text.
            at += 1;
            continue;
        }
        if end - at > STRING_BYTES_MAX {
            script[at..end].fill(b' ');
        }
        at = end + 1;
    }
}
