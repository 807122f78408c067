//! Is one of a few words in a text? The quick no.

use std::collections::HashMap;

use aho_corasick::Span;
use aho_corasick::packed::Searcher;

use crate::gate::frequency;

/// Lower case of letters. Other bytes change, too, alike in words and texts.
const FOLD: u8 = 0x20;
/// Bytes that words are brought together by; of shorter ones all of them.
const SHARED_BYTES: usize = 4;
/// A shorter word is too often in a text to be looked for.
const WORD_BYTES_MIN: usize = 2;
/// More words seldom have so few pieces, and a request would wait while these are looked for.
const WORDS_MAX: usize = 1_000;
/// Pieces that are looked for many bytes at a time.
const PIECES_MAX: usize = 64;
/// Pieces that begin at more places of a text than this are found so often that looking for them first gains
/// nothing.
const WEIGHT_MAX: f64 = 1e-3;
/// Words that are compared with a text before it is taken to hold one, and one more for so many of its bytes.
/// A place of a piece counts as some words.
const COMPARED_AT_PLACE: usize = 8;
const COMPARED_MIN: usize = 64;
const COMPARED_BYTES: usize = 4;

/// Says of most texts, in a fraction of the time that [`LiteralSets`](crate::LiteralSets) takes, that they
/// hold none of some words that have few pieces in common.
///
/// ```
/// use portcullis_match::{Folded, LiteralSet};
///
/// let words: [&[u8]; 3] = [b"bin/cat", b"bin/dash", b"powershell"];
/// let words = LiteralSet::new(&words).unwrap();
/// let mut buffer = Vec::new();
/// assert!(!words.may_be_in(Folded::of(b"the powers that be", &mut buffer)));
/// assert!(words.may_be_in(Folded::of(b"/BIN/CAT", &mut buffer)));
/// ```
#[derive(Debug)]
pub struct LiteralSet {
    searcher: Searcher,
    pieces: Vec<Piece>,
}

/// A text as a [`LiteralSet`] looks at it, for as many of them as there are.
#[derive(Clone, Copy, Debug)]
pub struct Folded<'a> {
    text: &'a [u8],
    folded: &'a [u8],
}

impl<'a> Folded<'a> {
    /// `buffer` is overwritten.
    pub fn of(text: &'a [u8], buffer: &'a mut Vec<u8>) -> Folded<'a> {
        buffer.clear();
        buffer.extend_from_slice(text);
        buffer.iter_mut().for_each(|byte| *byte |= FOLD);
        Folded { text, folded: buffer }
    }
}

#[derive(Debug)]
struct Piece {
    /// Folded.
    text: Vec<u8>,
    /// The words that it stands in, in lower case, and where.
    words: Vec<(Box<[u8]>, usize)>,
    /// The numbers of others that may begin where it does.
    alike: Vec<usize>,
}

impl LiteralSet {
    /// For these words in lower case; `None` if they have too many pieces, or too frequent ones, or this
    /// processor has nothing to look for them with.
    pub fn new(words: &[&[u8]]) -> Option<LiteralSet> {
        if words.len() > WORDS_MAX || words.iter().any(|word| word.len() < WORD_BYTES_MIN) {
            return None;
        }
        let folded: Vec<Vec<u8>> =
            words.iter().map(|word| word.iter().map(|byte| byte | FOLD).collect()).collect();
        let pieces = pieces(&folded);
        let weight = |(piece, _): &(Vec<u8>, _)| piece.iter().map(|&byte| frequency(byte)).product::<f64>();
        if pieces.len() > PIECES_MAX || pieces.iter().map(weight).sum::<f64>() > WEIGHT_MAX {
            return None;
        }
        let searcher = Searcher::new(pieces.iter().map(|(text, _)| text))?;
        let word = |(number, at): (usize, usize)| (words[number].to_ascii_lowercase().into(), at);
        let alike = |number: usize| {
            let is_alike =
                |other: &Vec<u8>| pieces[number].0.starts_with(other) || other.starts_with(&pieces[number].0);
            (0..pieces.len()).filter(|&other| other != number && is_alike(&pieces[other].0)).collect()
        };
        let pieces = pieces.iter().enumerate().map(|(number, (text, users))| {
            let words = users.iter().map(|&user| word(user)).collect();
            Piece { text: text.clone(), words, alike: alike(number) }
        });
        let pieces = pieces.collect();
        Some(LiteralSet { searcher, pieces })
    }

    /// The words, in lower case.
    pub fn words(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().flat_map(|piece| piece.words.iter().map(|(word, _)| &**word))
    }

    /// False if none of the words is in this text, in any ASCII case. True if one is, or if that is expensive
    /// to find out.
    pub fn may_be_in(&self, Folded { text, folded }: Folded<'_>) -> bool {
        let (mut from, mut compared) = (0, 0);
        while let Some(found) = self.searcher.find_in(folded, Span { start: from, end: folded.len() }) {
            // Another piece may begin at the same place, or before this one ends.
            let here = &folded[found.start()..];
            compared += COMPARED_AT_PLACE;
            let first = found.pattern().as_usize();
            let pieces = std::iter::once(&first).chain(&self.pieces[first].alike).map(|&at| &self.pieces[at]);
            for piece in pieces.filter(|piece| here.starts_with(&piece.text)) {
                compared += piece.words.len();
                if piece.words.iter().any(|(word, at)| stands_at(word, text, found.start(), *at)) {
                    return true;
                }
            }
            if compared > COMPARED_MIN + text.len() / COMPARED_BYTES {
                return true;
            }
            from = found.start() + 1;
        }
        false
    }
}

