//! Pages of recent requests, with the fields that they had: what a page is called is looked for once, and so
//! are its fields as long as they come in the same order.

use crate::field::Field;
use crate::hash::word;
use crate::key::FieldPlace;
use crate::knowledge::{Judged, Knowledge, Page};

/// Pages that are remembered.
const PAGES: usize = 16;
/// Fields of each that are.
const FIELDS: usize = 16;
/// Bytes of a path that is.
const PATH_BYTES_MAX: usize = 256;
/// Bytes of a name that is.
const NAME_BYTES_MAX: usize = 32;

/// Pages of recent requests.
#[derive(Debug, Default)]
pub(crate) struct Pages(Vec<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    /// The picture that it is of; what is remembered of another one holds no more.
    once: u64,
    method: Vec<u8>,
    path: Vec<u8>,
    page: Page,
    /// In the order in which they came.
    fields: Vec<Option<Placed>>,
}

/// A field that stood in a place of a request.
#[derive(Debug)]
pub(crate) struct Placed {
    /// What it carried last.
    pub field: Field,
    /// As sent.
    pub name: Box<[u8]>,
    /// The first bytes of the name, which most have no more of.
    word: u64,
    /// Its number in the picture of what is known.
    pub number: u32,
}

impl Placed {
    #[inline]
    fn is(&self, place: FieldPlace, name: &[u8]) -> bool {
        self.field.place == place
            && self.name.len() == name.len()
            && self.word == word(name)
            && (name.len() <= 8 || *self.name == *name)
    }
}

/// True if the page of a request with this path is remembered.
pub(crate) fn is_remembered(path: &[u8]) -> bool {
    path.len() <= PATH_BYTES_MAX
}

impl Remembered {
    #[inline(never)]
    fn remember(&mut self, knowledge: &Knowledge, method: &[u8], path: &[u8]) {
        self.page = knowledge.page(method, path);
        self.fields.clear();
        self.once = if is_remembered(path) { knowledge.once() } else { 0 };
        for (kept, sent) in [(&mut self.method, method), (&mut self.path, path)] {
            kept.clear();
            kept.extend_from_slice(&sent[..sent.len().min(PATH_BYTES_MAX)]);
        }
    }
}

impl Pages {
    /// Where the page of a request is remembered.
    pub fn of(&mut self, knowledge: &Knowledge, method: &[u8], path: &[u8]) -> usize {
        if self.0.is_empty() {
            self.0.resize_with(PAGES, Default::default);
        }
        let last = word(&path[path.len().saturating_sub(8)..]) ^ path.len() as u64;
        let at = (last.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % PAGES;
        let known = &mut self.0[at];
        let is_method = known.method.len() == method.len()
            && word(&known.method) == word(method)
            && (method.len() <= 8 || known.method == method);
        if known.once != knowledge.once() || !is_method || known.path != path {
            known.remember(knowledge, method, path);
        }
        at
    }

    /// The page that is remembered there.
    pub fn get(&self, at: usize) -> Option<&Page> {
        Some(&self.0.get(at)?.page)
    }

    /// The same.
    pub fn get_mut(&mut self, at: usize) -> Option<&mut Page> {
        Some(&mut self.0.get_mut(at)?.page)
    }

    /// The method and the path, if that is remembered.
    pub fn request(&self, at: usize) -> (&[u8], &[u8]) {
        self.0.get(at).map(|known| (&*known.method, &*known.path)).unwrap_or_default()
    }

    /// The field that stood in this place of the request before, if it is the same.
    #[inline]
    pub fn placed(&mut self, at: usize, field: usize, place: FieldPlace, name: &[u8]) -> Option<&mut Placed> {
        let placed = self.0.get_mut(at)?.fields.get_mut(field)?.as_mut()?;
        placed.is(place, name).then_some(placed)
    }

    /// The first `count` of these fields.
    pub fn usual(&self, at: usize, count: usize) -> &[Option<Placed>] {
        self.0.get(at).and_then(|known| known.fields.get(..count)).unwrap_or_default()
    }

    /// Judges the field in place `number` of the request, and remembers it.
    pub fn look(
        &mut self,
        at: usize,
        knowledge: &Knowledge,
        number: usize,
        (field, name): (&Field, &[u8]),
        siblings: &dyn Fn(&[u8]) -> Option<u64>,
    ) -> Judged {
        let Some(known) = self.0.get_mut(at) else { return Judged::New };
        let (judged, found) = knowledge.look(&mut known.page, field, name, siblings);
        let is_placed = number < FIELDS && name.len() <= NAME_BYTES_MAX && !field.place.is_of_site();
        if let Some(found) = found.filter(|_| is_placed) {
            if known.fields.len() <= number {
                known.fields.resize_with(number + 1, Default::default);
            }
            let is_known = known.fields[number].as_ref().is_some_and(|placed| placed.is(field.place, name));
            if !is_known {
                known.fields[number] =
                    Some(Placed { field: field.clone(), name: name.into(), word: word(name), number: found });
            }
        }
        judged
    }
}
