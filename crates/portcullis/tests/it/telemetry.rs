//! Every metric moves. Those of [`HERE`] are moved here, by the real program; each other one by the test that
//! [`ELSEWHERE`] names. A metric that is in neither list, or in one and not in the catalogue, fails.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use crate::agent::{self, Agent, table};
use crate::served::*;
use portcullis_metrics::catalogue;
use portcullis_testkit::process::{Signal, signal};
use portcullis_testkit::shared_store::{Kind, SharedStore};

const HERE: &[&str] = &[
    "portcullis_access_log_queued",
    "portcullis_access_log_written_total",
    "portcullis_agent_bypasses_total",
    "portcullis_agent_circuit_breaker_state",
    "portcullis_agent_connections",
    "portcullis_agent_decisions_total",
    "portcullis_agent_duration_seconds",
    "portcullis_agent_failures_total",
    "portcullis_agent_refusals_total",
    "portcullis_agent_requests_active",
    "portcullis_agent_requests_queued",
    "portcullis_agent_timeouts_total",
    "portcullis_audit_queued",
    "portcullis_ban_evicted_total",
    "portcullis_build_info",
    "portcullis_bytes_inspected_total",
    "portcullis_bytes_not_inspected_total",
    "portcullis_connections_active",
    "portcullis_events_queued",
    "portcullis_exceptions_total",
    "portcullis_inspection_duration_seconds",
    "portcullis_policy_generation",
    "portcullis_rate_limit_evicted_total",
    "portcullis_rate_limited_total",
    "portcullis_reloads_total",
    "portcullis_request_duration_seconds",
    "portcullis_requests_total",
    "portcullis_rule_matches_total",
    "portcullis_semantic_findings_total",
    "portcullis_series_overflow_total",
    "portcullis_spans_dropped_total",
    "portcullis_spans_exported_total",
    "portcullis_store_redis_exchange_seconds",
    "portcullis_traces_queued",
    "portcullis_upstream_errors_total",
    "portcullis_upstream_health_checks_total",
    "portcullis_upstream_healthy_backends",
    "portcullis_upstream_requests_active",
    "portcullis_upstream_requests_total",
    "portcullis_upstream_retries_total",
];

