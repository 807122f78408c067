//! Which of very many words are in a text?

/// log2 of the bits in the table of four-byte pieces.
const TABLE_BITS: u32 = 17;
/// log2 of the buckets that the pieces are looked up in.
const BUCKET_BITS: u32 = 13;
/// Lower case of letters, four at a time. Other bytes change, too, alike in words and texts.
const FOLD: u32 = 0x2020_2020;

/// Finds every one of a set of words of two bytes or more, in any ASCII case, in one pass over a text whose cost hardly depends on the number
/// of words: each stands behind its rarest piece of two to four bytes, and at each place of the text two bit tables say
/// whether such a piece may begin there.
///
/// ```
/// use portcullis_match::WordFinder;
///
/// let finder = WordFinder::new(&[b"select".as_slice(), b"or"]);
/// let mut found = Vec::new();
/// finder.find(b"SELECT a FOR b", |word, _| found.push(word));
/// assert_eq!(found, [0, 1]);
/// ```
#[derive(Clone, Default)]
pub struct WordFinder {
    /// The texts of the words, in lower case, one behind the other.
    texts: Vec<u8>,
    words: usize,
    tables: Option<Box<Tables>>,
    /// Where the pieces of each bucket begin in `pieces`, and at last where they all end.
    buckets: Vec<u32>,
    pieces: Vec<Piece>,
}

/// Bits that say where a piece may begin. Of fixed size, so that no access needs a check.
#[derive(Clone)]
struct Tables {
    /// By the hash of three bytes: a piece of three, or one of two and any byte behind it.
    short: [u64; 1 << (TABLE_BITS - 6)],
    /// By the hash of four bytes.
    four: [u64; 1 << (TABLE_BITS - 6)],
    /// By another hash of them.
    four_too: [u64; 1 << (TABLE_BITS - 6)],
}

impl Tables {
    #[inline]
    fn may_begin_short(&self, folded: u32) -> bool {
        has(&self.short, hash(folded & 0xff_ffff))
    }

    #[inline]
    fn may_begin_four(&self, folded: u32) -> bool {
        has(&self.four, hash(folded))
    }

    /// The first look at each place: what passes is looked at closer.
    #[inline]
    fn may_begin(&self, folded: u32) -> bool {
        self.may_begin_short(folded) | self.may_begin_four(folded)
    }
}

/// The bit that a hash stands for.
#[inline]
fn has(table: &[u64; 1 << (TABLE_BITS - 6)], hash: u32) -> bool {
    let bit = hash >> (32 - TABLE_BITS);
    table[bit as usize / 64] >> (bit % 64) & 1 == 1
}

fn set(table: &mut [u64], hash: u32) {
    let bit = hash >> (32 - TABLE_BITS);
    table[bit as usize / 64] |= 1 << (bit % 64);
}

#[derive(Clone, Copy)]
struct Piece {
    /// Folded bytes, the first one lowest.
    bytes: u32,
    word: u32,
    /// Where the word begins in `texts`.
    start: u32,
    word_length: u32,
    /// Where the piece begins in the word.
    offset: u32,
    /// Of the bytes that it has.
    mask: u32,
}

impl Piece {
    /// Those of two and three bytes by the first two, so that one look finds both.
    #[inline]
    fn looked_up(&self) -> u32 {
        if self.mask == u32::MAX { self.bytes } else { masked(self.bytes, 2) }
    }
}

impl WordFinder {
    /// For these words; one of less than two bytes is never found.
    pub fn new(words: &[&[u8]]) -> WordFinder {
        let mut finder = WordFinder::default();
        let mut tables = Box::new(Tables {
            short: [0; 1 << (TABLE_BITS - 6)],
            four: [0; 1 << (TABLE_BITS - 6)],
            four_too: [0; 1 << (TABLE_BITS - 6)],
        });
        let mut pieces = Vec::new();
        let mut users = Users(vec![0; (8 * words.len()).next_power_of_two()]);
        finder.words = words.len();
        for (number, word) in (0..).zip(words).filter(|(_, word)| word.len() > 1) {
            let text = word.to_ascii_lowercase();
            let length = text.len().min(4);
            let offset = rarest(&text, length, &mut users);
            let bytes = masked(load(&text[offset..]), length as u32);
            match length {
                2 => (0..=255).for_each(|next| set(&mut tables.short, hash(bytes | (next | 0x20) << 16))),
                3 => set(&mut tables.short, hash(bytes)),
                _ => {
                    set(&mut tables.four, hash(bytes));
                    set(&mut tables.four_too, hash_too(bytes));
                }
            }
            pieces.push(Piece {
                bytes,
                word: number,
                start: finder.texts.len() as u32,
                word_length: text.len() as u32,
                offset: offset as u32,
                mask: u32::MAX >> (32 - 8 * length),
            });
            finder.texts.extend_from_slice(&text);
        }
        pieces.sort_by_key(|piece| bucket(piece.looked_up()));
        finder.buckets = vec![0; (1 << BUCKET_BITS) + 1];
        for piece in &pieces {
            finder.buckets[bucket(piece.looked_up()) as usize + 1] += 1;
        }
        for at in 1..finder.buckets.len() {
            finder.buckets[at] += finder.buckets[at - 1];
        }
        finder.tables = (!pieces.is_empty()).then_some(tables);
        finder.pieces = pieces;
        finder
    }

