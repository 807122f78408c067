//! Engine settings.

use std::path::PathBuf;

use portcullis_engine::{BodyLimitAction, KeepFiles, RuleEngine, Settings, XmlArgs};
use portcullis_seclang::standing::{self, Standing};
use portcullis_seclang::{settings as seclang, settings::Setting};
use portcullis_types::Level;

/// Carries out `setting`. An `Err` is a warning: the setting is known but changes nothing here.
pub(crate) fn apply(settings: &mut Settings, setting: &Setting) -> Result<(), String> {
    match setting {
        Setting::RuleEngine(engine) => settings.rule_engine = rule_engine(*engine),
        Setting::RequestBodyAccess(on) => settings.request_body_access = *on,
        Setting::RequestBodyLimit(bytes) => settings.request_body_limit = *bytes,
        Setting::RequestBodyNoFilesLimit(bytes) => settings.request_body_no_files_limit = Some(*bytes),
        Setting::RequestBodyLimitAction(action) => {
            settings.request_body_limit_action = Some(limit_action(*action));
        }
        Setting::RequestBodyJsonDepthLimit(depth) => settings.json_depth_limit = clamp(*depth),
        Setting::ArgumentsLimit(count) => settings.arguments_limit = clamp(*count),
        Setting::ExpansionLimit { text, transaction } => {
            settings.expansion_limit = *text;
            if let Some(bytes) = transaction {
                settings.expansions_limit = *bytes;
            }
        }
        Setting::ArgumentSeparator(byte) => settings.argument_separator = *byte,
        Setting::CookieFormat(format) => settings.cookie_v1 = *format == seclang::CookieFormat::Version1,
        Setting::ResponseBodyAccess(on) => settings.response_body_access = *on,
        Setting::ResponseBodyLimit(bytes) => settings.response_body_limit = *bytes,
        Setting::ResponseBodyLimitAction(action) => {
            settings.response_body_limit_action = limit_action(*action)
        }
        Setting::ResponseBodyMimeTypes(types) => {
            for mime in types {
                let mime = mime.to_ascii_lowercase();
                if !settings.response_body_mime_types.contains(&mime) {
                    settings.response_body_mime_types.push(mime);
                }
            }
        }
        Setting::ResponseBodyMimeTypesClear => settings.response_body_mime_types.clear(),
        Setting::ComponentSignature(text) => settings.component_signatures.push(text.to_vec()),
        Setting::ContentInjection(on) => settings.content_injection = *on,
        Setting::StreamInBodyInspection(on) => settings.stream_request_body = *on,
        Setting::StreamOutBodyInspection(on) => settings.stream_response_body = *on,
        Setting::WebAppId(text) => settings.web_app_id = text.to_vec(),
        Setting::CollectionTimeout(seconds) => settings.collection_timeout = i64::from(clamp(*seconds)),
        Setting::Compatibility(compatibility) => {
            settings.modsecurity3 = *compatibility == seclang::Compatibility::ModSecurity3;
        }
        Setting::XmlExternalDtd(skip) => settings.xml_external_dtd = *skip,
        Setting::SecondReadings(on) => settings.second_readings = *on,
        Setting::SemanticDetector(word) => {
            settings.semantic_detector = match word {
                seclang::SemanticDetector::Off => None,
                seclang::SemanticDetector::Balanced => Some(Level::Balanced),
                seclang::SemanticDetector::Strict => Some(Level::Strict),
            };
        }
        // ModSecurity takes 0 for its own default.
        Setting::PcreMatchLimit(limit) => {
            settings.pcre_match_limit = Some(clamp(*limit)).filter(|&limit| limit > 0);
        }
        Setting::PcreMatchLimitRecursion(limit) => {
            settings.pcre_match_limit_recursion = Some(clamp(*limit)).filter(|&limit| limit > 0);
        }
        Setting::ServerSignature(text) => settings.server_signature = Some(text.to_vec()),
        Setting::DisableBackendCompression(on) => settings.disable_backend_compression = *on,
        Setting::CookieV0Separator(byte) => settings.cookie_separator = Some(*byte),
        // Read by the caller, who has the files.
        Setting::DataDir(_)
        | Setting::EventSocket(_)
        | Setting::UnicodeMapFile { .. }
        | Setting::UnicodeCodePage(_)
        | Setting::GeoLookupDb(_)
        | Setting::HttpBlKey(_) => {}
        // Nothing is reported, and every scope has its own rules.
        Setting::StatusEngine(false) | Setting::RuleInheritance(true) => {}
        Setting::XmlExternalEntity(_) => {}
        // The folder is found by the caller, who knows where rule files are.
        Setting::UploadDir(_) => {}
        Setting::UploadFileMode(mode) => settings.upload_file_mode = mode.unwrap_or(0o600) & 0o666,
        Setting::UploadKeepFiles(keep) => {
            settings.keep_files = match keep {
                seclang::UploadKeepFiles::On => KeepFiles::On,
                seclang::UploadKeepFiles::Off => KeepFiles::Off,
                seclang::UploadKeepFiles::RelevantOnly => KeepFiles::RelevantOnly,
            }
        }
        Setting::ParseXmlIntoArgs(args) => settings.xml_args = xml_args(*args),
        Setting::UploadFileLimit(count) => settings.upload_file_limit = clamp(*count),
        other @ (Setting::AuditEngine(_)
        | Setting::AuditLog(_)
        | Setting::AuditLog2(_)
        | Setting::AuditLogDirMode(_)
        | Setting::AuditLogFileMode(_)
        | Setting::AuditLogFormat(_)
        | Setting::AuditLogParts(_)
        | Setting::AuditLogRelevantStatus(_)
        | Setting::AuditLogStorageDir(_)
        | Setting::AuditLogType(_)
        | Setting::DebugLog(_)
        | Setting::DebugLogLevel(_)
        | Setting::RequestBodyInMemoryLimit(_)
        | Setting::RuleInheritance(_)
        | Setting::SensorId(_)
        | Setting::StatusEngine(_)
        | Setting::TmpDir(_)
        | Setting::TmpSaveUploadedFiles(_)) => return Err(no_effect(other)),
    }
    Ok(())
}

