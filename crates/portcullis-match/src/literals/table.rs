//! Multi-pattern search for very many words in a text.

/// log2 of the bits in each table of pieces.
const TABLE_BITS: u32 = 17;
/// log2 of the buckets that the pieces are looked up in.
const BUCKET_BITS: u32 = 13;
/// Lower case of letters, eight at a time. Other bytes change, too, alike in words and texts.
const FOLD: u64 = 0x2020_2020_2020_2020;
/// The longest piece.
const PIECE_BYTES_MAX: usize = 6;
/// Lengths of pieces: two bytes are the shortest.
const LENGTHS: usize = PIECE_BYTES_MAX - 1;
/// Pairs of bytes.
const PAIRS: usize = 1 << 16;
/// Places that are looked at together.
const BLOCK: usize = 64;

/// Finds every one of a set of words of two bytes or more, in any ASCII case, in one pass over a text whose
/// cost hardly depends on the number of words: each stands behind a piece of two to six bytes that begins
/// rarely, and at each place of the text a table says whether a piece may begin there.
///
/// ```
/// use portcullis_match::LiteralTable;
///
/// let finder = LiteralTable::new(&[b"select".as_slice(), b"or"]);
/// let mut found = Vec::new();
/// finder.find(b"SELECT a FOR b", |word, _| found.push(word));
/// assert_eq!(found, [0, 1]);
/// ```
#[derive(Clone, Default)]
pub struct LiteralTable {
    /// The texts of the words, in lower case, one behind the other.
    texts: Vec<u8>,
    /// The end of each of them there.
    ends: Vec<u32>,
    /// By two folded bytes: a bit for each value of the low five bits that the third byte of a piece that
    /// begins so may have. Empty, or one for each pair. Of a table of this kind a text of letters touches a
    /// few kilobytes only.
    begins: Vec<u32>,
    /// For places that passed that; `None` if `begins` is empty.
    exact: Option<Box<Exact>>,
    /// The start of each bucket's pieces in `pieces`, and at last the end of them all.
    buckets: Vec<u32>,
    pieces: Vec<Piece>,
}

/// Which pieces there are. Of fixed size, so that no access needs a check.
#[derive(Clone)]
struct Exact {
    /// Those of two bytes, by these.
    pairs: [u64; PAIRS / 64],
    /// Those of three.
    triples: Hashes,
    /// The first four bytes of longer ones, most of which these distinguish.
    beginnings: Hashes,
    /// Pieces of four bytes, five and six.
    longer: [Hashes; LENGTHS - 2],
}

/// A bit for each hash.
type Hashes = [u64; 1 << (TABLE_BITS - 6)];

impl Exact {
    fn new() -> Exact {
        let none = [0; 1 << (TABLE_BITS - 6)];
        Exact { pairs: [0; PAIRS / 64], triples: none, beginnings: none, longer: [none; LENGTHS - 2] }
    }

    fn add(&mut self, piece: u64, length: usize) {
        let set = |hashes: &mut Hashes, bytes: u64| {
            let bit = bit_of(bytes);
            hashes[bit / 64] |= 1 << (bit % 64);
        };
        match length {
            2 => self.pairs[piece as usize / 64] |= 1 << (piece % 64),
            3 => set(&mut self.triples, piece),
            _ => {
                set(&mut self.beginnings, first(piece, 4));
                set(&mut self.longer[length - 4], piece);
            }
        }
    }

    /// A bit for two bytes, for three and for more, if a piece of that length may begin these bytes. Without
    /// a branch, as one seldom does.
    #[inline]
    fn passed(&self, folded: u64) -> u64 {
        let pair = usize::from(folded as u16);
        (self.pairs[pair / 64] >> (pair % 64) & 1)
            | has(&self.triples, first(folded, 3)) << 1
            | has(&self.beginnings, first(folded, 4)) << 2
    }

    /// A bit for each length instead.
    fn lengths(&self, passed: u64, folded: u64) -> u64 {
        let longer =
            (0..).zip(&self.longer).map(|(at, hashes)| has(hashes, first(folded, at + 4)) << (at + 2));
        passed & 3 | if passed & 4 != 0 { longer.sum() } else { 0 }
    }
}

#[inline]
fn bit_of(bytes: u64) -> usize {
    (hash(bytes) >> (64 - TABLE_BITS)) as usize
}

#[inline]
fn has(hashes: &Hashes, bytes: u64) -> u64 {
    let bit = bit_of(bytes);
    hashes[bit / 64] >> (bit % 64) & 1
}

#[derive(Clone, Copy, Default)]
struct Piece {
    /// Folded bytes, the first one lowest, and zeros, which no folded byte is.
    bytes: u64,
    /// The same, and more of the word: eight bytes, if it is that long.
    more: u64,
    word: u32,
    /// The start of the word in `texts`.
    start: u32,
    word_length: u32,
    /// The offset of the piece in the word.
    offset: u32,
}

