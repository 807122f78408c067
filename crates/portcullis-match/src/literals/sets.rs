//! Of which of many literal sets is a word in a text?

use std::collections::HashMap;
use std::sync::OnceLock;

use portcullis_types::TextHash;

use super::{LiteralSet, LiteralTable};

/// Sets that are numbered.
const SETS_MAX: usize = u16::MAX as usize;
/// So many sets are looked for one after the other,
const ALONE_MAX: usize = 4;
/// in texts that are not too short for it to matter.
const ALONE_BYTES_MIN: usize = 32;

/// Many sets of words, numbered from 0, with the words that several share once.
///
/// ```
/// use portcullis_match::LiteralSets;
///
/// let mut builder = LiteralSets::builder();
/// let sql: [&[u8]; 2] = [b"select", b"union"];
/// let shell: [&[u8]; 2] = [b"/bin/", b"select"];
/// assert_eq!((builder.add(&sql), builder.add(&shell)), (Some(0), Some(1)));
/// let sets = builder.finish();
/// let mut found = Vec::new();
/// sets.find(b"SELECT 1", |of, _| found.extend_from_slice(of));
/// assert_eq!(found, [0, 1]);
/// ```
#[derive(Debug, Default)]
pub struct LiteralSets {
    table: LiteralTable,
    /// The sets that each word stands in, one word after the other,
    sets: Vec<u16>,
    /// and by word where they begin there, and at last where they all end.
    starts: Vec<u32>,
    count: usize,
    /// By set: what looks for its words alone, made when it is first asked for; none if they are too many.
    alone: Vec<OnceLock<Option<LiteralSet>>>,
}

impl LiteralSets {
    /// Of no set yet.
    pub fn builder<'a>() -> LiteralSetsBuilder<'a> {
        LiteralSetsBuilder::default()
    }

    /// Returns the number of sets.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Calls `found` at each place of each word with the sets that the word stands in, and with a place
    /// inside it; places never fall.
    pub fn find(&self, text: &[u8], mut found: impl FnMut(&[u16], usize)) {
        self.table.find(text, |word, place| found(self.sets_of(word), place));
    }

    /// True if so many sets are looked for faster one after the other, in a text of so many bytes.
    pub fn prefers_alone(sets: usize, bytes: usize) -> bool {
        sets <= ALONE_MAX && bytes >= ALONE_BYTES_MIN
    }

    /// This set alone; `None` if it has too many words for that.
    pub fn alone(&self, set: u16) -> Option<&LiteralSet> {
        let alone = self.alone.get(usize::from(set))?;
        alone.get_or_init(|| LiteralSet::new(&self.words_of(set).collect::<Vec<_>>())).as_ref()
    }

    /// The words of a set, in lower case.
    pub fn words_of(&self, set: u16) -> impl Iterator<Item = &[u8]> {
        let words = (0..self.table.len() as u32).filter(move |&word| self.sets_of(word).contains(&set));
        words.map(|word| self.table.word(word))
    }

    /// The same sets, none of which can be looked for alone.
    pub fn only_together(self) -> LiteralSets {
        LiteralSets { alone: Vec::new(), ..self }
    }

    /// All words, in lower case, with the sets that each stands in.
    pub fn words(&self) -> impl Iterator<Item = (&[u8], &[u16])> {
        (0..self.table.len() as u32).map(|word| (self.table.word(word), self.sets_of(word)))
    }

    fn sets_of(&self, word: u32) -> &[u16] {
        let [from, to] = [0, 1].map(|at| self.starts[word as usize + at] as usize);
        &self.sets[from..to]
    }
}

/// [`LiteralSets`] in the making.
#[derive(Debug, Default)]
pub struct LiteralSetsBuilder<'a> {
    numbers: HashMap<&'a [u8], u32, TextHash>,
    /// By the word's number.
    texts: Vec<&'a [u8]>,
    /// Words and the sets that they stand in.
    places: Vec<(u32, u16)>,
    /// By the numbers of its words.
    known: HashMap<Vec<u32>, u16, TextHash>,
}

impl<'a> LiteralSetsBuilder<'a> {
    /// The number of this set, of words of two bytes and more; `None` if it is one too many. Sets of the same
    /// words are one.
    pub fn add(&mut self, words: &[&'a [u8]]) -> Option<u16> {
        let words: Vec<u32> = words.iter().map(|word| self.number(word)).collect();
        if let Some(&number) = self.known.get(&words) {
            return Some(number);
        }
        if self.known.len() >= SETS_MAX {
            return None;
        }
        let number = self.known.len() as u16;
        self.places.extend(words.iter().map(|&word| (word, number)));
        self.known.insert(words, number);
        Some(number)
    }

    fn number(&mut self, word: &'a [u8]) -> u32 {
        let next = self.texts.len() as u32;
        let number = *self.numbers.entry(word).or_insert(next);
        if number == next {
            self.texts.push(word);
        }
        number
    }

    /// The sets.
    pub fn finish(self) -> LiteralSets {
        let mut starts = vec![0; self.texts.len() + 1];
        self.places.iter().for_each(|(word, _)| starts[*word as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let (mut next, mut sets) = (starts.clone(), vec![0; self.places.len()]);
        for (word, set) in self.places {
            let place = &mut next[word as usize];
            sets[*place as usize] = set;
            *place += 1;
        }
        let count = self.known.len();
        let alone = std::iter::repeat_with(OnceLock::new).take(count).collect();
        LiteralSets { table: LiteralTable::new(&self.texts), sets, starts, count, alone }
    }
}
