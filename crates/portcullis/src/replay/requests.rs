//! The requests that are replayed: of the event store, or of files.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use portcullis_event::Timestamp;
use portcullis_event_store::StoredEvent;
use portcullis_query::parse;
use portcullis_replay::{read_har, read_message};
use serde::Deserialize;
use serde_json::Value;

use crate::event_text::text;
use crate::events::stored;
use crate::outcome::Failure;

/// A file larger than this is refused.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// An address for documentation (RFC 5737) stands for one that is not told.
const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// What was decided when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It was stopped, or would have been if the policy was enforced.
    Stopped,
    /// It passed.
    Passed,
}

/// A request.
#[derive(Debug)]
pub struct Request {
    pub id: String,
    /// Its site and route, if they are known.
    pub site: Option<String>,
    pub route: Option<String>,
    pub client: SocketAddr,
    /// When it came, in milliseconds since 1970, if that is known.
    pub time: Option<u64>,
    /// Head and body.
    pub bytes: Vec<u8>,
    /// Bytes of the body that are missing.
    pub omitted: u64,
    pub recorded: Option<Recorded>,
}

impl Request {
    /// Method and target, for a line of output.
    pub fn line(&self) -> String {
        let line = self.bytes.split(|&byte| byte == b'\r' || byte == b'\n').next().unwrap_or_default();
        let line = line.strip_suffix(b" HTTP/1.1").unwrap_or(line);
        portcullis_event::text(line, 200).replace(char::is_control, " ")
    }
}

/// The newest requests that are kept with events which pass a filter, and of the sample of those that passed,
/// oldest first.
pub fn of_store(data: &Path, filter: &str, limit: usize) -> Result<Vec<Request>, Failure> {
    let filter = parse(filter, stored::now())
        .map_err(|mistake| Failure::usage(format_args!("filter `{}`: {mistake}", filter.escape_debug())))?;
    let events = stored::kept_requests(data, &filter, limit)?;
    Ok(events.into_iter().rev().filter_map(of_event).collect())
}

/// The request that is kept with an event.
fn of_event(event: StoredEvent) -> Option<Request> {
    let kept = event.request?;
    let value: Value = serde_json::from_str(&event.json).ok()?;
    let (action, mode) = (text(&value, "/verdict/action"), text(&value, "/engine"));
    // What only logs has no rule and no class that decided.
    let decided = ["/verdict/rule_id", "/verdict/class"].iter().any(|path| value.pointer(path).is_some());
    let stopped = matches!(action, "deny" | "drop" | "redirect" | "refuse")
        || action == "detect" && decided && mode == "detection_only";
    Some(Request {
        id: text(&value, "/request_id").to_owned(),
        site: Some(text(&value, "/site").to_owned()),
        route: Some(text(&value, "/route").to_owned()),
        time: Timestamp::from_rfc3339(text(&value, "/time")).map(Timestamp::epoch_millis),
        client: SocketAddr::new(text(&value, "/client/addr").parse().unwrap_or(UNKNOWN), 50_000),
        bytes: kept.bytes,
        omitted: kept.omitted,
        recorded: Some(if stopped { Recorded::Stopped } else { Recorded::Passed }),
    })
}

/// A line of a file of requests.
#[derive(Deserialize)]
struct Line {
    id: Option<String>,
    request: Option<String>,
    request_base64: Option<String>,
    site: Option<String>,
    route: Option<String>,
    client: Option<IpAddr>,
    time: Option<String>,
}

/// The requests of files, in their order, at most so many.
pub fn of_files(files: &[PathBuf], limit: usize) -> Result<Vec<Request>, Failure> {
    let mut requests = Vec::new();
    for path in files {
        let fail = |why: String| Failure::usage(format_args!("{}: {why}", path.display()));
        let size = std::fs::metadata(path).map_err(|error| fail(error.to_string()))?.len();
        if size > FILE_BYTES_MAX {
            return Err(fail("larger than 256 MiB".to_owned()));
        }
        let content = std::fs::read(path).map_err(|error| fail(error.to_string()))?;
        match path.extension().and_then(|end| end.to_str()) {
            Some("jsonl") => requests.extend(lines(&content).map_err(fail)?),
            Some("har") => {
                let all = read_har(&content).map_err(|error| fail(error.to_string()))?;
                let numbered = all.into_iter().enumerate();
                requests.extend(numbered.map(|(at, bytes)| plain(format!("{}", at + 1), bytes)));
            }
            _ => requests.push(plain(path.display().to_string(), read_message(&content).bytes)),
        }
        if requests.len() > limit {
            requests.truncate(limit);
            eprintln!("warning: only the first {limit} requests are taken (`--limit`)");
            break;
        }
    }
    Ok(requests)
}

fn plain(id: String, bytes: Vec<u8>) -> Request {
    let client = SocketAddr::new(UNKNOWN, 50_000);
    Request { id, site: None, route: None, client, time: None, bytes, omitted: 0, recorded: None }
}

fn lines(content: &[u8]) -> Result<Vec<Request>, String> {
    let text = std::str::from_utf8(content).map_err(|error| error.to_string())?;
    let numbered = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    numbered
        .map(|(at, line)| {
            let wrong = |why: String| format!("line {}: {why}", at + 1);
            let line: Line = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
            let bytes = match (line.request, line.request_base64) {
                (Some(text), None) => text.into_bytes(),
                (None, Some(code)) => BASE64
                    .decode(code.trim().as_bytes())
                    .map_err(|_| wrong("request_base64 is not base64".to_owned()))?,
                _ => return Err(wrong("give one of request and request_base64".to_owned())),
            };
            let id = line.id.unwrap_or_else(|| (at + 1).to_string());
            let mut request = plain(id, read_message(&bytes).bytes);
            (request.site, request.route) = (line.site, line.route);
            if let Some(client) = line.client {
                request.client.set_ip(client);
            }
            let time = line.time.map(|time| {
                let known = Timestamp::from_rfc3339(&time).map(Timestamp::epoch_millis);
                known.ok_or_else(|| wrong(format!("`{time}` is no time such as 2026-09-21T14:13:20.123Z")))
            });
            request.time = time.transpose()?;
            Ok(request)
        })
        .collect()
}
