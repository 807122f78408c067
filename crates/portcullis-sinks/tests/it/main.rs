//! Sinks against real receivers, and against receivers that misbehave. One program, a module for each
//! subject.
//!
//! rsyslogd, clickhouse-server, and Python with the packages `opentelemetry-proto` and `chdb` are needed;
//! without one of them its tests say so and are left out, but in CI (`CI` is set) they fail.

mod clickhouse;
mod common;
mod faults;
mod hostile;
mod otlp;
mod rsyslog;
mod webhook;
