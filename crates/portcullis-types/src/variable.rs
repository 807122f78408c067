use crate::NameTable;

/// The shape of a variable: how rules address it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// One value; takes no key.
    Scalar,
    /// Keyed values: `ARGS`, `ARGS:id`, `ARGS:/^id_/`.
    Collection,
    /// Keyed values that outlive the transaction, opened by `initcol` and its kin.
    Persistent,
    /// Addressed by an XPath expression: `XML:/*`.
    Xpath,
}

macro_rules! variables {
    ($($variant:ident $name:literal $shape:ident,)*) => {
        /// Every SecLang variable of the ModSecurity 2.9 and 3 references, what Coraza has beyond them, and
        /// `REQBODY_AMBIGUITY`, which is ours, by name. The one list of them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Variable { $($variant,)* }

        impl Variable {
            /// All variables in name order.
            pub const ALL: &'static [Variable] = &[$(Variable::$variant,)*];
            const NAMES: &'static [&'static str] = &[$($name,)*];
            const SHAPES: &'static [Shape] = &[$(Shape::$shape,)*];
        }
    };
}

variables! {
    Args "ARGS" Collection,
    ArgsCombinedSize "ARGS_COMBINED_SIZE" Scalar,
    ArgsGet "ARGS_GET" Collection,
    ArgsGetNames "ARGS_GET_NAMES" Collection,
    ArgsNames "ARGS_NAMES" Collection,
    ArgsPath "ARGS_PATH" Collection,
    ArgsPost "ARGS_POST" Collection,
    ArgsPostNames "ARGS_POST_NAMES" Collection,
    AuthType "AUTH_TYPE" Scalar,
    Duration "DURATION" Scalar,
    Env "ENV" Collection,
    Files "FILES" Collection,
    FilesCombinedSize "FILES_COMBINED_SIZE" Scalar,
    FilesNames "FILES_NAMES" Collection,
    FilesSizes "FILES_SIZES" Collection,
    FilesTmpContent "FILES_TMP_CONTENT" Collection,
    FilesTmpnames "FILES_TMPNAMES" Collection,
    FullRequest "FULL_REQUEST" Scalar,
    FullRequestLength "FULL_REQUEST_LENGTH" Scalar,
    Geo "GEO" Collection,
    Global "GLOBAL" Persistent,
    HighestSeverity "HIGHEST_SEVERITY" Scalar,
    InboundDataError "INBOUND_DATA_ERROR" Scalar,
    Ip "IP" Persistent,
    Json "JSON" Collection,
    MatchedVar "MATCHED_VAR" Scalar,
    MatchedVarName "MATCHED_VAR_NAME" Scalar,
    MatchedVars "MATCHED_VARS" Collection,
    MatchedVarsNames "MATCHED_VARS_NAMES" Collection,
    ModsecBuild "MODSEC_BUILD" Scalar,
    MscPcreError "MSC_PCRE_ERROR" Scalar,
    MscPcreLimitsExceeded "MSC_PCRE_LIMITS_EXCEEDED" Scalar,
    MultipartBoundaryQuoted "MULTIPART_BOUNDARY_QUOTED" Scalar,
    MultipartBoundaryWhitespace "MULTIPART_BOUNDARY_WHITESPACE" Scalar,
    MultipartCrlfLfLines "MULTIPART_CRLF_LF_LINES" Scalar,
    MultipartCrlfLine "MULTIPART_CRLF_LINE" Scalar,
    MultipartDataAfter "MULTIPART_DATA_AFTER" Scalar,
    MultipartDataBefore "MULTIPART_DATA_BEFORE" Scalar,
    MultipartFileLimitExceeded "MULTIPART_FILE_LIMIT_EXCEEDED" Scalar,
    MultipartFilename "MULTIPART_FILENAME" Collection,
    MultipartHeaderFolding "MULTIPART_HEADER_FOLDING" Scalar,
    MultipartInvalidHeaderFolding "MULTIPART_INVALID_HEADER_FOLDING" Scalar,
    MultipartInvalidPart "MULTIPART_INVALID_PART" Scalar,
    MultipartInvalidQuoting "MULTIPART_INVALID_QUOTING" Scalar,
    MultipartLfLine "MULTIPART_LF_LINE" Scalar,
    MultipartMissingSemicolon "MULTIPART_MISSING_SEMICOLON" Scalar,
    MultipartName "MULTIPART_NAME" Collection,
    MultipartPartHeaders "MULTIPART_PART_HEADERS" Collection,
    MultipartStrictError "MULTIPART_STRICT_ERROR" Scalar,
    MultipartUnmatchedBoundary "MULTIPART_UNMATCHED_BOUNDARY" Scalar,
    OutboundDataError "OUTBOUND_DATA_ERROR" Scalar,
    PathInfo "PATH_INFO" Scalar,
    PerfAll "PERF_ALL" Scalar,
    PerfCombined "PERF_COMBINED" Scalar,
    PerfGc "PERF_GC" Scalar,
    PerfLogging "PERF_LOGGING" Scalar,
    PerfPhase1 "PERF_PHASE1" Scalar,
    PerfPhase2 "PERF_PHASE2" Scalar,
    PerfPhase3 "PERF_PHASE3" Scalar,
    PerfPhase4 "PERF_PHASE4" Scalar,
    PerfPhase5 "PERF_PHASE5" Scalar,
    PerfRules "PERF_RULES" Collection,
    PerfSread "PERF_SREAD" Scalar,
    PerfSwrite "PERF_SWRITE" Scalar,
    QueryString "QUERY_STRING" Scalar,
    RemoteAddr "REMOTE_ADDR" Scalar,
    RemoteHost "REMOTE_HOST" Scalar,
    RemotePort "REMOTE_PORT" Scalar,
    RemoteUser "REMOTE_USER" Scalar,
    ReqbodyAmbiguity "REQBODY_AMBIGUITY" Scalar,
    ReqbodyError "REQBODY_ERROR" Scalar,
    ReqbodyErrorMsg "REQBODY_ERROR_MSG" Scalar,
    ReqbodyProcessor "REQBODY_PROCESSOR" Scalar,
    ReqbodyProcessorError "REQBODY_PROCESSOR_ERROR" Scalar,
    ReqbodyProcessorErrorMsg "REQBODY_PROCESSOR_ERROR_MSG" Scalar,
    RequestBasename "REQUEST_BASENAME" Scalar,
    RequestBody "REQUEST_BODY" Scalar,
    RequestBodyLength "REQUEST_BODY_LENGTH" Scalar,
    RequestCookies "REQUEST_COOKIES" Collection,
    RequestCookiesNames "REQUEST_COOKIES_NAMES" Collection,
    RequestFilename "REQUEST_FILENAME" Scalar,
    RequestHeaders "REQUEST_HEADERS" Collection,
    RequestHeadersNames "REQUEST_HEADERS_NAMES" Collection,
    RequestLine "REQUEST_LINE" Scalar,
    RequestMethod "REQUEST_METHOD" Scalar,
    RequestProtocol "REQUEST_PROTOCOL" Scalar,
    RequestUri "REQUEST_URI" Scalar,
    RequestUriRaw "REQUEST_URI_RAW" Scalar,
    ResBodyError "RES_BODY_ERROR" Scalar,
    ResBodyErrorMsg "RES_BODY_ERROR_MSG" Scalar,
    ResBodyProcessor "RES_BODY_PROCESSOR" Scalar,
    ResBodyProcessorError "RES_BODY_PROCESSOR_ERROR" Scalar,
    ResBodyProcessorErrorMsg "RES_BODY_PROCESSOR_ERROR_MSG" Scalar,
    Resource "RESOURCE" Persistent,
    ResponseArgs "RESPONSE_ARGS" Collection,
    ResponseBody "RESPONSE_BODY" Scalar,
    ResponseContentLength "RESPONSE_CONTENT_LENGTH" Scalar,
    ResponseContentType "RESPONSE_CONTENT_TYPE" Scalar,
    ResponseHeaders "RESPONSE_HEADERS" Collection,
    ResponseHeadersNames "RESPONSE_HEADERS_NAMES" Collection,
    ResponseProtocol "RESPONSE_PROTOCOL" Scalar,
    ResponseStatus "RESPONSE_STATUS" Scalar,
    ResponseXml "RESPONSE_XML" Collection,
    Rule "RULE" Collection,
    ScriptBasename "SCRIPT_BASENAME" Scalar,
    ScriptFilename "SCRIPT_FILENAME" Scalar,
    ScriptGid "SCRIPT_GID" Scalar,
    ScriptGroupname "SCRIPT_GROUPNAME" Scalar,
    ScriptMode "SCRIPT_MODE" Scalar,
    ScriptUid "SCRIPT_UID" Scalar,
    ScriptUsername "SCRIPT_USERNAME" Scalar,
    SdbmDeleteError "SDBM_DELETE_ERROR" Scalar,
    ServerAddr "SERVER_ADDR" Scalar,
    ServerName "SERVER_NAME" Scalar,
    ServerPort "SERVER_PORT" Scalar,
    Session "SESSION" Persistent,
    Sessionid "SESSIONID" Scalar,
    StatusLine "STATUS_LINE" Scalar,
    StreamInputBody "STREAM_INPUT_BODY" Scalar,
    StreamOutputBody "STREAM_OUTPUT_BODY" Scalar,
    Time "TIME" Scalar,
    TimeDay "TIME_DAY" Scalar,
    TimeEpoch "TIME_EPOCH" Scalar,
    TimeHour "TIME_HOUR" Scalar,
    TimeMin "TIME_MIN" Scalar,
    TimeMon "TIME_MON" Scalar,
    TimeSec "TIME_SEC" Scalar,
    TimeWday "TIME_WDAY" Scalar,
    TimeYear "TIME_YEAR" Scalar,
    Tx "TX" Collection,
    UniqueId "UNIQUE_ID" Scalar,
    UrlencodedError "URLENCODED_ERROR" Scalar,
    User "USER" Persistent,
    UseragentIp "USERAGENT_IP" Scalar,
    Userid "USERID" Scalar,
    Webappid "WEBAPPID" Scalar,
    WebserverErrorLog "WEBSERVER_ERROR_LOG" Scalar,
    Xml "XML" Xpath,
}

