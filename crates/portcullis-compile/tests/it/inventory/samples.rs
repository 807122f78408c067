//! A rule file for each word, as a user would write it.

use portcullis_seclang::actions::{ActionName, CtlOption};
use portcullis_seclang::directives::DirectiveName;
use portcullis_seclang::operators::{Argument, OperatorName};
use portcullis_seclang::standing::{self, Standing};
use portcullis_types::{Shape, Variable};

/// Files that the samples name.
pub const FILES: &[(&str, &str)] = &[
    ("other.conf", "SecMarker OTHER\n"),
    ("https://localhost/rules", "SecMarker REMOTE\n"),
    ("words.data", "alpha\nbeta\n"),
    ("networks.data", "192.0.2.0/24\n"),
    ("unicode.mapping", "20127 (US-ASCII)\n00a0:20 00a1:21\n"),
];

pub fn directive(name: DirectiveName) -> String {
    use DirectiveName::*;
    let arguments = match name {
        Include | IncludeOptional => "other.conf",
        Action => "id:1,pass",
        Rule => "ARGS x id:1",
        Marker => "END",
        DefaultAction => "phase:2,log,pass",
        RuleRemoveById | RuleRemoveByMsg | RuleRemoveByTag => "1",
        RuleUpdateActionById => "1 pass",
        RuleUpdateTargetById | RuleUpdateTargetByMsg | RuleUpdateTargetByTag => "1 !ARGS:a",
        ArgumentSeparator | CookieV0Separator => ";",
        AuditEngine => "RelevantOnly",
        AuditLogParts => "ABIJDEFHZ",
        AuditLogRelevantStatus => "^5",
        AuditLogType => "Serial",
        AuditLogFormat => "JSON",
        AuditLogDirMode | AuditLogFileMode | UploadFileMode => "0600",
        RequestBodyLimitAction | ResponseBodyLimitAction => "ProcessPartial",
        ResponseBodyMimeType => "text/html",
        ResponseBodyMimeTypesClear => "",
        CookieFormat => "0",
        Compatibility => "ModSecurity3",
        DebugLogLevel => "3",
        ExpansionLimit => "65536 1048576",
        UnicodeMapFile => "unicode.mapping 20127",
        UnicodeMap => "unicode.mapping",
        HashMethodPm | HashMethodRx => "HashHref x",
        HashKey => "rand KeyOnly",
        RemoteRules => {
            "key https://localhost/rules sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        }
        RemoteRulesFailAction => "Abort",
        XmlExternalEntity => "Off",
        RuleEngine
        | RequestBodyAccess
        | ResponseBodyAccess
        | RuleInheritance
        | StatusEngine
        | SecondReadings
        | SemanticDetector
        | XmlExternalDtd
        | ParseXmlIntoArgs
        | UploadKeepFiles
        | TmpSaveUploadedFiles
        | ConnEngine
        | ContentInjection
        | DisableBackendCompression
        | HashEngine
        | InterceptOnError
        | StreamInBodyInspection
        | StreamOutBodyInspection
        | CacheTransformations
        | PdfProtect
        | IgnoreRuleCompilationErrors
        | RxPreFilter => "On",
        AuditLog | AuditLog2 | AuditLogStorageDir | DebugLog | DataDir | TmpDir | UploadDir | GuardianLog
        | ChrootDir => "/tmp/x",
        EventSocket => "/run/events.sock",
        GeoLookupDb | GsbLookupDb => "geo.mmdb",
        RuleScript => "script.lua id:3",
        UnicodeCodePage => "20127",
        _ => "100",
    };
    let folder = if name == UploadKeepFiles { "SecUploadDir /tmp/x\n" } else { "" };
    // A rule for those that change one.
    format!(
        "{folder}SecRule ARGS|REQUEST_URI \"@contains y\" \"id:1,msg:'1',tag:'1'\"\n{} {arguments}\n",
        name.name()
    )
    .replace(if matches!(name, Action | Rule) { "id:1,msg" } else { "\0" }, "id:2,msg")
}

/// The directive that a word needs, unless it is refused itself.
fn switch(name: DirectiveName) -> String {
    match standing::directive(name) {
        Standing::Refused(_) => String::new(),
        _ => format!("{} On\n", name.name()),
    }
}

pub fn variable(variable: Variable) -> String {
    let target = match variable.shape() {
        Shape::Xpath => format!("{}:/*", variable.name()),
        Shape::Collection if variable == Variable::Rule => "RULE:id".to_owned(),
        Shape::Collection if variable == Variable::Env => "ENV:KEY".to_owned(),
        _ => variable.name().to_owned(),
    };
    format!("SecRule {target} @unconditionalMatch id:1,phase:5,pass\n")
}

pub fn operator(operator: OperatorName) -> String {
    let argument = match operator {
        OperatorName::IpMatchFromFile => "networks.data",
        OperatorName::Rbl => "bl.example.org",
        OperatorName::Rsub => "s/a/b/",
        OperatorName::InspectFile => "clamd:/run/clamd.sock",
        OperatorName::RestPath => "/a/{id}",
        _ => match operator.argument() {
            Argument::None => "",
            Argument::Regex => r"\d{3,20}",
            Argument::Text | Argument::Words => "text",
            Argument::Number => "1",
            Argument::Addresses => "192.0.2.1",
            Argument::File => "words.data",
            Argument::Bytes => "32-126",
        },
    };
    let target = match operator {
        OperatorName::Rsub => "STREAM_OUTPUT_BODY",
        OperatorName::InspectFile => "FILES_TMPNAMES",
        OperatorName::Rbl | OperatorName::GeoLookup => "REMOTE_ADDR",
        _ => "ARGS",
    };
    let switch = if operator == OperatorName::Rsub {
        switch(DirectiveName::StreamOutBodyInspection)
    } else {
        String::new()
    };
    let switch = match operator {
        OperatorName::GeoLookup => "SecGeoLookupDb geo.mmdb\n".to_owned(),
        _ => switch,
    };
    format!("{switch}SecRule {target} \"@{} {argument}\" id:1,phase:4,pass\n", operator.name())
}

pub fn action(action: ActionName) -> String {
    use ActionName::*;
    let name = action.name();
    let text = match action {
        Id | Phase => return "SecAction id:1,phase:1,pass\n".to_owned(),
        Chain => return "SecRule ARGS x id:1,chain\nSecRule ARGS y\n".to_owned(),
        Skip => "skip:1".to_owned(),
        SkipAfter => return "SecAction id:1,pass,skipAfter:END\nSecMarker END\n".to_owned(),
        SetVar => "setvar:tx.a=1".to_owned(),
        ExpireVar => "initcol:ip=x,expirevar:ip.a=60".to_owned(),
        DeprecateVar => "initcol:ip=x,deprecatevar:ip.a=1/60".to_owned(),
        InitCol => "initcol:ip=%{REMOTE_ADDR}".to_owned(),
        Ctl => "ctl:ruleEngine=Off".to_owned(),
        T => "t:lowercase".to_owned(),
        Severity => "severity:CRITICAL".to_owned(),
        Status => "deny,status:404".to_owned(),
        Accuracy | Maturity => format!("{name}:8"),
        Redirect => "redirect:https://example.org/".to_owned(),
        Proxy => "proxy:http://127.0.0.1:8080/".to_owned(),
        Pause => "pause:100".to_owned(),
        Xmlns => "xmlns:s=http://example.org/".to_owned(),
        SetEnv => "setenv:a=b".to_owned(),
        Append | Prepend => {
            let switch = switch(DirectiveName::ContentInjection);
            return format!("{switch}SecRule ARGS x id:1,phase:3,pass,{name}:text\n");
        }
        _ => match action.argument() {
            portcullis_seclang::actions::ArgumentUse::Required => format!("{name}:text"),
            _ => name.to_owned(),
        },
    };
    format!("SecRule ARGS x \"id:1,phase:2,{text}\"\n")
}

pub fn ctl(option: CtlOption) -> String {
    use CtlOption::*;
    let value = match option {
        AuditLogParts => "+E",
        DebugLogLevel => "3",
        RateLimit => "logins;%{ARGS.user}",
        RequestBodyLimit | ResponseBodyLimit => "1000",
        RequestBodyProcessor | ResponseBodyProcessor => "JSON",
        RuleRemoveById | RuleRemoveByMsg | RuleRemoveByTag => "7",
        RuleRemoveTargetById | RuleRemoveTargetByMsg | RuleRemoveTargetByTag => "7;ARGS:a",
        _ => "On",
    };
    format!("SecAction id:1,phase:1,pass,ctl:{}={value}\n", option.name())
}
