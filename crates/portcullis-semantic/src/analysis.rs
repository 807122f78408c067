//! One message: values in, findings and scores out.

mod detectors;
mod excused;
mod forms;
mod results;
mod seam;
mod thin;

pub use detectors::Detectors;
pub use excused::LEARNED_ROW;
use forms::Form;
use seam::Seam;
use std::sync::Arc;

use portcullis_learn::{FieldPlace, Fields};

use crate::detectors::field::Opens;
use portcullis_types::{Sight, Span};

use crate::detector::{Found, Input};
use crate::detectors::document::Document;
use crate::detectors::protocol::WORK_LIMIT;
use crate::gate::Candidates;
use crate::issued::{CookieCounts, Issuer};
use crate::limits::{LOOK_SHARE, NAME_BYTES_MAX};
use crate::memo::{Field, FieldResult, Known, Memo};
use crate::score;
use crate::work::Work;
use crate::{
    ByteGroups, Class, Finding, Kind, KindId, Layers, Location, MessageNames, Place, Value, decode, graphql,
};

/// A single word tells nothing, but a short one in a field whose name ends as those for commands do (`cmd`,
/// `exec`, `command`, `shell`).
fn may_be_command(name: &[u8], word: &[u8]) -> bool {
    const ENDS: [&[u8]; 5] = [b"cmd", b"exec", b"command", b"execute", b"shell"];
    let ends =
        |end: &[u8]| name.len().checked_sub(end.len()).is_some_and(|at| name[at..].eq_ignore_ascii_case(end));
    word.len() <= 12
        && matches!(name, [.., b'd' | b'D' | b'c' | b'C' | b'e' | b'E' | b'l' | b'L'])
        && ENDS.iter().any(|end| ends(end))
}
/// A buffer that is kept for the next message.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// The analysis of one message. Keep it for the next one: its buffers are reused.
#[derive(Debug, Default)]
pub struct Analysis {
    findings: Vec<Finding>,
    dropped: u32,
    /// Findings from which on only the worst are kept; grows with those that must be.
    findings_max: usize,
    /// What sets values apart, of which the worst are kept each.
    triage: Option<Arc<dyn Triage>>,
    /// Bytes of files that were not looked at.
    pub(crate) left_out: u64,
    /// Bytes of files whose texts were not looked at as values.
    pub(crate) files: u64,
    /// Bytes of messages whose coding is not undone.
    pub(crate) hidden: u64,
    /// Only detectors that read bytes look.
    code_only: bool,
    /// The value is a document of GraphQL, at which only the detector of those looks; or one of its texts, at
    /// which all others do.
    of_graphql: Option<bool>,
    /// The detectors that read the body as a whole, if it is that which is looked at.
    body_readers: Option<Candidates>,
    /// What the value that is looked at is as a whole.
    document: Document,
    /// The method says that the body is to be stored at the path.
    pub(crate) stores: bool,
    /// The last segment of that path.
    pub(crate) stored_name: Vec<u8>,
    pub(crate) work: Work,
    /// Bytes decoded from the request body, where they differ from it.
    wire: Option<usize>,
    /// Bytes of values for which the allowance did not suffice.
    cut: u64,
    /// Bytes of decoded forms of the last value that were not looked at.
    forms_left: u64,
    values: Vec<Value>,
    arena: Vec<u8>,
    forms: Vec<Form>,
    spare: Vec<u8>,
    /// Decoded pieces of the message, see `message`.
    pub(crate) pieces: Vec<u8>,
    /// What one field may be to the next.
    seam: Seam,
    /// What is known of header fields; one of its own, made at first use, where none is shared.
    memo: Option<Memo>,
    /// The cookies that the site has issued, until those of the request were looked at.
    pub(crate) issuer: Option<Arc<dyn Issuer>>,
    pub(crate) cookie_counts: CookieCounts,
    /// The names of the fields of messages, where they are declared.
    pub(crate) message_names: Option<Arc<dyn MessageNames>>,
    /// What the fields of the request carry, for who learns of them.
    fields: Fields,
    /// They are declared.
    notes_fields: bool,
    /// The kinds of findings that fields may be opened for.
    opens: Opens,
}

impl Analysis {
    /// An analysis with nothing in it.
    pub fn new() -> Analysis {
        Analysis::default()
    }

