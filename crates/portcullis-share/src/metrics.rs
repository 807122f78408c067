use portcullis_metrics::{Counter, Gauge, Histogram, Registry, catalogue};

/// The metrics of the store. Those of the default are in no registry.
#[derive(Clone, Debug, Default)]
pub struct ShareMetrics {
    pub(crate) connected: Gauge,
    pub(crate) failures: Counter,
    pub(crate) dropped: Counter,
    pub(crate) leased: Counter,
    pub(crate) exchange: Histogram,
}

impl ShareMetrics {
    /// Counts in `registry`.
    pub fn new(registry: &Registry) -> ShareMetrics {
        ShareMetrics {
            connected: registry.gauge(&catalogue::LIMIT_STORE_CONNECTED, &[]),
            failures: registry.counter(&catalogue::LIMIT_STORE_FAILURES, &[]),
            dropped: registry.counter(&catalogue::LIMIT_STORE_DROPPED, &[]),
            leased: registry.counter(&catalogue::LIMIT_STORE_LEASED, &[]),
            exchange: registry.histogram(&catalogue::LIMIT_STORE_EXCHANGE, &[]),
        }
    }
}
