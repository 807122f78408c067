//! Which of very many words are in a text?

/// log2 of the bits in the table of four-byte pieces.
const TABLE_BITS: u32 = 17;
/// log2 of the buckets that the pieces are looked up in.
const BUCKET_BITS: u32 = 13;
/// Lower case of letters, four at a time. Other bytes change, too, alike in words and texts.
const FOLD: u32 = 0x2020_2020;

/// Finds every one of a set of words of two bytes or more, in any ASCII case, in one pass over a text whose cost hardly depends on the number
/// of words: each stands behind its rarest piece of two to four bytes, and at each place of the text three bit tables say
/// whether such a piece may begin there.
///
/// ```
/// use portcullis_match::WordFinder;
///
/// let finder = WordFinder::new(&[b"select".as_slice(), b"or"]);
/// let mut found = Vec::new();
/// finder.find(b"SELECT a FOR b", |word| found.push(word));
/// assert_eq!(found, [0, 1]);
/// ```
#[derive(Clone, Default)]
pub struct WordFinder {
    words: Vec<Word>,
    tables: Option<Box<Tables>>,
    /// Where the pieces of each bucket begin in `pieces`, and at last where they all end.
    buckets: Vec<u32>,
    pieces: Vec<Piece>,
}

/// Bits for the pieces of each length, by their bytes or their hash. Of fixed size, so that no access needs a check.
#[derive(Clone)]
struct Tables {
    two: [u64; 1 << 10],
    three: [u64; 1 << (TABLE_BITS - 6)],
    four: [u64; 1 << (TABLE_BITS - 6)],
}

impl Tables {
    #[inline]
    fn may_begin(&self, folded: u32) -> bool {
        let four = hash(folded) >> (32 - TABLE_BITS);
        let three = hash(folded & 0xff_ffff) >> (32 - TABLE_BITS);
        let two = folded & 0xffff;
        let four = self.four[four as usize / 64] >> (four % 64);
        let three = self.three[three as usize / 64] >> (three % 64);
        let two = self.two[two as usize / 64] >> (two % 64);
        (four | three | two) & 1 == 1
    }
}

#[derive(Clone)]
struct Word {
    /// Lower case.
    text: Box<[u8]>,
    /// Where its piece begins in it.
    offset: u32,
}

#[derive(Clone, Copy)]
struct Piece {
    /// Folded bytes, the first one lowest.
    bytes: u32,
    length: u32,
    word: u32,
}

impl WordFinder {
    /// For these words; one of less than two bytes is never found.
    pub fn new(words: &[&[u8]]) -> WordFinder {
        let mut finder = WordFinder::default();
        let mut tables = Box::new(Tables {
            two: [0; 1 << 10],
            three: [0; 1 << (TABLE_BITS - 6)],
            four: [0; 1 << (TABLE_BITS - 6)],
        });
        let mut pieces = Vec::new();
        for (number, word) in (0..).zip(words) {
            let text: Box<[u8]> = word.to_ascii_lowercase().into();
            let length = text.len().min(4);
            if length < 2 {
                finder.words.push(Word { text, offset: 0 });
                continue;
            }
            let offset = rarest(&text, length);
            let bytes = masked(load(&text[offset..]), length as u32);
            let (table, bit): (&mut [u64], u32) = match length {
                2 => (&mut tables.two, bytes & 0xffff),
                3 => (&mut tables.three, hash(bytes) >> (32 - TABLE_BITS)),
                _ => (&mut tables.four, hash(bytes) >> (32 - TABLE_BITS)),
            };
            table[bit as usize / 64] |= 1 << (bit % 64);
            pieces.push(Piece { bytes, length: length as u32, word: number });
            finder.words.push(Word { text, offset: offset as u32 });
        }
        pieces.sort_by_key(|piece| bucket(piece.bytes));
        finder.buckets = vec![0; (1 << BUCKET_BITS) + 1];
        for piece in &pieces {
            finder.buckets[bucket(piece.bytes) as usize + 1] += 1;
        }
        for at in 1..finder.buckets.len() {
            finder.buckets[at] += finder.buckets[at - 1];
        }
        finder.tables = (!pieces.is_empty()).then_some(tables);
        finder.pieces = pieces;
        finder
    }

