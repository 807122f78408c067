//! Engine settings as types: what a directive that is not a rule sets.

use bstr::BString;

use crate::directives::DirectiveName;

macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($(#[$vdoc:meta])* $variant:ident $word:literal $([$($alias:literal),*])?,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type { $($(#[$vdoc])* $variant,)* }

        impl $type {
            /// All values.
            pub const ALL: &'static [$type] = &[$($type::$variant,)*];

            /// The word in a rule file.
            pub fn word(self) -> &'static str {
                match self { $($type::$variant => $word,)* }
            }

            /// From the word, in any case.
            pub fn from_word(word: &str) -> Option<$type> {
                $(if word.eq_ignore_ascii_case($word) $($(|| word.eq_ignore_ascii_case($alias))*)? {
                    return Some($type::$variant);
                })*
                None
            }
        }
    };
}

words! {
    /// The mode of the rule engine: rules run and interrupt, run only, or do not run.
    RuleEngine {
        /// Rules run and interrupt.
        On "On",
        /// No rule runs.
        Off "Off",
        /// Rules run, log and never interrupt.
        DetectionOnly "DetectionOnly",
    }
}

words! {
    /// The transactions that are written to the audit log.
    AuditEngine {
        /// All.
        On "On",
        /// None.
        Off "Off",
        /// Those that a rule marked or whose status is relevant.
        RelevantOnly "RelevantOnly",
    }
}

words! {
    /// The action for a body over its limit.
    LimitAction {
        /// The transaction is refused.
        Reject "Reject",
        /// The part within the limit is inspected, the rest passes.
        ProcessPartial "ProcessPartial",
    }
}

words! {
    /// The parser of a request body.
    BodyProcessor {
        /// `application/x-www-form-urlencoded`.
        UrlEncoded "URLENCODED",
        /// `multipart/form-data`.
        Multipart "MULTIPART",
        /// JSON.
        Json "JSON",
        /// XML.
        Xml "XML",
    }
}

words! {
    /// The setting of whether an XML body makes arguments.
    XmlArgs {
        /// It does, and XPath works, too.
        On "On",
        /// It does not.
        Off "Off",
        /// It does, and XPath finds nothing.
        OnlyArgs "OnlyArgs",
    }
}

words! {
    /// The ModSecurity version to follow where the two differ.
    Compatibility {
        /// Version 2.9 on Apache.
        ModSecurity2 "ModSecurity2",
        /// libmodsecurity, version 3.
        ModSecurity3 "ModSecurity3",
    }
}

words! {
    /// Required confidence of the semantic detector, where it runs.
    SemanticDetector {
        /// It does not run.
        Off "Off",
        /// As the level `balanced` of the configuration.
        Balanced "Balanced" ["On"],
        /// As the level `strict`.
        Strict "Strict",
    }
}

words! {
    /// The cookie syntax of a request.
    CookieFormat {
        /// Name and value pairs separated by semicolons, as browsers send them.
        Netscape "0",
        /// RFC 2109 cookies with attributes and quotes.
        Version1 "1",
    }
}

words! {
    /// The destination of audit records.
    AuditLogType {
        /// One file for all.
        Serial "Serial",
        /// A file for each transaction.
        Concurrent "Concurrent" ["Parallel"],
        /// Posted to a server.
        Https "HTTPS",
    }
}

words! {
    /// The format of audit records.
    AuditLogFormat {
        /// The multi-part text format.
        Native "Native",
        /// JSON.
        Json "JSON",
        /// JSON as ModSecurity 2 wrote it.
        JsonLegacy "JsonLegacy",
        /// Open Cybersecurity Schema Framework.
        Ocsf "OCSF",
    }
}

words! {
    /// The setting of whether uploaded files stay after the transaction.
    UploadKeepFiles {
        /// All do.
        On "On",
        /// None does.
        Off "Off",
        /// Those of transactions that a rule marked.
        RelevantOnly "RelevantOnly",
    }
}

