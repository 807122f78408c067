//! Line ends that begin a header field, a response or a log line of their own.
//!
//! A text area has line ends too; what it does not have is a line that a browser would take for a header of a
//! response. In a place that is one line by nature (the path, a header, a cookie, a file's name) an encoded
//! line end alone is odd.

use portcullis_types::Span;

use super::purpose;
use super::scan::{is_one_of, is_word, run};
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, KindId, Layer, Place, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-community/vulnerabilities/CRLF_Injection";
    RESPONSE_HEADER "crlf.response-header" Critical Quotable "a line that is a header field of a response";
    STATUS_LINE "crlf.status-line" Critical Quotable "a line that begins another response or request";
    BODY "crlf.body" Error Quotable "an empty line, and markup after it: the body of a response";
    LOOK_ALIKE "crlf.look-alike" Error Quotable
        "characters that become line ends when their high byte is cut off";
    LOOK_ALIKES "crlf.look-alikes" Critical Quotable "two such characters side by side";
    WRITTEN "crlf.written" Notice Quotable "line ends written as escapes";
    ONE_LINE "crlf.one-line" Error Quotable "a line end in a place that is one line";
    STORE_COMMAND "crlf.store-command" Critical Quotable "a line that is a command to Redis or memcached";
    ENCODED "crlf.encoded" Notice Quotable "the line end was encoded within the value";
}

/// See the module.
#[derive(Debug)]
pub struct Crlf;

/// Line ends of a message that is pasted into a text; an injection needs fewer.
const PASTED_LINES_MIN: usize = 4;

static PROFILE: Profile = Profile::new(Class::Crlf, KINDS).needs(ByteGroups::of(b"\r\\\x80")).hints(HINTS);

impl Detector for Crlf {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        let place = input.location.place;
        if matches!(place, Place::FileContent | Place::Text) || input.is_json {
            return;
        }
        let is_one_line = matches!(
            place,
            Place::PathSegment | Place::Header | Place::Cookie | Place::FileName | Place::HeaderName
        );
        let takes_any_field = is_one_line || place == Place::Query;
        // Many lines are a text; the headers of a mail or a log in it are quoted.
        let lines = memchr::memchr_iter(b'\n', text).take(20).count();
        let is_pasted = lines >= PASTED_LINES_MIN && purpose::takes_text(input.location);
        let takes_headers = purpose::takes_headers(input.location);
        // Programs report the header fields of a message in JSON.
        let may_be_block =
            place == Place::Json || input.layers.iter().any(|layer| matches!(layer, Layer::Json));
        let mut at = 0;
        let mut line_start = 0;
        while at < text.len() {
            let Some((start, next, writing)) = line_end(text, at) else { break };
            at = next;
            let before = &text[line_start..start];
            line_start = next;
            let mut add = |kind: KindId, to: usize| {
                let span = Span::new(start, to.min(text.len()));
                match is_pasted {
                    _ if takes_headers => found.suppress(kind, span, "header-fields"),
                    true => found.mention(kind, span),
                    false => found.add(kind, span),
                }
            };
            if writing == Writing::LookAlike {
                add(LOOK_ALIKE, next);
                // U+560A and U+560D side by side are in no text.
                if next - start >= 6 {
                    add(LOOK_ALIKES, next);
                }
            }
            let line = next + text[next..].iter().take(4).take_while(|b| matches!(b, b' ' | b'\t')).count();
            // `/a%0d%0aAny-Header:x`: a line end within the path of an address.
            let is_path = at == next && takes_any_field && is_address(&text[..start]);
            let Some(kind) = line_kind(text, line, takes_any_field, is_path) else {
                if is_one_line && writing == Writing::Plain && next < text.len() && place != Place::Header {
                    add(ONE_LINE, next);
                }
                continue;
            };
            if kind == STORE_COMMAND && !takes_headers && purpose::takes_text(input.location) {
                found.mention(kind, Span::new(start, text.len().min(line + 24)));
                continue;
            }
            // The block began before: what injects a field writes it after something else.
            if may_be_block && is_of_block(before) {
                continue;
            }
            add(kind, line + 24);
            match writing {
                Writing::Escape => add(WRITTEN, next),
                _ if !input.layers.is_empty() => add(ENCODED, next),
                Writing::Plain | Writing::LookAlike => {}
            }
        }
    }
}

