//! A request or response, taken apart into values.

use portcullis_http::body::{Limits, overrides_url, parse_query_twice, path_parameters};
use portcullis_http::cookie::{CookieFormat, parse as parse_cookies};

use crate::analysis::{SEGMENT, is_odd_path};
use crate::leaves::{Leaves, is_odd_name};
use crate::{Analysis, Detectors, Location, Place};

impl Analysis {
    /// Looks at the request line and the header fields. `fields` are names and values in order.
    pub fn request_head<'h>(
        &mut self,
        detectors: &Detectors,
        method: &[u8],
        target: &[u8],
        fields: impl Iterator<Item = (&'h [u8], &'h [u8])>,
    ) {
        if method.len() > 16 || !method.iter().all(u8::is_ascii_alphabetic) {
            self.value(detectors, Location::of(Place::Method), method);
        }
        self.target(detectors, target);
        for (name, value) in fields {
            if name.eq_ignore_ascii_case(b"cookie") {
                self.cookies(detectors, value);
            } else {
                self.value(detectors, Location::new(Place::Header, name), value);
                // Some servers take the target from there.
                if overrides_url(name) {
                    self.target(detectors, value);
                }
            }
            if is_odd_name(name) {
                self.value(detectors, Location::new(Place::HeaderName, b""), name);
            }
        }
    }

    /// Looks at a request target: the path, its segments, the query string and its parameters.
    pub fn target(&mut self, detectors: &Detectors, target: &[u8]) {
        let target = &target[..memchr::memchr(b'#', target).unwrap_or(target.len())];
        let (path, query) = match memchr::memchr(b'?', target) {
            Some(at) => (&target[..at], Some(&target[at + 1..])),
            None => (target, None),
        };
        self.value(detectors, Location::of(Place::Path), path);
        if is_odd_path(path) {
            let mut end = 0;
            let mut is_first = true;
            for segment in path.split(|&b| b == b'/') {
                let start = end;
                end += segment.len() + 1;
                if !is_odd_path(segment) {
                    continue;
                }
                self.value(detectors, SEGMENT, segment);
                // A value with slashes of its own (a URL, markup) goes on behind them.
                if is_first && end < path.len() {
                    self.value(detectors, SEGMENT, &path[start..]);
                }
                is_first = false;
            }
        }
        if memchr::memchr(b';', path).is_some() {
            path_parameters(path, &Limits::default(), &mut Leaves::new(self, detectors, Place::Query));
        }
        let Some(query) = query else { return };
        self.value(detectors, Location::of(Place::QueryString), query);
        // Browsers encode it: who sends a tag as it is means all of the query, whatever `&` and `=` there are in it.
        if memchr::memchr(b'<', query).is_some() {
            self.value(detectors, Location::of(Place::Query), query);
        }
        let mut sink = Leaves::new(self, detectors, Place::Query);
        parse_query_twice(query, b'&', &Limits::default(), &mut sink);
    }

    fn cookies(&mut self, detectors: &Detectors, header: &[u8]) {
        let found = parse_cookies(header, CookieFormat::V0, None);
        for cookie in &found.cookies {
            let name = cookie.name.of(header);
            self.value(detectors, Location::new(Place::Cookie, name), cookie.value.of(header));
            if is_odd_name(name) {
                self.value(detectors, Location::of(Place::Name), name);
            }
        }
        if found.nameless > 0 {
            self.value(detectors, Location::of(Place::Cookie), header);
        }
    }
}
