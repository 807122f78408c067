//! Delimiters of template expressions.

use portcullis_types::Span;

/// Bytes of an expression that does not end, of a block in single braces, and of one whose end is the last of
/// several pairs: no more are read. Others end where they do.
const INNER_BYTES_MAX: usize = 600;

/// Expressions without an end that are looked at so far: each takes in those after it.
const UNCLOSED_MAX: usize = 12;

/// Bytes of further ones that are read.
const FURTHER_BYTES_MAX: usize = 64;

/// The delimiters of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `{{ }}`
    Braces,
    /// `${ }`, `#{ }`, `*{ }`, `%{ }`, `~{ }`, `@{ }`
    Marked,
    /// `{% %}`
    Statement,
    /// `<%= %>`, `<%- %>`
    Output,
    /// `<% %>`
    Script,
    /// `[[ ]]`
    Brackets,
    /// `@( )`
    Parentheses,
    /// `<#...>`, `[#...]`, `#set(...)`
    Directive,
    /// `{ }` with a name or number after it.
    Single,
}

impl Form {
    /// What looking for the end costs, in bytes, where there is none.
    pub fn search_cost(self) -> usize {
        match self {
            // Braces are paired once.
            Form::Marked | Form::Single => 0,
            // Each sign of a pair is counted.
            Form::Parentheses | Form::Directive => INNER_BYTES_MAX / 4,
            Form::Braces | Form::Statement | Form::Output | Form::Script | Form::Brackets => {
                INNER_BYTES_MAX / 16
            }
        }
    }
}

/// An expression with its delimiters, and what is in them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expression {
    pub form: Form,
    pub span: Span,
    pub inner: Span,
}

/// The expressions of a text, in order.
#[derive(Debug)]
pub(super) struct Delimiters<'t> {
    text: &'t [u8],
    at: usize,
    unclosed: usize,
    /// Where braces open, and where each of them closes, once computed: going from each to its end
    /// would read the text many times.
    braces: Option<Vec<(usize, usize)>>,
    /// A closing delimiter that the rest of the text does not have: it is not looked for again.
    missing: [&'static [u8]; CLOSINGS],
}

/// Closing delimiters that the text is searched for: `}}`, `}}}`, `%}`, `%>`, `!!}`, `]]`, `>`.
const CLOSINGS: usize = 7;

impl<'t> Delimiters<'t> {
    pub fn new(text: &'t [u8]) -> Delimiters<'t> {
        Delimiters { text, at: 0, unclosed: 0, braces: None, missing: [b""; CLOSINGS] }
    }

    fn opening(&self, at: usize) -> Option<(Form, usize, &'static [u8])> {
        let rest = &self.text[at..];
        Some(match rest {
            [b'{', b'{', b'{', ..] => (Form::Braces, 3, b"}}}"),
            [b'{', b'{', ..] => (Form::Braces, 2, b"}}"),
            [b'{', b'%', ..] => (Form::Statement, 2, b"%}"),
            [b'$', b'{', b'{', ..] => return None,
            [b'$' | b'#' | b'*' | b'%' | b'~' | b'@', b'{', ..] => (Form::Marked, 2, b"}"),
            [b'<', b'%', b'=' | b'-', ..] => (Form::Output, 3, b"%>"),
            // Mako's module block
            [b'<', b'%', b'!', ..] => (Form::Script, 3, b"%>"),
            [b'<', b'%', ..] => (Form::Script, 2, b"%>"),
            [b'<', b'#', b'a'..=b'z', ..] => (Form::Directive, 2, b">"),
            [b'[', b'#', b'a'..=b'z', ..] => (Form::Directive, 2, b"]"),
            [b'[', b'[', b'$', b'{', ..] => return None,
            [b'[', b'[', b, ..] if b.is_ascii_alphanumeric() || matches!(b, b'\'' | b'"') => {
                (Form::Brackets, 2, b"]]")
            }
            [b'@', b'(', ..] => (Form::Parentheses, 2, b")"),
            [b'#', name @ ..] if let Some(len) = velocity(name) => (Form::Directive, 1 + len, b")"),
            // Latte, Blade, FreeMarker's other marks
            [b'{', b'=', b'"' | b'\'' | b'$', ..] => (Form::Braces, 2, b"}"),
            [b'{', b'=', name @ ..] if is_call(name) => (Form::Braces, 2, b"}"),
            [b'{', b'!', b'!', ..] => (Form::Braces, 3, b"!!}"),
            [b'[', b'=', b, ..] if b.is_ascii_alphanumeric() || matches!(b, b'\'' | b'"' | b'.' | b' ') => {
                (Form::Marked, 2, b"]")
            }
            [b'{', b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'"' | b'\'' | b'[', ..] => {
                (Form::Single, 1, b"}")
            }
            _ => return None,
        })
    }

    /// The end of what begins at `from`: the closing delimiter, outside of pairs of its own sign.
    fn closing(&mut self, from: usize, close: &'static [u8], form: Form) -> Option<usize> {
        if close == b"}" {
            return self.closing_brace(from, form);
        }
        let open = match close {
            b")" => b'(',
            b"]" => b'[',
            _ => return self.search(from, close),
        };
        let window = &self.text[from..self.text.len().min(from + INNER_BYTES_MAX)];
        let mut depth = 0usize;
        for at in memchr::memchr2_iter(open, close[0], window) {
            match (window[at] == close[0], depth) {
                (true, 0) => return Some(from + at),
                (true, _) => depth -= 1,
                (false, _) => depth += 1,
            }
        }
        None
    }

    /// The next `close` from `from` on. The text is read no more than once for each of them.
    fn search(&mut self, from: usize, close: &'static [u8]) -> Option<usize> {
        if self.missing.contains(&close) {
            return None;
        }
        let end = memchr::memmem::find(&self.text[from..], close).map(|at| from + at);
        if end.is_none()
            && let Some(free) = self.missing.iter_mut().find(|known| known.is_empty())
        {
            *free = close;
        }
        end
    }

    /// The same for what a brace before `from` opened.
    fn closing_brace(&mut self, from: usize, form: Form) -> Option<usize> {
        let open = memchr::memrchr(b'{', &self.text[..from])?;
        let pairs = self.braces.get_or_insert_with(|| pairs(self.text));
        let pair = pairs.binary_search_by_key(&open, |pair| pair.0).ok()?;
        Some(pairs[pair].1).filter(|close| form == Form::Marked || *close < from + INNER_BYTES_MAX)
    }
}

/// The braces of `text` that close, by where they open.
fn pairs(text: &[u8]) -> Vec<(usize, usize)> {
    let (mut open, mut pairs) = (Vec::new(), Vec::new());
    for at in memchr::memchr2_iter(b'{', b'}', text) {
        match text[at] {
            b'{' => open.push(at),
            _ => pairs.extend(open.pop().map(|from| (from, at))),
        }
    }
    pairs.sort_unstable();
    pairs
}

/// `getenv(`
fn is_call(text: &[u8]) -> bool {
    let len = text.iter().take(40).take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    len > 2 && text.get(len) == Some(&b'(')
}

/// `set(`, `parse (`, `evaluate(`: the length, with the parenthesis.
fn velocity(text: &[u8]) -> Option<usize> {
    let name = [&b"set"[..], b"parse", b"include", b"evaluate", b"foreach"]
        .into_iter()
        .find(|name| text.starts_with(name))?;
    let spaces = text[name.len()..].iter().take(4).take_while(|b| **b == b' ').count();
    let len = name.len() + spaces;
    (text.get(len) == Some(&b'(')).then_some(len + 1)
}

impl Iterator for Delimiters<'_> {
    type Item = Expression;

