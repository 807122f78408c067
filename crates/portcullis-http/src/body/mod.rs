//! Request and response body parsers.
