//! Concurrent records: where they are, and the line that leads there.

use portcullis_event::Timestamp;

use crate::Record;
use crate::show::quoted;

/// An index line is not longer than this, as with ModSecurity 2.
const LINE_BYTES_MAX: usize = 3980;

/// Folder of a record, below the storage folder: `20260921/20260921-1413`.
pub fn folder(time: Timestamp) -> String {
    let stamp = time.compact();
    format!("{}/{}", &stamp[..8], &stamp[..13])
}

/// Path of a record, below the storage folder: `/20260921/20260921-1413/20260921-141320-ID`. Bytes of the id
/// that have a meaning in paths are replaced.
pub fn file_name(record: &Record) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "@_-".contains(c) { c } else { '_' };
    let id: String = record.unique_id.chars().take(64).map(plain).collect();
    format!("/{}/{}-{id}", folder(record.time), record.time.compact())
}

/// The line that mlogc reads:
///
/// ```text
/// HOST CLIENT USER LOCAL-USER [TIME] "REQUEST LINE" STATUS BYTES "REFERER" "USER-AGENT" ID "SESSION" FILE 0 SIZE md5:HASH
/// ```
///
/// Referer and user agent are `-`, as ModSecurity 2 writes them. A request line that is too long is cut, and
/// an `L` at the end tells it.
pub fn index_line(record: &Record, file: &str, size: usize, md5: &[u8]) -> String {
    let hash: String = md5.iter().map(|byte| format!("{byte:02x}")).collect();
    let place = format!("{file} 0 {size} md5:{hash}");
    let host = match record.host.as_str() {
        "" => "-".to_owned(),
        host => quoted(host.as_bytes()).replace(' ', "_"),
    };
    let session = record.web_app.as_ref().and_then(|app| app.session.as_deref()).unwrap_or("-");
    let (session, id) = (quoted(session.as_bytes()), quoted(record.unique_id.as_bytes()));
    let status = record.response.as_ref().map_or(0, |response| response.status);
    let before = format!("{host} {} - - [{}] \"", record.client.0, record.time.common_log());
    let after = format!("\" {status} {} \"-\" \"-\" {id} \"{session}\" {place} ", record.bytes_sent);
    let mut line = quoted(&record.request.line);
    let room = LINE_BYTES_MAX.saturating_sub(before.len() + after.len() + 2);
    let limited = line.len() > room;
    // All of it is ASCII.
    line.truncate(room);
    format!("{before}{line}{after}{}\n", if limited { "L" } else { "" })
}
