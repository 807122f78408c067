//! Limits on a rule text. Beyond each of these is an error, not a cut.

/// Bytes of one file.
pub const FILE_BYTES_MAX: usize = 16 << 20;
/// Files of one load, each counted as often as it is included.
pub const FILES_MAX: usize = 4096;
/// Bytes of all files of one load.
pub const TOTAL_BYTES_MAX: usize = 256 << 20;
/// Files that include each other, one inside the other.
pub const INCLUDE_DEPTH_MAX: usize = 16;
/// Bytes of one directive, its continuation lines joined.
pub const DIRECTIVE_BYTES_MAX: usize = 1 << 20;
/// Targets of one rule.
pub const TARGETS_MAX: usize = 1024;
/// Actions of one rule.
pub const ACTIONS_MAX: usize = 1024;
/// Diagnostics of one load; the parser stops after the last.
pub const DIAGNOSTICS_MAX: usize = 1000;
