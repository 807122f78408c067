//! A libinjection-compatible SQL injection and XSS detector.