impl LiteralTable {
    /// For these words; one of less than two bytes is never found.
    pub fn new(words: &[&[u8]]) -> LiteralTable {
        let mut finder = LiteralTable { ends: Vec::with_capacity(words.len()), ..LiteralTable::default() };
        let mut exact = Box::new(Exact::new());
        let mut pieces = Vec::with_capacity(words.len());
        let mut users = Users(vec![0; (8 * words.len()).next_power_of_two()]);
        for (number, word) in (0..).zip(words) {
            let start = finder.texts.len();
            finder.texts.extend_from_slice(word);
            finder.ends.push(finder.texts.len() as u32);
            if word.len() < 2 {
                continue;
            }
            let text = &mut finder.texts[start..];
            text.make_ascii_lowercase();
            let length = text.len().min(PIECE_BYTES_MAX);
            let offset = rarest(text, length, &mut users);
            let bytes = first(load(&text[offset..]) | FOLD, length);
            let more = load(&text[offset..]) | FOLD;
            let more = first(more, (text.len() - offset).min(8));
            let (pair, third) = pair_and_third(bytes);
            finder.begins.resize(PAIRS, 0);
            finder.begins[pair] |= if length == 2 { u32::MAX } else { 1 << third };
            exact.add(bytes, length);
            let (start, word_length, offset) = (start as u32, text.len() as u32, offset as u32);
            pieces.push(Piece { bytes, more, word: number, start, word_length, offset });
        }
        finder.exact = (!pieces.is_empty()).then_some(exact);
        finder.sort(&pieces);
        finder
    }

    /// Puts the pieces into their buckets: counted, then placed.
    fn sort(&mut self, pieces: &[Piece]) {
        let mut buckets = vec![0; (1 << BUCKET_BITS) + 1];
        pieces.iter().for_each(|piece| buckets[bucket(piece.bytes) + 1] += 1);
        for at in 1..buckets.len() {
            buckets[at] += buckets[at - 1];
        }
        let mut next = buckets.clone();
        self.pieces = vec![Piece::default(); pieces.len()];
        for piece in pieces {
            let place = &mut next[bucket(piece.bytes)];
            self.pieces[*place as usize] = *piece;
            *place += 1;
        }
        self.buckets = buckets;
    }

    /// Returns the number of words.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The word of this number, in lower case if it is ever found.
    pub fn word(&self, number: u32) -> &[u8] {
        let at = number as usize;
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.texts[from as usize..self.ends[at] as usize]
    }

    /// Calls `found` with the number of each word at each of its places, and with a place inside it; these
    /// never fall.
    pub fn find(&self, text: &[u8], mut found: impl FnMut(u32, usize)) {
        let (Some(exact), Some(begins)) = (&self.exact, self.begins.first_chunk::<PAIRS>()) else { return };
        // The last places, with zeros behind the end, come after all that have eight bytes before it.
        let whole = text.len().saturating_sub(7);
        let mut from = 0;
        while from < whole {
            let block = &text[from..text.len().min(from + BLOCK + 7)];
            let mut places = [0; BLOCK];
            let passed = begin_at(block, begins, &mut places);
            for &at in &places[..passed] {
                let at = usize::from(at);
                self.look(exact, text, from + at, load(&block[at..]) | FOLD, &mut found);
            }
            from += BLOCK;
        }
        let mut end = [0; 14];
        let last = &text[whole..];
        end[..last.len()].copy_from_slice(last);
        let mut places = [0; BLOCK];
        let passed = begin_at(&end[..last.len() + 7], begins, &mut places);
        for &at in &places[..passed] {
            let at = usize::from(at);
            self.look(exact, text, whole + at, load(&end[at..]) | FOLD, &mut found);
        }
    }

    /// The second look.
    #[inline]
    fn look(&self, exact: &Exact, text: &[u8], at: usize, folded: u64, found: &mut impl FnMut(u32, usize)) {
        let passed = exact.passed(folded);
        if passed != 0 {
            self.confirm(text, at, folded, exact.lengths(passed, folded), found);
        }
    }

    /// Looks for the words behind pieces of these lengths, a bit for each.
    #[inline(never)]
    fn confirm(
        &self,
        text: &[u8],
        at: usize,
        folded: u64,
        mut lengths: u64,
        found: &mut impl FnMut(u32, usize),
    ) {
        while lengths != 0 {
            let bytes = first(folded, lengths.trailing_zeros() as usize + 2);
            lengths &= lengths - 1;
            let bucket = bucket(bytes);
            for piece in &self.pieces[self.buckets[bucket] as usize..self.buckets[bucket + 1] as usize] {
                let (start, length) = (piece.start as usize, piece.word_length as usize);
                // What has been read already distinguishes most words that only begin alike.
                let known = (length - piece.offset as usize).min(8);
                if piece.bytes != bytes || piece.more != first(folded, known) {
                    continue;
                }
                let here =
                    at.checked_sub(piece.offset as usize).and_then(|from| text.get(from..from + length));
                if here.is_some_and(|here| here.eq_ignore_ascii_case(&self.texts[start..start + length])) {
                    found(piece.word, at);
                }
            }
        }
    }
}

