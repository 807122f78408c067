//! `portcullis init`: the guided first run. Asks for what nobody else can know, writes a commented document,
//! and checks it by the code that reads documents.

mod ask;
pub mod document;
mod probe;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use portcullis_config::{Config, Endpoint, Format, Profile};
use portcullis_load::load;

use crate::new_file;
use crate::outcome::{Failure, print, warn};
use crate::run::first_lines::ATTACK;
use crate::run::settings::CONSOLE;
use ask::Asking;
use document::{Answers, PROBE, UNKNOWN};

/// Arguments of `portcullis init`. What a flag says is not asked for.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The application: http://host:port or https://host:port
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// A host name of the application, or * for all; may be given several times
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Address and port to serve
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// semantic, crs or both
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// Folder of the CRS; by default one that is installed
    #[arg(long, value_name = "DIR")]
    crs: Option<PathBuf>,
    /// The application: a name that `portcullis profiles` lists; `probe` to ask its front page (a few
    /// requests without TLS, at most ten seconds); `unknown`. Without this flag, --yes asks it nothing
    #[arg(long, value_name = "NAME")]
    application: Option<String>,
    /// Folder in which events are kept; by default portcullis-data beside the document
    #[arg(long, value_name = "DIR", default_value = "portcullis-data")]
    data: PathBuf,
    /// The document to write
    #[arg(long, value_name = "FILE", default_value = "portcullis.toml")]
    output: PathBuf,
    /// Ask nothing: take the default for what no flag says
    #[arg(long)]
    yes: bool,
    /// Replace the document if it is there
    #[arg(long)]
    force: bool,
}

/// Exit code 1 if the document cannot be written or would not work, 2 if a flag has a wrong value or an
/// answer is missing.
pub fn run(args: &Args) -> ExitCode {
    match answer(args) {
        Ok(text) => print(&text),
        Err(failure) => failure.exit(),
    }
}

fn answer(args: &Args) -> Result<String, Failure> {
    let output = &args.output;
    if Format::of(output) != Some(Format::Toml) {
        return Err(Failure::usage(format_args!(
            "--output {}: the name has to end in .toml",
            output.display()
        )));
    }
    // Before anything is asked.
    if !args.force && output.symlink_metadata().is_ok() {
        return Err(new_file::is_there(output));
    }
    let mut answers = answers(args)?;
    let config = checked(&document::text(&answers), output)?;
    if answers.application == PROBE {
        let endpoints = config.upstreams.iter().flat_map(|upstream| &upstream.endpoints);
        answers.looks_like = endpoints.flat_map(|endpoint| look(endpoint, &answers)).collect();
    }
    new_file::write(&document::text(&answers), output, args.force)?;
    Ok(done(output, &answers))
}

/// The profiles of what answers at an endpoint, each with what was seen. What stands in the way is a warning.
fn look(endpoint: &Endpoint, answers: &Answers) -> Vec<(&'static Profile, Vec<String>)> {
    let Endpoint { host, port, .. } = endpoint;
    if answers.upstream.starts_with("https://") {
        // Nobody has said yet which certificates are trusted.
        warn(format_args!("an application behind TLS is not asked what it is; name it with --application"));
        return Vec::new();
    }
    match probe::recognised(host, *port, &site_host(&answers.hosts, host)) {
        Ok(found) => found.into_iter().map(|each| (each.profile, each.signs)).collect(),
        Err(why) => {
            warn(format_args!("the application does not answer at {host}:{port} at present: {why}"));
            Vec::new()
        }
    }
}

/// True if a URL names this machine, which its own administrator may ask anything.
fn is_loopback(url: &str) -> bool {
    let config = Config::parse(
        &document::text(&Answers { upstream: url.to_owned(), ..Answers::default() }),
        Format::Toml,
        "portcullis.toml",
    );
    let hosts = config.iter().flat_map(|config| &config.upstreams).flat_map(|upstream| &upstream.endpoints);
    let is_own = |host: &str| {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    };
    let mut hosts = hosts.map(|endpoint| is_own(&endpoint.host)).peekable();
    hosts.peek().is_some() && hosts.all(|own| own)
}

