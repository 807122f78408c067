use portcullis_types::{Decimal, Span};

/// Number of a `TX` key that some rule names literally. Slots 0 to 9 are the captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TxSlot(pub u32);

/// Finds the slots of names, whatever their case.
#[derive(Debug, Default)]
pub struct TxIndex {
    /// By hash: names with their slots; the number of buckets is a power of two.
    buckets: Vec<Vec<(Box<[u8]>, TxSlot)>>,
}

impl TxIndex {
    /// Of these names, each in the slot of its place.
    pub(crate) fn new(names: &[Box<[u8]>]) -> TxIndex {
        let mut buckets = vec![Vec::new(); (2 * names.len()).next_power_of_two()];
        for (slot, name) in (0..).map(TxSlot).zip(names) {
            let bucket = TxIndex::hash(name) as usize & (buckets.len() - 1);
            buckets[bucket].push((name.clone(), slot));
        }
        TxIndex { buckets }
    }

    pub(crate) fn find(&self, key: &[u8]) -> Option<TxSlot> {
        let bucket = self.buckets.get(TxIndex::hash(key) as usize & self.buckets.len().wrapping_sub(1))?;
        bucket.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|&(_, slot)| slot)
    }

    /// Names are chosen by rules, so no more is needed than that ordinary ones differ.
    fn hash(name: &[u8]) -> u32 {
        let folded = name.iter().fold(0u32, |hash, byte| hash.rotate_left(5) ^ u32::from(byte | 0x20));
        folded.wrapping_mul(0x9e37_79b1) >> 16
    }
}

/// The points of all inspection agents.
pub(crate) const AGENT_SCORE: &[u8] = b"agent_score";
/// The keys in which the CRS counts the points of its rules at paranoia level 1, on requests and on
/// responses.
pub(crate) const INBOUND_SCORE: &[u8] = b"inbound_anomaly_score_pl1";
pub(crate) const OUTBOUND_SCORE: &[u8] = b"outbound_anomaly_score_pl1";

/// True for the `TX` keys that the engine itself sets, whatever the rules say: those of `capture` (two digits
/// with `@rxGlobal`), the one that tells of a pattern that was given up, and what inspection agents add.
pub fn is_set_by_engine(key: &[u8]) -> bool {
    let is_capture = matches!(key.len(), 1 | 2) && key.iter().all(u8::is_ascii_digit);
    let others: [&[u8]; 4] = [b"MSC_PCRE_LIMITS_EXCEEDED", AGENT_SCORE, INBOUND_SCORE, OUTBOUND_SCORE];
    is_capture || others.iter().any(|other| key.eq_ignore_ascii_case(other))
}

/// A value of `TX` or of a persistent collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TxValue {
    /// Not set.
    #[default]
    Unset,
    /// A number in canonical decimal form.
    Int(i64),
    /// A text in the transaction's bytes.
    Text(Span),
}

/// The `TX` collection: an array for the keys that rules name, a list for keys made at run time.
#[derive(Debug, Default)]
pub(crate) struct TxStore {
    slots: Vec<Slot>,
    /// By slot; empty until one is shown.
    shown: Vec<Shown>,
    /// Name, value, since when.
    dynamic: Vec<(Span, TxValue, u32)>,
    clock: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    value: TxValue,
    /// The clock value at which the slot got its value.
    since: u32,
}

/// Name, and value if it is a number, in the transaction's bytes, once they have been put there; empty
/// before. Apart, since few transactions need them.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    name: Span,
    digits: Span,
}

impl Clone for TxStore {
    fn clone(&self) -> Self {
        let TxStore { slots, shown, dynamic, clock } = self;
        TxStore { slots: slots.clone(), shown: shown.clone(), dynamic: dynamic.clone(), clock: *clock }
    }

    /// Into the memory that is there.
    fn clone_from(&mut self, other: &Self) {
        self.slots.clone_from(&other.slots);
        self.shown.clone_from(&other.shown);
        self.dynamic.clone_from(&other.dynamic);
        self.clock = other.clock;
    }
}

impl TxStore {
    pub(crate) fn reset(&mut self, slots: usize) {
        self.slots.clear();
        self.slots.resize(slots, Slot::default());
        self.shown.clear();
        self.dynamic.clear();
        self.clock = 0;
    }

    /// True if no key was ever set.
    pub(crate) fn is_untouched(&self) -> bool {
        self.clock == 0
    }

    pub(crate) fn slot(&self, slot: TxSlot) -> TxValue {
        self.slots.get(slot.0 as usize).map(|slot| slot.value).unwrap_or_default()
    }

