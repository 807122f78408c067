//! Access logs: one of the files that are open, and the form of its lines.

use std::path::PathBuf;

use portcullis_config::AccessLogFormat;
use portcullis_event::{AccessRecord, Redactor};

use crate::StartError;
use crate::services::Services;

/// An access log of a site.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessLog {
    /// The index of the file among those that were opened at the start.
    file: usize,
    format: AccessLogFormat,
}

impl AccessLog {
    pub(crate) fn build(
        settings: Option<&portcullis_config::AccessLog>,
        files: &[PathBuf],
    ) -> Result<Option<AccessLog>, StartError> {
        let Some(settings) = settings else { return Ok(None) };
        let file = files.iter().position(|file| *file == settings.file).ok_or_else(|| {
            let file = settings.file.display();
            StartError::new(format!("the access log {file} is new: restart to open it"))
        })?;
        Ok(Some(AccessLog { file, format: settings.format }))
    }

    /// Hands a line on; nobody waits for it.
    pub(crate) fn write(self, record: &AccessRecord<'_>, redactor: &Redactor, services: &Services) {
        let line = match self.format {
            AccessLogFormat::Json => record.json_line(redactor),
            AccessLogFormat::Combined => record.combined_line(redactor),
        };
        (services.on_access)(self.file, line);
    }
}
