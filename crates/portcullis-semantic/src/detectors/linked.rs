//! What stands before an address in a text: the marks of a link, or an element that loads it by itself.
//!
//! An address that a text names does nothing. What makes a link of it, or makes a program that renders the
//! text load it, is as active as markup is, in a field for text too.

use super::shown::Shown;

/// Bytes of an address in which its end is looked for when the budget is spent.
const TARGET_BYTES_MIN: usize = 4096;

/// Bytes in which ends of addresses are looked for, in all of a text.
const TARGET_BYTES_MAX: usize = 4 << 20;

/// Bytes of an element's name that are read.
const NAME_BYTES_MAX: usize = 32;

/// An open bracket.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// `![`
    is_image: bool,
    /// Before it stand only marks of quotations and lists in its line.
    is_lead: bool,
}

/// What stands before the addresses of a text, which are asked for in their order: it is read once.
#[derive(Debug)]
pub(super) struct Links<'t> {
    text: &'t [u8],
    /// What is shown as code, when something asked.
    shown: Option<Shown>,
    /// All before it is read.
    read: usize,
    /// The brackets of the paragraph that are open, and how many of them are those of images.
    open: Vec<Open>,
    images: usize,
    brackets: usize,
    has_image: bool,
    /// The last bracket that closes, and the one that it closes.
    closed: Option<(usize, Option<Open>)>,
    /// The last angle bracket.
    angle: Option<usize>,
    is_lead: bool,
    is_blank: bool,
    /// The end of a line.
    line: usize,
    budget: usize,
}

impl<'t> Links<'t> {
    pub fn new(text: &'t [u8]) -> Links<'t> {
        Links {
            text,
            shown: None,
            read: 0,
            open: Vec::new(),
            images: 0,
            brackets: 0,
            has_image: false,
            closed: None,
            angle: None,
            is_lead: true,
            is_blank: true,
            line: 0,
            budget: TARGET_BYTES_MAX,
        }
    }

    /// Markdown shows the byte at `at` as code.
    pub fn is_shown(&mut self, at: usize) -> bool {
        let text = self.text;
        self.shown.get_or_insert_with(|| Shown::in_markdown(text)).has(at)
    }

    /// Reads up to `to`.
    fn read_to(&mut self, to: usize) {
        while self.read < to {
            let at = self.read;
            self.read += 1;
            let byte = self.text[at];
            match byte {
                b'\\' if matches!(self.text.get(at + 1), Some(b'[' | b']')) => self.read += 1,
                b'[' => {
                    let is_image = at > 0 && self.text[at - 1] == b'!';
                    self.open.push(Open { is_image, is_lead: self.is_lead });
                    self.images += usize::from(is_image);
                    self.brackets += 1;
                    self.has_image |= is_image;
                }
                b']' => {
                    let open = self.open.pop();
                    self.images -= usize::from(open.is_some_and(|open| open.is_image));
                    self.closed = Some((at, open));
                }
                b'<' | b'>' => self.angle = Some(at),
                b'\n' => {
                    if self.is_blank {
                        self.open.clear();
                        self.images = 0;
                        self.has_image = false;
                    }
                    (self.is_lead, self.is_blank) = (true, true);
                    continue;
                }
                _ => {}
            }
            let is_mark = byte.is_ascii_digit() || matches!(byte, b'>' | b'-' | b'*' | b'+' | b'.' | b')');
            self.is_lead &= is_mark || byte.is_ascii_whitespace();
            self.is_blank &= byte.is_ascii_whitespace();
        }
    }

    /// What the bracket at `at` closes, up to which the text is read.
    fn closes(&self, at: usize) -> Option<Open> {
        self.closed.filter(|(last, _)| *last == at).and_then(|(_, open)| open)
    }

    /// The rest of the line in which the end of the address at `at` is looked for.
    fn rest(&mut self, at: usize) -> &'t [u8] {
        if self.line <= at {
            let rest = &self.text[at..];
            self.line = at + memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        }
        let text = self.text;
        let rest = &text[at..self.line];
        &rest[..rest.len().min(self.budget.max(TARGET_BYTES_MIN))]
    }

