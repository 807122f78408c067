//! The audit log and the debug log of a rule set.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use portcullis_audit::Record;
use portcullis_engine::Settings;
use portcullis_inspect::AuditSink;
use portcullis_log::{AuditConfig, AuditLimits, DirectAudit, OpenFiles, StartError};

/// Losses after which another one is reported.
const TOLD_EACH: u64 = 1000;

/// The logs that the rules ask for.
#[derive(Debug)]
pub(crate) struct Logs {
    files: DirectAudit,
    lost: AtomicU64,
}

impl Logs {
    /// Opens them; none if the rules ask for none.
    pub(crate) fn open(settings: &Settings, open: &OpenFiles) -> Result<Option<Logs>, StartError> {
        let config = AuditConfig::of_rules(settings);
        if config.log.is_none() && config.debug_log.is_none() {
            return Ok(None);
        }
        // The folder of concurrent records is bounded by each process by itself.
        let files = DirectAudit::open(config, AuditLimits::default(), open)?;
        Ok(Some(Logs { files, lost: AtomicU64::new(0) }))
    }

    /// Opens files anew that were moved away.
    pub(crate) fn follow(&self) -> io::Result<()> {
        self.files.follow()
    }

    /// Tells on standard error, which servers have in their error log, that a record or lines were lost.
    fn check(&self, result: io::Result<()>) {
        let Err(error) = result else { return };
        let lost = self.lost.fetch_add(1, Ordering::Relaxed) + 1;
        if lost % TOLD_EACH == 1 {
            let _ = writeln!(
                io::stderr(),
                "portcullis: the audit or debug log fails: {error}; {lost} record(s) lost by this process so far"
            );
        }
    }
}

impl AuditSink for Logs {
    fn record(&self, record: Record) {
        self.check(self.files.record(&record));
    }

    fn debug(&self, lines: String) {
        self.check(self.files.debug(&lines));
    }
}
