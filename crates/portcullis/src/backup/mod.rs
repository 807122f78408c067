//! `portcullis backup` and `portcullis restore`: all that an instance keeps on disk, in one file.
//!
//! ```text
//!  archive (tar, nothing in it is compressed by it, so nothing of it grows):
//!    manifest.json     format, version, program, and of each file: its path, bytes, SHA-256
//!    manifest.sha256   of the manifest
//!    files/000000 ...  the files, in the order of the manifest
//! ```
//!
//! Names in the tar are ours alone: where a file goes is in the manifest, and checked there.

mod manifest;
mod read;
mod sum;
mod write;

use std::path::PathBuf;
use std::process::ExitCode;

use portcullis_config::Config;

use crate::data_folder;
use crate::outcome::{Failure, print};
use read::Target;
use write::Source;

/// Arguments of `portcullis backup`.
#[derive(Debug, clap::Args)]
pub struct BackupArgs {
    /// The file to write; it must not be there yet
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Back up what this document names: itself, its data folder, the state of ACME
    #[arg(long, value_name = "DOCUMENT", required_unless_present = "data")]
    config: Option<PathBuf>,
    /// Back up this data folder; takes the place of `data.folder` of the document
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Arguments of `portcullis restore`.
#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// The file that `portcullis backup` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The data folder to make; it must be missing or empty
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Write the document of the backup here, where nothing is yet
    #[arg(long, value_name = "DOCUMENT")]
    config: Option<PathBuf>,
    /// The folder to make of the state of ACME; it must be missing or empty
    #[arg(long, value_name = "DIR")]
    acme: Option<PathBuf>,
}

/// Exit code 1 if something could not be copied.
pub fn backup(args: &BackupArgs) -> ExitCode {
    match try_backup(args) {
        Ok(text) => print(&text),
        Err(failure) => failure.exit(),
    }
}

fn try_backup(args: &BackupArgs) -> Result<String, Failure> {
    let config = args.config.as_deref().map(Config::from_file).transpose().map_err(Failure::failed)?;
    let named = config.as_ref().and_then(|config| config.data.clone());
    let data = args
        .data
        .clone()
        .or(named)
        .ok_or_else(|| Failure::usage("the document names no data folder: name it with --data DIR"))?;
    if !data_folder::is_ours(&data) {
        return Err(Failure::failed(format_args!(
            "--data {}: this is no data folder of Portcullis, so there is nothing to back up",
            data.display()
        )));
    }
    let acme = config.and_then(|config| config.acme).map(|acme| acme.state);
    let source = Source { data, document: args.config.clone(), acme };
    let done = write::archive(&source, &args.file).map_err(Failure::failed)?;
    Ok(format!(
        "{}: {} files, {} bytes\nIt holds secrets: hashes of passwords and tokens, secrets of one-time codes, private keys, \
         requests with what people sent. Its mode is 0600; it is not encrypted.\n",
        args.file.display(),
        done.files,
        done.bytes
    ))
}

/// Exit code 1 if the archive is damaged, or a place is not empty; then nothing is left behind.
pub fn restore(args: &RestoreArgs) -> ExitCode {
    let target = Target { data: args.data.clone(), document: args.config.clone(), acme: args.acme.clone() };
    match read::archive(&args.file, &target) {
        Ok(done) => {
            let mut text = format!("{}: {} files of {}\n", args.data.display(), done.files, done.created);
            for (part, flag) in done.left_out {
                text.push_str(&format!(
                    "not restored: the {part} of the backup; name its place with {flag}\n"
                ));
            }
            print(&text)
        }
        Err(error) => Failure::failed(format_args!("{}: {error}", args.file.display())).exit(),
    }
}
