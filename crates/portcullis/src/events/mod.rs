//! `portcullis events`: what was decided on requests. A running instance is asked, which remembers the last
//! ones; with `--data` or `--config`, stored events.

mod csv;
pub mod source;
pub mod stored;

use std::path::PathBuf;
use std::process::ExitCode;

use portcullis_query::{Field, bare};
use serde_json::Value;

use crate::outcome::{Failure, print};
use crate::run::event_socket::ask;
use crate::{event_text, runtime_folder};
use source::Stored;
use stored::{Format, Question};

/// Arguments of `portcullis events`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The id that the block page, `X-Request-Id` and logs show, or with --data or --config an address, a
    /// path, the number of a rule, or a filter such as
    /// `verdict = deny and client in 192.0.2.0/24 and time >= -1h`; without it the last events are listed
    #[arg(value_name = "REQUEST_ID|FILTER")]
    query: Option<String>,
    /// As JSON, one event a line, the newest last
    #[arg(long)]
    json: bool,
    /// As comma-separated values
    #[arg(long, requires = "stored", conflicts_with = "json")]
    csv: bool,
    /// Wait for new events, and print them as they come
    #[arg(long, requires = "stored")]
    follow: bool,
    /// At most the newest N; by default all with --json or --csv, otherwise 100
    #[arg(long, value_name = "N", requires = "stored")]
    limit: Option<usize>,
    #[command(flatten)]
    place: Place,
}

/// What else is done with events.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print the request that is kept with an event, as `portcullis explain` takes it
    Request {
        /// The id that the block page, `X-Request-Id` and logs show
        #[arg(value_name = "REQUEST_ID")]
        id: String,
        /// The data folder
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
    },
    /// Copy the stored events into a new folder, also while an instance writes
    Backup {
        /// The data folder
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// The folder of the copy, which can be used as a data folder
        #[arg(value_name = "TO")]
        to: PathBuf,
    },
}

/// Where events are: in a data folder, or in the memory of running instances.
#[derive(Debug, clap::Args)]
pub struct Place {
    /// Search the events that are stored in this data folder, instead of asking a running instance
    #[arg(long, value_name = "DIR", group = "stored", conflicts_with = "runtime_folder")]
    data: Option<PathBuf>,
    /// Search the events that this document names: those of the database `events.read_from`, otherwise those
    /// of its data folder
    #[arg(long, value_name = "FILE", group = "stored", conflicts_with = "runtime_folder")]
    config: Option<PathBuf>,
    /// Folder with the sockets of running instances; by default those of this user and of the service
    #[arg(long, value_name = "DIR")]
    runtime_folder: Option<PathBuf>,
}

/// Exit code 1 if no instance runs, or none has such an event.
pub fn run(args: &Args) -> ExitCode {
    match &args.command {
        Some(Command::Backup { data, to }) => {
            return stored::backup(data, to).map_or_else(Failure::exit, |text| print(&text));
        }
        Some(Command::Request { id, data }) => {
            return stored::request(data, id).map_or_else(Failure::exit, |()| ExitCode::SUCCESS);
        }
        None => {}
    }
    match args.place.stored() {
        Some(stored) => {
            let printed = stored.and_then(|stored| print_stored(args, &stored));
            printed.map_or_else(Failure::exit, |()| ExitCode::SUCCESS)
        }
        None => match answer(args) {
            Ok(text) => print(&text),
            Err(failure) => failure.exit(),
        },
    }
}

fn print_stored(args: &Args, stored: &Stored) -> Result<(), Failure> {
    let format = match (args.json, args.csv) {
        (true, _) => Format::Json,
        (_, true) => Format::Csv,
        _ => Format::Text,
    };
    let (query, limit, follow) = (args.query.as_deref().unwrap_or(""), args.limit, args.follow);
    stored::print(&Question { stored, query, format, limit, follow })
}

