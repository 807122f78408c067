use crate::http2::{Http2Metrics, Protocol};
use crate::{Counter, EnumCounters, Gauge, Histogram, Registry, RequestCounters, catalogue};

/// Words that label the data plane's counters: the name tables of other crates, which this one does not know.
#[derive(Clone, Copy, Debug)]
pub struct DataPlaneNames<'a> {
    /// Verdict actions; the index of an action is its column.
    pub verdicts: &'a [&'static str],
    /// Reasons for bytes that went uninspected.
    pub not_inspected: &'a [&'static str],
    /// Kinds of upstream errors.
    pub upstream_errors: &'a [&'static str],
    /// Refusals of the HTTP codec.
    pub refusals: &'a [&'static str],
    /// Kinds of ambiguous request bodies.
    pub ambiguities: &'a [&'static str],
    /// Classes of attacks.
    pub classes: &'a [&'static str],
    /// The outcomes of the semantic detector's findings.
    pub finding_outcomes: &'a [&'static str],
}

/// The outcome of a `pause`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The request waited as long as asked.
    Full,
    /// It waited as long as the limit lets it.
    Shortened,
    /// It did not wait: too many others did.
    Skipped,
}

impl Pause {
    /// Label values, in the order of the variants.
    pub const NAMES: &'static [&'static str] = &["full", "shortened", "skipped"];
}

/// The outcome of a streamed upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamedUpload {
    /// All of it went on.
    Passed,
    /// Something was found, or it was longer than it may be: the upstream did not get its end.
    BrokenOff,
}

impl StreamedUpload {
    /// Label values, in the order of the variants.
    pub const NAMES: &'static [&'static str] = &["passed", "broken_off"];
}

/// The metrics of the proxy that are not counted by route. One for the process; workers share or clone it.
#[derive(Clone, Debug)]
pub struct DataPlane {
    /// Open client connections.
    pub connections_active: Gauge,
    /// Requests whose client went away before it had the whole answer.
    pub client_aborts: Counter,
    /// Trailer fields of requests, dropped.
    pub request_trailers: Counter,
    /// Requests by [`Protocol`].
    pub protocols: EnumCounters,
    /// HTTP/2 to clients.
    pub http2: Http2Metrics,
    /// Refused requests, by index into [`DataPlaneNames::refusals`].
    pub refused_requests: EnumCounters,
    /// Ambiguous request bodies, by index into [`DataPlaneNames::ambiguities`].
    pub ambiguous_bodies: EnumCounters,
    /// Uploads that went on while they were inspected, by [`StreamedUpload`].
    pub streamed_uploads: EnumCounters,
    /// Requests with findings of the semantic detector: by index into [`DataPlaneNames::classes`], then into
    /// [`DataPlaneNames::finding_outcomes`].
    pub semantic_findings: Vec<EnumCounters>,
    /// Bytes that rules could see.
    pub bytes_inspected: Counter,
    /// Bytes that they could not, by index into [`DataPlaneNames::not_inspected`].
    pub bytes_not_inspected: EnumCounters,
    /// Exchanges with such bytes, by the same index.
    pub exchanges_not_inspected: EnumCounters,
    /// Searches of patterns that took more steps than they may.
    pub patterns_exhausted: Counter,
    /// Patterns that were none once their macros were replaced.
    pub patterns_unusable: Counter,
    /// Texts that a limit on expanded macros cut short.
    pub expansions_cut: Counter,
    /// Requests whose anomaly score passed its threshold only with points that do not count by themselves.
    pub scores_withheld: Counter,
    /// Upstream errors, by index into [`DataPlaneNames::upstream_errors`].
    pub upstream_errors: EnumCounters,
    /// Requests that a rule made wait, by [`Pause`].
    pub pauses: EnumCounters,
    /// Number of the policy that serves.
    pub policy_generation: Gauge,
    /// Reloads that took effect.
    pub reloads_ok: Counter,
    /// Reloads that were refused; the old policy stays in use.
    pub reloads_failed: Counter,
}

impl DataPlane {
    /// Registers everything, and `portcullis_build_info` for `version`.
    pub fn new(registry: &Registry, version: &str, names: DataPlaneNames<'_>) -> DataPlane {
        registry.gauge(&catalogue::BUILD_INFO, &[version]).set(1);
        DataPlane {
            connections_active: registry.gauge(&catalogue::CONNECTIONS_ACTIVE, &[]),
            client_aborts: registry.counter(&catalogue::CLIENT_ABORTS, &[]),
            request_trailers: registry.counter(&catalogue::REQUEST_TRAILERS, &[]),
            protocols: registry.enum_counters(&catalogue::PROTOCOL_REQUESTS, &[], Protocol::NAMES),
            http2: Http2Metrics::new(registry),
            refused_requests: registry.enum_counters(&catalogue::REFUSED_REQUESTS, &[], names.refusals),
            ambiguous_bodies: registry.enum_counters(&catalogue::AMBIGUOUS_BODIES, &[], names.ambiguities),
            streamed_uploads: registry.enum_counters(
                &catalogue::STREAMED_UPLOADS,
                &[],
                StreamedUpload::NAMES,
            ),
            semantic_findings: {
                let of = |class: &&'static str| {
                    registry.enum_counters(&catalogue::SEMANTIC_FINDINGS, &[class], names.finding_outcomes)
                };
                names.classes.iter().map(of).collect()
            },
            bytes_inspected: registry.counter(&catalogue::BYTES_INSPECTED, &[]),
            bytes_not_inspected: registry.enum_counters(
                &catalogue::BYTES_NOT_INSPECTED,
                &[],
                names.not_inspected,
            ),
            exchanges_not_inspected: registry.enum_counters(
                &catalogue::EXCHANGES_NOT_INSPECTED,
                &[],
                names.not_inspected,
            ),
            patterns_exhausted: registry.counter(&catalogue::PATTERN_ERRORS, &["limit"]),
            patterns_unusable: registry.counter(&catalogue::PATTERN_ERRORS, &["unusable"]),
            expansions_cut: registry.counter(&catalogue::PATTERN_ERRORS, &["expansion"]),
            scores_withheld: registry.counter(&catalogue::SCORES_WITHHELD, &[]),
            upstream_errors: registry.enum_counters(&catalogue::UPSTREAM_ERRORS, &[], names.upstream_errors),
            pauses: registry.enum_counters(&catalogue::PAUSES, &[], Pause::NAMES),
            policy_generation: registry.gauge(&catalogue::POLICY_GENERATION, &[]),
            reloads_ok: registry.counter(&catalogue::RELOADS, &["ok"]),
            reloads_failed: registry.counter(&catalogue::RELOADS, &["failed"]),
        }
    }
}

/// The metrics that are counted by route; made when a route is loaded.
#[derive(Clone, Debug)]
pub struct RouteMetrics {
    /// Requests by status and verdict.
    pub requests: RequestCounters,
    /// Time from first to last byte.
    pub request_duration: Histogram,
    /// Time spent in inspection.
    pub inspection_duration: Histogram,
}

impl RouteMetrics {
    /// Registers the series of a route; the same names give the same counters.
    pub fn new(registry: &Registry, site: &str, route: &str, verdicts: &[&'static str]) -> RouteMetrics {
        RouteMetrics {
            requests: registry.requests(site, route, verdicts),
            request_duration: registry.histogram(&catalogue::REQUEST_DURATION, &[site, route]),
            inspection_duration: registry.histogram(&catalogue::INSPECTION_DURATION, &[site, route]),
        }
    }
}
