//! Patterns without a word that every match has, because one may begin with the text (`^`), but elsewhere
//! only with words.

use portcullis_types::ByteSet;

use super::pcre::Pcre;
use crate::{Folded, LiteralSet};

/// Shorter texts are read faster than looked at closer.
const TEXT_BYTES_MIN: usize = 128;

/// The bytes and words of which a text over an alphabet must have one before a match of a pattern can begin
/// after its first byte.
#[derive(Debug)]
pub(super) struct AfterStart {
    alphabet: ByteSet,
    bytes: ByteSet,
    words: LiteralSet,
}

impl AfterStart {
    fn of(pattern: &Pcre, alphabet: &ByteSet) -> Option<AfterStart> {
        let has_words = |words: &[Vec<Vec<u8>>]| !words.is_empty();
        if pattern.gates(alphabet).within.as_ref().is_none_or(|gate| has_words(&gate.words)) {
            return None;
        }
        pattern.gate_behind_start(alphabet)?.words.iter().find_map(|list| {
            let (bytes, words): (Vec<&[u8]>, Vec<&[u8]>) =
                list.iter().map(Vec::as_slice).partition(|word| word.len() == 1);
            let bytes = ByteSet::of(&bytes.concat()).in_both_cases();
            Some(AfterStart { alphabet: *alphabet, bytes, words: LiteralSet::new(&words)? })
        })
    }
}

impl Pcre {
    /// Returns whether the pattern matches in `hay`, a text of bytes of `alphabet` only, if its beginning
    /// alone decides; `None` where all of it has to be read, or that is faster. `buffer` is overwritten.
    /// Patterns in which every match has a word do not belong to these: their [gates](Pcre::gates) say more.
    pub fn decided_at_start(&self, alphabet: &ByteSet, hay: &[u8], buffer: &mut Vec<u8>) -> Option<bool> {
        if hay.len() < TEXT_BYTES_MIN {
            return None;
        }
        let known = self.after_start.get_or_init(|| AfterStart::of(self, alphabet).map(Box::new)).as_ref()?;
        let is_ruled_out = known.alphabet == *alphabet
            && !hay.iter().any(|&byte| known.bytes.contains(byte))
            && !known.words.may_be_in(Folded::of(hay, buffer));
        if is_ruled_out { self.is_match_at_start(hay) } else { None }
    }
}