    /// Calls `found` with the number of each word at each of its places.
    pub fn find(&self, text: &[u8], mut found: impl FnMut(u32)) {
        let Some(tables) = &self.tables else { return };
        for (at, window) in text.windows(4).enumerate() {
            let folded = load(window) | FOLD;
            if tables.may_begin(folded) {
                self.confirm(text, at, folded, &mut found);
            }
        }
        // The last places, with zeros behind the end.
        for at in text.len().saturating_sub(3)..text.len() {
            let folded = load(&text[at..]) | FOLD;
            if tables.may_begin(folded) {
                self.confirm(text, at, folded, &mut found);
            }
        }
    }

    #[inline(never)]
    fn confirm(&self, text: &[u8], at: usize, folded: u32, found: &mut impl FnMut(u32)) {
        for length in 2..=4 {
            let bytes = masked(folded, length);
            let bucket = bucket(bytes) as usize;
            for piece in &self.pieces[self.buckets[bucket] as usize..self.buckets[bucket + 1] as usize] {
                if piece.bytes != bytes || piece.length != length {
                    continue;
                }
                let word = &self.words[piece.word as usize];
                let here = at
                    .checked_sub(word.offset as usize)
                    .and_then(|start| text.get(start..start + word.text.len()));
                if here.is_some_and(|here| here.eq_ignore_ascii_case(&word.text)) {
                    found(piece.word);
                }
            }
        }
    }
}

impl std::fmt::Debug for WordFinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WordFinder({} words)", self.words.len())
    }
}

/// The first four bytes, zeros where there are less.
#[inline]
fn load(text: &[u8]) -> u32 {
    match text.first_chunk::<4>() {
        Some(bytes) => u32::from_le_bytes(*bytes),
        None => text.iter().rev().fold(0, |bytes, &byte| bytes << 8 | u32::from(byte)),
    }
}

/// The first `length` of four bytes, folded.
fn masked(bytes: u32, length: u32) -> u32 {
    (bytes | FOLD) & (u32::MAX >> (32 - 8 * length))
}

#[inline]
fn hash(bytes: u32) -> u32 {
    bytes.wrapping_mul(0x9e37_79b1)
}

fn bucket(bytes: u32) -> u32 {
    (bytes ^ bytes >> 15).wrapping_mul(0x85eb_ca6b) >> (32 - BUCKET_BITS)
}

/// Where the rarest `length` bytes of `text` begin.
fn rarest(text: &[u8], length: usize) -> usize {
    let weight = |window: &[u8]| window.iter().map(|&byte| crate::gate::frequency(byte)).product::<f64>();
    let windows = text.windows(length).map(weight).enumerate();
    windows.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::WordFinder;

    fn found(words: &[&[u8]], text: &[u8]) -> Vec<u32> {
        let mut found = Vec::new();
        WordFinder::new(words).find(text, |word| found.push(word));
        found.sort_unstable();
        found.dedup();
        found
    }

    #[test]
    fn words_at_every_place() {
        let words: &[&[u8]] = &[b"ab", b"abc", b"abcd", b"bcdefgh", b"@[", b"`{", b"xyz"];
        assert_eq!(found(words, b"ab"), [0]);
        assert_eq!(found(words, b"..aBC"), [0, 1]);
        assert_eq!(found(words, b"ABCDEFGH"), [0, 1, 2, 3]);
        assert_eq!(found(words, b"@["), [4]);
        assert_eq!(found(words, b"`{ xy"), [5]);
        assert_eq!(found(words, b""), [0; 0]);
        assert_eq!(found(words, b"a"), [0; 0]);
        assert_eq!(found(&[], b"abc"), [0; 0]);
    }
}
