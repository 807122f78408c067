use crate::{Counter, EnumCounters, Gauge, Registry, catalogue};

/// Limits of an HTTP/2 or HTTP/3 connection to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2Limit {
    /// More streams at one time; the stream is refused.
    Streams,
    /// The client resets streams too often; the connection ends.
    Resets,
    /// More frames without content; the connection ends.
    ControlFrames,
    /// More CONTINUATION frames in a head; the connection ends.
    Continuations,
    /// A larger head: 431, or the end of the connection.
    HeaderList,
    /// The client takes the answer too slowly; the stream is reset.
    SendRate,
}

impl Http2Limit {
    /// Label values, in the order of the variants.
    pub const NAMES: &'static [&'static str] =
        &["streams", "resets", "control_frames", "continuations", "header_list", "send_rate"];
}

/// The metrics of HTTP/2 and HTTP/3 to clients.
#[derive(Clone, Debug)]
pub struct Http2Metrics {
    /// Connections that are open.
    pub connections_active: Gauge,
    /// Requests in flight on them.
    pub streams_active: Gauge,
    /// Limits reached, by [`Http2Limit`].
    pub limits: EnumCounters,
    /// Streams that broke the protocol before they were requests, and connections that did.
    pub malformed: Counter,
}

impl Http2Metrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        Http2Metrics {
            connections_active: registry.gauge(&catalogue::HTTP2_CONNECTIONS, &[]),
            streams_active: registry.gauge(&catalogue::HTTP2_STREAMS, &[]),
            limits: registry.enum_counters(&catalogue::HTTP2_LIMITS, &[], Http2Limit::NAMES),
            malformed: registry.counter(&catalogue::HTTP2_MALFORMED, &[]),
        }
    }
}

/// Protocols of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0, and what is older or none that we know.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

impl Protocol {
    /// Label values, in the order of the variants.
    pub const NAMES: &'static [&'static str] = &["http/1.0", "http/1.1", "h2", "h3"];
}
