//! Request ids: 128 bits as 32 hex digits. The first 48 bits are the time in milliseconds, so ids sort by
//! time; the rest is random, so that they cannot be guessed and workers need not agree.

use std::time::{SystemTime, UNIX_EPOCH};

/// Random bytes of one id.
const RANDOM_BYTES: usize = 10;
/// Random bytes asked for at a time: the system call costs more than the bytes.
const STOCK_BYTES: usize = 256 * RANDOM_BYTES;

/// Makes ids; one for each worker.
#[derive(Debug, Default)]
pub struct RequestIds {
    /// Random bytes that no id holds yet.
    stock: Vec<u8>,
    made: u64,
}

impl RequestIds {
    /// A new id for a request that came at `time`.
    pub fn make(&mut self, time: SystemTime) -> String {
        let millis = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let mut bytes = [0u8; 16];
        bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
        bytes[6..].copy_from_slice(&self.random());
        let mut id = String::with_capacity(32);
        for byte in bytes {
            for digit in [byte >> 4, byte & 15] {
                id.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
            }
        }
        id
    }

    /// Sixteen bytes that nobody can guess.
    pub fn secret(&mut self) -> [u8; 16] {
        let mut secret = [0; 16];
        let (first, second) = secret.split_at_mut(8);
        for half in [first, second] {
            half.copy_from_slice(&self.random()[..8]);
        }
        secret
    }

    /// Eight bytes for the id of a span.
    pub fn span(&mut self) -> [u8; 8] {
        let mut span = [0; 8];
        span.copy_from_slice(&self.random()[..8]);
        span
    }

    fn random(&mut self) -> [u8; RANDOM_BYTES] {
        if self.stock.len() < RANDOM_BYTES {
            self.stock.resize(STOCK_BYTES, 0);
            if getrandom::fill(&mut self.stock).is_err() {
                // No system we run on gets here; an id that can be guessed costs nothing that a lost request
                // would not.
                self.stock.clear();
            }
        }
        self.made += 1;
        let mut bytes = [0; RANDOM_BYTES];
        match self.stock.len().checked_sub(RANDOM_BYTES) {
            Some(rest) => {
                bytes.copy_from_slice(&self.stock[rest..]);
                self.stock.truncate(rest);
            }
            None => bytes[2..].copy_from_slice(&self.made.to_be_bytes()),
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::time::Duration;

    #[test]
    fn sorts_by_time_and_does_not_repeat() {
        let mut ids = RequestIds::default();
        let early = UNIX_EPOCH + Duration::from_millis(1_790_000_000_000);
        let late = early + Duration::from_millis(1);
        let first: HashSet<String> = (0..1000).map(|_| ids.make(early)).collect();
        let last = ids.make(late);
        assert_eq!(first.len(), 1000);
        assert!(first.iter().all(|id| id.len() == 32 && *id < last));
        assert!(last.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
