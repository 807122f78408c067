//! Request ids: 128 bits as 32 hex digits. The first 48 bits are the time in milliseconds, so ids sort by time; the rest
//! is random, so that they cannot be guessed and workers need not agree.

use std::time::{SystemTime, UNIX_EPOCH};

/// A new id for a request that came at `time`.
pub(crate) fn request_id(time: SystemTime) -> String {
    let mut bytes = [0u8; 16];
    if getrandom::fill(&mut bytes[6..]).is_err() {
        // No system we run on gets here; an id that repeats costs a log search, a missing answer costs the request.
        let nanos = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
        bytes[12..].copy_from_slice(&nanos.to_be_bytes());
    }
    let millis = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    let mut id = String::with_capacity(32);
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            id.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn sorts_by_time_and_does_not_repeat() {
        let early = UNIX_EPOCH + Duration::from_millis(1_790_000_000_000);
        let late = early + Duration::from_millis(1);
        let (a, b, c) = (request_id(early), request_id(early), request_id(late));
        assert_eq!(a.len(), 32);
        assert!(a.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(a, b);
        assert!(a < c && b < c);
    }
}
