//! How much of the allowance of work real documents need, in four kinds of bodies.
//!
//!     find /usr/share -name '*.md' |
//!         cargo run --profile bench-quick -p portcullis-semantic --example honest_work
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "it measures"
)]

use std::io::BufRead;

use portcullis_semantic::{Analysis, Detectors};

/// A name, a content type, and how a document becomes such a body.
type Body = (&'static str, &'static str, fn(&[u8]) -> Vec<u8>);

/// What a document is sent as.
const BODIES: [Body; 4] = [
    ("json", "application/json", json),
    ("form", "application/x-www-form-urlencoded", form),
    ("multipart", "multipart/form-data; boundary=XyQ", |text| multipart("", text)),
    ("file", "multipart/form-data; boundary=XyQ", |text| multipart("; filename=\"a.txt\"", text)),
];

fn json(text: &[u8]) -> Vec<u8> {
    let mut out = b"{\"title\":\"a\",\"body\":\"".to_vec();
    for b in text {
        match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *b]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => out.extend_from_slice(format!("\\u{b:04x}").as_bytes()),
            _ => out.push(*b),
        }
    }
    out.extend_from_slice(b"\"}");
    out
}

fn form(text: &[u8]) -> Vec<u8> {
    let mut out = b"title=a&body=".to_vec();
    for b in text {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => out.push(*b),
            b' ' => out.push(b'+'),
            _ => out.extend_from_slice(format!("%{b:02X}").as_bytes()),
        }
    }
    out
}

fn multipart(file: &str, text: &[u8]) -> Vec<u8> {
    let head = format!("--XyQ\r\nContent-Disposition: form-data; name=\"body\"{file}\r\n\r\n");
    [head.as_bytes(), text, b"\r\n--XyQ--\r\n"].concat()
}

fn main() {
    let detectors = Detectors::new();
    let mut analysis = Analysis::new();
    let mut parts = [const { Vec::new() }; BODIES.len()];
    for path in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for ((_, content_type, body), parts) in BODIES.iter().zip(&mut parts) {
            analysis.clear();
            let body = body(text.as_bytes());
            analysis.request_body(&detectors, content_type.as_bytes(), &body);
            let (done, allowed) = analysis.work();
            let cut = analysis.bytes_cut() > 0;
            parts.push((done as f64 / allowed as f64, body.len(), cut, path.clone()));
        }
    }
    for ((name, ..), parts) in BODIES.iter().zip(&mut parts) {
        parts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let at = |share: f64| parts.get((parts.len() as f64 * share) as usize).map_or(0.0, |part| part.0);
        let cut = parts.iter().filter(|part| part.2).count();
        println!(
            "{name}: {} documents, p50 {:.2}, p90 {:.2}, p99 {:.2}, p99.9 {:.2}, cut {cut}",
            parts.len(),
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999)
        );
        for (part, bytes, _, path) in parts.iter().rev().take(12) {
            println!("    {part:.2} {bytes} {path}");
        }
    }
}
