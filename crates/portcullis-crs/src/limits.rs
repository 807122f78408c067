//! Limits of what is fetched and unpacked. A release has about 600 KB packed, 4 MB unpacked, 700 entries.

use std::time::Duration;

/// Bytes of an archive. One that is longer is refused.
pub const ARCHIVE_BYTES_MAX: u64 = 32 << 20;
/// Bytes that an archive may unpack to, entries that are not kept included.
pub const UNPACKED_BYTES_MAX: u64 = 128 << 20;
/// Bytes of a file that is kept.
pub const FILE_BYTES_MAX: u64 = 8 << 20;
/// Entries of an archive.
pub const ENTRIES_MAX: usize = 20_000;
/// Time of a download, from the name look-up to the last byte.
pub const DOWNLOAD_TIME_MAX: Duration = Duration::from_secs(300);
/// Redirects that a download follows, all of them to HTTPS.
pub const REDIRECTS_MAX: u32 = 5;
