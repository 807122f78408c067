//! Tests of what is learned of fields, and of how little one sender can teach.

mod bypasses;
mod decisions;
mod declared;
mod openings;
mod orders;
mod poisoning;
mod profiles;
mod remembered;
mod segments;
mod siblings;
mod site_fields;
mod state;
mod taught;
mod types;

use portcullis_learn::{FieldPlace, Fields, Knowledge, Limits, Site, Source, Store, Unusual};

/// A site that learns as it is told.
struct Learner {
    site: Site,
    store: Store,
}

impl Learner {
    fn new() -> Learner {
        Learner { site: Site::default(), store: Store::new(Limits::default()) }
    }

    /// `value` in the query parameter `name` of `path`, from `network` on `day`.
    fn sees(&mut self, path: &str, name: &str, value: &str, network: u32, day: u32) {
        let source = Source { network, day, ..Source::default() };
        self.site.observe(source, b"GET", path.as_bytes(), &fields(FieldPlace::Query, name, value));
        self.learn();
    }

    fn learn(&mut self) {
        self.store.learn(&self.site.take());
    }

    /// What is unlike the field, if anything is.
    fn judges(
        &mut self,
        method: &str,
        path: &str,
        place: FieldPlace,
        name: &str,
        value: &str,
    ) -> Option<Unusual> {
        self.learn();
        let knowledge = Knowledge::of(&self.store);
        let fields = fields(place, name, value);
        let (field, name) = fields.iter().next()?;
        knowledge.judge(&mut knowledge.page(method.as_bytes(), path.as_bytes()), field, name)
    }

    fn judges_get(&mut self, path: &str, name: &str, value: &str) -> Option<Unusual> {
        self.judges("GET", path, FieldPlace::Query, name, value)
    }

    /// A site whose parameter `id` of `/item` is known to carry numbers, from 40 networks in 14 days.
    fn of_numbers() -> Learner {
        let mut learner = Learner::new();
        for number in 0..560u32 {
            learner.sees("/item", "id", &number.to_string(), number % 40, 20_000 + number % 14);
        }
        assert!(learner.judges_get("/item", "id", "7").is_none());
        assert!(learner.judges_get("/item", "id", "1'--").is_some());
        learner
    }
}

fn fields(place: FieldPlace, name: &str, value: &str) -> Fields {
    let mut fields = Fields::default();
    fields.note(place, name.as_bytes(), value.as_bytes());
    fields.set_own_hosts(|host| host == b"shop.example");
    fields
}
