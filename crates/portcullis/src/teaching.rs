//! `portcullis learn --session`: asks the admin API of a running instance to learn from what an administrator
//! does in the next minutes, shows what that was, and has it count.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portcullis_fetch::{Receiver, Settings};
use serde_json::{Value, json};

use crate::outcome::Failure;

/// For one answer.
const PATIENCE: Duration = Duration::from_secs(40);
/// Of an answer: a session has at most 512 fields.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// Of a file with a token.
const TOKEN_BYTES_MAX: u64 = 4 << 10;

/// A step of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Action {
    /// Begin: what these clients do from now on is benign
    Start,
    /// Show what was learned, and what accepting it does
    Status,
    /// End it before its time; it waits for a decision then
    Stop,
    /// Have what was learned count
    Accept,
    /// Drop what was learned
    Dismiss,
}

/// The API to ask, and who teaches.
#[derive(Debug, clap::Args)]
pub struct SessionArgs {
    /// Teach a running instance by hand, by its admin API: no files are read
    #[arg(long = "session", value_name = "ACTION", requires_all = ["api", "token_file"])]
    pub action: Option<Action>,
    /// The listener of `--console`, such as https://127.0.0.1:9443
    #[arg(long, value_name = "URL", requires = "action")]
    api: Option<String>,
    /// A file with a token of an administrator (`portcullis token create --role admin`)
    #[arg(long, value_name = "FILE", requires = "action")]
    token_file: Option<PathBuf>,
    /// The certificate of the listener, if no authority of the system vouches for it
    #[arg(long, value_name = "FILE", requires = "action")]
    ca: Option<PathBuf>,
    /// With `start`: the address or network of the clients whose requests teach
    #[arg(long, value_name = "NETWORK", requires = "action")]
    network: Option<String>,
    /// With `start`, in place of a network: the trusted sources of the site
    #[arg(long, requires = "action", conflicts_with = "network")]
    trusted: bool,
    /// With `start`: how long
    #[arg(long, value_name = "N", requires = "action", value_parser = clap::value_parser!(u32).range(1..=60))]
    minutes: Option<u32>,
    /// Why, for the audit trail
    #[arg(long, value_name = "TEXT", requires = "action")]
    reason: Option<String>,
}

/// Takes the step for a site; what to print.
pub fn answer(args: &SessionArgs, action: Action, site: &str) -> Result<String, Failure> {
    let is_start = action == Action::Start;
    if !is_start && (args.network.is_some() || args.trusted || args.minutes.is_some()) {
        return Err(Failure::usage("--network, --trusted and --minutes are for `--session start`"));
    }
    if is_start && args.network.is_none() && !args.trusted {
        return Err(Failure::usage("name whose requests teach: --network ADDRESS or --trusted"));
    }
    let api = Api::of(args)?;
    let reason = args.reason.as_deref();
    match action {
        Action::Start => {
            let body = json!({
                "site": site, "network": args.network, "trusted": args.trusted, "minutes": args.minutes,
                "reason": reason,
            });
            Ok(text(&api.post("start", &body)?))
        }
        Action::Status => Ok(text(&api.session(site)?)),
        Action::Stop => Ok(text(&api.post("stop", &json!({ "site": site, "reason": reason }))?["session"])),
        Action::Accept => {
            // What is accepted is what is printed.
            let requests = &api.session(site)?["requests"];
            let done =
                api.post("accept", &json!({ "site": site, "requests": requests, "reason": reason }))?;
            let mut said = text(&done["session"]);
            said.push_str(match done["message"].as_str() {
                Some(_) => "accepted until the process ends: ",
                None => "accepted",
            });
            let _ = writeln!(said, "{}", done["message"].as_str().unwrap_or_default());
            Ok(said)
        }
        Action::Dismiss => {
            api.post("dismiss", &json!({ "site": site, "reason": reason }))?;
            Ok("dismissed: nothing of it was learned\n".to_owned())
        }
    }
}

struct Api<'a> {
    url: &'a str,
    ca: Option<&'a Path>,
    token: String,
}

