//! Words: quote removal and expansion.

use memchr::memchr;

use super::escape::ansi_escape;
use super::{Lexer, Marks, WINDOW_BYTES_MAX, WORD_BYTES_MAX};

/// Limit on the search for the end of `${...}` and `%...%`.
const NAME_BYTES_MAX: usize = 64;

impl<'t> Lexer<'t> {
    /// Reads the word at `self.at`.
    pub(super) fn read_word(&mut self) -> Marks {
        let mut marks = Marks::NONE;
        while self.at < self.text.len() {
            let b = self.byte(0);
            match b {
                b' ' | b'\t' | 0x0B | 0x0C | 0 | b'\n' | b'\r' | b';' | b'|' | b'&' | b'(' | b')' => break,
                b'+' if self.plus => break,
                b'<' | b'>' if self.byte(1) == b'(' => self.substitution(2, &mut marks),
                b'<' | b'>' => break,
                b'\\' => self.escape(&mut marks),
                b'\'' => self.single_quoted(&mut marks),
                b'"' => self.double_quoted(&mut marks),
                b'$' if self.ifs_len() > 0 => break,
                b'$' => self.dollar(&mut marks),
                b'`' if self.in_backticks => break,
                b'`' => self.backticks(&mut marks),
                b'{' if self.is_brace_list() => {
                    self.in_brace = true;
                    marks.add(Marks::BRACE);
                    self.at += 1;
                }
                b',' | b'}' if self.in_brace => break,
                b'^' if matches!(self.byte(1), b'^' | b'&' | b'|')
                    || self.byte(1).is_ascii_alphanumeric() =>
                {
                    marks.add(Marks::CARET);
                    self.push(self.byte(1), &mut marks);
                    self.at += 2;
                }
                b'%' => self.percent(&mut marks),
                b'?' | b'*' | b'[' => {
                    marks.add(Marks::GLOB);
                    self.take(&mut marks);
                }
                _ => {
                    if !(b.is_ascii_alphanumeric()
                        || matches!(b, b'/' | b'.' | b'-' | b'_' | b'~' | b']' | b':' | b'\\'))
                    {
                        marks.add(Marks::ODD);
                    }
                    self.take(&mut marks);
                }
            }
            if marks.has(Marks::UNCLOSED) {
                break;
            }
        }
        marks
    }

    fn push(&mut self, b: u8, marks: &mut Marks) {
        match self.word.get_mut(self.word_len) {
            Some(place) => {
                *place = b;
                self.word_len += 1;
            }
            None => marks.add(Marks::LONG),
        }
    }

    fn push_all(&mut self, bytes: &[u8], marks: &mut Marks) {
        for &b in &bytes[..bytes.len().min(WORD_BYTES_MAX + 1)] {
            self.push(b, marks);
        }
    }

    fn take(&mut self, marks: &mut Marks) {
        self.push(self.byte(0), marks);
        self.at += 1;
    }