/// A setting of the engine. Limits are bytes unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `SecArgumentSeparator`: the byte between URL-encoded arguments.
    ArgumentSeparator(u8),
    /// `SecArgumentsLimit`: number of arguments.
    ArgumentsLimit(u64),
    /// `SecAuditEngine`.
    AuditEngine(AuditEngine),
    /// `SecAuditLog`: file.
    AuditLog(BString),
    /// `SecAuditLog2`: second file.
    AuditLog2(BString),
    /// `SecAuditLogDirMode`: permission bits; `None` for `default`.
    AuditLogDirMode(Option<u32>),
    /// `SecAuditLogFileMode`: permission bits; `None` for `default`.
    AuditLogFileMode(Option<u32>),
    /// `SecAuditLogFormat`.
    AuditLogFormat(AuditLogFormat),
    /// `SecAuditLogParts`: letters.
    AuditLogParts(BString),
    /// `SecAuditLogRelevantStatus`: regex over the response status.
    AuditLogRelevantStatus(BString),
    /// `SecAuditLogStorageDir`.
    AuditLogStorageDir(BString),
    /// `SecAuditLogType`.
    AuditLogType(AuditLogType),
    /// `SecCollectionTimeout`: seconds.
    CollectionTimeout(u64),
    /// `SecCompatibility`: ours; counts for all rules, wherever it stands.
    Compatibility(Compatibility),
    /// `SecComponentSignature`: name and version of a rule set, for the audit log.
    ComponentSignature(BString),
    /// `SecContentInjection`: whether `append`, `prepend` and `@rsub` change response bodies.
    ContentInjection(bool),
    /// `SecCookieFormat`.
    CookieFormat(CookieFormat),
    /// `SecCookieV0Separator`: the byte between cookies of format 0.
    CookieV0Separator(u8),
    /// `SecEventSocket`: ours; for servers that load our libmodsecurity.
    EventSocket(BString),
    /// `SecDataDir`: where persistent collections are stored.
    DataDir(BString),
    /// `SecDebugLog`: file.
    DebugLog(BString),
    /// `SecDebugLogLevel`: 0 to 9.
    DebugLogLevel(u8),
    /// `SecDisableBackendCompression`: whether upstreams are kept from compressing.
    DisableBackendCompression(bool),
    /// `SecExpansionLimit`: ours; bytes of a text after its macros are replaced, and of all such texts that a
    /// transaction keeps.
    ExpansionLimit {
        /// One text.
        text: u64,
        /// All of a transaction.
        transaction: Option<u64>,
    },
    /// `SecGeoLookupDb`: a MaxMind DB file.
    GeoLookupDb(BString),
    /// `SecHttpBlKey`.
    HttpBlKey(BString),
    /// `SecParseXmlIntoArgs`.
    ParseXmlIntoArgs(XmlArgs),
    /// `SecPcreMatchLimit`: steps; no effect here, since matching takes linear time.
    PcreMatchLimit(u64),
    /// `SecPcreMatchLimitRecursion`: depth; no effect here, since matching takes linear time.
    PcreMatchLimitRecursion(u64),
    /// `SecRequestBodyAccess`.
    RequestBodyAccess(bool),
    /// `SecRequestBodyInMemoryLimit`.
    RequestBodyInMemoryLimit(u64),
    /// `SecRequestBodyJsonDepthLimit`: levels.
    RequestBodyJsonDepthLimit(u64),
    /// `SecRequestBodyLimit`.
    RequestBodyLimit(u64),
    /// `SecRequestBodyLimitAction`.
    RequestBodyLimitAction(LimitAction),
    /// `SecRequestBodyNoFilesLimit`.
    RequestBodyNoFilesLimit(u64),
    /// `SecResponseBodyAccess`.
    ResponseBodyAccess(bool),
    /// `SecResponseBodyLimit`.
    ResponseBodyLimit(u64),
    /// `SecResponseBodyLimitAction`.
    ResponseBodyLimitAction(LimitAction),
    /// `SecResponseBodyMimeType`: these are added; the text `(null)` stands for a missing type.
    ResponseBodyMimeTypes(Vec<BString>),
    /// `SecResponseBodyMimeTypesClear`: forgets the types so far.
    ResponseBodyMimeTypesClear,
    /// `SecRuleEngine`.
    RuleEngine(RuleEngine),
    /// `SecRuleInheritance`: only `On` is accepted.
    RuleInheritance(bool),
    /// `SecSecondReadings`: ours; whether arguments are also shown as other applications read them.
    SecondReadings(bool),
    /// `SecSemanticDetector`: ours; for servers that load our libmodsecurity.
    SemanticDetector(SemanticDetector),
    /// `SecSensorId`.
    SensorId(BString),
    /// `SecServerSignature`: what the `Server` header says; empty to remove it.
    ServerSignature(BString),
    /// `SecStatusEngine`: whether the version is reported to the project; we never do.
    StatusEngine(bool),
    /// `SecStreamInBodyInspection`: whether `STREAM_INPUT_BODY` has a value.
    StreamInBodyInspection(bool),
    /// `SecStreamOutBodyInspection`: whether `STREAM_OUTPUT_BODY` has a value.
    StreamOutBodyInspection(bool),
    /// `SecTmpDir`.
    TmpDir(BString),
    /// `SecTmpSaveUploadedFiles`.
    TmpSaveUploadedFiles(bool),
    /// `SecUnicodeCodePage`: the code page of a map that names none.
    UnicodeCodePage(u32),
    /// `SecUnicodeMapFile FILE [CODE PAGE]`.
    UnicodeMapFile {
        /// The mapping file.
        path: BString,
        /// The code page in it.
        code_page: Option<u32>,
    },
    /// `SecUploadDir`.
    UploadDir(BString),
    /// `SecUploadFileLimit`: number of files.
    UploadFileLimit(u64),
    /// `SecUploadFileMode`: permission bits; `None` for `default`.
    UploadFileMode(Option<u32>),
    /// `SecUploadKeepFiles`.
    UploadKeepFiles(UploadKeepFiles),
    /// `SecWebAppId`.
    WebAppId(BString),
    /// `SecXmlExternalDtd`: ours; whether XML may name a document type that it does not declare, which is not
    /// read.
    XmlExternalDtd(bool),
    /// `SecXmlExternalEntity`: only `Off` is accepted.
    XmlExternalEntity(bool),
}

impl Setting {
    /// The directive that sets it.
    pub fn directive(&self) -> Option<DirectiveName> {
        let mut text = Vec::new();
        crate::printer::setting::print(self, &mut text);
        let name = text.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        std::str::from_utf8(name).ok().and_then(DirectiveName::from_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_any_case() {
        for &value in RuleEngine::ALL {
            assert_eq!(RuleEngine::from_word(&value.word().to_uppercase()), Some(value));
        }
        assert_eq!(AuditLogType::from_word("parallel"), Some(AuditLogType::Concurrent));
        assert_eq!(CookieFormat::from_word("2"), None);
    }
}
