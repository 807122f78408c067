//! Readings that a text repeats: `["",""],["",""],...`, `'' '' ''`.
//!
//! A reading that meets no word depends on what stands behind its quote, up to where it ended and a little
//! further. Where the same bytes stand behind a later quote, it would find the same again, which counts once.
//! So a text of empty strings costs what it costs to compare it, and leaves the allowance of the message to
//! the rest of it.

use super::quotes::Place;
use super::walk::Walk;

/// Readings that are kept: a period of a text has no more quotes.
const KEPT: usize = 8;
/// Bytes behind the end of a reading that it may have looked at: those of the next token.
const AHEAD_BYTES: usize = 64;
/// Bytes of them that are no white space.
const AHEAD_SIGNS_MIN: usize = 16;
/// A longer reading is not kept.
const READING_BYTES_MAX: usize = 1_024;

#[derive(Clone, Copy, Debug)]
struct Reading {
    place: Place,
    /// Where the bytes end that it depends on.
    end: usize,
}

/// The last readings after quotes of one sort.
#[derive(Debug, Default)]
pub(super) struct Readings {
    last: [Option<Reading>; KEPT],
    next: usize,
}

impl Readings {
    /// Keeps the reading of `text` that `walk` has done after the quote at `place`.
    pub fn note(&mut self, text: &[u8], place: Place, walk: &Walk<'_, '_>) {
        let from = place.at + 1;
        let end = from + walk.bytes_passed();
        let Some(ahead) = text.get(end..end + AHEAD_BYTES) else { return };
        // A comment hides the token behind it.
        let is_seen = ahead.iter().filter(|b| !b.is_ascii_whitespace()).count() >= AHEAD_SIGNS_MIN
            && !ahead.windows(2).any(|pair| matches!(pair, b"/*" | b"--"))
            && memchr::memchr(b'#', ahead).is_none();
        if is_seen && !walk.has_met_word() && end - from <= READING_BYTES_MAX {
            self.last[self.next] = Some(Reading { place, end: end + AHEAD_BYTES });
            self.next = (self.next + 1) % KEPT;
        }
    }

    /// One of the readings would be repeated after the quote at `place`.
    pub fn repeats(&self, text: &[u8], place: Place) -> bool {
        self.last.iter().flatten().any(|reading| {
            let known = &text[reading.place.at + 1..reading.end];
            let is_same_place = Place { at: place.at, ..reading.place } == place;
            is_same_place && text[place.at + 1..].starts_with(known)
        })
    }
}
