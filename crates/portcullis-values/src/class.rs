//! The classes of values, by their origin in the message.

use portcullis_types::Variable;

/// Values of one origin, in order of arrival. Collections of SecLang are one class or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Class {
    ArgsGet,
    ArgsGetNames,
    ArgsPost,
    ArgsPostNames,
    /// The values that other applications read for [`ArgsGet`](Class::ArgsGet) and the three others, where
    /// those differ: see `readings_of`.
    ArgsGetReadings,
    ArgsGetNamesReadings,
    ArgsPostReadings,
    ArgsPostNamesReadings,
    RequestHeaders,
    RequestHeadersNames,
    RequestCookies,
    RequestCookiesNames,
    Files,
    FilesNames,
    FilesSizes,
    FilesTmpContent,
    FilesTmpNames,
    Geo,
    MultipartFilename,
    MultipartName,
    MultipartPartHeaders,
    ResponseHeaders,
    ResponseHeadersNames,
    XmlText,
    /// Beside [`XmlText`](Class::XmlText), as the readings of arguments.
    XmlReadings,
    XmlAttributes,
    MatchedVars,
    MatchedVarsNames,
}

impl Class {
    /// All classes, by number.
    pub const ALL: [Class; CLASS_COUNT] = {
        use Class::*;
        [
            ArgsGet,
            ArgsGetNames,
            ArgsPost,
            ArgsPostNames,
            ArgsGetReadings,
            ArgsGetNamesReadings,
            ArgsPostReadings,
            ArgsPostNamesReadings,
            RequestHeaders,
            RequestHeadersNames,
            RequestCookies,
            RequestCookiesNames,
            Files,
            FilesNames,
            FilesSizes,
            FilesTmpContent,
            FilesTmpNames,
            Geo,
            MultipartFilename,
            MultipartName,
            MultipartPartHeaders,
            ResponseHeaders,
            ResponseHeadersNames,
            XmlText,
            XmlReadings,
            XmlAttributes,
            MatchedVars,
            MatchedVarsNames,
        ]
    };
}

/// Number of classes.
pub const CLASS_COUNT: usize = Class::MatchedVarsNames as usize + 1;

/// The classes of a collection's second readings: rules test them, nothing counts them and no macro shows
/// them.
#[expect(clippy::wildcard_enum_match_arm, reason = "only the arguments have second readings")]
pub fn readings_of(variable: Variable) -> &'static [Class] {
    use Class::*;
    match variable {
        Variable::Args => &[ArgsGetReadings, ArgsPostReadings],
        Variable::ArgsNames => &[ArgsGetNamesReadings, ArgsPostNamesReadings],
        Variable::ArgsGet => &[ArgsGetReadings],
        Variable::ArgsGetNames => &[ArgsGetNamesReadings],
        Variable::ArgsPost => &[ArgsPostReadings],
        Variable::ArgsPostNames => &[ArgsPostNamesReadings],
        _ => &[],
    }
}

/// The classes that make up a collection; none for variables that are not stored as classes.
#[expect(clippy::wildcard_enum_match_arm, reason = "most variables are not stored as classes")]
pub fn classes_of(variable: Variable) -> &'static [Class] {
    use Class::*;
    match variable {
        Variable::Args => &[ArgsGet, ArgsPost],
        Variable::ArgsNames => &[ArgsGetNames, ArgsPostNames],
        Variable::ArgsGet => &[ArgsGet],
        Variable::ArgsGetNames => &[ArgsGetNames],
        Variable::ArgsPost => &[ArgsPost],
        Variable::ArgsPostNames => &[ArgsPostNames],
        Variable::RequestHeaders => &[RequestHeaders],
        Variable::RequestHeadersNames => &[RequestHeadersNames],
        Variable::RequestCookies => &[RequestCookies],
        Variable::RequestCookiesNames => &[RequestCookiesNames],
        Variable::Files => &[Files],
        Variable::FilesNames => &[FilesNames],
        Variable::FilesSizes => &[FilesSizes],
        Variable::FilesTmpContent => &[FilesTmpContent],
        Variable::FilesTmpnames => &[FilesTmpNames],
        Variable::Geo => &[Geo],
        Variable::MultipartFilename => &[MultipartFilename],
        Variable::MultipartName => &[MultipartName],
        Variable::MultipartPartHeaders => &[MultipartPartHeaders],
        Variable::ResponseHeaders => &[ResponseHeaders],
        Variable::ResponseHeadersNames => &[ResponseHeadersNames],
        Variable::MatchedVars => &[MatchedVars],
        Variable::MatchedVarsNames => &[MatchedVarsNames],
        _ => &[],
    }
}