/// A line of a message's head: a field, or what a request or response begins with.
fn is_of_block(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let is_start = line.starts_with(b"HTTP/")
        || memchr::memmem::find(&line[line.len().saturating_sub(10)..], b" HTTP/").is_some();
    let name = line.iter().take(64).take_while(|b| b.is_ascii_alphanumeric() || **b == b'-').count();
    is_start || name > 1 && line.get(name) == Some(&b':') && line.get(name + 1) != Some(&b'/')
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Writing {
    Plain,
    Escape,
    LookAlike,
}

/// The next run of line ends from `from` on: where it begins, where the line after it does, and how it was
/// written.
fn line_end(text: &[u8], from: usize) -> Option<(usize, usize, Writing)> {
    let mut at = from;
    loop {
        at += text.get(at..)?.iter().position(|b| matches!(b, b'\r' | b'\n' | b'\\' | 0xE5))?;
        let (next, writing) = one(text, at);
        if next > at {
            let mut end = next;
            loop {
                let (more, _) = one(text, end);
                if more == end {
                    return Some((at, end, writing));
                }
                end = more;
            }
        }
        at += 1;
    }
}

/// The offset after the line end at `at`; `at` itself if there is none.
fn one(text: &[u8], at: usize) -> (usize, Writing) {
    match text.get(at..).unwrap_or_default() {
        [b'\r' | b'\n', ..] => (at + 1, Writing::Plain),
        [b'\\', b'r' | b'n', ..] => (at + 2, Writing::Escape),
        // U+560A and U+560D
        [0xE5, 0x98, 0x8A | 0x8D, ..] => (at + 3, Writing::LookAlike),
        _ => (at, Writing::Plain),
    }
}

/// `/`, `/a/b`, `http://host/a`: an address without a query, which is all that stands before its first line
/// end.
fn is_address(text: &[u8]) -> bool {
    let is_part = |b: &u8| b.is_ascii_graphic() && !b"?&=<>\"".contains(b);
    (text.starts_with(b"/") || text.starts_with(b"http")) && text.iter().all(is_part)
}

/// `*1\r\n$8\r\nFLUSHALL`, `set key 0 3600 4`, `CONFIG SET dir /var/www`: what Redis and memcached take for a
/// command of its own.
fn is_store_command(rest: &[u8]) -> bool {
    let line = &rest[..memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len()).min(160)];
    let is_number = |word: &[u8]| !word.is_empty() && word.len() <= 10 && word.iter().all(u8::is_ascii_digit);
    if let Some(count) = line.strip_prefix(b"*").filter(|count| is_number(count)) {
        let next = rest[1 + count.len()..].trim_ascii_start();
        return next.strip_prefix(b"$").is_some_and(|next| next.first().is_some_and(u8::is_ascii_digit));
    }
    let mut words = line.split(|b| *b == b' ');
    let mut word = || words.next().unwrap_or_default();
    let (first, second) = (word(), word());
    let is = |word: &[u8], known: &[&[u8]]| known.iter().any(|known| word.eq_ignore_ascii_case(known));
    // Keys have no spaces: name, flags, time, bytes.
    if is(first, &[b"set", b"add", b"replace", b"append", b"prepend", b"cas"]) {
        let numbers = [word(), word(), word()];
        return !second.is_empty() && numbers.into_iter().all(is_number) && rest.len() > line.len();
    }
    let third = word();
    is(first, &[b"config"]) && is(second, &[b"set"]) && !third.is_empty()
        || is(first, &[b"slaveof", b"replicaof"]) && is_number(third)
        || is(first, &[b"module"]) && is(second, &[b"load"]) && third.starts_with(b"/")
        || is(first, &[b"eval"]) && matches!(second.first(), Some(b'"' | b'\''))
        || is(first, &[b"flushall", b"flushdb"]) && second.is_empty()
}

fn line_kind(text: &[u8], line: usize, takes_any_field: bool, is_path: bool) -> Option<KindId> {
    let rest = text.get(line..)?;
    if is_store_command(rest) {
        return Some(STORE_COMMAND);
    }
    if rest.starts_with(b"HTTP/1.") || rest.starts_with(b"HTTP/2 ") {
        return Some(STATUS_LINE);
    }
    if [&b"GET /"[..], b"POST /", b"PUT /", b"DELETE /"].iter().any(|start| rest.starts_with(start))
        && memchr::memmem::find(&rest[..rest.len().min(400)], b"HTTP/1.").is_some()
    {
        return Some(STATUS_LINE);
    }
    if rest.first() == Some(&b'<') && line >= 4 && empty_line_before(text, line) {
        let end = run(rest, 1, 12, is_word);
        return is_one_of(&rest[1..end], &[b"html", b"script", b"svg", b"body", b"img", b"iframe", b"h1"])
            .then_some(BODY);
    }
    let mut name = [0u8; 40];
    let mut len = 0;
    let mut end = line;
    // With or without its hyphens.
    while let Some(&b) = text.get(end).filter(|b| b.is_ascii_alphanumeric() || **b == b'-') {
        if b != b'-' {
            *name.get_mut(len)? = b.to_ascii_lowercase();
            len += 1;
        }
        end += 1;
    }
    if text.get(end) != Some(&b':') {
        return None;
    }
    let body = &text[end + 1..];
    let body = &body[..memchr::memchr2(b'\r', b'\n', body).unwrap_or(body.len())];
    let name = &name[..len];
    // Where no text stands, a field that nobody has heard of is one, too.
    let is_header = HEADERS.contains(&name) && is_field_value(name, body.trim_ascii())
        || takes_any_field && rest.len() > 3 && rest[..2].eq_ignore_ascii_case(b"x-")
        || is_path && len > 1 && !body.trim_ascii().is_empty();
    is_header.then_some(RESPONSE_HEADER)
}

