//! The audit log and the debug log: settings, actions, and what must be kept for them.

use portcullis_engine::{
    Act, AuditAct, AuditEngine, AuditLogFormat, AuditLogType, AuditParts, AuditSettings, Plan,
    ReachableParts, StatusSet,
};
use portcullis_match::{Pcre, RegexFlags};
use portcullis_seclang::ast::{self, Action, Ctl, Directive, Document, Spanned};
use portcullis_seclang::settings::{self as seclang, Setting};
use portcullis_seclang::{Diagnostic, SourceSpan};

use crate::draft::{DraftLink, Entry};

/// Carries out `setting` if it is one of this module's. `None` if it is not.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the other settings are of settings::apply, which lists them"
)]
pub(crate) fn apply(
    settings: &mut AuditSettings,
    setting: &Setting,
    span: SourceSpan,
) -> Option<Result<(), Diagnostic>> {
    let refused = |message: &str, hint: &str| Some(Err(Diagnostic::error(span, message).with_hint(hint)));
    let without = |message: &str, hint: &str| Some(Err(Diagnostic::warning(span, message).with_hint(hint)));
    let piped = if let Setting::AuditLog(path) | Setting::AuditLog2(path) | Setting::DebugLog(path) = setting
    {
        path.starts_with(b"|")
    } else {
        false
    };
    if piped {
        return without(
            "this log is not written: a log cannot be piped to a program, rules may not start programs",
            "write it to a file and let the program read that",
        );
    }
    match setting {
        Setting::AuditEngine(engine) => settings.engine = self::engine(*engine),
        Setting::AuditLog(path) => settings.log = Some(path.to_vec()),
        Setting::AuditLog2(path) => settings.log2 = Some(path.to_vec()),
        Setting::AuditLogStorageDir(path) => settings.storage_dir = Some(path.to_vec()),
        Setting::AuditLogDirMode(mode) => settings.dir_mode = *mode,
        Setting::AuditLogFileMode(mode) => settings.file_mode = *mode,
        Setting::AuditLogParts(letters) => settings.parts = AuditParts::from_letters(letters),
        Setting::AuditLogRelevantStatus(pattern) => match statuses(pattern) {
            Ok(statuses) => settings.relevant_status = statuses,
            Err(message) => return Some(Err(Diagnostic::error(span, message))),
        },
        Setting::AuditLogType(seclang::AuditLogType::Serial) => settings.log_type = AuditLogType::Serial,
        Setting::AuditLogType(seclang::AuditLogType::Concurrent) => {
            settings.log_type = AuditLogType::Concurrent;
        }
        Setting::AuditLogType(seclang::AuditLogType::Https) => {
            return refused(
                "audit records are not posted to a server: its answers would decide what is kept",
                "write them to a file (SecAuditLogFormat JSON) and let a log shipper forward it",
            );
        }
        Setting::AuditLogFormat(seclang::AuditLogFormat::Native) => settings.format = AuditLogFormat::Native,
        Setting::AuditLogFormat(seclang::AuditLogFormat::Json) => settings.format = AuditLogFormat::Json,
        Setting::AuditLogFormat(seclang::AuditLogFormat::JsonLegacy) => {
            settings.format = AuditLogFormat::JsonLegacy;
        }
        Setting::AuditLogFormat(seclang::AuditLogFormat::Ocsf) => {
            return refused(
                "the OCSF format of audit records is not supported",
                "use JSON; events, too, are JSON lines with a schema of their own",
            );
        }
        Setting::SensorId(text) => settings.sensor_id = Some(text.to_vec()),
        Setting::DebugLog(path) => settings.debug_log = Some(path.to_vec()),
        Setting::DebugLogLevel(level) => settings.debug_level = *level,
        _ => return None,
    }
    Some(Ok(()))
}

