//! The report of a finished parse: errors, flags and ambiguities of the body, besides its values.

use super::BodyError;

/// The result of a parse. The values went to the sink on the way, also those before an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The first thing that was wrong (`REQBODY_ERROR`, `REQBODY_ERROR_MSG`).
    pub error: Option<BodyError>,
    /// Bytes fed.
    pub bytes: u64,
    /// Arguments given to the sink; what is left of [`arguments_max`](super::Limits::arguments_max) is for
    /// others.
    pub arguments: usize,
    /// Percent signs that no two hex digits follow; above zero is `URLENCODED_ERROR`.
    pub invalid_encodings: u64,
    /// `MULTIPART_*`. All clear for other bodies.
    pub multipart: MultipartFlags,
    /// Bytes that count against `SecRequestBodyNoFilesLimit`: all but file content.
    pub no_files_bytes: u64,
    /// The ambiguities: points where another parser could read the body differently, and no error or flag of
    /// ModSecurity says so.
    pub ambiguities: Ambiguities,
}

/// `MULTIPART_UNMATCHED_BOUNDARY` with the reason kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnmatchedBoundary {
    /// Nothing of the kind.
    #[default]
    No,
    /// A line of data starts with `--` but not with the boundary (PEM files, signatures of mails).
    DashLine,
    /// `--` and the boundary occur inside a line of data.
    InLine,
}

/// The `MULTIPART_*` flags of ModSecurity 2.9.7, each true when the variable would be 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MultipartFlags {
    /// A fatal error in a part, a boundary line or the `Content-Type`; only part of [`Self::strict_error`].
    pub error: bool,
    /// The boundary parameter is quoted.
    pub boundary_quoted: bool,
    /// White space around the `=` of the boundary parameter.
    pub boundary_whitespace: bool,
    /// Bytes before the first boundary.
    pub data_before: bool,
    /// Bytes after the final boundary.
    pub data_after: bool,
    /// A part header continues on the next line.
    pub header_folding: bool,
    /// ... and the continuation starts with something other than space and tab.
    pub invalid_header_folding: bool,
    /// A structural line ends in LF alone.
    pub lf_line: bool,
    /// A structural line ends in CRLF.
    pub crlf_line: bool,
    /// No semicolon between the media type and the boundary parameter.
    pub missing_semicolon: bool,
    /// Single quotes in, or instead of, quoting of `name` and `filename`.
    pub invalid_quoting: bool,
    /// A part without content, cut off by a boundary where its headers or data should be.
    pub invalid_part: bool,
    /// More files than [`multipart_files_max`](super::Limits::multipart_files_max).
    pub file_limit_exceeded: bool,
    /// Something in the data looks like a boundary.
    pub unmatched_boundary: UnmatchedBoundary,
}

impl MultipartFlags {
    /// `MULTIPART_STRICT_ERROR`: any flag but `crlf_line` and `unmatched_boundary`.
    pub fn strict_error(&self) -> bool {
        self.error
            || self.boundary_quoted
            || self.boundary_whitespace
            || self.data_before
            || self.data_after
            || self.header_folding
            || self.invalid_header_folding
            || self.lf_line
            || self.missing_semicolon
            || self.invalid_quoting
            || self.invalid_part
            || self.file_limit_exceeded
    }

    /// `MULTIPART_CRLF_LF_LINES`: both kinds of line end occur.
    pub fn crlf_lf_lines(&self) -> bool {
        self.crlf_line && self.lf_line
    }

    /// `MULTIPART_UNMATCHED_BOUNDARY` as ModSecurity 2 sets it.
    pub fn unmatched_boundary(&self) -> bool {
        self.unmatched_boundary != UnmatchedBoundary::No
    }
}

/// A place where readers of a body are known to differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ambiguity {
    /// A part says `Content-Transfer-Encoding` other than 7bit, 8bit, binary: some readers decode it.
    TransferEncoding,
    /// A part, or a field named `_charset_`, names a character set that is no superset of ASCII.
    PartCharset,
    /// A part is itself `multipart/*`: some readers descend.
    NestedMultipart,
    /// A part's data ends a line with a lone CR next to boundary-like text, or has it in its headers.
    LoneCarriageReturn,
    /// A backslash in a `name` or `filename`: escape for some readers, part of the text for others.
    NameEscape,
    /// `\ud800` and the like without their other half in JSON: readers replace, drop or refuse it.
    LoneSurrogate,
    /// NUL in a JSON string or key: C-based readers end there.
    NulCharacter,
    /// An XML document has a document type declaration that was skipped.
    DocumentType,
    /// The content type names a character set that was not decoded and is no superset of ASCII.
    Charset,
}

impl Ambiguity {
    /// All of them.
    pub const ALL: [Ambiguity; 9] = [
        Ambiguity::TransferEncoding,
        Ambiguity::PartCharset,
        Ambiguity::NestedMultipart,
        Ambiguity::LoneCarriageReturn,
        Ambiguity::NameEscape,
        Ambiguity::LoneSurrogate,
        Ambiguity::NulCharacter,
        Ambiguity::DocumentType,
        Ambiguity::Charset,
    ];

    /// A stable name for logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Ambiguity::TransferEncoding => "transfer_encoding",
            Ambiguity::PartCharset => "part_charset",
            Ambiguity::NestedMultipart => "nested_multipart",
            Ambiguity::LoneCarriageReturn => "lone_carriage_return",
            Ambiguity::NameEscape => "name_escape",
            Ambiguity::LoneSurrogate => "lone_surrogate",
            Ambiguity::NulCharacter => "nul_character",
            Ambiguity::DocumentType => "document_type",
            Ambiguity::Charset => "charset",
        }
    }
}

/// A set of [`Ambiguity`].
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Ambiguities(u16);

impl Ambiguities {
    /// Adds one.
    pub fn insert(&mut self, ambiguity: Ambiguity) {
        self.0 |= 1 << ambiguity as u8;
    }

    /// True if it is in the set.
    pub fn contains(self, ambiguity: Ambiguity) -> bool {
        self.0 >> ambiguity as u8 & 1 == 1
    }

    /// True if there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members.
    pub fn iter(self) -> impl Iterator<Item = Ambiguity> {
        Ambiguity::ALL.into_iter().filter(move |&a| self.contains(a))
    }
}

impl std::fmt::Debug for Ambiguities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
