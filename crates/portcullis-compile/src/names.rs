use std::collections::{BTreeMap, HashMap, HashSet};

use portcullis_engine::TxSlot;

use crate::template::MacroError;

/// The `TX` keys that rules name, and what is wrong with their macros.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) tx: Vec<Box<[u8]>>,
    index: HashMap<Box<[u8]>, u32>,
    /// Spellings that are not the lower case one; see [`portcullis_engine::Plan::tx_spellings`].
    pub(crate) spellings: BTreeMap<TxSlot, Box<[u8]>>,
    /// Keys that a `setvar` has named.
    spelled: HashSet<TxSlot>,
    /// Macros that stand for nothing and are not reported yet.
    pub(crate) untold: Vec<MacroError>,
    /// The text at hand is `msg`, `logdata` or `tag`.
    pub(crate) in_log_text: bool,
}

impl Names {
    /// The captures only.
    pub(crate) fn new() -> Names {
        let mut names = Names::default();
        // Captures are slots 0 to 9.
        for digit in b'0'..=b'9' {
            names.tx(&[digit]);
        }
        names
    }

    /// The slot of `key`, a new one if it is named for the first time.
    pub(crate) fn tx(&mut self, key: &[u8]) -> TxSlot {
        let key: Box<[u8]> = key.to_ascii_lowercase().into();
        let tx = &mut self.tx;
        let slot = self.index.entry(key).or_insert_with_key(|key| {
            tx.push(key.clone());
            tx.len() as u32 - 1
        });
        TxSlot(*slot)
    }

    /// The slot of a key that a rule sets.
    pub(crate) fn set_tx(&mut self, key: &[u8]) -> TxSlot {
        let slot = self.tx(key);
        if self.spelled.insert(slot) && key.iter().any(u8::is_ascii_uppercase) {
            self.spellings.insert(slot, key.into());
        }
        slot
    }
}