/// Metrics, and the test file that moves each. It has to name the metric.
const ELSEWHERE: &[(&str, &str)] = &[
    ("portcullis_accept_errors_total", "portcullis-proxy/src/descriptors.rs"),
    ("portcullis_issued_cookies", "portcullis/tests/it/issued_cookies.rs"),
    ("portcullis_issued_cookie_findings_total", "portcullis/tests/it/issued_cookies.rs"),
    ("portcullis_issued_cookies_declined_total", "portcullis/tests/it/issued_cookies.rs"),
    ("portcullis_issued_cookie_rotations_total", "portcullis/tests/it/issued_cookies.rs"),
    ("portcullis_discovered_endpoints", "portcullis/tests/it/discovery.rs"),
    ("portcullis_deviating_endpoints", "portcullis/tests/it/discovery.rs"),
    ("portcullis_discovery_beyond_limit_total", "portcullis/src/run/discovery.rs"),
    ("portcullis_discovery_dropped_requests_total", "portcullis/src/run/discovery.rs"),
    ("portcullis_expired_cookies_total", "portcullis/tests/it/issued_cookies.rs"),
    ("portcullis_signed_cookies_total", "portcullis/tests/it/signed_cookies.rs"),
    ("portcullis_checked_cookies_total", "portcullis/tests/it/signed_cookies.rs"),
    ("portcullis_issued_cookie_bytes", "portcullis/tests/it/issued_cookies.rs"),
    ("portcullis_issued_cookies_unshared_total", "portcullis/tests/it/issued_cookies.rs"),
    ("portcullis_issued_cookies_shared_total", "portcullis/tests/it/issued_cookies.rs"),
    ("portcullis_issued_cookies_redis_connected", "portcullis/tests/it/issued_cookies.rs"),
    ("portcullis_issued_cookies_redis_failures_total", "portcullis/tests/it/issued_cookies.rs"),
    ("portcullis_learned_shared_total", "portcullis/tests/it/fields.rs"),
    ("portcullis_learned_redis_connected", "portcullis/tests/it/fields.rs"),
    ("portcullis_learned_redis_failures_total", "portcullis/tests/it/fields.rs"),
    ("portcullis_recognised_applications", "portcullis/tests/it/profiles.rs"),
    ("portcullis_unknown_application_versions", "portcullis/tests/it/profiles.rs"),
    ("portcullis_learned_beyond_limit_total", "portcullis/src/run/learner.rs"),
    ("portcullis_learned_dropped_requests_total", "portcullis/src/run/learner.rs"),
    ("portcullis_learned_fields", "portcullis/tests/it/fields.rs"),
    ("portcullis_learned_kinds", "portcullis/tests/it/fields.rs"),
    ("portcullis_teaching_sessions_total", "portcullis/tests/it/teaching.rs"),
    ("portcullis_teaching_requests_total", "portcullis/tests/it/teaching.rs"),
    ("portcullis_unusual_values_total", "portcullis/tests/it/fields.rs"),
    ("portcullis_memory_limit_bytes", "portcullis-proxy/src/memory.rs"),
    ("portcullis_memory_resident_bytes", "portcullis-proxy/src/memory.rs"),
    ("portcullis_access_decisions_total", "portcullis-proxy/tests/it/access.rs"),
    ("portcullis_access_events_omitted_total", "portcullis-proxy/tests/it/rate_limits.rs"),
    ("portcullis_access_list_ranges", "portcullis-proxy/tests/it/access.rs"),
    ("portcullis_access_list_reloads_total", "portcullis-proxy/tests/it/access.rs"),
    ("portcullis_access_log_dropped_total", "portcullis/tests/it/access_log.rs"),
    ("portcullis_acme_challenges_answered_total", "portcullis/tests/it/acme.rs"),
    ("portcullis_acme_next_order_timestamp_seconds", "portcullis/tests/it/acme.rs"),
    ("portcullis_acme_orders_total", "portcullis/tests/it/acme.rs"),
    ("portcullis_agent_events_omitted_total", "portcullis/tests/it/agent_faults.rs"),
    ("portcullis_ambiguous_bodies_total", "portcullis-proxy/tests/it/bodies.rs"),
    ("portcullis_anomaly_scores_withheld_total", "portcullis/tests/it/semantic.rs"),
    ("portcullis_api_login_failures_total", "portcullis-api/tests/it/login.rs"),
    ("portcullis_api_oidc_logins_total", "portcullis-api/tests/it/oidc.rs"),
    ("portcullis_api_requests_total", "portcullis-api/tests/it/login.rs"),
    ("portcullis_audit_dropped_total", "portcullis/tests/it/audit/mod.rs"),
    ("portcullis_audit_files_removed_total", "portcullis/tests/it/audit/mod.rs"),
    ("portcullis_audit_written_total", "portcullis/tests/it/audit/mod.rs"),
    ("portcullis_ban_file_errors_total", "portcullis-proxy/tests/it/bans.rs"),
    ("portcullis_ban_requests_total", "portcullis-proxy/tests/it/bans.rs"),
    ("portcullis_banned_clients", "portcullis-proxy/tests/it/bans.rs"),
    ("portcullis_bans_lifted_total", "portcullis-proxy/tests/it/bans.rs"),
    ("portcullis_bans_total", "portcullis-proxy/tests/it/bans.rs"),
    ("portcullis_bodies_refused_total", "portcullis-proxy/tests/it/bounds.rs"),
    ("portcullis_capture_bytes", "portcullis-event-store/tests/it/recorder.rs"),
    ("portcullis_capture_dropped_total", "portcullis-event-store/tests/it/recorder.rs"),
    ("portcullis_capture_given_up_total", "portcullis-event-store/tests/it/recorder.rs"),
    ("portcullis_capture_queued", "portcullis-event-store/tests/it/recorder.rs"),
    ("portcullis_capture_segments_dropped_total", "portcullis-event-store/tests/it/recorder.rs"),
    ("portcullis_capture_written_total", "portcullis/tests/it/capture.rs"),
    ("portcullis_client_aborts_total", "portcullis-proxy/tests/it/aborts.rs"),
    ("portcullis_compressed_responses_total", "portcullis-proxy/tests/it/compression.rs"),
    ("portcullis_compression_bytes_in_total", "portcullis-proxy/tests/it/compression.rs"),
    ("portcullis_compression_bytes_out_total", "portcullis-proxy/tests/it/compression.rs"),
    ("portcullis_compression_skipped_total", "portcullis-proxy/tests/it/compression.rs"),
    ("portcullis_connections_shed_total", "portcullis-proxy/tests/it/bounds.rs"),
    ("portcullis_event_database_queries_total", "portcullis-clickhouse/tests/it/server.rs"),
    ("portcullis_event_forward_connected", "portcullis-event-socket/tests/it/delivery.rs"),
    ("portcullis_event_forward_events_total", "portcullis-event-socket/tests/it/delivery.rs"),
    ("portcullis_event_forward_lost_total", "portcullis-event-socket/tests/it/delivery.rs"),
    ("portcullis_event_forward_queued", "portcullis-event-socket/tests/it/delivery.rs"),
    ("portcullis_event_socket_clients", "portcullis-event-socket/tests/it/hostile.rs"),
    ("portcullis_event_socket_events_total", "portcullis-event-socket/tests/it/delivery.rs"),
    ("portcullis_event_socket_lost_total", "portcullis-event-socket/tests/it/delivery.rs"),
    ("portcullis_event_socket_refused_total", "portcullis-event-socket/tests/it/hostile.rs"),
    ("portcullis_event_store_bytes", "portcullis-event-store/tests/it/recorder.rs"),
    ("portcullis_event_store_coalesced_total", "portcullis-event-store/tests/it/recorder.rs"),
    ("portcullis_event_store_requests_not_kept_total", "portcullis-event-store/tests/it/recorder.rs"),
    ("portcullis_event_store_dropped_total", "portcullis-event-store/tests/it/recorder.rs"),
    ("portcullis_event_store_queued", "portcullis-event-store/tests/it/recorder.rs"),
    ("portcullis_event_store_segments_dropped_total", "portcullis-event-store/tests/it/recorder.rs"),
    ("portcullis_event_store_written_total", "portcullis/tests/it/event_store.rs"),
    ("portcullis_events_coalesced_total", "portcullis-proxy/tests/it/coalescing.rs"),
    ("portcullis_events_dropped_total", "portcullis/tests/it/run.rs"),
    ("portcullis_events_written_total", "portcullis-log/tests/it/log.rs"),
    ("portcullis_exclusion_hits_total", "portcullis-metrics/tests/it/exposition.rs"),
    ("portcullis_exclusion_last_hit_timestamp_seconds", "portcullis-metrics/tests/it/exposition.rs"),
    ("portcullis_exclusion_trial_start_timestamp_seconds", "portcullis-metrics/tests/it/exposition.rs"),
    ("portcullis_exclusion_trials_total", "portcullis-metrics/tests/it/exposition.rs"),
    ("portcullis_exchanges_not_inspected_total", "portcullis/tests/it/leaks.rs"),
    ("portcullis_streamed_uploads_total", "portcullis/tests/it/streamed_uploads.rs"),
    ("portcullis_geo_lookups_total", "portcullis-proxy/tests/it/geo.rs"),
    ("portcullis_geo_reloads_total", "portcullis-proxy/tests/it/geo.rs"),
    ("portcullis_held_body_bytes", "portcullis-proxy/tests/it/bounds.rs"),
    ("portcullis_http2_connections_active", "portcullis-proxy/tests/it/http2.rs"),
    ("portcullis_http2_limits_total", "portcullis-proxy/tests/it/http2_limits.rs"),
    ("portcullis_http2_malformed_total", "portcullis-proxy/tests/it/http2_limits.rs"),
    ("portcullis_http2_streams_active", "portcullis-proxy/tests/it/http2.rs"),
    ("portcullis_https_redirects_total", "portcullis-proxy/tests/it/tls.rs"),
    ("portcullis_inspections_offloaded_total", "portcullis-proxy/tests/it/bounds.rs"),
    ("portcullis_integration_blind_spots_total", "portcullis/tests/it/serve/check.rs"),
    ("portcullis_integration_errors_total", "portcullis/tests/it/serve/check.rs"),
    ("portcullis_integration_exchanges_total", "portcullis/tests/it/serve/check.rs"),
    ("portcullis_limit_store_connected", "portcullis-share/tests/it/share.rs"),
    ("portcullis_limit_store_dropped_total", "portcullis-share/tests/it/share.rs"),
    ("portcullis_limit_store_exchange_seconds", "portcullis-share/tests/it/share.rs"),
    ("portcullis_limit_store_failures_total", "portcullis-share/tests/it/share.rs"),
    ("portcullis_limit_store_leased_total", "portcullis-share/tests/it/share.rs"),
    ("portcullis_lookup_duration_seconds", "portcullis/tests/it/lookups.rs"),
    ("portcullis_lookups_total", "portcullis/tests/it/lookups.rs"),
    ("portcullis_overload_refused_total", "portcullis-proxy/tests/it/bounds.rs"),
    ("portcullis_overloaded", "portcullis-proxy/tests/it/bounds.rs"),
    ("portcullis_pattern_errors_total", "portcullis/tests/it/actions.rs"),
    ("portcullis_pauses_total", "portcullis/tests/it/actions.rs"),
    ("portcullis_protocol_requests_total", "portcullis-proxy/tests/it/http2.rs"),
    ("portcullis_rate_limit_unshared_total", "portcullis-proxy/tests/it/shared_limits.rs"),
    ("portcullis_refused_requests_total", "portcullis-proxy/tests/it/http.rs"),
    ("portcullis_request_trailers_dropped_total", "portcullis-proxy/tests/it/trailers.rs"),
    ("portcullis_store_bytes", "portcullis-store/tests/it/restart.rs"),
    ("portcullis_store_changes_dropped_total", "portcullis-store/tests/it/restart.rs"),
    ("portcullis_store_evicted_total", "portcullis-store/tests/it/restart.rs"),
    ("portcullis_store_file_bytes", "portcullis/tests/it/collections.rs"),
    ("portcullis_store_lost_bytes_total", "portcullis-store/tests/it/restart.rs"),
    ("portcullis_store_persist_errors_total", "portcullis/tests/it/collections.rs"),
    ("portcullis_store_records", "portcullis/tests/it/collections.rs"),
    ("portcullis_store_redis_connected", "portcullis/tests/it/collections.rs"),
    ("portcullis_store_redis_failures_total", "portcullis/tests/it/collections.rs"),
    ("portcullis_store_redis_unsent", "portcullis/tests/it/collections.rs"),
    ("portcullis_tls_certificate_expiry_timestamp_seconds", "portcullis-proxy/tests/it/tls.rs"),
    ("portcullis_lists_current_timestamp_seconds", "portcullis/tests/it/lists.rs"),
    ("portcullis_lists_fetched_total", "portcullis/tests/it/lists.rs"),
    ("portcullis_tls_handshake_failures_total", "portcullis-proxy/tests/it/tls.rs"),
    ("portcullis_tls_handshakes_total", "portcullis-proxy/tests/it/tls.rs"),
    ("portcullis_tls_reloads_total", "portcullis-proxy/tests/it/tls.rs"),
    ("portcullis_upgrades_total", "portcullis/tests/it/operations.rs"),
    ("portcullis_uploads_dropped_total", "portcullis/tests/it/uploads.rs"),
    ("portcullis_uploads_kept_total", "portcullis/tests/it/uploads.rs"),
    ("portcullis_upstream_circuit_breaker_state", "portcullis-proxy/tests/it/upstreams.rs"),
    ("portcullis_upstream_ejections_total", "portcullis-proxy/tests/it/upstreams.rs"),
    ("portcullis_upstream_http2_connections", "portcullis-proxy/tests/it/http2_upstreams.rs"),
    ("portcullis_upstream_login_connections", "portcullis-proxy/tests/it/logins.rs"),
    ("portcullis_upstream_queue_refused_total", "portcullis-proxy/tests/it/upstreams.rs"),
    ("portcullis_upstream_requests_queued", "portcullis-proxy/tests/it/upstreams.rs"),
    ("portcullis_upstream_resolutions_total", "portcullis-proxy/tests/it/names.rs"),
    ("portcullis_upstream_retries_denied_total", "portcullis-proxy/tests/it/upstreams.rs"),
    ("portcullis_worker_connections_total", "portcullis/tests/it/operations.rs"),
    ("portcullis_sink_events_dropped_total", "portcullis-sinks/tests/it/common.rs"),
    ("portcullis_sink_events_queued", "portcullis-sinks/tests/it/faults.rs"),
    ("portcullis_sink_events_sent_total", "portcullis-sinks/tests/it/common.rs"),
    ("portcullis_sink_failures_total", "portcullis-sinks/tests/it/rsyslog.rs"),
    ("portcullis_sink_up", "portcullis-sinks/tests/it/rsyslog.rs"),
];

