//! Injection into XPath and XQuery.
//!
//! As with SQL, the fragment begins after a quote or a bracket; what follows names nodes of the document: a
//! function over a path (`count(/*)`), an axis, a test of nodes, or the union with another path. A path alone
//! is the everyday language of scrapers and stays weak.

use portcullis_types::Span;

use super::scan::{Nesting, has_at, is_one_of, is_word, run, skip_space};
use crate::detectors::document;
use crate::limits::LOOK_SHARE;
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, KindId, Place, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-community/attacks/XPATH_Injection";
    FUNCTION_OF_PATH "xpath.function-of-path" Error Quotable "a function over nodes of the document";
    FUNCTION_OF_NAME "xpath.function-of-name" Critical Quotable "takes the name of a node apart";
    AXIS "xpath.axis" Warning Quotable "steps along an axis";
    NODE_TEST "xpath.node-test" Warning Quotable "a test of nodes: text(), node(), comment(), @*";
    UNION "xpath.union" Critical Quotable "closes an expression and adds the nodes of another path";
    PATH "xpath.path" Notice Quotable "a path that begins at the root or anywhere below it";
    DOCUMENT "xpath.document" Critical Quotable "reads another document";
    LOOP "xpath.loop" Error Quotable "a loop of XQuery over nodes";
    BREAK_OUT "xpath.break-out" Error Quotable "a quote or bracket is closed, and a condition follows";
    CONSTANT "xpath.constant" Critical Quotable "a predicate compares a constant with itself";
    WHOLE "xpath.whole" Notice Quotable "all of the value is an expression of XPath";
}

/// Bytes within which the end of a predicate is looked for.
const PREDICATE_BYTES_MAX: usize = 40;

/// A file that is no longer than this may be a field to the application.
const FIELD_BYTES_MAX: usize = 96;

/// See the module.
#[derive(Debug)]
pub struct Xpath;

static PROFILE: Profile = Profile::new(Class::Xpath, KINDS).needs(ByteGroups::of(b"(:@|[/=")).hints(HINTS);

impl Detector for Xpath {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        // A file is no part of an expression; its first line may be a comment (`//! doc("x")`) as well as a
        // path.
        let is_file = input.location.place == Place::FileContent && text.len() > FIELD_BYTES_MAX;
        if input.is_json || is_file {
            return;
        }
        let first = skip_space(text, 0);
        // A program's strings end where they end.
        let strings = match input.document.is_file && found.may_read(text.len() / LOOK_SHARE) {
            true => document::quotes(text),
            false => Vec::new(),
        };
        let break_out = break_out(text, first).or_else(|| break_out_of_text(text, first, &strings));
        // The comment that a source begins with.
        let is_path = !input.document.is_file
            && (matches!(text[first..], [b'/' | b'*', ..] | [b'@', b'*', ..])
                || names_function(text, first)
                || loads(text, first));
        let is_mention = break_out.is_none() && !is_path;
        let mut scan = Scan { text, is_mention, count: 0, found };
        if let Some(end) = break_out {
            scan.operand(end);
        }
        if is_path {
            scan.constant_predicates();
        }
        if !input.document.is_file {
            scan.open_predicate();
        }
        scan.functions();
        scan.axes();
        scan.unions();
        if scan.count > 0 {
            if let Some(end) = break_out {
                scan.add(BREAK_OUT, first, end);
            } else if is_path {
                scan.add(WHOLE, first, text.len());
            }
        }
    }
}

struct Scan<'s, 't, 'f> {
    text: &'t [u8],
    is_mention: bool,
    count: usize,
    found: &'s mut Found<'f>,
}

