//! The parts of a message's heads that the rules of a plan read. A transaction that nobody else looks into
//! keeps no others.

use portcullis_types::Variable;

use crate::template::{Part, Template};
use crate::tx::texts_of;

use super::{Act, KeyFilter, Plan};

/// Parts of the head of a request and of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadParts(u8);

impl HeadParts {
    /// Nothing.
    pub const NONE: HeadParts = HeadParts(0);
    /// The request line, and what the request target is taken apart into but for the arguments of its query.
    pub const LINE: HeadParts = HeadParts(1);
    /// `ARGS_GET` and its kin.
    pub const QUERY: HeadParts = HeadParts(2);
    /// All header fields of the request.
    pub const FIELDS: HeadParts = HeadParts(4);
    /// `REQUEST_COOKIES` and its kin.
    pub const COOKIES: HeadParts = HeadParts(8);
    /// `AUTH_TYPE`, `REMOTE_USER`.
    pub const LOGIN: HeadParts = HeadParts(16);
    /// `SERVER_NAME`.
    pub const HOST: HeadParts = HeadParts(32);
    /// The head of the response.
    pub const RESPONSE: HeadParts = HeadParts(64);
    /// All of them.
    pub const ALL: HeadParts = HeadParts(127);

    /// True if all of `other` are in it.
    pub const fn has(self, other: HeadParts) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    pub const fn with(self, other: HeadParts) -> HeadParts {
        HeadParts(self.0 | other.0)
    }

    /// Those that `variable` is made of. What is not known to need none of them needs all.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a variable that is not listed reads the whole head")]
    fn of(variable: Variable) -> HeadParts {
        use Variable::*;
        match variable {
            RequestLine | RequestMethod | RequestProtocol | RequestUri | RequestUriRaw | RequestFilename
            | RequestBasename | PathInfo | QueryString => HeadParts::LINE,
            Args | ArgsNames | ArgsGet | ArgsGetNames | ArgsCombinedSize | UrlencodedError => {
                HeadParts::QUERY
            }
            RequestHeaders | RequestHeadersNames => HeadParts::FIELDS,
            RequestCookies | RequestCookiesNames => HeadParts::COOKIES,
            AuthType | RemoteUser => HeadParts::LOGIN,
            ServerName => HeadParts::HOST,
            FullRequest | FullRequestLength => HeadParts::LINE.with(HeadParts::FIELDS),
            // For our own answer it is that of the request.
            ResponseProtocol => HeadParts::RESPONSE.with(HeadParts::LINE),
            ResponseHeaders
            | ResponseHeadersNames
            | ResponseStatus
            | StatusLine
            | ResponseContentType
            | ResponseContentLength => HeadParts::RESPONSE,
            ArgsPost
            | ArgsPostNames
            | Files
            | FilesCombinedSize
            | FilesNames
            | FilesSizes
            | FilesTmpContent
            | FilesTmpnames
            | MultipartFilename
            | MultipartName
            | MultipartPartHeaders
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
            | InboundDataError
            | OutboundDataError
            | ReqbodyAmbiguity
            | ReqbodyError
            | ReqbodyErrorMsg
            | ReqbodyProcessor
            | ReqbodyProcessorError
            | ReqbodyProcessorErrorMsg
            | RequestBody
            | RequestBodyLength
            | ResponseBody
            | Tx
            | RemoteAddr
            | MatchedVar
            | MatchedVarName
            | MatchedVars
            | MatchedVarsNames
            | Rule
            | UniqueId => HeadParts::NONE,
            _ => HeadParts::ALL,
        }
    }
}

/// Parts of the heads of a message that rules read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadReads {
    pub(crate) parts: HeadParts,
    /// Without [`HeadParts::FIELDS`]: the names of the header fields that they read all the same.
    fields: Vec<Box<[u8]>>,
}

impl HeadReads {
    pub(super) fn new(plan: &Plan) -> HeadReads {
        let mut reads = HeadReads::default();
        for target in plan.links.iter().flat_map(|link| &link.targets.include) {
            match &target.filter {
                KeyFilter::Key(key) => reads.add(target.variable, Some(key)),
                KeyFilter::All | KeyFilter::Regex(_) | KeyFilter::Xml(_) => reads.add(target.variable, None),
            }
        }
        for part in texts_of(plan).flat_map(|text: &Template| &text.parts) {
            if let Part::Variable { variable, key } = part {
                reads.add(*variable, key.as_deref());
            }
        }
        // What is hidden in logs is looked for in all there is.
        if plan.links.iter().flat_map(|link| &link.acts).any(|act| matches!(act, Act::Audit(_))) {
            reads.parts = HeadParts::ALL;
        }
        reads
    }

    fn add(&mut self, variable: Variable, key: Option<&[u8]>) {
        match (variable, key) {
            (Variable::RequestHeaders, Some(name)) => self.fields.push(name.into()),
            _ => self.parts = self.parts.with(HeadParts::of(variable)),
        }
    }

    /// True if a header field of this name is read by it.
    pub(crate) fn names_field(&self, name: &[u8]) -> bool {
        self.fields.iter().any(|field| field.eq_ignore_ascii_case(name))
    }
}
