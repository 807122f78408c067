//! Message model.
