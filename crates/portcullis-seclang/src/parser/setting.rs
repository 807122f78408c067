//! Engine settings.

use bstr::BString;

use super::{Sink, values};
use crate::directives::DirectiveName as Name;
use crate::lexer::View;
use crate::settings::{
    AuditEngine, AuditLogFormat, AuditLogType, Compatibility, CookieFormat, LimitAction, RuleEngine,
    SemanticDetector, Setting, UploadKeepFiles, XmlArgs,
};

/// Of what ModSecurity 2.9.7 does not check when it loads it.
const IGNORED: &str = "the directive is ignored";

/// The setting that `name` makes of its arguments; `None`, and a diagnostic, if they are wrong.
pub(super) fn read(name: Name, arguments: &[View<'_>], sink: &mut Sink) -> Option<Setting> {
    if name == Name::ResponseBodyMimeTypesClear {
        return Some(Setting::ResponseBodyMimeTypesClear);
    }
    let &first = arguments.first()?;
    let what = &format!("{} takes", name.name());
    macro_rules! word {
        ($type:ident) => {
            values::word(first, what, $type::ALL, $type::word, $type::from_word, sink)?
        };
    }
    Some(match name {
        Name::ArgumentSeparator => Setting::ArgumentSeparator(byte(first, what, sink)?),
        Name::ArgumentsLimit => Setting::ArgumentsLimit(values::number(first, what, sink)?),
        Name::AuditEngine => Setting::AuditEngine(word!(AuditEngine)),
        Name::AuditLog => Setting::AuditLog(text(first, what, sink)?),
        Name::AuditLog2 => Setting::AuditLog2(text(first, what, sink)?),
        Name::AuditLogDirMode => Setting::AuditLogDirMode(mode(first, what, sink)?),
        Name::AuditLogFileMode => Setting::AuditLogFileMode(mode(first, what, sink)?),
        Name::AuditLogFormat => Setting::AuditLogFormat(word!(AuditLogFormat)),
        Name::AuditLogParts => Setting::AuditLogParts(parts(first, what, sink)?),
        Name::AuditLogRelevantStatus => Setting::AuditLogRelevantStatus(text(first, what, sink)?),
        Name::AuditLogStorageDir => Setting::AuditLogStorageDir(text(first, what, sink)?),
        Name::AuditLogType => Setting::AuditLogType(word!(AuditLogType)),
        Name::CollectionTimeout => {
            Setting::CollectionTimeout(sink.leniently(IGNORED, |sink| values::number(first, what, sink))?)
        }
        Name::Compatibility => Setting::Compatibility(word!(Compatibility)),
        Name::ComponentSignature => Setting::ComponentSignature(text(first, what, sink)?),
        Name::ContentInjection => Setting::ContentInjection(values::switch(first, what, sink)?),
        Name::CookieFormat => Setting::CookieFormat(word!(CookieFormat)),
        Name::CookieV0Separator => Setting::CookieV0Separator(byte(first, what, sink)?),
        Name::DataDir => Setting::DataDir(text(first, what, sink)?),
        Name::DebugLog => Setting::DebugLog(text(first, what, sink)?),
        Name::DebugLogLevel => {
            Setting::DebugLogLevel(sink.leniently(IGNORED, |sink| values::level(first, what, sink))?)
        }
        Name::DisableBackendCompression => {
            Setting::DisableBackendCompression(values::switch(first, what, sink)?)
        }
        Name::EventSocket => Setting::EventSocket(text(first, what, sink)?),
        Name::ExpansionLimit => Setting::ExpansionLimit {
            text: values::number(first, what, sink)?,
            transaction: match arguments.get(1) {
                Some(&bytes) => Some(values::number(bytes, what, sink)?),
                None => None,
            },
        },
        Name::GeoLookupDb => Setting::GeoLookupDb(text(first, what, sink)?),
        Name::HttpBlKey => Setting::HttpBlKey(text(first, what, sink)?),
        Name::ParseXmlIntoArgs => Setting::ParseXmlIntoArgs(word!(XmlArgs)),
        Name::PcreMatchLimit => Setting::PcreMatchLimit(values::number(first, what, sink)?),
        Name::PcreMatchLimitRecursion => Setting::PcreMatchLimitRecursion(values::number(first, what, sink)?),
        Name::RequestBodyAccess => Setting::RequestBodyAccess(values::switch(first, what, sink)?),
        Name::RequestBodyInMemoryLimit => {
            Setting::RequestBodyInMemoryLimit(values::number(first, what, sink)?)
        }
        Name::RequestBodyJsonDepthLimit => {
            Setting::RequestBodyJsonDepthLimit(values::number(first, what, sink)?)
        }
        Name::RequestBodyLimit => Setting::RequestBodyLimit(values::body_bytes(first, what, sink)?),
        Name::RequestBodyLimitAction => Setting::RequestBodyLimitAction(word!(LimitAction)),
        Name::RequestBodyNoFilesLimit => {
            Setting::RequestBodyNoFilesLimit(values::body_bytes(first, what, sink)?)
        }
        Name::ResponseBodyAccess => Setting::ResponseBodyAccess(values::switch(first, what, sink)?),
        Name::ResponseBodyLimit => Setting::ResponseBodyLimit(values::body_bytes(first, what, sink)?),
        Name::ResponseBodyLimitAction => Setting::ResponseBodyLimitAction(word!(LimitAction)),
        Name::ResponseBodyMimeType => {
            Setting::ResponseBodyMimeTypes(arguments.iter().map(|view| view.bytes.into()).collect())
        }
        Name::RuleEngine => Setting::RuleEngine(word!(RuleEngine)),
        Name::RuleInheritance => inheritance(first, what, sink)?,
        Name::SecondReadings => Setting::SecondReadings(values::switch(first, what, sink)?),
        Name::SemanticDetector => Setting::SemanticDetector(word!(SemanticDetector)),
        Name::SensorId => Setting::SensorId(text(first, what, sink)?),
        Name::ServerSignature => Setting::ServerSignature(field_value(first, what, sink)?),
        Name::StatusEngine => Setting::StatusEngine(values::switch(first, what, sink)?),
        Name::StreamInBodyInspection => Setting::StreamInBodyInspection(values::switch(first, what, sink)?),
        Name::StreamOutBodyInspection => Setting::StreamOutBodyInspection(values::switch(first, what, sink)?),
        Name::TmpDir => Setting::TmpDir(text(first, what, sink)?),
        Name::TmpSaveUploadedFiles => Setting::TmpSaveUploadedFiles(values::switch(first, what, sink)?),
        Name::UnicodeCodePage => Setting::UnicodeCodePage(values::number(first, what, sink)?),
        Name::UnicodeMapFile => Setting::UnicodeMapFile {
            path: text(first, what, sink)?,
            code_page: match arguments.get(1) {
                Some(&page) => Some(values::number(page, "the code page is", sink)?),
                None => None,
            },
        },
        Name::UploadDir => Setting::UploadDir(text(first, what, sink)?),
        Name::UploadFileLimit => {
            Setting::UploadFileLimit(sink.leniently(IGNORED, |sink| values::number(first, what, sink))?)
        }
        Name::UploadFileMode => Setting::UploadFileMode(mode(first, what, sink)?),
        Name::UploadKeepFiles => Setting::UploadKeepFiles(word!(UploadKeepFiles)),
        Name::WebAppId => Setting::WebAppId(text(first, what, sink)?),
        Name::XmlExternalDtd => Setting::XmlExternalDtd(values::switch(first, what, sink)?),
        Name::XmlExternalEntity => external_entity(first, what, sink)?,
        // Only names that the table calls settings come here.
        Name::Include
        | Name::IncludeOptional
        | Name::Action
        | Name::CacheTransformations
        | Name::ChrootDir
        | Name::ConnEngine
        | Name::ConnReadStateLimit
        | Name::ConnWriteStateLimit
        | Name::Dataset
        | Name::DefaultAction
        | Name::GsbLookupDb
        | Name::GuardianLog
        | Name::HashEngine
        | Name::HashKey
        | Name::HashMethodPm
        | Name::HashMethodRx
        | Name::HashParam
        | Name::IgnoreRuleCompilationErrors
        | Name::InterceptOnError
        | Name::Marker
        | Name::PdfProtect
        | Name::PdfProtectMethod
        | Name::PdfProtectSecret
        | Name::PdfProtectTimeout
        | Name::PdfProtectTokenName
        | Name::ReadStateLimit
        | Name::RemoteRules
        | Name::RemoteRulesFailAction
        | Name::RequestEncoding
        | Name::ResponseBodyMimeTypesClear
        | Name::Rule
        | Name::RulePerfTime
        | Name::RuleRemoveById
        | Name::RuleRemoveByMsg
        | Name::RuleRemoveByTag
        | Name::RuleScript
        | Name::RuleUpdateActionById
        | Name::RuleUpdateTargetById
        | Name::RuleUpdateTargetByMsg
        | Name::RuleUpdateTargetByTag
        | Name::RxPreFilter
        | Name::UnicodeMap
        | Name::WriteStateLimit => return None,
    })
}

fn text(view: View<'_>, what: &str, sink: &mut Sink) -> Option<BString> {
    if view.bytes.is_empty() {
        sink.error(view.span(), format!("{what} a text that is not empty"));
        return None;
    }
    Some(view.bytes.into())
}

/// A text that can stand in a header: no control bytes (RFC 9110, section 5.5).
fn field_value(view: View<'_>, what: &str, sink: &mut Sink) -> Option<BString> {
    match view.bytes.iter().position(|&b| b < b' ' && b != b'\t' || b == 0x7f) {
        None => Some(view.bytes.trim_ascii().into()),
        Some(at) => {
            sink.error(view.slice(at, at + 1).span(), format!("{what} a text without control characters"));
            None
        }
    }
}

fn byte(view: View<'_>, what: &str, sink: &mut Sink) -> Option<u8> {
    match view.bytes {
        &[byte] => Some(byte),
        _ => {
            sink.error(view.span(), format!("{what} one byte, such as &, not {:?}", view.show()));
            None
        }
    }
}

/// Octal permission bits, or `default`.
fn mode(view: View<'_>, what: &str, sink: &mut Sink) -> Option<Option<u32>> {
    if view.bytes.eq_ignore_ascii_case(b"default") {
        return Some(None);
    }
    let bits =
        view.str().and_then(|digits| u32::from_str_radix(digits, 8).ok()).filter(|&bits| bits <= 0o7777);
    if bits.is_none() {
        let message = format!("{what} octal permissions such as 0600, or default, not {:?}", view.show());
        sink.error(view.span(), message);
    }
    bits.map(Some)
}

/// The letters of the audit log parts.
fn parts(view: View<'_>, what: &str, sink: &mut Sink) -> Option<BString> {
    let is_part = |byte: &u8| matches!(byte.to_ascii_uppercase(), b'A'..=b'K' | b'Z');
    match view.bytes.iter().position(|byte| !is_part(byte)) {
        None if !view.bytes.is_empty() => Some(view.bytes.into()),
        at => {
            let at = at.unwrap_or(0);
            sink.error(view.slice(at, at + 1).span(), format!("{what} letters from A to K and Z"));
            None
        }
    }
}

fn inheritance(view: View<'_>, what: &str, sink: &mut Sink) -> Option<Setting> {
    if !values::switch(view, what, sink)? {
        sink.warn_hint(
            view.span(),
            "SecRuleInheritance Off has no effect: scopes are not nested, so there is nothing to cut off",
            "give the site or route a policy of its own, which names only the rule files it wants",
        );
        return None;
    }
    Some(Setting::RuleInheritance(true))
}

fn external_entity(view: View<'_>, what: &str, sink: &mut Sink) -> Option<Setting> {
    let on = values::switch(view, what, sink)?;
    if on {
        sink.warn_hint(
            view.span(),
            "SecXmlExternalEntity stays Off: what an XML body points to is never loaded",
            "write SecXmlExternalEntity Off; external entities are an attack of their own",
        );
        return None;
    }
    Some(Setting::XmlExternalEntity(false))
}
