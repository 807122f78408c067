//! The limits, each with its consequence.

/// Decoding steps one after the other; what would need more is looked at as far as it was decoded.
pub const LAYERS_MAX: usize = 6;
/// Decoded forms of one value that stand for all of it; values within it (of JSON, of a URL's query) are not
/// counted. One that would have more is not looked at in them, which blocks as what [`WORK_SPARE`] does not
/// suffice for.
pub const FORMS_MAX: usize = 96;
/// Bytes of all decoded forms of one value, and of the list of them, as a multiple of its length, plus
/// [`FORM_BYTES_SPARE`]; beyond as [`FORMS_MAX`].
pub const FORM_BYTES_FACTOR: usize = 16;
/// See [`FORM_BYTES_FACTOR`].
pub const FORM_BYTES_SPARE: usize = 4_096;
/// Bytes that may be read for a message, by all detectors and decoders together: this many for any message,
/// and [`WORK_FACTOR`] for each byte of its target, header fields and body. What is left when they are used
/// up is not looked at, is counted, and blocks as `protocol.work-limit`.
pub const WORK_SPARE: u64 = 160 << 10;
/// See [`WORK_SPARE`].
pub const WORK_FACTOR: u64 = 40;
/// The same for each byte of a body that decoding makes beyond those that came: long benign documents take 5
/// to 25. All of it together is no more than [`WORK_FACTOR_MAX`] for each byte that came.
pub const WORK_FACTOR_DECODED: u64 = 24;
/// Bytes that may be read for each byte of a body as it came, however much a content coding makes of it: what
/// is repeated costs the sender nothing.
pub const WORK_FACTOR_MAX: u64 = 200;
/// Of a text longer than [`LONG_BYTES_MIN`] whose decoded forms would take more than this for each of its
/// bytes, all forms together, only what decoding changes is looked at in them, with some hundred bytes around
/// it.
pub const WORK_SHARE: u64 = 12;
/// See [`WORK_SHARE`].
pub const LONG_BYTES_MIN: usize = 4_096;
/// A detector that looks for its signs in a text is charged with this part of the text's length; what it then
/// reads token by token, with all of that.
pub const LOOK_SHARE: usize = 4;
/// What a token of a text that is read token by token counts as at least, in bytes: it costs that much
/// however short it is.
pub const TOKEN_BYTES: usize = 8;
/// What beginning such a reading counts as, beside what is read.
pub const READING_BYTES: usize = 32;
/// What a finding counts as: it is distinguished from others, scored and recorded.
pub const FINDING_BYTES: usize = 256;
/// Findings of one message; beyond them only those of the worst values are kept ([`WORST_VALUES_MAX`]), the
/// others are counted.
pub const FINDINGS_MAX: usize = 256;
/// Values that are kept for each detector, the highest scores first, when a message has more than
/// [`FINDINGS_MAX`] findings.
pub const WORST_VALUES_MAX: usize = 4;
/// Bytes of a finding's evidence that are kept.
pub const EVIDENCE_BYTES_MAX: usize = 160;
/// Bytes of a value's name that are kept.
pub const NAME_BYTES_MAX: usize = 96;
/// Bytes of an uploaded file, or of the text of an XML element, that are looked at together; more is looked
/// at in windows of this length, each of which begins with the last [`OVERLAP_BYTES`] of the one before.
/// Windows of a file after the first are searched for code and scripts only; those of one that is text are
/// counted as not inspected, too.
pub const WINDOW_BYTES: usize = 64 << 10;
/// See [`WINDOW_BYTES`].
pub const OVERLAP_BYTES: usize = 4 << 10;
/// Parts of what only looks like multipart; the rest is looked at as one part.
pub const PARTS_MAX: usize = 4_096;
/// Bytes to which a body that is still packed may grow.
pub const INFLATED_BYTES_MAX: u64 = 8 << 20;
/// Messages in messages of Protocol Buffers.
pub const PROTOBUF_DEPTH_MAX: usize = 16;
/// Bytes to which a packed value in Base64 may grow.
pub const INFLATED_VALUE_BYTES_MAX: u64 = 1 << 20;
