//! Requests on their way to the store: what they carried, without the values.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use crate::declared::DeclaredFields;
use crate::field::Field;
use crate::key::FieldPlace;
use crate::knowledge::{Judged, Knowledge, Page, Segment};
use crate::opening::TryResult;
use crate::pages::{self, Pages};
use crate::path;
use crate::profile::{Carried, Opened, Unusual};
use crate::sibling::Beside;
use crate::source::Source;
use crate::value::{self, ValueType, classify};

/// Requests that wait; more are dropped and counted.
pub const REQUESTS_MAX: usize = 8_192;
/// Bytes of names and paths that wait.
pub const BYTES_MAX: usize = 1 << 20;
/// One network may have one in so many requests of those that wait.
pub const NETWORK_SHARE: usize = 8;
/// Fields of a request that are learned; one with more carries data, and its fields are no parameters. They
/// are judged all the same.
pub const REQUEST_FIELDS_MAX: usize = 256;

/// Kinds of findings in fields of one request that are learned.
pub const REQUEST_KINDS_MAX: usize = 32;

/// The fields of one request.
#[derive(Debug, Default)]
pub struct Fields {
    /// The number of fields at the front that are those of the request before to the same page, and show
    /// nothing new. What they carried is noted where the page is remembered.
    placed_usual: usize,
    /// The other ones.
    list: Vec<Field>,
    /// Names and hosts of these.
    bytes: Vec<u8>,
    /// There were more than are learned.
    is_cut: bool,
    /// What is known of the page.
    known: Known,
    /// Pages of the requests before.
    pages: Pages,
    /// The path, if it is too long for its page to be remembered.
    long_path: Vec<u8>,
    /// A number of the fields that were judged so far, if none of them shows anything new.
    usual: Option<u64>,
    /// The number of fields that were judged when they were noted.
    judged: usize,
    /// The number of fields that are of this page alone.
    placed: usize,
    /// The fields beyond those that are learned: names that something unusual stood in, and whether it had
    /// signs of code.
    beyond: BTreeSet<(Vec<u8>, bool)>,
}

/// What fields are judged by: the declaration where there is one, else what was learned.
#[derive(Debug, Default)]
struct Known {
    declared: Option<Arc<DeclaredFields>>,
    /// What was learned, and where the page is remembered.
    learned: Option<(Arc<Knowledge>, usize)>,
    /// The name of the field that was judged last, in the form in which it is known.
    name: Vec<u8>,
}

impl Fields {
    /// Forgets the request before.
    pub fn clear(&mut self) {
        self.placed_usual = 0;
        self.bytes.clear();
        self.list.clear();
        self.is_cut = false;
        (self.known.declared, self.known.learned) = (None, None);
        self.long_path.clear();
        (self.usual, self.judged, self.placed) = (None, 0, 0);
        if !self.beyond.is_empty() {
            self.beyond.clear();
        }
    }

    /// The method and the path of the request that is judged.
    pub fn request(&self) -> (&[u8], &[u8]) {
        let (method, path) = self.page().map(|page| self.pages.request(page)).unwrap_or_default();
        (method, if self.long_path.is_empty() { path } else { &self.long_path })
    }

    /// Where its page is remembered.
    fn page(&self) -> Option<usize> {
        self.known.learned.as_ref().map(|(_, page)| *page)
    }

    /// The request is judged by `knowledge`. To be said before its fields are noted.
    pub fn judge_by(&mut self, knowledge: Arc<Knowledge>, method: &[u8], path: &[u8]) {
        let page = self.pages.of(&knowledge, path::method(method), path);
        if !pages::is_remembered(path) {
            self.long_path.extend_from_slice(path);
        }
        self.known.learned = Some((knowledge, page));
        self.usual = Some(0);
        if self.pages.get(page).is_some_and(Page::has_values) {
            self.note_segments(page);
        }
    }