    fn next(&mut self) -> Option<Expression> {
        while self.at < self.text.len() {
            let start = self.at;
            if !matches!(self.text[start], b'{' | b'$' | b'#' | b'*' | b'%' | b'~' | b'@' | b'<' | b'[') {
                self.at += 1;
                continue;
            }
            // A block of a wiki, for the interpreter that its first line names. No engine reads an expression
            // that begins so; what stands in the block is looked at as anywhere.
            if self.text[start..].starts_with(b"{{{#!") {
                self.at += 3;
                continue;
            }
            let Some((form, open, close)) = self.opening(start) else {
                self.at += 1;
                continue;
            };
            let from = (start + open).min(self.text.len());
            let end = self.closing(from, close, form);
            let window = if self.unclosed < UNCLOSED_MAX { INNER_BYTES_MAX } else { FURTHER_BYTES_MAX };
            let inner_end = end.unwrap_or(self.text.len().min(from + window));
            // A single brace may be any other language's, with expressions in it.
            self.at = match end {
                Some(end) if form != Form::Single => end + close.len(),
                _ => from,
            };
            // A single brace that does not close is a sign of any language.
            if end.is_none() && form == Form::Single {
                continue;
            }
            self.unclosed += usize::from(end.is_none());
            let (mut from, mut inner_end) = (from, inner_end);
            let end = end.map_or(inner_end, |end| end + close.len());
            if matches!(form, Form::Braces | Form::Statement | Form::Script) {
                // Marks that take the white space around the expression away.
                let is_mark =
                    |at: Option<usize>| at.is_some_and(|at| matches!(self.text.get(at), Some(b'-' | b'~')));
                from += usize::from(from < inner_end && is_mark(Some(from)));
                inner_end -= usize::from(inner_end > from && is_mark(inner_end.checked_sub(1)));
            }
            return Some(Expression { form, span: Span::new(start, end), inner: Span::new(from, inner_end) });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &[&str]) {
        let bytes = text.as_bytes();
        let have: Vec<String> =
            Delimiters::new(bytes).map(|e| String::from_utf8_lossy(e.inner.of(bytes)).into_owned()).collect();
        assert_eq!(have, want, "{text}");
    }

    #[test]
    fn forms() {
        check(
            "a {{b}} {%c%} ${d} #{e} <%= f %> <% g %> @(h) [[i]]",
            &["b", "c", "d", "e", " f ", " g ", "h", "i"],
        );
        check("${a{b}c} ${{7*7}} {{{x}}}", &["a{b}c", "7*7", "x"]);
        check("#set ($x=1) {{- y -}}", &["$x=1", " y "]);
        check("#set($x=1) <#assign a=1> [#assign b=2]", &["$x=1", "assign a=1", "assign b=2"]);
        check("{x} { x } {{unclosed", &["x", "unclosed"]);
        check("{{{#!py\nd = a(1)\n}}} {{{a}}} {{{#!py {{b}}", &["a", "b"]);
        check("{", &[]);
        check("{a{b}} {c} }{d}{e", &["a{b}", "b", "c", "d"]);
        check(&format!("{{a{}}}", "b".repeat(600)), &[]);
        for len in [597, 60_000] {
            let inner = format!("a{}", "b".repeat(len));
            check(&format!("${{{inner}}}{{c}}{{{{{inner}}}}}<%={inner}%>"), &[&inner, "c", &inner, &inner]);
        }
    }
}
