//! From the `SecAudit...` and `SecDebug...` directives of rules to files.

use std::path::{Path, PathBuf};

use portcullis_audit::Format;
use portcullis_engine::{AuditLogFormat, AuditLogType, Settings};

use crate::AuditConfig;

/// Permissions where the rules say nothing, as in ModSecurity.
const DIR_MODE: u32 = 0o750;
const FILE_MODE: u32 = 0o640;

impl AuditConfig {
    /// The files that these settings of rules ask for, and their form.
    pub fn of_rules(settings: &Settings) -> AuditConfig {
        let (settings, modsecurity3) = (&settings.audit, settings.modsecurity3);
        let path = |bytes: &Option<Vec<u8>>| {
            bytes.as_deref().map(|bytes| PathBuf::from(String::from_utf8_lossy(bytes).into_owned()))
        };
        let log = path(&settings.log);
        let concurrent = settings.log_type == AuditLogType::Concurrent;
        // As in ModSecurity 2: without a folder, beside the index.
        let beside = || log.as_deref().and_then(Path::parent).map(Path::to_owned);
        AuditConfig {
            format: match settings.format {
                AuditLogFormat::Native if modsecurity3 => Format::Native3,
                AuditLogFormat::Native => Format::Native,
                AuditLogFormat::Json if modsecurity3 => Format::Json3,
                AuditLogFormat::Json | AuditLogFormat::JsonLegacy => Format::Json,
            },
            storage: path(&settings.storage_dir).or_else(beside).filter(|_| concurrent),
            log2: path(&settings.log2).filter(|_| concurrent),
            log,
            dir_mode: settings.dir_mode.unwrap_or(DIR_MODE),
            file_mode: settings.file_mode.unwrap_or(FILE_MODE),
            debug_log: path(&settings.debug_log),
        }
    }
}
