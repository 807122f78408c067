//! Man pages and shell completions, made of the command line itself: `portcullis generate man|completions
//! DIR` for packages, `portcullis completions SHELL` for those who build the program.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Command, Subcommand};
use clap_complete::Shell;

use crate::outcome::{Failure, print};

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

/// Arguments of `portcullis completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// bash, zsh or fish
    #[arg(value_name = "SHELL", value_parser = ["bash", "zsh", "fish"])]
    shell: String,
}

/// Prints the completions of `program` for a shell.
pub fn print_completions(args: &CompletionsArgs, mut program: Command) -> ExitCode {
    let shell = match args.shell.as_str() {
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        _ => Shell::Bash,
    };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut program, "portcullis", &mut text);
    print(&String::from_utf8_lossy(&text))
}

/// Exit code 1 if a file cannot be written.
pub fn run(args: &Args, program: Command) -> ExitCode {
    let (What::Man { folder } | What::Completions { folder }) = &args.what;
    let written = std::fs::create_dir_all(folder).and_then(|()| match &args.what {
        What::Man { .. } => clap_mangen::generate_to(program, folder),
        What::Completions { .. } => completions(program, folder),
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Failure::failed(format_args!("cannot write to {}: {error}", folder.display())).exit(),
    }
}

fn completions(mut program: Command, folder: &Path) -> io::Result<()> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut program, "portcullis", folder)?;
    }
    Ok(())
}
