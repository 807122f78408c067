//! HAProxy's Stream Processing Offload Protocol: frames over TCP, several in flight on one connection.
//!
//! HAProxy sends a request as far as its buffer holds it (`tune.bufsize`), and sets variables of the
//! transaction by what comes back. A frame without an answer makes it set the variable of `option
//! set-on-error`; the example configuration refuses then.

mod data;
mod frame;
mod kept;
mod message;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use portcullis_event::{Action, BlindSpot};
use portcullis_http::message::BodyFraming;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::service::Service;
use frame::{DISCONNECT, Frame, HELLO, Hello, NOTIFY, Set, Status};
pub(crate) use kept::Kept;
use message::Message;
use portcullis_exchange::Unanswered;
use portcullis_exchange::{Arrival, Conversation, Cut};

/// The value of `error` for a response without its request, or one that is none. HAProxy's own are below 256,
/// or 256 and a status of the protocol.
const NO_EXCHANGE: i64 = 512;

/// Serves one connection.
pub(crate) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    service: &Arc<Service>,
    kept: Option<&Kept>,
    mut stopped: watch::Receiver<bool>,
) {
    let (reader, mut writer) = stream.into_split();
    let mut session = Session {
        service,
        kept,
        peer,
        reader: BufReader::new(reader),
        input: Vec::new(),
        output: Vec::new(),
        hello: None,
    };
    loop {
        let result = tokio::select! {
            result = session.next() => result,
            _ = stopped.wait_for(|stopped| *stopped) => Err(Ended::With(Status::Normal)),
        };
        if let Err(Ended::With(status)) = result {
            frame::write_disconnect(status, &mut session.output);
            session.count(status);
        }
        let written = timeout(service.limits.message_timeout, writer.write_all(&session.output)).await;
        session.output.clear();
        if result.is_err() || !matches!(written, Ok(Ok(()))) {
            return;
        }
    }
}

/// The reason why a connection ends.
#[derive(Clone, Copy, Debug)]
enum Ended {
    /// HAProxy closed it.
    Gone,
    /// HAProxy gets the reason.
    With(Status),
}

impl<S: Into<Status>> From<S> for Ended {
    fn from(status: S) -> Ended {
        Ended::With(status.into())
    }
}

struct Session<'a, R> {
    service: &'a Arc<Service>,
    kept: Option<&'a Kept>,
    peer: SocketAddr,
    reader: BufReader<R>,
    /// One frame.
    input: Vec<u8>,
    output: Vec<u8>,
    hello: Option<Hello>,
}