    pub(crate) fn set_slot(&mut self, slot: TxSlot, value: TxValue) {
        let Some(place) = self.slots.get_mut(slot.0 as usize) else { return };
        if place.value == TxValue::Unset {
            self.clock += 1;
            place.since = self.clock;
        }
        place.value = value;
        if let Some(shown) = self.shown.get_mut(slot.0 as usize) {
            shown.digits = Span::default();
        }
    }

    /// As [`TxStore::set_slot`], but the value counts as new: rules that go over all keys see it last.
    pub(crate) fn renew_slot(&mut self, slot: TxSlot, value: TxValue) {
        let Some(place) = self.slots.get_mut(slot.0 as usize) else { return };
        place.value = value;
        if value != TxValue::Unset {
            self.clock += 1;
            place.since = self.clock;
        }
        if let Some(shown) = self.shown.get_mut(slot.0 as usize) {
            shown.digits = Span::default();
        }
    }

    /// The order in which the slot's value was set: the order in which rules see the keys of `TX`.
    pub(crate) fn since(&self, slot: TxSlot) -> u32 {
        self.slots.get(slot.0 as usize).map(|slot| slot.since).unwrap_or_default()
    }

    /// Name and value of a slot as texts; `push` puts a text among the transaction's bytes.
    pub(crate) fn shown(
        &mut self,
        slot: TxSlot,
        name: &[u8],
        mut push: impl FnMut(&[u8]) -> Span,
    ) -> (Span, Span) {
        if self.shown.is_empty() {
            self.shown.resize(self.slots.len(), Shown::default());
        }
        let at = slot.0 as usize;
        let Some((slot, shown)) = self.slots.get(at).zip(self.shown.get_mut(at)) else {
            return Default::default();
        };
        if shown.name.is_empty() {
            shown.name = push(name);
        }
        let text = match slot.value {
            TxValue::Unset => Span::default(),
            TxValue::Text(span) => span,
            TxValue::Int(number) => {
                if shown.digits.is_empty() {
                    shown.digits = push(&Decimal::new(number));
                }
                shown.digits
            }
        };
        (shown.name, text)
    }

    pub(crate) fn dynamic(&self) -> &[(Span, TxValue, u32)] {
        &self.dynamic
    }

    pub(crate) fn dynamic_at(&self, at: usize) -> TxValue {
        self.dynamic.get(at).map(|entry| entry.1).unwrap_or_default()
    }

    /// Position of the entry named `name`, in any case.
    pub(crate) fn find(&self, bytes: &[u8], name: &[u8]) -> Option<usize> {
        self.dynamic.iter().position(|(key, ..)| key.of(bytes).eq_ignore_ascii_case(name))
    }

    pub(crate) fn push(&mut self, name: Span, value: TxValue) {
        self.clock += 1;
        self.dynamic.push((name, value, self.clock));
    }

    pub(crate) fn set_at(&mut self, at: usize, value: TxValue) {
        let Some(entry) = self.dynamic.get_mut(at) else { return };
        if entry.1 == TxValue::Unset {
            self.clock += 1;
            entry.2 = self.clock;
        }
        entry.1 = value;
    }
}

/// `atoi`: leading blanks, a sign, digits; 0 if there are none. Saturates.
pub fn to_int(text: &[u8]) -> i64 {
    let blanks = text.iter().take_while(|b| matches!(b, b' ' | 9..=13)).count();
    let text = &text[blanks..];
    let (negative, digits) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let magnitude = digits
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .fold(0i64, |n, b| n.saturating_mul(10).saturating_add(i64::from(b - b'0')));
    if negative { -magnitude } else { magnitude }
}

/// The amount that `=+text` adds: the sign is part of the number that `atoi` reads, so a text that does not
/// begin with a digit adds nothing.
pub fn addend(text: &[u8]) -> i64 {
    if text.first().is_some_and(u8::is_ascii_digit) { to_int(text) } else { 0 }
}

/// The number, if `text` is exactly how we would print it.
pub fn canonical_int(text: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (text != b"-0"
        && text[0] != b'+'
        && (text.len() == 1 || !text.starts_with(b"0"))
        && !text.starts_with(b"-0"))
    .then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_int_reads_as_atoi() {
        for (text, want) in [
            ("", 0),
            ("12", 12),
            (" -7x", -7),
            ("+3", 3),
            ("x", 0),
            ("99999999999999999999", i64::MAX),
            ("-", 0),
        ] {
            assert_eq!(to_int(text.as_bytes()), want, "{text:?}");
        }
    }

    #[test]
    fn canonical_int_keeps_text_that_would_change() {
        for (text, want) in
            [("0", Some(0)), ("5", Some(5)), ("-5", Some(-5)), ("05", None), ("+5", None), ("-0", None)]
        {
            assert_eq!(canonical_int(text.as_bytes()), want, "{text:?}");
        }
        assert_eq!(canonical_int(b""), None);
    }
}
