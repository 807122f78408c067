//! An inspection agent for tests and demos: what it decides stands in the request.
//!
//! The header `X-Agent` has commands with `;` between them: `block 451`, `redirect /there`, `score 5`, `tag bot`, `reason TEXT`,
//! `set NAME VALUE`, `add NAME VALUE`, `remove NAME` (of the request), `set-response NAME VALUE`, `done`, `silent` (no decision at
//! all), `garbage`, `nonsense` (a decision that cannot be carried out), `close`. Bodies with `block-body` are blocked, on the way
//! up and down; a response that has the header `X-Agent` is treated in the same way.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use portcullis_agent::wire::{
    Body, Credit, Decision, DecisionVerdict, From, FromAgent, Header, HeaderChange, HeaderChangeKind, To,
    ToAgent, Welcome,
};
use portcullis_agent::{Frames, TO_AGENT_BYTES, write_frame};

use crate::TestkitError;
use crate::process::Process;

/// Bytes of a body that it wants before it gives credit: few, so that tests see back-pressure.
const WINDOW_BYTES: u64 = 8 << 10;

/// Listens at `socket`, in place of whoever did before, and serves until the process ends; a thread for each connection.
pub fn serve(socket: &Path) -> io::Result<()> {
    let _ = std::fs::remove_file(socket);
    let listener = UnixListener::bind(socket)?;
    for stream in listener.incoming() {
        let stream = stream?;
        std::thread::spawn(move || converse(stream));
    }
    Ok(())
}

/// Starts `echo-agent`, which is beside this program, and waits until it listens. What it prints goes to the file `log`.
pub fn start(socket: &Path, log: &Path) -> Result<Process, TestkitError> {
    let here = std::env::current_exe().map_err(|source| TestkitError::io("current program", source))?;
    let program = here.parent().unwrap_or(Path::new(".")).join("echo-agent");
    let _ = std::fs::remove_file(socket);
    let agent = Process::start(&program, &[socket.into()], log)?;
    let end = Instant::now() + Duration::from_secs(20);
    while UnixStream::connect(socket).is_err() {
        if Instant::now() > end {
            return Err(TestkitError::Run("the agent does not listen".to_string()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(agent)
}

/// What a connection knows.
#[derive(Default)]
struct Exchanges {
    open: HashMap<u64, Exchange>,
    /// Responses are shown, too.
    responses: bool,
}

/// An exchange, or its response.
struct Exchange {
    commands: String,
    body: Vec<u8>,
}

fn converse(mut stream: UnixStream) -> io::Result<()> {
    let mut frames = Frames::default();
    let mut exchanges = Exchanges::default();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        frames.feed(&buffer[..count]);
        let mut out = Vec::new();
        loop {
            let broken = |_| io::Error::other("not a message");
            let Some(message) = frames.next(TO_AGENT_BYTES).map_err(broken)? else { break };
            let ToAgent { exchange, message } =
                ToAgent::read(message).map_err(|_| io::Error::other("not a message"))?;
            if !take(exchange, message, &mut exchanges, &mut out) {
                return Ok(());
            }
        }
        stream.write_all(&out)?;
    }
}

/// Takes a message; false if the connection is to be closed.
fn take(number: u64, message: Option<To>, known: &mut Exchanges, out: &mut Vec<u8>) -> bool {
    let Exchanges { open, responses } = known;
    let head = match message {
        Some(To::Hello(hello)) => {
            *responses = hello.response_head;
            let product = "portcullis-echo-agent".to_string();
            let welcome = Welcome { version: 1, product, window_bytes: WINDOW_BYTES, message_bytes_max: 0 };
            write_frame(&FromAgent::of(0, welcome.into()), out);
            return true;
        }
        Some(To::RequestHead(head)) => (head.headers, head.end),
        Some(To::ResponseHead(head)) => (head.headers, head.end),
        Some(To::RequestBody(piece) | To::ResponseBody(piece)) => {
            let Body { data, end, .. } = piece;
            let Some(exchange) = open.get_mut(&number) else { return true };
            exchange.body.extend_from_slice(&data);
            if !end {
                write_frame(&FromAgent::of(number, Credit { bytes: data.len() as u64 }.into()), out);
                return true;
            }
            let more = decide(number, exchange, *responses, out);
            if !*responses {
                open.remove(&number);
            }
            return more;
        }
        Some(To::Done(_)) => {
            open.remove(&number);
            return true;
        }
        None => return true,
    };
    let (headers, end) = head;
    let is_command = |header: &&Header| header.name.eq_ignore_ascii_case(b"x-agent");
    let commands = headers.iter().find(is_command);
    let commands =
        commands.map_or(String::new(), |header| String::from_utf8_lossy(&header.value).into_owned());
    let mut exchange = Exchange { commands, body: Vec::new() };
    let more = !end || decide(number, &mut exchange, *responses, out);
    if !end || *responses {
        open.insert(number, exchange);
    }
    more
}

fn decide(number: u64, exchange: &mut Exchange, responses: bool, out: &mut Vec<u8>) -> bool {
    // Where no response is shown the exchange is over with its decision.
    let mut decision = Decision { done: !responses, ..Decision::default() };
    if exchange.body.windows(10).any(|window| window == b"block-body") {
        decision.verdict = DecisionVerdict::Block as i32;
        decision.reason = format!("found in {} bytes", exchange.body.len());
    }
    for command in exchange.commands.split(';').map(str::trim) {
        let (name, rest) = command.split_once(' ').unwrap_or((command, ""));
        let mut change = |kind: HeaderChangeKind, is_request: bool| {
            let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
            let (name, value) = (name.to_string(), value.as_bytes().to_vec());
            let change = HeaderChange { kind: kind as i32, name, value };
            match is_request {
                true => decision.request_headers.push(change),
                false => decision.response_headers.push(change),
            }
        };
        match name {
            "set" => change(HeaderChangeKind::Set, true),
            "add" => change(HeaderChangeKind::Add, true),
            "remove" => change(HeaderChangeKind::Remove, true),
            "set-response" => change(HeaderChangeKind::Set, false),
            "block" => {
                decision.verdict = DecisionVerdict::Block as i32;
                decision.status = rest.parse().unwrap_or(0);
            }
            "redirect" => {
                decision.verdict = DecisionVerdict::Redirect as i32;
                decision.location = rest.to_string();
            }
            "score" => decision.score = rest.parse().unwrap_or(0),
            "tag" => decision.tags.push(rest.to_string()),
            "reason" => decision.reason = rest.to_string(),
            "done" => decision.done = true,
            "nonsense" => decision.verdict = 99,
            "silent" => return true,
            "garbage" => {
                out.extend_from_slice(&[0, 0, 0, 3, 0xff, 0xff, 0xff]);
                return true;
            }
            "close" => return false,
            _ => {}
        }
    }
    exchange.body.clear();
    write_frame(&FromAgent::of(number, From::Decision(decision)), out);
    true
}
