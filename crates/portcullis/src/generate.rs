//! `portcullis generate man|completions DIR`, for packages: man pages and shell completions, made of the
//! command line itself. Hidden from the help, since packages bring the files.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, Subcommand};
use clap_complete::Shell;

use crate::cli::{Cli, Failure};

/// Arguments of `portcullis generate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Write a man page for each command
    Man {
        /// Folder to write to; made if it is missing
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Write completions for bash, zsh and fish
    Completions {
        /// Folder to write to; made if it is missing
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Exit code 1 if a file cannot be written.
pub fn run(args: &Args) -> ExitCode {
    let (What::Man { folder } | What::Completions { folder }) = &args.what;
    let written = std::fs::create_dir_all(folder).and_then(|()| match &args.what {
        What::Man { .. } => clap_mangen::generate_to(Cli::command(), folder),
        What::Completions { .. } => completions(folder),
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Failure::failed(format_args!("cannot write to {}: {error}", folder.display())).exit(),
    }
}

fn completions(folder: &Path) -> io::Result<()> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Cli::command(), "portcullis", folder)?;
    }
    Ok(())
}
