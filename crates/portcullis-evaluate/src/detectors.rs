//! The detectors without the rest of the product.

use std::time::Instant;

use portcullis_http::h1::{Compat, Limits, Parsed, RequestParser, ResponseParser};
use portcullis_semantic::{Analysis, Class, Detectors, Level, Location, Place};

use crate::wire::with_framing;
use crate::{Content, Engine, Outcome};

/// The detectors, and the buffers that all samples share. A bare value is shown to them as it is, without a
/// request around it.
#[derive(Debug)]
pub struct DetectorsAlone {
    detectors: Detectors,
    analysis: Analysis,
    level: Level,
}

impl Engine for DetectorsAlone {
    fn describe(&self) -> String {
        format!("detectors alone, level {}", self.level.name())
    }

    fn run(&mut self, content: &Content, class: Option<Class>) -> Outcome {
        let started = Instant::now();
        let refused = self.feed(content);
        let worst = match class {
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
            scores: Vec::new(),
            rules: Vec::new(),
        }
    }
}

impl DetectorsAlone {
    /// All detectors, at `level`.
    pub fn new(level: Level) -> DetectorsAlone {
        DetectorsAlone { detectors: Detectors::new(), analysis: Analysis::new(), level }
    }

    /// The findings of the last sample, one a line: the value, kind, and how it counts (`~` mentioned, `!`
    /// and the exception that suppresses it).
    pub fn findings(&self) -> impl Iterator<Item = String> + '_ {
        self.analysis.findings().iter().map(|found| {
            let value = &self.analysis.values()[found.value as usize];
            let row = found.suppressed_by.map_or(String::new(), |row| format!("!{row}"));
            let mentioned = if found.mentioned { "~" } else { "" };
            let (start, end) = (found.span.start, found.span.end);
            format!("{value} {}{mentioned}{row} {} {start}-{end}", found.kind.id, found.layers)
        })
    }

    /// Bytes that were read for the last sample, by all who read, and how many were allowed.
    pub fn work(&self) -> (u64, u64) {
        self.analysis.work()
    }

    /// Returns the reason why the message was refused, if it was.
    fn feed(&mut self, content: &Content) -> Option<&'static str> {
        let DetectorsAlone { detectors, analysis, .. } = self;
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
            Content::Response { headers, body, .. } => {
                let fields = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_slice()));
                analysis.response_head(detectors, fields);
                analysis.value(detectors, Location::of(Place::ResponseBody), body);
                None
            }
            Content::RawResponse(bytes) => {
                let bytes = with_framing(bytes);
                let Ok(Some(head)) = ResponseParser::new(Limits::default()).parse(&bytes) else {
                    return Some("unreadable response");
                };
                analysis.response_head(detectors, head.fields());
                let body = bytes.get(head.received_len()..).unwrap_or_default();
                analysis.value(detectors, Location::of(Place::ResponseBody), body);
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
