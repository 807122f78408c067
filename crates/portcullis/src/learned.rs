//! `portcullis learned`: what a site has learned of its fields; and `portcullis learn`: what recorded
//! requests teach.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use portcullis_config::{Engine, Policy};
use portcullis_event::{Action, Redactor};
use portcullis_inspect::{
    Inspector, Opens, Outcome, PolicyNames, Scratch, SiteFields, Step, TrustedSources, UnusualAction,
};
use portcullis_learn::{
    Form, Key, Knowledge, Limits, Opening, OpeningState, Profile, Site, Store, Thresholds, opening_id,
};
use portcullis_load::SharedDetectors;
use portcullis_store::Store as Collections;
use serde_json::json;

use crate::learned_files as files;
use crate::new_file;
use crate::outcome::{Failure, print};
use crate::replay::requests;
use crate::teaching::{self, SessionArgs};

/// Arguments of `portcullis learned`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: Option<List>,
}

/// What a site has learned, listed.
#[derive(Debug, clap::Args)]
struct List {
    /// Only this site
    #[arg(value_name = "SITE")]
    site: Option<String>,
    /// The data folder of the instance
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Only fields that are closed: known to carry one plain type
    #[arg(long)]
    closed: bool,
    /// Only fields that carry findings: proposed, on trial, live or dismissed
    #[arg(long, conflicts_with = "closed")]
    kinds: bool,
    /// As JSON, one field a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Write what a site has learned to a file, for another instance
    Export {
        /// The site
        #[arg(value_name = "SITE")]
        site: String,
        /// The data folder of the instance
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// The file; by default standard output
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Add what another instance has exported. A running instance takes it over within seconds, any other one
    /// when it starts
    Import {
        /// The site
        #[arg(value_name = "SITE")]
        site: String,
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The data folder of the instance
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
    },
    /// Have a kind of finding count for nothing in the field that carries it. A running instance does so
    /// within seconds
    Accept(Decision),
    /// Have a kind of finding count: not propose it again, or end its trial or what was accepted
    Dismiss(Decision),
    /// Let requests that are stopped for it tell what would have become of them
    Trial(Decision),
}

/// A decision on a kind of finding in a field.
#[derive(Debug, clap::Args)]
struct Decision {
    /// The site
    #[arg(value_name = "SITE")]
    site: String,
    /// What `portcullis learned SITE` calls it
    #[arg(value_name = "ID")]
    id: String,
    /// The data folder of the instance
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

/// Arguments of `portcullis learn`.
#[derive(Debug, clap::Args)]
pub struct LearnArgs {
    /// Files with requests of benign users: a raw request (any name), JSON lines (.jsonl: `request` or
    /// `request_base64`), an archive of a browser (.har)
    #[arg(value_name = "FILE", required_unless_present = "action", conflicts_with = "action")]
    files: Vec<PathBuf>,
    /// The site that learns
    #[arg(long, value_name = "NAME")]
    site: String,
    /// The data folder of the instance
    #[arg(long, value_name = "DIR", required_unless_present = "action", conflicts_with = "action")]
    data: Option<PathBuf>,
    /// Values after which a field counts as well known. You vouch for the requests, so that neither networks
    /// nor days are needed
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    values: u32,
    /// Nobody vouches: requests teach as those that the proxy has answered do, by the clients and times of
    /// JSON lines (`client`, `time`), and what closes a field there does here
    #[arg(long, conflicts_with = "values")]
    by_clients: bool,
    /// Requests that are read, at most
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    limit: u32,
    #[command(flatten)]
    session: SessionArgs,
}

/// Exit code 1 if there is nothing to show or a file cannot be read or written.
pub fn run(args: &Args) -> ExitCode {
    let answer = match (&args.command, &args.list) {
        (Some(Command::Export { site, data, output }), _) => export(site, data, output.as_deref()),
        (Some(Command::Import { site, file, data }), _) => import(site, file, data),
        (Some(Command::Accept(decision)), _) => decision.offer(OpeningState::Live),
        (Some(Command::Dismiss(decision)), _) => decision.offer(OpeningState::Dismissed),
        (Some(Command::Trial(decision)), _) => decision.offer(OpeningState::Trial),
        (None, Some(list)) => list.text(),
        (None, None) => Err(Failure::usage("name the data folder: `portcullis learned --data DIR`")),
    };
    match answer {
        Ok(text) => print(&text),
        Err(failure) => failure.exit(),
    }
}

/// Exit code 1 if nothing could be learned.
pub fn learn(args: &LearnArgs) -> ExitCode {
    match taught(args) {
        Ok(text) => print(&text),
        Err(failure) => failure.exit(),
    }
}

/// What a site has learned, as it was last written.
pub fn kept(data: &Path, site: &str) -> Result<Store, Failure> {
    let path = files::file(data, site);
    let failed = |error: &dyn std::fmt::Display| Failure::failed(format_args!("{}: {error}", path.display()));
    let text = files::read(&path).map_err(|error| failed(&error))?;
    let text = text.ok_or_else(|| {
        Failure::failed(format_args!(
            "site {site} has learned nothing in {}\n  help: `fields = {{}}` in the site turns learning on; what is learned is \
             written each minute",
            files::folder(data).display()
        ))
    })?;
    Store::from_text(&text, unlimited(Thresholds::default())).map_err(|error| failed(&error))
}

/// Whatever a file has fits in; fields are closed by who wrote it.
fn unlimited(thresholds: Thresholds) -> Limits {
    Limits { fields_max: usize::MAX, thresholds, auto: None }
}

impl List {
    fn text(&self) -> Result<String, Failure> {
        let failed =
            |error| Failure::failed(format_args!("{}: {error}", files::folder(&self.data).display()));
        let sites = match &self.site {
            Some(site) => vec![site.clone()],
            None => files::sites(&self.data).map_err(failed)?,
        };
        let mut text = String::new();
        for site in sites {
            let store = kept(&self.data, &site)?;
            let (fields, closed) = store.counts();
            if !self.json {
                let _ =
                    writeln!(text, "{site}: {fields} fields, {closed} of them closed{}", proposals(&store));
                let beyond = store.beyond();
                if beyond.fields + beyond.long > 0 {
                    let values = beyond.fields + beyond.long;
                    let _ = writeln!(text, "  {values} values of fields beyond the limits were not learned");
                }
            }
            let is_meant = |(_, profile): &(&Key, &Profile)| {
                let is_decided = |opening: &Opening| opening.state != OpeningState::Seen;
                match () {
                    () if self.closed => profile.closed.is_some(),
                    () if self.kinds => profile.openings.values().any(is_decided),
                    () => true,
                }
            };
            for (key, profile) in store.fields().filter(is_meant) {
                match self.json {
                    true => json_line(&mut text, &site, key, profile),
                    false => line(&mut text, key, profile),
                }
            }
        }
        Ok(text)
    }
}

fn line(text: &mut String, key: &Key, profile: &Profile) {
    let Key { template, name, method, place } = key;
    let state = match profile.closed {
        _ if profile.kept_open => "kept open".to_owned(),
        Some(_) => "closed".to_owned(),
        None => format!("{:.0} %", profile.confidence(&Thresholds::default()) * 100.0),
    };
    let name = name.escape_debug();
    let (place, evidence) = (place.name(), profile.evidence());
    let _ = writeln!(text, "  {state:<9}  {method} {template}  {place}:{name}  {evidence}");
    for (kind, opening) in &profile.openings {
        let id = opening_id(key, kind);
        let evidence = opening.evidence();
        let _ = write!(text, "    {:<9}  {id}  {kind}  {evidence}", opening.state.name());
        if opening.state == OpeningState::Trial {
            let tried = opening.tried;
            let _ = write!(
                text,
                "; of stopped requests {} would have passed, {} of them with something else in them, {} not",
                tried.passes + tried.lost,
                tried.lost,
                tried.stopped
            );
        }
        text.push('\n');
    }
}

/// How many kinds wait for a decision, or are on trial or live.
fn proposals(store: &Store) -> String {
    let mut text = String::new();
    for state in [OpeningState::Proposed, OpeningState::Trial, OpeningState::Live] {
        let count = store.openings().filter(|(.., opening)| opening.state == state).count();
        if count > 0 {
            let _ = write!(text, ", {count} kind{} {}", if count == 1 { "" } else { "s" }, state.name());
        }
    }
    text
}

impl Decision {
    fn offer(&self, state: OpeningState) -> Result<String, Failure> {
        let Decision { site, id, data } = self;
        let store = kept(data, site)?;
        let found = store.openings().find(|(called, ..)| called == id);
        let Some((_, key, kind, opening)) = found else {
            return Err(Failure::failed(format_args!(
                "no field of site {site} has something called {id}\n  help: `portcullis learned {site} --kinds --data {}` \
                 lists what has",
                data.display()
            )));
        };
        let Key { template, name, method, place } = key;
        let what = format!("{kind} in {}:{} of {method} {template}", place.name(), name.escape_debug());
        if opening.state == state {
            return Ok(format!("{what} is {} already\n", state.name()));
        }
        files::decide(data, site, id, state)
            .map_err(|error| Failure::failed(format_args!("{}: {error}", files::folder(data).display())))?;
        Ok(format!("{what} will be {} within seconds, or when the instance starts\n", state.name()))
    }
}

fn json_line(text: &mut String, site: &str, key: &Key, profile: &Profile) {
    let types: Vec<_> = profile
        .types
        .iter()
        .map(|(kind, seen)| {
            json!({
                "type": kind.name(), "values": seen.values, "networks": seen.network_count(),
                "days": seen.days.count(),
            })
        })
        .collect();
    let kinds: Vec<_> = profile
        .openings
        .iter()
        .map(|(kind, opening)| {
            json!({
                "id": opening_id(key, kind), "kind": kind, "state": opening.state.name(), "since": opening.since,
                "requests": opening.seen.values, "networks": opening.seen.network_count(),
                "sessions": opening.session_count(), "days": opening.seen.days.count(),
                "trusted": opening.trusted, "would_pass": opening.tried.passes,
                "would_be_lost": opening.tried.lost, "would_be_stopped": opening.tried.stopped,
            })
        })
        .collect();
    let form = profile.closed.map(|closed| match closed.form {
        Form::Type(kind) => kind.name(),
        Form::Enumeration => "enumeration",
    });
    let field = json!({
        "site": site, "method": key.method, "path": key.template, "place": key.place.name(), "name": key.name,
        "closed": form, "kept_open": profile.kept_open, "confidence": profile.confidence(&Thresholds::default()),
        "values": profile.all.values, "networks": profile.all.network_count(),
        "sessions": profile.session_count(), "days": profile.all.days.count(),
        "bytes_min": profile.bytes.0, "bytes_max": profile.bytes.1, "types": types, "kinds": kinds,
    });
    let _ = writeln!(text, "{field}");
}

fn export(site: &str, data: &Path, output: Option<&Path>) -> Result<String, Failure> {
    let mut text = kept(data, site)?.to_text();
    text.push('\n');
    let Some(output) = output else { return Ok(text) };
    new_file::write(&text, output, false)?;
    Ok(String::new())
}

/// The fields of an export, for requests that are judged by them and teach nothing.
pub fn fields_of(file: &Path) -> Result<SiteFields, Failure> {
    let site = Site::default();
    site.publish(Knowledge::of(&exported(file)?));
    Ok(SiteFields {
        site: Arc::new(site),
        unusual: UnusualAction::Block,
        learns: false,
        opens: Opens::All,
        trusted: Arc::default(),
    })
}

fn import(site: &str, file: &Path, data: &Path) -> Result<String, Failure> {
    offer(&exported(file)?, site, data)
}

/// What is in an export.
pub fn exported(file: &Path) -> Result<Store, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::failed(format_args!("{}: {error}", file.display()));
    let text =
        files::read(file).map_err(|error| failed(&error))?.ok_or_else(|| failed(&"there is no such file"))?;
    Store::from_text(&text, unlimited(Thresholds::default())).map_err(|error| failed(&error))
}

fn offer(store: &Store, site: &str, data: &Path) -> Result<String, Failure> {
    let folder = files::folder(data);
    files::offer(data, site, &store.to_text())
        .map_err(|error| Failure::failed(format_args!("{}: {error}", folder.display())))?;
    let (fields, closed) = store.counts();
    Ok(format!("{fields} fields, {closed} of them closed{}, for site {site}\n", proposals(store)))
}

/// Learns requests as the proxy does. Where the person who names them vouches for them, networks and days do
/// not count.
fn taught(args: &LearnArgs) -> Result<String, Failure> {
    if let Some(action) = args.session.action {
        return teaching::answer(&args.session, action, &args.site);
    }
    let Some(data) = &args.data else { return Err(Failure::usage("name the data folder: --data DIR")) };
    // All of its values decide whether a field is plain.
    let mut store = Store::new(unlimited(Thresholds { values: u64::MAX, ..Thresholds::default() }));
    let site = Arc::new(Site::default());
    let vouches_for_all = !args.by_clients;
    // What was answered was let through, whatever is found in it now.
    let engine = args.by_clients.then_some(Engine::DetectionOnly);
    let policy = Policy { mode: portcullis_config::Mode::Semantic, engine, ..Policy::default() };
    let plan = portcullis_load::load(&policy).map_err(Failure::failed)?.plan;
    let inspector = Inspector::new(plan, Arc::new(Redactor::none()), Arc::new(Collections::default()));
    // Who names the requests vouches for what is found in them.
    let trusted = TrustedSources { vouches_for_all, ..TrustedSources::default() };
    let fields = SiteFields {
        site: Arc::clone(&site),
        unusual: UnusualAction::Off,
        learns: true,
        opens: Opens::Safe,
        trusted: Arc::new(trusted),
    };
    let inspector = SharedDetectors::default().attach(inspector, &policy).map_err(Failure::failed)?;
    let inspector = Arc::new(inspector.with_fields(fields));
    let names = PolicyNames { site: args.site.as_str().into(), route: "/".into(), generation: 0 };
    let outcome = Outcome { status: Some(200), no_event: true, ..Outcome::default() };
    let (mut scratch, mut refused, mut found, mut last_day) = (Scratch::default(), 0u64, 0u64, 0);
    let recorded = requests::of_files(&args.files, args.limit as usize)?;
    let total = recorded.len();
    for (number, request) in recorded.into_iter().enumerate() {
        let mut client = request.client;
        if vouches_for_all {
            // Each is one of its own: nobody asks from where it came.
            client.set_ip(IpAddr::from((0x0B00_0000 + ((number as u32) << 8)).to_be_bytes()));
        }
        let millis = request.time.filter(|_| args.by_clients).unwrap_or_else(crate::events::stored::now);
        last_day = last_day.max(u32::try_from(millis / 86_400_000).unwrap_or(u32::MAX));
        let connection = portcullis_replay::connection(client, millis, 0);
        let (head, refusal) = portcullis_replay::parse(&request.bytes);
        let mut run = portcullis_replay::Run::new(inspector.begin(&names, connection, scratch), &[]);
        let step = run.phases(&head, refusal, request.bytes.get(head.received_len()..).unwrap_or_default());
        let report = run.inspection.finish(&outcome);
        refused += u64::from(step != Step::Continue || refusal.is_some());
        found += u64::from(report.action == Action::Detect);
        scratch = report.scratch;
        store.learn(&site.take());
    }
    store.set_limits(unlimited(match args.by_clients {
        true => Thresholds::default(),
        false => Thresholds { values: args.values.into(), networks: 1, days: 1 },
    }));
    store.advance(last_day);
    let mut text = format!("{total} requests");
    if args.by_clients && found > 0 {
        text.push_str(&format!(", {found} of them with findings"));
    }
    if refused > 0 {
        let _ =
            write!(text, ", of which {refused} would be refused; of them only what was found was learned");
    }
    text.push('\n');
    if store.counts().0 == 0 {
        return Err(Failure::failed(format_args!("{text}they have no fields to learn")));
    }
    text.push_str(&offer(&store, &args.site, data)?);
    Ok(text)
}