    /// Calls `found` with the number of each word at each of its places, and with a place inside it; these never fall.
    pub fn find(&self, text: &[u8], mut found: impl FnMut(u32, usize)) {
        let Some(tables) = &self.tables else { return };
        for (at, window) in text.windows(4).enumerate() {
            let folded = load(window) | FOLD;
            if tables.may_begin(folded) {
                self.look(tables, text, at, folded, &mut found);
            }
        }
        // The last places, with zeros behind the end.
        let mut end = [0; 6];
        let last = &text[text.len().saturating_sub(3)..];
        end[..last.len()].copy_from_slice(last);
        for (at, window) in end.windows(4).enumerate().take(last.len()) {
            self.look(tables, text, text.len() - last.len() + at, load(window) | FOLD, &mut found);
        }
    }

    #[inline]
    fn look(&self, tables: &Tables, text: &[u8], at: usize, folded: u32, found: &mut impl FnMut(u32, usize)) {
        if tables.may_begin_short(folded) {
            self.confirm(text, at, folded, masked(folded, 2), found);
        }
        if tables.may_begin_four(folded) && has(&tables.four_too, hash_too(folded)) {
            self.confirm(text, at, folded, folded, found);
        }
    }

    /// `key` is what the pieces in question are looked up by.
    #[inline(never)]
    fn confirm(&self, text: &[u8], at: usize, folded: u32, key: u32, found: &mut impl FnMut(u32, usize)) {
        let bucket = bucket(key) as usize;
        for piece in &self.pieces[self.buckets[bucket] as usize..self.buckets[bucket + 1] as usize] {
            if piece.bytes != folded & piece.mask || piece.looked_up() != key {
                continue;
            }
            let (start, length) = (piece.start as usize, piece.word_length as usize);
            let here = at.checked_sub(piece.offset as usize).and_then(|from| text.get(from..from + length));
            if here.is_some_and(|here| here.eq_ignore_ascii_case(&self.texts[start..start + length])) {
                found(piece.word, at);
            }
        }
    }
}

impl std::fmt::Debug for WordFinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WordFinder({} words)", self.words)
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

/// As [`hash`], and unlike it.
#[inline]
fn hash_too(bytes: u32) -> u32 {
    (bytes ^ bytes >> 15).wrapping_mul(0x2c1b_3c6d)
}

fn bucket(bytes: u32) -> u32 {
    (bytes ^ bytes >> 15).wrapping_mul(0x85eb_ca6b) >> (32 - BUCKET_BITS)
}

/// Where the rarest `length` bytes of `text` begin. Those that other words stand behind already count for less rare: a place where
/// the piece is must look at all of its words, so that a text of `bin/` would cost hundreds of them each time.
fn rarest(text: &[u8], length: usize, users: &mut Users) -> usize {
    let weight = |window: &[u8]| {
        let others = f64::from(users.0[users.place(window)]);
        window.iter().map(|&byte| crate::gate::frequency(byte)).product::<f64>() * (1.0 + others).powi(2)
    };
    let windows = text.windows(length).map(weight).enumerate();
    let at = windows.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| at);
    let place = users.place(&text[at..at + length]);
    users.0[place] += 1;
    at
}

/// How many words stand behind a piece, by a hash of it: those that share a place count for each other, which is rare and does no harm.
struct Users(Vec<u32>);

impl Users {
    /// The number of places is a power of two.
    fn place(&self, piece: &[u8]) -> usize {
        hash_too(load(piece)) as usize >> 8 & (self.0.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::WordFinder;

    fn found(words: &[&[u8]], text: &[u8]) -> Vec<u32> {
        let mut found = Vec::new();
        WordFinder::new(words).find(text, |word, _| found.push(word));
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
