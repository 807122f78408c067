//! The reaction of the echo agent to messages, over any transport.

use std::collections::HashMap;
use std::time::Duration;

use portcullis_agent::wire::{
    Body, Credit, Decision, DecisionVerdict, From, FromAgent, Header, HeaderChange, HeaderChangeKind, To,
    ToAgent, Welcome,
};
use portcullis_agent::{Frames, Framing, TO_AGENT_BYTES, write_frame};

use super::Options;

/// The next step after bytes were taken.
#[derive(PartialEq, Eq)]
pub(super) enum Next {
    Read,
    /// The connection ends as if the agent had crashed.
    Close,
    /// It ends with a gRPC status; as [`Close`](Next::Close) over a Unix socket.
    Status(String, String),
    /// No new calls are taken on the connection (GOAWAY); nothing over a Unix socket.
    GoAway,
}

/// One connection.
pub(super) struct Talk<'o> {
    options: &'o Options,
    framing: Framing,
    frames: Frames,
    open: HashMap<u64, Exchange>,
    /// Responses are shown, too.
    responses: bool,
    /// The bytes to send.
    pub(super) out: Vec<u8>,
}

/// An exchange, or its response.
struct Exchange {
    commands: String,
    body: Vec<u8>,
}

impl<'o> Talk<'o> {
    pub(super) fn new(options: &'o Options, framing: Framing) -> Talk<'o> {
        Talk {
            options,
            framing,
            frames: Frames::new(framing),
            open: HashMap::new(),
            responses: false,
            out: Vec::new(),
        }
    }

    /// Takes what came; what is not of the protocol ends the connection.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Next {
        self.frames.feed(bytes);
        let mut next = Next::Read;
        loop {
            let message = match self.frames.next(TO_AGENT_BYTES).map(|message| message.map(ToAgent::read)) {
                Ok(Some(Ok(message))) => message,
                Ok(None) => return next,
                Ok(Some(Err(_))) | Err(_) => return Next::Close,
            };
            match self.take_message(message.exchange, message.message) {
                Next::Read => {}
                Next::GoAway => next = Next::GoAway,
                end @ (Next::Close | Next::Status(..)) => return end,
            }
        }
    }

    fn say(&mut self, exchange: u64, message: From) {
        write_frame(self.framing, &FromAgent::of(exchange, message), &mut self.out);
    }

    fn take_message(&mut self, number: u64, message: Option<To>) -> Next {
        let head = match message {
            Some(To::Hello(hello)) => {
                self.responses = hello.response_head;
                let welcome = Welcome {
                    version: self.options.version,
                    product: "portcullis-echo-agent".to_string(),
                    window_bytes: self.options.window,
                    message_bytes_max: 0,
                };
                self.say(0, welcome.into());
                return Next::Read;
            }
            Some(To::RequestHead(head)) => (head.headers, head.end),
            Some(To::ResponseHead(head)) => (head.headers, head.end),
            Some(To::RequestBody(piece) | To::ResponseBody(piece)) => {
                let Body { data, end, .. } = piece;
                let Some(mut exchange) = self.open.remove(&number) else { return Next::Read };
                exchange.body.extend_from_slice(&data);
                let mut next = Next::Read;
                match end {
                    true => next = self.decide(number, &mut exchange),
                    false => self.say(number, Credit { bytes: data.len() as u64 }.into()),
                }
                if !end || self.responses {
                    self.open.insert(number, exchange);
                }
                return next;
            }
            Some(To::Done(_)) => {
                self.open.remove(&number);
                return Next::Read;
            }
            None => return Next::Read,
        };
        let (headers, end) = head;
        let is_command = |header: &&Header| header.name.eq_ignore_ascii_case(b"x-agent");
        let commands = headers.iter().find(is_command);
        let commands =
            commands.map_or(String::new(), |header| String::from_utf8_lossy(&header.value).into_owned());
        let mut exchange = Exchange { commands, body: Vec::new() };
        if exchange.commands.contains("stall") {
            std::thread::sleep(Duration::from_secs(1));
        }
        let mut next = Next::Read;
        if end {
            next = self.decide(number, &mut exchange);
        }
        if !end || self.responses {
            self.open.insert(number, exchange);
        }
        next
    }

    fn decide(&mut self, number: u64, exchange: &mut Exchange) -> Next {
        // If no response is shown, the exchange ends with its decision.
        let mut decision = Decision { done: !self.responses, ..Decision::default() };
        let mut next = Next::Read;
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
                "silent" => return Next::Read,
                "garbage" => {
                    if self.framing == Framing::Grpc {
                        self.out.push(0);
                    }
                    self.out.extend_from_slice(&[0, 0, 0, 3, 0xff, 0xff, 0xff]);
                    return Next::Read;
                }
                "close" => return Next::Close,
                "status" => {
                    let (code, message) = rest.split_once(' ').unwrap_or((rest, ""));
                    return Next::Status(code.to_string(), message.to_string());
                }
                "go-away" => next = Next::GoAway,
                _ => {}
            }
        }
        exchange.body.clear();
        self.say(number, From::Decision(decision));
        next
    }
}
