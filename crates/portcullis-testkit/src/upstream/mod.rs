//! Upstreams for tests and the demo.

pub mod demo;
pub mod reflector;
mod server;
mod sniff;

pub use server::{Request, Response, Server};
