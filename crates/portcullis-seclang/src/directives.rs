//! The one table of directives.

use crate::standing::Refusal;

/// The parser's treatment of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// Becomes a rule, a marker or a default, or changes rules.
    Rules,
    /// Becomes a [`crate::settings::Setting`].
    Setting,
    /// Reads other files.
    Include,
    /// ModSecurity 2 has it; here it is read with a warning and changes nothing.
    Vain(Refusal),
    /// Known and refused.
    Refused(Refusal),
}

macro_rules! directives {
    ($($variant:ident $name:literal ($min:literal, $max:tt) $handling:expr, $meaning:literal;)*) => {
        /// Every directive of the ModSecurity 2.9 and 3 references, what Coraza has beyond them, and
        /// ours.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum DirectiveName { $(#[doc = $meaning] $variant,)* }

        impl DirectiveName {
            /// All directives in name order.
            pub const ALL: &'static [DirectiveName] = &[$(DirectiveName::$variant,)*];
            const TABLE: &'static [(&'static str, (u8, u8), Handling, &'static str)] = &[$(($name, ($min, $max), $handling, $meaning),)*];
        }
    };
}

use Handling::{Include, Rules, Setting};

/// As the upper bound of a number of arguments: any number.
const MANY: u8 = u8::MAX;

const fn refused(why: &'static str, instead: &'static str) -> Handling {
    Handling::Refused(Refusal { why, instead })
}

/// For what ModSecurity 2.9.7 loads: rule files that have it load here, too.
const fn vain(why: &'static str, instead: &'static str) -> Handling {
    Handling::Vain(Refusal { why, instead })
}

const NO_HASH: Handling = vain(
    "links in pages are not signed: that rewrites every page and breaks the links that scripts make",
    "remove it; other rules do not depend on it",
);
const NO_CONNECTIONS: Handling =
    vain("connection limits are not a matter of rules here", "set limits in the listener's configuration");
const NO_PDF: Handling = refused(
    "ModSecurity itself removed the PDF protection in version 2.7: readers that needed it are long gone",
    "remove it",
);

