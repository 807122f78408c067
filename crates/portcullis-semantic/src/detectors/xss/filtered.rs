//! A text as filters leave it, or as readers that browsers no longer are: without tags, without the white
//! space in them, with seven bits, with Netscape's entities.

use portcullis_types::Span;

use super::effects::Effects;
use super::script::{walk_code, walk_script};
use super::{EVENT_SINK, JS_ENTITY, SPACED_TAG, Xss, attribute_value, next_event};
use crate::Found;

impl Xss {
    /// The text as a filter leaves it that takes tags out: `"o<x>nclick=...`.
    pub(super) fn without_tags(&self, text: &[u8], found: &mut Found<'_>) {
        let is_part = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'(');
        // A tag between letters: only what ends at the next `>` counts, each of which ends one tag.
        let mut open = None;
        let is_cut = memchr::memchr2_iter(b'<', b'>', text).any(|at| match (text[at], open) {
            (b'<', None) => {
                open = Some(at);
                false
            }
            (b'<', Some(_)) => false,
            (_, from) => {
                open = None;
                from.is_some_and(|from: usize| from > 0 && text[from - 1].is_ascii_alphanumeric())
                    && is_part(text.get(at + 1))
            }
        });
        if !is_cut || !found.may_read(text.len()) {
            return;
        }
        let mut plain = Vec::with_capacity(text.len());
        let mut in_tag = false;
        for &b in text {
            match b {
                b'<' => in_tag = true,
                b'>' if in_tag => in_tag = false,
                _ if !in_tag => plain.push(b),
                _ => {}
            }
        }
        let mut at = 0;
        while let Some(name) = next_event(&plain, at) {
            at = name + memchr::memchr(b'=', &plain[name..]).unwrap_or(0) + 1;
            let (from, end) = attribute_value(&plain, at);
            let outcome = walk_code(&plain[..end], from, &self.names);
            if outcome.effects.any(Effects::SINKS) {
                found.add(EVENT_SINK, Span::new(0, text.len()));
                return;
            }
            if !found.may_walk(outcome.bytes_read, outcome.tokens as usize) {
                return;
            }
        }
    }

    /// `< script >alert(1)`, `<%script>`: tags to a filter that takes white space and signs out of them.
    pub(super) fn spaced_tag(&self, text: &[u8], found: &mut Found<'_>) {
        for at in memchr::memchr_iter(b'<', text) {
            let rest = &text[at + 1..];
            let is_seam = |b: &&u8| b.is_ascii_whitespace() || **b == b'%';
            let lead = rest.iter().take_while(is_seam).count();
            let Some(name) = rest.get(lead..lead + 6) else { continue };
            if lead == 0 || !name.eq_ignore_ascii_case(b"script") {
                continue;
            }
            let end = lead + 6 + rest[lead + 6..].iter().take_while(is_seam).count();
            if rest.get(end) == Some(&b'>') {
                let outcome = walk_script(text, at + 1 + end + 1, &self.names);
                if outcome.effects.any(Effects::SINKS) && !outcome.is_worded {
                    found.add(SPACED_TAG, Span::new(at, outcome.end.max(at)));
                    return;
                }
                if !found.may_walk(outcome.bytes_read, outcome.tokens as usize) {
                    return;
                }
            }
        }
    }

    /// `&{alert(1)};`, also as a list of signs that tries what comes through: `=&{()}`.
    pub(super) fn entity(&self, text: &[u8], found: &mut Found<'_>) {
        for at in memchr::memmem::find_iter(text, b"&{") {
            let Some(len) = memchr::memchr(b'}', &text[at + 2..]) else { return };
            let end = at + 2 + len;
            if !found.may_read(len) {
                return;
            }
            let sinks = || walk_code(&text[..end], at + 2, &self.names).effects.any(Effects::SINKS);
            if text[at + 2..end] == *b"()" || sinks() {
                found.add(JS_ENTITY, Span::new(at, end + 1));
                return;
            }
        }
    }
}

/// Text of seven bits, as a reader of `us-ascii` makes it of bytes that have eight: `\xBCscript\xBE` is a
/// tag. `None` if no tag shows itself so.
pub(super) fn seven_bits(text: &[u8]) -> Option<Vec<u8>> {
    let opens = |at: usize| {
        // Not the second byte of a letter in UTF-8.
        let is_sign = at == 0 || !matches!(text[at - 1], 0x80..=0xC1 | 0xC3..);
        is_sign && text.get(at + 1).is_some_and(|b| b.is_ascii_alphabetic() || *b == b'/')
    };
    let is_one = memchr::memchr_iter(0xBC, text).any(opens) && memchr::memchr(0xBE, text).is_some();
    if !is_one {
        return None;
    }
    // Written as UTF-8 the byte has another one before it.
    Some(text.iter().filter(|b| **b != 0xC2).map(|b| b & 0x7F).collect())
}
