//! Tokens of a limit that nodes share: each node leases some ahead, so that no request waits for the others.
//!
//! ```text
//! first request of a key ──> on credit; what was taken so is ordered, and paid, in the background
//! more of them           ──> leases: each twice as large as the last, while they are used up soon
//! nothing left           ──> refused, for as long as the keeper of the tokens says
//! ```

use std::time::Duration;

use crate::table::{Key, Table};

/// The clock of leases, in nanoseconds.
const TICK: u64 = 10_000_000;
/// The largest number in a part of a word. A lease is at most half of it, as there may be as much left of the
/// one before.
const PART_MAX: u64 = (1 << 10) - 1;
/// Duration of a lease; tokens that are left of it then are lost.
const LEASE_TICKS: u64 = 200;
const QUARTER: u64 = LEASE_TICKS / 4;
const HALF: u64 = LEASE_TICKS / 2;
/// The longest wait for an answer, before the question is repeated.
const ASK_TICKS: u64 = 100;
/// The share of a burst that one lease, or one node on credit, may take.
const SHARE: u64 = 4;

/// The leases of a node for one limit, by key. The state of a key is one word: when that ends, whether it is
/// refused, whether more was asked for, how large the last lease was, tokens, and what was taken on credit
/// and is not paid.
#[derive(Debug)]
pub struct Leases {
    table: Table,
    /// Tokens of one lease, and on credit.
    most: u64,
}

/// The answer to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// There was a token, or credit.
    Admitted,
    /// There is none; the caller may retry after this time.
    Refused(Duration),
    /// The credit is used up, and the store has not answered yet whether there is more.
    Unknown,
}

/// The tokens to ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Tokens that were taken on credit.
    pub debt: u64,
    /// Further ones.
    pub want: u64,
}

/// The answer of the store that keeps the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// So many, perhaps none because none were wanted.
    Tokens(u64),
    /// None before this time has passed.
    None(Duration),
}

#[derive(Clone, Copy, Default)]
struct Held {
    until: u64,
    refused: bool,
    asked: bool,
    size: u64,
    tokens: u64,
    debt: u64,
}

impl Held {
    fn of(word: u64) -> Held {
        let part = |shift: u32| word >> shift & PART_MAX;
        Held {
            until: word >> 32,
            refused: word >> 31 & 1 == 1,
            asked: word >> 30 & 1 == 1,
            size: part(20),
            tokens: part(10),
            debt: part(0),
        }
    }

    /// Returns the state at `tick`: tokens left of an expired lease are lost, tokens taken on credit are
    /// still owed.
    fn at(word: u64, tick: u64) -> Held {
        let held = Held::of(word);
        match held.until <= tick {
            true => Held { until: tick + ASK_TICKS, debt: held.debt, ..Held::default() },
            false => held,
        }
    }

    fn word(self) -> u64 {
        let part = |number: u64, shift: u32| number.min(PART_MAX) << shift;
        self.until.min(u32::MAX.into()) << 32
            | u64::from(self.refused) << 31
            | u64::from(self.asked) << 30
            | part(self.size, 20)
            | part(self.tokens, 10)
            | part(self.debt, 0)
    }
}

impl Leases {
    /// For at least `keys` keys, 16 bytes each, of a limit that lets `burst` requests through at once.
    pub fn new(burst: u64, keys: usize) -> Leases {
        Leases { table: Table::new(keys), most: (burst / SHARE).clamp(1, PART_MAX / 2) }
    }

    /// Tokens of a lease, and on credit, at most: N nodes let through at most N times as many more than one
    /// would.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// The table that keys come from.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Takes a token for a request at `now`. True if the keeper of the tokens is to be asked: then
    /// [`order`](Leases::order) follows.
    pub fn take(&self, key: Key, now: u64) -> (Taken, bool) {
        let tick = tick(now);
        let (mut taken, mut asks) = (Taken::Unknown, false);
        self.table.update(key, passed(tick), |word| {
            let mut held = Held::at(word, tick);
            if held.refused {
                taken = Taken::Refused(Duration::from_nanos((held.until - tick) * TICK));
                asks = false;
                return None;
            }
            if held.tokens > 0 {
                held.tokens -= 1;
                taken = Taken::Admitted;
            } else if held.debt < self.most {
                held.debt += 1;
                taken = Taken::Admitted;
            } else {
                taken = Taken::Unknown;
            }
            asks = !held.asked && held.tokens <= held.size / 4;
            held.asked |= asks;
            Some(held.word())
        });
        (taken, asks)
    }

    /// Returns the tokens to ask for: those taken on credit, and a lease. A lease is to last for half a
    /// second to a second: it is twice as large as the last one if that was used up sooner, and half as large
    /// if it took longer. So a client that asks now and then costs exactly what it asks, and one that asks
    /// all the time few orders.
    pub fn order(&self, key: Key, now: u64) -> Order {
        let tick = tick(now);
        let held = self.table.get(key, passed(tick)).map_or_else(Held::default, Held::of);
        // Of a key that was not settled before this is more than half of the time.
        let age = LEASE_TICKS.saturating_sub(held.until.saturating_sub(tick));
        let want = match (held.size, age) {
            (0, 0..QUARTER) => 1.max(held.debt.saturating_sub(1) * 2),
            (0, _) => held.debt.saturating_sub(1) * 2,
            (size, 0..QUARTER) => size * 2,
            (size, ..=HALF) => size,
            (size, _) => size / 2,
        };
        Order { debt: held.debt, want: want.min(self.most) }
    }

    /// Takes over the answer to an order.
    pub fn settle(&self, key: Key, order: Order, grant: Grant, now: u64) {
        let tick = tick(now);
        self.change(key, now, |held| {
            held.asked = false;
            held.debt = held.debt.saturating_sub(order.debt);
            match grant {
                Grant::Tokens(tokens) => {
                    held.tokens += tokens;
                    held.size = tokens;
                    held.until = tick + LEASE_TICKS;
                }
                Grant::None(wait) if held.tokens == 0 => {
                    held.refused = true;
                    held.size = 0;
                    held.until = tick + (wait.as_nanos() as u64).div_ceil(TICK).max(1);
                }
                Grant::None(_) => {}
            }
        });
    }

    /// There was no answer.
    pub fn fail(&self, key: Key, now: u64) {
        self.change(key, now, |held| held.asked = false);
    }

    fn change(&self, key: Key, now: u64, change: impl Fn(&mut Held)) {
        let tick = tick(now);
        self.table.update(key, passed(tick), |word| {
            let mut held = Held::at(word, tick);
            change(&mut held);
            Some(held.word())
        });
    }
}

fn tick(now: u64) -> u64 {
    now / TICK + 1
}

/// No entry that ends later than `tick` has a smaller word.
fn passed(tick: u64) -> u64 {
    tick.min(u32::MAX.into()) << 32 | u64::from(u32::MAX)
}