fn answers(args: &Args) -> Result<Answers, Failure> {
    let mut asking = Asking::new(args.yes);
    let mut answers =
        Answers { crs: args.crs.clone().or_else(document::crs_on_this_machine), ..Answers::default() };
    answers.data = args.data.display().to_string();
    if let Some(mode) = args.crs.as_ref().and(args.mode.as_deref()).filter(|mode| *mode == "semantic") {
        return Err(Failure::usage(format_args!("--crs has no effect with --mode {mode}; drop one of them")));
    }
    // With the semantic detector alone unless rules are there: it always works.
    answers.mode = if answers.crs.is_some() { "both" } else { "semantic" }.to_owned();
    asking.ask(
        "Address of the application",
        "--upstream",
        args.upstream.clone(),
        &mut answers,
        |answers| &mut answers.upstream,
    )?;
    let hosts = (!args.host.is_empty()).then(|| args.host.join(", "));
    asking.ask(
        "Host names of the application, with commas, or * for all",
        "--host",
        hosts,
        &mut answers,
        |answers| &mut answers.hosts,
    )?;
    asking.ask("Address to serve", "--listen", args.listen.clone(), &mut answers, |answers| {
        &mut answers.listen
    })?;
    asking.ask(
        "Inspect with the semantic detector, the CRS, or both (semantic, crs, both)",
        "--mode",
        args.mode.clone(),
        &mut answers,
        |answers| &mut answers.mode,
    )?;
    // Nothing is sent to any machine unless the operator says so.
    let may_ask = !args.yes && !answers.upstream.starts_with("https://") && is_loopback(&answers.upstream);
    answers.application = if may_ask { PROBE } else { UNKNOWN }.to_owned();
    asking.ask(
        "What is behind it: a name that `portcullis profiles` lists, `probe` to ask its front page, or `unknown`",
        "--application",
        args.application.clone(),
        &mut answers,
        |answers| &mut answers.application,
    )?;
    Ok(answers)
}

/// The configuration of the text, and its rules compiled, as a start would do it.
fn checked(text: &str, output: &Path) -> Result<Config, Failure> {
    let config = Config::parse(text, Format::Toml, &output.display().to_string()).map_err(Failure::failed)?;
    for policy in &config.policies {
        load(policy).map_err(Failure::failed)?;
    }
    Ok(config)
}

/// A host that the document serves; that of the application itself if it serves all of them.
fn site_host(hosts: &str, own: &str) -> String {
    let first = hosts.split(',').map(str::trim).find(|name| *name != "*");
    first.map_or_else(|| own.to_owned(), |name| name.replacen('*', "www", 1))
}

/// What has curl ask for a host that the document serves; nothing if it serves all of them.
fn host_field(hosts: &str) -> String {
    let mut names = hosts.split(',').map(str::trim);
    match names.clone().any(|name| name == "*") {
        true => String::new(),
        false => {
            let name = names.next().unwrap_or_default().replacen('*', "www", 1);
            format!("-H 'Host: {name}' ")
        }
    }
}

fn done(output: &Path, answers: &Answers) -> String {
    let (file, data) = (output.display(), document::data_folder(output, answers));
    let data = data.display();
    let rules = match answers.mode.as_str() {
        "semantic" => "\nWith the OWASP CRS beside the detector:\n  portcullis crs install\n",
        _ => "",
    };
    let known: String = answers.looks_like.iter().map(|(profile, _)| {
        format!(
            "\nThe application looks like {}. What its profile would exclude, and what that opens:\n  portcullis profiles {}\nTo \
             take it, remove the # before `profiles` in {file}.\n",
            profile.application, profile.name
        )
    }).collect();
    let (host, listen) = (host_field(&answers.hosts), document::local(&answers.listen));
    format!(
        "{file} is written and checked. It reports attacks and blocks nothing yet.\n\n\
         1. Start it. The first start prints the link that creates the administrator of the console:\n     \
         portcullis run --config {file}\n\
         2. Send an attack:\n     \
         curl -i {host}'http://{listen}{ATTACK}'\n\
         3. It is on the page of events of the console, with its reasons, or here:\n     \
         http://{CONSOLE}/#/events\n     \
         portcullis events --data {data}\n\
         4. When the events are attacks only, remove the line `engine = \"detection_only\"`, or choose it on the page of \
         sites: then they are blocked.\n{rules}{known}"
    )
}
