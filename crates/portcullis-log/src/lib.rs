//! Bounded event buffer and sinks.
