//! Engine settings.

use super::line;
use crate::directives::DirectiveName as Name;
use crate::settings::Setting;

/// The line of a setting.
pub(crate) fn print(setting: &Setting, out: &mut Vec<u8>) {
    let mut one = |name: Name, value: &[u8]| line(out, name.name(), &[value]);
    let switch = |on: bool| if on { "On" } else { "Off" }.as_bytes();
    let number = |n: u64| n.to_string().into_bytes();
    let mode =
        |bits: Option<u32>| bits.map_or("default".to_owned(), |bits| format!("{bits:04o}")).into_bytes();
    match setting {
        Setting::ArgumentSeparator(byte) => one(Name::ArgumentSeparator, &[*byte]),
        Setting::ArgumentsLimit(n) => one(Name::ArgumentsLimit, &number(*n)),
        Setting::AuditEngine(value) => one(Name::AuditEngine, value.word().as_bytes()),
        Setting::AuditLog(path) => one(Name::AuditLog, path),
        Setting::AuditLog2(path) => one(Name::AuditLog2, path),
        Setting::AuditLogDirMode(bits) => one(Name::AuditLogDirMode, &mode(*bits)),
        Setting::AuditLogFileMode(bits) => one(Name::AuditLogFileMode, &mode(*bits)),
        Setting::AuditLogFormat(value) => one(Name::AuditLogFormat, value.word().as_bytes()),
        Setting::AuditLogParts(parts) => one(Name::AuditLogParts, parts),
        Setting::AuditLogRelevantStatus(regex) => one(Name::AuditLogRelevantStatus, regex),
        Setting::AuditLogStorageDir(path) => one(Name::AuditLogStorageDir, path),
        Setting::AuditLogType(value) => one(Name::AuditLogType, value.word().as_bytes()),
        Setting::CollectionTimeout(n) => one(Name::CollectionTimeout, &number(*n)),
        Setting::Compatibility(value) => one(Name::Compatibility, value.word().as_bytes()),
        Setting::ComponentSignature(text) => one(Name::ComponentSignature, text),
        Setting::ContentInjection(on) => one(Name::ContentInjection, switch(*on)),
        Setting::CookieFormat(value) => one(Name::CookieFormat, value.word().as_bytes()),
        Setting::CookieV0Separator(byte) => one(Name::CookieV0Separator, &[*byte]),
        Setting::DataDir(path) => one(Name::DataDir, path),
        Setting::DebugLog(path) => one(Name::DebugLog, path),
        Setting::EventSocket(path) => one(Name::EventSocket, path),
        Setting::DebugLogLevel(level) => one(Name::DebugLogLevel, &number(u64::from(*level))),
        Setting::DisableBackendCompression(on) => one(Name::DisableBackendCompression, switch(*on)),
        Setting::ExpansionLimit { text, transaction: None } => one(Name::ExpansionLimit, &number(*text)),
        Setting::ExpansionLimit { text, transaction: Some(all) } => {
            line(out, Name::ExpansionLimit.name(), &[&number(*text), &number(*all)]);
        }
        Setting::GeoLookupDb(path) => one(Name::GeoLookupDb, path),
        Setting::HttpBlKey(key) => one(Name::HttpBlKey, key),
        Setting::ParseXmlIntoArgs(value) => one(Name::ParseXmlIntoArgs, value.word().as_bytes()),
        Setting::PcreMatchLimit(n) => one(Name::PcreMatchLimit, &number(*n)),
        Setting::PcreMatchLimitRecursion(n) => one(Name::PcreMatchLimitRecursion, &number(*n)),
        Setting::RequestBodyAccess(on) => one(Name::RequestBodyAccess, switch(*on)),
        Setting::RequestBodyInMemoryLimit(n) => one(Name::RequestBodyInMemoryLimit, &number(*n)),
        Setting::RequestBodyJsonDepthLimit(n) => one(Name::RequestBodyJsonDepthLimit, &number(*n)),
        Setting::RequestBodyLimit(n) => one(Name::RequestBodyLimit, &number(*n)),
        Setting::RequestBodyLimitAction(value) => one(Name::RequestBodyLimitAction, value.word().as_bytes()),
        Setting::RequestBodyNoFilesLimit(n) => one(Name::RequestBodyNoFilesLimit, &number(*n)),
        Setting::ResponseBodyAccess(on) => one(Name::ResponseBodyAccess, switch(*on)),
        Setting::ResponseBodyLimit(n) => one(Name::ResponseBodyLimit, &number(*n)),
        Setting::ResponseBodyLimitAction(value) => {
            one(Name::ResponseBodyLimitAction, value.word().as_bytes())
        }
        Setting::ResponseBodyMimeTypes(types) => {
            let types: Vec<&[u8]> = types.iter().map(|text| text.as_slice()).collect();
            line(out, Name::ResponseBodyMimeType.name(), &types);
        }
        Setting::ResponseBodyMimeTypesClear => line(out, Name::ResponseBodyMimeTypesClear.name(), &[]),
        Setting::RuleEngine(value) => one(Name::RuleEngine, value.word().as_bytes()),
        Setting::RuleInheritance(on) => one(Name::RuleInheritance, switch(*on)),
        Setting::SecondReadings(on) => one(Name::SecondReadings, switch(*on)),
        Setting::SemanticDetector(value) => one(Name::SemanticDetector, value.word().as_bytes()),
        Setting::SensorId(text) => one(Name::SensorId, text),
        Setting::ServerSignature(text) => one(Name::ServerSignature, text),
        Setting::StatusEngine(on) => one(Name::StatusEngine, switch(*on)),
        Setting::StreamInBodyInspection(on) => one(Name::StreamInBodyInspection, switch(*on)),
        Setting::StreamOutBodyInspection(on) => one(Name::StreamOutBodyInspection, switch(*on)),
        Setting::TmpDir(path) => one(Name::TmpDir, path),
        Setting::TmpSaveUploadedFiles(on) => one(Name::TmpSaveUploadedFiles, switch(*on)),
        Setting::UnicodeCodePage(page) => one(Name::UnicodeCodePage, page.to_string().as_bytes()),
        Setting::UnicodeMapFile { path, code_page: None } => one(Name::UnicodeMapFile, path),
        Setting::UnicodeMapFile { path, code_page: Some(page) } => {
            line(out, Name::UnicodeMapFile.name(), &[path, page.to_string().as_bytes()]);
        }
        Setting::UploadDir(path) => one(Name::UploadDir, path),
        Setting::UploadFileLimit(n) => one(Name::UploadFileLimit, &number(*n)),
        Setting::UploadFileMode(bits) => one(Name::UploadFileMode, &mode(*bits)),
        Setting::UploadKeepFiles(value) => one(Name::UploadKeepFiles, value.word().as_bytes()),
        Setting::WebAppId(text) => one(Name::WebAppId, text),
        Setting::XmlExternalDtd(on) => one(Name::XmlExternalDtd, switch(*on)),
        Setting::XmlExternalEntity(on) => one(Name::XmlExternalEntity, switch(*on)),
    }
}
