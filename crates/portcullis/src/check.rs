//! `portcullis check PATH...`: every mistake of rule files and configuration documents, in one go; or, with
//! the flags of `run`, those of the policy that they stand for.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use portcullis_config::{Format, Mode, Policy, Survey};
use portcullis_load::{LoadError, Loaded, load, load_roots};
use portcullis_seclang::Root;

use crate::checked::{self, Checked};
use crate::outcome::{FAILED, usage_error};
use crate::policy_args::PolicyArgs;
use crate::rule_files;

/// Arguments of `portcullis check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rule files, folders of *.conf files, a CRS folder (all read as one set, in this order), or
    /// configuration documents (.toml, .yaml), each with the rules that it names
    #[arg(value_name = "PATH", required_unless_present_any = POLICY, conflicts_with_all = POLICY)]
    paths: Vec<PathBuf>,
    /// Take warnings for errors
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    policy: PolicyArgs,
}

/// The flags by which a policy is named as `run` has them.
const POLICY: [&str; 8] = ["config", "mode", "level", "crs", "paranoia", "detect_only", "setup", "rules"];

/// Numbers of mistakes.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    errors: usize,
    warnings: usize,
}

/// Shows the mistakes on standard output. Exit code 1 if there is an error, 2 if a path does not exist.
pub fn run(args: &Args) -> ExitCode {
    if args.paths.is_empty() {
        return match args.policy.policy() {
            Ok(policy) => done(check_policy(&policy), args.strict),
            Err(failure) => failure.exit(),
        };
    }
    let (documents, rules): (Vec<&PathBuf>, Vec<&PathBuf>) =
        args.paths.iter().partition(|path| Format::of(path).is_some());
    let mut roots = Vec::new();
    for path in rules {
        match rule_files::of_path(path) {
            Ok(more) => roots.extend(more),
            Err(missing) => return usage_error(missing),
        }
    }
    for path in &documents {
        match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return usage_error(format_args!("there is no file {}", path.display()));
            }
            Err(error) => return usage_error(format_args!("cannot read {}: {error}", path.display())),
            Ok(_) => {}
        }
    }
    done(check(&documents, &roots), args.strict)
}

fn done(result: io::Result<Count>, strict: bool) -> ExitCode {
    match result {
        Ok(count) if count.errors > 0 || (strict && count.warnings > 0) => ExitCode::from(FAILED),
        Ok(_) => ExitCode::SUCCESS,
        // A reader that has seen enough and closed the pipe.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(FAILED),
        Err(error) => usage_error(format_args!("cannot write to standard output: {error}")),
    }
}

/// One policy with its rules.
fn check_policy(policy: &Policy) -> io::Result<Count> {
    let out = &mut io::BufWriter::new(io::stdout().lock());
    let mut total = Count::default();
    let mode = match policy.mode {
        Mode::Crs => "mode crs: ".to_owned(),
        Mode::Semantic => format!("mode semantic, level {}: ", policy.level.name()),
        Mode::Both => format!("mode both, level {}: ", policy.level.name()),
    };
    rule_set(out, &mode, load(policy), &mut total)?;
    out.flush()?;
    Ok(total)
}

fn check(documents: &[&PathBuf], roots: &[Root]) -> io::Result<Count> {
    let out = &mut io::BufWriter::new(io::stdout().lock());
    let mut total = Count::default();
    for path in documents {
        document(out, path, &mut total)?;
    }
    if !roots.is_empty() {
        rule_set(out, "", load_roots(roots), &mut total)?;
    }
    out.flush()?;
    Ok(total)
}

/// A configuration document, the files that it names, and the rules of its policies.
fn document(out: &mut impl Write, path: &Path, total: &mut Count) -> io::Result<()> {
    let name = path.display();
    let survey = match Survey::of_file(path) {
        Ok(survey) => survey,
        Err(error) => {
            let errors = error.mistakes().len();
            total.errors += errors;
            return writeln!(out, "{error}\n\n{name}: {}", of("error", errors));
        }
    };
    let Checked { mistakes, warnings, sites, sets } = checked::document(&survey);
    for shown in mistakes.iter().chain(&warnings) {
        writeln!(out, "{shown}")?;
    }
    total.errors += mistakes.len();
    total.warnings += warnings.len();
    let (sites, count) = (of("site", sites), of("set", sets.len()));
    let (errors, warnings) = (of("error", mistakes.len()), of("warning", warnings.len()));
    writeln!(out, "{name}: {sites}, {count} of rules, {errors}, {warnings}")?;
    for (i, set) in sets.into_iter().enumerate() {
        rule_set(out, &format!("{name}, rules {}: ", i + 1), set, total)?;
    }
    Ok(())
}

/// Rule texts that load together.
fn rule_set(
    out: &mut impl Write,
    label: &str,
    result: Result<Loaded, LoadError>,
    total: &mut Count,
) -> io::Result<()> {
    match result {
        Ok(loaded) => {
            for shown in loaded.warnings.iter().chain(&loaded.notes) {
                writeln!(out, "{shown}")?;
            }
            let (files, rules) = (loaded.sources.files().count(), loaded.plan.rules.len());
            let (files, rules) = (of("file", files), of("rule", rules));
            let warnings = loaded.warnings.len();
            total.warnings += warnings;
            writeln!(out, "{label}{files}, {rules}, 0 errors, {}", of("warning", warnings))
        }
        Err(LoadError::Rules { errors, report }) => {
            total.errors += errors;
            writeln!(out, "{report}\n{label}{}", of("error", errors))
        }
        Err(error @ LoadError::Api { errors, .. }) => {
            total.errors += errors;
            writeln!(out, "{error}\n\n{label}{}", of("error", errors))
        }
        Err(error @ LoadError::NoCrs { .. }) => {
            total.errors += 1;
            writeln!(out, "{label}{error}")
        }
    }
}

/// `1 file`, `2 files`.
fn of(noun: &str, n: usize) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
