//! What an operator decides about fields, and how they are found by what a request says.

use std::fmt;
use std::ops::Bound;

use super::{Founder, Store};
use crate::key::{FieldPlace, Key, SEGMENT, SITE};
use crate::opening::{OpeningState, opening_id};
use crate::path::{self, ANY};
use crate::profile::Profile;

/// What an operator decides about a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All that is known of it goes: it is learned anew.
    Forget,
    /// It is learned, and never closed.
    KeepOpen,
    /// It is closed now, whatever is missing.
    Close,
    /// It is open, and closed when enough is known, as fields without a decision are.
    Learn,
}

/// Why an order cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderError {
    /// There is no such field.
    NoField,
    /// It has carried values of no plain type, so that there is nothing to close it as.
    NotPlain,
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OrderError::NoField => "no such field is learned",
            OrderError::NotPlain => "its values are of no plain type, so that it cannot be closed",
        })
    }
}

impl std::error::Error for OrderError {}

impl Store {
    /// Carries an order out. A field that an operator has decided on is not dropped for a new one as
    /// something that a single client has sent.
    pub fn order(&mut self, key: &Key, order: Order) -> Result<(), OrderError> {
        let thresholds = self.limits.thresholds;
        let field = self.fields.get_mut(key).ok_or(OrderError::NoField)?;
        let profile = &mut field.profile;
        match order {
            Order::Forget => {
                let forgotten = self.fields.remove(key);
                let kinds = forgotten.iter().flat_map(|field| field.profile.openings.keys());
                kinds.for_each(|kind| self.decisions.remove(&opening_id(key, kind)));
                self.count_again();
                return Ok(());
            }
            Order::KeepOpen => (profile.kept_open, profile.closed) = (true, None),
            Order::Close if profile.form_so_far().is_none() => return Err(OrderError::NotPlain),
            Order::Close => {
                // Closing it means that it carries no code.
                let carried = profile.openings.iter_mut().filter(|(_, opening)| opening.keeps_open());
                for (kind, opening) in carried {
                    opening.state = OpeningState::Dismissed;
                    let day = opening.since.max(opening.seen.days.last());
                    self.decisions.add(&opening_id(key, kind), opening.state, day);
                }
                profile.close(profile.closed.map(|closed| closed.shown).unwrap_or_default());
            }
            Order::Learn => {
                (profile.kept_open, profile.closed) = (false, None);
                profile.settle(&thresholds);
            }
        }
        field.founder = Founder(None);
        let mut above = String::new();
        for name in key.template.split('/').filter(|segment| !segment.is_empty()) {
            if let Some(segment) = self.segments.get_mut(&above).and_then(|names| names.get_mut(name)) {
                segment.founder = Founder(None);
            }
            above.push('/');
            above.push_str(name);
        }
        self.count_again();
        Ok(())
    }

    /// The field that a request means by method, path, place and name, as values are judged: by the nearest
    /// known path, and if it was never sent by this method or in this place, as another of its name. Path and
    /// name may be those of a key, too.
    pub fn find(
        &self,
        method: &[u8],
        path: &[u8],
        place: FieldPlace,
        name: &[u8],
    ) -> Option<(&Key, &Profile)> {
        let ((template, is_whole), method, name) = match place {
            // Findings name the path above a segment, keys have it.
            FieldPlace::PathSegment if name.starts_with(b"/") => {
                (self.known_template(name), path::method(method), SEGMENT.as_bytes())
            }
            FieldPlace::Header | FieldPlace::Cookie => ((SITE.to_owned(), true), SITE.as_bytes(), name),
            FieldPlace::Query | FieldPlace::Form | FieldPlace::Json | FieldPlace::PathSegment => {
                (self.known_template(path), path::method(method), name)
            }
        };
        let named = |name: String| {
            let first =
                Key { template: template.clone(), name, method: String::new(), place: FieldPlace::Query };
            let of_name = || {
                let from = self.fields.range(&first..);
                from.take_while(|(key, _)| key.template == first.template && key.name == first.name)
            };
            let own = of_name().find(|(key, _)| key.place == place && key.method.as_bytes() == method);
            own.or_else(|| of_name().find(|(key, _)| place.is_like(key.place, is_whole)))
        };
        let mut known = Vec::new();
        let as_sent = path::name(place.place(), name, &mut known);
        // The one form of a name may have another one itself: `a[]` of `a[[0]]`.
        let as_listed = || named(String::from_utf8_lossy(name).into_owned());
        let found = as_sent.then(|| named(String::from_utf8_lossy(&known).into_owned())).flatten();
        found.or_else(as_listed).map(|(key, field)| (key, &field.profile))
    }

    /// The template that requests for `path` are judged by, and whether that is all of it.
    pub(super) fn known_template(&self, path: &[u8]) -> (String, bool) {
        if let Ok(template) = std::str::from_utf8(path)
            && self.has_page(template)
        {
            return (template.to_owned(), true);
        }
        let canonical = path::canonical(path);
        let (mut template, mut is_whole) = (String::new(), true);
        for segment in path::segments(&canonical) {
            let name = path::placeholder(segment).or_else(|| std::str::from_utf8(segment).ok());
            let below =
                |name: &str| Some(format!("{template}/{name}")).filter(|_| self.is_known(&template, name));
            match name.and_then(below).or_else(|| below(ANY)) {
                Some(next) => template = next,
                None => {
                    is_whole = false;
                    break;
                }
            }
        }
        if template.is_empty() {
            template.push('/');
        }
        (template, is_whole)
    }

    /// True if something is known at `name` below `template`, or below that.
    fn is_known(&self, template: &str, name: &str) -> bool {
        let page = format!("{template}/{name}");
        self.segments.get(template).is_some_and(|names| names.contains_key(name))
            || self.has_page(&page)
            || self.from(&format!("{page}/")).is_some_and(|next| next.starts_with(&format!("{page}/")))
    }

    fn has_page(&self, template: &str) -> bool {
        self.from(template) == Some(template)
    }

    /// The first template of a field that is `template` or stands behind it.
    fn from(&self, template: &str) -> Option<&str> {
        let first = Key {
            template: template.to_owned(),
            name: String::new(),
            method: String::new(),
            place: FieldPlace::Query,
        };
        let next = self.fields.range((Bound::Included(first), Bound::Unbounded)).next();
        next.map(|(key, _)| key.template.as_str())
    }
}
