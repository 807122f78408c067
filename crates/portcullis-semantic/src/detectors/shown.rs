//! Code that a text shows: Markdown's fences, back-ticks, quotations and indented lines, HTML's elements for
//! code.
//!
//! The sender writes the marks, so that they say nothing of what is live wherever it stands: see
//! [`Found::shown`](crate::Found::shown). A mark that opens and is not closed shows nothing.

/// Elements in which pages show code.
const ELEMENTS: &[&[u8]] = &[
    b"code",
    b"pre",
    b"kbd",
    b"samp",
    b"blockquote",
    b"tt",
    // Of Confluence.
    b"ac:plain-text-body",
];

/// Bytes of a name that are read.
const NAME_BYTES_MAX: usize = 24;

/// The spans of a text that are shown as code, by where they begin; one may hold others.
#[derive(Debug, Default)]
pub(super) struct Shown {
    spans: Vec<Span>,
    /// For each span the greatest end of those up to it.
    ends: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    /// Where the mark begins.
    start: usize,
    end: usize,
    /// Where what is shown begins.
    inner: usize,
}

impl Shown {
    /// Those of `text`. A fence is a line that begins with three back-ticks or tildes, and one that ends it;
    /// what stands between back-ticks ends at as many of them, in the same paragraph; a line is set off by
    /// four spaces, a tab or `> `.
    pub fn of(text: &[u8]) -> Shown {
        let mut spans = Vec::new();
        let mut fence: Option<(u8, usize, usize)> = None;
        let mut paragraph = 0;
        let mut at = 0;
        for line in text.split_inclusive(|&b| b == b'\n') {
            let start = at;
            at += line.len();
            let lead = line.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'>')).count();
            let is_set_off = line.starts_with(b"    ") || line.starts_with(b"\t") || line.starts_with(b"> ");
            if is_set_off && fence.is_none() {
                spans.push(Span { start, end: at, inner: start + lead });
            }
            // In a quotation or a list.
            let inner = line[lead..].trim_ascii();
            let mark = [b'`', b'~'].into_iter().find(|&mark| inner.starts_with(&[mark; 3]));
            match (fence, mark) {
                (None, Some(mark)) if !inner[3..].contains(&b'`') => {
                    in_line(&text[paragraph..start], paragraph, &mut spans);
                    fence = Some((mark, start, at));
                }
                (Some((open, from, inner)), Some(mark)) if open == mark => {
                    in_line(&text[inner..start], inner, &mut spans);
                    spans.push(Span { start: from, end: at, inner });
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
        elements(text, &mut spans);
        Shown::from_spans(spans)
    }

    /// Those in which Markdown makes no link of a link and no element of an element: fences and what stands
    /// between back-ticks. Quotations are rendered, and so are
    /// indented lines of a paragraph or a list.
    pub fn in_markdown(text: &[u8]) -> Shown {
        let mut spans = Vec::new();
        let mut fence: Option<Fence> = None;
        let (mut paragraph, mut depth, mut list) = (0, 0, 0);
        // The line before is empty or code.
        let mut is_parted = true;
        let mut at = 0;
        for line in text.split_inclusive(|&b| b == b'\n') {
            let start = at;
            at += line.len();
            let (quotes, line) = quotation(line);
            let indent = columns(line);
            let inner = line.trim_ascii();
            if let Some(open) = fence {
                // It ends with the quotation or the list that it stands in, too.
                if quotes >= open.quotes && (inner.is_empty() || indent >= open.list) {
                    let is_close = open.closes(inner) && indent < open.list + 4;
                    if is_close {
                        spans.push(Span { start: open.start, end: at, inner: open.inner });
                        (fence, paragraph) = (None, at);
                    }
                    continue;
                }
                (fence, paragraph) = (None, start);
            }
            // Code, where no paragraph and no list goes on.
            if is_parted && indent >= 4 && list == 0 && quotes == depth && !inner.is_empty() {
                spans.push(Span { start, end: at, inner: at - line.trim_ascii_start().len() });
                paragraph = at;
                continue;
            }
            is_parted = inner.is_empty();
            let content = list_item(inner).filter(|_| indent < list + 4);
            if content.is_some() || quotes != depth || ends_paragraph(inner) {
                in_lines(&text[paragraph..start], paragraph, &mut spans);
                paragraph = start;
            }
            if quotes != depth {
                (depth, list) = (quotes, 0);
            }
            let mark_at = content.unwrap_or(0);
            let is_near = indent < list + 4;
            if content.is_some() {
                list = indent + mark_at;
            } else if !inner.is_empty() {
                list = list.min(indent);
            }
            let inner = &inner[mark_at..];
            if let Some((mark, len)) = fence_mark(inner).filter(|_| is_near) {
                in_lines(&text[paragraph..start], paragraph, &mut spans);
                fence = Some(Fence { mark, len, quotes, list, start, inner: at });
            }
        }
        if fence.is_none() {
            in_lines(&text[paragraph..], paragraph, &mut spans);
        }
        Shown::from_spans(spans)
    }

    fn from_spans(mut spans: Vec<Span>) -> Shown {
        spans.sort_unstable();
        let mut last = 0;
        let ends = spans.iter().map(|span| {
            last = span.end.max(last);
            last
        });
        Shown { ends: ends.collect(), spans }
    }

    /// The byte at `at` is in one of them.
    pub fn has(&self, at: usize) -> bool {
        let begun = self.spans.partition_point(|span| span.start <= at);
        begun > 0 && at < self.ends[begun - 1]
    }

    /// The end of one that begins at `at`.
    pub fn opens(&self, at: usize) -> Option<usize> {
        let begun = self.spans.partition_point(|span| span.start <= at);
        let last = self.spans[..begun].last().filter(|span| span.start == at);
        last.map(|span| span.end)
    }

    /// Where that begins which the innermost of them around the byte at `at` shows.
    pub fn begin(&self, at: usize) -> Option<usize> {
        let begun = self.spans.partition_point(|span| span.start <= at);
        let around = self.spans[..begun].iter().rev().take(NESTED_MAX).find(|span| at < span.end);
        around.map(|span| span.inner)
    }
}

/// Spans within another that are looked past.
const NESTED_MAX: usize = 64;

/// A fence that is open.
#[derive(Clone, Copy, Debug)]
struct Fence {
    mark: u8,
    len: usize,
    /// Marks of quotations before it.
    quotes: usize,
    /// The column at which the text of its list begins.
    list: usize,
    start: usize,
    inner: usize,
}

impl Fence {
    fn closes(&self, line: &[u8]) -> bool {
        line.len() >= self.len && line.iter().all(|b| *b == self.mark)
    }
}

/// How many marks of quotations begin the line, and what is after them.
fn quotation(line: &[u8]) -> (usize, &[u8]) {
    let (mut quotes, mut rest) = (0, line);
    loop {
        let spaces = rest.iter().take(4).take_while(|b| **b == b' ').count();
        if spaces > 3 || rest.get(spaces) != Some(&b'>') {
            return (quotes, rest);
        }
        quotes += 1;
        rest = &rest[spaces + 1..];
        rest = rest.strip_prefix(b" ").unwrap_or(rest);
    }
}

/// The column at which the text of `line` begins.
fn columns(line: &[u8]) -> usize {
    let spaces = line.iter().take_while(|b| matches!(b, b' ' | b'\t'));
    spaces.fold(0, |column, b| if *b == b'\t' { column / 4 * 4 + 4 } else { column + 1 })
}

/// Where the text of a list's item begins.
fn list_item(line: &[u8]) -> Option<usize> {
    let digits = line.iter().take(10).take_while(|b| b.is_ascii_digit()).count();
    let is_mark = match line.get(digits)? {
        b'-' | b'*' | b'+' => digits == 0,
        b'.' | b')' => (1..10).contains(&digits),
        _ => false,
    };
    (is_mark && matches!(line.get(digits + 1), Some(b' ' | b'\t'))).then_some(digits + 2)
}

/// The line is empty, or begins or is a block of its own: a heading, a rule, an element.
fn ends_paragraph(line: &[u8]) -> bool {
    line.iter().all(|b| b"-=*_ ".contains(b)) || matches!(line.first(), Some(b'#' | b'<'))
}

/// The mark of a fence, and how often it stands there.
fn fence_mark(line: &[u8]) -> Option<(u8, usize)> {
    let mark = *line.first().filter(|b| matches!(b, b'`' | b'~'))?;
    let len = line.iter().take_while(|b| **b == mark).count();
    (len >= 3 && (mark == b'~' || !line[len..].contains(&b'`'))).then_some((mark, len))
}

/// As [`in_line`], unless a back-tick is escaped or in a tag: what then is code, readers do not agree on.
fn in_lines(paragraph: &[u8], offset: usize, spans: &mut Vec<Span>) {
    let known = spans.len();
    in_line(paragraph, offset, spans);
    let mut ends = known;
    let mut is_tag = false;
    for at in memchr::memchr3_iter(b'`', b'<', b'>', paragraph) {
        while spans.get(ends).is_some_and(|span| span.end <= offset + at) {
            ends += 1;
        }
        let span = spans.get(ends).filter(|span| span.start <= offset + at);
        let is_inside = span.is_some_and(|span| span.start < offset + at);
        if is_inside {
            continue;
        }
        match paragraph[at] {
            b'<' => {
                let next = paragraph.get(at + 1);
                is_tag = next.is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'/' | b'!' | b'?'));
            }
            b'>' => is_tag = false,
            _ if is_tag || at > 0 && paragraph[at - 1] == b'\\' => {
                spans.truncate(ends);
                return;
            }
            _ => {}
        }
    }
}

