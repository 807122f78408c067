//! Request and response body parsers: bytes in any chunks, named values out.
//!
//! ```text
//! chunks ──feed──> UrlEncoded | Multipart | Json | Xml ──events──> BodySink (the engine's collections)
//!                                   │
//!                                 finish ──> Report { error, flags, ambiguities, counts }
//! ```
//!
//! * A parser never waits and never looks ahead: whatever the chunk sizes, the events are the same, except
//!   that [`BodySink::file_data`] and [`BodySink::xml_text`] may be cut differently (their concatenation is
//!   the same).
//! * Meaning follows ModSecurity 2.9.7 (splitting, names, `MULTIPART_*` flags), so that rules written for it
//!   see what they expect. Where we differ we see more: values read before an error are still reported.
//! * A body that some application could read differently is never read silently: it is a [`BodyError`], a
//!   multipart flag or an [`Ambiguity`], or the other reading is reported as well ([`second_reading`],
//!   [`Undeclared`]).
//! * Time is linear in the body, memory is bounded by [`Limits`] and the body's own size, nothing recurses.
//!
//! ```
//! use portcullis_http::body::{Arg, BodySink, Limits, UrlEncoded};
//!
//! struct Print(Vec<String>);
//! impl BodySink for Print {
//!     fn arg(&mut self, arg: Arg<'_>) {
//!         self.0.push(format!("{}={}", arg.name.escape_ascii(), arg.value.escape_ascii()));
//!     }
//! }
//! let mut sink = Print(Vec::new());
//! let mut parser = UrlEncoded::new(Limits::default());
//! parser.feed(b"user=alice&q=1%27+", &mut sink);
//! parser.feed(b"or+1&debug", &mut sink);
//! let report = parser.finish(&mut sink);
//! assert_eq!(sink.0, ["user=alice", r"q=1\' or 1", "debug="]);
//! assert!(report.error.is_none());
//! ```

use portcullis_types::Span;

mod any;
pub mod charset;
pub mod content_type;
mod error;
mod json;
mod multipart;
mod readings;
mod report;
mod target;
#[cfg(test)]
mod test_sink;
pub mod transcode;
mod undeclared;
mod urlencoded;
mod xml;

pub use any::{BodyParser, Options};
pub use error::{BodyError, BodyErrorKind, Byte, DispositionError, JsonError, MultipartError, XmlError};
pub use json::{Json, JsonNames};
pub use multipart::Multipart;
pub use readings::{Declared, second_reading};
pub use report::{Ambiguities, Ambiguity, MultipartFlags, Report, UnmatchedBoundary};
pub use target::{overrides_url, overriding_query, path_parameters};
pub use undeclared::Undeclared;
pub use urlencoded::{UrlEncoded, count_arguments, parse_query, parse_query_twice};
pub use xml::args::XmlArgs;
pub use xml::{Doctype, Xml};

/// A named value found in a body or a query string, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arg<'a> {
    /// Its name (`ARGS_NAMES`), decoded; for JSON the path.
    pub name: &'a [u8],
    /// Its value (`ARGS`), decoded.
    pub value: &'a [u8],
    /// The span of the raw value in the body as received: percent signs, escapes and all, without JSON's
    /// quotes. Empty for arguments made of XML.
    pub raw_value: Span,
}

