//! HTTP as an attacker sends it: message model, HTTP/1 codec, body parsers. Sans-IO.

pub mod body;
pub mod cookie;
pub mod h1;
pub mod message;
