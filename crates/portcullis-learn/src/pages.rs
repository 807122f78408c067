//! Pages of recent requests, with the fields that they had: what a page is called is looked for once, and so
//! are its fields as long as they come in the same order.

use crate::batch::Field;
use crate::knowledge::{Judged, Knowledge, Page};
use crate::store::FieldPlace;

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
struct Placed {
    place: FieldPlace,
    name: Box<[u8]>,
    number: u32,
}

impl Pages {
    /// Where the page of a request is remembered.
    pub fn of(&mut self, knowledge: &Knowledge, method: &[u8], path: &[u8]) -> usize {
        if self.0.is_empty() {
            self.0.resize_with(PAGES, Default::default);
        }
        let last = path.iter().rev().take(4).fold(path.len(), |all, b| all * 7 + usize::from(*b));
        let at = last % PAGES;
        let known = &mut self.0[at];
        if known.once != knowledge.once() || known.path != path || known.method != method {
            known.page = knowledge.page(method, path);
            known.fields.clear();
            known.once = if path.len() > PATH_BYTES_MAX { 0 } else { knowledge.once() };
            for (kept, sent) in [(&mut known.method, method), (&mut known.path, path)] {
                kept.clear();
                kept.extend_from_slice(&sent[..sent.len().min(PATH_BYTES_MAX)]);
            }
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

    /// The number of the field that stood in this place of the request before, if it is the same.
    pub fn number(&self, at: usize, field: usize, place: FieldPlace, name: &[u8]) -> Option<u32> {
        let placed = self.0.get(at)?.fields.get(field)?.as_ref()?;
        (placed.place == place && *placed.name == *name).then_some(placed.number)
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
            let is_known = known.fields[number]
                .as_ref()
                .is_some_and(|placed| placed.place == field.place && *placed.name == *name);
            if !is_known {
                known.fields[number] = Some(Placed { place: field.place, name: name.into(), number: found });
            }
        }
        judged
    }
}
