//! When a variable can have a value: the phase from which on there is one, and what has to be on or done
//! first.
//!
//! `portcullis check` warns about rules that read a variable too early or without what it needs, and the
//! reference page prints both; a test of the compiler shows the table to the engine.

use portcullis_types::{Phase, Variable};

/// The conditions under which a variable has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Availability {
    /// The first phase in which it can have one.
    pub from: Phase,
    /// The setting or action without which it never has one.
    pub needs: Option<Need>,
}

/// A setting or an action of a rule that a variable needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// `SecRequestBodyAccess On`.
    RequestBody,
    /// `SecResponseBodyAccess On`.
    ResponseBody,
    /// An action that opens a record of the collection: `initcol`, `setsid`, `setuid`, `setrsc`.
    Opened(Variable),
    /// A `@geoLookup`.
    GeoLookup,
    /// A `setvar` or `capture` of the key.
    Set,
}

/// Returns the conditions under which `variable` has a value.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a variable that is not listed has its value in every phase"
)]
pub fn availability(variable: Variable) -> Availability {
    use Phase::{RequestBody, RequestHeaders, ResponseBody, ResponseHeaders};
    use Variable::*;
    let of = |from, needs| Availability { from, needs };
    match variable {
        ArgsPost
        | ArgsPostNames
        | Files
        | FilesCombinedSize
        | FilesNames
        | FilesSizes
        | FilesTmpContent
        | FilesTmpnames
        | InboundDataError
        | MultipartBoundaryQuoted
        | MultipartBoundaryWhitespace
        | MultipartCrlfLfLines
        | MultipartCrlfLine
        | MultipartDataAfter
        | MultipartDataBefore
        | MultipartFileLimitExceeded
        | MultipartFilename
        | MultipartHeaderFolding
        | MultipartInvalidHeaderFolding
        | MultipartInvalidPart
        | MultipartInvalidQuoting
        | MultipartLfLine
        | MultipartMissingSemicolon
        | MultipartName
        | MultipartPartHeaders
        | MultipartStrictError
        | MultipartUnmatchedBoundary
        | ReqbodyAmbiguity
        | ReqbodyError
        | ReqbodyErrorMsg
        | ReqbodyProcessorError
        | ReqbodyProcessorErrorMsg
        | Variable::RequestBody
        | RequestBodyLength
        | StreamInputBody
        | Xml => of(RequestBody, Some(Need::RequestBody)),
        ResponseContentLength
        | ResponseContentType
        | Variable::ResponseHeaders
        | ResponseHeadersNames
        | ResponseProtocol
        | ResponseStatus
        | StatusLine => of(ResponseHeaders, None),
        Variable::ResponseBody | StreamOutputBody | OutboundDataError => {
            of(ResponseBody, Some(Need::ResponseBody))
        }
        Global | Ip | Resource | Session | User => of(RequestHeaders, Some(Need::Opened(variable))),
        Sessionid => of(RequestHeaders, Some(Need::Opened(Session))),
        Userid => of(RequestHeaders, Some(Need::Opened(User))),
        Geo => of(RequestHeaders, Some(Need::GeoLookup)),
        Tx => of(RequestHeaders, Some(Need::Set)),
        _ => of(RequestHeaders, None),
    }
}
