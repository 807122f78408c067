//! Uploaded files that are kept: which ones, and under which names. The caller writes them.

use std::path::PathBuf;
use std::sync::Arc;

use portcullis_values::Class;

use crate::scalars::civil;
use crate::transaction::Transaction;

/// `SecUploadKeepFiles`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepFiles {
    /// None.
    #[default]
    Off,
    /// All.
    On,
    /// Those of transactions with a match that is worth an audit record.
    RelevantOnly,
}

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// The folder to write it to.
    pub folder: Arc<PathBuf>,
    /// Its name there. Nothing of it is the client's.
    pub name: String,
    /// Permission bits.
    pub mode: u32,
    /// The content of the file.
    pub content: Vec<u8>,
}

/// Longest part of an id in a file name, in bytes.
const ID_BYTES_MAX: usize = 96;

/// An id as part of a file name. Servers may take ids from clients.
fn name_part(id: &[u8]) -> String {
    let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'@' | b'.');
    let bytes = id.iter().take(ID_BYTES_MAX);
    bytes.map(|&byte| if is_harmless(byte) { char::from(byte) } else { '_' }).collect()
}

impl Transaction {
    /// Files get names with this secret in them, so that no client can guess them. Without it, or where files
    /// are not kept, they have none (`FILES_TMPNAMES`).
    pub fn name_files(&mut self, secret: [u8; 16]) {
        let settings = &self.plan.settings;
        let (KeepFiles::On | KeepFiles::RelevantOnly, Some(folder)) =
            (settings.keep_files, &settings.upload_folder)
        else {
            return;
        };
        let (days, second) =
            (self.message.epoch_seconds.div_euclid(86_400), self.message.epoch_seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let id = self
            .message
            .store
            .scalar(portcullis_types::Variable::UniqueId)
            .map(|id| self.message.store.data(id));
        let id = id.map_or(String::new(), |id| name_part(self.message.store.text(id)));
        let secret: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{id}-file-{secret}");
        self.message.body.name_files(folder.join(name).to_string_lossy().into_owned());
    }

    /// The files to keep; those without content are not. Call it once the transaction is finished.
    pub fn kept_files(&self) -> Vec<KeptFile> {
        let settings = &self.plan.settings;
        let wanted = match settings.keep_files {
            KeepFiles::Off => false,
            KeepFiles::On => true,
            KeepFiles::RelevantOnly => self.matches().iter().any(|found| found.audit_log),
        };
        let Some(folder) = settings.upload_folder.as_ref().filter(|_| wanted) else { return Vec::new() };
        let names = self.message.store.class(Class::FilesTmpNames);
        let contents = self.message.store.class(Class::FilesTmpContent);
        let text = |value| self.message.store.text(self.message.store.data(value));
        let files =
            names.zip(contents).filter(|(_, content)| !text(*content).is_empty()).map(|(name, content)| {
                let path = PathBuf::from(String::from_utf8_lossy(text(name)).into_owned());
                KeptFile {
                    folder: Arc::clone(folder),
                    name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                    mode: settings.upload_file_mode,
                    content: text(content).to_vec(),
                }
            });
        files.collect()
    }
}
