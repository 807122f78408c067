//! Looks words and phrases up, in any case of ASCII letters.
//!
//! A hash table made at compile time: the hash reads only the first and last eight bytes and the length, so
//! it costs the same for any word; what it finds is compared in full.

use super::token::{TokenKind, VALUE_BYTES_MAX};
use super::words_data::WORDS;

/// Returns the kind of the word, if it is a known one.
pub(super) fn kind_of(word: &[u8]) -> Option<TokenKind> {
    find(word).map(|(_, kind)| kind)
}

fn find(word: &[u8]) -> Option<(&'static str, TokenKind)> {
    if !(2..=WORD_BYTES_MAX).contains(&word.len()) {
        return None;
    }
    let hash = hash(word);
    let mut slot = slot_of(hash);
    loop {
        let entry = SLOTS[slot];
        if entry == EMPTY {
            return None;
        }
        if entry & TAG_MASK == tag_of(hash) {
            let (known, kind) = WORDS[entry as usize & INDEX_MASK];
            if known.as_bytes().eq_ignore_ascii_case(word) {
                return Some((known, kind));
            }
        }
        slot = (slot + 1) % SLOT_COUNT;
    }
}

/// Returns the kind of the two words together, with the phrase's own spelling.
pub(super) fn phrase_of(first: &[u8], second: &[u8]) -> Option<(&'static [u8], TokenKind)> {
    // Most neighbours are prose, and their initials show it.
    let (a, b) = (letter_index(*first.first()?)?, letter_index(*second.first()?)?);
    if PHRASE_INITIALS[a] & 1 << b == 0 {
        return None;
    }
    let len = first.len() + 1 + second.len();
    let mut phrase = [b' '; VALUE_BYTES_MAX];
    phrase.get_mut(..first.len())?.copy_from_slice(first);
    phrase.get_mut(first.len() + 1..len)?.copy_from_slice(second);
    find(&phrase[..len]).map(|(spelling, kind)| (spelling.as_bytes(), kind))
}

const WORD_BYTES_MAX: usize = 29;
const SLOT_COUNT: usize = 2048;

// An entry: 22 bits of the hash, then 10 bits of the index into WORDS.
const INDEX_MASK: usize = 0x3ff;
const TAG_MASK: u32 = !0x3ff;
const EMPTY: u32 = u32::MAX;

static SLOTS: [u32; SLOT_COUNT] = {
    assert!(WORDS.len() < INDEX_MASK && WORDS.len() < SLOT_COUNT);
    let mut slots = [EMPTY; SLOT_COUNT];
    let mut index = 0;
    while index < WORDS.len() {
        let word = WORDS[index].0.as_bytes();
        assert!(word.len() >= 2 && word.len() <= WORD_BYTES_MAX);
        let hash = hash(word);
        let mut slot = slot_of(hash);
        while slots[slot] != EMPTY {
            slot = (slot + 1) % SLOT_COUNT;
        }
        slots[slot] = tag_of(hash) | index as u32;
        index += 1;
    }
    slots
};

const fn slot_of(hash: u64) -> usize {
    (hash >> 53) as usize
}

const fn tag_of(hash: u64) -> u32 {
    (hash >> 16) as u32 & TAG_MASK
}

const fn hash(word: &[u8]) -> u64 {
    let (head, tail) = match word.len() {
        len @ 8.. => (eight(word, 0), eight(word, len - 8)),
        len @ 4.. => (four(word, 0), four(word, len - 4)),
        len => (word[0] as u64, (word[len - 1] as u64) << 8 | word[1] as u64),
    };
    // Clearing bit 5 folds the case of letters; that it folds a few other bytes too only makes equal hashes
    // likelier.
    const FOLD: u64 = 0xdfdf_dfdf_dfdf_dfdf;
    let mixed = (head & FOLD).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (tail & FOLD).wrapping_mul(0xc2b2_ae3d_27d4_eb4f).rotate_left(32)
        ^ word.len() as u64;
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 32
}

const fn eight(word: &[u8], at: usize) -> u64 {
    match word.split_at(at).1.first_chunk::<8>() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => 0,
    }
}

const fn four(word: &[u8], at: usize) -> u64 {
    match word.split_at(at).1.first_chunk::<4>() {
        Some(bytes) => u32::from_le_bytes(*bytes) as u64,
        None => 0,
    }
}

/// For the initial of a phrase's first part, the initials of the parts that may follow, as bits.
static PHRASE_INITIALS: [u32; 26] = {
    let mut table = [0; 26];
    let mut index = 0;
    while index < WORDS.len() {
        let word = WORDS[index].0.as_bytes();
        let mut at = 1;
        while at + 1 < word.len() {
            if word[at] == b' ' {
                // Phrases grow part by part, so either side of any blank may be a part.
                table[(word[0] - b'A') as usize] |= 1 << (word[at + 1] - b'A');
            }
            at += 1;
        }
        index += 1;
    }
    table
};

fn letter_index(byte: u8) -> Option<usize> {
    byte.is_ascii_alphabetic().then(|| usize::from(byte & 0x1f) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_sorted_upper_case_and_without_doubles() {
        assert!(WORDS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (word, _) in WORDS {
            assert!(
                word.len() <= WORD_BYTES_MAX && !word.bytes().any(|byte| byte.is_ascii_lowercase()),
                "{word}"
            );
        }
    }

    #[test]
    fn every_word_is_found_in_any_case() {
        for (word, kind) in WORDS {
            assert_eq!(kind_of(word.as_bytes()), Some(kind), "{word}");
            assert_eq!(kind_of(word.to_ascii_lowercase().as_bytes()), Some(kind), "{word}");
        }
    }

    #[test]
    fn other_words_are_not() {
        for word in [&b""[..], b"a", b"selec", b"selects", b"sel\0ct", b"0&1", b"\xff\xff\xff", &[b'a'; 300]]
        {
            assert_eq!(kind_of(word), None);
        }
    }

    #[test]
    fn every_phrase_is_found_however_it_is_cut() {
        let mut phrases = 0;
        for (word, kind) in WORDS.iter().filter(|(word, _)| word.contains(' ')) {
            phrases += 1;
            for (at, _) in word.match_indices(' ') {
                let (first, second) = (&word[..at], word[at + 1..].to_ascii_lowercase());
                assert_eq!(phrase_of(first.as_bytes(), second.as_bytes()), Some((word.as_bytes(), *kind)));
            }
        }
        assert_eq!(phrases, 108);
        assert_eq!(phrase_of(b"order", b"form"), None);
        assert_eq!(phrase_of(b"", b"by"), None);
        assert_eq!(phrase_of(b"order", b""), None);
        assert_eq!(phrase_of(&[b'a'; 31], &[b't'; 31]), None);
    }
}
