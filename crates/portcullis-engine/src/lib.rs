//! The plan (compiled rules) and its executor.