/// Runs of back-ticks that are met by one of the same length. One that is not stands for itself, and a longer
/// search for its length is not begun again in the paragraph.
fn in_line(paragraph: &[u8], offset: usize, spans: &mut Vec<Span>) {
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
                spans.push(Span { start: offset + open, end: offset + end, inner: offset + at });
                at = end;
            }
            None => missing[len] = true,
        }
    }
}

/// The outermost of the elements for code that are closed.
fn elements(text: &[u8], spans: &mut Vec<Span>) {
    let mut at = 0;
    let mut missing = [false; ELEMENTS.len()];
    while let Some(found) = memchr::memchr(b'<', &text[at..]) {
        let open = at + found;
        at = open + 1;
        let is_part = |b: &&u8| b.is_ascii_alphabetic() || matches!(b, b':' | b'-');
        let len = text[at..].iter().take(NAME_BYTES_MAX).take_while(is_part).count();
        let (name, rest) = text[at..].split_at(len);
        let Some(number) = ELEMENTS.iter().position(|known| name.eq_ignore_ascii_case(known)) else {
            continue;
        };
        if missing[number] || !matches!(rest.first(), Some(b'>' | b' ' | b'\n')) {
            continue;
        }
        let Some(inner) = memchr::memchr(b'>', rest).map(|end| at + len + end + 1) else { return };
        let inner = inner + if text[inner..].starts_with(CDATA) { CDATA.len() } else { 0 };
        match end_of(&text[inner..], name) {
            Some(end) => {
                spans.push(Span { start: open, end: inner + end, inner });
                at = inner + end;
            }
            None => missing[number] = true,
        }
    }
}

