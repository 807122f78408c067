//! The one table of directives.

/// How the parser deals with a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// Becomes a rule, a marker or a default, or changes rules.
    Rules,
    /// Becomes a [`crate::settings::Setting`].
    Setting,
    /// Reads other files.
    Include,
    /// Known and refused; the text says why and what to do instead.
    Refused(&'static str),
}

macro_rules! directives {
    ($($variant:ident $name:literal ($min:literal, $max:tt) $handling:expr, $meaning:literal;)*) => {
        /// Every directive of the ModSecurity 2.9 and 3 references.
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

use Handling::{Include, Refused, Rules, Setting};

/// As the upper bound of a number of arguments: any number.
const MANY: u8 = u8::MAX;

const NO_HASH: &str = "signing links is not supported yet; remove it, it does not weaken other rules";
const NO_CONNECTIONS: &str =
    "connection limits are not a matter of rules here; set them in the listener's configuration";
const NO_GUARDIAN: &str = "a Guardian log is not supported; use an event sink";
const NO_SAFE_BROWSING: &str = "Google ended the local database format; remove it together with @gsbLookup";
const NO_STREAM: &str = "bodies are not rewritten; remove it together with @rsub";
const NO_REMOTE: &str = "rules are not loaded over the network; fetch the file first and Include it";

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
    CacheTransformations "SecCacheTransformations" (1, 2) Refused("each value is decoded once anyway; remove it"), "Caches transformed values.";
    ChrootDir "SecChrootDir" (1, 1) Refused("confine the process with the service manager instead"), "Changes the root folder of the server.";
    CollectionTimeout "SecCollectionTimeout" (1, 1) Setting, "Lifetime of persistent collections.";
    ComponentSignature "SecComponentSignature" (1, 1) Setting, "Names a rule set for the audit log.";
    ConnEngine "SecConnEngine" (1, 1) Refused(NO_CONNECTIONS), "Switches connection limits.";
    ConnReadStateLimit "SecConnReadStateLimit" (1, 2) Refused(NO_CONNECTIONS), "Limits connections that read.";
    ConnWriteStateLimit "SecConnWriteStateLimit" (1, 2) Refused(NO_CONNECTIONS), "Limits connections that write.";
    ContentInjection "SecContentInjection" (1, 1) Refused("bodies are not rewritten; remove it together with append and prepend"), "Allows append and prepend.";
    CookieFormat "SecCookieFormat" (1, 1) Setting, "The syntax of cookies.";
    CookieV0Separator "SecCookieV0Separator" (1, 1) Refused("cookies are separated by semicolons; remove it"), "The byte between cookies of format 0.";
    DataDir "SecDataDir" (1, 1) Setting, "Folder of persistent collections.";
    DebugLog "SecDebugLog" (1, 1) Setting, "The debug log file.";
    DebugLogLevel "SecDebugLogLevel" (1, 1) Setting, "How much is written to the debug log.";
    DefaultAction "SecDefaultAction" (1, 1) Rules, "Actions that the following rules of a phase start from.";
    DisableBackendCompression "SecDisableBackendCompression" (1, 1) Refused("whether upstreams may compress is a matter of the route's configuration"), "Asks upstreams not to compress.";
    GeoLookupDb "SecGeoLookupDb" (1, 1) Refused("geography databases are not supported yet; remove it together with @geoLookup"), "The geography database.";
    GsbLookupDb "SecGsbLookupDb" (1, 1) Refused(NO_SAFE_BROWSING), "The Safe Browsing database.";
    GuardianLog "SecGuardianLog" (1, 2) Refused(NO_GUARDIAN), "The Guardian log.";
    HashEngine "SecHashEngine" (1, 1) Refused(NO_HASH), "Switches the signing of links.";
    HashKey "SecHashKey" (1, 2) Refused(NO_HASH), "The key that signs links.";
    HashMethodPm "SecHashMethodPm" (2, 2) Refused(NO_HASH), "Which links are signed, by words.";
    HashMethodRx "SecHashMethodRx" (2, 2) Refused(NO_HASH), "Which links are signed, by regex.";
    HashParam "SecHashParam" (1, 1) Refused(NO_HASH), "The parameter that carries the hash.";
    HttpBlKey "SecHttpBlKey" (1, 1) Refused("DNS block lists are not supported yet; remove it together with @rbl"), "The key for the http:BL list.";
    InterceptOnError "SecInterceptOnError" (1, 1) Refused("what happens after an internal error is the exception policy of the route"), "Interrupts after an internal error.";
    Marker "SecMarker" (1, 1) Rules, "A place that skipAfter can go to.";
    ParseXmlIntoArgs "SecParseXmlIntoArgs" (1, 1) Setting, "Whether XML bodies make arguments.";
    PcreMatchLimit "SecPcreMatchLimit" (1, 1) Setting, "Steps of a regex match.";
    PcreMatchLimitRecursion "SecPcreMatchLimitRecursion" (1, 1) Setting, "Depth of a regex match.";
    ReadStateLimit "SecReadStateLimit" (1, 2) Refused(NO_CONNECTIONS), "Old name of SecConnReadStateLimit.";
    RemoteRules "SecRemoteRules" (2, 3) Refused(NO_REMOTE), "Loads rules from a server.";
    RemoteRulesFailAction "SecRemoteRulesFailAction" (1, 1) Refused(NO_REMOTE), "What happens when SecRemoteRules fails.";
    RequestBodyAccess "SecRequestBodyAccess" (1, 1) Setting, "Whether request bodies are inspected.";
    RequestBodyInMemoryLimit "SecRequestBodyInMemoryLimit" (1, 1) Setting, "How much of a request body is kept in memory.";
    RequestBodyJsonDepthLimit "SecRequestBodyJsonDepthLimit" (1, 1) Setting, "How deep JSON may nest.";
    RequestBodyLimit "SecRequestBodyLimit" (1, 1) Setting, "How long a request body may be.";
    RequestBodyLimitAction "SecRequestBodyLimitAction" (1, 1) Setting, "What happens to longer request bodies.";
    RequestBodyNoFilesLimit "SecRequestBodyNoFilesLimit" (1, 1) Setting, "How long a request body may be without its files.";
    RequestEncoding "SecRequestEncoding" (1, 1) Refused("request texts are not converted; remove it"), "The character set of requests.";
    ResponseBodyAccess "SecResponseBodyAccess" (1, 1) Setting, "Whether response bodies are inspected.";
    ResponseBodyLimit "SecResponseBodyLimit" (1, 1) Setting, "How long a response body may be.";
    ResponseBodyLimitAction "SecResponseBodyLimitAction" (1, 1) Setting, "What happens to longer response bodies.";
    ResponseBodyMimeType "SecResponseBodyMimeType" (1, MANY) Setting, "Adds types of response bodies that are inspected.";
    ResponseBodyMimeTypesClear "SecResponseBodyMimeTypesClear" (0, 0) Setting, "Forgets the types of response bodies.";
    Rule "SecRule" (2, 3) Rules, "A condition and actions.";
    RuleEngine "SecRuleEngine" (1, 1) Setting, "Whether rules run and may interrupt.";
    RuleInheritance "SecRuleInheritance" (1, 1) Setting, "Whether a nested scope has the rules of the outer one.";
    RulePerfTime "SecRulePerfTime" (1, 1) Refused("rule times are not logged; use the metrics"), "Logs slow rules.";
    RuleRemoveById "SecRuleRemoveById" (1, MANY) Rules, "Removes rules by id.";
    RuleRemoveByMsg "SecRuleRemoveByMsg" (1, MANY) Rules, "Removes rules by message.";
    RuleRemoveByTag "SecRuleRemoveByTag" (1, MANY) Rules, "Removes rules by tag.";
    RuleScript "SecRuleScript" (1, 2) Refused("Lua scripts are not supported yet; write the check as SecRule"), "Runs a Lua script as a rule.";
    RuleUpdateActionById "SecRuleUpdateActionById" (2, 2) Rules, "Changes the actions of a rule.";
    RuleUpdateTargetById "SecRuleUpdateTargetById" (2, 3) Rules, "Changes the targets of rules by id.";
    RuleUpdateTargetByMsg "SecRuleUpdateTargetByMsg" (2, 3) Rules, "Changes the targets of rules by message.";
    RuleUpdateTargetByTag "SecRuleUpdateTargetByTag" (2, 3) Rules, "Changes the targets of rules by tag.";
    SensorId "SecSensorId" (1, 1) Setting, "Names this machine in audit records.";
    ServerSignature "SecServerSignature" (1, 1) Setting, "What the Server header says.";
    StatusEngine "SecStatusEngine" (1, 1) Setting, "Reports the version to the project.";
    StreamInBodyInspection "SecStreamInBodyInspection" (1, 1) Refused(NO_STREAM), "Fills STREAM_INPUT_BODY.";
    StreamOutBodyInspection "SecStreamOutBodyInspection" (1, 1) Refused(NO_STREAM), "Fills STREAM_OUTPUT_BODY.";
    TmpDir "SecTmpDir" (1, 1) Setting, "Folder of temporary files.";
    TmpSaveUploadedFiles "SecTmpSaveUploadedFiles" (1, 1) Setting, "Whether uploads are written to temporary files.";
    UnicodeCodePage "SecUnicodeCodePage" (1, 1) Refused("name the code page in SecUnicodeMapFile, after the file"), "The code page of the Unicode map.";
    UnicodeMapFile "SecUnicodeMapFile" (1, 2) Setting, "The map for full-width characters.";
    UploadDir "SecUploadDir" (1, 1) Setting, "Folder of uploaded files.";
    UploadFileLimit "SecUploadFileLimit" (1, 1) Setting, "How many files a request may upload.";
    UploadFileMode "SecUploadFileMode" (1, 1) Setting, "Permissions of uploaded files.";
    UploadKeepFiles "SecUploadKeepFiles" (1, 1) Setting, "Whether uploaded files stay.";
    WebAppId "SecWebAppId" (1, 1) Setting, "Names the application.";
    WriteStateLimit "SecWriteStateLimit" (1, 2) Refused(NO_CONNECTIONS), "Old name of SecConnWriteStateLimit.";
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

    /// What the parser makes of it.
    pub fn handling(self) -> Handling {
        DirectiveName::TABLE[self as usize].2
    }

    /// What it does, one sentence.
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
