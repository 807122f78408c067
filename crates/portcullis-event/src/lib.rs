//! The event schema: one typed event per verdict worth keeping, redacted before it leaves.
