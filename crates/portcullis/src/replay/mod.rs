//! `portcullis replay`: what another document would decide on requests that were stored or saved.

mod compare;
pub mod requests;
mod side;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use crate::outcome::{Failure, print};
pub use compare::{Change, Counts, compare};
pub use requests::Request;
pub use side::Side;

/// Arguments of `portcullis replay`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files with requests: a raw request (any name), JSON lines (.jsonl: `request` or `request_base64`, and
    /// `id`, `site`, `route`, `client` if known), an archive of a browser (.har)
    #[arg(value_name = "FILE", required_unless_present = "data", conflicts_with = "data")]
    files: Vec<PathBuf>,
    /// The requests that are kept in this data folder, with events and as a sample of those that passed
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
    match replay(args) {
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

fn replay(args: &Args) -> Result<Found, Failure> {
    let requests = match &args.data {
        Some(data) => requests::of_store(data, &args.events, args.limit as usize)?,
        None => requests::of_files(&args.files, args.limit as usize)?,
    };
    let mut after = Side::new(&args.config, args.site.as_deref())?;
    let mut before = args.against.as_ref().map(|path| Side::new(path, args.site.as_deref())).transpose()?;
    let mut text = String::new();
    let mut told =
        |change: Change, request: &Request, why: &str| tell(&mut text, args.json, change, request, why);
    let counts = compare(&requests, &mut after, before.as_mut(), None, &mut told)?;
    let Counts { requests, stopped, lost, new, not_inspected, incomplete, untried: _ } = counts;
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

fn tell(text: &mut String, as_json: bool, change: Change, request: &Request, why: &str) {
    let (line, change) = (request.line(), change.name());
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
