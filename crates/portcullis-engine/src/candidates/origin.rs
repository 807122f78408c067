//! The origin of the values of each variable, as far as rules cannot change them.

use portcullis_prefilter::Side;
use portcullis_types::Variable;
use portcullis_values::{Class, classes_of, readings_of};

/// The storage of those values of a variable that no rule can change.
pub(super) enum Stored {
    Classes(Vec<Class>),
    Scalar,
    /// Rules can change it, or it is worked out when it is asked for.
    Unsteady,
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a variable that is not listed is unsteady, and its rules always run"
)]
pub(super) fn stored(variable: Variable) -> Stored {
    use Variable::*;
    match variable {
        Geo | MatchedVars | MatchedVarsNames => Stored::Unsteady,
        variable if !classes_of(variable).is_empty() => {
            Stored::Classes(classes_of(variable).iter().chain(readings_of(variable)).copied().collect())
        }
        AuthType
        | InboundDataError
        | MultipartBoundaryQuoted
        | MultipartBoundaryWhitespace
        | MultipartCrlfLfLines
        | MultipartCrlfLine
        | MultipartDataAfter
        | MultipartDataBefore
        | MultipartFileLimitExceeded
        | MultipartHeaderFolding
        | MultipartInvalidHeaderFolding
        | MultipartInvalidPart
        | MultipartInvalidQuoting
        | MultipartLfLine
        | MultipartMissingSemicolon
        | MultipartStrictError
        | MultipartUnmatchedBoundary
        | OutboundDataError
        | PathInfo
        | QueryString
        | RemoteAddr
        | RemoteHost
        | RemotePort
        | RemoteUser
        | ReqbodyAmbiguity
        | ReqbodyError
        | ReqbodyErrorMsg
        | ReqbodyProcessorError
        | ReqbodyProcessorErrorMsg
        | RequestBasename
        | RequestBody
        | RequestFilename
        | RequestLine
        | RequestMethod
        | RequestProtocol
        | RequestUri
        | RequestUriRaw
        | ResponseBody
        | ResponseContentLength
        | ResponseContentType
        | ResponseProtocol
        | ResponseStatus
        | ServerAddr
        | ServerName
        | ServerPort
        | StatusLine
        | UniqueId
        | UrlencodedError
        | UseragentIp => Stored::Scalar,
        _ => Stored::Unsteady,
    }
}

/// The message that a variable belongs to.
pub(super) fn side(variable: Variable) -> Side {
    use Variable::*;
    let is_of_response = matches!(
        variable,
        ResponseBody
            | ResponseContentLength
            | ResponseContentType
            | ResponseHeaders
            | ResponseHeadersNames
            | ResponseProtocol
            | ResponseStatus
            | StatusLine
    );
    if is_of_response { Side::Response } else { Side::Request }
}
