//! What an inspection says that it holds is what an allocator counts, whatever the shape of the body: the
//! budget of bodies (`limits.held_bodies`) believes it. What it says is within half of what is counted:
//! entries of the prefilter for each value are not in it.
//!
//! A program of its own, since the allocator counts for all threads.

#[path = "it/common.rs"]
#[allow(dead_code)]
mod common;

use std::alloc::System;
use std::io::Write as _;

use portcullis_inspect::{Inspection, Inspector};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Memory of an inspection that is not that of bodies.
const SPARE: usize = 192 << 10;

/// Buffers that are kept for the next value.
const BUFFERS: usize = 2 << 20;

/// Rules that look at all there is of a body, and the limit of arguments of the product.
const RULES: &str = "SecRuleEngine On\nSecRequestBodyAccess On\nSecRequestBodyLimit 13107200\n\
    SecRequestBodyNoFilesLimit 13107200\nSecSecondReadings On\nSecArgumentsLimit 200000\n\
    SecRule REQUEST_HEADERS:Content-Type \"json\" \"id:1,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON\"\n\
    SecRule REQUEST_HEADERS:Content-Type \"xml\" \"id:2,phase:1,pass,nolog,ctl:requestBodyProcessor=XML\"\n\
    SecRule ARGS|ARGS_NAMES|REQUEST_BODY|XML:/*|FILES \"@rx ^never$\" \
    \"id:3,phase:2,deny,t:none,t:urlDecodeUni,t:lowercase\"\n";

const FORM: &str = "application/x-www-form-urlencoded";
const PARTS: &str = "multipart/form-data; boundary=x";

/// Bodies of about `bytes` that could take more memory than they have bytes.
fn shapes(bytes: usize) -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let many = |piece: &str| piece.repeat(bytes / piece.len()).into_bytes();
    let around =
        |open: &str, middle: Vec<u8>, close: &str| [open.as_bytes(), &middle, close.as_bytes()].concat();
    let part = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n";
    // The name of each value is its path.
    let long_path = format!("{{\"{}\":{{", "k".repeat(bytes.min(15_000)));
    let file = "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\n";
    vec![
        (FORM, "", many("&")),
        (FORM, "", many("a&")),
        (FORM, "", many("a=1&")),
        (FORM, "", around("a=", many("x"), "")),
        (FORM, "", around("a=", many("%25"), "")),
        (FORM, "", around("a=", many("%zz"), "")),
        (FORM, "", around("_charset_=utf-16&a=", many("x"), "")),
        ("application/x-www-form-urlencoded; charset=utf-16le", "", many("a\0=\0x\0&\0")),
        (FORM, "gzip", many("&")),
        (FORM, "", around("{\"a\":[", many("1,"), "1]}")),
        ("text/plain", "", around("[", many("\"a\","), "1]")),
        ("application/json", "", around("[\"", many("x"), "\"]")),
        ("application/json", "", around("[\"", many("\\u0041"), "\"]")),
        ("application/json", "", around("[", many("1,"), "1]")),
        ("application/json", "", around(&long_path, many("\"b\":1,"), "\"c\":1}}")),
        (FORM, "", around(&long_path, many("\"b\":1,"), "\"c\":1}}")),
        ("application/json", "", many("[")),
        ("application/json", "", many("{\"a\":")),
        ("text/xml", "", around("<a>", many("<b/>"), "</a>")),
        ("text/xml", "", around("<a>", many("<b c='d'>e</b>"), "</a>")),
        ("text/xml", "", around("<a>", many("x"), "</a>")),
        ("text/xml", "", around("<a>", many("&#65;"), "</a>")),
        (PARTS, "", around("", many(part), "--x--\r\n")),
        (PARTS, "", around(part, many("x"), "\r\n--x--\r\n")),
        (PARTS, "", around(file, many("x"), "\r\n--x--\r\n")),
        (PARTS, "", around("", many(file), "--x--\r\n")),
        ("application/octet-stream", "", many("\0\u{1}")),
        ("", "", many("a=1&b=2&")),
    ]
}

fn packed(plain: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(plain).unwrap();
    writer.finish().unwrap()
}

fn begin(inspector: &std::sync::Arc<Inspector>, content_type: &str, coding: &str) -> Box<Inspection> {
    let mut inspection = common::begin(inspector);
    let mut head = "POST /f HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n".to_owned();
    for (name, value) in [("Content-Type", content_type), ("Content-Encoding", coding)] {
        if !value.is_empty() {
            head += &format!("{name}: {value}\r\n");
        }
    }
    inspection.request_head(&common::request_head(&(head + "\r\n")), None);
    inspection
}

/// Bytes that are allocated now and were not at the beginning.
fn live(region: &Region<'_, System>) -> usize {
    let change = region.change();
    (change.bytes_allocated as isize - change.bytes_deallocated as isize + change.bytes_reallocated.min(0))
        .max(0) as usize
}

#[test]
fn what_is_held_is_what_is_allocated() {
    let inspector = common::semantic_inspector(RULES, portcullis_inspect::SemanticPolicy::default());
    let count = shapes(1).len();
    let case = (0..count, 1_000usize..400_000, prop_oneof![Just(1usize), 2usize..400, Just(65_536)]);
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 96, failure_persistence: None, ..Default::default() });
    let run = |(shape, bytes, piece): (usize, usize, usize)| {
        // A byte at a time takes long.
        let bytes = bytes.min(piece.saturating_mul(20_000));
        let (content_type, coding, plain) = shapes(bytes).swap_remove(shape);
        let body = if coding.is_empty() { plain } else { packed(&plain) };
        let begins = String::from_utf8_lossy(&body[..body.len().min(24)]).into_owned();
        // What is made once is made now.
        drop(begin(&inspector, content_type, coding));
        let region = Region::new(ALLOCATOR);
        let mut inspection = begin(&inspector, content_type, coding);
        let check = |inspection: &Inspection, when: &str| {
            let (held, live) = (inspection.held_bytes(), live(&region));
            // Long bodies are outside of the allocator, so it counts less of them.
            prop_assert!(
                live <= held + held / 2 + SPARE,
                "{content_type}, {begins:?}, {bytes} bytes by {piece}, {when}: {held} are held, {live} are live"
            );
            Ok(())
        };
        for (number, chunk) in body.chunks(piece).enumerate() {
            let before = inspection.held_bytes();
            inspection.request_body(chunk);
            if coding.is_empty() {
                let more = inspection.held_bytes().saturating_sub(before);
                // What is short is doubled.
                let most = (inspection.request_copies() * chunk.len()).max(128 << 10);
                prop_assert!(more <= most, "{content_type}: {more} more for {} bytes", chunk.len());
            }
            if number % 64 == 0 {
                check(&inspection, "on the way")?;
            }
        }
        check(&inspection, "when it has come")?;
        let most = inspection.held_bytes()
            + inspection.transaction().request_values_bytes_max(inspection.request_body_shown() as usize)
            + BUFFERS;
        let _ = inspection.request_end(false);
        check(&inspection, "after phase 2")?;
        let held = inspection.held_bytes();
        prop_assert!(held <= most, "{content_type}, {begins:?}, {bytes}: {held} after phase 2, not {most}");
        Ok(())
    };
    runner.run(&case, run).unwrap_or_else(|error| panic!("{error}"));
}
