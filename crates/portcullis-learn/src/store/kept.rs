//! What of a store is kept, and what it takes over from another one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Beyond, Field, Founder, Limits, SEGMENTS_MAX, Segment, Store, TEMPLATE_BYTES_MAX};
use crate::decision::Decisions;
use crate::key::Key;
use crate::path;

/// The part of a store that is kept.
#[derive(Serialize, Deserialize)]
pub(crate) struct Written {
    segments: BTreeMap<String, BTreeMap<String, Segment>>,
    fields: Vec<(Key, Field)>,
    beyond: Beyond,
    #[serde(default, skip_serializing_if = "Decisions::is_empty")]
    decisions: Decisions,
}

impl Store {
    pub(crate) fn to_written(&self) -> Written {
        Written {
            segments: self.segments.clone(),
            fields: self.fields.iter().map(|(key, field)| (key.clone(), field.clone())).collect(),
            beyond: self.beyond,
            decisions: self.decisions.clone(),
        }
    }

    /// A store of what was kept. What does not fit into `limits` is left out and counted.
    pub(crate) fn from_written(written: Written, limits: Limits) -> Result<Store, String> {
        let mut store = Store::new(limits);
        store.beyond = written.beyond;
        if let Some(mistake) = written.decisions.mistake() {
            return Err(mistake.to_owned());
        }
        store.decisions = written.decisions;
        for (template, names) in written.segments {
            if names.len() > SEGMENTS_MAX {
                return Err(format!(
                    "{} names below `{template}`, at most {SEGMENTS_MAX} may be",
                    names.len()
                ));
            }
            store.segments.insert(template, names);
        }
        for (key, mut field) in written.fields {
            if key.template.len() > TEMPLATE_BYTES_MAX || key.name.len() > path::NAME_BYTES_MAX * 3 {
                return Err(format!("the name or path of field `{}` is too long", key.name));
            }
            if let Some(mistake) = field.profile.mistake() {
                return Err(format!("field `{}` of {}: {mistake}", key.name, key.template));
            }
            field.profile.settle(&limits.thresholds);
            if store.fields.len() < limits.fields_max {
                store.fields.insert(key, field);
            } else {
                store.beyond.fields = store.beyond.fields.saturating_add(field.profile.all.values);
            }
        }
        store.count_again();
        Ok(store)
    }

    /// Takes over what another store has learned. Where there is no room for a field it is counted as beyond
    /// the limit.
    pub fn merge(&mut self, other: Store) {
        for (template, names) in other.segments {
            let own = self.segments.entry(template).or_default();
            for (name, segment) in names {
                if own.len() < SEGMENTS_MAX || own.contains_key(&name) {
                    let known = own.entry(name).or_insert_with(|| segment.clone());
                    known.founder = Founder(None);
                    known.last_day = known.last_day.max(segment.last_day);
                }
            }
        }
        let thresholds = self.limits.thresholds;
        for (key, field) in other.fields {
            if let Some(own) = self.fields.get_mut(&key) {
                own.profile.merge(&field.profile, &thresholds);
                own.founder = Founder(None);
            } else if self.fields.len() < self.limits.fields_max {
                self.fields.insert(key, field);
            } else {
                self.beyond.fields = self.beyond.fields.saturating_add(field.profile.all.values);
            }
        }
        self.beyond.fields = self.beyond.fields.saturating_add(other.beyond.fields);
        self.beyond.long = self.beyond.long.saturating_add(other.beyond.long);
        self.decisions.take_over(&other.decisions, 0);
        self.carry_decisions_out();
        self.count_again();
    }
}
