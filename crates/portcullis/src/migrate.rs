//! `portcullis migrate`: the document and the report that the configuration of another server comes to.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use portcullis_config::Format;
use portcullis_migrate::{Fate, From, Migrated, Options, migrate};

use crate::outcome::{Failure, print};
use crate::{crs, new_file};

/// Arguments of `portcullis migrate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server or WAF that the configuration is of
    #[arg(value_parser = PossibleValuesParser::new(From::ALL.map(From::name)).try_map(|name| from(&name)))]
    from: From,
    /// Its main file or folder; files that it includes are read, too
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The document to write, and the report to standard output; without it the document goes there, and the
    /// report to standard error
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Folder that stands for / in the configuration: a copy of another machine's files
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// Folder of the CRS, where the other program has one built in
    #[arg(long, value_name = "DIR", default_value_t = format!("{}/current", crs::FOLDER))]
    crs: String,
    /// Replace the document if it is there
    #[arg(long)]
    force: bool,
}

fn from(name: &str) -> Result<From, String> {
    From::named(name).ok_or_else(|| format!("unknown configuration {name}"))
}

/// Exit code 1 if the configuration cannot be read or the document not be written.
pub fn run(args: &Args) -> ExitCode {
    match answer(args) {
        Ok(code) => code,
        Err(failure) => failure.exit(),
    }
}

fn answer(args: &Args) -> Result<ExitCode, Failure> {
    if let Some(output) = args.output.as_ref().filter(|output| Format::of(output) != Some(Format::Toml)) {
        return Err(Failure::usage(format_args!(
            "--output {}: the name has to end in .toml",
            output.display()
        )));
    }
    let options = Options { root: args.root.clone(), crs: args.crs.clone().into() };
    let migrated = migrate(args.from, &args.paths, &options).map_err(Failure::failed)?;
    let broken = migrated.report.count(Fate::Broken);
    let code = match &args.output {
        None => {
            // If standard error is closed, nobody wants the report.
            let _ = std::io::stderr().write_all(migrated.report.text().as_bytes());
            print(&migrated.document)
        }
        Some(output) => {
            new_file::write(&migrated.document, output, args.force)?;
            print(&(migrated.report.text() + &next(&migrated, &output.display().to_string())))
        }
    };
    if broken > 0 {
        return Err(Failure::failed(format_args!(
            "{broken} directives that said where the requests of a site go could not be taken over, and nothing else \
             does: the report begins with them"
        )));
    }
    Ok(code)
}

fn next(migrated: &Migrated, output: &str) -> String {
    let open = migrated.report.count(Fate::Changed) + migrated.report.count(Fate::Left);
    let closed = match migrated.report.count(Fate::Closed) {
        0 => String::new(),
        count => format!("What {count} directives guarded is answered 403 until you say who may. "),
    };
    format!(
        "\n{output} is written. {closed}Look through the {open} directives above that have changed or are missing, \
         then:\n  portcullis check {output}\n"
    )
}
