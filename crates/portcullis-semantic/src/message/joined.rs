//! What readers join that stands apart in the message.
//!
//! Parameters of one name are joined with commas by ASP and others; a payload may be parted over several of
//! them, with a comment around each comma. Texts of an XML element that its child elements part are one text
//! to `textContent` and the like.

use std::collections::BTreeMap;

use memchr::memmem;
use portcullis_http::body::{Arg, BodySink, Limits, parse_query};

use crate::limits::{EVIDENCE_BYTES_MAX, NAME_BYTES_MAX};
use crate::{Analysis, Class, Detectors, Finding, Layers, Location, Place};

/// By name in lower case: the values, joined, and how many there are.
#[derive(Debug, Default)]
struct Joined(BTreeMap<Vec<u8>, (Vec<u8>, usize)>);

impl Joined {
    fn add(&mut self, name: &[u8], value: &[u8]) {
        let (joined, count) = self.0.entry(without_index(name).to_ascii_lowercase()).or_default();
        if *count > 0 {
            joined.push(b',');
        }
        joined.extend_from_slice(value);
        *count += 1;
    }

    /// Those that came several times.
    fn repeated(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let several = self.0.iter().filter(|(_, (_, count))| *count > 1);
        several.map(|(name, (value, _))| (&name[..], &value[..]))
    }
}

impl BodySink for Joined {
    fn arg(&mut self, arg: Arg<'_>) {
        self.add(arg.name, arg.value);
    }
}

/// `id` of `id[]` and `id[7]`: elements of one array.
fn without_index(name: &[u8]) -> &[u8] {
    let mut name = name;
    while let Some(inner) = name.strip_suffix(b"]") {
        let digits = inner.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        match inner[..inner.len() - digits].strip_suffix(b"[") {
            Some(before) => name = before,
            None => break,
        }
    }
    name
}

/// Fields of a multipart form, and values of JSON, that begin or end a comment.
#[derive(Debug, Default)]
pub(crate) struct Commented(Joined);

/// Names of them that are held; where there are more, those before are looked at and forgotten.
const NAMES_MAX: usize = 1_024;

impl Commented {
    pub fn add(&mut self, analysis: &mut Analysis, detectors: &Detectors, place: Place, arg: Arg<'_>) {
        let is_one = memchr::memchr(b'*', arg.value).is_some()
            && (memmem::find(arg.value, b"/*").is_some() || memmem::find(arg.value, b"*/").is_some());
        if !is_one {
            return;
        }
        if self.0.0.len() >= NAMES_MAX {
            self.end(analysis, detectors, place);
        }
        // The path of a value of JSON may be much longer than the value, and is identified by its end.
        let name = without_index(arg.name);
        self.0.add(&name[name.len().saturating_sub(NAME_BYTES_MAX)..], arg.value);
    }

    /// Looks at those that came several times, joined.
    pub fn end(&mut self, analysis: &mut Analysis, detectors: &Detectors, place: Place) {
        let joined = std::mem::take(&mut self.0);
        for (name, value) in joined.repeated() {
            let open = memmem::find(value, b"/*").map_or(value.len(), |at| at + 2);
            if memmem::find(&value[open..], b"*/").is_some() {
                analysis.look(detectors, Location::new(place, name), value);
            }
        }
    }
}

/// Bytes of the texts of an XML document that are held, the last ones.
const TEXTS_BYTES_MAX: usize = 8 << 10;
/// What is kept of those of elements that are still open, when there are more.
const OWN_BYTES_KEPT: usize = 3 << 10;
/// The same of all texts.
const TAIL_BYTES_KEPT: usize = 1 << 10;

/// The texts of an XML document, to be joined where child elements part them. The parser bounds how many
/// elements are open.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    /// The parts of `bytes`, each of one element.
    runs: Vec<Run>,
    /// A tag stands after the last run.
    is_cut: bool,
    open: Vec<Element>,
    /// The names of the open elements, one after the other.
    names: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    start: usize,
    /// How many elements are open where it stands.
    depth: usize,
    /// It has more than space.
    is_text: bool,
}

#[derive(Debug)]
struct Element {
    /// Where its texts begin.
    start: usize,
    /// Where its name begins.
    name: usize,
    has_text: bool,
    has_child: bool,
}

impl Element {
    /// Others than structures of data have text beside child elements.
    fn is_mixed(&self) -> bool {
        self.has_text && self.has_child
    }
}

impl Texts {
    pub fn begin(&mut self, name: &[u8]) {
        if let Some(parent) = self.open.last_mut() {
            parent.has_child = true;
        } else {
            self.bytes.clear();
            self.runs.clear();
        }
        let (start, at) = (self.bytes.len(), self.names.len());
        self.names.extend_from_slice(&name[..name.len().min(NAME_BYTES_MAX)]);
        self.open.push(Element { start, name: at, has_text: false, has_child: false });
        self.is_cut = true;
    }