fn answer(args: &Args) -> Result<String, Failure> {
    let lines = match &args.query {
        Some(id) => vec![args.place.event(id)?],
        None => args.place.ask("")?,
    };
    if args.json {
        return Ok(lines.iter().map(|line| format!("{line}\n")).collect());
    }
    let events = lines.iter().map(|line| serde_json::from_str(line).map_err(Failure::failed));
    let mut events = events.collect::<Result<Vec<Value>, _>>()?;
    if args.query.is_some() {
        return Ok(events.iter().map(event_text::whole).collect());
    }
    if events.is_empty() {
        return Ok("no request was blocked or logged yet\n".to_owned());
    }
    events.sort_by(|one, other| event_text::text(one, "/time").cmp(event_text::text(other, "/time")));
    Ok(events.iter().map(|event| format!("{}\n", event_text::line(event))).collect())
}

impl Place {
    /// Stored events, if they are asked for.
    fn stored(&self) -> Option<Result<Stored, Failure>> {
        match (&self.data, &self.config) {
            (Some(data), _) => Some(Stored::in_folder(data)),
            (None, Some(config)) => Some(Stored::of_document(config)),
            (None, None) => None,
        }
    }

    /// The event of a request, as JSON.
    pub fn event(&self, id: &str) -> Result<String, Failure> {
        let is_filter = self.stored().is_none() && bare(id).is_some_and(|filter| !filter.asks_for(Field::Id));
        if id.is_empty() || id.len() > 128 || !id.bytes().all(|byte| byte.is_ascii_graphic()) || is_filter {
            let id = id.escape_debug();
            return Err(Failure::usage(format_args!(
                "`{id}` is not a request id; a filter needs `--data DIR` or `--config FILE`"
            )));
        }
        if let Some(stored) = self.stored() {
            return stored::event(&stored?, id);
        }
        self.ask(id)?.pop().ok_or_else(|| {
            Failure::failed(format_args!(
                "no running instance remembers an event with the id {id}: older ones are in the event file, where one is set up \
                 (`events.file`, `--events`) or in the event store (`--data DIR`), and a request that passed without a finding makes none"
            ))
        })
    }

    /// The document of `--config`, and the event of a request with the request itself, where one is kept.
    pub fn kept(&self, id: &str) -> Result<Option<(PathBuf, String, Vec<u8>)>, Failure> {
        let (Some(config), Some(stored)) = (&self.config, self.stored()) else { return Ok(None) };
        let found = stored?.events().event(id).map_err(Failure::failed)?;
        let found = found.ok_or_else(|| stored::no_event(id))?;
        Ok(found.request.map(|request| (config.clone(), found.json, request.bytes)))
    }

    /// Returns the answers of all instances.
    fn ask(&self, question: &str) -> Result<Vec<String>, Failure> {
        let folders = self.runtime_folder.clone().map_or_else(runtime_folder::all, |folder| vec![folder]);
        let shown: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        let none = || {
            Failure::failed(format_args!(
                "no instance that keeps events runs as this user (looked into {}); run this as its user or as root, or name its folder \
                 in --runtime-folder",
                shown.join(" and ")
            ))
        };
        let (mut lines, mut asked, mut failed) = (Vec::new(), 0, None);
        let mut sockets = Vec::new();
        for folder in &folders {
            match runtime_folder::check_to_ask(folder).and_then(|()| runtime_folder::sockets(folder)) {
                Ok(found) => sockets.extend(found),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => failed = Some(format!("{}: {error}", folder.display())),
            }
        }
        for socket in &sockets {
            match ask(socket, question) {
                Ok(more) => {
                    asked += 1;
                    lines.extend(more);
                }
                Err(error) => failed = Some(format!("{}: {error}", socket.display())),
            }
        }
        match (asked, failed) {
            (0, Some(error)) => Err(Failure::failed(error)),
            (0, None) => Err(none()),
            _ => Ok(lines),
        }
    }
}