    /// The address at `at` is the target of a link of Markdown or BBCode: where it ends. `[a](..)`,
    /// `![a](..)`, `[a]: ..`, `<..>`, `[url=..]`, `[img]..`
    pub fn link_target(&mut self, at: usize) -> Option<usize> {
        let text = self.text;
        let head = &text[..at];
        // `[a](<..>)`, and an address between angle brackets by itself.
        if head.last() == Some(&b'<') {
            let rest = self.rest(at);
            let end = memchr::memchr(b'>', rest);
            self.budget = self.budget.saturating_sub(end.unwrap_or(rest.len()));
            return end.map(|len| at + len);
        }
        let trimmed = head.trim_ascii_end();
        let len = if trimmed.ends_with(b"](") {
            self.read_to(trimmed.len());
            if self.brackets == 0 {
                return None;
            }
            let rest = self.rest(at);
            closing(rest).unwrap_or(rest.len())
        } else if trimmed.ends_with(b"]:") {
            self.read_to(trimmed.len());
            self.closes(trimmed.len() - 2).filter(|open| open.is_lead)?;
            self.rest(at).len()
        } else {
            let ends_with = |mark: &[u8]| {
                head.len() >= mark.len() && head[head.len() - mark.len()..].eq_ignore_ascii_case(mark)
            };
            let marks = [&b"[url="[..], b"[url=\"", b"[url='", b"[url]", b"[img]"];
            if !marks.iter().any(|mark| ends_with(mark)) {
                return None;
            }
            let rest = self.rest(at);
            memchr::memchr2(b']', b'[', rest).unwrap_or(rest.len())
        };
        self.budget = self.budget.saturating_sub(len);
        Some(at + len)
    }

    /// A program that renders the text loads the address at `at` by itself: an image, frame, object, style or
    /// script of markup, an image of Markdown, a style's `url(..)`.
    pub fn is_loaded(&mut self, at: usize) -> bool {
        let text = self.text;
        let head = &text[..at];
        let head = match head {
            [before @ .., b'"' | b'\'' | b'<'] => before,
            head => head,
        };
        let head = head.trim_ascii_end();
        if head.ends_with(b"](") {
            self.read_to(head.len());
            // Brackets in code do not count, so that they need not pair.
            return self.images > 0
                || self.closes(head.len() - 2).map_or(self.has_image, |open| open.is_image);
        }
        if head.len() >= 4 && head[head.len() - 4..].eq_ignore_ascii_case(b"url(") {
            return true;
        }
        let Some(head) = head.strip_suffix(b"=") else { return false };
        let head = head.trim_ascii_end();
        self.read_to(head.len());
        let Some(open) = self.angle.filter(|open| self.text[*open] == b'<' && *open < head.len()) else {
            return false;
        };
        is_loading_attribute(&head[open + 1..])
    }
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

/// `img alt=x src`
fn is_loading_attribute(element: &[u8]) -> bool {
    const BY_SOURCE: &[&[u8]] = words!("xss", "loads-source");
    const BY_REFERENCE: &[&[u8]] = words!("xss", "loads-reference");
    let ends_name = |b: &u8| b.is_ascii_whitespace() || *b == b'/';
    let end = element.iter().take(NAME_BYTES_MAX).position(ends_name).unwrap_or(0);
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
        Links::new(text.as_bytes()).link_target(at).map(|end| &text[at..end])
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
            assert!(Links::new(text.as_bytes()).is_loaded(text.len() - 2), "{text}");
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
            assert!(!Links::new(text.as_bytes()).is_loaded(text.len() - 2), "{text}");
        }
    }

    #[test]
    fn padded() {
        let pad = "a".repeat(600);
        let comment = format!("x:/*{}*/f(1)", "x".repeat(17_000));
        assert_eq!(target(&format!("[{pad}](x:f(1)) b")), Some("x:f(1)"));
        assert_eq!(target(&format!("[a]({comment})")), Some(&*comment));
        assert_eq!(target("- [a]: x:f"), Some("x:f"));
        assert_eq!(target("> 1. [a]: x:f"), Some("x:f"));
        assert_eq!(target("[`]`a](x:f)"), Some("x:f"));
        assert_eq!(target(&format!("{pad} [a]: x:f")), None);
        let loads = |text: &str| Links::new(text.as_bytes()).is_loaded(text.len() - 2);
        assert!(loads(&format!("<img {} src=\"x:", "a ".repeat(600))));
        assert!(loads(&format!("![{pad}](x:")));
        assert!(loads("![a [b]](x:") && loads("![`]`](x:") && loads("> ![a](x:"));
        assert!(!loads(&format!("<a {} href=\"x:", "a ".repeat(600))));
        assert!(!loads(&format!("[{pad}](x:")) && !loads("![a](b) [c](x:"));
    }

    #[test]
    fn linear() {
        for unit in ["](x:", "[a](x:", "[a]:x:", "<img src=x:", "<x:", "[url=x:", "![x:", "- [a]: x:\n"] {
            let text = unit.repeat(20_000);
            let mut links = Links::new(text.as_bytes());
            for colon in memchr::memmem::find_iter(text.as_bytes(), b"x:") {
                links.link_target(colon);
                links.is_loaded(colon);
                links.is_shown(colon);
            }
        }
    }
}