    pub fn text(&mut self, analysis: &mut Analysis, detectors: &Detectors, mut piece: &[u8]) {
        while !piece.is_empty() && !self.open.is_empty() {
            if self.bytes.len() >= TEXTS_BYTES_MAX {
                self.look_at_open(analysis, detectors);
                self.shorten();
            }
            let (now, later) = piece.split_at(piece.len().min(TEXTS_BYTES_MAX - self.bytes.len()));
            if std::mem::take(&mut self.is_cut) || self.runs.is_empty() {
                let (start, depth) = (self.bytes.len(), self.open.len());
                self.runs.push(Run { start, depth, is_text: false });
            }
            let is_text = now.iter().any(|b| !b.is_ascii_whitespace());
            if let Some(run) = self.runs.last_mut() {
                run.is_text |= is_text;
            }
            if let Some(element) = self.open.last_mut() {
                element.has_text |= is_text;
            }
            self.bytes.extend_from_slice(now);
            piece = later;
        }
    }

    /// The innermost element ends.
    pub fn end(&mut self, analysis: &mut Analysis, detectors: &Detectors, name: &[u8]) {
        let depth = self.open.len();
        let Some(element) = self.open.pop() else { return };
        self.names.truncate(element.name);
        self.is_cut = true;
        if element.is_mixed() {
            self.look(analysis, detectors, Location::new(Place::XmlText, name), &element, depth);
        }
    }

    /// The name of the innermost element that is open.
    pub fn name(&self) -> &[u8] {
        self.open.last().map_or(b"", |element| &self.names[element.name..])
    }

    /// The document ends, or what is held of it is to be forgotten: looks at the texts of the outermost
    /// element that is open and has parted ones.
    pub fn look_at_open(&self, analysis: &mut Analysis, detectors: &Detectors) {
        let Some(at) = self.open.iter().position(Element::is_mixed) else { return };
        let element = &self.open[at];
        let end = self.open.get(at + 1).map_or(self.names.len(), |next| next.name);
        let location = Location::new(Place::XmlText, &self.names[element.name..end]);
        self.look(analysis, detectors, location, element, at + 1);
    }

    fn look(
        &self,
        analysis: &mut Analysis,
        detectors: &Detectors,
        location: Location<'_>,
        element: &Element,
        depth: usize,
    ) {
        let from = self.runs.partition_point(|run| run.start < element.start);
        // A single text was looked at when it ended.
        let is_parted = |of: &dyn Fn(&Run) -> bool| {
            self.runs[from..].iter().filter(|run| run.is_text && of(run)).nth(1).is_some()
        };
        if !is_parted(&|_| true) {
            return;
        }
        let all = &self.bytes[element.start..];
        let cuts: Vec<usize> = self.runs[from..].iter().map(|run| run.start - element.start).collect();
        analysis.parted(detectors, location, all, &cuts);
        // Some readers leave out what child elements have.
        let is_own = |run: &Run| run.depth == depth;
        if is_parted(&is_own) && !self.runs[from..].iter().all(is_own) {
            let (mut own, mut cuts) = (Vec::new(), Vec::new());
            for at in (from..self.runs.len()).filter(|at| is_own(&self.runs[*at])) {
                cuts.push(own.len());
                own.extend_from_slice(self.of_run(at));
            }
            analysis.parted(detectors, location, &own, &cuts);
        }
    }

    fn of_run(&self, at: usize) -> &[u8] {
        let end = self.runs.get(at + 1).map_or(self.bytes.len(), |next| next.start);
        &self.bytes[self.runs[at].start..end]
    }

    /// Forgets most of the texts. What ended elements have stands between the texts of open ones, and must
    /// not push them out.
    fn shorten(&mut self) {
        // Each open element keeps its last bytes: none must push out another's.
        let having = self.open.iter().filter(|element| element.has_text).count();
        let mut left = vec![OWN_BYTES_KEPT / having.max(1); self.open.len()];
        let tail = self.bytes.len().saturating_sub(TAIL_BYTES_KEPT);
        let mut skipped = vec![0; self.runs.len()];
        for (at, run) in self.runs.iter().enumerate().rev() {
            let len = self.of_run(at).len();
            let around = self.open.partition_point(|element| element.start <= run.start);
            let own = left[..around].get_mut(run.depth - 1);
            let kept = own.map_or(0, |left| {
                let kept = len.min(*left);
                *left -= kept;
                kept
            });
            skipped[at] = tail.saturating_sub(run.start).min(len - kept);
        }
        let mut kept = Texts::default();
        let mut starts = Vec::with_capacity(self.open.len());
        for (at, run) in self.runs.iter().enumerate() {
            while self.open.get(starts.len()).is_some_and(|element| element.start <= run.start) {
                starts.push(kept.bytes.len());
            }
            let bytes = &self.of_run(at)[skipped[at]..];
            if !bytes.is_empty() {
                kept.runs.push(Run { start: kept.bytes.len(), ..*run });
                kept.bytes.extend_from_slice(bytes);
            }
        }
        starts.resize(self.open.len(), kept.bytes.len());
        for (element, start) in self.open.iter_mut().zip(starts) {
            element.start = start;
        }
        (self.bytes, self.runs) = (kept.bytes, kept.runs);
    }
}

