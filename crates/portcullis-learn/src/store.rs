//! What is known of a site's fields, within bounds.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};

mod kept;
mod learning;
mod orders;
mod room;
mod taught;

pub(crate) use kept::Written;
pub use orders::{Order, OrderError};

use serde::{Deserialize, Serialize};

use crate::decision::Decisions;
use crate::key::{Key, first_of_page};
use crate::opening::{Opening, OpeningState, opening_id};
use crate::path::{self, ANY};
use crate::profile::Profile;
use crate::sibling;
use crate::source::{Source, Thresholds};

/// Bytes of memory that a field may take, whatever it carries.
pub const FIELD_BYTES_MAX: usize = 12 << 10;
/// Names that are distinguished in one place of a path; further ones count as one.
pub const SEGMENTS_MAX: usize = 64;
/// Fields of one method and path.
pub const PAGE_FIELDS_MAX: usize = 256;
/// Bytes of a path, its values replaced.
pub const TEMPLATE_BYTES_MAX: usize = 256;
/// One network may add so much of what fits in: one in so many fields and paths that nobody else has
/// confirmed yet.
pub const NEW_SHARE: usize = 16;
/// Days after which a field that nobody has sent may be replaced by a new one.
pub const IDLE_DAYS_MAX: u32 = 30;

/// The first client that sent something, until another one does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Founder(Option<u32>);

impl Founder {
    /// The founder, if `network` is another one: from now on it has none.
    fn confirm(&mut self, network: u32) -> Option<u32> {
        self.0.take_if(|founder| *founder != network)
    }
}

/// A field with what it carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Field {
    pub profile: Profile,
    founder: Founder,
}

impl Field {
    /// Nobody else has confirmed it, or nobody has sent it for long.
    fn may_go(&self, day: u32) -> bool {
        let seen = |opening: &Opening| opening.seen.days.last();
        let last = self.profile.openings.values().map(seen).max().unwrap_or_default();
        let last = last.max(self.profile.all.days.last());
        let is_idle = last.saturating_add(IDLE_DAYS_MAX) < day;
        !self.profile.kept_open && (self.founder.0.is_some() && last < day || is_idle)
    }
}

/// A name in a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Segment {
    founder: Founder,
    last_day: u32,
}

/// How much is kept, and what closing a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Fields.
    pub fields_max: usize,
    /// What a field must have shown before it is closed.
    pub thresholds: Thresholds,
    /// Days on trial after which a kind of finding counts for nothing in a field that carries it; none: a
    /// person decides.
    pub auto: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { fields_max: 2_000, thresholds: Thresholds::default(), auto: None }
    }
}

/// What did not fit in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beyond {
    /// Values of fields beyond the limit of a page, of the site, or of what one network may add.
    pub fields: u64,
    /// Values of fields whose name or path is too long.
    pub long: u64,
}

/// What is known of the fields of one site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Store {
    pub(crate) limits: Limits,
    pub(crate) fields: BTreeMap<Key, Field>,
    /// What people have decided about kinds of findings in fields, known ones or not.
    decisions: Decisions,
    /// By the template above: the names below it.
    segments: BTreeMap<String, BTreeMap<String, Segment>>,
    pub(crate) beyond: Beyond,
    /// Where the last search for a field to drop ended.
    hand: Option<Key>,
    /// By network: the fields and names that only it has sent.
    unconfirmed: HashMap<u32, usize>,
    /// The number of names.
    names: usize,
    /// The key of the hashes by which requests are judged.
    pub(crate) seed: Seed,
    /// One person vouches for all of it: no share of one network holds, and fields are at most
    /// [`SESSION_FIELDS_MAX`](crate::session::SESSION_FIELDS_MAX).
    is_taught: bool,
}

/// A key that nobody outside knows, another one in each store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(pub u64);

impl Default for Seed {
    fn default() -> Self {
        Seed(RandomState::new().hash_one(0u8))
    }
}

/// Stores that know the same are the same.
impl PartialEq for Seed {
    fn eq(&self, _: &Seed) -> bool {
        true
    }
}

impl Eq for Seed {}

impl Store {
    /// An empty store.
    pub fn new(limits: Limits) -> Store {
        Store { limits, ..Store::default() }
    }

    /// The fields beside that of `key` that are lists of few values, and may say what it is.
    pub(crate) fn siblings(&self, key: &Key) -> impl Iterator<Item = (&Key, &Profile)> {
        let is_asked = sibling::is_content(key.name.as_bytes());
        let page = is_asked.then(|| self.fields.range(first_of_page(&key.template)..));
        let page = page.into_iter().flatten().take_while(|(other, _)| other.template == key.template);
        let of_list = page.filter(|(other, field)| {
            field.profile.is_list()
                && (&other.method, other.place) == (&key.method, key.place)
                && sibling::may_tell(other.name.as_bytes(), key.name.as_bytes())
        });
        of_list.map(|(other, field)| (other, &field.profile))
    }

    /// Changes what is known of a field, which is made if it is new and there is room for it.
    fn change(&mut self, key: Key, from: Source, change: impl FnOnce(&mut Profile)) {
        if !self.fields.contains_key(&key) && !self.has_room(&key, from) {
            self.beyond.fields = self.beyond.fields.saturating_add(1);
            return;
        }
        let Store { fields, unconfirmed, .. } = self;
        let field = fields.entry(key).or_insert_with(|| {
            *unconfirmed.entry(from.network).or_default() += 1;
            Field { profile: Profile::default(), founder: Founder(Some(from.network)) }
        });
        change(&mut field.profile);
        let confirmed = field.founder.confirm(from.network);
        self.release(confirmed);
    }

