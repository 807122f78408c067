//! Reasons for which an agent gives no decision.

/// Why there is no decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// No connection could be made.
    Connect,
    /// The agent said no Welcome, or one that cannot be.
    Handshake,
    /// The connection broke.
    Closed,
    /// A message of it breaks the protocol, or cannot be carried out.
    Invalid,
    /// It ended a call of gRPC with a status other than OK.
    Status,
    /// It took too long.
    Timeout,
    /// It is not asked at present.
    CircuitOpen,
    /// Too many wait for it.
    Queue,
}

/// The end of a connection, with a line for the operator if there is more to say.
pub(super) struct Ended {
    pub(super) why: Failed,
    pub(super) line: Option<String>,
}

impl From<Failed> for Ended {
    fn from(why: Failed) -> Self {
        Ended { why, line: None }
    }
}

impl Failed {
    pub(super) fn text(self) -> &'static str {
        match self {
            Failed::Connect => "no connection can be made",
            Failed::Handshake => "no welcome came",
            Failed::Closed => "it closed the connection",
            Failed::Invalid => "what it says is not valid",
            Failed::Status => "it ended the call with an error",
            Failed::Timeout => "no decision came in time",
            Failed::CircuitOpen => "the circuit breaker is open",
            Failed::Queue => "too many requests wait for it",
        }
    }
}
