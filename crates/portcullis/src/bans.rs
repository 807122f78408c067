//! `portcullis bans`: asks the admin listener of a running instance who is banned, to ban a client, or to let
//! one in again.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use portcullis_config::Config;
use serde::Deserialize;

use crate::outcome::{Failure, print};
use crate::time_arg;

/// For connecting, and for each part of the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of an answer: some hundred bytes for each client of the largest tables.
const ANSWER_BYTES_MAX: u64 = 1 << 30;

/// Arguments of `portcullis bans`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    at: At,
    #[command(subcommand)]
    action: Option<Action>,
}

/// Whom to ask.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct At {
    /// Address of the admin listener
    #[arg(long, value_name = "ADDR")]
    admin: Option<SocketAddr>,
    /// The document that the instance runs with; it names the admin listener
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show who is banned, and for how long (the default)
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Ban a client whatever it did; a ban that ends later stays
    Add {
        /// An address; networks are for the list `deny`
        client: IpAddr,
        /// For how long: 10m, 1h, 7d; a year at most
        #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = time_arg::seconds)]
        length: u64,
        /// Only here: `all`, a site, or SITE/ROUTE
        #[arg(long, value_name = "NAME")]
        ban: Option<String>,
    },
    /// Let a client in again, and forget what it did
    Lift {
        /// An address, or a network as it is listed
        client: String,
        /// Only here: `all`, a site, or SITE/ROUTE
        #[arg(long, value_name = "NAME")]
        ban: Option<String>,
    },
}

#[derive(Deserialize)]
struct Page {
    bans: Vec<Banned>,
}

#[derive(Deserialize)]
struct Banned {
    ban: String,
    client: String,
    until: String,
    seconds_left: u64,
    count: u32,
}

/// Exit code 1 if no instance answers, or the client is not banned.
pub fn run(args: &Args) -> ExitCode {
    match answer(args) {
        Ok(text) => print(&text),
        Err(failure) => failure.exit(),
    }
}

fn answer(args: &Args) -> Result<String, Failure> {
    let admin = admin(&args.at)?;
    match args.action.as_ref().unwrap_or(&Action::List { json: false }) {
        Action::List { json: true } => ask(admin, "GET", "/bans"),
        Action::List { json: false } => {
            let text = ask(admin, "GET", "/bans")?;
            let page: Page = serde_json::from_str(&text).map_err(Failure::failed)?;
            Ok(table(&page.bans))
        }
        Action::Add { client, length, ban } => {
            let target = format!("/bans?client={}&seconds={length}", encoded(&client.to_string()));
            ask(admin, "PUT", &with_ban(target, ban.as_deref()))
        }
        Action::Lift { client, ban } => {
            let address = client.split('/').next().unwrap_or_default();
            if address.parse::<IpAddr>().is_err() {
                return Err(Failure::usage(format_args!("`{client}` is not an address")));
            }
            let target = format!("/bans?client={}", encoded(client));
            ask(admin, "DELETE", &with_ban(target, ban.as_deref()))
        }
    }
}

fn admin(at: &At) -> Result<SocketAddr, Failure> {
    let Some(path) = &at.config else {
        return at
            .admin
            .ok_or_else(|| Failure::usage("name the instance to ask: --admin ADDRESS or --config FILE"));
    };
    let config = Config::from_file(path).map_err(Failure::failed)?;
    let none = || Failure::failed(format_args!("{} has no `admin` listener", path.display()));
    config.admin.ok_or_else(none)
}

fn with_ban(target: String, ban: Option<&str>) -> String {
    match ban {
        Some(ban) => format!("{target}&ban={}", encoded(ban)),
        None => target,
    }
}

fn table(bans: &[Banned]) -> String {
    if bans.is_empty() {
        return "no client is banned\n".to_string();
    }
    let mut text = format!("{:<40} {:<20} {:>10} {:>5}  until\n", "client", "ban", "seconds", "count");
    for banned in bans {
        let Banned { ban, client, until, seconds_left, count } = banned;
        text.push_str(&format!("{client:<40} {ban:<20} {seconds_left:>10} {count:>5}  {until}\n"));
    }
    text
}

/// One request on a connection of its own; the body of the answer.
fn ask(admin: SocketAddr, method: &str, target: &str) -> Result<String, Failure> {
    let failed = |error| Failure::failed(format_args!("no answer from {admin}: {error}"));
    let mut stream = TcpStream::connect_timeout(&admin, PATIENCE).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
    let request = format!("{method} {target} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer).map_err(failed)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    match head.split(' ').nth(1) {
        Some("200") => Ok(body.to_string()),
        Some(_) if !body.is_empty() => Err(Failure::failed(body.trim_end())),
        _ => Err(Failure::failed(format_args!("{admin} is not an admin listener"))),
    }
}

fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