/// Every status is tried out now, so that none is matched later.
fn statuses(pattern: &[u8]) -> Result<StatusSet, String> {
    match Pcre::new(pattern, RegexFlags::default()) {
        Ok(regex) => Ok(StatusSet::of(|status| regex.is_match(status))),
        Err(error) => Err(format!("SecAuditLogRelevantStatus: {error}")),
    }
}

fn engine(engine: seclang::AuditEngine) -> AuditEngine {
    match engine {
        seclang::AuditEngine::On => AuditEngine::On,
        seclang::AuditEngine::Off => AuditEngine::Off,
        seclang::AuditEngine::RelevantOnly => AuditEngine::RelevantOnly,
    }
}

/// The act of an action that steers logging; `None` for others.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the other actions are of Lowering::act, which lists them"
)]
pub(crate) fn act(action: &Action) -> Option<Result<Act, String>> {
    let boxed = |name: &[u8]| -> Box<[u8]> { name.into() };
    let act = match action {
        Action::Ctl(Ctl::AuditEngine(engine)) => AuditAct::Engine(self::engine(*engine)),
        Action::Ctl(Ctl::AuditLogParts(text)) => match parts(text) {
            Ok(act) => act,
            Err(message) => return Some(Err(message)),
        },
        Action::Ctl(Ctl::DebugLogLevel(level)) => AuditAct::DebugLevel(*level),
        Action::SanitiseArg(name) => AuditAct::SanitiseArg(boxed(name)),
        Action::SanitiseRequestHeader(name) => AuditAct::SanitiseRequestHeader(boxed(name)),
        Action::SanitiseResponseHeader(name) => AuditAct::SanitiseResponseHeader(boxed(name)),
        Action::SanitiseMatched => AuditAct::SanitiseMatched,
        Action::SanitiseMatchedBytes(text) => match kept_bytes(text) {
            Some((keep_first, keep_last)) => AuditAct::SanitiseMatchedBytes { keep_first, keep_last },
            // The caller has told.
            None => AuditAct::SanitiseMatched,
        },
        _ => return None,
    };
    Some(Ok(Act::Audit(act)))
}

/// `ABC`, `+E`, `-C`.
fn parts(text: &[u8]) -> Result<AuditAct, String> {
    let (sign, letters) = match text {
        [sign @ (b'+' | b'-'), letters @ ..] => (*sign, letters),
        letters => (b'=', letters),
    };
    let known = |letter: &u8| matches!(letter.to_ascii_uppercase(), b'A'..=b'K' | b'Z');
    if letters.is_empty() || !letters.iter().all(known) {
        return Err("ctl:auditLogParts takes letters from A to K and Z, with + or - before them".to_owned());
    }
    let parts = AuditParts::from_letters(letters);
    Ok(match sign {
        b'+' => AuditAct::AddParts(parts),
        b'-' => AuditAct::RemoveParts(parts),
        _ => AuditAct::SetParts(parts),
    })
}

/// `1/4`; nothing means `0/0`.
pub(crate) fn kept_bytes(text: &[u8]) -> Option<(u8, u8)> {
    if text.is_empty() {
        return Some((0, 0));
    }
    let (first, last) = std::str::from_utf8(text).ok()?.split_once('/')?;
    Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
}

/// The text of every link of the rules that run, in the order of the plan's links.
pub(crate) fn rule_texts(entries: &[Entry<'_>]) -> Vec<Box<str>> {
    let running = entries.iter().filter_map(|entry| {
        if let Entry::Rule(draft) = entry
            && draft.removed.is_none()
        {
            Some(draft)
        } else {
            None
        }
    });
    let text = |link: &DraftLink<'_>| {
        let rule =
            ast::Rule { condition: link.condition.as_deref().cloned(), actions: link.actions.to_vec() };
        let directive = Spanned { node: Directive::Rule(rule), span: link.span };
        let text =
            portcullis_seclang::print(&Document { directives: vec![directive], ..Document::default() });
        String::from_utf8_lossy(text.trim_ascii_end()).into()
    };
    running.flat_map(|draft| draft.links.iter().map(text)).collect()
}

