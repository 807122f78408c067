//! Ids of transactions: those of the server where it gives them, otherwise 128 bits as 32 hexadecimal digits.

/// Longest id that a server may give; the rest is cut.
const BYTES_MAX: usize = 256;

/// A new id for a transaction that begins at this time. Random bytes come from the system each time, since a
/// stock of them would be the same in all processes that are forked.
pub(crate) fn new(epoch_millis: u64) -> String {
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&epoch_millis.to_be_bytes()[2..]);
    if getrandom::fill(&mut bytes[6..]).is_err() {
        // Ids then differ by time and process alone, which costs less than a request would.
        bytes[6..10].copy_from_slice(&std::process::id().to_be_bytes());
    }
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect()
}

/// Random bytes for the names of uploaded files, from the system each time as above. Without them names tell
/// files apart, but can be guessed.
pub(crate) fn secret() -> [u8; 16] {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        bytes[..4].copy_from_slice(&std::process::id().to_be_bytes());
    }
    bytes
}

/// The id that a server gives, cut to a length that logs can bear.
pub(crate) fn given(id: &[u8]) -> String {
    String::from_utf8_lossy(&id[..id.len().min(BYTES_MAX)]).into_owned()
}