#[test]
fn each_metric_has_a_test_that_moves_it() {
    let exported: BTreeSet<&str> = catalogue::ALL.iter().map(|metric| metric.name).collect();
    let tested: BTreeSet<&str> =
        HERE.iter().copied().chain(ELSEWHERE.iter().map(|(name, _)| *name)).collect();
    assert_eq!(tested, exported, "add what is new to HERE or ELSEWHERE, with a test that moves it");
    assert_eq!(tested.len(), HERE.len() + ELSEWHERE.len(), "one is listed twice");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (name, file) in ELSEWHERE {
        let text = std::fs::read_to_string(crates.join(file)).unwrap();
        // Some tests put the name together.
        let short = name.trim_start_matches("portcullis_").trim_end_matches("_total");
        assert!(text.contains(short), "{file} does not look at {name}");
    }
}

/// The metrics of a program, as seen so far.
#[derive(Default)]
struct Watch {
    first: BTreeMap<String, String>,
    moved: BTreeSet<String>,
}

impl Watch {
    /// Takes the values at present: what is not as it was in the beginning has moved.
    fn look(&mut self, served: &Served) {
        let is_first = self.first.is_empty();
        let page = served.metrics();
        let named = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        for name in named {
            let is_known = catalogue::ALL.iter().any(|metric| metric.name == name);
            assert!(is_known, "{name} is not in the catalogue");
        }
        for line in page.lines().filter(|line| line.starts_with("portcullis_")) {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            if is_first {
                self.first.insert(series.to_owned(), value.to_owned());
            }
            // A counter that is not at zero has moved before we looked.
            let has_counted =
                is_first && series.split('{').next().is_some_and(|name| name.ends_with("_total"));
            let before = if has_counted { "0" } else { self.first.get(series).map_or("0", String::as_str) };
            if before != value {
                let name = series.split('{').next().unwrap_or_default();
                let of_histogram =
                    ["_bucket", "_count", "_sum"].iter().find_map(|end| name.strip_suffix(end));
                let is_known = |name: &str| catalogue::ALL.iter().any(|metric| metric.name == name);
                let name = if is_known(name) { name } else { of_histogram.unwrap_or(name) };
                self.moved.insert(name.to_owned());
            }
        }
    }