impl std::fmt::Debug for LiteralTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LiteralTable({} words)", self.len())
    }
}

/// Writes to `places` where in `block`, but for its last seven bytes, a piece may begin, and returns how many
/// places these are. Without a branch for each place: one in seven passes, and which one cannot be foreseen.
#[inline]
fn begin_at(block: &[u8], begins: &[u32; PAIRS], places: &mut [u8; BLOCK]) -> usize {
    let mut passed = 0;
    for (at, window) in (0..BLOCK as u8).zip(block.windows(8)) {
        let (pair, third) = pair_and_third(load(window) | FOLD);
        places[passed % BLOCK] = at;
        passed += (begins[pair] >> third & 1) as usize;
    }
    passed
}

/// The number of the first two bytes in [`LiteralTable::begins`], and of the bit there that the third one
/// has.
#[inline]
fn pair_and_third(folded: u64) -> (usize, u32) {
    (usize::from(folded as u16), (folded >> 16) as u32 & 31)
}

/// The first eight bytes, zeros where there are less.
#[inline]
fn load(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => text.iter().rev().fold(0, |bytes, &byte| bytes << 8 | u64::from(byte)),
    }
}

/// The first `length` of eight bytes.
#[inline]
fn first(bytes: u64, length: usize) -> u64 {
    bytes & (u64::MAX >> (64 - 8 * length))
}

#[inline]
fn hash(bytes: u64) -> u64 {
    bytes.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[inline]
fn bucket(bytes: u64) -> usize {
    ((bytes ^ bytes >> 29).wrapping_mul(0xd6e8_feb8_6659_fd93) >> (64 - BUCKET_BITS)) as usize
}

/// Returns the offset of the `length` bytes of `text` whose first three are the rarest: how often a place
/// must be looked at closer depends on these. Pieces that other words stand behind already count for less
/// rare: a place where the piece is must look at all of its words, so that a text of `bin/` would cost
/// hundreds of them each time.
fn rarest(text: &[u8], length: usize, users: &mut Users) -> usize {
    let (mut least, mut best, mut user) = (f64::INFINITY, 0, 0);
    for at in 0..=text.len() - length {
        let piece = &text[at..];
        let place = users.place(first(load(piece), length));
        let begin = piece[..length.min(3)].iter().fold(1.0, |all, &byte| all * crate::gate::frequency(byte));
        let weight = begin * f64::from(1 + users.0[place]);
        if weight < least {
            (least, best, user) = (weight, at, place);
        }
    }
    users.0[user] += 1;
    best
}

/// The number of words behind a piece, by a hash of it: pieces that share a place count for each other, which
/// is rare and does no harm.
struct Users(Vec<u32>);

impl Users {
    /// The number of places is a power of two.
    fn place(&self, piece: u64) -> usize {
        (hash(piece) >> 32) as usize & (self.0.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::LiteralTable;

    fn found(words: &[&[u8]], text: &[u8]) -> Vec<u32> {
        let mut found = Vec::new();
        LiteralTable::new(words).find(text, |word, _| found.push(word));
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
        for filler in 0..70 {
            let text = [vec![b'.'; filler], b"AbCdefGH".to_vec(), vec![b'.'; filler % 7]].concat();
            assert_eq!(found(words, &text), [0, 1, 2, 3], "{filler}");
        }
        assert_eq!(found(words, b""), [0; 0]);
        assert_eq!(found(words, b"a"), [0; 0]);
        assert_eq!(found(&[], b"abc"), [0; 0]);
    }

    #[test]
    fn as_a_search_for_each_word() {
        let mut state = 11u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut hits = 0;
        for round in 0..400 {
            // Few letters, with pairs that folding makes one.
            let letters = &b"abABc @`[{\0\xe1\xc1"[..3 + round % 11];
            let mut some =
                |length: usize| (0..length).map(|_| letters[next(letters.len())]).collect::<Vec<u8>>();
            let words: Vec<Vec<u8>> = (0..30).map(|at| some(1 + at % 9).to_ascii_lowercase()).collect();
            let text = some(round % 190);
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let holds = |word: &&[u8], part: &[u8]| {
                part.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
            };
            let in_text = |(_, word): &(u32, &&[u8])| word.len() > 1 && holds(word, &text);
            let expected: Vec<u32> = (0..).zip(&words).filter(in_text).map(|(number, _)| number).collect();
            assert_eq!(found(&words, &text), expected, "{} in {}", round, text.escape_ascii());
            hits += expected.len();
            let mut last = 0;
            LiteralTable::new(&words).find(&text, |word, place| {
                let word = words[word as usize];
                let around = &text[place.saturating_sub(word.len() - 1)..text.len().min(place + word.len())];
                assert!(place >= last && holds(&word, around));
                last = place;
            });
        }
        assert!(hits > 1000, "{hits}");
    }
}
