//! What asking an inspection agent adds to a request: see docs/agents.md.
//!
//! One client sends requests on one connection, in turn to a route without an agent, to one with the echo
//! agent of the testkit, a process of its own, over a Unix socket, and to one with it over gRPC. All are
//! answered by Portcullis itself, so that nothing else is in the difference. Beside it the same messages go
//! to the agent at the Unix socket directly, which is what the operating system and the agent take.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use portcullis_agent::wire::{Header, Hello, RequestHead, To, ToAgent};
use portcullis_agent::{Framing, Session, frame};
use portcullis_testkit::client::Connection;
use portcullis_testkit::proxy::{Folder, Proxy, free_address};
use portcullis_testkit::{TestkitError, agent};

/// Measures what an inspection agent adds to a request.
#[derive(Parser)]
struct Options {
    /// Requests to each route.
    #[arg(long, default_value_t = 20_000)]
    requests: usize,
}

/// Requests before the first that counts.
const WARM: usize = 500;
/// For one answer.
const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    match measure(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("agent-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<(), TestkitError> {
    let folder = Folder::create(None)?;
    let socket = folder.file("agent.sock");
    let unix = agent::Address::Unix(socket.clone());
    let grpc = agent::Address::Grpc(free_address()?);
    let _unix = agent::start(&unix, &folder.file("unix.txt"))?;
    let _grpc = agent::start(&grpc, &folder.file("grpc.txt"))?;
    let direct = direct(&socket, options.requests)?;
    let proxy = Proxy::configured(
        Folder::create(None)?,
        |address, admin| {
            format!(
                "workers = 1\nadmin = {{ listen = \"{admin}\" }}\n\
             [[listeners]]\nname = \"http\"\naddress = \"{address}\"\n\
             [agents.unix]\naddress = \"{unix}\"\n[agents.grpc]\naddress = \"{grpc}\"\n\
             [[sites]]\nname = \"bench\"\nhosts = [\"*\"]\nmode = \"off\"\n\
             routes = [{{ path = \"/plain\", respond = {{ status = 204 }} }}, \
             {{ path = \"/unix\", agents = [\"unix\"], respond = {{ status = 204 }} }}, \
             {{ path = \"/grpc\", agents = [\"grpc\"], respond = {{ status = 204 }} }}]\n"
            )
        },
        &[],
    )?;
    let mut client = Connection::open(proxy.address(), None, PATIENCE).map_err(failed)?;
    let mut ask = |path: &str| -> Result<Duration, TestkitError> {
        let request = format!("GET {path} HTTP/1.1\r\n{HEADERS}\r\n");
        let begin = Instant::now();
        let answer = client.exchange(request.as_bytes(), PATIENCE).map_err(failed)?;
        let took = begin.elapsed();
        match answer.status {
            204 => Ok(took),
            status => Err(TestkitError::Run(format!("{path} is answered {status}"))),
        }
    };
    let mut times: [Vec<f64>; 5] = Default::default();
    for turn in 0..WARM + options.requests {
        let [plain, unix, grpc] = [ask("/plain")?, ask("/unix")?, ask("/grpc")?].map(micros);
        if turn >= WARM {
            let all = [plain, unix, unix - plain, grpc, grpc - plain];
            times.iter_mut().zip(all).for_each(|(times, time)| times.push(time));
        }
    }
    println!("{} requests to each route, one at a time; microseconds", options.requests);
    println!("{:<44} {:>8} {:>8}", "", "p50", "p99");
    let names = [
        "without an agent",
        "with one over a Unix socket",
        "added (differences of neighbours)",
        "with one over gRPC",
        "added (differences of neighbours)",
    ];
    names.iter().zip(&mut times).for_each(|(name, times)| row(name, times));
    row("the Unix socket asked directly, no proxy", &mut direct.into_iter().map(micros).collect::<Vec<_>>());
    Ok(())
}

const HEADERS: &str = "Host: localhost\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
     Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en\r\nCookie: session=4c3f9e2a71\r\n";

/// The same question to the agent itself, again and again.
fn direct(socket: &Path, count: usize) -> Result<Vec<Duration>, TestkitError> {
    let broken = |source| TestkitError::io(socket, source);
    let mut stream = UnixStream::connect(socket).map_err(broken)?;
    let hello = Hello { version_min: 1, version_max: 1, ..Hello::default() };
    stream.write_all(&frame(Framing::Length, &ToAgent::of(0, To::Hello(hello)))).map_err(broken)?;
    let mut session = Session::default();
    let mut buffer = [0; 4096];
    while session.terms().is_none() {
        receive(&mut stream, &mut session, &mut buffer).map_err(broken)?;
    }
    let headers = HEADERS.lines().filter_map(|line| line.split_once(": "));
    let headers: Vec<Header> =
        headers.map(|(name, value)| Header { name: name.into(), value: value.into() }).collect();
    let mut times = Vec::new();
    for turn in 0..WARM + count {
        let begin = Instant::now();
        let exchange = session.begin();
        let head = RequestHead {
            method: b"GET".to_vec(),
            target: b"/agent".to_vec(),
            headers: headers.clone(),
            end: true,
            ..RequestHead::default()
        };
        stream
            .write_all(&frame(Framing::Length, &ToAgent::of(exchange, To::RequestHead(head))))
            .map_err(broken)?;
        while session.take_decision(exchange).is_none() {
            receive(&mut stream, &mut session, &mut buffer).map_err(broken)?;
        }
        session.end(exchange);
        if turn >= WARM {
            times.push(begin.elapsed());
        }
    }
    Ok(times)
}

fn receive(stream: &mut UnixStream, session: &mut Session, buffer: &mut [u8]) -> std::io::Result<()> {
    let count = stream.read(buffer)?;
    if count == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    session.receive(&buffer[..count], &mut Vec::new()).map_err(|why| std::io::Error::other(why.to_string()))
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn row(what: &str, times: &mut [f64]) {
    times.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default();
    println!("{what:<44} {:>8.1} {:>8.1}", at(0.5), at(0.99));
}

fn failed(failure: portcullis_testkit::client::Failure) -> TestkitError {
    TestkitError::Run(failure.to_string())
}