/// Receives what a body parser finds, in body order. Everything borrowed is gone after the call.
///
/// Only [`arg`](BodySink::arg) must be written; the rest does nothing by default.
#[allow(unused_variables)]
pub trait BodySink {
    /// A form field, a JSON scalar or a multipart part that is not a file.
    fn arg(&mut self, arg: Arg<'_>);

    /// A multipart part's headers ended well: its name and, if it is a file, its file name (`MULTIPART_NAME`,
    /// `MULTIPART_FILENAME`). `part_header`s follow, then `arg` or `file_begin`.
    fn part(&mut self, name: &[u8], filename: Option<&[u8]>) {}

    /// A header line of the part named `part_name`, unfolded, without its line end
    /// (`MULTIPART_PART_HEADERS`).
    fn part_header(&mut self, part_name: &[u8], line: &[u8]) {}

    /// A file starts: `FILES` (value `filename`, key `field_name`), `FILES_NAMES` (value `field_name`).
    fn file_begin(&mut self, field_name: &[u8], filename: &[u8]) {}

    /// A piece of the current file's content (`FILES_TMP_CONTENT`). Pieces are as the chunks come.
    fn file_data(&mut self, data: &[u8]) {}

    /// The current file ended after `size` bytes (`FILES_SIZES`, `FILES_COMBINED_SIZE`).
    fn file_end(&mut self, size: u64) {}

    /// An XML start tag; its attributes and content follow until the matching [`xml_end`](BodySink::xml_end).
    fn xml_start(&mut self, name: &[u8]) {}

    /// An attribute of the element that just started (`XML://@*` has the values), references resolved.
    /// Namespace declarations (`xmlns`, `xmlns:p`) come here too; XPath does not count them as attributes.
    fn xml_attribute(&mut self, name: &[u8], value: &[u8]) {}

    /// A piece of text or CDATA, references resolved. The concatenation of all pieces is `XML:/*`.
    fn xml_text(&mut self, text: &[u8]) {}

    /// An element ended.
    fn xml_end(&mut self, name: &[u8]) {}

    /// A comment's text. Not part of `XML:/*`.
    fn xml_comment(&mut self, text: &[u8]) {}

    /// A document type declaration that is skipped: everything between `<!DOCTYPE` and `>`.
    fn xml_doctype(&mut self, text: &[u8]) {}

    /// A processing instruction: its target and the rest. Not part of `XML:/*`.
    fn xml_instruction(&mut self, target: &[u8], data: &[u8]) {}

    /// The value of an argument as another application reads it (see [`second_reading`]).
    fn arg_reading(&mut self, name: &[u8], value: &[u8]) {}

    /// The name of an argument as another application reads it.
    fn name_reading(&mut self, name: &[u8]) {}

    /// Text of an XML document that `XML:/*` does not have and an application may read.
    fn xml_reading(&mut self, text: &[u8]) {}
}

/// Limits of the body parsers. Each has a consequence: the named [`BodyErrorKind`] or flag; none is silent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Arguments a parser may report (`SecArgumentsLimit`). Further ones are dropped and reported as
    /// [`BodyErrorKind::ArgumentsLimit`]. ModSecurity counts query and body together: hand a body parser what
    /// the query left over. Default 1,000.
    pub arguments_max: usize,
    /// Nesting of JSON objects and arrays (`SecRequestBodyJsonDepthLimit`); above: [`JsonError::Depth`].
    /// With [`JsonNames::ModSecurity2`] a top-level object does not count, as there. Default 512.
    pub json_depth_max: usize,
    /// Bytes of the path of a JSON value or an XML argument (all names that lead to it, joined); above:
    /// [`JsonError::PathLength`], [`XmlError::PathLength`]. Keeps a long name over many values from
    /// multiplying. Default 16 KiB.
    pub path_bytes_max: usize,
    /// Nesting of XML elements; above: [`XmlError::Depth`]. Default 256, which is libxml2's.
    pub xml_depth_max: usize,
    /// Attributes of one XML element; above: [`XmlError::Attributes`]. Default 256.
    pub xml_attributes_max: usize,
    /// Bytes of one XML name, tag, comment or other markup between `<` and `>`, attribute values included;
    /// above: [`XmlError::MarkupLength`]. Default 1 MiB.
    pub xml_markup_bytes_max: usize,
    /// Parts of a multipart body; above: [`MultipartError::Parts`]. Default 4,000.
    pub multipart_parts_max: usize,
    /// File parts of a multipart body (`SecUploadFileLimit`); above: the flag `file_limit_exceeded`, and the
    /// content of the further files is not given to the sink, only counted. Default 100.
    pub multipart_files_max: usize,
    /// Bytes of one line of a part's headers; above: [`MultipartError::HeaderLine`]. Default 4,096 as in
    /// ModSecurity.
    pub part_header_line_bytes_max: usize,
    /// Bytes of all headers of one part; above: [`MultipartError::Headers`]. Default 16 KiB.
    pub part_headers_bytes_max: usize,
    /// Header lines of one part, folded ones counting as one; above: [`MultipartError::HeaderCount`]. Default
    /// 64.
    pub part_headers_max: usize,
    /// Bytes of a multipart body that are not file content (`SecRequestBodyNoFilesLimit`); at or above it:
    /// [`MultipartError::NoFilesLimit`]. Default 1 MiB.
    pub no_files_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            arguments_max: 1_000,
            json_depth_max: 512,
            path_bytes_max: 16 << 10,
            xml_depth_max: 256,
            xml_attributes_max: 256,
            xml_markup_bytes_max: 1 << 20,
            multipart_parts_max: 4_000,
            multipart_files_max: 100,
            part_header_line_bytes_max: 4_096,
            part_headers_bytes_max: 16 << 10,
            part_headers_max: 64,
            no_files_bytes_max: 1 << 20,
        }
    }
}