    fn until_moved(&mut self, served: &Served, names: &[&str]) {
        let begin = std::time::Instant::now();
        loop {
            self.look(served);
            let missing: Vec<_> = names.iter().filter(|name| !self.moved.contains(**name)).collect();
            if missing.is_empty() {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "do not move: {missing:?}\n{}", served.metrics());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn the_metrics_of_this_file_move() {
    let mut moved = BTreeSet::new();
    moved.extend(traffic());
    moved.extend(agents());
    moved.extend(blocked_logs());
    moved.extend(redis());
    let missing: Vec<_> = HERE.iter().filter(|name| !moved.contains(**name)).collect();
    assert!(missing.is_empty(), "do not move: {missing:?}");
}

/// Requests of all kinds, an upstream with a dead endpoint, a collector, too many series, a reload.
fn traffic() -> BTreeSet<String> {
    let application = application(|request| {
        if request.target.contains("slow") {
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
        says("hello")
    });
    let collector = self::application(|_| says("{}"));
    // More rules than a family has places for series.
    let many: String = (0..10_100)
        .map(|number| format!("SecAction \"id:{},phase:5,pass,log\"\n", 100_000 + number))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("many.conf"), many).unwrap();
    let many = folder.path().join("many.conf");
    let site = format!(
        "mode = \"both\"\n{}\n\
         rate_limits = [{{ name = \"few\", key = [\"header:x-key\"], rate = 1, per = \"1h\", keys = 8 }}]\n\
         ban = {{ score = 1000, clients = 8, points = {{ limited = 1 }} }}\n\
         routes = [{{ path = \"/gone\", upstream = \"gone\" }}]",
        rules("SecRule REQUEST_URI \"@contains rule\" \"id:1,phase:1,deny\"")
    );
    let vacant = free_address();
    let more = format!(
        "ejection = {{ failures = 0 }}\n\
         [upstreams.gone]\nendpoints = [\"http://{vacant}\"]\n\
         [[sites]]\nname = \"many\"\nhosts = [\"many\"]\nupstream = \"watched\"\nrules = {{ include = [\"{}\"] }}\n\
         [upstreams.watched]\nendpoints = [\"http://{vacant}\"]\nhealth = {{ tcp = true, interval = \"100ms\" }}\n\
         [tracing]\notlp = \"http://{}\"\nratio = 1\n\
         [client_address]\ntrusted_proxies = [\"127.0.0.0/8\"]\nheader = \"x-forwarded-for\"\n\
         [access_log]\nfile = \"access.log\"\n",
        many.display(),
        collector.address()
    );
    let served = Served::start_site(&application, &site, &more);
    let mut watch = Watch::default();
    watch.look(&served);
    // There from the beginning, and never again: its first value is its movement.
    for series in ["portcullis_build_info{version=\"0.1.0\"}", "portcullis_policy_generation"] {
        served.counts(series, 1.0);
    }
    watch.moved.insert("portcullis_build_info".to_owned());
    let healthy = |upstream: &str, count: u8| {
        let line = format!("portcullis_upstream_healthy_backends{{upstream=\"{upstream}\"}} {count}");
        served.metrics().lines().any(|found| found == line)
    };
    until(|| healthy("app", 1) && healthy("watched", 0));
    watch.moved.insert("portcullis_upstream_healthy_backends".to_owned());
    assert_eq!(served.get("/").status(), 200);
    assert_eq!(served.get("/rule").status(), 403);
    served.get("/?id=1%27%20union%20select%20password%20from%20users--%20-");
    assert!(served.get("/gone").status() >= 500);
    for key in 0..200 {
        let request = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nX-Key: {key}\r\nX-Forwarded-For: 10.1.1.{key}\r\nConnection: close\r\n\r\n"
        );
        served.raw(&request);
        served.raw(&request);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| served.get("/slow"));
        watch.until_moved(
            &served,
            &[
                "portcullis_upstream_requests_active",
                "portcullis_connections_active",
                "portcullis_traces_queued",
            ],
        );
    });
    signal(served.id(), Signal::HUP).unwrap();
    watch.until_moved(
        &served,
        &["portcullis_reloads_total", "portcullis_policy_generation", "portcullis_spans_exported_total"],
    );
    served.stop();
    watch.moved
}

