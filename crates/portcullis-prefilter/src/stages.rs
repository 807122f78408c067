//! The stages that a prefilter uses; tests can switch them off.

use std::borrow::Cow;

use portcullis_match::{Gate, Gates};

/// The ways in which a [`Prefilter`](crate::Prefilter) rules candidates out or saves work. It uses all of
/// them; tests switch them off, for none may change which rules match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages(u8);

impl Stages {
    /// None: the verifier is asked about each candidate in each form of each value.
    pub const NONE: Stages = Stages(0);
    /// Bytes that a match needs.
    pub const BYTES: Stages = Stages(1);
    /// The length that a match needs.
    pub const LENGTHS: Stages = Stages(1 << 1);
    /// Words that a match needs.
    pub const WORDS: Stages = Stages(1 << 2);
    /// A quick look for the words of few candidates.
    pub const FEW_WORDS: Stages = Stages(1 << 3);
    /// Conditions of their own for texts of plain bytes, and many of these together.
    pub const PLAIN: Stages = Stages(1 << 4);
    /// One look at what all forms of a text have in common.
    pub const RESIDUE: Stages = Stages(1 << 5);
    /// Transformations that cannot act are not applied.
    pub const TRIGGERS: Stages = Stages(1 << 6);
    const COUNT: u32 = 7;
    /// All of them.
    pub const ALL: Stages = Stages((1 << Stages::COUNT) - 1);

    /// Each of them alone.
    pub fn each() -> impl Iterator<Item = Stages> {
        (0..Stages::COUNT).map(|bit| Stages(1 << bit))
    }

    /// These but for `others`.
    pub fn without(self, others: Stages) -> Stages {
        Stages(self.0 & !others.0)
    }

    /// True if all of `others` are among these.
    pub fn has(self, others: Stages) -> bool {
        self.0 & others.0 == others.0
    }

    /// Reduces gates to the conditions that these stages use.
    pub(crate) fn gates<'a>(self, gates: &'a Gates) -> Cow<'a, Gates> {
        if self.has(Stages::BYTES)
            && self.has(Stages::LENGTHS)
            && self.has(Stages::WORDS)
            && self.has(Stages::PLAIN)
        {
            return Cow::Borrowed(gates);
        }
        let any = self.gate(&gates.any);
        let within = match self.has(Stages::PLAIN) {
            true => gates.within.as_ref().map(|gate| self.gate(gate)),
            false => Some(any.clone()),
        };
        Cow::Owned(Gates { any, within })
    }

    fn gate(self, gate: &Gate) -> Gate {
        Gate {
            length_min: if self.has(Stages::LENGTHS) { gate.length_min } else { 0 },
            bytes: if self.has(Stages::BYTES) { gate.bytes.clone() } else { Vec::new() },
            words: if self.has(Stages::WORDS) { gate.words.clone() } else { Vec::new() },
        }
    }
}

impl Default for Stages {
    fn default() -> Self {
        Stages::ALL
    }
}