    /// Proposes what enough have shown, ends trials and what nobody shows any more; `day` is the day it is.
    /// True if something has changed.
    pub fn advance(&mut self, day: u32) -> bool {
        let Limits { thresholds, auto, .. } = self.limits;
        let with_kinds = self.fields.values_mut().filter(|field| !field.profile.openings.is_empty());
        let has_changed =
            with_kinds.fold(false, |changed, field| field.profile.advance(day, &thresholds, auto) | changed);
        if !self.decisions.is_empty() {
            let mut decisions = std::mem::take(&mut self.decisions);
            decisions.retain(day, |id| self.openings().any(|(own, ..)| own == id));
            self.decisions = decisions;
        }
        has_changed
    }

    /// The kinds of findings that fields have carried, with the names by which people call them.
    pub fn openings(&self) -> impl Iterator<Item = (String, &Key, &str, &Opening)> {
        self.fields.iter().flat_map(|(key, field)| {
            let openings = field.profile.openings.iter();
            openings.map(move |(kind, opening)| (opening_id(key, kind), key, kind.as_str(), opening))
        })
    }

    /// A person decides on the kind in a field that is called `id`. False if there is none, or if it already
    /// is so.
    pub fn decide(&mut self, id: &str, state: OpeningState, day: u32) -> bool {
        let thresholds = self.limits.thresholds;
        let mut openings = self.openings();
        let found = openings.find(|(called, ..)| called == id);
        let Some((key, kind)) = found.map(|(_, key, kind, _)| (key.clone(), kind.to_owned())) else {
            return false;
        };
        drop(openings);
        let Some(field) = self.fields.get_mut(&key) else { return false };
        let Some(opening) = field.profile.openings.get_mut(&kind).filter(|opening| opening.state != state)
        else {
            return false;
        };
        opening.enter(state, day);
        field.profile.settle(&thresholds);
        self.decisions.add(id, state, day);
        true
    }

    /// The same about a field that others have seen: it holds as soon as the kind is seen in it here.
    pub fn decide_for_others(&mut self, id: &str, state: OpeningState, day: u32) {
        self.decisions.add(id, state, day);
    }

    /// Takes over what was decided later on another node; `day` is the day it is. True if there is anything.
    pub fn take_decisions(&mut self, other: &Store, day: u32) -> bool {
        let is_any = self.decisions.take_over(&other.decisions, day);
        if is_any {
            self.carry_decisions_out();
        }
        is_any
    }

    /// Has the decisions hold for the kinds that are known.
    fn carry_decisions_out(&mut self) {
        let Store { decisions, fields, limits, .. } = self;
        if decisions.is_empty() {
            return;
        }
        for (key, field) in fields.iter_mut() {
            let kinds: Vec<String> = field.profile.openings.keys().cloned().collect();
            for kind in kinds {
                if let Some(decided) = decisions.get(&opening_id(key, &kind)) {
                    field.profile.decide(&kind, decided, &limits.thresholds);
                }
            }
        }
    }

    /// The template of a path, made if it is new; nothing if it is too long.
    fn template(&mut self, path: &[u8], from: Source) -> Option<String> {
        let canonical = path::canonical(path);
        let mut template = String::new();
        for segment in path::segments(&canonical) {
            let next = match path::placeholder(segment) {
                Some(placeholder) => placeholder,
                None => {
                    // Of letters, digits and a few signs.
                    let name = std::str::from_utf8(segment).unwrap_or(ANY);
                    if self.is_told_apart(&template, name, from) { name } else { ANY }
                }
            };
            template.push('/');
            template.push_str(next);
        }
        if template.is_empty() {
            template.push('/');
        }
        (template.len() <= TEMPLATE_BYTES_MAX).then_some(template)
    }

    /// The fields, in the order of their templates and names.
    pub fn fields(&self) -> impl Iterator<Item = (&Key, &Profile)> {
        self.fields.iter().map(|(key, field)| (key, &field.profile))
    }

    /// The number of fields, and of those that are closed.
    pub fn counts(&self) -> (usize, usize) {
        (self.fields.len(), self.fields.values().filter(|field| field.profile.closed.is_some()).count())
    }

    /// What did not fit in.
    pub fn beyond(&self) -> Beyond {
        self.beyond
    }

    /// Changes the limits. What is known stays, also beyond them; what is known well enough now is closed.
    pub fn set_limits(&mut self, limits: Limits) {
        if std::mem::replace(&mut self.limits, limits) != limits {
            self.fields.values_mut().for_each(|field| field.profile.settle(&limits.thresholds));
        }
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The names that are distinguished, below each template.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.segments
            .iter()
            .flat_map(|(template, names)| names.keys().map(move |name| (&**template, &**name)))
    }

    /// Bytes of memory, about.
    pub fn held_bytes(&self) -> usize {
        let of_key = |key: &Key| size_of::<Key>() + key.template.len() + key.name.len() + key.method.len();
        let fields = self.fields.iter().map(|(key, field)| of_key(key) + field.profile.held_bytes());
        let names = self.names().map(|(_, name)| name.len() + size_of::<(String, Segment)>());
        fields.sum::<usize>() + names.sum::<usize>()
    }
}
