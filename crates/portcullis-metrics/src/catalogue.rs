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
    UPGRADES Counter "portcullis_upgrades_total" ["result"]
        "Attempts to hand the listeners over to a new process; if one failed this process goes on.";
    CONNECTIONS_ACTIVE Gauge "portcullis_connections_active" []
        "Client connections that are open.";
    WORKER_CONNECTIONS Counter "portcullis_worker_connections_total" ["worker"]
        "Client connections that each worker accepted, by its number from 0.";
    CONNECTIONS_SHED Counter "portcullis_connections_shed_total" ["reason"]
        "Client connections closed to make room: idle, without a request of the client network with the most; network, not taken since their network has its share.";
    ACCEPT_ERRORS Counter "portcullis_accept_errors_total" ["reason"]
        "Tries to accept a connection that failed for want of open files of the process or the system, of memory, or for another reason.";
    HELD_BODY_BYTES Gauge "portcullis_held_body_bytes" []
        "Bytes of memory charged to limits.held_bodies: copies of bodies, and what decodes and compresses them.";
    BODIES_REFUSED Counter "portcullis_bodies_refused_total" ["reason"]
        "Request bodies refused for want of memory: the process's, their client network's, more than a network may have alone, too many unfinished ones, shed for other networks.";
    CLIENT_ABORTS Counter "portcullis_client_aborts_total" []
        "Requests whose client went away before it had the whole answer, or took nothing of it for too long.";
    REQUEST_TRAILERS Counter "portcullis_request_trailers_dropped_total" []
        "Trailer fields of requests that do not go on, because no route names them or their body was not held.";
    TLS_HANDSHAKES Counter "portcullis_tls_handshakes_total" ["listener", "kind"]
        "TLS handshakes with clients: full, or resumed from a session ticket.";
    TLS_HANDSHAKE_FAILURES Counter "portcullis_tls_handshake_failures_total" ["listener", "reason"]
        "TLS handshakes with clients that came to nothing.";
    TLS_CERTIFICATE_EXPIRY Gauge "portcullis_tls_certificate_expiry_timestamp_seconds" ["certificate"]
        "When a certificate of ours expires, in seconds since 1970, by its file.";
    TLS_RELOADS Counter "portcullis_tls_reloads_total" ["result"]
        "Certificates and lists of client authorities that had changed and were read again; if that failed, those of before go on.";
    ACME_ORDERS Counter "portcullis_acme_orders_total" ["result"]
        "Certificates that were ordered by ACME: ok, or why there is none.";
    ACME_NEXT_ORDER Gauge "portcullis_acme_next_order_timestamp_seconds" ["domain"]
        "When a name's certificate is ordered next by ACME, in seconds since 1970: its renewal, or another try.";
    ACME_CHALLENGES Counter "portcullis_acme_challenges_answered_total" []
        "Requests of ACME authorities for a challenge that were answered.";
    HTTPS_REDIRECTS Counter "portcullis_https_redirects_total" ["site"]
        "Requests in clear text that a site redirected to https.";
    REQUESTS Counter "portcullis_requests_total" ["site", "route", "status", "verdict"]
        "Requests answered, by the status sent and the verdict; status none means that no answer was sent.";
    PROTOCOL_REQUESTS Counter "portcullis_protocol_requests_total" ["protocol"]
        "Requests by the protocol they came over.";
    HTTP2_CONNECTIONS Gauge "portcullis_http2_connections_active" []
        "HTTP/2 and HTTP/3 connections of clients that are open.";
    HTTP2_STREAMS Gauge "portcullis_http2_streams_active" []
        "Requests in flight on HTTP/2 and HTTP/3 connections of clients.";
    HTTP2_LIMITS Counter "portcullis_http2_limits_total" ["limit"]
        "Times that a limit of HTTP/2 or HTTP/3 connections of clients was reached, by its key under http2.";
    HTTP2_MALFORMED Counter "portcullis_http2_malformed_total" []
        "HTTP/2 and HTTP/3 streams and connections of clients that broke the protocol before there was a request to inspect.";
    REQUEST_DURATION Histogram "portcullis_request_duration_seconds" ["site", "route"]
        "From the first byte of a request to the last of its response.";
    INSPECTION_DURATION Histogram "portcullis_inspection_duration_seconds" ["site", "route"]
        "Time spent in inspection, all phases of a transaction together.";
    REFUSED_REQUESTS Counter "portcullis_refused_requests_total" ["reason"]
        "Requests refused by the HTTP codec before any verdict.";
    AMBIGUOUS_BODIES Counter "portcullis_ambiguous_bodies_total" ["kind"]
        "Request bodies that applications are known to read differently, by what makes them so.";
    STREAMED_UPLOADS Counter "portcullis_streamed_uploads_total" ["outcome"]
        "Uploads longer than what is held of a body: passed on to their end while they were inspected, or broken_off.";
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
    LIMIT_STORE_CONNECTED Gauge "portcullis_limit_store_connected" []
        "1 while the store that nodes share rate limits through answers.";
    LIMIT_STORE_FAILURES Counter "portcullis_limit_store_failures_total" []
        "Connections to the store of rate limits that could not be made or broke.";
    LIMIT_STORE_LEASED Counter "portcullis_limit_store_leased_total" []
        "Tokens of rate limits that this node leased.";
    LIMIT_STORE_DROPPED Counter "portcullis_limit_store_dropped_total" []
        "Orders of leases that found the queue to the store full.";
    LIMIT_STORE_EXCHANGE Histogram "portcullis_limit_store_exchange_seconds" []
        "From sending orders of leases to their answer.";
    RATE_LIMIT_UNSHARED Counter "portcullis_rate_limit_unshared_total" ["site", "limit", "policy"]
        "Requests of a shared rate limit that this node decided on alone, because the store was away: open, closed or local.";
    GEO_RELOADS Counter "portcullis_geo_reloads_total" ["result"]
        "Databases of places that had changed and were read again; where that failed the old one goes on.";
    GEO_LOOKUPS Counter "portcullis_geo_lookups_total" ["result"]
        "Requests whose client was looked up: known, if its country or autonomous system is, or unknown.";
    BANS Counter "portcullis_bans_total" ["ban"]
        "Bans of clients that have begun.";
    BANS_LIFTED Counter "portcullis_bans_lifted_total" ["ban"]
        "Bans that were lifted before their end.";
    BANNED_CLIENTS Gauge "portcullis_banned_clients" ["ban"]
        "Clients that are banned, as of the last second.";
    BAN_REQUESTS Counter "portcullis_ban_requests_total" ["ban", "action"]
        "Requests of banned clients, by what is done about them: block or log.";
    BAN_EVICTED Counter "portcullis_ban_evicted_total" ["ban"]
        "Clients whose points or bans were forgotten early, because all places of the table that they could have were in use.";
    BAN_FILE_ERRORS Counter "portcullis_ban_file_errors_total" []
        "Failures to read or write the file that bans outlive the process in.";
    COMPRESSED_RESPONSES Counter "portcullis_compressed_responses_total" ["site", "coding"]
        "Responses that were compressed.";
    COMPRESSION_BYTES_IN Counter "portcullis_compression_bytes_in_total" ["site", "coding"]
        "Bytes of their bodies as the upstream sent them.";
    COMPRESSION_BYTES_OUT Counter "portcullis_compression_bytes_out_total" ["site", "coding"]
        "Bytes of their bodies as clients got them.";
    COMPRESSION_SKIPPED Counter "portcullis_compression_skipped_total" ["site", "reason"]
        "Responses with a body that were sent as they came although compression is on, by reason.";
    RULE_MATCHES Counter "portcullis_rule_matches_total" ["rule_id"]
        "Transactions in which a rule matched, by rule id.";
    SEMANTIC_FINDINGS Counter "portcullis_semantic_findings_total" ["class", "outcome"]
        "Requests in which the semantic detector found something of a class, by what came of it.";
    BYTES_INSPECTED Counter "portcullis_bytes_inspected_total" []
        "Bytes of requests and responses that rules or the semantic detector could see.";
    BYTES_NOT_INSPECTED Counter "portcullis_bytes_not_inspected_total" ["reason"]
        "Bytes of requests and responses that passed without inspection.";
    EXCHANGES_NOT_INSPECTED Counter "portcullis_exchanges_not_inspected_total" ["reason"]
        "Exchanges of which something passed without inspection.";
    EXCEPTIONS Counter "portcullis_exceptions_total" ["cause", "policy"]
        "Transactions whose inspection could not do its full work, and what was done about it.";
    PATTERN_ERRORS Counter "portcullis_pattern_errors_total" ["kind"]
        "Patterns of rules that were given up (limit) or, with their macros replaced, could not be used (unusable).";
    SCORES_WITHHELD Counter "portcullis_anomaly_scores_withheld_total" []
        "Requests whose anomaly score passed its threshold, but not without points of rules that honest traffic triggers.";
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
        "Requests sent once more, by what befell the try before; stale is a kept connection that was being closed, refused an HTTP/2 stream not looked at.";
    UPSTREAM_RETRIES_DENIED Counter "portcullis_upstream_retries_denied_total" ["upstream"]
        "Retries that were not made because the retry budget was spent.";
    UPSTREAM_QUEUED Gauge "portcullis_upstream_requests_queued" ["upstream"]
        "Requests that wait for an endpoint with a free place.";
    UPSTREAM_QUEUE_REFUSED Counter "portcullis_upstream_queue_refused_total" ["upstream", "reason"]
        "Requests refused because the queue was full, or because they waited too long (timeout).";
    UPSTREAM_ACTIVE Gauge "portcullis_upstream_requests_active" ["upstream", "endpoint"]
        "Requests in flight at an endpoint.";
    UPSTREAM_HTTP2 Gauge "portcullis_upstream_http2_connections" ["upstream", "endpoint"]
        "HTTP/2 connections to an endpoint that are open.";
    UPSTREAM_BREAKER Gauge "portcullis_upstream_circuit_breaker_state" ["upstream", "endpoint"]
        "The circuit breaker of an endpoint: 0 closed, 1 open, 2 half-open.";
    UPSTREAM_CHECKS Counter "portcullis_upstream_health_checks_total" ["upstream", "endpoint", "result"]
        "Active health checks of an endpoint: passed or failed.";
    UPSTREAM_RESOLUTIONS Counter "portcullis_upstream_resolutions_total" ["upstream", "result"]
        "Host names of endpoints resolved anew: to the same addresses, to other ones (changed), or not (failed), where the old ones stay.";
    UPSTREAM_EJECTIONS Counter "portcullis_upstream_ejections_total" ["upstream", "endpoint"]
        "Times that an endpoint was left out because it failed several requests in a row.";
    AGENT_DECISIONS Counter "portcullis_agent_decisions_total" ["agent", "decision"]
        "Decisions of an agent on requests and responses: allow, block or redirect.";
    AGENT_FAILURES Counter "portcullis_agent_failures_total" ["agent", "reason"]
        "Exchanges for which an agent gave no decision: no connection (connect), no handshake, closed, an invalid message, or a gRPC status.";
    AGENT_TIMEOUTS Counter "portcullis_agent_timeouts_total" ["agent"]
        "Exchanges for which an agent gave no decision in time.";
    AGENT_BYPASSES Counter "portcullis_agent_bypasses_total" ["agent", "reason"]
        "Requests and responses that went on without an agent's decision: failed, timeout, circuit_open, or queue.";
    AGENT_EVENTS_OMITTED Counter "portcullis_agent_events_omitted_total" ["agent"]
        "Failures of an agent that made no event, since one makes ten a second at most after a hundred.";
    AGENT_REFUSALS Counter "portcullis_agent_refusals_total" ["agent", "reason"]
        "Requests and responses that were refused for want of an agent's decision: failed, timeout, circuit_open, or queue.";
    AGENT_DURATION Histogram "portcullis_agent_duration_seconds" ["agent"]
        "Time that a request or response waited for an agent, the time in its queue included.";
    AGENT_QUEUED Gauge "portcullis_agent_requests_queued" ["agent"]
        "Requests that wait for a place among those that an agent decides on at one time.";
    AGENT_ACTIVE Gauge "portcullis_agent_requests_active" ["agent"]
        "Requests and responses that an agent decides on.";
    AGENT_BREAKER Gauge "portcullis_agent_circuit_breaker_state" ["agent"]
        "The circuit breaker of an agent: 0 closed, 1 open, 2 half-open.";
    AGENT_CONNECTIONS Gauge "portcullis_agent_connections" ["agent"]
        "Open connections to an agent.";
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
    TRACES_QUEUED Gauge "portcullis_traces_queued" []
        "Traces of requests that wait to be sent to the collector.";
    SPANS_EXPORTED Counter "portcullis_spans_exported_total" []
        "Spans that the collector took.";
    SPANS_DROPPED Counter "portcullis_spans_dropped_total" ["reason"]
        "Spans lost: the queue was full, the collector did not take them (export), or the process ended (shutdown).";
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
            let is_duration =
                metric.name.ends_with("_seconds") && !metric.name.ends_with("_timestamp_seconds");
            assert_eq!(metric.kind == Kind::Histogram, is_duration, "{}", metric.name);
            assert!(metric.help.ends_with('.'), "{}", metric.name);
        }
    }
}
