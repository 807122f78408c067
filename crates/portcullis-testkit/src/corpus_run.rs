//! The corpora through the real proxy: what is blocked, what passes, and that nothing breaks.
//!
//! Attack values go out once in each of five places (query, form, JSON, cookie, header), requests as they
//! are. The report is a block rate for each file and place. It judges nothing about detection; what fails the
//! run is a proxy that crashes, hangs, answers 5xx, or closes without an answer.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::client::{Connection, Exchange, Failure};
use crate::proxy::{Folder, Proxy};
use crate::{TestkitError, base64, corpora, crs, evasion};

/// What to send, and where to.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "corpus-run", about = "Replays the corpora through Portcullis and reports block rates.")]
pub struct Options {
    /// Only files whose name has this in it.
    #[arg(long, default_value = "", value_name = "PART")]
    pub only: String,
    /// Every N-th record of a file.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub every: usize,
    /// CRS paranoia level of the proxy.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub paranoia: u8,
    /// Requests in flight.
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub connections: usize,
    /// Seconds after which a request counts as hanging.
    #[arg(long, default_value_t = 20, value_name = "S")]
    pub timeout: u64,
    /// A proxy that runs already, instead of starting Portcullis.
    #[arg(long, value_name = "ADDRESS")]
    pub target: Option<SocketAddr>,
    /// Only the body and parser evasions, judged form by form.
    #[arg(long)]
    pub evasions: bool,
    /// With `--evasions`: how many requests the corpus must have.
    #[arg(long, value_name = "N")]
    pub count: Option<usize>,
    /// What `SecCompatibility` says: `modsecurity2` or `modsecurity3`.
    #[arg(long, value_name = "NAME", conflicts_with = "target")]
    pub compat: Option<String>,
    /// With `--evasions`: the percentage of forms that must be blocked or rejected.
    #[arg(long, default_value_t = 97.0, value_name = "PERCENT")]
    pub at_least: f64,
    /// Keeps the proxy's files here instead of in a temporary folder.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// The files, with the places that values go to. Requests go as they are.
const FILES: [(&str, Kind); 35] = [
    ("benign/synthetic-requests.jsonl", Kind::Requests),
    ("benign/access-log-apache.jsonl", Kind::Requests),
    ("benign/http-headers-hpack.jsonl", Kind::Requests),
    ("benign/wcp-legit-query.jsonl", Kind::QueryStrings),
    ("benign/httpparams-values.jsonl", Kind::Values),
    ("benign/libinjection-false-positives.jsonl", Kind::Values),
    ("benign/english-text.jsonl", Kind::Values),
    ("mixed/naughty-strings.jsonl", Kind::Values),
    ("robustness/body-parsing-evasion.jsonl", Kind::Requests),
    ("robustness/sqli-tampered.jsonl", Kind::Values),
    ("attack/crlf.jsonl", Kind::Values),
    ("attack/cve-requests-vulhub.jsonl", Kind::Raw),
    ("attack/deserialization.jsonl", Kind::Values),
    ("attack/format-string.jsonl", Kind::Values),
    ("attack/json-fuzz.jsonl", Kind::Values),
    ("attack/ldap.jsonl", Kind::Values),
    ("attack/lfi.jsonl", Kind::Values),
    ("attack/log4shell.jsonl", Kind::Values),
    ("attack/nosql.jsonl", Kind::Values),
    ("attack/open-redirect.jsonl", Kind::Values),
    ("attack/patt-readme-snippets.jsonl", Kind::Values),
    ("attack/rce-own.jsonl", Kind::Values),
    ("attack/rce.jsonl", Kind::Values),
    ("attack/rfi.jsonl", Kind::Values),
    ("attack/scanner-path.jsonl", Kind::Paths),
    ("attack/sqli-sqlmap-rendered.jsonl", Kind::Values),
    ("attack/sqli.jsonl", Kind::Values),
    ("attack/ssi.jsonl", Kind::Values),
    ("attack/ssrf.jsonl", Kind::Values),
    ("attack/ssti.jsonl", Kind::Values),
    ("attack/upload.jsonl", Kind::Values),
    ("attack/xpath.jsonl", Kind::Values),
    ("attack/xss-dompurify-fixtures.jsonl", Kind::Values),
    ("attack/xss.jsonl", Kind::Values),
    ("attack/xxe.jsonl", Kind::XmlBodies),
];

#[derive(Clone, Copy, Debug)]
enum Kind {
    Requests,
    /// Whole requests with LF line ends and a `Content-Length` that may be wrong.
    Raw,
    QueryStrings,
    Paths,
    XmlBodies,
    Values,
}

/// One request to send, with the row of the report it counts in.
struct Shot {
    row: usize,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct Row {
    sent: usize,
    by_status: BTreeMap<u16, usize>,
    hung: usize,
    broken: usize,
    /// The first request that broke something.
    example: Option<String>,
}

/// Sends everything and prints the report. True if nothing broke.
pub fn run(options: &Options) -> Result<bool, TestkitError> {
    let mut proxy = match options.target {
        Some(_) => None,
        None => {
            let mut flags: Vec<OsString> = vec!["--paranoia".into(), options.paranoia.to_string().into()];
            let folder = Folder::create(options.keep.as_deref())?;
            if let Some(compat) = &options.compat {
                let setup = folder.file("compat.conf");
                std::fs::write(&setup, format!("SecCompatibility {compat}\n"))
                    .map_err(|source| TestkitError::io(&setup, source))?;
                flags.extend(["--setup".into(), setup.into()]);
            }
            Some(Proxy::start(folder, crs::rules()?, flags)?)
        }
    };
    let target = options.target.or(proxy.as_ref().map(Proxy::address));
    let target = target.ok_or_else(|| TestkitError::Run("no target".into()))?;
    let began = Instant::now();
    if options.evasions {
        let good =
            evasion::run(target, options.at_least, options.count, Duration::from_secs(options.timeout))?;
        let panics = proxy.map(Proxy::stop).transpose()?.map(|folder| folder.panics()).unwrap_or_default();
        panics.iter().for_each(|line| println!("TROUBLE {line}"));
        return Ok(good && panics.is_empty());
    }
    let mut good = true;
    let mut total = 0;
    println!(
        "{:<44} {:<8} {:>7} {:>8} {:>8} {:>8} {:>6}  other",
        "file", "place", "sent", "blocked", "refused", "passed", "rate"
    );
    for (name, kind) in FILES.iter().filter(|(name, _)| name.contains(&options.only)) {
        let (labels, shots) = load(name, *kind, options.every.max(1))?;
        let rows = send(&shots, labels.len(), target, options);
        for (label, row) in labels.iter().zip(&rows) {
            good &= print(name, label, row);
            total += row.sent;
        }
        if let Some(proxy) = &mut proxy {
            proxy.check_alive()?;
        }
    }
    if total == 0 {
        return Err(TestkitError::Run(format!("no file has `{}` in its name", options.only)));
    }
    if let Some(proxy) = proxy {
        let folder = proxy.stop()?;
        for line in folder.panics() {
            println!("TROUBLE {line}");
            good = false;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{total} requests in {seconds:.1} s, {}",
        if good { "nothing broke" } else { "SOMETHING BROKE" }
    );
    Ok(good)
}

fn load(name: &str, kind: Kind, every: usize) -> Result<(Vec<String>, Vec<Shot>), TestkitError> {
    let places = |list: &[&str]| list.iter().map(|place| place.to_string()).collect::<Vec<_>>();
    let one = |label: &str, list: Vec<Vec<u8>>| {
        (places(&[label]), list.into_iter().map(|bytes| Shot { row: 0, bytes }).collect())
    };
    Ok(match kind {
        Kind::Requests => {
            let requests = corpora::requests(name)?;
            let mut labels = Vec::new();
            let mut shots = Vec::new();
            for request in requests.into_iter().step_by(every) {
                let request = without_empty_promises(request);
                let label = if request.tier.is_empty() { "request" } else { request.tier.as_str() };
                let row = labels.iter().position(|have| have == label).unwrap_or_else(|| {
                    labels.push(label.to_string());
                    labels.len() - 1
                });
                shots.push(Shot { row, bytes: request.wire(true) });
            }
            (labels, shots)
        }
        Kind::Raw => {
            #[derive(Deserialize)]
            struct Line {
                raw: Option<String>,
                raw_b64: Option<String>,
            }
            let lines: Vec<Line> = corpora::records(name)?;
            let requests = lines.into_iter().step_by(every).filter_map(|line| {
                line.raw.map(String::into_bytes).or_else(|| base64::decode(&line.raw_b64?))
            });
            one("request", requests.map(|raw| repaired(&raw)).collect())
        }
        Kind::QueryStrings => one("query", each(name, every, |value| get("/items?", value))?),
        Kind::Paths => one("path", each(name, every, path)?),
        Kind::XmlBodies => one("xml", each(name, every, |value| post("application/xml", value))?),
        Kind::Values => {
            let values = corpora::values(name)?;
            let shots = values.iter().step_by(every).flat_map(|value| {
                (0..PLACES.len()).map(move |row| Shot { row, bytes: placed(PLACES[row], &value.bytes) })
            });
            (places(&PLACES), shots.collect())
        }
    })
}

const PLACES: [&str; 5] = ["query", "form", "json", "cookie", "header"];

const COMMON: &str = "Host: app.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\nAccept: text/html,application/json;q=0.9,*/*;q=0.8\r\n";

/// A request with the value at one place.
fn placed(place: &str, value: &[u8]) -> Vec<u8> {
    let get =
        |target: &str, fields: &str| format!("GET {target} HTTP/1.1\r\n{COMMON}{fields}\r\n").into_bytes();
    match place {
        "query" => get(&format!("/search?q={}", percent(value)), ""),
        "cookie" => get("/account", &format!("Cookie: session=4f1c22d09b; note={}\r\n", percent(value))),
        "header" => get("/account", &format!("X-Note: {}\r\n", visible(value))),
        "form" => post(
            "application/x-www-form-urlencoded",
            format!("name=Ann&comment={}", percent(value)).as_bytes(),
        ),
        _ => {
            let text = serde_json::Value::String(String::from_utf8_lossy(value).into_owned());
            post("application/json", format!("{{\"id\":7,\"comment\":{text}}}").as_bytes())
        }
    }
}

/// A request of every value of a list, or of each `every`th one.
fn each(name: &str, every: usize, request: impl Fn(&[u8]) -> Vec<u8>) -> Result<Vec<Vec<u8>>, TestkitError> {
    Ok(corpora::values(name)?.iter().step_by(every).map(|value| request(&value.bytes)).collect())
}

fn get(prefix: &str, value: &[u8]) -> Vec<u8> {
    format!("GET {prefix}{} HTTP/1.1\r\n{COMMON}\r\n", visible(value).replace(' ', "%20")).into_bytes()
}

/// A request whose target is the value.
fn path(value: &[u8]) -> Vec<u8> {
    get(if value.starts_with(b"/") { "" } else { "/" }, value)
}

fn post(kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST /comments HTTP/1.1\r\n{COMMON}Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Percent-encoded but for unreserved characters, as a browser's form does.
fn percent(value: &[u8]) -> String {
    let mut out = String::with_capacity(value.len() * 2);
    for &byte in value {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// As it is, but for bytes that a header line or request target cannot have.
fn visible(value: &[u8]) -> String {
    let mut out = String::with_capacity(value.len());
    for &byte in value {
        match byte {
            0x20..=0x7e => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// A recorded head whose body was not recorded announces no body: the proxy would wait for it.
fn without_empty_promises(mut request: corpora::Request) -> corpora::Request {
    if request.body.is_none() {
        request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-length"));
    }
    request
}

/// CRLF line ends in the head, and a `Content-Length` that is true.
fn repaired(raw: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(raw).replace("\r\n", "\n");
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut out = String::new();
    for line in head.lines().filter(|line| {
        let line = line.to_ascii_lowercase();
        !line.starts_with("content-length:")
            && !line.starts_with("transfer-encoding:")
            && !line.starts_with("connection:")
    }) {
        out.push_str(line);
        out.push_str("\r\n");
    }
    if !body.is_empty() {
        out.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    format!("{out}\r\n{body}").into_bytes()
}

fn send(shots: &[Shot], rows: usize, target: SocketAddr, options: &Options) -> Vec<Row> {
    let next = AtomicUsize::new(0);
    let result = Mutex::new(vec![Row::default(); rows]);
    let limit = Duration::from_secs(options.timeout);
    std::thread::scope(|scope| {
        for thread in 0..options.connections.clamp(1, 256) {
            let (next, result) = (&next, &result);
            scope.spawn(move || {
                let source = IpAddr::V4(Ipv4Addr::new(127, 2, 0, thread as u8));
                let mut own = vec![Row::default(); rows];
                let mut connection = None;
                while let Some(shot) = shots.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = one(&mut connection, target, source, &shot.bytes, limit);
                    own[shot.row].count(&shot.bytes, outcome);
                }
                if let Ok(mut rows) = result.lock() {
                    rows.iter_mut().zip(own).for_each(|(row, own)| row.add(own));
                }
            });
        }
    });
    result.into_inner().unwrap_or_default()
}

/// Sends over the open connection. A kept connection may have been closed meanwhile; then once over a new
/// one.
fn one(
    connection: &mut Option<Connection>,
    target: SocketAddr,
    source: IpAddr,
    bytes: &[u8],
    limit: Duration,
) -> Result<Exchange, Failure> {
    if let Some(open) = connection.as_mut().filter(|open| open.reusable()) {
        let outcome = open.exchange(bytes, limit);
        if !matches!(outcome, Err(Failure::Closed)) {
            return outcome;
        }
    }
    let open = connection.insert(Connection::open(target, Some(source), limit)?);
    open.exchange(bytes, limit)
}

impl Row {
    fn count(&mut self, bytes: &[u8], outcome: Result<Exchange, Failure>) {
        self.sent += 1;
        let trouble = match &outcome {
            Ok(response) => {
                *self.by_status.entry(response.status).or_default() += 1;
                (response.status >= 500).then(|| format!("status {}", response.status))
            }
            Err(Failure::TimedOut) => {
                self.hung += 1;
                Some("hung".into())
            }
            Err(failure) => {
                self.broken += 1;
                Some(failure.to_string())
            }
        };
        if let Some(trouble) = trouble.filter(|_| self.example.is_none()) {
            let start = &bytes[..bytes.len().min(300)];
            self.example = Some(format!("{trouble}: {}", start.escape_ascii()));
        }
    }

    fn add(&mut self, other: Row) {
        self.sent += other.sent;
        self.hung += other.hung;
        self.broken += other.broken;
        for (status, count) in other.by_status {
            *self.by_status.entry(status).or_default() += count;
        }
        self.example = self.example.take().or(other.example);
    }
}

/// One line of the report. False if something broke.
fn print(name: &str, label: &str, row: &Row) -> bool {
    let count = |wanted: &dyn Fn(u16) -> bool| {
        row.by_status.iter().filter(|(status, _)| wanted(**status)).map(|(_, count)| count).sum::<usize>()
    };
    let blocked = count(&|status| status == 403);
    let passed = count(&|status| matches!(status, 200..400));
    let refused = count(&|status| matches!(status, 400..500) && status != 403);
    let own = count(&|status| status >= 500);
    let rate = 100.0 * blocked as f64 / row.sent.max(1) as f64;
    let mut other = String::new();
    for (what, count) in [("5xx", own), ("hung", row.hung), ("broken", row.broken)] {
        if count > 0 {
            other.push_str(&format!("{what} {count} "));
        }
    }
    println!(
        "{name:<44} {label:<8} {:>7} {blocked:>8} {refused:>8} {passed:>8} {rate:>5.1}%  {other}",
        row.sent
    );
    if let Some(example) = &row.example {
        println!("TROUBLE {example}");
    }
    row.example.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::{Response, Server};

    #[test]
    fn places() {
        let check = |place: &str, want: &str| {
            let have = String::from_utf8_lossy(&placed(place, b"<a\r\nb> \"\xff")).into_owned();
            assert!(have.contains(want), "{place}: {have}");
        };
        check("query", "GET /search?q=%3Ca%0D%0Ab%3E%20%22%FF HTTP/1.1\r\n");
        check("form", "Content-Length: 40\r\n\r\nname=Ann&comment=%3Ca%0D%0Ab%3E%20%22%FF");
        check("json", "{\"id\":7,\"comment\":\"<a\\r\\nb> \\\"\u{fffd}\"}");
        check("cookie", "; note=%3Ca%0D%0Ab%3E%20%22%FF\r\n");
        check("header", "\r\nX-Note: <a%0D%0Ab> \"%FF\r\n");
    }

    #[test]
    fn raw_requests_are_repaired() {
        let raw = b"POST / HTTP/1.1\nHost: a\ncontent-length: 9\n\nab\n";
        assert_eq!(repaired(raw), b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab\n");
    }

    #[test]
    fn what_breaks_is_counted() {
        let server = Server::start("127.0.0.1:0", |request| Response {
            status: if request.target.contains("boom") { 502 } else { 403 },
            ..Response::default()
        })
        .unwrap();
        let options = <Options as clap::Parser>::parse_from(["corpus-run"]);
        let shots = [&b"a"[..], b"boom", b"c"].map(|value| Shot { row: 0, bytes: placed("query", value) });
        let rows = send(&shots, 1, server.address(), &options);
        assert_eq!(rows[0].by_status, BTreeMap::from([(403, 2), (502, 1)]));
        assert!(!print("x", "query", &rows[0]));
    }
}
