//! Persistent collections between transactions: whole records, read when they are opened and written at the
//! end.

use std::collections::BTreeMap;

use bstr::BString;

use crate::text::atoi;
use crate::transaction::{Pair, get, set, unset};

/// Persistent data that outlives a transaction. Requests that run one after the other over the same database
/// see each other's changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Database {
    /// Name of the collection and key of the record, as they are stored.
    records: BTreeMap<(BString, BString), Vec<Pair>>,
}

impl Database {
    /// Follows `collection_retrieve_ex`.
    pub(crate) fn retrieve(&self, name: &BString, key: &BString, now: i64) -> Option<Vec<Pair>> {
        let mut pairs = self.records.get(&(name.clone(), key.clone()))?.clone();
        loop {
            let note =
                pairs.iter().find(|(name, value)| name.starts_with(b"__expire_") && atoi(value) <= now);
            let Some((note, _)) = note.cloned() else { break };
            unset(&mut pairs, &note[b"__expire_".len()..]);
            unset(&mut pairs, &note);
            if note == "__expire_KEY" {
                break;
            }
        }
        get(&pairs, b"KEY")?;
        if let (Some(created), Some(counter)) = (get(&pairs, b"CREATE_TIME"), get(&pairs, b"UPDATE_COUNTER"))
        {
            let seconds = now - atoi(created);
            let rate = if seconds == 0 { 0 } else { 60 * atoi(counter) / seconds };
            set(&mut pairs, "UPDATE_RATE".into(), rate.to_string().into());
        }
        Some(pairs)
    }

    /// Follows `collection_store`. One transaction runs at a time here, so a delta comes to the value itself.
    pub(crate) fn store(&mut self, record: (BString, BString), mut pairs: Vec<Pair>, now: i64) {
        unset(&mut pairs, b"IS_NEW");
        unset(&mut pairs, b"UPDATE_RATE");
        if let Some(timeout) = get(&pairs, b"TIMEOUT").map(|timeout| atoi(timeout)) {
            put(&mut pairs, b"__expire_KEY", now.saturating_add(timeout), false);
        }
        put(&mut pairs, b"LAST_UPDATE_TIME", now, true);
        let counter = get(&pairs, b"UPDATE_COUNTER").map_or(0, |counter| atoi(counter));
        put(&mut pairs, b"UPDATE_COUNTER", counter + 1, true);
        self.records.insert(record, pairs);
    }
}

/// A value in its place; at the end, if it is wanted there. The spelling of the name stays.
fn put(pairs: &mut Vec<Pair>, name: &[u8], value: i64, append: bool) {
    let value: BString = value.to_string().into();
    match pairs.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        Some(pair) => pair.1 = value,
        None if append => pairs.push((name.into(), value)),
        None => {}
    }
}

/// Follows `init_collection`.
pub(crate) fn new_record(name: &BString, key: &BString, timeout: i64, now: i64) -> Vec<Pair> {
    let number = |number: i64| BString::from(number.to_string());
    let pairs: [(&str, BString); 8] = [
        ("__expire_KEY", number(now + timeout)),
        ("KEY", key.clone()),
        ("TIMEOUT", number(timeout)),
        ("__key", key.clone()),
        ("__name", name.clone()),
        ("CREATE_TIME", number(now)),
        ("UPDATE_COUNTER", "0".into()),
        ("IS_NEW", "1".into()),
    ];
    pairs.map(|(name, value)| (name.into(), value)).into()
}

/// A record that is open.
pub(crate) struct Open {
    /// Name of the collection and key of the record, as they are stored.
    pub(crate) record: (BString, BString),
    pub(crate) pairs: Vec<Pair>,
    /// Only what changed is stored.
    pub(crate) changed: bool,
}
