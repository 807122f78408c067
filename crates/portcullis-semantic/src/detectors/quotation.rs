//! Quotations in a text: fences, back-ticks, elements for code, lines set off from the others.
//!
//! What stands so is shown to readers. That tells something only in a field for texts; elsewhere whoever
//! sends an attack may put quotation marks of any kind around it.

/// Bytes within which the end of a quotation in back-ticks is looked for.
const TICKS_BYTES_MAX: usize = 400;

/// Elements in which pages show code.
const ELEMENTS: &[&[u8]] = &[b"code", b"pre", b"kbd", b"samp", b"blockquote", b"tt"];

/// The quotations of a text, read once from its beginning up to where somebody last asked.
#[derive(Debug)]
pub(super) struct Quotation<'t> {
    text: &'t [u8],
    at: usize,
    in_fence: bool,
    /// The line is set off: indented as code is, or after `>`.
    is_set_off: bool,
    /// Where the back-ticks end that are open.
    ticks_end: usize,
    /// Elements for code that are open.
    elements: usize,
}

impl<'t> Quotation<'t> {
    pub fn new(text: &'t [u8]) -> Quotation<'t> {
        let is_set_off = is_set_off(text);
        Quotation { text, at: 0, in_fence: false, is_set_off, ticks_end: 0, elements: 0 }
    }

    /// True if the byte `at` stands in a quotation. Who asks for a byte before the last one starts again from
    /// the beginning, so that what asks in order reads the text once.
    pub fn holds(&mut self, at: usize) -> bool {
        if at < self.at {
            *self = Quotation::new(self.text);
        }
        while let Some(skipped) =
            self.text.get(self.at..at).and_then(|rest| memchr::memchr3(b'\n', b'`', b'<', rest))
        {
            let sign = self.at + skipped;
            self.at = sign + 1;
            match self.text[sign] {
                b'\n' => self.line(),
                b'`' if self.text[sign..].starts_with(b"```") => {
                    self.in_fence = !self.in_fence;
                    self.at = sign + 3;
                }
                b'`' if sign >= self.ticks_end => {
                    let rest = &self.text[sign + 1..];
                    let window = &rest[..rest.len().min(TICKS_BYTES_MAX)];
                    let end = memchr::memchr2(b'`', b'\n', window).filter(|end| window[*end] == b'`');
                    self.ticks_end = end.map_or(self.ticks_end, |end| sign + 2 + end);
                }
                b'<' => self.element(sign + 1),
                _ => {}
            }
        }
        self.at = self.at.max(at);
        self.in_fence || self.is_set_off || self.elements > 0 || at < self.ticks_end
    }

    fn line(&mut self) {
        let line = &self.text[self.at..];
        self.is_set_off = is_set_off(line);
        if line.trim_ascii_start().starts_with(b"~~~") {
            self.in_fence = !self.in_fence;
        }
    }

    fn element(&mut self, at: usize) {
        let rest = &self.text[at..];
        let (name, closes) = match rest.strip_prefix(b"/") {
            Some(name) => (name, true),
            None => (rest, false),
        };
        let len = name.iter().take(12).take_while(|b| b.is_ascii_alphabetic()).count();
        if !ELEMENTS.iter().any(|known| name[..len].eq_ignore_ascii_case(known)) {
            return;
        }
        if closes {
            self.elements = self.elements.saturating_sub(1);
        } else if matches!(name.get(len), Some(b'>' | b' ' | b'\n')) {
            self.elements += 1;
        }
    }
}

/// `    code`, `> said`, `$ ls`
fn is_set_off(line: &[u8]) -> bool {
    line.starts_with(b"    ") || line.starts_with(b"\t") || line.starts_with(b"> ") || line.starts_with(b"$ ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|` stands where it is asked, and `!` where the answer is to be yes.
    #[track_caller]
    fn check(text: &str) {
        let mut quotation = Quotation::new(text.as_bytes());
        for (at, sign) in text.match_indices(['|', '!']) {
            assert_eq!(quotation.holds(at), sign == "!", "{text} at {at}");
        }
    }

    #[test]
    fn quotations() {
        check("a | `b ! c` | d");
        check("a ` b | c\n| d");
        check("x |\n```sh\n! a\n! b\n```\n|");
        check("~~~|\n~~~\n!\n~~~\n|");
        check("| <code class=\"x\">!</code> | <pre><code>!</code>!</pre> | <coder>|");
        check("one |\n    two !\n> three !\nfour |\n\tfive !");
        let mut quotation = Quotation::new(b"a `b` c");
        assert!(!quotation.holds(6) && quotation.holds(3) && !quotation.holds(0));
    }

    #[test]
    fn hostile_texts_end() {
        for unit in ["`", "<code>", "\n", "```", "<", "`\n", "</pre"] {
            let text = unit.repeat(30_000);
            let mut quotation = Quotation::new(text.as_bytes());
            (0..text.len()).step_by(7).for_each(|at| {
                quotation.holds(at);
            });
        }
    }
}