/// Decides which bodies and texts must be kept, now that all rules are known, and adds diagnostics for the
/// operator.
pub(crate) fn finish(plan: &mut Plan, document: &Document, diagnostics: &mut Vec<Diagnostic>) {
    let acts = || {
        plan.links
            .iter()
            .flat_map(|link| &link.acts)
            .filter_map(|act| if let Act::Audit(act) = act { Some(act) } else { None })
    };
    let settings = &plan.settings.audit;
    let switched_on =
        |act: &AuditAct| matches!(act, AuditAct::Engine(AuditEngine::On | AuditEngine::RelevantOnly));
    let on = settings.engine != AuditEngine::Off || acts().any(switched_on);
    let parts = acts().fold(settings.parts, |parts, act| {
        if let AuditAct::SetParts(more) | AuditAct::AddParts(more) = act { parts.with(*more) } else { parts }
    });
    let debug = settings.debug_level > 0 || acts().any(|act| matches!(act, AuditAct::DebugLevel(1..)));
    let written = on && settings.log.is_some();
    let reachable = ReachableParts {
        request_body: written && (parts.has(b'C') || parts.has(b'I')),
        response_body: written && parts.has(b'E'),
        rule_text: written && parts.has(b'K'),
        quiet_matches: debug || written && parts.has(b'K'),
    };
    let mut warn = |wanted: fn(&Setting) -> bool, message: &str| {
        let setting = document
            .directives
            .iter()
            .rev()
            .find(|directive| matches!(&directive.node, Directive::Setting(setting) if wanted(setting)));
        if let Some(directive) = setting {
            diagnostics.push(Diagnostic::warning(directive.span, message));
        }
    };
    if on && settings.log.is_none() {
        warn(
            |setting| matches!(setting, Setting::AuditEngine(_)),
            "there is no SecAuditLog, so no audit record is written",
        );
    }
    if settings.log2.is_some() && settings.log_type == AuditLogType::Serial {
        warn(
            |setting| matches!(setting, Setting::AuditLog2(_)),
            "SecAuditLog2 is a second index of concurrent records; with SecAuditLogType Serial it has no effect",
        );
    }
    if debug && settings.debug_log.is_none() {
        warn(
            |setting| matches!(setting, Setting::DebugLogLevel(1..)),
            "there is no SecDebugLog, so no debug log is written",
        );
    }
    plan.settings.audit.reachable = reachable;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stock_status_pattern_means_what_it_says() {
        // Of the setup file that ModSecurity comes with: it looks ahead.
        let set = statuses(b"^(?:5|4(?!04))").unwrap();
        for (status, relevant) in
            [(200, false), (403, true), (404, false), (405, true), (500, true), (304, false)]
        {
            assert_eq!(set.has(status), relevant, "{status}");
        }
        assert!(statuses(b"^5").unwrap().has(502));
        assert!(statuses(b"(").is_err());
    }

    #[test]
    fn parts_are_set_added_and_taken_away() {
        let letters = AuditParts::from_letters;
        assert_eq!(parts(b"ABZ"), Ok(AuditAct::SetParts(letters(b"AB"))));
        assert_eq!(parts(b"+E"), Ok(AuditAct::AddParts(letters(b"E"))));
        assert_eq!(parts(b"-ci"), Ok(AuditAct::RemoveParts(letters(b"CI"))));
        assert!(parts(b"+").is_err() && parts(b"AX").is_err());
    }

    #[test]
    fn kept_bytes_are_two_numbers() {
        assert_eq!(kept_bytes(b""), Some((0, 0)));
        assert_eq!(kept_bytes(b"1/4"), Some((1, 4)));
        assert_eq!(kept_bytes(b"4"), None);
        assert_eq!(kept_bytes(b"1/999"), None);
    }
}
