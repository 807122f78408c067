//! The integration tests of the crate: one program, a module for each subject.

// What `authority` speaks, whose file is the proxy's.
use h2 as _;

mod access_log;
mod acme;
mod actions;
mod agent;
mod agent_faults;
mod agents;
mod agents_grpc;
mod audit;
#[path = "../../../portcullis-proxy/tests/it/common/authority.rs"]
#[allow(dead_code, reason = "the tests of the proxy use the rest")]
mod authority;
mod backup;
mod bans;
#[cfg(feature = "bench")]
mod bench;
mod body_limits;
mod capture;
mod check;
#[path = "../../../portcullis-clickhouse/tests/it/server.rs"]
#[allow(dead_code, reason = "the tests of that crate use the rest")]
mod clickhouse;
mod collections;
mod console;
mod crs;
mod declared;
#[path = "../../../portcullis-declared/tests/it/descriptors.rs"]
#[allow(dead_code, reason = "the tests of that crate use the rest")]
mod descriptors;
mod discovery;
mod evaluate;
mod event_database;
mod event_size;
mod event_socket;
mod event_store;
mod every_limit;
mod exclusion_use;
mod exclusions;
mod explain;
mod fields;
mod first_hour;
mod generated;
mod init;
mod issued_cookies;
mod kept_requests;
mod leaks;
mod lists;
mod live;
mod lookups;
mod messages;
mod migrate;
mod oidc;
mod operations;
mod profiles;
mod replay;
mod revisions;
mod rewriting;
mod rule_sources;
mod run;
mod semantic;
mod serve;
mod served;
mod signed_cookies;
mod starts;
mod streamed_uploads;
mod surroundings;
mod teaching;
mod telemetry;
mod tracing;
mod uploads;
mod xpath;
