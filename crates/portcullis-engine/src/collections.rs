//! The interface of the storage for persistent collections, as the engine uses it.

/// Name and key of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordId<'a> {
    /// The name of the collection in storage: `ip`, `global`, or with the application in front,
    /// `shop_SESSION`.
    pub name: &'a [u8],
    /// The key of the record in the collection, such as the address of a client.
    pub key: &'a [u8],
}

/// The value of a persistent variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number.
    Int(i64),
    /// Anything else.
    Text(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The text as a value: a number if it is written exactly as numbers are printed.
    pub fn of(text: &'a [u8]) -> Value<'a> {
        crate::tx::canonical_int(text).map_or(Value::Text(text), Value::Int)
    }

    /// As `atoi` reads it.
    pub fn to_int(self) -> i64 {
        match self {
            Value::Int(number) => number,
            Value::Text(text) => crate::tx::to_int(text),
        }
    }
}

/// The change that a transaction made to one variable of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// It is gone.
    Unset,
    /// It has this value, whatever it had before.
    Set(Value<'a>),
    /// It was counted up or down. Others may have counted meanwhile, so this is added to what is stored now.
    Add(Sum),
}

/// A counter's change. Counters never go below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The amount to add.
    pub delta: i64,
    /// The amount that `deprecatevar` subtracted before that, 0 or more. It is taken off only if the record
    /// was not stored since the transaction read it: the time that passed is made good once, not by each of
    /// several transactions.
    pub decay: i64,
    /// `LAST_UPDATE_TIME` as the transaction read it.
    pub seen: i64,
    /// The value as the transaction left it, for a record that has none.
    pub value: i64,
}

/// A variable and what happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableChange<'a> {
    /// The variable, in the spelling to keep.
    pub variable: &'a [u8],
    /// The change.
    pub change: Change<'a>,
}

/// Storage of persistent collections (`IP`, `SESSION`, ...) between transactions. Implementations bound what
/// they keep. The engine reads at `initcol` and writes at the end of a transaction that changed something;
/// both are on the path of a request and must not wait for anything slower than memory.
///
/// Names of variables are compared without regard to ASCII case.
pub trait Collections: Send + Sync + std::fmt::Debug {
    /// Shows the variables of a record in their order, expired ones left out; false if there is no such
    /// record, or it has expired. `UPDATE_RATE` is worked out and comes last.
    fn load(&self, record: RecordId<'_>, epoch_seconds: i64, each: &mut dyn FnMut(&[u8], Value<'_>)) -> bool;

    /// Applies `updates` to the record as it is now, in order; a record that is not there begins with
    /// [`new_record`]. `LAST_UPDATE_TIME`, `UPDATE_COUNTER` and the time when the record expires follow.
    fn save(&self, record: RecordId<'_>, timeout: i64, epoch_seconds: i64, updates: &[VariableChange<'_>]);

    /// True if other processes change the records, too. The engine then stores changes before rules read
    /// them and at the end of each phase: a counter that four workers count up says to each what all of them
    /// have counted, and the answer to a request comes after its changes.
    fn is_shared(&self) -> bool {
        false
    }

    /// [`save`](Collections::save), and what [`load`](Collections::load) would show then. Where records are
    /// shared nobody gets in between, so two transactions that count one up never see the same number.
    fn save_and_load(
        &self,
        record: RecordId<'_>,
        timeout: i64,
        epoch_seconds: i64,
        updates: &[VariableChange<'_>],
        each: &mut dyn FnMut(&[u8], Value<'_>),
    ) -> bool {
        self.save(record, timeout, epoch_seconds, updates);
        self.load(record, epoch_seconds, each)
    }
}

/// The variables of a new record, in order (`init_collection`).
pub fn new_record(record: RecordId<'_>, timeout: i64, epoch_seconds: i64) -> [(&'static [u8], Value<'_>); 8] {
    [
        (b"__expire_KEY", Value::Int(epoch_seconds.saturating_add(timeout))),
        (b"KEY", Value::Text(record.key)),
        (b"TIMEOUT", Value::Int(timeout)),
        (b"__key", Value::Text(record.key)),
        (b"__name", Value::Text(record.name)),
        (b"CREATE_TIME", Value::Int(epoch_seconds)),
        (b"UPDATE_COUNTER", Value::Int(0)),
        (IS_NEW, Value::Int(1)),
    ]
}

/// There while a record is not stored yet.
pub const IS_NEW: &[u8] = b"IS_NEW";
/// Before the name of a variable: when it expires, in seconds since 1970.
pub const EXPIRE_PREFIX: &[u8] = b"__expire_";

/// Keeps nothing: every `initcol` opens a new record.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCollections;

impl Collections for NoCollections {
    fn load(&self, _: RecordId<'_>, _: i64, _: &mut dyn FnMut(&[u8], Value<'_>)) -> bool {
        false
    }

    fn save(&self, _: RecordId<'_>, _: i64, _: i64, _: &[VariableChange<'_>]) {}
}
