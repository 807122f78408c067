//! What is known, in the form in which requests are judged by it.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use crate::field::Field;
use crate::key::{FieldPlace, Key, SEGMENT, SITE};
use crate::path::{self, ANY};
use crate::profile::{Carried, Known, Opened, Profile, Unusual};
use crate::sibling::{self, SIBLINGS_MAX};
use crate::sketch::mix;
use crate::store::Store;

/// An immutable picture of a [`Store`].
#[derive(Debug)]
pub struct Knowledge {
    seed: u64,
    /// The number of this picture.
    once: u64,
    /// Templates, and what leads to them.
    paths: HashSet<u64, Ready>,
    /// By template and name, as numbers in `entries`.
    fields: HashMap<u64, Vec<u32>, Ready>,
    entries: Vec<Entry>,
    closed: usize,
    /// Kinds of findings that fields are opened for, or on trial.
    openings: usize,
    /// Fields that are known by the values of those beside them.
    by_sibling: usize,
}

#[derive(Debug)]
struct Entry {
    /// A number of the field, the same in all pictures of a store.
    number: u64,
    method: u64,
    place: FieldPlace,
    known: Known,
    /// What is known of it by the values of fields beside it.
    by_sibling: Vec<BySibling>,
}

/// What is known of a field by the values of one beside it, which is a list of few.
#[derive(Debug)]
struct BySibling {
    /// The one beside it.
    name: Box<[u8]>,
    /// Hashes of its values, but for those that only a few have sent.
    options: Box<[u64]>,
    /// By the hash of its value.
    variants: Vec<(u64, Known)>,
}

impl BySibling {
    /// What is unlike the field where the one beside it carries the value with this hash. One that says
    /// nothing known, or several things, opens nothing: then the value has to be like all of the field's.
    fn judge(&self, carried: &Carried, option: Option<u64>) -> Option<Unusual> {
        match option.filter(|option| self.options.contains(option)) {
            Some(option) => {
                let variant = self.variants.iter().find(|(of, _)| *of == option);
                variant.and_then(|(_, known)| known.judge(carried))
            }
            None => {
                let unlike = self.variants.iter().filter_map(|(_, known)| known.judge(carried));
                unlike.max_by_key(|unusual| unusual.syntax.len())
            }
        }
    }
}

impl Entry {
    /// What is unlike the field in the value. `siblings` tells the values of those beside it.
    fn judge(&self, carried: &Carried, siblings: &dyn Fn(&[u8]) -> Option<u64>) -> Option<Unusual> {
        self.known.judge(carried).or_else(|| {
            self.by_sibling.iter().find_map(|beside| beside.judge(carried, siblings(&beside.name)))
        })
    }
}

/// What is said of a value.
pub(crate) enum Judged {
    /// It is nothing new in its field; the same number for values that differ in nothing that is learned.
    Usual(u64),
    /// It is unlike its field.
    Unusual(Unusual),
    /// Its field is not known well, or it shows something new of it.
    New,
}

/// The page that a request asks for, as far as it is known.
#[derive(Debug, Default)]
pub struct Page {
    template: u64,
    /// A hash of the method.
    method: u64,
    /// All of the path is known, not only that of a page above it.
    is_whole: bool,
    /// The segments of its path that are values, and names in place of which values were sent.
    pub(crate) segments: Vec<Segment>,
    /// Those that some servers take for one value, each with the path above it.
    pub(crate) undivided: Vec<(Vec<u8>, Vec<u8>)>,
    name: Vec<u8>,
}

/// A segment of the path of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// The bytes of the path above it, in its one form.
    pub above: usize,
    /// Its own.
    pub bytes: usize,
    /// It may be the name of a page.
    pub is_name: bool,
}

impl Page {
    /// True if there are segments of its path that are noted as fields.
    pub(crate) fn has_values(&self) -> bool {
        !self.segments.is_empty() || !self.undivided.is_empty()
    }

    /// The name of the field that was judged last, in the form in which it is known.
    pub fn name(&self) -> &[u8] {
        &self.name
    }
}

impl Default for Knowledge {
    fn default() -> Self {
        Knowledge::of(&Store::default())
    }
}

impl Knowledge {
    /// What `store` knows now.
    pub fn of(store: &Store) -> Knowledge {
        // Nobody outside knows it, or can find two texts with the same hash.
        let seed = store.seed.0;
        let thresholds = &store.limits().thresholds;
        let mut knowledge = Knowledge {
            seed,
            once: RandomState::new().hash_one(0u8),
            paths: HashSet::default(),
            fields: HashMap::default(),
            entries: Vec::new(),
            closed: store.counts().1,
            openings: 0,
            by_sibling: 0,
        };
        for (key, profile) in store.fields() {
            let template = knowledge.enter(&key.template);
            let at = hash(template, key.name.as_bytes());
            let method = hash(seed, key.method.as_bytes());
            let entry = Entry {
                number: mix(at ^ method.rotate_left(32) ^ key.place as u64),
                method,
                place: key.place,
                known: Known::of(profile, thresholds),
                by_sibling: by_sibling(store, key),
            };
            knowledge.by_sibling += entry.by_sibling.len();
            knowledge.openings += entry.known.openings.len();
            knowledge.fields.entry(at).or_default().push(knowledge.entries.len() as u32);
            knowledge.entries.push(entry);
        }
        for (template, name) in store.names() {
            let above = knowledge.enter(template);
            knowledge.paths.insert(hash(above, name.as_bytes()));
        }
        knowledge
    }

