use portcullis_metrics::{Counter, Gauge, Histogram, Registry, catalogue};

/// The metrics of the store. Those of the default are in no registry.
#[derive(Clone, Debug, Default)]
pub struct StoreMetrics {
    pub(crate) records: Gauge,
    pub(crate) bytes: Gauge,
    pub(crate) evicted: Counter,
    pub(crate) changes_dropped: Counter,
    pub(crate) file_bytes: Gauge,
    pub(crate) persist_errors: Counter,
    pub(crate) lost_bytes: Counter,
    pub(crate) redis_connected: Gauge,
    pub(crate) redis_unsent: Gauge,
    pub(crate) redis_failures: Counter,
    pub(crate) redis_exchange: Histogram,
}

impl StoreMetrics {
    /// Counts in `registry`.
    pub fn new(registry: &Registry) -> StoreMetrics {
        StoreMetrics {
            records: registry.gauge(&catalogue::STORE_RECORDS, &[]),
            bytes: registry.gauge(&catalogue::STORE_BYTES, &[]),
            evicted: registry.counter(&catalogue::STORE_EVICTED, &[]),
            changes_dropped: registry.counter(&catalogue::STORE_CHANGES_DROPPED, &[]),
            file_bytes: registry.gauge(&catalogue::STORE_FILE_BYTES, &[]),
            persist_errors: registry.counter(&catalogue::STORE_PERSIST_ERRORS, &[]),
            lost_bytes: registry.counter(&catalogue::STORE_LOST_BYTES, &[]),
            redis_connected: registry.gauge(&catalogue::STORE_REDIS_CONNECTED, &[]),
            redis_unsent: registry.gauge(&catalogue::STORE_REDIS_UNSENT, &[]),
            redis_failures: registry.counter(&catalogue::STORE_REDIS_FAILURES, &[]),
            redis_exchange: registry.histogram(&catalogue::STORE_REDIS_EXCHANGE, &[]),
        }
    }
}