    /// Notes the segments of the path that are values, each by the path above it, and names that stand where
    /// values do.
    #[inline(never)]
    fn note_segments(&mut self, page: usize) {
        let Some(page) = self.pages.get(page) else { return };
        let (segments, undivided) = (page.segments.clone(), page.undivided.clone());
        let canonical = path::canonical(self.request().1).into_owned();
        for (above, segment) in undivided {
            self.note(FieldPlace::PathSegment, &above, &segment);
        }
        for Segment { above, bytes, is_name } in segments {
            let Some(segment) = canonical.get(above + 1..above + 1 + bytes) else { continue };
            let above = if above == 0 { &b"/"[..] } else { &canonical[..above] };
            match is_name {
                true => self.note_carried(FieldPlace::PathSegment, above, Carried::name(segment), b"", true),
                false => self.note(FieldPlace::PathSegment, above, segment),
            }
        }
    }

    /// The request is one of an operation that declares these fields: they are judged by that and not by what
    /// was learned. To be said before its fields are noted.
    pub fn declare(&mut self, fields: Arc<DeclaredFields>) {
        self.known.declared = Some(fields);
    }

    /// A number of all fields together, if none of them shows anything new.
    pub(crate) fn usual(&self) -> Option<u64> {
        self.usual.filter(|_| !self.is_cut && self.judged > 0 && self.judged == self.len())
    }

    /// What is known of findings of `kind` in a field that carries them, see [`Knowledge::opened`].
    pub fn opened(&self, place: FieldPlace, name: &[u8], kind: &str) -> Option<&Opened> {
        let (knowledge, page) = self.known.learned.as_ref()?;
        knowledge.opened(self.pages.get(*page)?, place, name, kind)
    }

    /// The fields whose values are unlike them, with their names as sent. Beyond the first 256 of one name it
    /// returns one with signs of code and one without.
    #[inline]
    pub fn unusual(&mut self) -> Vec<(FieldPlace, Vec<u8>, Unusual)> {
        // Most are judged already: nothing in them was unusual.
        if self.judged == self.len() { Vec::new() } else { self.judge() }
    }

    #[inline(never)]
    fn judge(&mut self) -> Vec<(FieldPlace, Vec<u8>, Unusual)> {
        let mut known = std::mem::take(&mut self.known);
        let mut pages = std::mem::take(&mut self.pages);
        let knows_siblings = known.learned.as_ref().is_some_and(|(knowledge, _)| knowledge.knows_siblings());
        let beside = knows_siblings.then(|| self.beside(&pages, &known));
        let (mut judged, mut usual) = (Vec::new(), known.learned.is_some().then_some(0).and(self.usual));
        let first = self.judged - self.placed_usual;
        let is_placed = |field: &&Field| !field.place.is_of_site();
        let mut placed = self.placed_usual + self.list[..first].iter().filter(is_placed).count();
        for (at, field) in self.list.iter().enumerate().skip(first) {
            let name = self.text(&field.name);
            let mut content = Vec::new();
            if beside.is_some() {
                path::name(field.place.place(), name, &mut content);
            }
            let siblings = |sibling: &[u8]| {
                let at = self.placed_usual + at;
                beside.as_ref().and_then(|beside| beside.option(at, field.place, &content, sibling))
            };
            let declared = known.declared(field, name);
            let learned = match &known.learned {
                Some((knowledge, page)) => pages.look(*page, knowledge, placed, (field, name), &siblings),
                None => Judged::New,
            };
            placed += usize::from(!field.place.is_of_site());
            let unusual = match learned {
                Judged::Usual(number) => {
                    usual = usual.map(|all| also(all, number));
                    None
                }
                Judged::Unusual(unusual) => {
                    usual = None;
                    Some(unusual)
                }
                Judged::New => {
                    usual = None;
                    None
                }
            };
            if let Some(unusual) = declared.unwrap_or(unusual) {
                judged.push((field.place, name.to_vec(), unusual));
            }
        }
        (self.usual, self.judged) = (usual, self.len());
        (self.known, self.pages) = (known, pages);
        judged
    }

