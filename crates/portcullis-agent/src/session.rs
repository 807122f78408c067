use std::collections::HashMap;
use std::fmt;

use prost::Message;

use crate::wire::{Decision, From, FromAgent};
use crate::{
    FROM_AGENT_BYTES_MAX, Frames, Framing, TO_AGENT_BYTES, TO_AGENT_BYTES_MIN, Unreadable, VERSION,
    WINDOW_BYTES,
};

/// One connection to an agent, as Portcullis sees it: what was agreed, and the exchanges that are open.
#[derive(Debug, Default)]
pub struct Session {
    frames: Frames,
    terms: Option<Terms>,
    last: u64,
    open: HashMap<u64, Open>,
}

/// The terms that an agent asked for in its Welcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Body bytes of a direction before the agent gives credit.
    pub window_bytes: u64,
    /// Bytes of one message to it.
    pub message_bytes_max: usize,
}

/// An exchange that the agent knows of.
#[derive(Debug)]
struct Open {
    credit_bytes: u64,
    /// A decision is awaited: on the request, or then on the response.
    asked: bool,
    decision: Option<Decision>,
}

/// A violation of the protocol by an agent; its connection is of no further use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A message above [`FROM_AGENT_BYTES_MAX`].
    TooLong(usize),
    /// A compressed message of gRPC, by its first byte.
    Compressed(u8),
    /// Not a message of the protocol.
    Malformed(String),
    /// Something else came before the Welcome, or a second one.
    Handshake,
    /// A version that we do not speak.
    Version(u32),
    /// The agent accepts less than it has to.
    Limits,
    /// A decision that was not asked for.
    Unasked,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::TooLong(length) => {
                write!(f, "a message of {length} bytes; {FROM_AGENT_BYTES_MAX} are allowed")
            }
            Broken::Compressed(flag) => {
                write!(f, "a gRPC message with the first byte {flag}; only 0, not compressed, is allowed")
            }
            Broken::Malformed(why) => write!(f, "not a message of the protocol: {why}"),
            Broken::Handshake => f.write_str("a connection begins with one Welcome"),
            Broken::Version(version) => {
                write!(f, "it chose version {version} of the protocol, and {VERSION} is spoken here")
            }
            Broken::Limits => {
                write!(
                    f,
                    "it has to accept messages of {TO_AGENT_BYTES_MIN} bytes, and a body a byte at a time"
                )
            }
            Broken::Unasked => f.write_str("it decided twice"),
        }
    }
}

impl Session {
    /// A connection whose messages are delimited like this.
    pub fn new(framing: Framing) -> Session {
        Session { frames: Frames::new(framing), ..Session::default() }
    }

    /// Takes what came. The numbers of exchanges that have a decision or credit now are appended to `told`.
    pub fn receive(&mut self, bytes: &[u8], told: &mut Vec<u64>) -> Result<(), Broken> {
        self.frames.feed(bytes);
        let unreadable = |why| match why {
            Unreadable::TooLong(length) => Broken::TooLong(length),
            Unreadable::Compressed(flag) => Broken::Compressed(flag),
        };
        while let Some(message) = self.frames.next(FROM_AGENT_BYTES_MAX).map_err(unreadable)? {
            let message = FromAgent::decode(message).map_err(|error| Broken::Malformed(error.to_string()))?;
            let exchange = message.exchange;
            match (message.message, self.terms) {
                (Some(From::Welcome(welcome)), None) => {
                    if welcome.version != VERSION {
                        return Err(Broken::Version(welcome.version));
                    }
                    let message_bytes_max = match welcome.message_bytes_max as usize {
                        0 => TO_AGENT_BYTES,
                        given if given < TO_AGENT_BYTES_MIN => return Err(Broken::Limits),
                        given => given,
                    };
                    let window_bytes =
                        if welcome.window_bytes == 0 { WINDOW_BYTES } else { welcome.window_bytes };
                    self.terms = Some(Terms { window_bytes, message_bytes_max });
                }
                (_, None) | (Some(From::Welcome(_)), Some(_)) => return Err(Broken::Handshake),
                (Some(From::Decision(decision)), Some(_)) => {
                    // One that is not open any more was given up while the agent was deciding.
                    let Some(open) = self.open.get_mut(&exchange) else { continue };
                    if !open.asked {
                        return Err(Broken::Unasked);
                    }
                    open.asked = false;
                    open.decision = Some(decision);
                    told.push(exchange);
                }
                (Some(From::Credit(credit)), Some(_)) => {
                    let Some(open) = self.open.get_mut(&exchange) else { continue };
                    open.credit_bytes = open.credit_bytes.saturating_add(credit.bytes);
                    told.push(exchange);
                }
                // A message of a later version of the protocol.
                (None, Some(_)) => {}
            }
        }
        Ok(())
    }

    /// Returns the agreed terms, once the agent has answered.
    pub fn terms(&self) -> Option<Terms> {
        self.terms
    }

