//! Candidates and their costs, with the real engine.

mod advice;
mod common;
mod crs_probes;
mod probes;
