//! Uploads that go on to the application while they are looked at: a file, or a form with files, longer than
//! what is held of a body.

use portcullis_http::body::content_type::Processor;
use portcullis_http::body::{Ambiguity, BodyErrorKind, BodyParser, MultipartError};

use super::body::parser_within;
use super::leaves::{Leaves, Open};
use super::protobuf;
use super::windows::{Later, Windows};
use crate::{Analysis, ByteGroups, Detectors, Location, Place, decode};

/// Where a body that is a file stands.
const UPLOAD: Location<'static> = Location { place: Place::FileContent, name: b"" };

/// An upload, looked at piece by piece. Its memory is that of two windows and of a field.
#[derive(Debug)]
pub struct Upload {
    kind: Kind,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One per upload.
enum Kind {
    /// Fields are values when they end, files go through windows.
    Form {
        parser: BodyParser,
        open: Open,
    },
    File(Windows),
}

/// Why an upload cannot be let through, whatever was found in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is no form, or applications read it differently.
    Malformed,
    /// What is not files in it is longer than what is held.
    FieldsTooLong,
}

impl Upload {
    /// True if a body of this type may be one: a form with files, or anything that is not taken apart into
    /// values.
    pub fn is_of_type(content_type: &[u8]) -> bool {
        let processor = Processor::by_media_type(content_type);
        matches!(processor, None | Some(Processor::Multipart)) && !protobuf::is_type(content_type)
    }

    /// For a body that begins so. What is not files in it may have so many bytes.
    pub fn new(content_type: &[u8], beginning: &[u8], fields_bytes_max: u64) -> Upload {
        let kind = match Processor::by_media_type(content_type) {
            Some(processor) => {
                let parser = parser_within(processor, content_type, fields_bytes_max);
                Kind::Form { parser, open: Open::default() }
            }
            None => {
                let is_bytes = decode::is_bytes(beginning, ByteGroups::of(beginning));
                let mut windows = Windows::default();
                windows.begin(match is_bytes {
                    true if decode::is_file(beginning) => Later::Code,
                    true => Later::CodeAndTexts,
                    false => Later::Values,
                });
                Kind::File(windows)
            }
        };
        Upload { kind }
    }

    /// Looks at the next piece.
    pub fn feed(&mut self, analysis: &mut Analysis, detectors: &Detectors, piece: &[u8]) {
        analysis.work.allow(piece.len());
        match &mut self.kind {
            Kind::Form { parser, open } => {
                let place = Place::MultipartField;
                let mut sink = Leaves::going_on(analysis, detectors, place, std::mem::take(open));
                parser.feed(piece, &mut sink);
                *open = sink.into_open();
            }
            Kind::File(windows) => windows.feed(analysis, detectors, UPLOAD, piece),
        }
    }

    /// The upload has come to its end.
    pub fn end(self, analysis: &mut Analysis, detectors: &Detectors) -> Result<(), Unreadable> {
        match self.kind {
            Kind::Form { parser, open } => {
                let mut sink = Leaves::going_on(analysis, detectors, Place::MultipartField, open);
                let report = parser.finish(&mut sink);
                sink.end();
                if let Some(error) = report.error {
                    return Err(match error.kind {
                        BodyErrorKind::Multipart(MultipartError::NoFilesLimit(_)) => {
                            Unreadable::FieldsTooLong
                        }
                        BodyErrorKind::ArgumentsLimit(_)
                        | BodyErrorKind::Json(_)
                        | BodyErrorKind::Xml(_)
                        | BodyErrorKind::Multipart(_) => Unreadable::Malformed,
                    });
                }
                // Its other reading would need the beginning, which is gone.
                let is_ambiguous = |ambiguity: Ambiguity| {
                    matches!(
                        ambiguity,
                        Ambiguity::TransferEncoding
                            | Ambiguity::PartCharset
                            | Ambiguity::NestedMultipart
                            | Ambiguity::LoneCarriageReturn
                    )
                };
                match report.ambiguities.iter().any(is_ambiguous) {
                    true => Err(Unreadable::Malformed),
                    false => Ok(()),
                }
            }
            Kind::File(mut windows) => {
                let whole = windows.end(analysis, detectors, UPLOAD).unwrap_or_default();
                if analysis.stores {
                    analysis.stored(detectors, whole);
                }
                Ok(())
            }
        }
    }
}
