//! Patterns and word lists that plans share.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use portcullis_match::{Pcre, RegexFlags, WordSet};

/// Compiled patterns and word lists by their text. They are most of a plan's memory and of the time to make it, and
/// never change; whoever compiles several rule sets, or one of them again, passes the same `Patterns` each time, and
/// equal ones exist once. What no plan uses any longer is forgotten at the next compilation.
#[derive(Debug, Default)]
pub struct Patterns {
    regexes: Mutex<Known<RegexKey, Pcre>>,
    words: Mutex<Known<Box<[Vec<u8>]>, WordSet>>,
}

type Known<K, T> = HashMap<K, Weak<T>>;
type RegexKey = (Box<[u8]>, RegexFlags);

impl Patterns {
    pub(crate) fn regex(&self, pattern: &[u8], flags: RegexFlags) -> Result<Arc<Pcre>, String> {
        shared(&self.regexes, (pattern.into(), flags), |(pattern, flags)| {
            Pcre::new(pattern, *flags).map_err(|error| error.to_string())
        })
    }

    pub(crate) fn words(&self, words: Vec<Vec<u8>>) -> Result<Arc<WordSet>, String> {
        shared(&self.words, words.into(), |words| {
            WordSet::new(words.iter().cloned()).map_err(|error| error.to_string())
        })
    }

    /// Forgets what is no longer in use.
    pub(crate) fn tidy(&self) {
        fn tidy<K: Eq + Hash, T>(known: &Mutex<Known<K, T>>) {
            known.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, item| item.strong_count() > 0);
        }
        tidy(&self.regexes);
        tidy(&self.words);
    }
}

fn shared<K: Eq + Hash, T>(
    known: &Mutex<Known<K, T>>,
    key: K,
    make: impl FnOnce(&K) -> Result<T, String>,
) -> Result<Arc<T>, String> {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(item) = known.get(&key).and_then(Weak::upgrade) {
        return Ok(item);
    }
    let item = Arc::new(make(&key)?);
    known.insert(key, Arc::downgrade(&item));
    Ok(item)
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
}
