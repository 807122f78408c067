//! The interface that every detector has.

use portcullis_types::Span;

use crate::detectors::document::Document;
use crate::exceptions;
use crate::limits::{EVIDENCE_BYTES_MAX, FINDING_BYTES, READING_BYTES, TOKEN_BYTES};
use crate::work::Work;
use crate::{Activity, ByteGroups, Class, Finding, Kind, KindId, Layers, Location, Place};

/// A detector: one class (or a part of one), its kinds, its gate, and a function from bytes to findings.
///
/// It is built once, shared by all threads and never changed. `detect` must take linear time in `input.text`,
/// must not recurse as the input nests, and must not allocate where it finds nothing.
pub trait Detector: Send + Sync + std::fmt::Debug {
    /// What it finds, and its gate.
    fn profile(&self) -> &'static Profile;

    /// Words of which at least one must be in the text, where they are not known before the detector is
    /// built; with none the text always passes.
    fn hints(&self) -> &[Hint] {
        self.profile().hints
    }

    /// Words without which its expensive parses cannot produce a finding, see [`Input::is_telling`]; empty if
    /// it has no such parses.
    fn telling_hints(&self) -> &[Hint] {
        &[]
    }

    /// Innermost names of fields whose values it looks at whatever words are in them: there the name is the
    /// evidence, `@type`. Only fields of JSON, forms and query strings count.
    fn keys(&self) -> &[&'static str] {
        &[]
    }

    /// The places it looks at.
    fn reads(&self, place: Place) -> bool {
        place.is_value()
    }

    /// False if a body as a whole ([`Place::RawBody`]) tells it nothing, whatever words are in it. Bodies are
    /// long and most tell nothing, so that each detector looks for the byte that it needs itself.
    fn reads_body(&self, _body: &[u8]) -> bool {
        true
    }

    /// False if a text of letters and digits alone tells it nothing, whatever words are in it.
    fn reads_word(&self, _word: &[u8]) -> bool {
        true
    }

    /// True if it looks for bytes, too: files and bodies that are no text are shown to no other.
    fn reads_bytes(&self) -> bool {
        false
    }

    /// Looks at a text that passed the gate.
    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>);
}

/// The properties of a detector that do not depend on a text.
#[derive(Debug)]
pub struct Profile {
    /// What it finds.
    pub class: Class,
    /// Its kinds; [`KindId`]s count in this list. Ids are unique over all detectors.
    pub kinds: &'static [Kind],
    /// Bytes of which at least one must be in the text.
    pub needs: ByteGroups,
    /// Bytes of the longest text that it looks at, white space around it not counted.
    pub bytes_max: usize,
    /// Words of which at least one must be in the text; with none the text always passes.
    pub hints: &'static [Hint],
    /// Learned weights (`weights/CLASS.tsv`); empty while there are none.
    pub weights: &'static str,
}

impl Profile {
    /// A detector of `class` that looks at any text.
    pub const fn new(class: Class, kinds: &'static [Kind]) -> Profile {
        Profile { class, kinds, needs: ByteGroups::ANY, bytes_max: usize::MAX, hints: &[], weights: "" }
    }

    /// The same, for texts with one of these bytes.
    pub const fn needs(self, needs: ByteGroups) -> Profile {
        Profile { needs, ..self }
    }

    /// The same, for texts of at most so many bytes between white space.
    pub const fn bytes_max(self, bytes_max: usize) -> Profile {
        Profile { bytes_max, ..self }
    }

    /// The same, for texts with one of these words.
    pub const fn hints(self, hints: &'static [Hint]) -> Profile {
        Profile { hints, ..self }
    }

    /// The same, with learned weights.
    pub const fn weights(self, weights: &'static str) -> Profile {
        Profile { weights, ..self }
    }
}

/// A word of the gate, lower case; it is found in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    pub(crate) text: &'static str,
    pub(crate) is_word: bool,
}

impl Hint {
    /// Found anywhere.
    pub const fn text(text: &'static str) -> Hint {
        Hint { text, is_word: false }
    }

    /// Found only between bytes that are neither letters nor underscores. Digits may touch it: `1or 2`.
    pub const fn word(text: &'static str) -> Hint {
        Hint { text, is_word: true }
    }

    /// The word.
    pub const fn as_str(&self) -> &'static str {
        self.text
    }
}

/// The input of a detector: a text and its place.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The bytes, decoded as `layers` says.
    pub text: &'a [u8],
    /// Which bytes are in it.
    pub groups: ByteGroups,
    /// Where the value stands.
    pub location: Location<'a>,
    /// How `text` came from the value.
    pub layers: Layers,
    /// The text is JSON from end to end: its strings are looked at by themselves.
    pub is_json: bool,
    /// One of the detector's [`telling_hints`](Detector::telling_hints) is in it.
    pub is_telling: bool,
    /// What the value is as a whole, before anything was decoded.
    pub(crate) document: Document,
}