directives! {
    Include "Include" (1, 1) Include, "Reads the files that a pattern names, here.";
    IncludeOptional "IncludeOptional" (1, 1) Include, "As Include, but no file is no mistake.";
    Action "SecAction" (1, 1) Rules, "Runs actions without a condition.";
    ArgumentSeparator "SecArgumentSeparator" (1, 1) Setting, "The byte between URL-encoded arguments.";
    ArgumentsLimit "SecArgumentsLimit" (1, 1) Setting, "How many arguments are read.";
    AuditEngine "SecAuditEngine" (1, 1) Setting, "Which transactions are written to the audit log.";
    AuditLog "SecAuditLog" (1, 1) Setting, "The audit log file.";
    AuditLog2 "SecAuditLog2" (1, 1) Setting, "A second audit log file.";
    AuditLogDirMode "SecAuditLogDirMode" (1, 1) Setting, "Permissions of audit log folders.";
    AuditLogFileMode "SecAuditLogFileMode" (1, 1) Setting, "Permissions of audit log files.";
    AuditLogFormat "SecAuditLogFormat" (1, 1) Setting, "How audit records are written.";
    AuditLogParts "SecAuditLogParts" (1, 1) Setting, "What audit records hold.";
    AuditLogRelevantStatus "SecAuditLogRelevantStatus" (1, 1) Setting, "Which statuses are worth an audit record.";
    AuditLogStorageDir "SecAuditLogStorageDir" (1, 1) Setting, "Folder of concurrent audit records.";
    AuditLogType "SecAuditLogType" (1, 1) Setting, "Where audit records go.";
    CacheTransformations "SecCacheTransformations" (1, 2) vain("each value is decoded once and remembered anyway", "remove it"), "Caches transformed values.";
    ChrootDir "SecChrootDir" (1, 1) vain("a running process is not moved into another root folder", "confine it with the service manager"), "Changes the root folder of the server.";
    CollectionTimeout "SecCollectionTimeout" (1, 1) Setting, "Lifetime of persistent collections.";
    Compatibility "SecCompatibility" (1, 1) Setting, "Which ModSecurity's reading counts where the two differ; ours.";
    ComponentSignature "SecComponentSignature" (1, 1) Setting, "Names a rule set for the audit log.";
    ConnEngine "SecConnEngine" (1, 1) NO_CONNECTIONS, "Switches connection limits.";
    ConnReadStateLimit "SecConnReadStateLimit" (1, 2) NO_CONNECTIONS, "Limits connections that read.";
    ConnWriteStateLimit "SecConnWriteStateLimit" (1, 2) NO_CONNECTIONS, "Limits connections that write.";
    ContentInjection "SecContentInjection" (1, 1) Setting, "Allows append, prepend and @rsub to change response bodies.";
    CookieFormat "SecCookieFormat" (1, 1) Setting, "The syntax of cookies.";
    CookieV0Separator "SecCookieV0Separator" (1, 1) Setting, "The byte between cookies of format 0.";
    DataDir "SecDataDir" (1, 1) Setting, "Folder of persistent collections.";
    Dataset "SecDataset" (1, MANY) refused("data sets inside rule files are Coraza's", "put the lines in a file for @pmFromFile or @ipMatchFromFile"), "Coraza: words or addresses by name.";
    DebugLog "SecDebugLog" (1, 1) Setting, "The debug log file.";
    DebugLogLevel "SecDebugLogLevel" (1, 1) Setting, "How much is written to the debug log.";
    DefaultAction "SecDefaultAction" (1, 1) Rules, "Actions that the following rules of a phase start from.";
    DisableBackendCompression "SecDisableBackendCompression" (1, 1) Setting, "Keeps upstreams from compressing.";
    EventSocket "SecEventSocket" (1, 1) Setting, "Socket of the process that stores events, where a server loads our libmodsecurity; ours.";
    ExpansionLimit "SecExpansionLimit" (1, 2) Setting, "Bytes of a text after its macros are replaced, and of all such texts of a transaction; ours.";
    GeoLookupDb "SecGeoLookupDb" (1, 1) Setting, "The geography database of @geoLookup.";
    GsbLookupDb "SecGsbLookupDb" (1, 1) vain("Google ended the local database format", "remove it together with @gsbLookup; @rbl can ask a URI block list"), "The Safe Browsing database.";
    GuardianLog "SecGuardianLog" (1, 2) vain("the program that reads it is long gone", "use an event sink: it has the same facts as JSON"), "The Guardian log.";
    HashEngine "SecHashEngine" (1, 1) NO_HASH, "Switches the signing of links.";
    HashKey "SecHashKey" (1, 2) NO_HASH, "The key that signs links.";
    HashMethodPm "SecHashMethodPm" (2, 2) NO_HASH, "Which links are signed, by words.";
    HashMethodRx "SecHashMethodRx" (2, 2) NO_HASH, "Which links are signed, by regex.";
    HashParam "SecHashParam" (1, 1) NO_HASH, "The parameter that carries the hash.";
    HttpBlKey "SecHttpBlKey" (1, 1) Setting, "The access key of the http:BL list of @rbl.";
    IgnoreRuleCompilationErrors "SecIgnoreRuleCompilationErrors" (1, 1) refused("a rule that does not compile stops the load: a rule set with holes is worse than none", "repair the rule, or remove it with the file it is in"), "Coraza: loads what compiles.";
    InterceptOnError "SecInterceptOnError" (1, 1) vain("what happens after an internal error is not a matter of rules here", "set the exception policy of the policy in the configuration"), "Interrupts after an internal error.";
    Marker "SecMarker" (1, 1) Rules, "A place that skipAfter can go to.";
    ParseXmlIntoArgs "SecParseXmlIntoArgs" (1, 1) Setting, "Whether XML bodies make arguments.";
    PcreMatchLimit "SecPcreMatchLimit" (1, 1) Setting, "Steps of a regex match.";
    PcreMatchLimitRecursion "SecPcreMatchLimitRecursion" (1, 1) Setting, "Depth of a regex match.";
    PdfProtect "SecPdfProtect" (1, 1) NO_PDF, "Switches the PDF protection.";
    PdfProtectMethod "SecPdfProtectMethod" (1, 1) NO_PDF, "How PDF files are protected.";
    PdfProtectSecret "SecPdfProtectSecret" (1, 1) NO_PDF, "The secret of the PDF protection.";
    PdfProtectTimeout "SecPdfProtectTimeout" (1, 1) NO_PDF, "The timeout of the PDF protection.";
    PdfProtectTokenName "SecPdfProtectTokenName" (1, 1) NO_PDF, "The parameter of the PDF protection.";
    ReadStateLimit "SecReadStateLimit" (1, 2) NO_CONNECTIONS, "Old name of SecConnReadStateLimit.";
    RemoteRules "SecRemoteRules" (2, 3) Include, "Loads rules from a server: KEY, https URL, sha256:CHECKSUM.";
    RemoteRulesFailAction "SecRemoteRulesFailAction" (1, 1) Include, "What happens when SecRemoteRules fails.";
    RequestBodyAccess "SecRequestBodyAccess" (1, 1) Setting, "Whether request bodies are inspected.";
    RequestBodyInMemoryLimit "SecRequestBodyInMemoryLimit" (1, 1) Setting, "How much of a request body is kept in memory.";
    RequestBodyJsonDepthLimit "SecRequestBodyJsonDepthLimit" (1, 1) Setting, "How deep JSON may nest.";
    RequestBodyLimit "SecRequestBodyLimit" (1, 1) Setting, "How long a request body may be.";
    RequestBodyLimitAction "SecRequestBodyLimitAction" (1, 1) Setting, "What happens to longer request bodies.";
    RequestBodyNoFilesLimit "SecRequestBodyNoFilesLimit" (1, 1) Setting, "How long a request body may be without its files.";
    RequestEncoding "SecRequestEncoding" (1, 1) vain("ModSecurity reads it and does nothing", "remove it; the character set of a body comes from its Content-Type"), "The character set of requests.";
    ResponseBodyAccess "SecResponseBodyAccess" (1, 1) Setting, "Whether response bodies are inspected.";
    ResponseBodyLimit "SecResponseBodyLimit" (1, 1) Setting, "How long a response body may be.";
    ResponseBodyLimitAction "SecResponseBodyLimitAction" (1, 1) Setting, "What happens to longer response bodies.";
    ResponseBodyMimeType "SecResponseBodyMimeType" (1, MANY) Setting, "Adds types of response bodies that are inspected.";
    ResponseBodyMimeTypesClear "SecResponseBodyMimeTypesClear" (0, 0) Setting, "Forgets the types of response bodies.";
    Rule "SecRule" (2, 3) Rules, "A condition and actions.";
    RuleEngine "SecRuleEngine" (1, 1) Setting, "Whether rules run and may interrupt.";
    RuleInheritance "SecRuleInheritance" (1, 1) Setting, "Whether a nested scope has the rules of the outer one.";
    RulePerfTime "SecRulePerfTime" (1, 1) vain("the times of single rules are not measured", "use the inspection durations of the metrics endpoint"), "Logs slow rules.";
    RuleRemoveById "SecRuleRemoveById" (1, MANY) Rules, "Removes rules by id.";
    RuleRemoveByMsg "SecRuleRemoveByMsg" (1, MANY) Rules, "Removes rules by message.";
    RuleRemoveByTag "SecRuleRemoveByTag" (1, MANY) Rules, "Removes rules by tag.";
    RuleScript "SecRuleScript" (1, 2) Rules, "Runs a Lua script as a rule.";
    RuleUpdateActionById "SecRuleUpdateActionById" (2, 2) Rules, "Changes the actions of a rule.";
    RuleUpdateTargetById "SecRuleUpdateTargetById" (2, 3) Rules, "Changes the targets of rules by id.";
    RuleUpdateTargetByMsg "SecRuleUpdateTargetByMsg" (2, 3) Rules, "Changes the targets of rules by message.";
    RuleUpdateTargetByTag "SecRuleUpdateTargetByTag" (2, 3) Rules, "Changes the targets of rules by tag.";
    RxPreFilter "SecRxPreFilter" (1, 1) refused("a pattern is always tried only where it can match", "remove it"), "Coraza: looks for required texts before patterns.";
    SecondReadings "SecSecondReadings" (1, 1) Setting, "Whether arguments are also shown as other applications read them; ours.";
    SemanticDetector "SecSemanticDetector" (1, 1) Setting, "Whether the semantic detector runs beside the rules, where a server loads our libmodsecurity; ours.";
    SensorId "SecSensorId" (1, 1) Setting, "Names this machine in audit records.";
    ServerSignature "SecServerSignature" (1, 1) Setting, "What the Server header says.";
    StatusEngine "SecStatusEngine" (1, 1) Setting, "Reports the version to the project.";
    StreamInBodyInspection "SecStreamInBodyInspection" (1, 1) Setting, "Fills STREAM_INPUT_BODY.";
    StreamOutBodyInspection "SecStreamOutBodyInspection" (1, 1) Setting, "Fills STREAM_OUTPUT_BODY.";
    TmpDir "SecTmpDir" (1, 1) Setting, "Folder of temporary files.";
    TmpSaveUploadedFiles "SecTmpSaveUploadedFiles" (1, 1) Setting, "Whether uploads are written to temporary files.";
    UnicodeCodePage "SecUnicodeCodePage" (1, 1) Setting, "The code page of the Unicode map.";
    UnicodeMap "SecUnicodeMap" (1, 2) refused("it is Coraza's name of SecUnicodeMapFile", "write SecUnicodeMapFile"), "Coraza: the map for full-width characters.";
    UnicodeMapFile "SecUnicodeMapFile" (1, 2) Setting, "The map for full-width characters.";
    UploadDir "SecUploadDir" (1, 1) Setting, "Folder of uploaded files.";
    UploadFileLimit "SecUploadFileLimit" (1, 1) Setting, "How many files a request may upload.";
    UploadFileMode "SecUploadFileMode" (1, 1) Setting, "Permissions of uploaded files.";
    UploadKeepFiles "SecUploadKeepFiles" (1, 1) Setting, "Whether uploaded files stay.";
    WebAppId "SecWebAppId" (1, 1) Setting, "Names the application.";
    WriteStateLimit "SecWriteStateLimit" (1, 2) NO_CONNECTIONS, "Old name of SecConnWriteStateLimit.";
    XmlExternalDtd "SecXmlExternalDtd" (1, 1) Setting, "Whether XML bodies may name a document type that is not read; ours.";
    XmlExternalEntity "SecXmlExternalEntity" (1, 1) Setting, "Whether XML bodies may load other documents.";
}

impl DirectiveName {
    /// The name as the references spell it.
    pub fn name(self) -> &'static str {
        DirectiveName::TABLE[self as usize].0
    }

    /// Lowest and highest number of arguments; 255 stands for any number.
    pub fn arguments(self) -> (u8, u8) {
        DirectiveName::TABLE[self as usize].1
    }

    /// Returns the parser's treatment of it.
    pub fn handling(self) -> Handling {
        DirectiveName::TABLE[self as usize].2
    }

    /// Returns its effect, one sentence.
    pub fn meaning(self) -> &'static str {
        DirectiveName::TABLE[self as usize].3
    }

    /// From a name in any case.
    pub fn from_name(name: &str) -> Option<DirectiveName> {
        DirectiveName::ALL.iter().copied().find(|d| d.name().eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_sorted_and_found_in_any_case() {
        let names: Vec<String> = DirectiveName::ALL.iter().map(|d| d.name().to_lowercase()).collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        assert_eq!(DirectiveName::from_name("SECRULE"), Some(DirectiveName::Rule));
        assert_eq!(DirectiveName::from_name("SecRul"), None);
    }
}