    /// The text behind `self.at + ahead`, as far as ends are looked for.
    fn window(&self, ahead: usize, bytes_max: usize) -> &'t [u8] {
        let rest = self.text.get(self.at + ahead..).unwrap_or_default();
        &rest[..rest.len().min(bytes_max)]
    }

    fn escape(&mut self, marks: &mut Marks) {
        let next = self.byte(1);
        let is_windows_path = match &self.word[..self.word_len] {
            [drive, b':'] => drive.is_ascii_alphabetic(),
            [] => next == b'\\' || marks.has(Marks::PERCENT),
            before => before.contains(&b'\\') || before.ends_with(b".."),
        };
        if is_windows_path || self.at + 1 >= self.text.len() {
            self.take(marks);
        } else {
            if next.is_ascii_alphanumeric() {
                marks.add(Marks::ESCAPED);
            }
            self.push(next, marks);
            self.at += 2;
        }
    }

    /// A quote at the start or the end of a word is usual; one inside it is not.
    fn mark_quote(&self, end: usize, marks: &mut Marks) {
        let goes_on = self
            .text
            .get(end)
            .is_some_and(|&b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'\'' | b'"'));
        let begun = self.word_len > 0 && self.word[self.word_len - 1].is_ascii_alphanumeric();
        marks.add(Marks::QUOTED);
        if begun || goes_on {
            marks.add(Marks::SPLIT);
        }
    }

    fn single_quoted(&mut self, marks: &mut Marks) {
        let inner = self.window(1, WINDOW_BYTES_MAX);
        match memchr(b'\'', inner) {
            Some(len) => {
                self.mark_quote(self.at + len + 2, marks);
                self.push_all(&inner[..len], marks);
                self.at += len + 2;
            }
            None => self.unclosed(marks),
        }
    }

    fn unclosed(&mut self, marks: &mut Marks) {
        marks.add(Marks::UNCLOSED);
        self.at += 1;
    }

    fn double_quoted(&mut self, marks: &mut Marks) {
        let inner = self.window(1, WINDOW_BYTES_MAX);
        let mut end = 0;
        loop {
            match inner.get(end..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
                // For cmd.exe a backslash is no escape: `"dir c:\"`.
                None => match memchr(b'"', inner) {
                    Some(at) if inner[..at].contains(&b':') => {
                        end = at;
                        break;
                    }
                    _ => return self.unclosed(marks),
                },
                Some(found) if inner[end + found] == b'"' => {
                    end += found;
                    break;
                }
                Some(found) => end += found + 2,
            }
        }
        self.mark_quote(self.at + end + 2, marks);
        let mut inner = &inner[..end];
        while let Some((&b, rest)) = inner.split_first() {
            match b {
                b'\\' if matches!(rest.first(), Some(b'"' | b'\\' | b'$' | b'`')) => {
                    self.push(rest[0], marks);
                    inner = &rest[1..];
                    continue;
                }
                b'`' => marks.add(Marks::SUBSTITUTION),
                b'$' if rest.first() == Some(&b'(') => marks.add(Marks::SUBSTITUTION),
                b'$' if rest.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'{') => {
                    marks.add(Marks::VARIABLE)
                }
                _ => {}
            }
            self.push(b, marks);
            inner = rest;
        }
        self.at += end + 2;
    }

    /// Bytes of an `$IFS` at `self.at`, with an empty parameter behind it that keeps the name apart from what
    /// follows.
    pub(super) fn ifs_len(&self) -> usize {
        let window = self.window(0, NAME_BYTES_MAX);
        let len = if window.starts_with(b"${IFS") && window.get(5).is_some_and(|b| !b.is_ascii_alphanumeric())
        {
            memchr(b'}', window).map_or(0, |at| at + 1)
        } else if window.starts_with(b"$IFS")
            && !window.get(4).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
        {
            4
        } else {
            0
        };
        match window.get(len..) {
            Some([b'$', b'0'..=b'9' | b'@' | b'*', ..]) if len > 0 => len + 2,
            _ => len,
        }
    }

    fn dollar(&mut self, marks: &mut Marks) {
        match self.byte(1) {
            b'(' if self.byte(2) == b')' => self.skip(3, Marks::EMPTY, marks),
            b'(' => self.substitution(2, marks),
            b'{' => self.braced_variable(marks),
            b'\'' => self.ansi_quoted(marks),
            b'"' => self.at += 1,
            b'@' | b'*' | b'!' | b'1'..=b'9' => self.skip(2, Marks::EMPTY, marks),
            b'0' => {
                self.push_all(b"sh", marks);
                self.skip(2, Marks::VARIABLE, marks);
            }
            b if b.is_ascii_alphabetic() || b == b'_' => {
                let name = self.name_at(1);
                self.variable(name, marks);
                self.at += 1 + name.len();
            }
            _ => self.take(marks),
        }
    }

    fn skip(&mut self, bytes: usize, mark: Marks, marks: &mut Marks) {
        marks.add(mark);
        self.at += bytes;
    }

    fn name_at(&self, ahead: usize) -> &'t [u8] {
        let window = self.window(ahead, NAME_BYTES_MAX);
        &window[..window.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count()]
    }

    fn variable(&mut self, name: &[u8], marks: &mut Marks) {
        marks.add(Marks::VARIABLE);
        let known: &[u8] = match name {
            b"SHELL" | b"BASH" => b"sh",
            b"HOME" => b"/root",
            b"PWD" | b"OLDPWD" => b"/",
            _ => b"",
        };
        match self.variables.get(name) {
            None => self.push_all(known, marks),
            Some(value) => self.literal(value, marks),
        }
    }

    /// A value as it was written, up to where it would be split: quotes go, escapes of `$'..'` are read.
    fn literal(&mut self, value: &[u8], marks: &mut Marks) {
        let is_ansi = value.starts_with(b"$'");
        let mut rest = if is_ansi { &value[2..] } else { value };
        while let Some((&b, tail)) = rest.split_first() {
            rest = tail;
            match b {
                b'\'' | b'"' => {}
                b' ' | b'\t' | b',' | b'\n' => break,
                b'\\' if is_ansi => {
                    let (byte, used) = ansi_escape(rest);
                    if matches!(byte, b' ' | b'\t' | b'\n') {
                        break;
                    }
                    self.push(byte, marks);
                    rest = &rest[used..];
                }
                b'\\' => {}
                b => self.push(b, marks),
            }
        }
    }

    fn braced_variable(&mut self, marks: &mut Marks) {
        let window = self.window(2, NAME_BYTES_MAX);
        let Some(end) = memchr(b'}', window) else {
            marks.add(Marks::ODD);
            return self.take(marks);
        };
        let name = self.name_at(2);
        match &window[name.len().min(end)..end] {
            _ if name.is_empty() => marks.add(Marks::EMPTY),
            [] => self.variable(name, marks),
            [b':', b'-' | b'=' | b'+', default @ ..] => {
                marks.add(Marks::VARIABLE);
                self.push_all(default, marks);
            }
            // A piece of a variable: the first letter of a path is known, others could be any.
            [b':', b'0', b':', b'1'] if is_path_variable(name) => {
                marks.add(Marks::SLICE);
                self.push(b'/', marks);
            }
            [b':' | b'%' | b'#', ..] if is_path_variable(name) && window[name.len()] != b':' => {
                marks.add(Marks::SLICE);
                self.push(b'/', marks);
            }
            [b':' | b'%' | b'#' | b'/', ..] => {
                marks.add(Marks::SLICE.with(Marks::GLOB));
                self.push(b'?', marks);
            }
            _ => marks.add(Marks::VARIABLE),
        }
        self.at += 2 + end + 1;
    }

    fn ansi_quoted(&mut self, marks: &mut Marks) {
        let inner = self.window(2, WINDOW_BYTES_MAX);
        let mut end = 0;
        loop {
            match inner.get(end) {
                None => return self.skip(1, Marks::UNCLOSED, marks),
                Some(b'\'') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
            }
        }
        marks.add(Marks::QUOTED);
        let mut rest = &inner[..end];
        while let Some((&b, tail)) = rest.split_first() {
            if b == b'\\' {
                let (byte, used) = ansi_escape(tail);
                marks.add(Marks::ANSI);
                self.push(byte, marks);
                rest = &tail[used..];
            } else {
                self.push(b, marks);
                rest = tail;
            }
        }
        self.at += 2 + end + 1;
    }

    /// `$(`, `<(` or `>(`, whose inside begins `open` bytes on.
    fn substitution(&mut self, open: usize, marks: &mut Marks) {
        marks.add(Marks::SUBSTITUTION);
        let mut depth = 1usize;
        let window = self.window(open, WINDOW_BYTES_MAX);
        for (at, b) in window.iter().enumerate() {
            match b {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.at += open + at + 1;
                return;
            }
        }
        marks.add(Marks::UNCLOSED);
        self.searched += window.len();
        self.at += open;
    }

    fn backticks(&mut self, marks: &mut Marks) {
        match memchr(b'`', self.window(1, WINDOW_BYTES_MAX)) {
            Some(0) => self.skip(2, Marks::EMPTY, marks),
            Some(len) => self.skip(len + 2, Marks::SUBSTITUTION, marks),
            None => self.unclosed(marks),
        }
    }

    /// `{a,b}` at the start of a word, without white space.
    fn is_brace_list(&mut self) -> bool {
        if self.word_len > 0 || self.in_brace {
            return false;
        }
        let window = self.window(1, WINDOW_BYTES_MAX);
        let Some(end) = memchr(b'}', window) else { return false };
        let inner = &window[..end];
        self.searched += end;
        // An object of a program has colons, of which only those of a URL may be here.
        let is_key = |at: usize| !inner[at + 1..].starts_with(b"//");
        memchr(b',', inner).is_some_and(|at| at > 0)
            && !inner.iter().any(|b| b.is_ascii_whitespace() || *b == b'=')
            && !memchr::memchr_iter(b':', inner).any(is_key)
    }

    fn percent(&mut self, marks: &mut Marks) {
        let name = self.name_at(1);
        let rest = self.window(1 + name.len(), NAME_BYTES_MAX);
        let is_slice = rest.starts_with(b":~");
        let end = if is_slice { memchr(b'%', rest) } else { (rest.first() == Some(&b'%')).then_some(0) };
        match end {
            Some(end) if !name.is_empty() => {
                marks.add(Marks::PERCENT);
                if is_slice {
                    marks.add(Marks::SLICE.with(Marks::GLOB));
                    self.push(b'?', marks);
                } else if name.eq_ignore_ascii_case(b"comspec") {
                    self.push_all(b"cmd", marks);
                }
                self.at += 1 + name.len() + end + 1;
            }
            _ => {
                marks.add(Marks::ODD);
                self.take(marks);
            }
        }
    }
}

fn is_path_variable(name: &[u8]) -> bool {
    matches!(name, b"HOME" | b"PATH" | b"PWD" | b"OLDPWD" | b"SHELL" | b"BASH")
}
