//! `store`: persistent collections.

use crate::checked::{Redis, Store};
use crate::mistakes::Mistakes;
use crate::raw;

/// Bytes of one record, at most.
const RECORD_BYTES_MAX: u64 = 1 << 20;

pub(crate) fn check(mistakes: &mut Mistakes<'_>, raw: raw::Store) -> Store {
    let default = Store::default();
    Store {
        folder: raw.folder.map(|folder| mistakes.path(&folder)),
        records_max: match raw.records {
            Some(number) if *number == 0 => {
                mistakes.wrong(number.span, "records must be at least 1".to_string());
                default.records_max
            }
            Some(number) => number.value as usize,
            None => default.records_max,
        },
        bytes_max: raw.memory.map_or(default.bytes_max, |size| size.0),
        record_bytes_max: match raw.record {
            Some(size) if !(256..=RECORD_BYTES_MAX).contains(&size.0) => {
                mistakes.wrong(size.span, "a record must have 256 bytes to 1MiB".to_string());
                default.record_bytes_max
            }
            Some(size) => size.value.0,
            None => default.record_bytes_max,
        },
        redis: raw.redis.and_then(|url| {
            let prefix = raw.redis_prefix.unwrap_or_else(|| "portcullis:".to_string());
            let host = url.strip_prefix("redis://").or_else(|| url.strip_prefix("rediss://"));
            if host.is_none_or(|host| host.is_empty()) {
                // Not shown: it may have a password.
                let message = "redis is `redis://host:port` or, with TLS, `rediss://host:port`";
                mistakes.wrong(url.span, message.to_string());
                return None;
            }
            Some(Redis { url: url.value, prefix })
        }),
    }
}
