//! `portcullis replay`: what another document would decide on requests that were stored or saved.

mod requests;
mod side;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use crate::cli::{Failure, print};
use requests::{Recorded, Request};
use side::{Side, Verdict};

/// Arguments of `portcullis replay`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files with requests: a raw request (any name), JSON lines (.jsonl: `request` or `request_base64`, and
    /// `id`, `site`, `route`, `client` if known), an archive of a browser (.har)
    #[arg(value_name = "FILE", required_unless_present = "data", conflicts_with = "data")]
    files: Vec<PathBuf>,
    /// The requests that are kept in this data folder
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Events whose requests are taken, as a filter
    #[arg(long, value_name = "FILTER", default_value = "time >= -7d", requires = "data")]
    events: String,
    /// The newest requests that are taken, at most
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
    /// The document that is tried
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The document that it is compared with; without it, what was recorded, or nothing for files
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// The site of requests of which it is not known; needed if the document has several
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
    /// As JSON, one changed request a line and the counts last
    #[arg(long)]
    json: bool,
}

/// Exit code 1 if a request that was stopped would pass, 2 if a document or the requests cannot be read.
pub fn run(args: &Args) -> ExitCode {
    match compare(args) {
        Ok(Found { text, lost }) => {
            let printed = print(&text);
            if lost > 0 { ExitCode::FAILURE } else { printed }
        }
        Err(failure) => failure.exit(),
    }
}

/// The result of a comparison.
struct Found {
    text: String,
    lost: usize,
}

#[derive(Default)]
struct Counts {
    requests: usize,
    stopped: usize,
    lost: usize,
    new: usize,
    not_inspected: usize,
    incomplete: usize,
}

fn compare(args: &Args) -> Result<Found, Failure> {
    let requests = match &args.data {
        Some(data) => requests::of_store(data, &args.events, args.limit as usize)?,
        None => requests::of_files(&args.files, args.limit as usize)?,
    };
    let mut after = Side::new(&args.config, args.site.as_deref())?;
    let mut before = args.against.as_ref().map(|path| Side::new(path, args.site.as_deref())).transpose()?;
    let (mut text, mut counts) = (String::new(), Counts::default());
    for request in &requests {
        counts.requests += 1;
        counts.incomplete += usize::from(request.omitted > 0);
        let now = after.verdict(request)?;
        let then = match &mut before {
            Some(side) => Some(side.verdict(request)?),
            None => request.recorded.map(|recorded| match recorded {
                Recorded::Stopped => Verdict::Stopped("recorded".to_owned()),
                Recorded::Passed => Verdict::Passed,
            }),
        };
        counts.stopped += usize::from(now.is_stopped());
        counts.not_inspected += usize::from(matches!(now, Verdict::NotInspected));
        let change = match (then.as_ref().map(Verdict::is_stopped), now.is_stopped()) {
            (Some(true), false) => {
                counts.lost += 1;
                "lost"
            }
            (Some(false), true) => {
                counts.new += 1;
                "new"
            }
            (None, true) => "stopped",
            _ => continue,
        };
        tell(&mut text, args.json, change, request, then.as_ref(), &now);
    }
    let Counts { requests, stopped, lost, new, not_inspected, incomplete } = counts;
    if args.json {
        let counts = json!({
            "requests": requests, "stopped": stopped, "lost": lost, "new": new,
            "not_inspected": not_inspected, "incomplete": incomplete,
        });
        let _ = writeln!(text, "{counts}");
    } else {
        let _ = writeln!(
            text,
            "{requests} requests: {stopped} stopped; {lost} that were stopped would pass, {new} that passed would be stopped"
        );
        if not_inspected > 0 {
            let _ = writeln!(text, "{not_inspected} belong to no route that is inspected");
        }
        if incomplete > 0 {
            let _ = writeln!(text, "of {incomplete} the end of the body was not kept");
        }
    }
    Ok(Found { text, lost })
}

fn tell(
    text: &mut String,
    as_json: bool,
    change: &str,
    request: &Request,
    then: Option<&Verdict>,
    now: &Verdict,
) {
    let line = request.line();
    let why = match (change, then) {
        ("lost", Some(then)) => then.reason(),
        _ => now.reason(),
    };
    let _ = match as_json {
        true => {
            let Request { id, site, client, .. } = request;
            let told = json!({
                "change": change, "id": id, "site": site, "client": client.ip(), "request": line, "reason": why,
            });
            writeln!(text, "{told}")
        }
        false => writeln!(text, "{change:<8}{}  {line}  {why}", request.id),
    };
}
