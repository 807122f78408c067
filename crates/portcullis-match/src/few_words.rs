//! Is one of a few words in a text? The quick no.

use std::collections::HashMap;

use aho_corasick::packed::Searcher;

use crate::gate::frequency;

/// Lower case of letters. Other bytes change, too, alike in words and texts.
const FOLD: u8 = 0x20;
/// Bytes that words are brought together by; of shorter ones all of them.
const SHARED_BYTES: usize = 4;
/// A shorter word is too often in a text to be looked for.
const WORD_BYTES_MIN: usize = 3;
/// More words seldom have so few pieces, and a request would wait while these are looked for.
const WORDS_MAX: usize = 1_000;
/// Pieces that are looked for many bytes at a time.
const PIECES_MAX: usize = 64;
/// Pieces that begin at more places of a text than this are found so often that looking for them first is in vain.
const WEIGHT_MAX: f64 = 1e-4;

/// Says of most texts, in a fraction of the time that [`WordFinder`](crate::WordFinder) takes, that they hold none of some words that
/// have few pieces in common.
///
/// ```
/// use portcullis_match::FewWords;
///
/// let words: [&[u8]; 3] = [b"bin/cat", b"bin/dash", b"powershell"];
/// let words = FewWords::new(&words).unwrap();
/// let mut folded = Vec::new();
/// FewWords::fold(b"the powers that be", &mut folded);
/// assert!(!words.may_stand_in(&folded));
/// FewWords::fold(b"/BIN/CAT", &mut folded);
/// assert!(words.may_stand_in(&folded));
/// ```
#[derive(Debug)]
pub struct FewWords(Searcher);

impl FewWords {
    /// For these words in lower case; `None` if they have too many pieces, or too frequent ones, or this processor has nothing to look for
    /// them with.
    pub fn new(words: &[&[u8]]) -> Option<FewWords> {
        if words.len() > WORDS_MAX || words.iter().any(|word| word.len() < WORD_BYTES_MIN) {
            return None;
        }
        let folded: Vec<Vec<u8>> =
            words.iter().map(|word| word.iter().map(|byte| byte | FOLD).collect()).collect();
        let pieces = pieces(&folded);
        let weight = |piece: &Vec<u8>| piece.iter().map(|&byte| frequency(byte)).product::<f64>();
        if pieces.len() > PIECES_MAX || pieces.iter().map(weight).sum::<f64>() > WEIGHT_MAX {
            return None;
        }
        Searcher::new(pieces).map(FewWords)
    }

    /// Replaces `folded` by `text` as [`FewWords::may_stand_in`] wants it.
    pub fn fold(text: &[u8], folded: &mut Vec<u8>) {
        folded.clear();
        folded.extend_from_slice(text);
        folded.iter_mut().for_each(|byte| *byte |= FOLD);
    }

    /// False if none of the words is in this text, in any ASCII case.
    pub fn may_stand_in(&self, folded: &[u8]) -> bool {
        self.0.find(folded).is_some()
    }
}

/// Texts of which each word holds one: those that most words share, as long as their words agree.
fn pieces(words: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let windows = |word: &[u8]| word.len().saturating_sub(SHARED_BYTES) + 1;
    let window = |word: &'_ [u8], at: usize| word[at..word.len().min(at + SHARED_BYTES)].to_vec();
    let mut users: HashMap<Vec<u8>, usize> = HashMap::new();
    for word in words {
        let mut own: Vec<Vec<u8>> = (0..windows(word)).map(|at| window(word, at)).collect();
        own.sort_unstable();
        own.dedup();
        own.into_iter().for_each(|piece| *users.entry(piece).or_default() += 1);
    }
    // By what they share, the words and where it stands in them.
    let mut groups: std::collections::BTreeMap<Vec<u8>, Vec<(&[u8], usize)>> = Default::default();
    for word in words {
        let best = (0..windows(word)).max_by_key(|&at| users[&window(word, at)]).unwrap_or(0);
        groups.entry(window(word, best)).or_default().push((word, best));
    }
    groups.into_iter().map(|(shared, users)| extended(shared, &users)).collect()
}

/// What stands around `shared` in all of these words, it included.
fn extended(shared: Vec<u8>, users: &[(&[u8], usize)]) -> Vec<u8> {
    let agreed = |byte: &dyn Fn(&[u8], usize) -> Option<u8>| {
        let first = users.first().and_then(|(word, at)| byte(word, *at))?;
        users.iter().all(|(word, at)| byte(word, *at) == Some(first)).then_some(first)
    };
    let before = (1..).map_while(|distance| {
        agreed(&|word, at| at.checked_sub(distance).and_then(|place| word.get(place)).copied())
    });
    let behind = (shared.len()..).map_while(|distance| agreed(&|word, at| word.get(at + distance).copied()));
    let mut piece: Vec<u8> = before.collect();
    piece.reverse();
    piece.extend_from_slice(&shared);
    piece.extend(behind);
    piece
}

#[cfg(test)]
mod tests {
    use super::{FewWords, pieces};

    fn holds(words: &[&[u8]], text: &[u8]) -> Option<bool> {
        let mut folded = b"left over".to_vec();
        FewWords::fold(text, &mut folded);
        FewWords::new(words).map(|words| words.may_stand_in(&folded))
    }

    #[test]
    fn pieces_are_what_words_share() {
        let of = |words: &[&str]| -> Vec<String> {
            let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            pieces(&words).iter().map(|piece| piece.escape_ascii().to_string()).collect()
        };
        assert_eq!(of(&["bin/cat", "bin/dash", "dev/tcp"]), ["dev/tcp", "bin/"]);
        assert_eq!(of(&["process.env", "process.main", "xprocess.m"]), ["process."]);
        assert_eq!(of(&["get-item", "get-list", "if "]), ["get-", "if "]);
        assert_eq!(of(&["abcd"]), ["abcd"]);
    }

    /// It may say yes for nothing, never no where a word is: every word of three bytes and more, in any case, at every place.
    #[test]
    fn no_word_is_missed() {
        let words: &[&[u8]] =
            &[b"process.env", b"process.main", b"[\"log\"]", b"['log']", b"_$$nd", b"qz{", b"\xe9\0@x"];
        if FewWords::new(words).is_none() {
            return; // Nothing to look for them with.
        }
        for word in words {
            for before in 0..70 {
                for behind in [0, 1, 15, 40] {
                    let text = [vec![b'.'; before], word.to_ascii_uppercase(), vec![b' '; behind]].concat();
                    assert_eq!(holds(words, &text), Some(true), "{} {before} {behind}", word.escape_ascii());
                }
            }
        }
        assert_ne!(holds(words, b""), Some(true));
        assert_ne!(holds(words, b"proc"), Some(true));
        assert_eq!(holds(words, &b"many processes and environments ".repeat(40)), Some(false));
    }

    #[test]
    fn what_is_not_worth_it() {
        assert!(FewWords::new(&[b"==", b"equ"]).is_none());
        assert!(FewWords::new(&[b"the"]).is_none());
        assert!(FewWords::new(&vec![b"bin/cat".as_slice(); 1_001]).is_none());
        let many: Vec<Vec<u8>> = (0..300u32).map(|n| format!("{:x}q", n * 7_919_777).into_bytes()).collect();
        assert!(FewWords::new(&many.iter().map(Vec::as_slice).collect::<Vec<_>>()).is_none());
    }
}
