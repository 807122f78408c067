//! Request time: patterns without a word that every match has, because one may begin with the text (`^`), but elsewhere only with words.

use portcullis_match::{FewWords, Pcre};

use crate::operator::{Operator, Pattern};
use crate::plan::Link;

use super::scan::Text;
use super::word_lists::byte_classes;
use super::{Candidate, byte_classes};

/// Shorter texts are read faster than looked at closer.
const TEXT_BYTES_MIN: usize = 128;

/// What a text of plain bytes must have before a match of a pattern can begin behind its first byte: one of these.
#[derive(Debug)]
pub(super) struct AfterStart {
    classes: u64,
    words: FewWords,
}

impl AfterStart {
    fn of(regex: &Pcre) -> Option<AfterStart> {
        let gate = regex.gate_behind_start(&byte_classes::plain_bytes())?;
        gate.words.iter().find_map(|list| {
            let longer: Vec<&[u8]> = list.iter().map(Vec::as_slice).filter(|word| word.len() > 1).collect();
            Some(AfterStart { classes: byte_classes(list), words: FewWords::new(&longer)? })
        })
    }
}

impl Candidate {
    /// What the link's pattern says of this text of plain bytes, where its beginning alone decides; `folded` is a buffer.
    pub(super) fn decided_at_start(
        &self,
        link: &Link,
        text: &Text,
        bytes: &[u8],
        folded: &mut Vec<u8>,
    ) -> Option<bool> {
        let Operator::Rx(Pattern::Fixed(regex)) = &link.operator else { return None };
        if bytes.len() < TEXT_BYTES_MIN || link.negated {
            return None;
        }
        let after_start = self.after_start.get_or_init(|| AfterStart::of(regex)).as_ref()?;
        if after_start.classes & text.classes != 0 {
            return None;
        }
        FewWords::fold(bytes, folded);
        if after_start.words.may_stand_in(bytes, folded) { None } else { regex.is_match_at_start(bytes) }
    }
}
