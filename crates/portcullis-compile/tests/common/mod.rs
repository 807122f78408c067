//! What the tests of rules have in common.

use portcullis_engine::Connection;

/// A client of documentation's networks (RFC 5737) at a moment that is told from others.
pub fn connection() -> Connection {
    Connection {
        client: "192.0.2.7:4711".parse().unwrap(),
        server: "192.0.2.1:80".parse().unwrap(),
        unique_id: "id-1".to_owned(),
        epoch_seconds: 1_000_000_000,
        utc_offset_seconds: 7_200,
    }
}
