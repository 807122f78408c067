//! Request in, answer out; no sockets here.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use portcullis_http::h1::{ClientConnection, RequestHead, write_answer};
use portcullis_http::is_own_name;
use portcullis_metrics::{CONTENT_TYPE, Registry};
use portcullis_types::percent_decode;

use crate::reload::{Reloads, reload};

/// The banned clients, for `/bans`.
pub trait Bans: Send + Sync {
    /// A JSON text.
    fn list(&self) -> String;
    /// Bans a client at one ban or everywhere, for so long at least: how many bans refuse it then.
    fn impose(&self, ban: Option<&str>, client: IpAddr, length: Duration) -> usize;
    /// Lets a client in again, at one ban or everywhere: how many bans that ends.
    fn lift(&self, ban: Option<&str>, client: IpAddr) -> usize;
}

/// The state for `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Send traffic.
    Ready,
    /// Send none, for this reason: `starting`, `draining`.
    NotReady(Cow<'static, str>),
}

/// The sources of the pages.
pub struct Pages {
    /// For `/metrics`.
    pub registry: Arc<Registry>,
    /// For `/readyz`; it has to answer at once.
    pub health: Box<dyn Fn() -> Health + Send + Sync>,
    /// For `/bans`; none: no client is banned.
    pub bans: Option<Arc<dyn Bans>>,
    /// For `/reload`; none: there is nothing to reload.
    pub reloads: Option<Reloads>,
    /// Names under which `/metrics`, `/bans` and `/reload` may be asked for, in lower case, beside addresses
    /// and `localhost`.
    pub hosts: Vec<String>,
}

/// The length of a ban by hand, in seconds: a year at most.
pub const BAN_SECONDS: std::ops::RangeInclusive<u64> = 1..=365 * 86_400;

/// Why a client cannot be banned by hand.
pub const NO_BAN: &str = "no `ban` of the configuration would refuse this client: there is none of this name, it \
                          only logs, or `except` names the client";

/// The answer to a request under another host name.
pub(crate) const OTHER_NAME: &str = "ask by address, as localhost, or under a name of `admin.hosts`\n";

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// Appends the answer to `head`.
pub(crate) async fn answer(
    head: &RequestHead,
    pages: &Pages,
    connection: ClientConnection,
    out: &mut Vec<u8>,
) {
    let bans = pages.bans.as_deref();
    let is_head = head.method() == b"HEAD";
    let path = head.path();
    let (is_bans, is_reload) = (path == b"/bans", path == b"/reload");
    let mut send = |status: u16, media_type: &str, body: &str| {
        let mut fields: Vec<(&str, &[u8])> =
            vec![("Content-Type", media_type.as_bytes()), ("Cache-Control", b"no-store")];
        match status {
            405 if is_reload => fields.push(("Allow", b"POST")),
            405 if is_bans => fields.push(("Allow", b"GET, HEAD, PUT, DELETE")),
            405 => fields.push(("Allow", b"GET, HEAD")),
            _ => {}
        }
        write_answer(status, &fields, body.as_bytes(), connection, is_head, out);
    };
    if !matches!(path, b"/metrics" | b"/healthz" | b"/readyz" | b"/bans" | b"/reload") {
        return send(404, TEXT, "not found; there are /metrics, /healthz, /readyz, /bans and /reload\n");
    }
    // A client without a host name is no browser, and DNS rebinding is no danger to it.
    let is_told = matches!(path, b"/healthz" | b"/readyz") || head.host().is_empty();
    if !is_told && !is_own_name(head.host(), &pages.hosts) {
        return send(403, TEXT, OTHER_NAME);
    }
    if is_reload {
        let (status, body) = match head.method() {
            b"POST" => reload(head, pages.reloads.as_ref()).await,
            _ => (405, "only POST\n".to_string()),
        };
        return send(status, TEXT, &body);
    }
    if is_bans && matches!(head.method(), b"DELETE" | b"PUT") {
        let (status, body) = match head.method() {
            // Of pages of other hosts browsers ask before they send it.
            b"PUT" => impose(head, bans),
            _ => lift(head, bans),
        };
        return send(status, TEXT, &body);
    }
    if !is_head && head.method() != b"GET" {
        return send(
            405,
            TEXT,
            if is_bans { "only GET, HEAD, PUT and DELETE\n" } else { "only GET and HEAD\n" },
        );
    }
    match path {
        b"/metrics" => send(200, CONTENT_TYPE, &pages.registry.render()),
        b"/healthz" => send(200, TEXT, "ok\n"),
        b"/bans" => send(200, JSON, &bans.map_or_else(|| "{\"bans\":[]}\n".to_string(), Bans::list)),
        _ => match (pages.health)() {
            Health::Ready => send(200, TEXT, "ready\n"),
            Health::NotReady(reason) => send(503, TEXT, &format!("not ready: {reason}\n")),
        },
    }
}