    /// An analysis that remembers header fields together with others of its thread.
    pub fn sharing(memo: &Memo) -> Analysis {
        Analysis { memo: Some(memo.clone()), ..Analysis::default() }
    }

    /// Has what the fields of the next request carry noted, see [`fields`](Analysis::fields).
    pub fn note_fields(&mut self) {
        self.notes_fields = true;
    }

    /// Has the strings of Protocol Buffers in the body of the next request called by these names, as values
    /// of JSON are called by their paths.
    pub fn name_messages(&mut self, names: Arc<dyn MessageNames>) {
        self.message_names = Some(names);
    }

    /// The parameters, fields of forms and values of JSON of the request, as far as they have been noted.
    pub fn fields(&mut self) -> &mut Fields {
        &mut self.fields
    }

    /// The same, to look at.
    pub fn noted_fields(&self) -> &Fields {
        &self.fields
    }

    /// Notes an argument of the request, if arguments are learned.
    pub(crate) fn note_field(&mut self, place: Place, name: &[u8], value: &[u8]) {
        if self.notes_fields
            && let Some(place) = FieldPlace::of(place)
        {
            self.fields.note(place, name, value);
        }
    }

    /// Forgets the message before.
    pub fn clear(&mut self) {
        self.fields.clear();
        self.notes_fields = false;
        self.opens = Opens::Nothing;
        self.stores = false;
        self.stored_name.clear();
        self.findings.clear();
        self.findings_max = 0;
        self.triage = None;
        self.seam.clear();
        self.values.clear();
        self.dropped = 0;
        self.left_out = 0;
        self.files = 0;
        self.hidden = 0;
        self.cut = 0;
        self.work = Work::default();
        self.wire = None;
        self.issuer = None;
        self.cookie_counts = CookieCounts::default();
        self.message_names = None;
        self.shrink();
    }

    /// Gives back what a large value took.
    pub fn shrink(&mut self) {
        for buffer in [&mut self.arena, &mut self.spare, &mut self.pieces] {
            buffer.shrink_to(KEPT_BYTES_MAX);
        }
        self.forms.clear();
        self.forms.shrink_to(KEPT_BYTES_MAX / size_of::<Form>());
    }

    /// Bytes of memory for decoded forms and pieces.
    pub fn held_bytes(&self) -> usize {
        let forms = self.forms.capacity() * size_of::<Form>();
        self.arena.capacity() + self.spare.capacity() + self.pieces.capacity() + forms
    }

    /// Looks at one value, which stands at `location`, as it is and in every form that decoding makes of it.
    pub fn value(&mut self, detectors: &Detectors, location: Location<'_>, bytes: &[u8]) {
        self.work.allow(bytes.len());
        self.look(detectors, location, bytes);
    }

    /// The request body that follows was made of so many bytes that came.
    pub fn set_wire_bytes(&mut self, bytes: usize) {
        self.wire = Some(bytes);
    }

    /// The bytes that came of a body of `bytes`, at most all of it.
    pub(crate) fn take_wire(&mut self, bytes: usize) -> usize {
        self.wire.take().map_or(bytes, |wire| wire.min(bytes))
    }

    /// Where what is known of header fields is kept.
    pub(crate) fn memo(&mut self) -> Memo {
        self.memo.get_or_insert_default().clone()
    }

    /// Looks at a header field or path of a message that has brought its allowance, by `look`, unless it is
    /// known what comes of it.
    pub(crate) fn look_once(
        &mut self,
        detectors: &Detectors,
        known: Option<&mut Known>,
        field: Field<'_>,
        look: impl FnOnce(&mut Analysis),
    ) {
        let Some(known) = known else { return look(self) };
        self.thin(detectors);
        let (findings, values, dropped) = (self.findings.len(), self.values.len(), self.dropped);
        let (done, allowed) = self.work.done();
        let is_new = match known.find(field) {
            Sight::Known(result) if done + result.work <= allowed => {
                self.work.charge(result.work as usize);
                self.values.extend_from_slice(&result.values);
                let again = result.findings.iter().cloned();
                self.findings
                    .extend(again.map(|found| Finding { value: found.value + values as u32, ..found }));
                self.exclude_from(findings);
                return;
            }
            Sight::Known(_) | Sight::New => true,
            Sight::Again => false,
        };
        look(self);
        if is_new || self.dropped > dropped || self.work.is_spent() {
            return;
        }
        let found = self.findings[findings..].iter().cloned();
        let result = FieldResult {
            work: self.work.done().0 - done,
            // What is excluded is so for one path.
            findings: found
                .map(|found| Finding { value: found.value - values as u32, excluded: false, ..found })
                .collect(),
            values: self.values[values..].into(),
        };
        known.enter(field, result);
    }

