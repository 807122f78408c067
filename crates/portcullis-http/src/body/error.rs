//! Errors of body parsers.

use std::fmt;

/// A body that its parser refuses (`REQBODY_ERROR`): what was wrong and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyError {
    /// The kind of error.
    pub kind: BodyErrorKind,
    /// Offset in the body, in bytes from its start, where it was noticed. For XML in another encoding than
    /// UTF-8 it counts the bytes of the text as UTF-8.
    pub position: u64,
}

/// The reasons, by parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyErrorKind {
    /// More arguments than allowed; the number is the limit.
    ArgumentsLimit(usize),
    /// Not the JSON of RFC 8259, or over a limit.
    Json(JsonError),
    /// Not well-formed XML, or over a limit.
    Xml(XmlError),
    /// Not `multipart/form-data` that all readers would read alike, or over a limit.
    Multipart(MultipartError),
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            BodyErrorKind::ArgumentsLimit(max) => {
                write!(f, "SecArgumentsLimit exceeded: more than {max} arguments")?
            }
            BodyErrorKind::Json(error) => write!(f, "JSON parsing error: {error}")?,
            BodyErrorKind::Xml(error) => write!(f, "XML parsing error: {error}")?,
            BodyErrorKind::Multipart(error) => write!(f, "Multipart parsing error: {error}")?,
        }
        write!(f, " (at byte {})", self.position)
    }
}

impl std::error::Error for BodyError {}

/// Declares an error enum whose variants carry nothing or one number, with their messages.
macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident $(($arg:ident: $type:ty))? => $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant $(($type))?,)* }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $($name::$variant $(($arg))? => write!(f, $text),)* }
            }
        }
    };
}

reasons! {
    /// An error in a JSON text.
    JsonError {
        /// A byte that cannot stand there.
        Unexpected(byte: Byte) => "unexpected {byte}",
        /// The text ends inside a value.
        Truncated => "the text ends too early",
        /// Something follows the value.
        TrailingData => "data after the end of the value",
        /// A backslash that starts no escape of RFC 8259.
        Escape => "invalid escape in a string",
        /// A control character inside a string.
        Control => "control character in a string",
        /// A string is not UTF-8.
        Utf8 => "string is not UTF-8",
        /// A number that is no JSON number, such as `01`, `+1`, `.5`, `1.`.
        Number => "malformed number",
        /// A word other than `true`, `false`, `null`.
        Word => "unknown word",
        /// Deeper than [`json_depth_max`](super::Limits::json_depth_max).
        Depth(max: usize) => "JSON depth limit exceeded: more than {max} levels",
        /// Path longer than [`path_bytes_max`](super::Limits::path_bytes_max).
        PathLength(max: usize) => "names of nested keys longer than {max} bytes in all",
    }
}

reasons! {
    /// An error in an XML document.
    XmlError {
        /// A character set that is not decoded here.
        Encoding => "character encoding not supported",
        /// Bytes that are no text in the document's encoding, or characters XML forbids.
        Character => "character not allowed",
        /// A `<` that starts no markup, or markup with a syntax error.
        Markup => "malformed markup",
        /// A malformed attribute.
        Attribute => "malformed attribute",
        /// The same attribute twice.
        DuplicateAttribute => "duplicate attribute",
        /// An end tag that does not match.
        MismatchedTag => "end tag does not match its start tag",
        /// `&name;` that XML does not predefine.
        Entity => "reference to an undefined entity",
        /// A malformed `&...;`.
        Reference => "malformed reference",
        /// `]]>` in text.
        CdataEnd => "']]>' in text",
        /// Text or a second element outside the root element.
        OutsideRoot => "content outside the root element",
        /// A document type declaration, which is refused.
        DocumentType => "document type declarations are refused",
        /// The document ends inside an element, or holds none.
        Truncated => "the document ends too early",
        /// Deeper than [`xml_depth_max`](super::Limits::xml_depth_max).
        Depth(max: usize) => "elements nested more than {max} levels deep",
        /// More than [`xml_attributes_max`](super::Limits::xml_attributes_max).
        Attributes(max: usize) => "more than {max} attributes in an element",
        /// The path of an argument is longer than [`path_bytes_max`](super::Limits::path_bytes_max).
        PathLength(max: usize) => "names of nested elements longer than {max} bytes in all",
        /// Longer than [`xml_markup_bytes_max`](super::Limits::xml_markup_bytes_max).
        MarkupLength(max: usize) => "markup longer than {max} bytes",
    }
}

