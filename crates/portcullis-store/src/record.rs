//! Reading and storing a record. Follows ModSecurity's `collection_retrieve_ex` and `collection_store`; where
//! several transactions change one record at a time, each change is applied to what is stored.

use portcullis_engine::{Change, EXPIRE_PREFIX, IS_NEW, RecordId, Sum, Value, VariableChange, new_record};

use crate::packed::{Variables, push};

const UPDATE_RATE: &[u8] = b"UPDATE_RATE";
const EXPIRE_KEY: &[u8] = b"__expire_KEY";
/// A record that was stored up to so many seconds ahead was stored by a request that came later and ended
/// earlier; beyond that the clock was set back.
const AHEAD_MAX: i64 = 3600;

/// Variables of a stored record that have not expired.
pub(crate) struct Live<'a> {
    variables: Variables<'a>,
    /// Names that have expired. Mostly none, so mostly not allocated.
    expired: Vec<&'a [u8]>,
}

impl<'a> Live<'a> {
    /// `None` if the record as a whole is no more: it expired, or `KEY` was removed.
    pub(crate) fn new(id: RecordId<'a>, packed: &'a [u8], now: i64) -> Option<Live<'a>> {
        let variables = Variables::new(id, packed);
        let (mut expired, mut has_key) = (Vec::new(), false);
        for (name, value) in variables {
            if let Some(of) = name.strip_prefix(EXPIRE_PREFIX)
                && value.to_int() <= now
            {
                expired.push(of);
            }
            has_key |= name.eq_ignore_ascii_case(b"KEY");
        }
        let live = Live { variables, expired };
        (has_key && !live.is_expired(b"KEY")).then_some(live)
    }

    fn is_expired(&self, name: &[u8]) -> bool {
        let listed = |name: &[u8]| self.expired.iter().any(|expired| expired.eq_ignore_ascii_case(name));
        // A note goes with its variable.
        listed(name) || name.strip_prefix(EXPIRE_PREFIX).is_some_and(listed)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a [u8], Value<'a>)> + '_ {
        self.variables.filter(|(name, _)| self.expired.is_empty() || !self.is_expired(name))
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<Value<'a>> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// Shows a record as a transaction sees it.
pub(crate) fn load(live: &Live<'_>, now: i64, each: &mut dyn FnMut(&[u8], Value<'_>)) {
    let (mut created, mut counter) = (None, None);
    for (name, value) in live.iter() {
        match name {
            b"CREATE_TIME" => created = Some(value.to_int()),
            b"UPDATE_COUNTER" => counter = Some(value.to_int()),
            _ => {}
        }
        each(name, value);
    }
    if let (Some(created), Some(counter)) = (created, counter) {
        // Updates a minute; none before a second has passed.
        let rate = counter.saturating_mul(60).checked_div(now.saturating_sub(created)).unwrap_or(0);
        each(UPDATE_RATE, Value::Int(rate));
    }
}

/// The result of [`save`] beside the bytes.
pub(crate) struct Saved {
    /// The time at which the record expires.
    pub(crate) expires_at: i64,
    /// Changes that did not fit into the record's limit.
    pub(crate) dropped: u32,
}

/// Writes the record after `updates` to `out`, in `bytes_max` at most: what would not fit is left as it was.
pub(crate) fn save(
    old: Option<&Live<'_>>,
    id: RecordId<'_>,
    timeout: i64,
    now: i64,
    updates: &[VariableChange<'_>],
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Saved {
    let mut fresh = Vec::new();
    let made;
    let old = match old {
        Some(old) => old,
        None => {
            for (name, value) in new_record(id, timeout, now) {
                push(&mut fresh, id, name, value);
            }
            made = Live { variables: Variables::new(id, &fresh), expired: Vec::new() };
            &made
        }
    };
    let last_update = old.get(b"LAST_UPDATE_TIME").map(Value::to_int);
    // A slow request must not take the record back to the time when it began.
    let now = match last_update {
        Some(last) if last.saturating_sub(now) <= AHEAD_MAX => now.max(last),
        _ => now,
    };
    let merge = Merge { old, updates, last_update };
    let expires_at = merge.after(b"TIMEOUT").map(|timeout| now.saturating_add(timeout.to_int()));
    let mut scratch = Vec::new();
    let mut bytes_of = |name: &[u8], value: Value<'_>| {
        scratch.clear();
        push(&mut scratch, id, name, value);
        scratch.len()
    };
    let kept = || old.iter().filter(|(name, _)| !merge.unset(name));
    let owed = kept().map(|(name, value)| bytes_of(name, value)).sum();
    let mut writer =
        Writer { id, now, expires_at, known_expiry: None, has: [false; 2], bytes_max, owed, dropped: 0, out };
    for (name, value) in kept() {
        writer.owed -= bytes_of(name, value);
        match merge.last(name) {
            None => writer.write(name, value, Some((name, value))),
            Some(VariableChange { variable, change: Change::Set(set) }) => {
                writer.write(variable, *set, Some((name, value)))
            }
            Some(update) => writer.write(name, merge.apply(update, Some(value)), Some((name, value))),
        }
    }
    for update in updates {
        let placed = !merge.unset(update.variable) && old.get(update.variable).is_some();
        if update.change != Change::Unset && !placed {
            writer.write(update.variable, merge.apply(update, None), None);
        }
    }
    writer.end()
}

struct Merge<'m> {
    old: &'m Live<'m>,
    updates: &'m [VariableChange<'m>],
    last_update: Option<i64>,
}

