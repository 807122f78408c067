//! `portcullis explain FILE.http`: one request, and the response to it, offline, and why it would be blocked
//! or let through.

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use portcullis_engine::{Plan, RuleIndex};
use portcullis_event::{Redactor, Timestamp};
use portcullis_exchange::LocalTime;
use portcullis_http::h1::ResponseHead;
use portcullis_inspect::Inspector;
use portcullis_replay::{Exchange, Message, parse_response, read_message};
use portcullis_store::Store;

use crate::outcome::{Failure, print};
use crate::policy_args::PolicyArgs;
use portcullis_load::SharedDetectors;

/// A file larger than this is refused.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Arguments of `portcullis explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File with one raw request: head, empty line, body; - for standard input
    #[arg(value_name = "FILE.http")]
    file: PathBuf,
    /// File with its response: head, empty line, body
    #[arg(long, value_name = "FILE.http")]
    response: Option<PathBuf>,
    #[command(flatten)]
    policy: PolicyArgs,
    /// The client's address
    #[arg(long, value_name = "ADDR:PORT", default_value = "192.0.2.1:50000")]
    client: SocketAddr,
    /// Answer to a DNS lookup of a rule (@rbl): NAME=ADDRESS, may be given several times; no DNS server is
    /// asked
    #[arg(long, value_name = "NAME=ADDRESS", value_parser = dns_answer)]
    dns: Vec<(String, Ipv4Addr)>,
    /// Show every rule that matched, also those that neither log nor score
    #[arg(long)]
    all: bool,
    /// Also show what the rule with this id saw, or why it did not run
    #[arg(long, value_name = "ID")]
    rule: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the explanation. Exit code 0 whatever the verdict, 1 if the rules do not load.
pub fn run(args: &Args) -> ExitCode {
    match explain(args) {
        Ok(text) => print(&text),
        Err(failure) => failure.exit(),
    }
}

fn dns_answer(text: &str) -> Result<(String, Ipv4Addr), String> {
    let (name, address) = text.split_once('=').ok_or("write NAME=ADDRESS")?;
    let address = address.parse().map_err(|_| format!("{address} is not an IPv4 address"))?;
    Ok((name.trim_end_matches('.').to_ascii_lowercase(), address))
}

fn explain(args: &Args) -> Result<String, Failure> {
    let request = read_message(&read(&args.file)?);
    let response = args.response.as_deref().map(response).transpose()?;
    let policy = args.policy.policy()?;
    let plan = portcullis_load::load(&policy).map_err(Failure::failed)?.plan;
    let watched = args.rule.map(|id| find(&plan, id)).transpose()?;
    let inspector = Inspector::new(plan, Arc::new(Redactor::none()), Arc::new(Store::default()));
    let inspector = SharedDetectors::default().attach(inspector, &policy).map_err(Failure::failed)?;
    let epoch_millis = Timestamp::from(SystemTime::now()).epoch_millis();
    let utc_offset_seconds = LocalTime::of_process().utc_offset_seconds((epoch_millis / 1000) as i64);
    let (client, dns) = (args.client, &args.dns);
    let exchange = Exchange { request, response, client, dns, epoch_millis, utc_offset_seconds };
    let mut explanation = portcullis_replay::explain(&inspector, exchange, watched);
    if !args.all {
        explanation = explanation.without_bookkeeping();
    }
    if args.json {
        let json = serde_json::to_string_pretty(&explanation).map_err(Failure::failed)?;
        return Ok(json + "\n");
    }
    Ok(explanation.to_text())
}

/// The rule with this id, if `plan` has it.
pub fn rule(plan: &Plan, id: u32) -> Option<RuleIndex> {
    let place = plan.rules.iter().position(|rule| rule.id.0 == id)?;
    u32::try_from(place).ok().map(RuleIndex)
}

/// The rule with this id, or the reason why there is none.
fn find(plan: &Plan, id: u32) -> Result<RuleIndex, Failure> {
    rule(plan, id).ok_or_else(|| match plan.removed.iter().find(|removed| removed.id.0 == id) {
        Some(removed) => Failure::failed(format_args!(
            "rule {id} is excluded: {} at {}:{}",
            removed.directive,
            plan.file(removed.by),
            removed.by.line
        )),
        None => Failure::failed(format_args!("there is no rule {id}")),
    })
}

/// The response of a file, with its head.
fn response(path: &Path) -> Result<(ResponseHead, Message), Failure> {
    let file = read_message(&read(path)?);
    match parse_response(&file.bytes) {
        Ok(head) => Ok((head, file)),
        Err(error) => Err(Failure::usage(format!("{} is not an HTTP/1 response: {error}", path.display()))),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    read_file(path).map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let input: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(io::stdin()),
        _ => Box::new(std::fs::File::open(path)?),
    };
    if input.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)? as u64 > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 256 MiB"));
    }
    Ok(bytes)
}