    fn enter(&mut self, template: &str) -> u64 {
        template.split('/').filter(|segment| !segment.is_empty()).fold(self.seed, |above, segment| {
            let at = hash(above, segment.as_bytes());
            self.paths.insert(at);
            at
        })
    }

    /// True if no field is closed and none is opened: there is nothing to judge by.
    pub fn is_empty(&self) -> bool {
        self.closed + self.openings == 0
    }

    /// True if there are fields that are known by the values of those beside them.
    pub(crate) fn knows_siblings(&self) -> bool {
        self.by_sibling > 0
    }

    /// True if there are fields that are opened for kinds of findings, or on trial.
    pub fn has_openings(&self) -> bool {
        self.openings > 0
    }

    /// What is known of findings of `kind` in a field that carries them. Only for the very field that has
    /// taught it: nothing that was learned elsewhere opens one.
    pub fn opened(&self, page: &Page, place: FieldPlace, name: &[u8], kind: &str) -> Option<&Opened> {
        let mut canonical = Vec::new();
        if !self.has_openings() || !page.is_whole || !path::name(place.place(), name, &mut canonical) {
            return None;
        }
        let mut entries = self.of_name(hash(page.template, &canonical));
        let own = entries.find(|(_, entry)| entry.place == place && entry.method == page.method)?;
        own.1.known.openings.iter().find(|opened| *opened.kind == *kind)
    }

    /// The page at `path`, asked for by `method`. A path that nobody has asked for belongs to the nearest
    /// known one above it: applications take what follows the name of a program for data.
    pub fn page(&self, method: &[u8], path: &[u8]) -> Page {
        let canonical = path::canonical(path);
        let (mut segments, mut above) = (Vec::new(), 0);
        let (template, is_whole) = self.walk(&canonical, |segment, is_name, template| {
            let carries = |template| self.fields.contains_key(&hash(template, SEGMENT.as_bytes()));
            if !is_name || template.is_some_and(carries) {
                segments.push(Segment { above, bytes: segment.len(), is_name });
            }
            above += 1 + segment.len();
        });
        let method = hash(self.seed, path::method(method));
        Page { template, method, is_whole, segments, undivided: path::undivided(path), name: Vec::new() }
    }

    /// The template of the nearest known path, and whether that is all of `canonical`. `visit` gets each
    /// segment, whether it may be a name, and the template above it, if that is known.
    fn walk(&self, canonical: &[u8], mut visit: impl FnMut(&[u8], bool, Option<u64>)) -> (u64, bool) {
        let (mut template, mut is_whole) = (self.seed, true);
        for segment in path::segments(canonical) {
            let placeholder = path::placeholder(segment);
            visit(segment, placeholder.is_none(), is_whole.then_some(template));
            if !is_whole {
                continue;
            }
            let is_known = |text: &[u8]| Some(hash(template, text)).filter(|at| self.paths.contains(at));
            let next = is_known(placeholder.map_or(segment, str::as_bytes));
            match next.or_else(|| is_known(ANY.as_bytes())) {
                Some(next) => template = next,
                None => is_whole = false,
            }
        }
        (template, is_whole)
    }

    /// The number of the field of all pages that is called so, if there is one.
    pub(crate) fn of_site(&self, place: FieldPlace, name: &[u8], canonical: &mut Vec<u8>) -> Option<u32> {
        let is_named = path::name(place.place(), name, canonical);
        let mut entries = self.of_name(is_named.then(|| hash(self.site(), canonical))?);
        entries.find(|(_, entry)| entry.place == place).map(|(number, _)| number)
    }

    /// The template of fields of all pages.
    fn site(&self) -> u64 {
        hash(self.seed, SITE.as_bytes())
    }

    /// The number of this picture: what is remembered of it holds for no other.
    pub(crate) fn once(&self) -> u64 {
        self.once
    }

    /// The fields of this name and template, with their numbers.
    fn of_name(&self, at: u64) -> impl Iterator<Item = (u32, &Entry)> + Clone {
        let numbers = self.fields.get(&at).map_or(&[][..], Vec::as_slice);
        numbers.iter().filter_map(|number| Some((*number, self.entries.get(*number as usize)?)))
    }

    /// The number of what a value shows, see [`Judged::Usual`], if that is nothing new in the field of this
    /// number, which is one of a page that is known as a whole.
    #[inline]
    pub(crate) fn usual(&self, number: u32, carried: &Carried, is_name: bool) -> Option<u64> {
        // By which value beside it a value is learned is not told by the field alone.
        let entry = self.entries.get(number as usize).filter(|entry| entry.by_sibling.is_empty())?;
        let shown = match is_name {
            // Each name counts.
            true => Some(carried.option).filter(|_| entry.known.is_settled()),
            false => entry.known.usual(carried),
        };
        shown.map(|shown| entry.number ^ shown)
    }