/// As many arguments as there are: the length of what has them bounds them, and each costs work.
pub(crate) fn all_arguments() -> Limits {
    Limits { arguments_max: usize::MAX, ..Limits::default() }
}

impl Analysis {
    /// Looks at a text of parts that begin at `cuts`, each of which was looked at. Of a class whose signs all
    /// stand within one part the parts tell more: a link in prose is not part of the prose.
    fn parted(&mut self, detectors: &Detectors, location: Location<'_>, text: &[u8], cuts: &[usize]) {
        let before = self.values_len();
        self.work.charge(text.len());
        self.look(detectors, location, text);
        if self.values_len() == before {
            return;
        }
        let ends = cuts.iter().copied().skip(1).chain([text.len()]);
        let parts: Vec<&[u8]> =
            cuts.iter().zip(ends).map(|(start, end)| text.get(*start..end).unwrap_or_default()).collect();
        let is_across = |found: &Finding| {
            if found.layers == Layers::default() {
                let (start, mut end) = (found.span.start as usize, found.span.end as usize);
                // What ends a sentence after a link is not part of it.
                while end > start && matches!(text.get(end - 1), Some(b'.' | b',')) {
                    end -= 1;
                }
                return cuts.iter().any(|cut| start < *cut && *cut < end);
            }
            found.evidence.len() >= EVIDENCE_BYTES_MAX
                || !parts.iter().any(|part| memmem::find(part, &found.evidence).is_some())
        };
        let found = || self.findings().iter().filter(|found| found.value as usize >= before);
        // What says that the allowance did not suffice stands on no part.
        let mut across = vec![Class::Protocol];
        across.extend(
            found().filter(|found| !found.is_suppressed() && is_across(found)).map(|found| found.class),
        );
        let within: Vec<Class> =
            found().map(|found| found.class).filter(|class| !across.contains(class)).collect();
        self.excuse_from(before, &within, "found-in-part");
    }

    /// Looks at parameters that come several times in `pairs`, a query or a form, as one value.
    pub(crate) fn joined(&mut self, detectors: &Detectors, place: Place, pairs: &[u8]) {
        // Without a comment the comma is one of the statement's, and each value tells what it is.
        let is_star = |at: usize| pairs[at] == b'*' || matches!(pairs[at + 1..], [b'2', b'a' | b'A', ..]);
        let has_comment = || memchr::memchr2_iter(b'*', b'%', pairs).any(is_star);
        if memchr::memchr(b'&', pairs).is_none() || !has_comment() || !self.work.charge(pairs.len()) {
            return;
        }
        let mut joined = Joined::default();
        parse_query(pairs, b'&', &all_arguments(), &mut joined);
        for (name, value) in joined.repeated() {
            if memmem::find(value, b"*").is_some() {
                self.look(detectors, Location::new(place, name), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    #[test]
    fn parts_of_a_payload() {
        let detectors = Detectors::new();
        let blocks = |pairs: &str| {
            let mut analysis = Analysis::new();
            let target = format!("/?{pairs}");
            analysis.request_head(&detectors, b"GET", target.as_bytes(), std::iter::empty());
            let query = analysis
                .worst(&detectors, Level::Balanced)
                .is_some_and(|worst| worst.blocks(Level::Balanced));
            analysis.clear();
            analysis.request_body(&detectors, b"application/x-www-form-urlencoded", pairs.as_bytes());
            let form = analysis
                .worst(&detectors, Level::Balanced)
                .is_some_and(|worst| worst.blocks(Level::Balanced));
            (query, form)
        };
        let parted = "id=1/*&id=*/union/*&ID=*/select/*&id=*/password/*&id=*/from/*&id=*/users";
        assert_eq!(blocks(parted), (true, true));
        assert_eq!(blocks(&parted.replace('*', "%2a")), (true, true));
        let late = "a=&".repeat(5_000) + "b=x'+UNION+SELECT+user,password+FROM+users--+-";
        assert_eq!(blocks(&late), (true, true));
        for honest in ["tag=a*&tag=b*&q=c", "type=*&type=image/*&type=video/*", "id=1&id=2&id=3"] {
            assert_eq!(blocks(honest), (false, false), "{honest}");
        }
    }
}