    /// Which of them stand beside one another.
    fn beside(&self, pages: &Pages, known: &Known) -> Beside {
        let (mut beside, mut canonical) = (Beside::default(), Vec::new());
        let parameters = |(_, (field, _)): &(usize, (&Field, &[u8]))| field.place.is_of_parameters();
        for (at, (field, name)) in self.with_names(pages, known).enumerate().filter(parameters) {
            if path::name(field.place.place(), name, &mut canonical) {
                beside.add(at, field.place, &canonical, name, field.carried.option);
            }
        }
        beside
    }

    /// Notes a field. Empty values say nothing.
    #[inline]
    pub fn note(&mut self, place: FieldPlace, name: &[u8], value: &[u8]) {
        if value.is_empty() || name.is_empty() {
            return;
        }
        // Most are neither URLs nor anything new, and are done with here.
        if let Some(shape) = value::plain(value) {
            let carried = Carried::of(place, value, shape);
            if !self.is_usual(place, name, &carried, false) {
                self.keep_field(place, name, carried, b"", false);
            }
        } else {
            self.note_other(place, name, value);
        }
    }

    #[inline(never)]
    fn note_other(&mut self, place: FieldPlace, name: &[u8], value: &[u8]) {
        let mut host: &[u8] = b"";
        let shape = classify(value, |of_url| {
            host = of_url;
            false
        });
        self.note_carried(place, name, Carried::of(place, value, shape), host, false);
    }

    fn note_carried(&mut self, place: FieldPlace, name: &[u8], carried: Carried, host: &[u8], is_name: bool) {
        if !self.is_usual(place, name, &carried, is_name) {
            self.keep_field(place, name, carried, host, is_name);
        }
    }

    /// Notes a field that does not stand where one like it is remembered.
    #[inline(never)]
    fn keep_field(&mut self, place: FieldPlace, name: &[u8], carried: Carried, host: &[u8], is_name: bool) {
        if self.len() >= REQUEST_FIELDS_MAX {
            self.is_cut = true;
            if !self.is_news(&Field { place, name: 0..0, host: 0..0, carried, is_name }, name) {
                return;
            }
        }
        self.judge_early(place, name, &carried, is_name);
        // What is too long to be learned stays too long.
        let most = if place == FieldPlace::PathSegment { name.len() } else { 4 * path::NAME_BYTES_MAX };
        let name = self.keep(&name[..name.len().min(most)]);
        let host = if host.is_empty() { 0..0 } else { self.keep(host) };
        self.list.push(Field { place, name, host, carried, is_name });
        self.placed += usize::from(!place.is_of_site());
    }

    /// Notes the next field where its page is remembered, if all fields before it are noted there, it is the
    /// one that stood here in the request before to the same page, and it shows nothing new.
    #[inline]
    fn is_usual(&mut self, place: FieldPlace, name: &[u8], carried: &Carried, is_name: bool) -> bool {
        let Some((knowledge, page)) = &self.known.learned else { return false };
        if !self.list.is_empty() || self.judges_later(carried) {
            return false;
        }
        let Some(placed) = self.pages.placed(*page, self.placed, place, name) else { return false };
        let Some(shown) = knowledge.usual(placed.number, carried, is_name) else { return false };
        (placed.field.carried, placed.field.is_name) = (*carried, is_name);
        self.placed_usual += 1;
        self.placed += 1;
        self.note_judged(shown);
        true
    }

    /// URLs wait until it is known whose they are, and fields of a declaration until all are there.
    fn judges_later(&self, carried: &Carried) -> bool {
        self.known.declared.is_some() || carried.shape.kind == ValueType::OtherUrl
    }

    fn note_judged(&mut self, shown: u64) {
        self.usual = self.usual.map(|all| also(all, shown));
        self.judged += 1;
    }

    /// Judges the next field if it is of all pages, or the one that stood here in the request before to the
    /// same page, and shows nothing new.
    fn judge_early(&mut self, place: FieldPlace, name: &[u8], carried: &Carried, is_name: bool) {
        if self.judged != self.len() || self.judges_later(carried) {
            return;
        }
        let Known { learned: Some((knowledge, page)), name: canonical, .. } = &mut self.known else { return };
        let number = match place.is_of_site() {
            true => knowledge.of_site(place, name, canonical),
            false => self.pages.placed(*page, self.placed, place, name).map(|placed| placed.number),
        };
        if let Some(shown) = number.and_then(|number| knowledge.usual(number, carried, is_name)) {
            self.note_judged(shown);
        }
    }

