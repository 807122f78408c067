//! One field of all events of a block: numbers, or codes of a dictionary.

use hashbrown::HashMap;

use crate::codec::{Damaged, Reader, put_bytes, put_u16, put_u32, put_u64};
use crate::rows::Rows;

/// The absent number.
pub(crate) const NONE: u64 = u64::MAX;

/// A number for each event; [`NONE`] where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers(pub(crate) Vec<u64>);

impl Numbers {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let least = self.0.iter().copied().min().unwrap_or(0);
        let is_small = |number: &u64| *number == NONE || number - least < u64::from(u32::MAX);
        let small = least != NONE && self.0.iter().all(is_small);
        out.push(if small { 4 } else { 8 });
        put_u64(out, least);
        for &number in &self.0 {
            match small {
                true if number == NONE => put_u32(out, u32::MAX),
                true => put_u32(out, (number - least) as u32),
                false => put_u64(out, number),
            }
        }
    }

    pub(crate) fn read(bytes: &[u8], count: usize) -> Result<Numbers, Damaged> {
        let mut reader = Reader(bytes);
        let width = reader.take(1)?[0];
        let least = reader.u64()?;
        let numbers = match width {
            4 => {
                let (words, rest) = reader.0.as_chunks::<4>();
                let whole = |word: &[u8; 4]| match u32::from_le_bytes(*word) {
                    u32::MAX => NONE,
                    number => least.saturating_add(number.into()),
                };
                if rest.is_empty() { words.iter().map(whole).collect() } else { return Err(Damaged) }
            }
            8 => {
                let (words, rest) = reader.0.as_chunks::<8>();
                let whole = |word: &[u8; 8]| u64::from_le_bytes(*word);
                if rest.is_empty() { words.iter().map(whole).collect() } else { return Err(Damaged) }
            }
            _ => return Err(Damaged),
        };
        let numbers: Vec<u64> = numbers;
        if numbers.len() == count { Ok(Numbers(numbers)) } else { Err(Damaged) }
    }
}

/// Texts, each once, with the number that stands for it.
#[derive(Clone, Debug, Default)]
struct Dictionary {
    codes: HashMap<Box<str>, u16>,
    texts: Vec<Box<str>>,
}

impl Dictionary {
    fn code(&mut self, text: &str) -> u16 {
        if let Some(code) = self.codes.get(text) {
            return *code;
        }
        // A block has fewer events than there are codes.
        let code = self.texts.len().min(usize::from(u16::MAX)) as u16;
        self.codes.insert(text.into(), code);
        self.texts.push(text.into());
        code
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_u32(out, self.texts.len() as u32);
        self.texts.iter().for_each(|text| put_bytes(out, text.as_bytes()));
    }
}

/// A text for each event, as it is built.
#[derive(Clone, Debug, Default)]
pub(crate) struct WordsBuilder {
    dictionary: Dictionary,
    codes: Vec<u16>,
}

impl WordsBuilder {
    pub(crate) fn push(&mut self, text: &str) {
        let code = self.dictionary.code(text);
        self.codes.push(code);
    }

    /// Adds the texts of another, behind its own.
    pub(crate) fn extend(&mut self, other: &WordsBuilder) {
        other.codes.iter().for_each(|&code| self.push(&other.dictionary.texts[usize::from(code)]));
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.dictionary.write(out);
        self.codes.iter().for_each(|&code| put_u16(out, code));
    }
}

/// A text for each event; empty where there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    texts: Vec<Box<str>>,
    codes: Vec<u16>,
}

impl Words {
    pub(crate) fn read(bytes: &[u8], count: usize) -> Result<Words, Damaged> {
        let mut reader = Reader(bytes);
        let texts = read_texts(&mut reader)?;
        let codes = read_codes(&mut reader, count, texts.len())?;
        reader.end()?;
        Ok(Words { texts, codes })
    }

    /// The text of a row.
    pub(crate) fn get(&self, row: usize) -> &str {
        self.codes.get(row).and_then(|&code| self.texts.get(usize::from(code))).map_or("", |text| text)
    }

    /// The rows whose text passes; each text is tested once.
    pub(crate) fn rows(&self, test: impl FnMut(&str) -> bool) -> Rows {
        let mut test = test;
        let passes: Vec<bool> = self.texts.iter().map(|text| test(text)).collect();
        if !passes.contains(&true) {
            return Rows::none(self.codes.len());
        }
        Rows::of(self.codes.len(), |row| passes[usize::from(self.codes[row])])
    }
}

/// Several texts for each event, as they are gathered.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListsBuilder {
    dictionary: Dictionary,
    /// End of the codes of each event.
    ends: Vec<u32>,
    codes: Vec<u16>,
}

impl ListsBuilder {
    /// Adds a text to the event that is being added.
    pub(crate) fn add(&mut self, text: &str) {
        let code = self.dictionary.code(text);
        let begun = self.ends.last().map_or(0, |&end| end as usize);
        if !self.codes[begun..].contains(&code) {
            self.codes.push(code);
        }
    }