impl Scan<'_, '_, '_> {
    fn add(&mut self, kind: KindId, from: usize, to: usize) {
        self.count += 1;
        let span = Span::new(from, to.min(self.text.len()));
        match self.is_mention {
            true => self.found.mention(kind, span),
            false => self.found.add(kind, span),
        }
    }

    fn functions(&mut self) {
        let text = self.text;
        for open in memchr::memchr_iter(b'(', text) {
            let name = &text[..open];
            let start = open - name.iter().rev().take(24).take_while(|b| is_word(**b) || **b == b'-').count();
            let name = &text[start..open];
            if name.is_empty() {
                continue;
            }
            let argument = skip_space(text, open + 1);
            if is_one_of(name, &[b"doc", b"document", b"doc-available", b"unparsed-text", b"collection"])
                && matches!(text.get(argument), Some(b'\'' | b'"' | b'c'))
            {
                self.add(DOCUMENT, start, argument + 1);
            } else if is_one_of(name, &[b"text", b"node", b"comment", b"processing-instruction"])
                && matches!(text[..start].last(), Some(b'/' | b':'))
            {
                self.add(NODE_TEST, start, argument);
            } else if is_one_of(name, FUNCTIONS) && !name.iter().any(u8::is_ascii_uppercase) {
                let of_name = (has_at(text, argument, b"name(") || has_at(text, argument, b"local-name("))
                    && !is_one_of(name, &[b"name", b"local-name"]);
                let is_path = matches!(text[argument..], [b'/', b'/' | b'*' | b'@' | b'a'..=b'z' | b'A'..=b'Z', ..] | [b'.', b'.' | b'/', ..] | [b'@', ..] | [b'*', b')', ..])
                    || text[argument..].starts_with(b"child::")
                    || text[argument..].starts_with(b"name(");
                if of_name {
                    self.add(FUNCTION_OF_NAME, start, argument + 8);
                } else if is_path
                    || is_one_of(name, &[b"name", b"local-name", b"position", b"last"])
                        && text.get(argument) == Some(&b')')
                        && follows_sign(text, argument + 1)
                {
                    self.add(FUNCTION_OF_PATH, start, argument + 2);
                }
            }
        }
        if let Some(at) = memchr::memmem::find(text, b"for $") {
            let end = run(text, at + 5, 24, is_word);
            if has_at(text, skip_space(text, end), b"in ") {
                self.add(LOOP, at, end + 3);
            }
        }
    }

    /// What is asked after the break-out: `' or //*[1] or '`, `x' or true() or '`.
    fn operand(&mut self, end: usize) {
        let text = self.text;
        let at = skip_space(text, end);
        let name = run(text, at, 8, |b| b.is_ascii_alphabetic());
        let is_constant = is_one_of(&text[at..name], &[b"true", b"false", b"position", b"last"])
            && text[name..].starts_with(b"()");
        let step = run(text, at + 2, 24, |b| is_word(b) || b == b'*');
        let is_nodes = text[at..].starts_with(b"//") && step > at + 2 && text.get(step) == Some(&b'[');
        if is_constant || is_nodes {
            self.add(FUNCTION_OF_PATH, at, name + 2);
        } else if memchr::memchr2(b'\'', b'"', &text[..end]).is_some()
            && let Some(path) = path_of_condition(text, at)
        {
            self.add(FUNCTION_OF_PATH, at, path);
        }
    }

    /// `x']/../*['1`: a predicate is closed behind a quote that the text did not open, a step follows, and
    /// another predicate is left open.
    fn open_predicate(&mut self) {
        let text = self.text;
        let Some(open) = memchr::memrchr(b'[', text) else { return };
        if memchr::memrchr(b']', text).is_none_or(|close| close > open) {
            return;
        }
        let mut nesting = Nesting::new(text);
        for at in memchr::memchr2_iter(b'\'', b'"', &text[..open]) {
            let close = skip_space(text, at + 1);
            if text.get(close) == Some(&b']') {
                let step = skip_space(text, close + 1);
                let is_step =
                    matches!(text[step..], [b'/', b'/' | b'.' | b'*' | b'@' | b'a'..=b'z' | b'A'..=b'Z', ..]);
                if is_step && step < open && nesting.closes_foreign(at) {
                    self.add(FUNCTION_OF_PATH, step, open + 1);
                    self.add(BREAK_OUT, at, step);
                    return;
                }
            }
        }
    }

    /// `//*[1=1]`: a predicate that compares a constant with itself.
    fn constant_predicates(&mut self) {
        let text = self.text;
        for at in memchr::memchr_iter(b'[', text) {
            let inner = &text[at + 1..];
            let Some(end) = memchr::memchr(b']', &inner[..inner.len().min(PREDICATE_BYTES_MAX)]) else {
                continue;
            };
            let mut sides = inner[..end].splitn(2, |b| *b == b'=').map(<[u8]>::trim_ascii);
            let (left, right) = (sides.next().unwrap_or_default(), sides.next().unwrap_or_default());
            let is_constant =
                left.iter().all(u8::is_ascii_digit) || matches!(left, [b'\'', .., b'\''] | [b'"', .., b'"']);
            if !left.is_empty() && left == right && is_constant {
                self.add(CONSTANT, at, at + 2 + end);
            }
        }
    }

    fn axes(&mut self) {
        let text = self.text;
        for at in memchr::memmem::find_iter(text, b"::") {
            let start =
                at - text[..at].iter().rev().take(20).take_while(|b| is_word(**b) || **b == b'-').count();
            let is_step = matches!(text.get(at + 2), Some(b'*' | b'@'))
                || text.get(at + 2).is_some_and(u8::is_ascii_alphabetic);
            if is_step && is_one_of(&text[start..at], AXES) {
                self.add(AXIS, start, at + 3);
            }
        }
        for at in memchr::memchr_iter(b'@', text) {
            let before = text[..at].last();
            if text.get(at + 1) == Some(&b'*')
                && matches!(before, None | Some(b'/' | b'(' | b'[' | b'|' | b' '))
            {
                self.add(NODE_TEST, at, at + 2);
            }
        }
    }

    /// `'] | //user`, `') or 1=1] | //*[('a`
    fn unions(&mut self) {
        let text = self.text;
        let first = skip_space(text, 0);
        for at in memchr::memchr_iter(b'|', text) {
            let next = skip_space(text, at + 1);
            let is_path = matches!(text[next..], [b'/', b'/' | b'*' | b'|', ..] | [b'/', b'a'..=b'z' | b'A'..=b'Z', ..] | [b'.', b'.', b'/', ..]);
            let before = text[..at].trim_ascii_end().last();
            // All nodes, and others beside: `*|//text()`.
            let is_all = matches!(text[first.min(at)..at].trim_ascii_end(), b"*" | b"@*" | b".");
            if is_path && (is_all || matches!(before, Some(b']' | b'\'' | b'"' | b')'))) {
                self.add(UNION, at, next + 2);
            }
        }
    }
}