    /// Looks at a value of a message that has brought its allowance.
    pub(crate) fn look(&mut self, detectors: &Detectors, location: Location<'_>, bytes: &[u8]) {
        self.look_grouped(detectors, location, bytes, ByteGroups::of(bytes));
    }

    /// The same where it is known which bytes are in it.
    pub(crate) fn look_grouped(
        &mut self,
        detectors: &Detectors,
        location: Location<'_>,
        bytes: &[u8],
        groups: ByteGroups,
    ) {
        let may_be_document = groups.has(b'{') && graphql::takes_document(location);
        let texts = match may_be_document && self.work.charge(bytes.len() / LOOK_SHARE) {
            true => graphql::texts(bytes),
            false => None,
        };
        match texts {
            Some(texts) => self.graphql(detectors, location, bytes, &texts),
            None => self.look_alone(detectors, location, bytes, groups),
        }
        self.across(detectors, location, bytes, groups);
    }

    /// Looks at the body as a whole.
    pub(crate) fn look_at_body(&mut self, detectors: &Detectors, body: &[u8]) {
        let readers = detectors.gate.readers_of_body(&detectors.list, body);
        let (done, allowed) = self.work.done();
        if readers.is_empty() && done + body.len() as u64 <= allowed {
            // It is read to find that out, and nothing comes of it.
            self.work.charge(body.len());
            return;
        }
        self.body_readers = Some(readers);
        self.look(detectors, Location::of(Place::RawBody), body);
        self.body_readers = None;
    }

    /// Looks at a document of GraphQL with these texts in it.
    fn graphql(&mut self, detectors: &Detectors, location: Location<'_>, document: &[u8], texts: &[Span]) {
        self.of_graphql = Some(true);
        self.look_alone(detectors, location, document, ByteGroups::of(document));
        self.of_graphql = Some(false);
        for text in texts {
            let text = text.of(document);
            self.look_alone(detectors, location, text, ByteGroups::of(text));
        }
        self.of_graphql = None;
    }

    /// The same, whatever other values the message has.
    fn look_alone(
        &mut self,
        detectors: &Detectors,
        location: Location<'_>,
        bytes: &[u8],
        groups: ByteGroups,
    ) {
        let is_value = location.place.is_value();
        // Of what is no value no form is made.
        let is_plain = !is_value || decode::is_plain(bytes, groups);
        let is_word = is_value && is_plain && groups.is_within(ByteGroups::ALPHANUMERIC);
        if is_word && !may_be_command(location.name, bytes) && !decode::is_short_command(bytes) {
            return;
        }
        self.thin(detectors);
        let before = self.findings.len();
        let begun = self.work.done().0;
        self.forms_left = 0;
        self.document = Document::of(location, bytes);
        self.detect(detectors, location, bytes, groups, Layers::default(), false);
        if !is_plain && !self.is_bytes(location.place, bytes, groups) && !self.work.is_spent() {
            self.forms(detectors, location, bytes, groups, begun);
        }
        if self.work.is_spent() || self.forms_left > 0 {
            self.cut = self.cut.saturating_add(bytes.len() as u64);
            if let Some(number) = detectors.protocol {
                let span = Span::new(0, bytes.len());
                self.found(detectors, number, location, bytes, Layers::default()).add(WORK_LIMIT, span);
            }
        }
        if self.findings.len() > before {
            let name = &location.name[..location.name.len().min(NAME_BYTES_MAX)];
            let contexts = score::contexts(location.place);
            self.values.push(Value { place: location.place, name: name.into(), contexts });
            self.open_from(before, true);
            self.exclude_from(before);
        }
        self.document = Document::default();
    }

    /// How many values have findings up to here, see [`Analysis::excuse_from`].
    pub(crate) fn values_len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn findings_mut(&mut self) -> &mut [Finding] {
        &mut self.findings
    }

    /// Looks at a window of a file for what stands in files whatever they are: code and scripts.
    pub(crate) fn look_for_code(&mut self, detectors: &Detectors, location: Location<'_>, bytes: &[u8]) {
        self.code_only = true;
        self.look(detectors, location, bytes);
        self.code_only = false;
    }

