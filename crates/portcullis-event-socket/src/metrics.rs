//! What both ends count.

use portcullis_event::IntegrationKind;
use portcullis_metrics::{Counter, EnumCounters, Gauge, Registry, catalogue};

/// Why a sender has lost events; begins with the reasons of a queue.
pub(crate) const LOST: [&str; 5] = ["queue_full", "queue_bytes", "shutdown", "unconfirmed", "too_long"];
/// Index in [`LOST`]: queued or in hand when the sender ended.
pub(crate) const SHUTDOWN: usize = 2;
/// Index in [`LOST`]: the connection ended before the listener had taken the line.
pub(crate) const UNCONFIRMED: usize = 3;
/// Index in [`LOST`]: longer than a line may be.
pub(crate) const TOO_LONG: usize = 4;

/// Counted by a sender.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) queued: Gauge,
    pub(crate) forwarded: Counter,
    pub(crate) lost: EnumCounters,
    pub(crate) connected: Gauge,
}

impl Sent {
    pub(crate) fn new(registry: &Registry) -> Sent {
        Sent {
            queued: registry.gauge(&catalogue::FORWARD_QUEUED, &[]),
            forwarded: registry.counter(&catalogue::FORWARD_EVENTS, &[]),
            lost: registry.enum_counters(&catalogue::FORWARD_LOST, &[], &LOST),
            connected: registry.gauge(&catalogue::FORWARD_CONNECTED, &[]),
        }
    }
}

/// Why a listener refuses a connection or a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The peer runs as a user that is not named.
    User,
    /// There are as many connections as there may be.
    Clients,
    /// A line that is neither an event nor a report. Ends the connection.
    Invalid,
    /// A line longer than [`LINE_BYTES_MAX`](crate::LINE_BYTES_MAX). Ends the connection.
    TooLong,
    /// The connection ended within a line.
    Cut,
    /// An event that began too long ago, or has not begun yet.
    Time,
    /// An event of a site beyond as many as may be named.
    Sites,
}

impl Refused {
    pub(crate) const NAMES: [&'static str; 7] =
        ["user", "clients", "invalid", "too_long", "cut", "time", "sites"];
}

/// Counted by a listener.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) clients: Gauge,
    pub(crate) events: EnumCounters,
    pub(crate) refused: EnumCounters,
    pub(crate) lost: EnumCounters,
}

impl Taken {
    pub(crate) fn new(registry: &Registry) -> Taken {
        Taken {
            clients: registry.gauge(&catalogue::EVENT_SOCKET_CLIENTS, &[]),
            events: registry.enum_counters(&catalogue::EVENT_SOCKET_EVENTS, &[], IntegrationKind::NAMES),
            refused: registry.enum_counters(&catalogue::EVENT_SOCKET_REFUSED, &[], &Refused::NAMES),
            lost: registry.enum_counters(&catalogue::EVENT_SOCKET_LOST, &[], &LOST),
        }
    }
}