    /// The event has no more.
    pub(crate) fn close(&mut self) {
        self.ends.push(self.codes.len() as u32);
    }

    /// Adds the events of another, behind its own.
    pub(crate) fn extend(&mut self, other: &ListsBuilder) {
        let mut begin = 0;
        for &end in &other.ends {
            for &code in &other.codes[begin..end as usize] {
                self.add(&other.dictionary.texts[usize::from(code)]);
            }
            self.close();
            begin = end as usize;
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.dictionary.write(out);
        self.ends.iter().for_each(|&end| put_u32(out, end));
        self.codes.iter().for_each(|&code| put_u16(out, code));
    }
}

/// Several texts for each event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lists {
    texts: Vec<Box<str>>,
    ends: Vec<u32>,
    codes: Vec<u16>,
}

impl Lists {
    pub(crate) fn read(bytes: &[u8], count: usize) -> Result<Lists, Damaged> {
        let mut reader = Reader(bytes);
        let texts = read_texts(&mut reader)?;
        let mut ends = Vec::with_capacity(count.min(bytes.len()));
        for _ in 0..count {
            let end = reader.u32()?;
            if ends.last().is_some_and(|&before| before > end) {
                return Err(Damaged);
            }
            ends.push(end);
        }
        let total = ends.last().map_or(0, |&end| end as usize);
        let codes = read_codes(&mut reader, total, texts.len())?;
        reader.end()?;
        Ok(Lists { texts, ends, codes })
    }

    /// The texts of a row.
    pub(crate) fn get(&self, row: usize) -> impl Iterator<Item = &str> {
        self.codes(row).iter().map(|&code| &*self.texts[usize::from(code)])
    }

    fn codes(&self, row: usize) -> &[u16] {
        let begin = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        &self.codes[begin..self.ends[row] as usize]
    }

    /// The rows of which one text passes; each text is tested once.
    pub(crate) fn rows(&self, test: impl FnMut(&str) -> bool) -> Rows {
        let mut test = test;
        let passes: Vec<bool> = self.texts.iter().map(|text| test(text)).collect();
        if !passes.contains(&true) {
            return Rows::none(self.ends.len());
        }
        Rows::of(self.ends.len(), |row| self.codes(row).iter().any(|&code| passes[usize::from(code)]))
    }
}

fn read_texts(reader: &mut Reader<'_>) -> Result<Vec<Box<str>>, Damaged> {
    let count = reader.u32()? as usize;
    // Each takes four bytes at least.
    if count > reader.0.len() / 4 {
        return Err(Damaged);
    }
    (0..count).map(|_| reader.text().map(Box::from)).collect()
}

fn read_codes(reader: &mut Reader<'_>, count: usize, texts: usize) -> Result<Vec<u16>, Damaged> {
    let (codes, _) = reader.take(count.checked_mul(2).ok_or(Damaged)?)?.as_chunks::<2>();
    let codes: Vec<u16> = codes.iter().map(|code| u16::from_le_bytes(*code)).collect();
    if codes.iter().all(|&code| usize::from(code) < texts) { Ok(codes) } else { Err(Damaged) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(numbers in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..1000, Just(NONE)], 0..70)) {
            let mut out = Vec::new();
            Numbers(numbers.clone()).write(&mut out);
            prop_assert_eq!(Numbers::read(&out, numbers.len()).unwrap().0, numbers);
        }

        #[test]
        fn words_and_lists_come_back(lists in prop::collection::vec(prop::collection::vec("[ab]{0,2}", 0..4), 1..70)) {
            let (mut words, mut several) = (WordsBuilder::default(), ListsBuilder::default());
            for list in &lists {
                words.push(&list.concat());
                list.iter().for_each(|text| several.add(text));
                several.close();
            }
            let mut out = Vec::new();
            words.write(&mut out);
            let words = Words::read(&out, lists.len()).unwrap();
            out.clear();
            several.write(&mut out);
            let several = Lists::read(&out, lists.len()).unwrap();
            for (row, list) in lists.iter().enumerate() {
                prop_assert_eq!(words.get(row), list.concat());
                let mut once: Vec<&str> = Vec::new();
                list.iter().for_each(|text| if !once.contains(&&**text) { once.push(text) });
                prop_assert_eq!(several.get(row).collect::<Vec<_>>(), once);
            }
            let rows = several.rows(|text| text == "ab");
            let expected: Vec<usize> = (0..lists.len()).filter(|&row| lists[row].iter().any(|text| text == "ab")).collect();
            prop_assert_eq!(rows.iter().collect::<Vec<_>>(), expected);
        }

        /// Bytes of a disk that lies: no panic.
        #[test]
        fn damaged_columns_are_refused(bytes in prop::collection::vec(0u8..9, 0..80), count in 0usize..9) {
            let _ = Numbers::read(&bytes, count);
            let _ = Words::read(&bytes, count);
            let _ = Lists::read(&bytes, count);
        }
    }
}
