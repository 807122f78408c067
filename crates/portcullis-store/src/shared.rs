//! Changes of this node to a record that the other nodes do not know yet.

use portcullis_engine::{Change, Value, VariableChange};

/// Names that keep their spelling on other nodes; all others go by their lower-case form.
const SPELLINGS: [&[u8]; 7] =
    [b"KEY", b"TIMEOUT", b"CREATE_TIME", b"UPDATE_COUNTER", b"LAST_UPDATE_TIME", b"__expire_KEY", b"__name"];
/// Variables of one record whose changes wait; more are not sent.
const CHANGES_MAX: usize = 1_024;

/// A change, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    Unset,
    Set(Box<[u8]>),
    Add {
        delta: i64,
        /// Taken off besides, if the record was last stored at `seen`.
        decay: i64,
        seen: i64,
        /// The value for a record that does not have the variable.
        first: i64,
    },
}

/// A variable's name and value.
pub(crate) type Named = (Box<[u8]>, Box<[u8]>);

/// Changes by lower-case name, in order.
pub(crate) type Changes = Vec<(Box<[u8]>, Waiting)>;

/// The changes of a record on their way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    /// Not sent.
    pub(crate) waiting: Changes,
    /// Sent; the results have not come back.
    pub(crate) sent: Changes,
    /// Others are to have the record even if it does not change.
    pub(crate) offered: bool,
}

pub(crate) fn text(value: Value<'_>) -> Box<[u8]> {
    match value {
        Value::Int(number) => number.to_string().into_bytes().into(),
        Value::Text(text) => text.into(),
    }
}

/// The name as this node spells it.
pub(crate) fn spelled(name: &[u8]) -> &[u8] {
    SPELLINGS.iter().find(|known| known.eq_ignore_ascii_case(name)).map_or(name, |known| known)
}

impl Shared {
    /// Remembers a transaction's changes. `last_update`: that of the record before them. True if all found
    /// room.
    pub(crate) fn note(&mut self, updates: &[VariableChange<'_>], last_update: Option<i64>) -> bool {
        // Only the first transaction since the last exchange decays what the others know, too.
        let first_since = self.waiting.is_empty() && self.sent.is_empty();
        let mut all = true;
        for update in updates {
            let name = update.variable.to_ascii_lowercase();
            let kept = match name.as_slice() {
                // These follow from the rest.
                b"is_new" | b"update_rate" => true,
                _ => self.note_one(name.into(), update.change, last_update, first_since),
            };
            all &= kept;
        }
        self.note_one(b"update_counter".as_slice().into(), COUNT, None, false) && all
    }

    fn note_one(
        &mut self,
        name: Box<[u8]>,
        change: Change<'_>,
        last_update: Option<i64>,
        first_since: bool,
    ) -> bool {
        let Some(at) = self.waiting.iter().position(|(known, _)| *known == name) else {
            if self.waiting.len() >= CHANGES_MAX {
                return false;
            }
            let waiting = match change {
                Change::Unset => Waiting::Unset,
                Change::Set(value) => Waiting::Set(text(value)),
                Change::Add(sum) => {
                    let applied = if last_update == Some(sum.seen) { sum.decay } else { 0 };
                    let (delta, decay) = if first_since {
                        (sum.delta, applied)
                    } else {
                        (sum.delta.saturating_sub(applied), 0)
                    };
                    Waiting::Add { delta, decay, seen: sum.seen, first: sum.value }
                }
            };
            self.waiting.push((name, waiting));
            return true;
        };
        let before = &mut self.waiting[at].1;
        *before = match (std::mem::replace(before, Waiting::Unset), change) {
            (_, Change::Unset) => Waiting::Unset,
            (_, Change::Set(value)) => Waiting::Set(text(value)),
            (Waiting::Unset, Change::Add(sum)) => Waiting::Set(text(Value::Int(sum.value))),
            (Waiting::Set(value), Change::Add(sum)) => {
                let sum = crate::record::add(sum, Value::of(&value).to_int(), last_update);
                Waiting::Set(text(Value::Int(sum)))
            }
            (Waiting::Add { delta, decay, seen, first }, Change::Add(sum)) => {
                let applied = if last_update == Some(sum.seen) { sum.decay } else { 0 };
                let more = sum.delta.saturating_sub(applied);
                let first = first.saturating_add(more).max(0);
                Waiting::Add { delta: delta.saturating_add(more), decay, seen, first }
            }
        };
        true
    }

    /// Returns the value of a variable here when it is `stored` elsewhere: with our changes that are not in
    /// that.
    pub(crate) fn over(&self, name: &[u8], stored: Option<Box<[u8]>>) -> Option<Box<[u8]>> {
        let mut value = stored;
        for changes in [&self.sent, &self.waiting] {
            let Some((_, change)) = changes.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) else {
                continue;
            };
            value = match change {
                Waiting::Unset => None,
                Waiting::Set(text) => Some(text.clone()),
                Waiting::Add { delta, decay, first, .. } => Some(text(Value::Int(match value {
                    Some(stored) => {
                        let stored = Value::of(&stored).to_int().saturating_sub(*decay);
                        stored.saturating_add(*delta).max(0)
                    }
                    None => *first,
                }))),
            };
        }
        value
    }

    /// True if something can be sent now: what was sent before has come back.
    pub(crate) fn is_ready(&self) -> bool {
        self.sent.is_empty() && (self.offered || !self.waiting.is_empty())
    }

    /// The changes to send.
    pub(crate) fn send(&mut self) -> &Changes {
        self.offered = false;
        self.sent = std::mem::take(&mut self.waiting);
        &self.sent
    }

    /// A record as it was before our changes: what others begin with who do not have it.
    pub(crate) fn base(&self, variables: impl Iterator<Item = Named>) -> Vec<Named> {
        variables
            .filter_map(|(name, value)| {
                let mut number = None;
                for (known, change) in self.sent.iter().chain(&self.waiting) {
                    if !known.eq_ignore_ascii_case(&name) {
                        continue;
                    }
                    match change {
                        Waiting::Unset | Waiting::Set(_) => return None,
                        Waiting::Add { delta, decay, .. } => {
                            let now = number.unwrap_or_else(|| Value::of(&value).to_int());
                            number = Some(now.saturating_sub(*delta).saturating_add(*decay));
                        }
                    }
                }
                // Nothing was there before a counter that is all ours.
                match number {
                    Some(number) if number <= 0 && !name.eq_ignore_ascii_case(b"UPDATE_COUNTER") => None,
                    Some(number) => Some((name, text(Value::Int(number)))),
                    None => Some((name, value)),
                }
            })
            .collect()
    }
}

const COUNT: Change<'static> =
    Change::Add(portcullis_engine::Sum { delta: 1, decay: 0, seen: i64::MIN, value: 1 });