/// `Location: Room 5` is a line of a letter; a field's value is what a browser can use. What is cut off may
/// go on elsewhere.
fn is_field_value(name: &[u8], value: &[u8]) -> bool {
    let has = |byte: u8| memchr::memchr(byte, value).is_some();
    match name {
        b"location" if value.starts_with(b"(") => false,
        b"location" => has(b'/') || has(b':') || has(b'%') || has(b'.') && !has(b' '),
        b"setcookie" | b"setcookie2" | b"cookie" => has(b'='),
        b"contentlength" => !value.is_empty() && value.iter().all(u8::is_ascii_digit),
        b"contenttype" => has(b'/'),
        b"refresh" => value.first().is_some_and(u8::is_ascii_digit),
        b"link" => has(b'<'),
        b"host" | b"connection" => !has(b' '),
        _ => !value.is_empty(),
    }
}

fn empty_line_before(text: &[u8], line: usize) -> bool {
    let before = text[..line].iter().rev().take(4).filter(|b| **b == b'\n').count();
    before >= 2
}

/// Header fields of responses, and of requests where proxies add lines, without hyphens.
const HEADERS: &[&[u8]] = words!("crlf", "header-fields");

const HINTS: &[Hint] = hints!("crlf", "gate");

#[cfg(test)]
mod tests {
    use crate::Class::Crlf;
    use crate::Place;
    use crate::detectors::testing::{blocks, blocks_at, look, passes, passes_at};

    #[test]
    fn headers() {
        blocks(Crlf, "x\r\nSet-Cookie: a=b", "response-header");
        blocks(Crlf, "%0d%0aLocation:%20http://a.example", "response-header encoded");
        blocks(Crlf, "en\nContentLength: 0\n\nHTTP/1.1 200 OK", "response-header status-line");
        blocks(Crlf, "\u{560A}\u{560D}content-type:text/html", "look-alike response-header");
        blocks(Crlf, "\u{560A}\u{560D}Location:x", "look-alikes");
        blocks(Crlf, "a\\r\\nSet-Cookie: x=1", "response-header written");
        blocks_at(Crlf, Place::Cookie, "en%0d%0aX-Any: 1", "response-header encoded");
        blocks(Crlf, "1\r\nX-Any: 1", "response-header");
        blocks(Crlf, "/a%0d%0aAny-Header:x", "response-header encoded");
        for text in [
            "key\r\nset injected 0 3600 4\r\ndata\r\n",
            "x\r\n*1\r\n$8\r\nFLUSHALL\r\n",
            "x\r\nCONFIG SET dir /var/www\r\n",
            "x\nslaveof 10.0.0.1 6379\n",
        ] {
            blocks(Crlf, text, "store-command");
        }
        blocks_at(Crlf, Place::PathSegment, "a\r\nX-XSS-Protection: 0", "response-header");
    }

    #[test]
    fn ordinary() {
        passes(Crlf, "Dear all,\r\n\r\nthe plan: we meet at noon.\r\nBring: cake.\r\n\r\nBest, Ann");
        passes(
            Crlf,
            "Date: Monday\r\nLocation: Room 5\r\nLocation: (of the server, SERVER:/PATH)\r\nLink: see below\r\nHost: the whole family\r\n",
        );
        let post = "I send:\nPOST /api HTTP/1.1\nHost: a.example\nContent-Type: text/html\n\n{}\nand get 500";
        passes_at(Crlf, Place::Form, "post", post);
        let (have, is_blocked) = look(Crlf, Place::Form, "post", b"a\r\nSet-Cookie: b=c");
        assert!(is_blocked, "{have}");
        blocks_at(Crlf, Place::Form, post, "response-header status-line");
        let head =
            "HTTP/1.1 200 OK\r\ncache-control: no-store\r\ncontent-type: application/json\r\nx-id: 1\r\n";
        passes_at(Crlf, Place::Json, "event.raw", head);
        passes_at(Crlf, Place::Json, "r", &head[17..]);
        passes_at(Crlf, Place::Json, "responseHeaders", "x\r\nset-cookie: a=b; path=/");
        passes_at(Crlf, Place::Form, "data", "{\"h\":\"date: Mon\\r\\ncontent-type: text/html\\r\\n\"}");
        blocks_at(Crlf, Place::Json, "x\r\nset-cookie: a=b; path=/", "response-header");
        // However many lines stand before it.
        let lines = "one line\n".repeat(80);
        blocks(Crlf, &format!("{lines}x\r\nSet-Cookie: a=b"), "response-header");
        passes_at(Crlf, Place::Query, "q", "a\nset the table for 4\n*12 cups\nadd 2 3 eggs\nconfig settings");
        passes_at(Crlf, Place::Query, "q", "/a/b?body=hello\r\nNote: x");
        passes(Crlf, "C:\\new\\reports");
        passes_at(Crlf, Place::Json, "json.text", "line one\nline two\n<b>bold</b>");
    }
}