    /// What is unlike the field in the value that it carries. A field that was never sent by this method or
    /// in this place is judged as the others of its name on this page, if all of them are closed: many
    /// applications take a parameter from wherever it comes.
    pub fn judge(&self, page: &mut Page, field: &Field, name: &[u8]) -> Option<Unusual> {
        match self.look(page, field, name, &|_| None).0 {
            Judged::Unusual(unusual) => Some(unusual),
            Judged::Usual(_) | Judged::New => None,
        }
    }

    /// The same, whether there is anything to be learned of it, and the number of the field if it is one of
    /// this very page. `siblings` tells the hash of the value beside it of the field that is called so, see
    /// [`Beside::option`](crate::sibling::Beside::option).
    pub(crate) fn look(
        &self,
        page: &mut Page,
        field: &Field,
        name: &[u8],
        siblings: &dyn Fn(&[u8]) -> Option<u64>,
    ) -> (Judged, Option<u32>) {
        let (template, is_whole) = match field.place {
            FieldPlace::PathSegment => self.walk(name, |_, _, _| ()),
            FieldPlace::Header | FieldPlace::Cookie => (self.site(), true),
            FieldPlace::Query | FieldPlace::Form | FieldPlace::Json => (page.template, page.is_whole),
        };
        let is_named = if field.place == FieldPlace::PathSegment {
            page.name.clear();
            page.name.extend_from_slice(SEGMENT.as_bytes());
            // What stands below an unknown path is judged by none.
            is_whole
        } else {
            path::name(field.place.place(), name, &mut page.name)
        };
        if !is_named {
            return (Judged::New, None);
        }
        let of_name = self.of_name(hash(template, &page.name));
        let mut entries = of_name.filter(|(_, entry)| field.place.is_like(entry.place, is_whole));
        let (method, carried) = (page.method, &field.carried);
        let is_own = |entry: &Entry| {
            entry.place == field.place && (field.place.is_of_site() || entry.method == method)
        };
        let own = entries.clone().find(|(_, entry)| is_own(entry));
        match own {
            Some((number, own)) => {
                let usual = || self.usual(number, carried, field.is_name).filter(|_| is_whole);
                let unusual = if field.is_name { None } else { own.judge(carried, siblings) };
                let judged = match unusual {
                    Some(unusual) => Judged::Unusual(unusual),
                    None => usual().map_or(Judged::New, Judged::Usual),
                };
                (judged, Some(number).filter(|_| is_whole))
            }
            None if field.is_name => (Judged::New, None),
            None => {
                let first = entries.clone().next().and_then(|(_, first)| first.judge(carried, siblings));
                let is_unlike = |(_, entry): (u32, &Entry)| entry.judge(carried, siblings).is_some();
                let unusual = first.filter(|_| entries.all(is_unlike));
                (unusual.map_or(Judged::New, Judged::Unusual), None)
            }
        }
    }
}

/// What is known of a field by the values of those beside it.
fn by_sibling(store: &Store, key: &Key) -> Vec<BySibling> {
    let siblings = store.siblings(key).map(|(sibling, profile)| {
        let variant = |option: u64| {
            let name = sibling::variant(&key.name, &sibling.name, option);
            Some(&store.fields.get(&Key { name, ..key.clone() })?.profile)
        };
        let (listed, later) = profile.listed();
        let is_known = |option: &u64| variant(*option).is_some_and(Profile::is_known_to_many);
        let options: Box<[u64]> =
            listed.iter().chain(later.iter().filter(|option| is_known(option))).copied().collect();
        let thresholds = &store.limits.thresholds;
        let variants =
            options.iter().filter_map(|option| Some((*option, Known::of(variant(*option)?, thresholds))));
        BySibling { name: sibling.name.as_bytes().into(), variants: variants.collect(), options }
    });
    siblings.take(SIBLINGS_MAX).collect()
}

/// A keyed hash of `text` below what `above` is the hash of.
fn hash(above: u64, text: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x5851_F42D_4C95_7F2D;
    let fold = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * u128::from(MULTIPLIER | 1);
        (product as u64) ^ (product >> 64) as u64
    };
    let (words, rest) = text.as_chunks::<8>();
    let hash = words.iter().fold(above, |hash, word| fold(hash, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let hash = fold(hash, u64::from_le_bytes(last));
    fold(hash.rotate_left(23), text.len() as u64 ^ above)
}

/// The keys are hashes.
#[derive(Clone, Copy, Debug, Default)]
struct Ready;

impl std::hash::BuildHasher for Ready {
    type Hasher = Same;

    fn build_hasher(&self) -> Same {
        Same(0)
    }
}

#[derive(Debug)]
struct Same(u64);

impl std::hash::Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |all, b| all << 8 | u64::from(*b));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}
