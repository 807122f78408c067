//! What a person has shown in a [`Session`](crate::Session): held apart, and taken over once it is confirmed.

use super::{Limits, Store};
use crate::key::Key;
use crate::profile::Profile;
use crate::source::Thresholds;

impl Store {
    /// An empty store for what is taught to the site that knows `self`. Paths are read as there.
    pub fn for_session(&self) -> Store {
        let thresholds = Thresholds { values: u64::MAX, ..self.limits.thresholds };
        Store {
            limits: Limits { thresholds, auto: None, ..self.limits },
            segments: self.segments.clone(),
            names: self.names,
            is_taught: true,
            ..Store::default()
        }
    }

    /// Takes over what was taught, once a person has confirmed it: its types are those of their fields, also
    /// of closed ones, and the kinds that it carries count for nothing there. Kinds that were dismissed stay
    /// so. `day` is the day it is.
    pub fn confirm(&mut self, taught: &Store, day: u32) {
        let mut vouched = taught.clone();
        vouched.fields.values_mut().for_each(|field| field.profile.vouch());
        self.merge(vouched);
        let thresholds = self.limits.thresholds;
        for (key, field) in &taught.fields {
            if let Some(own) = self.fields.get_mut(key) {
                own.profile.take_confirmed(&field.profile, day, &thresholds);
            }
        }
    }

    /// What is known of one field.
    pub fn field(&self, key: &Key) -> Option<&Profile> {
        self.fields.get(key).map(|field| &field.profile)
    }
}
