/// `SecRuleEngine`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleEngine {
    /// Rules run and may interrupt.
    On,
    /// Rules do not run.
    Off,
    /// Rules run; interruptions are recorded but not carried out.
    DetectionOnly,
}

/// The parser that turns a request body into arguments (`ctl:requestBodyProcessor`).
pub use portcullis_http::body::content_type::Processor as BodyProcessor;

/// The setting of whether XML bodies make arguments (`SecParseXmlIntoArgs`).
pub use portcullis_http::body::XmlArgs;

/// `SecRequestBodyLimitAction`, `SecResponseBodyLimitAction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLimitAction {
    /// Refuse the message.
    Reject,
    /// Inspect what fits, let the rest through uninspected.
    ProcessPartial,
}

/// The engine's settings, from `Sec...` directives. Sizes are bytes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `SecRuleEngine`; default off, as ModSecurity.
    pub rule_engine: RuleEngine,
    /// `SecRequestBodyAccess`.
    pub request_body_access: bool,
    /// `SecRequestBodyLimit`, default 134,217,728 as ModSecurity.
    pub request_body_limit: u64,
    /// `SecRequestBodyNoFilesLimit`: body bytes that are not file content. Where no rule file sets it, they
    /// may be as many as the limit of the body, and a body that no parser takes apart is a file.
    pub request_body_no_files_limit: Option<u64>,
    /// `SecRequestBodyLimitAction`. Where no rule file sets it, a longer body is refused unless it is an
    /// upload that its server streams.
    pub request_body_limit_action: Option<BodyLimitAction>,
    /// `SecRequestBodyJsonDepthLimit`.
    pub json_depth_limit: u32,
    /// `SecParseXmlIntoArgs`.
    pub xml_args: XmlArgs,
    /// `SecArgumentsLimit`, default 1,000 (0: none).
    pub arguments_limit: u32,
    /// `SecExpansionLimit`: bytes of a text after its macros are replaced.
    pub expansion_limit: u64,
    /// The second number of `SecExpansionLimit`: bytes of all such texts that a transaction keeps.
    pub expansions_limit: u64,
    /// `SecArgumentSeparator`.
    pub argument_separator: u8,
    /// `SecCookieFormat 1`: Netscape cookies are 0.
    pub cookie_v1: bool,
    /// `SecCookieV0Separator`; `None`: see `portcullis_http::cookie`.
    pub cookie_separator: Option<u8>,
    /// `SecServerSignature`; empty: the header is removed.
    pub server_signature: Option<Vec<u8>>,
    /// `SecPcreMatchLimit`, see [`portcullis_match::Budget`].
    pub pcre_match_limit: Option<u32>,
    /// `SecPcreMatchLimitRecursion`.
    pub pcre_match_limit_recursion: Option<u32>,
    /// `SecUploadKeepFiles`.
    pub keep_files: crate::KeepFiles,
    /// `SecUploadDir`.
    pub upload_folder: Option<std::sync::Arc<std::path::PathBuf>>,
    /// `SecUploadFileMode`, default 0600.
    pub upload_file_mode: u32,
    /// `SecUploadFileLimit`, default 100 files.
    pub upload_file_limit: u32,
    /// `SecResponseBodyAccess`.
    pub response_body_access: bool,
    /// `SecResponseBodyLimit`, default 524,288.
    pub response_body_limit: u64,
    /// `SecResponseBodyLimitAction`.
    pub response_body_limit_action: BodyLimitAction,
    /// `SecResponseBodyMimeType`, lower case, without parameters.
    pub response_body_mime_types: Vec<Vec<u8>>,
    /// `SecContentInjection`: `append`, `prepend` and `@rsub` on response bodies take effect.
    pub content_injection: bool,
    /// `SecStreamInBodyInspection`.
    pub stream_request_body: bool,
    /// `SecStreamOutBodyInspection`.
    pub stream_response_body: bool,
    /// `SecDisableBackendCompression`: upstreams are not told what codings the client takes.
    pub disable_backend_compression: bool,
    /// `SecCompatibility ModSecurity3`: messages are read as libmodsecurity reads them, where that differs.
    pub modsecurity3: bool,
    /// `SecSecondReadings`.
    pub second_readings: bool,
    /// `SecSemanticDetector`: the level of the detector, where it is the rules that switch it on.
    pub semantic_detector: Option<portcullis_types::Level>,
    /// `SecXmlExternalDtd`: a document type without declarations of its own is skipped; off, it is refused.
    pub xml_external_dtd: bool,
    /// `SecWebAppId`.
    pub web_app_id: Vec<u8>,
    /// `SecCollectionTimeout`: seconds that a record of a persistent collection lives after it was last
    /// stored.
    pub collection_timeout: i64,
    /// `SecEventSocket`: the socket that events are sent to, where our libmodsecurity makes them.
    pub event_socket: Option<std::path::PathBuf>,
    /// `SecDataDir`: the folder of persistent collections.
    pub data_dir: Option<std::path::PathBuf>,
    /// `SecComponentSignature`s: the rule sets in the plan.
    pub component_signatures: Vec<Vec<u8>>,
    /// The audit log and the debug log.
    pub audit: crate::AuditSettings,
}

impl Settings {
    /// The arguments that a request may have.
    pub(crate) fn arguments_max(&self) -> usize {
        match self.arguments_limit {
            0 => usize::MAX,
            limit => limit as usize,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            rule_engine: RuleEngine::Off,
            request_body_access: false,
            request_body_limit: 134_217_728,
            request_body_no_files_limit: None,
            request_body_limit_action: None,
            json_depth_limit: 512,
            xml_args: XmlArgs::Off,
            arguments_limit: 1_000,
            expansion_limit: 1 << 20,
            expansions_limit: 16 << 20,
            argument_separator: b'&',
            cookie_v1: false,
            cookie_separator: None,
            server_signature: None,
            pcre_match_limit: None,
            pcre_match_limit_recursion: None,
            keep_files: crate::KeepFiles::Off,
            upload_folder: None,
            upload_file_mode: 0o600,
            upload_file_limit: 100,
            response_body_access: false,
            response_body_limit: 524_288,
            response_body_limit_action: BodyLimitAction::Reject,
            response_body_mime_types: vec![b"text/plain".to_vec(), b"text/html".to_vec()],
            content_injection: false,
            stream_request_body: false,
            stream_response_body: false,
            disable_backend_compression: false,
            web_app_id: b"default".to_vec(),
            collection_timeout: 3_600,
            event_socket: None,
            data_dir: None,
            modsecurity3: false,
            second_readings: false,
            semantic_detector: None,
            xml_external_dtd: false,
            component_signatures: Vec::new(),
            audit: crate::AuditSettings::default(),
        }
    }
}
