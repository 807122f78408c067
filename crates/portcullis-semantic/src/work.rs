//! The work allowance of a message, counted in bytes that are read.
//!
//! It is no measure of time, so that the same message always has the same verdict. A message brings an
//! allowance: a part that any message has, and so much for each of its bytes. Everything that reads a text is
//! charged with the bytes it reads; what reads token by token, with so many bytes at least for each token,
//! for a short one costs as much as a long one. Each reading takes linear time; so the allowance bounds the
//! time. What exceeds it is not inspected, is counted, and is a finding that blocks
//! ([`WORK_LIMIT`](crate::detectors::protocol::WORK_LIMIT)): benign messages stay far below it.

use crate::limits::{WORK_FACTOR, WORK_FACTOR_DECODED, WORK_FACTOR_MAX, WORK_SPARE};

/// The allowance of one message, and what was taken of it.
#[derive(Debug)]
pub(crate) struct Work {
    allowed: u64,
    done: u64,
    /// What decoding may still bring.
    decoded_left: u64,
}

impl Default for Work {
    fn default() -> Self {
        Work { allowed: WORK_SPARE, done: 0, decoded_left: 0 }
    }
}

impl Work {
    /// Allows what `bytes` of a message bring with them.
    pub fn allow(&mut self, bytes: usize) {
        self.allowed = self.allowed.saturating_add((bytes as u64).saturating_mul(WORK_FACTOR));
    }

    /// Allows what a body of `bytes` brings with it of which `wire` came and decoding made the rest.
    pub fn allow_body(&mut self, bytes: usize, wire: usize) {
        let full = bytes.min(wire);
        self.allow(full);
        let most = (wire as u64).saturating_mul(WORK_FACTOR_MAX - WORK_FACTOR);
        self.decoded_left = self.decoded_left.saturating_add(most);
        self.allow_decoded(bytes - full);
    }

    /// Allows what decoding made of a part of the body, as far as those bytes may that came.
    pub fn allow_decoded(&mut self, bytes: usize) {
        let more = (bytes as u64).saturating_mul(WORK_FACTOR_DECODED).min(self.decoded_left);
        self.decoded_left -= more;
        self.allowed = self.allowed.saturating_add(more);
    }

    /// Charges a reading of `bytes`. False if no more may be read.
    #[inline]
    pub fn charge(&mut self, bytes: usize) -> bool {
        self.done = self.done.saturating_add(bytes as u64);
        !self.is_spent()
    }

    /// True if the allowance is used up.
    #[inline]
    pub fn is_spent(&self) -> bool {
        self.done > self.allowed
    }

    /// Bytes read, and how many were allowed.
    pub fn done(&self) -> (u64, u64) {
        (self.done, self.allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decoding_repeats_brings_less() {
        let allowed = |bytes, wire| {
            let mut work = Work::default();
            work.allow_body(bytes, wire);
            work.done().1 - WORK_SPARE
        };
        assert_eq!(allowed(1_000, 1_000), 1_000 * WORK_FACTOR);
        assert_eq!(allowed(1_000, 200), 200 * WORK_FACTOR + 800 * WORK_FACTOR_DECODED);
        assert_eq!(allowed(1_000_000, 1_000), 1_000 * WORK_FACTOR_MAX);
        assert_eq!(allowed(1_000_000, 0), 0);
        let mut work = Work::default();
        work.allow_body(1_000, 1_000);
        (0..1_000).for_each(|_| work.allow_decoded(1_000));
        assert_eq!(work.done().1 - WORK_SPARE, 1_000 * WORK_FACTOR_MAX, "pieces of it, too");
        assert_eq!(allowed(100, 1_000), 100 * WORK_FACTOR);
    }
}
