//! What a transaction asks of its server.

use portcullis_inspect::Interruption;

/// The status of answers to what cannot be carried out as it is asked for (`drop`), and to bodies over a
/// limit: as in libmodsecurity.
const FORBIDDEN: u16 = 403;

/// Something that the server has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intervention {
    /// The status of the answer.
    pub status: u16,
    /// The `Location` of the answer.
    pub url: Option<Vec<u8>>,
    /// The line for the server's error log.
    pub log: String,
}

/// The answer that stands for an interruption: its status and its `Location`.
pub(crate) fn answer(interruption: &Interruption) -> (u16, Option<Vec<u8>>) {
    match interruption {
        Interruption::Deny { status } => (*status, None),
        // Bytes that would begin another header field are not part of an address.
        Interruption::Redirect { status, location } => {
            let plain = location.iter().copied().filter(|byte| *byte >= b' ' && *byte != 0x7f);
            (*status, Some(plain.collect()))
        }
        // A connector can neither close a connection nor send a request elsewhere.
        Interruption::Drop | Interruption::Proxy { .. } => (FORBIDDEN, None),
    }
}

/// The answer to a body over its limit.
pub(crate) const OVER_LIMIT: u16 = FORBIDDEN;
