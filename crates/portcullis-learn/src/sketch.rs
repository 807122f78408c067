//! How many: distinct networks, and days, in little memory.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Registers of a sketch: its standard error is 9 %.
const REGISTERS: usize = 128;
const REGISTER_BITS: u32 = REGISTERS.trailing_zeros();
/// So many are counted one by one, and exactly.
pub(crate) const EXACT_MAX: usize = 32;

/// Distinct members of a set that was shown one by one: exact up to 32, a HyperLogLog beyond.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Distinct(Members);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Members {
    Few(Vec<u32>),
    Many(Box<[u8; REGISTERS]>),
}

/// As it is kept.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Few(BTreeSet<u32>),
    Many(String),
}

impl Default for Distinct {
    fn default() -> Self {
        Distinct(Members::Few(Vec::new()))
    }
}

impl Distinct {
    /// Adds `member`, and tells whether it may be new.
    pub fn add(&mut self, member: u32) -> bool {
        match &mut self.0 {
            Members::Few(few) => {
                let Err(at) = few.binary_search(&member) else { return false };
                if few.len() < EXACT_MAX {
                    few.insert(at, member);
                } else {
                    let mut registers = Box::new([0; REGISTERS]);
                    few.iter().chain([&member]).for_each(|member| {
                        enter(&mut registers, *member);
                    });
                    self.0 = Members::Many(registers);
                }
                true
            }
            Members::Many(registers) => enter(registers, member),
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        match &self.0 {
            Members::Few(few) => few.len() as u64,
            Members::Many(registers) => estimate(registers).max(EXACT_MAX as u64 + 1),
        }
    }

    /// Takes over what another one was shown.
    pub fn merge(&mut self, other: &Distinct) {
        match (&mut self.0, &other.0) {
            (_, Members::Few(few)) => few.iter().for_each(|member| {
                self.add(*member);
            }),
            (Members::Few(few), Members::Many(others)) => {
                let mut registers = others.clone();
                few.iter().for_each(|member| {
                    enter(&mut registers, *member);
                });
                self.0 = Members::Many(registers);
            }
            (Members::Many(registers), Members::Many(others)) => {
                registers.iter_mut().zip(others.iter()).for_each(|(own, other)| *own = (*own).max(*other));
            }
        }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        match &self.0 {
            Members::Few(few) => few.capacity() * size_of::<u32>(),
            Members::Many(_) => REGISTERS,
        }
    }
}

fn enter(registers: &mut [u8; REGISTERS], member: u32) -> bool {
    let hash = mix(u64::from(member));
    let register = &mut registers[(hash >> (64 - REGISTER_BITS)) as usize];
    let rank = ((hash << REGISTER_BITS).leading_zeros().min(64 - REGISTER_BITS) + 1) as u8;
    let is_higher = rank > *register;
    *register = rank.max(*register);
    is_higher
}

/// Flajolet et al., HyperLogLog, 2007, with linear counting while registers are empty: what a few members
/// chosen for their hashes may claim stays about their number.
fn estimate(registers: &[u8; REGISTERS]) -> u64 {
    let m = REGISTERS as f64;
    let empty = registers.iter().filter(|rank| **rank == 0).count();
    if empty > 0 {
        return (m * (m / empty as f64).ln()).round() as u64;
    }
    let sum: f64 = registers.iter().map(|rank| 2f64.powi(-i32::from(*rank))).sum();
    (0.7213 / (1.0 + 1.079 / m) * m * m / sum).round() as u64
}

/// SplitMix64.
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

impl From<Distinct> for Written {
    fn from(distinct: Distinct) -> Written {
        match distinct.0 {
            Members::Few(few) => Written::Few(few.into_iter().collect()),
            Members::Many(registers) => {
                Written::Many(registers.iter().map(|rank| format!("{rank:02x}")).collect())
            }
        }
    }
}

impl TryFrom<Written> for Distinct {
    type Error = String;

    fn try_from(written: Written) -> Result<Distinct, String> {
        let members = match written {
            Written::Few(few) if few.len() <= EXACT_MAX => Members::Few(few.into_iter().collect()),
            Written::Few(few) => {
                return Err(format!(
                    "{} members are counted one by one, at most {EXACT_MAX} may be",
                    few.len()
                ));
            }
            Written::Many(text) => {
                let mut registers = Box::new([0; REGISTERS]);
                if text.len() != 2 * REGISTERS || !text.is_ascii() {
                    return Err(format!(
                        "a sketch has {} hexadecimal digits, not {}",
                        2 * REGISTERS,
                        text.len()
                    ));
                }
                for (register, digits) in registers.iter_mut().zip(text.as_bytes().chunks(2)) {
                    let digits = std::str::from_utf8(digits).unwrap_or_default();
                    *register =
                        u8::from_str_radix(digits, 16).map_err(|_| "a sketch is hexadecimal".to_owned())?;
                    if u32::from(*register) > 65 - REGISTER_BITS {
                        return Err("a register of a sketch is too high".to_owned());
                    }
                }
                Members::Many(registers)
            }
        };
        Ok(Distinct(members))
    }
}

/// Days among the last 64, as days since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Days {
    /// The last day; bit 0 of `bits`.
    last: u32,
    bits: u64,
}

impl Days {
    /// Adds a day, and tells whether it is new.
    pub fn add(&mut self, day: u32) -> bool {
        let before = *self;
        if self.bits == 0 {
            *self = Days { last: day, bits: 1 };
        } else if day > self.last {
            self.bits = self.bits.checked_shl(day - self.last).unwrap_or(0) | 1;
            self.last = day;
        } else if let Some(bit) = 1u64.checked_shl(self.last - day) {
            self.bits |= bit;
        }
        *self != before
    }

    /// The number of days.
    pub fn count(&self) -> u32 {
        self.bits.count_ones()
    }

    /// The last day.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// Takes over the days of another one.
    pub fn merge(&mut self, other: &Days) {
        let of = |days: &Days| (0..64).filter(|at| days.bits >> at & 1 == 1).collect::<Vec<u32>>();
        for back in of(other) {
            self.add(other.last.saturating_sub(back));
        }
    }
}

/// How often something was seen, from how many networks, and on which days.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sightings {
    /// Values.
    pub values: u64,
    /// Networks of clients.
    pub networks: Distinct,
    /// Days.
    pub days: Days,
}

impl Sightings {
    /// How many networks sent it: an estimate of more than there were values would be wrong.
    pub fn network_count(&self) -> u64 {
        self.networks.count().min(self.values)
    }

    pub(crate) fn add(&mut self, values: u32, network: u32, day: u32) -> bool {
        self.values = self.values.saturating_add(values.into());
        let (is_new, is_day) = (self.networks.add(network), self.days.add(day));
        is_new || is_day
    }

    pub(crate) fn merge(&mut self, other: &Sightings) {
        self.values = self.values.saturating_add(other.values);
        self.networks.merge(&other.networks);
        self.days.merge(&other.days);
    }
}

/// `48,210`
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
