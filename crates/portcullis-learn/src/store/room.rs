//! Bounds of a store: the clients that may add something, and the entries that it replaces.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::{Founder, NEW_SHARE, PAGE_FIELDS_MAX, SEGMENTS_MAX, Segment, Store};
use crate::key::{Key, first_of_page};
use crate::session::SESSION_FIELDS_MAX;
use crate::source::Source;

/// Days after which a name in a path that only one network has asked for may be replaced by a new one.
const NAME_IDLE_DAYS: u32 = 7;
/// Fields that are searched for one to drop.
const LOOKED_AT_MAX: usize = 16;

impl Store {
    /// True if there is room for a new field, if need be after another one has given way.
    pub(super) fn has_room(&mut self, key: &Key, from: Source) -> bool {
        let page = self
            .fields
            .range(first_of_page(&key.template)..)
            .take_while(|(other, _)| other.template == key.template);
        let is_full = page.take(PAGE_FIELDS_MAX).count() >= PAGE_FIELDS_MAX;
        if !self.may_add(from.network) || is_full && !self.give_way_on_page(&key.template, from) {
            return false;
        }
        if self.is_taught {
            return self.fields.len() < SESSION_FIELDS_MAX;
        }
        self.fields.len() < self.limits.fields_max || self.give_way(from)
    }

    /// True if `network` may add something new.
    fn may_add(&self, network: u32) -> bool {
        if self.is_taught {
            return true;
        }
        let own = self.unconfirmed.get(&network).copied().unwrap_or_default();
        own < (self.limits.fields_max / NEW_SHARE).max(1)
    }

    /// Something that a network had sent first is no longer its own.
    pub(super) fn release(&mut self, founder: Option<u32>) {
        if let Some(founder) = founder
            && let Some(count) = self.unconfirmed.get_mut(&founder)
        {
            *count -= 1;
            if *count == 0 {
                self.unconfirmed.remove(&founder);
            }
        }
    }

    /// Drops a field that nobody else has confirmed or nobody has sent for long; those that are looked at
    /// follow where the last search ended.
    fn give_way(&mut self, from: Source) -> bool {
        let start = self.hand.take();
        let after = start.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let after = self.fields.range((after, Bound::Unbounded));
        let looked_at: Vec<_> = after.chain(self.fields.iter()).take(LOOKED_AT_MAX).collect();
        let found = looked_at.iter().find(|(_, field)| field.may_go(from.day)).map(|(key, _)| (*key).clone());
        self.hand = looked_at.last().map(|(key, _)| (*key).clone());
        found.is_some_and(|key| self.drop_field(&key))
    }

    /// The same as [`give_way`](Self::give_way), among the fields of one page.
    fn give_way_on_page(&mut self, template: &str, from: Source) -> bool {
        let page = self.fields.range(first_of_page(template)..);
        let mut page = page.take_while(|(key, _)| key.template == template);
        let found = page.find(|(_, field)| field.may_go(from.day)).map(|(key, _)| key.clone());
        found.is_some_and(|key| self.drop_field(&key))
    }

    fn drop_field(&mut self, key: &Key) -> bool {
        let dropped = self.fields.remove(key);
        let is_dropped = dropped.is_some();
        self.release(dropped.and_then(|field| field.founder.0));
        is_dropped
    }

    /// True if `name` below `template` is one of those that are distinguished, or becomes one.
    pub(super) fn is_told_apart(&mut self, template: &str, name: &str, from: Source) -> bool {
        if let Some(segment) = self.segments.get_mut(template).and_then(|names| names.get_mut(name)) {
            segment.last_day = segment.last_day.max(from.day);
            let confirmed = segment.founder.confirm(from.network);
            self.release(confirmed);
            return true;
        }
        if self.names >= self.limits.fields_max || !self.may_add(from.network) {
            return false;
        }
        let names = self.segments.entry(template.to_owned()).or_default();
        if names.len() >= SEGMENTS_MAX {
            let is_idle = |segment: &Segment| {
                segment.founder.0.is_some() && segment.last_day.saturating_add(NAME_IDLE_DAYS) < from.day
            };
            let idle = names.iter().find(|(_, segment)| is_idle(segment)).map(|(name, _)| name.clone());
            let Some(idle) = idle else { return false };
            self.forget(template, &idle);
        }
        let segment = Segment { founder: Founder(Some(from.network)), last_day: from.day };
        self.segments.entry(template.to_owned()).or_default().insert(name.to_owned(), segment);
        self.names += 1;
        *self.unconfirmed.entry(from.network).or_default() += 1;
        true
    }

    /// Drops `name` below `template`, with all that is below it.
    fn forget(&mut self, template: &str, name: &str) {
        let page = format!("{template}/{name}");
        let is_below = |other: &str| {
            other.strip_prefix(&page).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.fields.retain(|key, _| !is_below(&key.template));
        self.segments.retain(|template, _| !is_below(template));
        if let Some(names) = self.segments.get_mut(template) {
            names.remove(name);
        }
        self.count_again();
    }

    /// Counts the names, and what only one network has sent.
    pub(super) fn count_again(&mut self) {
        self.names = self.segments.values().map(BTreeMap::len).sum();
        self.unconfirmed.clear();
        let of_names = self.segments.values().flat_map(BTreeMap::values).map(|segment| segment.founder);
        let founders = of_names.chain(self.fields.values().map(|field| field.founder));
        for network in founders.filter_map(|founder| founder.0) {
            *self.unconfirmed.entry(network).or_default() += 1;
        }
    }
}