/// Bytes of a path in a condition.
const PATH_BYTES_MAX: usize = 96;

/// The end of the path at `at` that a condition asks for, as `//*`, `../@admin`, `//user[1]/password` and
/// `@admin` are: a quote, a comparison or a joint that a quote or a path follows comes next.
fn path_of_condition(text: &[u8], at: usize) -> Option<usize> {
    let is_path = match &text[at..] {
        [b'/', b'/', ..] | [b'.', b'.', b'/', ..] | [b'.', b'/', ..] => true,
        [b'/' | b'@', next, ..] => next.is_ascii_alphabetic() || *next == b'*',
        // `.='admin'`: the node itself is compared.
        [b'.', rest @ ..] => matches!(rest.trim_ascii_start(), [b'=' | b'!' | b'<' | b'>', ..]),
        _ => false,
    };
    let is_part = |b: u8| is_word(b) || b"/.*@[]:-".contains(&b);
    let end = run(text, at, PATH_BYTES_MAX, is_part);
    // `//` alone begins a comment, and names nothing.
    let names = text[at..end] == *b"." || text[at..end].iter().any(|b| is_word(*b) || *b == b'*');
    let next = skip_space(text, end);
    let joint = run(text, next, 4, |b| b.is_ascii_alphabetic());
    let goes_on = match text.get(next) {
        Some(b'\'' | b'"' | b'=' | b'!' | b'<' | b'>') => true,
        Some(b'|') => text.get(skip_space(text, next + 1)) == Some(&b'/'),
        _ => {
            let is_joint = next > end && is_one_of(&text[next..joint], &[b"or", b"and"]);
            is_joint && matches!(text.get(skip_space(text, joint)), Some(b'\'' | b'"' | b'@' | b'/'))
        }
    };
    (is_path && names && goes_on).then_some(end)
}

/// A condition after a quote or a closing bracket at the beginning: its end.
fn break_out(text: &[u8], first: usize) -> Option<usize> {
    let head = run(text, first, 40, |b| is_word(b) || matches!(b, b'-' | b'.' | b'@'));
    let closed = run(text, head, 8, |b| matches!(b, b'\'' | b'"' | b')' | b']' | b' '));
    let has_quote = text[head..closed].iter().any(|b| matches!(b, b'\'' | b'"' | b']'));
    let is_number = head > first && text[first..head].iter().all(u8::is_ascii_digit);
    if !has_quote && !is_number {
        return None;
    }
    let end = run(text, closed, 4, |b| b.is_ascii_alphabetic() || b == b'|');
    is_one_of(&text[closed..end], &[b"or", b"and", b"|"]).then_some(end)
}

/// The same in the middle of a text: after a quote or bracket that the text did not open, and that is not in
/// one of its `strings`.
fn break_out_of_text(text: &[u8], first: usize, strings: &[usize]) -> Option<usize> {
    let mut nesting = Nesting::new(text);
    let mut from = first;
    while let Some(at) = memchr::memchr3(b'\'', b'"', b']', &text[from..]).map(|at| from + at) {
        from = at + 1;
        if strings.binary_search(&at).is_ok() {
            continue;
        }
        let closed = run(text, from, 8, |b| matches!(b, b')' | b']' | b' '));
        let end = run(text, closed, 4, |b| b.is_ascii_alphabetic() || b == b'|');
        if is_one_of(&text[closed..end], &[b"or", b"and", b"|"]) && nesting.closes_foreign(at) {
            return Some(end);
        }
    }
    None
}

fn names_function(text: &[u8], first: usize) -> bool {
    let end = run(text, first, 20, |b| is_word(b) || b == b'-');
    text.get(end) == Some(&b'(') && is_one_of(&text[first..end], FUNCTIONS)
}

