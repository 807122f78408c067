//! Patterns and word lists that plans share.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use portcullis_match::{Facts, Pcre, RegexError, RegexFlags, WordSet};
use portcullis_types::TextHash;

/// Compiled patterns and word lists by their text. They are most of a plan's memory and of the time to make
/// it, and never change; a caller that compiles several rule sets, or one of them again, passes the same
/// `Patterns` each time, and equal ones exist once. What no plan uses any longer is forgotten at the next
/// compilation.
///
/// Facts that an earlier run of the program learned of them can be given with [`Patterns::remembering`]; the
/// facts to keep are taken with [`Patterns::used`].
#[derive(Debug, Default)]
pub struct Patterns {
    regexes: Mutex<Known<RegexKey, Pcre>>,
    words: Mutex<Known<WordsKey, WordSet>>,
    memory: Mutex<Option<Memory>>,
}

type Known<K, T> = HashMap<K, Weak<T>, TextHash>;
type RegexKey = (Box<[u8]>, RegexFlags);
type WordsKey = Box<[Vec<u8>]>;

/// The facts about patterns that are known before compilation. They depend on nothing but the pattern.
#[derive(Debug, Default)]
pub struct Remembered {
    /// Of patterns.
    pub regexes: HashMap<RegexKey, Facts, TextHash>,
    /// Of word lists.
    pub words: HashMap<WordsKey, Facts, TextHash>,
}

/// The patterns and word lists that compilations used since [`Patterns::remembering`].
#[derive(Clone, Debug, Default)]
pub struct Used {
    /// The patterns, rules that are switched off included.
    pub regexes: Vec<Arc<Pcre>>,
    /// The word lists.
    pub words: Vec<Arc<WordSet>>,
    /// The number of both that were reused.
    pub known: usize,
}

#[derive(Debug)]
struct Memory {
    known: Remembered,
    used: Used,
}

impl Patterns {
    /// From now on takes what is `known`, and notes what is asked for.
    pub fn remembering(&self, known: Remembered) {
        *lock(&self.memory) = Some(Memory { known, used: Used::default() });
    }

    /// Returns the patterns and word lists used since [`Patterns::remembering`], which ends with this call.
    pub fn used(&self) -> Used {
        lock(&self.memory).take().map(|memory| memory.used).unwrap_or_default()
    }

    pub(crate) fn regex(&self, pattern: &[u8], flags: RegexFlags) -> Result<Arc<Pcre>, RegexError> {
        let mut memory = lock(&self.memory);
        let mut is_known = true;
        let regex = shared(&self.regexes, (pattern.into(), flags), |key| {
            match memory.as_mut().and_then(|memory| memory.known.regexes.remove(key)) {
                Some(facts) => Ok(Pcre::with_facts(pattern, flags, facts)),
                None => {
                    is_known = false;
                    Pcre::new(pattern, flags)
                }
            }
        })?;
        if let Some(Memory { used, .. }) = &mut *memory {
            used.known += usize::from(is_known);
            used.regexes.push(Arc::clone(&regex));
        }
        Ok(regex)
    }

    pub(crate) fn words(&self, words: Vec<Vec<u8>>) -> Result<Arc<WordSet>, String> {
        let mut memory = lock(&self.memory);
        let mut is_known = true;
        let set = shared(&self.words, words.into(), |key| {
            let words = key.iter().cloned();
            let made = match memory.as_mut().and_then(|memory| memory.known.words.remove(key)) {
                Some(facts) => WordSet::with_facts(words, facts),
                None => {
                    is_known = false;
                    WordSet::new(words)
                }
            };
            made.map_err(|error| error.to_string())
        })?;
        if let Some(Memory { used, .. }) = &mut *memory {
            used.known += usize::from(is_known);
            used.words.push(Arc::clone(&set));
        }
        Ok(set)
    }

    /// Forgets what is no longer in use.
    pub(crate) fn tidy(&self) {
        fn tidy<K: Eq + Hash, T>(known: &Mutex<Known<K, T>>) {
            lock(known).retain(|_, item| item.strong_count() > 0);
        }
        tidy(&self.regexes);
        tidy(&self.words);
    }
}

fn shared<K: Eq + Hash, T, E>(
    known: &Mutex<Known<K, T>>,
    key: K,
    make: impl FnOnce(&K) -> Result<T, E>,
) -> Result<Arc<T>, E> {
    let mut known = lock(known);
    if let Some(item) = known.get(&key).and_then(Weak::upgrade) {
        return Ok(item);
    }
    let item = Arc::new(make(&key)?);
    known.insert(key, Arc::downgrade(&item));
    Ok(item)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_patterns_exist_once_and_unused_ones_go() {
        let patterns = Patterns::default();
        let regex = |text: &[u8], flags| patterns.regex(text, flags).unwrap();
        let (first, second) = (regex(b"a+", RegexFlags::default()), regex(b"a+", RegexFlags::default()));
        assert!(Arc::ptr_eq(&first, &second));
        let flags = RegexFlags { multi_line: true, ..RegexFlags::default() };
        assert!(!Arc::ptr_eq(&first, &regex(b"a+", flags)));
        let words = || patterns.words(vec![b"a".to_vec(), b"b".to_vec()]).unwrap();
        assert!(Arc::ptr_eq(&words(), &words()) || patterns.words.lock().unwrap().len() == 1);
        patterns.tidy();
        assert_eq!((patterns.regexes.lock().unwrap().len(), patterns.words.lock().unwrap().len()), (1, 0));
        assert!(patterns.regex(b"(", RegexFlags::default()).is_err());
        assert_eq!(patterns.regexes.lock().unwrap().len(), 1);
    }

    #[test]
    fn what_was_used_is_remembered() {
        let flags = RegexFlags::default();
        let first = Patterns::default();
        first.remembering(Remembered::default());
        first.regex(b"a(b)+", flags).unwrap();
        first.regex(b"a(?=b)", flags).unwrap();
        first.words(vec![b"one".to_vec(), b"two".to_vec()]).unwrap();
        first.tidy();
        let Used { regexes, words, known } = first.used();
        assert_eq!((regexes.len(), words.len(), known), (2, 1, 0));
        // One that backtracks is read again.
        assert_eq!(regexes[1].facts(), None);
        let remembered = Remembered {
            regexes: [((b"a(b)+".as_slice().into(), flags), regexes[0].facts().unwrap())]
                .into_iter()
                .collect(),
            words: [(words[0].words().into(), words[0].facts())].into_iter().collect(),
        };

        let second = Patterns::default();
        second.remembering(remembered);
        let regex = second.regex(b"a(b)+", flags).unwrap();
        assert_eq!((regex.group_count(), regex.is_match(b"xabb")), (1, true));
        // Other flags are another pattern.
        second.regex(b"a(b)+", RegexFlags { case_insensitive: true, ..flags }).unwrap();
        assert!(second.words(vec![b"one".to_vec(), b"two".to_vec()]).unwrap().is_match(b"TWO"));
        assert_eq!(second.used().known, 2);
        assert_eq!(second.used().regexes.len(), 0);
    }
}