/// Text without references begins.
const CDATA: &[u8] = b"<![CDATA[";

/// Where the end tag of `name` begins.
fn end_of(text: &[u8], name: &[u8]) -> Option<usize> {
    memchr::memmem::find_iter(text, b"</")
        .find(|at| text.get(at + 2..at + 2 + name.len()).is_some_and(|tag| tag.eq_ignore_ascii_case(name)))
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
        check("a\n    <x>", true);
        check("\t<x>", true);
        check("> <x>", true);
        check("a > <x>", false);
        check("> a\n<x>", false);
        // Nothing ends it.
        check("```\n<x>", false);
        check("`a <x>", false);
        check("`a\n\n<x> `b", false);
        check("`a` <x> `b`", false);
        check("``a` <x>", false);
        check("``` <x> ```", true);
        check("<pre> <x>", false);
    }

    #[track_caller]
    fn check_markdown(text: &str, want: bool) {
        let at = text.find("<x>").unwrap();
        assert_eq!(Shown::in_markdown(text.as_bytes()).has(at), want, "{text}");
    }

    #[test]
    fn what_markdown_shows() {
        for text in [
            "a\n```html\n<x>\n```\nb",
            "> ~~~\n> <x>\n> ~~~",
            "use `<x>` here",
            "> use `<x>` here",
            "- a\n\n  ```\n  <x>\n  ```\n",
            "- ```\n  <x>\n  ```\n",
            "1. a\n    ```\n    <x>\n    ```\n",
            "````\n```\n<x>\n````\n",
            "\t<x>",
            "a\n\n    b\n    <x>",
        ] {
            check_markdown(text, true);
        }
        for text in [
            "> <x>",
            "a\n    <x>",
            "- a\n\n    <x>",
            "<code><x></code>",
            "> ```\n<x>\n> ```",
            "````\n```\n````\n<x>\n```\n",
            "- ```\n<x>\n  ```\n",
            "\\`<x> `",
            "<a b=\"`\" <x> `",
            "`a\n> <x> `",
            "`a\n\n<x> `",
        ] {
            check_markdown(text, false);
        }
    }

    #[test]
    fn elements() {
        let text = b"<p>a</p><pre class=\"x\"><code><x></code></pre><CODE><y></code><precious><z>";
        let at = |part: &[u8]| memchr::memmem::find(text, part).unwrap();
        let shown = Shown::of(text);
        assert!(shown.has(at(b"<x>")) && shown.has(at(b"<y>")));
        assert!(!shown.has(at(b"<p>")) && !shown.has(at(b"<z>")));
    }

    #[test]
    fn where_it_begins() {
        let begin = |text: &str, part: &str| Shown::of(text.as_bytes()).begin(text.find(part).unwrap());
        assert_eq!(begin("a `b c` d", "c"), Some(3));
        assert_eq!(begin("a `b c` d", "d"), None);
        assert_eq!(begin("> a", "a"), Some(2));
        assert_eq!(begin("<p><code x>a;b", "b"), None);
        assert_eq!(begin("<code x>a;b</code>", "b"), Some(8));
        assert_eq!(begin("<pre>a `b`", "b"), Some(8));
        let macro_text = "<ac:plain-text-body><![CDATA[a;b]]></ac:plain-text-body>";
        assert_eq!(begin(macro_text, "a;b"), macro_text.find("a;b"));
        assert_eq!(begin("```sh\na\n```\n", "a"), Some(6));
    }

    #[test]
    fn linear() {
        let ticks: String = (0..40_000).map(|n| "`".repeat(n % 7 + 1) + "a").collect();
        Shown::of(ticks.as_bytes());
        for unit in ["`a\n", "`", "<code>", "\n", "```", "<", "`\n", "</pre", "<pre></code>", "> ", "    \n"]
        {
            let text = unit.repeat(30_000);
            Shown::in_markdown(text.as_bytes());
            let shown = Shown::of(text.as_bytes());
            for at in (0..text.len()).step_by(7) {
                shown.has(at);
                shown.begin(at);
            }
        }
    }
}
