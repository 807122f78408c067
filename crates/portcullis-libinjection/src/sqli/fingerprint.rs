//! Fingerprints, and the set of those that mean an attack.

use std::fmt;

use super::TOKENS_MAX;
use super::token::{Token, TokenKind};

/// The kinds of up to five tokens, a letter each, such as `s&1c`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// NUL after the letters.
    letters: [u8; 8],
}

impl Fingerprint {
    /// Of folded tokens. One evil token makes everything evil: what others around it are cannot be known.
    pub fn of(tokens: &[Token<'_>]) -> Self {
        let mut letters = [0; 8];
        if tokens.iter().any(|token| token.kind == TokenKind::Evil) {
            letters[0] = TokenKind::Evil.letter();
        } else {
            for (letter, token) in letters.iter_mut().zip(tokens.iter().take(TOKENS_MAX)) {
                *letter = token.kind.letter();
            }
        }
        Fingerprint { letters }
    }

    /// The letters.
    pub fn as_str(&self) -> &str {
        // The letters are ASCII, so the default is never taken.
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// The letters.
    pub fn as_bytes(&self) -> &[u8] {
        let len = self.letters.iter().position(|&letter| letter == 0).unwrap_or(self.letters.len());
        &self.letters[..len]
    }

    /// Returns true if the set of attacks has it. That is not the verdict yet: short ones need a closer look
    /// at the tokens.
    pub fn is_suspicious(&self) -> bool {
        let key = key(&self.letters);
        let mut slot = slot_of(key);
        loop {
            match SLOTS[slot] {
                EMPTY => return false,
                entry if entry == key => return true,
                _ => slot = (slot + 1) % SLOT_COUNT,
            }
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// One fingerprint a line, after comment lines that begin with `#`.
const LIST: &[u8] = include_bytes!("fingerprints.txt");
const COUNT: usize = 8367;

/// The set as an open-addressed hash table of keys, made at compile time.
static SLOTS: [u32; SLOT_COUNT] = {
    let mut slots = [EMPTY; SLOT_COUNT];
    let mut count = 0;
    let mut line = [0; 8];
    let mut len = 0;
    let mut at = 0;
    while at < LIST.len() {
        if LIST[at] != b'\n' {
            if len < line.len() {
                line[len] = LIST[at];
            }
            len += 1;
        } else {
            if line[0] != b'#' {
                assert!(len >= 1 && len <= TOKENS_MAX);
                let key = key(&line);
                let mut slot = slot_of(key);
                while slots[slot] != EMPTY {
                    slot = (slot + 1) % SLOT_COUNT;
                }
                slots[slot] = key;
                count += 1;
            }
            line = [0; 8];
            len = 0;
        }
        at += 1;
    }
    assert!(count == COUNT);
    slots
};

const SLOT_COUNT: usize = 1 << 14;
const EMPTY: u32 = u32::MAX;

const fn slot_of(key: u32) -> usize {
    (key.wrapping_mul(0x9e37_79b1) >> 18) as usize
}

/// Five bits a letter.
const fn key(letters: &[u8; 8]) -> u32 {
    let mut key = 0;
    let mut i = 0;
    while i < TOKENS_MAX {
        key = key << 5 | CODES[letters[i] as usize & 0x7f] as u32;
        i += 1;
    }
    key
}

/// Five bits for each letter of a kind; 0 where there is none.
const CODES: [u8; 128] = {
    let mut codes = [0; 128];
    let mut i = 0;
    while i < TokenKind::ALL.len() {
        // The original folds the letters' case before it looks, and so takes a type for a Transact-SQL
        // statement.
        let kind = TokenKind::ALL[i];
        let coded = if let TokenKind::SqlType = kind { TokenKind::Tsql } else { kind };
        codes[kind.letter() as usize] = coded as u8 + 1;
        i += 1;
    }
    codes
};

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(letters: &str) -> Fingerprint {
        let mut fingerprint = Fingerprint { letters: [0; 8] };
        fingerprint.letters[..letters.len()].copy_from_slice(letters.as_bytes());
        fingerprint
    }

    #[test]
    fn every_listed_one_is_suspicious() {
        let list = std::str::from_utf8(LIST).expect("text");
        let listed: Vec<&str> = list.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(listed.len(), COUNT);
        for letters in listed {
            assert!(fingerprint(letters).is_suspicious(), "{letters}");
            assert!(letters.bytes().all(|letter| TokenKind::from_letter(letter).is_some()), "{letters}");
        }
    }

    #[test]
    fn others_are_not() {
        for letters in ["", "n", "1", "s", "nn", "nnnnn", "cX", "1&1o", "?????"] {
            assert!(!fingerprint(letters).is_suspicious(), "{letters}");
        }
        let count = all_up_to_three().filter(|letters| fingerprint(letters).is_suspicious()).count();
        assert_eq!(count, 1 + 6 + 78);
    }

    fn all_up_to_three() -> impl Iterator<Item = String> {
        let letters = || TokenKind::ALL.into_iter().map(|kind| char::from(kind.letter()));
        let one = letters().map(String::from);
        let two = letters().flat_map(move |a| letters().map(move |b| String::from_iter([a, b])));
        let three = letters().flat_map(move |a| {
            letters().flat_map(move |b| letters().map(move |c| String::from_iter([a, b, c])))
        });
        one.chain(two).chain(three)
    }
}
