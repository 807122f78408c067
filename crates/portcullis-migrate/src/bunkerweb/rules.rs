//! Whether a service is inspected, and by which rules.

use super::service::yes;
use super::{Context, Custom};
use crate::model::{Engine, RuleKind, RuleSource, Settings};

/// ModSecurity is on unless it is switched off, and so is the CRS.
pub(crate) fn read(service: &str, settings: &mut Settings, cx: &mut Context<'_>) {
    let on = yes(service, "USE_MODSECURITY", true, "whether requests are inspected", cx);
    let with_crs = yes(service, "USE_MODSECURITY_CRS", true, "whether the CRS is there", cx);
    settings.waf.on = on;
    if !on {
        return;
    }
    // A configuration without it has it all the same: the setting of the hosts stands for it then.
    let said = ["USE_MODSECURITY_CRS", "USE_MODSECURITY", "SERVER_NAME"];
    let entry = said.iter().find_map(|name| cx.variables.of(service, name)).map(|(_, entry)| entry);
    let of_service: Vec<Custom> = cx
        .custom
        .iter()
        .filter(|custom| custom.service.is_empty() || custom.service == service)
        .cloned()
        .collect();
    let source = |custom: &Custom| RuleSource { kind: custom.kind.clone(), entry: custom.entry };
    let waf = &mut settings.waf;
    waf.rules.extend(of_service.iter().filter(|custom| custom.before).map(source));
    if let (true, Some(entry)) = (with_crs, entry) {
        waf.rules.push(RuleSource { kind: RuleKind::Crs, entry });
    }
    waf.rules.extend(of_service.iter().filter(|custom| !custom.before).map(source));
    for (name, directive) in [
        ("MODSECURITY_SEC_AUDIT_ENGINE", "SecAuditEngine"),
        ("MODSECURITY_SEC_AUDIT_LOG_PARTS", "SecAuditLogParts"),
        ("MODSECURITY_REQ_BODY_NO_FILES_LIMIT", "SecRequestBodyNoFilesLimit"),
    ] {
        if let Some((value, entry)) = cx.variables.of(service, name).filter(|(value, _)| is_word(value)) {
            waf.rules.push(RuleSource { kind: RuleKind::Inline(format!("{directive} {value}")), entry });
        }
    }
    if let Some((_, entry)) = cx.variables.of(service, "MODSECURITY_CRS_VERSION") {
        cx.ledger.changed(entry, format!("the release of the CRS in {}", cx.reading.crs));
    }
    let engine = cx.variables.of(service, "MODSECURITY_SEC_RULE_ENGINE");
    waf.engine = Some(Engine::Blocking);
    if let Some((value, entry)) = engine {
        match value {
            "DetectionOnly" => waf.engine = Some(Engine::DetectionOnly),
            "Off" => waf.on = false,
            _ => {}
        }
        cx.ledger.taken(entry, "engine");
    }
    if let Some((value, entry)) = cx.variables.of(service, "SECURITY_MODE") {
        if value == "detect" {
            waf.engine = Some(Engine::DetectionOnly);
        }
        cx.ledger.taken(entry, "engine");
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
