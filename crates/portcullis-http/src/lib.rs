//! HTTP as an attacker sends it: message model, HTTP/1 codec, body parsers. Sans-IO.