/// An agent that is well, one that is not there, and a collector that is not there either.
fn agents() -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let address = agent::unix(folder.path());
    let _agent = Agent::echo(&address);
    let application = application(|_| says("hello"));
    let vacant = free_address();
    let more = format!(
        "{}{}[tracing]\notlp = \"http://{vacant}\"\nratio = 1\n[upstreams.two]\n\
         endpoints = [\"http://{vacant}\", \"http://{}\"]\nejection = {{ failures = 0 }}",
        table("echo", &address, "timeout = \"1s\"\nconcurrency = 1"),
        table("gone", &agent::unix(&folder.path().join("none")), "failure = \"open\""),
        application.address()
    );
    let site = "mode = \"off\"\nagents = [\"echo\"]\nroutes = [{ path = \"/gone\", agents = [\"gone\"] }, \
                { path = \"/two\", agents = [], upstream = \"two\" }]";
    let served = Served::start_site(&application, site, &more);
    let mut watch = Watch::default();
    watch.look(&served);
    let silent =
        || served.raw("GET / HTTP/1.1\r\nHost: a\r\nX-Agent: silent\r\nConnection: close\r\n\r\n").status();
    assert_eq!(served.get("/").status(), 200);
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..3).map(|_| scope.spawn(silent)).collect();
        watch.until_moved(
            &served,
            &[
                "portcullis_agent_requests_active",
                "portcullis_agent_requests_queued",
                "portcullis_agent_connections",
            ],
        );
        assert!(asked.into_iter().all(|each| each.join().unwrap() == 503));
    });
    for _ in 0..6 {
        assert_eq!(served.get("/gone").status(), 200);
        assert_eq!(served.get("/two").status(), 200);
    }
    watch.until_moved(
        &served,
        &[
            "portcullis_agent_circuit_breaker_state",
            "portcullis_agent_timeouts_total",
            "portcullis_agent_failures_total",
            "portcullis_agent_bypasses_total",
            "portcullis_upstream_retries_total",
            "portcullis_spans_dropped_total",
        ],
    );
    served.stop();
    watch.moved
}

