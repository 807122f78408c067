//! The work budget of a transaction's rules, in units of about a nanosecond.
//!
//! Every operator takes linear time, but a message chooses how many values it has, which rules look at all of
//! them, and, with a content coding, how many bytes come of one on the wire. So each look of an operator at a
//! text, each transformation and each search for words is charged, by its kind and the bytes it reads. No
//! clock is asked: the same message always has the same verdict. Texts that the allowance does not suffice
//! for are not looked at, and count as a pattern that was given up
//! ([`Transaction::patterns_exhausted`](crate::Transaction::patterns_exhausted),
//! `TX:MSC_PCRE_LIMITS_EXCEEDED`).

use crate::operator::Operator;

/// Units that any message has, for each thousand links of rules and what is begun of one.
pub const WORK_SPARE: u64 = 2_000_000;
/// The same for each byte of a message as it came.
pub const WORK_PER_BYTE: u64 = 3_000;
/// The same for each byte that decoding makes of a body beyond those that came.
pub const WORK_PER_DECODED_BYTE: u64 = 3_000;
/// Links of rules that bring all of that.
const LINKS: u64 = 1_000;

/// The allowance of a transaction, and what was taken of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// `u64::MAX`: as much as it takes.
    allowed: u64,
    done: u64,
    /// So many thousand links have the rules.
    scale: u64,
}

impl Default for Work {
    /// Without a limit, until one is set.
    fn default() -> Self {
        Work { allowed: u64::MAX, done: 0, scale: 1 }
    }
}

impl Work {
    /// Limits it to what any message has under so many links of rules; one that looks at copies of values
    /// counts once more for each of them.
    pub(crate) fn limit(&mut self, links: usize) {
        let scale = 1 + links as u64 / LINKS;
        *self = Work { allowed: WORK_SPARE * scale, done: 0, scale };
    }

    /// Takes the limit away.
    pub(crate) fn lift(&mut self) {
        self.allowed = u64::MAX;
    }

    /// Allows what `wire` bytes bring with them, of which decoding made `shown`.
    pub(crate) fn allow(&mut self, wire: u64, shown: u64) {
        let decoded = shown.saturating_sub(wire).saturating_mul(WORK_PER_DECODED_BYTE);
        let more = wire.saturating_mul(WORK_PER_BYTE).saturating_add(decoded);
        self.allowed = self.allowed.saturating_add(more.saturating_mul(self.scale));
    }

    /// An eighth more, where finding out which rules have to run took all: those that were found by then are
    /// to run.
    pub(crate) fn reserve(&mut self) {
        self.allowed = self.done.saturating_add(self.allowed / 8);
    }

    /// Begins anew, for the response: what the request took is not missing there.
    pub(crate) fn renew(&mut self) {
        if self.allowed != u64::MAX {
            *self = Work { allowed: WORK_SPARE * self.scale, done: 0, ..*self };
        }
    }

    #[inline]
    pub(crate) fn charge(&mut self, units: u64) {
        self.done = self.done.saturating_add(units);
    }

    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.done > self.allowed
    }

    pub(crate) fn done(&self) -> (u64, u64) {
        (self.done, self.allowed)
    }
}

/// The cost of a match: its actions, and the record of it.
pub(crate) const MATCH_UNITS: u64 = 500;

/// The cost of a text that macros made: copying it.
pub(crate) fn expansion_units(bytes: usize) -> u64 {
    bytes as u64 / 16
}

impl Operator {
    /// The cost of applying it to a text of this many bytes.
    #[inline]
    pub(crate) fn units(&self, bytes: usize) -> u64 {
        let bytes = bytes as u64;
        match self {
            Operator::Rx(_) | Operator::RxGlobal(_) | Operator::Verify(..) => 150 + 14 * bytes,
            Operator::Pm(_) => 40 + 3 * bytes,
            Operator::DetectSqli | Operator::DetectXss => 200 + 20 * bytes,
            Operator::Rsub(_) => 200 + 20 * bytes,
            Operator::UnconditionalMatch | Operator::NoMatch => 0,
            Operator::Eq(_) | Operator::Ge(_) | Operator::Gt(_) | Operator::Le(_) | Operator::Lt(_) => 0,
            Operator::Contains(_)
            | Operator::ContainsWord(_)
            | Operator::Within(_)
            | Operator::StrEq(_)
            | Operator::StrMatch(_)
            | Operator::BeginsWith(_)
            | Operator::EndsWith(_)
            | Operator::IpMatch(_)
            | Operator::ValidateByteRange(_)
            | Operator::ValidateUrlEncoding
            | Operator::ValidateUtf8Encoding
            | Operator::GeoLookup(_)
            | Operator::Rbl(_)
            | Operator::InspectFile(_) => 20 + bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_is_of_what_came_and_a_little_of_what_it_decodes_to() {
        let mut work = Work::default();
        work.charge(1 << 60);
        assert!(!work.is_spent(), "no limit was set");
        let mut work = Work::default();
        work.limit(999);
        work.allow(1_000, 21_000);
        let of_the_body = 1_000 * WORK_PER_BYTE + 20_000 * WORK_PER_DECODED_BYTE;
        assert_eq!(work.done(), (0, WORK_SPARE + of_the_body));
        let mut many = Work::default();
        many.limit(5_000);
        many.allow(1_000, 21_000);
        assert_eq!(many.done().1, 6 * work.done().1);
        many.charge(7);
        many.renew();
        assert_eq!(many.done(), (0, 6 * WORK_SPARE));
        work.charge(work.done().1);
        assert!(!work.is_spent());
        work.charge(1);
        assert!(work.is_spent());
        work.charge(u64::MAX);
        assert_eq!(work.done().0, u64::MAX);
    }
}