    /// Opens an exchange; its number. A decision on the request is awaited from here on.
    pub fn begin(&mut self) -> u64 {
        self.last += 1;
        let credit_bytes = self.terms.map_or(WINDOW_BYTES, |terms| terms.window_bytes);
        self.open.insert(self.last, Open { credit_bytes, asked: true, decision: None });
        self.last
    }

    /// The response of an exchange is shown next: another window, another decision.
    pub fn begin_response(&mut self, exchange: u64) {
        let window = self.terms.map_or(WINDOW_BYTES, |terms| terms.window_bytes);
        if let Some(open) = self.open.get_mut(&exchange) {
            (open.credit_bytes, open.asked, open.decision) = (window, true, None);
        }
    }

    /// Returns the number of `bytes` that may be sent now; they count as sent.
    pub fn spend(&mut self, exchange: u64, bytes: usize) -> usize {
        let Some(open) = self.open.get_mut(&exchange) else { return 0 };
        let granted = usize::try_from(open.credit_bytes).unwrap_or(usize::MAX).min(bytes);
        open.credit_bytes -= granted as u64;
        granted
    }

    /// Returns true if the agent has decided already, so that it needs to see no more.
    pub fn has_decided(&self, exchange: u64) -> bool {
        self.open.get(&exchange).is_some_and(|open| open.decision.is_some())
    }

    /// The decision, once it has come.
    pub fn take_decision(&mut self, exchange: u64) -> Option<Decision> {
        self.open.get_mut(&exchange)?.decision.take()
    }

    /// Closes an exchange. Later messages of the agent about it are ignored.
    pub fn end(&mut self, exchange: u64) {
        self.open.remove(&exchange);
    }

    /// Open exchanges.
    pub fn open(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Framing::Length;
    use crate::frame;
    use crate::wire::{Credit, Welcome};

    fn welcomed(welcome: Welcome) -> Result<Session, Broken> {
        let mut session = Session::default();
        session.receive(&frame(Length, &FromAgent::of(0, welcome.into())), &mut Vec::new())?;
        Ok(session)
    }

    fn plain() -> Session {
        welcomed(Welcome { version: 1, window_bytes: 10, ..Welcome::default() }).unwrap()
    }

    #[test]
    fn the_first_word_is_a_welcome_in_our_version() {
        let welcome = |version, message_bytes_max| {
            welcomed(Welcome { version, message_bytes_max, ..Welcome::default() }).map(|_| ())
        };
        assert_eq!(welcome(1, 0), Ok(()));
        assert_eq!(welcome(2, 0), Err(Broken::Version(2)));
        assert_eq!(welcome(1, 1000), Err(Broken::Limits));
        let decision = frame(Length, &FromAgent::of(1, Decision::default().into()));
        assert_eq!(Session::default().receive(&decision, &mut Vec::new()), Err(Broken::Handshake));
        let again = frame(Length, &FromAgent::of(0, Welcome { version: 1, ..Welcome::default() }.into()));
        assert_eq!(plain().receive(&again, &mut Vec::new()), Err(Broken::Handshake));
    }

    #[test]
    fn no_more_is_sent_than_there_is_credit_for() {
        let mut session = plain();
        let (first, second) = (session.begin(), session.begin());
        assert_eq!((session.spend(first, 7), session.spend(first, 7), session.spend(first, 7)), (7, 3, 0));
        assert_eq!(session.spend(second, 4), 4, "each exchange has its own");
        let mut told = Vec::new();
        let credit = frame(Length, &FromAgent::of(first, Credit { bytes: 5 }.into()));
        session.receive(&credit, &mut told).unwrap();
        assert_eq!((told, session.spend(first, 7)), (vec![first], 5));
        session.begin_response(first);
        assert_eq!(session.spend(first, 100), 10, "and each direction");
    }

    #[test]
    fn decisions_find_their_exchange_and_late_ones_are_left_aside() {
        let mut session = plain();
        let (first, second) = (session.begin(), session.begin());
        let decide = |exchange| frame(Length, &FromAgent::of(exchange, Decision::default().into()));
        let mut told = Vec::new();
        session.receive(&decide(second), &mut told).unwrap();
        assert!(session.has_decided(second) && !session.has_decided(first));
        assert!(session.take_decision(second).is_some());
        session.end(first);
        session.receive(&decide(first), &mut told).unwrap();
        assert_eq!((told, session.open()), (vec![second], 1));
        assert_eq!(session.receive(&decide(second), &mut Vec::new()), Err(Broken::Unasked));
    }

    #[test]
    fn no_bytes_make_it_panic() {
        // A small generator; the seed is fixed.
        let mut state = 7u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as u8
        };
        for _ in 0..2_000 {
            let mut session = plain();
            session.begin();
            let mut bytes = vec![0, 0, 0, next() % 40];
            bytes.extend((0..60).map(|_| next()));
            let _ = session.receive(&bytes, &mut Vec::new());
        }
    }
}
