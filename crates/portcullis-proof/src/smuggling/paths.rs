//! Paths that servers read differently, through routes to real servers: what a server serves as `/admin` must
//! not have taken the route of `/static/`, and what is neither must not either.

use std::net::SocketAddr;
use std::time::Duration;

use portcullis_testkit::TestkitError;
use portcullis_testkit::client;
use portcullis_testkit::proxy::{Folder, Proxy};

use super::Options;
use super::areas::{self, AreaServer};
use super::variants::Dice;

/// Pieces that some server or other takes for something else.
const PIECES: &[&str] = &[
    "static",
    "admin",
    "x",
    "y",
    "..",
    ".",
    "",
    "..;",
    "..;a=b",
    ";x",
    "%2e%2e",
    "%2e.",
    ".%2e",
    "%252e%252e",
    "..%2f",
    "..%5c",
    "..%252f",
    "%2e%2e%2f",
    "..%00",
    "admin%3f",
    "admin;x",
    "admin%00",
    "..%20",
    "%u002e%u002e",
    "%c0%ae%c0%ae",
    "static;x",
    "admin%2f..",
    "x%2f..",
    "%3b",
    "..%3b",
    "%3f",
    "%23",
    "%61dmin",
    "%2561dmin",
    "admin.",
    "static%20",
    "%2e",
    "ADMIN",
    "host",
];
const SEPARATORS: &[&str] = &["/", "/", "/", "/", "/", "//", "\\", "%2f", "%5c", "%252f", "%u2215", "%c0%af"];

/// The targets of the finding that the table of readings came from, and benign ones that must get through.
const KNOWN: &[&str] = &[
    "/static/../index.php/..;/static/x",
    "/static/../index.php/%252e%252e/static/x",
    "/static/../index.php/..\\static/x",
    "/static/../admin//../static/y",
    "/x/../admin/..;/x",
    "//static/admin",
];
const BENIGN: &[&str] =
    &["/static/x.js", "/static/a%20b;v=1/c%C3%A9.css", "/static//x", "/admin", "/", "/x/%7Buser%7D"];

/// An area, from the least protected on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Area {
    Static,
    Other,
    Admin,
}

impl Area {
    /// That of a server's status; none if it serves no area.
    fn of_status(status: u16) -> Option<Area> {
        match status {
            410 => Some(Area::Static),
            409 => Some(Area::Other),
            451 => Some(Area::Admin),
            _ => None,
        }
    }

    /// That of the route which a request took.
    fn of_route(name: &[u8]) -> Option<Area> {
        match name {
            b"static" => Some(Area::Static),
            b"other" => Some(Area::Other),
            b"admin" => Some(Area::Admin),
            _ => None,
        }
    }

    fn of_written(target: &str) -> Area {
        match () {
            () if target.starts_with("/static/") => Area::Static,
            () if target.starts_with("/admin") => Area::Admin,
            () => Area::Other,
        }
    }
}

/// Runs it; true if no server served an area that is protected better than the route.
pub(super) fn run(options: &Options) -> Result<bool, TestkitError> {
    let folder = Folder::create(options.keep.as_deref())?;
    let (servers, missing) = areas::start(&folder)?;
    println!("not installed: {}", if missing.is_empty() { "none".to_string() } else { missing.join(", ") });
    if servers.len() < options.servers {
        return Err(TestkitError::Run(format!("only {} of {} servers", servers.len(), options.servers)));
    }
    let proxy = Proxy::configured(folder, |address, admin| document(address, admin, &servers), &[])?;
    let mut dice = Dice::new(options.seed);
    let generated = (0..options.count).map(|_| target(&mut dice));
    let targets: Vec<String> = KNOWN.iter().map(ToString::to_string).chain(generated).collect();
    let (mut wrong, mut round) = (0, 0);
    for server in &servers {
        let (mut passed, mut refused, mut would) = (0, 0, 0);
        for target in &targets {
            let through = ask(proxy.address(), server.name, target)?;
            let route = through.route.as_deref().and_then(Area::of_route);
            let served = Area::of_status(through.status).filter(|_| route.is_some());
            refused += usize::from(route.is_none());
            passed += usize::from(served.is_some());
            if let (Some(served), Some(route)) = (served, route)
                && served > route
            {
                wrong += 1;
                println!("{}: {target:?} took the route {route:?} and was served as {served:?}", server.name);
            }
            // The same without us: what a choice by the path as it is written would have let through.
            let served = Area::of_status(ask(server.address, server.name, target)?.status);
            would += usize::from(served.is_some_and(|served| served > Area::of_written(target)));
        }
        for target in BENIGN {
            let answer = ask(proxy.address(), server.name, target)?;
            if answer.route.is_none() {
                wrong += 1;
                println!("{}: the benign {target:?} was answered {}", server.name, answer.status);
            }
        }
        println!(
            "{:<16} {} targets: {passed} served, {refused} refused by us; {would} would have gone round",
            server.name,
            targets.len()
        );
        round += would;
    }
    let panics = proxy.folder().panics().len();
    proxy.stop()?;
    println!(
        "{} servers, {} targets: {wrong} wrong, {panics} panics, {round} ways round closed",
        servers.len(),
        targets.len()
    );
    // Servers that all take paths as they are written would prove nothing.
    Ok(wrong == 0 && panics == 0 && round > 0)
}

fn target(dice: &mut Dice) -> String {
    let mut target = dice.pick(&["", "/static", "/static", "/static", "/admin"]).to_string();
    for _ in 0..1 + dice.below(6) {
        target += if target.is_empty() { "/" } else { dice.pick(SEPARATORS) };
        target += dice.pick(PIECES);
    }
    target + dice.pick(&["", "", "/static/y"])
}

/// Three routes for each server, of which each says its name to the client and to the server.
fn document(address: SocketAddr, admin: SocketAddr, servers: &[AreaServer]) -> String {
    let mut text = format!(
        "workers = 1\nadmin = {{ listen = \"{admin}\" }}\nevents = {{ file = \"events.jsonl\" }}\n\
         [[listeners]]\nname = \"http\"\naddress = \"{address}\"\n"
    );
    for AreaServer { name, address, .. } in servers {
        text += &format!(
            "[upstreams.{name}]\nendpoints = [\"http://{address}\"]\nejection = {{ failures = 0 }}\n\
             [[sites]]\nname = \"{name}\"\nhosts = [\"{name}.test\"]\nupstream = \"{name}\"\nmode = \"off\"\n"
        );
        for (path, area) in [("/static/", "static"), ("/admin", "admin"), ("/", "other")] {
            text += &format!(
                "[[sites.routes]]\npath = \"{path}\"\nrequest_headers = {{ set = {{ X-Area = \"{area}\" }} }}\n\
                 response_headers = {{ set = {{ X-Area = \"{area}\" }} }}\n"
            );
        }
    }
    text
}

struct Answer {
    status: u16,
    /// The route, as the answer names it.
    route: Option<Vec<u8>>,
}

fn ask(address: SocketAddr, name: &str, target: &str) -> Result<Answer, TestkitError> {
    let request = format!("GET {target} HTTP/1.1\r\nHost: {name}.test\r\nConnection: close\r\n\r\n");
    let answer = client::exchange(address, None, request.as_bytes(), Duration::from_secs(10));
    let Ok(answer) = answer else { return Ok(Answer { status: 0, route: None }) };
    let route = answer.header("x-area").map(<[u8]>::to_vec);
    Ok(Answer { status: answer.status, route })
}
