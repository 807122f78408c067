//! Taking over what requests carried.

use super::Store;
use crate::batch::{Batch, KindNews, Request};
use crate::field::Field;
use crate::key::{FieldPlace, Key, SEGMENT, SITE};
use crate::opening::{OpeningState, opening_id};
use crate::path;
use crate::profile::Carried;
use crate::sibling::{self, Beside, SIBLINGS_MAX};
use crate::source::Standing;

impl Store {
    /// Learns the requests of a batch.
    pub fn learn(&mut self, batch: &Batch) {
        let mut name = Vec::new();
        for request in batch.requests() {
            // A request without parameters makes no page known.
            let has_parameters = request.fields.iter().any(|field| field.place.is_of_parameters());
            let template = has_parameters.then(|| self.template(request.path, request.source)).flatten();
            let mut beside = Beside::default();
            for (at, field) in request.fields.iter().enumerate() {
                if field.place == FieldPlace::PathSegment {
                    self.learn_segment(&request, field, batch.name(field));
                    continue;
                }
                let page = if field.place.is_of_site() { Some(SITE) } else { template.as_deref() };
                let is_named = path::name(field.place.place(), batch.name(field), &mut name);
                let Some(page) = page.filter(|_| is_named) else {
                    self.beyond.long = self.beyond.long.saturating_add(1);
                    continue;
                };
                if field.place.is_of_parameters() {
                    beside.add(at, field.place, &name, batch.name(field), field.carried.option);
                }
                let key = Key::new(page, &name, request.method, field.place);
                self.add(key, &field.carried, &request);
            }
            if let Some(template) = &template {
                self.learn_by_siblings(template, &request, batch, &beside);
            }
        }
        for learned in batch.kinds() {
            let (place, from) = (learned.found.place, learned.source);
            let (path, of_field) = if place == FieldPlace::PathSegment {
                (learned.found.name, SEGMENT.as_bytes())
            } else {
                (learned.path, learned.found.name)
            };
            let template = match learned.news {
                _ if place.is_of_site() => Some(SITE.to_owned()),
                // Nothing that was refused makes a page known.
                KindNews::Refused if from.standing != Standing::Trusted => Some(self.known_template(path).0),
                KindNews::Carried | KindNews::Tried(_) | KindNews::Refused => self.template(path, from),
            };
            let Some(template) = template else { continue };
            if !path::name(place.place(), of_field, &mut name) {
                continue;
            }
            let key = Key::new(&template, &name, learned.method, place);
            match learned.news {
                KindNews::Carried => {
                    let kind = learned.found.kind;
                    let decided = match self.decisions.is_empty() {
                        true => None,
                        false => self.decisions.get(&opening_id(&key, kind)),
                    };
                    let thresholds = self.limits.thresholds;
                    self.change(key, from, |profile| {
                        profile.add_kind(kind, from);
                        if let Some(decided) = decided {
                            profile.decide(kind, decided, &thresholds);
                        }
                    });
                }
                KindNews::Refused => {
                    let thresholds = self.limits.thresholds;
                    if from.standing == Standing::Trusted {
                        self.change(key, from, |profile| profile.add_refused(from, &thresholds));
                    } else if let Some(field) = self.fields.get_mut(&key) {
                        field.profile.add_refused(from, &thresholds);
                    }
                }
                KindNews::Tried(result) => {
                    let opening = self.fields.get_mut(&key);
                    let opening =
                        opening.and_then(|field| field.profile.openings.get_mut(learned.found.kind));
                    if let Some(opening) = opening.filter(|opening| opening.state == OpeningState::Trial) {
                        opening.tried.add(result);
                    }
                }
            }
        }
    }

    /// Learns a value of a field.
    fn add(&mut self, key: Key, carried: &Carried, request: &Request<'_>) {
        let thresholds = self.limits.thresholds;
        self.change(key, request.source, |profile| {
            profile.add(carried, request.weight, request.source, &thresholds);
        });
    }

    /// Learns a segment of the path, which stands below the path `above`. Names are other pages as long as
    /// they are few: only those that are not told apart any more are values.
    fn learn_segment(&mut self, request: &Request<'_>, field: &Field, above: &[u8]) {
        let Some(template) = self.template(above, request.source) else {
            self.beyond.long = self.beyond.long.saturating_add(1);
            return;
        };
        if field.is_name {
            let canonical = path::canonical(request.path);
            let name = path::below(&canonical, above).and_then(|name| std::str::from_utf8(name).ok());
            let above = if template == "/" { "" } else { &template };
            if name.is_none_or(|name| self.is_told_apart(above, name, request.source)) {
                return;
            }
        }
        let key = Key::new(&template, SEGMENT.as_bytes(), request.method, field.place);
        self.add(key, &Carried { option: 0, ..field.carried }, request);
    }

    /// Learns the fields of a request again, by the values of those beside them.
    fn learn_by_siblings(&mut self, template: &str, request: &Request<'_>, batch: &Batch, beside: &Beside) {
        let mut name = Vec::new();
        let parameters = |(_, field): &(usize, &Field)| field.place.is_of_parameters();
        for (at, field) in request.fields.iter().enumerate().filter(parameters) {
            if !path::name(field.place.place(), batch.name(field), &mut name) || !sibling::is_content(&name) {
                continue;
            }
            let key = |name: &[u8]| Key::new(template, name, request.method, field.place);
            let own = key(&name);
            // What is refused in the field may be what it is for where one of them stands beside it.
            if self.fields.get(&own).is_none_or(|field| field.profile.is_refused_often()) {
                continue;
            }
            let is_list = |sibling: &Key, option: u64| {
                let field = self.fields.get(sibling);
                field.is_some_and(|field| field.profile.is_list() && field.profile.options.contains(&option))
            };
            let variants = beside.siblings(field.place, &name).filter_map(|sibling| {
                let option = beside.option(at, field.place, &name, sibling)?;
                let sibling = key(sibling);
                is_list(&sibling, option).then(|| sibling::variant(&own.name, &sibling.name, option))
            });
            for name in variants.take(SIBLINGS_MAX).collect::<Vec<_>>() {
                self.add(Key { name, ..own.clone() }, &field.carried, request);
            }
        }
    }
}
