//! Sinks against real receivers, and against receivers that misbehave. One program, a module for each
//! subject.
//!
//! rsyslogd and clickhouse-server are needed; without one of them its tests say so and are left out, but in
//! CI (`CI` is set) they fail. One test needs Python with `chdb`, and is left out wherever that is missing.

mod clickhouse;
mod common;
mod faults;
mod hostile;
mod otlp;
mod rsyslog;
mod webhook;