/// `doc('http://a.example/x')` at the beginning of the value.
fn loads(text: &[u8], first: usize) -> bool {
    let end = run(text, first, 12, |b| b.is_ascii_alphabetic() || b == b'-');
    let is_reader = is_one_of(&text[first..end], &[b"doc", b"document", b"doc-available", b"unparsed-text"]);
    let argument = text[end..].strip_prefix(b"('").or(text[end..].strip_prefix(b"(\""));
    is_reader
        && argument.is_some_and(|url| {
            [&b"http://"[..], b"https://", b"ftp://", b"file:"].iter().any(|scheme| url.starts_with(scheme))
        })
}

fn follows_sign(text: &[u8], at: usize) -> bool {
    matches!(text.get(skip_space(text, at)), Some(b'=' | b'!' | b'<' | b'>'))
}

const FUNCTIONS: &[&[u8]] = words!("xpath", "functions");

const AXES: &[&[u8]] = words!("xpath", "axes");

const HINTS: &[Hint] = hints!("xpath", "gate");

#[cfg(test)]
mod tests {
    use crate::Class::Xpath;
    use crate::Place;
    use crate::detectors::testing::{blocks, blocks_at, passes, passes_at};

    #[test]
    fn injections() {
        blocks(Xpath, "' or count(/*)=1 or 'a'='b", "function-of-path break-out");
        blocks(Xpath, "' and string-length(name(/*[1]))=5 and '1'='1", "function-of-name break-out");
        blocks(Xpath, "') and contains(../password,'c", "function-of-path break-out");
        blocks(Xpath, "x'] | //user/*[contains(*,'", "union");
        blocks(Xpath, "' or substring(//user[1]/password,1,1)='a", "function-of-path");
        blocks(Xpath, "1 or doc('http://a.example/x')", "document");
        blocks(Xpath, "' or child::node()[position()=1] or 'a'='b", "axis break-out");
        blocks(Xpath, "x' or true() or '", "function-of-path break-out");
        blocks(Xpath, "' or //*[1] or '", "function-of-path break-out");
        for text in [
            "x' or //* or '",
            "x' or ../@admin='1",
            "x' and //user[1]/password='x",
            "x'] /../*['1",
            "x']/../*['1",
            "x' or .//password or '",
            "x' or @admin='1",
            "x\" or /users/user=\"a",
            "x' or not(//x) or '",
            "x' or boolean(../secret) or 'a'='b",
            "') and exists(@admin) and ('1",
        ] {
            blocks(Xpath, text, "function-of-path break-out");
        }
        blocks(Xpath, "*|//text()", "union");
        blocks(Xpath, "doc('http://a.example/x')", "document whole");
    }

    #[test]
    fn text_before() {
        let words = "don't walk along the river with her, he said ".repeat(30);
        for attack in
            ["' or count(/*)=1 or 'a'='b", "') and contains(../password,'c", "x'] | //user/*[contains(*,'"]
        {
            blocks(Xpath, &format!("{words}{attack}"), "");
        }
    }

    #[test]
    fn predicates_of_constants() {
        blocks(Xpath, "//*[1=1]", "constant");
        blocks(Xpath, "'|/|'a", "union");
        passes_at(Xpath, Place::Query, "q", "//item[1]");
        passes_at(Xpath, Place::Query, "q", "//a[@id='x']");
    }

    #[test]
    fn ordinary() {
        passes(Xpath, "//div[@class='title']/text()");
        passes(Xpath, "std::string::contains(x)");
        passes(Xpath, "how do I count(items) in a list?");
        passes(Xpath, "Use child::para to select the children, or text() for the text.");
        passes(Xpath, "name(s) of the author(s)");
        passes(Xpath, "| //comment | a table |");
        passes(Xpath, "doc('users/ann')");
        passes(Xpath, "it's true or //a comment");
        passes(Xpath, "'a' or true() in the other one");
        for text in [
            "either/or and ../relative",
            "'a' and /etc are",
            "don't or //comment",
            "the dogs' or /opt/docs and others",
            "x['a']/y['b']",
            "$.a['b']/c[0]",
            "'src' or './lib'",
            "it's 'a' or @bob = 'c'",
            "the dogs' or not(e) or 'x'",
            "url('x') or not(//cdn.example/a.png)",
            "see (//example.org) or (./readme)",
        ] {
            passes_at(Xpath, Place::Query, "q", text);
        }
        let source = format!("//! Reads it, see\n{}\n#[doc(\"x\")]", "//! more\n".repeat(12));
        passes_at(Xpath, Place::FileContent, "file", &source);
        blocks_at(Xpath, Place::FileContent, "' or count(/*)=1 or 'a'='b", "break-out");
    }
}
