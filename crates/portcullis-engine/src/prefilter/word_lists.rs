//! Load time: the words of many candidates, for one search.

use std::collections::HashMap;
use std::sync::OnceLock;

use portcullis_match::WordFinder;
use portcullis_types::{ByteSet, TextHash};

use super::{Finder, List, byte_classes};

/// Word lists that one finder has numbers for.
const LISTS_MAX: usize = u16::MAX as usize;

/// Numbers for words and the lists that they stand in.
#[derive(Default)]
pub(super) struct WordLists<'a> {
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
    pub(super) fn enter(&mut self, lists: &'a [Vec<Vec<u8>>]) -> Box<[List]> {
        lists.iter().filter_map(|list| self.enter_list(list)).collect()
    }

    fn enter_list(&mut self, list: &'a [Vec<u8>]) -> Option<List> {
        let classes = byte_classes(list);
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

    pub(super) fn finish(self) -> Finder {
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
        let few = std::iter::repeat_with(OnceLock::new).take(list_count).collect();
        Finder { words, lists, starts, list_count, few }
    }
}

impl Finder {
    /// By list: whether it has a word of digits, of two bytes or more.
    pub(super) fn lists_of_digits(&self) -> Vec<bool> {
        let mut lists = vec![false; self.list_count];
        let numbers =
            (0..self.words.len() as u32).filter(|&word| self.words.word(word).iter().all(u8::is_ascii_digit));
        numbers.flat_map(|word| self.lists_of(word)).for_each(|&list| lists[usize::from(list)] = true);
        lists
    }
}

/// Byte classes that the words of a single byte have.
pub(super) fn byte_classes(list: &[Vec<u8>]) -> u64 {
    let bytes = list.iter().filter(|word| word.len() == 1).flatten();
    let bytes = bytes.fold(ByteSet::EMPTY, |set, byte| set.with(*byte).with(byte.to_ascii_uppercase()));
    byte_classes::touching(&bytes)
}
