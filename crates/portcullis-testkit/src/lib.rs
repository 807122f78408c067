//! The foundation of the tests, the CRS suite and the demo. Development only: nothing here ships in the
//! product, and nothing here knows the engine. It meets Portcullis as any stranger does, over a socket and
//! through the files it writes.
//!
//! ```text
//!   corpora, crs   where test data lives, typed readers, a clear word when it is missing
//!   ftw            go-ftw test files: YAML > stages > request bytes; evidence > judgement
//!   client         one raw request over one socket, from a chosen loopback address
//!   http3          a client of HTTP/3, with the feature `http3`
//!   upstream       a small bounded HTTP/1 server; behind it the CRS back end and the demo shop
//!   ports          addresses that are held until a server listens on them
//!   cgroup         processes that may have so much memory and no more
//!   process, proxy a child with a port; a Portcullis in front of that back end
//!   suite          crs-suite: starts back end and proxy, replays every stage, judges, reports
//!   corpus_run     corpus-run: sends the corpora, reports block rates, fails on crash, hang or 5xx
//!   evasion        corpus-run --evasions: body and parser evasions, judged form by form
//!   agent          an inspection agent whose decisions stand in the request
//!   oidc           an OpenID Connect provider that lies as a test tells it
//!   shared_store   a Redis or Memcached that nodes share
//!   reload_soak    reload-soak: many reloads under load; fails on a lost request or growing memory
//!   random         numbers for generated cases
//!   wait           until something is so
//!   trend          whether a series of samples grows: Theil-Sen slope with confidence bounds
//! ```
//!
//! Binaries: `crs-backend`, `demo-upstream`, `crs-suite`, `corpus-run`, `reload-soak`, `echo-agent`.
//!
//! Everything talks to loopback addresses only and stops by itself.
//!
//! ```
//! use portcullis_testkit::ftw;
//!
//! let file = ftw::parse(
//!     "rule_id: 1\ntests:\n  - test_id: 1\n    stages:\n      - input: {uri: /a}\n        output: {status: 200}\n",
//!     "example.yaml",
//! )?;
//! let stage = &file.tests[0].stages[0];
//! assert_eq!(stage.input.wire(), b"GET /a HTTP/1.1\r\nConnection: close\r\n\r\n");
//! # Ok::<(), portcullis_testkit::TestkitError>(())
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod agent;
pub mod answers;
pub mod base64;
pub mod cgroup;
pub mod client;
pub mod corpora;
mod corpora_folder;
pub mod corpus_run;
pub mod crs;
mod error;
pub mod evasion;
pub mod ftw;
#[cfg(feature = "http3")]
pub mod http3;
pub mod mmdb;
pub mod oidc;
mod ports;
pub mod process;
pub mod proxy;
pub mod random;
pub mod reload_soak;
pub mod shared_store;
pub mod suite;
pub mod trend;
pub mod upstream;
pub mod wait;
mod workspace;

pub use error::TestkitError;
pub use workspace::workspace_root;