    /// True if a field beyond those that are learned is unlike what it should be, and nothing is known of
    /// that yet. Whatever is sent before a value hides it from nobody.
    fn is_news(&mut self, field: &Field, name: &[u8]) -> bool {
        let mut known = std::mem::take(&mut self.known);
        let unusual = known.judge(&mut self.pages, field, name);
        let is_new = unusual
            .is_some_and(|unusual| self.beyond.insert((known.name.clone(), unusual.syntax.is_empty())));
        self.known = known;
        is_new
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<u32> {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len() as u32
    }

    /// Says which hosts are the site's own: URLs of these are of another type than those of others.
    pub fn set_own_hosts(&mut self, is_own: impl Fn(&[u8]) -> bool) {
        let Fields { bytes, list, .. } = self;
        for field in list.iter_mut().filter(|field| field.carried.shape.kind == ValueType::OtherUrl) {
            let host = bytes.get(field.host.start as usize..field.host.end as usize).unwrap_or_default();
            if is_own(host) {
                field.carried.shape.kind = ValueType::OwnUrl;
            }
        }
    }

    /// The fields, with their names as sent.
    pub fn iter(&self) -> impl Iterator<Item = (&Field, &[u8])> {
        self.with_names(&self.pages, &self.known)
    }

    fn with_names<'f>(
        &'f self,
        pages: &'f Pages,
        known: &Known,
    ) -> impl Iterator<Item = (&'f Field, &'f [u8])> + use<'f> {
        let page = known.learned.as_ref().map(|(_, page)| *page);
        let placed = page.map(|page| pages.usual(page, self.placed_usual)).unwrap_or_default();
        let placed = placed.iter().flatten().map(|placed| (&placed.field, &*placed.name));
        placed.chain(self.list.iter().map(|field| (field, self.text(&field.name))))
    }

    /// The number of fields.
    fn len(&self) -> usize {
        self.placed_usual + self.list.len()
    }

    fn text(&self, range: &Range<u32>) -> &[u8] {
        self.bytes.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.list.capacity() * size_of::<Field>()
    }
}

/// A number of all fields that `all` stands for and of one more. The numbers of fields are mixed themselves.
fn also(all: u64, shown: u64) -> u64 {
    (all ^ shown).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}

impl Known {
    /// What is unlike its declaration in a field that is declared.
    fn declared(&mut self, field: &Field, name: &[u8]) -> Option<Option<Unusual>> {
        let declared = self.declared.as_ref()?;
        declared.judge(field.place, name, &field.carried, &mut self.name)
    }

    fn judge(&mut self, pages: &mut Pages, field: &Field, name: &[u8]) -> Option<Unusual> {
        if let Some(judged) = self.declared(field, name) {
            return judged;
        }
        let (knowledge, page) = self.learned.as_ref()?;
        let page = pages.get_mut(*page)?;
        let unusual = knowledge.judge(page, field, name)?;
        self.name.clear();
        self.name.extend_from_slice(page.name());
        Some(unusual)
    }
}

#[derive(Debug)]
struct Waiting {
    source: Source,
    method: Range<u32>,
    path: Range<u32>,
    fields: Range<u32>,
    /// The number of requests that it stands for.
    weight: u32,
}

/// A kind of finding in a field of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindIn<'f> {
    /// The place of the field.
    pub place: FieldPlace,
    /// Its name, as sent.
    pub name: &'f [u8],
    /// The kind.
    pub kind: &'static str,
}

/// What is to be known of a kind in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindNews {
    /// A request with it was let through, or a trusted source has sent it.
    Carried,
    /// It is on trial, and a request with it was stopped.
    Tried(TryResult),
    /// A request was refused for it, or would be, and for nothing outside this field.
    Refused,
}

