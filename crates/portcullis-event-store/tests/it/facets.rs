use std::time::Duration;

use portcullis_event::Event;
use portcullis_event_store::{FacetRequest, Facets, Store, Writer};
use portcullis_query::{Field, Kind, parse};

use crate::common::*;

/// Facets count what a look at every event would count.
#[test]
fn facets_are_those_of_all_events() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(settings(folder.path()), false).unwrap();
    write(&mut writer, 0..3000, 700);
    let store = Store::new(folder.path());
    for text in [
        "",
        "verdict = deny",
        "site = shop and path ^= /a",
        "not client in 192.0.2.0/24",
        "status = 500 and time < 2026-11-26T00:00:10Z",
        "id = nothing",
    ] {
        let filter = parse(text, NOW).unwrap();
        let fields: Vec<Field> = Field::ALL.iter().copied().filter(|field| Facets::has(*field)).collect();
        let patience = Duration::from_secs(60);
        let facets =
            store.facets(&FacetRequest { filter: &filter, fields: &fields, top: 4, patience }).unwrap();
        let passing: Vec<Event> = (0..3000).map(event).filter(|event| filter.matches(event)).collect();
        assert_eq!((facets.total, facets.complete), (passing.len() as u64, true), "{text}");
        for facet in facets.fields {
            let mut expected = std::collections::BTreeMap::<String, u64>::new();
            let mut without = 0;
            for event in &passing {
                let mut values = Vec::new();
                match facet.field {
                    field if field.is_list() => field.list(event, |value| values.push(value.to_owned())),
                    field if field.kind() == Kind::Number => {
                        values.extend(field.number(event).map(|n| n.to_string()))
                    }
                    field => {
                        values.extend(Some(field.word(event).into_owned()).filter(|word| !word.is_empty()))
                    }
                }
                without += u64::from(values.is_empty());
                values.into_iter().for_each(|value| *expected.entry(value).or_default() += 1);
            }
            let mut expected: Vec<(String, u64)> = expected.into_iter().collect();
            expected.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            let rest: u64 = expected.iter().skip(4).map(|(_, count)| count).sum();
            expected.truncate(4);
            assert_eq!(
                (facet.values, facet.others, facet.without),
                (expected, rest, without),
                "{text} {:?}",
                facet.field
            );
        }
    }
    let filter = parse("", NOW).unwrap();
    let request = FacetRequest { filter: &filter, fields: &[Field::Site], top: 4, patience: Duration::ZERO };
    assert!(!store.facets(&request).unwrap().complete);
}
