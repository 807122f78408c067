//! Every metric there is. The one list of names; documentation and dashboards are checked against it.

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts observations by size; in seconds.
    Histogram,
}

impl Kind {
    /// The word in a `# TYPE` line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// One metric: a name with its labels.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Name as exposed.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Label names in order.
    pub labels: &'static [&'static str],
    /// One sentence.
    pub help: &'static str,
}

macro_rules! catalogue {
    ($($constant:ident $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $help)]
            pub static $constant: Metric =
                Metric { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help };
        )*

        /// All metrics, in the order in which they are exposed.
        pub static ALL: &[&Metric] = &[$(&$constant),*];
    };
}

catalogue! {
    BUILD_INFO Gauge "portcullis_build_info" ["version"]
        "Always 1; the label tells the running version.";
    POLICY_GENERATION Gauge "portcullis_policy_generation" []
        "Number of the policy that serves new requests; rises with each successful reload.";
    RELOADS Counter "portcullis_reloads_total" ["result"]
        "Reloads of configuration and rules; a failed one leaves the old policy serving.";
    CONNECTIONS_ACTIVE Gauge "portcullis_connections_active" []
        "Client connections that are open.";
    REQUESTS Counter "portcullis_requests_total" ["site", "route", "status", "verdict"]
        "Requests answered, by the status sent and the verdict; status none means that no answer was sent.";
    REQUEST_DURATION Histogram "portcullis_request_duration_seconds" ["site", "route"]
        "From the first byte of a request to the last of its response.";
    INSPECTION_DURATION Histogram "portcullis_inspection_duration_seconds" ["site", "route"]
        "Time spent in inspection, all phases of a transaction together.";
    REFUSED_REQUESTS Counter "portcullis_refused_requests_total" ["reason"]
        "Requests refused by the HTTP codec before any verdict.";
    AMBIGUOUS_BODIES Counter "portcullis_ambiguous_bodies_total" ["kind"]
        "Request bodies that applications are known to read differently, by what makes them so.";
    RATE_LIMITED Counter "portcullis_rate_limited_total" ["site", "limit", "action"]
        "Requests that came too early for a rate limit, by what the limit does about them: block or log.";
    RATE_LIMIT_EVICTED Counter "portcullis_rate_limit_evicted_total" ["site", "limit"]
        "Keys whose count was forgotten early, because all places of a rate limit's table that they could have were in use.";
    ACCESS_DECISIONS Counter "portcullis_access_decisions_total" ["site", "decision"]
        "Requests of clients that a list has, or none where one must: bypassed, allowed, denied, or only logged.";
    ACCESS_LIST_RANGES Gauge "portcullis_access_list_ranges" ["file"]
        "Ranges of addresses that the networks of a list come to.";
    ACCESS_LIST_RELOADS Counter "portcullis_access_list_reloads_total" ["result"]
        "Address lists that had changed and were read again; a failed one stays as it was.";
    ACCESS_EVENTS_OMITTED Counter "portcullis_access_events_omitted_total" []
        "Refusals of clients that made no event, since one control makes ten a second at most after a hundred.";
    RULE_MATCHES Counter "portcullis_rule_matches_total" ["rule_id"]
        "Transactions in which a rule matched, by rule id.";
    SEMANTIC_FINDINGS Counter "portcullis_semantic_findings_total" ["class", "outcome"]
        "Requests in which the semantic detector found something of a class, by what came of it.";
    BYTES_INSPECTED Counter "portcullis_bytes_inspected_total" []
        "Bytes of requests and responses that rules or the semantic detector could see.";
    BYTES_NOT_INSPECTED Counter "portcullis_bytes_not_inspected_total" ["reason"]
        "Bytes of requests and responses that passed without inspection.";
    EXCEPTIONS Counter "portcullis_exceptions_total" ["cause", "policy"]
        "Transactions whose inspection could not do its full work, and what was done about it.";
    PATTERN_ERRORS Counter "portcullis_pattern_errors_total" ["kind"]
        "Patterns of rules that were given up (limit) or, with their macros replaced, could not be used (unusable).";
    LOOKUPS Counter "portcullis_lookups_total" ["kind", "result"]
        "Questions of rules to the outside: dns for @rbl, scan for @inspectFile.";
    LOOKUP_DURATION Histogram "portcullis_lookup_duration_seconds" ["kind"]
        "Time until the answer to such a question, or until there was none; cached answers are not counted here.";
    UPSTREAM_ERRORS Counter "portcullis_upstream_errors_total" ["kind"]
        "Failures between us and an upstream.";
    UPSTREAM_HEALTHY Gauge "portcullis_upstream_healthy_backends" ["upstream"]
        "Endpoints of an upstream that are not known to be out of order.";
    UPSTREAM_REQUESTS Counter "portcullis_upstream_requests_total" ["upstream", "endpoint", "result"]
        "Requests sent to an endpoint: answered, failed (no answer, or 502, 503, 504), or abandoned before either.";
    UPSTREAM_RETRIES Counter "portcullis_upstream_retries_total" ["upstream", "reason"]
        "Requests sent once more, by what befell the try before; stale is a kept connection that was being closed.";
    UPSTREAM_RETRIES_DENIED Counter "portcullis_upstream_retries_denied_total" ["upstream"]
        "Retries that were not made because the retry budget was spent.";
    UPSTREAM_QUEUED Gauge "portcullis_upstream_requests_queued" ["upstream"]
        "Requests that wait for an endpoint with a free place.";
    UPSTREAM_QUEUE_REFUSED Counter "portcullis_upstream_queue_refused_total" ["upstream", "reason"]
        "Requests refused because the queue was full, or because they waited too long (timeout).";
    UPSTREAM_ACTIVE Gauge "portcullis_upstream_requests_active" ["upstream", "endpoint"]
        "Requests in flight at an endpoint.";
    UPSTREAM_BREAKER Gauge "portcullis_upstream_circuit_breaker_state" ["upstream", "endpoint"]
        "The circuit breaker of an endpoint: 0 closed, 1 open, 2 half-open.";
    UPSTREAM_CHECKS Counter "portcullis_upstream_health_checks_total" ["upstream", "endpoint", "result"]
        "Active health checks of an endpoint: passed or failed.";
    UPSTREAM_EJECTIONS Counter "portcullis_upstream_ejections_total" ["upstream", "endpoint"]
        "Times that an endpoint was left out because it failed several requests in a row.";
    PAUSES Counter "portcullis_pauses_total" ["result"]
        "Requests that a rule made wait: full time, shortened to the limit, or skipped for too many at a time.";
    EVENTS_QUEUED Gauge "portcullis_events_queued" []
        "Events that wait for the writer.";
    EVENTS_WRITTEN Counter "portcullis_events_written_total" ["sink"]
        "Events handed to a sink's file or stream.";
    EVENTS_DROPPED Counter "portcullis_events_dropped_total" ["sink", "reason"]
        "Events lost: sink queue for those that never reached a sink.";
    ACCESS_LOG_QUEUED Gauge "portcullis_access_log_queued" []
        "Lines of the access log that wait for the writer.";
    ACCESS_LOG_WRITTEN Counter "portcullis_access_log_written_total" ["file"]
        "Lines written to an access log.";
    ACCESS_LOG_DROPPED Counter "portcullis_access_log_dropped_total" ["file", "reason"]
        "Lines of access logs lost: file queue for those that never reached the writer.";
    AUDIT_QUEUED Gauge "portcullis_audit_queued" []
        "Audit records and debug lines of transactions that wait for their writer.";
    AUDIT_WRITTEN Counter "portcullis_audit_written_total" ["log"]
        "Audit records, and transactions with debug lines, that were written.";
    AUDIT_DROPPED Counter "portcullis_audit_dropped_total" ["log", "reason"]
        "Audit records and debug lines lost: log queue for those that never reached the writer.";
    AUDIT_FILES_REMOVED Counter "portcullis_audit_files_removed_total" []
        "Files of old concurrent audit records removed to make room for new ones.";
    STORE_RECORDS Gauge "portcullis_store_records" []
        "Records of persistent collections in memory.";
    STORE_BYTES Gauge "portcullis_store_bytes" []
        "Bytes of memory that records of persistent collections take.";
    STORE_EVICTED Counter "portcullis_store_evicted_total" []
        "Records dropped before their time because the limits of the store were reached.";
    STORE_CHANGES_DROPPED Counter "portcullis_store_changes_dropped_total" []
        "Changes of persistent variables that were not kept because their record or its key is too large.";
    STORE_FILE_BYTES Gauge "portcullis_store_file_bytes" []
        "Size of the file in which persistent collections are kept.";
    STORE_PERSIST_ERRORS Counter "portcullis_store_persist_errors_total" []
        "Failed attempts to write persistent collections to disk; they go on in memory.";
    STORE_LOST_BYTES Counter "portcullis_store_lost_bytes_total" []
        "Bytes of the file of persistent collections that could not be read at the start.";
    STORE_REDIS_CONNECTED Gauge "portcullis_store_redis_connected" []
        "1 while persistent collections are shared through Redis, 0 while it cannot be reached or is not used.";
    STORE_REDIS_UNSENT Gauge "portcullis_store_redis_unsent" []
        "Records with changes that other nodes do not know yet.";
    STORE_REDIS_FAILURES Counter "portcullis_store_redis_failures_total" []
        "Connections to Redis that failed or broke; each is tried again.";
    STORE_REDIS_EXCHANGE Histogram "portcullis_store_redis_exchange_seconds" []
        "Time that Redis took to apply a batch of changes.";
    UPLOADS_KEPT Counter "portcullis_uploads_kept_total" []
        "Uploaded files written to SecUploadDir.";
    UPLOADS_DROPPED Counter "portcullis_uploads_dropped_total" ["reason"]
        "Uploaded files that were to be kept and were not.";
    SERIES_OVERFLOW Counter "portcullis_series_overflow_total" []
        "Series that found no place in a family and count under the label other.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions() {
        let mut seen = std::collections::BTreeSet::new();
        for metric in ALL {
            assert!(seen.insert(metric.name), "{} is listed twice", metric.name);
            let valid =
                |name: &str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit());
            assert!(metric.name.starts_with("portcullis_") && valid(metric.name), "{}", metric.name);
            assert!(metric.labels.iter().all(|label| valid(label) && *label != "le"), "{}", metric.name);
            assert_eq!(metric.kind == Kind::Counter, metric.name.ends_with("_total"), "{}", metric.name);
            assert_eq!(metric.kind == Kind::Histogram, metric.name.ends_with("_seconds"), "{}", metric.name);
            assert!(metric.help.ends_with('.'), "{}", metric.name);
        }
    }
}
