//! The bounds on texts whose macros are replaced.
//!
//! A rule may put a value into itself (`setvar:'tx.a=%{tx.a}%{tx.a}'`) and run for each of many arguments, so
//! texts can double with every match. One text takes at most [`Settings::expansion_limit`] bytes, and all
//! that
//! a transaction keeps at most [`Settings::expansions_limit`]. What goes beyond is cut off and counted, and
//! the transaction says so like of a pattern that was given up: `TX:MSC_PCRE_LIMITS_EXCEEDED`.

use crate::Settings;

/// Bytes of texts that are worked out at load time, which every transaction begins with.
const LOAD_BYTES_MAX: usize = 64 << 10;

/// The bytes that expanded texts of a transaction may still take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expansions {
    text_max: usize,
    left: usize,
    /// Texts that were cut.
    pub(crate) cut: u64,
}

impl Expansions {
    /// Bytes of `msg` and of `logdata` of a match: logs show less, so a longer one is cut without a count.
    pub(crate) const LOG_TEXT_BYTES_MAX: usize = 16 << 10;

    pub(crate) fn new(settings: &Settings) -> Expansions {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Expansions { text_max: size(settings.expansion_limit), left: size(settings.expansions_limit), cut: 0 }
    }

    /// For texts that are worked out at load time, where `made` bytes of them are there already.
    pub(crate) fn at_load(made: usize) -> Expansions {
        Expansions { text_max: LOAD_BYTES_MAX, left: LOAD_BYTES_MAX.saturating_sub(made), cut: 0 }
    }

    /// Bytes of a text that is used at once.
    pub(crate) fn text_max(&self) -> usize {
        self.text_max
    }

    /// Bytes of a text that the transaction keeps.
    pub(crate) fn kept_max(&self) -> usize {
        self.text_max.min(self.left)
    }

    /// Gives back the bytes of a text that was kept last.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(bytes);
    }

    /// Takes the bytes of a text that is kept.
    pub(crate) fn keep(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}

impl Default for Expansions {
    fn default() -> Expansions {
        Expansions::new(&Settings::default())
    }
}

/// Appends what fits of `text` to `out`, which may grow to `end` bytes; false if something did not.
pub(crate) fn append(out: &mut Vec<u8>, end: usize, text: &[u8]) -> bool {
    let room = end.saturating_sub(out.len());
    let fits = text.len() <= room;
    out.extend_from_slice(if fits { text } else { &text[..room] });
    fits
}
