//! A small evaluator of lookups.

/// Lookups open at once; where there are more the outermost is forgotten.
const DEPTH_MAX: usize = 24;

/// Bytes of a lookup's resolved text that are kept; more tells nothing new.
const LOOKUP_BYTES_MAX: usize = 160;

/// Bytes of all of them.
const TEXT_BYTES_MAX: usize = DEPTH_MAX * LOOKUP_BYTES_MAX;

/// Something that resolving showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Jndi,
    Built,
    Nameless,
    Case,
    Variable,
}

/// Walks a text and resolves its lookups, innermost first.
#[derive(Debug)]
pub(super) struct Resolver<'t> {
    text: &'t [u8],
    at: usize,
    /// What the open lookups resolve to so far, one after the other.
    resolved: [u8; TEXT_BYTES_MAX],
    len: usize,
    open: [Frame; DEPTH_MAX],
    depth: usize,
    pending: [Option<(Event, usize, usize)>; 2],
}

/// An open lookup.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    /// Where its text begins in `resolved`.
    start: usize,
    /// Where it begins in the value.
    at: usize,
    /// Letters that inner lookups gave.
    given: u16,
}

impl<'t> Resolver<'t> {
    pub fn new(text: &'t [u8]) -> Resolver<'t> {
        Resolver {
            text,
            at: 0,
            resolved: [0; TEXT_BYTES_MAX],
            len: 0,
            open: [Frame::default(); DEPTH_MAX],
            depth: 0,
            pending: [None; 2],
        }
    }

    /// The next event, with the bytes of the value that it comes from.
    pub fn next_event(&mut self) -> Option<(Event, usize, usize)> {
        loop {
            if let Some(event) = self.pending.iter_mut().find_map(Option::take) {
                return Some(event);
            }
            let Some(&b) = self.text.get(self.at) else { return self.unclosed() };
            match b {
                b'$' if self.text.get(self.at + 1) == Some(&b'{') => {
                    if self.depth == DEPTH_MAX {
                        self.forget_outermost();
                    }
                    self.open[self.depth] = Frame { start: self.len, at: self.at, given: 0 };
                    self.depth += 1;
                    self.at += 2;
                }
                b'}' if self.depth > 0 => {
                    self.at += 1;
                    self.close();
                }
                _ if self.depth == 0 => {
                    let next = memchr::memchr(b'$', &self.text[self.at + 1..]);
                    self.at = next.map_or(self.text.len(), |next| self.at + 1 + next);
                }
                b => {
                    self.push(b);
                    self.at += 1;
                }
            }
        }
    }

    fn forget_outermost(&mut self) {
        let start = self.open[1].start;
        self.open.copy_within(1.., 0);
        self.depth -= 1;
        self.open[..self.depth].iter_mut().for_each(|frame| frame.start -= start);
        self.resolved.copy_within(start..self.len, 0);
        self.len -= start;
    }

    fn push(&mut self, b: u8) {
        let start = self.depth.checked_sub(1).map_or(0, |innermost| self.open[innermost].start);
        if self.len - start >= LOOKUP_BYTES_MAX {
            return;
        }
        if let Some(place) = self.resolved.get_mut(self.len) {
            *place = b;
            self.len += 1;
        }
    }

    /// Resolves the innermost open lookup and puts the result into the one around it.
    fn close(&mut self) {
        self.depth -= 1;
        let frame = self.open[self.depth];
        let start = frame.start.min(self.len);
        let Resolved { text, len, event, is_letter } = resolve(&self.resolved[start..self.len]);
        self.len = start;
        if let Some(outer) = self.depth.checked_sub(1) {
            for &b in &text[..len] {
                self.push(b);
            }
            let outer = &mut self.open[outer];
            outer.given += u16::from(is_letter);
        }
        self.pending[0] = event.map(|event| (event, frame.at, self.at));
        if frame.given >= 2 {
            self.pending[1] = Some((Event::Built, frame.at, self.at));
        }
    }

    /// A lookup that the value does not close: another part of the message may.
    fn unclosed(&mut self) -> Option<(Event, usize, usize)> {
        while self.depth > 0 {
            self.depth -= 1;
            let frame = self.open[self.depth];
            let text = &self.resolved[frame.start.min(self.len)..self.len];
            self.len = frame.start.min(self.len);
            if starts_with(text, b"jndi:") {
                return Some((Event::Jndi, frame.at, self.text.len()));
            }
        }
        None
    }
}

/// The value of a lookup.
struct Resolved {
    text: [u8; 128],
    len: usize,
    event: Option<Event>,
    /// It gives a few letters that its writer chose.
    is_letter: bool,
}

impl Resolved {
    fn of(text: &[u8], event: Option<Event>, is_letter: bool) -> Resolved {
        let mut out = Resolved { text: [0; 128], len: text.len().min(128), event, is_letter };
        out.text[..out.len].copy_from_slice(&text[..out.len]);
        out
    }
}

/// Resolves `name:key:-default`, whose inner lookups are resolved already.
fn resolve(content: &[u8]) -> Resolved {
    if starts_with(content, b"jndi:") {
        return Resolved::of(b"", Some(Event::Jndi), false);
    }
    let colon = memchr::memchr(b':', content);
    let (name, rest) = match colon {
        Some(at) => (&content[..at], &content[at + 1..]),
        None => (content, &b""[..]),
    };
    let is = |known: &[u8]| colon.is_some() && name.eq_ignore_ascii_case(known);
    if is(b"lower") || is(b"upper") {
        let mut out = Resolved::of(rest, Some(Event::Case), true);
        fold(&mut out);
        return out;
    }
    if is(b"base64") {
        let mut out = base64(rest);
        // Its text is looked at as if it stood in a lookup of its own, as `${${base64:...}}` does.
        let inner = out.text[..out.len].strip_prefix(b"${").unwrap_or(&out.text[..out.len]);
        out.event = Some(if starts_with(inner, b"jndi:") { Event::Jndi } else { Event::Case });
        return out;
    }
    if is(b"date") && rest.contains(&b'\'') {
        let inner: &[u8] = rest.strip_prefix(b"'").and_then(|rest| rest.strip_suffix(b"'")).unwrap_or(rest);
        return Resolved::of(inner, Some(Event::Case), true);
    }
    let default = memchr::memmem::find(content, b":-").map(|at| (&content[..at], &content[at + 2..]));
    if let Some((before, default)) = default {
        // `${::-j}`, `${:-j}`: nothing that could be set.
        let is_nameless = before.iter().all(|&b| b == b':');
        let event = if is_nameless { Some(Event::Nameless) } else { variable(before) };
        return Resolved::of(default, event, default.len() <= 3 && is_chosen(default));
    }
    Resolved::of(b"", variable(content), false)
}

/// The letters that names of lookups are made of, and what stands between.
fn is_chosen(text: &[u8]) -> bool {
    text.is_empty() || text.iter().all(|&b| b.is_ascii_alphabetic() || matches!(b, b':' | b'/'))
}

/// Lookups that tell about the system.
fn variable(content: &[u8]) -> Option<Event> {
    const NAMES: &[&[u8]] = words!("log4j", "lookups");
    NAMES.iter().any(|name| starts_with(content, name)).then_some(Event::Variable)
}

fn starts_with(text: &[u8], start: &[u8]) -> bool {
    text.len() >= start.len() && text[..start.len()].eq_ignore_ascii_case(start)
}

/// Changing case takes some letters outside ASCII into it: dotless i, long s, the sign of kelvin.
fn fold(out: &mut Resolved) {
    let (mut from, mut to) = (0, 0);
    while from < out.len {
        let (letter, used) = match &out.text[from..out.len] {
            [0xC4, 0xB0 | 0xB1, ..] => (b'i', 2),
            [0xC5, 0xBF, ..] => (b's', 2),
            [0xE2, 0x84, 0xAA, ..] => (b'k', 3),
            rest => (rest[0].to_ascii_lowercase(), 1),
        };
        out.text[to] = letter;
        (from, to) = (from + used, to + 1);
    }
    out.len = to;
}

fn base64(text: &[u8]) -> Resolved {
    let mut out = Resolved::of(b"", None, true);
    let (mut bits, mut have) = (0u32, 0u32);
    for &b in text {
        let value = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        have += 6;
        if have >= 8 && out.len < out.text.len() {
            have -= 8;
            out.text[out.len] = (bits >> have) as u8;
            out.len += 1;
        }
    }
    out
}
