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
pub(super) struct Behind {
    classes: u64,
    words: FewWords,
}

impl Behind {
    fn of(regex: &Pcre) -> Option<Behind> {
        let gate = regex.gate_behind_start(&byte_classes::plain_bytes())?;
        gate.words.iter().find_map(|list| {
            let longer: Vec<&[u8]> = list.iter().map(Vec::as_slice).filter(|word| word.len() > 1).collect();
            Some(Behind { classes: byte_classes(list), words: FewWords::new(&longer)? })
        })
    }
}

impl Candidate {
    /// What the link's pattern says of this text of plain bytes, where its beginning alone decides; `folded` is a buffer.
    pub(super) fn decided_by_beginning(
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
        let behind = self.behind.get_or_init(|| Behind::of(regex)).as_ref()?;
        if behind.classes & text.classes != 0 {
            return None;
        }
        FewWords::fold(bytes, folded);
        if behind.words.may_stand_in(bytes, folded) { None } else { regex.is_match_at_start(bytes) }
    }
}