/// True if `word` stands in `text` so that its byte at `offset` is at `place`.
fn stands_at(word: &[u8], text: &[u8], place: usize, offset: usize) -> bool {
    let from = place.checked_sub(offset);
    let Some(here) = from.and_then(|from| text.get(from..from + word.len())) else { return false };
    // In most texts another word stands around the piece.
    let is_same =
        |byte: fn(&[u8]) -> Option<&u8>| byte(here).map(u8::to_ascii_lowercase).as_ref() == byte(word);
    is_same(<[u8]>::first) && is_same(<[u8]>::last) && here.eq_ignore_ascii_case(word)
}

/// Numbers of words, and where something stands in each.
type Places = Vec<(usize, usize)>;

/// Texts of which each word holds one: those that most words share, as long as their words agree. With each
/// the numbers of its words, and where it stands in them.
fn pieces(words: &[Vec<u8>]) -> Vec<(Vec<u8>, Places)> {
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
    let mut groups: std::collections::BTreeMap<Vec<u8>, Places> = Default::default();
    for (number, word) in words.iter().enumerate() {
        let best = (0..windows(word)).max_by_key(|&at| users[&window(word, at)]).unwrap_or(0);
        groups.entry(window(word, best)).or_default().push((number, best));
    }
    groups.into_iter().map(|(shared, users)| extended(shared, words, users)).collect()
}

/// Returns the longest text around `shared` that all of these words have in common, with its offsets in them.
fn extended(shared: Vec<u8>, words: &[Vec<u8>], mut users: Places) -> (Vec<u8>, Places) {
    let agreed = |byte: &dyn Fn(&[u8], usize) -> Option<u8>| {
        let first = users.first().and_then(|&(word, at)| byte(&words[word], at))?;
        users.iter().all(|&(word, at)| byte(&words[word], at) == Some(first)).then_some(first)
    };
    let before = (1..).map_while(|distance| {
        agreed(&|word, at| at.checked_sub(distance).and_then(|place| word.get(place)).copied())
    });
    let behind = (shared.len()..).map_while(|distance| agreed(&|word, at| word.get(at + distance).copied()));
    let mut piece: Vec<u8> = before.collect();
    let behind: Vec<u8> = behind.collect();
    for (_, at) in &mut users {
        *at -= piece.len();
    }
    piece.reverse();
    piece.extend_from_slice(&shared);
    piece.extend(behind);
    (piece, users)
}

#[cfg(test)]
mod tests {
    use super::{Folded, LiteralSet, pieces};

    fn holds(words: &[&[u8]], text: &[u8]) -> Option<bool> {
        let mut folded = b"left over".to_vec();
        LiteralSet::new(words).map(|words| words.may_be_in(Folded::of(text, &mut folded)))
    }

    #[test]
    fn pieces_are_what_words_share() {
        let of = |words: &[&str]| -> Vec<String> {
            let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            pieces(&words).iter().map(|(piece, _)| piece.escape_ascii().to_string()).collect()
        };
        assert_eq!(of(&["bin/cat", "bin/dash", "dev/tcp"]), ["dev/tcp", "bin/"]);
        assert_eq!(of(&["process.env", "process.main", "xprocess.m"]), ["process."]);
        assert_eq!(of(&["get-item", "get-list", "if "]), ["get-", "if "]);
        assert_eq!(of(&["abcd"]), ["abcd"]);
    }

    /// It may say yes for nothing, never no where a word is: every word of three bytes and more, in any case,
    /// at every place.
    #[test]
    fn no_word_is_missed() {
        let words: &[&[u8]] =
            &[b"process.env", b"process.main", b"[\"log\"]", b"['log']", b"_$$nd", b"qz{", b"\xe9\0@x"];
        if LiteralSet::new(words).is_none() {
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
    fn pieces_alone_are_no_words() {
        let words: &[&[u8]] = &[b"bin/cat", b"bin/dash", b"in/dash-board", b"ash-bo", b"qzin/dx", b"[q]"];
        let mut state = 5u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut found = [0, 0];
        for _ in 0..3_000 {
            let parts: &[&[u8]] = &[
                b"bin/", b"cat", b"DASH", b"-bo", b"ard", b"qz", b"in/d", b"x", b"[q", b"{Q}", b"]", b" ",
                b"ash",
            ];
            let text: Vec<u8> = (0..next(7)).flat_map(|_| parts[next(parts.len())]).copied().collect();
            let is_there =
                |word: &&[u8]| text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
            let expected = words.iter().any(is_there);
            let Some(held) = holds(words, &text) else { return };
            assert_eq!(held, expected, "{}", text.escape_ascii());
            found[usize::from(expected)] += 1;
        }
        assert!(found.iter().all(|&count| count > 100), "{found:?}");
        // Too much work to be sure.
        assert_eq!(holds(words, &b"in/d".repeat(200)), Some(true));
    }

    #[test]
    fn what_is_not_worth_it() {
        assert!(LiteralSet::new(&[b"e ", b"equ"]).is_none());
        assert!(LiteralSet::new(&[b"th"]).is_none());
        assert!(LiteralSet::new(&vec![b"bin/cat".as_slice(); 1_001]).is_none());
        let many: Vec<Vec<u8>> = (0..300u32).map(|n| format!("{:x}q", n * 7_919_777).into_bytes()).collect();
        assert!(LiteralSet::new(&many.iter().map(Vec::as_slice).collect::<Vec<_>>()).is_none());
    }
}
