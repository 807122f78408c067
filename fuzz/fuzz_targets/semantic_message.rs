//! Byte 0 chooses a content type; then a request target up to the first line end, then a body. All detectors
//! look at it. Findings point at values there are, and what was found once is found again: nothing is left
//! over from the message before.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use portcullis_semantic::{Analysis, Detectors, Level};

static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

const TYPES: [&[u8]; 8] = [
    b"application/x-www-form-urlencoded",
    b"application/json",
    b"text/xml",
    b"multipart/form-data; boundary=b",
    b"application/grpc",
    b"application/x-protobuf",
    b"text/plain",
    b"",
];

fuzz_target!(|data: &[u8]| {
    let [choice, rest @ ..] = data else { return };
    let line = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
    let (target, body) = (&rest[..line], rest.get(line + 1..).unwrap_or_default());
    let content_type = TYPES[usize::from(*choice) % TYPES.len()];
    let mut analysis = Analysis::new();
    let mut points = Vec::new();
    for _ in 0..2 {
        analysis.clear();
        let fields = [(&b"referer"[..], target), (b"cookie", target)];
        analysis.request_head(&DETECTORS, b"GET", target, fields.into_iter());
        analysis.request_body(&DETECTORS, content_type, body);
        assert!(analysis.findings().iter().all(|finding| (finding.value as usize) < analysis.values().len()));
        points.push(analysis.worst(&DETECTORS, Level::Strict).map(|worst| worst.points));
    }
    assert_eq!(points[0], points[1]);
});
