//! What `portcullis serve ext-proc` adds to a request of Envoy, beside a server that inspects nothing: see
//! docs/integrations.md.
//!
//! Three Envoys by the shipped configuration: one without the filter, one that asks the empty server of this
//! program (a process of its own, with the same HTTP/2 library, which neither decodes messages nor looks at
//! them), one that asks Portcullis. One client sends requests one at a time on one connection to each, in
//! turns of a few requests, so that what else runs on the machine meets all three.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Parser;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use portcullis_agent::{Frames, Framing};
use portcullis_testkit::TestkitError;
use portcullis_testkit::client::Connection;
use portcullis_testkit::process::Process;
use portcullis_testkit::proxy::{Folder, free_address, program};
use portcullis_testkit::random::Random;
use portcullis_testkit::upstream::{Response, Server};
use portcullis_testkit::workspace_root;

/// Measures what an ext_proc server adds to a request of Envoy.
#[derive(Parser)]
struct Options {
    /// In each round every Envoy gets its requests in turn
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Requests to each Envoy in a round, of each kind
    #[arg(long, default_value_t = 500)]
    requests: usize,
    /// What Portcullis inspects with
    #[arg(long, value_enum, default_value_t = Mode::Both)]
    mode: Mode,
    /// Folder of the CRS [default: .portcullis/crs of the repository]
    #[arg(long)]
    crs: Option<PathBuf>,
    /// Envoy [default: the one that scripts/test-tools.sh installs]
    #[arg(long)]
    envoy: Option<PathBuf>,
    /// Serve as the empty server; the program starts itself so
    #[arg(long, hide = true)]
    empty: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    Crs,
    Semantic,
    Both,
}

/// Requests of each kind to each Envoy before the first that counts.
const WARM: usize = 300;
/// For one answer, or a start.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the application answers.
const PAGE: &[u8] = b"<!DOCTYPE html><title>Shop</title><p>Three books, sorted by price.</p>\n";

/// The servers that are compared, in the order of the tables.
const NAMES: [&str; 3] = ["no filter", "empty server", "portcullis"];
const EMPTY: usize = 1;
const OURS: usize = 2;