/// The findings of a detector, with the state that it may charge.
#[derive(Debug)]
pub struct Found<'a> {
    pub(crate) class: Class,
    pub(crate) kinds: &'static [Kind],
    /// Feature number of the detector's first kind.
    pub(crate) base: u16,
    pub(crate) value: u32,
    pub(crate) location: Location<'a>,
    pub(crate) document: Document,
    /// The exception by which what is quoted or named in the field weighs less, once computed.
    pub(crate) mention_row: Option<Option<&'static str>>,
    pub(crate) text: &'a [u8],
    pub(crate) layers: Layers,
    pub(crate) findings: &'a mut Vec<Finding>,
    pub(crate) work: &'a mut Work,
}

impl Found<'_> {
    /// Something found at `span` that does something wherever it stands.
    pub fn add(&mut self, kind: KindId, span: Span) {
        self.push(kind, span, State::Counted);
    }

    /// Something found at `span` that exception `row` of the policy suppresses: it weighs nothing, and stays
    /// to be seen.
    pub fn suppress(&mut self, kind: KindId, span: Span, row: &'static str) {
        debug_assert!(exceptions::find(row).is_some(), "{row} is no exception");
        self.push(kind, span, State::Suppressed(row));
    }

    /// [`Found::add`], or [`Found::suppress`] where there is an exception.
    pub fn add_unless(&mut self, kind: KindId, span: Span, row: Option<&'static str>) {
        match row {
            Some(row) => self.suppress(kind, span, row),
            None => self.add(kind, span),
        }
    }

    /// Something found at `span` that its own neighbourhood shows to be quoted or named. Where the site made
    /// the field for text it is a weaker feature of its own; elsewhere it counts in full, for the sender
    /// chose the text around it.
    pub fn mention(&mut self, kind: KindId, span: Span) {
        let (class, location, is_file) = (self.class, self.location, self.document.is_file);
        let row = *self.mention_row.get_or_insert_with(|| exceptions::mention(class, location, is_file));
        self.push(kind, span, row.map_or(State::Counted, State::Mentioned));
    }

    /// Something found at `span` that the text shows as code, or that the field's name stands for: a mention,
    /// but for kinds that are active wherever they stand. Files are nobody's value.
    pub fn shown(&mut self, kind: KindId, span: Span) {
        let is_active =
            self.kinds.get(usize::from(kind.0)).is_some_and(|kind| kind.activity == Activity::Active);
        match is_active && self.location.place != Place::FileContent && !self.location.place.is_response() {
            true => self.add(kind, span),
            false => self.mention(kind, span),
        }
    }

    /// Charges `bytes` that are read beyond the first reading of the text: after a quote, once more in
    /// another way. False if the message's allowance is used up: then no further reading may begin.
    pub fn may_read(&mut self, bytes: usize) -> bool {
        self.work.charge(bytes)
    }

    /// The same for a reading token by token: short tokens cost as much as long ones, so that each counts as
    /// so many bytes at least, and the reading itself as some.
    pub fn may_walk(&mut self, bytes: usize, tokens: usize) -> bool {
        self.work.charge(bytes.max(tokens.saturating_mul(TOKEN_BYTES)) + READING_BYTES)
    }

    /// What is left of the allowance, in bytes.
    pub fn left(&self) -> usize {
        let (done, allowed) = self.work.done();
        usize::try_from(allowed.saturating_sub(done)).unwrap_or(usize::MAX)
    }

    fn push(&mut self, kind: KindId, span: Span, state: State) {
        let Some(about) = self.kinds.get(usize::from(kind.0)) else {
            debug_assert!(false, "a kind that is not in the detector's list");
            return;
        };
        let feature = self.base + kind.0;
        // The same thing twice in a value says no more than once.
        let of_value = self.findings.iter_mut().rev().take_while(|old| old.value == self.value);
        if let Some(old) = of_value.into_iter().find(|old| old.feature == feature) {
            if State::of(old).rank() < state.rank() {
                (old.mentioned, old.suppressed_by) = state.members();
                old.layers = self.layers;
                old.span = span;
                old.evidence = evidence(self.text, span);
            }
            return;
        }
        self.work.charge(FINDING_BYTES);
        let (mentioned, suppressed_by) = state.members();
        self.findings.push(Finding {
            class: self.class,
            kind: about,
            feature,
            mentioned,
            excluded: false,
            suppressed_by,
            value: self.value,
            layers: self.layers,
            span,
            evidence: evidence(self.text, span),
        });
    }
}

/// How much of its weight a finding has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Suppressed(&'static str),
    Mentioned(&'static str),
    Counted,
}

impl State {
    fn of(finding: &Finding) -> State {
        match finding.suppressed_by {
            Some(row) if finding.mentioned => State::Mentioned(row),
            Some(row) => State::Suppressed(row),
            None => State::Counted,
        }
    }

    /// The greater, the more.
    fn rank(self) -> u8 {
        match self {
            State::Suppressed(_) => 0,
            State::Mentioned(_) => 1,
            State::Counted => 2,
        }
    }

    fn members(self) -> (bool, Option<&'static str>) {
        match self {
            State::Suppressed(row) => (false, Some(row)),
            State::Mentioned(row) => (true, Some(row)),
            State::Counted => (false, None),
        }
    }
}

fn evidence(text: &[u8], span: Span) -> Box<[u8]> {
    let bytes = span.of(text);
    bytes[..bytes.len().min(EVIDENCE_BYTES_MAX)].into()
}
