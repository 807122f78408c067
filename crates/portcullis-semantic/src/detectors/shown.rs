//! Code that a text shows: Markdown's fences and back-ticks, both closed.

/// The spans of a text that are shown as code, in order, none within another.
#[derive(Debug, Default)]
pub(super) struct Shown(Vec<(usize, usize)>);

impl Shown {
    /// Those of `text`. A fence is a line that begins with three back-ticks or tildes, and one that ends it;
    /// what stands between back-ticks ends at as many of them, in the same paragraph.
    pub fn of(text: &[u8]) -> Shown {
        let mut spans = Vec::new();
        let mut fence: Option<(u8, usize)> = None;
        let mut paragraph = 0;
        let mut at = 0;
        for line in text.split_inclusive(|&b| b == b'\n') {
            let start = at;
            at += line.len();
            let inner = line.trim_ascii();
            // In a quotation or a list.
            let inner = inner.trim_ascii_start_of(b"> ");
            let mark = [b'`', b'~'].into_iter().find(|&mark| inner.starts_with(&[mark; 3]));
            match (fence, mark) {
                (None, Some(mark)) if !inner[3..].contains(&b'`') => {
                    in_line(&text[paragraph..start], paragraph, &mut spans);
                    fence = Some((mark, start));
                }
                (Some((open, from)), Some(mark)) if open == mark => {
                    spans.push((from, at));
                    fence = None;
                    paragraph = at;
                }
                (None, _) if inner.is_empty() => {
                    in_line(&text[paragraph..start], paragraph, &mut spans);
                    paragraph = at;
                }
                _ => {}
            }
        }
        if fence.is_none() {
            in_line(&text[paragraph..], paragraph, &mut spans);
        }
        Shown(spans)
    }

    /// The same, and what stands in the elements `pre` and `code` of `text`, if its references were made
    /// signs.
    pub fn with_elements(mut self, text: &[u8], is_unescaped: bool) -> Shown {
        if !is_unescaped {
            return self;
        }
        let mut at = 0;
        while let Some(found) = memchr::memchr(b'<', &text[at..]) {
            let open = at + found;
            at = open + 1;
            let end: &[u8] = match text.get(at..) {
                Some(rest) if rest.starts_with(b"pre") => b"</pre>",
                Some(rest) if rest.starts_with(b"code") => b"</code>",
                _ => continue,
            };
            if !matches!(text.get(at + end.len() - 3), Some(b'>' | b' ')) {
                continue;
            }
            let Some(len) = memchr::memmem::find(&text[at..], end) else { continue };
            self.0.push((open, at + len));
            at += len;
        }
        self.0.sort_unstable();
        self
    }

    /// The byte at `at` is in one of them.
    pub fn has(&self, at: usize) -> bool {
        let begun = self.0.partition_point(|(start, _)| *start <= at);
        // Back-ticks may stand in an element.
        self.0[..begun].iter().rev().take(NESTED_MAX).any(|(_, end)| at < *end)
    }
}

/// Spans within an element that are looked past.
const NESTED_MAX: usize = 64;

/// Bytes without what stands before them.
trait TrimStart {
    /// The same without the bytes of `signs` at its beginning.
    fn trim_ascii_start_of(&self, signs: &[u8]) -> &Self;
}

impl TrimStart for [u8] {
    fn trim_ascii_start_of(&self, signs: &[u8]) -> &[u8] {
        &self[self.iter().take_while(|b| signs.contains(b)).count()..]
    }
}

/// Runs of back-ticks that are met by one of the same length. One that is not stands for itself, and a longer
/// search for its length is not begun again in the paragraph.
fn in_line(paragraph: &[u8], offset: usize, spans: &mut Vec<(usize, usize)>) {
    const LENGTHS: usize = 8;
    let mut missing = [false; LENGTHS];
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'`', &paragraph[at..]) {
        let open = at + found;
        let ticks = |from: usize| paragraph[from..].iter().take_while(|b| **b == b'`').count();
        let len = ticks(open);
        at = open + len;
        if len >= LENGTHS || missing[len] {
            continue;
        }
        let mut next = at;
        let close = loop {
            let Some(found) = memchr::memchr(b'`', &paragraph[next..]) else { break None };
            let run = ticks(next + found);
            next += found + run;
            if run == len {
                break Some(next);
            }
        };
        match close {
            Some(end) => {
                spans.push((offset + open, offset + end));
                at = end;
            }
            None => missing[len] = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: bool) {
        let at = text.find("<x>").unwrap();
        assert_eq!(Shown::of(text.as_bytes()).has(at), want, "{text}");
    }

    #[test]
    fn what_is_shown() {
        check("a\n```html\n<x>\n```\nb", true);
        check("> ~~~\n> <x>\n> ~~~", true);
        check("use `<x>` here", true);
        check("use ``a ` <x>`` here", true);
        check("```\na\n```\n\n`b` <x>", false);
        // Nothing ends it.
        check("```\n<x>", false);
        check("`a <x>", false);
        check("`a\n\n<x> `b", false);
        check("`a` <x> `b`", false);
        check("``a` <x>", false);
        check("``` <x> ```", true);
    }

    #[test]
    fn elements() {
        let text = b"<p>a</p><pre class=\"x\"><code><x></code></pre><code><y></code><precious><z>";
        let at = |part: &[u8]| memchr::memmem::find(text, part).unwrap();
        let shown = Shown::of(text).with_elements(text, true);
        assert!(shown.has(at(b"<x>")) && shown.has(at(b"<y>")));
        assert!(!shown.has(at(b"<p>")) && !shown.has(at(b"<z>")));
        assert!(!Shown::of(text).with_elements(text, false).has(at(b"<x>")));
    }

    #[test]
    fn linear() {
        let ticks: String = (0..40_000).map(|n| "`".repeat(n % 7 + 1) + "a").collect();
        Shown::of(ticks.as_bytes());
        Shown::of("`a\n".repeat(50_000).as_bytes());
    }
}