    fn is_bytes(&self, place: Place, bytes: &[u8], groups: ByteGroups) -> bool {
        self.code_only || is_file_or_text(place) && decode::is_bytes(bytes, groups)
    }

    /// Notes something about the message that no text shows: `kind` of the detector with these `kinds`, with
    /// a word of evidence.
    pub fn note(
        &mut self,
        detectors: &Detectors,
        location: Location<'_>,
        kinds: &'static [Kind],
        kind: KindId,
        evidence: &[u8],
    ) {
        let id = |kinds: &'static [Kind]| kinds.get(usize::from(kind.0)).map(|kind| kind.id);
        // Several detectors may be of a class; each has a table of its own.
        let mut tables = detectors.list.iter().map(|detector| detector.profile().kinds);
        let Some(number) = tables.position(|own| id(own) == id(kinds)) else { return };
        self.thin(detectors);
        let before = self.findings.len();
        let span = Span::new(0, evidence.len());
        self.found(detectors, number, location, evidence, Layers::default()).add(kind, span);
        if self.findings.len() > before {
            let contexts = score::contexts(location.place);
            self.values.push(Value { place: location.place, name: location.name.into(), contexts });
            self.exclude_from(before);
        }
    }

    fn detect(
        &mut self,
        detectors: &Detectors,
        location: Location<'_>,
        text: &[u8],
        groups: ByteGroups,
        layers: Layers,
        of_json: bool,
    ) {
        if !self.work.charge(text.len()) {
            return;
        }
        let readers = self.body_readers.take();
        let (candidates, telling) =
            detectors.gate.candidates(&detectors.list, text, groups, location, readers);
        if candidates.is_empty() {
            return;
        }
        let is_json = location.place.is_value() && (of_json || decode::is_json(text, groups));
        let is_bytes = self.is_bytes(location.place, text, groups);
        for number in candidates {
            if is_bytes && !detectors.list[number].reads_bytes() {
                continue;
            }
            let is_of_graphql = detectors.list[number].profile().class == Class::Graphql;
            if self.of_graphql.is_some_and(|only| only != is_of_graphql) {
                continue;
            }
            if !self.work.charge(text.len() / LOOK_SHARE) {
                return;
            }
            let is_telling = telling.has(number);
            let document = self.document;
            let input = Input { text, groups, location, layers, is_json, is_telling, document };
            let mut found = self.found(detectors, number, location, text, layers);
            detectors.list[number].detect(&input, &mut found);
        }
    }

    fn found<'a>(
        &'a mut self,
        detectors: &Detectors,
        number: usize,
        location: Location<'a>,
        text: &'a [u8],
        layers: Layers,
    ) -> Found<'a> {
        let detector = &detectors.list[number];
        Found {
            class: detector.profile().class,
            kinds: detector.profile().kinds,
            base: detectors.bases[number],
            value: self.values.len() as u32,
            location,
            document: self.document,
            mention_row: None,
            text,
            layers,
            findings: &mut self.findings,
            work: &mut self.work,
        }
    }
}

#[cfg(test)]
impl Analysis {
    /// How many findings detector `number` has in `text`, whatever the gate says of it.
    pub(crate) fn found_past_gate(
        &mut self,
        detectors: &Detectors,
        number: usize,
        location: Location<'_>,
        text: &[u8],
    ) -> usize {
        let before = self.findings.len();
        let (groups, layers, document) = (ByteGroups::of(text), Layers::default(), Document::default());
        let input = Input { text, groups, location, layers, is_json: false, is_telling: true, document };
        let mut found = self.found(detectors, number, location, text, layers);
        detectors.list[number].detect(&input, &mut found);
        self.findings.len() - before
    }
}

/// Sets values apart for which something else is done, and findings that do not count: a flood of them must
/// not push those out that do.
pub trait Triage: std::fmt::Debug + Send + Sync {
    /// The group of a value of this name for findings of `class`; of each group the worst are kept.
    fn group(&self, class: Class, place: Place, name: &[u8]) -> u8;

    /// Findings of this kind in such a value count for nothing.
    fn excludes(&self, _class: Class, _kind: &str, _place: Place, _name: &[u8]) -> bool {
        false
    }
}

/// Places of contents that may be no text.
fn is_file_or_text(place: Place) -> bool {
    matches!(place, Place::FileContent | Place::Text)
}
