//! From the `SecAudit...` and `SecDebug...` directives of a policy to files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use portcullis_audit::{Form, Record};
use portcullis_config::AuditLogLimits;
use portcullis_engine::{AuditLogFormat, AuditLogType, Settings};
use portcullis_inspect::{AuditSink, Inspector};
use portcullis_log::{AuditConfig, AuditLimits, AuditLog, AuditSender, QueueLimits, StartError};
use portcullis_metrics::Registry;

/// Permissions where the rules say nothing, as in ModSecurity.
const DIR_MODE: u32 = 0o750;
const FILE_MODE: u32 = 0o640;

/// The audit log of the process.
pub struct Audit {
    log: AuditLog,
    registry: Arc<Registry>,
}

impl Audit {
    pub fn new(limits: AuditLogLimits, registry: &Arc<Registry>) -> Audit {
        let limits = AuditLimits {
            queue: QueueLimits {
                events_max: AuditLimits::default().queue.events_max,
                bytes_max: usize::try_from(limits.queue_bytes_max).unwrap_or(usize::MAX),
            },
            rotate_at_bytes: limits.rotate_at_bytes,
            files_max: limits.files_max,
            stored_bytes_max: limits.stored_bytes_max,
        };
        Audit { log: AuditLog::new(limits, registry), registry: Arc::clone(registry) }
    }

    /// `inspector` with the logs that its rules ask for, their files opened.
    pub fn attach(&self, inspector: Inspector) -> Result<Inspector, StartError> {
        let config = config(&inspector.plan().settings);
        if config.log.is_none() && config.debug_log.is_none() {
            return Ok(inspector);
        }
        let sender = self.log.open(&config, &self.registry)?;
        Ok(inspector.with_audit(Arc::new(Sink(sender))))
    }

    /// After `logrotate`.
    pub fn reopen(&self) {
        self.log.reopen();
    }

    /// Writes what is left. Returns how much was lost.
    pub fn shutdown(&self, deadline: Duration) -> u64 {
        self.log.shutdown(deadline)
    }
}

#[derive(Debug)]
struct Sink(AuditSender);

impl AuditSink for Sink {
    fn record(&self, record: Record) {
        self.0.record(record);
    }

    fn debug(&self, lines: String) {
        self.0.debug(lines);
    }
}

/// The files that these settings of rules ask for, and their form.
pub fn config(settings: &Settings) -> AuditConfig {
    let (settings, modsecurity3) = (&settings.audit, settings.modsecurity3);
    let path = |bytes: &Option<Vec<u8>>| {
        bytes.as_deref().map(|bytes| PathBuf::from(String::from_utf8_lossy(bytes).into_owned()))
    };
    let log = path(&settings.log);
    let concurrent = settings.log_type == AuditLogType::Concurrent;
    // As in ModSecurity 2: without a folder, beside the index.
    let beside = || log.as_deref().and_then(Path::parent).map(Path::to_owned);
    AuditConfig {
        form: match settings.format {
            AuditLogFormat::Native => Form::Native,
            AuditLogFormat::Json if modsecurity3 => Form::Json3,
            AuditLogFormat::Json | AuditLogFormat::JsonLegacy => Form::Json,
        },
        storage: path(&settings.storage_dir).or_else(beside).filter(|_| concurrent),
        log2: path(&settings.log2).filter(|_| concurrent),
        log,
        dir_mode: settings.dir_mode.unwrap_or(DIR_MODE),
        file_mode: settings.file_mode.unwrap_or(FILE_MODE),
        debug_log: path(&settings.debug_log),
    }
}
