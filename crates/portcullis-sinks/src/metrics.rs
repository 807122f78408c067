//! What a sink counts.

use portcullis_log::DropReason;
use portcullis_metrics::{Counter, EnumCounters, Gauge, Registry, catalogue};

/// Reasons for which a sink drops an event, as the label `reason` has them. The queue counts by the first of
/// them.
pub const REASONS: &[&str] = &[
    "queue_full",
    "queue_bytes",
    "shutdown",
    // The receiver was away, or refused for now, for longer than `retry`.
    "retry",
    // The receiver refused it for good.
    "refused",
    // No form of the event is as short as a message of this receiver.
    "too_large",
    // A webhook had its messages of the minute.
    "rate_limit",
];

pub(crate) const SHUTDOWN: usize = DropReason::Shutdown as usize;
pub(crate) const RETRY: usize = 3;
pub(crate) const REFUSED: usize = 4;
pub(crate) const TOO_LARGE: usize = 5;
pub(crate) const RATE_LIMIT: usize = 6;

/// The counters of one sink.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) queued: Gauge,
    pub(crate) sent: Counter,
    pub(crate) dropped: EnumCounters,
    pub(crate) failures: Counter,
    pub(crate) up: Gauge,
}

impl Metrics {
    pub(crate) fn new(registry: &Registry, name: &str) -> Metrics {
        Metrics {
            queued: registry.gauge(&catalogue::SINK_QUEUED, &[name]),
            sent: registry.counter(&catalogue::SINK_SENT, &[name]),
            dropped: registry.enum_counters(&catalogue::SINK_DROPPED, &[name], REASONS),
            failures: registry.counter(&catalogue::SINK_FAILURES, &[name]),
            up: registry.gauge(&catalogue::SINK_UP, &[name]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_counts_by_the_same_numbers() {
        for reason in [DropReason::QueueFull, DropReason::QueueBytes, DropReason::Shutdown] {
            assert_eq!(REASONS[reason as usize], reason.name());
        }
    }
}
