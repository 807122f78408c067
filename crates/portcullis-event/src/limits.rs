//! Limits on the parts of a request that an event may carry. Longer texts are cut, and the cut says how many
//! bytes are missing.

/// Bytes of a matched value, before escaping.
pub const VALUE_BYTES_MAX: usize = 1024;
/// Bytes of a rule's `logdata`, after macro expansion. ModSecurity 2 keeps 512; CRS puts value and match in
/// it.
pub const DATA_BYTES_MAX: usize = 2048;
/// Bytes of a rule's `msg`, after macro expansion.
pub const MESSAGE_BYTES_MAX: usize = 1024;
/// Bytes of a target's name such as `ARGS:q`; argument names come from the client.
pub const TARGET_NAME_BYTES_MAX: usize = 256;
/// Bytes of the request target.
pub const REQUEST_TARGET_BYTES_MAX: usize = 4096;
/// Bytes of the method, the protocol and the host.
pub const REQUEST_TOKEN_BYTES_MAX: usize = 256;
/// Bytes of a selected request header.
pub const HEADER_VALUE_BYTES_MAX: usize = 1024;
/// Matches in an event; the rest is counted in `matches_omitted`.
pub const MATCHES_MAX: usize = 256;
/// Findings of the semantic detector in an event; the rest is counted in `findings_omitted`.
pub const FINDINGS_MAX: usize = 64;
/// Findings in values whose score passed no threshold; the rest is counted in `findings_below`.
pub const FINDINGS_BELOW_MAX: usize = 3;
/// Findings that an exception suppresses or lowers; the rest is counted in `findings_suppressed`.
pub const FINDINGS_SUPPRESSED_MAX: usize = 8;
/// Scores of the semantic detector in an event, highest first.
pub const SEMANTIC_SCORES_MAX: usize = 16;
/// Addresses of a forwarding chain.
pub const FORWARDED_FOR_MAX: usize = 16;
/// Bytes of the written form. An event that would be longer is written with fewer and shorter parts.
pub const WRITTEN_BYTES_MAX: usize = 16 << 10;