static NAME_TABLE: NameTable<256> = NameTable::new(Variable::NAMES);

impl Variable {
    /// The SecLang name, upper case.
    pub fn name(self) -> &'static str {
        Variable::NAMES[self as usize]
    }

    /// Its shape.
    pub fn shape(self) -> Shape {
        Variable::SHAPES[self as usize]
    }

    /// Other names of variables: ModSecurity 3's and Coraza's.
    pub const ALIASES: &'static [(&'static str, Variable)] = &[
        ("MULTIPART_SEMICOLON_MISSING", Variable::MultipartMissingSemicolon),
        ("REQUEST_XML", Variable::Xml),
        ("STATUS", Variable::StatusLine),
    ];

    /// From a SecLang name or alias in any case.
    pub fn from_name(name: &str) -> Option<Variable> {
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        let alias = || Variable::ALIASES.iter().find(|(alias, _)| is(alias)).map(|&(_, variable)| variable);
        let known = NAME_TABLE.find(Variable::NAMES, name);
        known.map(|at| Variable::ALL[at]).or_else(alias)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        assert!(Variable::ALL.len() > 110);
        assert_eq!(Variable::from_name("status"), Some(Variable::StatusLine));
        for &v in Variable::ALL {
            assert_eq!(Variable::from_name(v.name()), Some(v));
            assert_eq!(Variable::from_name(&v.name().to_lowercase()), Some(v));
            assert!(Variable::ALIASES.iter().all(|(alias, _)| *alias != v.name()));
        }
    }
}
