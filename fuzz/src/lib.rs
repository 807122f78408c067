//! What the body targets share: a sink that writes everything down, and the promise that chunk borders do not
//! matter.

use portcullis_http::body::{Arg, BodySink, Report};

/// Every event as text, with adjacent pieces of file data and of XML text joined.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recorder {
    events: Vec<(&'static str, Vec<u8>, Vec<u8>)>,
    args: usize,
    spans_end: u32,
}

impl Recorder {
    fn event(&mut self, kind: &'static str, a: &[u8], b: &[u8]) {
        self.events.push((kind, a.to_vec(), b.to_vec()));
    }

    fn piece(&mut self, kind: &'static str, data: &[u8]) {
        assert!(!data.is_empty());
        match self.events.last_mut() {
            Some((last, all, _)) if *last == kind => all.extend_from_slice(data),
            _ => self.event(kind, data, b""),
        }
    }
}

impl BodySink for Recorder {
    fn arg(&mut self, arg: Arg<'_>) {
        assert!(self.spans_end <= arg.raw_value.start, "raw spans rise");
        assert!(arg.value.len() <= 3 * arg.raw_value.len(), "values do not grow");
        self.spans_end = arg.raw_value.end;
        self.args += 1;
        self.event("arg", arg.name, arg.value);
    }
    fn part(&mut self, name: &[u8], filename: Option<&[u8]>) {
        self.event(if filename.is_some() { "file part" } else { "part" }, name, filename.unwrap_or_default());
    }
    fn part_header(&mut self, part_name: &[u8], line: &[u8]) {
        self.event("header", part_name, line);
    }
    fn file_begin(&mut self, field_name: &[u8], filename: &[u8]) {
        self.event("file", field_name, filename);
    }
    fn file_data(&mut self, data: &[u8]) {
        self.piece("data", data);
    }
    fn file_end(&mut self, size: u64) {
        self.event("end", &size.to_le_bytes(), b"");
    }
    fn xml_start(&mut self, name: &[u8]) {
        self.event("start", name, b"");
    }
    fn xml_attribute(&mut self, name: &[u8], value: &[u8]) {
        self.event("attribute", name, value);
    }
    fn xml_text(&mut self, text: &[u8]) {
        self.piece("text", text);
    }
    fn xml_end(&mut self, name: &[u8]) {
        self.event("close", name, b"");
    }
    fn xml_comment(&mut self, text: &[u8]) {
        self.event("comment", text, b"");
    }
    fn xml_doctype(&mut self, text: &[u8]) {
        self.event("doctype", text, b"");
    }
    fn xml_instruction(&mut self, target: &[u8], data: &[u8]) {
        self.event("instruction", target, data);
    }
}

/// Parses `body` whole and in chunks whose sizes follow from `seed`; events and report must agree.
/// Returns the report.
pub fn same_in_any_chunks<P>(
    body: &[u8],
    seed: u8,
    new: impl Fn() -> P,
    feed: fn(&mut P, &[u8], &mut dyn BodySink),
    finish: fn(P, &mut dyn BodySink) -> Report,
) -> Report {
    let mut whole = Recorder::default();
    let mut parser = new();
    feed(&mut parser, body, &mut whole);
    let report = finish(parser, &mut whole);

    let mut pieces = Recorder::default();
    let mut parser = new();
    let (mut rest, mut state) = (body, u32::from(seed));
    while !rest.is_empty() {
        let size = if seed == 0 { 1 } else { 1 + (state >> 16) as usize % usize::from(seed) };
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let (chunk, after) = rest.split_at(size.min(rest.len()));
        feed(&mut parser, chunk, &mut pieces);
        rest = after;
    }
    let in_pieces = finish(parser, &mut pieces);
    assert_eq!(whole, pieces);
    assert_eq!(report, in_pieces);
    assert_eq!(report.bytes, body.len() as u64);
    assert_eq!(report.arguments, whole.args);
    assert!(whole.spans_end as usize <= body.len());
    if let Some(error) = &report.error {
        assert!(error.position <= 3 * body.len() as u64, "{error}");
    }
    report
}
