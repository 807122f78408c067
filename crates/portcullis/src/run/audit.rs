//! From the `SecAudit...` and `SecDebug...` directives of a policy to files.

use std::sync::Arc;
use std::time::Duration;

use portcullis_audit::Record;
use portcullis_config::AuditLogLimits;
use portcullis_inspect::{AuditSink, Inspector};
use portcullis_log::{AuditConfig, AuditLimits, AuditLog, AuditSender, QueueLimits, StartError};
use portcullis_metrics::Registry;

/// The audit log of the process.
pub struct Audit {
    log: AuditLog,
    registry: Arc<Registry>,
    shows_secrets: bool,
}

impl Audit {
    pub fn new(limits: AuditLogLimits, registry: &Arc<Registry>) -> Audit {
        let shows_secrets = limits.shows_secrets;
        let limits = AuditLimits {
            queue: QueueLimits {
                events_max: AuditLimits::default().queue.events_max,
                bytes_max: usize::try_from(limits.queue_bytes_max).unwrap_or(usize::MAX),
            },
            rotate_at_bytes: limits.rotate_at_bytes,
            files_max: limits.files_max,
            stored_bytes_max: limits.stored_bytes_max,
        };
        Audit { log: AuditLog::new(limits, registry), registry: Arc::clone(registry), shows_secrets }
    }

    /// `inspector` with the logs that its rules ask for, their files opened.
    pub fn attach(&self, inspector: Inspector) -> Result<Inspector, StartError> {
        let config = AuditConfig::of_rules(&inspector.plan().settings);
        if config.log.is_none() && config.debug_log.is_none() {
            return Ok(inspector);
        }
        let sender = self.log.open(&config, &self.registry)?;
        Ok(inspector.with_audit(Arc::new(Sink(sender)), self.shows_secrets))
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