/// `PUT /bans?client=ADDRESS&seconds=NUMBER[&ban=NAME]`.
fn impose(head: &RequestHead, bans: Option<&dyn Bans>) -> (u16, String) {
    let asked = Asked::of(head, &["client", "seconds", "ban"]);
    let Asked { client, ban, seconds } = match asked {
        Ok(asked) => asked,
        Err(why) => return (400, why),
    };
    let Ok(address) = client.parse() else {
        return (400, format!("`{client}` is not an address; networks are for the list `deny`\n"));
    };
    let seconds = seconds.and_then(|text| text.parse().ok()).filter(|seconds| BAN_SECONDS.contains(seconds));
    let Some(seconds) = seconds else {
        let (least, most) = (BAN_SECONDS.start(), BAN_SECONDS.end());
        return (400, format!("say for how long: &seconds=3600, from {least} to {most}\n"));
    };
    match bans.map_or(0, |bans| bans.impose(ban.as_deref(), address, Duration::from_secs(seconds))) {
        0 => (409, format!("{client} is not banned: {NO_BAN}\n")),
        _ => (200, format!("{client} is banned for {seconds} s\n")),
    }
}

/// The parameters of a change of bans.
struct Asked {
    client: String,
    ban: Option<String>,
    seconds: Option<String>,
}

impl Asked {
    /// Those that are known here; the error is for the client.
    fn of(head: &RequestHead, known: &[&str]) -> Result<Asked, String> {
        let (mut client, mut ban, mut seconds) = (None, None, None);
        for (name, value) in parameters(head.query().unwrap_or_default()) {
            match name.as_str() {
                name if !known.contains(&name) => {
                    return Err(format!("`{name}` is not known; there are {}\n", known.join(", ")));
                }
                "client" => client = Some(value),
                "ban" => ban = Some(value),
                _ => seconds = Some(value),
            }
        }
        let client = client.ok_or_else(|| "name a client: ?client=192.0.2.1\n".to_string())?;
        Ok(Asked { client, ban, seconds })
    }
}

/// `DELETE /bans?client=ADDRESS[&ban=NAME]`.
fn lift(head: &RequestHead, bans: Option<&dyn Bans>) -> (u16, String) {
    let Asked { client, ban, .. } = match Asked::of(head, &["client", "ban"]) {
        Ok(asked) => asked,
        Err(why) => return (400, why),
    };
    // A network as it is listed stands for its first address.
    let address = client.split('/').next().unwrap_or_default();
    let Ok(address) = address.parse() else {
        return (400, format!("`{client}` is not an address\n"));
    };
    match bans.map_or(0, |bans| bans.lift(ban.as_deref(), address)) {
        0 => (404, format!("{client} is not banned\n")),
        _ => (200, format!("the ban of {client} is lifted\n")),
    }
}

fn parameters(query: &[u8]) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(&percent_decode(bytes, true)).into_owned();
    let pairs = query.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
            (text(&pair[..at]), text(pair.get(at + 1..).unwrap_or_default()))
        })
        .collect()
}

/// Appends the answer to something that is not a request.
pub(crate) fn refuse(status: u16, explanation: &str, out: &mut Vec<u8>) {
    let fields: [(&str, &[u8]); 1] = [("Content-Type", TEXT.as_bytes())];
    write_answer(status, &fields, format!("{explanation}\n").as_bytes(), ClientConnection::Close, false, out);
}
