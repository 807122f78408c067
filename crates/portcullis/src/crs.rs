//! `portcullis crs install|list`: releases of the OWASP CRS on this machine.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use portcullis_crs::{CURRENT, Check, Origin, Outcome, Release, Version, installed, known, stage};

use crate::outcome::{Failure, print, warn};

/// Arguments of `portcullis crs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Fetch a release, check it, compile its rules, and let DIR/current lead to it
    Install(Install),
    /// List the releases that are installed, and those that are known
    List {
        /// Folder of the releases
        #[arg(long, value_name = "DIR", default_value = FOLDER)]
        to: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct Install {
    /// Version, such as 4.25.0; by default that of the archive of --from, or the one that Portcullis is
    /// tested with
    #[arg(value_name = "VERSION")]
    release: Option<Version>,
    /// Archive (.tar.gz or .zip) to take, in place of the release that the CRS project offers
    #[arg(long, value_name = "URL|FILE")]
    from: Option<String>,
    /// Folder of the releases: DIR/VERSION, and DIR/current, which leads to the one installed last
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    to: PathBuf,
    /// SHA-256 that the archive must have; needed for releases that Portcullis does not know
    #[arg(long, value_name = "HEX", value_parser = sha256)]
    sha256: Option<String>,
    /// Install it without knowing whether it is genuine
    #[arg(long, conflicts_with = "sha256")]
    insecure_no_check: bool,
}

/// The folder of the releases unless another is named. It belongs to the Debian package.
pub const FOLDER: &str = "/var/lib/portcullis/crs";

/// Exit code 1 if the release cannot be installed, or the folder cannot be read.
pub fn run(args: &Args) -> ExitCode {
    let text = match &args.action {
        Action::Install(install) => answer(install),
        Action::List { to } => list(to),
    };
    match text {
        Ok(text) => print(&text),
        Err(failure) => failure.exit(),
    }
}

fn answer(args: &Install) -> Result<String, Failure> {
    let check = match &args.sha256 {
        Some(sum) => Check::Sha256(sum.clone()),
        None if args.insecure_no_check => Check::Nothing,
        None => Check::Known,
    };
    let wanted = args.release.or(args.from.is_none().then_some(known::PINNED));
    let offered = wanted.unwrap_or(known::PINNED);
    if args.from.is_none() && check == Check::Known && known::release(offered).is_none() {
        return Err(unknown(offered));
    }
    let archive = Origin::of(args.from.as_deref(), offered).read().map_err(Failure::failed)?;
    let release = Release::of_archive(&archive, wanted, &check).map_err(Failure::failed)?;
    if check == Check::Nothing && !release.is_known {
        warn(format_args!("nothing says that CRS {} of this archive is genuine", release.version));
    }
    let outcome = stage(&release, &args.to).map_err(Failure::failed)?;
    Ok(done(&release, &outcome))
}

/// A release that is not known is not downloaded.
fn unknown(version: Version) -> Failure {
    let known: Vec<String> = known::RELEASES.iter().map(|known| known.version.to_string()).collect();
    Failure::usage(format_args!(
        "this program does not know CRS {version}; it knows {}\n  help: verify {} with the signature of the CRS \
         project, then add --sha256 HEX: docs/crs.md",
        known.join(", "),
        known::url(version)
    ))
}

fn done(release: &Release, outcome: &Outcome) -> String {
    let (current, version) = (outcome.current.display(), release.version);
    let how = if outcome.was_there { "was there already" } else { "installed" };
    let mut text = format!(
        "CRS {version} {how}: {} files of rules in {}\n{current} leads to it.\n\n",
        outcome.rule_files,
        outcome.folder.display()
    );
    let _ = writeln!(
        text,
        "In a document, at the site:  mode = \"both\"\n{:29}rules = {{ crs = \"{current}\" }}\nthen `portcullis check \
         FILE` and a reload. Without a document:\n  portcullis run --upstream http://127.0.0.1:8000 --mode both --crs \
         {current}",
        ""
    );
    text
}

fn list(folder: &Path) -> Result<String, Failure> {
    let found = match installed(folder) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(Failure::failed(format_args!("cannot read {}: {error}", folder.display()))),
    };
    let mut text = String::new();
    for one in &found {
        let current = if one.is_current { CURRENT } else { "" };
        let _ =
            writeln!(text, "{:<9} installed  {current:<8} {}", one.version.to_string(), one.folder.display());
    }
    let is_missing = |version: Version| found.iter().all(|one| one.version != version);
    for known in known::RELEASES.iter().filter(|known| is_missing(known.version)) {
        let version = known.version.to_string();
        let _ = writeln!(text, "{version:<9} known               portcullis crs install {version}");
    }
    Ok(text)
}

/// 64 hexadecimal digits.
fn sha256(text: &str) -> Result<String, String> {
    let fits = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let wrong = || "a SHA-256 has 64 hexadecimal digits; `sha256sum FILE` prints it".to_owned();
    fits.then(|| text.to_ascii_lowercase()).ok_or_else(wrong)
}
