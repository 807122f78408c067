//! The configuration document: raw text to checked settings.