reasons! {
    /// An error in a multipart body or its `Content-Type`, in ModSecurity 2's words where it has some: log
    /// tools look for them in `REQBODY_ERROR_MSG`.
    MultipartError {
        /// No `Content-Type` header, or not `multipart/form-data`.
        MediaType => "content type is not multipart/form-data",
        /// A `Content-Type` of more than 1,024 bytes.
        ContentTypeLength => "Invalid boundary in C-T (length): longer than 1024 bytes",
        /// The boundary parameter occurs more than once.
        BoundaryRepeated => "Multiple boundary parameters in C-T",
        /// There is none.
        BoundaryMissing => "Boundary not found in C-T",
        /// It is not in lower case.
        BoundaryCase => "Invalid boundary in C-T (case sensitivity)",
        /// Its name continues.
        BoundaryName => "Invalid boundary in C-T (parameter name)",
        /// Other parameters or bytes stand before it, or no value after it.
        BoundaryParameter => "Invalid boundary in C-T (malformed)",
        /// Quoted on one side only.
        BoundaryQuote => "Invalid boundary in C-T (quote)",
        /// Empty, or with characters that RFC 2046 does not allow.
        BoundaryCharacters => "Invalid boundary in C-T (characters)",
        /// A line starts with the boundary but has further bytes.
        BoundaryLine => "boundary followed by other characters",
        /// A boundary line with quotes or white space before the boundary.
        BoundaryDecorated => "boundary line with quotes or white space before the boundary",
        /// No boundary line in the body.
        NoBoundary => "No boundaries found in payload",
        /// The final boundary is missing.
        FinalBoundary => "Final boundary missing",
        /// NUL in a part's headers.
        HeaderNul => "Nul byte in part headers",
        /// A header line without a colon.
        HeaderColon => "Invalid part header (colon missing)",
        /// A header line without a name.
        HeaderName => "Invalid part header (header name missing)",
        /// A continuation line with no header before it.
        HeaderFolding => "Invalid part header (folding error)",
        /// The same header twice.
        HeaderRepeated => "Duplicate part header",
        /// A part without `Content-Disposition`.
        DispositionMissing => "Part missing Content-Disposition header",
        /// A `Content-Disposition` that is not `form-data` with `name` and `filename` and nothing else.
        Disposition(reason: DispositionError) => "Invalid Content-Disposition header: {reason}",
        /// A part without a name.
        NameMissing => "Content-Disposition header missing name field",
        /// A header line longer than
        /// [`part_header_line_bytes_max`](super::Limits::part_header_line_bytes_max).
        HeaderLine(max: usize) => "Part header line over {max} bytes long",
        /// Headers longer than [`part_headers_bytes_max`](super::Limits::part_headers_bytes_max).
        Headers(max: usize) => "part headers over {max} bytes long",
        /// More headers in a part than [`part_headers_max`](super::Limits::part_headers_max).
        HeaderCount(max: usize) => "more than {max} headers in a part",
        /// More parts than [`multipart_parts_max`](super::Limits::multipart_parts_max).
        Parts(max: usize) => "more than {max} parts",
        /// More bytes that are not file content than
        /// [`no_files_bytes_max`](super::Limits::no_files_bytes_max).
        NoFilesLimit(max: u64) => "{max} bytes or more without file content",
    }
}

reasons! {
    /// An error in a part's `Content-Disposition`.
    DispositionError {
        /// Not `form-data`.
        Type => "not form-data",
        /// Something other than parameters separated by semicolons.
        Syntax => "malformed parameters",
        /// A quoted value that does not end.
        Quote => "unterminated quoted value",
        /// A parameter other than `name` and `filename`, such as `filename*`.
        Parameter => "unknown parameter",
        /// `name` twice.
        NameRepeated => "duplicate name",
        /// `filename` twice.
        FilenameRepeated => "duplicate filename",
        /// `filename` that simple readers would not find.
        FilenameHidden => "filename parameter in an unusual form",
    }
}

/// A byte in a message: as a character if it prints, else in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Byte(pub u8);

impl fmt::Display for Byte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_ascii_graphic() {
            write!(f, "'{}'", self.0 as char)
        } else {
            write!(f, "byte 0x{:02x}", self.0)
        }
    }
}