impl<'m> Merge<'m> {
    fn unset(&self, name: &[u8]) -> bool {
        let gone = |update: &VariableChange<'_>| {
            update.change == Change::Unset && update.variable.eq_ignore_ascii_case(name)
        };
        self.updates.iter().any(gone)
    }

    fn last(&self, name: &[u8]) -> Option<&'m VariableChange<'m>> {
        self.updates.iter().rfind(|update| update.variable.eq_ignore_ascii_case(name))
    }

    fn apply(&self, update: &VariableChange<'m>, stored: Option<Value<'m>>) -> Value<'m> {
        match (update.change, stored) {
            (Change::Set(value), _) => value,
            (Change::Unset, _) => Value::Int(0),
            (Change::Add(sum), None) => Value::Int(sum.value),
            (Change::Add(sum), Some(stored)) => Value::Int(add(sum, stored.to_int(), self.last_update)),
        }
    }

    /// The value after all updates.
    fn after(&self, name: &[u8]) -> Option<Value<'m>> {
        let stored = self.old.get(name).filter(|_| !self.unset(name));
        match self.last(name) {
            None => stored,
            Some(VariableChange { change: Change::Unset, .. }) => None,
            Some(update) => Some(self.apply(update, stored)),
        }
    }
}

/// Writes a record with some variables as another node has them; the rest stays. When it expires.
pub(crate) fn overlay(
    old: Option<&Live<'_>>,
    id: RecordId<'_>,
    fields: &[(&[u8], Option<Value<'_>>)],
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> i64 {
    let find = |name: &[u8]| fields.iter().rfind(|(known, _)| known.eq_ignore_ascii_case(name));
    let mut expires_at = i64::MAX;
    let mut write = |name: &[u8], value: Value<'_>| {
        let start = out.len();
        push(out, id, name, value);
        if out.len() > bytes_max {
            return out.truncate(start);
        }
        if name.eq_ignore_ascii_case(EXPIRE_KEY) {
            expires_at = value.to_int();
        }
    };
    for (name, value) in old.into_iter().flat_map(Live::iter) {
        match find(name) {
            None => write(name, value),
            Some((_, Some(value))) => write(name, *value),
            Some((_, None)) => {}
        }
    }
    for (at, (name, value)) in fields.iter().enumerate() {
        let later = fields[at + 1..].iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let known = old.is_some_and(|old| old.get(name).is_some());
        if let (Some(value), false, false) = (value, later, known) {
            write(name, *value);
        }
    }
    expires_at
}

/// A stored counter after a transaction's change.
pub(crate) fn add(sum: Sum, stored: i64, last_update: Option<i64>) -> i64 {
    let decay = if last_update == Some(sum.seen) { sum.decay } else { 0 };
    stored.saturating_sub(decay).saturating_add(sum.delta).max(0)
}

const LAST_UPDATE: usize = 0;
const COUNTER: usize = 1;

struct Writer<'w> {
    id: RecordId<'w>,
    now: i64,
    /// From `TIMEOUT`, if the record has one.
    expires_at: Option<i64>,
    known_expiry: Option<i64>,
    /// `LAST_UPDATE_TIME`, `UPDATE_COUNTER` are written.
    has: [bool; 2],
    bytes_max: usize,
    /// Bytes of stored variables that are still to be written.
    owed: usize,
    dropped: u32,
    out: &'w mut Vec<u8>,
}

impl Writer<'_> {
    /// Writes a variable; if that is too much, what was there `before`, if anything.
    fn write(&mut self, name: &[u8], value: Value<'_>, before: Option<(&[u8], Value<'_>)>) {
        let mut value = value;
        if name.eq_ignore_ascii_case(IS_NEW) || name.eq_ignore_ascii_case(UPDATE_RATE) {
            return;
        } else if name.eq_ignore_ascii_case(b"LAST_UPDATE_TIME") {
            self.has[LAST_UPDATE] = true;
            value = Value::Int(self.now);
        } else if name.eq_ignore_ascii_case(b"UPDATE_COUNTER") {
            self.has[COUNTER] = true;
            value = Value::Int(value.to_int().saturating_add(1));
        } else if name.eq_ignore_ascii_case(EXPIRE_KEY) {
            value = self.expires_at.map_or(value, Value::Int);
            self.known_expiry = Some(value.to_int());
        }
        let start = self.out.len();
        push(self.out, self.id, name, value);
        if self.out.len() + self.owed > self.bytes_max {
            self.out.truncate(start);
            self.dropped += 1;
            if let Some((name, value)) = before {
                push(self.out, self.id, name, value);
                if name.eq_ignore_ascii_case(EXPIRE_KEY) {
                    self.known_expiry = Some(value.to_int());
                }
            }
        }
    }

    fn end(mut self) -> Saved {
        if !self.has[LAST_UPDATE] {
            self.write(b"LAST_UPDATE_TIME", Value::Int(0), None);
        }
        if !self.has[COUNTER] {
            self.write(b"UPDATE_COUNTER", Value::Int(0), None);
        }
        Saved { expires_at: self.known_expiry.unwrap_or(i64::MAX), dropped: self.dropped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: RecordId<'_> = RecordId { name: b"ip", key: b"192.0.2.1" };

    /// Stores `updates` at `now` and gives the record back.
    fn store(old: &[u8], now: i64, updates: &[(&str, Change<'_>)]) -> Vec<u8> {
        let updates: Vec<_> = updates
            .iter()
            .map(|(name, change)| VariableChange { variable: name.as_bytes(), change: *change })
            .collect();
        let (live, mut out) = (Live::new(ID, old, now), Vec::new());
        save(live.as_ref(), ID, 3600, now, &updates, 1 << 16, &mut out);
        out
    }

    fn shown(packed: &[u8], now: i64) -> Option<String> {
        let live = Live::new(ID, packed, now)?;
        let mut all = Vec::new();
        load(&live, now, &mut |name, value| {
            let value = match value {
                Value::Int(number) => number.to_string(),
                Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
            };
            all.push(format!("{}={value}", String::from_utf8_lossy(name)));
        });
        Some(all.join(" "))
    }

    fn plus(delta: i64) -> Change<'static> {
        Change::Add(Sum { delta, decay: 0, seen: 0, value: delta })
    }

    #[test]
    fn a_record_begins_and_goes_on_as_in_modsecurity() {
        let first = store(b"", 1_000, &[("n", plus(2)), ("s", Change::Set(Value::Text(b"x")))]);
        assert_eq!(
            shown(&first, 1_060).unwrap(),
            "__expire_KEY=4600 KEY=192.0.2.1 TIMEOUT=3600 __key=192.0.2.1 __name=ip CREATE_TIME=1000 UPDATE_COUNTER=1 \
             n=2 s=x LAST_UPDATE_TIME=1000 UPDATE_RATE=1"
        );
        let second =
            store(&first, 1_060, &[("n", plus(3)), ("s", Change::Unset), ("t", Change::Set(Value::Int(7)))]);
        assert_eq!(
            shown(&second, 1_060).unwrap(),
            "__expire_KEY=4660 KEY=192.0.2.1 TIMEOUT=3600 __key=192.0.2.1 __name=ip CREATE_TIME=1000 UPDATE_COUNTER=2 \
             n=5 LAST_UPDATE_TIME=1060 t=7 UPDATE_RATE=2"
        );
        assert_eq!(shown(&second, 4_660), None, "expired");
        assert!(shown(&store(&second, 4_660, &[("n", plus(1))]), 4_661).unwrap().contains(" n=1 "));
    }

    #[test]
    fn timeout_is_a_variable_like_others() {
        let record = store(b"", 1_000, &[("TIMEOUT", Change::Set(Value::Int(10)))]);
        assert!(shown(&record, 1_009).is_some());
        assert!(shown(&record, 1_010).is_none());
        let forever = store(b"", 1_000, &[("__expire_KEY", Change::Unset)]);
        assert!(shown(&forever, i64::MAX).is_some());
        assert!(shown(&store(b"", 1_000, &[("KEY", Change::Unset)]), 1_001).is_none());
    }

    #[test]
    fn variables_expire_with_their_notes() {
        let record = store(
            b"",
            1_000,
            &[("n", plus(5)), ("__expire_N", Change::Set(Value::Int(1_010))), ("m", plus(1))],
        );
        assert!(shown(&record, 1_009).unwrap().contains("n=5 __expire_N=1010 m=1"));
        assert!(!shown(&record, 1_010).unwrap().contains("n="));
        // A count that expired meanwhile starts anew.
        let next =
            store(&record, 1_010, &[("n", Change::Add(Sum { delta: 1, decay: 0, seen: 0, value: 1 }))]);
        assert!(shown(&next, 1_010).unwrap().contains(" n=1 "));
        assert!(!shown(&next, 1_010).unwrap().contains("__expire_N"));
    }

    #[test]
    fn counters_stay_above_zero_and_decay_once() {
        let record = store(b"", 1_000, &[("n", plus(9))]);
        let decay = Change::Add(Sum { delta: 1, decay: 4, seen: 1_000, value: 6 });
        let one = store(&record, 1_020, &[("n", decay)]);
        assert!(shown(&one, 1_020).unwrap().contains(" n=6 "));
        // A second transaction that read the same state does not take it off again.
        let two = store(&one, 1_020, &[("n", decay)]);
        assert!(shown(&two, 1_020).unwrap().contains(" n=7 "));
        assert!(shown(&store(&two, 1_020, &[("n", plus(-50))]), 1_020).unwrap().contains(" n=0 "));
    }

    #[test]
    fn a_record_that_is_full_keeps_what_it_has() {
        let live = Live::new(ID, b"", 0);
        let (mut out, text) = (Vec::new(), vec![b'x'; 500]);
        let updates = [
            VariableChange { variable: b"n", change: Change::Set(Value::Int(1)) },
            VariableChange { variable: b"long", change: Change::Set(Value::Text(&text)) },
        ];
        let saved = save(live.as_ref(), ID, 60, 1_000, &updates, 100, &mut out);
        assert_eq!((saved.dropped, saved.expires_at), (1, 1_060));
        assert!(shown(&out, 1_000).unwrap().contains(" n=1 "));
        assert!(out.len() <= 100);
    }

    #[test]
    fn no_length_of_a_value_costs_variables_that_are_there() {
        fn update<'a>(variable: &'a [u8], change: Change<'a>) -> VariableChange<'a> {
            VariableChange { variable, change }
        }
        let (mut first, expected) =
            (Vec::new(), ["a=", " n=", "b=7", "__expire_b=5000", "LAST_UPDATE_TIME="]);
        let old = [
            update(b"a", Change::Set(Value::Text(b"short"))),
            update(b"n", Change::Set(Value::Int(9))),
            update(b"b", Change::Set(Value::Int(7))),
            update(b"__expire_b", Change::Set(Value::Int(5_000))),
        ];
        save(None, ID, 3600, 1_000, &old, 300, &mut first);
        for length in 0..400 {
            let text = vec![b'x'; length];
            let updates = [update(b"a", Change::Set(Value::Text(&text))), update(b"n", plus(1 << 40))];
            let (live, mut out) = (Live::new(ID, &first, 2_000), Vec::new());
            let saved = save(live.as_ref(), ID, 3600, 2_000, &updates, 300, &mut out);
            let shown = shown(&out, 2_000).unwrap();
            assert!(expected.iter().all(|text| shown.contains(text)), "{length}: {shown}");
            assert!(out.len() <= 300, "{length}: {}", out.len());
            let took = shown.contains(&format!(" a={} ", "x".repeat(length)));
            assert!(took || saved.dropped > 0 && shown.contains(" a=short "), "{length}: {shown}");
            assert!(shown.contains(&format!("__expire_KEY={} ", saved.expires_at)), "{length}: {shown}");
        }
    }

    #[test]
    fn a_request_that_began_long_ago_takes_nothing_back() {
        let record = store(b"", 1_000, &[("n", plus(1))]);
        let record = store(&record, 4_000, &[("n", plus(1))]);
        let late = store(&record, 1_500, &[("n", plus(1))]);
        let shown_late = shown(&late, 4_000).unwrap();
        assert!(shown_late.contains(" n=3 ") && shown_late.contains("LAST_UPDATE_TIME=4000"), "{shown_late}");
        assert!(shown(&late, 7_599).is_some() && shown(&late, 7_600).is_none());
        // A clock that was set back by more goes on from there.
        let back = store(&record, 100, &[("n", plus(1))]);
        assert!(shown(&back, 100).unwrap().contains("LAST_UPDATE_TIME=100"));
    }
}
