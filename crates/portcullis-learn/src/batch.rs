//! Requests on their way to the store: what they carried, without the values.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use crate::declared::DeclaredFields;
use crate::knowledge::{Knowledge, Page};
use crate::opening::TryResult;
use crate::path;
use crate::profile::{Carried, Opened, Source, Unusual};
use crate::store::FieldPlace;
use crate::value::{ValueType, classify};

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

/// A field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The place.
    pub place: FieldPlace,
    name: Range<u32>,
    /// That of a URL.
    host: Range<u32>,
    /// What it carried.
    pub carried: Carried,
}

/// The fields of one request.
#[derive(Debug, Default)]
pub struct Fields {
    bytes: Vec<u8>,
    list: Vec<Field>,
    /// There were more than are learned.
    is_cut: bool,
    /// What is known of the page.
    known: Known,
    /// The fields beyond those that are learned: names that something unusual stood in, and whether it had
    /// signs of code.
    beyond: BTreeSet<(Vec<u8>, bool)>,
}

/// What fields are judged by: the declaration where there is one, else what was learned.
#[derive(Debug, Default)]
struct Known {
    declared: Option<Arc<DeclaredFields>>,
    learned: Option<(Arc<Knowledge>, Page)>,
    /// The name of the field that was judged last, in the form in which it is known.
    name: Vec<u8>,
}

impl Fields {
    /// Forgets the request before.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.list.clear();
        self.is_cut = false;
        (self.known.declared, self.known.learned) = (None, None);
        self.beyond.clear();
    }

    /// The request is judged by `knowledge`. To be said before its fields are noted.
    pub fn judge_by(&mut self, knowledge: Arc<Knowledge>, method: &[u8], path: &[u8]) {
        let page = knowledge.page(method, path);
        self.known.learned = Some((knowledge, page));
    }

    /// The request is one of an operation that declares these fields: they are judged by that and not by what
    /// was learned. To be said before its fields are noted.
    pub fn declare(&mut self, fields: Arc<DeclaredFields>) {
        self.known.declared = Some(fields);
    }

    /// What is known of findings of `kind` in a field that carries them, see [`Knowledge::opened`].
    pub fn opened(&self, place: FieldPlace, name: &[u8], kind: &str) -> Option<&Opened> {
        let (knowledge, page) = self.known.learned.as_ref()?;
        knowledge.opened(page, place, name, kind)
    }

    /// The fields whose values are unlike them, with their names as sent. Beyond the first 256 of one name it
    /// returns one with signs of code and one without.
    pub fn unusual(&mut self) -> Vec<(FieldPlace, Vec<u8>, Unusual)> {
        let mut known = std::mem::take(&mut self.known);
        let judged = self.iter().filter_map(|(field, name)| {
            let unusual = known.judge(field, name)?;
            Some((field.place, name.to_vec(), unusual))
        });
        let judged = judged.collect();
        self.known = known;
        judged
    }

    /// Notes a field. Empty values say nothing.
    pub fn note(&mut self, place: FieldPlace, name: &[u8], value: &[u8]) {
        if value.is_empty() || name.is_empty() {
            return;
        }
        let mut host: &[u8] = b"";
        let shape = classify(value, |of_url| {
            host = of_url;
            false
        });
        let carried = Carried::of(value, shape);
        if self.list.len() >= REQUEST_FIELDS_MAX {
            self.is_cut = true;
            if !self.is_news(&Field { place, name: 0..0, host: 0..0, carried }, name) {
                return;
            }
        }
        // What is too long to be learned stays too long.
        let name = self.keep(&name[..name.len().min(4 * path::NAME_BYTES_MAX)]);
        let host = self.keep(host);
        self.list.push(Field { place, name, host, carried });
    }

    /// True if a field beyond those that are learned is unlike what it should be, and nothing is known of
    /// that yet. Whatever is sent before a value hides it from nobody.
    fn is_news(&mut self, field: &Field, name: &[u8]) -> bool {
        let Some(unusual) = self.known.judge(field, name) else { return false };
        self.beyond.insert((self.known.name.clone(), unusual.syntax.is_empty()))
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
        self.list.iter().map(|field| (field, self.name(field)))
    }

    /// The name of a field, as sent.
    pub fn name(&self, field: &Field) -> &[u8] {
        self.bytes.get(field.name.start as usize..field.name.end as usize).unwrap_or_default()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Bytes of memory.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.list.capacity() * size_of::<Field>()
    }
}

impl Known {
    fn judge(&mut self, field: &Field, name: &[u8]) -> Option<Unusual> {
        let Known { declared, learned, name: canonical } = self;
        let declared = declared.as_ref();
        let of_declared =
            declared.and_then(|fields| fields.judge(field.place, name, &field.carried, canonical));
        if let Some(judged) = of_declared {
            return judged;
        }
        let (knowledge, page) = learned.as_mut()?;
        let unusual = knowledge.judge(page, field, name)?;
        canonical.clear();
        canonical.extend_from_slice(page.name());
        Some(unusual)
    }
}

#[derive(Debug)]
struct Waiting {
    source: Source,
    method: Range<u32>,
    path: Range<u32>,
    fields: Range<u32>,
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
}

impl Batch {
    /// Adds a request that was answered well.
    pub fn add(&mut self, source: Source, method: &[u8], path: &[u8], fields: &Fields) {
        if fields.is_empty() || fields.is_cut {
            return;
        }
        let method = path::method(method);
        if !self.has_room(source, method.len() + path.len() + fields.bytes.len()) {
            return;
        }
        let method = self.keep(method);
        let path = self.keep(path);
        let base = self.keep(&fields.bytes).start;
        let first = self.fields.len() as u32;
        self.fields.extend(
            fields
                .list
                .iter()
                .map(|field| Field { name: base + field.name.start..base + field.name.end, ..field.clone() }),
        );
        self.requests.push(Waiting { source, method, path, fields: first..self.fields.len() as u32 });
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
