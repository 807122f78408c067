//! SecLang transformations: bytes to bytes.
