//! Load time: the words of many candidates, for one search.

use std::collections::HashMap;
use std::sync::OnceLock;

use portcullis_match::{FewWords, WordFinder};
use portcullis_types::{ByteSet, TextHash};

use crate::byte_classes;

/// Words of which a text must have one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    /// The finder's.
    pub(crate) number: u16,
    /// Byte classes that the words of a single byte have: these are not looked for.
    pub(crate) classes: u64,
}

/// Words of many candidates.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    pub(crate) words: WordFinder,
    /// The lists that each word stands in, one word behind the other,
    pub(crate) lists: Vec<u16>,
    /// and by word where they begin there, and at last where they all end.
    pub(crate) starts: Vec<u32>,
    pub(crate) list_count: usize,
    /// By list: a quick look for its words, made when it is first asked for; none if they are too many.
    pub(crate) few: Vec<OnceLock<Option<FewWords>>>,
}

impl Finder {
    pub(crate) fn lists_of(&self, word: u32) -> &[u16] {
        let [from, to] = [0, 1].map(|at| self.starts[word as usize + at] as usize);
        &self.lists[from..to]
    }

    /// What says quickly that no word of this list is in a text, if there is such a thing.
    pub(crate) fn few(&self, list: u16) -> Option<&FewWords> {
        let few = self.few.get(usize::from(list))?;
        few.get_or_init(|| FewWords::new(&self.words_of(list).collect::<Vec<_>>())).as_ref()
    }

    /// In lower case; those of two bytes and more.
    pub(crate) fn words_of(&self, list: u16) -> impl Iterator<Item = &[u8]> {
        let words = (0..self.words.len() as u32).filter(move |&word| self.lists_of(word).contains(&list));
        words.map(|word| self.words.word(word))
    }
}

/// Word lists that one finder has numbers for.
const LISTS_MAX: usize = u16::MAX as usize;

/// Numbers for words and the lists that they stand in.
#[derive(Default)]
pub(crate) struct WordLists<'a> {
    numbers: HashMap<&'a [u8], u32, TextHash>,
    /// By the word's number.
    texts: Vec<&'a [u8]>,
    /// Words and the lists that they stand in.
    places: Vec<(u32, u16)>,
    /// By the numbers of its words.
    known: HashMap<Vec<u32>, u16, TextHash>,
}

impl<'a> WordLists<'a> {
    /// The numbers of `lists`; those beyond what can be numbered are left out.
    pub(crate) fn enter(&mut self, lists: &'a [Vec<Vec<u8>>]) -> Box<[List]> {
        lists.iter().filter_map(|list| self.enter_list(list)).collect()
    }

    fn enter_list(&mut self, list: &'a [Vec<u8>]) -> Option<List> {
        let classes = classes_of_bytes(list);
        let longer = list.iter().filter(|word| word.len() > 1);
        let list: Vec<u32> = longer.map(|word| self.number(word)).collect();
        if let Some(&number) = self.known.get(&list) {
            return Some(List { number, classes });
        }
        if self.known.len() >= LISTS_MAX {
            return None;
        }
        let number = self.known.len() as u16;
        self.places.extend(list.iter().map(|&word| (word, number)));
        self.known.insert(list, number);
        Some(List { number, classes })
    }

    fn number(&mut self, word: &'a [u8]) -> u32 {
        let next = self.texts.len() as u32;
        let number = *self.numbers.entry(word).or_insert(next);
        if number == next {
            self.texts.push(word);
        }
        number
    }

    pub(crate) fn finish(self, has_few: bool) -> Finder {
        let mut starts = vec![0; self.texts.len() + 1];
        self.places.iter().for_each(|(word, _)| starts[*word as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let (mut next, mut lists) = (starts.clone(), vec![0; self.places.len()]);
        for (word, list) in self.places {
            let place = &mut next[word as usize];
            lists[*place as usize] = list;
            *place += 1;
        }
        let words = WordFinder::new(&self.texts);
        let list_count = self.known.len();
        let few = std::iter::repeat_with(OnceLock::new).take(if has_few { list_count } else { 0 }).collect();
        Finder { words, lists, starts, list_count, few }
    }
}

impl Finder {
    /// By list: whether it has a word of digits, of two bytes or more.
    pub(crate) fn lists_of_digits(&self) -> Vec<bool> {
        let mut lists = vec![false; self.list_count];
        let numbers =
            (0..self.words.len() as u32).filter(|&word| self.words.word(word).iter().all(u8::is_ascii_digit));
        numbers.flat_map(|word| self.lists_of(word)).for_each(|&list| lists[usize::from(list)] = true);
        lists
    }
}

/// Byte classes that the words of a single byte have.
fn classes_of_bytes(list: &[Vec<u8>]) -> u64 {
    let bytes = list.iter().filter(|word| word.len() == 1).flatten();
    let bytes = bytes.fold(ByteSet::EMPTY, |set, byte| set.with(*byte).with(byte.to_ascii_uppercase()));
    byte_classes::touching(&bytes)
}