impl<R: tokio::io::AsyncRead + Unpin> Session<'_, R> {
    /// Reads a frame and answers it.
    async fn next(&mut self) -> Result<(), Ended> {
        self.read().await?;
        let input = std::mem::take(&mut self.input);
        let result = self.answer(&input);
        self.input = input;
        result
    }

    async fn read(&mut self) -> Result<(), Ended> {
        let limits = &self.service.limits;
        let first = match timeout(limits.idle_timeout, self.reader.read_u8()).await {
            Ok(Ok(first)) => first,
            Ok(Err(_)) => return Err(Ended::Gone),
            Err(_) => return Err(Status::Normal.into()),
        };
        let max = self.hello.map_or(frame::FRAME_BYTES_MAX, |hello| hello.frame_bytes_max);
        let rest = async {
            let mut length = [first, 0, 0, 0];
            self.reader.read_exact(&mut length[1..]).await.map_err(gone)?;
            let length = u32::from_be_bytes(length);
            if length > max {
                return Err(Ended::With(Status::TooBig));
            }
            self.input.clear();
            let wanted = u64::from(length);
            let read = (&mut self.reader).take(wanted).read_to_end(&mut self.input).await.map_err(gone)?;
            if read as u64 == wanted { Ok(()) } else { Err(Ended::Gone) }
        };
        timeout(limits.message_timeout, rest).await.unwrap_or(Err(Ended::With(Status::Timeout)))
    }

    fn answer(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        let frame = Frame::read(bytes)?;
        match (frame.kind, self.hello) {
            (HELLO, None) => {
                let hello = Hello::read(frame.payload)?;
                frame::write_hello(hello, &mut self.output);
                self.hello = Some(hello);
                // HAProxy closes a connection that is a check.
                Ok(())
            }
            (NOTIFY, Some(hello)) => self.notify(frame, hello),
            (DISCONNECT, _) => Err(Status::Normal.into()),
            // Types that are not known are to be left alone.
            (kind, Some(_)) if !matches!(kind, HELLO | NOTIFY) => Ok(()),
            _ => Err(Status::Invalid.into()),
        }
    }

    fn notify(&mut self, frame: Frame<'_>, hello: Hello) -> Result<(), Ended> {
        let (mut payload, mut variables) = (frame.payload, Vec::new());
        while !payload.is_empty() {
            let message = Message::read(&mut payload)?;
            match message.is_response() {
                true => self.response(&message, hello, &mut variables),
                false => self.request(&message, hello, &mut variables)?,
            }
        }
        frame::write_ack(frame.stream, frame.number, &variables, &mut self.output);
        Ok(())
    }

    fn request(
        &self,
        message: &Message<'_>,
        hello: Hello,
        variables: &mut Vec<(&'static str, Set)>,
    ) -> Result<(), Ended> {
        let parsed = message.request()?;
        let arrival = Arrival {
            client: message.client(self.peer),
            peer: self.peer,
            server: message.server(),
            tls: message.tls,
        };
        let mut conversation = Conversation::begin(&self.service.exchanges, arrival, parsed);
        let length = match conversation.head().framing() {
            BodyFraming::Length(length) => Some(length),
            BodyFraming::None | BodyFraming::Chunked | BodyFraming::UntilClose => None,
        };
        match message.body {
            [] => conversation.no_request_body(),
            body => conversation.request_body(body),
        }
        let cut = message.missing(length, hello.frame_bytes_max).filter(|_| !message.body.is_empty());
        conversation.request_end(cut.map(|missing_bytes| Cut { missing_bytes }));
        let request_id = conversation.request_id().to_owned();
        variables.push(("id", Set::Text(request_id.clone())));
        describe(&mut conversation, message, variables);
        match self.kept.filter(|_| conversation.block().is_none()) {
            Some(kept) => kept.keep(&request_id, conversation),
            None => conversation.blind(BlindSpot::Response),
        }
        Ok(())
    }

    fn response(&self, message: &Message<'_>, hello: Hello, variables: &mut Vec<(&'static str, Set)>) {
        let conversation = self.kept.and_then(|kept| kept.take(message.id));
        let (Some(mut conversation), Ok(head)) = (conversation, message.response()) else {
            self.service.unanswered(Unanswered::NoExchange);
            return variables.push(("error", Set::Number(NO_EXCHANGE)));
        };
        let length = head.content_length();
        let method = conversation.head().method().to_vec();
        let has_body = !matches!(head.framing(&method), BodyFraming::None | BodyFraming::Length(0));
        conversation.response_head(&head);
        if has_body && conversation.wants_response_body() {
            match message.body {
                [] => conversation.blind(BlindSpot::ResponseBody),
                body => conversation.response_body(body),
            }
        }
        let cut = message.missing(length, hello.frame_bytes_max).filter(|_| !message.body.is_empty());
        conversation.response_end(cut.map(|missing_bytes| Cut { missing_bytes }));
        describe(&mut conversation, message, variables);
    }

    fn count(&self, status: Status) {
        let why = match status {
            Status::Normal => return,
            Status::TooBig => Unanswered::TooLarge,
            Status::Timeout => Unanswered::Timeout,
            Status::Invalid
            | Status::NoVersion
            | Status::NoFrameSize
            | Status::Version
            | Status::FrameSize
            | Status::Fragmented => Unanswered::Malformed,
        };
        self.service.unanswered(why);
    }
}

fn gone(_: io::Error) -> Ended {
    Ended::Gone
}

/// The variables that tell of a verdict, by the names that configurations for coraza-spoa use.
fn describe(
    conversation: &mut Conversation,
    message: &Message<'_>,
    variables: &mut Vec<(&'static str, Set)>,
) {
    let told = conversation.told();
    variables.push(("anomaly_score", Set::Number(told.anomaly_score)));
    variables.push(("rules_hit", Set::Number(i64::try_from(told.rules.len()).unwrap_or(i64::MAX))));
    if message.wants_rule_ids {
        let ids: Vec<String> = told.rules.iter().map(u32::to_string).collect();
        variables.push(("rule_ids", Set::Text(ids.join(","))));
    }
    let Some(block) = conversation.block() else { return };
    let action = match block.action {
        Action::Redirect => "redirect",
        Action::Drop => "drop",
        Action::Pass | Action::Detect | Action::Deny | Action::Proxy | Action::Refuse => "deny",
    };
    variables.push(("action", Set::Text(action.to_owned())));
    variables.push(("status", Set::Number(block.status.into())));
    let data = block.location.clone().unwrap_or_default();
    variables.push(("data", Set::Bytes(data)));
}
