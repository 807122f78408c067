//! Fields of reports that browsers and proxies send: the page, the request or the error they tell of.

use super::name::{above, has_word, is_of_body, last_part};
use super::queries::is_attribute;
use crate::{Location, Place};

/// The value is part of a report of a browser or a service: a name above it is that of the page, the request
/// or the error, or it is an attribute of a span.
pub(in crate::detectors) fn is_of_report(location: Location<'_>) -> bool {
    const REPORTS: &[&[u8]] = &[
        b"request",
        b"view",
        b"page",
        b"document",
        b"window",
        b"context",
        b"location",
        b"report",
        b"event",
        b"breadcrumbs",
    ];
    // Where a frame of a stack trace has its source.
    const SOURCES: &[&[u8]] = &[b"filename", b"abs_path", b"file", b"module"];
    let last = last_part(location.name);
    let above = above(location.name);
    let is_frame = || SOURCES.contains(&last) && has_word(above, &[b"frames", b"stacktrace"]);
    // Where the browser is, whatever stands above it: `$current_url`, `pageUrl`.
    let is_current = || has_word(last, &[b"url"]) && has_word(last, &[b"current", b"page"]);
    location.place == Place::Json
        && (has_word(above, REPORTS) || is_current() || is_frame() || is_attribute(location))
}

/// The field quotes lines of a program around the place where it failed: frames of a stack trace.
pub(in crate::detectors) fn quotes_lines(location: Location<'_>) -> bool {
    const LINES: &[&[u8]] = &[b"context_line", b"pre_context", b"post_context"];
    let last = last_part(location.name);
    let above = above(location.name);
    location.place == Place::Json && LINES.contains(&last) && has_word(above, &[b"frames", b"stacktrace"])
}

/// The field quotes code that a browser did not run: the report of a content security policy.
pub(in crate::detectors) fn quotes_code(location: Location<'_>) -> bool {
    const SAMPLES: &[&[u8]] = &[b"script-sample", b"scriptSample", b"sample"];
    let last = last_part(location.name);
    let above = above(location.name);
    location.place == Place::Json
        && SAMPLES.contains(&last)
        && (has_word(above, &[b"report", b"body"]) || above.is_empty())
}

/// The field takes the header fields of a message: what a browser or a proxy reports of a request.
pub(in crate::detectors) fn takes_headers(location: Location<'_>) -> bool {
    is_of_body(location.place) && has_word(last_part(location.name), &[b"header", b"headers"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(place: Place, name: &str) -> Location<'_> {
        Location::new(place, name.as_bytes())
    }

    #[test]
    fn reports() {
        assert!(quotes_code(at(Place::Json, "csp-report.script-sample")));
        assert!(quotes_code(at(Place::Json, "array.array.body.sample")));
        assert!(is_of_report(at(Place::Json, "array.properties.$current_url")));
        assert!(is_of_report(at(Place::Json, "spans.attributes.value.stringValue")));
        assert!(!is_of_report(at(Place::Json, "spans.value.stringValue")));
        let frame = "exception.values.stacktrace.frames.context_line";
        assert!(quotes_lines(at(Place::Json, frame)) && !quotes_lines(at(Place::Json, "a.context_line")));
        assert!(!quotes_lines(at(Place::Form, frame)));
        assert!(is_of_report(at(Place::Json, "a.page.url")) && !is_of_report(at(Place::Json, "image_url")));
        assert!(!quotes_code(at(Place::Json, "items.sample")) && !quotes_code(at(Place::Form, "sample")));
    }
}