/// Logs whose reader does not read: a pipe holds some, then the queues fill.
fn blocked_logs() -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["events", "access", "audit"] {
        fifo(&path(name));
    }
    // Open on both ends, so that opening does not wait and nothing breaks.
    let open = |name: &str| std::fs::OpenOptions::new().read(true).write(true).open(path(name)).unwrap();
    let ends = ["events", "access", "audit"].map(open);
    let application = application(|_| says("hello"));
    let directives = format!(
        "SecRule REQUEST_URI \"@contains rule\" \"id:1,phase:1,deny,log,auditlog\"\nSecAuditEngine On\nSecAuditLogParts ABHZ\n\
         SecAuditLogType Serial\nSecAuditLog {}",
        path("audit").display()
    );
    let document = format!("[access_log]\nfile = \"{}\"\n", path("access").display());
    let served = Served::start_with_events(&application, &rules(&directives), &document, &path("events"));
    let mut watch = Watch::default();
    watch.look(&served);
    let mut stream = TcpStream::connect(served.address).unwrap();
    let filling = std::thread::spawn(move || {
        let request = format!("GET /rule?{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(2000));
        let mut answer = [0; 64 << 10];
        for _ in 0..400 {
            stream.write_all(request.as_bytes()).unwrap();
            let _ = std::io::Read::read(&mut stream, &mut answer);
        }
    });
    watch.until_moved(
        &served,
        &["portcullis_events_queued", "portcullis_access_log_queued", "portcullis_audit_queued"],
    );
    filling.join().unwrap();
    // Killed, since its writers hang.
    drop(served);
    drop(ends);
    watch.moved
}

/// A Redis through which records are shared.
fn redis() -> BTreeSet<String> {
    let redis = SharedStore::start(Kind::Redis, None).unwrap();
    let application = application(|_| says("hello"));
    let directives = "SecAction \"id:1,phase:1,pass,nolog,initcol:ip=%{REMOTE_ADDR},setvar:ip.count=+1\"";
    let more = format!("[store]\nredis = \"{}\"\n", redis.url());
    let served = Served::start(&application, directives, &more);
    let mut watch = Watch::default();
    watch.look(&served);
    until(|| {
        assert_eq!(served.get("/").status(), 200);
        watch.look(&served);
        watch.moved.contains("portcullis_store_redis_exchange_seconds")
    });
    served.stop();
    watch.moved
}