#[derive(Debug)]
struct WaitingKind {
    source: Source,
    method: Range<u32>,
    path: Range<u32>,
    place: FieldPlace,
    name: Range<u32>,
    kind: &'static str,
    news: KindNews,
}

/// The same, to be learned.
pub(crate) struct LearnedKind<'b> {
    pub source: Source,
    pub method: &'b [u8],
    pub path: &'b [u8],
    pub found: KindIn<'b>,
    pub news: KindNews,
}

/// Requests that wait to be learned.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    requests: Vec<Waiting>,
    fields: Vec<Field>,
    kinds: Vec<WaitingKind>,
    by_network: HashMap<u32, usize>,
    /// Requests that were dropped: too many wait, or too many of one network.
    pub dropped: u64,
}

/// A request that waits.
pub(crate) struct Request<'b> {
    pub source: Source,
    pub method: &'b [u8],
    pub path: &'b [u8],
    pub fields: &'b [Field],
    pub weight: u32,
}

impl Batch {
    /// Adds a request that was answered well, which stands for `weight` of them. False if nothing can be
    /// learned of it, or there is no room.
    pub fn add(&mut self, source: Source, method: &[u8], path: &[u8], fields: &Fields, weight: u32) -> bool {
        if fields.is_empty() || fields.is_cut {
            return false;
        }
        let method = path::method(method);
        let names: usize = fields.iter().map(|(_, name)| name.len()).sum();
        if !self.has_room(source, method.len() + path.len() + names) {
            return false;
        }
        let (method, path) = (self.keep(method), self.keep(path));
        let first = self.fields.len() as u32;
        for (field, name) in fields.iter() {
            let name = self.keep(name);
            self.fields.push(Field { name, ..field.clone() });
        }
        self.requests.push(Waiting { source, method, path, fields: first..self.fields.len() as u32, weight });
        true
    }

    /// Adds kinds of findings that a request carried.
    pub fn add_kinds(
        &mut self,
        source: Source,
        method: &[u8],
        path: &[u8],
        found: &[KindIn<'_>],
        news: KindNews,
    ) {
        let method = path::method(method);
        let found = &found[..found.len().min(REQUEST_KINDS_MAX)];
        let names: usize = found.iter().map(|found| found.name.len()).sum();
        if found.is_empty() || !self.has_room(source, method.len() + path.len() + names) {
            return;
        }
        let (method, path) = (self.keep(method), self.keep(path));
        for KindIn { place, name, kind } in found {
            let (method, path, name) = (method.clone(), path.clone(), self.keep(name));
            self.kinds.push(WaitingKind { source, method, path, place: *place, name, kind, news });
        }
    }

    /// Takes a place for a request, or counts it as dropped.
    fn has_room(&mut self, source: Source, bytes: usize) -> bool {
        let of_network = self.by_network.entry(source.network).or_default();
        let has_room = self.requests.len() + self.kinds.len() < REQUESTS_MAX
            && self.bytes.len() + bytes <= BYTES_MAX
            && *of_network < REQUESTS_MAX / NETWORK_SHARE;
        match has_room {
            true => *of_network += 1,
            false => self.dropped = self.dropped.saturating_add(1),
        }
        has_room
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<u32> {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len() as u32
    }

    fn text(&self, range: &Range<u32>) -> &[u8] {
        self.bytes.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    pub(crate) fn name(&self, field: &Field) -> &[u8] {
        self.text(&field.name)
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = Request<'_>> {
        self.requests.iter().map(|waiting| Request {
            source: waiting.source,
            method: self.text(&waiting.method),
            path: self.text(&waiting.path),
            fields: self
                .fields
                .get(waiting.fields.start as usize..waiting.fields.end as usize)
                .unwrap_or_default(),
            weight: waiting.weight,
        })
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = LearnedKind<'_>> {
        self.kinds.iter().map(|waiting| LearnedKind {
            source: waiting.source,
            method: self.text(&waiting.method),
            path: self.text(&waiting.path),
            found: KindIn { place: waiting.place, name: self.text(&waiting.name), kind: waiting.kind },
            news: waiting.news,
        })
    }

    /// The number of requests.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.kinds.is_empty()
    }
}