fn no_effect(setting: &Setting) -> String {
    match setting.directive().map(|name| (name, standing::directive(name))) {
        Some((name, Standing::NoEffect(why))) => format!("{} has no effect: {why}", name.name()),
        _ => "this directive has no effect".to_owned(),
    }
}

pub(crate) fn rule_engine(engine: seclang::RuleEngine) -> RuleEngine {
    match engine {
        seclang::RuleEngine::On => RuleEngine::On,
        seclang::RuleEngine::Off => RuleEngine::Off,
        seclang::RuleEngine::DetectionOnly => RuleEngine::DetectionOnly,
    }
}

pub(crate) fn xml_args(args: seclang::XmlArgs) -> XmlArgs {
    match args {
        seclang::XmlArgs::On => XmlArgs::On,
        seclang::XmlArgs::Off => XmlArgs::Off,
        seclang::XmlArgs::OnlyArgs => XmlArgs::OnlyArgs,
    }
}

fn limit_action(action: seclang::LimitAction) -> BodyLimitAction {
    match action {
        seclang::LimitAction::Reject => BodyLimitAction::Reject,
        seclang::LimitAction::ProcessPartial => BodyLimitAction::ProcessPartial,
    }
}

/// Longest path of a socket: the system has 108 bytes for it, and a zero behind.
const SOCKET_BYTES_MAX: usize = 107;

/// The socket that `SecEventSocket` names; none for `Off`.
pub(crate) fn event_socket(path: &[u8]) -> Result<Option<PathBuf>, String> {
    if path.eq_ignore_ascii_case(b"off") {
        return Ok(None);
    }
    let path = std::str::from_utf8(path).map_err(|_| "SecEventSocket: the path is not UTF-8".to_owned())?;
    if !path.starts_with('/') || path.len() > SOCKET_BYTES_MAX {
        return Err(format!(
            "SecEventSocket is Off or an absolute path of at most {SOCKET_BYTES_MAX} bytes, such as \
             /run/portcullis/events.sock"
        ));
    }
    Ok(Some(PathBuf::from(path)))
}

fn clamp(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
