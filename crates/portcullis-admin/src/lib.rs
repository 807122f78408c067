//! The admin listener: metrics and health.
