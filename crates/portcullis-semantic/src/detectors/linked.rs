//! What stands before an address in a text: the marks of a link, or an element that loads it by itself.
//!
//! An address that a text names does nothing. What makes a link of it, or has whoever renders the text load
//! it, is as live as markup is, in a field for text too.

/// Bytes of an address in which its end is looked for.
const TARGET_BYTES_MAX: usize = 16_384;

/// Bytes before an address in which its label or its element begins.
const BEFORE_BYTES_MAX: usize = 512;

/// The address at `at` is the target of a link of Markdown or BBCode: where it ends. `[a](..)`, `![a](..)`,
/// `[a]: ..`, `<..>`, `[url=..]`, `[img]..`
pub(super) fn link_target(text: &[u8], at: usize) -> Option<usize> {
    let head = &text[at.saturating_sub(BEFORE_BYTES_MAX)..at];
    let rest = &text[at..text.len().min(at + TARGET_BYTES_MAX)];
    let line = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
    // `[a](<..>)`, and an address between angle brackets by itself.
    if head.last() == Some(&b'<') {
        return memchr::memchr(b'>', &rest[..line]).map(|len| at + len);
    }
    let trimmed = head.trim_ascii_end();
    if let Some(label) = trimmed.strip_suffix(b"](") {
        memchr::memrchr(b'[', label)?;
        return Some(at + closing(&rest[..line]).unwrap_or(line));
    }
    if let Some(before) = trimmed.strip_suffix(b"]:") {
        let start = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
        return before[start..].trim_ascii_start().starts_with(b"[").then_some(at + line);
    }
    let ends_with =
        |mark: &[u8]| head.len() >= mark.len() && head[head.len() - mark.len()..].eq_ignore_ascii_case(mark);
    let is_tag =
        [&b"[url="[..], b"[url=\"", b"[url='", b"[url]", b"[img]"].iter().any(|mark| ends_with(mark));
    is_tag.then(|| at + memchr::memchr2(b']', b'[', &rest[..line]).unwrap_or(line))
}

/// The offset of the parenthesis that closes one before `rest`.
fn closing(rest: &[u8]) -> Option<usize> {
    let mut depth = 0u32;
    memchr::memchr2_iter(b'(', b')', rest).find(|at| match rest[*at] {
        b'(' => {
            depth += 1;
            false
        }
        _ if depth == 0 => true,
        _ => {
            depth -= 1;
            false
        }
    })
}

/// Whoever renders the text loads the address at `at` by itself: an image, frame, object, style or script of
/// markup, an image of Markdown, a style's `url(..)`.
pub(super) fn is_loaded(text: &[u8], at: usize) -> bool {
    let head = &text[at.saturating_sub(BEFORE_BYTES_MAX)..at];
    let head = match head {
        [before @ .., b'"' | b'\'' | b'<'] => before,
        head => head,
    };
    let head = head.trim_ascii_end();
    if let Some(label) = head.strip_suffix(b"](") {
        return memchr::memrchr(b'[', label).is_some_and(|open| label[..open].ends_with(b"!"));
    }
    if head.len() >= 4 && head[head.len() - 4..].eq_ignore_ascii_case(b"url(") {
        return true;
    }
    head.strip_suffix(b"=").is_some_and(|head| is_loading_attribute(head.trim_ascii_end()))
}

/// `<img alt=x src`
fn is_loading_attribute(head: &[u8]) -> bool {
    const BY_SOURCE: &[&[u8]] = words!("xss", "loads-source");
    const BY_REFERENCE: &[&[u8]] = words!("xss", "loads-reference");
    let Some(open) = memchr::memrchr2(b'<', b'>', head).filter(|open| head[*open] == b'<') else {
        return false;
    };
    let element = &head[open + 1..];
    let end = element.iter().position(|b| b.is_ascii_whitespace() || *b == b'/').unwrap_or(0);
    let begin = element.iter().rposition(|b| !(b.is_ascii_alphabetic() || *b == b':')).map_or(0, |at| at + 1);
    let (name, attribute) = (&element[..end], &element[begin..]);
    let is_in = |list: &[&[u8]]| list.iter().any(|known| name.eq_ignore_ascii_case(known));
    match () {
        () if attribute.eq_ignore_ascii_case(b"src") || attribute.eq_ignore_ascii_case(b"data") => {
            is_in(BY_SOURCE)
        }
        () if attribute.eq_ignore_ascii_case(b"href") || attribute.eq_ignore_ascii_case(b"xlink:href") => {
            is_in(BY_REFERENCE)
        }
        () => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The target in `text`, which begins with `x:`.
    fn target(text: &str) -> Option<&str> {
        let at = text.find("x:").expect("an address");
        link_target(text.as_bytes(), at).map(|end| &text[at..end])
    }

    #[test]
    fn targets_of_links() {
        for (text, want) in [
            ("see [a](x:f(1)) now", "x:f(1)"),
            ("![a]( x:f`1`)", "x:f`1`"),
            ("[a](<x:f (1)>)", "x:f (1)"),
            ("[a]: x:f(1) 'title'\n[b][a]", "x:f(1) 'title'"),
            ("text\n  [a]:\tx:f", "x:f"),
            ("<x:f(1)> there", "x:f(1)"),
            ("[URL=x:f(1)]a[/URL]", "x:f(1)"),
            ("[url]x:f(1)[/url]", "x:f(1)"),
            ("[a](x:f(1", "x:f(1"),
        ] {
            assert_eq!(target(text), Some(want), "{text}");
        }
        for text in [
            "write x:f(1)",
            "f](x:f",
            "a]: x:f",
            "(x:f)",
            "url=x:f",
            "{\"a\": \"x:f\"}",
            "a[0]: x:f",
            "[0](a) x:f",
        ] {
            assert_eq!(target(text), None, "{text}");
        }
    }

    #[test]
    fn loaded() {
        for text in [
            "<img src=\"x:",
            "<IMG alt=b SRC = x:",
            "<iframe width=1\nsrc='x:",
            "<object data=x:",
            "<link rel=attachment href=\"x:",
            "<svg><image xlink:href=\"x:",
            "![a](x:",
            "[![a](x:",
            "![a](<x:",
            "<p style=\"background:url('x:",
        ] {
            assert!(is_loaded(text.as_bytes(), text.len() - 2), "{text}");
        }
        for text in [
            "x:",
            "<a href=\"x:",
            "[a](x:",
            "src=\"x:",
            "<img> src=\"x:",
            "<a data=x:",
            "see x:",
            "<b src=x:",
        ] {
            assert!(!is_loaded(text.as_bytes(), text.len() - 2), "{text}");
        }
    }
}
