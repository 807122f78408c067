//! Every metric there is. The one list of names; documentation and dashboards are checked against it.

/// The kind of a metric.
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
    /// Its kind.
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
        "Attempts to hand the listeners to a new process (upgrade); after a failed one this process keeps serving.";
    CONNECTIONS_ACTIVE Gauge "portcullis_connections_active" []
        "Client connections that are open.";
    WORKER_CONNECTIONS Counter "portcullis_worker_connections_total" ["worker"]
        "Client connections accepted by each worker, numbered from 0.";
    CONNECTIONS_SHED Counter "portcullis_connections_shed_total" ["reason"]
        "Client connections closed to make room: idle ones of the client network with the most, or refused because their network is at its limit (network) or costs the most in an overload (overload).";
    INSPECTIONS_OFFLOADED Counter "portcullis_inspections_offloaded_total" []
        "Inspections of long messages, or of messages that can take long, done by inspection threads instead of workers.";
    OVERLOADED Gauge "portcullis_overloaded" []
        "1 while requests of the most expensive client networks are refused, because a worker was later than limits.overload_lag.";
    OVERLOAD_REFUSED Counter "portcullis_overload_refused_total" []
        "Requests refused in an overload.";
    ACCEPT_ERRORS Counter "portcullis_accept_errors_total" ["reason"]
        "Connections that could not be accepted: no file descriptor left in the process or the system, no memory, or another error.";
    HELD_BODY_BYTES Gauge "portcullis_held_body_bytes" []
        "Bytes of memory charged to limits.held_bodies: copies of bodies, and what decodes and compresses them.";
    BODIES_REFUSED Counter "portcullis_bodies_refused_total" ["reason"]
        "Request bodies refused at a memory limit: of the process, of the client network, of one body, of unfinished bodies, or shed in favour of other networks; because too many inspections wait (busy), or the process is near the limit of its memory (memory).";
    MEMORY_LIMIT_BYTES Gauge "portcullis_memory_limit_bytes" []
        "Memory that the process may have: the limit of its cgroup, or that of the machine; 0 if unknown.";
    MEMORY_RESIDENT_BYTES Gauge "portcullis_memory_resident_bytes" []
        "Memory of the process that is resident, as limits.memory_part sees it.";
    CLIENT_ABORTS Counter "portcullis_client_aborts_total" []
        "Requests whose client closed the connection before the end of the response, or read nothing of it for too long.";
    REQUEST_TRAILERS Counter "portcullis_request_trailers_dropped_total" []
        "Request trailer fields that were not forwarded, because no route names them or the body was not held.";
    TLS_HANDSHAKES Counter "portcullis_tls_handshakes_total" ["listener", "kind"]
        "TLS handshakes with clients: full, or resumed from a session ticket.";
    TLS_HANDSHAKE_FAILURES Counter "portcullis_tls_handshake_failures_total" ["listener", "reason"]
        "TLS handshakes with clients that came to nothing.";
    TLS_CERTIFICATE_EXPIRY Gauge "portcullis_tls_certificate_expiry_timestamp_seconds" ["certificate"]
        "Expiry time of each served certificate, in seconds since 1970.";
    TLS_RELOADS Counter "portcullis_tls_reloads_total" ["result"]
        "Reloads of changed certificates and client CA lists; after a failed one the previous certificate stays in use.";
    ACME_ORDERS Counter "portcullis_acme_orders_total" ["result"]
        "ACME orders by result: ok, or the reason of the failure.";
    ACME_NEXT_ORDER Gauge "portcullis_acme_next_order_timestamp_seconds" ["domain"]
        "Time of the next ACME order for a name (renewal or retry), in seconds since 1970.";
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
        "Times that a limit of a client's HTTP/2 or HTTP/3 connection was reached, by its key under http2.";
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
        "Requests over a rate limit, by the action of the limit: block or log.";
    RATE_LIMIT_EVICTED Counter "portcullis_rate_limit_evicted_total" ["site", "limit"]
        "Keys evicted from the table of a rate limit while still counting, because their slots were full.";
    ACCESS_DECISIONS Counter "portcullis_access_decisions_total" ["site", "decision"]
        "Requests decided by access lists: bypassed, allowed, denied, or only logged.";
    ACCESS_LIST_RANGES Gauge "portcullis_access_list_ranges" ["file"]
        "Address ranges in each access list, after merging.";
    ACCESS_LIST_RELOADS Counter "portcullis_access_list_reloads_total" ["result"]
        "Reloads of changed address lists; after a failed one the previous list stays in use.";
    LISTS_FETCHED Counter "portcullis_lists_fetched_total" ["list", "result"]
        "Looks for a new version of each list of `lists`: changed, unchanged, or failed.";
    LISTS_CURRENT Gauge "portcullis_lists_current_timestamp_seconds" ["list"]
        "When each list of `lists` was last known to be current, in seconds since 1970; 0: never.";
    ACCESS_EVENTS_OMITTED Counter "portcullis_access_events_omitted_total" []
        "Refusals by lists, limits and bans without an event: each control writes at most ten events a second after the first hundred.";
    LIMIT_STORE_CONNECTED Gauge "portcullis_limit_store_connected" []
        "1 while the store that nodes share rate limits through answers.";
    LIMIT_STORE_FAILURES Counter "portcullis_limit_store_failures_total" []
        "Failed or broken connections to the store of shared rate limits.";
    LIMIT_STORE_LEASED Counter "portcullis_limit_store_leased_total" []
        "Rate-limit tokens leased by this node.";
    LIMIT_STORE_DROPPED Counter "portcullis_limit_store_dropped_total" []
        "Lease requests dropped because the queue to the store was full.";
    LIMIT_STORE_EXCHANGE Histogram "portcullis_limit_store_exchange_seconds" []
        "Round-trip time of lease requests to the store.";
    RATE_LIMIT_UNSHARED Counter "portcullis_rate_limit_unshared_total" ["site", "limit", "policy"]
        "Requests under a shared rate limit decided without the store, because it was unreachable: open, closed or local.";
    GEO_RELOADS Counter "portcullis_geo_reloads_total" ["result"]
        "Reloads of changed GeoIP databases; after a failed one the previous database stays in use.";
    GEO_LOOKUPS Counter "portcullis_geo_lookups_total" ["result"]
        "GeoIP lookups of client addresses: known if the country or autonomous system is, otherwise unknown.";
    BANS Counter "portcullis_bans_total" ["ban"]
        "Client bans started.";
    BANS_LIFTED Counter "portcullis_bans_lifted_total" ["ban"]
        "Bans lifted before their expiry.";
    BANNED_CLIENTS Gauge "portcullis_banned_clients" ["ban"]
        "Banned clients, updated each second.";
    BAN_REQUESTS Counter "portcullis_ban_requests_total" ["ban", "action"]
        "Requests of banned clients, by the action of the ban policy: block or log.";
    BAN_EVICTED Counter "portcullis_ban_evicted_total" ["ban"]
        "Clients evicted from the ban table with points or a ban, because their slots were full.";
    BAN_FILE_ERRORS Counter "portcullis_ban_file_errors_total" []
        "Failed reads or writes of the ban file.";
    COMPRESSED_RESPONSES Counter "portcullis_compressed_responses_total" ["site", "coding"]
        "Responses that were compressed.";
    COMPRESSION_BYTES_IN Counter "portcullis_compression_bytes_in_total" ["site", "coding"]
        "Bytes of compressed responses before compression.";
    COMPRESSION_BYTES_OUT Counter "portcullis_compression_bytes_out_total" ["site", "coding"]
        "Bytes of compressed responses after compression.";
    COMPRESSION_SKIPPED Counter "portcullis_compression_skipped_total" ["site", "reason"]
        "Responses not compressed although compression is on, by reason.";
    RULE_MATCHES Counter "portcullis_rule_matches_total" ["rule_id"]
        "Transactions in which a rule matched, by rule id.";
    EXCLUSION_HITS Counter "portcullis_exclusion_hits_total" ["site", "exclusion"]
        "Requests in which an exclusion took something away: a finding that would have counted, or a match of a rule.";
    EXCLUSION_LAST_HIT Gauge "portcullis_exclusion_last_hit_timestamp_seconds" ["site", "exclusion"]
        "Time of the last such request, in seconds since 1970; 0: there was none.";
    EXCLUSION_TRIALS Counter "portcullis_exclusion_trials_total" ["site", "exclusion", "result"]
        "Requests with the field of an exclusion on trial (seen), and stopped requests by what would have become of them: passes, lost (would pass with other findings), stopped, unknown.";
    EXCLUSION_TRIAL_START Gauge "portcullis_exclusion_trial_start_timestamp_seconds" ["site", "exclusion"]
        "Time from which on this process has an exclusion on trial, in seconds since 1970; 0: it is not on trial.";
    SEMANTIC_FINDINGS Counter "portcullis_semantic_findings_total" ["class", "outcome"]
        "Requests with a finding of the semantic detector, by attack class and outcome.";
    ISSUED_COOKIES Gauge "portcullis_issued_cookies" ["site"]
        "Cookies set by upstreams of a site that are known when they come back.";
    ISSUED_COOKIE_FINDINGS Counter "portcullis_issued_cookie_findings_total" ["site", "cookie"]
        "Request cookies with a finding of the semantic detector: issued by the site, so that it does not count, or unknown.";
    ISSUED_COOKIES_DECLINED Counter "portcullis_issued_cookies_declined_total" ["site"]
        "Cookies set by upstreams that were not kept, because their client network had filled its share, or there was no memory.";
    ISSUED_COOKIE_BYTES Gauge "portcullis_issued_cookie_bytes" ["site"]
        "Memory of the hashes of cookies set by upstreams; limits.issued_cookies is for all sites together.";
    ISSUED_COOKIES_UNSHARED Counter "portcullis_issued_cookies_unshared_total" ["site"]
        "Cookies set by upstreams that other nodes were not told of, because too many waited for Redis.";
    ISSUED_COOKIES_SHARED Counter "portcullis_issued_cookies_shared_total" ["direction"]
        "Cookies set by upstreams that were sent to other nodes through Redis (sent), or received from them (received).";
    ISSUED_COOKIES_REDIS_CONNECTED Gauge "portcullis_issued_cookies_redis_connected" []
        "1 while nodes share through Redis which cookies their upstreams have set.";
    ISSUED_COOKIES_REDIS_FAILURES Counter "portcullis_issued_cookies_redis_failures_total" []
        "Connections to Redis for issued cookies that could not be opened, or broke.";
    ISSUED_COOKIE_ROTATIONS Counter "portcullis_issued_cookie_rotations_total" ["site"]
        "Generations of issued cookies that ended, by age or because they were full; each is one of 16 parts of the table.";
    SIGNED_COOKIES Counter "portcullis_signed_cookies_total" ["site", "result"]
        "Cookies of upstreams that were signed: signed, or too_long for browsers with the signature.";
    CHECKED_COOKIES Counter "portcullis_checked_cookies_total" ["site", "result"]
        "Cookies of signed names in requests: verified or accepted, or removed because they were unsigned, changed, hidden in another cookie or too_many.";
    EXPIRED_COOKIES Counter "portcullis_expired_cookies_total" ["site"]
        "Cookies that a refusal told the client to drop, because it was refused for them again and again.";
    RECOGNISED_APPLICATIONS Gauge "portcullis_recognised_applications" ["site", "profile"]
        "Applications that the answers of a site look like, by their profile; always 1.";
    UNKNOWN_APPLICATION_VERSIONS Gauge "portcullis_unknown_application_versions" ["site", "profile"]
        "1 if the application shows a version that its profile was not written for.";
    LEARNED_FIELDS Gauge "portcullis_learned_fields" ["site", "state"]
        "Fields that a site has learned: closed (known to carry one plain type) or open.";
    LEARNED_KINDS Gauge "portcullis_learned_kinds" ["site", "state"]
        "Kinds of findings that fields of a site carry: seen, proposed to count for nothing there, on trial, live or dismissed.";
    LEARNED_BEYOND_LIMIT Counter "portcullis_learned_beyond_limit_total" ["site"]
        "Values that were not learned: their field was beyond a limit, or its name or path too long.";
    LEARNED_DROPPED Counter "portcullis_learned_dropped_requests_total" ["site"]
        "Requests that were not learned, because too many waited or one network had sent too many of them.";
    LEARNED_SHARED Counter "portcullis_learned_shared_total" ["result"]
        "What sites have learned, as a whole, on its way between nodes through Redis: sent, received, or refused because it could not be read.";
    LEARNED_REDIS_CONNECTED Gauge "portcullis_learned_redis_connected" []
        "1 while nodes share through Redis what sites have learned of their fields.";
    LEARNED_REDIS_FAILURES Counter "portcullis_learned_redis_failures_total" []
        "Connections to Redis for learned fields that could not be opened, or broke.";
    TEACHING_SESSIONS Counter "portcullis_teaching_sessions_total" ["site", "result"]
        "Sessions in which an administrator teaches a site by hand: started, accepted, dismissed, or expired without a decision.";
    TEACHING_REQUESTS Counter "portcullis_teaching_requests_total" ["site", "result"]
        "Requests of clients that teach a site by hand: learned, refused (they teach nothing), or dropped because too many waited.";
    UNUSUAL_VALUES Counter "portcullis_unusual_values_total" ["site"]
        "Values unlike all that their closed field has carried.";
    DISCOVERED_ENDPOINTS Gauge "portcullis_discovered_endpoints" ["site"]
        "Endpoints of a site that were discovered.";
    DEVIATING_ENDPOINTS Gauge "portcullis_deviating_endpoints" ["site", "kind"]
        "Endpoints of a site with a declared API: shadow (not declared), drifted, zombie (deprecated), unseen.";
    DISCOVERY_BEYOND_LIMIT Counter "portcullis_discovery_beyond_limit_total" ["site", "kind"]
        "Requests of endpoints, and parameters, that were beyond a limit of discovery.";
    DISCOVERY_DROPPED Counter "portcullis_discovery_dropped_requests_total" ["site"]
        "Requests that discovery left out, because too many waited or one network had sent too many of them.";
    BYTES_INSPECTED Counter "portcullis_bytes_inspected_total" []
        "Bytes of requests and responses shown to rules or the semantic detector.";
    BYTES_NOT_INSPECTED Counter "portcullis_bytes_not_inspected_total" ["reason"]
        "Bytes of requests and responses that passed without inspection.";
    EXCHANGES_NOT_INSPECTED Counter "portcullis_exchanges_not_inspected_total" ["reason"]
        "Exchanges that passed at least partly without inspection.";
    EXCEPTIONS Counter "portcullis_exceptions_total" ["cause", "policy"]
        "Transactions whose inspection was incomplete, by cause and the applied failure policy.";
    INTEGRATION_EXCHANGES Counter "portcullis_integration_exchanges_total" ["integration", "verdict"]
        "Exchanges that another server had inspected (portcullis serve), by its protocol and the verdict.";
    INTEGRATION_BLIND_SPOTS Counter "portcullis_integration_blind_spots_total" ["integration", "blind_spot"]
        "Exchanges of which the server that asked did not show a part, by the part.";
    INTEGRATION_ERRORS Counter "portcullis_integration_errors_total" ["integration", "reason"]
        "Questions of other servers that got no verdict: an untrusted peer, too many connections, no memory, a malformed or too large message, one that came too late, or a response without its request.";
    PATTERN_ERRORS Counter "portcullis_pattern_errors_total" ["kind"]
        "Rule patterns that reached their match limit (limit) or became invalid after macro expansion (unusable), and texts cut at SecExpansionLimit (expansion).";
    SCORES_WITHHELD Counter "portcullis_anomaly_scores_withheld_total" []
        "Requests over the anomaly threshold only with the points of noisy rules, which were withheld.";
    LOOKUPS Counter "portcullis_lookups_total" ["kind", "result"]
        "External lookups of rules: dns for @rbl, scan for @inspectFile.";
    LOOKUP_DURATION Histogram "portcullis_lookup_duration_seconds" ["kind"]
        "Duration of external lookups, timeouts included; cached answers are not counted.";
    UPSTREAM_ERRORS Counter "portcullis_upstream_errors_total" ["kind"]
        "Errors between the proxy and an upstream.";
    UPSTREAM_HEALTHY Gauge "portcullis_upstream_healthy_backends" ["upstream"]
        "Endpoints of an upstream that are neither unhealthy nor ejected.";
    UPSTREAM_REQUESTS Counter "portcullis_upstream_requests_total" ["upstream", "endpoint", "result"]
        "Requests sent to an endpoint: answered, failed (no answer, or 502, 503, 504), or abandoned before either.";
    UPSTREAM_RETRIES Counter "portcullis_upstream_retries_total" ["upstream", "reason"]
        "Retries by the failure of the previous attempt: stale is a kept connection that the upstream closed, refused an HTTP/2 stream that it did not process.";
    UPSTREAM_RETRIES_DENIED Counter "portcullis_upstream_retries_denied_total" ["upstream"]
        "Retries not made because the retry budget was exhausted.";
    UPSTREAM_QUEUED Gauge "portcullis_upstream_requests_queued" ["upstream"]
        "Requests queued for an endpoint with free capacity.";
    UPSTREAM_QUEUE_REFUSED Counter "portcullis_upstream_queue_refused_total" ["upstream", "reason"]
        "Requests refused because the upstream queue was full, or after waiting too long in it (timeout).";
    UPSTREAM_ACTIVE Gauge "portcullis_upstream_requests_active" ["upstream", "endpoint"]
        "Requests in flight at an endpoint.";
    UPSTREAM_HTTP2 Gauge "portcullis_upstream_http2_connections" ["upstream", "endpoint"]
        "HTTP/2 connections to an endpoint that are open.";
    UPSTREAM_LOGINS Gauge "portcullis_upstream_login_connections" ["upstream", "endpoint"]
        "Connections to an endpoint that belong to one client connection, because a user has logged in on them (NTLM, Negotiate).";
    UPSTREAM_BREAKER Gauge "portcullis_upstream_circuit_breaker_state" ["upstream", "endpoint"]
        "The circuit breaker of an endpoint: 0 closed, 1 open, 2 half-open.";
    UPSTREAM_CHECKS Counter "portcullis_upstream_health_checks_total" ["upstream", "endpoint", "result"]
        "Active health checks of an endpoint: passed or failed.";
    UPSTREAM_RESOLUTIONS Counter "portcullis_upstream_resolutions_total" ["upstream", "result"]
        "DNS lookups of endpoint names repeated: unchanged, changed, or failed (the previous addresses stay in use).";
    UPSTREAM_EJECTIONS Counter "portcullis_upstream_ejections_total" ["upstream", "endpoint"]
        "Outlier ejections: endpoints taken out after consecutive failures.";
    AGENT_DECISIONS Counter "portcullis_agent_decisions_total" ["agent", "decision"]
        "Decisions of an agent on requests and responses: allow, block or redirect.";
    AGENT_FAILURES Counter "portcullis_agent_failures_total" ["agent", "reason"]
        "Exchanges for which an agent gave no decision: no connection (connect), no handshake, closed, an invalid message, or a gRPC status.";
    AGENT_TIMEOUTS Counter "portcullis_agent_timeouts_total" ["agent"]
        "Exchanges for which an agent gave no decision in time.";
    AGENT_BYPASSES Counter "portcullis_agent_bypasses_total" ["agent", "reason"]
        "Requests and responses passed without an agent's decision (fail open): failed, timeout, circuit_open, or queue.";
    AGENT_EVENTS_OMITTED Counter "portcullis_agent_events_omitted_total" ["agent"]
        "Agent failures without an event: each agent writes at most ten events a second after the first hundred.";
    AGENT_REFUSALS Counter "portcullis_agent_refusals_total" ["agent", "reason"]
        "Requests and responses refused without an agent's decision (fail closed): failed, timeout, circuit_open, or queue.";
    AGENT_DURATION Histogram "portcullis_agent_duration_seconds" ["agent"]
        "Time that a request or response waited for an agent, the time in its queue included.";
    AGENT_QUEUED Gauge "portcullis_agent_requests_queued" ["agent"]
        "Requests queued for an agent that is at its concurrency limit.";
    AGENT_ACTIVE Gauge "portcullis_agent_requests_active" ["agent"]
        "Requests and responses in progress at an agent.";
    AGENT_BREAKER Gauge "portcullis_agent_circuit_breaker_state" ["agent"]
        "The circuit breaker of an agent: 0 closed, 1 open, 2 half-open.";
    AGENT_CONNECTIONS Gauge "portcullis_agent_connections" ["agent"]
        "Open connections to an agent.";
    PAUSES Counter "portcullis_pauses_total" ["result"]
        "Requests delayed by the pause action: full time, shortened to the limit, or skipped because too many were waiting.";
    EVENTS_QUEUED Gauge "portcullis_events_queued" []
        "Events queued for the writer.";
    EVENTS_WRITTEN Counter "portcullis_events_written_total" ["sink"]
        "Events written to a sink.";
    EVENTS_DROPPED Counter "portcullis_events_dropped_total" ["sink", "reason"]
        "Events dropped, by sink; queue: before any sink, because the queue was full.";
    EVENTS_COALESCED Counter "portcullis_events_coalesced_total" []
        "Requests without an event of their own: their client repeated an attack more than events.coalesce_above times in a second, and another event counts them.";
    EVENT_SOCKET_CLIENTS Gauge "portcullis_event_socket_clients" []
        "Processes of this machine that are connected to send events (events.listen).";
    EVENT_SOCKET_EVENTS Counter "portcullis_event_socket_events_total" ["integration"]
        "Events taken from other processes, by the kind of integration that they come from.";
    EVENT_SOCKET_REFUSED Counter "portcullis_event_socket_refused_total" ["reason"]
        "Refused at the event socket: connections of other users (user) or of too many (clients), ended for lines that are no events (invalid) or too long (too_long) or within a line (cut), and events whose time is an hour ago or ahead (time) or of too many sites (sites).";
    EVENT_SOCKET_LOST Counter "portcullis_event_socket_lost_total" ["reason"]
        "Events that other processes say they have lost on their way to the event socket, by their reason.";
    FORWARD_QUEUED Gauge "portcullis_event_forward_queued" []
        "Events queued for the event socket of another process.";
    FORWARD_EVENTS Counter "portcullis_event_forward_events_total" []
        "Events that the event socket of another process has taken.";
    FORWARD_LOST Counter "portcullis_event_forward_lost_total" ["reason"]
        "Events lost on their way to the event socket of another process: queue_full or queue_bytes, shutdown, unconfirmed (the connection broke), too_long.";
    FORWARD_CONNECTED Gauge "portcullis_event_forward_connected" []
        "1 while the event socket of another process takes events.";
    EVENT_STORE_QUEUED Gauge "portcullis_event_store_queued" []
        "Events queued for the event store.";
    EVENT_STORE_WRITTEN Counter "portcullis_event_store_written_total" []
        "Events written to the event store.";
    EVENT_STORE_COALESCED Counter "portcullis_event_store_coalesced_total" []
        "Events that were not stored one by one but counted in another of their kind, because there were too many a second.";
    EVENT_STORE_REQUESTS_NOT_KEPT Counter "portcullis_event_store_requests_not_kept_total" []
        "Events whose request was not stored with them, because half of the queue of the event store was in use.";
    EVENT_STORE_DROPPED Counter "portcullis_event_store_dropped_total" ["reason"]
        "Events that could not be stored, each counted with those it stands for: queue_full or queue_bytes, shutdown, disk_full, write_error.";
    EVENT_STORE_BYTES Gauge "portcullis_event_store_bytes" []
        "Size of the event store on disk.";
    EVENT_STORE_SEGMENTS_DROPPED Counter "portcullis_event_store_segments_dropped_total" ["reason"]
        "Segments of the event store that were deleted (retention) or set aside (damaged).";
    CAPTURE_QUEUED Gauge "portcullis_capture_queued" []
        "Requests queued for the sample of requests that passed.";
    CAPTURE_WRITTEN Counter "portcullis_capture_written_total" []
        "Requests written to the sample of requests that passed.";
    CAPTURE_DROPPED Counter "portcullis_capture_dropped_total" ["reason"]
        "Requests of the sample that could not be stored: queue_full or queue_bytes, shutdown, disk_full, write_error.";
    CAPTURE_GIVEN_UP Counter "portcullis_capture_given_up_total" []
        "Requests that were not taken into the sample, because events came first: half of the queue of the event store was in use, or it could not be written to.";
    CAPTURE_BYTES Gauge "portcullis_capture_bytes" []
        "Size of the sample of requests that passed on disk.";
    CAPTURE_SEGMENTS_DROPPED Counter "portcullis_capture_segments_dropped_total" ["reason"]
        "Segments of the sample of requests that passed that were deleted (retention) or set aside (damaged).";
    EVENT_DATABASE_QUERIES Counter "portcullis_event_database_queries_total" ["result"]
        "Questions to the database of events that `events.read_from` names: answered, unavailable (down, or it refuses), late.";
    SINK_QUEUED Gauge "portcullis_sink_events_queued" ["sink"]
        "Events queued for a sink beside the event file.";
    SINK_SENT Counter "portcullis_sink_events_sent_total" ["sink"]
        "Events that a sink delivered to its receiver.";
    SINK_DROPPED Counter "portcullis_sink_events_dropped_total" ["sink", "reason"]
        "Events that a sink dropped: queue_full, queue_bytes, shutdown, retry (the receiver was away for too long), refused, too_large, rate_limit.";
    SINK_FAILURES Counter "portcullis_sink_failures_total" ["sink"]
        "Failed attempts of a sink to deliver events, which are tried again.";
    SINK_UP Gauge "portcullis_sink_up" ["sink"]
        "1 while the receiver of a sink takes events, as far as is known.";
    ACCESS_LOG_QUEUED Gauge "portcullis_access_log_queued" []
        "Access log lines queued for the writer.";
    ACCESS_LOG_WRITTEN Counter "portcullis_access_log_written_total" ["file"]
        "Lines written to an access log.";
    ACCESS_LOG_DROPPED Counter "portcullis_access_log_dropped_total" ["file", "reason"]
        "Access log lines dropped, by file; queue: because the queue was full.";
    AUDIT_QUEUED Gauge "portcullis_audit_queued" []
        "Audit records and debug lines queued for the writer.";
    AUDIT_WRITTEN Counter "portcullis_audit_written_total" ["log"]
        "Audit records and debug-log transactions written.";
    AUDIT_DROPPED Counter "portcullis_audit_dropped_total" ["log", "reason"]
        "Audit records and debug lines dropped, by log; queue: because the queue was full.";
    AUDIT_FILES_REMOVED Counter "portcullis_audit_files_removed_total" []
        "Old concurrent audit files deleted to keep within the limits.";
    STORE_RECORDS Gauge "portcullis_store_records" []
        "Records of persistent collections in memory.";
    STORE_BYTES Gauge "portcullis_store_bytes" []
        "Memory used by records of persistent collections, in bytes.";
    STORE_EVICTED Counter "portcullis_store_evicted_total" []
        "Records of persistent collections evicted before their expiry because a store limit was reached.";
    STORE_CHANGES_DROPPED Counter "portcullis_store_changes_dropped_total" []
        "Changes of persistent variables discarded because the record or its key is too large.";
    STORE_FILE_BYTES Gauge "portcullis_store_file_bytes" []
        "Size of the file in which persistent collections are kept.";
    STORE_PERSIST_ERRORS Counter "portcullis_store_persist_errors_total" []
        "Failed writes of persistent collections to disk; they stay in memory.";
    STORE_LOST_BYTES Counter "portcullis_store_lost_bytes_total" []
        "Bytes of the collections file that could not be read at startup.";
    STORE_REDIS_CONNECTED Gauge "portcullis_store_redis_connected" []
        "1 while persistent collections are shared through Redis, 0 while it cannot be reached or is not used.";
    STORE_REDIS_UNSENT Gauge "portcullis_store_redis_unsent" []
        "Records with changes not yet sent to other nodes.";
    STORE_REDIS_FAILURES Counter "portcullis_store_redis_failures_total" []
        "Failed or broken connections to Redis; the connection is retried.";
    STORE_REDIS_EXCHANGE Histogram "portcullis_store_redis_exchange_seconds" []
        "Time to apply a batch of changes in Redis.";
    UPLOADS_KEPT Counter "portcullis_uploads_kept_total" []
        "Uploaded files written to SecUploadDir.";
    UPLOADS_DROPPED Counter "portcullis_uploads_dropped_total" ["reason"]
        "Uploaded files that could not be kept.";
    TRACES_QUEUED Gauge "portcullis_traces_queued" []
        "Traces queued for the collector.";
    SPANS_EXPORTED Counter "portcullis_spans_exported_total" []
        "Spans accepted by the collector.";
    SPANS_DROPPED Counter "portcullis_spans_dropped_total" ["reason"]
        "Spans dropped: queue full, rejected by the collector (export), or unsent at exit (shutdown).";
    API_REQUESTS Counter "portcullis_api_requests_total" ["route", "status"]
        "Requests to the admin API, by route and class of status; route other is every path that is none.";
    API_LOGIN_FAILURES Counter "portcullis_api_login_failures_total" ["reason"]
        "Failed logins to the admin API: wrong name, password or code, refused after too many failures (throttled), too many at a time (busy), or a wrong setup code (setup).";
    API_OIDC_LOGINS Counter "portcullis_api_oidc_logins_total" ["result"]
        "Logins to the admin API at the OpenID Connect provider: ok, without a role (no_role), of a disabled user, not begun in this browser or answered wrongly (invalid), refused by the provider (denied), provider not reachable (provider), too many (busy).";
    SERIES_OVERFLOW Counter "portcullis_series_overflow_total" []
        "Series beyond the limit of a metric family, counted under the label other.";
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
