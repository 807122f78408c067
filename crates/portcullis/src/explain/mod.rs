//! `portcullis explain FILE.http`: one request, and the response to it, offline, and why it would be blocked
//! or let through.

mod inspect;
mod not_run;
mod print;
mod semantic;

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use portcullis_engine::{Plan, RuleIndex};
use portcullis_http::h1::ResponseHead;
use serde::Serialize;

use crate::cli::{Failure, print};
use crate::in_process;
use crate::message_file::{self, MessageFile};
use crate::policy_args::PolicyArgs;

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
    let request = message_file::read(&read(&args.file)?);
    let response = args.response.as_deref().map(response).transpose()?;
    let policy = args.policy.policy()?;
    let plan = portcullis_load::load(&policy).map_err(Failure::failed)?.plan;
    let watched = args.rule.map(|id| find(&plan, id)).transpose()?;
    let exchange = inspect::Exchange { request, response, client: args.client, dns: &args.dns };
    let mut explanation = inspect::explain(&policy, plan, exchange, watched);
    if !args.all {
        let before = explanation.matches.len();
        explanation.matches.retain(Match::is_telling);
        explanation.matches_not_shown = before - explanation.matches.len();
    }
    if args.json {
        let json = serde_json::to_string_pretty(&explanation).map_err(Failure::failed)?;
        return Ok(json + "\n");
    }
    Ok(print::print(&explanation))
}

/// The rule with this id.
fn find(plan: &Plan, id: u32) -> Result<RuleIndex, Failure> {
    let place = plan.rules.iter().position(|rule| rule.id.0 == id);
    let place = place.and_then(|place| u32::try_from(place).ok()).map(RuleIndex);
    place.ok_or_else(|| match plan.removed.iter().find(|removed| removed.id.0 == id) {
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
fn response(path: &Path) -> Result<(ResponseHead, MessageFile), Failure> {
    let file = message_file::read(&read(path)?);
    match in_process::parse_response(&file.bytes) {
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

/// The explanation of a request.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// The request line as received.
    request: String,
    /// The status line of the response, if one was given and the request let it come to that.
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<String>,
    /// The detection mode.
    mode: portcullis_event::DetectionMode,
    /// Body bytes shown to it.
    body_bytes_inspected: u64,
    /// Body bytes that it did not see.
    body_bytes_not_inspected: u64,
    /// Bytes of the response's body shown to it.
    response_body_bytes_inspected: u64,
    /// Bytes of the response's body that it did not see.
    response_body_bytes_not_inspected: u64,
    /// Remarks on the file and on the body.
    notes: Vec<String>,
    /// The proxy's own answer: the request is not acceptable HTTP, or its body is over a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Refused>,
    /// Matches in order.
    matches: Vec<Match>,
    /// Matches left out because they only keep the rule set's own books; `--all` shows them.
    matches_not_shown: usize,
    /// The result of the semantic detector, where it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    semantic: Option<semantic::Semantic>,
    /// Rules that did not run in the phases shown, by reason.
    not_run: Vec<not_run::Group>,
    /// Values that rules were not shown.
    left_out: Vec<not_run::LeftOut>,
    /// The rule that `--rule` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    watched: Option<not_run::Watched>,
    /// Anomaly scores at the end.
    scores: portcullis_event::Scores,
    /// The engine mode: whether verdicts are enforced.
    engine: portcullis_event::EngineMode,
    /// The decision.
    verdict: portcullis_event::Verdict,
}

/// A refusal that no rule asked for.
#[derive(Debug, Serialize)]
struct Refused {
    name: &'static str,
    status: u16,
    explanation: &'static str,
}

/// One match of a rule.
#[derive(Debug, Serialize)]
struct Match {
    rule_id: u32,
    phase: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<&'static str>,
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    data: String,
    /// The target that matched: `ARGS:q`.
    target: String,
    /// The value that the operator saw.
    value: String,
    /// The value as sent, where it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_as_sent: Option<String>,
    /// Matched bytes of the value: first, one past the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<[u32; 2]>,
    transformations: Vec<&'static str>,
    operator: String,
    /// The points added to each score.
    points: Vec<Points>,
    tags: Vec<String>,
    file: String,
    line: u32,
    /// The rule asks for its matches to be logged.
    logged: bool,
    /// It interrupted the request, or would have.
    disruptive: bool,
}

impl Match {
    /// False for what rule sets do to keep their books: rules without a message that neither log nor block.
    fn is_telling(&self) -> bool {
        self.logged || self.disruptive || (!self.points.is_empty() && !self.message.is_empty())
    }
}

#[derive(Debug, Serialize)]
struct Points {
    score: String,
    added: i64,
}
