//! One sample through the detectors.

use std::time::{Duration, Instant};

use portcullis_http::h1::{Compat, Limits, Parsed, RequestParser};
use portcullis_semantic::{Analysis, Class, Detectors, Level, Location};

use crate::sample::{Content, Sample};

/// The detectors, and the buffers that all samples share.
pub struct Replay {
    detectors: Detectors,
    analysis: Analysis,
    level: Level,
    class: Option<Class>,
}

/// What became of a sample.
#[derive(Debug)]
pub struct Outcome {
    /// Blocked by a finding.
    pub blocked: bool,
    /// Refused as a message, without a look at its values.
    pub refused: Option<&'static str>,
    pub class: Option<Class>,
    pub duration: Duration,
    /// The worst value's terms, if there are findings.
    pub terms: Vec<(String, f32)>,
    pub points: f32,
    pub at: String,
    /// For each value and detector with findings: class and features.
    pub rows: Vec<(Class, Vec<String>)>,
}

impl Replay {
    pub fn new(level: Level, class: Option<Class>) -> Replay {
        Replay { detectors: Detectors::new(), analysis: Analysis::new(), level, class }
    }

    pub fn run(&mut self, sample: &Sample) -> Outcome {
        let started = Instant::now();
        let refused = self.feed(&sample.content);
        let worst = match self.class {
            None => self.analysis.worst(&self.detectors, self.level),
            Some(class) => self
                .analysis
                .scores(&self.detectors)
                .filter(|score| score.class == class)
                .max_by(|a, b| a.points.total_cmp(&b.points)),
        };
        let duration = started.elapsed();
        let rows = self.analysis.scores(&self.detectors).map(|score| {
            let terms = self.analysis.terms(&self.detectors, &score);
            (score.class, terms.into_iter().map(|(name, _)| name).filter(|name| name != "bias").collect())
        });
        let rows = rows.collect();
        let describe = |score: &portcullis_semantic::Score| {
            let value = &self.analysis.values()[score.value as usize];
            let layers =
                self.analysis.findings().iter().find(|f| f.value == score.value && !f.layers.is_empty());
            format!("{value}{}", layers.map(|f| format!(" ({})", f.layers)).unwrap_or_default())
        };
        Outcome {
            blocked: worst.is_some_and(|score| score.blocks(self.level)),
            refused,
            class: worst.map(|score| score.class),
            duration,
            terms: worst.map(|score| self.analysis.terms(&self.detectors, &score)).unwrap_or_default(),
            points: worst.map_or(0.0, |score| score.points),
            at: worst.as_ref().map(describe).unwrap_or_default(),
            rows,
        }
    }

    /// Why the message was refused, if it was.
    fn feed(&mut self, content: &Content) -> Option<&'static str> {
        let Replay { detectors, analysis, .. } = self;
        analysis.clear();
        match content {
            Content::Value { place, name, bytes } => {
                analysis.value(detectors, Location::new(*place, name.as_bytes()), bytes);
                None
            }
            Content::Request { method, uri, headers, body } => {
                let fields = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_slice()));
                analysis.request_head(detectors, method.as_bytes(), uri, fields);
                let content_type = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
                let content_type = content_type.map(|(_, value)| value.as_slice()).unwrap_or_default();
                analysis.request_body(detectors, content_type, body);
                None
            }
            Content::Raw(bytes) => {
                let bytes = with_framing(bytes);
                let (head, refusal) =
                    match RequestParser::new(Limits::default(), Compat::Strict).parse(&bytes) {
                        Parsed::Head(head) => (head, None),
                        Parsed::Refused { partial, refusal } => (partial, Some(refusal.name())),
                        _ => return Some("incomplete head"),
                    };
                analysis.request_head(detectors, head.method(), head.target(), head.fields());
                let content_type = head.header("content-type").next().unwrap_or_default().to_vec();
                let body = bytes.get(head.received_len()..).unwrap_or_default();
                analysis.request_body(detectors, &content_type, body);
                refusal
            }
        }
    }
}

/// A request as people save it: line ends of the head may be LF, and the body's length need not be right.
fn with_framing(file: &[u8]) -> Vec<u8> {
    let (mut at, mut end) = (0, file.len());
    for line in file.split_inclusive(|&b| b == b'\n') {
        if at > 0 && matches!(line, b"\n" | b"\r\n") {
            end = at;
            break;
        }
        at += line.len();
    }
    let head = &file[..end];
    let body = match &file[end..] {
        [b'\r', b'\n', body @ ..] | [b'\n', body @ ..] => body,
        body => body,
    };
    let mut out = Vec::with_capacity(file.len() + 64);
    for line in head.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_framing = line.len() > 15 && line[..15].eq_ignore_ascii_case(b"content-length:");
        if !is_framing && !line.is_empty() {
            out.extend_from_slice(line);
            out.extend_from_slice(b"\r\n");
        }
    }
    if !body.is_empty() {
        out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    out
}
