//! The metrics of one integration.

use portcullis_event::{Action, BlindSpot, IntegrationKind};
use portcullis_metrics::{DataPlane, EnumCounters, Registry, catalogue};

use crate::counters::exception_counters;

/// The reason why a question got no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The peer is in none of the trusted networks.
    UntrustedPeer,
    /// There are as many connections as there may be.
    Connections,
    /// Too many bodies are held.
    Memory,
    /// It is not a message of the protocol, or does not say what has to be known.
    Malformed,
    /// A message is larger than it may be.
    TooLarge,
    /// The rest of a message did not come in time.
    Timeout,
    /// A response whose request is not known, or no longer.
    NoExchange,
}

impl Unanswered {
    /// Label values, in the order of the variants.
    const NAMES: [&'static str; 7] =
        ["untrusted_peer", "connections", "memory", "malformed", "too_large", "timeout", "no_exchange"];
}

/// The metrics of one integration, and those that it shares with the proxy.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) data_plane: DataPlane,
    pub(crate) verdicts: EnumCounters,
    pub(crate) blind_spots: EnumCounters,
    errors: EnumCounters,
    pub(crate) exceptions: Vec<EnumCounters>,
}

impl Metrics {
    pub(crate) fn new(registry: &Registry, data_plane: DataPlane, kind: IntegrationKind) -> Metrics {
        let kind = [kind.name()];
        Metrics {
            data_plane,
            verdicts: registry.enum_counters(&catalogue::INTEGRATION_EXCHANGES, &kind, Action::NAMES),
            blind_spots: registry.enum_counters(&catalogue::INTEGRATION_BLIND_SPOTS, &kind, BlindSpot::NAMES),
            errors: registry.enum_counters(&catalogue::INTEGRATION_ERRORS, &kind, &Unanswered::NAMES),
            exceptions: exception_counters(registry),
        }
    }

    /// A question that gets no verdict.
    pub(crate) fn unanswered(&self, why: Unanswered) {
        self.errors.inc(why as usize);
    }
}