fn main() -> ExitCode {
    let options = Options::parse();
    let result = match options.empty {
        Some(address) => empty::serve(address),
        None => measure(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ext-proc-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// One Envoy with its server.
struct Way {
    _envoy: Process,
    server: Option<Process>,
    client: Connection,
    times: Times,
}

/// What one kind of requests took.
#[derive(Default)]
struct Times {
    all: Vec<f64>,
    /// The medians of the rounds.
    rounds: Vec<f64>,
    /// The 99th percentiles of the rounds.
    slow: Vec<f64>,
    /// CPU time of the server.
    cpu: Duration,
}

fn measure(options: &Options) -> Result<(), TestkitError> {
    let folder = Folder::create(None)?;
    let application = Server::start("127.0.0.1:0", |_| Response {
        status: 200,
        headers: vec![("Content-Type".to_owned(), "text/html; charset=utf-8".to_owned())],
        body: PAGE.to_vec(),
    });
    let application = application.map_err(|error| TestkitError::Run(format!("application: {error}")))?;
    let mut ways = Vec::new();
    for (at, name) in NAMES.iter().enumerate() {
        let address = free_address()?;
        let log = folder.file(&format!("server-{at}.txt"));
        let server = match at {
            EMPTY => Some(start(&here()?, &["--empty".into(), address.to_string().into()], address, &log)?),
            OURS => Some(start(&program()?, &serve(options, address), address, &log)?),
            _ => None,
        };
        let (envoy, listener) = envoy(options, &folder, at, application.address(), address)?;
        let client = Connection::open(listener, None, PATIENCE).map_err(failed)?;
        let mut way = Way { _envoy: envoy, server, client, times: Times::default() };
        let attack = way.ask(b"GET /?q=%27+OR+%271%27%3D%271%27+--+ HTTP/1.1\r\nHost: a\r\n\r\n")?.0;
        match (at, attack) {
            (OURS, 403) | (0 | EMPTY, 200) => {}
            _ => return Err(TestkitError::Run(format!("{name}: an attack is answered {attack}"))),
        }
        ways.push(way);
    }
    let mode = format!("{:?}", options.mode).to_lowercase();
    println!("{} rounds of {} requests to each Envoy, one at a time", options.rounds, options.requests);
    let mut random = Random::new(1);
    for (title, make) in
        [("GET, 3 arguments", get as fn(&mut Random) -> String), ("POST, 1 KB of JSON", post)]
    {
        let requests: Vec<String> = (0..128).map(|_| make(&mut random)).collect();
        kind(options, &requests, &mut ways)?;
        report(&format!("{title}; portcullis in mode {mode}"), options, &mut ways);
    }
    Ok(())
}

const HEADERS: &str = "Host: shop.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) bench\r\n\
     Accept: text/html,application/json;q=0.9,*/*;q=0.8\r\n";

fn get(random: &mut Random) -> String {
    let page = random.below(100);
    format!("GET /products?category=books&sort=price&page={page} HTTP/1.1\r\n{HEADERS}\r\n")
}

fn post(random: &mut Random) -> String {
    let mut body = String::from("[");
    while body.len() < 1_000 {
        let (id, price, name) = (random.below(100_000), random.below(10_000), random.number());
        body += &format!(
            "{{\"id\":{id},\"name\":\"item {name:x}\",\"price\":{price},\"tags\":[\"new\",\"red\"]}},"
        );
    }
    body.replace_range(body.len() - 1.., "]");
    let length = body.len();
    format!(
        "POST /api HTTP/1.1\r\n{HEADERS}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// Requests of one kind.
fn kind(options: &Options, requests: &[String], ways: &mut [Way]) -> Result<(), TestkitError> {
    for way in ways.iter_mut() {
        way.times = Times::default();
    }
    for round in 0..=options.rounds {
        let count = if round == 0 { WARM } else { options.requests };
        // Who begins changes, for what is done behind a turn meets the next one.
        for at in 0..ways.len() {
            let at = (at + round) % NAMES.len();
            let way = &mut ways[at];
            let before = way.cpu();
            let mut times = Vec::with_capacity(count);
            for request in requests.iter().cycle().take(count) {
                let (status, took) = way.ask(request.as_bytes())?;
                if status != 200 {
                    return Err(TestkitError::Run(format!("{}: a request is answered {status}", NAMES[at])));
                }
                times.push(took.as_secs_f64() * 1e6);
            }
            if round > 0 {
                way.times.cpu += way.cpu().saturating_sub(before);
                way.times.rounds.push(share(&mut times, 0.5));
                way.times.slow.push(share(&mut times, 0.99));
                way.times.all.append(&mut times);
            }
        }
    }
    Ok(())
}

fn report(title: &str, options: &Options, ways: &mut [Way]) {
    let requests = (options.rounds * options.requests).max(1) as f64;
    println!("\n{title}\n\n{:<24} {:>8} {:>8} {:>14}", "microseconds", "p50", "p99", "CPU of server");
    for (name, way) in NAMES.iter().zip(ways.iter_mut()) {
        let cpu = way.times.cpu.as_secs_f64() * 1e6 / requests;
        let cpu = way.server.as_ref().map_or("-".to_owned(), |_| format!("{cpu:.1}"));
        let (middle, slow) = (share(&mut way.times.all, 0.5), share(&mut way.times.all, 0.99));
        println!("{name:<24} {middle:>8.1} {slow:>8.1} {cpu:>14}");
    }
    for (what, from, to) in [
        ("empty beside no filter", 0, EMPTY),
        ("ours beside empty", EMPTY, OURS),
        ("ours beside no filter", 0, OURS),
    ] {
        let between = |of: fn(&Times) -> &Vec<f64>| {
            let (from, to) = (of(&ways[from].times), of(&ways[to].times));
            let mut differences: Vec<f64> = from.iter().zip(to).map(|(from, to)| to - from).collect();
            let middle = share(&mut differences, 0.5);
            let ends = |at: Option<&f64>| at.copied().unwrap_or_default();
            format!("{middle:.1} ({:.1} to {:.1})", ends(differences.first()), ends(differences.last()))
        };
        let (middle, slow) = (between(|times| &times.rounds), between(|times| &times.slow));
        println!("{what}: p50 {middle}, p99 {slow}, median and extremes of the rounds");
    }
}

impl Way {
    /// Status of the answer, and the time for it.
    fn ask(&mut self, request: &[u8]) -> Result<(u16, Duration), TestkitError> {
        let begin = Instant::now();
        let answer = self.client.exchange(request, PATIENCE).map_err(failed)?;
        Ok((answer.status, begin.elapsed()))
    }

    /// What the threads of the server have taken so far, as Linux accounts it.
    fn cpu(&self) -> Duration {
        let Some(server) = &self.server else { return Duration::ZERO };
        let threads =
            std::fs::read_dir(format!("/proc/{}/task", server.id())).into_iter().flatten().flatten();
        let nanoseconds = |thread: std::fs::DirEntry| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        };
        Duration::from_nanos(threads.filter_map(nanoseconds).sum())
    }
}

/// Sorts, and gives what this share is not above.
fn share(times: &mut [f64], share: f64) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default()
}

fn serve(options: &Options, address: SocketAddr) -> Vec<OsString> {
    let mode = match options.mode {
        Mode::Crs => "crs",
        Mode::Semantic => "semantic",
        Mode::Both => "both",
    };
    let mut arguments: Vec<OsString> =
        ["serve", "ext-proc", "--listen", &address.to_string(), "--mode", mode].map(OsString::from).into();
    if options.mode != Mode::Semantic {
        let crs = options.crs.clone().unwrap_or_else(|| workspace_root().join(".portcullis/crs"));
        arguments.extend(["--crs".into(), crs.into_os_string()]);
    }
    arguments
}

/// Envoy by the shipped configuration, and the address that it listens on.
fn envoy(
    options: &Options,
    folder: &Folder,
    at: usize,
    application: SocketAddr,
    server: SocketAddr,
) -> Result<(Process, SocketAddr), TestkitError> {
    let root = workspace_root();
    let path = root.join("examples/integrations/envoy-ext-proc.yaml");
    let mut text = std::fs::read_to_string(&path).map_err(|source| TestkitError::io(&path, source))?;
    if at == 0 {
        let (filter, router) = ("- name: envoy.filters.http.ext_proc", "- name: envoy.filters.http.router");
        let (Some(from), Some(to)) = (text.find(filter), text.find(router)) else {
            return Err(TestkitError::Run(format!("{}: there is no filter in it", path.display())));
        };
        text.replace_range(from..to, "");
    }
    let listener = free_address()?;
    let place = |address: SocketAddr| format!("address: {}, port_value: {} ", address.ip(), address.port());
    for (port, address) in [(8080, listener), (8081, application), (9005, server)] {
        text = text.replace(&format!("address: 127.0.0.1, port_value: {port} "), &place(address));
    }
    let file = folder.file(&format!("envoy-{at}.yaml"));
    std::fs::write(&file, text).map_err(|source| TestkitError::io(&file, source))?;
    let program = options.envoy.clone().unwrap_or_else(|| root.join("target/tools/envoy/envoy/_bin/envoy"));
    let mut arguments: Vec<OsString> = vec!["-c".into(), file.into()];
    let more = ["--use-dynamic-base-id", "--concurrency", "1", "--log-level", "warning"];
    arguments.extend(more.map(OsString::from));
    let process = start(&program, &arguments, listener, &folder.file(&format!("envoy-{at}.txt")))?;
    Ok((process, listener))
}

fn start(
    program: &Path,
    arguments: &[OsString],
    address: SocketAddr,
    log: &Path,
) -> Result<Process, TestkitError> {
    let mut process = Process::start(program, arguments, log)?;
    process.wait_for(address, PATIENCE)?;
    Ok(process)
}

fn here() -> Result<PathBuf, TestkitError> {
    std::env::current_exe().map_err(|source| TestkitError::io("current program", source))
}

fn failed(failure: portcullis_testkit::client::Failure) -> TestkitError {
    TestkitError::Run(failure.to_string())
}

/// The server that lets everything go on.
mod empty {
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    pub(super) fn serve(address: SocketAddr) -> Result<(), TestkitError> {
        let failed = |error: std::io::Error| TestkitError::Run(format!("empty server: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            loop {
                let (stream, _) = listener.accept().await.map_err(failed)?;
                stream.set_nodelay(true).map_err(failed)?;
                tokio::task::spawn_local(connection(stream));
            }
        })
    }

    /// A connection; it ends with its peer.
    async fn connection(stream: TcpStream) {
        let Ok(mut connection) = h2::server::handshake(stream).await else { return };
        while let Some(Ok((request, respond))) = connection.accept().await {
            tokio::task::spawn_local(call(request.into_body(), respond));
        }
    }

    async fn call(mut incoming: RecvStream, mut respond: SendResponse<Bytes>) -> Option<()> {
        let response = http::Response::builder().header("content-type", "application/grpc").body(()).ok()?;
        let mut outgoing = respond.send_response(response, false).ok()?;
        let mut frames = Frames::new(Framing::Grpc);
        while let Some(Ok(data)) = incoming.data().await {
            let _ = incoming.flow_control().release_capacity(data.len());
            frames.feed(&data);
            while let Ok(Some(message)) = frames.next(16 << 20) {
                let Some(tag) = message.first().and_then(|tag| go_on(*tag)) else {
                    outgoing.send_reset(Reason::INTERNAL_ERROR);
                    return None;
                };
                outgoing.send_data(Bytes::copy_from_slice(&[0, 0, 0, 0, 2, tag, 0]), false).ok()?;
            }
        }
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
        outgoing.send_trailers(trailers).ok()
    }

    /// The tag of the empty answer to a message, by that of its first field: a part of an exchange is a field
    /// of `ProcessingRequest`, its answer the one before it of `ProcessingResponse`.
    fn go_on(tag: u8) -> Option<u8> {
        let field = tag >> 3;
        (2..=7).contains(&field).then(|| (field - 1) << 3 | 2)
    }
}