impl Api<'_> {
    fn of(args: &SessionArgs) -> Result<Api<'_>, Failure> {
        let (Some(url), Some(file)) = (&args.api, &args.token_file) else {
            return Err(Failure::usage("--session needs --api URL and --token-file FILE"));
        };
        let failed =
            |error: &dyn std::fmt::Display| Failure::failed(format_args!("{}: {error}", file.display()));
        let token = portcullis_files::read(file, TOKEN_BYTES_MAX).map_err(|error| failed(&error))?;
        let token = String::from_utf8(token).map_err(|error| failed(&error))?;
        Ok(Api { url: url.trim_end_matches('/'), ca: args.ca.as_deref(), token: token.trim().to_owned() })
    }

    fn receiver(&self, path: &str) -> Result<Receiver, Failure> {
        let headers = [
            ("Authorization", format!("Bearer {}", self.token)),
            ("Content-Type", "application/json".to_owned()),
        ];
        let settings = Settings {
            url: format!("{}/api/v1/fields/sessions{path}", self.url),
            ca: self.ca.map(Path::to_owned),
            headers: headers.map(|(name, value)| (name.to_owned(), value)).into(),
            timeout: PATIENCE,
        };
        Receiver::new(settings, "--ca").map_err(Failure::failed)
    }

    fn post(&self, order: &str, body: &Value) -> Result<Value, Failure> {
        let body = body.to_string();
        let sent = self.receiver(&format!("/{order}"))?.ask(body.as_bytes(), ANSWER_BYTES_MAX, PATIENCE);
        self.read(sent)
    }

    /// The session of a site.
    fn session(&self, site: &str) -> Result<Value, Failure> {
        let mut page = self.read(self.receiver("")?.get(ANSWER_BYTES_MAX))?;
        let items = page["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let found = items.into_iter().find(|session| session["site"] == site);
        found.ok_or_else(|| {
            Failure::failed(format_args!(
                "site {site} has no session\n  help: `portcullis learn --session start --site {site}` begins one"
            ))
        })
    }

    fn read(
        &self,
        sent: Result<portcullis_fetch::Answer, portcullis_fetch::NotTaken>,
    ) -> Result<Value, Failure> {
        let answer = sent.map_err(|error| Failure::failed(format_args!("{}: {error}", self.url)))?;
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        match (answer.status, &body["detail"], &body["title"]) {
            (200, ..) => Ok(body),
            (_, Value::String(why), _) | (_, _, Value::String(why)) => {
                Err(Failure::failed(format_args!("{}: {why}", self.url)))
            }
            (status, ..) => Err(Failure::failed(format_args!("{}: it answers {status}", self.url))),
        }
    }
}

fn text(session: &Value) -> String {
    let word = |name: &str| session[name].as_str().unwrap_or_default();
    let state = if session["is_running"] == true { "runs until" } else { "has ended" };
    let whose = session["network"].as_str().unwrap_or("trusted sources");
    let mut text =
        format!("site {}: taught by {whose} ({}), {state} {}\n", word("site"), word("by"), word("until"));
    let _ = writeln!(
        text,
        "{} requests learned, {} refused, which teach nothing",
        session["requests"], session["refused"]
    );
    if session["beyond_limit"] != 0 {
        let _ =
            writeln!(text, "{} values of fields beyond the limits were not learned", session["beyond_limit"]);
    }
    for field in session["fields"].as_array().into_iter().flatten() {
        let word = |name: &str| field[name].as_str().unwrap_or_default();
        let types: Vec<&str> =
            field["types"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let effect = word("effect").replace('_', " ");
        let name = word("name").escape_debug();
        let _ = writeln!(
            text,
            "  {effect:<8} {} {}  {}:{name}  {} values: {}",
            word("method"),
            word("path"),
            word("place"),
            field["values"],
            types.join(", ")
        );
        for kind in field["kinds"].as_array().into_iter().flatten() {
            let effect = kind["effect"].as_str().unwrap_or_default().replace('_', " ");
            let _ = writeln!(text, "    {effect:<9} {}", kind["kind"].as_str().unwrap_or_default());
        }
    }
    text
}
