//! `portcullis events [REQUEST_ID]`: what a running instance remembers of the last requests that it stopped
//! or noted.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;

use crate::cli::{Failure, print};
use crate::run::event_socket::ask;
use crate::{event_text, runtime_folder};

/// Arguments of `portcullis events`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The id that the block page, `X-Request-Id` and logs show; without it the last events are listed
    #[arg(value_name = "REQUEST_ID")]
    request_id: Option<String>,
    /// As JSON, one event a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

/// Where running instances are.
#[derive(Debug, clap::Args)]
pub struct Place {
    /// Folder with the sockets of running instances; by default those of this user and of the service
    #[arg(long, value_name = "DIR")]
    runtime_folder: Option<PathBuf>,
}

/// Exit code 1 if no instance runs, or none has such an event.
pub fn run(args: &Args) -> ExitCode {
    match answer(args) {
        Ok(text) => print(&text),
        Err(failure) => failure.exit(),
    }
}

fn answer(args: &Args) -> Result<String, Failure> {
    let lines = match &args.request_id {
        Some(id) => vec![args.place.event(id)?],
        None => args.place.ask("")?,
    };
    if args.json {
        return Ok(lines.iter().map(|line| format!("{line}\n")).collect());
    }
    let events = lines.iter().map(|line| serde_json::from_str(line).map_err(Failure::failed));
    let mut events = events.collect::<Result<Vec<Value>, _>>()?;
    if args.request_id.is_some() {
        return Ok(events.iter().map(event_text::whole).collect());
    }
    if events.is_empty() {
        return Ok("no request was blocked or logged yet\n".to_owned());
    }
    events.sort_by(|one, other| event_text::text(one, "/time").cmp(event_text::text(other, "/time")));
    Ok(events.iter().map(|event| format!("{}\n", event_text::line(event))).collect())
}

impl Place {
    /// The event of a request, as JSON.
    pub fn event(&self, id: &str) -> Result<String, Failure> {
        if id.is_empty() || id.len() > 128 || !id.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Failure::usage(format_args!("`{}` is not a request id", id.escape_debug())));
        }
        self.ask(id)?.pop().ok_or_else(|| {
            Failure::failed(format_args!(
                "no running instance remembers an event with the id {id}: older ones are in the event file, where one is set up \
                 (`events.file`, `--events`), and a request that passed without a finding makes none"
            ))
        })
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
