//! The `Cookie` request header.
