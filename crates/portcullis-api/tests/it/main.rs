//! The admin API over real sockets on loopback, with real identities and a real event store.
#![allow(clippy::unwrap_used, reason = "tests")]

mod access;
mod audit;
mod changes;
mod client;
mod console;
mod database;
mod events;
mod explain;
mod fields;
mod fuzz;
mod hostile;
mod identities;
mod interfaces;
mod live;
mod login;
mod oidc;
mod openapi;
mod pages;
mod replay;
mod rights;
mod server;
mod sessions;
mod sinks;
mod sites;
mod slow;
