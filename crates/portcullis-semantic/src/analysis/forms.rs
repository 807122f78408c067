//! The decoded forms of a value: each is looked at, and decoded once more.

use portcullis_types::Span;

use super::Analysis;
use crate::detectors::purpose;
use crate::limits::{FORM_BYTES_FACTOR, FORM_BYTES_SPARE, FORMS_MAX, LONG_BYTES_MIN, WORK_SHARE};
use crate::{ByteGroups, Detectors, Layer, Layers, Location, Place, decode};

#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    span: Span,
    layers: Layers,
    /// The value within the value that it stands for, by its number; 0 is all of it.
    part: u32,
    /// Made of JSON as a whole: quotes that were escaped in its strings end them now. Its values have forms
    /// of their own.
    of_json: bool,
    /// In a document that its field is for, or made of such a value: the name of a field for what it is.
    named: Option<&'static [u8]>,
}

/// The form or value that a form is made from.
#[derive(Clone, Copy, Debug, Default)]
struct Parent {
    part: u32,
    /// Forms made of it are values of a field of that name.
    named: Option<&'static [u8]>,
}

/// The decoded forms of one value, in the order in which they were made.
#[derive(Debug, Default)]
struct Forms {
    bytes: Vec<u8>,
    list: Vec<Form>,
    /// Memory that they may take, each with its entry in `list`.
    bytes_max: usize,
    /// How many forms stand for each value within the value, at most [`FORMS_MAX`].
    parts: Vec<u8>,
    /// Bytes of those for which there was no room, or too many layers.
    left: u64,
}

impl Forms {
    fn clear(&mut self) {
        self.bytes.clear();
        self.list.clear();
    }

    /// True if there is room for another form of value number `part`.
    fn has_room(&self, part: u32) -> bool {
        self.parts.get(part as usize).is_none_or(|count| usize::from(*count) < FORMS_MAX)
    }

    /// Keeps `form` of `value`, made by `layer` from a form of `parent`, if it is new and there is room;
    /// without `layers` there are too many of them.
    fn keep(&mut self, value: &[u8], parent: Parent, layer: Layer, layers: Option<Layers>, form: &[u8]) {
        let Parent { part, named } = parent;
        let end = self.bytes.len() + form.len();
        let is_part = matches!(layer, Layer::Json | Layer::Parameter | Layer::Php);
        // What two ways of decoding lead to has been looked at once, or will be.
        let mut known = self.list.iter().take(FORMS_MAX);
        let is_known = |known: &Form| {
            (known.named.is_none() || known.named == named) && known.span.of(&self.bytes) == form
        };
        if form == value || known.any(is_known) {
            return;
        }
        let taken = end + (self.list.len() + 1) * size_of::<Form>();
        let has_room = taken <= self.bytes_max && (is_part || self.has_room(part));
        let Some(layers) = layers.filter(|_| has_room) else {
            self.left += form.len() as u64;
            return;
        };
        if self.parts.is_empty() {
            self.parts.push(0);
        }
        let part = match is_part {
            true => {
                self.parts.push(0);
                self.parts.len() as u32 - 1
            }
            false => part,
        };
        self.parts[part as usize] += 1;
        let span = Span::new(self.bytes.len(), end);
        self.list.push(Form { span, layers, part, of_json: false, named });
        self.bytes.extend_from_slice(form);
    }
}

impl Analysis {
    /// Looks at the decoded forms of a value, for which work was done from `begun` on.
    pub(super) fn forms(
        &mut self,
        detectors: &Detectors,
        location: Location<'_>,
        bytes: &[u8],
        groups: ByteGroups,
        begun: u64,
    ) {
        let once = self.work.done().0 - begun;
        let bytes_max = bytes.len().saturating_mul(FORM_BYTES_FACTOR).saturating_add(FORM_BYTES_SPARE);
        let mut made = Forms {
            bytes: std::mem::take(&mut self.arena),
            list: std::mem::take(&mut self.forms),
            bytes_max,
            parts: Vec::new(),
            left: 0,
        };
        made.clear();
        let mut spare = std::mem::take(&mut self.spare);
        let mut text = std::mem::take(&mut self.pieces);
        let is_whole = location.place == Place::FileContent || self.document.is_page || self.document.is_php;
        let is_document = is_whole && bytes.len() > DOCUMENT_BYTES_MIN;
        let mut layers = Layers::default();
        text.clear();
        text.extend_from_slice(bytes);
        let mut next = 0;
        let mut groups = groups;
        let (mut of_json, mut parent) = (false, Parent::default());
        let mut holds_document = None;
        loop {
            // What the value brought does not suffice to look at all of such a text in every form.
            let share = bytes.len() as u64 * WORK_SHARE;
            let only_changed =
                !is_document && text.len() > LONG_BYTES_MIN && self.work.done().0 - begun + once > share;
            if !decode::is_plain(&text, groups) && self.work.charge(text.len() << u8::from(only_changed)) {
                let first = made.list.len();
                of_json |= decode::unwrap(
                    &text,
                    groups,
                    layers,
                    only_changed,
                    &mut spare,
                    &mut |layer, path, form| {
                        let mut document =
                            || *holds_document.get_or_insert_with(|| purpose::Document::of(location));
                        let of_document = || {
                            document().filter(|_| !path.is_empty()).and_then(|document| document.field(path))
                        };
                        let named = parent.named.or_else(of_document);
                        // Escapes and references of a program or a page are its own.
                        if !is_document || matches!(layer, Layer::Utf16 | Layer::Utf7) {
                            made.keep(bytes, Parent { named, ..parent }, layer, layers.then(layer), form);
                        }
                    },
                );
                for form in &mut made.list[first..] {
                    form.of_json = of_json && form.layers.iter().last().is_some_and(Layer::is_of_signs);
                }
            }
            let Some(&form) = made.list.get(next).filter(|_| !self.work.is_spent()) else { break };
            next += 1;
            // Decoding it adds to the bytes it stands in.
            text.clear();
            text.extend_from_slice(form.span.of(&made.bytes));
            groups = ByteGroups::of(&text);
            (layers, of_json) = (form.layers, form.of_json);
            parent = Parent { part: form.part, named: form.named };
            let location = form.named.map_or(location, |name| Location { name, ..location });
            // A serialised object, which no text is: what reads texts would read lines into it.
            let of_bytes =
                layers.iter().last().is_some_and(|layer| matches!(layer, Layer::Base64 | Layer::Hex))
                    && !decode::is_mostly_text(&text);
            let code_only = self.code_only;
            self.code_only |= of_bytes;
            self.detect(detectors, location, &text, groups, layers, of_json);
            self.code_only = code_only;
        }
        self.pieces = text;
        self.spare = spare;
        self.forms_left = made.left;
        (self.arena, self.forms) = (made.bytes, made.list);
    }
}

/// A shorter file may be a field to the application.
const DOCUMENT_BYTES_MIN: usize = 1_024;
