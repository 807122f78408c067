//! Contents that come in pieces, looked at in windows that overlap: files, bodies of unknown bytes, long
//! texts of XML.

use crate::limits::{OVERLAP_BYTES, WINDOW_BYTES};
use crate::{Analysis, ByteGroups, Detectors, Location, Place, decode};

/// Bytes of a file's beginning that are put before later windows: they tell what the file says it is.
const HEAD_BYTES: usize = 256;

/// The same for code in bytes: a picture shows itself by fewer.
const MAGIC_BYTES: usize = 16;

/// How the windows after the first one are inspected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Later {
    /// For code and scripts.
    #[default]
    Code,
    /// As the first.
    Values,
    /// For code and scripts, and so is the first.
    OnlyCode,
    /// For code and scripts, and for texts that stand in bytes.
    CodeAndTexts,
}

/// The contents that are looked at.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    /// What was not looked at yet, after the overlap with what was.
    bytes: Vec<u8>,
    /// How the contents begin, once the first window has been looked at.
    head: Vec<u8>,
    has_begun: bool,
    /// The first window is text.
    is_text: bool,
    later: Later,
}

impl Windows {
    /// For new contents.
    pub fn begin(&mut self, later: Later) {
        self.bytes.clear();
        self.head.clear();
        (self.has_begun, self.is_text, self.later) = (false, false, later);
    }

    /// The next piece.
    pub fn feed(
        &mut self,
        analysis: &mut Analysis,
        detectors: &Detectors,
        location: Location<'_>,
        mut piece: &[u8],
    ) {
        while !piece.is_empty() {
            if self.bytes.len() >= WINDOW_BYTES {
                self.look(analysis, detectors, location);
                let looked_at = self.bytes.len() - OVERLAP_BYTES;
                self.bytes.drain(..looked_at);
            }
            let (now, later) = piece.split_at(piece.len().min(WINDOW_BYTES - self.bytes.len()));
            self.bytes.extend_from_slice(now);
            piece = later;
        }
    }

    /// The contents have ended. What there was, if all of it was one window.
    pub fn end(
        &mut self,
        analysis: &mut Analysis,
        detectors: &Detectors,
        location: Location<'_>,
    ) -> Option<&[u8]> {
        let is_one = !self.has_begun;
        if is_one && !self.bytes.is_empty() || self.bytes.len() > OVERLAP_BYTES {
            self.look(analysis, detectors, location);
        }
        is_one.then_some(&self.bytes)
    }

    fn look(&mut self, analysis: &mut Analysis, detectors: &Detectors, location: Location<'_>) {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let bytes = &self.bytes[..];
        let groups = ByteGroups::of(bytes);
        if is_first {
            self.is_text = !decode::is_bytes(bytes, groups);
            self.head.extend_from_slice(&bytes[..bytes.len().min(HEAD_BYTES)]);
        }
        if self.later == Later::CodeAndTexts && !self.is_text {
            let location = Location { place: Place::Text, ..location };
            decode::texts_in_part(bytes, &mut |text| analysis.look(detectors, location, text));
        }
        match self.later {
            Later::Values => {
                let location = Location { place: value_place(location.place), ..location };
                return analysis.look_grouped(detectors, location, bytes, groups);
            }
            Later::Code | Later::CodeAndTexts if is_first && self.is_text => {
                return analysis.look_grouped(detectors, location, bytes, groups);
            }
            // Streams of objects and the like show themselves where they begin.
            Later::Code | Later::CodeAndTexts | Later::OnlyCode if is_first && !self.is_text => {
                let location = Location { place: Place::Text, ..location };
                analysis.look_grouped(detectors, location, bytes, groups);
            }
            Later::Code | Later::CodeAndTexts if self.is_text => {
                analysis.left_out += (bytes.len() - OVERLAP_BYTES) as u64
            }
            Later::Code | Later::CodeAndTexts | Later::OnlyCode => {}
        }
        if self.is_text && decode::may_have_code(bytes) {
            let window = [&self.head[..], bytes].concat();
            analysis.look_for_code(detectors, location, if is_first { bytes } else { &window });
        } else if !self.is_text {
            let head = &self.head[..self.head.len().min(MAGIC_BYTES)];
            decode::code(bytes, &mut |code| {
                analysis.look_for_code(detectors, location, &[head, code].concat());
            });
        }
    }
}

/// A body that is a text is one value, whatever else it is.
fn value_place(place: Place) -> Place {
    if place == Place::FileContent { Place::Text } else { place }
}
